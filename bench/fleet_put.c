/* SPDX-License-Identifier: MIT */
/*
 * fleet_put.c - put a made day of a fleet into a store, and time it
 *
 *	fleet_put WHERE ROWS ROWS_A_BATCH
 *
 * A batch is of one host of 200 and one service of 20, with up to 3,200
 * distinct stacks of 8 to 47 frames, some far more often than others, and
 * windows of the whole day 2026-11-20.  Prints what was put, and rows a second:
 * of seam_fleet_put() alone, as in a sender, which finds files that are made.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "fleet/store.h"
#include "wire/fleet/batch_file.h"
#include "wire/fleet/batch_ids.h"

#define DAY_NS (UINT64_C(20777) * 86400 * SEAM_NS_PER_S)

enum {
	SERVICES = 20, HOSTS = 200, STACKS = 3200, FRAMES = 1000,
	WINDOWS = 8640, THREADS = 64, THREAD_NAMES = 8,
};

static uint64_t state = UINT64_C(88172645463325252);

/* xorshift64 */
static uint64_t chance(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % below;
}

static uint32_t text(struct seam_batch *b, const char *format, uint64_t n)
{
	char buf[100];

	snprintf(buf, sizeof(buf), format, (unsigned int)n);
	return seam_strings_put(&b->strings, buf);
}

static void add_frames(struct seam_batch *b, uint64_t service)
{
	for (uint64_t i = 0; i < FRAMES; i++) {
		struct seam_batch_frame frame = {
			.layer = (uint8_t)(1 + i % 4), .is_named = true,
			.function = text(b, "function_%u(void *, size_t)",
					 service * FRAMES + i),
			.file = text(b, "/usr/src/service/file%u.c", i / 50),
			.module = text(b, "/usr/lib/libservice%u.so", i % 40),
			.build_id = text(b, "00112233445566778899aabb%08x",
					 i % 40),
			.line = (uint32_t)i, .offset = i * 16,
		};

		frame.id = seam_batch_frame_id(b, &frame);
		if (!SEAM_ARRAY_ADD(&b->frames, frame))
			abort();
	}
}

/* Outer frames are shared by many stacks, as callers are. */
static void add_stacks(struct seam_batch *b)
{
	for (uint64_t i = 0; i < STACKS; i++) {
		uint64_t salt = i * UINT64_C(0x9e3779b97f4a7c15);
		struct seam_batch_stack stack = {
			.first = (uint32_t)b->frame_ids.n,
			.n = (uint32_t)(8 + (salt >> 32) % 40),
		};

		for (uint64_t k = 0; k < stack.n; k++) {
			uint64_t at = k < 4 ? k * 7 : k < 12 ? i / 64 + k :
				      i / 4 + k * 131;

			if (!SEAM_ARRAY_ADD(&b->frame_ids, b->frames.items[
					at % FRAMES].id))
				abort();
		}
		stack.id = seam_batch_stack_id(&b->frame_ids.items[stack.first],
					       stack.n);
		if (!SEAM_ARRAY_ADD(&b->stacks, stack))
			abort();
	}
}

static void add_samples(struct seam_batch *b, uint64_t host, size_t n)
{
	uint32_t cpu = seam_strings_put(&b->strings, "cpu-clock");
	uint32_t off = seam_strings_put(&b->strings, "off-cpu");
	uint32_t process = text(b, "service%u", host % SERVICES);
	uint32_t threads[THREAD_NAMES];

	for (uint64_t i = 0; i < THREAD_NAMES; i++)
		threads[i] = text(b, "worker-%u", i);
	for (size_t i = 0; i < n; i++) {
		/* u^4: of the first stacks many, of the last few */
		double u = (double)chance(1 << 30) / (1 << 30);
		uint64_t thread = chance(THREADS), count = 1 + chance(4);
		bool is_off = chance(8) == 0;
		struct seam_batch_sample sample = {
			.ts_ns = DAY_NS + (uint64_t)i * WINDOWS / n * 10 *
				 SEAM_NS_PER_S,
			.stack = b->stacks.items[(size_t)(STACKS * u * u * u *
							  u)].id,
			.count = count, .value = count * 52631579,
			.event = is_off ? off : cpu,
			.kind = is_off ? SEAM_BATCH_BLOCKED :
				SEAM_BATCH_SAMPLES,
			.unit = 1, .pid = (int32_t)(1000 + host),
			.tid = (int32_t)(2000 + thread), .process = process,
			.thread = threads[thread % THREAD_NAMES],
		};

		if (!SEAM_ARRAY_ADD(&b->samples, sample))
			abort();
	}
}

static void make(struct seam_batch *b, uint64_t i, size_t n)
{
	uint64_t host = i % HOSTS;
	struct seam_batch_origin origin = {
		.service = text(b, "svc-%02u", host % SERVICES),
		.host = text(b, "host-%03u", host),
	};

	b->id = (struct seam_batch_id) { 1 + i, 0 };
	b->from_ns = DAY_NS;
	b->to_ns = DAY_NS + UINT64_C(86400) * SEAM_NS_PER_S;
	if (seam_batch_origin(b, &origin) == SEAM_NONE)
		abort();
	add_frames(b, host % SERVICES);
	add_stacks(b);
	add_samples(b, host, n);
}

/* What putting took. */
static uint64_t wall_ns, cpu_ns;

static void put(struct seam_fleet_store *store, uint64_t i, size_t n,
		size_t *bytes)
{
	struct seam_native_buffer file = { 0 };
	struct seam_batch batch = { 0 };
	struct seam_err err = { 0 };
	uint64_t start, cpu_start;

	make(&batch, i, n);
	if (seam_batch_file_write(&batch, &file, &err))
		goto fail;
	start = seam_clock_ns();
	cpu_start = seam_clock_thread_ns();
	if (seam_fleet_put(store, (struct seam_bytes) { file.bytes.items,
			   file.bytes.n }, &err))
		goto fail;
	wall_ns += seam_clock_ns() - start;
	cpu_ns += seam_clock_thread_ns() - cpu_start;
	*bytes += file.bytes.n;
	free(file.bytes.items);
	seam_batch_fini(&batch);
	return;
fail:
	seam_err_print(stderr, "fleet_put", &err);
	exit(1);
}

int main(int argc, char **argv)
{
	struct seam_fleet_place place = { .where = argc > 1 ? argv[1] : "" };
	uint64_t rows = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	size_t each = argc > 3 ? strtoull(argv[3], NULL, 10) : 100000;
	struct seam_fleet_store *store;
	struct seam_err err = { 0 };
	uint64_t put_rows = 0, i = 0;
	size_t bytes = 0;

	if (!rows || !each)
		return 2;
	if (seam_fleet_open(&store, &place, &err)) {
		seam_err_print(stderr, "fleet_put", &err);
		return 1;
	}
	for (; put_rows < rows; put_rows += each)
		put(store, i++, each, &bytes);
	seam_fleet_close(store);
	printf("%" PRIu64 " rows in %" PRIu64 " batches, files of %.1f "
	       "bytes/row: %.2f s, %.2f M rows/s; the sender's CPU %.2f s\n",
	       put_rows, i, (double)bytes / (double)put_rows,
	       (double)wall_ns / 1e9,
	       (double)put_rows * 1e3 / (double)wall_ns,
	       (double)cpu_ns / 1e9);
	return 0;
}
