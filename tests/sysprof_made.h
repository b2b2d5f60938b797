/* SPDX-License-Identifier: MIT */
/*
 * sysprof_made.h - sysprof streams for tests
 *
 *	struct seam_sysprof_buffer b = made_begin();
 *	made_cfunc(&b, 0x1000, "lua_pcall");
 *	made_profile(&b);
 *	made_sample(&b, SEAM_VMSTATE_LFUNC, "L10:1 C2000", "3000 1008");
 *	made_end(&b);
 *
 * Frames are leaf first, as in a stream: L prototype:line, C function, F ffid,
 * and return addresses of the host; all but lines and ffids hexadecimal.
 */
#ifndef SEAM_TESTS_SYSPROF_MADE_H
#define SEAM_TESTS_SYSPROF_MADE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "wire/sysprof/sysprof.h"

/* 0 or -ENOMEM, which tests without memory take. */
static inline int made_put(struct seam_sysprof_buffer *b,
			   struct seam_sysprof_item item)
{
	return seam_sysprof_write(b, &item);
}

static inline struct seam_bytes made_text(const char *text)
{
	return (struct seam_bytes) { (const uint8_t *)text, strlen(text) };
}

static inline struct seam_sysprof_buffer made_begin(void)
{
	struct seam_sysprof_buffer b = { 0 };

	made_put(&b, (struct seam_sysprof_item) {
		.kind = SEAM_SYSPROF_SYMTAB });
	return b;
}

static inline void made_profile(struct seam_sysprof_buffer *b)
{
	made_put(b, (struct seam_sysprof_item) {
		.kind = SEAM_SYSPROF_SYMTAB_END });
	made_put(b, (struct seam_sysprof_item) {
		.kind = SEAM_SYSPROF_PROFILE });
}

static inline void made_end(struct seam_sysprof_buffer *b)
{
	made_put(b, (struct seam_sysprof_item) { .kind = SEAM_SYSPROF_END });
}

static inline void made_cfunc(struct seam_sysprof_buffer *b, uint64_t addr,
			      const char *name, bool is_event)
{
	made_put(b, (struct seam_sysprof_item) {
		.kind = SEAM_SYSPROF_SYMBOL_CFUNC, .is_event = is_event,
		.cfunc = { addr, made_text(name) } });
}

static inline void made_lfunc(struct seam_sysprof_buffer *b, uint64_t addr,
			      const char *chunk, uint64_t line, bool is_event)
{
	made_put(b, (struct seam_sysprof_item) {
		.kind = SEAM_SYSPROF_SYMBOL_LFUNC, .is_event = is_event,
		.lfunc = { addr, made_text(chunk), line } });
}

static inline void made_trace(struct seam_sysprof_buffer *b, uint64_t traceno,
			      uint64_t addr, uint64_t line, bool is_event)
{
	made_put(b, (struct seam_sysprof_item) {
		.kind = SEAM_SYSPROF_SYMBOL_TRACE, .is_event = is_event,
		.trace = { traceno, addr, line } });
}

static inline void made_trace_sample(struct seam_sysprof_buffer *b,
				     uint64_t traceno, uint64_t addr,
				     uint64_t line)
{
	made_put(b, (struct seam_sysprof_item) {
		.kind = SEAM_SYSPROF_SAMPLE, .vmstate = SEAM_VMSTATE_TRACE,
		.trace = { traceno, addr, line } });
}

static inline void made_sample(struct seam_sysprof_buffer *b,
			       enum seam_vmstate state, const char *lua,
			       const char *host)
{
	struct seam_sysprof_frame frames[64];
	uint64_t addrs[64];
	struct seam_sysprof_item item = {
		.kind = SEAM_SYSPROF_SAMPLE, .vmstate = state, .lua = frames,
		.host = addrs,
	};
	char *end;

	for (; *lua; lua = end + (*end == ' ')) {
		struct seam_sysprof_frame *f = &frames[item.n_lua++];

		f->kind = *lua == 'L' ? SEAM_SYSPROF_LFUNC :
			  *lua == 'C' ? SEAM_SYSPROF_CFUNC :
			  SEAM_SYSPROF_FFUNC;
		f->value = strtoull(lua + 1, &end, *lua == 'F' ? 10 : 16);
		f->line = *end == ':' ? strtoull(end + 1, &end, 10) : 0;
	}
	for (; *host; host = end + (*end == ' '))
		addrs[item.n_host++] = strtoull(host, &end, 16);
	made_put(b, item);
}

/* The stream as a file in heap memory, which its closing frees. */
static inline struct seam_file made_file(struct seam_sysprof_buffer *b)
{
	struct seam_file file = { .bytes = { b->items, b->n } };

	*b = (struct seam_sysprof_buffer) { 0 };
	return file;
}

#endif /* SEAM_TESTS_SYSPROF_MADE_H */
