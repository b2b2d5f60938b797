/* SPDX-License-Identifier: MIT */
/*
 * test_timeline.c - a thread's items beside a slow reference
 *
 * The reference keeps everything: all items of all logs and columns in one
 * array, sorted, and the selection by names and whole stacks.  Linked with
 * --wrap, to see how much memory the iterator holds.
 */
#include <malloc.h>
#include <strings.h>

#include "../trace_made.h"
#include "built.h"
#include "model/profile/timeline.h"
#include "model/xray/load_xray.h"
#include "model/xray/stream_calls.h"
#include "unit.h"
#include "xray_life.h"

/* -- memory ------------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *old);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *old);

static long held, most_held;

static void *taken(void *p)
{
	held += p ? (long)malloc_usable_size(p) : 0;
	most_held = held > most_held ? held : most_held;
	return p;
}

static void given(void *p)
{
	held -= p ? (long)malloc_usable_size(p) : 0;
}

void *__wrap_malloc(size_t size)
{
	return taken(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return taken(__real_calloc(n, size));
}

void *__wrap_realloc(void *old, size_t size)
{
	given(old);
	return taken(__real_realloc(old, size));
}

void __wrap_free(void *old)
{
	given(old);
	__real_free(old);
}

/* -- the reference ------------------------------------------------------ */

enum {
	MAX_STACK = 256,
	BASE_NS = 999700,	/* a little before the logs */
};

struct kept {
	struct seam_item item;
	unsigned int rank;		/* log, mark, sample */
	size_t track, order;
	uint32_t event;
	uint32_t stack[MAX_STACK];	/* functions that are open, and it */
	size_t n;
};

struct reference {
	struct kept *items;
	size_t n, cap;
	uint32_t stack[MAX_STACK];	/* of the track that is read */
	uint64_t begin[MAX_STACK];
	size_t depth, track;
	uint64_t last_ns;
	const struct seam_profile *profile;
};

static struct kept *keep(struct reference *ref, enum seam_item_kind kind,
			 uint64_t ns)
{
	struct kept *k;

	if (ref->n == ref->cap) {
		ref->cap = 2 * ref->cap + 64;
		ref->items = realloc(ref->items, ref->cap * sizeof(*k));
	}
	k = &ref->items[ref->n++];
	*k = (struct kept) {
		.item = { .kind = kind, .time_ns = ns, .function = SEAM_NONE },
		.order = ref->n, .track = ref->track, .event = SEAM_NONE,
	};
	return k;
}

/* The function "#id" of the log, which has no module. */
static uint32_t function_of(const struct seam_profile *p, uint32_t id)
{
	char name[16];

	snprintf(name, sizeof(name), "#%u", id);
	for (uint32_t i = 0; i < p->functions.n; i++)
		if (strcmp(seam_profile_text(p, p->functions.items[i].name),
			   name) == 0 &&
		    !*seam_profile_text(p, p->functions.items[i].module))
			return i;
	return SEAM_NONE;
}

static struct kept *keep_logged(struct reference *ref,
				enum seam_item_kind kind, uint64_t ns)
{
	struct kept *k;

	ref->last_ns = ns > ref->last_ns ? ns : ref->last_ns;
	k = keep(ref, kind, ref->last_ns);
	k->event = ref->profile->tracks.items[ref->track].event;
	k->n = ref->depth;
	memcpy(k->stack, ref->stack, ref->depth * sizeof(*k->stack));
	return k;
}

static void begin(void *context, struct seam_calls *calls)
{
	const struct seam_call *call = &calls->calls[calls->n - 1];
	struct reference *ref = context;
	struct kept *k;

	assert_true(ref->depth < MAX_STACK);
	ref->stack[ref->depth] = function_of(ref->profile, call->function);
	ref->depth++;
	k = keep_logged(ref, SEAM_ITEM_BEGIN, call->begin_ns);
	k->item.function = ref->stack[ref->depth - 1];
}

