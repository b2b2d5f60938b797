/* SPDX-License-Identifier: MIT */
/* resolver.c - addresses to frames, each place once; see resolver.h */
#include "model/perf/resolver.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "model/profile/module_name.h"
#include "symbol/names/java_name.h"

/* Functions at one address: itself and the calls inlined into it. */
#define MAX_INLINED 64

/* Linux 6.19: the next word is a cookie, not an address. */
#define CONTEXT_USER_DEFERRED ((uint64_t)-640)

/* The first mapping: where a kernel address is when no record says. */
#define KERNEL_MAPPING 0

/* A place in a file (or the kernel) and the frames it means. */
struct seam_place {
	uint32_t mapping;	/* the first one of its module; SEAM_NONE */
	bool is_call;		/* a return address: looked up a byte earlier */
	bool is_trampoline;	/* of a signal: not a return address after all */
	uint64_t pos;		/* in the file; an address for the kernel */
	size_t first;		/* in frames */
	uint32_t n;
};

int seam_resolver_init(struct seam_resolver *resolver,
		       struct seam_profile *profile,
		       struct seam_symbols *symbols,
		       struct seam_spaces *spaces)
{
	*resolver = (struct seam_resolver) {
		.profile = profile, .symbols = symbols, .spaces = spaces,
		.kernel_module = SEAM_NONE,
		.kernel_path = seam_strings_put(&profile->strings,
						"[kernel.kallsyms]"),
		.jit_path = seam_strings_put(&profile->strings, "[jit]"),
	};
	if (resolver->kernel_path == SEAM_NONE ||
	    resolver->jit_path == SEAM_NONE ||
	    seam_spaces_add(&resolver->kernel) == SEAM_NONE)
		return -ENOMEM;
	return seam_resolver_mapping(resolver, &(struct seam_mapping) {
		.kind = SEAM_MAPPING_KERNEL, .path = resolver->kernel_path,
	}) == KERNEL_MAPPING ? 0 : -ENOMEM;
}

void seam_resolver_fini(struct seam_resolver *resolver)
{
	seam_spaces_fini(&resolver->kernel);
	seam_expected_fini(&resolver->expected);
	free(resolver->mappings.items);
	free(resolver->places.items);
	free(resolver->frames.items);
	free(resolver->chain.items);
	seam_index_fini(&resolver->place_index);
	*resolver = (struct seam_resolver) { 0 };
}

int seam_resolver_kernel(struct seam_resolver *resolver,
			 const struct seam_kernel *kernel)
{
	resolver->kernel_module = seam_symbols_kernel(resolver->symbols,
						      kernel);
	return resolver->kernel_module == SEAM_NONE ? -ENOMEM : 0;
}

/* The symbols module of a mapping, asked for the first time or not. */
static uint32_t module_of(struct seam_resolver *r, struct seam_mapping *m)
{
	if (m->kind == SEAM_MAPPING_KERNEL)
		return r->kernel_module;
	if (m->module == SEAM_NONE) {
		m->demand.path = seam_profile_text(r->profile, m->path);
		m->demand.build_id = m->build_id_size ? m->build_id : NULL;
		m->demand.build_id_size = m->build_id_size;
		m->demand.pid = m->pid;
		m->module = seam_symbols_module(r->symbols, &m->demand);
	}
	return m->module;
}

uint32_t seam_resolver_mapping(struct seam_resolver *resolver,
			       const struct seam_mapping *mapping)
{
	struct seam_mapping *slot = SEAM_ARRAY_PUSH(&resolver->mappings);

	if (!slot)
		return SEAM_NONE;
	*slot = *mapping;
	slot->module = SEAM_NONE;
	/* Of several times of one file the earliest counts: before it opens. */
	if (slot->demand.evidence == SEAM_EVIDENCE_INODE &&
	    slot->build_id_size == 0)
		module_of(resolver, slot);
	return (uint32_t)(resolver->mappings.n - 1);
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Source: the kernel's names of mappings, fs/proc/task_mmu.c and perf's. */
enum seam_mapping_kind seam_resolver_kind(const char *filename)
{
	static const char *const anonymous[] = {
		"//anon", "[anon", "/anon_hugepage", "[heap]", "[stack",
		"/dev/zero", "/memfd:", "/SYSV", "anon_inode:",
	};

	if (begins(filename, "[vdso]"))
		return SEAM_MAPPING_VDSO;
	if (filename[0] == '\0')
		return SEAM_MAPPING_ANON;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(anonymous); i++)
		if (begins(filename, anonymous[i]))
			return SEAM_MAPPING_ANON;
	return SEAM_MAPPING_FILE;
}

