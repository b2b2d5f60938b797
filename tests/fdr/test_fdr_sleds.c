/* SPDX-License-Identifier: MIT */
/* test_fdr_sleds.c - lists of sleds, whole, damaged and hostile */
#include "unit.h"

#include <sys/syscall.h>

#include "fdr/sled_image.h"

static struct sled_image image;

static int setup(void **state)
{
	image_init(&image);
	return 0;
}

static bool is_full;		/* no address is free */
static size_t n_maps;

/* In front of libc's, for the library's objects. */
void *mmap(void *start, size_t bytes, int rights, int flags, int fd, off_t at)
{
	long r;

	n_maps++;
	if (is_full) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	r = syscall(SYS_mmap, start, bytes, rights, flags, fd, at);
	return r == -1 ? MAP_FAILED : (void *)r;
}

/*
 * A program may have 100,000 sleds, each with a stub.  First of all tests: later
 * the image has stubs near it.
 */
UNIT_TEST(memory_near_an_image_is_looked_for_once)
{
	uint8_t data[1 + 8 * 8] = { SEAM_FDR_LIST_XRAY };
	bool is_wanted[8];
	uint64_t stubs[8] = { 0 };
	struct seam_fdr_functions f = {
		.first_id = 1, .is_wanted = is_wanted, .stubs = stubs,
	};
	struct seam_fdr_patched patched = { 0 };

	memset(is_wanted, true, sizeof(is_wanted));
	for (uint8_t i = 0; i < 8; i++)
		memcpy(data + 1 + 8 * i, (uint8_t[]) { 3, 32 * i, 0, 32 * i, 0,
						       0, 2 }, 7);
	image_make(&image, data, sizeof(data));
	assert_int_equal(seam_fdr_sleds_read(
		&f.sleds, SEAM_FDR_LIST_XRAY, &image.known,
		(uint64_t)image.list, image.list_bytes), 0);
	is_full = true;
	assert_int_equal(seam_fdr_patch(&f, &image.known, image_target,
					&patched), 0);
	assert_int_equal(patched.n_far, 8);
	assert_in_range(n_maps, 1000, 3000);
	/* the next time there may be some */
	is_full = false;
	assert_int_equal(seam_fdr_patch(&f, &image.known, image_target,
					&patched), 0);
	assert_int_equal(patched.n_patched, 8);
	seam_fdr_sleds_fini(&f.sleds);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Operations near one another, so that sleds meet. */
static size_t random_program(uint64_t *seed, uint8_t *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		data[i] = (uint8_t)next_random(seed);
	for (size_t i = 1; i + 8 <= n; i += 8) {
		uint64_t r = next_random(seed);
		uint16_t at = (uint16_t)(r % 600);

		data[i] = r >> 32 & 1 ? 7 : data[i];
		data[i + 2] = (uint8_t)(at >> 8);
		data[i + 4] = (uint8_t)(at >> 8);
		if (r >> 33 & 1)
			data[i + 3] = data[i + 1];
		if (r >> 34 & 7)
			data[i + 7] &= 0xfe;
		/* a kind of the template's, or a nop and a function near it */
		if (data[0] % SEAM_FDR_N_LISTS != SEAM_FDR_LIST_XRAY) {
			data[i + 5] = 4 + (r >> 38) % 4;
			data[i + 3] = (uint8_t)(data[i + 1] +
						(r >> 40) % 3 * 5);
		} else if (r >> 37 & 1)
			data[i + 5] = (uint8_t[]) { 0, 0x11, 0x42, 0x53, 0x09,
						    0x20 }[(r >> 38) % 6];
		if (r >> 45 & 3)
			data[i + 6] = 2;
	}
	return n;
}

UNIT_TEST(whatever_a_list_says_only_sleds_are_written)
{
	uint64_t seed = 88172645463325252;
	size_t n_accepted[SEAM_FDR_N_LISTS] = { 0 };
	uint8_t data[1 + 8 * 40];

	for (int i = 0; i < 4000; i++) {
		size_t n = random_program(&seed, data, sizeof(data));

		n_accepted[data[0] % SEAM_FDR_N_LISTS] +=
			image_check(&image, data, n, true);
	}
	assert_true(n_accepted[SEAM_FDR_LIST_XRAY] > 1000);
	assert_true(n_accepted[SEAM_FDR_LIST_PATCHABLE] > 100);
	assert_true(n_accepted[SEAM_FDR_LIST_MCOUNT] > 100);
}

/* One sled of each template at the end of the code, where it does not fit. */
UNIT_TEST(a_sled_that_the_code_cuts_is_refused)
{
	for (unsigned int i = 0; i < IMAGE_TEMPLATES; i++) {
		size_t n = image_templates[i].n;

		for (size_t cut = 1; cut < n; cut++) {
			const size_t at = IMAGE_CODE - (n - cut);
			const uint8_t data[] = {
				SEAM_FDR_LIST_XRAY, 2, (uint8_t)at,
				(uint8_t)(at >> 8), 0, 0, (uint8_t)i, 2, 0,
			};

			image_make(&image, data, sizeof(data));
			mprotect(image.code, IMAGE_CODE,
				 PROT_READ | PROT_WRITE);
			memcpy(image.code + at, image_templates[i].bytes,
			       n - cut);
			mprotect(image.code, IMAGE_CODE, PROT_READ | PROT_EXEC);
			for (int kind = 0; kind < 6; kind++) {
				struct seam_fdr_sleds s;

				image.list[16] = (uint8_t)kind;
				assert_int_equal(seam_fdr_sleds_read(
					&s, SEAM_FDR_LIST_XRAY, &image.known,
					(uint64_t)image.list, 32), 0);
				if (!(kind == 1 && i == 0))
					assert_int_equal(s.list.n, 0);
				assert_int_equal(s.functions.n, 1);
				seam_fdr_sleds_fini(&s);
			}
		}
	}
}

UNIT_TEST(a_list_that_is_cut_has_its_whole_entries)
{
	uint8_t data[1 + 8 * 8] = { SEAM_FDR_LIST_XRAY };

	for (uint8_t i = 0; i < 8; i++) {
		uint8_t *p = data + 1 + 8 * i;

		p[0] = 3;
		p[1] = p[3] = (uint8_t)(32 * i);
		p[5] = 0;		/* template and kind: an entry */
		p[6] = 2;
	}
	image_make(&image, data, sizeof(data));
	for (size_t bytes = 0; bytes <= 8 * 32; bytes++) {
		struct seam_fdr_sleds s;

		assert_int_equal(seam_fdr_sleds_read(
			&s, SEAM_FDR_LIST_XRAY, &image.known,
			(uint64_t)image.list, bytes), 0);
		assert_int_equal(s.list.n, bytes / 32);
		assert_int_equal(s.functions.n, bytes / 32);
		seam_fdr_sleds_fini(&s);
	}
}

UNIT_TEST(a_list_outside_of_the_image_is_not_read)
{
	struct seam_fdr_sleds s;

	for (uint64_t start = 0; start < UINT64_MAX / 2;
	     start = start * 3 + 1) {
		assert_int_equal(seam_fdr_sleds_read(
			&s, SEAM_FDR_LIST_XRAY, &image.known, start,
			UINT64_MAX - start), 0);
		assert_int_equal(s.functions.n, 0);
	}
	assert_int_equal(seam_fdr_sleds_read(
		&s, SEAM_FDR_LIST_XRAY, &image.known,
		(uint64_t)image.header + IMAGE_HEADER - 31, 32), 0);
	assert_int_equal(s.functions.n, 0);
}

UNIT_TEST(nops_of_all_sizes_are_known)
{
	/* Source: Intel SDM, volume 2, "Recommended Multi-Byte Sequence" */
	static const char *const nops[] = {
		"\x90", "\x66\x90", "\x0f\x1f\x00", "\x0f\x1f\x40\x00",
		"\x0f\x1f\x44\x00\x00", "\x66\x0f\x1f\x44\x00\x00",
		"\x0f\x1f\x80\x00\x00\x00\x00",
		"\x0f\x1f\x84\x00\x00\x00\x00\x00",
		"\x66\x0f\x1f\x84\x00\x00\x00\x00\x00",
		"\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00",
		"\x0f\x1e\xfa",	/* of endbr64: not a nop */
	};
	/* at the end of the code an exit: ret, nops of one byte, the nop */
	enum { AT = IMAGE_CODE - 12 };
	static const uint8_t data[] = {
		SEAM_FDR_LIST_XRAY, 2, AT & 0xff, AT >> 8, 0, 0, 0x10, 2, 0,
	};

	image_make(&image, data, sizeof(data));
	mprotect(image.code, IMAGE_CODE, PROT_READ | PROT_WRITE | PROT_EXEC);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(nops); i++)
		/* and without its last byte, which the sled has no room for */
		for (size_t cut = 0; cut < 2; cut++) {
			struct seam_fdr_sleds s;
			size_t n = i < 10 ? i + 1 : 3;

			memset(image.code + AT, 0x90, 12);
			image.code[AT] = 0xc3;
			memcpy(image.code + AT + 11 - n + cut, nops[i],
			       n - cut);
			assert_int_equal(seam_fdr_sleds_read(
				&s, SEAM_FDR_LIST_XRAY, &image.known,
				(uint64_t)image.list, 32), 0);
			assert_int_equal(s.list.n, i == 0 || (!cut && i < 10));
			seam_fdr_sleds_fini(&s);
		}
	mprotect(image.code, IMAGE_CODE, PROT_READ | PROT_EXEC);
}

