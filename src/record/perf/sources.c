/* SPDX-License-Identifier: MIT */
/* sources.c - open, map, enable, count; see sources.h */
#include "record/perf/sources.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "record/proc/cgroup.h"
#include "record/proc/procfs.h"

enum {
	/*
	 * Wakeup at an eighth of a small ring, at a quarter of one of samples:
	 * the rest may fill before the recorder runs.
	 */
	SMALL_WAKEUP_BYTES = SEAM_SOURCES_SMALL_RING_BYTES / 8,
	/* Half of the smallest ring that a user without privileges has. */
	SWITCH_WAKEUP_BYTES = 32 * 1024,
	WAKEUP_PART = 4,
	COPY_PART = 32,		/* a copy of a stack, of a small ring */
	MAX_IN_GROUP = 64,
	MAX_COUNTS = 1 + 3 * MAX_IN_GROUP,	/* words from a read() */
};

const struct seam_perf_attr seam_sources_common = {
	.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
		       PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
		       PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD,
	.flags = UINT64_C(1) << SEAM_PERF_ATTR_SAMPLE_ID_ALL,
};

/* Where an event is opened. */
struct cpu_and_thread {
	int tid, cpu;
};

/* ---- do without what the kernel refuses, step by step ---- */

/*
 * Where a recording is useful without the refused feature, it goes on, and the
 * feature is noted as left out: samples of the kernel for a user without the
 * privilege, features newer than the kernel.
 */

const char *seam_left_out_name(int bit_index)
{
	static const char *const names[] = {
		"kernel", "build-ids", "lost-counts", "ksymbols", "ring-space",
		"stack-copies", "switch-stacks", "wakers",
	};

	return (size_t)bit_index < SEAM_ARRAY_SIZE(names) ?
	       names[bit_index] : NULL;
}

/* Tried in this order: the newest feature of the kernel first. */
static const struct step {
	int code, other_code;	/* errno of the kernel */
	unsigned int left_out;	/* enum seam_left_out; 0: lower precision */
} steps[] = {
	{ EACCES, EPERM, SEAM_LEFT_OUT_KERNEL },
	/* lower precision may be permitted, or exist where higher is not */
	{ EACCES, EPERM, 0 },
	{ ENOENT, ENODEV, 0 },
	{ EINVAL, EOPNOTSUPP, 0 },
	{ EINVAL, 0, SEAM_LEFT_OUT_LOST_COUNTS },
	{ EINVAL, E2BIG, SEAM_LEFT_OUT_BUILD_IDS },
	{ EINVAL, E2BIG, SEAM_LEFT_OUT_KSYMBOLS },
};

/* False: the step was taken before, or does not apply to @refused. */
static bool take(unsigned int left_out, struct seam_event *events, size_t n,
		 struct seam_event *refused)
{
	struct perf_event_attr *attr = &refused->attr;
	bool had;

	switch (left_out) {
	case SEAM_LEFT_OUT_KERNEL:
		/* an event of the kernel alone would count nothing */
		if (attr->exclude_kernel || attr->exclude_user ||
		    attr->type == PERF_TYPE_TRACEPOINT ||
		    seam_event_is_of_kernel(refused))
			return false;
		for (size_t i = 0; i < n; i++)
			if (!events[i].attr.exclude_user &&
			    !seam_event_is_of_kernel(&events[i]))
				events[i].attr.exclude_kernel =
				events[i].attr.exclude_hv =
				events[i].attr.exclude_callchain_kernel = 1;
		return true;
	case SEAM_LEFT_OUT_LOST_COUNTS:
		had = attr->read_format & PERF_FORMAT_LOST;
		for (size_t i = 0; i < n; i++)
			events[i].attr.read_format &=
				~(uint64_t)PERF_FORMAT_LOST;
		return had;
	case SEAM_LEFT_OUT_BUILD_IDS:
		had = attr->build_id;
		attr->build_id = 0;
		return had;
	case SEAM_LEFT_OUT_KSYMBOLS:
		had = attr->ksymbol;
		attr->ksymbol = attr->bpf_event = 0;
		return had;
	default:
		if (!refused->any_precision || attr->precise_ip == 0)
			return false;
		attr->precise_ip = (attr->precise_ip - 1) & 3;
		return true;
	}
}

/*
 * The kernel refused @event with errno @code.  True when a feature was removed,
 * which is noted in left_out: try again.  Each step is taken at most once, so
 * this ends.
 */
static bool fall_back(struct seam_sources *s, struct seam_event *event,
		      int code)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(steps); i++) {
		const struct step *step = &steps[i];

		if ((code == step->code || code == step->other_code) &&
		    take(step->left_out, s->events, s->n_events, event)) {
			s->left_out |= step->left_out;
			return true;
		}
	}
	return false;
}

