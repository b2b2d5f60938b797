/* SPDX-License-Identifier: MIT */
/* elf_file.c - libelf with checks around it; the contract is in elf_file.h */
#include "symbol/elf/elf_file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>

#include "base/file.h"

/*
 * The largest unpacked size of a file's compressed sections.  DWARF packs to a
 * third, some of its sections to a tenth.
 */
#define UNPACKED_FREE ((uint64_t)256 << 20)
#define MAX_RATIO 16

/* Set in a sandboxed process, before anything is read. */
const struct seam_file_broker *seam_file_broker;

int seam_elf_open_fd(const char *path, struct seam_err *err)
{
	int fd = seam_file_broker ? seam_file_broker->open(path, err) :
		 seam_file_open_fd(AT_FDCWD, path, 0, err);

	return fd == -EISDIR ?
	       seam_err_set(err, -EINVAL, "not a regular file") : fd;
}

static int add_segments(struct seam_elf *file)
{
	size_t n = 0;

	if (elf_getphdrnum(file->elf, &n))
		return 0;
	for (size_t i = 0; i < n && i <= INT32_MAX; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(file->elf, (int)i, &header))
			break;
		if (header.p_type != PT_LOAD || header.p_filesz == 0 ||
		    header.p_offset >= file->size)
			continue;
		if (header.p_filesz > file->size - header.p_offset)
			header.p_filesz = file->size - header.p_offset;
		if (!SEAM_ARRAY_ADD(&file->segments, (struct seam_segment) {
			header.p_offset, header.p_filesz, header.p_vaddr,
			header.p_flags & PF_X }))
			return -ENOMEM;
	}
	return 0;
}

static void take_build_id(struct seam_elf *file)
{
	const void *id;
	ssize_t size = dwelf_elf_gnu_build_id(file->elf, &id);

	if (size <= 0)
		return;
	if (size > SEAM_BUILD_ID_MAX)
		size = SEAM_BUILD_ID_MAX;
	memcpy(file->build_id, id, (size_t)size);
	file->build_id_size = (size_t)size;
}

/* For both ways of opening. */
static int read_headers(struct seam_elf *file, struct seam_err *err)
{
	GElf_Ehdr header;

	if (!file->elf || elf_kind(file->elf) != ELF_K_ELF ||
	    !gelf_getehdr(file->elf, &header)) {
		seam_elf_close(file);
		return seam_err_set(err, -EBADMSG, "not an ELF file");
	}
	file->machine = header.e_machine;
	take_build_id(file);
	if (add_segments(file)) {
		seam_elf_close(file);
		return seam_err_no_memory(err);
	}
	return 0;
}

int seam_elf_open_at(struct seam_elf *file, int fd, const char *path,
		     struct seam_err *err)
{
	struct stat st;

	*file = (struct seam_elf) { .fd = fd, .path = strdup(path) };
	if (!file->path) {
		close(fd);
		return seam_err_no_memory(err);
	}
	elf_version(EV_CURRENT);
	if (fstat(fd, &st) == 0)
		file->size = (uint64_t)st.st_size;
	file->elf = elf_begin(fd, ELF_C_READ, NULL);
	return read_headers(file, err);
}

int seam_elf_open(struct seam_elf *file, const char *path, struct seam_err *err)
{
	int fd = seam_elf_open_fd(path, err);

	*file = (struct seam_elf) { .fd = -1 };
	return fd < 0 ? fd : seam_elf_open_at(file, fd, path, err);
}

int seam_elf_open_bytes(struct seam_elf *file, struct seam_bytes bytes,
			struct seam_err *err)
{
	*file = (struct seam_elf) {
		.fd = -1, .bytes = bytes, .size = bytes.size,
	};
	elf_version(EV_CURRENT);
	file->elf = bytes.size > 0 ? elf_memory((char *)(uintptr_t)bytes.data,
						bytes.size) : NULL;
	return read_headers(file, err);
}

int seam_elf_open_image(struct seam_elf *file, void *image, size_t size,
			struct seam_err *err)
{
	int r = seam_elf_open_bytes(file, (struct seam_bytes) { image, size },
				    err);

	if (r)
		free(image);
	else
		file->image = image;
	return r;
}

