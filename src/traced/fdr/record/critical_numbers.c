/* SPDX-License-Identifier: MIT */
/* critical_numbers.c - what critical.h says of structs, checked */
#include "traced/fdr/record/critical.h"

#include "ring/layout.h"
#include "traced/fdr/record/fdr_record.h"
#include "traced/fdr/record/trampolines.h"
#include "wire/xray/xray_chunk.h"

#define CHECK(number, value) _Static_assert((number) == (value), #number)
#define MEMBER(number, tag, member) \
	CHECK(number, offsetof(struct seam_fdr_##tag, member))

MEMBER(SELF_CURSOR, self, cursor);
MEMBER(SELF_AREA, self, area);
MEMBER(SELF_MASK, self, mask);
MEMBER(SELF_STATE, self, state);
MEMBER(AT_TSC, at, tsc);
MEMBER(AT_CPU, at, cpu);
MEMBER(STATE_TID, state, tid);
MEMBER(STATE_EVENT_END, state, event_end);
MEMBER(STATE_HELD, state, area.held);
CHECK(FDR_CPU, SEAM_FDR_CPU);
/* FIND_AT: state.at[i] is at (cursor & 8) * 2 */
MEMBER(0, state, at);
CHECK(16, sizeof(struct seam_fdr_at));

MEMBER(PUT_STATE, put, state);
MEMBER(PUT_CURSOR, put, cursor);
MEMBER(PUT_END, put, end);
MEMBER(PUT_WORDS, put, words);
MEMBER(PUT_N_WORDS, put, n_words);
MEMBER(PUT_PAYLOAD, put, payload);
MEMBER(PUT_BYTES, put, bytes);
MEMBER(PUT_PADDING, put, padding);
MEMBER(PUT_TSC, put, tsc);
MEMBER(PUT_CPU, put, cpu);
MEMBER(PUT_STATE_CPU, put, state_cpu);
MEMBER(PUT_HELD, put, held);

MEMBER(USED_ENTRY, trampolines, entry);
MEMBER(USED_EXIT, trampolines, exit);
MEMBER(USED_TAIL, trampolines, tail);
MEMBER(USED_ENTRY_ONLY, trampolines, entry_only);

CHECK(CHUNK, SEAM_XRAY_CHUNK_BYTES);
CHECK(PREAMBLE, SEAM_XRAY_PREAMBLE_BYTES);
CHECK(WORD_EXIT, SEAM_XRAY_EXIT << 1);
CHECK(WORD_TAIL, SEAM_XRAY_TAIL_EXIT << 1);
CHECK(WORD_ENTRY_ARGS, SEAM_XRAY_ENTRY_ARGS << 1);
CHECK(CALL_ARGUMENT, SEAM_XRAY_CALL_ARGUMENT);
CHECK(REWOUND, SEAM_RING_AUX_REWOUND);
