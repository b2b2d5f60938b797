/* SPDX-License-Identifier: MIT */
/* sources.c - open, and give up what is refused; see sources.h */
#include "record/sources.h"

#include "record/map_rings.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	/* Of a ring of side-band or AUX records; what is left fills till we run. */
	SIDE_WAKEUP_BYTES = SEAM_SOURCES_SIDE_BYTES / 8,
	/* Woken at a quarter: three are left to fill until we run. */
	WAKEUP_PART = 4,
	MOST_IN_GROUP = 64,
};

/* What every record of ours says of itself. */
#define SAMPLE_TYPE (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |		\
		     PERF_SAMPLE_TID | PERF_SAMPLE_TIME |		\
		     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)

/* Where one thread is watched. */
struct place {
	int tid, cpu;
};

const char *seam_ring_use_name(enum seam_ring_use use)
{
	static const char *const names[] = {
		[SEAM_RING_OF_SIDEBAND] = "sideband",
		[SEAM_RING_OF_SAMPLES] = "samples",
		[SEAM_RING_OF_AREA] = "area",
	};

	return names[use];
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
		.wakeup_watermark = SIDE_WAKEUP_BYTES,
	};
}

static size_t sideband_event(const struct seam_sources *s)
{
	return s->n_events - 1;
}

static size_t count_aux(const struct seam_sources *s)
{
	size_t n = 0;

	for (size_t e = 0; e < sideband_event(s); e++)
		n += s->events[e].aux_kind != 0;
	return n;
}

static bool has_areas(const struct seam_sources *s)
{
	return count_aux(s) > 0;
}

/* Whether anything is sampled beside what goes into AUX areas. */
static bool has_samples(const struct seam_sources *s)
{
	return sideband_event(s) > count_aux(s);
}

static bool is_system_wide(const struct seam_sources *s)
{
	return s->tids.n == 1 && s->tids.items[0] == SEAM_SOURCES_EVERY;
}

/* Of a group, but not its leader, which starts and stops it. */
static bool is_member(const struct seam_sources *s,
		      const struct seam_event *event)
{
	return event->leader >= 0 && event != &s->events[event->leader];
}

/* What all events have in common; perf wants the formats to be equal. */
static void complete(struct seam_sources *s, struct seam_event *event)
{
	struct perf_event_attr *attr = &event->attr;
	bool sideband = event == &s->events[sideband_event(s)];

	attr->size = PERF_ATTR_SIZE_VER7;
	attr->sample_type |= SAMPLE_TYPE;
	attr->read_format |= PERF_FORMAT_ID | PERF_FORMAT_LOST;
	attr->sample_id_all = 1;
	/* a decoder gets from the CPU's counter to the kernel's own clock */
	attr->use_clockid = !has_areas(s);
	attr->clockid = has_areas(s) ? 0 : CLOCK_MONOTONIC;
	/* Source: perf_event_open(2): no inherited event reads its group */
	attr->inherit = !is_system_wide(s) && (sideband || !s->per_thread) &&
			!event->read_by_leader && !event->no_inherit &&
			!s->no_inherit &&
			!(attr->read_format & PERF_FORMAT_GROUP);
	attr->disabled = !is_member(s, event);
	attr->write_backward = s->overwrite && !sideband && !event->aux_kind;
	attr->enable_on_exec = s->on_exec && !is_member(s, event) &&
			       (sideband || !s->delayed);
	if (sideband && s->per_thread) {
		/* a new thread waits for us to be woken by its first record */
		attr->wakeup_watermark = 1;
	} else if (event->aux_kind) {
		/* which thread the bytes are of: beside what tells of them */
		attr->context_switch = 1;
		attr->watermark = 1;
		attr->wakeup_watermark = SIDE_WAKEUP_BYTES;
	} else if (!sideband) {
		uint64_t bytes = s->watermark ? s->watermark :
				 s->ring_bytes / WAKEUP_PART;

		attr->watermark = 1;
		attr->wakeup_watermark = bytes > UINT32_MAX ? UINT32_MAX :
					 (uint32_t)bytes;
	}
}

