/* SPDX-License-Identifier: MIT */
/* jit_sources.c - find, validate, add; the contract is in jit_sources.h */
#include "model/jit/jit_sources.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"

static void free_sources(void *object)
{
	struct seam_jit_sources *sources = object;

	seam_jit_code_free(sources->code);
	for (size_t i = 0; i < sources->files.n; i++)
		seam_file_close(&sources->files.items[i].file);
	free(sources->files.items);
	seam_strings_fini(&sources->tried);
	seam_pair_map_fini(&sources->announced);
	free(sources);
}

struct seam_jit_sources *
seam_jit_sources_new(struct seam_profile *profile,
		     const struct seam_jit_places *places)
{
	struct seam_jit_sources *sources = calloc(1, sizeof(*sources));

	if (!sources || seam_profile_own(profile, sources, free_sources))
		return NULL;
	sources->profile = profile;
	sources->places = *places;
	sources->code = seam_jit_code_new();
	profile->jit = sources;
	return sources->code ? sources : NULL;
}

/* Whether this file of this process has not been tried yet. */
static bool is_new(struct seam_jit_sources *sources, int32_t pid,
		   const char *path)
{
	size_t n = sources->tried.texts.n;
	char key[4200];

	snprintf(key, sizeof(key), "%" PRId32 " %s", pid, path);
	seam_strings_put(&sources->tried, key);
	return sources->tried.texts.n > n;
}

/* A note of why a file was rejected; none where there is no file. */
static void note_rejected(struct seam_jit_sources *sources, int32_t pid,
			  int why, const struct seam_err *err)
{
	if (why == -ENOENT || why == -ENOMEM)
		return;
	for (int i = 0; i < err->n_causes; i++)
		seam_profile_note(sources->profile,
				  "code of process %" PRId32 " not used: %s",
				  pid, err->cause[i]);
}

static int add(struct seam_jit_sources *sources, int32_t pid,
	       enum seam_jit_kind kind, const char *path,
	       struct seam_file *file)
{
	struct seam_file times = { 0 };
	struct seam_err err = { 0 };
	int r;

	/* lines of a map have times unless another clock was recorded */
	if (kind == SEAM_JIT_MAP && !sources->is_untimed)
		seam_jit_find_times(path, &times);
	if (kind == SEAM_JIT_MAP)
		r = seam_jit_code_add_map(sources->code, pid, file->bytes,
					  times.bytes, &err);
	else
		r = seam_jit_code_add_dump(sources->code, file->bytes,
			&(struct seam_jit_code_options) {
				.pid = pid, .first_ns = sources->first_ns,
				.last_ns = sources->last_ns,
				.is_untimed = sources->is_untimed,
			}, &err);
	seam_file_close(&times);
	/* Maps are copied; dumps are borrowed until the code is freed. */
	if (r == 0 && SEAM_ARRAY_ADD(&sources->files,
		(struct seam_jit_source_file) {
			.file = *file, .pid = pid,
			.path = seam_strings_put(&sources->profile->strings,
						 path),
		}))
		return 0;
	seam_file_close(file);
	note_rejected(sources, pid, r, &err);
	return r == -ENOMEM || r == 0 ? -ENOMEM : 0;
}

/* Whether the dump that @pid announced is absent; NULL: none was announced. */
static uint32_t *announced(struct seam_jit_sources *sources, int32_t pid)
{
	return seam_pair_map_find(&sources->announced, (uint32_t)pid, 0);
}

static int find(struct seam_jit_sources *sources,
		const struct seam_jit_places *places,
		const struct seam_jit_owner *owner, enum seam_jit_kind kind,
		const char *path)
{
	struct seam_err err = { 0 };
	struct seam_file file;
	char found[4096] = "=";		/* no path begins with it */
	int r = seam_jit_find(places, owner, kind, path, &file, found + 1,
			      sizeof(found) - 1, &err);

	/* Two markers of a process may lead to the same file. */
	if (r == 0 && !is_new(sources, owner->pid, found)) {
		seam_file_close(&file);
		return 0;
	}
	if (r == 0)
		return add(sources, owner->pid, kind, found + 1, &file);
	/* A map may not exist; a dump was announced by its marker. */
	if (r == -ENOENT && path) {
		*announced(sources, owner->pid) = true;
		seam_profile_note(sources->profile, "the jitdump of process %"
				  PRId32 " was not found: '%s'; --jit says "
				  "where it is", owner->pid, path);
		return 0;
	}
	note_rejected(sources, owner->pid, r, &err);
	return r == -ENOMEM ? r : 0;
}

/* A recording has the pids of an owner, but not its user or start time. */
static struct seam_jit_owner owner_of(int32_t pid)
{
	return (struct seam_jit_owner) { .pid = pid, .uid = (uid_t)-1 };
}

