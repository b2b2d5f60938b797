/* SPDX-License-Identifier: MIT */
/* self_images.c - make, publish and free what handlers use; self_images.h */
#include "unwind/in_process/self_images.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "unwind/in_process/self_memory.h"
#include "unwind/in_process/self_readers.h"
#include "unwind/in_process/self_walk.h"

/* ---- an image in memory ---- */

/*
 * Reads do not fault: the image may be unloaded meanwhile, and what was read is
 * used only if the loader has unloaded nothing since it listed the image.
 *
 * Source: System V gABI 4.1, "Program Header".
 */

enum {
	MAX_POINTER = 32,	/* of .eh_frame_hdr, with .eh_frame's address */
	MAX_FRAME = 256 << 20,	/* bytes of .eh_frame */
};

/* .frame.entries.size 0: the image has no call frame information. */
struct frame_copy {
	struct seam_eh_frame frame;
	void *pages;
	size_t n_pages_bytes;
};

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

/* The bounds of its executable segments, as loaded; false: there is none. */
static bool find_code(const struct seam_loaded_image *image, uint64_t *start,
		      uint64_t *end)
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

/* The entry point, as loaded, from the ELF header; 0: not known. */
static uint64_t find_entry(const struct seam_loaded_image *image)
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
static int copy_sections(const struct seam_loaded_image *image,
			 struct frame_copy *copy, size_t header_bytes)
{
	struct seam_eh_frame *frame = &copy->frame;
	size_t entries_bytes = left_in_segment(image, frame->entries_addr);
	uint8_t *bytes;

	if (header_bytes > MAX_FRAME ||
	    entries_bytes > MAX_FRAME || !entries_bytes)
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

/* 0, or -ENOMEM and nothing to free. */
static int copy_frame(const struct seam_loaded_image *image,
		      struct frame_copy *copy)
{
	size_t header_bytes = 0, left;

