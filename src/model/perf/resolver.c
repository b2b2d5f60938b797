/* SPDX-License-Identifier: MIT */
/* resolver.c - addresses to frames, each place once; see resolver.h */
#include "model/perf/resolver.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "base/demangle.h"
#include "base/radix_sort.h"
#include "model/guest/guest_merge.h"
#include "model/origin.h"
#include "wire/perf/simpleperf.h"

/* -- symbols in the recording ------------------------------------------- */

/*
 * simpleperf stores the symbols of the files that have samples, by path
 * (wire/perf/simpleperf.h).  They are those of the recorded files, wherever the
 * recording is read.
 */
struct seam_embedded_file {
	uint32_t path;		/* string */
	uint32_t order;		/* in the recording */
	uint32_t type;		/* enum seam_simpleperf_type */
	uint64_t min_vaddr, offset;
	struct seam_symtab table;
};

static int add_file(struct seam_embedded *embedded,
		    struct seam_simpleperf_file *from,
		    struct seam_strings *strings)
{
	struct seam_embedded_file file = {
		.order = (uint32_t)embedded->files.n, .type = from->type,
		.min_vaddr = from->min_vaddr, .offset = from->offset,
		.path = seam_strings_add(strings,
					 (const char *)from->path.data,
					 from->path.size),
	};
	struct seam_simpleperf_symbol s;
	struct seam_symtab *table;
	int r = 0;

	if (file.path == SEAM_NONE || !SEAM_ARRAY_ADD(&embedded->files, file))
		return -ENOMEM;
	table = &embedded->files.items[file.order].table;
	while (!r && seam_simpleperf_symbol(from, &s)) {
		const char *name;

		if (s.name.size == 0)
			continue;
		name = seam_arena_text(&embedded->arena,
				       (const char *)s.name.data, s.name.size);
		if (!name)
			return -ENOMEM;
		r = seam_symtab_add(table, &(struct seam_symbol) {
			.start = s.vaddr, .limit = s.vaddr, .name = name,
			.end = s.size < UINT64_MAX - s.vaddr ?
			       s.vaddr + s.size : s.vaddr,
		});
	}
	return r ? r : seam_symtab_sort(table);
}

static int by_path(const void *a, const void *b)
{
	const struct seam_embedded_file *x = a, *y = b;

	return SEAM_COMPARE(x->path, y->path) ?:
	       SEAM_COMPARE(x->order, y->order);
}

int seam_embedded_read(struct seam_embedded *embedded,
		       const struct seam_perf_data *data,
		       struct seam_strings *strings)
{
	bool is_proto = data->features[SEAM_SIMPLEPERF_FILE].size == 0;
	struct seam_simpleperf_reader reader = seam_simpleperf_begin(
		data->features[is_proto ? SEAM_SIMPLEPERF_FILE2 :
			       SEAM_SIMPLEPERF_FILE], data->endian, is_proto);
	struct seam_simpleperf_file file;
	int r = 0;

	while (!r && seam_simpleperf_next(&reader, &file))
		if (file.path.size > 0)
			r = add_file(embedded, &file, strings);
	SEAM_ARRAY_SORT(&embedded->files, by_path);
	return r;
}

void seam_embedded_fini(struct seam_embedded *embedded)
{
	for (size_t i = 0; i < embedded->files.n; i++)
		seam_symtab_fini(&embedded->files.items[i].table);
	free(embedded->files.items);
	seam_arena_fini(&embedded->arena);
	*embedded = (struct seam_embedded) { 0 };
}

/* The first of a path; those with the same follow.  NULL: none. */
static struct seam_embedded_file *find(const struct seam_embedded *embedded,
				       uint32_t path)
{
	struct seam_embedded_file *files = embedded->files.items;
	size_t at = SEAM_ARRAY_SEARCH(i, embedded->files.n,
				      files[i].path < path);

	return at < embedded->files.n && files[at].path == path ? &files[at] :
	       NULL;
}

