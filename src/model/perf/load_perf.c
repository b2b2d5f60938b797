/* SPDX-License-Identifier: MIT */
/*
 * load_perf.c - scan, replay, resolve: a perf.data file into a profile
 *
 * 1. Scan all records into columns (perf_scan.h).
 * 2. Join the parts of the scan (seam_scan_join()).
 * 3. Decode the side-band, find JIT code, count losses (sideband.h); replay.
 * 4. Unwind copies of stacks (stack_dumps.h).
 * 5. Join stacks that were cut with those of other samples (stack_joins.h).
 * 6. Set the thread, the thread's name and the stack of each sample
 *    (resolver.h).
 * 7. Make waits of switches (off_cpu.h).
 */
#include "model/perf/load_perf.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <time.h>

#include "base/progress.h"
#include "model/jit/jit_sources.h"
#include "model/perf/off_cpu.h"
#include "model/perf/perf_scan.h"
#include "model/perf/resolver.h"
#include "model/perf/sideband.h"
#include "model/perf/stack_dumps.h"
#include "symbol/jit/jit_code.h"

struct perf_loader {
	struct seam_profile *profile;
	const struct seam_perf_input *input;
	struct seam_symbols *symbols;	/* NULL: no samples */
	struct seam_perf_data data;
	struct seam_sideband sideband;
	struct seam_resolver resolver;
	struct seam_embedded embedded;
	struct seam_origin_ids own_ids;	/* for what has none */
	SEAM_ARRAY(struct seam_perf_scan) scans;
	struct seam_callchains chains;	/* of all scans */
	struct seam_cgroup_ids cgroups;	/* likewise */
	struct seam_stack_walks walks;	/* likewise; they borrow from scans */
	struct seam_guest_symbols guest;
	uint32_t guest_clock;	/* event of seam:guest; SEAM_NONE: itself */
};

/* -- notes -------------------------------------------------------------- */

static uint32_t put_text(struct seam_profile *p, const char *text)
{
	return seam_strings_put(&p->strings, text);
}

static void note_damage(struct seam_profile *p,
			   const struct seam_perf_scan *scan)
{
	uint32_t data = put_text(p, "data");

	if (scan->n_damaged)
		seam_profile_lost(p, "record damaged", data, scan->n_damaged,
				  0);
	if (scan->n_unknown)
		seam_profile_lost(p, "event not described", data,
				  scan->n_unknown, 0);
	if (scan->error == -EBADMSG || scan->error == -ENODATA) {
		seam_profile_lost(p, scan->error == -ENODATA ?
				  "file cut" : "record damaged", data, 0,
				  scan->limit - scan->stop);
		seam_profile_note(p, "reading stopped %" PRIu64 " bytes before "
				  "the end of the data: %s",
				  scan->limit - scan->stop,
				  scan->why.n_causes ? scan->why.cause[0] : "");
	}
}

/*
 * A ring that overwrites is never full: losses of its events, up to @n_paused,
 * are those of pauses.
 */
static void note_events(struct seam_profile *p, uint64_t n_paused)
{
	for (size_t i = 0; i < p->events.n; i++) {
		const struct seam_profile_event *event = &p->events.items[i];
		uint64_t paused = event->n_lost < n_paused ? event->n_lost :
				  n_paused;

		n_paused -= paused;
		if (paused)
			seam_profile_lost(p, "paused for a snapshot",
					  event->name, paused, 0);
		if (event->n_lost > paused)
			seam_profile_lost(p, "ring full", event->name,
					  event->n_lost - paused, 0);
	}
}