/* -- places ------------------------------------------------------------- */

static enum seam_layer layer_of(const struct seam_mapping *mapping)
{
	if (!mapping)
		return SEAM_LAYER_NATIVE;
	switch (mapping->kind) {
	case SEAM_MAPPING_KERNEL:
	case SEAM_MAPPING_KSYMBOL:
		return SEAM_LAYER_KERNEL;
	case SEAM_MAPPING_ANON:
		return SEAM_LAYER_JIT;
	case SEAM_MAPPING_FILE:
	case SEAM_MAPPING_VDSO:
		break;
	}
	return SEAM_LAYER_NATIVE;
}

/*
 * The name of an address without a symbol.  Where nothing is mapped, as when
 * a frame pointer was not one, the address says nothing: all are one.
 */
static uint32_t made_up_name(struct seam_profile *profile, uint32_t path,
			     uint64_t pos)
{
	char name[300] = "[unknown]";
	const char *module;
	size_t size;

	if (path) {
		module = seam_module_name(seam_profile_text(profile, path),
					  &size);
		snprintf(name, sizeof(name), "[%.*s+0x%" PRIx64 "]",
			 (int)size, module, pos);
	}
	return seam_strings_put(&profile->strings, name);
}

static int add_frame(struct seam_resolver *r, struct seam_function function,
		     struct seam_frame frame)
{
	uint32_t *slot = SEAM_ARRAY_PUSH(&r->frames);

	if (!slot || function.name == SEAM_NONE || frame.file == SEAM_NONE)
		return -ENOMEM;
	frame.function = seam_profile_function(r->profile, &function);
	if (frame.function == SEAM_NONE)
		return -ENOMEM;
	*slot = seam_profile_frame(r->profile, &frame);
	return *slot == SEAM_NONE ? -ENOMEM : 0;
}

/* What the recording itself has.  @pos as in struct seam_place. */
static size_t ask_embedded(struct seam_resolver *r,
			   const struct seam_mapping *m, uint64_t pos,
			   struct seam_location *out)
{
	bool is_addr = m->kind == SEAM_MAPPING_ANON ||
		       m->kind == SEAM_MAPPING_KERNEL;
	const char *name = !r->embedded ? NULL :
		seam_embedded_find(r->embedded, &(struct seam_embedded_query) {
			.path = m->path, .pgoff = m->pgoff,
			.start_addr = m->start_addr,
			.is_jit = m->kind == SEAM_MAPPING_ANON,
			.addr = is_addr ? pos : pos - m->pgoff + m->start_addr,
		});

	out[0] = (struct seam_location) { .function = name };
	return name != NULL;
}

/* What the mapped file says. */
static size_t ask_file(struct seam_resolver *r, struct seam_mapping *m,
		       uint64_t pos, struct seam_location *out, size_t cap)
{
	uint32_t module = m->kind == SEAM_MAPPING_ANON ? SEAM_NONE :
			  module_of(r, m);
	size_t n = module == SEAM_NONE ? 0 :
		   seam_symbols_resolve(r->symbols, module, pos, out, cap);

	return n > 0 && out[n - 1].function ? n : 0;
}

/*
 * A file that is proven by its build id says more (lines, inlined calls) than
 * the recording's own tables; one that only has the path says less.
 */
static size_t ask_symbols(struct seam_resolver *r, struct seam_mapping *m,
			  uint64_t pos, struct seam_location *out, size_t cap)
{
	size_t n;

	if (!m)
		return 0;
	if (m->kind == SEAM_MAPPING_KSYMBOL) {
		out[0] = (struct seam_location) {
			.function = seam_profile_text(r->profile, m->function),
		};
		return 1;
	}
	n = r->embedded && m->build_id_size == 0 ? ask_embedded(r, m, pos, out) :
	    0;
	if (n == 0)
		n = ask_file(r, m, pos, out, cap);
	return n > 0 || !r->embedded ? n : ask_embedded(r, m, pos, out);
}

