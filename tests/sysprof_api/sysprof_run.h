/* SPDX-License-Identifier: MIT */
/*
 * sysprof_run.h - what the tests of <seam/lmisclib.h> share
 *
 * A VM with a guest that is made up, a writer that keeps the stream, and
 * counts of what is in it.  All of it is set up anew for each test.
 */
#ifndef SYSPROF_RUN_H
#define SYSPROF_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lua.h>
#include <seam/lmisclib.h>

#include "made_up_guest.h"

enum { BUFFER_BYTES = 64 << 10 };

/* What the writer and on_stop saw. */
struct seen {
	uint8_t *bytes;
	size_t n;
	int fails_after;	/* calls; -1: never */
	unsigned int n_stopped;
	void *ctx;
	uint8_t *buf;
	int on_stop_error;
};

extern struct seen seen;
extern uint8_t buffer[BUFFER_BYTES];
extern lua_State *L;

size_t write_seen(const void **data, size_t n, void *ctx);
int stop_seen(void *ctx, uint8_t *buf);

int set_up(void **state);
int tear_down(void **state);

/* Of a run at 1 ms that writes to @seen. */
struct luam_sysprof_options options(enum luam_sysprof_mode mode);
int start(enum luam_sysprof_mode mode);

/* Use CPU time until @n samples were taken. */
void sample(uint64_t n);

/* Start, take @n samples, and stop, of which none fails. */
void run(enum luam_sysprof_mode mode, uint64_t n);
uint64_t n_samples(void);

/* It does not start, and calls on_stop. */
void assert_refused(const struct luam_sysprof_options *opt, int status);

struct stream_counts {
	size_t n_samples, n_symbols, n_events;
	uint64_t leaf_pc;	/* of the first sample */
	size_t n_host;
	bool is_whole;		/* it has its end */
};

/* Of the stream that was written. */
struct stream_counts count_stream(void);

uint64_t cpu_time_ns(void);	/* of this thread */
void spin_ms(uint64_t ms);
size_t n_open(void);		/* descriptors below 100 */

#endif /* SYSPROF_RUN_H */