/* Thread @tid belongs to another user, or has more privileges. */
static int forbidden_process(int code, int tid, struct seam_err *err)
{
	char path[64], text[64];
	int process = seam_targets_process(tid);
	struct passwd *owner;
	uid_t uid;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	uid = (uid_t)strtoul(seam_procfs_value(path, "Uid", text,
					       sizeof(text)), NULL, 10);
	if (uid == getuid())
		return seam_err_set(err, code, "process %d has privileges "
			"that you do not have: recording it needs CAP_PERFMON "
			"or CAP_SYS_PTRACE", process);
	owner = getpwuid(uid);
	if (owner)
		snprintf(text, sizeof(text), "'%.50s'", owner->pw_name);
	else
		snprintf(text, sizeof(text), "%u", uid);
	return seam_err_set(err, code, "process %d belongs to user %s: "
		"recording it needs that user, CAP_PERFMON or "
		"CAP_SYS_PTRACE", process, text);
}

static int forbidden(int code, const struct seam_event *event,
		     const char *what, int tid, struct seam_err *err)
{
	long paranoid = seam_procfs_sysctl("perf_event_paranoid", 2);
	/* the perf_event_paranoid at which no privilege is needed */
	int level = event->attr.type == PERF_TYPE_TRACEPOINT ? -1 :
		    tid < 0 ? 0 : event->attr.exclude_kernel ? 2 : 1;
	char path[64], target[2];

	/*
	 * The links of a thread in /proc have the same condition as
	 * perf_event_open().
	 * Source: perf_event_open(2), PTRACE_MODE_READ_REALCREDS; proc(5).
	 */
	snprintf(path, sizeof(path), "/proc/%d/exe", tid);
	if (tid > 0 && readlink(path, target, sizeof(target)) < 0 &&
	    (errno == EACCES || errno == EPERM))
		return forbidden_process(code, tid, err);
	if (paranoid > level)
		return seam_err_set(err, code, "no permission for %s%s at "
			"kernel.perf_event_paranoid=%ld: it needs CAP_PERFMON, "
			"or 'sysctl kernel.perf_event_paranoid=%d'", what,
			tid < 0 ? " of all processes" : "", paranoid, level);
	if (event->attr.namespaces)
		return seam_err_set(err, code, "no permission for records of "
			"namespaces (--namespaces): they need CAP_PERFMON");
	return seam_err_set(err, code, "no permission for %s, though "
		"kernel.perf_event_paranoid=%ld: it needs a seccomp profile "
		"(of the container?) that allows perf_event_open, or "
		"CAP_PERFMON", what, paranoid);
}

/*
 * Set the message: why opening @event for thread @tid, or for all (-1), failed
 * with @code, and what to do about it.  Returns @code.
 */
static int refuse(int code, const struct seam_event *event, int tid,
		  struct seam_err *err)
{
	char what[SEAM_EVENT_NAME + 16] = "records";
	struct rlimit limit = { 0 };

	if (strcmp(event->name, SEAM_EVENT_SIDEBAND) != 0)
		snprintf(what, sizeof(what), "event '%s'", event->name);
	switch (-code) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
	case ENXIO:
		return seam_err_set(err, -ENOENT, "this %s has no %s%s",
			event->attr.type == PERF_TYPE_SOFTWARE ? "kernel" :
			"machine", what,
			event->attr.type == PERF_TYPE_SOFTWARE ? "" :
			": use '-e cpu-clock', which needs no hardware");
	case EACCES:
	case EPERM:
		return forbidden(code, event, what, tid, err);
	case ENOSPC:
		return seam_err_set(err, code, "no hardware breakpoint is "
			"free for %s: a CPU has few, x86 four", what);
	case EMFILE:
		getrlimit(RLIMIT_NOFILE, &limit);
		return seam_err_set(err, code, "%s needs more than "
			"the %lu descriptors of 'ulimit -n'", what,
			(unsigned long)limit.rlim_cur);
	default:
		return seam_err_set(err, code, "perf_event_open of %s: %s",
				    what, strerror(-code));
	}
}

/* ---- events ---- */

bool seam_sources_read_sideband(const void *header,
				struct seam_perf_sideband *out)
{
	struct seam_perf_record record = seam_perf_record_at(header);

	return seam_perf_sideband_read(&seam_sources_common, SEAM_NATIVE,
				       &record, out) == 0;
}

void seam_sources_sideband(struct seam_event *event)
{
	*event = (struct seam_event) {
		.name = SEAM_EVENT_SIDEBAND, .leader = SEAM_EVENT_ALONE,
	};
	event->attr = (struct perf_event_attr) {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.ksymbol = 1,
		.bpf_event = 1,
		.build_id = 1,
		.watermark = 1,
		.wakeup_watermark = SMALL_WAKEUP_BYTES,
	};
}

uint64_t seam_sources_sideband_id(const struct seam_sources *s)
{
	for (size_t i = 0; i < s->list.n; i++)
		if (s->list.items[i].event == s->sideband)
			return s->list.items[i].id;
	return 0;
}

