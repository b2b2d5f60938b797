/* SPDX-License-Identifier: MIT */
/* dump.c - 'seam dump': every record of a file, one per line */
#include <errno.h>

#include "base/text.h"
#include "cli/commands/dump_symbols.h"
#include "cli/pager.h"
#include "cli/reading.h"
#include "model/input.h"
#include "model/xray/call_names.h"
#include "model/xray/load_xray.h"
#include "wire/jit/jitdump.h"
#include "wire/jit/perf_map.h"
#include "wire/perf/perf_print.h"
#include "wire/sysprof/sysprof.h"
#include "wire/xray/xray_print.h"

struct dump_options {
	bool json;
	bool code;
	bool symbols;
	struct seam_reading reading;	/* options of symbols */
};

#define OPTION(...) SEAM_OPTION(struct dump_options, __VA_ARGS__)
static const struct seam_option options[] = {
	OPTION(json, FLAG, 0, "json", NULL,
	       "one JSON object per line",
	       .detail = "Members have the names of the fields in the "
			 "kernel's ABI; offset is the record's place in the "
			 "file and type its name without PERF_RECORD_."),
	OPTION(code, FLAG, 0, "code", NULL,
	       "the machine code of a jitdump as hex",
	       .detail = "With its unwinding tables. JSON always has them."),
	OPTION(symbols, FLAG, 0, "symbols", NULL,
	       "with --json: names in the callchains of samples",
	       .detail = "Each address becomes an object with ip, layer, "
			 "symbol, module, file and line, as they were at the "
			 "sample's time; calls inlined at the address are in "
			 "inlined, innermost first. Frames of a copied stack "
			 "follow, without ip and with unwound."),
	SEAM_INPUT_OPTION(struct dump_options, reading),
	SEAM_SYMBOL_OPTIONS(struct dump_options, reading),
};
#undef OPTION

/* The header's data, then that of each further file of the recording. */
static int dump_perf(const struct seam_input *recording,
		     enum seam_line_form form,
		     const struct seam_perf_namer *namer,
		     uint64_t *n_damaged, struct seam_err *err)
{
	struct seam_perf_data data;
	uint64_t n = 0;
	int r = seam_perf_data_open(&data, recording->data.bytes, err);

	if (r == 0) {
		seam_perf_data_name_events(&data, recording->manifest.events,
					   recording->manifest.n_events);
		r = seam_perf_print(stdout, &data, data.bytes, data.data_begin,
				    data.data_end, form, namer, &n, err);
		*n_damaged += n;
	}
	for (size_t i = 0; r == 0 && i < recording->parts.n; i++) {
		struct seam_bytes bytes = recording->parts.items[i].bytes;

		r = seam_perf_print(stdout, &data, bytes, 0, bytes.size, form,
				    namer, &n, err);
		*n_damaged += n;
	}
	seam_perf_data_close(&data);
	return r;
}

/* The same with symbols, after loading the whole recording. */
static int dump_named(const struct seam_input *recording,
		      const struct dump_options *settings, uint64_t *n_damaged,
		      struct seam_err *err)
{
	struct seam_load_options load =
		seam_reading_load_options(&settings->reading);
	struct seam_profile profile;
	struct seam_dump_symbols symbols = { .profile = &profile };
	int r = seam_profile_init(&profile);

	load.by_record = load.no_logs = true;
	if (r < 0)
		return seam_err_no_memory(err);
	r = seam_load(&profile, recording->path, &load, err);
	if (r == 0)
		r = dump_perf(recording, SEAM_LINE_JSON,
			      &(struct seam_perf_namer) {
			.chain = seam_dump_symbols_chain, .context = &symbols,
		}, n_damaged, err);
	seam_profile_fini(&profile);
	return r;
}

/* -- XRay logs ---------------------------------------------------------- */

struct log_names {
	struct seam_trace trace;
	struct seam_xray_map map;
};

static const char *function_name(void *context, uint32_t id)
{
	const struct log_names *names = context;
	const struct seam_xray_mapped *f = seam_xray_map_find(&names->map, id);

	return f && f->name ? seam_strings_get(&names->map.strings, f->name) :
	       NULL;
}

static const char *event_name(void *context, uint16_t type)
{
	const struct log_names *names = context;

	return names->trace.logs.n ? seam_event_name_find(
			&names->trace.logs.items[0].event_names, type) : NULL;
}

/* With the names beside the log, or those of --map. */
static int dump_log(const struct seam_input *recording,
		    const struct dump_options *settings,
		    enum seam_line_form form, uint64_t *n_damaged,
		    struct seam_err *err)
{
	const char *map = settings->reading.map;
	struct seam_symbols_options how =
		seam_reading_load_options(&settings->reading).symbols;
	struct log_names names = { 0 };
	const struct seam_xray_namer namer = {
		function_name, event_name, &names,
	};
	struct seam_symbols *symbols;
	int r = 0;

	how.no_lines = true;
	symbols = seam_symbols_new(&how);
	if (!symbols)
		return seam_err_no_memory(err);
	/* standard input is read already; damage is printed below */
	if (strcmp(recording->path, "-") != 0)
		seam_trace_open(&names.trace, &recording->path, 1, NULL);
	r = seam_log_names_open(&names.map, &names.trace, map, symbols, NULL,
				err);
	seam_symbols_free(symbols);
	if (!r)
		r = seam_xray_print(stdout, recording->data.bytes, form,
				    &namer, n_damaged, err);
	seam_xray_map_fini(&names.map);
	seam_trace_close(&names.trace);
	return r;
}

