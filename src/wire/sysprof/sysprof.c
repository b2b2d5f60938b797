/* SPDX-License-Identifier: MIT */
/*
 * sysprof.c - items of a stream: read, written, printed; see sysprof.h
 *
 * Symbols and traces are read by their tables.  Frames, of which there are a
 * hundred million in a gigabyte, have loops of their own.
 */
#include "wire/sysprof/sysprof.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>

#define SPEC "tarantool/luajit, "
#define ULEB(record, member, text)					\
	SEAM_FIELD_ULEB(struct seam_sysprof_##record, member, text)
#define STRING(record, member, text)					\
	SEAM_FIELD_STRING(struct seam_sysprof_##record, member, text)

const struct seam_record seam_sysprof_lfunc_table = SEAM_RECORD(
	"lfunc", SPEC "lj_symtab.h, sym-lua",
	ULEB(lfunc, addr, "address of the prototype (GCproto)"),
	STRING(lfunc, chunk, "name of the chunk, with its @ or =; the source "
	       "text where it has no name"),
	ULEB(lfunc, line, "line of the definition; 0: the chunk itself"));

const struct seam_record seam_sysprof_cfunc_table = SEAM_RECORD(
	"cfunc", SPEC "lj_symtab.h, sym-cfunc",
	ULEB(cfunc, addr, "address of the first instruction; the size is "
	     "not in the stream"),
	STRING(cfunc, name, "symbol, or the path of a file without symbols"));

const struct seam_record seam_sysprof_trace_table = SEAM_RECORD(
	"trace", SPEC "lj_symtab.h, sym-trace",
	ULEB(trace, traceno, "number of the trace"),
	ULEB(trace, addr, "address of the prototype in which it starts"),
	ULEB(trace, line, "line where it starts"));

const struct seam_record seam_sysprof_trace_sample_table = SEAM_RECORD(
	"trace sample", SPEC "lj_sysprof.h, sample-trace",
	ULEB(trace, traceno, "number of the trace"),
	ULEB(trace, addr, "address of the prototype in which it starts"),
	ULEB(trace, line, "line of the definition of that prototype"));

bool seam_sysprof_is(struct seam_bytes bytes)
{
	return bytes.size >= 3 && memcmp(bytes.data, "ljs", 3) == 0;
}

/* -- numbers ------------------------------------------------------------- */

/* As seam_cursor_u8(), inline. */
static inline uint8_t byte(struct seam_cursor *c)
{
	return seam_cursor_left(c) ? c->base[c->pos++] : seam_cursor_u8(c);
}

enum {
	SHORT_ULEB = 8,			/* bytes */
	LONGEST_SHORT_FRAME = 1 + 2 * SHORT_ULEB,
};

/*
 * A ULEB128 of up to 8 bytes is taken from one word: the lowest byte without
 * bit 7 is its last, and groups of 7 bits are moved together in three steps.
 */
#define HIGH_BITS UINT64_C(0x8080808080808080)

/* Bit 7 of each byte that ends a number.  8 bytes can be read at @p. */
static inline uint64_t load_word(const uint8_t *p, uint64_t *ends)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	v = le64toh(v);
	*ends = ~v & HIGH_BITS;
	return v;
}

/* Bytes up to the first of @ends, not 0. */
static inline size_t bytes_to(uint64_t ends)
{
	return ((size_t)__builtin_ctzll(ends) >> 3) + 1;
}

/* The number in the bytes of @v up to the first of @ends. */
static inline uint64_t number_in(uint64_t v, uint64_t ends)
{
	v &= (ends ^ (ends - 1)) & ~HIGH_BITS;
	v = (v & UINT64_C(0x007f007f007f007f)) |
	    (v & UINT64_C(0x7f007f007f007f00)) >> 1;
	v = (v & UINT64_C(0x00003fff00003fff)) |
	    (v & UINT64_C(0x3fff00003fff0000)) >> 2;
	return (v & UINT64_C(0x0fffffff)) |
	       (v & (UINT64_C(0x0fffffff) << 32)) >> 4;
}

/* A number of up to 8 bytes at @p; returns their number, 0 for a longer one. */
static inline size_t short_uleb(const uint8_t *p, uint64_t *value)
{
	uint64_t ends, v = load_word(p, &ends);

	if (!ends)
		return 0;
	*value = number_in(v, ends);
	return bytes_to(ends);
}

static inline uint64_t uleb(struct seam_cursor *c)
{
	uint64_t v;
	size_t n = seam_cursor_left(c) < SHORT_ULEB ? 0 :
		   short_uleb(c->base + c->pos, &v);

	if (!n)
		return seam_wire_uleb(c);
	c->pos += n;
	return v;
}

/* -- errors -------------------------------------------------------------- */

/* The message of a failure of the cursor in @what. */
static int fail_at(const struct seam_cursor *c, const char *what,
		   struct seam_err *err)
{
	if (c->error == -ENODATA)
		return seam_err_set(err, -ENODATA, "the stream is cut off at "
				    "byte %zu, in %s", c->size, what);
	return seam_err_set(err, -EBADMSG, "the number at byte %zu, in %s, "
			    "has more than 64 bits", c->error_pos, what);
}

static int bad_byte(const struct seam_cursor *c, size_t pos, const char *what,
		    struct seam_err *err)
{
	return seam_err_set(err, -EBADMSG, "%s at byte %zu (0x%02x)", what,
			    pos, c->base[pos]);
}

/* -- prologues ----------------------------------------------------------- */

/* The prologue of the @name, which begins with @kind. */
static int read_prologue(struct seam_sysprof_reader *r,
			 struct seam_sysprof_item *item, const char *name,
			 const char *kind, unsigned int newest,
			 struct seam_err *err)
{
	const uint8_t *p = seam_cursor_bytes(&r->cursor,
					     SEAM_SYSPROF_PROLOGUE_BYTES);

	if (!p)
		return seam_err_set(err, -ENODATA, "the stream is cut off at "
				    "byte %zu, in the prologue of the %s",
				    r->cursor.size, name);
	item->version = p[3];
	if (item->offset && memcmp(p, "ljm", 3) == 0)
		return seam_err_set(err, -ENOTSUP, "a memory profile (memprof, "
			"ljm version %u at byte %zu), which Seam does not "
			"read: luajit -tm does", item->version, item->offset);
	if (memcmp(p, kind, 3) != 0)
		return seam_err_set(err, -EBADMSG, "no %s at byte %zu", name,
				    item->offset);
	if (item->version < 1 || item->version > newest)
		return seam_err_set(err, -ENOTSUP, "%s version %u at byte %zu: "
				    "versions 1 to %u are known", name,
				    item->version, item->offset + 3, newest);
	return 0;
}

static int begin_symtab(struct seam_sysprof_reader *r,
			struct seam_sysprof_item *item, struct seam_err *err)
{
	int rc = read_prologue(r, item, "symbol table", "ljs",
			       SEAM_SYSPROF_SYMTAB_VERSION, err);

	item->kind = SEAM_SYSPROF_SYMTAB;
	r->symtab_version = rc ? 0 : item->version;
	return rc ? rc : 1;
}

static int begin_profile(struct seam_sysprof_reader *r,
			 struct seam_sysprof_item *item, struct seam_err *err)
{
	int rc = read_prologue(r, item, "profile", "ljp",
			       SEAM_SYSPROF_VERSION, err);

	item->kind = SEAM_SYSPROF_PROFILE;
	r->version = rc ? 0 : item->version;
	return rc ? rc : 1;
}

/* -- symbols ------------------------------------------------------------- */

static int read_symbol(struct seam_sysprof_reader *r,
		       struct seam_sysprof_item *item,
		       enum seam_sysprof_kind kind, struct seam_err *err)
{
	struct seam_cursor *c = &r->cursor;
	const char *what = "a trace";

	item->kind = kind;
	if (kind == SEAM_SYSPROF_SYMBOL_LFUNC) {
		what = "a Lua symbol";
		seam_wire_read(c, &seam_sysprof_lfunc_table, &item->lfunc);
	} else if (kind == SEAM_SYSPROF_SYMBOL_CFUNC) {
		what = "a C symbol";
		seam_wire_read(c, &seam_sysprof_cfunc_table, &item->cfunc);
	} else if (!r->has_trace_addr || item->is_event) {
		seam_wire_read(c, &seam_sysprof_trace_table, &item->trace);
	} else {
		item->trace.traceno = uleb(c);
		uleb(c);	/* where its code is */
		item->trace.addr = uleb(c);
		item->trace.line = uleb(c);
	}
	return c->error ? fail_at(c, what, err) : 1;
}

static int next_of_symtab(struct seam_sysprof_reader *r,
			  struct seam_sysprof_item *item, struct seam_err *err)
{
	/* by version and type; 0: it has none */
	static const uint8_t kinds[SEAM_SYSPROF_SYMTAB_VERSION + 1][4] = {
		[1] = { SEAM_SYSPROF_SYMBOL_LFUNC },
		[2] = { SEAM_SYSPROF_SYMBOL_LFUNC, SEAM_SYSPROF_SYMBOL_TRACE },
		[3] = { SEAM_SYSPROF_SYMBOL_LFUNC, SEAM_SYSPROF_SYMBOL_CFUNC,
			SEAM_SYSPROF_SYMBOL_TRACE },
	};
	struct seam_cursor *c = &r->cursor;
	uint8_t header = byte(c), kind;

	if (c->error)
		return fail_at(c, "the symbol table", err);
	if (header & SEAM_SYSPROF_FINAL) {
		item->kind = SEAM_SYSPROF_SYMTAB_END;
		r->is_symtab_read = true;
		return 1;
	}
	kind = kinds[r->symtab_version][header & 3];
	if (!kind)
		return bad_byte(c, item->offset, "unknown kind of symbol", err);
	return read_symbol(r, item, (enum seam_sysprof_kind)kind, err);
}

/* -- samples ------------------------------------------------------------- */

static int read_lua(struct seam_sysprof_reader *r, struct seam_err *err)
{
	struct seam_cursor *c = &r->cursor;

	for (r->lua.n = 0; !c->error;) {
		struct seam_sysprof_frame *frame;
		uint8_t kind = byte(c);

		if (kind == SEAM_SYSPROF_FRAMES_END || c->error)
			break;
		if (kind < SEAM_SYSPROF_LFUNC || kind > SEAM_SYSPROF_FFUNC)
			return bad_byte(c, c->pos - 1,
					"unknown kind of Lua frame", err);
		if (r->lua.n >= SEAM_SYSPROF_MAX_FRAMES)
			return bad_byte(c, c->pos - 1, "more than 1,048,576 "
					"frames in one stack", err);
		frame = SEAM_ARRAY_PUSH(&r->lua);
		if (!frame)
			return seam_err_no_memory(err);
		frame->kind = (enum seam_sysprof_frame_kind)kind;
		frame->value = uleb(c);
		frame->line = kind == SEAM_SYSPROF_LFUNC ? uleb(c) : 0;
	}
	return c->error ? fail_at(c, "a Lua stack", err) : 0;
}

static int read_host(struct seam_sysprof_reader *r,
		     struct seam_sysprof_item *item, struct seam_err *err)
{
	struct seam_cursor *c = &r->cursor;

	item->host_offset = item->callers_offset = c->pos;
	for (r->host.n = 0; !c->error;) {
		size_t pos = c->pos;
		uint64_t addr = uleb(c);

		if (!addr)
			break;
		if (r->host.n >= SEAM_SYSPROF_MAX_FRAMES)
			return bad_byte(c, pos, "more than 1,048,576 frames "
					"in one stack", err);
		if (!SEAM_ARRAY_ADD(&r->host, addr))
			return seam_err_no_memory(err);
		if (r->host.n == 1)
			item->callers_offset = c->pos;
	}
	return c->error ? fail_at(c, "a host stack", err) : 0;
}

/* -- samples passed over ------------------------------------------------- */

/*
 * The bytes of the frame at @p, of which all numbers are short; address and
 * line are mostly in one word.  0: another frame, or none.
 */
static inline size_t skim_frame(const uint8_t *p)
{
	uint64_t ends, rest;
	size_t n;

	load_word(p + 1, &ends);
	if (*p < SEAM_SYSPROF_LFUNC || *p > SEAM_SYSPROF_FFUNC || !ends)
		return 0;
	if (*p != SEAM_SYSPROF_LFUNC)
		return 1 + bytes_to(ends);
	rest = ends & (ends - 1);
	if (rest)
		return 1 + bytes_to(rest);
	n = bytes_to(ends);
	load_word(p + 1 + n, &ends);
	return ends ? 1 + n + bytes_to(ends) : 0;
}

/* The end of the Lua stack at @p, or NULL where frames must be read for it. */
static const uint8_t *skim_lua(const uint8_t *p, const uint8_t *stop)
{
	while (stop - p >= LONGEST_SHORT_FRAME &&
	       *p != SEAM_SYSPROF_FRAMES_END) {
		size_t n = skim_frame(p);

		if (!n)
			return NULL;
		p += n;
	}
	return stop - p >= LONGEST_SHORT_FRAME ? p + 1 : NULL;
}

/* Pass over the frames.  False: they must be read. */
static bool skim_sample(struct seam_sysprof_reader *r,
			struct seam_sysprof_item *item, bool has_lua)
{
	struct seam_cursor *c = &r->cursor;
	const uint8_t *p = c->base + c->pos, *stop = c->base + c->size;
	const uint8_t *zero;
	size_t n;

	if (has_lua)
		p = skim_lua(p, stop);
	if (!p || stop - p < SHORT_ULEB)
		return false;
	item->host_offset = item->callers_offset = (size_t)(p - c->base);
	r->host.n = 0;
	if (*p) {
		if (!SEAM_ARRAY_RESERVE(&r->host, 1))
			return false;
		n = short_uleb(p, &r->host.items[0]);
		p += n;
		if (!n || !r->host.items[0])
			return false;
		r->host.n = 1;
		item->callers_offset += n;
	}
	/* up to the first 0, unless it ends a number longer than needed */
	zero = memchr(p, 0, (size_t)(stop - p));
	if (!zero || (zero != p && zero[-1] >= 0x80))
		return false;
	c->pos = (size_t)(zero + 1 - c->base);
	item->host = r->host.items;
	item->n_host = r->host.n;
	item->is_skimmed = true;
	return true;
}

static int read_sample(struct seam_sysprof_reader *r,
		       struct seam_sysprof_item *item, bool may_skim,
		       struct seam_err *err)
{
	bool has_lua = seam_vmstate_has_stack(item->vmstate);
	int rc = 0;

	item->kind = SEAM_SYSPROF_SAMPLE;
	item->n_lua = item->n_host = 0;
	item->is_skimmed = false;
	if (item->vmstate == SEAM_VMSTATE_TRACE) {
		seam_wire_read(&r->cursor, &seam_sysprof_trace_sample_table,
			       &item->trace);
		return r->cursor.error ?
		       fail_at(&r->cursor, "a sample of a trace", err) : 1;
	}
	if (may_skim && skim_sample(r, item, has_lua))
		return 1;
	if (has_lua)
		rc = read_lua(r, err);
	if (!rc)
		rc = read_host(r, item, err);
	if (rc)
		return rc;
	item->lua = r->lua.items;
	item->n_lua = has_lua ? r->lua.n : 0;
	item->host = r->host.items;
	item->n_host = r->host.n;
	return 1;
}

static int next_of_profile(struct seam_sysprof_reader *r,
			   struct seam_sysprof_item *item, struct seam_err *err)
{
	struct seam_cursor *c = &r->cursor;
	uint8_t header = byte(c);
	bool is_old = r->version == 1;

	if (c->error)
		return seam_err_set(err, -ENODATA, "the stream is cut off at "
				    "byte %zu, before its epilogue", c->size);
	if (header < SEAM_N_VMSTATES) {
		item->vmstate = (enum seam_vmstate)header;
		return read_sample(r, item, r->skims, err);
	}
	item->is_event = true;
	if (header == SEAM_SYSPROF_EVENT_LFUNC)
		return read_symbol(r, item, is_old ?
				   SEAM_SYSPROF_SYMBOL_CFUNC :
				   SEAM_SYSPROF_SYMBOL_LFUNC, err);
	if (header == SEAM_SYSPROF_EVENT_CFUNC && !is_old)
		return read_symbol(r, item, SEAM_SYSPROF_SYMBOL_CFUNC, err);
	if (header == SEAM_SYSPROF_EVENT_TRACE && !is_old)
		return read_symbol(r, item, SEAM_SYSPROF_SYMBOL_TRACE, err);
	if (header != SEAM_SYSPROF_EPILOGUE)
		return bad_byte(c, item->offset, "neither a VM state nor a "
				"symbol nor the epilogue", err);
	item->is_event = false;
	item->kind = SEAM_SYSPROF_END;
	r->is_done = true;
	return 1;
}

/* -- the stream ---------------------------------------------------------- */

/* How far a table of version 2 is read, with or without addresses. */
static size_t try_symtab(struct seam_bytes bytes, bool has_trace_addr)
{
	struct seam_sysprof_item item;
	struct seam_sysprof_reader r = {
		.cursor = seam_cursor_over(bytes, SEAM_LITTLE),
		.has_trace_addr = has_trace_addr,
	};
	while (!r.version && seam_sysprof_next(&r, &item, NULL) > 0)
		;
	return r.version ? SIZE_MAX : r.cursor.pos;
}

/*
 * Traces of version 2 had an address of their own at first, and lost it later
 * without a new version (Nov 2021, Apr 2022): the reading that leads to the
 * profile is the right one.
 */
void seam_sysprof_begin(struct seam_sysprof_reader *reader,
			struct seam_bytes bytes)
{
	*reader = (struct seam_sysprof_reader) {
		.cursor = seam_cursor_over(bytes, SEAM_LITTLE),
	};
	if (seam_sysprof_is(bytes) && bytes.size > 3 && bytes.data[3] == 2)
		reader->has_trace_addr = try_symtab(bytes, true) >
					 try_symtab(bytes, false);
}

int seam_sysprof_next(struct seam_sysprof_reader *reader,
		      struct seam_sysprof_item *item, struct seam_err *err)
{
	int rc;

	if (reader->is_done)
		return 0;
	item->offset = reader->cursor.pos;
	item->is_event = false;
	rc = reader->version ? next_of_profile(reader, item, err) :
	     reader->is_symtab_read ? begin_profile(reader, item, err) :
	     reader->symtab_version ? next_of_symtab(reader, item, err) :
	     begin_symtab(reader, item, err);
	reader->is_done |= rc < 0;
	return rc;
}

int seam_sysprof_read_frames(struct seam_sysprof_reader *reader,
			     struct seam_sysprof_item *item,
			     struct seam_err *err)
{
	int rc;

	if (!item->is_skimmed)
		return 1;
	reader->cursor.pos = item->offset + 1;	/* after the VM's state */
	rc = read_sample(reader, item, false, err);
	reader->is_done |= rc < 0;
	return rc;
}

void seam_sysprof_fini(struct seam_sysprof_reader *reader)
{
	free(reader->lua.items);
	free(reader->host.items);
}

/* -- items to bytes ------------------------------------------------------- */

static void put_byte(struct seam_sysprof_buffer *out, unsigned int byte)
{
	out->items[out->n++] = (uint8_t)byte;
}

static void put_uleb(struct seam_sysprof_buffer *out, uint64_t v)
{
	out->n += seam_wire_put_uleb(out->items + out->n, v);
}

static int put_prologue(struct seam_sysprof_buffer *out, const char *kind,
			uint8_t version)
{
	const uint8_t bytes[SEAM_SYSPROF_PROLOGUE_BYTES] = {
		(uint8_t)kind[0], (uint8_t)kind[1], (uint8_t)kind[2], version,
	};

	return SEAM_ARRAY_EXTEND(out, bytes, sizeof(bytes)) ? 0 : -ENOMEM;
}

static int put_record(struct seam_sysprof_buffer *out, unsigned int byte,
		      const struct seam_record *table, const void *record)
{
	size_t size = seam_wire_write(table, record, SEAM_LITTLE, NULL, 0);

	if (!SEAM_ARRAY_RESERVE(out, size + 1))
		return -ENOMEM;
	put_byte(out, byte);
	out->n += seam_wire_write(table, record, SEAM_LITTLE,
				  out->items + out->n, size);
	return 0;
}

static int put_end(struct seam_sysprof_buffer *out, unsigned int byte)
{
	if (!SEAM_ARRAY_RESERVE(out, 1))
		return -ENOMEM;
	put_byte(out, byte);
	return 0;
}

static void put_lua(struct seam_sysprof_buffer *out,
		    const struct seam_sysprof_item *item)
{
	for (size_t i = 0; i < item->n_lua; i++) {
		put_byte(out, item->lua[i].kind);
		put_uleb(out, item->lua[i].value);
		if (item->lua[i].kind == SEAM_SYSPROF_LFUNC)
			put_uleb(out, item->lua[i].line);
	}
	put_byte(out, SEAM_SYSPROF_FRAMES_END);
}

static int put_sample(struct seam_sysprof_buffer *out,
		      const struct seam_sysprof_item *item)
{
	size_t most = (1 + 2 * SEAM_ULEB_BYTES) * item->n_lua +
		      SEAM_ULEB_BYTES * item->n_host + 3;

	if (item->vmstate == SEAM_VMSTATE_TRACE)
		return put_record(out, item->vmstate,
				  &seam_sysprof_trace_sample_table,
				  &item->trace);
	if (!SEAM_ARRAY_RESERVE(out, most))
		return -ENOMEM;
	put_byte(out, item->vmstate);
	if (seam_vmstate_has_stack(item->vmstate))
		put_lua(out, item);
	for (size_t i = 0; i < item->n_host; i++)
		put_uleb(out, item->host[i]);
	put_byte(out, 0);
	return 0;
}

int seam_sysprof_write(struct seam_sysprof_buffer *out,
		       const struct seam_sysprof_item *item)
{
	bool is_event = item->is_event;

	switch (item->kind) {
	case SEAM_SYSPROF_SYMTAB:
		return put_prologue(out, "ljs", SEAM_SYSPROF_SYMTAB_VERSION);
	case SEAM_SYSPROF_PROFILE:
		return put_prologue(out, "ljp", SEAM_SYSPROF_VERSION);
	case SEAM_SYSPROF_SYMBOL_LFUNC:
		return put_record(out, is_event ? SEAM_SYSPROF_EVENT_LFUNC :
				  SEAM_SYSPROF_SYMTAB_LFUNC,
				  &seam_sysprof_lfunc_table, &item->lfunc);
	case SEAM_SYSPROF_SYMBOL_CFUNC:
		return put_record(out, is_event ? SEAM_SYSPROF_EVENT_CFUNC :
				  SEAM_SYSPROF_SYMTAB_CFUNC,
				  &seam_sysprof_cfunc_table, &item->cfunc);
	case SEAM_SYSPROF_SYMBOL_TRACE:
		return put_record(out, is_event ? SEAM_SYSPROF_EVENT_TRACE :
				  SEAM_SYSPROF_SYMTAB_TRACE,
				  &seam_sysprof_trace_table, &item->trace);
	case SEAM_SYSPROF_SYMTAB_END:
		return put_end(out, SEAM_SYSPROF_FINAL);
	case SEAM_SYSPROF_END:
		return put_end(out, SEAM_SYSPROF_EPILOGUE);
	case SEAM_SYSPROF_SAMPLE:
		break;
	}
	return put_sample(out, item);
}

/* -- items on lines ------------------------------------------------------- */

enum { TYPE_WIDTH = 8 };

static const char *type_name(const struct seam_sysprof_item *item)
{
	static const char *const names[] = {
		[SEAM_SYSPROF_SYMTAB] = "ljs",
		[SEAM_SYSPROF_SYMBOL_LFUNC] = "lfunc",
		[SEAM_SYSPROF_SYMBOL_CFUNC] = "cfunc",
		[SEAM_SYSPROF_SYMBOL_TRACE] = "trace",
		[SEAM_SYSPROF_SYMTAB_END] = "final",
		[SEAM_SYSPROF_PROFILE] = "ljp",
		[SEAM_SYSPROF_SAMPLE] = "sample",
		[SEAM_SYSPROF_END] = "epilogue",
	};

	return names[item->kind];
}

static void print_frame(struct seam_line *line,
			const struct seam_sysprof_frame *frame)
{
	seam_line_open(line, NULL, '{');
	if (frame->kind == SEAM_SYSPROF_LFUNC) {
		seam_line_hex(line, "proto", frame->value);
		seam_line_u64(line, "line", frame->line);
	} else if (frame->kind == SEAM_SYSPROF_CFUNC) {
		seam_line_hex(line, "cfunc", frame->value);
	} else {
		seam_line_u64(line, "ffid", frame->value);
	}
	seam_line_close(line, '}');
}

static void print_sample(struct seam_line *line,
			 const struct seam_sysprof_item *item)
{
	seam_line_string(line, "vmstate", seam_vmstate_name(item->vmstate));
	if (item->vmstate == SEAM_VMSTATE_TRACE) {
		seam_line_record(line, &seam_sysprof_trace_sample_table,
				 &item->trace);
		return;
	}
	seam_line_open(line, "lua", '[');
	for (size_t i = 0; i < item->n_lua; i++)
		print_frame(line, &item->lua[i]);
	seam_line_close(line, ']');
	seam_line_open(line, "host", '[');
	for (size_t i = 0; i < item->n_host; i++)
		seam_line_hex(line, NULL, item->host[i]);
	seam_line_close(line, ']');
}

static void print_fields(struct seam_line *line,
			 const struct seam_sysprof_item *item)
{
	switch (item->kind) {
	case SEAM_SYSPROF_SYMTAB:
	case SEAM_SYSPROF_PROFILE:
		seam_line_u64(line, "version", item->version);
		break;
	case SEAM_SYSPROF_SYMBOL_LFUNC:
		seam_line_record(line, &seam_sysprof_lfunc_table, &item->lfunc);
		break;
	case SEAM_SYSPROF_SYMBOL_CFUNC:
		seam_line_record(line, &seam_sysprof_cfunc_table, &item->cfunc);
		break;
	case SEAM_SYSPROF_SYMBOL_TRACE:
		seam_line_record(line, &seam_sysprof_trace_table, &item->trace);
		break;
	case SEAM_SYSPROF_SAMPLE:
		print_sample(line, item);
		break;
	case SEAM_SYSPROF_SYMTAB_END:
	case SEAM_SYSPROF_END:
		break;
	}
}

int seam_sysprof_print(FILE *out, struct seam_bytes bytes,
		       enum seam_line_form form, struct seam_err *err)
{
	struct seam_sysprof_reader reader;
	struct seam_sysprof_item item;
	size_t end;
	int r;

	seam_sysprof_begin(&reader, bytes);
	while ((r = seam_sysprof_next(&reader, &item, err)) > 0 &&
	       !ferror(out)) {
		struct seam_line line = seam_line_begin(out, form, item.offset,
						type_name(&item), TYPE_WIDTH);

		print_fields(&line, &item);
		seam_line_end(&line);
	}
	end = reader.cursor.pos;
	seam_sysprof_fini(&reader);
	if (r == 0 && end < bytes.size)
		return seam_err_set(err, -EBADMSG, "%zu bytes after the "
				    "epilogue, from byte %zu on",
				    bytes.size - end, end);
	return r < 0 ? r : 0;
}
