/* SPDX-License-Identifier: MIT */
/* jit_add.c - dumps and maps to objects and events; see jit_events.h */
#include "symbol/jit/jit_events.h"

#include <errno.h>
#include <stdlib.h>

#include "base/pair_map.h"
#include "wire/jit/perf_map.h"

/*
 * V8 and LLVM add 0x40 to every address of debug information, the size of the
 * ELF header that perf put before the code when they were written.  Other
 * runtimes do not (OpenJDK's agent, Erlang).  The first entries of all records
 * of a dump show whether it does.
 */
enum { SHIFT_BYTES = 0x40 };

/* Where the first entries of a dump's records are in their functions. */
struct line_shift {
	uint64_t n;		/* records with entries */
	uint64_t n_at_shift;	/* first entry exactly at 0x40 */
	uint64_t n_below;	/* first entry at 0 .. 0x3f */
};

/* The state of one walk over a dump. */
struct adding {
	struct seam_jit_code *jit;
	const struct seam_jit_code_options *options;
	struct seam_jit_source *source;
	struct seam_jit_process *process;	/* of process_pid, or NULL */
	int32_t process_pid;
	struct seam_pair_map deferred;	/* address -> debug info */
	uint32_t debug;			/* the one just read, or SEAM_NONE */
	struct seam_bytes eh_frame;	/* the one just read; size 0: none */
	size_t frame_pos;		/* of it, after the other table */
	struct line_shift shift;
	bool is_untimed, is_converted;
};

static uint64_t time_of(struct adding *a, uint64_t timestamp)
{
	uint64_t ns = timestamp;

	if (a->is_untimed)
		return 0;
	if (a->is_converted &&
	    !a->options->to_ns(a->options->context, timestamp, &ns))
		return 0;
	return ns;
}

/* The process that a record belongs to. */
static struct seam_jit_process *owner(struct adding *a, uint32_t pid)
{
	struct seam_jit_source *source = a->source;
	int32_t owner_pid = source->pid;

	/* Valid only where both sides number processes alike. */
	if (pid && (int32_t)pid != source->inner_pid &&
	    source->inner_pid == source->pid) {
		owner_pid = (int32_t)pid;
		source->notes[SEAM_JIT_OTHER_PID]++;
	}
	if (!a->process || a->process_pid != owner_pid) {
		a->process = seam_jit_process_make(a->jit, owner_pid);
		a->process_pid = owner_pid;
	}
	return a->process;
}

static int add_event(struct seam_jit_process *process, int layer,
		     struct seam_jit_event event)
{
	return process && process->layers[layer].events.n < SEAM_NONE / 8 &&
	       SEAM_ARRAY_ADD(&process->layers[layer].events, event) ? 0 :
	       -ENOMEM;
}

/* A new object, which is loaded at its time. */
static int add_object(struct seam_jit_code *jit,
		      struct seam_jit_process *process, int layer,
		      struct seam_jit_object object)
{
	object.lines = SEAM_NONE;
	return jit->objects.n < SEAM_NONE - 1 &&
	       SEAM_ARRAY_ADD(&jit->objects, object) ?
	       add_event(process, layer, (struct seam_jit_event) {
			.time_ns = object.loaded_ns, .move = SEAM_NONE,
			.object = (uint32_t)jit->objects.n - 1,
			.start_addr = object.start_addr,
	       }) : -ENOMEM;
}

/* Debug information that was not for the record after it. */
static int defer_debug(struct adding *a, uint32_t debug)
{
	return seam_pair_map_put(&a->deferred,
				 a->source->infos.items[debug].code_addr, 0,
				 debug);
}

/*
 * The debug information of a load at @addr: the last one read if it is for
 * this address, else a deferred one for it, else the last one read anyway.
 */
static int take_debug(struct adding *a, uint64_t addr, uint32_t *debug)
{
	uint32_t last = a->debug, *deferred = NULL;

	a->debug = SEAM_NONE;
	if (last != SEAM_NONE &&
	    a->source->infos.items[last].code_addr == addr) {
		*debug = last;
		return 0;
	}
	deferred = seam_pair_map_find(&a->deferred, addr, 0);
	if (deferred && *deferred != SEAM_NONE) {
		*debug = *deferred;
		*deferred = SEAM_NONE;
	} else {
		*debug = last;
	}
	if (last == SEAM_NONE)
		return 0;
	return defer_debug(a, last);
}

