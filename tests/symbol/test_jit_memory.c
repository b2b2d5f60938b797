/* SPDX-License-Identifier: MIT */
/*
 * test_jit_memory.c - each allocation of the JIT layer fails once
 *
 * Linked with --wrap.  Then adding or indexing says so, nothing is found that
 * is not there, and nothing leaks.
 */
#include "symbol/jit/jit_code.h"

#include "../no_memory.h"
#include "jit_dump.h"
#include "unit.h"

/* Loads out of order, moves, lines that wait, a map, forks. */
static void make_dump(struct dump *d)
{
	static const char *const names[] = { "b.js", "a.js" };

	d->size = 0;
	put_header(d);
	put_debug(d, 0x1000, 0x1004, names, 2);
	put_debug(d, 0x2000, 0x2000, names, 2);
	for (uint64_t i = 40; i > 0; i--)
		put_load(d, i, "f", 0x1000 * (1 + i % 8), 64, i);
	put_move(d, 50, 0x2000, 0x9000, 64, 1);
	put_move(d, 51, 0x2000, 0x9000, 64, 99);
}

/* Functions found, or -1 when memory ran out. */
static int use_all(const struct dump *d)
{
	static const char map[] = "20000 10 mapped\n20000 20 again\n";
	struct seam_jit_code_options options = { .pid = DUMP_PID };
	struct seam_jit_code *jit = seam_jit_code_new();
	struct seam_jit_location l;
	int n = 0;

	if (!jit)
		return -1;
	if (seam_jit_code_add_dump(jit, dump_bytes(d), &options, NULL) ||
	    seam_jit_code_add_map(jit, DUMP_PID, (struct seam_bytes) {
		(const uint8_t *)map, sizeof(map) - 1 },
		(struct seam_bytes) { 0 }, NULL) ||
	    seam_jit_code_fork(jit, DUMP_PID, 7, 45) ||
	    seam_jit_code_exec(jit, 7, 60) || seam_jit_code_index(jit))
		n = -1;
	for (uint64_t addr = 0; addr < 0x21000; addr += 16)
		if (seam_jit_code_find(jit, 7, addr, 55, &l))
			n += n >= 0;
	seam_jit_code_free(jit);
	return n;
}

UNIT_TEST(every_allocation_may_fail)
{
	static struct dump d;
	size_t n_failed = 0;
	int whole;

	make_dump(&d);
	whole = use_all(&d);
	assert_true(whole > 10);
	for (size_t n = 1; n < 1000; n++) {
		int found;

		until_failure = (long)n;
		found = use_all(&d);
		if (until_failure > 0)
			break;	/* there were not as many allocations */
		assert_true(found == -1 || found == whole);
		n_failed++;
	}
	until_failure = 0;
	assert_true(n_failed > 30);
	assert_int_equal(use_all(&d), whole);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
