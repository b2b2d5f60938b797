/* SPDX-License-Identifier: MIT */
/* loaded_images.c - a copy of the loader's list; see loaded_images.h */
#include "unwind/in_process/loaded_images.h"

#include <string.h>
#include <sys/mman.h>

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
