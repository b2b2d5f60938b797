/* SPDX-License-Identifier: MIT */
/* off_cpu.c - switches, stacks, samples; see off_cpu.h */
#include "model/perf/off_cpu.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "base/text.h"
#include "wire/perf/wait_events.h"

/* Short waits that begin in one of these are one sample. */
#define SLICE_NS UINT64_C(10000000)

/* A stack for a wait: a sample that was taken out. */
struct wait_stack {
	uint64_t time_ns;
	uint32_t thread;
	uint32_t stack;
	uint32_t cgroup;	/* string; 0: not known */
	uint8_t end;		/* enum seam_stack_end */
	bool is_read;		/* from outside, while the thread waited */
	uint64_t call;		/* then: of the system call; -1: of none */
};

/* Short waits of a thread, which are not added yet. */
struct short_waits {
	uint64_t from_ns;	/* of the first */
	uint64_t n, ns;
};

struct off_cpu {
	struct seam_profile *profile;
	const struct seam_off_cpu *from;
	uint64_t min_ns;
	struct seam_switches switches;
	struct seam_waits waits;
	SEAM_ARRAY(struct wait_stack) stacks;	/* by thread, then time */
	SEAM_ARRAY(struct seam_waking) wakings;	/* by tid, then time */
	struct short_waits *shorts;		/* by thread; twice */
	uint32_t events[2];			/* blocked, preempted */
	uint32_t short_stack, no_stack;
	uint32_t read_frame;			/* the leaf of such a stack */
	SEAM_ARRAY(uint32_t) reasons;		/* by stack, + 1; 0: not yet */
};

/* -- input -------------------------------------------------------------- */

static int take_switches(struct off_cpu *o)
{
	size_t n_seen = o->switches.items.n;

	for (size_t i = 0; i < o->from->n_scans; i++) {
		struct seam_switches *s = &o->from->scans[i].switches;

		if (!SEAM_ARRAY_EXTEND(&o->switches.items, s->items.items,
				       s->items.n))
			return -ENOMEM;
		free(s->items.items);
		*s = (struct seam_switches) { .items.n = 0 };
	}
	for (size_t i = n_seen; i < o->switches.items.n; i++) {
		struct seam_switch *s = &o->switches.items.items[i];

		if (s->kind != SEAM_SWITCH_LOST)
			s->thread = seam_tasks_find(o->from->tasks, s->thread,
						    s->time_ns).thread;
	}
	return 0;
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct wait_stack *x = a, *y = b;

	return SEAM_COMPARE(x->thread, y->thread) ?:
	       SEAM_COMPARE(x->time_ns, y->time_ns);
}

/* The thread of a stack that was read was blocked. */
static bool add_seen(struct off_cpu *o, size_t sample)
{
	const struct seam_samples *s = &o->profile->samples;

	return !o->from->begin_ns ||
	       SEAM_ARRAY_ADD(&o->switches.items, (struct seam_switch) {
			.time_ns = s->time_ns[sample],
			.thread = s->thread[sample],
			.kind = SEAM_SWITCH_SEEN });
}

/* Samples of the events with stacks become those; the others stay. */
static int take_stacks(struct off_cpu *o)
{
	const struct seam_perf_data *data = o->from->data;
	uint32_t at_switch = seam_scan_find_event(data, SEAM_SWITCH_STACK_EVENT);
	uint32_t read = seam_scan_find_event(data, SEAM_BLOCKED_STACK_EVENT);
	struct seam_samples *s = &o->profile->samples;
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (s->event[i] != at_switch && s->event[i] != read) {
			if (kept != i)
				seam_samples_move(s, kept, i);
			kept++;
			continue;
		}
		o->profile->events.items[s->event[i]].n_samples--;
		if (s->event[i] == read && !add_seen(o, i))
			return -ENOMEM;
		if (!SEAM_ARRAY_ADD(&o->stacks, (struct wait_stack) {
				.time_ns = s->time_ns[i],
				.thread = s->thread[i], .stack = s->stack[i],
				.end = s->end ? s->end[i] :
				       (uint8_t)SEAM_STACK_UNREPORTED,
				.is_read = s->event[i] == read,
				.cgroup = seam_samples_cgroup(s, i),
				.call = seam_samples_weight(s, i) }))
			return -ENOMEM;
	}
	s->n = kept;
	SEAM_ARRAY_SORT(&o->stacks, by_thread_and_time);
	return 0;
}

/* -- the stack of a wait ------------------------------------------------ */