static void note_losses(const struct seam_sideband *sb, uint64_t n_paused)
{
	struct seam_profile *p = sb->profile;
	uint64_t n_events = 0;

	for (size_t i = 0; i < p->events.n; i++)
		n_events += p->events.items[i].n_lost;
	note_events(p, n_paused);
	if (sb->n_lost_ring > n_events)
		seam_profile_lost(p, "ring full", put_text(p, "any event"),
				  sb->n_lost_ring - n_events, 0);
	if (sb->is_throttled)
		seam_profile_note(p, "sampling was throttled: there are fewer "
				  "samples than the frequency asked for");
	if (sb->aux.n_bytes)
		seam_profile_note(p, "there is a hardware trace of %" PRIu64
			" bytes, which 'perf script --itrace' decodes",
			sb->aux.n_bytes);
	if (sb->aux.n_truncated)
		seam_profile_note(p, "its AUX buffer was full %" PRIu64
			" times: the hardware trace has gaps",
			sb->aux.n_truncated);
	if (sb->aux.n_other)
		seam_profile_note(p, "the PMU reports the hardware trace as "
			"partial in %" PRIu64 " places", sb->aux.n_other);
	if (sb->data->n_missing_bytes)
		seam_profile_lost(p, "file cut", put_text(p, "data"), 0,
				  sb->data->n_missing_bytes);
	if (sb->data->is_cut)
		seam_profile_note(p, "the recording was not closed: its writer "
				  "was killed, or the file is cut");
}

/* Guest stacks that end early, if they are many: most of them why? */
static void note_incomplete(struct seam_profile *p)
{
	const uint64_t *n = p->guest_counts.n_guest;
	uint64_t whole = seam_guest_counts_total(&p->guest_counts) -
			 n[SEAM_GUEST_ABSENT];
	size_t most = SEAM_GUEST_CUT;

	for (size_t i = most; i < SEAM_GUEST_N_ENDS; i++)
		if (n[i] > n[most])
			most = i;
	if (whole && n[SEAM_GUEST_COMPLETE] < whole - whole / 10)
		seam_profile_note(p, "%.1f %% of the VM stacks are complete; "
				  "most others: %s",
				  100 * (double)n[SEAM_GUEST_COMPLETE] /
				  (double)whole,
				  seam_guest_end_text((enum seam_guest_end)
						      most));
}

static void note_guest(struct seam_profile *p,
			  const struct seam_guest_symbols *symbols,
			  bool has_clock)
{
	const struct seam_guest_counts *counts = &p->guest_counts;

	if (counts->n_bad) {
		seam_profile_lost(p, "guest record damaged",
				  put_text(p, SEAM_GUEST_EVENT), 0, 0);
		seam_profile_note(p, "guest records that break their format: "
				  "%" PRIu64 "; samples with one show the "
				  "native stack alone", counts->n_bad);
	}
	if (symbols->n_nameless)
		seam_profile_note(p, "functions of VMs without names, whose "
				  "symbol records were lost: %" PRIu64,
				  symbols->n_nameless);
	if (seam_guest_counts_total(counts) && !has_clock)
		seam_profile_note(p, "no other clock was recorded: seam:guest "
				  "is an event of its own");
	note_incomplete(p);
}

/* -- what is missing ---------------------------------------------------- */

/* Files with a note of their own; the others share one. */
enum { MAX_NOTES = 8 };

struct missing_file {
	uint32_t path;		/* string */
	int why;		/* as in struct seam_module_state */
	uint64_t n_leaf;	/* samples in it */
	uint64_t n_callers;	/* samples with callers, but no leaf in it */
};

struct missing {
	const struct seam_resolver *resolver;
	struct seam_profile *profile;
	SEAM_ARRAY(struct missing_file) files;
	uint32_t *by_module;	/* of files, + 1; 0: not missing */
	uint32_t *by_stack;	/* the one nearest to its leaf, + 1 */
};

static const char *reason(int why)
{
	switch (why) {
	case -ESTALE:
		return "has changed since";
	case -EXDEV:
		return "has no build id and was recorded on another machine";
	case -ENOENT:
		return "is gone";
	}
	return NULL;
}

static bool collect(struct missing *m, bool is_here)
{
	const struct seam_resolver *r = m->resolver;

	for (size_t i = 0; i < r->files.n; i++) {
		const struct seam_profile_module *module =
			&m->profile->modules.items[i];
		uint32_t file = r->files.items[i];
		struct seam_module_state state;
		int why;

		seam_symbols_state(r->symbols, file - 1, &state);
		why = module->kind == SEAM_MODULE_FILE ? state.missing : 0;
		if (!reason(why) || (why == -ENOENT && !is_here))
			continue;
		if (!SEAM_ARRAY_ADD(&m->files, (struct missing_file) {
			module->path, why, 0, 0 }))
			return false;
		m->by_module[i] = (uint32_t)m->files.n;
	}
	return true;
}

