/* SPDX-License-Identifier: MIT */
/*
 * elf_notes.h - the notes of an ELF file that identify it
 *
 * For the recorder, and for code in traced programs: it allocates nothing.
 * Source: System V gABI 4.1, "Note Section".
 */
#pragma once

#include "base/base.h"

/*
 * The GNU build id in @notes, the bytes of a note section or segment.  Returns
 * its size, 0 for none.
 */
size_t seam_build_id_in_notes(struct seam_bytes notes, uint8_t id[20]);

/*
 * The build id of the Go tools in @notes, a text; empty: there is none.
 * Source: Go, cmd/internal/buildid: ELFNoteName "Go\0\0", type 4.
 */
struct seam_bytes seam_go_id_in_notes(struct seam_bytes notes);