/* How many stacks are of earlier threads, or of @thread up to @time_ns. */
static size_t stacks_until(const struct off_cpu *o, uint32_t thread,
			   uint64_t time_ns)
{
	const struct wait_stack *all = o->stacks.items;

	return SEAM_ARRAY_SEARCH(i, o->stacks.n, all[i].thread < thread ||
				 (all[i].thread == thread &&
				  all[i].time_ns <= time_ns));
}

/*
 * The kernel takes the sample first, then it writes the SWITCH record: the
 * stack is the last one between the record before and that of the wait.  One
 * that was read lies in the wait.  NULL: neither.
 */
static const struct wait_stack *stack_of(const struct off_cpu *o,
					 const struct seam_wait *wait)
{
	size_t i = stacks_until(o, wait->thread, wait->from_ns);
	const struct wait_stack *all = o->stacks.items, *one;

	for (size_t k = i; k-- > 0 && all[k].thread == wait->thread &&
	     all[k].time_ns > wait->ran_ns;)
		if (!all[k].is_read)
			return &all[k];
	for (; i < o->stacks.n; i++) {
		one = &all[i];
		if (one->thread != wait->thread || one->time_ns > wait->to_ns)
			break;
		if (one->is_read && one->call != SEAM_BLOCKED_NOT_READ)
			return one;
	}
	return NULL;
}

/* -- the reason --------------------------------------------------------- */

/*
 * Functions of the scheduler, and those that only call it: what waits is their
 * caller.  Source: Linux 6.18, kernel/sched/core.c and
 * kernel/time/sleep_timeout.c.
 */
static bool is_scheduler(const char *name)
{
	static const char *const prefixes[] = {
		"schedule", "__schedule", "io_schedule", "preempt_schedule",
		"__cond_resched", "_cond_resched", "cond_resched",
		"dynamic_cond_resched", "finish_task_switch",
		"__perf_event_task_sched_out", "perf_",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* A string, without what a compiler added: "poll_schedule_timeout". */
static uint32_t find_reason(struct off_cpu *o, uint32_t stack)
{
	struct seam_profile *p = o->profile;
	const struct seam_function *f;
	const char *name;
	char text[256];

	for (; stack; stack = p->stacks.items[stack].parent) {
		f = seam_profile_leaf(p, stack);
		name = seam_profile_text(p, f->name);
		if (f->layer != SEAM_LAYER_KERNEL)
			return 0;
		if (!f->is_named || is_scheduler(name))
			continue;
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, "."),
			 name);
		return seam_strings_put(&p->strings, text);
	}
	return 0;
}

/* The same from a column; SEAM_NONE: no memory. */
static uint32_t reason_of(struct off_cpu *o, uint32_t stack)
{
	while (o->reasons.n <= stack)
		if (!SEAM_ARRAY_ADD(&o->reasons, 0))
			return SEAM_NONE;
	if (!o->reasons.items[stack])
		o->reasons.items[stack] = find_reason(o, stack) + 1;
	return o->reasons.items[stack] - 1;
}

/*
 * System calls that wait, by their numbers on this machine; a stack is only
 * read, and its file only unwound, on x86-64.
 */
#define CALL(name) { SYS_##name, #name "()" }
static const struct {
	uint64_t number;
	const char *name;
} calls[] = {
	CALL(read), CALL(write), CALL(readv), CALL(writev), CALL(pread64),
	CALL(pwrite64), CALL(preadv), CALL(pwritev), CALL(preadv2),
	CALL(pwritev2), CALL(ppoll), CALL(pselect6), CALL(epoll_pwait),
	CALL(futex), CALL(nanosleep), CALL(clock_nanosleep), CALL(wait4),
	CALL(waitid), CALL(accept), CALL(accept4), CALL(connect),
	CALL(recvfrom), CALL(recvmsg), CALL(recvmmsg), CALL(sendto),
	CALL(sendmsg), CALL(sendmmsg), CALL(fsync), CALL(fdatasync),
	CALL(sync_file_range), CALL(openat), CALL(unlinkat), CALL(renameat2),
	CALL(flock), CALL(fcntl), CALL(semtimedop), CALL(msgrcv), CALL(msgsnd),
	CALL(rt_sigtimedwait), CALL(rt_sigsuspend), CALL(io_uring_enter),
	CALL(io_getevents), CALL(sendfile), CALL(splice), CALL(copy_file_range),
	CALL(munmap), CALL(mmap), CALL(mprotect), CALL(madvise), CALL(msync),
	CALL(getdents64), CALL(execve), CALL(exit_group), CALL(ioctl),
	CALL(tgkill), CALL(kill), CALL(getrandom),
#ifdef SYS_poll		/* not on newer machines */
	CALL(poll), CALL(select), CALL(epoll_wait), CALL(pause), CALL(open),
	CALL(unlink), CALL(rename),
#endif
};
#undef CALL

