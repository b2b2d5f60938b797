/* SPDX-License-Identifier: MIT */
/*
 * test_jit_placements.c - all placements, played one over the other, say what a
 * look-up says at every address and every time
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jit_dump.h"
#include "base/radix_sort.h"
#include "symbol/jit/jit_placements.h"

enum { ADDRESSES = 64, TIMES = 40, BASE = 0x1000 };

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % n;
}

/* Loads anywhere, and moves of some of them. */
static void put_random(struct dump *d)
{
	uint64_t at[TIMES], sizes[TIMES];
	uint32_t n = 0;

	put_header(d);
	for (uint32_t time = 1; time < TIMES; time++) {
		uint64_t to = BASE + random_below(ADDRESSES - 16);
		uint32_t which = n ? random_below(n) : 0;

		if (n == 0 || random_below(3)) {
			at[n] = to;
			sizes[n] = random_below(12);
			put_load(d, time, "f", to, sizes[n], n);
			n++;
		} else {
			put_move(d, time, at[which], to, sizes[which],
				 which);
			at[which] = to;
		}
	}
}

/* Which object is at each address at @time, and how far into it. */
static void play(const struct seam_jit_placements *placements, uint64_t time,
		 uint32_t *objects, uint64_t *offsets)
{
	memset(objects, 0xff, ADDRESSES * sizeof(*objects));
	for (size_t i = 0; i < placements->list.n; i++) {
		const struct seam_jit_placement *p =
			&placements->list.items[i];

		if (p->time_ns > time)
			break;
		for (uint64_t k = 0; k < p->size; k++) {
			objects[p->start_addr - BASE + k] = p->object;
			offsets[p->start_addr - BASE + k] = p->offset + k;
		}
	}
}

static void compare(struct seam_jit_code *jit, uint64_t time,
		    const uint32_t *objects, const uint64_t *offsets)
{
	for (uint32_t i = 0; i < ADDRESSES; i++) {
		struct seam_jit_location found;
		bool is_found = seam_jit_code_find(jit, 1, BASE + i, time,
						   &found);

		if (is_found) {
			assert_int_equal(objects[i], found.object);
			assert_int_equal(offsets[i], found.offset);
		} else {
			assert_int_equal(objects[i], SEAM_NONE);
		}
	}
}

static void played_in_order_they_give_what_a_look_up_gives(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		struct dump *d = calloc(1, sizeof(*d));
		struct seam_jit_code *jit = seam_jit_code_new();
		struct seam_jit_placements placements = { 0 };
		uint32_t objects[ADDRESSES];
		uint64_t offsets[ADDRESSES];

		put_random(d);
		assert_int_equal(seam_jit_code_add_dump(jit, dump_bytes(d),
			&(struct seam_jit_code_options) { .pid = 1 }, NULL),
			0);
		assert_int_equal(seam_jit_placements_read(&placements, jit),
				 0);
		assert_int_equal(SEAM_RADIX_SORT(&placements.list, time_ns), 0);
		for (uint64_t time = 0; time < TIMES; time++) {
			play(&placements, time, objects, offsets);
			compare(jit, time, objects, offsets);
		}
		free(placements.list.items);
		seam_jit_code_free(jit);
		free(d);
	}
}

static void maps_begin_after_the_last_exec(void **state)
{
	static const char map[] = "1000 10 f\n";
	struct seam_jit_code *jit = seam_jit_code_new();
	struct seam_jit_placements placements = { 0 };

	(void)state;
	seam_jit_code_exec(jit, 5, 700);
	assert_int_equal(seam_jit_code_add_map(jit, 5, (struct seam_bytes) {
		(const uint8_t *)map, sizeof(map) - 1 },
		(struct seam_bytes) { 0 }, NULL), 0);
	assert_int_equal(seam_jit_placements_read(&placements, jit), 0);
	assert_int_equal(placements.list.n, 1);
	assert_int_equal(placements.list.items[0].pid, 5);
	assert_int_equal(placements.list.items[0].time_ns, 701);
	assert_int_equal(placements.list.items[0].size, 0x10);
	free(placements.list.items);
	seam_jit_code_free(jit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			played_in_order_they_give_what_a_look_up_gives),
		cmocka_unit_test(maps_begin_after_the_last_exec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