/* Whoever changed it, it is not changed again. */
UNIT_TEST(a_sled_that_others_changed_is_left_alone)
{
	static const uint8_t data[] = {
		SEAM_FDR_LIST_XRAY, 3, 64, 0, 64, 0, 0, 2, 0,
	};
	struct seam_fdr_functions f = { .first_id = 1 };
	bool is_wanted = true;
	uint64_t stub = 0;

	for (size_t byte = 0; byte < 2; byte++)
		for (int value = 0; value < 256; value++) {
			struct seam_fdr_patched patched = { 0 };

			image_make(&image, data, sizeof(data));
			assert_int_equal(seam_fdr_sleds_read(
				&f.sleds, SEAM_FDR_LIST_XRAY, &image.known,
				(uint64_t)image.list, 32), 0);
			f.is_wanted = &is_wanted;
			f.stubs = &stub;
			mprotect(image.code, IMAGE_CODE,
				 PROT_READ | PROT_WRITE);
			image.code[64 + byte] = (uint8_t)value;
			mprotect(image.code, IMAGE_CODE, PROT_READ | PROT_EXEC);
			memcpy(image.before, image.code, IMAGE_CODE);
			assert_int_equal(seam_fdr_patch(
				&f, &image.known, image_target, &patched), 0);
			if (value != (byte ? 0x09 : 0xeb)) {
				assert_int_equal(patched.n_refused, 1);
				assert_memory_equal(image.before, image.code,
						    IMAGE_CODE);
			}
			seam_fdr_sleds_fini(&f.sleds);
		}
}

