/* SPDX-License-Identifier: MIT */
/*
 * test_live_jit.c - code of JITs by process, address and time
 *
 * The oracle is symbol/jit, which has all records before it is asked: what is
 * found while records arrive has to be what it finds.
 */
#include "record/stacks/live_jit.h"

#include "jit_dump.h"
#include "symbol/jit/jit_code.h"
#include "unit.h"

enum {
	PARENT = 42, CHILD = 43,
	CACHE = 0x100000, CACHE_BYTES = 0x2000,
	STACK = 0x7000000,
};

static uint32_t seed;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % n;
}

/* The .eh_frame of code of @size whose frame has @cfa bytes, and a header. */
static size_t put_frame(struct dump *d, uint64_t time, uint32_t size,
			uint32_t cfa)
{
	static const uint8_t cie[] = {
		20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1,
		0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
	};
	const uint8_t program[] = {
		0, 0x0e, (uint8_t)(cfa | 0x80), (uint8_t)(cfa >> 7), 0, 0, 0, 0,
	};
	uint32_t from = (size + 7) & ~7U;
	const uint32_t words[4] = {
		12 + sizeof(program), sizeof(cie) + 4,
		(uint32_t)-(int)(from + sizeof(cie) + 8), size,
	};
	uint8_t table[96] = { 0 };
	size_t n = sizeof(cie) + sizeof(words) + sizeof(program);

	memcpy(table, cie, sizeof(cie));
	memcpy(table + sizeof(cie), words, sizeof(words));
	memcpy(table + sizeof(cie) + sizeof(words), program, sizeof(program));
	memcpy(table + n, (uint8_t[]) { 1, 0x1b, 3, 0x3b }, 4);
	return put(d, &seam_jitdump_unwinding_info_table,
		   &(struct seam_jitdump_unwinding_info) {
			.id = 4, .total_size = 40 + 72, .timestamp = time,
			.unwind_data_size = n + 20, .eh_frame_hdr_size = 20,
			.unwinding_data = { table, 72 },
		   });
}

/* The stack pointer after a step out of @code; 0: there is none. */
static uint64_t leave(const struct seam_unwind_code *code)
{
	static uint8_t stack[4096];
	const struct seam_unwind_memory memory = {
		.stack = stack, .stack_addr = STACK,
		.stack_bytes = sizeof(stack),
	};
	struct seam_unwind_registers regs = {
		.known = UINT64_C(1) << SEAM_X86_64_RSP |
			 UINT64_C(1) << SEAM_X86_64_RIP,
	};

	memset(stack, 1, sizeof(stack));
	regs.value[SEAM_X86_64_RSP] = STACK;
	return code->rules && seam_unwind_step(code->rules, code->id, &memory,
					       &regs) == SEAM_UNWIND_CALLER ?
	       regs.value[SEAM_X86_64_RSP] : 0;
}

/* ---- the same records for both ---- */

static struct dump dumps[2];		/* of PARENT, CHILD */
static struct seam_live_jit live;
static uint64_t now;
static uint32_t n_loads;
static SEAM_ARRAY(uint32_t) frames;	/* by load */

static void announce(int32_t pid, size_t at)
{
	struct dump *d = &dumps[pid - PARENT];

	seam_live_jit_add(&live, pid, (struct seam_bytes) {
			d->bytes + at, d->size - at });
}

static void load_code(int32_t pid, uint64_t addr, uint32_t size)
{
	struct dump *d = &dumps[pid - PARENT];
	uint32_t cfa = 16 + 16 * random_below(200);
	size_t at = d->size;

	if (random_below(8) == 0)
		cfa = 0;
	else
		put_frame(d, now, size, cfa);
	put_load(d, now, "f", addr, size, n_loads++);
	assert_true(SEAM_ARRAY_ADD(&frames, cfa));
	announce(pid, at);
}

static uint64_t any_addr(void)
{
	return CACHE + random_below(CACHE_BYTES);
}

static void load_or_move(int32_t pid)
{
	uint64_t addr = any_addr();
	uint32_t size = 1 + random_below(random_below(4) ? 64 : 700);
	struct dump *d = &dumps[pid - PARENT];
	size_t at;

	load_code(pid, addr, size);
	if (random_below(5))
		return;
	now += 1 + random_below(20);
	at = d->size;
	put_move(d, now, addr, any_addr(), size, n_loads - 1);
	announce(pid, at);
}

