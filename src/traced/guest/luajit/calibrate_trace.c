/* SPDX-License-Identifier: MIT */
/*
 * calibrate_trace.c - compiled traces; see calibrate.h
 *
 * A loop is run until it is compiled: then trace 1 exists, and begins in that
 * function.  Where nothing is compiled, by choice of the build or the system,
 * a trace has no name of its own in samples.
 */
#include "traced/guest/luajit/calibrate.h"

enum {
	SEARCHED = 16384,	/* bytes behind global_State */
	TRACE_BYTES = 136,	/* searched of GCtrace; it has 120 */
	TRACE = 1,
	MAX_SIZE = 1 << 12,	/* of the table, when it has one trace */
};

struct trace_places {
	struct seam_luajit_places table, proto, number, pc;
};

/* The loop's prototype, its bytecode, and the number, in GCtrace. */
static void look_at_trace(struct seam_luajit_calibration *c, uint64_t trace,
			  uint64_t proto, struct trace_places *places)
{
	uint64_t code = proto + c->layout->at.pt_bytes;
	uint64_t code_end = code + 4 * (uint64_t)
		seam_luajit_half(c, proto + c->layout->at.pt_sizebc);

	for (size_t o = 16; o < TRACE_BYTES; o += 8) {
		uint64_t word = seam_luajit_word(c, trace + o);

		seam_luajit_place(&places->proto, word == proto, o);
		seam_luajit_place(&places->pc, word > code && word < code_end,
				  o);
	}
	for (size_t o = places->pc.at + 8u; o < TRACE_BYTES; o += 2) {
		uint32_t half = seam_luajit_half(c, trace + (o & ~3u));

		seam_luajit_place(&places->number,
				  (uint16_t)(half >> 8 * (o & 2)) == TRACE, o);
	}
}

/* The table of traces, then two numbers, the second its size. */
static void look_for_table(struct seam_luajit_calibration *c, uint64_t proto,
			   struct trace_places *places)
{
	for (size_t o = 64; o < SEARCHED; o += 8) {
		uint64_t table = seam_luajit_word(c, c->g + o);
		uint32_t size = seam_luajit_half(c, c->g + o + 12);
		uint64_t trace = table && !(table & 7) && size > TRACE &&
				 size <= MAX_SIZE ?
				 seam_luajit_word(c, table + 8 * TRACE) : 0;
		struct trace_places inside = { .table.n = 0 };

		if (!seam_luajit_is(&c->memory, trace, SEAM_LUAJIT_TRACE))
			continue;
		look_at_trace(c, trace, proto, &inside);
		if (inside.proto.n != 1 || inside.pc.n != 1 ||
		    !inside.number.n)
			continue;
		inside.table = places->table;
		*places = inside;
		seam_luajit_place(&places->table, true, o);
	}
}

void seam_luajit_calibrate_trace(struct seam_luajit_calibration *c)
{
	static const char loop[] =
		"local t = {}\n"
		"return function()\n"
		" for i = 1, 300 do t[i] = i end\n"
		"end";
	struct seam_luajit_offsets *at = &c->layout->at;
	struct trace_places places = { .table.n = 0 };
	uint64_t function;

	if (!seam_lua_run(c->api, c->lua, loop, "=seam", 1))
		return;
	function = (uint64_t)(uintptr_t)c->api->topointer(c->lua, -1);
	c->api->pushvalue(c->lua, -1);
	if (c->api->pcall(c->lua, 0, 0, 0) != SEAM_LUA_OK)
		return;
	look_for_table(c, seam_luajit_word(c, function + at->f_pc) -
			  at->pt_bytes, &places);
	if (places.table.n != 1)
		return;
	at->g_trace = places.table.at;
	at->g_sizetrace = (uint16_t)(places.table.at + 12);
	at->t_startpt = places.proto.at;
	at->t_startpc = places.pc.at;
	at->t_number = places.number.at;
}