/* The leader of @event's group at its place, which was opened last; or -1. */
static int group_of(const struct seam_sources *s,
		    const struct seam_event *event)
{
	for (size_t i = s->list.n; is_member(s, event) && i-- > 0; )
		if ((int)s->list.items[i].event == event->leader)
			return s->list.items[i].fd;
	return -1;
}

static int open_one(struct seam_sources *s, struct seam_event *event,
		    struct place place)
{
	for (;;) {
		int fd = (int)syscall(SYS_perf_event_open, &event->attr,
				      place.tid, place.cpu,
				      group_of(s, event),
				      PERF_FLAG_FD_CLOEXEC);

		if (fd >= 0)
			return fd;
		if (errno != EINTR &&
		    !seam_concede(s->events, s->n_events, event, errno,
				  &s->left_out))
			return -errno;
	}
}

static int set_filter(const struct seam_sources *s,
		      const struct seam_source *source, struct seam_err *err)
{
	const struct seam_event *event = &s->events[source->event];

	if (!s->filter || event->attr.type != PERF_TYPE_TRACEPOINT ||
	    ioctl(source->fd, PERF_EVENT_IOC_SET_FILTER, s->filter) == 0)
		return 0;
	return seam_err_set(err, -errno, "'%s' is no filter for '%s': %s",
			    s->filter, event->name, strerror(errno));
}

/*
 * Open event @e at @place.  -ESRCH: the thread is gone; -ENODEV: the CPU,
 * unless it is the first, where it is the event.
 */
static int open_source(struct seam_sources *s, size_t e, struct place place,
		       size_t ring, struct seam_err *err)
{
	int fd = open_one(s, &s->events[e], place);
	struct seam_source *source;

	if (fd == -ESRCH || (fd == -ENODEV && s->list.n > 0))
		return fd;
	if (fd < 0)
		return seam_concede_refusal(fd, &s->events[e], place.tid,
					    err);
	source = SEAM_ARRAY_PUSH(&s->list);
	if (!source) {
		close(fd);
		return seam_err_set(err, -ENOMEM, "out of memory");
	}
	*source = (struct seam_source) {
		.fd = fd, .event = (uint32_t)e, .ring = (uint32_t)ring,
		.tid = place.tid,
	};
	if (ioctl(fd, PERF_EVENT_IOC_ID, &source->id) < 0)
		return seam_err_set(err, -errno, "event '%s': %s",
				    s->events[e].name, strerror(errno));
	return set_filter(s, source, err);
}

/* A ring that nobody owns yet.  Returns its number, or -ENOMEM. */
static ssize_t add_ring(struct seam_sources *s, struct place place,
			enum seam_ring_use use, struct seam_err *err)
{
	struct seam_source_ring *ring = SEAM_ARRAY_PUSH(&s->rings);

	if (!ring)
		return seam_err_set(err, -ENOMEM, "out of memory");
	*ring = (struct seam_source_ring) {
		.cpu = place.cpu, .tid = place.tid, .use = use,
		.is_backward = s->overwrite && use == SEAM_RING_OF_SAMPLES,
		.fd = -1,
	};
	return (ssize_t)s->rings.n - 1;
}

static const struct seam_number_list *sampled(const struct seam_sources *s)
{
	return s->sampled.n ? &s->sampled : &s->cpus;
}

/* The first ring of place number @c; those of a place stand @stride apart. */
struct ring_row {
	size_t first, stride;
};

/*
 * All that is sampled, at one place: samples into one ring, and what writes
 * an AUX area into a ring of its own, because its area belongs to it.
 */
static int open_samples(struct seam_sources *s, struct place place,
			struct ring_row row, struct seam_err *err)
{
	size_t ring = row.first + (has_samples(s) ? row.stride : 0);
	int r = 0;

	for (size_t e = 0; r == 0 && e < sideband_event(s); e++) {
		bool aux = s->events[e].aux_kind;

		r = open_source(s, e, place, aux ? ring : row.first, err);
		if (aux)
			ring += row.stride;
	}
	return r;
}

