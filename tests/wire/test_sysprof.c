/* SPDX-License-Identifier: MIT */
/* test_sysprof.c - sysprof streams: numbers, versions, cuts, changed bytes */
#include "wire/sysprof/sysprof.h"

#include "base/file.h"
#include "unit.h"

/* -- streams made here ---------------------------------------------------- */

struct stream {
	uint8_t bytes[4096];
	size_t n;
};

static void add(struct stream *s, const char *text)
{
	while (*text) {
		unsigned int byte;

		assert_int_equal(sscanf(text, "%2x", &byte), 1);
		s->bytes[s->n++] = (uint8_t)byte;
		text += 2 + (text[2] == ' ');
	}
}

/* A stream of hexadecimal bytes. */
static struct stream made(const char *text)
{
	struct stream s = { .n = 0 };

	add(&s, text);
	return s;
}

#define LJS(version) "6c6a73 0" version " 000000 "
#define LJP(version) "6c6a70 0" version " 000000 "

/* The items of @bytes, on a heap block of their exact size, as text. */
static char *items(const uint8_t *bytes, size_t size, int *result,
		   struct seam_err *err)
{
	uint8_t *copy = malloc(size + !size);
	size_t n;
	char *text;
	FILE *out = open_memstream(&text, &n);

	memcpy(copy, bytes, size);
	*result = seam_sysprof_print(out, (struct seam_bytes) { copy, size },
				     SEAM_LINE_JSON, err);
	fclose(out);
	free(copy);
	return text;
}

static void check(const char *hex, int expected, const char *has)
{
	struct stream s = made(hex);
	struct seam_err err = { 0 };
	int r;
	char *text = items(s.bytes, s.n, &r, &err);
	const char *where = r ? err.cause[0] : text;

	assert_int_equal(r, expected);
	if (!strstr(where, has))
		fail_msg("%s: '%s' is not in '%s'", hex, has, where);
	free(text);
}

/* -- numbers ------------------------------------------------------------- */

UNIT_TEST(numbers_are_those_of_the_slow_reader)
{
	uint8_t bytes[64] = { 0, [40] = 0x80 };
	uint64_t seed = 1;

	for (int i = 0; i < 200000; i++) {
		uint64_t v = (seed = seed * 6364136223846793005u + 1) >>
			     (i % 64);
		size_t pads = (size_t)(seed >> 60) % 4, n;
		struct seam_cursor c;
		struct stream s = made(LJS("3") "80 " LJP("2") "00 ");
		struct seam_sysprof_reader r;
		struct seam_sysprof_item item;
		uint64_t slow;

		n = seam_wire_put_uleb(bytes, v);
		for (; pads && n < SEAM_ULEB_BYTES; pads--) {
			bytes[n - 1] |= 0x80;
			bytes[n++] = 0;
		}
		c = seam_cursor_make(bytes, n, SEAM_LITTLE);
		slow = seam_cursor_uleb128(&c);
		assert_int_equal(slow, v);
		assert_int_equal(c.error, 0);
		memcpy(s.bytes + s.n, bytes, n);
		s.n += n;
		s.bytes[s.n++] = 0;
		s.bytes[s.n++] = 0x80;
		seam_sysprof_begin(&r, (struct seam_bytes) { s.bytes, s.n });
		for (int k = 0; k < 4; k++)
			assert_int_equal(seam_sysprof_next(&r, &item, NULL), 1);
		assert_int_equal(item.kind, SEAM_SYSPROF_SAMPLE);
		assert_int_equal(item.n_host, v != 0);
		if (v)
			assert_int_equal(item.host[0], v);
		seam_sysprof_fini(&r);
	}
}

UNIT_TEST(a_number_has_at_most_ten_bytes_and_64_bits)
{
	check(LJS("3") "80" LJP("2") "00 ffffffffffffffffff01 00 80", 0,
	      "[18446744073709551615]");
	check(LJS("3") "80" LJP("2") "00 ffffffffffffffffff02 00 80", -EBADMSG,
	      "the number at byte 16");
	check(LJS("3") "80" LJP("2") "00 8180808080808080808000 00 80",
	      -EBADMSG, "the number at byte 16");
	check(LJS("3") "01 8180808080808080808000 0178 80" LJP("2") "80",
	      -EBADMSG, "the number at byte 8");
	/* longer than needed, but no longer than ten */
	check(LJS("3") "80" LJP("2") "00 858000 00 80", 0, "\"host\":[5]");
	check(LJS("3") "80" LJP("2") "00 8000 80", 0, "\"host\":[]");
}