static void end(void *context, struct seam_calls *calls,
		const struct seam_call *call, uint64_t end_ns)
{
	struct reference *ref = context;
	struct kept *k = keep_logged(ref, SEAM_ITEM_END, end_ns);

	(void)calls;
	k->item.function = ref->stack[--ref->depth];
	k->item.begin_ns = call->begin_ns;
}

static void event(void *context, struct seam_calls *calls,
		  const struct seam_xray_batch *batch,
		  const struct seam_xray_event *e)
{
	bool is_argument = e->kind == SEAM_XRAY_ARGUMENT;
	struct reference *ref = context;
	struct kept *k = keep_logged(ref, is_argument ? SEAM_ITEM_ARGUMENT :
				     e->kind == SEAM_XRAY_TYPED ?
				     SEAM_ITEM_TYPED : SEAM_ITEM_CUSTOM,
				     is_argument ? 0 : e->tsc);

	(void)calls;
	if (is_argument) {
		k->item.value = e->tsc;
		return;
	}
	k->item.data = batch->payloads[e->function].data;
	k->item.type = batch->payloads[e->function].type;
}

static const struct seam_calls_sink sink = {
	.begin = begin, .end = end, .event = event,
};

static int by_time(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->item.time_ns != y->item.time_ns)
		return x->item.time_ns < y->item.time_ns ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static struct reference reference(const struct seam_profile *p,
				  const struct seam_trace *trace,
				  uint32_t thread)
{
	struct reference ref = { .profile = p };
	struct seam_xray_problems problems = { 0 };
	uint32_t depth = 0;

	for (size_t t = 0; t < p->tracks.n; t++) {
		struct seam_calls calls = { 0 };

		if (p->tracks.items[t].thread != thread)
			continue;
		ref.track = t;
		ref.last_ns = 0;
		assert_int_equal(seam_stream_calls(&calls, trace, t, &sink,
						   &ref, &problems), 0);
		seam_calls_fini(&calls);
	}
	ref.track = 0;
	for (size_t i = 0; i < p->marks.n; i++) {
		const struct seam_profile_mark *m = &p->marks.items[i];
		struct kept *k = m->thread != thread ? NULL :
			keep(&ref, (enum seam_item_kind)m->kind, m->time_ns);

		if (k) {
			k->rank = 1;
			k->item.value = m->value;
			k->event = m->event;
		}
	}
	for (size_t i = 0; i < p->samples.n; i++) {
		struct kept *k = p->samples.thread[i] != thread ||
			p->events.items[p->samples.event[i]].is_measured ?
			NULL : keep(&ref, SEAM_ITEM_SAMPLE,
				    p->samples.time_ns[i]);

		if (k) {
			k->rank = 2;
			k->item.sample = i;
			k->event = p->samples.event[i];
			for (uint32_t s = p->samples.stack[i]; s;
			     s = p->stacks.items[s].parent)
				k->stack[k->n++] = p->frames.items[
					p->stacks.items[s].frame].function;
		}
	}
	qsort(ref.items, ref.n, sizeof(*ref.items), by_time);
	for (size_t i = 0; i < ref.n; i++) {
		struct seam_item *item = &ref.items[i].item;

		depth -= item->kind == SEAM_ITEM_END;
		item->depth = depth;
		depth += item->kind == SEAM_ITEM_BEGIN;
	}
	assert_int_equal(depth, 0);
	return ref;
}

static const char *name_of(const struct seam_profile *p, uint32_t function)
{
	return function == SEAM_NONE ? "" :
	       seam_profile_text(p, p->functions.items[function].name);
}

static bool is_of(const struct seam_profile *p, uint32_t function,
		  unsigned int layers)
{
	return layers >> p->functions.items[function].layer & 1;
}

