/* SPDX-License-Identifier: MIT */
/* sources.c - open, map, enable, count; see sources.h */
#include "record/perf/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"

enum {
	/*
	 * Wakeup at an eighth of a small ring, at a quarter of one of samples:
	 * the rest may fill before the recorder runs.
	 */
	SMALL_WAKEUP_BYTES = SEAM_SOURCES_SMALL_RING_BYTES / 8,
	WAKEUP_PART = 4,
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

bool seam_sources_read_sideband(const void *header,
				struct seam_perf_sideband *out)
{
	struct seam_perf_record record = seam_perf_record_at(header);

	return seam_perf_sideband_read(&seam_sources_common, SEAM_NATIVE,
				       &record, out) == 0;
}

const char *seam_ring_use_name(enum seam_ring_use use)
{
	static const char *const names[] = {
		[SEAM_RING_OF_SIDEBAND] = "sideband",
		[SEAM_RING_OF_SAMPLES] = "samples",
		[SEAM_RING_OF_AUX] = "area",
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
	return e != s->sideband &&
	       s->events[e].origin != SEAM_EVENT_OF_PROGRAM;
}

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
			(sideband || !s->per_thread) &&
			!event->read_by_leader && !event->no_inherit &&
			!s->no_inherit &&
			!(attr->read_format & PERF_FORMAT_GROUP);
	attr->disabled = !is_member(s, event);
	attr->write_backward = s->overwrite && !sideband && !event->aux_kind;
	attr->enable_on_exec = s->on_exec && !is_member(s, event) &&
			       (sideband || !s->delayed);
	if (sideband && s->per_thread) {
		/* a new thread is sampled only after its FORK record is read */
		attr->wakeup_watermark = 1;
	} else if (event->aux_kind) {
		/* a decoder assigns AUX data to threads by SWITCH records */
		attr->context_switch = 1;
		attr->watermark = 1;
		attr->wakeup_watermark = SMALL_WAKEUP_BYTES;
	} else if (!sideband) {
		uint64_t bytes = s->watermark ? s->watermark :
				 s->ring_bytes / WAKEUP_PART;

		attr->watermark = 1;
		attr->wakeup_watermark = bytes > UINT32_MAX ? UINT32_MAX :
					 (uint32_t)bytes;
	}
}

/* The leader of @event's group, opened last at the same place; or -1. */
static int group_of(const struct seam_sources *s,
		    const struct seam_event *event)
{
	for (size_t i = s->list.n; is_member(s, event) && i-- > 0; )
		if ((int)s->list.items[i].event == event->leader)
			return s->list.items[i].fd;
	return -1;
}

/* Whether event @e measures for how long its CPU was online. */
static bool counts_time(const struct seam_sources *s, size_t e)
{
	return seam_sources_is_system_wide(s) && e == s->sideband;
}

static int open_event(struct seam_sources *s, size_t e,
		      struct cpu_and_thread place)
{
	struct seam_event *event = &s->events[e];