void seam_elf_release_fd(struct seam_elf *file)
{
	if (file->fd < 0 || !file->elf)
		return;
	elf_cntl(file->elf, ELF_C_FDDONE);
	close(file->fd);
	file->fd = -1;
}

void seam_elf_close(struct seam_elf *file)
{
	bool open = file->elf || file->path;

	elf_end(file->elf);
	if (open && file->fd >= 0)
		close(file->fd);
	free(file->image);
	free(file->path);
	free(file->segments.items);
	*file = (struct seam_elf) { .fd = -1 };
}

bool seam_segments_addr(const struct seam_segments *segments, uint64_t offset,
			uint64_t *addr)
{
	bool found = false;

	for (size_t i = 0; i < segments->n; i++) {
		const struct seam_segment *s = &segments->items[i];

		if (offset < s->offset || offset - s->offset >= s->size ||
		    (found && !s->is_executable))
			continue;
		*addr = s->addr + (offset - s->offset);
		found = true;
		if (s->is_executable)
			break;
	}
	return found;
}

Elf_Scn *seam_elf_section(const struct seam_elf *file, const char *name,
			  GElf_Shdr *header)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names))
		return NULL;
	while ((section = elf_nextscn(file->elf, section))) {
		const char *have;

		if (!gelf_getshdr(section, header) ||
		    header->sh_type == SHT_NOBITS)
			continue;
		have = elf_strptr(file->elf, names, header->sh_name);
		if (have && strcmp(have, name) == 0)
			return section;
	}
	return NULL;
}

struct seam_bytes seam_elf_bytes(const struct seam_elf *file, const char *name,
				 GElf_Shdr *header)
{
	Elf_Scn *section = seam_elf_section(file, name, header);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;

	return data && data->d_buf ?
	       (struct seam_bytes) { data->d_buf, data->d_size } :
	       (struct seam_bytes) { 0 };
}

/* "Load address + addend" and "symbol + addend". */
static const struct {
	int machine;
	uint32_t relative, absolute;
} relocations[] = {
	{ EM_X86_64, R_X86_64_RELATIVE, R_X86_64_64 },
	{ EM_AARCH64, R_AARCH64_RELATIVE, R_AARCH64_ABS64 },
	{ EM_RISCV, R_RISCV_RELATIVE, R_RISCV_64 },
	{ EM_PPC64, R_PPC64_RELATIVE, R_PPC64_ADDR64 },
	{ EM_S390, R_390_RELATIVE, R_390_64 },
	{ EM_LOONGARCH, R_LARCH_RELATIVE, R_LARCH_64 },
};

/* The address to which @rela refers; 0: not known. */
static uint64_t value_of(const struct seam_elf *file, Elf_Data *symbols,
			 const GElf_Rela *rela)
{
	uint32_t type = (uint32_t)GELF_R_TYPE(rela->r_info);
	size_t i = 0;
	GElf_Sym symbol;

	while (i < SEAM_ARRAY_SIZE(relocations) &&
	       relocations[i].machine != file->machine)
		i++;
	if (i == SEAM_ARRAY_SIZE(relocations))
		return 0;
	if (type == relocations[i].relative)
		return (uint64_t)rela->r_addend;
	if (type != relocations[i].absolute || !symbols ||
	    GELF_R_SYM(rela->r_info) > INT32_MAX ||
	    !gelf_getsym(symbols, (int)GELF_R_SYM(rela->r_info), &symbol) ||
	    symbol.st_shndx == SHN_UNDEF)
		return 0;
	return symbol.st_value + (uint64_t)rela->r_addend;
}

