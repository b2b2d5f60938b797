/* SPDX-License-Identifier: MIT */
/* cfi_file.c - a few headers, and copies of two sections; see cfi_file.h */
#include "symbol/elf/cfi_file.h"

#include "base/cursor.h"
#include "base/file.h"
#include "wire/elf_notes.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum {
	MAX_SECTIONS = 65536,
	MAX_NAMES_BYTES = 4 << 20,	/* of .shstrtab */
	MAX_HEADER_BYTES = 16 << 20,	/* of .eh_frame_hdr */
	MAX_NOTE_BYTES = 16 * 1024,
	XFS_MAGIC = 0x58465342,
};

/* What is in .owned. */
enum { OF_CONTENTS, OF_EH, OF_DEBUG };

/* --- reading --- */

/* All @size bytes at @offset, or -ENODATA, -EIO. */
static int read_at(const struct seam_cfi_file *file, uint64_t offset,
		   void *buf, size_t size)
{
	int r;

	if (file->fd >= 0) {
		r = seam_file_read_at(file->fd, buf, size, offset);
		return r == 0 || r == -ENODATA ? r : -EIO;
	}
	if (offset > file->image_bytes || size > file->image_bytes - offset)
		return -ENODATA;
	memcpy(buf, file->image + offset, size);
	return 0;
}

/* A copy on the heap; *@to is freed by the caller. */
static int copy_at(const struct seam_cfi_file *file, uint64_t offset,
		   uint64_t size, size_t max, uint8_t **to)
{
	int r;

	*to = NULL;
	if (size > max)
		return -EFBIG;
	*to = malloc(size ? size : 1);
	if (!*to)
		return -ENOMEM;
	r = read_at(file, offset, *to, size);
	if (r < 0) {
		free(*to);
		*to = NULL;
	}
	return r;
}

/* --- program headers --- */

struct elf_headers {
	uint64_t segments_offset, sections_offset;
	uint16_t n_segments, n_sections, names_section;
};

static int read_elf_header(struct seam_cfi_file *file,
			   struct elf_headers *headers, struct seam_err *err)
{
	Elf64_Ehdr elf;
	int r = read_at(file, 0, &elf, sizeof(elf));

	if (r == -EIO)
		return seam_err_set(err, r, "cannot read it");
	if (r < 0 || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0)
		return seam_err_set(err, -EBADMSG, "not an ELF file");
	if (elf.e_ident[EI_CLASS] != ELFCLASS64 ||
	    elf.e_ident[EI_DATA] != ELFDATA2LSB)
		return seam_err_set(err, -ENOTSUP,
				    "not a little-endian ELF file of 64 bits");
	if (elf.e_phentsize != sizeof(Elf64_Phdr))
		elf.e_phnum = 0;
	if (elf.e_shentsize != sizeof(Elf64_Shdr))
		elf.e_shnum = 0;
	if (elf.e_phnum > SEAM_CFI_MAX_SEGMENTS)
		return seam_err_set(err, -ENOTSUP, "%u program headers",
				    (unsigned int)elf.e_phnum);
	file->entry = elf.e_entry;
	file->machine = elf.e_machine;
	*headers = (struct elf_headers) {
		elf.e_phoff, elf.e_shoff, elf.e_phnum, elf.e_shnum,
		elf.e_shstrndx,
	};
	return 0;
}

static void take_build_id(struct seam_cfi_file *file, const Elf64_Phdr *notes)
{
	uint64_t size = notes->p_filesz < MAX_NOTE_BYTES ? notes->p_filesz :
							   MAX_NOTE_BYTES;
	uint8_t *bytes;

	if (file->build_id_size ||
	    copy_at(file, notes->p_offset, size, MAX_NOTE_BYTES, &bytes) < 0)
		return;
	file->build_id_size = seam_build_id_in_notes(
		(struct seam_bytes) { bytes, size }, file->build_id);
	free(bytes);
}