/* The missing file that the leaf of @stack is in, + 1, or 0. */
static uint32_t leaf_file(const struct missing *m, uint32_t stack)
{
	const struct seam_profile *p = m->profile;

	return stack == 0 || seam_profile_leaf(p, stack)->is_named ? 0 :
	       m->by_module[p->frames.items[p->stacks.items[stack].frame]
			    .module];
}

static void count(struct missing *m)
{
	const struct seam_profile *p = m->profile;
	const struct seam_samples *s = &p->samples;

	/* parents come before their children */
	for (uint32_t i = 1; i < p->stacks.n; i++) {
		uint32_t file = leaf_file(m, i);

		m->by_stack[i] = file ? file :
				 m->by_stack[p->stacks.items[i].parent];
	}
	for (size_t i = 0; i < s->n; i++) {
		uint32_t file = m->by_stack[s->stack[i]];

		if (!file)
			continue;
		if (leaf_file(m, s->stack[i]))
			m->files.items[file - 1].n_leaf++;
		else
			m->files.items[file - 1].n_callers++;
	}
}

static int most_first(const void *a, const void *b)
{
	const struct missing_file *x = a, *y = b;

	return SEAM_COMPARE(y->n_leaf, x->n_leaf) ?:
	       SEAM_COMPARE(y->n_callers, x->n_callers) ?:
	       SEAM_COMPARE(x->path, y->path);
}

static void note_files(struct missing *m)
{
	uint64_t n_rest = 0;

	SEAM_ARRAY_SORT(&m->files, most_first);
	for (size_t i = 0; i < m->files.n; i++) {
		const struct missing_file *file = &m->files.items[i];
		uint64_t n = file->n_leaf ? file->n_leaf : file->n_callers;

		if (i >= MAX_NOTES)
			n_rest += file->n_leaf;
		else if (n)
			seam_profile_note(m->profile, "%" PRIu64 " sample%s "
				"without names%s: %s %s", n, n == 1 ? "" : "s",
				file->n_leaf ? "" : " of callers",
				seam_profile_text(m->profile, file->path),
				reason(file->why));
	}
	if (n_rest)
		seam_profile_note(m->profile, "%" PRIu64 " samples without "
				  "names: %zu more files have changed since, "
				  "or are not here", n_rest,
				  m->files.n - MAX_NOTES);
}

/*
 * A note for each file that was looked for and not found: how many samples have
 * no name because of it.  Reasons are another file at its path, and a recording
 * of another machine without build ids; where the recording was made on this
 * machine (@is_here), also a file that is gone.
 */
static void note_missing(const struct seam_resolver *resolver, bool is_here)
{
	struct missing m = {
		.resolver = resolver, .profile = resolver->profile,
	};

	m.by_module = calloc(m.profile->modules.n, sizeof(*m.by_module));
	if (m.by_module && collect(&m, is_here) && m.files.n)
		m.by_stack = calloc(m.profile->stacks.n + 1,
				    sizeof(*m.by_stack));
	if (m.by_stack) {
		count(&m);
		note_files(&m);
	}
	free(m.by_stack);
	free(m.by_module);
	free(m.files.items);
}

/* -- hints about stacks ------------------------------------------------- */

enum {
	MIN_SAMPLES = 20,	/* of fewer, a share means nothing */
	MIN_CUT_PERCENT = 10,	/* of stacks, for a note */
	/* Source: kernel.perf_event_max_stack, the default of the kernel. */
	MAX_STACK = 127,
};

/* How far a stack reaches outward. */
struct reach {
	uint32_t outermost;	/* frame; SEAM_NONE: none of user code */
	uint32_t n_user;	/* frames of user code */
	uint32_t n;
	bool is_complete;	/* it reaches the program's entry */
};

static bool begins_with_any(const char *text, const char *const *prefixes)
{
	for (; *prefixes; prefixes++)
		if (strncmp(text, *prefixes, strlen(*prefixes)) == 0)
			return true;
	return false;
}

