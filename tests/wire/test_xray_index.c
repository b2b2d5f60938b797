/* SPDX-License-Identifier: MIT */
/* test_xray_index.c - blocks are found, whatever their lengths say */

#include "wire/xray/xray_write.h"
#include "unit.h"
#include "xray_made.h"

enum { V1_BUFFER = 512 };

/* Three blocks of two threads, 10 calls of function 1 in each. */
static void make_log(struct made *m, unsigned int version,
		     enum seam_endian endian)
{
	made_header(m, (uint16_t)version, SEAM_XRAY_FDR, endian, 1000000000,
		    V1_BUFFER);
	for (unsigned int b = 0; b < 3; b++) {
		size_t begin = m->size;

		made_block(m, 100, 100 + (int32_t)(b & 1), 1000000 * (b + 1),
			   0, 1000 * (b + 1));
		for (unsigned int i = 0; i < 10; i++) {
			made_call(m, SEAM_XRAY_ENTRY, 1, 2);
			made_call(m, SEAM_XRAY_EXIT, 1, 3);
		}
		made_end(m, V1_BUFFER, begin);
	}
}

/* All events of all blocks; problems are added to the index's. */
static size_t count_events(struct seam_xray_index *index)
{
	static struct seam_xray_batch batch;
	size_t n = 0;

	for (size_t i = 0; i < index->blocks.n; i++) {
		struct seam_xray_block_reader reader;
		int err;

		seam_xray_block_open(&reader, index, &index->blocks.items[i]);
		do {
			err = seam_xray_block_next(&reader, &batch);
			n += batch.n;
			if (err)
				seam_xray_problems_add(&index->problems,
						       &reader.fdr.problem);
		} while (!err && batch.n);
	}
	return n;
}

static size_t count_all(struct seam_bytes bytes, struct seam_xray_index *index)
{
	assert_int_equal(seam_xray_index_build(index, bytes, NULL), 0);
	return count_events(index);
}

static struct seam_xray_index found;

/* Read @m into found: what it has, and what is wrong or lost. */
static void expect(const struct made *m, size_t n_events, uint64_t n_problems,
		   uint64_t lost_bytes, uint64_t n_extents)
{
	assert_int_equal(count_all((struct seam_bytes) { m->data, m->size },
				   &found), n_events);
	assert_int_equal(found.problems.n, n_problems);
	assert_int_equal(found.problems.lost_bytes, lost_bytes);
	assert_int_equal(found.n_extents, n_extents);
}

static void drop(struct made *m)
{
	seam_xray_index_fini(&found);
	made_free(m);
	*m = (struct made) { 0 };
}

UNIT_TEST(finds_blocks_of_every_version_and_order)
{
	for (unsigned int version = 1; version <= 5; version++) {
		for (int e = SEAM_LITTLE; e <= SEAM_BIG; e++) {
			struct made m = { 0 };

			make_log(&m, version, (enum seam_endian)e);
			expect(&m, 60, 0, 0, 0);
			assert_int_equal(found.blocks.n, 3);
			assert_int_equal(found.blocks.items[1].tid, 101);
			assert_int_equal(found.blocks.items[1].pid,
					 version >= 3 ? 100 : 0);
			assert_int_equal(found.blocks.items[2].wall_ns,
					 3000000000u);
			assert_int_equal(found.blocks.items[2].first_tsc, 3000);
			drop(&m);
		}
	}
}

UNIT_TEST(takes_a_header_alone_as_an_empty_log)
{
	for (uint16_t type = 0; type <= 1; type++) {
		struct made m = { 0 };

		made_header(&m, 3, type, SEAM_LITTLE, 1, 1);
		expect(&m, 0, 0, 0, 0);
		assert_int_equal(found.blocks.n, 0);
		drop(&m);
	}
}

UNIT_TEST(reads_on_after_extents_that_are_too_short)
{
	for (uint64_t extents = 48; extents < 400; extents++) {
		struct seam_bytes data = { (const uint8_t *)"12345", 5 };
		struct made m = { 0 };

		made_header(&m, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1, 4096);
		for (unsigned int b = 0; b < 2; b++) {
			made_block(&m, 1, 2, 1000000 * (b + 1), 0, 1000);
			for (unsigned int i = 0; i < 10; i++) {
				made_call(&m, SEAM_XRAY_ENTRY, 1, 2);
				made_record(&m, &(struct seam_xray_record) {
					.state = SEAM_XRAY_AT_TYPED,
					.data = data,
					.marker.tsc_delta = 1 });
				made_call(&m, SEAM_XRAY_EXIT, 1, 3);
			}
			made_end_with(&m, extents);
		}
		expect(&m, 60, 0, 0, 2);
		drop(&m);
	}
}