static bool is_selected(const struct seam_profile *p, const struct kept *k,
			uint32_t thread, const struct seam_selection *s)
{
	const struct seam_item *item = &k->item;
	uint64_t ns = item->kind == SEAM_ITEM_END ? item->begin_ns :
		      item->time_ns;
	const char *inside = s->callers_of ? s->callers_of : s->callees_of;
	bool is_call = item->kind == SEAM_ITEM_BEGIN ||
		       item->kind == SEAM_ITEM_END;
	bool is_found = false, is_inside = false, has_layer = false;
	char tid[16], text[16];

	snprintf(tid, sizeof(tid), "%d", p->threads.items[thread].tid);
	if (ns < s->from_ns || ns >= s->to_ns ||
	    (s->thread && strcmp(s->thread, tid) != 0) ||
	    (s->event && k->event != SEAM_NONE &&
	     strcmp(s->event, seam_profile_text(p,
		    p->events.items[k->event].name)) != 0))
		return false;
	if (item->kind == SEAM_ITEM_LOSS)
		return true;
	for (size_t i = 0; i < k->n; i++) {
		is_found |= s->search && strcasestr(name_of(p, k->stack[i]),
						    s->search);
		is_inside |= inside && strcmp(name_of(p, k->stack[i]),
					      inside) == 0;
		has_layer |= is_of(p, k->stack[i], s->layers);
	}
	if (is_call) {
		has_layer = is_of(p, item->function, s->layers);
		is_found = s->search && strcasestr(name_of(p, item->function),
						   s->search);
	} else if (item->kind != SEAM_ITEM_SAMPLE) {
		has_layer = s->layers >> SEAM_LAYER_NATIVE & 1;
		snprintf(text, sizeof(text), "%.*s", (int)item->data.size,
			 (const char *)item->data.data);
		is_found = s->search && strcasestr(text, s->search);
	} else if (k->n == 0) {
		has_layer = s->layers == SEAM_ALL_LAYERS;
	}
	return has_layer && (!s->search || is_found) && (!inside || is_inside);
}

/* -- the comparison ----------------------------------------------------- */

static void assert_same_item(const struct seam_item *x,
			     const struct seam_item *y)
{
	assert_int_equal(x->time_ns, y->time_ns);
	assert_int_equal(x->kind, y->kind);
	assert_int_equal(x->function, y->function);
	assert_int_equal(x->depth, y->depth);
	assert_int_equal(x->type, y->type);
	assert_int_equal(x->value, y->value);
	assert_int_equal(x->data.size, y->data.size);
	assert_ptr_equal(x->data.data, y->data.data);
}

/* Returns how many items of each kind were selected. */
static void compare(const struct seam_profile *p,
		    const struct seam_timelines *all,
		    const struct reference *ref, uint32_t thread,
		    const struct seam_selection *selection, size_t *n)
{
	struct seam_selected selected;
	struct seam_timeline t;
	struct seam_item item;
	bool begun = false;

	assert_int_equal(seam_selected_init(&selected, p, selection, NULL), 0);
	seam_timeline_open(&t, all, &selected, thread);
	for (size_t i = 0; i < ref->n; i++) {
		const struct kept *k = &ref->items[i];
		bool is = k->item.kind == SEAM_ITEM_ARGUMENT ? begun :
			  is_selected(p, k, thread, selection);

		if (k->item.kind == SEAM_ITEM_BEGIN)
			begun = is;
		if (!is)
			continue;
		assert_int_equal(seam_timeline_next(&t, &item), 1);
		assert_same_item(&item, &k->item);
		n[item.kind]++;
	}
	assert_int_equal(seam_timeline_next(&t, &item), 0);
	assert_int_equal(seam_timeline_next(&t, &item), 0);
	seam_timeline_close(&t);
	seam_selected_fini(&selected);
}

struct scene {
	struct life life;
	struct seam_trace trace;
	struct seam_profile profile;
	struct seam_timelines all;
};

/*
 * Two logs of thread 2 of process 1, the second of which the first may
 * overlap, and samples and losses of it and of another thread around them.
 */
