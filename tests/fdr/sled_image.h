/* SPDX-License-Identifier: MIT */
/*
 * sled_image.h - a made-up image: code with sleds, and lists of them, from any
 * bytes; and what has to hold for whatever the lists say
 *
 * The bytes are a program: operations of 8 bytes put a sled's bytes somewhere,
 * or an entry into the list, or the beginning of a function.  The oracle knows
 * nothing of the code under test but what sleds.h and patch.h promise:
 *
 *  - An accepted sled is in the code, overlaps no other, and had bytes of its
 *    kind.
 *  - Patching changes accepted sleds of wanted functions, and nothing else; a
 *    second time, nothing.
 *  - Unpatching gives the code back, but for what is jumped over.
 */
#ifndef SEAM_TESTS_FDR_SLED_IMAGE_H
#define SEAM_TESTS_FDR_SLED_IMAGE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traced/fdr/sleds/patch.h"

enum {
	IMAGE_PAGE = 4096,
	IMAGE_CODE = 2 * IMAGE_PAGE,	/* bytes, after a guard page */
	IMAGE_LIST = IMAGE_PAGE,
	IMAGE_HEADER = IMAGE_PAGE,	/* .eh_frame_hdr */
	IMAGE_BYTES = IMAGE_CODE + IMAGE_LIST + IMAGE_HEADER + 2 * IMAGE_PAGE,
	IMAGE_TEMPLATES = 12,
};

struct sled_image {
	uint8_t *memory, *code, *list, *header;
	size_t list_bytes, n_functions;
	enum seam_fdr_list_kind kind;
	struct seam_fdr_segment segments[2];
	struct seam_fdr_code known;
	uint8_t before[IMAGE_CODE], after[IMAGE_CODE];
};

/* Bytes of compilers, and some that are nearly so. */
static const struct { uint8_t n; const char *bytes; } image_templates[] = {
	{ 11, "\xeb\x09\x66\x0f\x1f\x84\x00\x00\x02\x00\x00" },
	{ 11, "\xc3\x2e\x66\x0f\x1f\x84\x00\x00\x02\x00\x00" },
	{ 17, "\xeb\x0f\x0f\x1f\x40\x08\x0f\x1f\x40\x08\xe8\x00\x00\x00\x00"
	      "\x90\x90" },
	{ 22, "\xeb\x14WVR\x48\x89\xc7\x48\x89\xfe\x48\x89\xf2\xe8\x00\x00\x00"
	      "\x00Z^_" },
	{ 5, "\x90\x90\x90\x90\x90" },
	{ 5, "\x0f\x1f\x44\x00\x00" },
	{ 9, "\xf3\x0f\x1e\xfa\x90\x90\x90\x90\x90" },
	{ 7, "\x90\x90\x90\x90\x90\x66\x90" },
	{ 11, "\x41\xba\x10\x00\x00\x00\xe8\x00\x00\x00\x00" },
	{ 11, "\xeb\x09\x10\x00\x00\x00\xe8\x00\x00\x00\x00" },
	{ 11, "\xeb\x09\xff\xff\xff\xff\xff\xff\xff\xff\xff" },
	{ 1, "\x66" },
};

static inline void image_die(const char *why)
{
	fprintf(stderr, "sled_image: %s\n", why);
	abort();
}

