/* SPDX-License-Identifier: MIT */
/* self_scan.c - program headers in memory; see self_scan.h */
#include "unwind/in_process/self_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/in_process/self_memory.h"

/* Where images are unloaded all the time. */
enum { MAX_ATTEMPTS = 5 };

struct scanning {
	struct seam_self_scan *scan;
	const struct seam_self_images *current;
};

static void *map(size_t size)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

/* Room for @size more bytes of copies. */
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

/* --- what the loader has, under its lock --- */

/* The same image of the last time: right where none was unloaded since. */
static const struct seam_self_image *
find_same(const struct scanning *s, const struct seam_self_found *found)
{
	const struct seam_self_images *current = s->current;

	if (!current || current->loads.n_subs != s->scan->loads.n_subs)
		return NULL;
	for (size_t i = 0; i < current->n; i++)
		if (current->list[i].start == found->start &&
		    current->list[i].bias == found->bias)
			return &current->list[i];
	return NULL;
}

static void add_segment(struct seam_self_found *found, const ElfW(Phdr) *p)
{
	uint64_t start = found->bias + p->p_vaddr;

	if (p->p_flags & PF_X) {
		if (start < found->start)
			found->start = start;
		if (start + p->p_memsz > found->end)
			found->end = start + p->p_memsz;
	}
	if (p->p_flags & PF_R && found->n_readable < SEAM_SELF_MAX_SEGMENTS)
		found->readable[found->n_readable++] =
			(struct seam_self_segment) {
				p->p_vaddr, p->p_filesz, p->p_offset };
}

static int add_image(struct dl_phdr_info *info, size_t size, void *context)
{
	struct scanning *s = context;
	struct seam_self_found *found = &s->scan->found[s->scan->n];

	(void)size;
	s->scan->loads = seam_self_loads_of(info);
	*found = (struct seam_self_found) {
		.start = UINT64_MAX, .bias = info->dlpi_addr };
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD)
			add_segment(found, p);
		if (p->p_type == PT_GNU_EH_FRAME) {
			found->header_addr = p->p_vaddr;
			found->header_bytes = p->p_memsz;
		}
	}
	if (found->start >= found->end)
		return 0;
	found->same = find_same(s, found);
	return ++s->scan->n == SEAM_SELF_MAX_IMAGES;
}

bool seam_self_scan_differs(const struct seam_self_images *current)
{
	return !current || !seam_self_loads_equal(current->loads,
						  seam_self_loads_now());
}

/* --- copies, without the lock --- */

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

/* The bytes from @addr on to the end of the segment that has it, or 0. */
static size_t left_in_segment(const struct seam_self_found *found,
			      uint64_t addr)
{
	for (size_t i = 0; i < found->n_readable; i++) {
		const struct seam_self_segment *s = &found->readable[i];

		if (addr - s->addr < s->bytes)
			return s->addr + s->bytes - addr;
	}
	return 0;
}

/* Copy what is mapped of [@addr, @addr + @size).  The number, or -ENOMEM. */
static ssize_t copy(struct seam_self_scan *scan,
		    const struct seam_self_found *found, uint64_t addr,
		    size_t size)
{
	size_t n;

	if (size == 0 || size > SEAM_SELF_MAX_FRAME)
		return 0;
	if (!reserve(scan, size))
		return -ENOMEM;
	n = read_any(found->bias + addr, scan->copies + scan->n_copied, size);
	scan->n_copied += n;
	return (ssize_t)n;
}

/*
 * .eh_frame_hdr, and from .eh_frame on, whose size is not known here, up to
 * the end of its segment.
 */
static int copy_frame(struct seam_self_scan *scan,
		      struct seam_self_found *found)
{
	struct seam_eh_frame frame = { .address_bytes = 8 };
	size_t size = left_in_segment(found, found->header_addr);
	ssize_t n;

	if (size > found->header_bytes)
		size = found->header_bytes;
	found->header_bytes = 0;
	found->copy = scan->n_copied;
	n = copy(scan, found, found->header_addr, size);
	if (n <= 0)
		return (int)n;
	found->header_bytes = (size_t)n;
	frame.header = (struct seam_bytes) { scan->copies + found->copy,
					     found->header_bytes };
	frame.header_addr = found->header_addr;
	if (!seam_eh_frame_addr(&frame, &found->frame_addr))
		return 0;
	n = copy(scan, found, found->frame_addr,
		 left_in_segment(found, found->frame_addr));
	if (n < 0)
		return (int)n;
	found->frame_bytes = (size_t)n;
	return 0;
}

/* The entry point, from the ELF header where that is loaded. */
static uint64_t entry_of(const struct seam_self_found *found)
{
	for (size_t i = 0; i < found->n_readable; i++) {
		const struct seam_self_segment *s = &found->readable[i];
		ElfW(Ehdr) header;

		if (s->offset == 0 &&
		    read_any(found->bias + s->addr, &header,
			     sizeof(header)) == sizeof(header) &&
		    memcmp(header.e_ident, ELFMAG, SELFMAG) == 0)
			return header.e_entry ?
			       found->bias + header.e_entry : 0;
	}
	return 0;
}

static int copy_all(struct seam_self_scan *scan)
{
	for (size_t i = 0; i < scan->n; i++) {
		struct seam_self_found *found = &scan->found[i];
		int r = 0;

		if (found->same)
			continue;
		found->entry = entry_of(found);
		if (found->header_addr)
			r = copy_frame(scan, found);
		if (r < 0)
			return r;
	}
	return 0;
}

int seam_self_scan(struct seam_self_scan *scan,
		   const struct seam_self_images *current)
{
	struct scanning s = { .scan = scan, .current = current };

	*scan = (struct seam_self_scan) { .found = map(
		SEAM_SELF_MAX_IMAGES * sizeof(*scan->found)) };
	if (!scan->found)
		return -ENOMEM;
	for (int i = 0; i < MAX_ATTEMPTS; i++) {
		int r;

		scan->n = scan->n_copied = 0;
		seam_self_loader_list(add_image, &s);
		r = copy_all(scan);
		/* what was copied is what was listed, if none was unloaded */
		if (r < 0 || seam_self_loads_now().n_subs == scan->loads.n_subs)
			return r;
	}
	return -EAGAIN;
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