/* Whether event @e is sampled by the kernel: it has sources. */
static bool is_sampled(const struct seam_sources *s, size_t e)
{
	return e != s->sideband && !s->events[e].has_rings &&
	       !s->events[e].is_waking &&
	       s->events[e].origin != SEAM_EVENT_OF_PROGRAM;
}

/* The rings that all threads share are those of CPUs, one set after another. */

/* The first ring of event @e, which has rings of its own, or after all sets. */
static size_t rings_of(const struct seam_sources *s, size_t e)
{
	size_t first = s->cpus.n;	/* the side-band's */

	for (size_t i = 0; i < e; i++)
		first += s->events[i].has_rings ? s->cpus.n : 0;
	return first;
}

/* That of SWITCH records; n_events: none. */
static size_t switches_of(const struct seam_sources *s)
{
	size_t e = 0;

	while (e < s->n_events && !s->events[e].is_switches)
		e++;
	return e;
}

/* How many events write AUX buffers. */
static size_t count_aux(const struct seam_sources *s)
{
	size_t n = 0;

	for (size_t e = 0; e < s->n_events; e++)
		n += s->events[e].aux_kind != 0;
	return n;
}

bool seam_sources_has_aux(const struct seam_sources *s)
{
	return count_aux(s) > 0;
}

/* Whether there are samples of the kernel beside the AUX data. */
static bool has_samples(const struct seam_sources *s)
{
	for (size_t e = 0; e < s->n_events; e++)
		if (is_sampled(s, e) && !s->events[e].aux_kind)
			return true;
	return false;
}

bool seam_sources_is_system_wide(const struct seam_sources *s)
{
	return s->tids.n == 1 && s->tids.items[0] == SEAM_SOURCES_EVERY;
}

/* In a group, and not its leader, which starts and stops it. */
static bool is_member(const struct seam_sources *s,
		      const struct seam_event *event)
{
	return event->leader >= 0 && event != &s->events[event->leader];
}

/* Set what all events have in common; perf requires equal formats. */
static void complete(struct seam_sources *s, struct seam_event *event)
{
	struct perf_event_attr *attr = &event->attr;
	bool sideband = event == &s->events[s->sideband];

	attr->size = PERF_ATTR_SIZE_VER7;
	attr->sample_type |= seam_sources_common.sample_type;
	/*
	 * The kernel samples each software event if samples have the period.
	 * Source: perf_swevent_event(), kernel/events/core.c.
	 */
	if (attr->type == PERF_TYPE_SOFTWARE && !attr->freq &&
	    attr->sample_period > 1)
		attr->sample_type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
	attr->read_format |= PERF_FORMAT_ID | PERF_FORMAT_LOST;
	attr->sample_id_all = 1;
	/* decoders convert the CPU's counter to the kernel's own clock only */
	attr->use_clockid = !seam_sources_has_aux(s);
	attr->clockid = attr->use_clockid ? CLOCK_MONOTONIC : 0;
	/* Source: perf_event_open(2): no inherited event reads its group */
	attr->inherit = !seam_sources_is_system_wide(s) &&
			(sideband || event->has_rings || !s->per_thread) &&
			!event->read_by_leader && !event->no_inherit &&
			!s->no_inherit && !event->is_waking &&
			!(attr->read_format & PERF_FORMAT_GROUP);
	/* no exec enables an event of a CPU */
	attr->disabled = !is_member(s, event) && !event->is_waking;
	attr->write_backward = s->overwrite && !sideband &&
			       !event->is_switches && !event->is_waking &&
			       !event->aux_kind;
	attr->enable_on_exec = s->on_exec && !is_member(s, event) &&
			       !event->is_waking &&
			       (sideband || !s->delayed);
	if (sideband && s->per_thread) {
		/* a new thread is sampled only after its FORK record is read */
		attr->wakeup_watermark = 1;
	} else if (event->aux_kind) {
		/* a decoder assigns AUX data to threads by SWITCH records */
		attr->context_switch = 1;
		attr->watermark = 1;
		attr->wakeup_watermark = SMALL_WAKEUP_BYTES;
	} else if (event->is_switches || event->is_waking) {
		attr->watermark = 1;
		attr->wakeup_watermark = SWITCH_WAKEUP_BYTES;
	} else if (!sideband) {
		uint64_t bytes = s->watermark ? s->watermark :
				 s->ring_bytes / WAKEUP_PART;

		attr->watermark = 1;
		attr->wakeup_watermark = bytes > UINT32_MAX ? UINT32_MAX :
					 (uint32_t)bytes;
	}
}

/* Whether event @e measures for how long its CPU was online. */
static bool counts_time(const struct seam_sources *s, size_t e)
{
	return seam_sources_is_system_wide(s) && e == s->sideband;
}

/*
 * A ring for a later thread may be small, down to a page: with a wakeup before
 * it is full, and copies of stacks of which it holds some.
 */
static void fit_to(size_t ring_bytes, const struct seam_event *event,
		   struct perf_event_attr *attr)
{
	uint32_t wakeup = (uint32_t)(ring_bytes / WAKEUP_PART);
	uint32_t copy = (uint32_t)(ring_bytes / COPY_PART) & ~7U;

