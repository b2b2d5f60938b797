/* SPDX-License-Identifier: MIT */
/* sources.c - open, give up what is refused, map; see sources.h */
#include "record/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
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

void seam_sources_sideband(struct seam_event *event)
{
	*event = (struct seam_event) {
		.name = "dummy:HG", .leader = SEAM_EVENT_ALONE,
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
		.wakeup_watermark = SIDEBAND_WAKEUP_BYTES,
	};
}

static size_t sideband_event(const struct seam_sources *s)
{
	return s->n_events - 1;
}

static bool is_system_wide(const struct seam_sources *s)
{
	return s->tids.n == 1 && s->tids.items[0] == SEAM_SOURCES_EVERY;
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
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	/* Source: perf_event_open(2): no inherited event reads its group */
	attr->inherit = !is_system_wide(s) && (sideband || !s->per_thread) &&
			event->leader == SEAM_EVENT_ALONE;
	attr->disabled = !event->read_by_leader;
	attr->write_backward = s->overwrite && !sideband;
	attr->enable_on_exec = s->on_exec && !event->read_by_leader &&
			       (sideband || !s->delayed);
	if (sideband && s->per_thread) {
		/* a new thread waits for us to be woken by its first record */
		attr->wakeup_watermark = 1;
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
	for (size_t i = s->list.n; event->read_by_leader && i-- > 0; )
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
		return seam_concede_refusal(fd, &s->events[e],
					    is_system_wide(s), err);
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
			bool is_sideband, struct seam_err *err)
{
	struct seam_source_ring *ring = SEAM_ARRAY_PUSH(&s->rings);

	if (!ring)
		return seam_err_set(err, -ENOMEM, "out of memory");
	*ring = (struct seam_source_ring) {
		.cpu = place.cpu, .tid = place.tid,
		.is_sideband = is_sideband,
		.is_backward = s->overwrite && !is_sideband,
		.fd = -1,
	};
	return (ssize_t)s->rings.n - 1;
}

/* All that is sampled, at one place, into one ring. */
static int open_samples(struct seam_sources *s, struct place place,
			size_t ring, struct seam_err *err)
{
	int r = 0;

	for (size_t e = 0; r == 0 && e < sideband_event(s); e++)
		r = open_source(s, e, place, ring, err);
	return r;
}

static const struct seam_number_list *sampled(const struct seam_sources *s)
{
	return s->sampled.n ? &s->sampled : &s->cpus;
}

/* The rings of one thread alone, and its events in them. */
static int open_own_rings(struct seam_sources *s, int tid,
			  struct seam_err *err)
{
	size_t n = s->sampled.n ? s->sampled.n : 1;
	int r = 0;

	for (size_t c = 0; r == 0 && c < n; c++) {
		struct place place = { tid, s->sampled.n ?
			s->sampled.items[c] : SEAM_SOURCES_EVERY };
		ssize_t ring = add_ring(s, place, false, err);

		r = ring < 0 ? (int)ring :
		    open_samples(s, place, (size_t)ring, err);
	}
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

		r = open_samples(s, place, s->cpus.n + c, err);
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
			     s->cpus.items[c] }, true, err);
	for (size_t c = 0; r >= 0 && !s->per_thread && c < sampled(s)->n; c++)
		r = add_ring(s, (struct place) { SEAM_SOURCES_EVERY,
			     sampled(s)->items[c] }, false, err);
	return r < 0 ? (int)r : 0;
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

/*
 * A mapping that cannot be written is what makes the kernel overwrite: no
 * reader can keep it from that.  Source: perf_mmap() of Linux.
 */
static int map_backward(struct seam_ring *ring, int fd, size_t bytes,
			struct seam_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page + bytes, PROT_READ, MAP_SHARED, fd, 0);

	*ring = (struct seam_ring) { 0 };
	if (p == MAP_FAILED)
		return seam_err_set(err, -errno, "cannot map a ring of %zu "
				    "KiB: %s", bytes / 1024, strerror(errno));
	*ring = (struct seam_ring) {
		.control = p, .data = (const uint8_t *)p + page,
		.size = bytes, .mapped_bytes = page + bytes,
	};
	return 0;
}

