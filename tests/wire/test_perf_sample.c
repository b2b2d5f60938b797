/* SPDX-License-Identifier: MIT */
/* test_perf_sample.c - two readers of a sample, held against each other */
#include "wire/perf/perf_sample.h"

#include "../perf_bytes.h"
#include "unit.h"

/* Deterministic; the sequence is the test's input. */
static uint64_t random_state = 42;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Every field that an attr asks for, in the order of the kernel's. */
static void put_any_sample(struct bytes *b, const struct seam_perf_attr *a)
{
	static const uint64_t words[] = {
		PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP, PERF_SAMPLE_TID,
		PERF_SAMPLE_TIME, PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
		PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU, PERF_SAMPLE_PERIOD,
	};
	static const uint64_t tail[] = {
		PERF_SAMPLE_WEIGHT, PERF_SAMPLE_DATA_SRC,
		PERF_SAMPLE_TRANSACTION, PERF_SAMPLE_PHYS_ADDR,
		PERF_SAMPLE_CGROUP, PERF_SAMPLE_DATA_PAGE_SIZE,
	};
	uint64_t n = random_u64() % 5;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(words); i++)
		if (a->sample_type & words[i])
			put_u64(b, random_u64());
	if (a->sample_type & PERF_SAMPLE_CALLCHAIN) {
		put_u64(b, n);
		for (uint64_t i = 0; i < n; i++)
			put_u64(b, random_u64());
	}
	if (a->sample_type & PERF_SAMPLE_RAW) {
		put_u32(b, 4 + 8 * n);
		for (uint64_t i = 0; i < 4 + 8 * n; i++)
			put_n(b, 0x5a, 1);
	}
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(tail); i++)
		if (a->sample_type & tail[i])
			put_u64(b, random_u64());
}

static struct seam_perf_attr random_attr(void)
{
	const uint64_t any = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
		PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
		PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
		PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
		PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC |
		PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_PHYS_ADDR |
		PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE;

	return (struct seam_perf_attr) { .sample_type = random_u64() & any };
}

static void assert_same(const struct seam_perf_core *core,
			const struct seam_perf_sample *sample)
{
	assert_int_equal(core->ip, sample->ip);
	assert_int_equal(core->time, sample->time);
	assert_int_equal(core->period, sample->period);
	assert_int_equal(core->pid, sample->pid);
	assert_int_equal(core->tid, sample->tid);
	assert_int_equal(core->cpu, sample->cpu);
	assert_int_equal(core->id, sample->id);
	assert_int_equal(core->cgroup, sample->cgroup);
	assert_int_equal(core->n_chain, sample->callchain.n);
	if (core->n_chain)
		assert_ptr_equal(core->chain, sample->callchain.data);
}

UNIT_TEST(the_fast_reader_agrees_with_the_whole_one)
{
	for (int i = 0; i < 20000; i++) {
		struct seam_perf_attr attr = random_attr();
		struct seam_perf_layout layout =
			seam_perf_layout_make(&attr, SEAM_LITTLE);
		struct bytes b = { .endian = SEAM_LITTLE };
		struct seam_perf_sample sample;
		struct seam_perf_core core = { 0 };
		struct seam_bytes bytes;
		size_t cut;

		put_any_sample(&b, &attr);
		bytes = exact(b.data, b.size);
		assert_true(layout.is_usable);
		assert_int_equal(seam_perf_sample_read(&attr, SEAM_LITTLE,
						       bytes, &sample), 0);
		assert_true(seam_perf_layout_read(&layout, bytes, &core));
		assert_same(&core, &sample);
		free_exact(bytes);

		/* Cut anywhere: the fast one never knows more. */
		cut = b.size ? random_u64() % b.size : 0;
		bytes = exact(b.data, cut);
		if (seam_perf_sample_read(&attr, SEAM_LITTLE, bytes,
					  &sample) == 0 && b.size)
			fail();
		if (seam_perf_layout_read(&layout, bytes, &core))
			assert_true(core.n_chain * 8 <= cut);
		free_exact(bytes);
		free(b.data);
	}
}

UNIT_TEST(declines_what_it_is_not_made_for)
{
	struct seam_perf_attr attr = { .sample_type = PERF_SAMPLE_READ };

	assert_false(seam_perf_layout_make(&attr, SEAM_LITTLE).is_usable);
	attr.sample_type = PERF_SAMPLE_REGS_USER;
	assert_false(seam_perf_layout_make(&attr, SEAM_LITTLE).is_usable);
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_CGROUP;
	assert_false(seam_perf_layout_make(&attr, SEAM_LITTLE).is_usable);
	attr.sample_type = PERF_SAMPLE_IP;
	assert_false(seam_perf_layout_make(&attr, SEAM_BIG).is_usable);
}

