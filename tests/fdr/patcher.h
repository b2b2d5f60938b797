/* SPDX-License-Identifier: MIT */
/*
 * patcher.h - patch all sleds of this program, before it has threads
 *
 * As little as the tests of trampolines need; the library's own patcher has
 * tests of its own.  The program is built with clang -fxray-instrument
 * -fnoxray-link-deps, what includes this is not instrumented.
 */
#ifndef SEAM_TESTS_FDR_PATCHER_H
#define SEAM_TESTS_FDR_PATCHER_H

#include "traced/fdr/record/trampolines.h"
#include "wire/xray/xray_chunk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Source: LLVM's xray_instr_map, version 2 */
struct patcher_sled {
	int64_t address, function;	/* relative to the fields themselves */
	uint8_t kind, always, version, unused[13];
};

extern const struct patcher_sled __start_xray_instr_map[],
	__stop_xray_instr_map[];

struct patcher_code {
	const char *entry, *exit, *tail;
};

static uint8_t *patcher_address(const int64_t *field)
{
	return (uint8_t *)(uintptr_t)field + *field;
}

static void patcher_write(uint8_t *at, uint32_t word, uint8_t opcode,
			  const char *to)
{
	int32_t distance = (int32_t)(to - (const char *)at - 11);

	at[0] = 0x41;	/* mov word, %r10d */
	at[1] = 0xba;
	memcpy(at + 2, &word, 4);
	at[6] = opcode;
	memcpy(at + 7, &distance, 4);
}

/* The id of the function at @function, which has sleds; 0: it has none. */
static inline uint32_t patcher_id(const void *function)
{
	const uint8_t *before = NULL;
	uint32_t id = 0;

	for (const struct patcher_sled *s = __start_xray_instr_map;
	     s < __stop_xray_instr_map; s++) {
		const uint8_t *f = patcher_address(&s->function);

		id += f != before;
		before = f;
		if (f == function)
			return id;
	}
	return 0;
}

/* Ids are 1 and up, in the order of the map.  Returns how many. */
static inline uint32_t patcher_patch(const struct patcher_code *code)
{
	uintptr_t low = UINTPTR_MAX, high = 0;
	const uint8_t *before = NULL;
	uint32_t id = 0;

	for (const struct patcher_sled *s = __start_xray_instr_map;
	     s < __stop_xray_instr_map; s++) {
		uintptr_t at = (uintptr_t)patcher_address(&s->address);

		low = at < low ? at : low;
		high = at > high ? at : high;
	}
	low &= ~(uintptr_t)4095;
	high = (high + 11 + 4095) & ~(uintptr_t)4095;
	if (mprotect((void *)low, high - low,
		     PROT_READ | PROT_WRITE | PROT_EXEC)) {
		perror("mprotect");
		exit(1);
	}
	for (const struct patcher_sled *s = __start_xray_instr_map;
	     s < __stop_xray_instr_map; s++) {
		uint8_t *at = patcher_address(&s->address);
		const uint8_t *f = patcher_address(&s->function);

		id += f != before;
		before = f;
		if (s->kind == 0 || s->kind == 3)
			patcher_write(at, seam_xray_word(id, SEAM_XRAY_ENTRY),
				      0xe8, code->entry);
		else if (s->kind == 1)
			patcher_write(at, seam_xray_word(id, SEAM_XRAY_EXIT),
				      0xe9, code->exit);
		else if (s->kind == 2)
			patcher_write(at,
				      seam_xray_word(id, SEAM_XRAY_TAIL_EXIT),
				      0xe8, code->tail);
	}
	mprotect((void *)low, high - low, PROT_READ | PROT_EXEC);
	return id;
}

static const struct patcher_code patcher_plain = {
	seam_fdr_entry, seam_fdr_exit, seam_fdr_tail,
};
static const struct patcher_code patcher_checked = {
	seam_fdr_checked_entry, seam_fdr_checked_exit, seam_fdr_checked_tail,
};

#endif /* SEAM_TESTS_FDR_PATCHER_H */
