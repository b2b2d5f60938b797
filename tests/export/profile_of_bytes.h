/* SPDX-License-Identifier: MIT */
/*
 * profile_of_bytes.h - a hostile profile, made from any bytes
 *
 * What a loader may make of a recording: names of any bytes, recursion, inlined
 * frames anywhere, ids that are used twice, times in any order, weights up to
 * 2^64, sums, marks, losses, calls without a begin or an end.  Events are called
 * "e0", "e1", ...
 */
#ifndef SEAM_TESTS_PROFILE_OF_BYTES_H
#define SEAM_TESTS_PROFILE_OF_BYTES_H

#include "profiles_made.h"

struct profile_bytes {
	const uint8_t *data;
	size_t size;
};

/* A number below @below, of one or two bytes; 0 at the end. */
static inline uint32_t take(struct profile_bytes *in, uint32_t below)
{
	uint32_t value = 0;

	for (uint32_t most = below; most > 1 && in->size; most >>= 8) {
		value = value << 8 | *in->data++;
		in->size--;
	}
	return below ? value % below : 0;
}

static inline uint32_t take_name(struct seam_profile *p,
				 struct profile_bytes *in)
{
	static const char *const names[] = {
		"", "main", "a\"b\\c\nd;e", "\xff\xfe\x80", "\xed\xa0\x80",
		"\xe2\x80\xaerev", "\x1b[2J", "[no stack]", "_[k]", "f 12",
		"[kernel", "[jit]", "\xef\xbf\xbf", "</script>", "%s%n",
	};
	char text[24];
	uint32_t n = take(in, SEAM_ARRAY_SIZE(names) + 8);
	size_t size = 0;

	if (n < SEAM_ARRAY_SIZE(names))
		return built_string(p, names[n]);
	while (size < n && in->size)
		text[size++] = (char)(1 + take(in, 255));
	text[size] = '\0';
	return built_string(p, text);
}

static inline uint64_t take_time(struct profile_bytes *in)
{
	uint32_t n = take(in, 1 << 16);

	return n < 16 ? UINT64_MAX - 1 - n : (uint64_t)n * 1000;
}

static inline uint64_t take_weight(struct profile_bytes *in)
{
	static const uint64_t weights[] = {
		0, 1, 999999, UINT64_C(1) << 40, UINT64_C(1) << 53, UINT64_MAX,
	};
	uint32_t n = take(in, 64);

	return n < SEAM_ARRAY_SIZE(weights) ? weights[n] : n * UINT64_C(1000);
}

static inline void take_code(struct seam_profile *p, struct profile_bytes *in)
{
	uint32_t n = 1 + take(in, 6);

	for (uint32_t i = 0; i < n; i++) {
		struct seam_profile_module module = {
			.path = take_name(p, in), .pid = -1,
			.kind = (uint8_t)take(in, SEAM_MODULE_GUEST + 1),
		};

		module.build_id_size = (uint8_t)take(in, 21);
		seam_profile_module(p, &module);
	}
	for (uint32_t i = 0; i < n; i++)
		*SEAM_ARRAY_PUSH(&p->mappings) = (struct seam_mapping) {
			.start_addr = take_weight(in), .size = take_weight(in),
			.pgoff = take_weight(in), .pid = (int32_t)take(in, 3),
			.module = take(in, (uint32_t)p->modules.n),
			.is_used = take(in, 2),
		};
	for (uint32_t i = 0; i < 2 * n; i++)
		seam_profile_function(p, &(struct seam_function) {
			.name = take_name(p, in), .is_named = take(in, 2),
			.module = take(in, (uint32_t)p->modules.n),
			.layer = (uint8_t)take(in, SEAM_N_LAYERS),
		});
	for (uint32_t i = 0; i < 4 * n; i++)
		seam_profile_frame(p, &(struct seam_frame) {
			.function = take(in, (uint32_t)p->functions.n),
			.module = take(in, (uint32_t)p->modules.n),
			.file = take(in, 2) ? take_name(p, in) : 0,
			.line = take(in, 3), .addr = take_weight(in),
			.is_inlined = take(in, 2), .code = SEAM_NONE,
		});
	for (uint32_t i = 0; i < 9 * n; i++)
		seam_profile_stack(p, take(in, (uint32_t)p->stacks.n),
				   take(in, (uint32_t)p->frames.n));
}

static inline void take_threads(struct seam_profile *p,
				struct profile_bytes *in)
{
	static const int32_t ids[] = { 1, 0, -1, INT32_MIN, INT32_MAX, 2, 3 };
	uint32_t n = 1 + take(in, 3);

