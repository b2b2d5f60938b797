/* SPDX-License-Identifier: MIT */
/*
 * parse_sysprof.c - 'luajit-parse-sysprof': a sysprof stream as folded stacks
 *
 * Source: LuaJIT RFC "lua: system-wide profiler", "Retrieving the results".
 */
#include "cli/reading.h"

struct parse_sysprof_options {
	bool split;
};

static const struct seam_option options[] = {
	SEAM_OPTION(struct parse_sysprof_options, split, FLAG, 0, "split", NULL,
		    "split callchains by vmstate",
		    .detail = "The root frame of each stack is then "
		    "VMST_LFUNC, VMST_GC and so on: what the VM did."),
};

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct parse_sysprof_options o = { 0 };
	struct seam_reading reading = { .like_parser = true };
	struct seam_export export = {
		.group = SEAM_GROUP_VMSTATE, .root_prefix = "VMST_",
	};
	struct seam_opened opened;
	int first;
	int status = seam_command_parse(self, argc, argv, &o, &first);

	if (status)
		return status;
	if (argc - first != 1)
		return seam_command_misused(self, first == argc ?
			"FILE is missing" : "one FILE at a time");
	status = seam_reading_open(&opened, self, &reading, argc, argv, first);
	if (status == SEAM_EXIT_DONE && !opened.profile.sysprof) {
		seam_command_say("'%s' is not a stream of sysprof; 'seam "
				 "convert' reads other recordings",
				 opened.path);
		status = SEAM_EXIT_FAILED;
	}
	export.no_root = !o.split;
	if (status == SEAM_EXIT_DONE)
		status = seam_reading_export(&opened, "-",
				seam_exporter_find("folded"), &export);
	seam_reading_close(&opened);
	return status;
}

const struct seam_command seam_parse_sysprof_program = {
	.name = "luajit-parse-sysprof",
	.summary = "parser of the profile collected with LuaJIT's sysprof",
	.synopsis = "[--help] [--split] FILE",
	.description =
		"Prints the stacks of FILE, a stream of LuaJIT's sysprof "
		"(versions ljs 1 to 3, ljp 1 and 2), as lines that "
		"flamegraph.pl reads: frames from the root to the leaf, "
		"separated by semicolons, a space and the number of samples. "
		"- is standard input.\n\n"
		"A Lua function is chunk.lua:LINE_[g], the line being that of "
		"its definition; a trace is TRACE [N] started at "
		"chunk.lua:LINE_[j], after the function in which it starts; a "
		"fast function has its name where the stream has the "
		"symbols of the VM, and is ffid N otherwise. The line of "
		"samples without any frame begins with its space.\n\n"
		"Host and Lua stack are joined as by the parser that comes "
		"with LuaJIT: Lua frames follow lua_call and lua_pcall, up to "
		"a C function. Different from it are: lua_cpcall, which takes "
		"the C function that it calls, and not the innermost frame; "
		"stacks without one of these calls, whose Lua frames are at "
		"the leaf, and not left out; traces, which have frames; "
		"damaged streams, of which everything before the damage is "
		"shown. "
		"Lua frames of inner calls that the parser leaves out are "
		"counted; 'seam convert --to folded' has them all, where they "
		"belong.\n\n"
		"If the stream is cut or damaged, the exit status is 3.",
	.examples =
		"luajit-parse-sysprof sysprof.bin | flamegraph.pl > app.svg\t"
		"a flame graph\n"
		"luajit-parse-sysprof --split sysprof.bin | head\t"
		"by VM state\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.reads = true,
	.is_program = true,
	.run = run,
};
