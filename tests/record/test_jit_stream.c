/* SPDX-License-Identifier: MIT */
/* test_jit_stream.c - what a stream may say, and what becomes of it */

#include "../folder.h"
#include "base/clock.h"
#include "base/file.h"
#include "record/services/jit_service.h"
#include "ring/layout.h"
#include "unit.h"

enum { PID = 4711, ADDR = 0x1000, MAX = 512 };

static struct seam_jit_service jit;
static struct seam_bundle bundle;
static uint64_t since_ns;

static int set_up(void **state)
{
	if (make_folder(state))
		return -1;
	seam_jit_service_init(&jit, 4096);
	jit.bundle = &bundle;
	jit.folder = open(folder, O_DIRECTORY | O_CLOEXEC);
	since_ns = seam_clock_ns();
	return 0;
}

static int tear_down(void **state)
{
	seam_jit_service_fini(&jit);
	return drop_folder(state);
}

/* ---- groups ---- */

static uint8_t *put(uint8_t *to, uint64_t v, size_t size)
{
	memcpy(to, &v, size);
	return to + size;
}

/* A load with a line before it; the bytes it takes. */
static size_t make_group(uint8_t *to, uint64_t time_ns, uint64_t id)
{
	uint8_t *p = to;

	p = put(p, SEAM_JITDUMP_DEBUG_INFO, 4);
	p = put(p, 32 + 16 + 2, 4);
	p = put(p, time_ns, 8);
	p = put(p, ADDR, 8);
	p = put(p, 1, 8);
	p = put(p, ADDR, 8);
	p = put(p, 7, 4);
	p = put(p, 0, 4);
	p = put(p, 'c', 2);
	p = put(p, SEAM_JITDUMP_LOAD, 4);
	p = put(p, 56 + 2 + 3, 4);
	p = put(p, time_ns, 8);
	p = put(p, 1, 4);
	p = put(p, 1, 4);
	p = put(p, ADDR, 8);
	p = put(p, ADDR, 8);
	p = put(p, 3, 8);
	p = put(p, id, 8);
	p = put(p, 'f', 2);
	p = put(p, 0xc3c031, 3);
	return (size_t)(p - to);
}

/* One chunk, in a record that is exactly as long as it may be. */
static void give(struct seam_jit_stream *stream, uint32_t flags,
		 const uint8_t *bytes, size_t size)
{
	struct seam_ring_header header = {
		.type = PERF_RECORD_SAMPLE,
		.size = (uint16_t)((16 + size + 7) & ~(size_t)7),
	};
	struct seam_jit_chunk chunk = { flags, (uint32_t)size };
	uint8_t *record = calloc(1, header.size);
	struct seam_service_stream of = {
		.service = &jit.service, .state = stream,
	};

	memcpy(record, &header, sizeof(header));
	memcpy(record + 8, &chunk, sizeof(chunk));
	if (size)
		memcpy(record + 16, bytes, size);
	jit.service.take(&of, record, header.size);
	free(record);
}

static void give_group(struct seam_jit_stream *stream, const uint8_t *bytes,
		       size_t size)
{
	give(stream, SEAM_JIT_CHUNK_FIRST | SEAM_JIT_CHUNK_LAST, bytes, size);
}

static struct seam_jit_stream *begin(void)
{
	struct seam_service_stream of = {
		.service = &jit.service, .pid = PID, .since_ns = since_ns,
	};

	assert_int_equal(jit.service.begin(&of), 0);
	return of.state;
}

static void end(struct seam_jit_stream *stream, uint64_t n_offered)
{
	const struct seam_owner_counts counts = { .n_offered = n_offered };

	jit.service.end(&(struct seam_service_stream) {
		.service = &jit.service, .state = stream }, &counts);
}

static void write_dumps(void)
{
	struct seam_synth round = { 0 };

	jit.service.finish_round(&jit.service, &round);
	seam_synth_fini(&round);
}

/* ---- the dump ---- */

/* The last load and how many; the file is as specified, whatever came. */
static size_t read_back(struct seam_jitdump_load *last)
{
	struct seam_jitdump_reader reader;
	struct seam_jitdump_record record;
	struct seam_file file;
	char path[128];
	size_t n = 0;

	snprintf(path, sizeof(path), "%s/jit-%d.dump", folder, PID);
	assert_int_equal(seam_file_open(&file, path, NULL), 0);
	assert_int_equal(seam_jitdump_begin(&reader, file.bytes, NULL), 0);
	assert_int_equal(reader.header.pid, PID);
	while (seam_jitdump_next(&reader, &record)) {
		assert_in_range(record.prefix.timestamp, since_ns,
				seam_clock_ns());
		if (record.id != SEAM_JITDUMP_LOAD)
			continue;
		assert_int_equal(record.load.pid, PID);
		*last = record.load;
		last->name = NULL;
		n++;
	}
	for (int i = 0; i < SEAM_JITDUMP_N_NOTES; i++)
		assert_int_equal(reader.n_notes[i], 0);
	assert_int_equal(reader.tail_bytes, 0);
	seam_file_close(&file);
	return n;
}