	if (attr->watermark && attr->wakeup_watermark > wakeup)
		attr->wakeup_watermark = wakeup;
	if (event->is_unwound && attr->sample_stack_user > copy)
		attr->sample_stack_user = copy;
}

static int open_event(struct seam_sources *s, size_t e,
		      struct cpu_and_thread place)
{
	struct seam_event *event = &s->events[e];
	/* threads may have begun elsewhere: the side-band is of all of them */
	bool is_of_cgroup = s->cgroup && e != s->sideband && !event->is_waking;
	int group = -1;

	/* the leader of its group, opened last at the same place */
	for (size_t i = s->list.n; is_member(s, event) && i-- > 0 &&
	     group < 0; )
		if ((int)s->list.items[i].event == event->leader)
			group = s->list.items[i].fd;
	for (;;) {
		/* not in the file, where perf requires equal formats */
		struct perf_event_attr attr = event->attr;
		int fd;

		if (s->later_ring_bytes)
			fit_to(s->later_ring_bytes, event, &attr);
		if (counts_time(s, e))
			attr.read_format |= PERF_FORMAT_TOTAL_TIME_ENABLED;
		fd = (int)syscall(SYS_perf_event_open, &attr,
				  is_of_cgroup ? s->cgroup_fd : place.tid,
				  place.cpu, group, PERF_FLAG_FD_CLOEXEC |
				  (is_of_cgroup ? PERF_FLAG_PID_CGROUP : 0));
		if (fd >= 0)
			return fd;
		if (errno != EINTR && !fall_back(s, event, errno))
			return -errno;
	}
}

/*
 * Open event @e at @place.  -ESRCH: the thread has ended; -ENODEV: the CPU is
 * offline, except for the first source, where the event does not exist.
 */
static int open_source(struct seam_sources *s, size_t e,
		       struct cpu_and_thread place, size_t ring,
		       struct seam_err *err)
{
	const struct seam_event *event = &s->events[e];
	int fd = open_event(s, e, place);
	struct seam_source *source;

	if (fd == -ESRCH || (fd == -ENODEV && s->list.n > 0))
		return fd;
	if (fd < 0)
		return refuse(fd, event, place.tid, err);
	source = SEAM_ARRAY_PUSH(&s->list);
	if (!source) {
		close(fd);
		return seam_err_no_memory(err);
	}
	*source = (struct seam_source) {
		.fd = fd, .event = (uint32_t)e, .ring = (uint32_t)ring,
		.tid = place.tid,
	};
	if (ioctl(fd, PERF_EVENT_IOC_ID, &source->id) < 0)
		return seam_err_errno(err, "cannot read the id of '%s'",
				      event->name);
	if (s->filter && !event->is_waking &&
	    event->attr.type == PERF_TYPE_TRACEPOINT &&
	    ioctl(fd, PERF_EVENT_IOC_SET_FILTER, s->filter) < 0)
		return seam_err_errno(err, "cannot use filter '%s' for '%s'",
				      s->filter, event->name);
	return 0;
}

/* Add a ring without an owner yet. */
static int add_ring(struct seam_sources *s, struct cpu_and_thread place,
		    enum seam_ring_use use, struct seam_err *err)
{
	const struct seam_source_ring ring = {
		.cpu = place.cpu, .tid = place.tid, .use = use,
		.is_backward = s->overwrite && (use == SEAM_RING_OF_SAMPLES ||
						use == SEAM_RING_OF_STACKS),
		.fd = -1,
	};

	return SEAM_ARRAY_ADD(&s->rings, ring) ? 0 : seam_err_no_memory(err);
}

static const struct seam_number_list *sampled(const struct seam_sources *s)
{
	return s->sampled.n ? &s->sampled : &s->cpus;
}

/*
 * The rings of one place, without the side-band's: one for all samples, then
 * one for each event with an AUX buffer.
 */
static int add_rings(struct seam_sources *s, struct cpu_and_thread place,
		     struct seam_err *err)
{
	int r = has_samples(s) ? add_ring(s, place, SEAM_RING_OF_SAMPLES, err) :
		0;

	for (size_t i = count_aux(s); r == 0 && i > 0; i--)
		r = add_ring(s, place, SEAM_RING_OF_AUX, err);
	return r;
}

/* Open everything but the side-band at a place, whose rings begin at @ring. */
static int open_samples(struct seam_sources *s, struct cpu_and_thread place,
			size_t ring, struct seam_err *err)
{
	size_t aux_ring = ring + has_samples(s);
	int r = 0;

	for (size_t e = 0; r == 0 && e < s->n_events; e++)
		if (is_sampled(s, e))
			r = open_source(s, e, place, s->events[e].aux_kind ?
					aux_ring++ : ring, err);
	return r;
}

