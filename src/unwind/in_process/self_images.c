/* SPDX-License-Identifier: MIT */
/* self_images.c - make, publish and free what handlers use; self_images.h */
#include "unwind/in_process/self_images.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "unwind/in_process/self_readers.h"
#include "unwind/in_process/self_scan.h"
#include "unwind/in_process/self_table.h"
#include "unwind/in_process/self_walk.h"

enum { MAX_ATTEMPTS = 5 };	/* where images are unloaded all the time */

/* One object that handlers may use, or may have used. */
struct owned {
	struct seam_self_table *table;	/* this one, or */
	const struct seam_self_images *images;	/* this one */
	uint64_t retired;		/* 0: in use */
};

/*
 * Only the owner reads and writes them.  A fork may copy them in the middle
 * of a change: a child forgets its parent's list, and begins with what is
 * current.
 */
static SEAM_ARRAY(struct owned) owned;

static bool own(struct seam_self_table *table,
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
		struct seam_self_table *table =
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
			seam_self_table_free(object->table);
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
	struct seam_self_table *table;
	uint64_t hash;

	if (frame->entries.size == 0)
		return NULL;
	hash = seam_self_table_hash(frame);
	for (size_t i = 0; i < owned.n; i++) {
		table = owned.items[i].table;
		if (table && table->hash == hash &&
		    table->frame_bytes == frame->entries.size)
			return &table->table;
	}
	table = seam_self_table_new(frame, hash);
	if (table && !own(table, NULL)) {
		seam_self_table_free(table);
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
		if (current->list[i].start == image->start &&
		    current->list[i].bias == image->bias)
			return &current->list[i];
	return NULL;
}

static int make_image(struct seam_self_image *image,
		      const struct seam_loaded_image *loaded)
{
	struct seam_self_frame copy;
	int r = seam_self_scan_frame(loaded, &copy);

	if (r < 0)
		return r;
	image->entry = seam_self_scan_entry(loaded);
	image->table = table_of(&copy.frame);
	seam_self_frame_fini(&copy);
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

		if (!seam_self_scan_code(&loaded->list[i], &image->start,
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