/* A string: of the system call that waits. */
static uint32_t call_reason(struct off_cpu *o, uint64_t number)
{
	struct seam_strings *strings = &o->profile->strings;
	char text[48];

	if (number == UINT64_MAX)
		return seam_strings_put(strings, "[page fault or stop]");
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(calls); i++)
		if (calls[i].number == number)
			return seam_strings_put(strings, calls[i].name);
	snprintf(text, sizeof(text), "[system call %" PRIu64 "]", number);
	return seam_strings_put(strings, text);
}

/* -- the waker ---------------------------------------------------------- */

static int by_tid_and_time(const void *a, const void *b)
{
	const struct seam_waking *x = a, *y = b;

	return SEAM_COMPARE(x->tid, y->tid) ?:
	       SEAM_COMPARE(x->time_ns, y->time_ns);
}

static int take_wakings(struct off_cpu *o)
{
	for (size_t i = 0; i < o->from->n_scans; i++)
		if (!SEAM_ARRAY_EXTEND(&o->wakings,
				       o->from->scans[i].wakings.items,
				       o->from->scans[i].wakings.n))
			return -ENOMEM;
	SEAM_ARRAY_SORT(&o->wakings, by_tid_and_time);
	return 0;
}

/*
 * A string, "NAME TID"; 0: not known.  Of a thread that was preempted there is
 * none: it needed nobody.  A wait that has ended, without a waking in it, was
 * ended by one on another CPU while its thread was on the way out.
 * Source: Linux 6.18, try_to_wake_up(): it traces first, then it waits until
 * the thread is off its CPU.
 */
static uint32_t waker_of(struct off_cpu *o, const struct seam_wait *wait)
{
	const struct seam_waking *all = o->wakings.items;
	struct seam_profile *p = o->profile;
	int32_t tid = p->threads.items[wait->thread].tid;
	size_t i = SEAM_ARRAY_SEARCH(k, o->wakings.n, all[k].tid < tid ||
				     (all[k].tid == tid &&
				      all[k].time_ns <= wait->to_ns));
	const struct seam_thread *by;
	struct seam_task_at at;
	char text[80];

	if (i == 0 || all[i - 1].tid != tid || wait->is_preempted ||
	    all[i - 1].time_ns < (wait->is_open ? wait->from_ns :
				  wait->ran_ns))
		return 0;
	if (all[i - 1].by == SEAM_NONE)
		return seam_strings_put(&p->strings, "[interrupt]");
	at = seam_tasks_find(o->from->tasks, all[i - 1].by, all[i - 1].time_ns);
	by = &p->threads.items[at.thread];
	/* a thread that was not recorded has its number as its name */
	snprintf(text, sizeof(text), at.name ? "%s %" PRId32 : "%s",
		 seam_profile_text(p, at.name ? at.name : by->name), by->tid);
	return seam_strings_put(&p->strings, text);
}

/* -- samples ------------------------------------------------------------ */

/* A sample that is made of @n waits. */
struct made_sample {
	const struct seam_wait *wait;	/* the first */
	uint64_t n, ns;
	uint32_t stack, cgroup;
	uint8_t end;
	enum seam_wait_stack kind;
	uint64_t call;		/* of a stack that was read */
};

static int add_sample(struct off_cpu *o, const struct made_sample *made)
{
	const struct seam_wait *wait = made->wait;
	struct seam_profile *p = o->profile;
	struct seam_samples *s = &p->samples;
	uint32_t id = o->events[wait->is_preempted], reason, waker;
	struct seam_profile_event *event = &p->events.items[id];
	size_t i = s->n;

	event->n_samples += made->n;
	event->waits.n[made->kind] += made->n;
	event->waits.ns[made->kind] += made->ns;
	reason = made->kind == SEAM_WAIT_STACK_SHORT ?
		 seam_profile_leaf(p, made->stack)->name :
		 made->kind == SEAM_WAIT_STACK_READ ?
		 call_reason(o, made->call) : reason_of(o, made->stack);
	waker = !o->wakings.n ? 0 : made->kind == SEAM_WAIT_STACK_SHORT ?
		reason : waker_of(o, wait);
	if (reason == SEAM_NONE || waker == SEAM_NONE ||
	    !seam_samples_reserve(s, 1))
		return -ENOMEM;
	s->time_ns[i] = wait->from_ns;
	s->thread[i] = wait->thread;
	s->stack[i] = made->stack;
	s->cpu[i] = wait->cpu;
	s->event[i] = (uint16_t)id;
	return seam_samples_set_weight(s, i, made->ns) &&
	       seam_samples_set_count(s, i, made->n) &&
	       seam_samples_set_wait(s, i, reason) &&
	       seam_samples_set_waker(s, i, waker) &&
	       seam_samples_set_cgroup(s, i, made->cgroup) &&
	       seam_samples_set_comm(p, i, seam_tasks_name(o->from->tasks,
					wait->thread, wait->from_ns)) &&
	       (!s->end || seam_samples_set_end(s, i, made->end)) &&
	       ++s->n ? 0 : -ENOMEM;
}

