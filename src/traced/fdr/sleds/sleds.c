/* SPDX-License-Identifier: MIT */
/* sleds.c - lists of sleds, read and checked; see sleds.h */
#include "traced/fdr/sleds/sleds.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/xray/xray.h"

/* Source: LLVM 14, XRaySledEntry; bytes after these members are padding. */
enum {
	MAP_ENTRY_BYTES = 32,
	FUNCTION_POS = 8,
	KIND_POS = 16,
	VERSION_POS = 18,
	MAX_VERSION = 2,
};

struct reader {
	struct seam_fdr_sleds *sleds;
	const struct seam_fdr_code *code;
};

/* ---- the bytes of a sled ---- */

/* Whether the @n bytes are nops. */
static bool are_nops(const uint8_t *p, size_t n)
{
	while (n) {
		size_t size = seam_fdr_nop_bytes(p, n);

		if (!size)
			return false;
		p += size;
		n -= size;
	}
	return true;
}

/*
 * After its first two bytes: nops; or, where it was in use before, by us or by
 * compiler-rt, what is then left.
 */
static bool is_free_call(const uint8_t *p, const char *head, uint8_t opcode)
{
	return !memcmp(p, head, 2) && (are_nops(p + 2, 9) || p[6] == opcode);
}

static bool is_free_exit(const uint8_t *p)
{
	return p[0] == 0xc3 && (are_nops(p + 1, 10) || p[6] == 0xe9);
}

static bool is_free_event(const uint8_t *p, const struct seam_fdr_sled *sled)
{
	return p[0] == 0xeb && p[1] == sled->bytes - 2 &&
	       p[seam_fdr_event_call(sled->kind)] == 0xe8;
}

/* At the entry of a gcc function; EB: we have made it jump over itself. */
static bool is_free_entry(const struct seam_fdr_code *code, const uint8_t *p,
			  const struct seam_fdr_sled *sled)
{
	if (p[0] == 0xeb && p[1] == sled->bytes - 2)
		return true;
	return are_nops(p, sled->bytes) ||
	       seam_fdr_code_fentry_bytes(code, sled->address) == sled->bytes;
}

/* With the room before the function. */
static bool is_free_prefix(const uint8_t *p)
{
	const uint8_t *room = p - SEAM_FDR_PREFIX_BYTES;

	/* a jump to the next instruction is one nop in place of two */
	return (are_nops(p, 2) || !memcmp(p, "\xeb\x00", 2)) &&
	       (are_nops(room, SEAM_FDR_PREFIX_BYTES) || room[0] == 0xe9);
}

/* From its lowest byte, which may be before its address. */
static uint64_t start_of(const struct seam_fdr_sled *sled)
{
	return sled->kind == SEAM_FDR_SLED_PREFIX ?
	       sled->address - SEAM_FDR_PREFIX_BYTES : sled->address;
}

bool seam_fdr_sled_is_free(const struct seam_fdr_code *code,
			   const struct seam_fdr_sled *sled)
{
	uint64_t end = sled->address + sled->bytes, start = start_of(sled);
	const uint8_t *p = seam_fdr_code_at(code, start, end - start);

	/* one aligned word has the head, which is replaced at once */
	if (!p || sled->address % 8 == 7)
		return false;
	p += sled->address - start;
	switch (sled->kind) {
	case SEAM_FDR_SLED_ENTRY:
	case SEAM_FDR_SLED_ENTRY_ARGS:
	case SEAM_FDR_SLED_TAIL:
		return is_free_call(p, "\xeb\x09", 0xe8);
	case SEAM_FDR_SLED_EXIT:
		return is_free_exit(p);
	case SEAM_FDR_SLED_CUSTOM:
	case SEAM_FDR_SLED_TYPED:
		return is_free_event(p, sled);
	case SEAM_FDR_SLED_CALL:
		return is_free_entry(code, p, sled);
	case SEAM_FDR_SLED_PREFIX:
		return is_free_prefix(p);
	}
	return false;
}

/* ---- add one ---- */

static int add_function(struct reader *r, uint64_t function)
{
	struct seam_fdr_sleds *sleds = r->sleds;

	if (sleds->functions.n &&
	    sleds->functions.items[sleds->functions.n - 1] == function)
		return 0;
	if (sleds->functions.n == SEAM_XRAY_MAX_FUNCTION)
		return -E2BIG;
	return SEAM_ARRAY_ADD(&sleds->functions, function) ? 0 : -ENOMEM;
}

/* To the last function. */
static int add_sled(struct reader *r, struct seam_fdr_sled sled)
{
	sled.function = (uint32_t)r->sleds->functions.n - 1;
	if (!seam_fdr_sled_is_free(r->code, &sled)) {
		r->sleds->n_refused++;
		return 0;
	}
	memcpy(sled.original, (const void *)sled.address,
	       sled.bytes < sizeof(sled.original) ? sled.bytes :
						    sizeof(sled.original));
	return SEAM_ARRAY_ADD(&r->sleds->list, sled) ? 0 : -ENOMEM;
}