static int add_load(struct adding *a, const struct seam_jitdump_load *load)
{
	uint64_t addr = load->code_addr ? load->code_addr : load->vma;
	struct seam_jit_object object = {
		.name = load->name, .start_addr = addr,
		.size = load->code_size, .code = load->code,
		.loaded_ns = time_of(a, load->timestamp),
		.code_index = load->code_index, .eh_frame = a->eh_frame,
		.eh_frame_offset = seam_jitdump_aligned(load->code_size) +
				   a->frame_pos,
		.tid = (int32_t)load->tid,
		.elf_machine = a->source->elf_machine,
		.endian = (uint8_t)a->source->endian,
		.dump = (uint32_t)(a->source - a->jit->sources.items),
	};

	a->eh_frame = (struct seam_bytes) { 0 };
	a->frame_pos = 0;
	return take_debug(a, addr, &object.debug) ? -ENOMEM :
	       add_object(a->jit, owner(a, load->pid), SEAM_JIT_DUMPS, object);
}

static int add_move(struct adding *a, const struct seam_jitdump_move *record)
{
	if (a->jit->moves.n >= SEAM_NONE - 1 ||
	    !SEAM_ARRAY_ADD(&a->jit->moves, (struct seam_jit_move) {
		.record = *record,
		.source = (uint32_t)(a->source - a->jit->sources.items),
	    }))
		return -ENOMEM;
	return add_event(owner(a, record->pid), SEAM_JIT_DUMPS,
			 (struct seam_jit_event) {
		.time_ns = time_of(a, record->timestamp),
		.object = SEAM_NONE,
		.move = (uint32_t)a->jit->moves.n - 1,
		.start_addr = record->new_code_addr,
	});
}

static void add_shift(struct line_shift *shift,
		      const struct seam_jitdump_debug_info *info,
		      enum seam_endian endian)
{
	struct seam_cursor c = seam_cursor_over(info->entries, endian);
	uint64_t offset = seam_cursor_u64(&c) - info->code_addr;

	if (c.error || !info->nr_entry)
		return;
	shift->n++;
	shift->n_at_shift += offset == SHIFT_BYTES;
	shift->n_below += offset < SHIFT_BYTES;
}

static int add_debug(struct adding *a,
		     const struct seam_jitdump_debug_info *info)
{
	if ((a->debug != SEAM_NONE && defer_debug(a, a->debug)) ||
	    a->source->infos.n >= SEAM_NONE - 1 ||
	    !SEAM_ARRAY_ADD(&a->source->infos, *info))
		return -ENOMEM;
	a->debug = (uint32_t)a->source->infos.n - 1;
	add_shift(&a->shift, info, a->source->endian);
	return 0;
}

static int add_record(struct adding *a,
		      const struct seam_jitdump_record *record)
{
	switch (record->id) {
	case SEAM_JITDUMP_LOAD:
		return add_load(a, &record->load);
	case SEAM_JITDUMP_MOVE:
		return add_move(a, &record->move);
	case SEAM_JITDUMP_DEBUG_INFO:
		return add_debug(a, &record->debug_info);
	case SEAM_JITDUMP_UNWINDING_INFO:
		a->eh_frame = seam_jitdump_eh_frame(&record->unwinding_info,
						    &a->frame_pos);
		return 0;
	default:
		return 0;
	}
}

/* First and last time of the loads; false when there is none. */
static bool load_times(struct seam_jitdump_reader reader, uint64_t *first,
		       uint64_t *last)
{
	struct seam_jitdump_record record;
	bool any = false;

	while (seam_jitdump_next(&reader, &record)) {
		if (record.id != SEAM_JITDUMP_LOAD)
			continue;
		if (!any)
			*first = record.prefix.timestamp;
		*last = record.prefix.timestamp;
		any = true;
	}
	return any;
}

/*
 * The clock of a dump.  Bit 0 of the flags means "not ns", but
 * llvm-jitlink writes flags it never set, and then other bits are set too.
 */
static void choose_clock(struct adding *a,
			 const struct seam_jitdump_reader *reader)
{
	const struct seam_jit_code_options *o = a->options;
	uint64_t flags = reader->header.flags, first = 0, last = 0;

	a->is_untimed = o->is_untimed;
	if (flags & SEAM_JITDUMP_ARCH_TIMESTAMP) {
		if (flags != SEAM_JITDUMP_ARCH_TIMESTAMP)
			a->source->notes[SEAM_JIT_ARCH_GARBAGE]++;
		else if (o->to_ns)
			a->is_converted = true;
		else if (!o->last_ns || !load_times(*reader, &first, &last) ||
			 last < o->first_ns || last > o->last_ns)
			a->is_untimed = true;
	} else if (o->last_ns && load_times(*reader, &first, &last) &&
		   first > o->last_ns) {
		a->source->notes[SEAM_JIT_TOO_NEW]++;
	}
	if (a->is_untimed)
		a->source->notes[SEAM_JIT_UNTIMED]++;
}