/* Add the short waits of a thread, if there are any. */
static int add_shorts(struct off_cpu *o, uint32_t thread, bool is_preempted)
{
	struct short_waits *w = &o->shorts[2 * thread + is_preempted];
	const struct seam_wait wait = {
		.from_ns = w->from_ns, .thread = thread, .cpu = UINT16_MAX,
		.is_preempted = is_preempted,
	};
	const struct made_sample made = {
		.wait = &wait, .n = w->n, .ns = w->ns, .stack = o->short_stack,
		.end = (uint8_t)SEAM_STACK_UNREPORTED,
		.kind = SEAM_WAIT_STACK_SHORT,
	};

	*w = (struct short_waits) { .n = 0 };
	return made.n ? add_sample(o, &made) : 0;
}

static int add_short(struct off_cpu *o, const struct seam_wait *wait)
{
	struct short_waits *w = &o->shorts[2 * wait->thread +
					   wait->is_preempted];
	int r = 0;

	if (w->n && w->from_ns / SLICE_NS != wait->from_ns / SLICE_NS)
		r = add_shorts(o, wait->thread, wait->is_preempted);
	if (!w->n)
		w->from_ns = wait->from_ns;
	w->n++;
	w->ns += wait->to_ns - wait->from_ns;
	return r;
}

static int add_wait(struct off_cpu *o, const struct seam_wait *wait)
{
	struct seam_wait_counts *counts = &o->profile->events.items[
		o->events[wait->is_preempted]].waits;
	const struct wait_stack *stack;
	struct made_sample made = {
		.wait = wait, .n = 1, .ns = wait->to_ns - wait->from_ns,
		.stack = o->no_stack, .end = (uint8_t)SEAM_STACK_UNREPORTED,
		.kind = SEAM_WAIT_STACK_UNKNOWN,
	};

	if (wait->is_open) {
		counts->n_open++;
		counts->open_ns += made.ns;
	} else if (made.ns < o->min_ns) {
		return add_short(o, wait);
	}
	stack = stack_of(o, wait);
	if (stack) {
		made.stack = !stack->is_read ? stack->stack :
			     seam_profile_stack(o->profile, stack->stack,
						o->read_frame);
		made.cgroup = stack->cgroup;
		made.end = stack->end;
		made.call = stack->call;
		made.kind = stack->is_read ? SEAM_WAIT_STACK_READ :
			    SEAM_WAIT_STACK_RECORDED;
	}
	return made.stack == SEAM_NONE ? -ENOMEM : add_sample(o, &made);
}

static int add_waits(struct off_cpu *o)
{
	int r = 0;

	for (size_t i = 0; i < o->waits.items.n && r == 0; i++)
		r = add_wait(o, &o->waits.items.items[i]);
	for (uint32_t t = 0; t < o->profile->threads.n && r == 0; t++) {
		r = add_shorts(o, t, false);
		if (r == 0)
			r = add_shorts(o, t, true);
	}
	return r;
}

/* -- all of it ---------------------------------------------------------- */

/* A stack of one frame, a word in brackets. */
static uint32_t marker_stack(struct seam_profile *p, const char *text)
{
	uint32_t frame = seam_profile_marker(p, text);

	return frame == SEAM_NONE ? frame : seam_profile_stack(p, 0, frame);
}

/* "1ms", "250us", "1500ns". */
static void put_time(char *buf, size_t cap, uint64_t ns)
{
	static const struct { uint64_t ns; const char *unit; } units[] = {
		{ 1000000000, "s" }, { 1000000, "ms" }, { 1000, "us" },
		{ 1, "ns" },
	};
	size_t i = 0;

	while (ns % units[i].ns)
		i++;
	snprintf(buf, cap, "%" PRIu64 "%s", ns / units[i].ns, units[i].unit);
}