static bool is_file(const struct seam_mapping *m)
{
	return m && (m->kind == SEAM_MAPPING_FILE ||
		     m->kind == SEAM_MAPPING_VDSO);
}

/* Where a place is looked up: at the call, if it is a return address. */
static uint64_t lookup_pos(struct seam_resolver *r, struct seam_mapping *m,
			   struct seam_place *place)
{
	if (!place->is_call || place->pos == 0)
		return place->pos;
	place->is_trampoline = is_file(m) && module_of(r, m) != SEAM_NONE &&
		seam_symbols_is_trampoline(r->symbols, m->module, place->pos);
	return place->is_trampoline ? place->pos : place->pos - 1;
}

/*
 * A place without a symbol: *@pos becomes where its function begins, if that
 * is known.
 */
static bool find_start(struct seam_resolver *r, struct seam_mapping *m,
		       uint64_t *pos)
{
	uint32_t module = is_file(m) ? module_of(r, m) : SEAM_NONE;
	struct seam_extent extent;

	if (module == SEAM_NONE ||
	    !seam_symbols_extent(r->symbols, module, *pos, &extent) ||
	    extent.size == 0)
		return false;
	*pos = extent.offset;
	return true;
}

/* The frame of a place without a symbol. */
static int add_nameless(struct seam_resolver *r, struct seam_mapping *m,
			const struct seam_place *place, uint64_t pos,
			struct seam_function function)
{
	uint64_t start = pos, shown = place->pos;

	if (find_start(r, m, &start))
		shown = start;
	else
		pos = place->pos;
	function.name = made_up_name(r->profile, function.module, shown);
	return add_frame(r, function, (struct seam_frame) {
		.addr = m ? pos : 0 });
}

/* Look a place up and append its frames. */
static int resolve_place(struct seam_resolver *r, struct seam_mapping *m,
			 struct seam_place *place)
{
	struct seam_location found[MAX_INLINED];
	struct seam_strings *strings = &r->profile->strings;
	uint64_t pos = lookup_pos(r, m, place);
	size_t n = ask_symbols(r, m, pos, found, MAX_INLINED);
	struct seam_function function = {
		.module = m ? m->path : 0, .layer = (uint8_t)layer_of(m),
	};
	int error = 0;

	if (n == 0 || !found[n - 1].function) {
		error = add_nameless(r, m, place, pos, function);
		n = 0;
	}
	for (size_t i = 0; error == 0 && i < n; i++) {
		function.name = seam_strings_put(strings, found[i].function);
		function.is_named = true;
		error = add_frame(r, function, (struct seam_frame) {
			.file = seam_strings_put(strings, found[i].file),
			.line = found[i].line,
			.is_inlined = found[i].is_inlined, .addr = pos,
		});
	}
	place->n = (uint32_t)(r->frames.n - place->first);
	return error;
}

/*
 * Mappings of one file are one module: their places are shared through the
 * first of them.  A file mapped by thousands of processes is asked once.
 */
static uint32_t shared_mapping(struct seam_resolver *r, uint32_t mapping)
{
	struct seam_mapping *m;

	if (mapping == SEAM_NONE)
		return SEAM_NONE;
	m = &r->mappings.items[mapping];
	if (m->kind == SEAM_MAPPING_KSYMBOL || m->kind == SEAM_MAPPING_ANON ||
	    (r->embedded && seam_embedded_by_addr(r->embedded, m->path)))
		return mapping;
	return module_of(r, m) | UINT32_C(1) << 31;
}

/*
 * The place (@key, @pos, @is_call), made if it is new: then *@is_new, and its
 * frames are still to be added.  NULL when memory ran out.
 */
static struct seam_place *place_for(struct seam_resolver *r, uint32_t key,
				    uint64_t pos, bool is_call, bool *is_new)
{
	uint64_t hash = seam_hash_add(pos, (uint64_t)key << 1 | is_call);
	struct seam_index_probe probe = seam_index_probe(&r->place_index,
							 hash);
	struct seam_place *place;
	uint32_t id;

	*is_new = false;
	while ((id = seam_index_next(&r->place_index, &probe)) != SEAM_NONE) {
		place = &r->places.items[id];
		if (place->pos == pos && place->mapping == key &&
		    place->is_call == is_call)
			return place;
	}
	place = SEAM_ARRAY_PUSH(&r->places);
	if (!place)
		return NULL;
	if (seam_index_add(&r->place_index, hash,
			   (uint32_t)(r->places.n - 1))) {
		r->places.n--;
		return NULL;
	}
	*is_new = true;
	*place = (struct seam_place) {
		.mapping = key, .pos = pos, .is_call = is_call,
		.first = r->frames.n,
	};
	return place;
}