	for (uint32_t i = 0; i < n; i++)
		*SEAM_ARRAY_PUSH(&p->processes) = (struct seam_process) {
			.pid = ids[take(in, SEAM_ARRAY_SIZE(ids))],
			.name = take_name(p, in), .start_ns = take_time(in),
			.end_ns = take_time(in), .parent = SEAM_NONE,
		};
	for (uint32_t i = 0; i < n + 1; i++)
		*SEAM_ARRAY_PUSH(&p->threads) = (struct seam_thread) {
			.process = take(in, n), .name = take_name(p, in),
			.tid = ids[take(in, SEAM_ARRAY_SIZE(ids))],
			.start_ns = take_time(in), .end_ns = take_time(in),
		};
}

/* The last event is that of calls, if there are any. */
static inline void take_events(struct seam_profile *p,
			       struct profile_bytes *in, bool has_calls)
{
	uint32_t n = 1 + take(in, 5);

	for (uint32_t i = 0; i < n; i++) {
		bool is_measured = has_calls && i + 1 == n;
		char name[] = { 'e', (char)('0' + i), '\0' };
		uint32_t kind = take(in, 3);

		*SEAM_ARRAY_PUSH(&p->events) = (struct seam_profile_event) {
			.name = built_string(p, name),
			.is_measured = is_measured,
			.is_wait = kind == 2 && !is_measured,
			.unit = kind || is_measured ? SEAM_UNIT_NS :
				SEAM_UNIT_COUNT,
		};
	}
}

static inline void take_samples(struct seam_profile *p,
				struct profile_bytes *in)
{
	struct seam_samples *s = &p->samples;
	uint32_t n = take(in, 300);
	bool is_wait;

	if (!seam_samples_reserve(s, n))
		abort();
	for (uint32_t i = 0; i < n; i++) {
		s->time_ns[i] = take_time(in);
		s->thread[i] = take(in, (uint32_t)p->threads.n);
		s->stack[i] = take(in, (uint32_t)p->stacks.n);
		s->cpu[i] = take(in, 2) ? (uint16_t)take(in, 3) : UINT16_MAX;
		s->event[i] = (uint16_t)take(in, (uint32_t)p->events.n);
		is_wait = p->events.items[s->event[i]].is_wait;
		if (!seam_samples_set_weight(s, i, take_weight(in)) ||
		    !seam_samples_set_count(s, i, is_wait && take(in, 2) ?
					    2 + take(in, 9) : 1) ||
		    !seam_samples_set_wait(s, i, is_wait ?
					   take_name(p, in) : 0) ||
		    !seam_samples_set_waker(s, i, is_wait && take(in, 2) ?
					    take_name(p, in) : 0))
			abort();
		if (s->time_ns[i] < p->start_ns)
			p->start_ns = s->time_ns[i];
		s->n++;
	}
}

/* Calls, balanced or not; @track and @items live as long as the profile. */
static inline void take_calls(struct seam_profile *p, struct profile_bytes *in,
			      struct made_track *track, struct seam_item *items,
			      size_t n)
{
	uint64_t now = 500;

	for (size_t i = 0; i < n; i++) {
		struct seam_item *item = &items[i];

		now += take(in, 200);
		*item = (struct seam_item) {
			.time_ns = now, .function = SEAM_NONE,
			.kind = (enum seam_item_kind)take(in, SEAM_ITEM_SAMPLE),
			.value = take_weight(in),
		};
		if (item->kind == SEAM_ITEM_BEGIN ||
		    item->kind == SEAM_ITEM_END)
			item->function = take(in, (uint32_t)p->functions.n);
		if (item->kind == SEAM_ITEM_END)
			item->begin_ns = now - take(in, 200);
		if (item->kind >= SEAM_ITEM_CUSTOM)
			item->data = (struct seam_bytes) {
				(const uint8_t *)"{\"a\":\xff", take(in, 7) };
	}
	*track = (struct made_track) { items, n };
	*SEAM_ARRAY_PUSH(&p->tracks) = (struct seam_track) {
		.thread = take(in, (uint32_t)p->threads.n),
		.event = (uint32_t)p->events.n - 1, .start_ns = 500,
		.reader = &made_reader, .source = track,
	};
}

static inline void take_losses(struct seam_profile *p,
			       struct profile_bytes *in)
{
	for (uint32_t n = take(in, 3); n > 0; n--)
		seam_profile_lost(p, "ring full", take_name(p, in),
				  take_weight(in), take_weight(in));
	for (uint32_t n = take(in, 4); n > 0; n--)
		*SEAM_ARRAY_PUSH(&p->marks) = (struct seam_profile_mark) {
			.time_ns = take_time(in), .kind = SEAM_ITEM_LOSS,
			.thread = take(in, (uint32_t)p->threads.n),
			.value = take_weight(in),
			.event = take(in, 2) ? SEAM_NONE :
				 take(in, (uint32_t)p->events.n),
		};
}

#endif /* SEAM_TESTS_PROFILE_OF_BYTES_H */
