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

enum {
	ENDBR_BYTES = 4,
	MAX_NOP_BYTES = 15,	/* of any instruction */
	HEADER_BYTES = 12,	/* of .eh_frame_hdr, before its table */
	ENTRY_BYTES = 8,
	/* Source: LSB 5.0, "DWARF Exception Header Encoding" */
	UDATA4 = 0x03,
	DATAREL_SDATA4 = 0x3b,
};

struct reader {
	struct seam_fdr_sleds *sleds;
	const struct seam_fdr_code *code;
};

const struct seam_fdr_sled_traits
	seam_fdr_sled_traits[SEAM_FDR_N_SLED_KINDS] = {
	[SEAM_FDR_SLED_ENTRY] = { 11, 0, SEAM_XRAY_ENTRY, true, false },
	[SEAM_FDR_SLED_EXIT] = { 11, 0, SEAM_XRAY_EXIT, false, false },
	[SEAM_FDR_SLED_TAIL] = { 11, 0, SEAM_XRAY_TAIL_EXIT, true, false },
	[SEAM_FDR_SLED_ENTRY_ARGS] = { 11, 0, SEAM_XRAY_ENTRY_ARGS, true,
				       false },
	/* of maps of version 1 and 2; typed events also of version 0 */
	[SEAM_FDR_SLED_CUSTOM] = { 17, 10, 0, false, false },
	[SEAM_FDR_SLED_TYPED] = { 22, 14, 0, false, false },
	[SEAM_FDR_SLED_CALL] = { 0, 0, SEAM_XRAY_ENTRY, false, true },
};

/* ---- memory ---- */

const struct seam_fdr_segment *
seam_fdr_code_segment(const struct seam_fdr_code *code, uint64_t start,
		      uint64_t bytes, int rights)
{
	for (size_t i = 0; i < code->segments.n; i++) {
		const struct seam_fdr_segment *s = &code->segments.items[i];

		if ((s->rights & rights) == rights && start >= s->start &&
		    start <= s->end && bytes <= s->end - start)
			return s;
	}
	return NULL;
}

/* The @bytes of code at @start; NULL where they are not all code. */
static const uint8_t *code_at(const struct seam_fdr_code *code, uint64_t start,
			      uint64_t bytes)
{
	return seam_fdr_code_segment(code, start, bytes,
				     PROT_READ | PROT_EXEC) ?
	       (const uint8_t *)start : NULL;
}

/* Copy @bytes of any readable segment.  False: they are not all there. */
static bool code_read(const struct seam_fdr_code *code, uint64_t start,
		      void *to, size_t bytes)
{
	if (!seam_fdr_code_segment(code, start, bytes, PROT_READ))
		return false;
	memcpy(to, (const void *)start, bytes);
	return true;
}

/* ---- instructions ---- */

/* The bytes of the ModRM byte at @p and of its operand; @n are there. */
static size_t operand_bytes(const uint8_t *p, size_t n)
{
	uint8_t mode = p[0] >> 6, rm = p[0] & 7;
	size_t size = 1;

	if (mode == 3)
		return size;
	if (rm == 4) {
		size++;
		if (mode == 0 && n > 1 && (p[1] & 7) == 5)
			size += 4;
	} else if (mode == 0 && rm == 5) {
		size += 4;
	}
	return size + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
}

/*
 * The size of the instruction at @p, of at most @n bytes, if it is a nop; 0:
 * another one.  Source: Intel SDM, volume 2, "NOP", with prefixes.
 */
static size_t nop_bytes(const uint8_t *p, size_t n)
{
	size_t at = 0, size;

	while (at < n && (p[at] == 0x66 || p[at] == 0x2e))
		at++;
	if (at < n && p[at] == 0x90)
		size = at + 1;
	else if (n - at > 2 && p[at] == 0x0f && p[at + 1] == 0x1f)
		size = at + 2 + operand_bytes(p + at + 2, n - at - 2);
	else
		return 0;
	return size <= n && size <= MAX_NOP_BYTES ? size : 0;
}

static bool is_endbr(const uint8_t *p)
{
	return !memcmp(p, "\xf3\x0f\x1e\xfa", ENDBR_BYTES);
}

static uint64_t after(uint64_t next, const uint8_t *relative)
{
	int32_t distance;

	memcpy(&distance, relative, sizeof(distance));
	return next + (uint64_t)(int64_t)distance;
}

static bool is_fentry_slot(const struct seam_fdr_code *code, uint64_t slot)
{
	for (size_t i = 0; i < code->n_fentry_slots; i++)
		if (code->fentry_slots[i] == slot)
			return true;
	return false;
}

/* Whether @start is the entry for __fentry__ of the linkage table. */
static bool is_fentry_plt(const struct seam_fdr_code *code, uint64_t start)
{
	const uint8_t *p = code_at(code, start, 11);
	size_t at = 0;

	if (!p)
		return false;
	if (is_endbr(p))
		at += ENDBR_BYTES;
	if (p[at] == 0xf2)		/* bnd */
		at++;
	return p[at] == 0xff && p[at + 1] == 0x25 &&
	       is_fentry_slot(code, after(start + at + 6, p + at + 2));
}