static const struct seam_place *find_place(struct seam_resolver *r,
					   uint32_t mapping, uint64_t pos,
					   bool is_call)
{
	bool is_new;
	struct seam_place *place = place_for(r, shared_mapping(r, mapping),
					     pos, is_call, &is_new);

	if (is_new && resolve_place(r, mapping == SEAM_NONE ? NULL :
				    &r->mappings.items[mapping], place))
		return NULL;
	return place;
}

/* -- the code of JITs --------------------------------------------------- */

/* Keys of places: modules have bit 31, pieces of JIT code bit 30. */
#define JIT_KEY (UINT32_C(1) << 30)

/* And of the offset in a piece of JIT code, which is smaller. */
#define AMBIGUOUS (UINT64_C(1) << 63)

/* A perf map says less than a file does; it has no code bytes. */
static bool is_from_map(const struct seam_resolver *r,
			const struct seam_jit_location *at)
{
	return seam_jit_code_object(r->jit, at->object)->code.size == 0;
}

/*
 * How people write the name: agents of the JVM write descriptors.  One that may
 * not be the right one is marked, and so a row of its own.
 */
static uint32_t jit_name(struct seam_resolver *r,
			 const struct seam_jit_location *at)
{
	static const char mark[] = " [address reused]";
	char readable[1024], marked[sizeof(readable) + sizeof(mark)];
	const char *name = at->name;

	if (seam_java_name(name, readable, sizeof(readable)))
		name = readable;
	if (at->is_ambiguous) {
		snprintf(marked, sizeof(marked), "%.1000s%s", name, mark);
		name = marked;
	}
	return seam_strings_put(&r->profile->strings, name);
}

static const struct seam_place *
jit_place(struct seam_resolver *r, const struct seam_jit_location *at,
	  bool is_call)
{
	const struct seam_jit_object *object =
		seam_jit_code_object(r->jit, at->object);
	bool is_new;
	struct seam_place *place = place_for(r, at->object | JIT_KEY,
					     at->offset | (at->is_ambiguous ?
					     AMBIGUOUS : 0), is_call, &is_new);

	if (!is_new)
		return place;
	if (add_frame(r, (struct seam_function) {
			.name = jit_name(r, at), .module = r->jit_path,
			.layer = SEAM_LAYER_JIT, .is_named = true,
			.is_ambiguous = at->is_ambiguous,
		}, (struct seam_frame) {
			.file = seam_strings_put(&r->profile->strings,
						 at->file),
			.line = at->line,
			.addr = object->start_addr + at->offset,
		}))
		return NULL;
	place->n = 1;
	return place;
}

/* -- chains ------------------------------------------------------------- */

/* What an address of a chain stands for, by the marker before it. */
enum context {
	IN_KERNEL,
	IN_USER,
	IN_GUEST,		/* of a virtual machine: not ours to name */
};

static enum context context_of(uint64_t marker)
{
	switch (marker) {
	case PERF_CONTEXT_KERNEL:
	case PERF_CONTEXT_HV:
		return IN_KERNEL;
	case PERF_CONTEXT_GUEST:
	case PERF_CONTEXT_GUEST_KERNEL:
	case PERF_CONTEXT_GUEST_USER:
		return IN_GUEST;
	}
	return IN_USER;
}

/* What was mapped at @at; the span of the answer is narrowed to its own. */
static const struct seam_aux_buffer *area_at(struct seam_resolver *r,
				       enum context context, uint64_t at,
				       struct seam_resolver_where *where)
{
	const struct seam_aux_buffer *area = NULL;
	uint64_t from = 0, to = UINT64_MAX;