static void open_scene(struct scene *s, uint64_t seed)
{
	static const struct troubles troubles = {
		.skipped = 2, .tails = 2, .stray = 2, .unseen = 1, .steps = 4,
		.others = 8,
	};
	static const char *const stacks[] = {
		"", "main", "main;#3", "main;#3;read_[k]", "run;fast_[j]",
	};
	uint64_t at = 0;
	size_t first;

	make(&s->life, seed, 4, &troubles);
	first = s->life.made.size;
	made_header(&s->life.made, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000,
		    0);
	made_block(&s->life.made, 1, 2, 1001, 0,
		   seed % 2 ? s->life.tsc : 100000 + seed);
	for (unsigned int i = 0; i < 20; i++)
		live(&s->life, &troubles);
	made_end(&s->life.made, 0, first);
	s->profile = built();
	for (unsigned int i = 0; i < 60; i++) {
		at = pick(&s->life, 8) ? at + pick(&s->life, 200) : at / 2;
		built_put(&s->profile, (struct built_sample) {
			.time_ns = BASE_NS + at, .comm = "app",
			.stack = stacks[pick(&s->life, 5)],
			.tid = pick(&s->life, 4) ? 2 : 3, .pid = 1,
			.event = pick(&s->life, 3) ? NULL : "faults",
		});
		if (i % 8)
			continue;
		*SEAM_ARRAY_PUSH(&s->profile.marks) =
			(struct seam_profile_mark) {
			.time_ns = BASE_NS + pick(&s->life, 3000),
			.thread = pick(&s->life, 2), .kind = SEAM_ITEM_LOSS,
			.event = i % 16 ? SEAM_NONE : 0, .value = i,
		};
	}
	assert_int_equal(trace_from_bytes(&s->trace, (struct seam_bytes) {
		s->life.made.data, s->life.made.size }, NULL), 0);
	assert_int_equal(seam_load_xray(&s->profile, &s->trace, NULL, NULL,
					NULL), 0);
	assert_int_equal(seam_timelines_init(&s->all, &s->profile), 0);
}

static void close_scene(struct scene *s)
{
	seam_timelines_fini(&s->all);
	seam_profile_fini(&s->profile);
	seam_trace_close(&s->trace);
	made_free(&s->life.made);
}

UNIT_TEST(has_what_a_sorted_array_of_everything_has)
{
	size_t n[SEAM_ITEM_SAMPLE + 1] = { 0 };
	struct seam_selection all;
	struct scene s;

	seam_selection_init(&all);
	for (uint64_t seed = 0; seed < 60; seed++) {
		open_scene(&s, seed);
		assert_int_equal(s.profile.threads.n, 2);
		assert_int_equal(s.profile.tracks.n, 2);
		for (uint32_t t = 0; t < 2; t++) {
			struct reference ref = reference(&s.profile, &s.trace,
							 t);

			compare(&s.profile, &s.all, &ref, t, &all, n);
			free(ref.items);
		}
		close_scene(&s);
	}
	assert_true(n[SEAM_ITEM_BEGIN] > 1000);
	assert_int_equal(n[SEAM_ITEM_BEGIN], n[SEAM_ITEM_END]);
	assert_true(n[SEAM_ITEM_ARGUMENT] && n[SEAM_ITEM_CUSTOM]);
	assert_int_equal(n[SEAM_ITEM_SAMPLE], 60 * 60);
	assert_int_equal(n[SEAM_ITEM_LOSS], 60 * 8);
}

static void select_one(struct seam_selection *selection, unsigned int what,
		       uint64_t seed)
{
	seam_selection_init(selection);
	switch (what) {
	case 0:
		selection->from_ns = BASE_NS + 600 + 10 * seed;
		selection->to_ns = selection->from_ns + 500;
		break;
	case 1:
		selection->thread = "2";
		break;
	case 2:
		selection->layers = 1 << SEAM_LAYER_NATIVE;
		break;
	case 3:
		selection->layers = 1 << SEAM_LAYER_KERNEL |
				    1 << SEAM_LAYER_JIT;
		break;
	case 4:
		selection->event = "cpu-clock";
		break;
	case 5:
		selection->event = "xray";
		break;
	case 6:
		selection->search = seed % 2 ? "#3" : "DD";
		break;
	case 7:
		selection->search = seed % 2 ? "odd" : "MAIN";
		break;
	case 8:
		selection->callees_of = "#3";
		break;
	default:
		selection->callers_of = "#3";
		selection->to_ns = BASE_NS + 1200;
	}
}

