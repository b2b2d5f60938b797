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
#include "model/perf/perf_notes.h"
#include "model/perf/perf_scan.h"
#include "model/perf/resolver.h"
#include "model/perf/stack_dumps.h"
#include "symbol/jit/jit_placements.h"

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
	struct seam_stack_walks walks;	/* likewise; they borrow from scans */
	struct seam_guest_symbols guest;
	uint32_t guest_clock;	/* event of seam:guest; SEAM_NONE: itself */
};

/* -- the header --------------------------------------------------------- */

/* A sample has 16 bits for its event. */
#define MAX_EVENTS (UINT16_MAX + 1)

static bool is_clock(const struct seam_perf_event *event)
{
	return seam_perf_attr_is_clock(&event->attr) ||
	       seam_scan_guest_event(event) == SEAM_GUEST_EVENT_SAMPLES;
}

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
			.unit = is_clock(from) ? SEAM_UNIT_NS :
				SEAM_UNIT_COUNT,
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

static int scan_all(struct perf_loader *l)
{
	int r = scan_file(l, l->data.bytes, l->data.data_begin,
			  l->data.data_end);

	for (size_t i = 0; r == 0 && i < l->input->n_parts; i++)
		r = scan_file(l, l->input->parts[i].bytes, 0,
			      l->input->parts[i].bytes.size);
	return r;
}

/* Whether all times are of CLOCK_MONOTONIC, the clock of jitdumps. */
static bool is_monotonic(const struct seam_perf_data *data)
{
	for (size_t i = 0; i < data->events.n; i++) {
		const struct seam_perf_attr *attr =
			&data->events.items[i].attr;

		if (!seam_perf_attr_has(attr, SEAM_PERF_ATTR_USE_CLOCKID) ||
		    attr->clockid != CLOCK_MONOTONIC)
			return false;
	}
	return true;
}

