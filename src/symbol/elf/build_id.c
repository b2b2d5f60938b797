/* SPDX-License-Identifier: MIT */
/*
 * build_id.c - small reads: header, program headers, notes, ends of segments
 *
 * Files of the other byte order are not read: they do not run here.
 */
#include "symbol/elf/build_id.h"

#include "base/hash.h"
#include "wire/elf_notes.h"

#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAX_SEGMENTS = 64,
	MAX_NOTE_BYTES = 16 * 1024,
	MAX_VDSO_BYTES = 64 * 1024,
	BLOCK_BYTES = 64 * 1024,
	MAX_CODE_SEGMENTS = 7,
};

/* A program header; of a file of 32 bits too. */
struct segment {
	uint32_t type, flags;
	uint64_t offset, size;
};

/* Those of the file at @base.  Their number, 0 for none. */
static size_t read_segments(int fd, uint64_t base,
			    struct segment segments[MAX_SEGMENTS])
{
	union { Elf64_Ehdr e64; Elf32_Ehdr e32; } header = { 0 };
	union {
		Elf64_Phdr e64[MAX_SEGMENTS];
		Elf32_Phdr e32[MAX_SEGMENTS];
	} table = { 0 };
	const unsigned char *ident = header.e32.e_ident;
	bool is_64;
	size_t n, entry_bytes;

	if (pread(fd, &header, sizeof(header), (off_t)base) <
	    (ssize_t)sizeof(header.e32) || memcmp(ident, ELFMAG, SELFMAG) != 0)
		return 0;
	is_64 = ident[EI_CLASS] == ELFCLASS64;
#define OF(what, member) (is_64 ? (what).e64 member : (what).e32 member)
	n = OF(header, .e_phnum);
	entry_bytes = OF(header, .e_phentsize);
	if (n > MAX_SEGMENTS || entry_bytes != (is_64 ? sizeof(Elf64_Phdr) :
						sizeof(Elf32_Phdr)))
		return 0;
	(void)!pread(fd, &table, n * entry_bytes,
		     (off_t)(base + OF(header, .e_phoff)));
	for (size_t i = 0; i < n; i++)
		segments[i] = (struct segment) {
			OF(table, [i].p_type), OF(table, [i].p_flags),
			OF(table, [i].p_offset), OF(table, [i].p_filesz),
		};
#undef OF
	return n;
}

/* The first bytes of the notes at @pos of the file, in @room. */
static struct seam_bytes read_notes(int fd, uint64_t pos, uint64_t size,
				    uint8_t room[MAX_NOTE_BYTES])
{
	ssize_t n = pread(fd, room, size < MAX_NOTE_BYTES ? (size_t)size :
			  MAX_NOTE_BYTES, (off_t)pos);

	return (struct seam_bytes) { room, n > 0 ? (size_t)n : 0 };
}

size_t seam_build_id_read(int fd, uint64_t base, uint8_t id[20])
{
	struct segment segments[MAX_SEGMENTS];
	uint8_t room[MAX_NOTE_BYTES];
	size_t n = read_segments(fd, base, segments), found = 0;

	for (size_t i = 0; !found && i < n; i++)
		if (segments[i].type == PT_NOTE)
			found = seam_build_id_in_notes(
				read_notes(fd, base + segments[i].offset,
					   segments[i].size, room), id);
	return found;
}

/* ---- without a build id ---- */

static uint64_t add_block(int fd, uint64_t pos, uint64_t size, uint64_t hash)
{
	uint8_t block[BLOCK_BYTES];
	ssize_t n = pread(fd, block, size < sizeof(block) ? (size_t)size :
			  sizeof(block), (off_t)pos);

	return seam_hash_stable(block, n > 0 ? (size_t)n : 0, hash);
}

/* The first and the last block of @size bytes at @pos. */
static uint64_t add_ends(int fd, uint64_t pos, uint64_t size, uint64_t hash)
{
	hash = add_block(fd, pos, size, hash ^ size);
	return size <= BLOCK_BYTES ? hash :
	       add_block(fd, pos + size - BLOCK_BYTES, BLOCK_BYTES, hash);
}

uint64_t seam_content_id_read(int fd)
{
	struct segment segments[MAX_SEGMENTS];
	uint8_t room[MAX_NOTE_BYTES];
	size_t n = read_segments(fd, 0, segments), n_code = 0;
	struct stat st;
	uint64_t hash;

	if (fstat(fd, &st) < 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		struct seam_bytes id = { 0 };

		if (segments[i].type == PT_NOTE)
			id = seam_go_id_in_notes(read_notes(fd,
				segments[i].offset, segments[i].size, room));
		if (id.size)
			return seam_hash_stable(id.data, id.size, 1) | 1;
	}
	hash = add_ends(fd, 0, (uint64_t)st.st_size, 0);
	for (size_t i = 0; i < n && n_code < MAX_CODE_SEGMENTS; i++)
		if (segments[i].type == PT_LOAD && segments[i].flags & PF_X) {
			hash = add_ends(fd, segments[i].offset,
					segments[i].size, hash);
			n_code++;
		}
	return hash | 1;	/* 0 is none */
}

struct seam_bytes seam_own_vdso(uint8_t id[20], size_t *id_size)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *header = (const void *)image;
	const ElfW(Phdr) *segments;
	struct seam_bytes vdso = { image, 0 };

	*id_size = 0;
	if (!image)
		return vdso;
	segments = (const void *)(image + header->e_phoff);
	for (size_t i = 0; i < header->e_phnum && !*id_size; i++)
		if (segments[i].p_type == PT_NOTE)
			*id_size = seam_build_id_in_notes((struct seam_bytes) {
				image + segments[i].p_offset,
				segments[i].p_filesz }, id);
	/* The section headers are last. */
	if (*id_size)
		vdso.size = header->e_shoff + (size_t)header->e_shnum *
			    header->e_shentsize;
	return vdso.size <= MAX_VDSO_BYTES ? vdso : (struct seam_bytes) { 0 };
}