static int compare_sleds(const void *left, const void *right)
{
	const struct seam_fdr_sled *a = left, *b = right;

	return SEAM_COMPARE(start_of(a), start_of(b)) ?:
	       SEAM_COMPARE(a->function, b->function) ?:
	       SEAM_COMPARE(a->kind, b->kind);
}

/* Sort them, and refuse those that begin within another. */
static void settle(struct seam_fdr_sleds *sleds)
{
	uint64_t end = 0;
	size_t n = 0;

	SEAM_ARRAY_SORT(&sleds->list, compare_sleds);
	for (size_t i = 0; i < sleds->list.n; i++) {
		struct seam_fdr_sled sled = sleds->list.items[i];

		if (n && start_of(&sled) < end)
			continue;
		end = sled.address + sled.bytes;
		sleds->list.items[n++] = sled;
	}
	sleds->n_refused += sleds->list.n - n;
	sleds->list.n = n;
}

/* ---- XRay's map ---- */

static uint64_t number_at(const uint8_t *p)
{
	uint64_t n;

	memcpy(&n, p, sizeof(n));
	return n;
}

/* 0: kinds and versions that do not exist, or whose layout is not known. */
static uint8_t bytes_of(uint8_t kind, uint8_t version)
{
	if (version > MAX_VERSION)
		return 0;
	switch (kind) {
	case SEAM_FDR_SLED_ENTRY:
	case SEAM_FDR_SLED_EXIT:
	case SEAM_FDR_SLED_TAIL:
	case SEAM_FDR_SLED_ENTRY_ARGS:
		return SEAM_FDR_SLED_BYTES;
	case SEAM_FDR_SLED_CUSTOM:
		return version ? SEAM_FDR_CUSTOM_BYTES : 0;
	case SEAM_FDR_SLED_TYPED:
		return SEAM_FDR_TYPED_BYTES;
	}
	return 0;
}

static int read_map_entry(struct reader *r, const uint8_t *p)
{
	uint64_t address = number_at(p), function = number_at(p + FUNCTION_POS);
	struct seam_fdr_sled sled = {
		.kind = p[KIND_POS],
		.bytes = bytes_of(p[KIND_POS], p[VERSION_POS]),
	};
	int e;

	/* from where they are, since version 2 */
	if (p[VERSION_POS] >= 2) {
		address += (uint64_t)p;
		function += (uint64_t)p + FUNCTION_POS;
	}
	sled.address = address;
	e = add_function(r, function);
	if (e < 0)
		return e;
	if (!sled.bytes || address % 2) {
		r->sleds->n_refused++;
		return 0;
	}
	return add_sled(r, sled);
}

static int read_map(struct reader *r, uint64_t start, uint64_t bytes)
{
	int e = 0;

	for (uint64_t at = 0; e == 0 && bytes - at >= MAP_ENTRY_BYTES;
	     at += MAP_ENTRY_BYTES)
		e = read_map_entry(r, (const uint8_t *)start + at);
	return e;
}

/* ---- entries of gcc ---- */

/*
 * Whole nops from @p on, so many that a call fits.  0: there are less.
 */
static uint8_t room_for_call(const uint8_t *p, size_t n, bool *is_divided)
{
	size_t room = 0, first = 0;

	while (room < 5) {
		size_t size = seam_fdr_nop_bytes(p + room, n - room);

		if (!size)
			return 0;
		first = first ?: size;
		room += size;
	}
	*is_divided = first < room;
	return room <= SEAM_FDR_MAX_CALL_BYTES ? (uint8_t)room : 0;
}

/*
 * Where a sled may begin among the nops at @body: there; or after the first of
 * one byte, where the sled's first two bytes would be in two words of 8.
 */
static uint64_t first_in_word(const struct seam_fdr_code *code, uint64_t body)
{
	const uint8_t *p = seam_fdr_code_at(code, body, 1);

	return p && body % 8 == 7 && seam_fdr_nop_bytes(p, 1) == 1 ? body + 1 :
								body;
}

/* After endbr64, where there is one. */
static uint64_t body_of(const struct seam_fdr_code *code, uint64_t function)
{
	const uint8_t *p = seam_fdr_code_at(code, function,
					    SEAM_FDR_ENDBR_BYTES);

	return p && seam_fdr_is_endbr(p) ? function + SEAM_FDR_ENDBR_BYTES :
					   function;
}

/* At most so many bytes of code are at @start. */
static size_t code_bytes(const struct seam_fdr_code *code, uint64_t start,
			 size_t most)
{
	while (most && !seam_fdr_code_at(code, start, most))
		most--;
	return most;
}

