/* SPDX-License-Identifier: MIT */
/*
 * profiles_made.h - profiles made up for exports of whole profiles
 *
 * What the recorder cannot make, or never should: waits, marks, names that
 * nobody has.  made_profile() makes the one with a name.
 */
#ifndef SEAM_TESTS_PROFILES_MADE_H
#define SEAM_TESTS_PROFILES_MADE_H

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "../model/built.h"
#include "model/profile/timeline.h"

/* -- calls, as a log has them ------------------------------------------- */

struct made_track {
	const struct seam_item *items;
	size_t n;
};

struct made_cursor {
	const struct made_track *track;
	size_t next;
};

static int open_made(const struct seam_track *track, void **cursor)
{
	struct made_cursor *c = calloc(1, sizeof(*c));

	*cursor = c;
	if (!c)
		return -ENOMEM;
	c->track = track->source;
	return 0;
}

static int next_made(void *cursor, struct seam_item *item)
{
	struct made_cursor *c = cursor;

	if (c->next == c->track->n)
		return 0;
	*item = c->track->items[c->next++];
	return 1;
}

static const struct seam_track_reader made_reader = {
	.open = open_made, .next = next_made, .close = free,
};

/* -- profiles ------------------------------------------------------------- */

static uint32_t event_of(struct seam_profile *p, const char *name)
{
	for (uint32_t i = 0; i < p->events.n; i++)
		if (strcmp(seam_profile_text(p, p->events.items[i].name),
			   name) == 0)
			return i;
	abort();
}

static void make_waits(struct seam_profile *p, const char *name)
{
	struct seam_profile_event *event = &p->events.items[event_of(p, name)];

	event->is_wait = true;
	event->unit = SEAM_UNIT_NS;
}

/* A build id for the program, a life that begins and ends while recorded. */
static void add_facts(struct seam_profile *p)
{
	for (size_t i = 0; i < p->modules.n; i++) {
		struct seam_profile_module *module = &p->modules.items[i];

		if (strcmp(seam_profile_path(p, (uint32_t)i),
			   "/usr/bin/app") != 0)
			continue;
		module->build_id_size = 20;
		for (uint8_t k = 0; k < 20; k++)
			module->build_id[k] = (uint8_t)(0xa0 + k);
	}
	for (size_t i = 0; i < p->threads.n; i++)
		if (p->threads.items[i].tid == 101) {
			p->threads.items[i].start_ns = 1500000;
			p->threads.items[i].end_ns = 9000000;
		}
	p->utc_ns = INT64_C(1700000000000000000);
	p->elf_machine = EM_AARCH64;
	seam_profile_lost(p, "ring full", built_string(p, "cpu-clock"), 12, 0);
	*SEAM_ARRAY_PUSH(&p->marks) = (struct seam_profile_mark) {
		.time_ns = 4000000, .kind = SEAM_ITEM_LOSS, .value = 12,
		.event = SEAM_NONE,
	};
}

static void put(struct seam_profile *p, uint64_t time_us, const char *comm,
		int32_t tid, const char *event, uint64_t weight,
		const char *stack)
{
	built_put(p, (struct built_sample) {
		.time_ns = time_us * 1000, .comm = comm, .stack = stack,
		.pid = tid < 200 ? 100 : 200, .tid = tid, .event = event,
		.weight = weight,
	});
}

/* The last sample is the sum of 40 short waits; the third has a reason. */
static void make_sum(struct seam_profile *p)
{
	put(p, 7000, "app", 201, "off-cpu", 30000000, "[short]");
	if (!seam_samples_set_count(&p->samples, p->samples.n - 1, 40))
		abort();
	p->samples.wait = calloc(p->samples.n, sizeof(uint32_t));
	p->samples.waker = calloc(p->samples.n, sizeof(uint32_t));
	p->samples.wait[2] = built_string(p, "do_poll");
	p->samples.waker[2] = built_string(p, "worker 1");
}