int seam_jit_sources_mapped(struct seam_jit_sources *sources, int32_t pid,
			    const char *path)
{
	struct seam_jit_owner owner = owner_of(pid);
	struct seam_jit_places second = sources->places;
	int r;

	if (!seam_jit_marker(path, &owner.inner_pid) ||
	    !is_new(sources, pid, path))
		return 0;
	if (!announced(sources, pid) &&
	    seam_pair_map_put(&sources->announced, (uint32_t)pid, 0, false))
		return -ENOMEM;
	r = find(sources, &sources->places, &owner, SEAM_JIT_DUMP, path);
	/* the file of a process that also streamed a dump to the recorder */
	second.is_second = true;
	return r || !second.bundle || !is_new(sources, pid, "second") ? r :
	       find(sources, &second, &owner, SEAM_JIT_DUMP, NULL);
}

int seam_jit_sources_anonymous(struct seam_jit_sources *sources, int32_t pid)
{
	struct seam_jit_owner owner = owner_of(pid);

	if (!is_new(sources, pid, "map"))
		return 0;
	return find(sources, &sources->places, &owner, SEAM_JIT_MAP, NULL);
}

static void note(void *context, int32_t pid, const char *text, uint64_t count,
		 bool is_corrected)
{
	struct seam_profile *profile = context;
	void (*put)(struct seam_profile *, const char *, ...) =
		is_corrected ? seam_profile_detail : seam_profile_note;
	char shown[200];

	put(profile, "JIT code of process %" PRId32 ": %s: %" PRIu64, pid,
	    seam_text_copy(shown, sizeof(shown), text, SEAM_TEXT_TERMINAL),
	    count);
}

int seam_jit_sources_seal(struct seam_jit_sources *sources)
{
	if (seam_jit_code_index(sources->code))
		return -ENOMEM;
	seam_jit_code_notes(sources->code, note, sources->profile);
	return 0;
}

/* -- hints -------------------------------------------------------------- */

/*
 * By the name of the process, which is that of its thread or its file.
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
	{ "ruby", "ruby --yjit --yjit-perf (3.3 and later)" },
	{ "java", "java -XX:+UnlockDiagnosticVMOptions "
	  "-XX:+PreserveFramePointer -XX:+DumpPerfMapAtExit" },
	{ "dotnet", "DOTNET_PerfMapEnabled=1 dotnet" },
	{ "mono", "mono --jitmap" },
	{ "lli", "lli -jit-kind=mcjit, built with LLVM_USE_PERF" },
	{ "postgres", "jit_profiling_support=on in postgresql.conf" },
	{ "julia", "ENABLE_JITPROFILING=1 julia" },
};

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static const char *flag_of(const char *name)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(runtimes); i++)
		if (begins(name, runtimes[i].name))
			return runtimes[i].how;
	return NULL;
}

/* Whether the recorded command has the options of @how already. */
static bool has_options(const struct seam_profile *profile, const char *how)
{
	const char *command = seam_profile_text(profile, profile->command);
	char word[64];
	bool has = false;

	for (size_t n; *how; how += n + (how[n] == ' ')) {
		n = strcspn(how, " ");
		snprintf(word, sizeof(word), "%.*s", (int)n, how);
		if (!strchr(word, '=') && strncmp(word, "-X", 2) != 0 &&
		    strncmp(word, "--", 2) != 0)
			continue;
		if (!strstr(command, word))
			return false;
		has = true;
	}
	return has;
}

enum { LUAJIT = -1 };	/* in the place of Python's version */

/* Samples of one process. */
struct count {
	uint64_t n;
	uint64_t n_jit;		/* in JIT code */
	uint64_t n_nameless;	/* ... without a name */
	uint64_t n_python;	/* in Python's interpreter */
	uint64_t n_luajit;	/* in LuaJIT's */
	int minor;		/* Python 3.MINOR */
	bool has_names;		/* some JIT code has a name */
};

/* "libluajit-5.1.so" as "luajit-5.1.so". */
static const char *program_of(const char *path)
{
	const char *at = basename(path);

	return at + (strncmp(at, "lib", strlen("lib")) == 0 ?
		     strlen("lib") : 0);
}

/* Python's version, or LUAJIT, by function: samples are many, functions few. */
static int *interpreters(const struct seam_profile *profile)
{
	int *minors = calloc(profile->functions.n + 1, sizeof(*minors));

	for (size_t i = 0; minors && i < profile->functions.n; i++) {
		const struct seam_function *f = &profile->functions.items[i];
		const char *name = program_of(seam_profile_path(profile,
								f->module));

		/* "python3.11", "python3.12.so.1.0": 11, 12 */
		if (f->layer == SEAM_LAYER_NATIVE)
			minors[i] = begins(name, "luajit") ? LUAJIT :
				    begins(name, "python3.") ?
				    atoi(name + strlen("python3.")) : 0;
	}
	return minors;
}