static bool is_complete(const struct seam_profile *profile,
			const struct reach *reach)
{
	/* where processes, threads and the stacks of Go's scheduler begin */
	static const char *const entries[] = {
		"_start", "__libc_start", "_dl_start", "clone", "__clone",
		"start_thread", "thread_start", "__start_thread",
		"_rt0_", "runtime.", "ret_from_fork", NULL,
	};
	/* modules that start threads, so that no name is needed */
	static const char *const starters[] = {
		"libc.so", "libc-", "libpthread", "ld-linux", "ld-musl", NULL,
	};
	const struct seam_function *f =
		seam_profile_function_of(profile, reach->outermost);

	return reach->n >= MAX_STACK ||
	       begins_with_any(seam_profile_text(profile, f->name), entries) ||
	       (reach->n_user > 1 &&
		begins_with_any(basename(seam_profile_path(profile,
							   f->module)),
				starters));
}

/* Of each stack; parents come before their children.  NULL: no memory. */
static struct reach *measure(const struct seam_profile *profile)
{
	struct reach *reach = calloc(profile->stacks.n, sizeof(*reach));

	if (!reach)
		return NULL;
	reach[0].outermost = SEAM_NONE;
	for (size_t i = 1; i < profile->stacks.n; i++) {
		const struct seam_stack *stack = &profile->stacks.items[i];
		bool is_user = seam_profile_leaf(profile, (uint32_t)i)->layer !=
			       SEAM_LAYER_KERNEL;

		reach[i] = reach[stack->parent];
		reach[i].n++;
		reach[i].n_user += is_user;
		if (is_user && reach[i].outermost == SEAM_NONE)
			reach[i].outermost = stack->frame;
		reach[i].is_complete = reach[i].outermost != SEAM_NONE &&
				       is_complete(profile, &reach[i]);
	}
	return reach;
}

static void count_cut(struct seam_profile *profile, const struct reach *reach,
		      bool is_overwrite)
{
	const struct seam_samples *s = &profile->samples;
	uint64_t n_user = 0, n_cut = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct reach *r = &reach[s->stack[i]];

		if (r->outermost == SEAM_NONE)
			continue;
		n_user++;
		n_cut += !r->is_complete;
	}
	if (n_user >= MIN_SAMPLES && n_cut * 100 >= n_user * MIN_CUT_PERCENT)
		seam_profile_note(profile, "%" PRIu64 " %% of stacks are cut: "
			"no frame pointers (%s)", n_cut * 100 / n_user,
			is_overwrite ? "copies of stacks need rings of 256K "
				       "or more: -m" :
				       "seam record --call-graph auto");
}

void seam_stack_hint(struct seam_profile *profile, bool has_chains,
		     bool is_overwrite)
{
	struct reach *reach;

	if (!profile->samples.n)
		return;
	if (!has_chains) {
		seam_profile_note(profile, "stacks were not recorded, so each "
				  "total is a self: 'seam record' without "
				  "--call-graph none records them");
		return;
	}
	reach = measure(profile);
	if (reach)
		count_cut(profile, reach, is_overwrite);
	free(reach);
}

/* -- the header --------------------------------------------------------- */

/* A sample has 16 bits for its event. */
#define MAX_EVENTS (UINT16_MAX + 1)

static int add_events(struct perf_loader *l, struct seam_err *err)
{
	if (l->data.events.n > MAX_EVENTS)
		return seam_err_set(err, -EOVERFLOW, "%zu events, more than "
				    "the maximum of %d", l->data.events.n,
				    MAX_EVENTS);
	for (size_t i = 0; i < l->data.events.n; i++) {
		const struct seam_perf_event *from = &l->data.events.items[i];
		struct seam_profile_event to = {
			.name = seam_strings_put(&l->profile->strings,
						 from->name),
			.unit = seam_perf_attr_is_clock(&from->attr) ||
				seam_scan_guest_event(from) ==
					SEAM_GUEST_EVENT_SAMPLES ?
				SEAM_UNIT_NS : SEAM_UNIT_COUNT,
		};

		if (to.name == SEAM_NONE ||
		    !SEAM_ARRAY_ADD(&l->profile->events, to))
			return -ENOMEM;
	}
	return 0;
}

/* The ELF machine for a machine name of uname(2). */
static uint32_t elf_machine(const char *arch)
{
	static const struct { const char *name; uint32_t machine; } all[] = {
		{ "x86_64", EM_X86_64 }, { "aarch64", EM_AARCH64 },
		{ "riscv64", EM_RISCV }, { "ppc64le", EM_PPC64 },
		{ "ppc64", EM_PPC64 }, { "s390x", EM_S390 },
		{ "loongarch64", EM_LOONGARCH }, { "i686", EM_386 },
	};

	for (size_t i = 0; arch && i < SEAM_ARRAY_SIZE(all); i++)
		if (strcmp(all[i].name, arch) == 0)
			return all[i].machine;
	return EM_NONE;
}