static void add_to_oracle(struct seam_jit_code *jit, int32_t pid)
{
	const struct seam_jit_code_options options = { .pid = pid };

	assert_int_equal(seam_jit_code_add_dump(jit, dump_bytes(
			&dumps[pid - PARENT]), &options, NULL), 0);
}

static void compare(struct seam_jit_code *jit, int32_t pid, uint64_t addr,
		    uint64_t time_ns)
{
	struct seam_live_jit_process *p = seam_live_jit_process(&live, pid);
	struct seam_unwind_code code = { .rules = NULL };
	struct seam_jit_location location;
	bool is_there = seam_jit_code_find_object(jit, pid, addr, time_ns,
						  &location);

	assert_int_equal(p && seam_live_jit_find(&live, p, addr, time_ns,
						 &code), is_there);
	if (is_there) {
		uint32_t frame = frames.items[seam_jit_code_object(jit,
			location.object)->code_index];

		assert_int_equal(leave(&code), frame ? STACK + frame : 0);
	}
}

static void begin(void)
{
	live = (struct seam_live_jit) { .n = 0 };
	memset(dumps, 0, sizeof(dumps));
	put_header(&dumps[0]);
	put_header(&dumps[1]);
	now = 1000;
	n_loads = 0;
	frames.n = 0;
}

static int set_up(void **state)
{
	begin();
	return 0;
}

static int tear_down(void **state)
{
	seam_live_jit_fini(&live);
	return 0;
}

UNIT_TEST(what_is_found_is_what_a_reader_of_all_records_finds)
{
	for (uint32_t round = 0; round < 60; round++) {
		struct seam_jit_code *jit = seam_jit_code_new();
		uint32_t n = 20 + round * 2;

		seed = round;
		begin();
		for (uint32_t i = 0; i < n; i++) {
			now += 1 + random_below(20);
			if (i == n / 3) {
				seam_live_jit_fork(&live, CHILD, PARENT, now);
				seam_jit_code_fork(jit, PARENT, CHILD, now);
			} else if (i == n * 3 / 4 && round % 2) {
				seam_live_jit_exec(&live, CHILD, now);
				seam_jit_code_exec(jit, CHILD, now);
			} else {
				load_or_move(i > n / 3 && random_below(2) ?
					     CHILD : PARENT);
			}
		}
		add_to_oracle(jit, PARENT);
		add_to_oracle(jit, CHILD);
		assert_int_equal(seam_jit_code_index(jit), 0);
		for (int i = 0; i < 4000; i++)
			compare(jit, PARENT + (int)random_below(2), any_addr(),
				990 + random_below((uint32_t)now - 980));
		seam_jit_code_free(jit);
		seam_live_jit_fini(&live);
	}
	free(frames.items);
	frames.items = NULL;
	frames.n = frames.cap = 0;
}

/* ---- limits ---- */

static bool is_found(int32_t pid, uint64_t addr, uint64_t time_ns)
{
	struct seam_unwind_code code;

	return seam_live_jit_find(&live, seam_live_jit_process(&live, pid),
				  addr, time_ns, &code);
}

static void put_one(int32_t pid, uint64_t time, uint64_t addr, uint64_t size)
{
	static struct dump d;

	d.size = 0;
	put_load(&d, time, "f", addr, size, 1);
	seam_live_jit_add(&live, pid, dump_bytes(&d));
}

UNIT_TEST(memory_is_bounded_whatever_a_program_loads)
{
	put_one(7, 1, CACHE, 64);
	for (uint64_t i = 0; !live.n_forgotten; i++) {
		put_one(8, 10 + i, CACHE + i * 4096, 4096);
		assert_true(live.n_links <= SEAM_LIVE_JIT_MAX_LINKS);
	}
	/* the program itself began anew, the other lost nothing */
	assert_true(live.n_links < 100);
	assert_true(is_found(7, CACHE, 5));
	assert_false(is_found(8, CACHE, UINT64_MAX));
}

static void move_one(int32_t pid, uint64_t time, uint64_t from)
{
	static struct dump d;

	d.size = 0;
	put_move(&d, time, from, from + 8192, 4096, 1);
	seam_live_jit_add(&live, pid, dump_bytes(&d));
}