/* Call it once the sources are open: no entry of an index can be removed. */
static int remember_thread(struct seam_sources *s,
			   const struct seam_source_thread *thread,
			   struct seam_err *err)
{
	uint64_t hash = seam_hash_u64((uint32_t)thread->tid);

	return SEAM_INDEX_APPEND(&s->by_tid, hash, &s->threads, *thread) ==
	       SEAM_NONE ? seam_err_no_memory(err) : 0;
}

/* Open the sources of one thread, with rings of its own, as @thread says. */
static int open_own_rings(struct seam_sources *s, int tid,
			  struct seam_source_thread *thread,
			  struct seam_err *err)
{
	size_t n = s->sampled.n ? s->sampled.n : 1;
	int r = 0;

	*thread = (struct seam_source_thread) {
		.tid = tid, .first_source = (uint32_t)s->list.n,
		.first_ring = (uint32_t)s->rings.n,
	};
	for (size_t c = 0; r == 0 && c < n; c++) {
		struct cpu_and_thread place = {
			tid, s->sampled.n ? s->sampled.items[c] :
			SEAM_SOURCES_EVERY,
		};
		size_t ring = s->rings.n;

		r = add_rings(s, place, err);
		if (r == 0)
			r = open_samples(s, place, ring, err);
	}
	thread->n_sources = (uint32_t)s->list.n - thread->first_source;
	thread->n_rings = (uint32_t)s->rings.n - thread->first_ring;
	return r;
}

/*
 * Open the sources of one thread.  The side-band is first, so that the kernel
 * refuses the thread before anything else is open.
 */
static int open_thread(struct seam_sources *s, int tid, struct seam_err *err)
{
	size_t n_kinds = count_aux(s) + has_samples(s);
	struct seam_source_thread thread;
	int r = 0;

	for (size_t c = 0; r == 0 && c < s->cpus.n; c++) {
		struct cpu_and_thread place = { tid, s->cpus.items[c] };

		r = open_source(s, s->sideband, place, c, err);
		for (size_t e = 0; r == 0 && e < s->n_events; e++)
			if (s->events[e].has_rings)
				r = open_source(s, e, place,
						rings_of(s, e) + c, err);
		if (r == -ENODEV)
			r = 0;	/* the CPU went offline */
	}
	if (r == 0 && s->per_thread) {
		r = open_own_rings(s, tid, &thread, err);
		return r == 0 ? remember_thread(s, &thread, err) : r;
	}
	for (size_t c = 0; r == 0 && c < sampled(s)->n; c++) {
		struct cpu_and_thread place = { tid, sampled(s)->items[c] };

		r = open_samples(s, place, rings_of(s, s->n_events) +
				 c * n_kinds, err);
		if (r == -ENODEV)
			r = 0;
	}
	return r;
}

/* Wakings of all threads, to the rings of switches. */
static int open_wakings(struct seam_sources *s, struct seam_err *err)
{
	int r = 0;

	for (size_t e = 0; e < s->n_events; e++)
		for (size_t c = 0; s->events[e].is_waking && r == 0 &&
		     c < s->cpus.n; c++) {
			struct cpu_and_thread place = {
				SEAM_SOURCES_EVERY, s->cpus.items[c],
			};

			r = open_source(s, e, place,
					rings_of(s, switches_of(s)) + c, err);
			if (r == -ENODEV)
				r = 0;
		}
	return r;
}

/* ---- rings ---- */

/* Map the ring that @source writes to, or with @is_aux its AUX buffer. */
static int map_one(const struct seam_sources *s,
		   const struct seam_source *source, bool is_aux, size_t bytes,
		   struct seam_err *err)
{
	struct seam_source_ring *ring = &s->rings.items[source->ring];
	int r;

	if (is_aux) {
		/* the event that owns the ring has it.  Source: perf_mmap() */
		r = seam_ring_aux_map(&ring->aux, &ring->ring, ring->fd, bytes,
				      s->aux_snapshots, err);
		if (r == -EOPNOTSUPP)
			return seam_err_add(err, r, "'%s' writes no AUX "
					    "buffer",
					    s->events[source->event].name);
		ring->aux_bytes = r == 0 ? bytes : 0;
		return r;
	}
	r = seam_ring_map(&ring->ring, source->fd, bytes, ring->is_backward,
			  err);
	if (r == 0) {
		ring->fd = source->fd;
		ring->size_bytes = bytes;
	}
	return r;
}

static bool is_of_use(const struct seam_source_ring *ring,
		      enum seam_ring_use use)
{
	return ring->use == use || (use == SEAM_RING_OF_SAMPLES &&
				    ring->use == SEAM_RING_OF_STACKS);
}

/*
 * Map the rings of @use that the sources from @first on write to and that are
 * not mapped, or their AUX buffers, in one size: *@bytes, halved until that
 * much memory can be had.  Rings of samples and of stacks have one size.
 */