/* CPUs that were there; 0: not recorded. */
static uint32_t n_cpus(const struct seam_perf_data *data)
{
	struct seam_cursor c = seam_cursor_over(
		data->features[SEAM_PERF_FEATURE_NRCPUS], data->endian);

	return seam_cursor_u32(&c);
}

static int read_header(struct perf_loader *l, struct seam_err *err)
{
	struct seam_strings *strings = &l->profile->strings;
	struct seam_profile *p = l->profile;
	struct seam_kernel kernel = l->input->kernel;
	char command[4096];
	int r = add_events(l, err);

	if (r)
		return r;
	l->sideband = (struct seam_sideband) {
		.profile = p, .data = &l->data,
		.vdso_build_id = l->input->vdso_build_id,
		.jit = seam_jit_sources_new(p, &l->input->jit),
		.origin = seam_origin_of(&l->data, l->input->manifest,
					 l->input->written_ns),
	};
	if (l->sideband.origin.has_clock)
		p->utc_ns = (int64_t)(l->sideband.origin.wall_ns -
				      l->sideband.origin.clock_ns);
	seam_origin_own_ids(&l->sideband.origin, &l->data, &l->own_ids);
	if (l->sideband.vdso_build_id.size == 0)
		l->sideband.vdso_build_id = (struct seam_bytes) {
			l->own_ids.vdso, l->own_ids.vdso_size,
		};
	if (!kernel.build_id && !(kernel.boot_id && *kernel.boot_id)) {
		kernel.build_id = l->own_ids.kernel;
		kernel.build_id_size = l->own_ids.kernel_size;
	}
	p->command = seam_strings_put(strings, seam_perf_data_command(
				&l->data, command, sizeof(command)));
	p->bundle = seam_strings_put(strings, l->input->jit.bundle);
	p->boot_id = seam_strings_put(strings, l->input->kernel.boot_id);
	p->elf_machine = elf_machine(seam_perf_data_string(&l->data,
						SEAM_PERF_FEATURE_ARCH));
	p->n_cpus = n_cpus(&l->data);
	return !l->sideband.jit || p->command == SEAM_NONE ||
	       p->bundle == SEAM_NONE || p->boot_id == SEAM_NONE ||
	       seam_sideband_init(&l->sideband, &kernel) ||
	       seam_embedded_read(&l->embedded, &l->data, strings) ?
	       -ENOMEM : 0;
}

/* -- records ------------------------------------------------------------ */

static int scan_file(struct perf_loader *l, struct seam_bytes bytes,
		     uint64_t begin, uint64_t end)
{
	size_t n = seam_perf_scan_parts(&l->data, begin, end);
	struct seam_perf_scan *scans;

	if (!SEAM_ARRAY_RESERVE(&l->scans, n))
		return -ENOMEM;
	scans = l->scans.items + l->scans.n;
	l->scans.n += n;
	return seam_perf_scan(&l->data, bytes, begin, end, scans, n,
			      !l->symbols ? SEAM_SCAN_TIMES :
			      l->input->by_record ? SEAM_SCAN_RECORDS :
			      SEAM_SCAN_SAMPLES);
}

/* First and last sample: older code of a jitdump is not of this recording. */
static void set_times(struct perf_loader *l)
{
	struct seam_jit_sources *jit = l->sideband.jit;

	/* the clock of jitdumps is CLOCK_MONOTONIC */
	for (size_t i = 0; i < l->data.events.n; i++) {
		const struct seam_perf_attr *attr =
			&l->data.events.items[i].attr;

		jit->is_untimed |= attr->clockid != CLOCK_MONOTONIC ||
			!seam_perf_attr_has(attr, SEAM_PERF_ATTR_USE_CLOCKID);
	}
	l->profile->has_other_clock = jit->is_untimed;
	jit->first_ns = UINT64_MAX;
	for (size_t i = 0; i < l->scans.n; i++) {
		const struct seam_perf_scan *scan = &l->scans.items[i];

		if (scan->first_ns < jit->first_ns)
			jit->first_ns = scan->first_ns;
		if (scan->last_ns > jit->last_ns)
			jit->last_ns = scan->last_ns;
	}
	if (jit->first_ns > jit->last_ns)
		jit->first_ns = jit->last_ns = 0;
	l->profile->start_ns = jit->first_ns;
	l->profile->end_ns = jit->last_ns;
}