/* -- symbols to expect -------------------------------------------------- */

/*
 * Files are read by another process, and a look-up costs a message there and
 * one back.  All addresses of a recording are known before the first is
 * resolved; those in a mapping are sent with the first look-up in its file.
 * Which process had the file mapped there is not checked: an address too many
 * costs a look-up and nothing else.
 */

#define MAX_WORDS ((size_t)4 << 20)

/*
 * After a marker, in the upper half of addresses as the kernel's are, comes the
 * address that ran, then return addresses; the frames of a VM's guest are no
 * addresses.
 */
static size_t collect_chain(const uint64_t *words, size_t n_words,
			    struct seam_radix_item *items)
{
	bool is_call = false, is_guest = false;
	size_t n = 0;

	for (size_t i = 0; i < n_words; i++) {
		if (words[i] >> 63) {
			is_call = words[i] == SEAM_GUEST_CALLER ||
				  words[i] == SEAM_CALLCHAIN_JOINED;
			is_guest = words[i] == SEAM_GUEST_FRAMES;
		} else if (!is_guest) {
			if (words[i] > 0)
				items[n++].key = words[i] - is_call;
			is_call = true;
		}
	}
	return n;
}

void seam_resolver_expect(struct seam_resolver *r,
			  const struct seam_callchains *chains)
{
	size_t n = 0;
	struct seam_radix_item *items =
		chains->words.n && chains->words.n <= MAX_WORDS ?
		calloc(chains->words.n, sizeof(*items)) : NULL;

	if (!items)
		return;
	for (size_t i = 0; i < chains->items.n; i++)
		n += collect_chain(chains->words.items +
				   chains->items.items[i].first,
				   chains->items.items[i].n, items + n);
	if (n && !seam_radix_sort(items, n) &&
	    SEAM_ARRAY_RESERVE(&r->expected, n))
		for (size_t i = 0; i < n; i++)
			if (i == 0 || items[i].key != items[i - 1].key)
				r->expected.items[r->expected.n++] =
					items[i].key;
	free(items);
}

/* Functions at one address: itself and the calls inlined into it. */
#define MAX_INLINED 64

/* Linux 6.19: the next word is a cookie, not an address. */
#define CONTEXT_USER_DEFERRED ((uint64_t)-640)

/* The mapping of kernel addresses that no record maps. */
#define KERNEL_MAPPING 0

/* A place in a file (or the kernel) and its frames. */
struct seam_place {
	uint32_t key;		/* see key_of(); SEAM_NONE: not mapped */
	bool is_call;		/* a return address: looked up a byte earlier */
	bool is_trampoline;	/* of a signal: no return address after all */
	uint32_t process;	/* of its first sample */
	uint64_t pos;		/* in the file; an address for the kernel */
	size_t first;		/* in frames */
	uint32_t n;
};

int seam_resolver_init(struct seam_resolver *r)
{
	r->jit_module = seam_profile_module(r->profile,
		&(struct seam_profile_module) {
			.kind = SEAM_MODULE_JIT, .pid = -1,
			.path = seam_strings_put(&r->profile->strings, "[jit]"),
		});
	return r->jit_module == SEAM_NONE ? -ENOMEM : 0;
}

void seam_resolver_fini(struct seam_resolver *resolver)
{
	free(resolver->expected.items);
	free(resolver->files.items);
	free(resolver->nameless.items);
	free(resolver->code_objects.items);
	free(resolver->places.items);
	free(resolver->frames.items);
	free(resolver->chain.items);
	seam_index_fini(&resolver->place_index);
	*resolver = (struct seam_resolver) { 0 };
}

/* Module @id as one of symbols; SEAM_NONE: no memory. */
static uint32_t file_of(struct seam_resolver *r, uint32_t id)
{
	if (!SEAM_ARRAY_GROW(&r->files, (size_t)id + 1))
		return SEAM_NONE;
	if (r->files.items[id] == 0)
		r->files.items[id] = 1 + seam_origin_symbols(r->profile, id,
							     r->symbols);
	return r->files.items[id] - 1;
}

