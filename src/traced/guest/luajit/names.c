/* SPDX-License-Identifier: MIT */
/*
 * names.c - which function a frame is, its name, and its line; luajit.h
 *
 * A Lua function has no name; what its caller called has one: a global, a
 * field, an upvalue or a local variable.  It is in the instruction before the
 * call that loads the function, as the VM's own tracebacks have it.
 */
#include "traced/guest/luajit/luajit.h"

enum {
	MAX_BACK = 64,		/* instructions before a call */
	MAX_VARIABLES = 4096,	/* bytes of a prototype's names */
	NAMES_END = 0, NAMES_FIRST = 7, /* of varinfo: below are no texts */
};

/* A function whose call is looked at. */
struct caller {
	const struct seam_luajit *lj;
	struct seam_guest_memory *memory;
	uint64_t proto, code;
};

static bool read_word(const struct caller *c, uint16_t offset, uint64_t *word)
{
	return seam_guest_u64(c->memory, c->proto + offset, word);
}

/* --- texts --- */

/*
 * Bytes at @addr up to a NUL, or @n of them, at most @max.  *@is_cut: there are
 * more.
 */
static uint32_t copy_text(struct seam_guest_memory *memory, uint64_t addr,
			  uint32_t n, char *to, uint32_t max, bool *is_cut)
{
	uint8_t next = 0;
	uint32_t i = 0;

	while (i < n && i < max &&
	       seam_guest_u8(memory, addr + i, (uint8_t *)&to[i]) && to[i])
		i++;
	*is_cut = i == max && n > max &&
		  seam_guest_u8(memory, addr + i, &next) && next;
	return i;
}

static void set_name(struct seam_guest_memory *memory, uint64_t addr,
		     uint32_t n, struct seam_guest_symbol *text)
{
	bool is_cut;

	text->n_name = (uint8_t)copy_text(memory, addr, n, text->name,
					  sizeof(text->name), &is_cut);
	text->flags |= is_cut ? SEAM_GUEST_NAME_CUT : 0;
}

/* Size and text of the string object at @string; false: it is none. */
static bool read_string(const struct seam_luajit *lj,
			struct seam_guest_memory *memory, uint64_t string,
			uint64_t *addr, uint32_t *n)
{
	*addr = string + lj->at.s_bytes;
	return seam_luajit_is(memory, string, SEAM_LUAJIT_STRING) &&
	       seam_guest_u32(memory, string + lj->at.s_len, n);
}

/* The string constant @index. */
static void set_constant(const struct caller *c, uint32_t index,
			 struct seam_guest_symbol *text)
{
	uint64_t k, string, addr;
	uint32_t n;

	if (read_word(c, c->lj->at.pt_k, &k) &&
	    seam_guest_u64(c->memory, k - 8 * ((uint64_t)index + 1),
			   &string) &&
	    read_string(c->lj, c->memory, string, &addr, &n))
		set_name(c->memory, addr, n, text);
}

/* --- variables --- */

/* Skip the text at *@addr with its NUL; false: it does not end. */
static bool skip_text(const struct caller *c, uint64_t *addr, uint64_t end)
{
	uint8_t byte;

	do {
		if (*addr >= end || !seam_guest_u8(c->memory, (*addr)++, &byte))
			return false;
	} while (byte);
	return true;
}

static bool read_number(const struct caller *c, uint64_t *addr, uint32_t *value)
{
	uint8_t byte = 0x80;

	*value = 0;
	for (unsigned int shift = 0; shift < 32 && byte & 0x80; shift += 7) {
		if (!seam_guest_u8(c->memory, (*addr)++, &byte))
			return false;
		*value |= (uint32_t)(byte & 0x7f) << shift;
	}
	return true;
}

static void set_upvalue(const struct caller *c, uint32_t index,
			struct seam_guest_symbol *text)
{
	uint64_t addr, end;

