/* SPDX-License-Identifier: MIT */
/* stack_height.c - sizes of instructions, what moves rsp; see stack_height.h */
#include "unwind/walk/stack_height.h"

#include "unwind/walk/walk.h"

#include <stdlib.h>
#include <string.h>

enum {
	RSP = 4, RBP = 5,	/* as instructions number them */
	REX_B = 1, REX_R = 4, REX_W = 8,
	MAX_TARGETS = 256,	/* of jumps, that are remembered */
	MAX_CHANGES = 512,	/* of the height */
	MAX_HEIGHT = 1 << 30,
	MAX_ALIGN = 256,	/* of AVX-512 it is 64; each value costs a walk */
};

/* ---- one instruction ---- */

struct instruction {
	const uint8_t *code;	/* prefixes included */
	size_t size;
	uint8_t rex;		/* 0: none */
	bool is_16_bit;		/* prefix 0x66 */
	bool is_vector;		/* VEX, EVEX: .op is of no other map */
	uint8_t map;		/* 0: one byte; 1: 0f; 2: 0f 38; 3: 0f 3a */
	uint8_t op;
	const uint8_t *modrm;	/* NULL: it has none */
	int64_t value;		/* the last constant; a jump's distance */
};

/* Sizes of constants, in the table below. */
enum { NO, B, W, Z, V, F, E };	/* 0, 1, 2, 4 (2); b8: 8; f6, f7; enter */
enum { M = 8, X = 16 };		/* a ModRM byte; no instruction */

/* Of the opcodes of one byte, by the upper half where all 16 are alike. */
static const uint8_t one_byte[256] = {
#define ALU M, M, M, M, B, Z, X, X
	ALU, ALU, ALU, ALU, ALU, ALU, ALU, ALU,
#undef ALU
	[0x40] = X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,
	[0x60] = X, X, X, M, X, X, X, X, Z, M | Z, B, M | B,
	[0x70] = B, B, B, B, B, B, B, B, B, B, B, B, B, B, B, B,
	[0x80] = M | B, M | Z, X, M | B, M, M, M, M, M, M, M, M, M, M, M, M,
	[0x9a] = X,
	[0xa0] = X, X, X, X, NO, NO, NO, NO, B, Z,
	[0xb0] = B, B, B, B, B, B, B, B, V, V, V, V, V, V, V, V,
	[0xc0] = M | B, M | B, W, NO, X, X, M | B, M | Z, E, NO, W, NO, NO, B,
	[0xce] = X,
	[0xd0] = M, M, M, M, X, X, X, NO, M, M, M, M, M, M, M, M,
	[0xe0] = B, B, B, B, B, B, B, B, Z, Z, X, B,
	[0xf0] = X, NO, X, X, NO, NO, M | F, M | F,
	[0xfe] = M, M,
};

/* Whether 0f @op has no ModRM byte. */
static bool is_bare(uint8_t op)
{
	return (op >= 0x05 && op <= 0x09) || op == 0x0b ||
	       (op >= 0x30 && op <= 0x37) || op == 0x77 ||
	       (op >= 0x80 && op <= 0x8f) ||
	       (op >= 0xa0 && op <= 0xa2) || (op >= 0xa8 && op <= 0xaa) ||
	       op >= 0xc8;
}

