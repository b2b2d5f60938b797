/* SPDX-License-Identifier: MIT */
/* sources.c - open, give up what is refused, map; see sources.h */
#include "record/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	/*
	 * 1000 side-band records or so for each CPU; the recorder is woken
	 * at an eighth of it.
	 */
	SIDEBAND_BYTES = 128 * 1024,
	SIDEBAND_WAKEUP_BYTES = SIDEBAND_BYTES / 8,
	RINGS_A_CPU = 2,
};

/* What every record of ours says of itself. */
#define SAMPLE_TYPE (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |		\
		     PERF_SAMPLE_TID | PERF_SAMPLE_TIME |		\
		     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)

void seam_sources_sideband(struct seam_event *event)
{
	*event = (struct seam_event) { .name = "dummy:HG" };
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
		.wakeup_watermark = SIDEBAND_WAKEUP_BYTES,
	};
}

/* What all events have in common; perf wants the formats to be equal. */
static void complete(struct seam_sources *s, struct perf_event_attr *attr)
{
	attr->size = PERF_ATTR_SIZE_VER7;
	attr->sample_type |= SAMPLE_TYPE;
	attr->read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->inherit = 1;
	attr->disabled = 1;
	attr->enable_on_exec = s->on_exec;
}

/* One step down: false when it was taken before, or does not apply. */

static bool leave_kernel_out(struct seam_sources *s, struct seam_event *event)
{
	/* Who asked for the kernel alone would be left with nothing. */
	if (event->attr.exclude_kernel || event->attr.exclude_user)
		return false;
	for (size_t i = 0; i < s->n_events; i++) {
		struct perf_event_attr *attr = &s->events[i].attr;

		if (attr->exclude_user)
			continue;
		attr->exclude_kernel = 1;
		attr->exclude_hv = 1;
		attr->exclude_callchain_kernel = 1;
	}
	return true;
}

static bool lower_precision(struct seam_sources *s, struct seam_event *event)
{
	(void)s;
	if (!event->any_precision || event->attr.precise_ip == 0)
		return false;
	event->attr.precise_ip = (event->attr.precise_ip - 1) & 3;
	return true;
}

static bool leave_lost_counts_out(struct seam_sources *s,
				  struct seam_event *event)
{
	if (!(event->attr.read_format & PERF_FORMAT_LOST))
		return false;
	for (size_t i = 0; i < s->n_events; i++)
		s->events[i].attr.read_format = PERF_FORMAT_ID;
	return true;
}

static bool leave_build_ids_out(struct seam_sources *s,
				struct seam_event *event)
{
	bool had = event->attr.build_id;

	(void)s;
	event->attr.build_id = 0;
	return had;
}

static bool leave_ksymbols_out(struct seam_sources *s,
			       struct seam_event *event)
{
	bool had = event->attr.ksymbol;

	(void)s;
	event->attr.ksymbol = event->attr.bpf_event = 0;
	return had;
}

/* Tried in this order: the newest feature of the kernel first. */
static const struct step {
	int code, other_code;	/* what the kernel said */
	unsigned int left_out;	/* enum seam_left_out */
	bool (*take)(struct seam_sources *s, struct seam_event *event);
} steps[] = {
	{ EACCES, EPERM, SEAM_LEFT_OUT_KERNEL, leave_kernel_out },
	/* less precise may need fewer rights, or exist where more does not */
	{ EACCES, EPERM, 0, lower_precision },
	{ ENOENT, ENODEV, 0, lower_precision },
	{ EINVAL, EOPNOTSUPP, 0, lower_precision },
	{ EINVAL, 0, SEAM_LEFT_OUT_LOST_COUNTS, leave_lost_counts_out },
	{ EINVAL, E2BIG, SEAM_LEFT_OUT_BUILD_IDS, leave_build_ids_out },
	{ EINVAL, E2BIG, SEAM_LEFT_OUT_KSYMBOLS, leave_ksymbols_out },
};

const char *seam_left_out_name(int bit_index)
{
	static const char *const names[] = {
		"kernel", "build-ids", "lost-counts", "ksymbols", "ring-space",
	};

	return (size_t)bit_index < SEAM_ARRAY_SIZE(names) ?
	       names[bit_index] : NULL;
}