/* -- what a stream may have ------------------------------------------------ */

UNIT_TEST(kinds_are_read_by_the_version)
{
	/* 1: functions of Lua only; 2: traces are 1; 3: C functions are 1 */
	check(LJS("1") "00 10 024061 05 80" LJP("2") "80", 0, "\"@a\"");
	check(LJS("1") "01 10 024061 80" LJP("2") "80", -EBADMSG, "byte 7");
	check(LJS("2") "01 07 10 03 80" LJP("2") "80", 0,
	      "\"type\":\"trace\",\"traceno\":7,\"addr\":16,\"line\":3");
	check(LJS("2") "02 07 10 03 80" LJP("2") "80", -EBADMSG, "byte 7");
	check(LJS("3") "01 10 026162 80" LJP("2") "80", 0, "\"name\":\"ab\"");
	check(LJS("3") "02 07 10 03 80" LJP("2") "80", 0, "\"traceno\":7");
	check(LJS("3") "03 80" LJP("2") "80", -EBADMSG, "byte 7 (0x03)");
	/* the event 10 was a C function at first */
	check(LJS("3") "80" LJP("1") "0a 10 026162 80", 0, "\"cfunc\"");
	check(LJS("3") "80" LJP("2") "0a 10 026162 05 80", 0, "\"lfunc\"");
	check(LJS("3") "80" LJP("2") "0b 10 026162 80", 0, "\"cfunc\"");
	check(LJS("3") "80" LJP("1") "0b 10 026162 80", -EBADMSG, "byte 15");
	check(LJS("3") "80" LJP("1") "0c 10 02 61 80", -EBADMSG, "byte 15");
}

UNIT_TEST(traces_of_version_2_are_read_with_an_address_and_without)
{
	check(LJS("2") "01 07 ff7f 10 03 01 08 fe7f 11 04 80" LJP("2") "80", 0,
	      "\"traceno\":8,\"addr\":17,\"line\":4");
	check(LJS("2") "01 07 10 03 01 08 11 04 80" LJP("2") "80", 0,
	      "\"traceno\":8,\"addr\":17,\"line\":4");
}

UNIT_TEST(other_versions_and_memory_profiles_are_named)
{
	check(LJS("4") "80" LJP("2") "80", -ENOTSUP,
	      "symbol table version 4 at byte 3");
	check(LJS("0") "80" LJP("2") "80", -ENOTSUP, "version 0");
	check(LJS("3") "80" LJP("3") "80", -ENOTSUP,
	      "profile version 3 at byte 11");
	check(LJS("3") "80 6c6a6d 03 000000 80", -ENOTSUP, "memprof");
	check(LJS("3") "80 6c6a71 03 000000 80", -EBADMSG, "byte 8");
	check("6c6a70 02 000000 80", -EBADMSG, "no symbol table at byte 0");
}

UNIT_TEST(unknown_bytes_are_errors_with_their_place)
{
	check(LJS("3") "80" LJP("2") "0d", -EBADMSG, "byte 15 (0x0d)");
	check(LJS("3") "80" LJP("2") "ff", -EBADMSG, "byte 15 (0xff)");
	check(LJS("3") "80" LJP("2") "01 00 80 00 80", -EBADMSG,
	      "Lua frame at byte 16 (0x00)");
	check(LJS("3") "80" LJP("2") "01 01 10 05 ff 00 80", -EBADMSG,
	      "Lua frame at byte 19 (0xff)");
	check(LJS("3") "80" LJP("2") "80 0102", -EBADMSG,
	      "2 bytes after the epilogue, from byte 16 on");
	/* unused bits of symbols are ignored, as by LuaJIT's parser */
	check(LJS("3") "40 10 024061 05 c0" LJP("2") "80", 0, "\"@a\"");
}

UNIT_TEST(strings_hold_any_bytes)
{
	check(LJS("3") "00 10 07 610a62c3a40063 05 80" LJP("2") "80", 0,
	      "\"chunk\":\"a\\u000ab\xc3\xa4\"");
	check(LJS("3") "00 10 00 05 80" LJP("2") "80", 0, "\"chunk\":\"\"");
	check(LJS("3") "00 10 ffffffffffffffffff01 61 80", -ENODATA,
	      "byte 21, in a Lua symbol");
}

/* -- all of it ------------------------------------------------------------ */

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 8;
}