UNIT_TEST(a_selection_is_the_same_for_samples_calls_and_marks)
{
	size_t n[10][SEAM_ITEM_SAMPLE + 1] = { 0 };
	struct scene s;

	for (uint64_t seed = 0; seed < 12; seed++) {
		open_scene(&s, seed);
		for (uint32_t t = 0; t < 2; t++) {
			struct reference ref = reference(&s.profile, &s.trace,
							 t);

			for (unsigned int what = 0; what < 10; what++) {
				struct seam_selection selection;

				select_one(&selection, what, seed);
				compare(&s.profile, &s.all, &ref, t,
					&selection, n[what]);
			}
			free(ref.items);
		}
		close_scene(&s);
	}
	/* each leaves something of each kind, where there is any */
	for (unsigned int what = 0; what < 10; what++) {
		bool has_calls = what != 3 && what != 4;
		bool has_samples = what != 5;

		/* 7: no function is called "odd" or "main" */
		assert_int_equal(n[what][SEAM_ITEM_BEGIN] > 0,
				 has_calls && what != 7);
		assert_int_equal(n[what][SEAM_ITEM_CUSTOM] > 0, has_calls);
		assert_int_equal(n[what][SEAM_ITEM_SAMPLE] > 0, has_samples);
		assert_true(n[what][SEAM_ITEM_LOSS] > 0);
	}
}

/* -- how much memory ---------------------------------------------------- */

/* @n_blocks of 1,000 calls each, of thread 1 of process 1. */
static void make_large(struct made *m, unsigned int n_blocks)
{
	struct made body = { 0 };

	made_header(m, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
	body.format = m->format;
	for (unsigned int i = 0; i < 250; i++) {
		for (uint32_t f = 1; f <= 4; f++)
			made_call(&body, SEAM_XRAY_ENTRY, f, 10);
		for (uint32_t f = 4; f >= 1; f--)
			made_call(&body, SEAM_XRAY_EXIT, f, 10);
	}
	for (uint64_t b = 0; b < n_blocks; b++) {
		made_block(m, 1, 1, b + 1, 0, 1000 + b * 20000);
		made_put(m, body.data, body.size);
		made_end(m, 0, 0);
	}
	made_free(&body);
}

/* What reading all of thread 1 holds at most, of that many calls. */
static long held_for(unsigned int n_blocks, uint64_t *n_calls)
{
	struct seam_timelines all;
	struct seam_timeline t;
	struct seam_profile p = built();
	struct seam_trace trace;
	struct seam_item item;
	struct made m = { 0 };
	uint64_t last_ns = 0;
	long before;

	make_large(&m, n_blocks);
	built_add(&p, 2000, "app", "main");
	assert_int_equal(trace_from_bytes(&trace, (struct seam_bytes) {
		m.data, m.size }, NULL), 0);
	assert_int_equal(seam_load_xray(&p, &trace, NULL, NULL, NULL), 0);
	before = most_held = held;
	*n_calls = 0;
	assert_int_equal(seam_timelines_init(&all, &p), 0);
	seam_timeline_open(&t, &all, NULL, 0);
	while (seam_timeline_next(&t, &item) > 0) {
		*n_calls += item.kind == SEAM_ITEM_END;
		assert_true(item.time_ns >= last_ns);
		last_ns = item.time_ns;
	}
	seam_timeline_close(&t);
	seam_timelines_fini(&all);
	assert_int_equal(held, before);
	seam_profile_fini(&p);
	seam_trace_close(&trace);
	made_free(&m);
	return most_held - before;
}

UNIT_TEST(a_million_calls_need_no_more_memory_than_ten_thousand)
{
	uint64_t few, many;
	long small = held_for(10, &few), large = held_for(1200, &many);

	assert_int_equal(few, 10000);
	assert_int_equal(many, 1200000);
	assert_true(small > 0 && small < 4 << 20);
	/* the allocator may round the same size up in two ways */
	assert_true(large < small + 1024);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