static int add_segment(struct seam_cfi_file *file, const Elf64_Phdr *header)
{
	struct seam_segment *segment;

	if (header->p_filesz == 0 ||
	    header->p_filesz > UINT64_MAX - header->p_offset ||
	    header->p_filesz > UINT64_MAX - header->p_vaddr)
		return 0;
	segment = SEAM_ARRAY_PUSH(&file->segments);
	if (!segment)
		return -ENOMEM;
	*segment = (struct seam_segment) {
		header->p_offset, header->p_filesz, header->p_vaddr,
		header->p_flags & PF_X,
	};
	return 0;
}

/* @contents is set to the header of .eh_frame_hdr where there is one. */
static int read_segments(struct seam_cfi_file *file,
			 const struct elf_headers *headers,
			 Elf64_Phdr *contents)
{
	Elf64_Phdr table[SEAM_CFI_MAX_SEGMENTS];
	int r = read_at(file, headers->segments_offset, table,
			headers->n_segments * sizeof(table[0]));

	for (size_t i = 0; r == 0 && i < headers->n_segments; i++) {
		if (table[i].p_type == PT_LOAD)
			r = add_segment(file, &table[i]);
		else if (table[i].p_type == PT_NOTE)
			take_build_id(file, &table[i]);
		else if (table[i].p_type == PT_GNU_EH_FRAME)
			*contents = table[i];
	}
	return r;
}

/* --- section headers --- */

/* The sections that are wanted; sh_size 0: there is none. */
struct found_sections {
	Elf64_Shdr eh, debug, link;
	bool is_zdebug;
	bool has_no_eh;		/* a debug file: its segments are elsewhere */
};

static bool has_name(const uint8_t *names, size_t n_names,
		     const Elf64_Shdr *section, const char *name)
{
	size_t size = strlen(name) + 1;

	return section->sh_name < n_names &&
	       n_names - section->sh_name >= size &&
	       memcmp(names + section->sh_name, name, size) == 0;
}

static void match_section(const uint8_t *names, size_t n_names,
			  const Elf64_Shdr *section,
			  struct found_sections *found)
{
	if (section->sh_size == 0)
		return;
	if (has_name(names, n_names, section, ".eh_frame")) {
		found->has_no_eh = section->sh_type == SHT_NOBITS;
		if (!found->has_no_eh)
			found->eh = *section;
	} else if (section->sh_type == SHT_NOBITS) {
		return;
	} else if (has_name(names, n_names, section, ".debug_frame")) {
		found->debug = *section;
		found->is_zdebug = false;
	} else if (has_name(names, n_names, section, ".zdebug_frame")) {
		found->debug = *section;
		found->is_zdebug = true;
	} else if (has_name(names, n_names, section, ".gnu_debuglink")) {
		found->link = *section;
	}
}

/* A file that is stripped of them, or has them wrong, has none. */
static int find_sections(const struct seam_cfi_file *file,
			 const struct elf_headers *headers,
			 struct found_sections *found)
{
	const Elf64_Shdr *names_of;
	Elf64_Shdr *table;
	uint8_t *bytes, *names;
	int r;

	if (headers->names_section >= headers->n_sections)
		return 0;
	r = copy_at(file, headers->sections_offset,
		    headers->n_sections * sizeof(*table),
		    MAX_SECTIONS * sizeof(*table), &bytes);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	table = (Elf64_Shdr *)(void *)bytes;
	names_of = &table[headers->names_section];
	r = copy_at(file, names_of->sh_offset, names_of->sh_size,
		    MAX_NAMES_BYTES, &names);
	for (size_t i = 0; r == 0 && i < headers->n_sections; i++)
		match_section(names, names_of->sh_size, &table[i], found);
	free(names);
	free(bytes);
	return r == -ENOMEM ? r : 0;
}

/* --- call frame information --- */