UNIT_TEST(finds_the_next_block_when_extents_are_too_long)
{
	static const uint64_t wrong[] = { 250, 1 << 20, UINT64_MAX,
					  UINT64_C(1) << 63 };

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(wrong); i++) {
		struct made m = { 0 };

		make_log(&m, 5, SEAM_LITTLE);
		m.extents_at = SEAM_XRAY_HEADER_BYTES;
		made_end_with(&m, wrong[i]);
		expect(&m, 60, 0, 0, 1);
		drop(&m);
	}
}

UNIT_TEST(an_illegal_record_costs_the_rest_of_its_block)
{
	struct made m = { 0 };
	size_t at;

	make_log(&m, 5, SEAM_LITTLE);
	/* the sixth function record of the first block: NewBuffer instead */
	at = SEAM_XRAY_HEADER_BYTES + 5 * 16 + 5 * 8;
	m.data[at] = 0x01;
	expect(&m, 5 + 40, 1, 15 * 8, 0);
	assert_int_equal(found.problems.items[0].offset, at);
	assert_string_equal(found.problems.items[0].text,
			    "NewBuffer may not follow function entry");
	drop(&m);
}

UNIT_TEST(names_what_is_wrong_with_a_preamble)
{
	struct made m = { 0 };

	make_log(&m, 5, SEAM_LITTLE);
	m.data[SEAM_XRAY_HEADER_BYTES + 32] = 0x07;	/* WallClockTime */
	expect(&m, 40, 1, 5 * 16 + 20 * 8, 0);
	assert_int_equal(found.blocks.n, 2);
	assert_int_equal(found.problems.items[0].offset,
			 SEAM_XRAY_HEADER_BYTES + 32);
	assert_string_equal(found.problems.items[0].text,
			    "TSCWrap may not follow NewBuffer");
	drop(&m);
}

UNIT_TEST(skips_rubbish_between_blocks)
{
	struct made m = { 0 };

	make_log(&m, 5, SEAM_LITTLE);
	made_put(&m, "\xee\xee\xee\xee\xee\xee\xee", 7);
	made_block(&m, 1, 2, 9000000, 0, 1);
	made_call(&m, SEAM_XRAY_ENTRY, 1, 2);
	made_end(&m, 0, 0);
	for (unsigned int i = 0; i < 100; i++)
		made_put(&m, "", 1);
	expect(&m, 61, 2, 107, 1);
	assert_int_equal(found.blocks.n, 4);
	drop(&m);
}

UNIT_TEST(reads_logs_that_were_concatenated)
{
	struct made m = { 0 };

	make_log(&m, 5, SEAM_LITTLE);
	make_log(&m, 1, SEAM_BIG);
	made_header(&m, 3, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000, 1);
	made_header(&m, 3, SEAM_XRAY_BASIC, SEAM_LITTLE, 1000000, 1);
	made_basic_call(&m, SEAM_XRAY_ENTRY, 7, 100, 1, 2);
	made_basic_call(&m, SEAM_XRAY_EXIT, 7, 200, 1, 2);
	make_log(&m, 3, SEAM_BIG);
	expect(&m, 60 + 60 + 2 + 60, 0, 0, 0);
	assert_int_equal(found.sections.n, 5);
	drop(&m);
}

enum { MAX_MARKS = 128 };

/* Where the records and the blocks of a log end. */
struct marks {
	struct made made;
	size_t n;
	struct { size_t end; unsigned int n_events; } records[MAX_MARKS];
	size_t begins[3], bodies[3], used[3], ends[3];	/* of the blocks */
};

static void mark(struct marks *m, unsigned int n_events)
{
	assert_true(m->n < MAX_MARKS);
	m->records[m->n].end = m->made.size;
	m->records[m->n++].n_events = n_events;
}

/* Three blocks with records of every size. */
static void make_marks(struct marks *m, unsigned int version,
		       enum seam_endian endian)
{
	struct made *made = &m->made;