UNIT_TEST(reads_everything_in_both_byte_orders)
{
	for (int e = SEAM_LITTLE; e <= SEAM_BIG; e++) {
		struct bytes b = { .endian = (enum seam_endian)e };
		struct seam_perf_attr attr = {
			.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN |
				PERF_SAMPLE_BRANCH_STACK |
				PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |
				PERF_SAMPLE_CGROUP | PERF_SAMPLE_AUX,
			.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID |
				PERF_FORMAT_TOTAL_TIME_ENABLED,
			.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX,
			.sample_regs_user = 0x103,	/* ax bx ip */
		};
		struct seam_perf_sample s;

		put_u64(&b, 0x401000);
		put_u32(&b, 11);
		put_u32(&b, 12);
		put_u64(&b, 2);		/* READ: two counters */
		put_u64(&b, 5);		/* time enabled */
		for (uint64_t i = 0; i < 4; i++)
			put_u64(&b, 100 + i);
		put_u64(&b, 1);		/* callchain */
		put_u64(&b, 0x401000);
		put_u64(&b, 1);		/* branches */
		put_u64(&b, 77);	/* hw_idx */
		for (uint64_t i = 0; i < 3; i++)
			put_u64(&b, 200 + i);
		put_u64(&b, 2);		/* regs: 64-bit ABI */
		for (uint64_t i = 0; i < 3; i++)
			put_u64(&b, 300 + i);
		put_u64(&b, 8);		/* stack */
		put_u64(&b, 0x0102030405060708);
		put_u64(&b, 4);		/* of which 4 are valid */
		put_u64(&b, 0xc6);	/* cgroup */
		put_u64(&b, 8);		/* aux */
		put_u64(&b, 0);

		assert_int_equal(seam_perf_sample_read(&attr, b.endian,
			(struct seam_bytes) { b.data, b.size }, &s), 0);
		assert_int_equal(s.pid, 11);
		assert_int_equal(s.tid, 12);
		assert_int_equal(s.read.n, 6);
		assert_int_equal(seam_perf_u64(&s.read, 5), 103);
		assert_int_equal(seam_perf_u64(&s.callchain, 0), 0x401000);
		assert_int_equal(s.branch_hw_index, 77);
		assert_int_equal(seam_perf_u64(&s.branches, 2), 202);
		assert_int_equal(s.user_regs.values.n, 3);
		assert_int_equal(seam_perf_u64(&s.user_regs.values, 2), 302);
		assert_int_equal(s.user_stack.size, 4);
		assert_int_equal(s.cgroup, 0xc6);
		assert_int_equal(s.aux.size, 8);
		free(b.data);
	}
}

/* Where the ids are is what tells events apart: all orders of fields. */
UNIT_TEST(the_id_is_found_before_the_rest_is_read)
{
	static const uint64_t bits[] = {
		PERF_SAMPLE_IP, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
		PERF_SAMPLE_ADDR, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,
		PERF_SAMPLE_IDENTIFIER,
	};

	for (unsigned int mask = 0; mask < 1 << SEAM_ARRAY_SIZE(bits);
	     mask++) {
		struct bytes b = { .endian = mask % 3 ? SEAM_LITTLE :
						       SEAM_BIG };
		struct seam_perf_attr attr = {
			.sample_type = PERF_SAMPLE_ID,
		};
		struct seam_perf_sample sample;
		struct seam_bytes payload;

		for (size_t i = 0; i < SEAM_ARRAY_SIZE(bits); i++)
			if (mask >> i & 1)
				attr.sample_type |= bits[i];
		if (attr.sample_type & PERF_SAMPLE_IDENTIFIER)
			attr.sample_type &= ~(uint64_t)PERF_SAMPLE_ID;
		for (uint64_t i = 0; i < SEAM_ARRAY_SIZE(bits) + 1; i++)
			put_u64(&b, 100 + i);
		payload = (struct seam_bytes) { b.data, b.size };
		assert_int_equal(seam_perf_sample_read(&attr, b.endian,
						       payload, &sample), 0);
		assert_int_equal(seam_perf_sample_peek_id(&attr, b.endian,
							  payload), sample.id);
		free(b.data);
	}
}

/* Counts that are lies: 2^32, 2^61 and more entries. */
UNIT_TEST(a_count_that_cannot_fit_is_refused)
{
	static const uint64_t lies[] = {
		2, UINT32_MAX, UINT64_C(1) << 32, UINT64_C(1) << 61,
		UINT64_MAX / 8, UINT64_MAX,
	};
	static const uint64_t kinds[] = {
		PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_BRANCH_STACK,
		PERF_SAMPLE_STACK_USER, PERF_SAMPLE_AUX, PERF_SAMPLE_READ,
	};

	for (size_t k = 0; k < SEAM_ARRAY_SIZE(kinds); k++) {
		for (size_t i = 0; i < SEAM_ARRAY_SIZE(lies); i++) {
			struct seam_perf_attr attr = {
				.sample_type = kinds[k],
				.read_format = PERF_FORMAT_GROUP,
			};
			struct bytes b = { .endian = SEAM_LITTLE };
			struct seam_perf_sample s;
			struct seam_bytes bytes;

			put_u64(&b, lies[i]);
			if (kinds[k] != PERF_SAMPLE_AUX &&
			    kinds[k] != PERF_SAMPLE_STACK_USER)
				put_u64(&b, 1);
			bytes = exact(b.data, b.size);
			assert_int_equal(seam_perf_sample_read(&attr,
				SEAM_LITTLE, bytes, &s), -EBADMSG);
			free_exact(bytes);
			free(b.data);
		}
	}
}