/* The rings of all that is sampled, at the places @tid on each of @cpus. */
static int add_rings(struct seam_sources *s, int tid,
		     const struct seam_number_list *cpus, struct seam_err *err)
{
	size_t n = count_aux(s) + has_samples(s);
	ssize_t r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++)
		for (size_t c = 0; r >= 0 && c < cpus->n; c++)
			r = add_ring(s, (struct place) { tid, cpus->items[c] },
				     i == 0 && has_samples(s) ?
				     SEAM_RING_OF_SAMPLES : SEAM_RING_OF_AREA,
				     err);
	return r < 0 ? (int)r : 0;
}

/* The rings of one thread alone, and its events in them. */
static int open_own_rings(struct seam_sources *s, int tid,
			  struct seam_err *err)
{
	int every = SEAM_SOURCES_EVERY;
	const struct seam_number_list any = { .items = &every, .n = 1 };
	const struct seam_number_list *cpus = s->sampled.n ? &s->sampled :
					      &any;
	struct ring_row row = { .first = s->rings.n, .stride = cpus->n };
	int r = add_rings(s, tid, cpus, err);

	for (size_t c = 0; r == 0 && c < cpus->n; c++, row.first++)
		r = open_samples(s, (struct place) { tid, cpus->items[c] },
				 row, err);
	return r;
}

/*
 * One thread: the side-band first, so that what the kernel refuses shows
 * before anything else is open.
 */
static int open_thread(struct seam_sources *s, int tid, struct seam_err *err)
{
	int r = 0;

	for (size_t c = 0; r == 0 && c < s->cpus.n; c++) {
		struct place place = { tid, s->cpus.items[c] };

		r = open_source(s, sideband_event(s), place, c, err);
		if (r == -ENODEV)
			r = 0;	/* the CPU went offline */
	}
	if (r == 0 && s->per_thread)
		return open_own_rings(s, tid, err);
	for (size_t c = 0; r == 0 && c < sampled(s)->n; c++) {
		struct place place = { tid, sampled(s)->items[c] };
		struct ring_row row = { s->cpus.n + c, sampled(s)->n };

		r = open_samples(s, place, row, err);
		if (r == -ENODEV)
			r = 0;
	}
	return r;
}

/* The rings that all threads share, in the order that open_thread() knows. */
static int add_shared_rings(struct seam_sources *s, struct seam_err *err)
{
	ssize_t r = 0;

	for (size_t c = 0; r >= 0 && c < s->cpus.n; c++)
		r = add_ring(s, (struct place) { SEAM_SOURCES_EVERY,
			     s->cpus.items[c] }, SEAM_RING_OF_SIDEBAND, err);
	if (r < 0 || s->per_thread)
		return r < 0 ? (int)r : 0;
	return add_rings(s, SEAM_SOURCES_EVERY, sampled(s), err);
}

static int open_all(struct seam_sources *s, struct seam_err *err)
{
	int r = 0;

	for (size_t e = 0; e < s->n_events; e++)
		complete(s, &s->events[e]);
	for (size_t t = 0; r == 0 && t < s->tids.n; t++) {
		r = open_thread(s, s->tids.items[t], err);
		if (r == -ESRCH)
			r = 0;	/* it has ended */
	}
	if (r == 0 && s->list.n == 0)
		return seam_err_set(err, -ESRCH, "the process has ended");
	return r;
}

int seam_sources_open(struct seam_sources *s, struct seam_err *err)
{
	struct seam_ring_sizes sizes = {
		.samples = s->ring_bytes, .area = s->area_bytes,
	};
	int r = add_shared_rings(s, err);

	if (r == 0)
		r = open_all(s, err);
	if (r == 0)
		r = seam_sources_map(s, 0, &sizes, err);
	s->ring_bytes = sizes.samples;
	s->area_bytes = sizes.area;
	if (r < 0)
		seam_sources_fini(s);
	return r;
}

static void enable_one(const struct seam_source *source)
{
	ioctl(source->fd, PERF_EVENT_IOC_ENABLE, 0);
}