/* -- places ------------------------------------------------------------- */

static const struct seam_profile_module *
module_of(const struct seam_resolver *r, const struct seam_mapping *m)
{
	return &r->profile->modules.items[m ? m->module : 0];
}

static bool is_kind(const struct seam_resolver *r,
		    const struct seam_mapping *m, enum seam_module_kind kind)
{
	return module_of(r, m)->kind == kind;
}

static bool is_kernel(const struct seam_resolver *r,
		      const struct seam_mapping *m)
{
	return is_kind(r, m, SEAM_MODULE_KERNEL) ||
	       is_kind(r, m, SEAM_MODULE_KERNEL_MODULE);
}

static bool is_file(const struct seam_resolver *r,
		    const struct seam_mapping *m)
{
	return is_kind(r, m, SEAM_MODULE_FILE) ||
	       is_kind(r, m, SEAM_MODULE_VDSO);
}

/*
 * The name of an address without a symbol.  All addresses where nothing is
 * mapped, as after a wrong frame pointer, are one function.
 */
static uint32_t made_up_name(struct seam_profile *profile, uint32_t module,
			     uint64_t pos)
{
	char name[300] = "[unknown]";
	const char *path = seam_profile_path(profile, module);
	size_t size;

	if (*path) {
		path = seam_module_name(path, &size);
		snprintf(name, sizeof(name), "[%.*s+0x%" PRIx64 "]",
			 (int)size, path, pos);
	}
	return seam_strings_put(&profile->strings, name);
}

static int add_frame(struct seam_resolver *r, struct seam_function function,
		     struct seam_frame frame)
{
	uint32_t id;

	if (function.name == SEAM_NONE || frame.file == SEAM_NONE)
		return -ENOMEM;
	frame.function = seam_profile_function(r->profile, &function);
	if (frame.function == SEAM_NONE)
		return -ENOMEM;
	id = seam_profile_frame(r->profile, &frame);
	return id != SEAM_NONE && SEAM_ARRAY_ADD(&r->frames, id) ? 0 : -ENOMEM;
}

/* @addr, of @m in memory, in the form that the table of @file has. */
static uint64_t vaddr_of(const struct seam_embedded_file *file,
			 const struct seam_mapping *m, uint64_t addr)
{
	uint64_t in_mapping = addr - m->start_addr;
	uint64_t offset = file->offset == UINT64_MAX ? 0 : file->offset;

	switch (file->type) {
	case SEAM_SIMPLEPERF_ELF:
		return (file->offset == UINT64_MAX ? in_mapping :
			in_mapping + m->pgoff - offset) + file->min_vaddr;
	case SEAM_SIMPLEPERF_KERNEL_MODULE:
		return in_mapping + file->min_vaddr - offset;
	case SEAM_SIMPLEPERF_DEX:
		return in_mapping + m->pgoff;
	}
	return addr;
}

/* The recording's own tables.  @pos as in struct seam_place.  O(log n). */
static size_t find_embedded(struct seam_resolver *r,
			    const struct seam_mapping *m, uint64_t pos,
			    struct seam_location *out)
{
	bool is_anon = is_kind(r, m, SEAM_MODULE_ANON);
	uint64_t addr = is_anon || is_kernel(r, m) ? pos :
			pos - m->pgoff + m->start_addr;
	uint32_t path = module_of(r, m)->path;
	struct seam_embedded_file *file = r->embedded ?
		find(r->embedded, path) : NULL;
	const struct seam_embedded_file *end = !file ? NULL :
		r->embedded->files.items + r->embedded->files.n;

	out[0] = (struct seam_location) { .function = NULL };
	for (; file && file < end && file->path == path && !out[0].function;
	     file++)
		out[0].function = seam_symtab_name(&file->table, is_anon ?
				pos : vaddr_of(file, m, addr),
				&r->embedded->arena);
	return out[0].function != NULL;
}

