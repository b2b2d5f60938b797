/* SPDX-License-Identifier: MIT */
/* loaded_images.c - the loader's list, and those that fork; loaded_images.h */
#include "unwind/in_process/loaded_images.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PAUSE_NS = 50 * 1000, MAX_PAUSES = 10000 };

/*
 * Each side announces itself, then looks for the other (sequentially
 * consistent: one of them sees the other).  The owner writes the first two,
 * threads that fork the last; a child begins anew.
 */
static _Atomic bool is_in_loader;
static _Atomic(pthread_t) owner;
static _Atomic int n_forking;

static void wait_a_little(void)
{
	const struct timespec pause = { 0, PAUSE_NS };

	nanosleep(&pause, NULL);
}

/* Around the calls of dl_iterate_phdr(); waits while another thread forks. */
static void enter_loader(void)
{
	atomic_store(&owner, pthread_self());
	for (int i = 0; i < MAX_PAUSES; i++) {
		atomic_store(&is_in_loader, true);
		if (!atomic_load(&n_forking))
			return;
		atomic_store(&is_in_loader, false);
		wait_a_little();
	}
	atomic_store(&is_in_loader, true);
}

static void leave_loader(void)
{
	atomic_store(&is_in_loader, false);
}

int seam_self_loader_list(int (*on_image)(struct dl_phdr_info *image,
					  size_t size, void *context),
			  void *context)
{
	int r;

	enter_loader();
	r = dl_iterate_phdr(on_image, context);
	leave_loader();
	return r;
}

/* All images have the same counts: the first is enough. */
static int read_loads(struct dl_phdr_info *image, size_t size, void *context)
{
	(void)size;
	*(struct seam_self_loads *)context = seam_self_loads_of(image);
	return 1;
}

struct seam_self_loads seam_self_loads_now(void)
{
	struct seam_self_loads loads = { 0 };

	seam_self_loader_list(read_loads, &loads);
	return loads;
}

static void before_fork(void)
{
	atomic_fetch_add(&n_forking, 1);
	for (int i = 0; i < MAX_PAUSES && atomic_load(&is_in_loader) &&
	     !pthread_equal(atomic_load(&owner), pthread_self()); i++)
		wait_a_little();
}

static void after_fork(void)
{
	atomic_fetch_sub(&n_forking, 1);
}

static void begin_child(void)
{
	atomic_store(&n_forking, 0);
	atomic_store(&is_in_loader, false);
}

int seam_self_fork_init(void)
{
	return -pthread_atfork(before_fork, after_fork, begin_child);
}

/* ---- a copy of the list ---- */

struct image_copy {
	struct seam_loaded_images *images;
	size_t n_images, n_bytes;	/* counted before */
	uint8_t *next;			/* where the next copy begins */
};

static size_t headers_bytes(const struct dl_phdr_info *info)
{
	return info->dlpi_phnum * sizeof(ElfW(Phdr));
}

/* With the NUL, and up to the next headers. */
static size_t name_bytes(const struct dl_phdr_info *info)
{
	size_t align = _Alignof(ElfW(Phdr));

	return (strlen(info->dlpi_name) + align) / align * align;
}

static int count_image(struct dl_phdr_info *info, size_t size, void *context)
{
	struct image_copy *copy = context;

	(void)size;
	copy->n_images++;
	copy->n_bytes += headers_bytes(info) + name_bytes(info);
	return 0;
}

static int copy_image(struct dl_phdr_info *info, size_t size, void *context)
{
	struct image_copy *copy = context;
	uint8_t *headers = copy->next, *name = headers + headers_bytes(info);

	(void)size;
	memcpy(headers, info->dlpi_phdr, headers_bytes(info));
	memcpy(name, info->dlpi_name, strlen(info->dlpi_name) + 1);
	copy->next = name + name_bytes(info);
	copy->images->list[copy->images->n++] = (struct seam_loaded_image) {
		.name = (const char *)name,
		.bias = info->dlpi_addr,
		.headers = (const void *)headers,
		.n_headers = info->dlpi_phnum };
	return 0;
}

/*
 * Called once: the loader's lock is recursive, so both passes find the same
 * images.
 */
static int copy_images(struct dl_phdr_info *info, size_t size, void *context)
{
	struct image_copy *copy = context;
	struct seam_loaded_images *images;

	(void)size;
	dl_iterate_phdr(count_image, copy);
	copy->n_bytes += sizeof(*images) +
			 copy->n_images * sizeof(images->list[0]);
	images = mmap(NULL, copy->n_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (images == MAP_FAILED)
		return 1;
	images->loads = seam_self_loads_of(info);
	images->n_pages_bytes = copy->n_bytes;
	copy->images = images;
	copy->next = (uint8_t *)&images->list[copy->n_images];
	dl_iterate_phdr(copy_image, copy);
	return 1;
}

struct seam_loaded_images *seam_loaded_images_list(void)
{
	struct image_copy copy = { .images = NULL };

	seam_self_loader_list(copy_images, &copy);
	return copy.images;
}

void seam_loaded_images_free(struct seam_loaded_images *images)
{
	if (images)
		munmap(images, images->n_pages_bytes);
}
