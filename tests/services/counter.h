/* SPDX-License-Identifier: MIT */
/*
 * counter.h - the sample of the made-up service "counter"
 *
 * Source: perf_event_open(2), PERF_RECORD_SAMPLE, for COUNTER_SAMPLE_TYPE.
 */
#ifndef COUNTER_H
#define COUNTER_H

#include <linux/perf_event.h>
#include <stdint.h>

#define COUNTER_SERVICE "counter"	/* in HELLO */

#define COUNTER_SAMPLE_TYPE						\
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |	\
	 PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |	\
	 PERF_SAMPLE_RAW)

/* What follows the header. */
struct counter_sample {
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t period;
	uint32_t raw_bytes;	/* of the two below */
	uint32_t thread;
	uint64_t value;
};

enum { COUNTER_RAW_BYTES = 12 };

#endif /* COUNTER_H */