/* The size of the instruction at @start if it calls __fentry__; else 0. */
static size_t fentry_bytes(const struct seam_fdr_code *code, uint64_t start)
{
	const uint8_t *p = code_at(code, start, 6);
	uint64_t target;

	if (p && p[0] == 0xff && p[1] == 0x15 &&
	    is_fentry_slot(code, after(start + 6, p + 2)))
		return 6;
	if (!p || p[0] != 0xe8)
		return 0;
	target = after(start + 5, p + 1);
	return (code->fentry && target == code->fentry) ||
	       is_fentry_plt(code, target) ? 5 : 0;
}

/*
 * ---- beginnings of functions, ascending: the table of .eh_frame_hdr ----
 *
 * Source: LSB 5.0, "The .eh_frame_hdr section"
 */

static size_t count_functions(const struct seam_fdr_code *code)
{
	struct { uint8_t version, pointer, count, table; } encodings;
	const uint64_t header = code->eh_frame_header;
	uint32_t n;

	if (!header ||
	    !code_read(code, header, &encodings, sizeof(encodings)) ||
	    encodings.version != 1 || (encodings.pointer & 0xf) != 0xb ||
	    encodings.count != UDATA4 || encodings.table != DATAREL_SDATA4 ||
	    !code_read(code, header + 8, &n, sizeof(n)) ||
	    !seam_fdr_code_segment(code, header + HEADER_BYTES,
				   (uint64_t)n * ENTRY_BYTES, PROT_READ))
		return 0;
	return n;
}

static uint64_t function_at(const struct seam_fdr_code *code, size_t i)
{
	const uint64_t header = code->eh_frame_header;

	return after(header, (const uint8_t *)header + HEADER_BYTES +
			     i * ENTRY_BYTES);
}

/* The first function that is not before @address. */
static size_t find_function(const struct seam_fdr_code *code, uint64_t address)
{
	return SEAM_ARRAY_SEARCH(i, count_functions(code),
				 function_at(code, i) < address);
}

/* ---- the bytes of a sled ---- */

/* Whether the @n bytes are nops. */
static bool are_nops(const uint8_t *p, size_t n)
{
	while (n) {
		size_t size = nop_bytes(p, n);

		if (!size)
			return false;
		p += size;
		n -= size;
	}
	return true;
}

