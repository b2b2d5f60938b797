/* SPDX-License-Identifier: MIT */
/* loaded.h - a perf.data file made by hand, and the profile that it becomes */
#ifndef SEAM_TESTS_LOADED_H
#define SEAM_TESTS_LOADED_H

#include "../perf_bytes.h"
#include "model/perf/load_perf.h"
#include "model/profile/stack_ends.h"
#include "unit.h"

#define USER ((uint64_t)PERF_CONTEXT_USER)
#define KERNEL ((uint64_t)PERF_CONTEXT_KERNEL)

struct loaded {
	struct bytes file;
	struct seam_profile profile;
	struct seam_stack_counts counts;
};

/* Takes @made; @input has what is not its data.  No counts.  0 or -ENOMEM. */
static inline int try_to_load(struct loaded *l, struct bytes made,
			      struct seam_perf_input input,
			      const struct seam_symbols_options *options)
{
	struct seam_file file = { .bytes = { made.data, made.size } };
	struct seam_symbols *symbols;
	struct seam_err err = { 0 };
	int r = seam_profile_init(&l->profile);

	l->file = made;
	input.data = &file;
	if (r)
		return r;
	symbols = seam_symbols_new(options);
	r = symbols ? seam_load_perf(&l->profile, &input, symbols, &err) :
	    -ENOMEM;
	seam_symbols_free(symbols);
	return r;
}

static inline void load_made(struct loaded *l, struct bytes made,
			     struct seam_perf_input input)
{
	const struct seam_symbols_options options = { 0 };

	assert_int_equal(try_to_load(l, made, input, &options), 0);
	assert_int_equal(seam_stack_ends_count(&l->profile, NULL, &l->counts),
			 0);
}

static inline uint64_t ended(const struct loaded *l, enum seam_stack_end end)
{
	return l->counts.n_ended[end];
}

static inline void unload(struct loaded *l)
{
	seam_profile_fini(&l->profile);
	free(l->file.data);
	l->file = (struct bytes) { .size = 0 };
}

/* "leaf caller ...", of sample @i, without what is above @until (or NULL). */
static inline const char *stack_text(const struct loaded *l, size_t i,
				     const char *until)
{
	static char text[65536];
	const struct seam_profile *p = &l->profile;
	size_t pos = 0;

	text[0] = '\0';
	for (uint32_t s = p->samples.stack[i]; s && pos < sizeof(text);
	     s = p->stacks.items[s].parent) {
		const char *name = seam_profile_text(p,
				seam_profile_leaf(p, s)->name);

		pos += (size_t)snprintf(text + pos, sizeof(text) - pos, "%s%s",
					pos ? " " : "", name);
		if (until && strcmp(name, until) == 0)
			break;
	}
	return text;
}

#endif /* SEAM_TESTS_LOADED_H */