	if (context == IN_KERNEL)
		area = seam_spaces_find(&r->kernel, 0, at, where->time_ns,
					&from, &to);
	else if (context == IN_USER)
		area = seam_spaces_find(r->spaces, where->space, at,
					where->time_ns, &from, &to);
	if (from > where->from_ns)
		where->from_ns = from;
	if (to < where->to_ns)
		where->to_ns = to;
	return area;
}

/* Before the first question about a file, all that will be asked. */
static void tell_file(struct seam_resolver *r, const struct seam_aux_buffer *area)
{
	struct seam_mapping *m = &r->mappings.items[area->mapping];
	uint32_t module;

	if (m->is_told || r->expected.addrs.n == 0)
		return;
	m->is_told = true;
	module = module_of(r, m);
	if (module != SEAM_NONE)
		seam_expected_tell(&r->expected, r->symbols, module,
				   area->begin, area->end, m->pgoff);
}

static const struct seam_place *
place_at(struct seam_resolver *r, enum context context, uint64_t addr,
	 bool is_call, struct seam_resolver_where *where)
{
	uint64_t at = is_call && addr ? addr - 1 : addr;
	const struct seam_aux_buffer *area = area_at(r, context, at, where);
	const struct seam_mapping *m;
	struct seam_jit_location code;

	/* No call is in front of a mapping: a trampoline may begin one. */
	if (!area && is_call)
		area = area_at(r, context, addr, where);
	m = area ? &r->mappings.items[area->mapping] : NULL;

	if (context == IN_USER && r->jit &&
	    seam_jit_code_find(r->jit, where->pid, at, where->time_ns,
			       &code) && *code.name &&
	    (!m || m->kind == SEAM_MAPPING_ANON || !is_from_map(r, &code)))
		return jit_place(r, &code, is_call);
	if (!m)
		return find_place(r, context == IN_KERNEL ? KERNEL_MAPPING :
				  SEAM_NONE, addr, is_call);
	if (m->kind == SEAM_MAPPING_KERNEL || m->kind == SEAM_MAPPING_ANON ||
	    m->kind == SEAM_MAPPING_KSYMBOL)
		return find_place(r, area->mapping, addr, is_call);
	tell_file(r, area);
	return find_place(r, area->mapping, addr - area->begin + m->pgoff,
			  is_call);
}

/*
 * Where a frame pointer was not one, an unwinder walks from one address that
 * is nowhere to the next: a run of those is one unknown caller.
 */
static bool goes_on_nowhere(const struct seam_resolver *r,
			    const struct seam_place *place)
{
	return !r->all_unknown && place->mapping == SEAM_NONE &&
	       place->n == 1 && r->chain.n &&
	       r->chain.items[r->chain.n - 1] == r->frames.items[place->first];
}

static int push_frames(struct seam_resolver *r, const struct seam_place *place)
{
	if (!place || !SEAM_ARRAY_RESERVE(&r->chain, place->n))
		return -ENOMEM;
	if (goes_on_nowhere(r, place))
		return 0;
	for (uint32_t i = 0; i < place->n; i++)
		r->chain.items[r->chain.n++] =
			r->frames.items[place->first + i];
	return 0;
}

uint32_t seam_resolver_stack(struct seam_resolver *r, const uint64_t *chain,
			     size_t n, struct seam_resolver_where *where)
{
	enum context context = IN_USER;
	const struct seam_place *place;
	bool is_call = false;
	uint32_t stack = 0;

	where->from_ns = 0;
	where->to_ns = UINT64_MAX;
	if (r->jit)
		seam_jit_code_stable_span(r->jit, where->pid, where->time_ns,
				    &where->from_ns, &where->to_ns);
	r->chain.n = 0;
	for (size_t i = 0; i < n; i++) {
		if (chain[i] >= (uint64_t)PERF_CONTEXT_MAX) {
			context = context_of(chain[i]);
			is_call = false;
			if (chain[i] == CONTEXT_USER_DEFERRED)
				i++;
			continue;
		}
		place = place_at(r, context, chain[i], is_call, where);
		if (push_frames(r, place))
			return SEAM_NONE;
		/* What was interrupted by a signal did not call. */
		is_call = !place->is_trampoline;
	}
	for (size_t i = r->chain.n; i-- > 0 && stack != SEAM_NONE;)
		stack = seam_profile_stack(r->profile, stack,
					   r->chain.items[i]);
	return stack;
}