UNIT_TEST(a_group_is_one_however_it_is_cut)
{
	struct seam_jit_stream *stream = begin();
	struct seam_jitdump_load load;
	uint8_t group[MAX];
	size_t size = make_group(group, since_ns, 5);

	for (size_t cut = 0; cut <= size; cut++) {
		give(stream, SEAM_JIT_CHUNK_FIRST, group, cut);
		give(stream, 0, group, 0);
		give(stream, SEAM_JIT_CHUNK_LAST, group + cut, size - cut);
	}
	assert_int_equal(stream->n_taken, size + 1);
	end(stream, size + 3);
	write_dumps();
	assert_int_equal(read_back(&load), size + 1);
	assert_int_equal(load.code_index, 5);
	assert_int_equal(jit.n_bad, 0);
	assert_int_equal(jit.n_offered - jit.n_taken, 2);
	assert_int_equal(jit.n_group_bytes, 0);
}

UNIT_TEST(a_group_that_ends_early_is_dropped)
{
	struct seam_jit_stream *stream = begin();
	struct seam_jitdump_load load;
	uint8_t group[MAX];
	size_t size = make_group(group, since_ns, 5);

	for (size_t n = 1; n < size; n++) {
		uint8_t *cut = malloc(n);

		memcpy(cut, group, n);
		give_group(stream, cut, n);
		free(cut);
	}
	/* Its first is missing, its last never comes: neither is one. */
	give(stream, SEAM_JIT_CHUNK_LAST, group, size);
	give(stream, SEAM_JIT_CHUNK_FIRST, group, size);
	assert_int_equal(jit.n_bad, size - 1);
	end(stream, 0);
	write_dumps();
	assert_int_equal(jit.n_bad, size - 1);
	assert_int_equal(read_back(&load), 0);
}

UNIT_TEST(no_byte_makes_a_dump_that_is_not_clean)
{
	static const uint8_t values[] = { 0, 1, 2, 3, 4, 0x7f, 0x80, 0xff };
	struct seam_jit_stream *stream = begin();
	struct seam_jitdump_load load;
	uint8_t group[MAX];
	size_t size = make_group(group, since_ns, 5);
	uint64_t n = 0;

	for (size_t i = 0; i < size; i++)
		for (size_t k = 0; k < sizeof(values); k++, n++) {
			make_group(group, since_ns, 5);
			group[i] = values[k];
			give_group(stream, group, size);
		}
	assert_int_equal(stream->n_taken + jit.n_bad, n);
	assert_true(jit.n_bad > n / 4 && stream->n_taken > n / 4);
	n = stream->n_taken;
	end(stream, n);
	write_dumps();
	assert_int_equal(read_back(&load), n);
}

UNIT_TEST(two_groups_in_one_are_none)
{
	struct seam_jit_stream *stream = begin();
	uint8_t group[2 * MAX];
	size_t size = make_group(group, since_ns, 5);

	size += make_group(group + size, since_ns, 6);
	give_group(stream, group, size);
	assert_int_equal(jit.n_bad, 1);
	assert_int_equal(stream->n_taken, 0);
	end(stream, 0);
}

UNIT_TEST(times_and_threads_are_bounded)
{
	struct seam_jit_stream *stream = begin();
	struct seam_jitdump_load load;
	uint8_t group[MAX];

	/* read_back() looks at the times */
	give_group(stream, group, make_group(group, 0, 1));
	give_group(stream, group, make_group(group, UINT64_MAX, 1));
	end(stream, 2);
	write_dumps();
	assert_int_equal(read_back(&load), 2);
	assert_int_equal(load.tid, PID);	/* 1 is no thread of ours */
}

UNIT_TEST(streams_of_one_process_keep_their_ids_apart)
{
	struct seam_jit_stream *first = begin(), *second = begin();
	struct seam_jitdump_load load;
	uint8_t group[MAX];

	give_group(first, group, make_group(group, since_ns, 5));
	give_group(second, group,
		   make_group(group, since_ns, UINT64_MAX << 40 | 5));
	end(first, 1);
	end(second, 1);
	write_dumps();
	assert_int_equal(read_back(&load), 2);
	assert_int_equal(load.code_index, UINT64_C(1) << 32 | 5);
	assert_int_equal(jit.n_streams, 2);
}

