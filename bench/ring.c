/* SPDX-License-Identifier: MIT */
/*
 * ring.c - what a record costs its producer, and how fast a ring drains
 *
 *	ring [ROUNDS]
 *
 * Medians of ROUNDS (default 15), each of half a million records into a ring
 * that fits the second-level cache, on one processor.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "ring/consumer.h"
#include "ring/producer/producer.h"

enum { PAGE = 4096, DATA = 1 << 18, RECORDS = 500000, MAX_ROUNDS = 1001 };

static uint8_t *memory;
static struct seam_ring_producer out;
static struct seam_ring in;

static void start(void)
{
	memset(memory, 0, PAGE + DATA);
	seam_ring_producer_init(&out, memory, PAGE, DATA);
	seam_ring_attach(&in, memory, PAGE, DATA);
}

/* Each function returns ns for one, or bytes per us. */

/* A consumer that has nothing else to do. */
static void drain_now(int i)
{
	if (i % 1000 == 0)
		/* relaxed: of this thread */
		atomic_store_explicit(&in.control->data_tail,
				      out.control->data_head,
				      memory_order_relaxed);
}

static double write_records(size_t payload)
{
	static const uint8_t bytes[64];
	uint64_t begin;

	start();
	begin = seam_clock_ns();
	for (int i = 0; i < RECORDS; i++) {
		seam_ring_write(&out, PERF_RECORD_SAMPLE, 0, bytes, payload);
		drain_now(i);
	}
	return (double)(seam_clock_ns() - begin) / RECORDS;
}

static double forward_16(void)
{
	return write_records(16);
}

static double forward_64(void)
{
	return write_records(64);
}

static double nested_16(void)
{
	static const uint8_t bytes[16];
	struct seam_ring_writer w;
	uint64_t begin;

	start();
	begin = seam_clock_ns();
	for (int i = 0; i < RECORDS / 2; i++) {
		drain_now(i);
		seam_ring_begin(&out, &w, PERF_RECORD_SAMPLE, 0, 16);
		seam_ring_write(&out, PERF_RECORD_SAMPLE, 0, bytes, 16);
		seam_ring_put(&w, bytes, 16);
		seam_ring_end(&w);
	}
	return (double)(seam_clock_ns() - begin) / (RECORDS / 2);
}

static double refused(void)
{
	static const uint8_t bytes[16];
	uint64_t begin;

	start();
	while (seam_ring_write(&out, PERF_RECORD_SAMPLE, 0, bytes, 16) == 0)
		;
	begin = seam_clock_ns();
	for (int i = 0; i < RECORDS; i++)
		seam_ring_write(&out, PERF_RECORD_SAMPLE, 0, bytes, 16);
	return (double)(seam_clock_ns() - begin) / RECORDS;
}

/* Look at each record of a full ring, as a drain does; copy it or not. */
static double drain(bool copy)
{
	static uint8_t record[UINT16_MAX];
	static const uint8_t bytes[64];
	struct seam_ring_header header;
	struct seam_ring_span span;
	uint64_t ns = 0, n_bytes = 0;

	start();
	for (int i = 0; i < 50; i++) {
		uint64_t begin;
		size_t pos = 0;

		while (seam_ring_write(&out, PERF_RECORD_SAMPLE, 0, bytes,
				       64) == 0)
			;
		begin = seam_clock_ns();
		seam_ring_peek(&in, &span);
		while (copy ? seam_ring_copy(&span, pos, &header, record) :
		       seam_ring_record(&span, pos, &header))
			pos += header.size;
		seam_ring_advance(&in, &span);
		ns += seam_clock_ns() - begin;
		n_bytes += pos;
	}
	return (double)n_bytes * 1000 / (double)ns;
}

static double drain_in_place(void)
{
	return drain(false);
}

static double drain_copies(void)
{
	return drain(true);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_machine(void)
{
	char line[256];
	FILE *f = fopen("/proc/cpuinfo", "re");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "model name", 10) == 0) {
			printf("machine: %s", strchr(line, ':') + 2);
			break;
		}
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *what, *unit;
		double (*run)(void);
	} rows[] = {
		{ "record, 16 bytes", "ns", forward_16 },
		{ "record, 64 bytes", "ns", forward_64 },
		{ "two records, one inside the other", "ns", nested_16 },
		{ "record that finds the ring full", "ns", refused },
		{ "drain in place, 72-byte records", "MB/s", drain_in_place },
		{ "drain by copy, 72-byte records", "MB/s", drain_copies },
	};
	static double values[MAX_ROUNDS];
	int n = argc > 1 ? atoi(argv[1]) : 15;

	if (n < 1 || n > MAX_ROUNDS)
		return 2;
	memory = aligned_alloc(PAGE, PAGE + DATA);
	if (!memory)
		return 1;
	print_machine();
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(rows); i++) {
		for (int k = 0; k < n; k++)
			values[k] = rows[i].run();
		qsort(values, (size_t)n, sizeof(values[0]), by_value);
		printf("%-36s %8.1f %s\n", rows[i].what, values[n / 2],
		       rows[i].unit);
	}
	free(memory);
	return 0;
}