/*
 * A file that its build id identifies has more (lines, inlined calls) than the
 * recording's own tables; one with the right path only is less reliable.
 */
static size_t find_names(struct seam_resolver *r, const struct seam_mapping *m,
			 uint64_t pos, struct seam_location *out, size_t cap)
{
	uint32_t file;
	size_t n = 0;

	if (!m)
		return 0;
	if (m->function) {
		out[0] = (struct seam_location) {
			.function = seam_profile_text(r->profile, m->function),
		};
		return 1;
	}
	if (module_of(r, m)->build_id_size == 0)
		n = find_embedded(r, m, pos, out);
	file = n || is_kind(r, m, SEAM_MODULE_ANON) ? SEAM_NONE :
	       file_of(r, m->module);
	if (file != SEAM_NONE)
		n = seam_symbols_resolve(r->symbols, file, pos, out, cap);
	return n > 0 && out[n - 1].function ? n :
	       find_embedded(r, m, pos, out);
}

/*
 * Where a place is looked up: at the call, if it is a return address; the
 * innermost address of a sample a byte before the end of a function whose last
 * instruction is a system call, as a signal's trampoline.
 */
static uint64_t lookup_pos(struct seam_resolver *r,
			   const struct seam_mapping *m,
			   struct seam_place *place)
{
	enum { MAX_TRAMPOLINE = 16 };	/* bytes */
	uint32_t file = place->pos && is_file(r, m) ? file_of(r, m->module) :
						      SEAM_NONE;
	uint64_t pos = place->pos;
	struct seam_extent e = { 0 };

	if (pos == 0 || (!place->is_call && file == SEAM_NONE))
		return pos;
	if (place->is_call) {
		place->is_trampoline = file != SEAM_NONE &&
			seam_symbols_is_trampoline(r->symbols, file, pos);
		return place->is_trampoline ? pos : pos - 1;
	}
	if (!seam_symbols_extent(r->symbols, file, pos, &e))
		return pos;
	if (e.size == 0 && seam_symbols_extent(r->symbols, file, pos - 1, &e) &&
	    e.size)
		pos--;
	place->is_trampoline = e.size && e.size <= MAX_TRAMPOLINE &&
		seam_symbols_is_trampoline(r->symbols, file, e.offset);
	return place->is_trampoline ? pos : place->pos;
}

/* The module of all code without names in @process: "[jit node 1234]". */
static uint32_t nameless_module(struct seam_resolver *r, uint32_t process)
{
	const struct seam_process *p = &r->profile->processes.items[process];
	char path[64];
	uint32_t *module = SEAM_ARRAY_GROW(&r->nameless, (size_t)process + 1) ?
			   &r->nameless.items[process] : NULL;

	if (!module)
		return SEAM_NONE;
	snprintf(path, sizeof(path), "[jit %.40s %" PRId32 "]",
		 seam_profile_text(r->profile, p->name), p->pid);
	if (*module == 0)
		*module = 1 + seam_profile_module(r->profile,
			&(struct seam_profile_module) {
				.path = seam_strings_put(&r->profile->strings,
							 path),
				.kind = SEAM_MODULE_ANON, .pid = p->pid,
			});
	return *module - 1;
}

/* The frame of a place without a symbol. */
static int add_nameless(struct seam_resolver *r, const struct seam_mapping *m,
			const struct seam_place *place, uint64_t pos,
			struct seam_function function, struct seam_frame frame)
{
	struct seam_extent extent = { 0 };
	uint64_t shown = place->pos;
	uint32_t file;