/* The logs of a recording that has no other data, one after another. */
static int dump_logs(const struct seam_input *recording,
		     const struct dump_options *settings,
		     enum seam_line_form form, uint64_t *n_damaged,
		     struct seam_err *err)
{
	struct seam_trace trace;
	int r;

	seam_trace_init(&trace);
	r = seam_trace_add(&trace, recording->folder, err);
	for (size_t i = 0; !r && i < trace.logs.n; i++) {
		struct seam_input log = {
			.path = trace.logs.items[i].path,
			.data = trace.logs.items[i].file,
		};

		r = dump_log(&log, settings, form, n_damaged, err);
	}
	seam_trace_close(&trace);
	return r;
}

/* Formats are recognized by their magic, a perf map by its name. */
static int dump_bytes(const struct seam_input *recording,
		      const struct dump_options *settings, uint64_t *n_damaged,
		      struct seam_err *err)
{
	struct seam_bytes bytes = recording->data.bytes;
	enum seam_line_form form = settings->json ? SEAM_LINE_JSON :
		settings->code ? SEAM_LINE_TEXT_BYTES : SEAM_LINE_TEXT;
	char hex[2 * 8 + 1];

	if (recording->is_logs)
		return dump_logs(recording, settings, form, n_damaged, err);
	if (seam_perf_data_is(bytes))
		return settings->symbols ?
		       dump_named(recording, settings, n_damaged, err) :
		       dump_perf(recording, form, NULL, n_damaged, err);
	if (seam_load_xray_is(bytes))
		return dump_log(recording, settings, form, n_damaged, err);
	if (seam_sysprof_is(bytes))
		return seam_sysprof_print(stdout, bytes, form, err);
	if (seam_jitdump_is(bytes))
		return seam_jitdump_print(stdout, bytes, form, n_damaged, err);
	if (seam_perf_map_is(recording->path, bytes))
		return seam_perf_map_print(stdout, bytes, form, n_damaged);
	if (!bytes.size)
		return seam_err_set(err, -ENOTSUP, "the file is empty");
	return seam_err_set(err, -ENOTSUP, "unknown file format: it begins, "
			    "at byte 0, with %s",
			    seam_text_hex(hex, bytes.data, bytes.size < 8 ?
					  bytes.size : 8));
}

static int dump(const char *path, const struct dump_options *settings)
{
	struct seam_input recording;
	struct seam_err err = { 0 };
	uint64_t n_damaged = 0;
	int r = seam_input_open(&recording, path, &err);
	bool is_begun = r == 0;
	int status = SEAM_EXIT_DONE;

	if (r == 0)
		seam_pager_start(SEAM_EXIT_DONE);
	if (r == 0)
		r = dump_bytes(&recording, settings, &n_damaged, &err);
	seam_input_close(&recording);
	if (r < 0) {
		seam_err_add(&err, r, is_begun && r != -ENOTSUP ?
			     "cannot show all of '%s'" : "cannot read '%s'",
			     path ? path : SEAM_LOAD_DEFAULT);
		status = seam_command_failed(&err);
		/* Cut or damaged: the records before have been shown. */
		if (r == -ENODATA || r == -EBADMSG)
			status = SEAM_EXIT_LOSSY;
	} else if (n_damaged) {
		seam_command_say("%llu records do not have the layout of "
				 "their type", (unsigned long long)n_damaged);
		status = SEAM_EXIT_LOSSY;
	}
	return status;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct dump_options settings = { 0 };
	const char *path;
	int first;
	int status = seam_command_parse(self, argc, argv, &settings, &first);

	if (status)
		return status;
	if (settings.symbols && !settings.json)
		return seam_command_misused(self, "--symbols needs --json");
	status = seam_reading_operand(self, &settings.reading, argc, argv,
				      first, &path);
	return status ? status : dump(path, &settings);
}

const struct seam_command seam_dump_command = {
	.name = "dump",
	.summary = "show every record of a recording",
	.synopsis = "[--json [--symbols]] [--code] [FILE]",
	.description =
		"Prints each record of FILE on a line, in the order of the "
		"file, with all of its fields. FILE is a bundle, a perf.data "
		"file of any age, byte order or kind (file, pipe, "
		"compressed, folder), an XRay log, a jitdump, a "
		"perf-PID.map or a stream of LuaJIT's sysprof; without FILE "
		"the last recording, recording.seam. Of a recording with "
		"data and XRay logs, the data; FILE can be a log in it.\n\n"
		"Functions and events of an XRay log have their names where "
		"a map is beside it, or --map names one."
		"\n\n"
		"If a file is cut or damaged, the records before that are "
		"shown and the exit status is 3. Deviations of a jitdump "
		"from its specification that can be read are listed after "
		"the records, in lines that begin with #.",
	.examples =
		"seam dump | head\tthe first records of the last recording\n"
		"seam dump --json perf.data | jq -c "
		"'select(.type==\"MMAP2\")'\tall mappings as JSON\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.reads = true,
	.run = run,
};
