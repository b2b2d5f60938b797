/* SPDX-License-Identifier: MIT */
/*
 * build_id.c - three small reads: header, program headers, notes
 *
 * Files of the other byte order are not read: they do not run here.
 */
#include "symbol/elf/build_id.h"

#include "wire/elf_notes.h"

#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

enum {
	MAX_SEGMENTS = 64,
	MAX_NOTE_BYTES = 16 * 1024,
	MAX_VDSO_BYTES = 64 * 1024,
};

size_t seam_build_id_read(int fd, uint8_t id[20])
{
	return seam_build_id_read_at(fd, 0, id);
}

/* The build id in notes at @pos of the file. */
static size_t read_notes(int fd, uint64_t pos, uint64_t size, uint8_t id[20])
{
	uint8_t notes[MAX_NOTE_BYTES];
	ssize_t n = pread(fd, notes, size < sizeof(notes) ? (size_t)size :
			  sizeof(notes), (off_t)pos);

	return n <= 0 ? 0 : seam_build_id_in_notes(
			(struct seam_bytes) { notes, (size_t)n }, id);
}

size_t seam_build_id_read_at(int fd, uint64_t base, uint8_t id[20])
{
	union { Elf64_Ehdr e64; Elf32_Ehdr e32; } header = { 0 };
	union {
		Elf64_Phdr e64[MAX_SEGMENTS];
		Elf32_Phdr e32[MAX_SEGMENTS];
	} table = { 0 };
	const unsigned char *ident = header.e32.e_ident;
	bool is_64;
	size_t n, entry_bytes, found = 0;

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
	for (size_t i = 0; !found && i < n; i++)
		if (OF(table, [i].p_type) == PT_NOTE)
			found = read_notes(fd, base + OF(table, [i].p_offset),
					   OF(table, [i].p_filesz), id);
#undef OF
	return found;
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