/* A copied section that belongs to @file from now on. */
static struct seam_bytes own(struct seam_cfi_file *file, size_t slot,
			     uint8_t *bytes, size_t size)
{
	file->owned[slot] = bytes;
	file->n_owned_bytes += size;
	return (struct seam_bytes) { bytes, size };
}

static int copy_section(struct seam_cfi_file *file, size_t slot,
			uint64_t offset, uint64_t size, size_t max,
			struct seam_bytes *to)
{
	uint8_t *bytes;
	int r = copy_at(file, offset, size, max, &bytes);

	if (r == 0)
		*to = own(file, slot, bytes, size);
	return r;
}

/*
 * .eh_frame by the table of contents, as it is found in a running program.
 * No program header has its size: it ends with a zero, or where its segment
 * does, or its section.
 */
static int take_eh_frame_by_header(struct seam_cfi_file *file,
				   const Elf64_Phdr *contents,
				   const Elf64_Shdr *section)
{
	struct seam_eh_frame *eh = &file->eh;
	const struct seam_segment *segment;
	uint64_t offset, size;
	int r = copy_section(file, OF_CONTENTS, contents->p_offset,
			     contents->p_filesz, MAX_HEADER_BYTES,
			     &eh->header);

	if (r < 0)
		return r;
	eh->header_addr = contents->p_vaddr;
	if (!seam_eh_frame_addr(eh, &eh->entries_addr))
		return -EBADMSG;
	segment = seam_segment_at(&file->segments, eh->entries_addr);
	if (!segment)
		return -EBADMSG;
	offset = eh->entries_addr - segment->addr;
	size = segment->size - offset;
	eh->ends_at_terminator = true;
	if (section->sh_addr == eh->entries_addr && section->sh_size <= size) {
		size = section->sh_size;
		eh->ends_at_terminator = false;
	}
	return copy_section(file, OF_EH, segment->offset + offset, size,
			    SEAM_CFI_MAX_BYTES, &eh->entries);
}

static int take_eh_frame(struct seam_cfi_file *file,
			 const Elf64_Phdr *contents, const Elf64_Shdr *section)
{
	int r = contents->p_filesz ?
		take_eh_frame_by_header(file, contents, section) : -ENODATA;

	if (r == 0 || section->sh_size == 0)
		return contents->p_filesz ? r : 0;
	/* without a table of contents that is right: all is compiled */
	free(file->owned[OF_CONTENTS]);
	file->owned[OF_CONTENTS] = NULL;
	file->eh = (struct seam_eh_frame) {
		.entries_addr = section->sh_addr,
		.address_bytes = 8, .endian = SEAM_LITTLE,
	};
	file->n_owned_bytes = 0;
	return copy_section(file, OF_EH, section->sh_offset, section->sh_size,
			    SEAM_CFI_MAX_BYTES, &file->eh.entries);
}

enum { COMPRESS_ZSTD = 2 };	/* ELFCOMPRESS_ZSTD of newer elf.h */

/*
 * Unpack a section with SHF_COMPRESSED, or one called ".zdebug_*".  The size
 * that the section announces is checked before memory is taken, and it must be
 * right to the byte.
 *
 * Source: gABI 4.3, "Section Compression"; for ".zdebug_*" binutils.
 */
static int unpack(struct seam_bytes packed, bool is_zdebug,
		  struct seam_bytes *whole)
{
	struct seam_cursor c = seam_cursor_over(packed, is_zdebug ? SEAM_BIG :
						SEAM_LITTLE);
	uint32_t type = seam_cursor_u32(&c);	/* or "ZLIB" */
	uLongf size, n;
	uint8_t *to;