static bool step_down(struct seam_sources *s, struct seam_event *event,
		      int code)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(steps); i++) {
		const struct step *step = &steps[i];

		if (code != step->code && code != step->other_code)
			continue;
		if (step->take(s, event)) {
			s->left_out |= step->left_out;
			return true;
		}
	}
	return false;
}

static int open_one(struct seam_sources *s, struct seam_event *event, int tid,
		    int cpu)
{
	for (;;) {
		int fd = (int)syscall(SYS_perf_event_open, &event->attr, tid,
				      cpu, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd >= 0)
			return fd;
		if (errno != EINTR && !step_down(s, event, errno))
			return -errno;
	}
}

static int missing(const struct seam_event *event, struct seam_err *err)
{
	if (event->attr.type == PERF_TYPE_SOFTWARE)
		return seam_err_set(err, -ENOENT, "this kernel has no event "
				    "'%s'", event->name);
	return seam_err_set(err, -ENOENT, "this machine has no event '%s'%s",
			    event->name, ": use '-e cpu-clock', which needs "
			    "no hardware");
}

int seam_sources_refusal(int code, const struct seam_event *event,
			 struct seam_err *err)
{
	long paranoid = seam_machine_sysctl("perf_event_paranoid", 2);
	struct rlimit limit = { 0 };

	switch (-code) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
	case ENXIO:
		return missing(event, err);
	case EACCES:
	case EPERM:
		return seam_err_set(err, code, "no permission for event '%s' "
			"at kernel.perf_event_paranoid=%ld: it needs "
			"CAP_PERFMON, or 'sysctl kernel.perf_event_paranoid="
			"%d'", event->name, paranoid,
			event->attr.exclude_kernel ? 2 : 1);
	case EMFILE:
		getrlimit(RLIMIT_NOFILE, &limit);
		return seam_err_set(err, code, "event '%s' needs more than "
			"the %lu descriptors of 'ulimit -n'", event->name,
			(unsigned long)limit.rlim_cur);
	default:
		return seam_err_set(err, code, "perf_event_open of event "
			"'%s': %s", event->name, strerror(-code));
	}
}

static int add_source(struct seam_sources *s, int fd, uint32_t event,
		      uint32_t ring)
{
	struct seam_source *source = SEAM_ARRAY_PUSH(s);

	if (!source) {
		close(fd);
		return -ENOMEM;
	}
	*source = (struct seam_source) {
		.fd = fd, .event = event, .ring = ring,
	};
	if (ioctl(fd, PERF_EVENT_IOC_ID, &source->id) < 0)
		return -errno;
	return 0;
}

/*
 * All events of one thread on one CPU, the side-band's first, so that what
 * the kernel refuses shows before anything else is open.  1: the thread or
 * the CPU is gone.
 */
static int open_events(struct seam_sources *s, int tid, size_t cpu,
		       struct seam_err *err)
{
	for (size_t e = s->n_events; e-- > 0; ) {
		bool sideband = e == s->n_events - 1;
		uint32_t ring = (uint32_t)(RINGS_A_CPU * cpu + !sideband);
		int fd = open_one(s, &s->events[e], tid, s->cpus.items[cpu]);
		int r;

		if (fd == -ESRCH || (fd == -ENODEV && cpu > 0))
			return 1;
		if (fd < 0)
			return seam_sources_refusal(fd, &s->events[e], err);
		r = add_source(s, fd, (uint32_t)e, ring);
		if (r < 0)
			return seam_err_set(err, r, "event '%s': %s",
					    s->events[e].name, strerror(-r));
	}
	return 0;
}

static int open_all(struct seam_sources *s, struct seam_err *err)
{
	int r;

	for (size_t e = 0; e < s->n_events; e++)
		complete(s, &s->events[e].attr);
	for (size_t t = 0; t < s->tids.n; t++)
		for (size_t c = 0; c < s->cpus.n; c++) {
			r = open_events(s, s->tids.items[t], c, err);
			if (r < 0)
				return r;
		}
	if (s->n == 0)
		return seam_err_set(err, -ESRCH, "the process has ended");
	return 0;
}

static int alloc_rings(struct seam_sources *s, struct seam_err *err)
{
	s->rings = calloc(s->cpus.n * RINGS_A_CPU, sizeof(*s->rings));
	if (!s->rings)
		return seam_err_set(err, -ENOMEM, "out of memory");
	s->n_rings = s->cpus.n * RINGS_A_CPU;
	for (size_t i = 0; i < s->n_rings; i++) {
		s->rings[i].cpu = s->cpus.items[i / RINGS_A_CPU];
		s->rings[i].is_sideband = i % RINGS_A_CPU == 0;
		s->rings[i].fd = -1;
	}
	return 0;
}

