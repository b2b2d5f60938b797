/* SPDX-License-Identifier: MIT */
/*
 * exporter.h - a recording as a file of another tool's format
 *
 * A format is a row of SEAM_EXPORTERS, the table of 'seam convert': its name
 * among the choices of --to, what it reads, the function that writes it, and
 * its help.
 */
#pragma once

#include "model/profile/tally.h"
#include "model/xray/call_names.h"

/* The input of an exporter. */
enum seam_exporter_needs {
	SEAM_NEEDS_STACKS,	/* a profile: the selected samples' stacks */
	SEAM_NEEDS_PROFILE,	/* all events of it, and its timelines */
	SEAM_NEEDS_LOGS,	/* every record of XRay logs */
};

/* One export.  Everything is borrowed. */
struct seam_export {
	FILE *out;
	/* SEAM_NEEDS_STACKS and _PROFILE */
	const struct seam_selected *selected;
	enum seam_group group;
	bool by_weight;
	bool no_root;			/* folded: no frame of the group */
	const char *root_prefix;	/* folded: before its name; or NULL */
	const void *picture;		/* of a writer outside of src/export */
	/* Print a line about what the format cannot hold; NULL: do not. */
	void (*say)(const char *fmt, ...);
	uint64_t *n_skipped;	/* set to the samples left out; or NULL */
	/* SEAM_NEEDS_LOGS */
	const struct seam_trace *trace;
	const struct seam_xray_map *names;
	struct seam_xray_problems *problems;	/* unreadable parts: added */
};

/*
 * Writes @export: 0, or -errno with the reason in @err.  An error of
 * @export->out may show only when the caller closes it.
 */
typedef int seam_export_fn(const struct seam_export *export,
			   struct seam_err *err);

struct seam_exporter {
	const char *name;
	enum seam_exporter_needs needs;
	seam_export_fn *write;
	bool is_binary;		/* nothing for a terminal */
};

/*
 * Stacks as lines "group;root;...;leaf COUNT", the format that flame graph
 * scripts, speedscope and many others read.  One line for each distinct stack,
 * sorted by bytes, below the name of its group; equal names are merged.  COUNT
 * is the number of samples, or the sum of their weights.  A suffix of a
 * frame's name is its layer: _[k] kernel, _[j] JIT, _[g] guest, _[i] inlined
 * native.  A ';' in a name becomes ':', and control characters are escaped.
 *
 * -EFBIG after SEAM_FOLDED_MAX_BYTES: a line has all frames of its stack, so a
 * log of a few megabytes with deeply nested calls would fill any disk.
 */
#define SEAM_FOLDED_MAX_BYTES (UINT64_C(4) << 30)
seam_export_fn seam_write_folded;

/* The ending of a name in these lines: "_[k]", or "". */
const char *seam_folded_suffix(enum seam_layer layer, bool is_inlined);

/*
 * A stream of LuaJIT's sysprof, symbol table 3 and profile 2.  One that was
 * read from a stream is copied: bytes that LuaJIT wrote in these versions come
 * out the same, an older stream as the same symbols and samples, a damaged one
 * up to the damage, with an epilogue.  -EINVAL where layers are selected.  Of
 * other recordings the samples with a VM state are written; -ENOTSUP without
 * any.
 */
seam_export_fn seam_write_sysprof;

/*
 * Whole profiles for other tools: samples of all selected events, and, where the
 * format has them, calls, waits and marks in the order of time.  A line of
 * export->say has what it cannot hold.  doc/guide/exports.md maps the model to
 * each of them.  -E2BIG: samples of more than 64 events; -EFBIG: the file would
 * be so large that no reader opens it.
 *
 * pprof: gzip; equal stacks of a thread are added up.  firefox: the processed
 * profile of profiler.firefox.com.  speedscope: its own JSON.  perfetto: gzip of
 * packets.  Cost: about 1 us a sample; memory does not grow with samples, but
 * for 4 bytes each.  page: HTML (page/page.h); memory is bounded.
 */
seam_export_fn seam_write_pprof;
seam_export_fn seam_write_firefox;
seam_export_fn seam_write_speedscope;
seam_export_fn seam_write_perfetto;
seam_export_fn seam_write_page;

