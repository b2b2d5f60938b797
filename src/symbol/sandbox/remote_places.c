/* SPDX-License-Identifier: MIT */
/* remote_places.c - what is at an offset of a file; see remote.h */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "symbol/sandbox/remote_ask.h"

/* Inlined calls at a place, where nobody has said how many matter. */
enum { USUAL_CAP = 64 };

void seam_remote_expect(struct seam_remote_module *module, uint64_t offset)
{
	uint64_t *slot = SEAM_ARRAY_PUSH(&module->expected);

	if (slot)
		*slot = offset;
}

void seam_remote_forget(struct seam_remote_module *module)
{
	free(module->expected.items);
	free(module->answers.items);
	free(module->locations.items);
	seam_index_fini(&module->index);
}

/* -- answers ------------------------------------------------------------ */

/* Texts come from strangers' files, and are kept. */
static const char *keep(struct seam_remote *remote, const char *text,
			bool is_there)
{
	uint32_t id = is_there ? seam_strings_put(&remote->strings, text) :
		      SEAM_NONE;

	return id == SEAM_NONE ? NULL : seam_strings_get(&remote->strings, id);
}

/* To the end of those that are kept. */
static int take_locations(struct seam_remote *remote,
			  struct seam_remote_module *module,
			  struct seam_cursor *body, size_t n)
{
	if (n && !SEAM_ARRAY_RESERVE(&module->locations, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint32_t line = seam_cursor_u32(body);
		uint32_t flags = seam_cursor_u32(body);
		const char *function = seam_cursor_cstr(body);
		const char *file = seam_cursor_cstr(body);

		if (body->error)
			break;
		module->locations.items[module->locations.n++] =
			(struct seam_location) {
				.function = keep(remote, function, flags &
						 SEAM_REMOTE_NAMED),
				.file = keep(remote, file, flags &
					     SEAM_REMOTE_HAS_FILE),
				.line = line,
				.is_inlined = flags & SEAM_REMOTE_INLINED,
			};
	}
	return body->error;
}

/* That @offset is in it is what callers count with. */
static int take_extent(struct seam_cursor *body, uint64_t offset,
		       struct seam_extent *extent)
{
	extent->offset = seam_cursor_u64(body);
	extent->addr = seam_cursor_u64(body);
	extent->size = seam_cursor_u64(body);
	if (body->error)
		return body->error;
	return extent->offset > offset || (extent->size &&
		offset - extent->offset >= extent->size) ? -EBADMSG : 0;
}

static int take_answer(struct seam_remote *remote,
		       struct seam_remote_module *module, uint64_t offset,
		       struct seam_cursor *body, uint32_t cap)
{
	struct seam_remote_answer *answer = SEAM_ARRAY_PUSH(&module->answers);
	uint32_t flags = seam_cursor_u32(body), n = seam_cursor_u32(body);
	int r = body->error ? body->error : n > cap ? -EBADMSG : 0;

	if (!answer)
		return -ENOMEM;
	*answer = (struct seam_remote_answer) {
		.offset = offset, .cap = cap, .n = n,
		.first = module->locations.n,
		.is_mapped = flags & SEAM_REMOTE_MAPPED,
		.before_trampoline = flags & SEAM_REMOTE_BEFORE_TRAMPOLINE,
		.has_extent = flags & SEAM_REMOTE_HAS_EXTENT,
	};
	if (!r && answer->has_extent)
		r = take_extent(body, offset, &answer->extent);
	if (!r)
		r = take_locations(remote, module, body, n);
	if (r) {
		module->locations.n = answer->first;
		module->answers.n--;
		return r;
	}
	return seam_index_add(&module->index, seam_hash_add(offset, cap),
			      (uint32_t)(module->answers.n - 1));
}

static const struct seam_remote_answer *
find_answer(const struct seam_remote_module *module, uint64_t offset,
	    uint32_t cap)
{
	struct seam_index_probe probe = seam_index_probe(&module->index,
						seam_hash_add(offset, cap));
	uint32_t id;

	while ((id = seam_index_next(&module->index, &probe)) != SEAM_NONE)
		if (module->answers.items[id].offset == offset &&
		    module->answers.items[id].cap == cap)
			return &module->answers.items[id];
	return NULL;
}

/* -- questions ---------------------------------------------------------- */

/* @offset and some of what is expected, into @batch; how many. */
static size_t fill_batch(struct seam_remote_module *module, uint64_t offset,
			 uint32_t cap, uint64_t batch[SEAM_REMOTE_BATCH])
{
	size_t n = 0;

	batch[n++] = offset;
	while (module->expected.n > 0 && n < SEAM_REMOTE_BATCH) {
		batch[n] = module->expected.items[--module->expected.n];
		/* other processes have the same file at the same place */
		if (batch[n] != offset && !find_answer(module, batch[n], cap))
			n++;
	}
	return n;
}

static int ask_batch(struct seam_remote *remote,
		     struct seam_remote_module *module, const uint64_t *batch,
		     size_t n, uint32_t cap, char *problem)
{
	struct seam_channel *channel = &remote->sandbox.channel;
	struct seam_message answer;
	const char *text;
	int r;

	seam_channel_put_u32(channel, module->id);
	seam_channel_put_u32(channel, cap);
	seam_channel_put(channel, batch, n * sizeof(*batch));
	r = seam_remote_ask(remote, SEAM_REMOTE_RESOLVE, &answer);
	for (size_t i = 0; !r && i < n; i++)
		r = take_answer(remote, module, batch[i], &answer.body, cap);
	text = r ? "" : seam_cursor_cstr(&answer.body);
	if (!r && answer.body.error)
		return -EBADMSG;
	if (!problem[0])
		snprintf(problem, SEAM_ERR_TEXT, "%s", text);
	return r;
}

/* A child that knows @module, which is worth a question. */
static bool is_reachable(struct seam_remote *remote,
			 struct seam_remote_module *module)
{
	struct seam_message told;