static int map_largest(struct seam_sources *s, enum seam_ring_use use,
		       bool is_aux, size_t first, size_t *bytes,
		       struct seam_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), wanted = *bytes;
	int r;

	for (;; *bytes /= 2) {
		r = 0;
		for (size_t i = first; r == 0 && i < s->list.n; i++) {
			const struct seam_source *source = &s->list.items[i];
			const struct seam_source_ring *ring =
				&s->rings.items[source->ring];

			if (is_of_use(ring, use) &&
			    (is_aux ? !ring->aux.size : ring->fd < 0))
				r = map_one(s, source, is_aux, *bytes, err);
		}
		if ((r != -EPERM && r != -ENOMEM) || *bytes / 2 < page)
			break;
		for (size_t i = first; i < s->list.n; i++) {
			struct seam_source_ring *ring =
				&s->rings.items[s->list.items[i].ring];

			if (is_of_use(ring, use) && is_aux) {
				seam_ring_aux_fini(&ring->aux);
			} else if (is_of_use(ring, use)) {
				seam_ring_fini(&ring->ring);
				ring->fd = -1;
			}
		}
	}
	if (*bytes < wanted)
		s->left_out |= SEAM_LEFT_OUT_RING_SPACE;
	if (r == -EPERM)
		return seam_err_add(err, r, "this user may not lock memory "
			"for one page a ring: see kernel.perf_event_mlock_kb "
			"and 'ulimit -l'");
	return r;
}

/*
 * Map the rings of the sources from index @first on that are not mapped yet,
 * and redirect sources that own no ring to the ring of their CPU or thread;
 * then the rings from @ring on are live.  -EPERM: the user may not lock even
 * one page a ring; -EOPNOTSUPP: an event has no AUX buffer, though its aux_kind
 * is set.
 */
static int map_rings(struct seam_sources *s, size_t first, size_t ring,
		     size_t *ring_bytes, size_t *aux_bytes,
		     struct seam_err *err)
{
	size_t small[2] = {
		SEAM_SOURCES_SMALL_RING_BYTES, SEAM_SOURCES_SMALL_RING_BYTES,
	};
	size_t switches = SEAM_SOURCES_SWITCH_RING_BYTES;
	unsigned int left_out = s->left_out;
	/*
	 * The small ones first: the samples get what is left, as a power of
	 * two, and the switches the rest of that, an eighth at least.
	 */
	const struct {
		enum seam_ring_use use;
		bool is_aux;
		size_t *bytes;
	} kinds[] = {
		{ SEAM_RING_OF_SIDEBAND, false, &small[0] },
		{ SEAM_RING_OF_AUX, false, &small[1] },
		{ SEAM_RING_OF_AUX, true, aux_bytes },
		{ SEAM_RING_OF_SAMPLES, false, ring_bytes },
		{ SEAM_RING_OF_SWITCHES, false, &switches },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < SEAM_ARRAY_SIZE(kinds); i++) {
		left_out = s->left_out;
		r = map_largest(s, kinds[i].use, kinds[i].is_aux, first,
				kinds[i].bytes, err);
	}
	/* a smaller ring of switches, the last one, is as good */
	s->left_out = left_out;
	for (size_t i = first; r == 0 && i < s->list.n; i++) {
		int fd = s->list.items[i].fd;
		const struct seam_source_ring *of =
			&s->rings.items[s->list.items[i].ring];

		if (fd != of->fd &&
		    ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, of->fd) < 0)
			r = seam_err_errno(err, "cannot share the ring of "
					   "cpu %d", of->cpu);
	}
	for (size_t i = ring; r == 0 && i < s->rings.n; i++)
		if (!SEAM_ARRAY_ADD(&s->live, (uint32_t)i))
			r = seam_err_no_memory(err);
	return r;
}

/* ---- open, start, stop ---- */

static int open_all(struct seam_sources *s, struct seam_err *err)
{
	int r = 0;

	/* the rings that all threads share, in the order of open_thread() */
	for (size_t c = 0; r == 0 && c < s->cpus.n; c++)
		r = add_ring(s, (struct cpu_and_thread) { SEAM_SOURCES_EVERY,
			     s->cpus.items[c] }, SEAM_RING_OF_SIDEBAND, err);
	for (size_t e = 0; e < s->n_events; e++)
		for (size_t c = 0; r == 0 && s->events[e].has_rings &&
		     c < s->cpus.n; c++)
			r = add_ring(s, (struct cpu_and_thread) {
				     SEAM_SOURCES_EVERY, s->cpus.items[c] },
				     s->events[e].is_switches ?
				     SEAM_RING_OF_SWITCHES :
				     SEAM_RING_OF_STACKS, err);
	for (size_t c = 0; r == 0 && !s->per_thread && c < sampled(s)->n; c++)
		r = add_rings(s, (struct cpu_and_thread) { SEAM_SOURCES_EVERY,
			      sampled(s)->items[c] }, err);
	for (size_t e = 0; r == 0 && e < s->n_events; e++)
		complete(s, &s->events[e]);
	for (size_t t = 0; r == 0 && t < s->tids.n; t++) {
		r = open_thread(s, s->tids.items[t], err);
		if (r == -ESRCH)
			r = 0;	/* the thread has ended */
	}
	if (r == 0 && s->list.n == 0)
		r = seam_err_set(err, -ESRCH, "the process has ended");
	if (r == 0)
		r = open_wakings(s, err);
	return r == 0 ? map_rings(s, 0, 0, &s->ring_bytes, &s->aux_bytes, err) :
			r;
}

