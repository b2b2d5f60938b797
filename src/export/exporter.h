/* SPDX-License-Identifier: MIT */
/*
 * exporter.h - a recording as a file of another tool's format
 *
 * A format is a row of SEAM_EXPORTERS, the table of 'seam convert': its name
 * among the choices of --to, what it reads, the function that writes it, and
 * its help.
 */
#ifndef SEAM_EXPORTER_H
#define SEAM_EXPORTER_H

#include "model/profile/tally.h"
#include "model/xray/call_names.h"

/* The input of an exporter. */
enum seam_exporter_needs {
	SEAM_NEEDS_STACKS,	/* a profile: the selected samples' stacks */
	SEAM_NEEDS_LOGS,	/* every record of XRay logs */
};

/* One export.  Everything is borrowed. */
struct seam_export {
	FILE *out;
	/* SEAM_NEEDS_STACKS */
	const struct seam_selected *selected;
	enum seam_group group;
	bool by_weight;
	const char *title;		/* of a picture */
	bool inverted;
	double min_percent;
	/* SEAM_NEEDS_LOGS */
	const struct seam_trace *trace;
	const struct seam_xray_map *names;
	struct seam_xray_problems *problems;	/* unreadable parts: added */
};

struct seam_exporter {
	const char *name;
	enum seam_exporter_needs needs;
	/*
	 * 0, or -errno with the reason in @err.  An error of @export->out may
	 * show only when the caller closes it.
	 */
	int (*write)(const struct seam_export *export, struct seam_err *err);
};

/*
 * The table: name, needs, writer, help.  A macro, because the table of options
 * is constant too, and takes the choices and the help of --to from here.
 */
#define SEAM_EXPORTERS(ROW)						\
	ROW("folded", SEAM_NEEDS_STACKS, write_folded,			\
	    "Folded has a line for each stack: thread name (or what "	\
	    "--by selects), frames from the root to the leaf, separated " \
	    "by semicolons, and a count. A suffix of a frame's name is " \
	    "its layer: _[k] for the kernel, _[j] for JIT code, _[g] for a "\
	    "guest, _[i] for an inlined function. The other formats "	\
	    "take XRay logs, one or several of a program, and keep "	\
	    "every event: ")						\
	ROW("trace-json", SEAM_NEEDS_LOGS, write_trace_json,		\
	    "trace-json is for chrome://tracing and ui.perfetto.dev, ")	\
	ROW("xray-yaml", SEAM_NEEDS_LOGS, write_xray_yaml,		\
	    "xray-yaml for llvm-xray, ")				\
	ROW("xray", SEAM_NEEDS_LOGS, write_xray_log,			\
	    "xray is one log of version 5.")

#define SEAM_EXPORTER_CHOICE(name, needs, write, help) "|" name
#define SEAM_EXPORTER_HELP(name, needs, write, help) help

/* "folded|trace-json|...", and the help of all. */
#define SEAM_EXPORTER_CHOICES (SEAM_EXPORTERS(SEAM_EXPORTER_CHOICE) + 1)
#define SEAM_EXPORTERS_HELP SEAM_EXPORTERS(SEAM_EXPORTER_HELP)

/* The exporter called @name, or NULL. */
const struct seam_exporter *seam_exporter_find(const char *name);

#endif /* SEAM_EXPORTER_H */