	if (is_zdebug)
		type = type == 0x5a4c4942 ? ELFCOMPRESS_ZLIB : UINT32_MAX;
	else
		seam_cursor_skip(&c, 4);	/* ch_reserved */
	size = n = seam_cursor_u64(&c);
	if (!is_zdebug)
		seam_cursor_skip(&c, 8);	/* ch_addralign */
	if (c.error)
		return -EBADMSG;
	if (type != ELFCOMPRESS_ZLIB && type != COMPRESS_ZSTD)
		return -ENOTSUP;
	if (size > SEAM_CFI_MAX_BYTES)
		return -EFBIG;
	to = malloc(size ? size : 1);
	if (!to)
		return -ENOMEM;
	if (type == COMPRESS_ZSTD)
		n = ZSTD_decompress(to, size, c.base + c.pos,
				    seam_cursor_left(&c));
	else if (uncompress(to, &n, c.base + c.pos,
			    seam_cursor_left(&c)) != Z_OK)
		n = size + 1;
	if (n != size) {
		free(to);
		return -EBADMSG;
	}
	*whole = (struct seam_bytes) { to, size };
	return 0;
}

static int take_debug_frame(struct seam_cfi_file *file,
			    const Elf64_Shdr *section, bool is_zdebug)
{
	bool is_packed = section->sh_flags & SHF_COMPRESSED;
	struct seam_bytes packed, whole = { NULL, 0 };
	uint8_t *bytes;
	int r;

	if (section->sh_size == 0)
		return 0;
	r = copy_at(file, section->sh_offset, section->sh_size,
		    SEAM_CFI_MAX_BYTES, &bytes);
	if (r < 0)
		return r;
	packed = (struct seam_bytes) { bytes, section->sh_size };
	if (!is_packed && !is_zdebug) {
		file->debug.entries = own(file, OF_DEBUG, bytes, packed.size);
		return 0;
	}
	r = unpack(packed, !is_packed, &whole);
	free(bytes);
	if (r == 0)
		file->debug.entries = own(file, OF_DEBUG, (uint8_t *)(uintptr_t)
					  whole.data, whole.size);
	return r;
}

/* --- opening --- */

static int read_parts(struct seam_cfi_file *file, struct seam_err *err)
{
	struct elf_headers headers;
	struct found_sections found = { 0 };
	Elf64_Phdr contents = { 0 };
	char *name = file->debug_link;
	size_t size;
	int r;

	file->eh.address_bytes = file->debug.address_bytes = 8;
	file->eh.endian = file->debug.endian = SEAM_LITTLE;
	file->debug.is_debug_frame = true;
	r = read_elf_header(file, &headers, err);
	if (r < 0)
		return r;
	r = read_segments(file, &headers, &contents);
	if (r == 0)
		r = find_sections(file, &headers, &found);
	if (r < 0)
		return seam_err_set(err, r, "cannot read its headers: %s",
				    strerror(-r));
	if (!found.has_no_eh)
		r = take_eh_frame(file, &contents, &found.eh);
	if (r < 0)
		file->eh.entries.size = 0;
	if (r != -ENOMEM)
		r = take_debug_frame(file, &found.debug, found.is_zdebug);
	/* the name ends in the section, where a checksum follows */
	size = found.link.sh_size < sizeof(file->debug_link) ?
	       found.link.sh_size : sizeof(file->debug_link) - 1;
	if (read_at(file, found.link.sh_offset, name, size) < 0 ||
	    strlen(name) == size || strchr(name, '/'))
		name[0] = '\0';
	return r == -ENOMEM ? seam_err_no_memory(err) : 0;
}

static int read_all(struct seam_cfi_file *file, struct seam_err *err)
{
	int r = read_parts(file, err);

	if (r < 0)
		seam_cfi_file_close(file);
	return r;
}

/*
 * Whether a read of the file at @fd may have to ask another machine or
 * process.  Those that cannot, and are asked without RWF_NOWAIT, are in memory.
 */
static bool may_block(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	switch ((uint32_t)fs.f_type) {
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
	case EXT4_SUPER_MAGIC:
	case XFS_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
		return false;
	default:
		return true;
	}
}