/* Take back what was opened from source @first and ring @ring on. */
static void drop(struct seam_sources *s, size_t first, size_t ring)
{
	for (size_t i = ring; i < s->rings.n; i++) {
		seam_ring_aux_fini(&s->rings.items[i].aux);
		seam_ring_fini(&s->rings.items[i].ring);
	}
	for (size_t i = first; i < s->list.n; i++)
		close(s->list.items[i].fd);
	s->list.n = first;
	s->rings.n = ring;
}

int seam_sources_add_thread(struct seam_sources *s, int tid,
			    struct seam_err *err)
{
	size_t first = s->list.n, ring = s->rings.n;
	struct seam_ring_sizes sizes = {
		.samples = s->ring_bytes, .area = s->area_bytes,
	};
	int r;

	if (ring >= SEAM_SOURCES_MOST_THREADS)
		return seam_err_set(err, -EMFILE, "more than %d threads",
				    SEAM_SOURCES_MOST_THREADS);
	r = open_own_rings(s, tid, err);
	if (r == 0)
		r = seam_sources_map(s, first, &sizes, err);
	for (size_t i = first; r == 0 && !s->delayed && i < s->list.n; i++)
		enable_one(&s->list.items[i]);
	if (r < 0)
		drop(s, first, ring);
	return r;
}

void seam_sources_end_thread(struct seam_sources *s, int tid)
{
	for (size_t i = 0; i < s->list.n; i++) {
		struct seam_source *source = &s->list.items[i];
		struct seam_source_ring *ring =
			&s->rings.items[source->ring];

		if (source->tid != tid || source->fd < 0 ||
		    ring->use == SEAM_RING_OF_SIDEBAND)
			continue;
		source->n_lost = seam_sources_lost(s, i);
		if (ring->fd == source->fd) {
			seam_ring_aux_fini(&ring->aux);
			seam_ring_fini(&ring->ring);
			ring->fd = -1;
		}
		close(source->fd);
		source->fd = -1;
	}
}

void seam_sources_enable(struct seam_sources *s)
{
	for (size_t i = 0; i < s->list.n; i++)
		if (!s->delayed ||
		    s->list.items[i].event == sideband_event(s))
			enable_one(&s->list.items[i]);
}

void seam_sources_restart(struct seam_sources *s, uint32_t ring)
{
	for (size_t i = 0; i < s->list.n; i++)
		if (s->list.items[i].ring == ring && s->list.items[i].fd >= 0)
			enable_one(&s->list.items[i]);
}

void seam_sources_stop_thread(struct seam_sources *s, int tid)
{
	for (size_t i = 0; i < s->list.n; i++) {
		const struct seam_source *source = &s->list.items[i];

		if (source->tid == tid && source->fd >= 0 &&
		    s->rings.items[source->ring].use != SEAM_RING_OF_SIDEBAND)
			ioctl(source->fd, PERF_EVENT_IOC_DISABLE, 0);
	}
}

void seam_sources_hold_areas(struct seam_sources *s, bool hold)
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
	for (size_t i = 0; i < s->list.n; i++)
		ioctl(s->list.items[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

uint64_t seam_sources_lost(const struct seam_sources *s, size_t i)
{
	const struct seam_source *source = &s->list.items[i];
	const struct perf_event_attr *attr = &s->events[source->event].attr;
	/* value, id, lost; of a group its size before, the others behind */
	size_t first = attr->read_format & PERF_FORMAT_GROUP ? 1 : 0;
	uint64_t counts[1 + 3 * MOST_IN_GROUP];
	ssize_t n;

	if (source->fd < 0)
		return source->n_lost;
	if (!(attr->read_format & PERF_FORMAT_LOST))
		return 0;
	n = read(source->fd, counts, sizeof(counts));
	return n < (ssize_t)((first + 3) * sizeof(*counts)) ? 0 :
	       counts[first + 2];
}

void seam_sources_fini(struct seam_sources *s)
{
	drop(s, 0, 0);
	free(s->rings.items);
	free(s->list.items);
	free(s->cpus.items);
	free(s->sampled.items);
	free(s->tids.items);
	*s = (struct seam_sources) { 0 };
}