/* Map the rings of one kind that are not mapped, @bytes each. */
static int map_kind(struct seam_sources *s, bool sideband, size_t bytes,
		    size_t first, struct seam_err *err)
{
	for (size_t i = first; i < s->list.n; i++) {
		const struct seam_source *source = &s->list.items[i];
		struct seam_source_ring *ring = &s->rings.items[source->ring];
		int r;

		if (ring->is_sideband != sideband || ring->fd >= 0)
			continue;
		r = ring->is_backward ?
		    map_backward(&ring->ring, source->fd, bytes, err) :
		    seam_ring_map(&ring->ring, source->fd, bytes, err);
		if (r < 0)
			return r;
		ring->fd = source->fd;
		ring->size_bytes = bytes;
	}
	return 0;
}

static void unmap_kind(struct seam_sources *s, bool sideband, size_t first)
{
	for (size_t i = first; i < s->list.n; i++) {
		struct seam_source_ring *ring =
			&s->rings.items[s->list.items[i].ring];

		if (ring->is_sideband != sideband)
			continue;
		seam_ring_fini(&ring->ring);
		ring->fd = -1;
	}
}

/*
 * As above, with half the space as often as the user may not lock it all, or
 * the kernel has none.  Only the rings of sources from @first on.
 */
static int map_what_fits(struct seam_sources *s, bool sideband, size_t *bytes,
			 size_t first, struct seam_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), wanted = *bytes;
	int r;

	for (;; *bytes /= 2) {
		r = map_kind(s, sideband, *bytes, first, err);
		if ((r != -EPERM && r != -ENOMEM) || *bytes / 2 < page)
			break;
		unmap_kind(s, sideband, first);
	}
	if (*bytes < wanted)
		s->left_out |= SEAM_LEFT_OUT_RING_SPACE;
	if (r == -EPERM)
		return seam_err_add(err, r, "this user may not lock memory "
			"for one page a ring: see kernel.perf_event_mlock_kb "
			"and 'ulimit -l'");
	return r;
}

/* Sources that own no ring write to that of their place. */
static int share_rings(struct seam_sources *s, size_t first,
		       struct seam_err *err)
{
	for (size_t i = first; i < s->list.n; i++) {
		int fd = s->list.items[i].fd;
		const struct seam_source_ring *ring =
			&s->rings.items[s->list.items[i].ring];

		if (fd != ring->fd &&
		    ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0)
			return seam_err_set(err, -errno, "cannot share the "
				"ring of cpu %d: %s", ring->cpu,
				strerror(errno));
	}
	return 0;
}

int seam_sources_open(struct seam_sources *s, struct seam_err *err)
{
	size_t sideband_bytes = SIDEBAND_BYTES;
	int r = add_shared_rings(s, err);

	if (r == 0)
		r = open_all(s, err);
	if (r == 0)
		r = map_what_fits(s, true, &sideband_bytes, 0, err);
	if (r == 0)
		r = map_what_fits(s, false, &s->ring_bytes, 0, err);
	if (r == 0)
		r = share_rings(s, 0, err);
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
	size_t bytes = s->ring_bytes;
	int r;

	if (ring >= SEAM_SOURCES_MOST_THREADS)
		return seam_err_set(err, -EMFILE, "more than %d threads",
				    SEAM_SOURCES_MOST_THREADS);
	r = open_own_rings(s, tid, err);
	if (r == 0)
		r = map_what_fits(s, false, &bytes, first, err);
	if (r == 0)
		r = share_rings(s, first, err);
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

		if (source->tid != tid || ring->is_sideband || source->fd < 0)
			continue;
		source->n_lost = seam_sources_lost(s, i);
		if (ring->fd == source->fd) {
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

void seam_sources_disable(struct seam_sources *s)
{
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