/* Three pieces between guards; the code at an odd place of its page. */
static inline void image_init(struct sled_image *image)
{
	uint8_t *p = mmap(NULL, IMAGE_BYTES, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		image_die("no memory");
	image->memory = p;
	image->code = p + IMAGE_PAGE;
	image->list = image->code + IMAGE_CODE + IMAGE_PAGE;
	image->header = image->list + IMAGE_LIST;
	mprotect(image->list, IMAGE_LIST + IMAGE_HEADER,
		 PROT_READ | PROT_WRITE);
	image->segments[0] = (struct seam_fdr_segment) {
		(uint64_t)image->code, (uint64_t)image->code + IMAGE_CODE,
		PROT_READ | PROT_EXEC,
	};
	image->segments[1] = (struct seam_fdr_segment) {
		(uint64_t)image->list,
		(uint64_t)image->list + IMAGE_LIST + IMAGE_HEADER, PROT_READ,
	};
	image->known = (struct seam_fdr_code) {
		.segments = { image->segments, 2, 2 },
		.eh_frame_header = (uint64_t)image->header,
	};
}

static inline void image_put(struct sled_image *image, size_t at,
			     unsigned int template)
{
	size_t n = image_templates[template % IMAGE_TEMPLATES].n;

	if (at <= IMAGE_CODE - n)
		memcpy(image->code + at,
		       image_templates[template % IMAGE_TEMPLATES].bytes, n);
}

static inline void image_add_entry(struct sled_image *image, uint64_t sled,
				   uint64_t function, uint8_t kind,
				   uint8_t version)
{
	uint8_t *p = image->list + image->list_bytes;
	size_t n = image->kind == SEAM_FDR_LIST_XRAY ? 32 : 8;

	if (n > IMAGE_LIST - image->list_bytes)
		return;
	image->list_bytes += n;
	if (image->kind != SEAM_FDR_LIST_XRAY) {
		memcpy(p, &sled, 8);
		return;
	}
	if (version >= 2) {
		sled -= (uint64_t)p;
		function -= (uint64_t)p + 8;
	}
	memset(p, 0, n);
	memcpy(p, &sled, 8);
	memcpy(p + 8, &function, 8);
	p[16] = kind;
	p[18] = version;
}

static inline int image_compare(const void *left, const void *right)
{
	int32_t a, b;

	memcpy(&a, left, 4);
	memcpy(&b, right, 4);
	return (a > b) - (a < b);
}

/* As .eh_frame_hdr has them, in the order of the bytes. */
static inline void image_add_function(struct sled_image *image, uint64_t start)
{
	uint8_t *p = image->header;
	int32_t distance = (int32_t)(start - (uint64_t)p);

	if (image->n_functions == (IMAGE_HEADER - 12) / 8)
		return;
	memcpy(p + 12 + 8 * image->n_functions++, &distance, 4);
	memcpy(p, "\x01\x1b\x03\x3b", 4);
	memcpy(p + 8, &image->n_functions, 4);
}

/* Make the image that @data describes. */
static inline void image_make(struct sled_image *image, const uint8_t *data,
			      size_t size)
{
	mprotect(image->code, IMAGE_CODE, PROT_READ | PROT_WRITE);
	memset(image->code, 0xcc, IMAGE_CODE);
	memset(image->header, 0, IMAGE_HEADER);
	image->list_bytes = image->n_functions = 0;
	image->kind = size ? data[0] % SEAM_FDR_N_LISTS : 0;
	for (size_t i = 1; i + 8 <= size; i += 8) {
		const uint8_t *p = data + i;
		size_t at = (p[1] | (size_t)p[2] << 8) % IMAGE_CODE;
		size_t function = (p[3] | (size_t)p[4] << 8) % IMAGE_CODE;
		uint64_t code = (uint64_t)image->code;
		uint64_t far = p[7] & 1 ? (uint64_t)p[6] << (p[7] & 63) : 0;

		if (p[0] & 1)
			image_put(image, at, p[5] & 15);
		if (p[0] & 2)
			image_add_entry(image, code + at + far,
					code + function, (p[5] >> 4) % 8,
					p[6] % 4);
		if (p[0] & 4)
			image_add_function(image, code + function);
	}
	/* as a linker does, mostly */
	if (size > 8 && data[8] < 0xc0)
		qsort(image->header + 12, image->n_functions, 8, image_compare);
	mprotect(image->code, IMAGE_CODE, PROT_READ | PROT_EXEC);
}

/* ---- the oracle ---- */

static inline const void *image_target(uint32_t id,
				       enum seam_fdr_sled_kind kind)
{
	static const char targets[8];

	(void)id;
	return targets + kind;
}

/* The first and the last byte of a sled, in the code. */
static inline size_t image_start(const struct sled_image *image,
				 const struct seam_fdr_sled *sled)
{
	return sled->address - (uint64_t)image->code;
}

static inline size_t image_end(const struct sled_image *image,
			       const struct seam_fdr_sled *sled)
{
	return sled->address - (uint64_t)image->code + sled->bytes;
}

static inline void image_check_sleds(const struct sled_image *image,
				     const struct seam_fdr_sleds *sleds)
{
	size_t end = 0;

	for (size_t i = 0; i < sleds->list.n; i++) {
		const struct seam_fdr_sled *s = &sleds->list.items[i];
		const uint8_t *p = (const uint8_t *)s->address;

		if (image_start(image, s) >= IMAGE_CODE ||
		    image_end(image, s) > IMAGE_CODE)
			image_die("a sled is not in the code");
		if (image_start(image, s) < end)
			image_die("sleds overlap, or are not in order");
		end = image_end(image, s);
		if (s->function >= sleds->functions.n)
			image_die("no such function");
		if (s->kind <= SEAM_FDR_SLED_TYPED &&
		    !(p[0] == 0xeb && p[1] == s->bytes - 2) &&
		    !(p[0] == 0xc3 && s->kind == SEAM_FDR_SLED_EXIT))
			image_die("not a sled's bytes");
	}
}

/* Outside of the sleds of wanted functions nothing has changed. */
static inline void image_check_changes(const struct sled_image *image,
				       const struct seam_fdr_functions *f,
				       const uint8_t *before)
{
	size_t at = 0;

	for (size_t i = 0; i < f->sleds.list.n; i++) {
		const struct seam_fdr_sled *s = &f->sleds.list.items[i];

		if (!f->is_wanted[s->function])
			continue;
		if (memcmp(image->code + at, before + at,
			   image_start(image, s) - at))
			image_die("bytes changed that are in no sled");
		at = image_end(image, s);
	}
	if (memcmp(image->code + at, before + at, IMAGE_CODE - at))
		image_die("bytes changed after the last sled");
}

static inline size_t image_patch(struct sled_image *image,
				 struct seam_fdr_functions *f)
{
	struct seam_fdr_patched patched = { 0 };

	if (seam_fdr_patch(f, &image->known, image_target, &patched))
		image_die("cannot patch");
	if (patched.n_refused || patched.n_far)
		image_die("an accepted sled is refused");
	return patched.n_patched + patched.n_unpatched;
}

static inline void image_check_patching(struct sled_image *image,
					struct seam_fdr_functions *f,
					uint8_t subset)
{
	size_t n = f->sleds.functions.n;

	memcpy(image->before, image->code, IMAGE_CODE);
	for (size_t i = 0; i < n; i++)
		f->is_wanted[i] = subset >> (i & 7) & 1;
	image_patch(image, f);
	image_check_changes(image, f, image->before);
	memcpy(image->after, image->code, IMAGE_CODE);
	if (image_patch(image, f) ||
	    memcmp(image->after, image->code, IMAGE_CODE))
		image_die("patching again changes something");
	memset(f->is_wanted, 0, n);
	image_patch(image, f);
	memset(f->is_wanted, 1, n);
	image_check_changes(image, f, image->before);
	for (size_t i = 0; i < f->sleds.list.n; i++) {
		const struct seam_fdr_sled *s = &f->sleds.list.items[i];

		/* the second byte of an exit is not executed */
		if (s->kind <= SEAM_FDR_SLED_TYPED &&
		    memcmp((const void *)s->address, s->original,
			   s->kind == SEAM_FDR_SLED_EXIT ? 1 : 2))
			image_die("a head is not as it was");
		if (!seam_fdr_sled_is_free(&image->known, s))
			image_die("a sled is not free again");
	}
}

/* All of it for the image that @data describes.  How many were accepted. */
static inline size_t image_check(struct sled_image *image, const uint8_t *data,
				 size_t size, bool may_make_stubs)
{
	struct seam_fdr_functions f = { .first_id = 1 };
	size_t n;

	image_make(image, data, size);
	memcpy(image->before, image->code, IMAGE_CODE);
	if (seam_fdr_sleds_read(&f.sleds, image->kind, &image->known,
				(uint64_t)image->list, image->list_bytes))
		image_die("no memory");
	if (memcmp(image->before, image->code, IMAGE_CODE))
		image_die("reading changed something");
	image_check_sleds(image, &f.sleds);
	n = f.sleds.list.n;
	f.is_wanted = calloc(f.sleds.functions.n + 1, sizeof(*f.is_wanted));
	f.stubs = calloc(f.sleds.functions.n + 1, sizeof(*f.stubs));
	if (!f.is_wanted || !f.stubs)
		image_die("no memory");
	if (image->kind == SEAM_FDR_LIST_XRAY || may_make_stubs)
		image_check_patching(image, &f, size > 1 ? data[1] : 0xff);
	free(f.is_wanted);
	free(f.stubs);
	seam_fdr_sleds_fini(&f.sleds);
	return n;
}

#endif /* SEAM_TESTS_FDR_SLED_IMAGE_H */