/* First and last sample: older code of a jitdump is not of this recording. */
static void set_times(struct perf_loader *l)
{
	struct seam_jit_sources *jit = l->sideband.jit;

	jit->is_untimed = !is_monotonic(&l->data);
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

/* Of @scan, the BUILD_ID records or all others. */
static void take_records(struct seam_sideband *sb, struct seam_perf_scan *scan,
			 bool build_ids)
{
	for (size_t k = 0; k < scan->sideband.n && sb->error == 0; k++) {
		const struct seam_sideband_record *r = &scan->sideband.items[k];
		bool is_id = r->record.type == SEAM_PERF_HEADER_BUILD_ID;

		if (is_id == build_ids &&
		    !(is_id ? seam_sideband_build_id(sb, &r->record) :
		      seam_sideband_take(sb, r)))
			scan->n_damaged++;
	}
}

static int take_sideband(struct perf_loader *l)
{
	struct seam_sideband *sb = &l->sideband;

	set_times(l);
	for (size_t i = 0; i < l->scans.n; i++)
		take_records(sb, &l->scans.items[i], true);
	for (size_t i = 0; i < l->scans.n && sb->error == 0; i++) {
		struct seam_perf_scan *scan = &l->scans.items[i];

		take_records(sb, scan, false);
		if (l->symbols)
			seam_perf_note_damage(l->profile, scan);
	}
	if (l->symbols)
		seam_perf_note_losses(sb, l->input->n_paused);
	if (sb->error == 0 && l->input->manifest)
		sb->error = seam_origin_identify_contents(l->profile,
							l->input->manifest);
	return sb->error;
}

/* -- samples ------------------------------------------------------------ */

/*
 * What the traced programs recorded about themselves.  Damaged symbols count
 * as damaged samples do.
 */
static int take_guest(struct perf_loader *l)
{
	struct seam_profile *p = l->profile;

	l->guest.names.profile = p;
	l->guest_clock = seam_scan_guest_clock(&l->data);
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

/* Samples of seam:guest and those of a clock are of one kind: CPU time. */
static uint16_t event_of(const struct perf_loader *l, uint16_t event)
{
	return l->guest_clock != SEAM_NONE &&
	       seam_scan_guest_event(&l->data.events.items[event]) ?
	       (uint16_t)l->guest_clock : event;
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

	seam_expected_make(&l->resolver.expected, &l->chains);
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
		s->event[i] = event_of(l, s->event[i]);
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

/* Copies of stacks become callchains. */
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

	if (!seam_stack_dumps_exist(&dumps))
		return 0;
	if (seam_stack_dumps_supported(&dumps))
		return seam_stack_dumps_unwind(&dumps);
	seam_profile_note(l->profile, "stack dumps of this architecture are "
			  "not unwound: their samples show the innermost "
			  "user function");
	return 0;
}

/* Stacks that were cut get the callers that others of their thread have. */
static int join_stacks(struct perf_loader *l)
{
	struct seam_jit_code *code = l->sideband.jit->code;
	bool has_code = seam_jit_code_count(code) > 0;

	if (has_code && l->walks.n && seam_jit_code_index(code))
		return -ENOMEM;
	return seam_stack_joins(l->profile, &l->chains, &l->sideband.tasks,
				has_code ? code : NULL, &l->walks,
				!l->input->no_joins && !l->input->by_record);
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

static int init_resolver(struct perf_loader *l)
{
	struct seam_jit_sources *jit = l->sideband.jit;

	l->resolver = (struct seam_resolver) {
		.profile = l->profile, .symbols = l->symbols,
		.spaces = &l->sideband.tasks.spaces,
		.kernel = &l->sideband.tasks.kernel,
		.embedded = l->embedded.files.n ? &l->embedded : NULL,
		.jit = seam_jit_code_count(jit->code) ? jit : NULL,
		.guest = &l->guest, .all_unknown = l->input->by_record,
	};
	return seam_resolver_init(&l->resolver);
}

/* Until now, the time of a sample was its position in the file. */
static void forget_times(struct seam_profile *profile)
{
	struct seam_samples *s = &profile->samples;

	seam_profile_note(profile, "the recording has no times");
	if (s->n)
		memset(s->time_ns, 0, s->n * sizeof(*s->time_ns));
	profile->start_ns = profile->end_ns = 0;
}

/* Set when each code object was replaced. */
static int set_code_ends(struct seam_profile *p)
{
	struct seam_jit_code *jit = p->jit->code;
	uint64_t *ends = p->code_objects.n == 0 ? NULL :
		calloc(seam_jit_code_count(jit), sizeof(*ends));
	int r = 0;

	if (p->code_objects.n)
		r = ends ? seam_jit_placements_ends(jit, ends) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < p->code_objects.n; i++)
		p->code_objects.items[i].to_ns =
			ends[p->code_objects.items[i].object];
	free(ends);
	return r;
}

/* -- notes -------------------------------------------------------------- */

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

static int load_samples(struct perf_loader *l)
{
	int r = take_walks(l);

	if (r == 0)
		r = unwind(l);
	if (r == 0)
		r = join_stacks(l);
	if (r == 0)
		r = take_guest(l);
	if (r == 0)
		r = init_resolver(l);
	name_unnamed_threads(l->profile);
	if (r == 0)
		r = resolve_samples(l);
	if (r == 0)
		r = set_code_ends(l->profile);
	if (r)
		return r;
	seam_missing_note(&l->resolver, l->sideband.origin.machine ==
					SEAM_ORIGIN_HERE);
	seam_jit_hint(l->profile, l->sideband.jit);
	seam_perf_note_guest(l->profile, &l->guest,
			     l->guest_clock != SEAM_NONE);
	hint_stacks(l);
	if (!(l->data.events.items[0].attr.sample_type & PERF_SAMPLE_TIME))
		forget_times(l->profile);
	return 0;
}

static int load(struct perf_loader *l, struct seam_err *err)
{
	int r = read_header(l, err);

	if (r == 0)
		r = scan_all(l);
	/* Joining adds the task keys to which the replay gives threads. */
	if (r == 0)
		r = seam_scan_join(l->scans.items, l->scans.n,
				   &l->profile->samples, &l->chains,
				   &l->sideband.tasks);
	if (r == 0)
		r = take_sideband(l);
	if (r == 0)
		r = seam_sideband_seal(&l->sideband);
	if (r == 0 && l->symbols)
		r = load_samples(l);
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
	seam_resolver_fini(&l.resolver);
	seam_guest_symbols_fini(&l.guest);
	seam_sideband_fini(&l.sideband);
	seam_embedded_fini(&l.embedded);
	seam_perf_data_close(&l.data);
	return r;
}