/*
 * The calls that begin in the trace's range, to their end, and the events in
 * it, for chrome://tracing and ui.perfetto.dev.  Each call is a begin and an
 * end event, arguments are the begin event's args, custom and typed events are
 * instants of their thread.  Times are microseconds with three decimals.
 * Repaired calls have both events too.  Cost: about 40 ns a record.
 *
 * Source: Trace Event Format (Google, 2016), "JSON Object Format".
 */
seam_export_fn seam_write_trace_json;

/*
 * YAML for llvm-xray: records of all threads in the order of their TSC, with
 * the TSCs of the log.  The header has version 1: llvm-xray writes YAML of
 * newer versions, but does not read it.
 */
seam_export_fn seam_write_xray_yaml;

/*
 * All logs as one FDR log of version 5: each thread's records, in order, in at
 * most 16 blocks, because llvm-xray reorders more than that.  -ENOTSUP when the
 * clocks of the logs have different frequencies, or their programs differ.
 */
seam_export_fn seam_write_xray_log;

/*
 * The table: name, needs, writer, is_binary, help.  A macro, because the table
 * of options is constant too, and takes the choices and the help of --to from here.
 */
#define SEAM_EXPORTERS(ROW)						\
	ROW("folded", SEAM_NEEDS_STACKS, seam_write_folded, false,	\
	    "Folded has a line for each stack: thread name (or what "	\
	    "--by selects), frames from the root to the leaf, separated " \
	    "by semicolons, and a count. A suffix of a frame's name is " \
	    "its layer: _[k] for the kernel, _[j] for JIT code, _[g] for a "\
	    "guest, _[i] for an inlined function. ")			\
	ROW("sysprof", SEAM_NEEDS_STACKS, seam_write_sysprof, true,	\
	    "Sysprof is a stream of LuaJIT's profiler: of such a stream, " \
	    "a copy in its newest version; of other recordings the samples " \
	    "of a LuaJIT, without what a stream cannot hold, which is " \
	    "counted. Five formats have the whole selected profile, all " \
	    "its events, and calls and waits: ")			\
	ROW("pprof", SEAM_NEEDS_PROFILE, seam_write_pprof, true,	\
	    "pprof is for 'go tool pprof': stacks of each thread, added " \
	    "up; ")							\
	ROW("firefox", SEAM_NEEDS_PROFILE, seam_write_firefox, false,	\
	    "firefox for profiler.firefox.com, ")			\
	ROW("speedscope", SEAM_NEEDS_PROFILE,				\
	    seam_write_speedscope, false,				\
	    "speedscope for speedscope.app, ")				\
	ROW("page", SEAM_NEEDS_PROFILE, seam_write_page, false,	\
	    "page for a browser alone, as 'seam view -o' writes it, but "	\
	    "without machine code, ")					\
	ROW("perfetto", SEAM_NEEDS_PROFILE, seam_write_perfetto, true,	\
	    "perfetto for ui.perfetto.dev, for many calls a tenth of "	\
	    "trace-json. The other formats take XRay logs, one or "	\
	    "several of a program, and keep every event: ")		\
	ROW("trace-json", SEAM_NEEDS_LOGS,				\
	    seam_write_trace_json, false,				\
	    "trace-json is for chrome://tracing and ui.perfetto.dev, ")	\
	ROW("xray-yaml", SEAM_NEEDS_LOGS, seam_write_xray_yaml, false,	\
	    "xray-yaml for llvm-xray, ")				\
	ROW("xray", SEAM_NEEDS_LOGS, seam_write_xray_log, true,		\
	    "xray is one log of version 5.")

#define SEAM_EXPORTER_CHOICE(name, needs, write, is_binary, help) "|" name
#define SEAM_EXPORTER_HELP(name, needs, write, is_binary, help) help

/* "folded|trace-json|...", and the help of all. */
#define SEAM_EXPORTER_CHOICES (&SEAM_EXPORTERS(SEAM_EXPORTER_CHOICE)[1])
#define SEAM_EXPORTERS_HELP SEAM_EXPORTERS(SEAM_EXPORTER_HELP)

/* The exporter called @name, or NULL. */
const struct seam_exporter *seam_exporter_find(const char *name);
