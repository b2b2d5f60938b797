/* SPDX-License-Identifier: MIT */
/* elf_functions.c - a file's symbol table; see elf_functions.h */
#include "target/sysprof/elf_functions.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { MAX_TABLE = 1 << 30 };	/* bytes */

struct elf_file {
	int fd;
	uint64_t size;
	ElfW(Ehdr) header;
};

/* Copy @n bytes of the file, all of them or none.  The caller frees. */
static int read_range(const struct elf_file *file, uint64_t at, uint64_t n,
		      void **out)
{
	uint8_t *bytes;
	int r;

	if (n > MAX_TABLE || at > file->size || n > file->size - at)
		return -EBADMSG;
	bytes = malloc(n + 1);
	if (!bytes)
		return -ENOMEM;
	r = seam_file_read_at(file->fd, bytes, n, at);
	if (r < 0) {
		free(bytes);
		return r == -ENODATA ? -EBADMSG : r;
	}
	bytes[n] = 0;
	*out = bytes;
	return 0;
}

static int open_file(struct elf_file *file, const char *path)
{
	struct stat stat;

	/* a path that names a FIFO by now must not stop the program */
	file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file->fd < 0)
		return -errno;
	if (fstat(file->fd, &stat) < 0)
		return -errno;
	if (!S_ISREG(stat.st_mode))
		return -EBADMSG;
	file->size = (uint64_t)stat.st_size;
	return 0;
}

/* Whether it is the file with @headers. */
static int check_headers(struct elf_file *file, const ElfW(Phdr) *headers,
			 size_t n)
{
	void *bytes;
	int r = read_range(file, 0, sizeof(file->header), &bytes);

	if (r < 0)
		return r;
	memcpy(&file->header, bytes, sizeof(file->header));
	free(bytes);
	if (memcmp(file->header.e_ident, ELFMAG, SELFMAG) ||
	    file->header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    file->header.e_phentsize != sizeof(*headers))
		return -EBADMSG;
	if (file->header.e_phnum != n)
		return -ESTALE;
	r = read_range(file, file->header.e_phoff, n * sizeof(*headers),
		       &bytes);
	if (r < 0)
		return r;
	r = memcmp(bytes, headers, n * sizeof(*headers)) ? -ESTALE : 0;
	free(bytes);
	return r;
}

static const ElfW(Shdr) *find_section(const ElfW(Shdr) *sections, size_t n,
				      uint32_t type)
{
	for (size_t i = 0; i < n; i++)
		if (sections[i].sh_type == type && sections[i].sh_size &&
		    sections[i].sh_link < n)
			return &sections[i];
	return NULL;
}

/* Exported names before local ones, and before aliases with underscores. */
static uint32_t rank_of(uint8_t info, const char *name)
{
	static const uint8_t bind_rank[] = {
		[STB_LOCAL] = 2, [STB_GLOBAL] = 0, [STB_WEAK] = 1 };
	uint8_t bind = ELF64_ST_BIND(info);
	uint32_t rank = bind < SEAM_ARRAY_SIZE(bind_rank) ? bind_rank[bind] : 2;

	return rank * 4 + (name[0] == '_') + (name[0] == '_' && name[1] == '_');
}

/* Add it if it is a function of this file with a name. */
static bool add_function(struct seam_elf_functions *functions,
			 const ElfW(Sym) *symbol, size_t n_names)
{
	uint8_t type = ELF64_ST_TYPE(symbol->st_info);

	if ((type != STT_FUNC && type != STT_GNU_IFUNC) ||
	    symbol->st_shndx == SHN_UNDEF || symbol->st_name >= n_names ||
	    !functions->names[symbol->st_name])
		return true;
	return SEAM_ARRAY_ADD(&functions->list, (struct seam_elf_function) {
		symbol->st_value, symbol->st_size, symbol->st_name,
		rank_of(symbol->st_info, functions->names + symbol->st_name) });
}

static int compare_functions(const void *left, const void *right)
{
	const struct seam_elf_function *a = left, *b = right;

	return SEAM_COMPARE(a->addr, b->addr) ?:
	       SEAM_COMPARE(a->rank, b->rank) ?: SEAM_COMPARE(a->name, b->name);
}

/* Sort, and of equal addresses use the best name. */
static void settle(struct seam_elf_functions *functions)
{
	size_t n = 0;

	SEAM_ARRAY_SORT(&functions->list, compare_functions);
	for (size_t i = 0; i < functions->list.n; i++)
		if (n == 0 || functions->list.items[n - 1].addr !=
			      functions->list.items[i].addr)
			functions->list.items[n++] = functions->list.items[i];
	functions->list.n = n;
}

static int read_table(struct seam_elf_functions *functions,
		      const struct elf_file *file, const ElfW(Shdr) *table,
		      const ElfW(Shdr) *names)
{
	void *bytes, *text;
	size_t n = table->sh_size / sizeof(ElfW(Sym));
	int r = read_range(file, names->sh_offset, names->sh_size, &text);

	if (r < 0)
		return r;
	functions->names = text;
	r = read_range(file, table->sh_offset, n * sizeof(ElfW(Sym)), &bytes);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n && r == 0; i++)
		if (!add_function(functions, (ElfW(Sym) *)bytes + i,
				  names->sh_size))
			r = -ENOMEM;
	free(bytes);
	settle(functions);
	return r;
}

static int read_sections(struct seam_elf_functions *functions,
			 const struct elf_file *file)
{
	const ElfW(Shdr) *sections, *table;
	size_t n = file->header.e_shnum;
	void *bytes;
	int r;

	if (file->header.e_shentsize != sizeof(*sections))
		return n ? -EBADMSG : -ENOENT;
	r = read_range(file, file->header.e_shoff, n * sizeof(*sections),
		       &bytes);
	if (r < 0)
		return r;
	sections = bytes;
	table = find_section(sections, n, SHT_SYMTAB) ?:
		find_section(sections, n, SHT_DYNSYM);
	r = table ? read_table(functions, file, table,
			       &sections[table->sh_link]) : -ENOENT;
	free(bytes);
	return r;
}

int seam_elf_functions_read(struct seam_elf_functions *functions,
			    const char *path, const ElfW(Phdr) *headers,
			    size_t n)
{
	struct elf_file file = { .fd = -1 };
	int r = open_file(&file, path);

	*functions = (struct seam_elf_functions) { .names = NULL };
	r = r ?: check_headers(&file, headers, n);
	r = r ?: read_sections(functions, &file);
	if (file.fd >= 0)
		close(file.fd);
	if (r < 0)
		seam_elf_functions_fini(functions);
	return r;
}

void seam_elf_functions_fini(struct seam_elf_functions *functions)
{
	free(functions->list.items);
	free(functions->names);
	*functions = (struct seam_elf_functions) { .names = NULL };
}