UNIT_TEST(a_full_disk_loses_whole_groups_and_counts_them)
{
	struct rlimit all, little = { .rlim_cur = 1000 };
	struct seam_jit_stream *stream = begin();
	struct seam_jitdump_load load;
	uint8_t group[MAX];

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &all);
	little.rlim_max = all.rlim_max;
	setrlimit(RLIMIT_FSIZE, &little);
	for (int i = 0; i < 20; i++) {
		give_group(stream, group, make_group(group, since_ns, 5));
		write_dumps();
	}
	setrlimit(RLIMIT_FSIZE, &all);
	assert_true(jit.n_unwritten > 5 && jit.n_written > 5);
	assert_int_equal(jit.n_unwritten + jit.n_written, 20);
	assert_int_equal(read_back(&load), jit.n_written);
	give_group(stream, group, make_group(group, since_ns, 5));
	end(stream, 21);
	write_dumps();
	assert_int_equal(read_back(&load), jit.n_written);
	assert_int_equal(jit.n_unwritten + jit.n_written, 21);
}

UNIT_TEST(a_group_without_end_is_given_up)
{
	struct seam_jit_stream *stream = begin();
	uint8_t *bytes = calloc(1, 60000);
	size_t n = 0;

	give(stream, SEAM_JIT_CHUNK_FIRST, bytes, 60000);
	while (jit.n_bad == 0) {
		assert_true(n++ < SEAM_JIT_MAX_GROUP / 60000 + 1);
		give(stream, 0, bytes, 60000);
	}
	assert_int_equal(jit.n_group_bytes, 0);
	end(stream, 0);
	free(bytes);
}

/* A load of @code_size bytes, of the heap. */
static uint8_t *make_large(size_t code_size, size_t *size)
{
	uint8_t *group, *p;

	*size = 56 + 2 + code_size;
	p = group = calloc(1, *size);
	p = put(p, SEAM_JITDUMP_LOAD, 4);
	p = put(p, *size, 4);
	p = put(p, since_ns, 8);
	p = put(p, 1, 4);
	p = put(p, 1, 4);
	p = put(p, ADDR, 8);
	p = put(p, ADDR, 8);
	p = put(p, code_size, 8);
	p = put(p, 5, 8);
	put(p, 'f', 2);
	return group;
}

static void give_in_parts(struct seam_jit_stream *stream, uint8_t *bytes,
			  size_t size, uint32_t last)
{
	enum { PART = 60000 };

	for (size_t at = 0; at < size; at += PART) {
		bool is_last = size - at <= PART;

		give(stream, (at ? 0 : SEAM_JIT_CHUNK_FIRST) |
		     (is_last ? last : 0), bytes + at,
		     is_last ? size - at : PART);
	}
}

static size_t held_by(const struct seam_jit_stream *stream)
{
	return stream->group.cap;
}

UNIT_TEST(the_memory_of_a_large_piece_is_given_back)
{
	enum { LITTLE = 64 << 10 };
	struct seam_jit_stream *stream = begin();
	struct seam_jitdump_load load;
	size_t size;
	uint8_t *group = make_large(5 << 20, &size);

	give_in_parts(stream, group, size, 0);
	/* What is held counts, not what is used of it. */
	assert_true(jit.n_group_bytes >= held_by(stream));
	give_in_parts(stream, group, size, SEAM_JIT_CHUNK_LAST);
	write_dumps();
	assert_true(held_by(stream) <= LITTLE);
	assert_int_equal(jit.n_group_bytes, held_by(stream));
	assert_true(jit.files.items[0].pending.cap <= LITTLE);
	assert_int_equal(read_back(&load), 1);
	assert_int_equal(jit.n_bad, 1);	/* that it began again */
	end(stream, 1);
	assert_int_equal(jit.n_group_bytes, 0);
	free(group);
}

UNIT_TEST(who_never_ends_a_group_takes_nobodys_names)
{
	enum { N_LIARS = 12 };
	struct seam_jit_stream *liars[N_LIARS], *honest = begin();
	struct seam_jitdump_load load;
	uint8_t *lie = calloc(1, SEAM_JIT_MAX_GROUP), small[MAX], *large;
	size_t small_size = make_group(small, since_ns, 5), large_size;

	assert_non_null(lie);
	large = make_large(8 << 20, &large_size);
	for (int i = 0; i < N_LIARS; i++) {
		liars[i] = begin();
		give_in_parts(liars[i], lie, SEAM_JIT_MAX_GROUP, 0);
		assert_true(jit.n_group_bytes <= 256 << 20);
	}
	give_group(honest, small, small_size);
	give_in_parts(honest, large, large_size, SEAM_JIT_CHUNK_LAST);
	assert_int_equal(honest->n_taken, 2);
	assert_in_range(jit.n_bad, 1, N_LIARS);
	for (int i = 0; i < N_LIARS; i++)
		end(liars[i], 1);
	end(honest, 2);
	assert_int_equal(jit.n_group_bytes, 0);
	write_dumps();
	assert_int_equal(read_back(&load), 2);
	assert_int_equal(jit.n_offered - jit.n_taken, N_LIARS);
	free(large);
	free(lie);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