static int take_sideband(struct perf_loader *l)
{
	struct seam_sideband *sb = &l->sideband;
	int r;

	set_times(l);
	r = seam_sideband_read(sb, l->scans.items, l->scans.n);
	for (size_t i = 0; l->symbols && i < l->scans.n; i++)
		note_damage(l->profile, &l->scans.items[i]);
	if (l->symbols)
		note_losses(sb, l->input->n_paused);
	if (r == 0 && l->input->manifest)
		r = seam_origin_identify_contents(l->profile,
						  l->input->manifest);
	return r;
}

/* -- samples ------------------------------------------------------------ */

/*
 * The event that counts the same as seam:guest, the CPU time of a thread: that
 * of a clock.  SEAM_NONE when @data has none.
 */
static uint32_t clock_of(const struct seam_perf_data *data)
{
	for (uint32_t i = 0; i < data->events.n; i++)
		if (seam_perf_attr_is_clock(&data->events.items[i].attr))
			return i;
	return SEAM_NONE;
}

/*
 * What the traced programs recorded about themselves.  Damaged symbols count
 * as damaged samples do.
 */
static int take_guest(struct perf_loader *l)
{
	struct seam_profile *p = l->profile;

	l->guest.names.profile = p;
	l->guest_clock = clock_of(&l->data);
	for (size_t i = 0; i < l->scans.n; i++) {
		const struct seam_scan_guest *g = &l->scans.items[i].guest;

		seam_guest_counts_merge(&p->guest_counts, &g->counts);
		for (size_t k = 0; k < g->symbols.n; k++) {
			int r = seam_guest_symbols_add(&l->guest,
					g->symbols.items[k].pid,
					g->symbols.items[k].raw, NULL);

			if (r == -ENOMEM)
				return r;
			p->guest_counts.n_bad += r != 0;
		}
	}
	return 0;
}

static uint32_t stack_of(struct perf_loader *l, struct seam_callchain *chain,
			 const struct seam_task_at *at, uint64_t time_ns)
{
	struct seam_resolver_where where = {
		.pid = chain->pid, .space = at->space, .time_ns = time_ns,
		.process = l->profile->threads.items[at->thread].process,
	};

	if (chain->space == at->space && time_ns >= chain->from_ns &&
	    time_ns < chain->to_ns)
		return chain->stack;
	chain->stack = seam_resolver_stack(&l->resolver,
			l->chains.words.items + chain->first, chain->n,
			&where);
	chain->space = at->space;
	chain->from_ns = where.from_ns;
	chain->to_ns = where.to_ns;
	return chain->stack;
}

static int resolve_samples(struct perf_loader *l)
{
	struct seam_samples *s = &l->profile->samples;
	struct seam_task_at at = { .key = SEAM_NONE };
	struct seam_progress progress;

	seam_resolver_expect(&l->resolver, &l->chains);
	seam_progress_begin(&progress, "resolving", s->n);
	for (size_t i = 0; i < s->n; i++) {
		if (!seam_task_at_holds(&at, s->thread[i], s->time_ns[i]))
			at = seam_tasks_find(&l->sideband.tasks, s->thread[i],
					     s->time_ns[i]);
		s->thread[i] = at.thread;
		if (!seam_samples_set_comm(l->profile, i, at.name))
			return -ENOMEM;
		s->stack[i] = stack_of(l, &l->chains.items.items[s->stack[i]],
				       &at, s->time_ns[i]);
		if (s->stack[i] == SEAM_NONE)
			return -ENOMEM;
		/* samples of seam:guest and of a clock are both CPU time */
		if (l->guest_clock != SEAM_NONE && seam_scan_guest_event(
				&l->data.events.items[s->event[i]]))
			s->event[i] = (uint16_t)l->guest_clock;
		l->profile->events.items[s->event[i]].n_samples++;
		if (i % 4096 == 4095)
			seam_progress_step(&progress, 4096);
	}
	seam_progress_end(&progress);
	return 0;
}