	if (!read_word(c, c->lj->at.pt_uvinfo, &addr) || !addr)
		return;
	end = addr + MAX_VARIABLES;
	while (index-- > 0)
		if (!skip_text(c, &addr, end))
			return;
	set_name(c->memory, addr, UINT32_MAX, text);
}

/*
 * The local variable that is in @slot at instruction @position: a list of
 * names, each with the distance of its first instruction from that of the one
 * before, and the number of those in which it lives.
 */
static bool set_local(const struct caller *c, uint32_t position, uint32_t slot,
		      struct seam_guest_symbol *text)
{
	uint64_t addr, end;
	uint32_t start = 0, distance, n;

	if (!read_word(c, c->lj->at.pt_varinfo, &addr) || !addr)
		return false;
	end = addr + MAX_VARIABLES;
	while (addr < end) {
		uint64_t name = addr;
		uint8_t first;

		if (!seam_guest_u8(c->memory, addr, &first) ||
		    first == NAMES_END)
			return false;
		if (first < NAMES_FIRST)
			addr++;
		else if (!skip_text(c, &addr, end))
			return false;
		if (!read_number(c, &addr, &distance) ||
		    !read_number(c, &addr, &n))
			return false;
		start += distance;
		if (start > position)
			return false;
		if (position >= start + n || slot-- > 0)
			continue;
		if (first >= NAMES_FIRST)
			set_name(c->memory, name, UINT32_MAX, text);
		return first >= NAMES_FIRST;
	}
	return false;
}

/* What the instructions before @position have loaded into @slot. */
static void set_loaded(const struct caller *c, uint32_t position,
		       uint32_t slot, struct seam_guest_symbol *text)
{
	const struct seam_luajit_opcodes *op = &c->lj->op;
	uint32_t instruction;

	for (int i = 0; i < MAX_BACK && position-- > 1; i++) {
		uint8_t number;

		if (!seam_guest_u32(c->memory, c->code + 4 *
				    (uint64_t)position, &instruction))
			return;
		number = (uint8_t)instruction;
		if ((instruction >> 8 & 0xff) != slot)
			continue;
		if (number == op->gget)
			set_constant(c, instruction >> 16, text);
		else if (number == op->tgets)
			set_constant(c, instruction >> 16 & 0xff, text);
		else if (number == op->uget)
			set_upvalue(c, instruction >> 16, text);
		else if (number == op->mov)
			set_local(c, position, instruction >> 16, text);
		return;
	}
}

/* The name by which @frame calls, at its current instruction. */
static void set_called_name(const struct seam_luajit *lj,
			    struct seam_guest_walk *walk,
			    const struct seam_luajit_frame *frame,
			    struct seam_guest_symbol *text)
{
	struct caller c = {
		.lj = lj, .memory = &walk->memory, .proto = frame->object,
		.code = frame->object + lj->at.pt_bytes };
	uint32_t instruction;

	if (!seam_guest_u32(c.memory, frame->pc - 4, &instruction) ||
	    ((uint8_t)instruction != lj->op.call &&
	     (uint8_t)instruction != lj->op.call - 1))
		return;
	set_loaded(&c, (uint32_t)((frame->pc - 4 - c.code) / 4),
		   instruction >> 8 & 0xff, text);
}

/* --- lines --- */

/* The line of the instruction before @pc; 0: not known. */
static uint32_t line_of(const struct seam_luajit *lj,
			struct seam_guest_memory *memory, uint64_t proto,
			uint64_t pc)
{
	const struct seam_luajit_offsets *at = &lj->at;
	uint64_t position = (pc - proto - at->pt_bytes) / 4, lines;
	uint32_t first, n_lines, line = 0;
	unsigned int size;

	/* after the first, the function's header: it has no line */
	if (!seam_guest_u32(memory, proto + at->pt_firstline, &first) ||
	    !seam_guest_u32(memory, proto + at->pt_numline, &n_lines) ||
	    !seam_guest_u64(memory, proto + at->pt_lineinfo, &lines) ||
	    !lines)
		return 0;
	if (position < 2)
		return first;
	size = n_lines < 256 ? 1 : n_lines < 65536 ? 2 : 4;
	if (!seam_guest_load(memory, lines + (position - 2) * size, &line,
			     size))
		return 0;
	return first + line;
}

