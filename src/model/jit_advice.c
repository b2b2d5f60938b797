/* SPDX-License-Identifier: MIT */
/* jit_advice.c - runtimes and the flags that make them tell; jit_advice.h */
#include "model/jit_advice.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * By the name of the process, as its thread or its file has it.
 * Source: the runtimes' own manuals; tried with those in Debian 12.
 */
static const struct {
	const char *name;	/* what the name begins with */
	const char *how;
} runtimes[] = {
	{ "node", "node --perf-prof --interpreted-frames-native-stack" },
	{ "deno", "deno run --v8-flags=--perf-prof" },
	{ "bun", "BUN_JSC_useJITDump=1 bun" },
	{ "beam.smp", "erl +JPperf true" },
	{ "erts_", "erl +JPperf true" },
	{ "php", "php -d opcache.enable_cli=1 -d opcache.jit_debug=0x20" },
	{ "python3", "python3 -X perf (3.12), -X perf_jit (3.13)" },
	{ "java", "java -XX:+UnlockDiagnosticVMOptions "
	  "-XX:+PreserveFramePointer -XX:+DumpPerfMapAtExit" },
	{ "dotnet", "DOTNET_PerfMapEnabled=1 dotnet" },
	{ "mono", "mono --jitmap" },
	{ "lli", "lli -jit-kind=mcjit, built with LLVM_USE_PERF" },
	{ "postgres", "jit_profiling_support=on in postgresql.conf" },
	{ "julia", "ENABLE_JITPROFILING=1 julia" },
};

static const char *advice_for(const char *name)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(runtimes); i++)
		if (strncmp(name, runtimes[i].name,
			    strlen(runtimes[i].name)) == 0)
			return runtimes[i].how;
	return NULL;
}

static bool is_nameless(const struct seam_profile *profile, uint32_t stack)
{
	const struct seam_function *function;

	if (stack == 0)
		return false;
	function = &profile->functions.items[profile->frames.items[
		profile->stacks.items[stack].frame].function];
	return function->layer == SEAM_LAYER_JIT && !function->is_named;
}

static bool is_ambiguous(const struct seam_profile *profile, uint32_t stack)
{
	return profile->functions.items[profile->frames.items[
		profile->stacks.items[stack].frame].function].is_ambiguous;
}

/* Samples with a function that may be another, wherever it is in the stack. */
static void tell_of_reuse(struct seam_profile *profile)
{
	const struct seam_samples *s = &profile->samples;
	bool *has = calloc(profile->stacks.n + 1, sizeof(*has));
	uint64_t n = 0;

	/* A stack comes after its parent. */
	for (size_t i = 1; has && i < profile->stacks.n; i++)
		has[i] = has[profile->stacks.items[i].parent] ||
			 is_ambiguous(profile, (uint32_t)i);
	for (size_t i = 0; has && i < s->n; i++)
		n += has[s->stack[i]];
	if (n)
		seam_profile_note(profile, "%" PRIu64 " samples at addresses "
				  "that a perf map names more than once, "
				  "without times: the last name is shown, "
				  "marked [address reused]", n);
	free(has);
}

void seam_jit_advise(struct seam_profile *profile,
		     const struct seam_jit_sources *sources)
{
	const struct seam_samples *s = &profile->samples;
	uint64_t *n = calloc(profile->processes.n + 1, sizeof(*n));

	tell_of_reuse(profile);
	if (!n)
		return;
	for (size_t i = 0; i < s->n; i++)
		n[profile->threads.items[s->thread[i]].process] +=
			is_nameless(profile, s->stack[i]);
	for (size_t i = 0; i < profile->processes.n; i++) {
		const char *name = seam_profile_text(profile,
					profile->processes.items[i].name);
		const char *how = n[i] ? advice_for(name) : NULL;

		if (how && !seam_jit_sources_lack(sources, profile->
						  processes.items[i].pid))
			seam_profile_note(profile, "code compiled by '%s' has "
					  "no names; record it with: %s",
					  name, how);
	}
	free(n);
}