/* What the recorder knew of the walks over stacks, with common numbers. */
static int take_walks(struct perf_loader *l)
{
	l->walks = l->scans.items[0].walks;
	l->scans.items[0].walks = (struct seam_stack_walks) { 0 };
	for (size_t i = 1; i < l->scans.n; i++) {
		const struct seam_perf_scan *scan = &l->scans.items[i];
		size_t first = l->walks.n;

		if (!SEAM_ARRAY_EXTEND(&l->walks, scan->walks.items,
				       scan->walks.n))
			return -ENOMEM;
		for (size_t k = first; k < l->walks.n; k++)
			l->walks.items[k].sample +=
				(uint32_t)scan->first_sample;
	}
	return 0;
}

/*
 * Copies of stacks become callchains; stacks that were cut get the callers that
 * others of their thread have.
 */
static int unwind(struct perf_loader *l)
{
	struct seam_jit_code *code = l->sideband.jit->code;
	const struct seam_stack_dumps dumps = {
		.data = &l->data, .scans = l->scans.items,
		.n_scans = l->scans.n, .tasks = &l->sideband.tasks,
		.jit = seam_jit_code_count(code) ? code : NULL,
		.symbols = l->symbols, .profile = l->profile,
		.chains = &l->chains, .walks = &l->walks,
	};
	int r = seam_stack_dumps_unwind(&dumps);

	if (r == 0 && dumps.jit && l->walks.n)
		r = seam_jit_code_index(code);
	return r ? r : seam_stack_joins(l->profile, &l->chains,
					&l->sideband.tasks, dumps.jit,
					&l->walks, !l->input->no_joins &&
					!l->input->by_record);
}

/* A thread that no record names gets its number as a name, as in perf. */
static void name_unnamed_threads(struct seam_profile *profile)
{
	for (size_t i = 0; i < profile->threads.n; i++) {
		struct seam_thread *t = &profile->threads.items[i];
		struct seam_process *p = &profile->processes.items[t->process];
		char name[16];

		snprintf(name, sizeof(name), ":%" PRId32, t->tid);
		if (t->name == 0)
			t->name = seam_strings_put(&profile->strings,
				t->tid == 0 ? "swapper" : name);
		if (p->name == 0 && t->tid == p->pid)
			p->name = t->name;
	}
}

/* Note whether stacks were recorded and reach the entry of their thread. */
static void hint_stacks(struct perf_loader *l)
{
	bool has_chains = false, has_samples = false, is_overwrite = false;

	/* of stacks that were unwound more is known */
	if ((l->input->manifest &&
	     (seam_stack_counts_total(&l->input->manifest->stacks) ||
	      l->input->manifest->stacks.n_32_bit)) ||
	    seam_guest_counts_total(&l->profile->guest_counts) ||
	    l->walks.n)
		return;
	for (size_t i = 0; i < l->scans.n; i++)
		if (l->scans.items[i].dumps.n)
			return;
	for (size_t i = 0; i < l->data.events.n; i++) {
		const struct seam_perf_attr *attr = &l->data.events.items[i]
						    .attr;

		if (!l->profile->events.items[i].n_samples)
			continue;
		/* of a tracepoint, stacks may not be wanted */
		has_samples |= attr->type != PERF_TYPE_TRACEPOINT;
		has_chains |= (attr->sample_type & PERF_SAMPLE_CALLCHAIN) != 0;
		is_overwrite |= seam_perf_attr_has(attr,
				SEAM_PERF_ATTR_WRITE_BACKWARD);
	}
	if (has_chains || has_samples)
		seam_stack_hint(l->profile, has_chains, is_overwrite);
}

/* -- all of it ---------------------------------------------------------- */

/* Where switches were recorded. */
static int add_waits(struct perf_loader *l)
{
	const struct seam_manifest *m = l->input->manifest;
	const struct seam_off_cpu from = {
		.scans = l->scans.items, .n_scans = l->scans.n,
		.data = &l->data, .tasks = &l->sideband.tasks,
		.min_ns = m ? m->counts.n[SEAM_COUNT_OFF_CPU_MIN_NS] : 0,
		.begin_ns = m ? m->counts.n[SEAM_COUNT_OFF_CPU_FROM_NS] : 0,
		.end_ns = m && m->complete && !m->kernel_clock ?
			  m->start_ns + m->duration_ns : 0,
	};

	if (!l->symbols)
		return seam_off_cpu_read(l->profile, &from, l->input->waits);
	return l->input->by_record ? 0 : seam_off_cpu_add(l->profile, &from);
}