	made_header(made, (uint16_t)version, SEAM_XRAY_FDR, endian, 1000000000,
		    V1_BUFFER);
	for (unsigned int b = 0; b < 3; b++) {
		struct seam_xray_record event = {
			.state = version == 1 ? SEAM_XRAY_AT_CUSTOM :
						SEAM_XRAY_AT_TYPED,
			.data = { (const uint8_t *)"1234567", 7 },
		};

		m->begins[b] = made->size;
		made_block(made, 100, 100, 1000000 * (b + 1), 0, 1000);
		m->bodies[b] = made->size;
		mark(m, 0);
		for (unsigned int i = 0; i < 5; i++) {
			made_call(made, SEAM_XRAY_ENTRY_ARGS, 1, 2);
			mark(m, 1);
			made_record(made, &(struct seam_xray_record) {
				.state = SEAM_XRAY_AT_ARGUMENT });
			mark(m, 1);
			made_record(made, &event);
			mark(m, 1);
			made_call(made, SEAM_XRAY_EXIT, 1, 3);
			mark(m, 1);
		}
		made_end(made, V1_BUFFER, m->begins[b]);
		m->ends[b] = made->size;
		m->used[b] = version == 1 ?
			m->bodies[b] + 5 * (8 + 16 + 23 + 8) + 16 : made->size;
	}
}

/* What a log that ends at @size must give: no more, no less. */
static void check_cut(const struct marks *m, size_t size)
{
	struct seam_bytes bytes = made_bytes(&m->made, size);
	size_t n = count_all(bytes, &found), want = 0, whole = 0, b = 0;
	bool known_length = m->made.format.version == 1;

	while (b < 2 && size > m->ends[b])
		b++;
	for (size_t i = 0; i < m->n && m->records[i].end <= size; i++) {
		want += m->records[i].n_events;
		whole = m->records[i].end;
	}
	if (whole < m->bodies[b])
		whole = m->begins[b];
	assert_int_equal(n, want);
	assert_int_equal(found.n_extents, 0);
	if (size <= m->begins[b] || size >= m->used[b]) {
		assert_int_equal(found.problems.n, 0);
	} else {
		if (size >= m->begins[b] + SEAM_XRAY_METADATA_BYTES)
			known_length = true;
		assert_int_equal(found.problems.n, 1);
		assert_int_equal(found.problems.items[0].code, -ENODATA);
		assert_non_null(strstr(found.problems.items[0].text,
				       "the file ends inside a block, "));
		assert_int_equal(found.problems.lost_bytes,
				 (known_length ? m->ends[b] : size) - whole);
	}
	seam_xray_index_fini(&found);
	free((void *)(uintptr_t)bytes.data);
}

/* What is whole stands, and all that is missing of a block is told. */
UNIT_TEST(reports_what_is_missing_wherever_a_log_ends)
{
	for (unsigned int version = 1; version <= 5; version++) {
		for (int e = SEAM_LITTLE; e <= SEAM_BIG; e++) {
			struct marks m = { 0 };

			make_marks(&m, version, (enum seam_endian)e);
			for (size_t size = SEAM_XRAY_HEADER_BYTES;
			     size <= m.made.size; size++)
				check_cut(&m, size);
			made_free(&m.made);
		}
	}
}

/*
 * A log that is cut inside the records of a block, and one behind it.  A length
 * that ends where a block or header of that one begins would be believed.
 */
UNIT_TEST(reports_a_cut_before_another_log)
{
	for (unsigned int version = 1; version <= 5; version++) {
		for (int e = SEAM_LITTLE; e <= SEAM_BIG; e++) {
			struct marks m = { 0 };
			size_t size;

			make_marks(&m, version, (enum seam_endian)e);
			size = version == 1 ? m.bodies[1] + 16 :
			       m.ends[1] - 250;
			for (; size < m.ends[1] - SEAM_XRAY_HEADER_BYTES;
			     size++) {
				struct made both = { 0 };
				size_t want = 0;

				for (size_t i = 0; i < m.n; i++)
					if (m.records[i].end <= size)
						want += m.records[i].n_events;
				made_put(&both, m.made.data, size);
				make_log(&both, version, (enum seam_endian)e);
				assert_int_equal(count_all((struct seam_bytes) {
					both.data, both.size }, &found),
					want + 60);
				assert_int_equal(found.sections.n, 2);
				assert_int_equal(found.problems.n,
						 size < m.used[1]);
				assert_int_equal(found.n_extents, 0);
				seam_xray_index_fini(&found);
				made_free(&both);
			}
			made_free(&m.made);
		}
	}
}