	if (m && is_kind(r, m, SEAM_MODULE_ANON)) {
		function.name = seam_strings_put(&r->profile->strings, "[jit]");
		function.module = nameless_module(r, place->process);
		return function.module == SEAM_NONE ? -ENOMEM :
		       add_frame(r, function, frame);
	}
	file = is_file(r, m) ? file_of(r, m->module) : SEAM_NONE;
	/* the begin of its function, if that is known */
	if (file != SEAM_NONE &&
	    seam_symbols_extent(r->symbols, file, pos, &extent) && extent.size)
		shown = extent.offset;
	else
		pos = place->pos;
	function.name = made_up_name(r->profile, function.module, shown);
	frame.addr = m ? pos : 0;
	return add_frame(r, function, frame);
}

/* Look a place up and append its frames. */
static int resolve_place(struct seam_resolver *r, const struct seam_mapping *m,
			 struct seam_place *place)
{
	struct seam_location found[MAX_INLINED];
	struct seam_strings *strings = &r->profile->strings;
	uint64_t pos = lookup_pos(r, m, place);
	size_t n = find_names(r, m, pos, found, MAX_INLINED);
	struct seam_function function = {
		.module = m ? m->module : 0,
		.layer = is_kernel(r, m) ? SEAM_LAYER_KERNEL :
			 is_kind(r, m, SEAM_MODULE_ANON) ? SEAM_LAYER_JIT :
			 SEAM_LAYER_NATIVE,
	};
	struct seam_frame frame = {
		.module = function.module, .code = SEAM_NONE, .addr = pos,
	};
	int error = 0;

	if (n == 0 || !found[n - 1].function) {
		error = add_nameless(r, m, place, pos, function, frame);
		n = 0;
	}
	for (size_t i = 0; error == 0 && i < n; i++) {
		function.name = seam_strings_put(strings, found[i].function);
		function.is_named = true;
		frame.file = seam_strings_put(strings, found[i].file);
		frame.line = found[i].line;
		frame.is_inlined = found[i].is_inlined;
		error = add_frame(r, function, frame);
	}
	place->n = (uint32_t)(r->frames.n - place->first);
	return error;
}

/*
 * Keys of places: of modules bit 31 is set, of JIT code bit 30, of processes
 * for code without names bit 29.
 */
#define MODULE_KEY (UINT32_C(1) << 31)
#define JIT_KEY (UINT32_C(1) << 30)
#define PROCESS_KEY (UINT32_C(1) << 29)

/* A flag in the position of a place in JIT code, which is smaller. */
#define AMBIGUOUS (UINT64_C(1) << 63)

/*
 * All mappings of a module share its places: a file mapped by thousands of
 * processes is looked up once.  Where the mapping matters, it is the key.
 */
static uint32_t key_of(const struct seam_resolver *r, uint32_t mapping,
		       uint32_t process)
{
	const struct seam_embedded_file *file;
	const struct seam_mapping *m;

	if (mapping == SEAM_NONE)
		return SEAM_NONE;
	m = &r->profile->mappings.items[mapping];
	file = r->embedded ? find(r->embedded, module_of(r, m)->path) : NULL;
	if (is_kind(r, m, SEAM_MODULE_ANON) && !r->embedded)
		return process | PROCESS_KEY;
	/* with addresses in memory, equal offsets may be other functions */
	if (m->function || is_kind(r, m, SEAM_MODULE_ANON) ||
	    (file && (file->type >= SEAM_SIMPLEPERF_SYMBOL_MAP ||
		      (file->type == SEAM_SIMPLEPERF_ELF &&
		       file->offset == UINT64_MAX))))
		return mapping;
	return m->module | MODULE_KEY;
}

/*
 * The place (@key, @pos, @is_call), made if it is new: then *@is_new, and its
 * frames are still to be added.  NULL when memory ran out.
 */
static struct seam_place *place_for(struct seam_resolver *r, uint32_t key,
				    uint64_t pos, bool is_call, bool *is_new)
{
	const struct seam_place *places = r->places.items;
	size_t n = r->places.n;
	uint32_t id = SEAM_INDEX_INTERN(&r->place_index,
		seam_hash_add(pos, (uint64_t)key << 1 | is_call), &r->places,
		i, places[i].pos == pos && places[i].key == key &&
		places[i].is_call == is_call, (struct seam_place) {
			.key = key, .pos = pos, .is_call = is_call,
			.first = r->frames.n,
		});

	*is_new = r->places.n > n;
	return id == SEAM_NONE ? NULL : &r->places.items[id];
}