/* The pages of the last sled, however large others are. */
UNIT_TEST(a_sled_across_two_pages_is_written_whole)
{
	enum { AT = IMAGE_PAGE - 4 };
	static const uint8_t data[] = {
		SEAM_FDR_LIST_XRAY, 3, AT & 0xff, AT >> 8, AT & 0xff, AT >> 8,
		0, 2, 0,
	};
	struct seam_fdr_functions f = { .first_id = 1 };
	struct seam_fdr_patched patched = { 0 };
	bool is_wanted = true;
	uint64_t stub = 0;

	image_make(&image, data, sizeof(data));
	assert_int_equal(seam_fdr_sleds_read(
		&f.sleds, SEAM_FDR_LIST_XRAY, &image.known,
		(uint64_t)image.list, image.list_bytes), 0);
	assert_int_equal(f.sleds.list.n, 1);
	assert_true(SEAM_ARRAY_RESERVE(&f.sleds.list, 2));
	memset(f.sleds.list.items + 1, 0, 2 * sizeof(*f.sleds.list.items));
	f.is_wanted = &is_wanted;
	f.stubs = &stub;
	assert_int_equal(seam_fdr_patch(&f, &image.known, image_target,
					&patched), 0);
	assert_int_equal(patched.n_patched, 1);
	seam_fdr_sleds_fini(&f.sleds);
}

int main(void)
{
	return unit_run(setup, NULL, NULL, NULL);
}
