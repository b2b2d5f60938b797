/* SPDX-License-Identifier: MIT */
/* symbolizer_resolve.c - names and extents of offsets; see symbolizer.h */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "symbol/symbolizer/symbolizer_protocol.h"

/* Inlined calls at an offset, where no request has set a number. */
enum { USUAL_CAP = 64 };

void seam_symbolizer_expect(struct seam_symbolizer_module *module,
			    uint64_t offset)
{
	(void)SEAM_ARRAY_ADD(&module->expected, offset);
}

void seam_symbolizer_module_fini(struct seam_symbolizer_module *module)
{
	free(module->expected.items);
	free(module->results.items);
	free(module->locations.items);
	seam_index_fini(&module->index);
}

/* -- replies ------------------------------------------------------------ */

/* A copy of a string of a reply; NULL when it is not there. */
static const char *intern(struct seam_symbolizer *s, const char *text,
			  bool is_there)
{
	uint32_t id = is_there ? seam_strings_put(&s->strings, text) :
		      SEAM_NONE;

	return id == SEAM_NONE ? NULL : seam_strings_get(&s->strings, id);
}

/* @n locations, after those of earlier results. */
static int take_locations(struct seam_symbolizer *s,
			  struct seam_symbolizer_module *module,
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
				.function = intern(s, function, flags &
						   SEAM_SYMBOLIZER_NAMED),
				.file = intern(s, file, flags &
					       SEAM_SYMBOLIZER_HAS_FILE),
				.line = line,
				.is_inlined = flags & SEAM_SYMBOLIZER_INLINED,
			};
	}
	return body->error;
}

/* Callers count on @offset being in the extent. */
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

static int take_result(struct seam_symbolizer *s,
		       struct seam_symbolizer_module *module, uint64_t offset,
		       struct seam_cursor *body, uint32_t cap)
{
	struct seam_symbolizer_result *result =
		SEAM_ARRAY_PUSH(&module->results);
	uint32_t flags = seam_cursor_u32(body), n = seam_cursor_u32(body);
	int r = body->error ? body->error : n > cap ? -EBADMSG : 0;

	if (!result)
		return -ENOMEM;
	*result = (struct seam_symbolizer_result) {
		.offset = offset, .cap = cap, .n = n,
		.first = module->locations.n,
		.is_mapped = flags & SEAM_SYMBOLIZER_MAPPED,
		.before_trampoline = flags & SEAM_SYMBOLIZER_BEFORE_TRAMPOLINE,
	};
	if (!r)
		r = take_extent(body, offset, &result->extent);
	if (!r)
		r = take_locations(s, module, body, n);
	if (r) {
		module->locations.n = result->first;
		module->results.n--;
		return r;
	}
	return seam_index_add(&module->index, seam_hash_add(offset, cap),
			      (uint32_t)(module->results.n - 1));
}

static const struct seam_symbolizer_result *
find_result(const struct seam_symbolizer_module *module, uint64_t offset,
	    uint32_t cap)
{
	uint32_t id = SEAM_INDEX_FIND(&module->index,
		seam_hash_add(offset, cap), i,
		module->results.items[i].offset == offset &&
		module->results.items[i].cap == cap);

	return id == SEAM_NONE ? NULL : &module->results.items[id];
}

/* -- requests ----------------------------------------------------------- */

/* @offset and some of what is expected, into @batch; how many. */
static size_t fill_batch(struct seam_symbolizer_module *module, uint64_t offset,
			 uint32_t cap, uint64_t batch[SEAM_SYMBOLIZER_BATCH])
{
	size_t n = 0;

	batch[n++] = offset;
	while (module->expected.n > 0 && n < SEAM_SYMBOLIZER_BATCH) {
		batch[n] = module->expected.items[--module->expected.n];
		/* other processes have the same file at the same place */
		if (batch[n] != offset && !find_result(module, batch[n], cap))
			n++;
	}
	return n;
}

static int request_batch(struct seam_symbolizer *s,
			 struct seam_symbolizer_module *module,
			 const uint64_t *batch, size_t n, uint32_t cap)
{
	struct seam_ipc *ipc = &s->sandbox.ipc;
	struct seam_message reply;
	const char *problem;
	int r;

	seam_ipc_put_u32(ipc, module->id);
	seam_ipc_put_u32(ipc, cap);
	seam_ipc_put(ipc, batch, n * sizeof(*batch));
	r = seam_symbolizer_request(s, SEAM_SYMBOLIZER_RESOLVE, &reply);
	for (size_t i = 0; !r && i < n; i++)
		r = take_result(s, module, batch[i], &reply.body, cap);
	problem = r ? "" : seam_cursor_cstr(&reply.body);
	if (!r && reply.body.error)
		return -EBADMSG;
	if (!module->problem[0])
		snprintf(module->problem, sizeof(module->problem), "%s",
			 problem);
	return r;
}

/* Whether there is a process that has read @module, and it has code. */
static bool is_reachable(struct seam_symbolizer *s,
			 struct seam_symbolizer_module *module)
{
	return module->is_readable &&
	       seam_symbolizer_reach(s, module, NULL) == 0;
}

static void give_up(struct seam_symbolizer *s,
		    struct seam_symbolizer_module *module, int r)
{
	seam_symbolizer_fail(s, module->lost, r, NULL);
	snprintf(module->problem, sizeof(module->problem), "%s", module->lost);
}

/* The result for @offset, received earlier or now; NULL: none. */
static const struct seam_symbolizer_result *
result_at(struct seam_symbolizer *s, struct seam_symbolizer_module *module,
	  uint64_t offset, size_t wanted)
{
	const struct seam_symbolizer_result *known;
	uint64_t batch[SEAM_SYMBOLIZER_BATCH];
	uint32_t cap = wanted > SEAM_SYMBOLIZER_LOCATIONS ?
		       SEAM_SYMBOLIZER_LOCATIONS : (uint32_t)wanted;
	size_t n;
	int r;

	known = find_result(module, offset, cap);
	if (known || !is_reachable(s, module))
		return known;
	if (cap > module->cap)
		module->cap = cap;
	n = fill_batch(module, offset, cap, batch);
	r = request_batch(s, module, batch, n, cap);
	if (r) {
		give_up(s, module, r);
		return NULL;
	}
	return find_result(module, offset, cap);
}

/* A result with this number is most likely there already. */
static size_t any_cap(const struct seam_symbolizer_module *module)
{
	return module->cap ? module->cap : USUAL_CAP;
}

size_t seam_symbolizer_resolve(struct seam_symbolizer *s,
			       struct seam_symbolizer_module *module,
			       uint64_t offset, struct seam_location *out,
			       size_t cap)
{
	const struct seam_symbolizer_result *result =
		result_at(s, module, offset, cap);

	if (!result || result->n == 0)
		return 0;
	memcpy(out, module->locations.items + result->first,
	       result->n * sizeof(*out));
	return result->n;
}

bool seam_symbolizer_is_trampoline(struct seam_symbolizer *s,
				   struct seam_symbolizer_module *module,
				   uint64_t offset)
{
	const struct seam_symbolizer_result *result =
		offset == 0 ? NULL : result_at(s, module, offset - 1,
					       any_cap(module));

	return result && result->before_trampoline;
}

bool seam_symbolizer_extent(struct seam_symbolizer *s,
			    struct seam_symbolizer_module *module,
			    uint64_t offset, struct seam_extent *out)
{
	const struct seam_symbolizer_result *result =
		result_at(s, module, offset, any_cap(module));

	if (!result || !result->is_mapped)
		return false;
	*out = result->extent;
	return true;
}