static const struct seam_place *find_place(struct seam_resolver *r,
					   uint32_t mapping, uint64_t pos,
					   bool is_call, uint32_t process)
{
	bool is_new;
	struct seam_place *place = place_for(r, key_of(r, mapping, process),
					     pos, is_call, &is_new);

	if (is_new)
		place->process = process;
	if (is_new && resolve_place(r, mapping == SEAM_NONE ? NULL :
				    &r->profile->mappings.items[mapping],
				    place))
		return NULL;
	return place;
}

/* -- the code of JITs --------------------------------------------------- */

/*
 * Names that agents of the JVM write as descriptors are made readable.  An
 * ambiguous one is marked, and so has a row of its own.
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

/* The profile's code object of JIT object @id; SEAM_NONE: no memory. */
static uint32_t code_object(struct seam_resolver *r, uint32_t id)
{
	const struct seam_jit_object *o = seam_jit_code_object(r->jit->code,
							       id);
	const struct seam_jit_source_file *file =
		&r->jit->files.items[o->dump];

	if (!SEAM_ARRAY_GROW(&r->code_objects, (size_t)id + 1))
		return SEAM_NONE;
	if (r->code_objects.items[id])
		return r->code_objects.items[id] - 1;
	if (!SEAM_ARRAY_ADD(&r->profile->code_objects,
			    (struct seam_code_object) {
		.name = seam_strings_put(&r->profile->strings, o->name),
		.dump = file->path, .pid = file->pid, .object = id,
		.index = o->code_index, .start_addr = o->start_addr,
		.size = o->size, .code = o->code.size ? o->code.data : NULL,
		.from_ns = o->loaded_ns,
	    }))
		return SEAM_NONE;
	r->code_objects.items[id] = (uint32_t)r->profile->code_objects.n;
	return r->code_objects.items[id] - 1;
}

static const struct seam_place *
jit_place(struct seam_resolver *r, const struct seam_jit_location *at,
	  bool is_call)
{
	bool is_new;
	struct seam_place *place = place_for(r, at->object | JIT_KEY,
					     at->offset | (at->is_ambiguous ?
					     AMBIGUOUS : 0), is_call, &is_new);
	uint32_t code;

	if (!is_new)
		return place;
	code = code_object(r, at->object);
	if (code == SEAM_NONE ||
	    add_frame(r, (struct seam_function) {
			.name = jit_name(r, at), .module = r->jit_module,
			.layer = SEAM_LAYER_JIT, .is_named = true,
			.is_ambiguous = at->is_ambiguous,
		}, (struct seam_frame) {
			.file = seam_strings_put(&r->profile->strings,
						 at->file),
			.line = at->line, .module = r->jit_module,
			.code = code, .addr = at->offset +
				r->profile->code_objects.items[code].start_addr,
		}))
		return NULL;
	place->n = 1;
	return place;
}

/* -- chains ------------------------------------------------------------- */

/* Where an address of a chain is, by the marker before it. */
enum context {
	IN_KERNEL,
	IN_USER,
	IN_KVM,			/* in a KVM guest: without names */
	IN_VM,			/* no address: a frame of a VM's guest */
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
		return IN_KVM;
	case SEAM_GUEST_FRAMES:
		return IN_VM;
	}
	return IN_USER;
}

/* What was mapped at @at; narrows the time span of @where. */
static const struct seam_vma *find_vma(struct seam_resolver *r,
				       enum context context, uint64_t at,
				       struct seam_resolver_where *where)
{
	const struct seam_vma *vma = NULL;
	uint64_t from = 0, to = UINT64_MAX;