/* Layers, inlined calls, two processes, three units, waits between samples. */
static void make_all(struct seam_profile *p)
{
	put(p, 1000, "app", 100, NULL, 1000000, "main;run;tiny_[i];leaf_[i]");
	put(p, 2000, "app", 100, NULL, 1000000, "main;run;tiny_[i];read_[k]");
	put(p, 2100, "app", 100, "off-cpu", 700000, "main;run;poll_[k]");
	put(p, 2900, "app", 100, "preempted", 90000, "main;run");
	put(p, 3000, "app", 100, NULL, 1000000, "main;run;tiny_[i];leaf_[i]");
	put(p, 3500, "app", 100, "page-faults", 3, "main;run;fault_[k]");
	put(p, 3600, "worker 1", 101, NULL, 999999, "start;fib_[g];hot_[j]");
	put(p, 3700, "worker 1", 101, "off-cpu", 5000000, "");
	put(p, 8800, "worker 1", 101, NULL, 1000001, "start;fib_[g];hot_[j]");
	put(p, 4000, "app", 201, NULL, 1000000, "");
	put(p, 5000, "app", 201, "off-cpu", 10, "main;run;poll_[k]");
	put(p, 6000, "app", 201, NULL, 1000000,
	    "main;run@/lib/so.so;inl_[i]@/lib/so.so;run@/lib/so.so");
	make_waits(p, "off-cpu");
	make_waits(p, "preempted");
	make_sum(p);
}

/* Calls with arguments, one after another and nested, and a mark. */
static void make_calls(struct seam_profile *p)
{
	static struct seam_item items[] = {
		{ .kind = SEAM_ITEM_BEGIN, .time_ns = 1000 },
		{ .kind = SEAM_ITEM_ARGUMENT, .time_ns = 1000, .value = 42 },
		{ .kind = SEAM_ITEM_ARGUMENT, .time_ns = 1000, .value = 43 },
		{ .kind = SEAM_ITEM_BEGIN, .time_ns = 1100 },
		{ .kind = SEAM_ITEM_CUSTOM, .time_ns = 1150,
		  .function = SEAM_NONE,
		  .data = { (const uint8_t *)"a \"note\"", 8 } },
		{ .kind = SEAM_ITEM_END, .time_ns = 1300, .begin_ns = 1100 },
		{ .kind = SEAM_ITEM_BEGIN, .time_ns = 1300 },
		{ .kind = SEAM_ITEM_LOSS, .time_ns = 1350, .value = 7,
		  .function = SEAM_NONE,
		  .data = { (const uint8_t *)"x", 1 } },
		{ .kind = SEAM_ITEM_END, .time_ns = 1400, .begin_ns = 1300 },
		{ .kind = SEAM_ITEM_END, .time_ns = 2000, .begin_ns = 1000 },
	};
	static struct made_track track = { items, SEAM_ARRAY_SIZE(items) };
	uint32_t outer, inner;

	put(p, 1, "app", 100, "xray", 700, "outer");
	put(p, 1, "app", 100, "xray", 300, "outer;inner");
	put(p, 2, "app", 100, NULL, 1000, "outer;inner;work");
	p->events.items[0].is_measured = true;
	p->events.items[0].unit = SEAM_UNIT_NS;
	outer = p->frames.items[0].function;
	inner = p->frames.items[1].function;
	for (size_t i = 0; i < track.n; i++)
		if (items[i].kind == SEAM_ITEM_BEGIN ||
		    items[i].kind == SEAM_ITEM_END)
			items[i].function = i == 0 || i == track.n - 1 ?
					    outer : inner;
	*SEAM_ARRAY_PUSH(&p->tracks) = (struct seam_track) {
		.start_ns = 1000, .reader = &made_reader, .source = &track,
	};
}

/* Ends without begins, and calls that never end. */
static void make_broken_calls(struct seam_profile *p)
{
	static struct seam_item items[] = {
		{ .kind = SEAM_ITEM_END, .time_ns = 900, .begin_ns = 800 },
		{ .kind = SEAM_ITEM_ARGUMENT, .time_ns = 900, .value = 1 },
		{ .kind = SEAM_ITEM_BEGIN, .time_ns = 1000 },
		{ .kind = SEAM_ITEM_BEGIN, .time_ns = 1000,
		  .function = SEAM_NONE },
		{ .kind = SEAM_ITEM_END, .time_ns = 1200, .begin_ns = 1000 },
		{ .kind = SEAM_ITEM_BEGIN, .time_ns = 1100 },
	};
	static struct made_track track = { items, SEAM_ARRAY_SIZE(items) };

	put(p, 1, "app", 100, "xray", 700, "outer");
	p->events.items[0].is_measured = true;
	*SEAM_ARRAY_PUSH(&p->tracks) = (struct seam_track) {
		.start_ns = 800, .reader = &made_reader, .source = &track,
	};
}

