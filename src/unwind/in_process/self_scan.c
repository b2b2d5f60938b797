/* SPDX-License-Identifier: MIT */
/* self_scan.c - program headers in memory; see self_scan.h */
#include "unwind/in_process/self_scan.h"

#include <errno.h>
#include <link.h>
#include <sys/mman.h>

#include "unwind/in_process/self_memory.h"

struct scanning {
	struct seam_self_scan *scan;
	const struct seam_self_images *current;
	bool is_started;
	int error;
};

static void *map(size_t size)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

/* Room for @size more bytes of copies: pages, because the heap may be locked. */
static bool reserve(struct seam_self_scan *scan, size_t size)
{
	size_t room = scan->room ? scan->room : 1 << 20;
	void *pages;

	while (room - scan->n_copied < size)
		room *= 2;
	if (room == scan->room)
		return true;
	pages = scan->copies ? mremap(scan->copies, scan->room, room,
				      MREMAP_MAYMOVE) : map(room);
	if (!pages || pages == MAP_FAILED)
		return false;
	scan->copies = pages;
	scan->room = room;
	return true;
}

/* The bytes from @addr on to the end of the segment that has it, or 0. */
static size_t left_in_segment(const struct dl_phdr_info *info, uint64_t addr)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_R &&
		    addr - p->p_vaddr < p->p_filesz)
			return p->p_vaddr + p->p_filesz - addr;
	}
	return 0;
}

/*
 * Copy what is mapped of @size bytes.  The number.  A sandbox may refuse the
 * system call; the segment is mapped as long as the loader's lock is held.
 */
static size_t copy(struct seam_self_scan *scan, uint64_t addr, size_t size)
{
	uint8_t *to = scan->copies + scan->n_copied;
	size_t n = seam_self_read(addr, to, size);

	if (n == 0 && (errno == ENOSYS || errno == EPERM)) {
		memcpy(to, (const void *)(uintptr_t)addr, size);
		n = size;
	}
	scan->n_copied += n;
	return n;
}

/*
 * .eh_frame_hdr, and from .eh_frame on, whose size is not known here, up to
 * the end of its segment.  Bytes that are not mapped are left out.
 */
static void copy_frame(struct scanning *s, const struct dl_phdr_info *info,
		       const ElfW(Phdr) *header, struct seam_self_found *found)
{
	struct seam_eh_frame frame = { .address_bytes = 8 };
	size_t size = left_in_segment(info, header->p_vaddr);

	if (size > header->p_memsz)
		size = header->p_memsz;
	if (size == 0 || size > SEAM_SELF_MAX_FRAME)
		return;
	if (!reserve(s->scan, size)) {
		s->error = -ENOMEM;
		return;
	}
	found->copy = s->scan->n_copied;
	found->header_addr = header->p_vaddr;
	found->header_bytes = copy(s->scan, info->dlpi_addr + header->p_vaddr,
				   size);
	frame.header = (struct seam_bytes) { s->scan->copies + found->copy,
					     found->header_bytes };
	frame.header_addr = found->header_addr;
	if (!seam_eh_frame_addr(&frame, &found->frame_addr))
		return;
	size = left_in_segment(info, found->frame_addr);
	if (size == 0 || size > SEAM_SELF_MAX_FRAME)
		return;
	if (!reserve(s->scan, size)) {
		s->error = -ENOMEM;
		return;
	}
	found->frame_bytes = copy(s->scan, info->dlpi_addr + found->frame_addr,
				  size);
}

/* The entry point, from the ELF header where that is loaded. */
static uint64_t entry_of(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		ElfW(Ehdr) header;

		if (p->p_type == PT_LOAD && p->p_offset == 0 &&
		    seam_self_read(info->dlpi_addr + p->p_vaddr, &header,
				   sizeof(header)) == sizeof(header) &&
		    memcmp(header.e_ident, ELFMAG, SELFMAG) == 0)
			return header.e_entry ? info->dlpi_addr +
						header.e_entry : 0;
	}
	return 0;
}

/* The same image of the last time: right where none was unloaded since. */
static const struct seam_self_image *
find_same(const struct scanning *s, const struct seam_self_found *found)
{
	const struct seam_self_images *current = s->current;

	if (!current || current->n_subs != s->scan->n_subs)
		return NULL;
	for (size_t i = 0; i < current->n; i++)
		if (current->list[i].start == found->start &&
		    current->list[i].bias == found->bias)
			return &current->list[i];
	return NULL;
}

static void add_image(struct scanning *s, const struct dl_phdr_info *info)
{
	const ElfW(Phdr) *header = NULL;
	struct seam_self_found found = {
		.start = UINT64_MAX, .bias = info->dlpi_addr };

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_GNU_EH_FRAME)
			header = p;
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		if (start < found.start)
			found.start = start;
		if (start + p->p_memsz > found.end)
			found.end = start + p->p_memsz;
	}
	if (found.start >= found.end || s->scan->n == SEAM_SELF_MAX_IMAGES)
		return;
	found.same = find_same(s, &found);
	if (!found.same) {
		found.entry = entry_of(info);
		if (header)
			copy_frame(s, info, header, &found);
	}
	s->scan->found[s->scan->n++] = found;
}

static int on_image(struct dl_phdr_info *info, size_t size, void *context)
{
	struct scanning *s = context;

	(void)size;
	if (!s->is_started) {
		s->scan->n_adds = info->dlpi_adds;
		s->scan->n_subs = info->dlpi_subs;
	}
	s->is_started = true;
	add_image(s, info);
	return s->error;
}

/* Whether the loader's counts are those of @context; ends at one image. */
static int compare_counts(struct dl_phdr_info *info, size_t size,
			  void *context)
{
	const struct seam_self_images *current = context;

	(void)size;	/* glibc since 2.4 and musl have both counts */
	return info->dlpi_adds == current->n_adds &&
	       info->dlpi_subs == current->n_subs ? 1 : -1;
}

bool seam_self_scan_differs(const struct seam_self_images *current)
{
	union {
		const struct seam_self_images *in;
		void *out;	/* the callback only reads it */
	} context = { current };

	return !current || dl_iterate_phdr(compare_counts, context.out) < 0;
}

int seam_self_scan(struct seam_self_scan *scan,
		   const struct seam_self_images *current)
{
	struct scanning s = { .scan = scan, .current = current };

	*scan = (struct seam_self_scan) { .found = map(
		SEAM_SELF_MAX_IMAGES * sizeof(*scan->found)) };
	if (!scan->found)
		return -ENOMEM;
	dl_iterate_phdr(on_image, &s);
	return s.error;
}

struct seam_eh_frame
seam_self_scan_frame(const struct seam_self_scan *scan,
		     const struct seam_self_found *found)
{
	const uint8_t *copy = scan->copies + found->copy;

	if (found->frame_bytes == 0)
		return (struct seam_eh_frame) { 0 };
	return (struct seam_eh_frame) {
		.entries = { copy + found->header_bytes, found->frame_bytes },
		.entries_addr = found->frame_addr,
		.header = { copy, found->header_bytes },
		.header_addr = found->header_addr,
		.endian = SEAM_LITTLE,
		.address_bytes = 8,
		.ends_at_terminator = true,
	};
}

void seam_self_scan_fini(struct seam_self_scan *scan)
{
	if (scan->found)
		munmap(scan->found,
		       SEAM_SELF_MAX_IMAGES * sizeof(*scan->found));
	if (scan->copies)
		munmap(scan->copies, scan->room);
	*scan = (struct seam_self_scan) { 0 };
}