/* By moves of the same code a few bytes fill the table.  Where it is then. */
static uint64_t fill(int32_t pid)
{
	uint64_t at = CACHE, time = 1;

	put_one(pid, time, at, 4096);
	for (; live.n_links + 4096 / 256 + 2 <= SEAM_LIVE_JIT_MAX_LINKS;
	     at += 8192)
		move_one(pid, ++time, at);
	return at;
}

UNIT_TEST(a_process_with_the_most_code_begins_anew_not_another)
{
	put_one(7, 1, CACHE, 64);
	fill(8);
	for (uint64_t i = 0; i < 50; i++)
		put_one(7, 2 + i, CACHE + (i + 1) * 4096, 4096);
	for (uint64_t i = 0; i < 50; i++)
		assert_true(is_found(7, CACHE + (i + 1) * 4096, 100));
	assert_true(is_found(7, CACHE, 100));
	assert_int_equal(live.n_forgotten, 1);
	/* a move that does not fit, of what is gone then */
	move_one(9, 2 * SEAM_LIVE_JIT_MAX_LINKS, fill(9));
	assert_int_equal(live.n_forgotten, 2);
	assert_false(is_found(9, CACHE, UINT64_MAX));
	assert_true(is_found(7, CACHE, 100));
	seam_live_jit_fini(&live);
	assert_int_equal(live.n_links, 0);
	assert_int_equal(live.n_frame_bytes, 0);
}

UNIT_TEST(the_tables_of_all_processes_are_bounded)
{
	static struct dump d;

	d.size = 0;
	put_frame(&d, 1, 64, 64);
	put_load(&d, 1, "f", CACHE, 64, 1);
	seam_live_jit_add(&live, 7, dump_bytes(&d));
	for (int32_t pid = 8; pid < 18; pid++) {
		seam_live_jit_add(&live, pid, dump_bytes(&d));
		/* as many as others would have */
		live.n_frame_bytes += SEAM_LIVE_JIT_MAX_FRAMES -
				      live.items[live.n - 1]->frame_bytes;
		live.items[live.n - 1]->frame_bytes = SEAM_LIVE_JIT_MAX_FRAMES;
		assert_true(live.n_frame_bytes <=
			    SEAM_LIVE_JIT_MAX_ALL_FRAMES +
			    SEAM_LIVE_JIT_MAX_FRAMES);
	}
	seam_live_jit_add(&live, 7, dump_bytes(&d));
	assert_true(live.n_frame_bytes <= SEAM_LIVE_JIT_MAX_ALL_FRAMES);
	assert_true(is_found(7, CACHE, 5));
	assert_true(is_found(17, CACHE, 5));
}

UNIT_TEST(code_that_is_replaced_for_ever_costs_no_time)
{
	for (uint64_t i = 0; i < 10000; i++)
		put_one(7, i, CACHE, 64);
	assert_true(is_found(7, CACHE, 10000));
	/* of the older ones only the newest are known */
	assert_true(is_found(7, CACHE, 9990));
	assert_false(is_found(7, CACHE, 100));
}

/* Code of 1 MiB, which is in 4,096 parts. */
static void load_large(int32_t pid)
{
	enum { SIZE = 1 << 20 };
	static uint8_t code[SIZE], bytes[SIZE + 4096];
	size_t n = seam_wire_write(&seam_jitdump_load_table,
		&(struct seam_jitdump_load) {
			.total_size = 56 + 2 + SIZE, .timestamp = 1,
			.pid = DUMP_PID, .vma = CACHE, .code_addr = CACHE,
			.code_size = SIZE, .name = "f", .code = { code, SIZE },
		}, SEAM_NATIVE, bytes, sizeof(bytes));

	seam_live_jit_add(&live, pid, (struct seam_bytes) { bytes, n });
}