/* A number of any size but 0. */
static uint64_t any(uint64_t *seed)
{
	uint64_t v = (next_random(seed) << 8 | next_random(seed) % 256) >>
		     next_random(seed) % 64;

	return v ? v : 1;
}

static void put(struct seam_sysprof_buffer *out,
		const struct seam_sysprof_item *item)
{
	assert_int_equal(seam_sysprof_write(out, item), 0);
}

/* A random symbol or sample; @frames and @host have room for 8. */
static struct seam_sysprof_item random_item(uint64_t *seed,
	struct seam_sysprof_frame *frames, uint64_t *host)
{
	static const uint8_t text[] = "@a\n\xc3\xa4\0\xff.lua";
	struct seam_bytes name = { text, next_random(seed) % sizeof(text) };
	struct seam_sysprof_item item = {
		.lua = frames, .host = host, .is_event = true,
		.kind = SEAM_SYSPROF_SAMPLE,
		.lfunc = { any(seed), name, any(seed) },
		.cfunc = { any(seed), name },
		.trace = { any(seed), any(seed), any(seed) },
		.vmstate = (enum seam_vmstate)(next_random(seed) %
					       SEAM_N_VMSTATES),
	};
	uint64_t kind = next_random(seed) % 6;

	if (kind < 3)
		item.kind = (enum seam_sysprof_kind)
			(SEAM_SYSPROF_SYMBOL_LFUNC + (int)kind);
	item.n_lua = next_random(seed) % 8;
	item.n_host = next_random(seed) % 8;
	for (size_t i = 0; i < 8; i++) {
		frames[i] = (struct seam_sysprof_frame) {
			.kind = (enum seam_sysprof_frame_kind)
				(1 + next_random(seed) % 3),
			.value = any(seed),
		};
		if (frames[i].kind == SEAM_SYSPROF_LFUNC)
			frames[i].line = any(seed) - 1;
		host[i] = any(seed);
	}
	return item;
}

/* A stream of @n random items; its own bytes. */
static struct seam_sysprof_buffer random_stream(uint64_t seed, int n)
{
	struct seam_sysprof_buffer out = { 0 };
	struct seam_sysprof_frame frames[8];
	uint64_t host[8];

	put(&out, &(struct seam_sysprof_item) { .kind = SEAM_SYSPROF_SYMTAB });
	for (int i = 0; i < n; i++) {
		struct seam_sysprof_item item = random_item(&seed, frames,
							    host);

		item.is_event = false;
		if (item.kind != SEAM_SYSPROF_SAMPLE)
			put(&out, &item);
	}
	put(&out, &(struct seam_sysprof_item) {
		.kind = SEAM_SYSPROF_SYMTAB_END });
	put(&out, &(struct seam_sysprof_item) { .kind = SEAM_SYSPROF_PROFILE });
	for (int i = 0; i < n; i++) {
		struct seam_sysprof_item item = random_item(&seed, frames,
							    host);

		put(&out, &item);
	}
	put(&out, &(struct seam_sysprof_item) { .kind = SEAM_SYSPROF_END });
	return out;
}

/* The items of @bytes, written again; *@ends: where each item ended there. */
static struct seam_sysprof_buffer written_again(struct seam_bytes bytes,
						size_t *ends, size_t *n)
{
	struct seam_sysprof_buffer out = { 0 };
	struct seam_sysprof_reader r;
	struct seam_sysprof_item item;

	*n = 0;
	seam_sysprof_begin(&r, bytes);
	while (seam_sysprof_next(&r, &item, NULL) > 0) {
		put(&out, &item);
		ends[(*n)++] = r.cursor.pos;
	}
	seam_sysprof_fini(&r);
	return out;
}

UNIT_TEST(what_is_written_is_read_again)
{
	size_t *ends = malloc(10000 * sizeof(*ends)), n;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct seam_sysprof_buffer a = random_stream(seed, 40), b;

		b = written_again((struct seam_bytes) { a.items, a.n }, ends,
				  &n);
		assert_int_equal(a.n, b.n);
		assert_memory_equal(a.items, b.items, a.n);
		free(a.items);
		free(b.items);
	}
	free(ends);
}