int seam_sources_open(struct seam_sources *s, struct seam_err *err)
{
	int r = 0;

	s->cgroup_fd = s->cgroup ? seam_cgroup_open(s->cgroup, err) : -1;
	if (s->cgroup)
		r = s->cgroup_fd;
	if (r >= 0)
		r = open_all(s, err);
	seam_file_close_fd(s->cgroup_fd);
	if (r < 0)
		seam_sources_fini(s);
	return r;
}

static void enable_one(struct seam_source *source)
{
	if (source->fd < 0)
		return;
	ioctl(source->fd, PERF_EVENT_IOC_ENABLE, 0);
	source->enabled_at_ns = seam_clock_ns();
}

/* Close the sources from @first on and the rings from @ring on. */
static void close_from(struct seam_sources *s, size_t first, size_t ring)
{
	for (size_t i = ring; i < s->rings.n; i++) {
		seam_ring_aux_fini(&s->rings.items[i].aux);
		seam_ring_fini(&s->rings.items[i].ring);
	}
	for (size_t i = first; i < s->list.n; i++)
		seam_file_close_fd(s->list.items[i].fd);
	s->list.n = first;
	s->rings.n = ring;
}

/* Remove @n rings from index @first on from the mapped ones. */
static void remove_live(struct seam_sources *s, uint32_t first, uint32_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->live.n; i++)
		if (s->live.items[i] - first >= n)
			s->live.items[kept++] = s->live.items[i];
	s->live.n = kept;
}

int seam_sources_check_fds(const struct seam_sources *s, struct seam_err *err)
{
	struct rlimit limit;
	rlim_t last = s->list.n ? (rlim_t)s->list.items[s->list.n - 1].fd : 0;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
	    last + SEAM_SOURCES_SPARE_FDS < limit.rlim_cur)
		return 0;
	return seam_err_set(err, -EMFILE, "%s", strerror(EMFILE));
}

/* Open the sources of @tid, with a ring of *@ring_bytes or, then, less. */
static int add_thread(struct seam_sources *s, int tid, size_t *ring_bytes,
		      struct seam_err *err)
{
	size_t first = s->list.n, ring = s->rings.n, threads = s->threads.n;
	size_t aux_bytes = s->aux_bytes, wanted = *ring_bytes;
	struct seam_source_thread thread;
	int r;

	r = open_own_rings(s, tid, &thread, err);
	if (r == 0)
		r = seam_sources_check_fds(s, err);
	if (r == 0)
		r = remember_thread(s, &thread, err);
	if (r == 0)
		r = map_rings(s, first, ring, ring_bytes, &aux_bytes, err);
	if (r == 0 && *ring_bytes < wanted)
		r = -EAGAIN;
	for (size_t i = first; r == 0 && !s->delayed && i < s->list.n; i++)
		enable_one(&s->list.items[i]);
	if (r == 0)
		return 0;
	if (s->threads.n > threads)
		s->threads.items[threads].has_ended = true;
	remove_live(s, (uint32_t)ring, UINT32_MAX - (uint32_t)ring);
	close_from(s, first, ring);
	return r;
}

int seam_sources_add_thread(struct seam_sources *s, int tid,
			    struct seam_err *err)
{
	size_t ring_bytes = s->ring_bytes;
	int r;

	if (s->threads.n >= SEAM_SOURCES_MAX_THREADS)
		return seam_err_set(err, -EMFILE, "a recording has room for "
				    "%d threads", SEAM_SOURCES_MAX_THREADS);
	do {
		r = add_thread(s, tid, &ring_bytes, err);
		s->later_ring_bytes = ring_bytes;
	} while (r == -EAGAIN);
	s->later_ring_bytes = 0;
	return r;
}

void seam_sources_enable(struct seam_sources *s)
{
	for (size_t i = 0; i < s->list.n; i++)
		if (!s->delayed || s->list.items[i].event == s->sideband)
			enable_one(&s->list.items[i]);
}

void seam_sources_restart(struct seam_sources *s, uint32_t ring)
{
	const struct seam_source_ring *of = &s->rings.items[ring];
	const struct seam_source_thread *thread =
		of->tid == SEAM_SOURCES_EVERY ? NULL :
		seam_sources_thread(s, of->tid);
	size_t i = thread ? thread->first_source : 0;
	size_t end = thread ? i + thread->n_sources : s->list.n;

	for (; i < end; i++)
		if (s->list.items[i].ring == ring)
			enable_one(&s->list.items[i]);
}

