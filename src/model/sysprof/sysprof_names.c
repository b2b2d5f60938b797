/* SPDX-License-Identifier: MIT */
/* sysprof_names.c - addresses to frames of the profile; see sysprof_names.h */
#include "model/sysprof/sysprof_names.h"

#include <errno.h>
#include <inttypes.h>

#include "base/hash.h"

/*
 * No function is larger: the interpreter loops of CPython and Lua, the largest
 * that are common, have 50 KiB.
 */
enum { MAX_FUNCTION_BYTES = 64 << 10 };

void seam_sysprof_names_fini(struct seam_sysprof_names *n)
{
	seam_guest_names_fini(&n->guest);
	seam_c_functions_fini(&n->c_functions);
	free(n->protos.items);
	seam_pair_map_fini(&n->by_addr);
	seam_pair_map_fini(&n->traces);
	free(n->meanings.items);
	seam_index_fini(&n->index);
}

/* -- symbols ------------------------------------------------------------- */

/* The next look-ups find what is true now. */
static void change(struct seam_sysprof_names *n)
{
	if (n->meanings.n)
		n->epoch++;
}

static int add_lfunc(struct seam_sysprof_names *n,
		     const struct seam_sysprof_lfunc *lfunc)
{
	struct seam_sysprof_proto proto = {
		.chunk = seam_guest_chunk(&n->guest, lfunc->chunk),
		.line = lfunc->line,
	};
	const uint32_t *known = seam_pair_map_find(&n->by_addr, lfunc->addr, 0);

	if (proto.chunk == SEAM_NONE)
		return -ENOMEM;
	if (known) {
		struct seam_sysprof_proto *old = &n->protos.items[*known];

		if (old->chunk != proto.chunk || old->line != proto.line)
			change(n);
		*old = proto;
		return 0;
	}
	change(n);
	return SEAM_ARRAY_ADD(&n->protos, proto) ?
	       seam_pair_map_put(&n->by_addr, lfunc->addr, 0,
				 (uint32_t)(n->protos.n - 1)) : -ENOMEM;
}

static int add_cfunc(struct seam_sysprof_names *n,
		     const struct seam_sysprof_cfunc *cfunc)
{
	const char *text = (const char *)cfunc->name.data;
	uint32_t name = seam_strings_add(&n->profile->strings, text,
					 cfunc->name.size);
	int r = name == SEAM_NONE ? -ENOMEM :
		seam_c_functions_add(&n->c_functions, cfunc->addr, name);

	if (r <= 0)
		return r;
	seam_fast_functions_note(&n->fast, text, cfunc->name.size);
	change(n);
	return 0;
}

static int add_trace(struct seam_sysprof_names *n,
		     const struct seam_sysprof_trace *trace)
{
	const uint32_t *known = seam_pair_map_find(&n->traces, trace->traceno,
						   trace->addr);
	uint32_t line = trace->line < UINT32_MAX ? (uint32_t)trace->line :
			UINT32_MAX;

	if (!known || *known != line)
		change(n);
	return seam_pair_map_put(&n->traces, trace->traceno, trace->addr, line);
}

int seam_sysprof_names_add(struct seam_sysprof_names *n,
			   const struct seam_sysprof_item *item)
{
	n->guest.profile = n->profile;
	switch (item->kind) {
	case SEAM_SYSPROF_SYMBOL_LFUNC:
		return add_lfunc(n, &item->lfunc);
	case SEAM_SYSPROF_SYMBOL_CFUNC:
		return add_cfunc(n, &item->cfunc);
	case SEAM_SYSPROF_SYMBOL_TRACE:
		return add_trace(n, &item->trace);
	default:
		return 0;
	}
}

/* -- frames -------------------------------------------------------------- */

static const char *text_of(const struct seam_sysprof_names *n, uint32_t string)
{
	return seam_profile_text(n->profile, string);
}

/* The frame at @addr of @function. */
static uint32_t frame_of(struct seam_sysprof_names *n, uint32_t function,
			 uint64_t addr)
{
	struct seam_frame frame = {
		.function = function, .addr = addr, .code = SEAM_NONE,
	};

	if (function == SEAM_NONE)
		return SEAM_NONE;
	frame.module = n->profile->functions.items[function].module;
	return seam_profile_frame(n->profile, &frame);
}