/* --- ids --- */

/* Storage for the texts of a function that gets an id, empty. */
static struct seam_guest_symbol *new_text(struct seam_guest_walk *walk)
{
	struct seam_guest_symbol *text = &walk->sample->text;

	memset(text, 0, offsetof(struct seam_guest_symbol, chunk));
	return text;
}

/* A prototype: what is at its address may be another one later. */
static bool set_proto_key(const struct seam_luajit *lj,
			  struct seam_guest_memory *memory, uint64_t proto,
			  struct seam_guest_key *key, uint32_t *first_line)
{
	const struct seam_luajit_offsets *at = &lj->at;
	uint64_t chunk, text;
	uint32_t size;

	if (!seam_guest_u64(memory, proto + at->pt_chunkname, &chunk) ||
	    !seam_guest_u32(memory, proto + at->pt_firstline, first_line) ||
	    !seam_guest_u32(memory, proto + at->pt_sizebc, &size) ||
	    !seam_guest_u64(memory, chunk + (at->s_len & ~7u), &text))
		return false;
	*key = (struct seam_guest_key) {
		.address = proto, .check = { chunk,
			text ^ ((uint64_t)*first_line << 32 | size) },
		.kind = SEAM_GUEST_FRAME_GUEST, .adapter = SEAM_GUEST_LUAJIT };
	return true;
}

static void set_proto_text(const struct seam_luajit *lj,
			   struct seam_guest_memory *memory, uint64_t proto,
			   uint64_t chunk, struct seam_guest_symbol *text)
{
	uint32_t n_lines, n;
	uint64_t addr;
	bool is_cut;

	if (!seam_guest_u32(memory, proto + lj->at.pt_firstline, &text->line) ||
	    !seam_guest_u32(memory, proto + lj->at.pt_numline, &n_lines))
		return;
	text->last_line = text->line + n_lines;
	if (!read_string(lj, memory, chunk, &addr, &n))
		return;
	text->n_chunk = (uint16_t)copy_text(memory, addr, n, text->chunk,
					    sizeof(text->chunk), &is_cut);
	text->flags |= is_cut ? SEAM_GUEST_CHUNK_CUT : 0;
}

static uint32_t proto_id(const struct seam_luajit *lj,
			 struct seam_guest_walk *walk, uint64_t proto,
			 const struct seam_luajit_frame *caller,
			 uint32_t *first_line)
{
	struct seam_guest_symbol *text;
	struct seam_guest_key key;
	bool is_nameless;
	uint32_t id;

	if (!set_proto_key(lj, &walk->memory, proto, &key, first_line))
		return 0;
	id = seam_guest_find(walk, &key, &is_nameless);
	/* the caller is not always known, or no Lua function */
	if (caller && (caller->kind != SEAM_GUEST_FRAME_GUEST || !caller->pc))
		caller = NULL;
	if (id && (!is_nameless || !caller))
		return id;
	text = new_text(walk);
	set_proto_text(lj, &walk->memory, proto, key.check[0], text);
	if (caller)
		set_called_name(lj, walk, caller, text);
	return seam_guest_name(walk, &key, id, text);
}