int seam_elf_relocated(const struct seam_elf *file, seam_elf_take_word *take,
		       void *context)
{
	GElf_Shdr header;
	Elf_Scn *section = seam_elf_section(file, ".rela.dyn", &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	size_t entry = gelf_fsize(file->elf, ELF_T_RELA, 1, EV_CURRENT);
	size_t n = data && data->d_buf && entry ? data->d_size / entry : 0;
	Elf_Scn *table = n ? elf_getscn(file->elf, header.sh_link) : NULL;
	Elf_Data *symbols = table ? elf_getdata(table, NULL) : NULL;
	GElf_Rela rela;
	int r = 0;

	for (size_t i = 0; !r && i < n && i <= INT32_MAX &&
			   gelf_getrela(data, (int)i, &rela); i++) {
		uint64_t value = value_of(file, symbols, &rela);

		if (value)
			r = take(context, rela.r_offset, value);
	}
	return r;
}

/*
 * Read @size bytes at @offset, all or none.  0; -ENODATA when the file ends
 * before; -EBADF when its descriptor was released.
 */
static int read_bytes(const struct seam_elf *file, uint64_t offset, void *buf,
		      size_t size, struct seam_err *err)
{
	ssize_t n;

	if (offset > file->size || size > file->size - offset)
		return seam_err_set(err, -ENODATA, "the file ends before the "
				    "function does");
	if (file->fd < 0 && !file->bytes.data)
		return seam_err_set(err, -EBADF, "the file is closed");
	if (file->fd < 0) {
		memcpy(buf, file->bytes.data + offset, size);
		return 0;
	}
	n = pread(file->fd, buf, size, (off_t)offset);
	if (n == (ssize_t)size)
		return 0;
	return seam_err_set(err, n < 0 ? -errno : -ENODATA, "cannot read: %s",
			    n < 0 ? strerror(errno) : "the file is cut");
}

const struct seam_segment *
seam_segment_at(const struct seam_segments *segments, uint64_t addr)
{
	for (size_t i = 0; i < segments->n; i++)
		if (addr >= segments->items[i].addr &&
		    addr - segments->items[i].addr < segments->items[i].size)
			return &segments->items[i];
	return NULL;
}

int seam_elf_read_at(const struct seam_elf *file, uint64_t addr, void *buf,
		     size_t size, struct seam_err *err)
{
	const struct seam_segment *s = seam_segment_at(&file->segments, addr);

	if (!s || size > s->size - (addr - s->addr))
		return seam_err_set(err, -ENXIO, "no segment has the address");
	return read_bytes(file, s->offset + (addr - s->addr), buf, size, err);
}

enum seam_endian seam_elf_endian(const struct seam_elf *file)
{
	const char *ident = elf_getident(file->elf, NULL);

	return ident && ident[EI_DATA] == ELFDATA2MSB ? SEAM_BIG : SEAM_LITTLE;
}

struct seam_machine seam_elf_machine(const struct seam_elf *file)
{
	return (struct seam_machine) {
		.elf_machine = (uint32_t)file->machine,
		.is_64 = gelf_getclass(file->elf) == ELFCLASS64,
		.is_big_endian = seam_elf_endian(file) == SEAM_BIG,
	};
}

/* The unpacked size by the header of @section, or 0. */
static uint64_t unpacked_bytes(const struct seam_elf *file, Elf_Scn *section,
			       const GElf_Shdr *header)
{
	uint8_t start[12];
	GElf_Chdr packed;
	uint64_t size;

	if (header->sh_flags & SHF_COMPRESSED)
		return gelf_getchdr(section, &packed) ? packed.ch_size : 0;
	/* Before ELF had them: ".zdebug_*" and "ZLIB", the size big endian. */
	if (header->sh_type != SHT_PROGBITS || header->sh_flags & SHF_ALLOC ||
	    read_bytes(file, header->sh_offset, start, sizeof(start), NULL) ||
	    memcmp(start, "ZLIB", 4) != 0)
		return 0;
	memcpy(&size, start + 4, sizeof(size));
	return be64toh(size);
}

bool seam_elf_unpacks_well(const struct seam_elf *file, struct seam_err *err)
{
	uint64_t limit = UNPACKED_FREE + MAX_RATIO * file->size, sum = 0;
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(file->elf, section))) {
		GElf_Shdr header;
		uint64_t size = gelf_getshdr(section, &header) ?
				unpacked_bytes(file, section, &header) : 0;

		if (size > limit - sum) {
			seam_err_set(err, -EFBIG, "its debug sections would "
				     "unpack to over %" PRIu64 " MiB",
				     limit >> 20);
			return false;
		}
		sum += size;
	}
	return true;
}

bool seam_elf_is(const struct seam_elf *file, const uint8_t *id, size_t size)
{
	size_t n = file->build_id_size;

	if (n == 0 || n > size || memcmp(file->build_id, id, n) != 0)
		return false;
	for (size_t i = n; i < size; i++)
		if (id[i] != 0)
			return false;
	return true;
}
