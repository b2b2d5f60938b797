/* SPDX-License-Identifier: MIT */
/* self_scan.c - program headers and .eh_frame in memory; see self_scan.h */
#include "unwind/in_process/self_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/in_process/self_memory.h"

enum { MAX_POINTER = 32 };	/* of .eh_frame_hdr, up to .eh_frame's address */

/* Where a sandbox refuses the system call that copies. */
static size_t read_file(uint64_t addr, void *to, size_t size)
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : pread(fd, to, size, (off_t)addr);

	if (fd >= 0)
		close(fd);
	return n > 0 ? (size_t)n : 0;
}

static size_t read_any(uint64_t addr, void *to, size_t size)
{
	size_t n = seam_self_read(addr, to, size);

	return n == 0 && (errno == ENOSYS || errno == EPERM) ?
	       read_file(addr, to, size) : n;
}

bool seam_self_scan_code(const struct seam_loaded_image *image,
			 uint64_t *start, uint64_t *end)
{
	*start = UINT64_MAX;
	*end = 0;
	for (size_t i = 0; i < image->n_headers; i++) {
		const ElfW(Phdr) *p = &image->headers[i];
		uint64_t addr = image->bias + p->p_vaddr;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		if (addr < *start)
			*start = addr;
		if (addr + p->p_memsz > *end)
			*end = addr + p->p_memsz;
	}
	return *start < *end;
}

/* From the ELF header, where that is loaded. */
uint64_t seam_self_scan_entry(const struct seam_loaded_image *image)
{
	for (size_t i = 0; i < image->n_headers; i++) {
		const ElfW(Phdr) *p = &image->headers[i];
		ElfW(Ehdr) header;

		if (p->p_type == PT_LOAD && (p->p_flags & PF_R) &&
		    p->p_offset == 0 &&
		    read_any(image->bias + p->p_vaddr, &header,
			     sizeof(header)) == sizeof(header) &&
		    memcmp(header.e_ident, ELFMAG, SELFMAG) == 0)
			return header.e_entry ?
			       image->bias + header.e_entry : 0;
	}
	return 0;
}

/* Bytes from @addr, of the file, to the end of its readable segment, or 0. */
static size_t left_in_segment(const struct seam_loaded_image *image,
			      uint64_t addr)
{
	for (size_t i = 0; i < image->n_headers; i++) {
		const ElfW(Phdr) *p = &image->headers[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_R) &&
		    addr - p->p_vaddr < p->p_filesz)
			return p->p_vaddr + p->p_filesz - addr;
	}
	return 0;
}

/* Where .eh_frame is, by the first bytes of .eh_frame_hdr. */
static bool find_entries(const struct seam_loaded_image *image,
			 struct seam_eh_frame *frame, size_t header_bytes)
{
	uint8_t bytes[MAX_POINTER];
	struct seam_eh_frame first = *frame;
	size_t n = header_bytes < MAX_POINTER ? header_bytes : MAX_POINTER;

	first.header = (struct seam_bytes) { bytes, read_any(
		image->bias + frame->header_addr, bytes, n) };
	return first.header.size &&
	       seam_eh_frame_addr(&first, &frame->entries_addr);
}

/*
 * The size of .eh_frame is not known here: it is copied up to the end of its
 * segment.
 */
static int copy_frame(const struct seam_loaded_image *image,
		      struct seam_self_frame *copy, size_t header_bytes)
{
	struct seam_eh_frame *frame = &copy->frame;
	size_t entries_bytes = left_in_segment(image, frame->entries_addr);
	uint8_t *bytes;

	if (header_bytes > SEAM_SELF_MAX_FRAME ||
	    entries_bytes > SEAM_SELF_MAX_FRAME || !entries_bytes)
		return 0;
	copy->n_pages_bytes = header_bytes + entries_bytes;
	bytes = mmap(NULL, copy->n_pages_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED)
		return -ENOMEM;
	copy->pages = bytes;
	frame->header = (struct seam_bytes) { bytes, read_any(
		image->bias + frame->header_addr, bytes, header_bytes) };
	bytes += header_bytes;
	frame->entries = (struct seam_bytes) { bytes, read_any(
		image->bias + frame->entries_addr, bytes, entries_bytes) };
	return 0;
}

int seam_self_scan_frame(const struct seam_loaded_image *image,
			 struct seam_self_frame *copy)
{
	size_t header_bytes = 0, left;

	*copy = (struct seam_self_frame) { .frame = {
		.endian = SEAM_LITTLE,
		.address_bytes = 8,
		.ends_at_terminator = true } };
	for (size_t i = 0; i < image->n_headers; i++)
		if (image->headers[i].p_type == PT_GNU_EH_FRAME) {
			copy->frame.header_addr = image->headers[i].p_vaddr;
			header_bytes = image->headers[i].p_memsz;
		}
	left = left_in_segment(image, copy->frame.header_addr);
	if (header_bytes > left)
		header_bytes = left;
	return header_bytes &&
	       find_entries(image, &copy->frame, header_bytes) ?
	       copy_frame(image, copy, header_bytes) : 0;
}

void seam_self_frame_fini(struct seam_self_frame *copy)
{
	if (copy->pages)
		munmap(copy->pages, copy->n_pages_bytes);
}