	*copy = (struct frame_copy) { .frame = {
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
	       copy_sections(image, copy, header_bytes) : 0;
}

static void free_frame(struct frame_copy *copy)
{
	if (copy->pages)
		munmap(copy->pages, copy->n_pages_bytes);
}

/* ---- tables ---- */

/*
 * The unwinding rules of an image, in read-only pages of their own: nothing in
 * them points into the image, which may be unloaded while a handler reads them,
 * and a program that writes where it should not changes no rule.  Addresses are
 * those of the file, so a library that is loaded again, at another address, has
 * the same table.
 */
struct table_pages {
	struct seam_unwind_table table;	/* without indexes */
	uint64_t hash;			/* of what it was made from */
	size_t frame_bytes;		/* as well */
	size_t n_pages_bytes;		/* of the mapping that begins here */
};

/*
 * Copy @items to @base + *@n, which advances; only count where @base is NULL.
 * Where they are now.
 */
static void *place(uint8_t *base, size_t *n, const void *items, size_t size)
{
	void *at = base ? base + *n : NULL;

	if (at && size)
		memcpy(at, items, size);
	*n += (size + 7) & ~(size_t)7;
	return at;
}

/* Have @to be a copy of @from in the bytes at @base; their number. */
static size_t lay_out(struct seam_unwind_table *to, uint8_t *base,
		      const struct seam_unwind_table *from)
{
	const struct seam_unwind_rules *rules = &from->rules;
	size_t n = 0;

	to->base_addr = from->base_addr;
	to->n = from->n;
	to->starts = place(base, &n, from->starts,
			   from->n * sizeof(*from->starts));
	to->ids = place(base, &n, from->ids, from->n * sizeof(*from->ids));
	to->n_blocks = from->n_blocks;
	to->block_shift = from->block_shift;
	to->blocks = place(base, &n, from->blocks,
			   from->n_blocks * sizeof(*from->blocks));
	to->rules.rules.n = rules->rules.n;
	to->rules.rules.items = place(base, &n, rules->rules.items,
		rules->rules.n * sizeof(*rules->rules.items));
	to->rules.saved.n = rules->saved.n;
	to->rules.saved.items = place(base, &n, rules->saved.items,
		rules->saved.n * sizeof(*rules->saved.items));
	to->rules.expressions.n = rules->expressions.n;
	to->rules.expressions.items = place(base, &n, rules->expressions.items,
					    rules->expressions.n);
	return n;
}

static struct table_pages *pack(const struct seam_unwind_table *from)
{
	struct seam_unwind_table counted = { .n = 0 };
	size_t size = sizeof(struct table_pages) +
		      lay_out(&counted, NULL, from);
	struct table_pages *packed =
		mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (packed == MAP_FAILED)
		return NULL;
	packed->n_pages_bytes = size;
	lay_out(&packed->table, (uint8_t *)(packed + 1), from);
	return packed;
}

/* What identifies the table of @frame: equal hash and size, equal table. */
static uint64_t hash_frame(const struct seam_eh_frame *frame)
{
	uint64_t hash = seam_hash_bytes(frame->header.data, frame->header.size,
					frame->header_addr);

	return seam_hash_bytes(frame->entries.data, frame->entries.size,
			       seam_hash_add(hash, frame->entries_addr));
}

/* NULL where memory ran out or nothing in @frame is usable. */
static struct table_pages *make_table(const struct seam_eh_frame *frame,
				      uint64_t hash)
{
	struct seam_unwind_table table;
	struct table_pages *packed = NULL;

	if (seam_unwind_table_build(&table, frame, NULL) < 0)
		return NULL;
	if (table.n)
		packed = pack(&table);
	seam_unwind_table_fini(&table);
	if (!packed)
		return NULL;
	packed->hash = hash;
	packed->frame_bytes = frame->entries.size;
	mprotect(packed, packed->n_pages_bytes, PROT_READ);
	return packed;
}

static void free_table(struct table_pages *table)
{
	munmap(table, table->n_pages_bytes);
}

/* ---- what handlers use ---- */

enum { MAX_ATTEMPTS = 5 };	/* where images are unloaded all the time */

/* One object that handlers may use, or may have used. */
struct owned {
	struct table_pages *table;	/* this one, or */
	const struct seam_self_images *images;	/* this one */
	uint64_t retired;		/* 0: in use */
};

/*
 * Only the owner reads and writes them.  A fork may copy them in the middle
 * of a change: a child forgets its parent's list, and begins with what is
 * current.
 */
static SEAM_ARRAY(struct owned) owned;

static bool own(struct table_pages *table,
		const struct seam_self_images *images)
{
	struct owned *slot = SEAM_ARRAY_PUSH(&owned);

	if (slot)
		*slot = (struct owned) { .table = table, .images = images };
	return slot != NULL;
}

static bool uses(const struct seam_self_images *images,
		 const struct owned *object)
{
	if (!object->table)
		return object->images == images;
	for (size_t i = 0; images && i < images->n; i++)
		if (images->list[i].table == &object->table->table)
			return true;
	return false;
}

/* --- the owner's lock --- */

/* The list as @current has it, in a child that has inherited that. */
static int adopt(const struct seam_self_images *current)
{
	memset(&owned, 0, sizeof(owned));
	if (current && !own(NULL, current))
		return -ENOMEM;
	for (size_t i = 0; current && i < current->n; i++) {
		/* the table is the first member */
		struct table_pages *table =
			(void *)(uintptr_t)current->list[i].table;
		size_t k = 0;

		while (table && k < owned.n && owned.items[k].table != table)
			k++;
		if (table && k == owned.n && !own(table, NULL))
			return -ENOMEM;
	}
	return 0;
}

static int begin(void)
{
	struct seam_self_process *process = atomic_load(&seam_self_process);
	uint32_t none = 0;
	int r = 0;

	if (!process)
		return -EINVAL;
	if (!atomic_compare_exchange_strong(&process->is_owned, &none, 1))
		return -EBUSY;
	if (!process->n_refreshes++)
		r = adopt(atomic_load(&seam_self_current));
	if (r < 0) {
		process->n_refreshes = 0;
		atomic_store(&process->is_owned, 0);
	}
	return r;
}

static void end(void)
{
	atomic_store(&atomic_load(&seam_self_process)->is_owned, 0);
}

/* --- old objects --- */

/* Make @images current, and retire what it does not use. */
static void publish(const struct seam_self_images *images)
{
	uint64_t epoch;

	atomic_store(&seam_self_current, images);
	epoch = seam_self_retire();
	for (size_t i = 0; i < owned.n; i++) {
		struct owned *object = &owned.items[i];

		if (uses(images, object))
			object->retired = 0;
		else if (!object->retired)
			object->retired = epoch;
	}
}

/* Free what no handler can have, but for the tables that were made last. */
static void reclaim(size_t max_spare_bytes)
{
	size_t n = 0, n_spare_bytes = 0;

	for (size_t i = owned.n; i-- > 0; ) {
		struct owned *object = &owned.items[i];

		if (!object->retired)
			continue;
		if (object->table)
			n_spare_bytes += object->table->n_pages_bytes;
		if ((object->table && n_spare_bytes <= max_spare_bytes) ||
		    !seam_self_unused(object->retired))
			continue;
		if (object->table)
			free_table(object->table);
		else
			munmap((void *)(uintptr_t)object->images,
			       object->images->n_pages_bytes);
		*object = (struct owned) { 0 };
	}
	for (size_t i = 0; i < owned.n; i++)
		if (owned.items[i].table || owned.items[i].images)
			owned.items[n++] = owned.items[i];
	owned.n = n;
}

static size_t n_retired(void)
{
	size_t n = 0;

	for (size_t i = 0; i < owned.n; i++)
		n += owned.items[i].retired != 0;
	return n;
}

/* --- new ones --- */

/* The table of an image that is new, made or found; NULL: it has none. */
static const struct seam_unwind_table *
table_of(const struct seam_eh_frame *frame)
{
	struct table_pages *table;
	uint64_t hash;

	if (frame->entries.size == 0)
		return NULL;
	hash = hash_frame(frame);
	for (size_t i = 0; i < owned.n; i++) {
		table = owned.items[i].table;
		if (table && table->hash == hash &&
		    table->frame_bytes == frame->entries.size)
			return &table->table;
	}
	table = make_table(frame, hash);
	if (table && !own(table, NULL)) {
		free_table(table);
		table = NULL;
	}
	return table ? &table->table : NULL;
}

static int by_image_start(const void *a, const void *b)
{
	const struct seam_self_image *one = a, *other = b;

	return one->start < other->start ? -1 : one->start > other->start;
}

/* The image of the last time: right where none was unloaded since. */
static const struct seam_self_image *
find_same(const struct seam_self_images *current,
	  const struct seam_loaded_images *loaded,
	  const struct seam_self_image *image)
{
	if (!current || current->loads.n_subs != loaded->loads.n_subs)
		return NULL;
	for (size_t i = 0; i < current->n; i++)
		if (current->list[i].start == image->start)
			return &current->list[i];
	return NULL;
}

static int make_image(struct seam_self_image *image,
		      const struct seam_loaded_image *loaded)
{
	struct frame_copy copy;
	int r = copy_frame(loaded, &copy);

	if (r < 0)
		return r;
	image->entry = find_entry(loaded);
	image->table = table_of(&copy.frame);
	free_frame(&copy);
	return 0;
}

static int fill_images(struct seam_self_images *images,
		       const struct seam_loaded_images *loaded,
		       const struct seam_self_images *current)
{
	int r = 0;

	for (size_t i = 0; i < loaded->n && r == 0; i++) {
		struct seam_self_image *image = &images->list[images->n];
		const struct seam_self_image *same;

		if (!find_code(&loaded->list[i], &image->start,
			       &image->end))
			continue;
		images->n++;
		image->bias = loaded->list[i].bias;
		same = find_same(current, loaded, image);
		if (same)
			*image = *same;
		else
			r = make_image(image, &loaded->list[i]);
	}
	qsort(images->list, images->n, sizeof(images->list[0]),
	      by_image_start);
	return r;
}

/* 0; -ENOMEM; -EAGAIN: images were unloaded meanwhile. */
static int make_images(struct seam_self_images **out,
		       const struct seam_self_images *current)
{
	struct seam_loaded_images *loaded = seam_loaded_images_list();
	size_t size = sizeof(**out) + (loaded ? loaded->n : 0) *
				      sizeof((*out)->list[0]);
	struct seam_self_images *images =
		mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r = loaded && images != MAP_FAILED ? 0 : -ENOMEM;

	if (r == 0) {
		images->loads = loaded->loads;
		images->n_pages_bytes = size;
		r = fill_images(images, loaded, current);
	}
	if (r == 0 && seam_self_loads_now().n_subs != loaded->loads.n_subs)
		r = -EAGAIN;
	if (r == 0 && !own(NULL, images))
		r = -ENOMEM;
	seam_loaded_images_free(loaded);
	if (r == 0)
		mprotect(images, size, PROT_READ);
	else if (images != MAP_FAILED)
		munmap(images, size);
	*out = images;
	return r;
}

static int replace(const struct seam_self_images *current)
{
	struct seam_self_images *images;
	int r = -EAGAIN;

	for (int i = 0; i < MAX_ATTEMPTS && r == -EAGAIN; i++)
		r = make_images(&images, current);
	if (r < 0)
		return r;
	publish(images);
	return 1;
}

/* --- what others call --- */

int seam_self_init(void)
{
	static _Atomic bool is_prepared;
	int r = seam_self_readers_init();

	if (r == 0 && !atomic_exchange(&is_prepared, true))
		r = seam_self_fork_init();
	if (r == 0)
		r = seam_self_refresh();
	return r < 0 ? r : 0;
}

int seam_self_refresh(void)
{
	const struct seam_self_images *current;
	int r = begin();

	if (r < 0)
		return r;
	current = atomic_load(&seam_self_current);
	seam_self_free_slots();
	reclaim(SEAM_SELF_MAX_SPARE_BYTES);
	if (!current || !seam_self_loads_equal(current->loads,
					       seam_self_loads_now()))
		r = n_retired() < SEAM_SELF_MAX_RETIRED ? replace(current) :
							  -EBUSY;
	end();
	return r;
}

size_t seam_self_bytes(void)
{
	size_t size = 0;

	if (begin() < 0)
		return 0;
	for (size_t i = 0; i < owned.n; i++)
		size += owned.items[i].table ?
			owned.items[i].table->n_pages_bytes :
			owned.items[i].images->n_pages_bytes;
	end();
	return size;
}

int seam_self_fini(void)
{
	int r = begin();

	if (r < 0)
		return r == -EINVAL ? 0 : r;
	publish(NULL);
	reclaim(0);
	r = owned.n ? -EBUSY : 0;
	if (r == 0) {
		free(owned.items);
		memset(&owned, 0, sizeof(owned));
	}
	end();
	return r;
}

/* ---- the bounds of a thread's stack ---- */

int seam_self_thread_begin(void)
{
	struct seam_self_range *stack = &seam_self_thread.stack;
	pthread_attr_t attr;
	size_t size;
	void *low;
	int r = pthread_getattr_np(pthread_self(), &attr);

	if (r)
		return -r;
	r = pthread_attr_getstack(&attr, &low, &size);
	pthread_attr_destroy(&attr);
	if (r)
		return -r;
	/* a handler in between sees an empty range */
	stack->low = UINT64_MAX;
	atomic_signal_fence(memory_order_seq_cst);
	stack->high = (uint64_t)(uintptr_t)low + size;
	atomic_signal_fence(memory_order_seq_cst);
	stack->low = (uint64_t)(uintptr_t)low;
	return 0;
}