bool seam_fdr_sled_is_free(const struct seam_fdr_code *code,
			   const struct seam_fdr_sled *sled)
{
	const uint8_t *p = code_at(code, sled->address, sled->bytes);

	/* the head is in one aligned word, and is replaced at once */
	if (!p || sled->address % 8 == 7)
		return false;
	switch (sled->kind) {
	/*
	 * After the first two bytes: nops; or, where the sled was in use
	 * before, by us or by compiler-rt, what is then left.
	 */
	case SEAM_FDR_SLED_ENTRY:
	case SEAM_FDR_SLED_ENTRY_ARGS:
	case SEAM_FDR_SLED_TAIL:
		return !memcmp(p, "\xeb\x09", 2) &&
		       (are_nops(p + 2, 9) || p[6] == 0xe8);
	case SEAM_FDR_SLED_EXIT:
		return p[0] == 0xc3 && (are_nops(p + 1, 10) || p[6] == 0xe9);
	case SEAM_FDR_SLED_CUSTOM:
	case SEAM_FDR_SLED_TYPED:
		return p[0] == 0xeb && p[1] == sled->bytes - 2 &&
		       p[seam_fdr_sled_traits[sled->kind].event_call] == 0xe8;
	case SEAM_FDR_SLED_CALL:
		/* EB: we have made the entry jump over itself */
		return (p[0] == 0xeb && p[1] == sled->bytes - 2) ||
		       are_nops(p, sled->bytes) ||
		       fentry_bytes(code, sled->address) ==
		       sled->bytes;
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

	return SEAM_COMPARE(a->address, b->address) ?:
	       SEAM_COMPARE(a->function, b->function) ?:
	       SEAM_COMPARE(a->kind, b->kind);
}

/* Sort the sleds, and refuse sleds that begin within another. */
static void settle(struct seam_fdr_sleds *sleds)
{
	uint64_t end = 0;
	size_t n = 0;

	SEAM_ARRAY_SORT(&sleds->list, compare_sleds);
	for (size_t i = 0; i < sleds->list.n; i++) {
		struct seam_fdr_sled sled = sleds->list.items[i];

		if (n && sled.address < end)
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
	return version > MAX_VERSION || kind > SEAM_FDR_SLED_TYPED ||
	       (kind == SEAM_FDR_SLED_CUSTOM && !version) ? 0 :
	       seam_fdr_sled_traits[kind].bytes;
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

/* ---- entries of gcc ---- */

/* The bytes of whole nops from @p on in which a call fits; 0: too few. */
static uint8_t room_for_call(const uint8_t *p, size_t n, bool *is_divided)
{
	size_t room = 0, first = 0;

	while (room < 5) {
		size_t size = nop_bytes(p + room, n - room);

		if (!size)
			return 0;
		first = first ?: size;
		room += size;
	}
	*is_divided = first < room;
	return room <= SEAM_FDR_MAX_CALL_BYTES ? (uint8_t)room : 0;
}

/*
 * Where a sled may begin among the nops at @body: there; or after a nop of one
 * byte, where the sled's first two bytes would be in two words of 8.
 */
static uint64_t first_in_word(const struct seam_fdr_code *code, uint64_t body)
{
	const uint8_t *p = code_at(code, body, 1);

	return p && body % 8 == 7 && nop_bytes(p, 1) == 1 ? body + 1 :
								body;
}

/* After endbr64, where there is one. */
static uint64_t body_of(const struct seam_fdr_code *code, uint64_t function)
{
	const uint8_t *p = code_at(code, function,
					    ENDBR_BYTES);

	return p && is_endbr(p) ? function + ENDBR_BYTES :
					   function;
}

static int add_entry(struct reader *r, uint64_t function)
{
	uint64_t body = body_of(r->code, function);
	uint64_t call = first_in_word(r->code, body);
	size_t n = 2 * SEAM_FDR_MAX_CALL_BYTES;
	struct seam_fdr_sled sled = {
		.address = call, .kind = SEAM_FDR_SLED_CALL,
	};
	int e = add_function(r, function);

	if (e < 0)
		return e;
	while (n && !code_at(r->code, call, n))
		n--;
	if (n)
		sled.bytes = room_for_call((const uint8_t *)call, n,
					   &sled.is_divided);
	if (sled.bytes)
		return add_sled(r, sled);
	r->sleds->n_refused++;
	return 0;
}

/*
 * An entry has the address of the first nop: at the function's beginning, after
 * its endbr64, or before the function, where some of the nops are.
 */
static int read_patchable(struct reader *r, const uint8_t *entry)
{
	enum { MAX_PREFIX = 64 };
	uint64_t address = number_at(entry), function;
	const struct seam_fdr_code *code = r->code;
	size_t i = find_function(code, address);

	if (i < count_functions(code)) {
		function = function_at(code, i);
		if (function - address <= MAX_PREFIX &&
		    code_at(code, address, function - address) &&
		    are_nops((const uint8_t *)address, function - address))
			return add_entry(r, function);
	}
	if (i > 0 && function_at(code, i - 1) ==
		     address - ENDBR_BYTES &&
	    body_of(code, address - ENDBR_BYTES) == address)
		return add_entry(r, address - ENDBR_BYTES);
	/* the function's beginning is not known */
	r->sleds->n_refused++;
	return add_function(r, address);
}

static int read_mcount(struct reader *r, const uint8_t *entry)
{
	uint64_t address = number_at(entry);
	uint64_t before = address - ENDBR_BYTES;

	/* calls of __fentry__ are in the other list */
	if (fentry_bytes(r->code, address))
		return 0;
	return add_entry(r, body_of(r->code, before) == address ? before :
								  address);
}

static int read_calls(struct reader *r)
{
	size_t n = r->code->fentry || r->code->n_fentry_slots ?
		   count_functions(r->code) : 0;
	int e = 0;

	for (size_t i = 0; e == 0 && i < n; i++) {
		uint64_t function = function_at(r->code, i);
		struct seam_fdr_sled sled = {
			.address = body_of(r->code, function),
			.kind = SEAM_FDR_SLED_CALL,
		};

		sled.bytes = (uint8_t)fentry_bytes(r->code,
								 sled.address);
		if (!sled.bytes)
			continue;
		e = add_function(r, function);
		e = e ?: add_sled(r, sled);
	}
	return e;
}

/* ---- all of a list ---- */

/* Lists in memory: a function for each entry, and the entry's size. */
static const struct list_reader {
	int (*read)(struct reader *r, const uint8_t *entry);
	uint64_t bytes;
} readers[] = {
	[SEAM_FDR_LIST_XRAY] = { read_map_entry, MAP_ENTRY_BYTES },
	[SEAM_FDR_LIST_PATCHABLE] = { read_patchable, 8 },
	[SEAM_FDR_LIST_MCOUNT] = { read_mcount, 8 },
};

int seam_fdr_sleds_read(struct seam_fdr_sleds *sleds,
			enum seam_fdr_list_kind kind,
			const struct seam_fdr_code *code, uint64_t start,
			uint64_t bytes)
{
	struct reader r = { sleds, code };
	int e = 0;

	*sleds = (struct seam_fdr_sleds) { .n_refused = 0 };
	if (kind == SEAM_FDR_LIST_FENTRY)
		e = read_calls(&r);
	else if (seam_fdr_code_segment(code, start, bytes, PROT_READ))
		for (uint64_t at = 0; e == 0 &&
		     bytes - at >= readers[kind].bytes;
		     at += readers[kind].bytes)
			e = readers[kind].read(&r, (const uint8_t *)start + at);
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