	return module->is_readable &&
	       seam_remote_tell(remote, module, &told, NULL) == 0;
}

static void give_up(struct seam_remote *remote,
		    struct seam_remote_module *module, int r, char *problem)
{
	seam_remote_lose(remote, module->lost, r, NULL);
	snprintf(problem, SEAM_ERR_TEXT, "%s", module->lost);
}

/* What is known of @offset, or the child says; NULL: nothing. */
static const struct seam_remote_answer *
answer_at(struct seam_remote *remote, struct seam_remote_module *module,
	  uint64_t offset, size_t wanted, char *problem)
{
	const struct seam_remote_answer *known;
	uint64_t batch[SEAM_REMOTE_BATCH];
	uint32_t cap = wanted > SEAM_REMOTE_LOCATIONS ?
		       SEAM_REMOTE_LOCATIONS : (uint32_t)wanted;
	size_t n;
	int r;

	known = find_answer(module, offset, cap);
	if (known || !is_reachable(remote, module))
		return known;
	if (cap > module->cap)
		module->cap = cap;
	n = fill_batch(module, offset, cap, batch);
	r = ask_batch(remote, module, batch, n, cap, problem);
	if (r) {
		give_up(remote, module, r, problem);
		return NULL;
	}
	return find_answer(module, offset, cap);
}

size_t seam_remote_resolve(struct seam_remote *remote,
			   struct seam_remote_module *module, uint64_t offset,
			   struct seam_location *out, size_t cap,
			   char *problem)
{
	const struct seam_remote_answer *answer = answer_at(remote, module,
						offset, cap, problem);

	if (!answer || answer->n == 0)
		return 0;
	memcpy(out, module->locations.items + answer->first,
	       answer->n * sizeof(*out));
	return answer->n;
}

bool seam_remote_is_trampoline(struct seam_remote *remote,
			       struct seam_remote_module *module,
			       uint64_t offset, char *problem)
{
	const struct seam_remote_answer *answer = offset == 0 ? NULL :
		answer_at(remote, module, offset - 1,
			  module->cap ? module->cap : USUAL_CAP, problem);

	return answer && answer->before_trampoline;
}

/* Of a place with a name, which few need. */
static bool ask_extent(struct seam_remote *remote,
		       struct seam_remote_module *module, uint64_t offset,
		       struct seam_extent *out, char *problem)
{
	struct seam_channel *channel = &remote->sandbox.channel;
	struct seam_message answer;
	bool is_mapped = false;
	int r;

	if (!is_reachable(remote, module))
		return false;
	seam_channel_put_u32(channel, module->id);
	seam_channel_put_u64(channel, offset);
	r = seam_remote_ask(remote, SEAM_REMOTE_EXTENT, &answer);
	if (!r) {
		is_mapped = seam_cursor_u32(&answer.body);
		r = take_extent(&answer.body, offset, out);
	}
	if (r)
		give_up(remote, module, r, problem);
	return !r && is_mapped;
}

bool seam_remote_extent(struct seam_remote *remote,
			struct seam_remote_module *module, uint64_t offset,
			struct seam_extent *out, char *problem)
{
	const struct seam_remote_answer *answer = find_answer(module, offset,
							      module->cap);

	if (!answer || !answer->has_extent)
		return ask_extent(remote, module, offset, out, problem);
	if (answer->is_mapped)
		*out = answer->extent;
	return answer->is_mapped;
}