/* A function of C, or one that is built in. */
static uint32_t number_id(const struct seam_luajit *lj,
			  struct seam_guest_walk *walk,
			  const struct seam_luajit_frame *frame)
{
	struct seam_guest_symbol *text;
	const struct seam_guest_key key = {
		.address = frame->object, .kind = frame->kind,
		.adapter = SEAM_GUEST_LUAJIT };
	const char *name = "";
	bool is_nameless;
	uint32_t id = seam_guest_find(walk, &key, &is_nameless);

	if (id)
		return id;
	text = new_text(walk);
	if (frame->kind == SEAM_GUEST_FRAME_BUILTIN)
		name = lj->builtins[frame->object % SEAM_LUAJIT_MAX_BUILTINS];
	text->n_name = (uint8_t)strnlen(name, SEAM_LUAJIT_BUILTIN_NAME);
	memcpy(text->name, name, text->n_name);
	return seam_guest_name(walk, &key, 0, text);
}

uint32_t seam_luajit_id(const struct seam_luajit *lj,
			struct seam_guest_walk *walk,
			const struct seam_luajit_frame *frame,
			const struct seam_luajit_frame *caller,
			struct seam_guest_origin *origin, uint32_t *line)
{
	origin->address = frame->object;
	*line = 0;
	if (frame->kind != SEAM_GUEST_FRAME_GUEST)
		return number_id(lj, walk, frame);
	/* only where bytecode called: the link of the frame has its caller */
	if (caller && caller->segment != frame->segment)
		caller = NULL;
	if (frame->pc)
		*line = line_of(lj, &walk->memory, frame->object, frame->pc);
	return proto_id(lj, walk, frame->object, caller,
			&origin->first_line);
}

/* GCtrace of trace @number of the VM at @g, or 0. */
static uint64_t find_trace(const struct seam_luajit *lj,
			   struct seam_guest_memory *memory, uint64_t g,
			   uint32_t number)
{
	const struct seam_luajit_offsets *at = &lj->at;
	uint64_t table, trace;
	uint32_t n;
	uint16_t own_number;

	return at->g_trace && number &&
	       seam_guest_u32(memory, g + at->g_sizetrace, &n) &&
	       number < n && n <= SEAM_LUAJIT_MAX_TRACES &&
	       seam_guest_u64(memory, g + at->g_trace, &table) &&
	       seam_guest_u64(memory, table + 8 * (uint64_t)number, &trace) &&
	       seam_luajit_is(memory, trace, SEAM_LUAJIT_TRACE) &&
	       seam_guest_load(memory, trace + at->t_number, &own_number,
			       sizeof(own_number)) &&
	       own_number == number ? trace : 0;
}

uint32_t seam_luajit_trace(const struct seam_luajit *lj,
			   struct seam_guest_walk *walk, uint64_t g,
			   uint32_t number, struct seam_guest_origin *origin,
			   uint64_t *start_pc)
{
	struct seam_guest_symbol *text;
	struct seam_guest_key key = {
		.address = number, .kind = SEAM_GUEST_FRAME_TRACE,
		.adapter = SEAM_GUEST_LUAJIT };
	uint64_t trace = find_trace(lj, &walk->memory, g, number), proto = 0;
	uint32_t start, line, first_line, id;
	bool is_nameless;

	if (!trace || !seam_guest_u64(&walk->memory, trace + lj->at.t_startpt,
				      &proto) ||
	    !seam_luajit_is(&walk->memory, proto, SEAM_LUAJIT_PROTO) ||
	    !seam_guest_u64(&walk->memory, trace + lj->at.t_startpc, start_pc))
		return 0;
	start = proto_id(lj, walk, proto, NULL, &first_line);
	/* that instruction itself, not the one before */
	*start_pc += 4;
	line = start && seam_luajit_has_pc(lj, &walk->memory, proto,
					   *start_pc) ?
	       line_of(lj, &walk->memory, proto, *start_pc) : 0;
	origin->first_line = line;
	key.check[0] = *start_pc;
	key.check[1] = (uint64_t)start << 32 | (uint32_t)(g >> 4);
	id = seam_guest_find(walk, &key, &is_nameless);
	if (id)
		return id;
	text = new_text(walk);
	text->start = start;
	text->line = line;
	return seam_guest_name(walk, &key, 0, text);
}
