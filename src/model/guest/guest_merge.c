/* SPDX-License-Identifier: MIT */
/* guest_merge.c - segments between addresses; see guest_merge.h */
#include "model/guest/guest_merge.h"

#include <errno.h>
#include <linux/perf_event.h>

/* What is merged: the user part, and how much of it is in the result. */
struct guest_merge {
	const uint64_t *user;
	size_t n_user, n_done;
	uint32_t table;
	struct seam_guest_words *out;
	bool is_in_guest;	/* the last words are frames */
};

static int put(struct seam_guest_words *out, const uint64_t *words, size_t n)
{
	return SEAM_ARRAY_EXTEND(out, words, n) ? 0 : -ENOMEM;
}

/* Copy the user part up to index @end. */
static int put_host(struct guest_merge *m, size_t end)
{
	uint64_t marker = m->n_done ? SEAM_GUEST_CALLER :
			  (uint64_t)PERF_CONTEXT_USER;
	size_t from = m->n_done;

	if (from == end)
		return 0;
	if (m->is_in_guest && put(m->out, &marker, 1))
		return -ENOMEM;
	m->is_in_guest = false;
	m->n_done = end;
	return put(m->out, m->user + from, end - from);
}

static int put_guest(struct guest_merge *m, const struct seam_guest_part *part)
{
	const uint64_t start[] = { SEAM_GUEST_FRAMES, m->table };

	if (!m->is_in_guest && put(m->out, start, 2))
		return -ENOMEM;
	m->is_in_guest = true;
	for (size_t i = 0; i < part->segment.n_frames; i++) {
		uint64_t word = seam_guest_word(seam_guest_frame_at(part, i));

		if (put(m->out, &word, 1))
			return -ENOMEM;
	}
	return 0;
}

static int put_part(struct guest_merge *m, const struct seam_guest_part *part)
{
	const struct seam_guest_segment *s = &part->segment;
	size_t join = s->join == SEAM_GUEST_NO_JOIN ? m->n_user : s->join;

	if (join + s->n_replaced > m->n_user)
		return -EBADMSG;
	if (!s->n_frames)
		return 0;
	if (put_host(m, join) || put_guest(m, part))
		return -ENOMEM;
	m->n_done = join + s->n_replaced;
	return 0;
}

int seam_guest_merge(struct seam_guest_reader reader, const uint64_t *chain,
		     size_t n, struct seam_guest_words *out)
{
	struct seam_guest_part part;
	struct guest_merge m = { .table = reader.head.table, .out = out };
	size_t first = 0;
	int r;

	while (first < n && chain[first] != (uint64_t)PERF_CONTEXT_USER)
		first++;
	first += first < n;
	m.user = chain + first;
	m.n_user = n - first;
	out->n = 0;
	r = put(out, chain, first);
	while (r == 0 && seam_guest_next_part(&reader, &part))
		r = put_part(&m, &part);
	return r ? r : put_host(&m, m.n_user);
}