/* The last block's extents say @extents.  What is told to be lost. */
static uint64_t lost_to(uint64_t extents, uint64_t buffer_size,
			uint64_t *n_extents)
{
	struct made m = { 0 };
	uint64_t lost;

	made_header(&m, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1, buffer_size);
	made_block(&m, 1, 2, 1000000, 0, 1000);
	for (unsigned int i = 0; i < 10; i++)
		made_call(&m, SEAM_XRAY_ENTRY, 1, 2);
	made_end_with(&m, extents);
	assert_int_equal(count_all((struct seam_bytes) { m.data, m.size },
				   &found), 10);
	lost = found.problems.lost_bytes;
	assert_true((lost > 0) == (found.problems.n > 0));
	*n_extents = found.n_extents;
	seam_xray_index_fini(&found);
	made_free(&m);
	return lost;
}

/* A damaged length is one that no buffer has. */
UNIT_TEST(does_not_miss_more_than_a_buffer_holds)
{
	enum { HAS = 4 * 16 + 10 * 8 };
	static const struct {
		uint64_t extents, buffer_size, lost, n_extents;
	} cases[] = {
		{ HAS, 4096, 0, 0 },
		{ HAS - 8, 4096, 0, 1 },
		{ HAS + 8, 4096, 8, 0 },
		{ 4096, 4096, 4096 - HAS, 0 },
		{ UINT64_MAX, 4096, 4096 - HAS, 0 },
		{ UINT64_C(1) << 63, 4096, 4096 - HAS, 0 },
		{ HAS + 8, HAS, 0, 1 },			/* all it can have */
		{ HAS + 8, 64, 8, 0 },			/* a wrong header */
		{ HAS + 8, 0, 8, 0 },
		{ HAS + 8, UINT64_MAX, 8, 0 },
		{ UINT64_MAX, 0, 0, 1 },
		{ UINT64_MAX, UINT64_MAX, 0, 1 },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		uint64_t n;

		assert_int_equal(lost_to(cases[i].extents,
					 cases[i].buffer_size, &n),
				 cases[i].lost);
		assert_int_equal(n, cases[i].n_extents);
	}
}

/* The last block is as long as it says, or as its EndOfBuffer does. */
UNIT_TEST(does_without_the_size_of_a_buffer)
{
	struct made m = { 0 };
	size_t begin;

	made_header(&m, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1, 1);
	made_extents(&m, 200);
	expect(&m, 0, 1, 16 + 200, 0);
	drop(&m);
	made_header(&m, 1, SEAM_XRAY_FDR, SEAM_LITTLE, 1, 0);
	begin = m.size;
	made_block(&m, 1, 2, 1000000, 0, 1000);
	made_call(&m, SEAM_XRAY_ENTRY, 1, 2);
	made_end(&m, 0, begin);
	expect(&m, 1, 0, 0, 0);
	drop(&m);
}

/* One flipped byte costs one block at most. */
UNIT_TEST(loses_one_block_at_most_to_a_flipped_byte)
{
	struct made m = { 0 };

	make_log(&m, 5, SEAM_LITTLE);
	for (size_t i = SEAM_XRAY_HEADER_BYTES; i < m.size; i++) {
		for (unsigned int mask = 1; mask < 256; mask <<= 1) {
			struct seam_bytes bytes;

			m.data[i] ^= (uint8_t)mask;
			bytes = made_bytes(&m, m.size);
			assert_true(count_all(bytes, &found) >= 40);
			seam_xray_index_fini(&found);
			free((void *)(uintptr_t)bytes.data);
			m.data[i] ^= (uint8_t)mask;
		}
	}
	made_free(&m);
}

UNIT_TEST(reads_runs_of_basic_mode)
{
	for (int e = SEAM_LITTLE; e <= SEAM_BIG; e++) {
		struct seam_xray_block_reader reader;
		static struct seam_xray_batch batch;
		struct made m = { 0 };

		made_header(&m, 3, SEAM_XRAY_BASIC, (enum seam_endian)e, 5, 0);
		made_basic_call(&m, SEAM_XRAY_ENTRY, 7, 100, 1, 2);
		made_basic_call(&m, SEAM_XRAY_TAIL_EXIT, 7, 150, 1, 2);
		made_basic_call(&m, SEAM_XRAY_ENTRY, 8, UINT64_C(1) << 40, 3, 2);
		made_basic_call(&m, SEAM_XRAY_ENTRY, 9, 100, 1, 2);
		made_put(&m, "cut", 3);
		expect(&m, 4, 1, 3, 0);
		assert_int_equal(found.blocks.n, 3);
		assert_int_equal(found.blocks.items[1].tid, 3);
		assert_int_equal(found.blocks.items[1].pid, 2);
		seam_xray_block_open(&reader, &found, &found.blocks.items[0]);
		seam_xray_block_next(&reader, &batch);
		assert_int_equal(batch.n, 2);
		assert_int_equal(batch.events[1].kind, SEAM_XRAY_TAIL_EXIT);
		assert_int_equal(batch.events[1].function, 7);
		assert_int_equal(batch.events[1].tsc, 150);
		assert_int_equal(batch.events[1].cpu, 1);
		drop(&m);
	}
}

