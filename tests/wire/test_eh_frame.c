/* SPDX-License-Identifier: MIT */
/* test_eh_frame.c - entries made by hand: every form, cut, flipped */
#include "wire/eh_frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "perf_bytes.h"

struct made_frame {
	const char *augmentation;
	uint8_t encoding;
	uint8_t version;
	bool is_64, is_big;
};

static void begin_entry(struct bytes *b, bool is_64, size_t *at)
{
	if (is_64)
		put_u32(b, UINT32_MAX);
	*at = b->size;
	put_n(b, 0, is_64 ? 8 : 4);
}

static void end_entry(struct bytes *b, bool is_64, size_t at)
{
	set_n(b, at, b->size - at - (is_64 ? 8 : 4), is_64 ? 8 : 4);
}

static void put_cie(struct bytes *b, const struct made_frame *f)
{
	size_t at;

	begin_entry(b, f->is_64, &at);
	put_u32(b, 0);
	put_n(b, f->version, 1);
	put(b, f->augmentation, strlen(f->augmentation) + 1);
	if (f->version == 4)
		put_u16(b, 8);
	put_n(b, 1, 1);
	put_n(b, 0x78, 1);
	put_n(b, 16, 1);
	if (f->augmentation[0]) {
		size_t n = 0;

		for (const char *c = f->augmentation; *c; c++)
			n += *c == 'P' ? 5 : *c == 'R' || *c == 'L';
		put_n(b, n, 1);
	}
	for (const char *c = f->augmentation; *c; c++) {
		if (*c == 'R' || *c == 'L')
			put_n(b, f->encoding, 1);
		if (*c == 'P') {
			put_n(b, 3, 1);
			put_u32(b, 0x1234);
		}
	}
	end_entry(b, f->is_64, at);
}

#define FRAME_ADDR 0x10000
#define CODE_ADDR 0x4000

/* Two functions of 0x20 bytes that have the CIE before them. */
static struct bytes make_frame(const struct made_frame *f)
{
	static const size_t sizes[] = { 8, 0, 2, 4, 8 };
	struct bytes b = { .endian = f->is_big ? SEAM_BIG : SEAM_LITTLE };
	size_t n = sizes[f->encoding & 7], at;

	put_cie(&b, f);
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t start = CODE_ADDR + 0x20 * i;

		begin_entry(&b, f->is_64, &at);
		put_u32(&b, b.size);
		if (f->encoding & 0x10)
			start -= FRAME_ADDR + b.size;
		put_n(&b, start, n);
		put_n(&b, 0x20, n);
		put_n(&b, 0, 1);
		end_entry(&b, f->is_64, at);
	}
	put_u32(&b, 0);
	put_u32(&b, 0x12345678);	/* behind the terminator: not read */
	return b;
}

struct walk {
	struct seam_eh_frame frame;
	struct seam_eh_fde fde;
	size_t offset;
	uint64_t n_bad;
};

static struct walk walk_of(struct seam_bytes bytes, enum seam_endian endian)
{
	return (struct walk) { .frame = {
		.entries = bytes, .entries_addr = FRAME_ADDR,
		.endian = endian, .address_bytes = 8,
		.ends_at_terminator = true,
	} };
}

/* The next FDE; each entry on the way moves on. */
static bool next_fde(struct walk *w)
{
	size_t next = 0;
	int r;

	while ((r = seam_eh_frame_entry(&w->frame, w->offset, &w->fde, &next,
					&w->n_bad)) >= 0) {
		assert_true(next >= w->offset + 4 &&
			    next <= w->frame.entries.size);
		w->offset = next;
		if (r == 1)
			return true;
	}
	return false;
}

static const struct made_frame frames[] = {
	{ "zR", 0x1b, 1, false, false }, { "zPLR", 0x1b, 1, false, false },
	{ "zRS", 0x1b, 1, false, false }, { "", 0, 1, false, false },
	{ "zR", 0x03, 3, false, true }, { "zR", 0x1c, 4, true, false },
	{ "zRB", 0x10, 1, true, true }, { "zRG", 0x02, 1, false, false },
};

static void every_form_of_an_entry_reads(void **state)
{
	(void)state;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(frames); i++) {
		struct bytes b = make_frame(&frames[i]);
		struct walk w = walk_of((struct seam_bytes) {
			b.data, b.size }, b.endian);

		for (uint64_t k = 0; k < 2; k++) {
			assert_true(next_fde(&w));
			assert_int_equal(w.fde.start, CODE_ADDR + 0x20 * k);
			assert_int_equal(w.fde.end - w.fde.start, 0x20);
			assert_int_equal(w.fde.cie.is_signal_frame,
				strchr(frames[i].augmentation, 'S') != NULL);
		}
		assert_false(next_fde(&w));
		assert_int_equal(w.n_bad, 0);
		free(b.data);
	}
}

/* How many are read of @bytes; it ends. */
static size_t count_fdes(struct seam_bytes bytes, enum seam_endian endian)
{
	struct walk w = walk_of(bytes, endian);
	size_t n = 0;

	while (next_fde(&w))
		n++;
	return n;
}