static void count_sample(const struct seam_profile *profile,
			 const int *minors, uint32_t stack, struct count *c)
{
	const struct seam_function *f;
	int minor;

	c->n++;
	if (stack == 0)
		return;
	f = seam_profile_leaf(profile, stack);
	minor = minors[f - profile->functions.items];
	if (f->layer == SEAM_LAYER_JIT) {
		c->n_jit++;
		c->n_nameless += !f->is_named;
		c->has_names |= f->is_named;
		return;
	}
	c->n_luajit += minor == LUAJIT;
	c->n_python += minor > 0;
	c->minor = minor > 0 ? minor : c->minor;
}

/* Source: What's New in Python 3.12, "perf profiler"; python(1). */
static void hint_python(struct seam_profile *profile, const struct count *c)
{
	/* below a fifth of its samples, the interpreter matters little */
	if (c->n_python * 5 < c->n || c->n_python < 10)
		return;
	/* names of -X perf trampolines: in stacks, but rarely the leaf */
	for (size_t i = 0; i < profile->functions.n; i++)
		if (begins(seam_profile_text(profile,
				profile->functions.items[i].name), "py::"))
			return;
	if (c->minor >= 12)
		seam_profile_note(profile, "Python's functions have names "
				  "with: -g and python3 -X perf");
	else
		seam_profile_note(profile, "Python 3.%d does not report the "
				  "names of its functions; 3.12 and later "
				  "do: python3 -X perf", c->minor);
}

/* It had no sampler: it ran before, or was started by what we do not read. */
static bool hint_luajit(struct seam_profile *profile, const struct count *c,
			const char *name)
{
	bool is_its_code = c->n_luajit || begins(program_of(name), "luajit");
	uint64_t n = is_its_code ? c->n_luajit + c->n_nameless : 0;

	if (n * 5 < c->n || n < 10)
		return false;
	for (size_t i = 0; i < profile->functions.n; i++)
		if (profile->functions.items[i].layer == SEAM_LAYER_GUEST)
			return false;
	seam_profile_note(profile, "'%s' runs LuaJIT without Lua stacks; a "
			  "program has them if it is started by: seam record "
			  "--layers=guest -- COMMAND", name);
	return true;
}

static void hint(struct seam_profile *profile,
		 struct seam_jit_sources *sources, uint32_t process,
		 const struct count *c)
{
	const struct seam_process *p = &profile->processes.items[process];
	const char *name = seam_profile_text(profile, p->name);
	const uint32_t *is_absent = announced(sources, p->pid);

	hint_python(profile, c);
	if (hint_luajit(profile, c, name) || !c->n_nameless ||
	    (is_absent && *is_absent))
		return;
	if (!is_absent && !c->has_names) {
		if (flag_of(name) && !has_options(profile, flag_of(name)))
			seam_profile_note(profile, "code compiled by '%s' has "
					  "no names; record it with: %s",
					  name, flag_of(name));
		return;
	}
	/* a twentieth: some code has no name in any runtime */
	if (c->n_nameless * 20 >= c->n_jit)
		seam_profile_note(profile, "the %s of '%s' (process %" PRId32
			") has no names for %" PRIu64 " %% of its samples in "
			"JIT code%s", is_absent ? "JIT's dump" : "perf map",
			name, p->pid, c->n_nameless * 100 / c->n_jit,
			p->end_ns == UINT64_MAX ? ": it had not written all "
			"of it when the recording ended" : "");
}

/* Samples with an ambiguous function, wherever it is in the stack. */
static void note_reuse(struct seam_profile *profile)
{
	const struct seam_samples *s = &profile->samples;
	bool *has, any = false;
	uint64_t n = 0;

	for (size_t i = 0; i < profile->functions.n; i++)
		any |= profile->functions.items[i].is_ambiguous;
	if (!any)
		return;
	has = calloc(profile->stacks.n + 1, sizeof(*has));
	/* A stack comes after its parent. */
	for (size_t i = 1; has && i < profile->stacks.n; i++)
		has[i] = has[profile->stacks.items[i].parent] ||
			 seam_profile_leaf(profile, (uint32_t)i)->is_ambiguous;
	for (size_t i = 0; has && i < s->n; i++)
		n += has[s->stack[i]];
	if (n)
		seam_profile_note(profile, "%" PRIu64 " samples at addresses "
				  "that a perf map names more than once, "
				  "without times: the last name is shown, "
				  "marked [address reused]", n);
	free(has);
}

void seam_jit_hint(struct seam_profile *profile,
		   struct seam_jit_sources *sources)
{
	const struct seam_samples *s = &profile->samples;
	struct count *counts = calloc(profile->processes.n + 1,
				      sizeof(*counts));
	int *minors = interpreters(profile);

	note_reuse(profile);
	for (size_t i = 0; counts && minors && i < s->n; i++)
		count_sample(profile, minors, s->stack[i],
			     &counts[profile->threads.items[
					s->thread[i]].process]);
	for (size_t i = 0; counts && minors && i < profile->processes.n; i++)
		hint(profile, sources, (uint32_t)i, &counts[i]);
	free(counts);
	free(minors);
}
