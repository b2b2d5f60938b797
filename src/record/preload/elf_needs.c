/* SPDX-License-Identifier: MIT */
/* elf_needs.c - the dynamic section, and the search path; elf_needs.h */
#include "record/preload/elf_needs.h"

#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

enum {
	MAX_SYMBOLS = 1 << 20,
	MAX_SECTIONS = 256,
	MAX_SECTION_BYTES = 64 << 20,
};

/* A function that no other Lua exports. */
#define LUAJIT_SYMBOL "luaJIT_setmode"

static void take_needed(struct seam_elf_needs *needs, const char *name)
{
	if (strncmp(name, "libasan.so", 10) == 0)
		needs->has_asan = true;
	if (needs->n < SEAM_ELF_MAX_NEEDED)
		snprintf(needs->names[needs->n++], SEAM_ELF_NAME_BYTES, "%s",
			 name);
}

static void read_dynamic(struct seam_elf_needs *needs, Elf *elf, Elf_Data *data,
			 const GElf_Shdr *header)
{
	GElf_Dyn entry;

	for (int i = 0; i < 4 * SEAM_ELF_MAX_NEEDED &&
	     gelf_getdyn(data, i, &entry); i++) {
		const char *text = NULL;

		if (entry.d_tag == DT_NEEDED || entry.d_tag == DT_RPATH ||
		    entry.d_tag == DT_RUNPATH)
			text = elf_strptr(elf, header->sh_link,
					  entry.d_un.d_val);
		if (text && entry.d_tag == DT_NEEDED)
			take_needed(needs, text);
		else if (text)
			snprintf(needs->paths, sizeof(needs->paths), "%s",
				 text);
	}
}

/* Source: the hash of .gnu.hash, binutils' bfd_elf_gnu_hash(). */
static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	while (*name)
		hash = hash * 33 + (uint8_t)*name++;
	return hash;
}

/*
 * Whether the file may export LuaJIT's symbol, by the Bloom filter of its
 * .gnu.hash: a libLLVM has 40,000 symbols, whose names take 10 ms to read.
 */
static bool may_export_luajit(const Elf_Data *data)
{
	struct {
		uint32_t n_buckets, first, n_words, shift;
	} header;
	uint32_t hash = gnu_hash(LUAJIT_SYMBOL);
	uint64_t word, bits;
	size_t at;

	if (data->d_size < sizeof(header))
		return true;
	memcpy(&header, data->d_buf, sizeof(header));
	if (header.n_words == 0 || header.shift > 31)
		return true;
	at = sizeof(header) + hash / 64 % header.n_words * sizeof(word);
	if (data->d_size - sizeof(word) < at)
		return true;
	memcpy(&word, (const uint8_t *)data->d_buf + at, sizeof(word));
	bits = UINT64_C(1) << hash % 64 |
	       UINT64_C(1) << (hash >> header.shift) % 64;
	return (word & bits) == bits;
}

static bool exports_luajit(Elf *elf, Elf_Data *data, const GElf_Shdr *header)
{
	GElf_Sym symbol;

	for (int i = 0; i < MAX_SYMBOLS && gelf_getsym(data, i, &symbol);
	     i++) {
		const char *name;

		if (symbol.st_shndx == SHN_UNDEF)
			continue;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (name && strcmp(name, LUAJIT_SYMBOL) == 0)
			return true;
	}
	return false;
}

/*
 * libelf reads all of a section into memory, and that a file has a terabyte
 * costs its author nothing.
 */
static bool is_bounded(Elf_Scn *section, GElf_Shdr *header)
{
	return section && gelf_getshdr(section, header) &&
	       header->sh_size <= MAX_SECTION_BYTES &&
	       !(header->sh_flags & SHF_COMPRESSED);
}

/* The data of the first section of @type; NULL: there is none. */
static Elf_Data *find_section(Elf *elf, uint32_t type, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;
	GElf_Shdr linked;

	for (int i = 0; i < MAX_SECTIONS &&
	     (section = elf_nextscn(elf, section)); i++)
		if (is_bounded(section, header) && header->sh_type == type)
			return is_bounded(elf_getscn(elf, header->sh_link),
					  &linked) ?
			       elf_getdata(section, NULL) : NULL;
	return NULL;
}