static void a_cut_frame_keeps_what_is_before_the_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(frames); i++) {
		struct bytes b = make_frame(&frames[i]);
		size_t last = 0;

		for (size_t size = 0; size <= b.size; size++) {
			struct seam_bytes cut = exact(b.data, size);
			size_t n = count_fdes(cut, b.endian);

			assert_true(n >= last && n <= 2);
			last = n;
			free_exact(cut);
		}
		assert_int_equal(last, 2);
		free(b.data);
	}
}

static void every_flipped_bit_of_a_frame_ends(void **state)
{
	(void)state;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(frames); i++) {
		struct bytes b = make_frame(&frames[i]);

		for (size_t bit = 0; bit < 8 * b.size; bit++) {
			struct seam_bytes copy = exact(b.data, b.size);

			((uint8_t *)(uintptr_t)copy.data)[bit / 8] ^=
				(uint8_t)(1 << bit % 8);
			assert_true(count_fdes(copy, b.endian) <= b.size / 8);
			free_exact(copy);
		}
		free(b.data);
	}
}

/* Each entry names a CIE that would take long to read. */
static void a_cie_of_a_megabyte_costs_nothing(void **state)
{
	struct bytes b = { .endian = SEAM_LITTLE };
	struct walk w;
	size_t at;

	(void)state;
	begin_entry(&b, false, &at);
	put_u32(&b, 0);
	put_n(&b, 1, 1);
	for (int i = 0; i < 1 << 20; i++)
		put_n(&b, 'B', 1);
	end_entry(&b, false, at);
	for (int i = 0; i < 1 << 14; i++) {
		begin_entry(&b, false, &at);
		put_u32(&b, b.size);
		put_u64(&b, 0);
		end_entry(&b, false, at);
	}
	w = walk_of((struct seam_bytes) { b.data, b.size }, SEAM_LITTLE);
	assert_false(next_fde(&w));
	assert_int_equal(w.n_bad, 1 << 14);
	free(b.data);
}

/* --- .eh_frame_hdr by hand --- */

#define HEADER_ADDR 0x20000

/* The table of contents of frames[0]'s two functions. */
static struct bytes make_header(const struct bytes *frame)
{
	struct bytes b = { .endian = frame->endian };
	struct walk w = walk_of((struct seam_bytes) {
		frame->data, frame->size }, frame->endian);
	size_t before = 0, next;

	put_n(&b, 1, 1);
	put_n(&b, 0x1b, 1);		/* pcrel sdata4 */
	put_n(&b, 0x03, 1);		/* udata4 */
	put_n(&b, 0x3b, 1);		/* datarel sdata4 */
	put_u32(&b, (uint64_t)FRAME_ADDR - (HEADER_ADDR + 4));
	put_u32(&b, 2);
	while (seam_eh_frame_entry(&w.frame, before, &w.fde, &next,
				   &w.n_bad) >= 0) {
		if (w.fde.end && before) {
			put_u32(&b, w.fde.start - HEADER_ADDR);
			put_u32(&b, FRAME_ADDR + before - HEADER_ADDR);
		}
		before = next;
	}
	return b;
}

static void the_table_of_contents_finds_each_function(void **state)
{
	struct bytes frame = make_frame(&frames[0]);
	struct bytes header = make_header(&frame);
	struct walk w = walk_of((struct seam_bytes) {
		frame.data, frame.size }, SEAM_LITTLE);
	uint64_t addr;

	(void)state;
	w.frame.header = (struct seam_bytes) { header.data, header.size };
	w.frame.header_addr = HEADER_ADDR;
	assert_true(seam_eh_frame_addr(&w.frame, &addr));
	assert_int_equal(addr, FRAME_ADDR);
	for (addr = CODE_ADDR - 2; addr < CODE_ADDR + 0x42; addr++) {
		bool is_in = addr >= CODE_ADDR && addr < CODE_ADDR + 0x40;

		assert_int_equal(seam_eh_frame_find(&w.frame, addr, &w.fde),
				 is_in);
		if (is_in)
			assert_int_equal(w.fde.start, addr & ~UINT64_C(0x1f));
	}
	/* whatever a table says, what it leads to is checked */
	for (size_t bit = 0; bit < 8 * header.size; bit++) {
		struct seam_bytes copy = exact(header.data, header.size);

		((uint8_t *)(uintptr_t)copy.data)[bit / 8] ^=
			(uint8_t)(1 << bit % 8);
		w.frame.header = copy;
		if (seam_eh_frame_find(&w.frame, CODE_ADDR + 1, &w.fde) == 1)
			assert_int_equal(w.fde.start, CODE_ADDR);
		free_exact(copy);
	}
	for (size_t size = 0; size < header.size; size++) {
		struct seam_bytes cut = exact(header.data, size);

		w.frame.header = cut;
		assert_true(seam_eh_frame_find(&w.frame, CODE_ADDR + 1,
					       &w.fde) <= 0);
		free_exact(cut);
	}
	free(header.data);
	free(frame.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_an_entry_reads),
		cmocka_unit_test(a_cut_frame_keeps_what_is_before_the_cut),
		cmocka_unit_test(every_flipped_bit_of_a_frame_ends),
		cmocka_unit_test(a_cie_of_a_megabyte_costs_nothing),
		cmocka_unit_test(the_table_of_contents_finds_each_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