	if (r->find && context <= IN_USER)
		vma = r->find(r->context, context == IN_KERNEL, where->space,
			      at);
	else if (context == IN_KERNEL)
		vma = seam_spaces_find(r->kernel, 0, at, where->time_ns,
				       &from, &to);
	else if (context == IN_USER)
		vma = seam_spaces_find(r->spaces, where->space, at,
				       where->time_ns, &from, &to);
	if (from > where->from_ns)
		where->from_ns = from;
	if (to < where->to_ns)
		where->to_ns = to;
	return vma;
}

/*
 * The mapping of @vma.  Before the first look-up in a file, all that will be
 * looked up in it is announced.
 */
static const struct seam_mapping *use_mapping(struct seam_resolver *r,
					      const struct seam_vma *vma)
{
	struct seam_mapping *m = &r->profile->mappings.items[vma->mapping];
	const uint64_t *addrs = r->expected.items;
	uint32_t file;
	size_t at;

	if (m->is_used)
		return m;
	m->is_used = true;
	file = is_file(r, m) && r->expected.n ? file_of(r, m->module) :
	       SEAM_NONE;
	at = SEAM_ARRAY_SEARCH(i, r->expected.n, addrs[i] < vma->begin);
	for (; file != SEAM_NONE && at < r->expected.n && addrs[at] < vma->end;
	     at++)
		seam_symbols_expect(r->symbols, file,
				    addrs[at] - vma->begin + m->pgoff);
	return m;
}

static struct seam_located locate(struct seam_resolver *r,
				  enum context context, uint64_t addr,
				  bool is_call,
				  struct seam_resolver_where *where)
{
	uint64_t at = is_call && addr ? addr - 1 : addr;
	const struct seam_vma *vma = find_vma(r, context, at, where);
	const struct seam_mapping *m;

	/* A trampoline may be the first byte of a mapping. */
	if (!vma && is_call)
		vma = find_vma(r, context, addr, where);
	if (!vma)
		return (struct seam_located) {
			context == IN_KERNEL ? KERNEL_MAPPING : SEAM_NONE, addr,
		};
	m = use_mapping(r, vma);
	return (struct seam_located) {
		vma->mapping, is_file(r, m) ? addr - vma->begin + m->pgoff :
			      addr,
	};
}

/* The place of @addr, which is at @located. */
static const struct seam_place *
place_at(struct seam_resolver *r, enum context context, uint64_t addr,
	 bool is_call, const struct seam_located *located,
	 const struct seam_resolver_where *where)
{
	const struct seam_mapping *m = located->mapping == SEAM_NONE ||
				       context != IN_USER ? NULL :
		&r->profile->mappings.items[located->mapping];
	struct seam_jit_location code;

	if (context == IN_USER && r->jit &&
	    seam_jit_code_find(r->jit->code, where->pid, is_call && addr ?
			       addr - 1 : addr, where->time_ns, &code) &&
	    *code.name && (!m || is_kind(r, m, SEAM_MODULE_ANON) ||
	     /* a perf map, without bytes, has less than a file's symbols */
	     seam_jit_code_object(r->jit->code, code.object)->code.size))
		return jit_place(r, &code, is_call);
	return find_place(r, located->mapping, located->pos, is_call,
			  where->process);
}

/*
 * After a wrong frame pointer an unwinder goes from one address that is not
 * mapped to the next: a run of those is one unknown caller.
 */
static int push_frames(struct seam_resolver *r, const struct seam_place *place)
{
	if (!place)
		return -ENOMEM;
	if (!r->all_unknown && place->key == SEAM_NONE && place->n == 1 &&
	    r->chain.n && r->chain.items[r->chain.n - 1] ==
			  r->frames.items[place->first])
		return 0;
	return SEAM_ARRAY_EXTEND(&r->chain, r->frames.items + place->first,
				 place->n) ? 0 : -ENOMEM;
}