static int add_entry(struct reader *r, uint64_t function, bool has_prefix)
{
	uint64_t body = body_of(r->code, function);
	uint64_t call = first_in_word(r->code, body);
	size_t n = code_bytes(r->code, call, 2 * SEAM_FDR_MAX_CALL_BYTES);
	struct seam_fdr_sled sled = {
		.address = call, .kind = SEAM_FDR_SLED_CALL,
	};
	int e = add_function(r, function);

	if (e < 0)
		return e;
	if (n)
		sled.bytes = room_for_call((const uint8_t *)call, n,
					   &sled.is_divided);
	if (!sled.bytes && has_prefix && body == function &&
	    n >= 2) {
		sled.kind = SEAM_FDR_SLED_PREFIX;
		sled.address = body;
		sled.bytes = 2;
		sled.is_divided = seam_fdr_nop_bytes((const uint8_t *)body,
						     n) != 2;
	}
	if (sled.bytes)
		return add_sled(r, sled);
	r->sleds->n_refused++;
	return 0;
}

/*
 * The address is that of the first nop: at the function's beginning, or after
 * its endbr64, or before it where some of the nops are.
 */
static int read_patchable(struct reader *r, uint64_t address)
{
	enum { MAX_PREFIX = 64 };
	const struct seam_fdr_code *code = r->code;
	size_t i = seam_fdr_code_find(code, address);
	uint64_t function;

	if (i < seam_fdr_code_n_functions(code)) {
		function = seam_fdr_code_function(code, i);
		if (function - address <= MAX_PREFIX &&
		    seam_fdr_code_at(code, address, function - address) &&
		    are_nops((const uint8_t *)address, function - address))
			return add_entry(r, function, function - address >=
						      SEAM_FDR_PREFIX_BYTES);
	}
	if (i > 0 && seam_fdr_code_function(code, i - 1) ==
		     address - SEAM_FDR_ENDBR_BYTES &&
	    body_of(code, address - SEAM_FDR_ENDBR_BYTES) == address)
		return add_entry(r, address - SEAM_FDR_ENDBR_BYTES, false);
	/* it cannot be known where the function begins */
	r->sleds->n_refused++;
	return add_function(r, address);
}

static int read_mcount(struct reader *r, uint64_t address)
{
	uint64_t before = address - SEAM_FDR_ENDBR_BYTES;

	/* calls of __fentry__ are in the other list */
	if (seam_fdr_code_fentry_bytes(r->code, address))
		return 0;
	return add_entry(r, body_of(r->code, before) == address ? before :
							     address, false);
}

static int read_addresses(struct reader *r, uint64_t start, uint64_t bytes,
			  int (*read_one)(struct reader *, uint64_t))
{
	int e = 0;

	for (uint64_t at = 0; e == 0 && bytes - at >= 8; at += 8)
		e = read_one(r, number_at((const uint8_t *)start + at));
	return e;
}

static int read_calls(struct reader *r)
{
	size_t n = r->code->fentry || r->code->n_fentry_slots ?
		   seam_fdr_code_n_functions(r->code) : 0;
	int e = 0;

	for (size_t i = 0; e == 0 && i < n; i++) {
		uint64_t function = seam_fdr_code_function(r->code, i);
		struct seam_fdr_sled sled = {
			.address = body_of(r->code, function),
			.kind = SEAM_FDR_SLED_CALL,
		};

		sled.bytes = (uint8_t)seam_fdr_code_fentry_bytes(r->code,
								 sled.address);
		if (!sled.bytes)
			continue;
		e = add_function(r, function);
		e = e ?: add_sled(r, sled);
	}
	return e;
}

/* ---- all of a list ---- */

int seam_fdr_sleds_read(struct seam_fdr_sleds *sleds,
			enum seam_fdr_list_kind kind,
			const struct seam_fdr_code *code, uint64_t start,
			uint64_t bytes)
{
	struct reader r = { sleds, code };
	int e = 0;

	*sleds = (struct seam_fdr_sleds) { .n_refused = 0 };
	if (kind != SEAM_FDR_LIST_FENTRY &&
	    !seam_fdr_code_segment(code, start, bytes, PROT_READ))
		return 0;
	switch (kind) {
	case SEAM_FDR_LIST_XRAY:
		e = read_map(&r, start, bytes);
		break;
	case SEAM_FDR_LIST_PATCHABLE:
		e = read_addresses(&r, start, bytes, read_patchable);
		break;
	case SEAM_FDR_LIST_MCOUNT:
		e = read_addresses(&r, start, bytes, read_mcount);
		break;
	case SEAM_FDR_LIST_FENTRY:
		e = read_calls(&r);
		break;
	case SEAM_FDR_N_LISTS:
		break;
	}
	if (e < 0)
		seam_fdr_sleds_fini(sleds);
	else
		settle(sleds);
	return e;
}

void seam_fdr_sleds_fini(struct seam_fdr_sleds *sleds)
{
	free(sleds->list.items);
	free(sleds->functions.items);
	*sleds = (struct seam_fdr_sleds) { .n_refused = 0 };
}