/* The kernel's order: value 100 + number, where the mask has it. */
static struct seam_perf_regs made(uint64_t *values, uint64_t abi, uint64_t mask)
{
	struct seam_perf_regs regs = {
		.abi = abi, .mask = mask,
		.values.data = (const uint8_t *)values,
	};

	for (unsigned int i = 0; i < 64; i++)
		if (mask >> i & 1)
			values[regs.values.n++] = 100 + i;
	return regs;
}

UNIT_TEST(each_register_gets_its_column)
{
	/* AX DX CX BX SI DI BP SP R8..R15 IP, by the kernel's numbers */
	static const uint8_t numbers[] = {
		0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8,
	};
	uint64_t values[64], columns[SEAM_PERF_X86_64_COLUMNS], known;
	struct seam_perf_regs regs = made(values, 2, SEAM_PERF_X86_64_MASK);

	assert_true(seam_perf_registers_x86_64(&regs, columns, &known));
	assert_int_equal(known, 0x1ffff);
	for (size_t i = 0; i < SEAM_PERF_X86_64_COLUMNS; i++)
		assert_int_equal(columns[i], 100 + numbers[i]);
	assert_int_equal(seam_perf_registers_pc(&regs, "x86_64"), 108);
	/* flags and segments between them change nothing */
	regs = made(values, 2, 0xffffff);
	assert_true(seam_perf_registers_x86_64(&regs, columns, &known));
	for (size_t i = 0; i < SEAM_PERF_X86_64_COLUMNS; i++)
		assert_int_equal(columns[i], 100 + numbers[i]);
}

UNIT_TEST(what_is_not_in_the_mask_is_not_known)
{
	uint64_t values[64], columns[SEAM_PERF_X86_64_COLUMNS], known;
	/* BP, SP, IP */
	struct seam_perf_regs regs = made(values, 2, 0x1c0);

	assert_true(seam_perf_registers_x86_64(&regs, columns, &known));
	assert_int_equal(known, 1 << 6 | 1 << 7 | 1 << 16);
	assert_int_equal(columns[6], 106);
	assert_int_equal(columns[7], 107);
	assert_int_equal(columns[16], 108);
	assert_int_equal(columns[3], 0);
	/* without stack pointer or program counter there is no frame */
	regs = made(values, 2, 0x140);
	assert_false(seam_perf_registers_x86_64(&regs, columns, &known));
	regs = made(values, 2, 0xc0);
	assert_false(seam_perf_registers_x86_64(&regs, columns, &known));
}

UNIT_TEST(tasks_of_32_bits_and_registers_of_0_are_refused)
{
	uint64_t values[64], columns[SEAM_PERF_X86_64_COLUMNS], known;
	struct seam_perf_regs regs = made(values, 1, SEAM_PERF_X86_64_MASK);

	assert_false(seam_perf_registers_x86_64(&regs, columns, &known));
	assert_int_equal(known, 0);
	regs.abi = 0;
	assert_false(seam_perf_registers_x86_64(&regs, columns, &known));
	assert_int_equal(seam_perf_registers_pc(&regs, "x86_64"), 0);
	/* within an exec all are 0 */
	regs = made(values, 2, SEAM_PERF_X86_64_MASK);
	memset(values, 0, sizeof(values));
	assert_false(seam_perf_registers_x86_64(&regs, columns, &known));
}

/* A mask that has more bits than there are values reads none beyond them. */
UNIT_TEST(values_that_are_missing_are_0)
{
	uint64_t values[64], columns[SEAM_PERF_X86_64_COLUMNS], known;
	struct seam_perf_regs regs = made(values, 2, SEAM_PERF_X86_64_MASK);

	regs.values.n = 8;
	assert_true(seam_perf_registers_x86_64(&regs, columns, &known));
	assert_int_equal(columns[SEAM_PERF_X86_64_SP], 107);
	assert_int_equal(columns[SEAM_PERF_X86_64_PC], 0);
}

UNIT_TEST(the_program_counter_of_other_machines)
{
	uint64_t values[64];
	struct seam_perf_regs regs = made(values, 2, (UINT64_C(1) << 33) - 1);

	assert_int_equal(seam_perf_registers_pc(&regs, "aarch64"), 132);
	assert_int_equal(seam_perf_registers_pc(&regs, "armv7l"), 115);
	assert_int_equal(seam_perf_registers_pc(&regs, "riscv64"), 100);
	assert_int_equal(seam_perf_registers_pc(&regs, "s390x"), 0);
	assert_int_equal(seam_perf_registers_pc(&regs, "vax"), 0);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