/* @id may be SEAM_NONE: no memory. */
static int push_frame(struct seam_resolver *r, uint32_t id)
{
	return id != SEAM_NONE && SEAM_ARRAY_ADD(&r->chain, id) ? 0 : -ENOMEM;
}

/* The frame between those of the sample and those of others. */
static int push_joined(struct seam_resolver *r)
{
	return push_frame(r, seam_profile_marker(r->profile, "[joined]"));
}

/* A C function of the guest is shown as all code of the host is. */
static int push_guest(struct seam_resolver *r, uint32_t table, uint64_t word,
		      struct seam_resolver_where *where)
{
	struct seam_guest_frame frame = seam_guest_frame_of_word(word);
	uint64_t code = seam_guest_symbols_code(r->guest, where->pid, table,
						frame);
	struct seam_located located;

	if (!code)
		return push_frame(r, seam_guest_symbols_frame(r->guest,
						where->pid, table, frame));
	located = locate(r, IN_USER, code, false, where);
	return push_frames(r, place_at(r, IN_USER, code, false, &located,
				       where));
}

void seam_resolver_locate(struct seam_resolver *r, const uint64_t *chain,
			  size_t n, struct seam_resolver_where *where,
			  struct seam_located *out)
{
	enum context context = IN_USER;
	bool is_call = false;

	for (size_t i = 0; i < n; i++) {
		const struct seam_mapping *m;
		uint32_t file;

		out[i] = (struct seam_located) { SEAM_NONE, chain[i] };
		if (chain[i] >= (uint64_t)PERF_CONTEXT_MAX) {
			context = context_of(chain[i]);
			is_call = false;
			continue;
		}
		out[i] = locate(r, context, chain[i], is_call, where);
		m = context != IN_USER || out[i].mapping == SEAM_NONE ? NULL :
		    &r->profile->mappings.items[out[i].mapping];
		file = m && is_file(r, m) ? file_of(r, m->module) : SEAM_NONE;
		if (file != SEAM_NONE)
			seam_symbols_expect(r->symbols, file,
					    out[i].pos - is_call);
		is_call = true;
	}
}

uint32_t seam_resolver_stack(struct seam_resolver *r, const uint64_t *chain,
			     size_t n, struct seam_resolver_where *where)
{
	enum context context = IN_USER;
	bool is_call = false;		/* the next is a return address */
	uint32_t stack = 0, table = 0;	/* of the guest's frames */
	int error = 0;

	where->from_ns = 0;
	where->to_ns = UINT64_MAX;
	if (r->jit)
		seam_jit_code_stable_span(r->jit->code, where->pid,
					  where->time_ns, &where->from_ns,
					  &where->to_ns);
	r->chain.n = 0;
	for (size_t i = 0; error == 0 && i < n; i++) {
		const struct seam_place *place;
		struct seam_located located;

		if (chain[i] == SEAM_CALLCHAIN_JOINED) {
			error = push_joined(r);
		} else if (chain[i] >= (uint64_t)PERF_CONTEXT_MAX) {
			context = context_of(chain[i]);
			is_call = chain[i] == SEAM_GUEST_CALLER;
			if (chain[i] == CONTEXT_USER_DEFERRED)
				i++;
			if (context == IN_VM)
				table = ++i < n ? (uint32_t)chain[i] : 0;
		} else if (context == IN_VM) {
			error = push_guest(r, table, chain[i], where);
		} else {
			located = where->located ? where->located[i] :
				locate(r, context, chain[i], is_call, where);
			place = place_at(r, context, chain[i], is_call,
					 &located, where);
			/* what a signal interrupted made no call */
			is_call = place && !place->is_trampoline;
			error = push_frames(r, place);
		}
	}
	if (error)
		return SEAM_NONE;
	for (size_t i = r->chain.n; i-- > 0 && stack != SEAM_NONE;)
		stack = seam_profile_stack(r->profile, stack,
					   r->chain.items[i]);
	return stack;
}