static int prepare(struct off_cpu *o)
{
	static const char *const names[] = { "off-cpu", "preempted" };
	struct seam_profile *p = o->profile;
	char min[32], text[80];

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++) {
		o->events[i] = (uint32_t)p->events.n;
		if (!SEAM_ARRAY_ADD(&p->events, (struct seam_profile_event) {
				.name = seam_strings_put(&p->strings, names[i]),
				.unit = SEAM_UNIT_NS, .is_wait = true,
				.is_preempted = i == 1 }))
			return -ENOMEM;
	}
	put_time(min, sizeof(min), o->min_ns);
	snprintf(text, sizeof(text), "[waits shorter than %s]", min);
	o->short_stack = marker_stack(p, text);
	o->no_stack = marker_stack(p, "[stack not recorded]");
	o->shorts = calloc(2 * p->threads.n + 2, sizeof(*o->shorts));
	o->read_frame = seam_profile_marker(p, "[read while it waited]");
	return o->short_stack == SEAM_NONE || o->no_stack == SEAM_NONE ||
	       o->read_frame == SEAM_NONE || !o->shorts ? -ENOMEM : 0;
}

/* Before waits are added: how many threads ran at each sample. */
static int set_running(struct off_cpu *o)
{
	struct seam_samples *s = &o->profile->samples;

	for (size_t i = 0; i < s->n; i++) {
		uint16_t n = seam_switches_running(&o->switches, s->time_ns[i]);

		/* the thread of the sample ran, whatever is missing */
		if (!seam_samples_set_running(s, i, n ? n : 1))
			return -ENOMEM;
	}
	return 0;
}

/* What threads did while records are missing is a loss, in ns. */
static void note_unknown(struct seam_profile *p)
{
	uint64_t ns = 0, n = 0;

	for (size_t i = 0; i < p->thread_times.n; i++) {
		ns += p->thread_times.items[i].unknown_ns;
		n += p->thread_times.items[i].unknown_ns != 0;
	}
	if (!ns)
		return;
	seam_profile_lost(p, "switches missing",
			  seam_strings_put(&p->strings, SEAM_SWITCH_EVENT), 0,
			  0);
	seam_profile_note(p, "whether %" PRIu64 " thread%s ran or waited is not "
			  "known for %.3f ms: switches are missing", n,
			  n == 1 ? "" : "s", (double)ns / 1e6);
}

static int replay(struct off_cpu *o)
{
	struct seam_profile *p = o->profile;
	uint64_t end_ns = o->from->end_ns > p->end_ns ? o->from->end_ns :
			  p->end_ns;
	int r = take_switches(o);

	if (o->from->begin_ns &&
	    (!p->start_ns || o->from->begin_ns < p->start_ns))
		p->start_ns = o->from->begin_ns;
	return r ? r : seam_switches_replay(&o->switches, p,
					    o->from->begin_ns ?: p->start_ns,
					    end_ns, &o->waits);
}

static int make(struct off_cpu *o)
{
	struct seam_profile *p = o->profile;
	int r = take_stacks(o);

	if (r == 0)
		r = take_wakings(o);
	if (r == 0)
		r = replay(o);
	if (r == 0)
		r = set_running(o);
	if (r == 0)
		r = prepare(o);
	if (r == 0)
		r = add_waits(o);
	if (r == 0)
		note_unknown(p);
	for (size_t i = 0; i < o->waits.items.n; i++)
		if (o->waits.items.items[i].to_ns > p->end_ns)
			p->end_ns = o->waits.items.items[i].to_ns;
	return r;
}

int seam_off_cpu_add(struct seam_profile *profile,
		     const struct seam_off_cpu *from)
{
	struct off_cpu o = {
		.profile = profile, .from = from,
		.min_ns = from->min_ns ? from->min_ns : SEAM_WAIT_MIN_NS,
	};
	int r = 0;

	/* a sample has 16 bits for its event */
	if (seam_scan_find_event(from->data, SEAM_SWITCH_EVENT) != SEAM_NONE &&
	    profile->events.n + SEAM_ARRAY_SIZE(o.events) <= UINT16_MAX)
		r = make(&o);
	free(o.switches.items.items);
	free(o.waits.items.items);
	free(o.stacks.items);
	free(o.wakings.items);
	free(o.shorts);
	free(o.reasons.items);
	return r;
}

int seam_off_cpu_read(struct seam_profile *profile,
		      const struct seam_off_cpu *from,
		      struct seam_waits *waits)
{
	struct off_cpu o = { .profile = profile, .from = from };
	int r = 0;

	if (seam_scan_find_event(from->data, SEAM_SWITCH_EVENT) != SEAM_NONE)
		r = replay(&o);
	note_unknown(profile);
	free(o.switches.items.items);
	*waits = o.waits;
	seam_waits_sort(waits);
	return r;
}