int seam_cfi_file_open(struct seam_cfi_file *file, int fd,
		       struct seam_err *err)
{
	*file = (struct seam_cfi_file) { .fd = fd };
	file->may_block = may_block(fd);
	return read_all(file, err);
}

int seam_cfi_file_open_image(struct seam_cfi_file *file,
			     struct seam_bytes image, struct seam_err *err)
{
	*file = (struct seam_cfi_file) { .fd = -1 };
	if (image.size > SEAM_CFI_MAX_IMAGE)
		return seam_err_set(err, -EFBIG, "an image of %zu bytes",
				    image.size);
	file->image = malloc(image.size ? image.size : 1);
	if (!file->image)
		return seam_err_no_memory(err);
	memcpy(file->image, image.data, image.size);
	file->image_bytes = image.size;
	return read_all(file, err);
}

bool seam_cfi_file_take_debug(struct seam_cfi_file *file,
			      struct seam_cfi_file *other)
{
	bool takes = other->debug.entries.size && !file->debug.entries.size;

	if (takes) {
		file->debug = other->debug;
		file->owned[OF_DEBUG] = other->owned[OF_DEBUG];
		file->n_owned_bytes += file->debug.entries.size;
		other->owned[OF_DEBUG] = NULL;
	}
	seam_cfi_file_close(other);
	return takes;
}

static size_t read_code_before(const struct seam_cfi_file *file, uint64_t addr,
			       uint8_t *bytes, size_t max)
{
	const struct seam_segment *segment =
		addr ? seam_segment_at(&file->segments, addr - 1) : NULL;
	uint64_t n, offset;
	struct iovec io;
	ssize_t got;

	if (!segment || !segment->is_executable)
		return 0;
	n = addr - segment->addr < max ? addr - segment->addr : max;
	offset = segment->offset + (addr - segment->addr) - n;
	io = (struct iovec) { bytes + max - n, n };
	if (file->fd < 0)
		return read_at(file, offset, io.iov_base, n) == 0 ? n : 0;
	if (offset > INT64_MAX)
		return 0;
	/* code runs, so it is in memory: a read that would wait has no use */
	got = preadv2(file->fd, &io, 1, (off_t)offset,
		      file->may_wait ? 0 : RWF_NOWAIT);
	if (got < 0 && errno == EOPNOTSUPP && !file->may_block)
		got = pread(file->fd, io.iov_base, n, (off_t)offset);
	return got == (ssize_t)n ? n : 0;
}

size_t seam_cfi_file_code_before(const struct seam_cfi_file *file,
				 uint64_t addr, uint8_t *bytes, size_t max)
{
	uint64_t hash = addr * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	size_t i = hash % SEAM_CFI_CODE_SLOTS, n;

	if (!file->code || max != sizeof(file->code->slots[i].bytes))
		return read_code_before(file, addr, bytes, max);
	if (addr && file->code->slots[i].addr == addr) {
		memcpy(bytes, file->code->slots[i].bytes, max);
		return file->code->slots[i].n;
	}
	n = read_code_before(file, addr, bytes, max);
	/* one that would have waited is tried again */
	if (n) {
		file->code->slots[i].addr = addr;
		file->code->slots[i].n = (uint8_t)n;
		memcpy(file->code->slots[i].bytes, bytes, max);
	}
	return n;
}

void seam_cfi_file_keep_code(struct seam_cfi_file *file)
{
	if (!file->code)
		file->code = calloc(1, sizeof(*file->code));
}

void seam_cfi_file_release_fd(struct seam_cfi_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

void seam_cfi_file_close(struct seam_cfi_file *file)
{
	seam_cfi_file_release_fd(file);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(file->owned); i++)
		free(file->owned[i]);
	free(file->image);
	free(file->code);
	free(file->segments.items);
	*file = (struct seam_cfi_file) { .fd = -1 };
}