static int add_records(struct adding *a, struct seam_jitdump_reader *reader)
{
	struct seam_jitdump_record record;
	int r = 0;

	while (!r && seam_jitdump_next(reader, &record))
		r = add_record(a, &record);
	memcpy(a->source->reader_notes, reader->n_notes,
	       sizeof(reader->n_notes));
	if (a->shift.n_at_shift * 2 > a->shift.n && !a->shift.n_below) {
		a->source->shift = SHIFT_BYTES;
		a->source->notes[SEAM_JIT_SHIFTED] = a->shift.n;
	}
	seam_pair_map_fini(&a->deferred);
	return r;
}

int seam_jit_code_add_dump(struct seam_jit_code *jit, struct seam_bytes bytes,
			   const struct seam_jit_code_options *options,
			   struct seam_err *err)
{
	struct adding a = {
		.jit = jit, .options = options, .debug = SEAM_NONE,
	};
	struct seam_jitdump_reader reader;
	int r = seam_jitdump_begin(&reader, bytes, err);

	if (r)
		return r;
	if (!SEAM_ARRAY_ADD(&jit->sources, (struct seam_jit_source) {
			.pid = options->pid,
			.inner_pid = (int32_t)reader.header.pid,
			.elf_machine = reader.header.elf_mach,
			.endian = reader.endian,
		}))
		return seam_err_no_memory(err);
	a.source = &jit->sources.items[jit->sources.n - 1];
	choose_clock(&a, &reader);
	if (add_records(&a, &reader))
		return seam_err_no_memory(err);
	return 0;
}

/* When the lines of a map were written, as the reader comes to them. */
struct map_times {
	struct seam_perf_map_times reader;
	struct seam_perf_map_mark mark, next;
	bool has_next;
};

static struct map_times begin_times(struct seam_bytes bytes)
{
	struct map_times t = {
		.reader = seam_perf_map_times_begin(bytes),
		.mark = { .to_ns = UINT64_MAX },
	};

	t.has_next = seam_perf_map_times_next(&t.reader, &t.next);
	return t;
}

/* The mark of the line that begins at @pos; calls come in order. */
static const struct seam_perf_map_mark *mark_at(struct map_times *t,
						uint64_t pos)
{
	while (t->has_next && t->next.offset <= pos) {
		t->mark = t->next;
		t->has_next = seam_perf_map_times_next(&t->reader, &t->next);
	}
	return &t->mark;
}

static int add_map_entry(struct seam_jit_code *jit,
			 struct seam_jit_process *process, uint32_t source,
			 const struct seam_perf_map_entry *entry,
			 const struct seam_perf_map_mark *mark)
{
	const char *name = seam_arena_text(&jit->arena,
					   (const char *)entry->name.data,
					   entry->name.size);

	return !name ? -ENOMEM : add_object(jit, process, SEAM_JIT_MAPS,
					    (struct seam_jit_object) {
		.name = name, .start_addr = entry->start_addr,
		.size = entry->size, .dump = source, .debug = SEAM_NONE,
		.loaded_ns = mark->from_ns, .known_ns = mark->to_ns,
	});
}

int seam_jit_code_add_map(struct seam_jit_code *jit, int32_t pid,
			  struct seam_bytes bytes, struct seam_bytes times,
			  struct seam_err *err)
{
	struct map_times marks = begin_times(times);
	struct seam_perf_map_reader reader = seam_perf_map_begin(bytes);
	struct seam_jit_process *process = seam_jit_process_make(jit, pid);
	struct seam_jit_source *source;
	struct seam_perf_map_entry entry;
	int r = process && SEAM_ARRAY_ADD(&jit->sources,
			(struct seam_jit_source) { .pid = pid }) ? 0 : -ENOMEM;

	while (!r && seam_perf_map_next(&reader, &entry))
		r = add_map_entry(jit, process, (uint32_t)jit->sources.n - 1,
				  &entry, mark_at(&marks, (uint64_t)(
				  entry.line - bytes.data)));
	if (r)
		return seam_err_no_memory(err);
	source = &jit->sources.items[jit->sources.n - 1];
	source->notes[SEAM_JIT_BAD_LINES] = reader.n_bad;
	source->notes[SEAM_JIT_BAD_TIMES] = marks.reader.n_bad;
	return 0;
}