/* Map the rings of one kind, @bytes each. */
static int map_kind(struct seam_sources *s, bool sideband, size_t bytes,
		    struct seam_err *err)
{
	for (size_t i = 0; i < s->n; i++) {
		struct seam_source_ring *ring = &s->rings[s->items[i].ring];
		int r;

		if (ring->is_sideband != sideband || ring->fd >= 0)
			continue;
		r = seam_ring_map(&ring->ring, s->items[i].fd, bytes, err);
		if (r < 0)
			return r;
		ring->fd = s->items[i].fd;
	}
	return 0;
}

static void unmap_kind(struct seam_sources *s, bool sideband)
{
	for (size_t i = 0; i < s->n_rings; i++) {
		if (s->rings[i].is_sideband != sideband)
			continue;
		seam_ring_fini(&s->rings[i].ring);
		s->rings[i].fd = -1;
	}
}

/* As above, with half the space as often as the user may not lock it all. */
static int map_what_fits(struct seam_sources *s, bool sideband, size_t bytes,
			 size_t *got, struct seam_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int r;

	for (*got = bytes; ; *got /= 2) {
		r = map_kind(s, sideband, *got, err);
		if (r != -EPERM || *got / 2 < page)
			break;
		unmap_kind(s, sideband);
	}
	if (*got < bytes)
		s->left_out |= SEAM_LEFT_OUT_RING_SPACE;
	if (r == -EPERM)
		return seam_err_add(err, r, "this user may not lock memory "
			"for one page a CPU: see kernel.perf_event_mlock_kb "
			"and 'ulimit -l'");
	return r;
}

/* Sources that own no ring write to the one of their CPU. */
static int share_rings(struct seam_sources *s, struct seam_err *err)
{
	for (size_t i = 0; i < s->n; i++) {
		int owner = s->rings[s->items[i].ring].fd;

		if (s->items[i].fd != owner &&
		    ioctl(s->items[i].fd, PERF_EVENT_IOC_SET_OUTPUT, owner) < 0)
			return seam_err_set(err, -errno, "cannot share the "
				"ring of cpu %d: %s",
				s->rings[s->items[i].ring].cpu,
				strerror(errno));
	}
	return 0;
}

int seam_sources_open(struct seam_sources *s, struct seam_err *err)
{
	size_t got;
	int r = alloc_rings(s, err);

	if (r == 0)
		r = open_all(s, err);
	if (r == 0)
		r = map_what_fits(s, true, SIDEBAND_BYTES, &got, err);
	if (r == 0)
		r = map_what_fits(s, false, s->ring_bytes, &s->ring_bytes,
				  err);
	if (r == 0)
		r = share_rings(s, err);
	if (r < 0)
		seam_sources_fini(s);
	return r;
}

static void control(struct seam_sources *s, unsigned long request)
{
	for (size_t i = 0; i < s->n; i++)
		ioctl(s->items[i].fd, request, 0);
}

void seam_sources_enable(struct seam_sources *s)
{
	control(s, PERF_EVENT_IOC_ENABLE);
}

void seam_sources_disable(struct seam_sources *s)
{
	control(s, PERF_EVENT_IOC_DISABLE);
}

uint64_t seam_sources_lost(const struct seam_sources *s, size_t i)
{
	struct {
		uint64_t value, id, lost;
	} counts = { 0 };
	const struct perf_event_attr *attr = &s->events[s->items[i].event].attr;

	if (!(attr->read_format & PERF_FORMAT_LOST) ||
	    read(s->items[i].fd, &counts, sizeof(counts)) != sizeof(counts))
		return 0;
	return counts.lost;
}

void seam_sources_fini(struct seam_sources *s)
{
	for (size_t i = 0; i < s->n_rings; i++)
		seam_ring_fini(&s->rings[i].ring);
	for (size_t i = 0; i < s->n; i++)
		close(s->items[i].fd);
	free(s->rings);
	free(s->items);
	free(s->cpus.items);
	free(s->tids.items);
	*s = (struct seam_sources) { 0 };
}