UNIT_TEST(an_argument_of_basic_mode_is_of_the_entry_before)
{
	static const uint8_t entries[] = {
		SEAM_XRAY_ENTRY, SEAM_XRAY_ENTRY_ARGS,
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(entries); i++) {
		struct made m = { 0 };

		made_header(&m, 3, SEAM_XRAY_BASIC, SEAM_LITTLE, 5, 0);
		made_basic_call(&m, entries[i], 7, 100, 1, 2);
		/* thread 1 of process 2; the value is where a call has these */
		made_basic_call(&m, SEAM_XRAY_ENTRY, 7, UINT64_C(2) << 32 | 1,
				4711, 0);
		m.data[64] = 1;
		expect(&m, 2, 0, 0, 0);
		drop(&m);
	}
}

UNIT_TEST(refuses_what_is_no_record_of_basic_mode)
{
	static const struct { size_t at; uint8_t value; } wrong[] = {
		{ 0, 2 }, { 1, 1 }, { 3, 4 }, { 7, 0x80 },
		{ 0, 1 },	/* an argument of function 7: nobody's */
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(wrong); i++) {
		struct made m = { 0 };

		made_header(&m, 3, SEAM_XRAY_BASIC, SEAM_LITTLE, 5, 0);
		made_basic_call(&m, SEAM_XRAY_ENTRY, 6, 100, 1, 2);
		made_basic_call(&m, SEAM_XRAY_ENTRY, 7, 100, 1, 2);
		made_basic_call(&m, SEAM_XRAY_EXIT, 6, 100, 1, 2);
		m.data[64 + wrong[i].at] = wrong[i].value;
		expect(&m, 2, 1, 32, 0);
		assert_int_equal(found.problems.items[0].offset, 64);
		drop(&m);
	}
}

UNIT_TEST(reads_what_it_writes)
{
	static const struct seam_xray_event events[] = {
		{ .kind = SEAM_XRAY_ENTRY_ARGS, .function = 5, .tsc = 60,
		  .cpu = 3 },
		{ .kind = SEAM_XRAY_ARGUMENT, .tsc = UINT64_MAX },
		{ .kind = SEAM_XRAY_TYPED, .tsc = 61, .cpu = 3 },
		{ .kind = SEAM_XRAY_CUSTOM, .cpu = 3,
		  .tsc = 61 + (UINT64_C(1) << 40) },
		{ .kind = SEAM_XRAY_EXIT, .function = 5, .tsc = 20, .cpu = 4 },
	};
	struct seam_xray_payload payload = { { (const uint8_t *)"ab", 2 }, 9 };
	struct seam_xray_writer w;
	char *data = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&data, &size);
	static struct seam_xray_batch batch;
	struct seam_xray_block_reader reader;

	seam_xray_writer_init(&w, out, 5, 4096);
	seam_xray_writer_block(&w, &(struct seam_xray_block_start) {
		.pid = 7, .tid = 8, .wall_ns = 1234567000, .tsc = 50,
		.cpu = 3 });
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(events); i++)
		seam_xray_writer_put(&w, &events[i], &payload);
	assert_int_equal(seam_xray_writer_end(&w, NULL), 0);
	fclose(out);
	assert_int_equal(count_all((struct seam_bytes) {
			(const uint8_t *)data, size }, &found), 5);
	assert_int_equal(found.problems.n, 0);
	assert_int_equal(found.blocks.items[0].pid, 7);
	assert_int_equal(found.blocks.items[0].tid, 8);
	assert_int_equal(found.blocks.items[0].wall_ns, 1234567000);
	assert_int_equal(found.blocks.items[0].first_tsc, 50);
	seam_xray_block_open(&reader, &found, &found.blocks.items[0]);
	seam_xray_block_next(&reader, &batch);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(events); i++) {
		assert_int_equal(batch.events[i].kind, events[i].kind);
		assert_int_equal(batch.events[i].tsc, events[i].tsc);
	}
	assert_int_equal(batch.payloads[0].type, 9);
	assert_int_equal(batch.events[4].cpu, 4);
	seam_xray_index_fini(&found);
	free(data);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