/* What follows opcode @op of @map. */
static uint8_t form_of(const struct instruction *in)
{
	uint8_t op = in->op;

	if (in->map == 0)
		return one_byte[op];
	if (in->map >= 2)
		return in->map == 3 ? M | B : M;
	if (!in->is_vector && op >= 0x80 && op <= 0x8f)
		return Z;
	if (in->is_vector ? op == 0x77 : op <= 0xcf && is_bare(op))
		return NO;
	return (op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac ||
	       op == 0xba || op == 0xc2 || (op >= 0xc4 && op <= 0xc6) ?
	       M | B : M;
}

/* Prefixes and opcode: where these end, or 0. */
static size_t read_opcode(struct instruction *in, const uint8_t *code, size_t n)
{
	static const uint8_t prefixes[] = {
		0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65,
		0xf0,
	};
	size_t at = 0, vector;

	while (at < n && memchr(prefixes, code[at], sizeof(prefixes)))
		in->is_16_bit |= code[at++] == 0x66;
	if (at < n && code[at] >> 4 == 4)
		in->rex = code[at++];
	if (at >= n)
		return 0;
	vector = code[at] == 0xc5 ? 2 : code[at] == 0xc4 ? 3 :
		 code[at] == 0x62 ? 4 : 0;
	if (vector) {
		if (n - at <= vector)
			return 0;
		in->is_vector = true;
		in->map = vector == 2 ? 1 : code[at + 1] & (vector == 3 ? 31 :
							    7);
		at += vector;
		/* of AVX-512's later maps none has a constant */
		if (in->map == 5 || in->map == 6)
			in->map = 2;
		if (in->map == 0 || in->map > 3)
			return 0;
	} else if (code[at] == 0x0f) {
		if (++at >= n)
			return 0;
		in->map = code[at] == 0x38 ? 2 : code[at] == 0x3a ? 3 : 1;
		at += in->map > 1;
	}
	if (at >= n)
		return 0;
	in->op = code[at];
	return at + 1;
}

/* The bytes of the constant of an instruction of @form. */
static size_t constant_bytes(const struct instruction *in, uint8_t form)
{
	size_t word = in->is_16_bit && !(in->rex & REX_W) ? 2 : 4;
	bool is_near = in->map == 1 || in->op == 0xe8 || in->op == 0xe9;

	switch (form & 7) {
	case B: return 1;
	case W: return 2;
	case E: return 3;
	case Z: return is_near ? 4 : word;
	case V: return in->rex & REX_W ? 8 : word;
	case F:		/* "test" is the only one that has a constant */
		return in->modrm[0] >> 3 & 6 ? 0 : in->op == 0xf6 ? 1 : word;
	}
	return 0;
}

static int64_t constant_of(const uint8_t *bytes, size_t n)
{
	int32_t word;
	int16_t half;

	switch (n) {
	case 1: return (int8_t)bytes[0];
	case 2: memcpy(&half, bytes, 2); return half;
	case 4: memcpy(&word, bytes, 4); return word;
	}
	return 0;
}

/* False: the bytes are no instruction that can be read. */
static bool decode(struct instruction *in, const uint8_t *code, size_t n)
{
	size_t at, more;
	uint8_t form;

	*in = (struct instruction) { .code = code };
	at = read_opcode(in, code, n);
	form = at ? form_of(in) : X;
	if (form & X)
		return false;
	if (form & M) {
		in->modrm = code + at;
		more = at < n ? seam_unwind_operand_bytes(code + at, n - at) : 0;
		if (more == 0 || more > n - at)
			return false;
		at += more;
	}
	more = constant_bytes(in, form);
	if (more > n - at)
		return false;
	in->value = constant_of(code + at, more);
	in->size = at + more;
	return true;
}

size_t seam_instruction_bytes(const uint8_t *code, size_t n)
{
	struct instruction in;

	return decode(&in, code, n) ? in.size : 0;
}

/* ---- what an instruction does to rsp ---- */

struct effect {
	enum {
		NOTHING,
		LOWER,		/* by .bytes; less than 0: raise */
		SET,		/* rsp is rbp less .bytes */
		LEAVE,		/* rsp is as before the function's first push */
		ESTABLISH,	/* rbp is rsp */
		ALIGN,		/* rsp to a multiple of .bytes */
		UNKNOWN,
	} kind;
	int64_t bytes;
};

static const struct effect nothing = { NOTHING, 0 }, unknown = { UNKNOWN, 0 };

static struct effect lower(int64_t bytes)
{
	return (struct effect) { LOWER, bytes };
}

static unsigned int reg_of(const struct instruction *in)
{
	return (in->modrm[0] >> 3 & 7) | (in->rex & REX_R ? 8 : 0);
}

/* The register that is the operand; 16: memory is. */
static unsigned int rm_of(const struct instruction *in)
{
	return in->modrm[0] >> 6 != 3 ? 16 :
	       (in->modrm[0] & 7) | (in->rex & REX_B ? 8 : 0);
}

/*
 * "lea rsp, [...]", of a register and a constant.  Functions that align their
 * stack before they push rbp have their first rsp in another register.
 */
static struct effect effect_of_lea(const struct instruction *in)
{
	unsigned int mod = in->modrm[0] >> 6, rm = in->modrm[0] & 7;
	size_t bytes = mod == 1 ? 1 : 4;
	int64_t by;

	if (mod == 0 || mod == 3 || (rm == RSP && in->modrm[1] != 0x24))
		return unknown;
	by = -constant_of(in->code + in->size - bytes, bytes);
	if (in->rex & REX_B || (rm != RBP && rm != RSP))
		return by == 8 ? (struct effect) { LEAVE, 0 } : unknown;
	return rm == RSP ? lower(by) : (struct effect) { SET, by };
}

/* Of operation @number (add, or, adc, sbb, and, sub, xor, cmp) on rsp. */
static struct effect effect_of_constant(unsigned int number, int64_t value)
{
	switch (number) {
	case 0: return lower(-value);
	case 4: return value < -8 && !(value & (-value - 1)) ?
		       (struct effect) { ALIGN, -value } : unknown;
	case 5: return lower(value);
	case 7: return nothing;
	}
	return unknown;
}

/* Of an instruction with a ModRM byte, of the map of one byte. */
static struct effect effect_of_operands(const struct instruction *in)
{
	unsigned int reg = reg_of(in), rm = rm_of(in);
	bool to_reg = false, to_rm = false;	/* a whole register is set */

	switch (in->op) {
	case 0x81:
	case 0x83:
		return rm == RSP ? effect_of_constant(reg & 7, in->value) :
		       nothing;
	case 0xff:
		return (reg & 7) == 6 ? lower(8) : nothing;
	case 0x8f:
		return rm == RSP ? unknown : lower(-8);
	case 0x8d:
		return reg == RSP ? effect_of_lea(in) : nothing;
	case 0x87:
		to_reg = to_rm = true;
		break;
	case 0x89:
	case 0xc7:
		to_rm = true;
		break;
	case 0x8b:
	case 0x63:
		to_reg = true;
		break;
	default:	/* of two registers, but for cmp */
		to_rm = in->op < 0x38 && (in->op & 7) == 1;
		to_reg = in->op < 0x38 && (in->op & 7) == 3;
	}
	if ((in->op == 0x89 && rm == RBP && reg == RSP) ||
	    (in->op == 0x8b && reg == RBP && rm == RSP))
		return (struct effect) { ESTABLISH, 0 };
	if ((in->op == 0x89 && rm == RSP && reg == RBP) ||
	    (in->op == 0x8b && reg == RSP && rm == RBP))
		return (struct effect) { SET, 0 };
	return (to_reg && reg == RSP) || (to_rm && rm == RSP) ? unknown :
	       nothing;
}

static struct effect effect_of(const struct instruction *in)
{
	uint8_t op = in->op;

	if (in->is_vector || in->map > 1)
		return nothing;
	if (in->map == 1) {
		if (op == 0xa0 || op == 0xa8)
			return lower(8);
		if (op == 0xa1 || op == 0xa9)
			return lower(-8);
		/* cmov */
		return op >> 4 == 4 && reg_of(in) == RSP ? unknown : nothing;
	}
	if (in->modrm)
		return effect_of_operands(in);
	if (op >> 4 == 5 || op == 0x68 || op == 0x6a || op == 0x9c ||
	    op == 0x9d) {
		if (in->is_16_bit || (op == 0x5c && !(in->rex & REX_B)))
			return unknown;
		return lower(op >> 3 == 0x58 >> 3 || op == 0x9d ? -8 : 8);
	}
	if (op == 0xc9)				/* leave */
		return (struct effect) { SET, -8 };
	/* enter; xchg and mov of rsp */
	return op == 0xc8 || ((op == 0x94 || op == 0xbc) &&
			      !(in->rex & REX_B)) ? unknown : nothing;
}

/* ---- from the first instruction on ---- */

struct height {
	int64_t bytes, align;
	bool is_known;
};

struct height_sweep {
	struct height now;
	struct {
		size_t at;
		struct height height;
	} targets[MAX_TARGETS],	/* of jumps ahead; the oldest are forgotten */
	  changes[MAX_CHANGES];	/* from here on it is another one */
	size_t n_targets, n_changes;
	struct height usual;	/* at the last jump */
	bool is_unreached;	/* a jump or a return, and padding, are before */
	bool has_left;		/* a return follows */
	bool is_useless;	/* what is known is wrong */
};

static void apply(struct height_sweep *s, struct effect effect)
{
	struct height *now = &s->now;

	switch (effect.kind) {
	case NOTHING:
		return;
	case LOWER:
		now->bytes += effect.bytes;
		break;
	case SET:
	case ESTABLISH:
		*now = (struct height) {
			.bytes = effect.bytes,
			.is_known = effect.kind == ESTABLISH || now->is_known,
		};
		break;
	case LEAVE:
		now->is_known = false;
		s->has_left = true;
		break;
	case ALIGN:
		now->is_known &= !now->align && effect.bytes <= MAX_ALIGN;
		now->align = effect.bytes;
		break;
	case UNKNOWN:
		s->is_useless = true;
	}
	now->is_known &= llabs(now->bytes) < MAX_HEIGHT;
}

static bool is_same(const struct height *a, const struct height *b)
{
	return a->is_known == b->is_known &&
	       (!a->is_known || (a->bytes == b->bytes && a->align == b->align));
}

/* A jump at @at to @target, an offset too. */
static void take_jump(struct height_sweep *s, size_t at, int64_t target)
{
	struct height then = { .is_known = false };

	if (!s->now.is_known || s->now.bytes < 0 || target < 0)
		return;
	s->usual = s->now;
	if ((uint64_t)target > at) {
		size_t i = s->n_targets++ % MAX_TARGETS;

		s->targets[i].at = (size_t)target;
		s->targets[i].height = s->now;
		return;
	}
	for (size_t i = 0; i < s->n_changes &&
	     s->changes[i].at <= (uint64_t)target; i++)
		then = s->changes[i].height;
	/* it was not known there, or a loop changes it */
	s->is_useless |= then.is_known && !is_same(&then, &s->now);
}

/* Code at @at, after a jump or a return: a jump before may lead to it. */
static void take_target(struct height_sweep *s, size_t at)
{
	size_t n = s->n_targets < MAX_TARGETS ? s->n_targets : MAX_TARGETS;

	for (size_t i = 0; i < n; i++)
		if (s->targets[i].at == at) {
			s->now = s->targets[i].height;
			s->is_unreached = false;
			return;
		}
}

static bool is_nop(const struct instruction *in)
{
	return in->map == 1 ? in->op == 0x1f : in->op == 0x90;
}

static void follow(struct height_sweep *s, const struct instruction *in,
		   size_t at)
{
	uint8_t op = in->op, ff = in->modrm ? in->modrm[0] >> 3 & 7 : 0;
	bool is_plain = in->map == 0 && !in->is_vector;
	bool is_jump = is_plain && (op == 0xeb || op == 0xe9);

	if (is_jump || (is_plain && (op >> 4 == 7 || op >> 2 == 0xe0 >> 2)) ||
	    (in->map == 1 && !in->is_vector && op >> 4 == 8))
		take_jump(s, at, (int64_t)(at + in->size) + in->value);
	if (is_plain && (op == 0xc3 || op == 0xc2))
		s->now.is_known = s->has_left = false;
	else if (!is_jump && !(is_plain && op == 0xff && ff == 4))
		return;
	/* after a jump the height stays, unless that left the function */
	if (!s->now.is_known || s->now.bytes < 0)
		s->now = s->usual;
	s->is_unreached = true;
}

/* False: no room for one more change. */
static bool note_change(struct height_sweep *s, const struct height *before,
			size_t at)
{
	if (is_same(before, &s->now))
		return true;
	if (s->n_changes == MAX_CHANGES)
		return false;
	s->changes[s->n_changes].at = at;
	s->changes[s->n_changes++].height = s->now;
	return true;
}

bool seam_stack_height_after(const uint8_t *code, size_t size, size_t n,
			     struct seam_stack_height *height)
{
	struct height_sweep s = { .n_targets = 0 };
	struct height found = { .is_known = false };
	struct instruction in;

	for (size_t at = 0; at < size; at += in.size) {
		struct height before = s.now;

		if (!decode(&in, code + at, size - at))
			return false;
		if (s.is_unreached)
			take_target(&s, at);
		s.is_unreached &= is_nop(&in);
		/* and nothing else */
		s.is_useless |= s.has_left && in.op != 0xc3;
		apply(&s, effect_of(&in));
		if (at + in.size == n)
			found = s.now;
		follow(&s, &in, at);
		if (s.is_useless || !note_change(&s, &before, at + in.size))
			return false;
	}
	if (!found.is_known || found.bytes < 0)
		return false;
	*height = (struct seam_stack_height) {
		(uint64_t)found.bytes, (uint64_t)found.align,
	};
	return true;
}