	for (;;) {
		/* not in the file, where perf requires equal formats */
		struct perf_event_attr attr = event->attr;
		int fd;

		if (counts_time(s, e))
			attr.read_format |= PERF_FORMAT_TOTAL_TIME_ENABLED;
		fd = (int)syscall(SYS_perf_event_open, &attr, place.tid,
				  place.cpu, group_of(s, event),
				  PERF_FLAG_FD_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (errno != EINTR &&
		    !seam_fallback(s->events, s->n_events, event, errno,
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
	return seam_err_errno(err, "cannot use filter '%s' for '%s'", s->filter,
			      event->name);
}

/*
 * Open event @e at @place.  -ESRCH: the thread has ended; -ENODEV: the CPU is
 * offline, except for the first source, where the event does not exist.
 */
static int open_source(struct seam_sources *s, size_t e,
		       struct cpu_and_thread place, size_t ring,
		       struct seam_err *err)
{
	int fd = open_event(s, e, place);
	struct seam_source *source;

	if (fd == -ESRCH || (fd == -ENODEV && s->list.n > 0))
		return fd;
	if (fd < 0)
		return seam_fallback_refusal(fd, &s->events[e], place.tid,
					     err);
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
				      s->events[e].name);
	return set_filter(s, source, err);
}

/* A ring without an owner yet.  Returns its index, or -ENOMEM. */
static ssize_t add_ring(struct seam_sources *s, struct cpu_and_thread place,
			enum seam_ring_use use, struct seam_err *err)
{
	struct seam_source_ring *ring = SEAM_ARRAY_PUSH(&s->rings);

	if (!ring)
		return seam_err_no_memory(err);
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

/* The first ring of a place; the others of that place follow @stride apart. */
struct ring_row {
	size_t first, stride;
};

/*
 * Everything but the side-band, at one place: samples go into one ring, each
 * event with an AUX buffer into a ring of its own.
 */
static int open_samples(struct seam_sources *s, struct cpu_and_thread place,
			struct ring_row row, struct seam_err *err)
{
	size_t ring = row.first + (has_samples(s) ? row.stride : 0);
	int r = 0;

	for (size_t e = 0; r == 0 && e < s->n_events; e++) {
		bool aux = s->events[e].aux_kind;

		if (!is_sampled(s, e))
			continue;
		r = open_source(s, e, place, aux ? ring : row.first, err);
		if (aux)
			ring += row.stride;
	}
	return r;
}

/* The rings of samples and AUX records, for @tid on each of @cpus. */
static int add_rings(struct seam_sources *s, int tid,
		     const struct seam_number_list *cpus, struct seam_err *err)
{
	size_t n = count_aux(s) + has_samples(s);
	ssize_t r = 0;

	for (size_t i = 0; i < n; i++) {
		enum seam_ring_use use = i == 0 && has_samples(s) ?
			SEAM_RING_OF_SAMPLES : SEAM_RING_OF_AUX;

		for (size_t c = 0; r >= 0 && c < cpus->n; c++) {
			struct cpu_and_thread place = { tid, cpus->items[c] };

			r = add_ring(s, place, use, err);
		}
	}
	return r < 0 ? (int)r : 0;
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
	int every = SEAM_SOURCES_EVERY;
	const struct seam_number_list any = { .items = &every, .n = 1 };
	const struct seam_number_list *cpus = s->sampled.n ? &s->sampled :
					      &any;
	struct ring_row row = { .first = s->rings.n, .stride = cpus->n };
	int r = add_rings(s, tid, cpus, err);

	*thread = (struct seam_source_thread) {
		.tid = tid, .first_source = (uint32_t)s->list.n,
		.first_ring = (uint32_t)row.first,
	};
	for (size_t c = 0; r == 0 && c < cpus->n; c++, row.first++)
		r = open_samples(s, (struct cpu_and_thread) {
				 tid, cpus->items[c] }, row, err);
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
	struct seam_source_thread thread;
	int r = 0;

	for (size_t c = 0; r == 0 && c < s->cpus.n; c++) {
		struct cpu_and_thread place = { tid, s->cpus.items[c] };

		r = open_source(s, s->sideband, place, c, err);
		if (r == -ENODEV)
			r = 0;	/* the CPU went offline */
	}
	if (r == 0 && s->per_thread) {
		r = open_own_rings(s, tid, &thread, err);
		return r == 0 ? remember_thread(s, &thread, err) : r;
	}
	for (size_t c = 0; r == 0 && c < sampled(s)->n; c++) {
		struct cpu_and_thread place = { tid, sampled(s)->items[c] };
		struct ring_row row = { s->cpus.n + c, sampled(s)->n };

		r = open_samples(s, place, row, err);
		if (r == -ENODEV)
			r = 0;
	}
	return r;
}

/* The rings that all threads share, in the order of open_thread(). */
static int add_shared_rings(struct seam_sources *s, struct seam_err *err)
{
	ssize_t r = 0;

	for (size_t c = 0; r >= 0 && c < s->cpus.n; c++)
		r = add_ring(s, (struct cpu_and_thread) { SEAM_SOURCES_EVERY,
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

/* ---- rings ---- */

/* Bytes of each ring and AUX buffer, powers of two: requested, then mapped. */
struct ring_sizes {
	size_t samples, aux;
};

/* Rings, or their AUX buffers, that are mapped in one size. */
struct ring_kind {
	enum seam_ring_use use;
	bool is_aux;
	size_t *bytes;		/* requested, then mapped */
};

/* The ring of @kind that source @i writes to, or NULL. */
static struct seam_source_ring *ring_of(struct seam_sources *s, size_t i,
					const struct ring_kind *kind)
{
	struct seam_source_ring *ring =
		&s->rings.items[s->list.items[i].ring];

	return ring->use == kind->use ? ring : NULL;
}

static int map_ring(struct seam_source_ring *ring, int fd, size_t bytes,
		    struct seam_err *err)
{
	int r = seam_ring_map(&ring->ring, fd, bytes, ring->is_backward, err);

	if (r == 0) {
		ring->fd = fd;
		ring->size_bytes = bytes;
	}
	return r;
}

/* The event that owns the ring has the buffer.  Source: perf_mmap(). */
static int map_aux(const struct seam_sources *s, struct seam_source_ring *ring,
		   const struct seam_event *event, size_t bytes,
		   struct seam_err *err)
{
	int r = seam_ring_aux_map(&ring->aux, &ring->ring, ring->fd, bytes,
				  s->aux_snapshots, err);

	if (r == 0)
		ring->aux_bytes = bytes;
	return r == -EOPNOTSUPP ? seam_err_add(err, r, "'%s' writes no AUX "
					       "buffer", event->name) : r;
}

static int map_all(struct seam_sources *s, const struct ring_kind *kind,
		   size_t first, struct seam_err *err)
{
	int r = 0;

	for (size_t i = first; r == 0 && i < s->list.n; i++) {
		struct seam_source_ring *ring = ring_of(s, i, kind);
		const struct seam_source *source = &s->list.items[i];

		if (!ring ||
		    (kind->is_aux ? ring->aux.size > 0 : ring->fd >= 0))
			continue;
		r = kind->is_aux ? map_aux(s, ring, &s->events[source->event],
					   *kind->bytes, err) :
		    map_ring(ring, source->fd, *kind->bytes, err);
	}
	return r;
}

static void unmap_all(struct seam_sources *s, const struct ring_kind *kind,
		      size_t first)
{
	for (size_t i = first; i < s->list.n; i++) {
		struct seam_source_ring *ring = ring_of(s, i, kind);

		if (ring && kind->is_aux) {
			seam_ring_aux_fini(&ring->aux);
		} else if (ring) {
			seam_ring_fini(&ring->ring);
			ring->fd = -1;
		}
	}
}

static int map_largest(struct seam_sources *s, const struct ring_kind *kind,
		       size_t first, struct seam_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), wanted = *kind->bytes;
	int r;

	for (;; *kind->bytes /= 2) {
		r = map_all(s, kind, first, err);
		if ((r != -EPERM && r != -ENOMEM) || *kind->bytes / 2 < page)
			break;
		unmap_all(s, kind, first);
	}
	if (*kind->bytes < wanted)
		s->left_out |= SEAM_LEFT_OUT_RING_SPACE;
	if (r == -EPERM)
		return seam_err_add(err, r, "this user may not lock memory "
			"for one page a ring: see kernel.perf_event_mlock_kb "
			"and 'ulimit -l'");
	return r;
}

static int share_rings(struct seam_sources *s, size_t first,
		       struct seam_err *err)
{
	for (size_t i = first; i < s->list.n; i++) {
		int fd = s->list.items[i].fd;
		const struct seam_source_ring *ring =
			&s->rings.items[s->list.items[i].ring];

		if (fd != ring->fd &&
		    ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0)
			return seam_err_errno(err, "cannot share the ring of "
					      "cpu %d", ring->cpu);
	}
	return 0;
}

/*
 * Map the rings of the sources from index @first on that are not mapped yet:
 * all of one kind in one size, halved until that much memory can be had.  And
 * redirect sources that own no ring to the ring of their CPU or thread.
 * -EPERM: the user may not lock even one page a ring; -EOPNOTSUPP: an event has
 * no AUX buffer, though its aux_kind is set.
 */
static int map_rings(struct seam_sources *s, size_t first,
		     struct ring_sizes *sizes, struct seam_err *err)
{
	size_t small[2] = {
		SEAM_SOURCES_SMALL_RING_BYTES, SEAM_SOURCES_SMALL_RING_BYTES,
	};
	/* the small ones first: the samples get what is left */
	const struct ring_kind kinds[] = {
		{ SEAM_RING_OF_SIDEBAND, false, &small[0] },
		{ SEAM_RING_OF_AUX, false, &small[1] },
		{ SEAM_RING_OF_AUX, true, &sizes->aux },
		{ SEAM_RING_OF_SAMPLES, false, &sizes->samples },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < SEAM_ARRAY_SIZE(kinds); i++)
		r = map_largest(s, &kinds[i], first, err);
	return r == 0 ? share_rings(s, first, err) : r;
}

/* ---- open, start, stop ---- */

/* Add the rings from @first on, which are mapped, to the live ones. */
static int add_live(struct seam_sources *s, size_t first, struct seam_err *err)
{
	if (!SEAM_ARRAY_RESERVE(&s->live, s->rings.n - first))
		return seam_err_no_memory(err);
	for (size_t i = first; i < s->rings.n; i++)
		s->live.items[s->live.n++] = (uint32_t)i;
	return 0;
}

int seam_sources_open(struct seam_sources *s, struct seam_err *err)
{
	struct ring_sizes sizes = {
		.samples = s->ring_bytes, .aux = s->aux_bytes,
	};
	int r = add_shared_rings(s, err);

	if (r == 0)
		r = open_all(s, err);
	if (r == 0)
		r = map_rings(s, 0, &sizes, err);
	if (r == 0)
		r = add_live(s, 0, err);
	s->ring_bytes = sizes.samples;
	s->aux_bytes = sizes.aux;
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

static void disable_one(struct seam_source *source)
{
	if (source->fd < 0)
		return;
	source->disabled_at_ns = seam_clock_ns();
	ioctl(source->fd, PERF_EVENT_IOC_DISABLE, 0);
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

int seam_sources_check_fds(const struct seam_sources *s, struct seam_err *err)
{
	struct rlimit limit;
	rlim_t last = s->list.n ? (rlim_t)s->list.items[s->list.n - 1].fd : 0;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
	    last + SEAM_SOURCES_SPARE_FDS < limit.rlim_cur)
		return 0;
	return seam_err_set(err, -EMFILE, "%s", strerror(EMFILE));
}

int seam_sources_add_thread(struct seam_sources *s, int tid,
			    struct seam_err *err)
{
	size_t first = s->list.n, ring = s->rings.n, threads = s->threads.n;
	struct seam_source_thread thread;
	struct ring_sizes sizes = {
		.samples = s->ring_bytes, .aux = s->aux_bytes,
	};
	int r;

	if (s->threads.n >= SEAM_SOURCES_MAX_THREADS)
		return seam_err_set(err, -EMFILE, "a recording has room for "
				    "%d threads", SEAM_SOURCES_MAX_THREADS);
	r = open_own_rings(s, tid, &thread, err);
	if (r == 0)
		r = seam_sources_check_fds(s, err);
	if (r == 0)
		r = map_rings(s, first, &sizes, err);
	if (r == 0)
		r = remember_thread(s, &thread, err);
	if (r == 0)
		r = add_live(s, ring, err);
	for (size_t i = first; r == 0 && !s->delayed && i < s->list.n; i++)
		enable_one(&s->list.items[i]);
	if (r == 0)
		return 0;
	if (s->threads.n > threads)
		s->threads.items[threads].has_ended = true;
	close_from(s, first, ring);
	return r;
}

void seam_sources_enable(struct seam_sources *s)
{
	for (size_t i = 0; i < s->list.n; i++)
		if (!s->delayed ||
		    s->list.items[i].event == s->sideband)
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
	for (size_t i = 0; i < s->list.n; i++)
		disable_one(&s->list.items[i]);
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

void seam_sources_stop_thread(struct seam_sources *s, int tid)
{
	const struct seam_source_thread *thread = seam_sources_thread(s, tid);

	for (size_t i = 0; thread && i < thread->n_sources; i++) {
		int fd = s->list.items[thread->first_source + i].fd;

		if (fd >= 0)
			ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	}
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

/* Remove @n rings from index @first on from the mapped ones. */
static void remove_live(struct seam_sources *s, uint32_t first, uint32_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->live.n; i++)
		if (s->live.items[i] - first >= n)
			s->live.items[kept++] = s->live.items[i];
	s->live.n = kept;
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