void seam_sources_hold_aux(struct seam_sources *s, bool hold)
{
	for (size_t i = 0; (hold || s->is_sampling) && i < s->list.n; i++)
		if (s->events[s->list.items[i].event].aux_kind &&
		    s->list.items[i].fd >= 0)
			ioctl(s->list.items[i].fd, hold ?
			      PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE,
			      0);
}

void seam_sources_disable(struct seam_sources *s)
{
	s->is_sampling = false;
	for (size_t i = 0; i < s->list.n; i++) {
		struct seam_source *source = &s->list.items[i];

		if (source->fd < 0)
			continue;
		source->disabled_at_ns = seam_clock_ns();
		ioctl(source->fd, PERF_EVENT_IOC_DISABLE, 0);
	}
}

void seam_sources_set_frequency(const struct seam_sources *s, uint64_t hz)
{
	for (size_t i = 0; i < s->list.n; i++) {
		const struct seam_source *source = &s->list.items[i];
		const struct perf_event_attr *attr =
			&s->events[source->event].attr;
		/* the kernel samples clocks by a period */
		uint64_t value = !hz || attr->type != PERF_TYPE_SOFTWARE ? hz :
				 SEAM_NS_PER_S / hz;

		if (source->fd < 0 || !attr->freq)
			continue;
		if (hz)
			ioctl(source->fd, PERF_EVENT_IOC_PERIOD, &value);
		ioctl(source->fd, hz ? PERF_EVENT_IOC_ENABLE :
		      PERF_EVENT_IOC_DISABLE, 0);
	}
}

/*
 * Read the counts of source @i: for a group its size, then value, time, id and
 * lost of its leader.  Returns the index of "lost"; *@n words were read.
 */
static size_t read_counts(const struct seam_sources *s, size_t i,
			  uint64_t counts[MAX_COUNTS], size_t *n)
{
	const struct seam_source *source = &s->list.items[i];
	const struct perf_event_attr *attr = &s->events[source->event].attr;
	ssize_t bytes = source->fd < 0 ? -1 :
			read(source->fd, counts, MAX_COUNTS * sizeof(*counts));

	*n = bytes < 0 ? 0 : (size_t)bytes / sizeof(*counts);
	return 2 + (size_t)((attr->read_format & PERF_FORMAT_GROUP) != 0) +
	       (size_t)counts_time(s, source->event);
}

uint64_t seam_sources_lost(const struct seam_sources *s, size_t i)
{
	const struct seam_source *source = &s->list.items[i];
	uint64_t counts[MAX_COUNTS];
	size_t n, at;

	if (source->fd < 0)
		return source->n_lost;
	if (!(s->events[source->event].attr.read_format & PERF_FORMAT_LOST))
		return 0;
	at = read_counts(s, i, counts, &n);
	return at < n ? counts[at] : 0;
}

bool seam_sources_enabled_ns(const struct seam_sources *s, size_t i,
			     uint64_t *ns)
{
	uint64_t counts[MAX_COUNTS];
	size_t n;

	if (!counts_time(s, s->list.items[i].event))
		return false;
	read_counts(s, i, counts, &n);
	*ns = n > 1 ? counts[1] : 0;
	return n > 1;
}

void seam_sources_fini(struct seam_sources *s)
{
	close_from(s, 0, 0);
	free(s->rings.items);
	free(s->list.items);
	free(s->threads.items);
	free(s->live.items);
	seam_index_fini(&s->by_tid);
	free(s->cpus.items);
	free(s->sampled.items);
	free(s->tids.items);
	*s = (struct seam_sources) { 0 };
}

/* ---- threads ---- */

struct seam_source_thread *seam_sources_thread(const struct seam_sources *s,
					       int tid)
{
	/* ids are reused; at most one thread of an id is running */
	uint32_t i = SEAM_INDEX_FIND(&s->by_tid, seam_hash_u64((uint32_t)tid),
				     k, s->threads.items[k].tid == tid &&
				     !s->threads.items[k].has_ended);

	return i == SEAM_NONE ? NULL : &s->threads.items[i];
}

void seam_sources_end(struct seam_sources *s, size_t i)
{
	struct seam_source *source = &s->list.items[i];
	struct seam_source_ring *ring = &s->rings.items[source->ring];

	if (source->fd < 0)
		return;
	source->n_lost = seam_sources_lost(s, i);
	if (ring->fd == source->fd) {
		seam_ring_aux_fini(&ring->aux);
		seam_ring_fini(&ring->ring);
		ring->fd = -1;
	}
	close(source->fd);
	source->fd = -1;
}

void seam_sources_end_thread(struct seam_sources *s, int tid)
{
	struct seam_source_thread *thread = seam_sources_thread(s, tid);

	if (!thread)
		return;
	for (size_t i = 0; i < thread->n_sources; i++)
		seam_sources_end(s, thread->first_source + i);
	remove_live(s, thread->first_ring, thread->n_rings);
	thread->has_ended = true;
}