static void make_hostile(struct seam_profile *p)
{
	char *name = malloc(1 << 16), *stack = malloc(1 << 17);

	memset(name, 'n', (1 << 16) - 1);
	name[(1 << 16) - 1] = '\0';
	put(p, 1, "a\"b\\c\nd;e", 100, NULL, 1,
	    "quote\"_[k];back\\slash_[g];new\nline_[j];\x1b[2J;\x01");
	put(p, 2, "\xff\xfe\x80", 101, "cpu-clock", 2,
	    "\xc3\xa4;\xff\xc3;\xe2\x80\xae" "rev;\xed\xa0\x80;\xc2\x9b;"
	    "<b>&amp;@/lib/\"\n\xff.so;\xef\xbf\xbf");
	put(p, 3, name, 102, "ev;\"\xff\n", 3, "main");
	snprintf(stack, 1 << 17, "main;%s;%s_[i]", name, name);
	put(p, 4, "", 103, NULL, UINT64_C(1) << 50, stack);
	p->command = built_string(p, "\xff\"\n");
	free(name);
	free(stack);
}

static uint32_t next_random(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % below;
}

/* Many stacks that share and differ at every place. */
static void make_random(struct seam_profile *p)
{
	static const char *const endings[] = { "", "", "_[i]", "_[k]", "_[j]",
					       "_[g]" };
	static const char *const events[] = { "cpu-clock", "page-faults",
					      "off-cpu" };
	uint32_t state = 7;

	for (unsigned int i = 0; i < 3000; i++) {
		int32_t tid = 100 + (int32_t)next_random(&state, 5) * 30;
		uint32_t depth = next_random(&state, 12);
		char stack[512] = "", comm[32];
		bool is_native = false;
		size_t used = 0;

		for (uint32_t d = 0; d < depth; d++) {
			uint32_t f = next_random(&state, 18);

			/* inlined is what is in native code */
			if (f % 6 == 2 && !is_native)
				f -= 2;
			is_native = f % 6 < 3;

			used += (size_t)snprintf(stack + used,
				sizeof(stack) - used, "%sf%u%s", d ? ";" : "",
				f / 6, endings[f % 6]);
		}
		snprintf(comm, sizeof(comm), "t%d", tid);
		put(p, 10 * i, comm, tid, events[next_random(&state, 3)],
		    1 + next_random(&state, 9000), stack);
	}
	make_waits(p, "off-cpu");
}

static void make_no_stacks(struct seam_profile *p)
{
	put(p, 1, "app", 100, NULL, 5, "");
	put(p, 2, "app", 100, NULL, 6, "");
}

/* The main event is not the first one, and is not the last of the file. */
static void make_only_waits(struct seam_profile *p)
{
	put(p, 1, "app", 100, "off-cpu", 5000, "main;poll_[k]");
	put(p, 9, "app", 100, "preempted", 6000, "main");
	make_waits(p, "off-cpu");
	make_waits(p, "preempted");
}

static void make_empty(struct seam_profile *p)
{
	(void)p;
}

static const struct {
	const char *name;
	void (*make)(struct seam_profile *p);
} made_profiles[] = {
	{ "all", make_all }, { "calls", make_calls },
	{ "broken_calls", make_broken_calls }, { "hostile", make_hostile },
	{ "random", make_random }, { "no_stacks", make_no_stacks },
	{ "only_waits", make_only_waits }, { "empty", make_empty },
};

/* Profile @i of made_profiles, for seam_profile_fini(). */
static inline struct seam_profile made_profile(size_t i)
{
	struct seam_profile p = built();

	made_profiles[i].make(&p);
	if (p.threads.n)
		add_facts(&p);
	return p;
}

#endif /* SEAM_TESTS_PROFILES_MADE_H */