static void read_sections(struct seam_elf_needs *needs, Elf *elf)
{
	GElf_Shdr header;
	Elf_Data *data = find_section(elf, SHT_DYNAMIC, &header);

	if (data)
		read_dynamic(needs, elf, data, &header);
	data = find_section(elf, SHT_GNU_HASH, &header);
	if (data && !may_export_luajit(data))
		return;
	data = find_section(elf, SHT_DYNSYM, &header);
	needs->has_luajit = data && exports_luajit(elf, data, &header);
}

/* More than 65,279 sections are refused: libelf would allocate for them all. */
static bool is_program(int fd)
{
	Elf64_Ehdr h;

	return seam_file_read_at(fd, &h, sizeof(h), 0) == 0 &&
	       memcmp(h.e_ident, ELFMAG, SELFMAG) == 0 &&
	       h.e_ident[EI_CLASS] == ELFCLASS64 &&
	       h.e_ident[EI_DATA] == ELFDATA2LSB &&
	       h.e_machine == EM_X86_64 && (h.e_shnum || !h.e_shoff);
}

bool seam_elf_needs_read_fd(struct seam_elf_needs *needs, int fd)
{
	Elf *elf;

	memset(needs, 0, sizeof(*needs));
	if (!is_program(fd))
		return false;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf)
		read_sections(needs, elf);
	elf_end(elf);
	return elf;
}

bool seam_elf_needs_read(struct seam_elf_needs *needs, const char *path)
{
	int fd = seam_file_open_fd(AT_FDCWD, path, 0, NULL);
	bool is_ours;

	memset(needs, 0, sizeof(*needs));
	if (fd < 0)
		return false;
	is_ours = seam_elf_needs_read_fd(needs, fd);
	close(fd);
	return is_ours;
}

/* ---- the search ---- */

/* @name in the folder [@folder, @folder + @n), of the file @path. */
static bool is_in(const char *folder, size_t n, const char *path,
		  const char *name, char *found, size_t room)
{
	static const char origin[] = "$ORIGIN", braces[] = "${ORIGIN}";
	const char *slash = strrchr(path, '/');
	size_t skip = strncmp(folder, origin, sizeof(origin) - 1) == 0 ?
		      sizeof(origin) - 1 :
		      strncmp(folder, braces, sizeof(braces) - 1) == 0 ?
		      sizeof(braces) - 1 : 0;
	int length;

	if (n == 0 || skip > n)
		return false;
	length = skip ? snprintf(found, room, "%.*s%.*s/%s",
				 slash ? (int)(slash - path) : 1,
				 slash ? path : ".", (int)(n - skip),
				 folder + skip, name) :
		 snprintf(found, room, "%.*s/%s", (int)n, folder, name);
	return length > 0 && (size_t)length < room &&
	       access(found, R_OK) == 0;
}

static bool is_in_list(const char *folders, const char *path, const char *name,
		       char *found, size_t room)
{
	while (folders && *folders) {
		size_t n = strcspn(folders, ":");

		if (is_in(folders, n, path, name, found, room))
			return true;
		folders += n + (folders[n] == ':');
	}
	return false;
}

bool seam_elf_needs_find(const struct seam_elf_needs *needs, const char *path,
			 const char *name, char *found, size_t room)
{
	static const char usual[] =
		"/usr/local/lib/x86_64-linux-gnu:/usr/local/lib:"
		"/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:"
		"/lib64:/usr/lib64:/lib:/usr/lib";

	if (strchr(name, '/'))
		return (size_t)snprintf(found, room, "%s", name) < room &&
		       access(found, R_OK) == 0;
	return is_in_list(needs->paths, path, name, found, room) ||
	       is_in_list(getenv("LD_LIBRARY_PATH"), path, name, found,
			  room) ||
	       is_in_list(usual, path, name, found, room);
}
