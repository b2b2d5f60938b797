/* SPDX-License-Identifier: MIT */
/* test_eh_frame.c - entries made by hand: every form, cut, flipped */
#include "wire/eh_frame.h"

#include "perf_bytes.h"
#include "unit.h"

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

	while ((r = seam_eh_frame_entry(&w->frame, w->offset, &w->fde,
					&next)) >= 0) {
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

UNIT_TEST(every_form_of_an_entry_reads)
{
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

UNIT_TEST(a_cut_frame_keeps_what_is_before_the_cut)
{
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

UNIT_TEST(every_flipped_bit_of_a_frame_ends)
{
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
UNIT_TEST(a_cie_of_a_megabyte_costs_nothing)
{
	struct bytes b = { .endian = SEAM_LITTLE };
	struct walk w;
	size_t at;

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
	assert_int_equal(w.offset, b.size);
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
	while (seam_eh_frame_entry(&w.frame, before, &w.fde, &next) >= 0) {
		if (w.fde.end && before) {
			put_u32(&b, w.fde.start - HEADER_ADDR);
			put_u32(&b, FRAME_ADDR + before - HEADER_ADDR);
		}
		before = next;
	}
	return b;
}

UNIT_TEST(the_table_of_contents_finds_each_function)
{
	struct bytes frame = make_frame(&frames[0]);
	struct bytes header = make_header(&frame);
	struct walk w = walk_of((struct seam_bytes) {
		frame.data, frame.size }, SEAM_LITTLE);
	uint64_t addr;

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

/* --- addresses --- */

/* A distance that leads to below 0: addresses have as many bytes as words. */
UNIT_TEST(an_address_wraps_at_its_size)
{
	static const struct { uint8_t bytes; uint64_t addr; } each[] = {
		{ 4, 0xfffff000 }, { 8, 0xfffffffffffff000 },
	};
	struct bytes b = { .endian = SEAM_LITTLE };

	put_u32(&b, (uint32_t)-0x2000);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(each); i++) {
		struct seam_cursor c = seam_cursor_make(b.data, b.size,
							b.endian);

		assert_int_equal(seam_eh_address(&c, 0x1b, each[i].bytes,
						 0x1000, 0), each[i].addr);
		assert_int_equal(c.error, 0);
	}
	free(b.data);
}

/* --- entries that are wrong --- */

enum { MAX_CIE_TAIL = SEAM_EH_MAX_CIE, MAX_FDE_TAIL = SEAM_EH_MAX_FDE };

/* A CIE and an FDE, and what of them is changed. */
struct wrong {
	const char *what;
	size_t at, n;		/* bytes at this place... */
	uint64_t value;		/* ... become this; n 0: none */
	size_t cie_bytes, fde_bytes;	/* of the bodies, filled with nops */
	bool is_right;
};

#define BYTES(place, size, bytes)					\
	.at = (place), .n = (size), .value = (bytes)

/*
 * CIE: length 0, id 4, version 8, "zR" 9, factors 12 and 13, return register
 * 14, size 15, encoding 16, nops.  FDE after it: length, CIE 4, start 8, range
 * 16, augmentation 24, nops.  A .debug_frame's CIE has version 4, an address
 * size at 12 and a segment size at 13, and the rest two bytes later.
 */
static struct bytes make_wrong(const struct wrong *w, bool is_debug)
{
	size_t n_cie = w->cie_bytes ? w->cie_bytes : 20;
	size_t n_fde = w->fde_bytes ? w->fde_bytes : 28;
	struct bytes b = { .endian = SEAM_LITTLE };

	put_u32(&b, n_cie);
	put_u32(&b, is_debug ? UINT32_MAX : 0);
	put_n(&b, is_debug ? 4 : 1, 1);
	put(&b, "zR", 3);
	if (is_debug)
		put_u16(&b, 8);
	put(&b, "\1\x78\x10\1\0", 5);
	while (b.size < 4 + n_cie)
		put_n(&b, 0, 1);
	put_u32(&b, n_fde);
	put_u32(&b, is_debug ? 0 : b.size);
	put_u64(&b, CODE_ADDR);
	put_u64(&b, 0x20);
	while (b.size < 4 + n_cie + 4 + n_fde)
		put_n(&b, 0, 1);
	if (w->n)
		set_n(&b, w->at, w->value, w->n);
	return b;
}

static void check_wrong(const struct wrong *wrong, size_t n, bool is_debug)
{
	for (size_t i = 0; i < n; i++) {
		struct bytes b = make_wrong(&wrong[i], is_debug);
		struct walk w = walk_of((struct seam_bytes) {
			b.data, b.size }, SEAM_LITTLE);
		size_t n_read = 0;

		w.frame.is_debug_frame = is_debug;
		while (next_fde(&w))
			n_read++;
		if (n_read != wrong[i].is_right || w.offset != b.size)
			fail_msg("%s: %zu read", wrong[i].what, n_read);
		free(b.data);
	}
}

/* Places in the FDE behind a CIE of 24 bytes. */
enum { FDE = 24, FDE_CIE = FDE + 4, FDE_START = FDE + 8, FDE_RANGE = FDE + 16 };

UNIT_TEST(an_entry_that_is_wrong_is_left_out)
{
	static const struct wrong wrong[] = {
		{ .what = "as it is", .is_right = true },
		{ "version 3", BYTES(8, 1, 3), .is_right = true },
		{ "version 2", BYTES(8, 1, 2) },
		{ "version 5", BYTES(8, 1, 5) },
		{ "letters without their size", BYTES(9, 1, 'e') },
		{ "data beyond the CIE", BYTES(15, 1, 100) },
		{ "a pointer to the address", BYTES(16, 1, 0x80) },
		{ "an address relative to the function", BYTES(16, 1, 0x40) },
		{ "an unknown format", BYTES(16, 1, 0x05) },
		{ "a CIE before the section", BYTES(FDE_CIE, 4, FDE_CIE + 1) },
		{ "an FDE as its CIE", BYTES(FDE_CIE, 4, 4) },
		{ "no range", BYTES(FDE_RANGE, 8, 0) },
		{ "a range up to the last address",
		  BYTES(FDE_RANGE, 8, UINT64_MAX - CODE_ADDR),
		  .is_right = true },
		{ "a range beyond the last address",
		  BYTES(FDE_RANGE, 8, UINT64_MAX - CODE_ADDR + 1) },
		{ "data beyond the FDE", BYTES(FDE + 24, 1, 100) },
		{ .what = "the largest CIE", .cie_bytes = MAX_CIE_TAIL,
		  .is_right = true },
		{ .what = "a larger CIE", .cie_bytes = MAX_CIE_TAIL + 1 },
		{ .what = "the largest FDE", .fde_bytes = MAX_FDE_TAIL,
		  .is_right = true },
		{ .what = "a larger FDE", .fde_bytes = MAX_FDE_TAIL + 1 },
	};
	static const struct wrong debug[] = {
		{ .what = "as it is", .is_right = true },
		{ "addresses of 3 bytes", BYTES(12, 1, 3) },
		{ "segments", BYTES(13, 1, 1) },
		{ "a CIE after the section", BYTES(FDE_CIE, 4, 0x1000000) },
	};

	check_wrong(wrong, SEAM_ARRAY_SIZE(wrong), false);
	check_wrong(debug, SEAM_ARRAY_SIZE(debug), true);
}

UNIT_TEST(an_entry_longer_than_the_section_ends_it)
{
	static const uint64_t lengths[] = { 29, 0x7fffffff, 0xfffffff0 };

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(lengths); i++) {
		struct wrong length = { "", BYTES(FDE, 4, lengths[i]) };
		struct bytes b = make_wrong(&length, false);
		struct walk w = walk_of((struct seam_bytes) {
			b.data, b.size }, SEAM_LITTLE);

		assert_false(next_fde(&w));
		assert_int_equal(w.offset, FDE);
		free(b.data);
	}
}

/* A row of the table of contents, for the function at CODE_ADDR. */
static int find_by_row(const struct bytes *entries, uint64_t entry_addr)
{
	struct bytes b = { .endian = SEAM_LITTLE };
	struct walk w = walk_of((struct seam_bytes) {
		entries->data, entries->size }, SEAM_LITTLE);
	int r;

	put(&b, "\1\x1b\x03\x3b", 4);
	put_u32(&b, (uint64_t)FRAME_ADDR - (HEADER_ADDR + 4));
	put_u32(&b, 1);
	put_u32(&b, (uint64_t)CODE_ADDR - HEADER_ADDR);
	put_u32(&b, entry_addr - HEADER_ADDR);
	w.frame.header = (struct seam_bytes) { b.data, b.size };
	w.frame.header_addr = HEADER_ADDR;
	r = seam_eh_frame_find(&w.frame, CODE_ADDR, &w.fde);
	free(b.data);
	return r;
}

UNIT_TEST(a_row_that_leads_to_no_function_is_refused)
{
	struct bytes b = make_wrong(&(struct wrong) { .what = "" }, false);

	assert_int_equal(find_by_row(&b, FRAME_ADDR + FDE), 1);
	/* a CIE, the end of the section, outside of it */
	assert_int_equal(find_by_row(&b, FRAME_ADDR), -EBADMSG);
	assert_int_equal(find_by_row(&b, FRAME_ADDR + b.size), -EBADMSG);
	assert_int_equal(find_by_row(&b, FRAME_ADDR - 8), -EBADMSG);
	assert_int_equal(find_by_row(&b, FRAME_ADDR + 0x10000000), -EBADMSG);
	free(b.data);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