/* 250 moves of 64 bytes were 65 million links. */
UNIT_TEST(moves_cost_no_more_than_their_bytes_allow)
{
	enum { N = 250, STEP = 64 };
	static struct dump d;
	/* and one part more, where it is noticed */
	uint64_t max = SEAM_LIVE_JIT_MAX_STEPS + SEAM_LIVE_JIT_MAX_OF_PART + 1;
	uint64_t before;

	put_one(7, 1, CACHE, 64);
	load_large(8);
	assert_true(is_found(8, CACHE + 5000, 5));
	before = live.n_steps;
	for (uint64_t i = 0; i < 10 * N; i++) {
		d.size = 0;
		put_move(&d, 2 + i, CACHE + i * STEP, CACHE + (i + 1) * STEP,
			 1 << 20, 1);
		seam_live_jit_add(&live, 8, dump_bytes(&d));
		max += d.size * SEAM_LIVE_JIT_STEPS_OF_BYTE;
	}
	assert_true(live.n_steps - before < max);
	/* the program itself began anew, and can load again */
	assert_int_equal(live.n_forgotten, 1);
	assert_true(is_found(7, CACHE, 5));
	load_large(8);
	assert_true(is_found(8, CACHE + 5000, 5));
}

/* As a garbage collector moves it, to where other code has been. */
UNIT_TEST(code_that_is_moved_again_and_again_is_found)
{
	enum { N = 1000, SIZE = 1024, N_ROUNDS = 50 };
	static struct dump d;
	uint64_t time = 1;

	for (uint64_t i = 0; i < N; i++)
		put_one(7, time++, CACHE + i * SIZE, SIZE);
	for (uint64_t k = 0; k < N_ROUNDS; k++) {
		for (uint64_t i = 0; i < N; i++) {
			uint64_t from = CACHE + (k % 2 * N + i) * SIZE;
			uint64_t to = CACHE + ((k + 1) % 2 * N + i) * SIZE;

			d.size = 0;
			put_move(&d, time++, from, to, SIZE, 1);
			seam_live_jit_add(&live, 7, dump_bytes(&d));
		}
	}
	for (uint64_t i = 0; i < N; i++)
		assert_true(is_found(7, CACHE + i * SIZE, time));
	assert_int_equal(live.n_forgotten, 0);
}

UNIT_TEST(processes_beyond_the_limit_replace_those_not_used)
{
	for (int32_t pid = 1; pid <= SEAM_LIVE_JIT_MAX_PROCESSES; pid++)
		put_one(pid, 1, CACHE, 64);
	assert_true(is_found(1, CACHE, 2));
	put_one(5000, 1, CACHE, 64);
	assert_true(is_found(1, CACHE, 2));
	assert_true(is_found(5000, CACHE, 2));
	assert_null(seam_live_jit_process(&live, 2));
	assert_int_equal(live.n_forgotten, 1);
	/* in the lists of those before, which are all replaced */
	for (int32_t i = 0; i < SEAM_LIVE_JIT_MAX_PROCESSES; i++)
		put_one(7000 + 3 * i, 1, CACHE, 64);
	for (int32_t i = 0; i < SEAM_LIVE_JIT_MAX_PROCESSES; i++) {
		assert_true(is_found(7000 + 3 * i, CACHE, 2));
		assert_null(seam_live_jit_process(&live, 1 + i));
	}
}

/* A group cut at every byte, and with each byte changed. */
UNIT_TEST(damaged_records_cost_their_code_only)
{
	struct dump d = { .size = 0 };
	uint8_t whole[sizeof(d.bytes)];

	put_frame(&d, 1, 64, 64);
	put_load(&d, 1, "f", CACHE, 64, 1);
	memcpy(whole, d.bytes, d.size);
	for (size_t n = 0; n < d.size; n++) {
		uint8_t *exact = malloc(n ? n : 1);

		memcpy(exact, whole, n);
		seam_live_jit_add(&live, 9, (struct seam_bytes) { exact, n });
		free(exact);
		assert_false(is_found(9, CACHE, 2));
	}
	for (size_t i = 0; i < d.size; i++) {
		struct seam_unwind_code code;
		struct seam_live_jit_process *p;

		d.bytes[i] ^= 0x81;
		seam_live_jit_add(&live, 10, dump_bytes(&d));
		d.bytes[i] ^= 0x81;
		p = seam_live_jit_process(&live, 10);
		/* a rule that is found can be used */
		if (p && seam_live_jit_find(&live, p, CACHE, 2, &code) &&
		    code.rules)
			assert_int_not_equal(leave(&code), STACK);
	}
	put_one(10, 3, CACHE, 64);
	assert_true(is_found(10, CACHE, 4));
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
