/* SPDX-License-Identifier: MIT */
/*
 * built.h - profiles for tests, written as folded stacks
 *
 *	struct seam_profile p = built();
 *	built_add(&p, 10, "app", "main;fib;read_[k]");
 *
 * A name may end in _[k], _[j], _[g] or _[i], and may have "@module" before
 * that.  Every sample has a weight of 1,000, thread 1 of process 1 and event
 * "cpu-clock"; struct built_sample says otherwise.
 */
#ifndef SEAM_TESTS_BUILT_H
#define SEAM_TESTS_BUILT_H

#include <assert.h>
#include <stdlib.h>

#include "model/profile/profile.h"

struct built_sample {
	uint64_t time_ns;
	const char *comm;
	const char *stack;	/* "" for none */
	int32_t tid, pid;	/* 0: 1 */
	const char *event;	/* NULL: cpu-clock, in ns; others count */
	uint64_t weight;	/* 0: 1,000 */
};

static inline uint32_t built_string(struct seam_profile *p, const char *text)
{
	return seam_strings_put(&p->strings, text);
}

static inline struct seam_profile built(void)
{
	struct seam_profile p;
	int rc = seam_profile_init(&p);

	assert(rc == 0);
	(void)rc;
	p.command = built_string(&p, "app --fast");
	return p;
}

/* The layer that the end of a name stands for; cuts it off. */
static inline uint8_t built_layer(char *name, bool *is_inlined)
{
	size_t n = strlen(name);
	char c = n > 4 && name[n - 1] == ']' && name[n - 3] == '[' &&
		 name[n - 4] == '_' ? name[n - 2] : 0;

	*is_inlined = c == 'i';
	if (c)
		name[n - 4] = '\0';
	return c == 'k' ? SEAM_LAYER_KERNEL : c == 'j' ? SEAM_LAYER_JIT :
	       c == 'g' ? SEAM_LAYER_GUEST : SEAM_LAYER_NATIVE;
}

static inline uint32_t built_module(struct seam_profile *p, const char *path)
{
	return seam_profile_module(p, &(struct seam_profile_module) {
		.path = built_string(p, path), .kind = SEAM_MODULE_FILE,
		.pid = -1,
	});
}

static inline uint32_t built_frame(struct seam_profile *p, char *name)
{
	static const char *const modules[] = {
		"[kernel.kallsyms]", "/usr/bin/app", "[jit]", "app.lua",
	};
	struct seam_function function = { .is_named = true };
	struct seam_frame frame = { .code = SEAM_NONE };
	char *at;

	function.layer = built_layer(name, &frame.is_inlined);
	at = strrchr(name, '@');
	if (at)
		*at = '\0';
	function.name = built_string(p, name);
	function.module = built_module(p, at ? at + 1 :
				       modules[function.layer]);
	frame.module = function.module;
	frame.function = seam_profile_function(p, &function);
	return seam_profile_frame(p, &frame);
}

static inline uint32_t built_stack(struct seam_profile *p, const char *text)
{
	uint32_t stack = 0;

	while (*text) {
		size_t n = strcspn(text, ";");
		char *name = strndup(text, n);

		stack = seam_profile_stack(p, stack, built_frame(p, name));
		free(name);
		text += n + (text[n] == ';');
	}
	return stack;
}

static inline uint32_t built_process(struct seam_profile *p, int32_t pid,
				     uint32_t name)
{
	for (uint32_t i = 0; i < p->processes.n; i++)
		if (p->processes.items[i].pid == pid)
			return i;
	*SEAM_ARRAY_PUSH(&p->processes) = (struct seam_process) {
		.pid = pid, .name = name, .end_ns = UINT64_MAX,
		.parent = SEAM_NONE,
	};
	return (uint32_t)p->processes.n - 1;
}

static inline uint32_t built_thread(struct seam_profile *p, int32_t pid,
				    int32_t tid, uint32_t name)
{
	uint32_t process = built_process(p, pid, name);

	for (uint32_t i = 0; i < p->threads.n; i++) {
		if (p->threads.items[i].tid != tid)
			continue;
		p->threads.items[i].name = name;
		return i;
	}
	*SEAM_ARRAY_PUSH(&p->threads) = (struct seam_thread) {
		.process = process, .tid = tid, .name = name,
		.end_ns = UINT64_MAX,
	};
	return (uint32_t)p->threads.n - 1;
}

static inline uint16_t built_event(struct seam_profile *p, const char *name)
{
	uint32_t id = built_string(p, name);
	uint8_t unit = strcmp(name, "cpu-clock") ? SEAM_UNIT_COUNT :
		       SEAM_UNIT_NS;
	uint16_t i;

	for (i = 0; i < p->events.n; i++)
		if (p->events.items[i].name == id)
			break;
	if (i == p->events.n)
		*SEAM_ARRAY_PUSH(&p->events) = (struct seam_profile_event) {
			.name = id, .unit = unit,
		};
	p->events.items[i].n_samples++;
	return i;
}

#define BUILT_PUSH(s, column, value)					\
	((s)->column = realloc((s)->column, ((s)->n + 1) *		\
			       sizeof(*(s)->column)),			\
	 (s)->column[(s)->n] = (value))

static inline void built_put(struct seam_profile *p, struct built_sample b)
{
	struct seam_samples *s = &p->samples;
	uint32_t comm = built_string(p, b.comm);

	BUILT_PUSH(s, time_ns, b.time_ns);
	BUILT_PUSH(s, weight, b.weight ? b.weight : 1000);
	BUILT_PUSH(s, thread, built_thread(p, b.pid ? b.pid : 1,
					   b.tid ? b.tid : 1, comm));
	BUILT_PUSH(s, comm, comm);
	BUILT_PUSH(s, stack, built_stack(p, b.stack));
	BUILT_PUSH(s, cpu, 0);
	if (s->vmstate)
		BUILT_PUSH(s, vmstate, SEAM_VMSTATE_NONE);
	BUILT_PUSH(s, event, built_event(p, b.event ? b.event : "cpu-clock"));
	s->n = s->cap = s->n + 1;
	if (s->n == 1 || b.time_ns < p->start_ns)
		p->start_ns = b.time_ns;
	if (b.time_ns > p->end_ns)
		p->end_ns = b.time_ns;
}

static inline void built_add(struct seam_profile *p, uint64_t time_ns,
			     const char *comm, const char *stack)
{
	built_put(p, (struct built_sample) {
		.time_ns = time_ns, .comm = comm, .stack = stack,
	});
}

/* In an empty profile: @n samples, each of a function of its own in @stack. */
static inline void built_leaves(struct seam_profile *p, uint32_t stack,
				unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		char leaf[16];

		snprintf(leaf, sizeof(leaf), "leaf%u", i);
		built_add(p, i, "app", "");
		p->samples.stack[i] = seam_profile_stack(
			p, stack, built_frame(p, leaf));
	}
}

#endif /* SEAM_TESTS_BUILT_H */