/* Skimmed items, then read, are those that are read at once. */
static void compare_skimmed(struct seam_bytes bytes)
{
	struct seam_sysprof_reader a, b;
	struct seam_sysprof_item x, y;
	int r, s;

	seam_sysprof_begin(&a, bytes);
	seam_sysprof_begin(&b, bytes);
	b.skims = true;
	do {
		struct seam_sysprof_buffer one = { 0 }, two = { 0 };

		r = seam_sysprof_next(&a, &x, NULL);
		s = seam_sysprof_next(&b, &y, NULL);
		if (s > 0 && y.kind == SEAM_SYSPROF_SAMPLE && y.is_skimmed) {
			uint64_t leaf = y.n_host ? y.host[0] : 0;
			size_t end = b.cursor.pos;

			if (r > 0)
				assert_int_equal(x.callers_offset,
						 y.callers_offset);

			assert_true(y.n_host < 2 && y.n_lua == 0);
			s = seam_sysprof_read_frames(&b, &y, NULL);
			if (s > 0) {
				assert_int_equal(end, b.cursor.pos);
				assert_int_equal(leaf, y.n_host ? y.host[0] :
						 0);
			}
		}
		assert_int_equal(r, s);
		assert_int_equal(a.cursor.pos, b.cursor.pos);
		if (r <= 0)
			break;
		put(&one, &x);
		put(&two, &y);
		assert_int_equal(one.n, two.n);
		assert_memory_equal(one.items, two.items, one.n);
		free(one.items);
		free(two.items);
	} while (r > 0);
	seam_sysprof_fini(&a);
	seam_sysprof_fini(&b);
}

UNIT_TEST(what_is_skimmed_is_what_is_read)
{
	/* an end that is longer than needed, and what it hides if it is not */
	struct stream odd = made(LJS("3") "80" LJP("2") "00 8000 00 1000 00 "
				 "850000 00 00 00 00 00 00 00 00 80");

	compare_skimmed((struct seam_bytes) { odd.bytes, odd.n });
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct seam_sysprof_buffer b = random_stream(seed, 30);

		compare_skimmed((struct seam_bytes) { b.items, b.n });
		for (size_t at = seed; at < b.n; at += 7) {
			b.items[at] ^= (uint8_t)(1u << at % 8);
			compare_skimmed((struct seam_bytes) { b.items, b.n });
			b.items[at] ^= (uint8_t)(1u << at % 8);
		}
		free(b.items);
	}
}

/* The items of a stream cut or changed at a byte are those before it. */
UNIT_TEST(a_cut_or_a_changed_byte_costs_what_follows)
{
	struct seam_sysprof_buffer whole = random_stream(7, 60);
	size_t *ends = malloc(20000 * sizeof(*ends)), n_whole;
	size_t *found = malloc(20000 * sizeof(*found)), n;
	struct seam_sysprof_buffer again = written_again(
		(struct seam_bytes) { whole.items, whole.n }, ends, &n_whole);

	free(again.items);
	for (size_t at = 0; at < whole.n; at++) {
		uint8_t *copy = malloc(at + !at);
		size_t due = 0;
		int r;
		struct seam_err err = { 0 };

		memcpy(copy, whole.items, at);
		while (due < n_whole && ends[due] <= at)
			due++;
		again = written_again((struct seam_bytes) { copy, at }, found,
				      &n);
		assert_int_equal(n, due);
		assert_memory_equal(found, ends, n * sizeof(*found));
		free(again.items);
		free(items(copy, at, &r, &err));
		assert_int_equal(r, -ENODATA);
		free(copy);

		copy = malloc(whole.n);
		memcpy(copy, whole.items, whole.n);
		copy[at] ^= (uint8_t)(1u << at % 8);
		again = written_again((struct seam_bytes) { copy, whole.n },
				      found, &n);
		assert_true(n >= due || at < 7);
		for (size_t i = 0; i < due && i < n; i++)
			assert_int_equal(found[i], ends[i]);
		free(again.items);
		free(copy);
	}
	free(found);
	free(ends);
	free(whole.items);
}

UNIT_TEST(a_stack_has_a_limit)
{
	size_t n = 16 + 2 * (SEAM_SYSPROF_MAX_FRAMES + 2);
	struct stream head = made(LJS("3") "80" LJP("2") "03");
	uint8_t *bytes = malloc(n);
	struct seam_err err = { 0 };
	int r;

	memset(bytes, 2, n);
	memcpy(bytes, head.bytes, head.n);
	free(items(bytes, n, &r, &err));
	assert_int_equal(r, -EBADMSG);
	assert_non_null(strstr(err.cause[0], "more than 1,048,576 frames"));
	bytes[15] = 0;
	free(items(bytes, n, &r, &err));
	assert_int_equal(r, -EBADMSG);
	assert_non_null(strstr(err.cause[0], "more than 1,048,576 frames"));
	free(bytes);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