static int load_samples(struct perf_loader *l)
{
	struct seam_jit_sources *jit = l->sideband.jit;
	struct seam_profile *p = l->profile;
	int r = take_walks(l);

	if (r == 0)
		r = unwind(l);
	if (r == 0)
		r = take_guest(l);
	l->resolver = (struct seam_resolver) {
		.profile = l->profile, .symbols = l->symbols,
		.spaces = &l->sideband.tasks.spaces,
		.kernel = &l->sideband.tasks.kernel,
		.embedded = l->embedded.files.n ? &l->embedded : NULL,
		.jit = seam_jit_code_count(jit->code) ? jit : NULL,
		.guest = &l->guest, .all_unknown = l->input->by_record,
	};
	if (r == 0)
		r = seam_resolver_init(&l->resolver);
	name_unnamed_threads(l->profile);
	if (r == 0)
		r = seam_cgroups_name(p, &l->cgroups, &l->sideband.cgroups);
	if (r == 0)
		r = resolve_samples(l);
	if (r == 0)
		r = add_waits(l);
	if (r == 0)
		r = seam_cgroups_spread(p);
	if (r)
		return r;
	note_missing(&l->resolver,
		     l->sideband.origin.machine == SEAM_ORIGIN_HERE);
	seam_jit_hint(l->profile, l->sideband.jit);
	note_guest(l->profile, &l->guest, l->guest_clock != SEAM_NONE);
	hint_stacks(l);
	/* Until now, the time of a sample was its position in the file. */
	if (!(l->data.events.items[0].attr.sample_type & PERF_SAMPLE_TIME)) {
		seam_profile_note(p, "the recording has no times");
		if (p->samples.n)
			memset(p->samples.time_ns, 0, p->samples.n *
			       sizeof(*p->samples.time_ns));
		p->start_ns = p->end_ns = 0;
	}
	return 0;
}

static int load(struct perf_loader *l, struct seam_err *err)
{
	int r = read_header(l, err);

	if (r == 0)
		r = scan_file(l, l->data.bytes, l->data.data_begin,
			      l->data.data_end);
	for (size_t i = 0; r == 0 && i < l->input->n_parts; i++)
		r = scan_file(l, l->input->parts[i].bytes, 0,
			      l->input->parts[i].bytes.size);
	/* Joining adds the task keys to which the replay gives threads. */
	if (r == 0)
		r = seam_scan_join(l->scans.items, l->scans.n,
				   &(struct seam_scan_joined) {
					&l->profile->samples, &l->chains,
					&l->cgroups, &l->sideband.tasks });
	if (r == 0)
		r = take_sideband(l);
	if (r == 0 && l->symbols)
		r = load_samples(l);
	if (r == 0 && !l->symbols && l->input->waits)
		r = add_waits(l);
	return r;
}

int seam_load_perf(struct seam_profile *profile,
		   const struct seam_perf_input *input,
		   struct seam_symbols *symbols, struct seam_err *err)
{
	struct perf_loader l = {
		.profile = profile, .input = input, .symbols = symbols,
	};
	int r = seam_perf_data_open(&l.data, input->data->bytes, err);

	if (r == 0) {
		/* the recorder may have been killed */
		if (input->manifest)
			seam_perf_data_name_events(&l.data,
						   input->manifest->events,
						   input->manifest->n_events);
		r = load(&l, err);
		if (r == -ENOMEM)
			seam_err_no_memory(err);
	}
	for (size_t i = 0; i < l.scans.n; i++)
		seam_perf_scan_fini(&l.scans.items[i]);
	free(l.scans.items);
	free(l.walks.items);
	seam_callchains_fini(&l.chains);
	seam_cgroup_ids_fini(&l.cgroups);
	seam_resolver_fini(&l.resolver);
	seam_guest_symbols_fini(&l.guest);
	seam_sideband_fini(&l.sideband);
	seam_embedded_fini(&l.embedded);
	seam_perf_data_close(&l.data);
	return r;
}
