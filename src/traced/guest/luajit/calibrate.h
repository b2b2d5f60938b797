/* SPDX-License-Identifier: MIT */
/*
 * calibrate.h - find a build's layout by experiments on a state of its own
 *
 * Each experiment changes one thing through the public interface and looks
 * which words of the state change; a place must be the only one that fits.
 * calibrate.c has the state's, calibrate_code.c functions and prototypes,
 * calibrate_frame.c the C frame and the interpreter's code,
 * calibrate_trace.c traces.
 *
 * Not in a handler; one thread at a time.
 */
#ifndef SEAM_LUAJIT_CALIBRATE_H
#define SEAM_LUAJIT_CALIBRATE_H

#include "traced/guest/luajit/lua_api.h"
#include "traced/guest/luajit/luajit_layout.h"

struct seam_luajit_calibration {
	const struct seam_lua_api *api;
	struct seam_lua *lua;		/* a state with libraries */
	uint64_t l, g;			/* its lua_State and global_State */
	struct seam_luajit *layout;
	struct seam_guest_memory memory;
	char *reason;			/* of the refusal */
	size_t reason_size;
};

/* Everything.  False: refused, .reason says what was not found. */
bool seam_luajit_calibrate(struct seam_luajit_calibration *c);

/* Its parts, in this order. */
bool seam_luajit_calibrate_frame(struct seam_luajit_calibration *c);
bool seam_luajit_calibrate_code(struct seam_luajit_calibration *c);
void seam_luajit_calibrate_trace(struct seam_luajit_calibration *c);

/* Note a refusal; returns false. */
__attribute__((format(printf, 2, 3)))
bool seam_luajit_refuse(struct seam_luajit_calibration *c, const char *format,
			...);

/* Reads that do not fault; 0 where nothing can be read. */
uint64_t seam_luajit_word(struct seam_luajit_calibration *c, uint64_t addr);
uint32_t seam_luajit_half(struct seam_luajit_calibration *c, uint64_t addr);

/* Whether the bytes at @addr are those of @text. */
bool seam_luajit_has_text(struct seam_luajit_calibration *c, uint64_t addr,
			  const char *text);

/*
 * Offsets, in steps of @step, at which a test held: the only one, or 0 and a
 * refusal that names @what.
 */
struct seam_luajit_places {
	uint16_t at;
	unsigned int n;
};

static inline void seam_luajit_place(struct seam_luajit_places *places,
				     bool fits, size_t offset)
{
	if (fits && places->n++ == 0)
		places->at = (uint16_t)offset;
}

bool seam_luajit_only(struct seam_luajit_calibration *c,
		      const struct seam_luajit_places *places,
		      const char *what, uint16_t *offset);

#endif /* SEAM_LUAJIT_CALIBRATE_H */