static uint32_t native_frame(struct seam_sysprof_names *n, const char *name,
			     uint64_t addr, bool is_named)
{
	uint32_t string = seam_strings_put(&n->profile->strings, name);

	return string == SEAM_NONE ? SEAM_NONE :
	       frame_of(n, seam_profile_function(n->profile,
			&(struct seam_function) {
				.name = string, .layer = SEAM_LAYER_NATIVE,
				.is_named = is_named,
			}), addr);
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Functions of the VM's assembly code that others call, and that return. */
static bool is_helper(const char *name)
{
	static const char *const helpers[] = {
		"ffi_call", "floor", "ceil", "trunc", "pow", "exp2", "log2",
		"mod", "foldarith", "foldfpm", "cpuid", "next", "errno",
		"cachesync",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(helpers); i++)
		if (begins(name, helpers[i]) && strcmp(name, "ffi_callback"))
			return true;
	return false;
}

static enum seam_sysprof_role role_of(const struct seam_sysprof_names *n,
				      const char *name)
{
	if (begins(name, "lua_call") || begins(name, "lua_pcall") ||
	    (!n->as_parser && begins(name, "lua_resume")))
		return SEAM_SYSPROF_ROLE_CALL;
	if (begins(name, "lua_cpcall"))
		return SEAM_SYSPROF_ROLE_CPCALL;
	if (begins(name, "lj_ff_coroutine_resume") ||
	    begins(name, "lj_ff_coroutine_wrap_aux"))
		return SEAM_SYSPROF_ROLE_SWITCH;
	if (begins(name, "lj_BC_") || begins(name, "lj_ff_") ||
	    begins(name, "lj_cont_") ||
	    (begins(name, "lj_vm_") && !is_helper(name + 6)))
		return SEAM_SYSPROF_ROLE_VM;
	return begins(name, "lj_") ? SEAM_SYSPROF_ROLE_INNER :
	       SEAM_SYSPROF_ROLE_OTHER;
}

static struct seam_sysprof_place name_unknown(struct seam_sysprof_names *n,
					      uint64_t addr)
{
	char text[40];

	snprintf(text, sizeof(text), "[unknown+0x%" PRIx64 "]", addr);
	return (struct seam_sysprof_place) {
		.frame = native_frame(n, text, addr, false),
	};
}

/*
 * A return address is looked up one byte before it, which is in the call; the
 * parser of LuaJIT looks it up as it is.
 */
static struct seam_sysprof_place name_host(struct seam_sysprof_names *n,
					   uint64_t addr, bool is_leaf)
{
	const struct seam_c_function *f = seam_c_functions_find(
			&n->c_functions, addr - (!is_leaf && !n->as_parser));
	struct seam_sysprof_place place = { 0 };
	char text[512];

	if (!f)
		return name_unknown(n, addr);
	if (!n->as_parser && addr - f->addr > MAX_FUNCTION_BYTES) {
		size_t n_before = n->profile->functions.n;

		snprintf(text, sizeof(text), "[%.400s+0x%" PRIx64 "]",
			 text_of(n, f->name), addr - f->addr);
		place.frame = native_frame(n, text, addr, false);
		/* an address is named again after each change of symbols */
		n->n_far += n->profile->functions.n > n_before;
		return place;
	}
	place.function = f->addr;
	place.symbol = f->name;
	place.role = role_of(n, text_of(n, f->name));
	place.frame = native_frame(n, text_of(n, f->name), addr, true);
	return place;
}

static const struct seam_sysprof_proto *
find_proto(struct seam_sysprof_names *n, uint64_t addr)
{
	const uint32_t *id = seam_pair_map_find(&n->by_addr, addr, 0);

	return id ? &n->protos.items[*id] : NULL;
}

static uint32_t name_proto(struct seam_sysprof_names *n, uint64_t addr,
			   uint64_t line)
{
	const struct seam_sysprof_proto *proto = find_proto(n, addr);
	char text[64];

	if (proto)
		return frame_of(n, seam_guest_function(&n->guest, proto->chunk,
						       proto->line, NULL),
				addr);
	snprintf(text, sizeof(text), "[prototype 0x%" PRIx64 "]:%" PRIu64,
		 addr, line);
	return frame_of(n, seam_guest_builtin(&n->guest, text, false), addr);
}

static struct seam_sysprof_place name_fast(struct seam_sysprof_names *n,
					   uint64_t ffid)
{
	bool in_c;
	const char *name = seam_fast_functions_name(&n->fast, ffid, &in_c);
	char text[32];

	snprintf(text, sizeof(text), "ffid %" PRIu64, ffid);
	return (struct seam_sysprof_place) {
		.frame = frame_of(n, seam_guest_builtin(&n->guest, name ? name :
							text, name), ffid),
		.symbol = in_c ? seam_strings_put(&n->profile->strings, name) :
			  0,
	};
}

static struct seam_sysprof_place
name_lua(struct seam_sysprof_names *n, const struct seam_sysprof_frame *frame)
{
	if (frame->kind == SEAM_SYSPROF_LFUNC)
		return (struct seam_sysprof_place) {
			.frame = name_proto(n, frame->value, frame->line),
		};
	return frame->kind == SEAM_SYSPROF_FFUNC ? name_fast(n, frame->value) :
	       name_host(n, frame->value, true);
}

static struct seam_sysprof_place
name_trace(struct seam_sysprof_names *n, const struct seam_sysprof_trace *trace)
{
	const struct seam_sysprof_proto *proto = find_proto(n, trace->addr);
	const uint32_t *line = seam_pair_map_find(&n->traces, trace->traceno,
						  trace->addr);

	return (struct seam_sysprof_place) {
		.frame = frame_of(n, seam_guest_trace(&n->guest, trace->traceno,
			proto ? proto->chunk : SEAM_NONE,
			line ? *line : trace->line), trace->traceno),
	};
}

/* -- meanings ------------------------------------------------------------ */

/* The meaning of (@a, @b), made if it is new; it is outdated then. */
static struct seam_sysprof_meaning *find(struct seam_sysprof_names *n,
					 uint64_t a, uint64_t b)
{
	const struct seam_sysprof_meaning *items = n->meanings.items;
	uint32_t i = SEAM_INDEX_INTERN(&n->index, seam_hash_add(a, b),
		&n->meanings, k, items[k].key[0] == a && items[k].key[1] == b,
		(struct seam_sysprof_meaning) {
			.key = { a, b }, .epoch = n->epoch - 1 });

	return i == SEAM_NONE ? NULL : &n->meanings.items[i];
}

/*
 * Kinds of keys: in the upper 4 bits, beside a line or the number of a trace.
 * Neither has as many: of those that a damaged stream has 60 bits count.
 */
enum { OF_HOST = 1, OF_LEAF, OF_TRACE, OF_LUA };

static inline uint64_t key_of(unsigned int kind, uint64_t more)
{
	return (uint64_t)kind << 60 | (more & ~(UINT64_C(15) << 60));
}

/* Where (@a, @b) may be among the recent ones. */
static inline struct seam_sysprof_meaning *
recent_of(struct seam_sysprof_names *n, uint64_t a, uint64_t b)
{
	uint64_t hash = (a ^ b << 7) * UINT64_C(0x9e3779b97f4a7c15);

	return &n->recent[(hash >> 40) % SEAM_SYSPROF_RECENT];
}

static inline bool is_valid(const struct seam_sysprof_names *n,
			    const struct seam_sysprof_meaning *m, uint64_t a,
			    uint64_t b)
{
	return m->key[0] == a && m->key[1] == b && m->epoch == n->epoch;
}

/* The place of (@value, @kind and @more); @named makes it where it is new. */
#define LOOK_UP(n, value, kind, more, named)				\
	({								\
		uint64_t a_ = (value), b_ = key_of(kind, more);		\
		struct seam_sysprof_meaning *r_ = recent_of(n, a_, b_), *m_; \
		struct seam_sysprof_place none_ = { .frame = SEAM_NONE }; \
									\
		m_ = is_valid(n, r_, a_, b_) ? r_ : find(n, a_, b_);	\
		if (m_ && m_->epoch != (n)->epoch) {			\
			m_->place = (named);				\
			m_->epoch = (n)->epoch;				\
		}							\
		if (m_ && m_ != r_)					\
			*r_ = *m_;					\
		m_ ? m_->place : none_;					\
	})

struct seam_sysprof_place
seam_sysprof_names_host(struct seam_sysprof_names *n, uint64_t addr,
			bool is_leaf)
{
	return LOOK_UP(n, addr, is_leaf ? OF_LEAF : OF_HOST, 0ull,
		       name_host(n, addr, is_leaf));
}

struct seam_sysprof_place
seam_sysprof_names_lua(struct seam_sysprof_names *n,
		       const struct seam_sysprof_frame *frame)
{
	return LOOK_UP(n, frame->value, OF_LUA + frame->kind, frame->line,
		       name_lua(n, frame));
}

struct seam_sysprof_place
seam_sysprof_names_trace(struct seam_sysprof_names *n,
			 const struct seam_sysprof_trace *trace)
{
	return LOOK_UP(n, trace->addr, OF_TRACE, trace->traceno,
		       name_trace(n, trace));
}
