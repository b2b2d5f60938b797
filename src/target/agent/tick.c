/* SPDX-License-Identifier: MIT */
/* tick.c - a task-clock event or a timer of one thread; see tick.h */
#include "target/agent/tick.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ring/layout.h"

enum {
	PAGE = 4096,		/* at least; of the layout */
	RING_BYTES = 2 * PAGE,	/* control page, data */
};

/*
 * The sample up to its callchain.  Source: perf_event_open(2),
 * PERF_RECORD_SAMPLE, for SAMPLE_TYPE.
 */
struct tick_fields {
	struct seam_ring_header header;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t cpu_time_ns;	/* the event's count */
	uint64_t n_chain;
	uint64_t chain[];
};

enum {
	SAMPLE_TYPE = PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_READ |
		      PERF_SAMPLE_CALLCHAIN,
	MAX_CHAIN = SEAM_TICK_MAX_KERNEL + 2,	/* with its context */
	COMPARE_EVERY = 16,	/* samples; a system call each */
};

_Static_assert(sizeof(struct tick_fields) + MAX_CHAIN * 8 <=
	       SEAM_TICK_RECORD_WORDS * 8, "a record fits");

/* ---- the event ---- */

static int open_event(uint64_t period_ns, bool with_kernel, bool may_limit)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = period_ns,
		.sample_type = SAMPLE_TYPE,
		.disabled = 1,
		.exclude_kernel = !with_kernel,
		.exclude_hv = 1,
		.exclude_callchain_kernel = !with_kernel,
		.exclude_callchain_user = 1,
		.write_backward = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.sample_max_stack = may_limit ? SEAM_TICK_MAX_KERNEL : 0,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

/* With kernel.perf_event_max_stack below our limit: that one. */
static int open_within_limit(uint64_t period_ns, bool with_kernel)
{
	int fd = open_event(period_ns, with_kernel, true);

	if (fd < 0 && errno == EOVERFLOW)
		fd = open_event(period_ns, with_kernel, false);
	return fd;
}

static int send_signals(int fd, int signal)
{
	struct f_owner_ex owner = {
		.type = F_OWNER_TID, .pid = (pid_t)syscall(SYS_gettid),
	};

	if (fcntl(fd, F_SETSIG, signal) < 0 ||
	    fcntl(fd, F_SETOWN_EX, &owner) < 0 ||
	    fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC) < 0 ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return -errno;
	return 0;
}

/* Unless another thread abandons it just now: two pages of zeroes stay then. */
static void unmap_ring(struct seam_tick *tick)
{
	void *ring = atomic_exchange(&tick->ring, NULL);

	if (ring)
		munmap(ring, RING_BYTES);
}

static int start_event(struct seam_tick *tick, int signal)
{
	bool with_kernel = true;
	void *ring;
	int fd = open_within_limit(tick->period_ns, true), r;

	if (fd < 0 && (errno == EACCES || errno == EPERM)) {
		with_kernel = false;
		fd = open_within_limit(tick->period_ns, false);
	}
	if (fd < 0)
		return -errno;
	/* read-only: the kernel overwrites the oldest */
	ring = mmap(NULL, RING_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	r = ring == MAP_FAILED ? -errno : 0;
	/* before the first signal */
	tick->fd = fd;
	tick->source = with_kernel ? SEAM_TICK_PERF : SEAM_TICK_PERF_USER;
	if (r == 0) {
		atomic_store(&tick->ring, ring);
		tick->base_ns = seam_clock_thread_ns();
		r = send_signals(fd, signal);
	}
	close(fd);
	if (r == 0)
		return 0;
	tick->source = SEAM_TICK_OFF;
	unmap_ring(tick);
	return r;
}

/* ---- the timer ---- */

static int start_timer(struct seam_tick *tick, int signal)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = signal,
		.sigev_value.sival_ptr = tick,
		._sigev_un._tid = (pid_t)syscall(SYS_gettid),
	};
	struct timespec period = {
		.tv_sec = (time_t)(tick->period_ns / SEAM_NS_PER_S),
		.tv_nsec = (long)(tick->period_ns % SEAM_NS_PER_S),
	};
	struct itimerspec spec = { period, period };

	/* libc's function allocates */
	if (syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event,
		    &tick->timer) < 0)
		return -errno;
	tick->base_ns = seam_clock_thread_ns();
	tick->source = SEAM_TICK_TIMER;
	if (syscall(SYS_timer_settime, tick->timer, 0, &spec, NULL) == 0)
		return 0;
	seam_tick_stop(tick);
	return -errno;
}

int seam_tick_start(struct seam_tick *tick, int signal, uint64_t period_ns)
{
	int r;

	*tick = (struct seam_tick) { .fd = -1, .period_ns = period_ns };
	if (period_ns < SEAM_TICK_MIN_NS)
		return -EINVAL;
	r = start_event(tick, signal);
	if (r == 0)
		return 0;
	tick->refusal = -r;
	return start_timer(tick, signal);
}

void seam_tick_stop(struct seam_tick *tick)
{
	uint8_t source = tick->source;

	tick->source = SEAM_TICK_OFF;
	if (source == SEAM_TICK_TIMER) {
		syscall(SYS_timer_delete, tick->timer);
	} else if (source != SEAM_TICK_OFF) {
		/* a handler in between finds it off */
		atomic_signal_fence(memory_order_seq_cst);
		unmap_ring(tick);
	}
}

void seam_tick_abandon(struct seam_tick *tick)
{
	void *ring, *taken_out = NULL;

	if (tick->source == SEAM_TICK_TIMER) {
		syscall(SYS_timer_delete, tick->timer);
		return;
	}
	/* the thread must not unmap it meanwhile: that could be other memory */
	ring = atomic_exchange(&tick->ring, NULL);
	if (!ring)
		return;
	/* a handler may be reading it: its address stays mapped */
	mmap(ring, RING_BYTES, PROT_READ,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	atomic_compare_exchange_strong(&tick->ring, &taken_out, ring);
}

/* ---- in the handler ---- */

bool seam_tick_is_ours(const struct seam_tick *tick, const siginfo_t *info)
{
	if (!tick->period_ns)
		return false;		/* never started, or wiped by a fork */
	if (info->si_code == SI_TIMER)
		return info->si_value.sival_ptr == tick;
	/* Source: fs/fcntl.c, send_sigio_to_task(); without memory for it the
	   signal comes without its siginfo, from pid 0. */
	if (info->si_code == POLL_IN || info->si_code == POLL_HUP)
		return info->si_fd == tick->fd;
	return info->si_code == SI_USER && info->si_pid == 0 &&
	       tick->source != SEAM_TICK_OFF;
}

/* Copy @size bytes at position @at, which may be in two pieces. */
static void copy(void *out, const uint8_t *data, uint64_t at, size_t size)
{
	size_t start = at & (PAGE - 1);
	size_t first = size < PAGE - start ? size : PAGE - start;

	memcpy(out, data + start, first);
	memcpy((uint8_t *)out + first, data, size - first);
}

/* Copy the newest sample.  False: there is no newer one than the last. */
static bool read_sample(struct seam_tick *tick)
{
	const void *ring = atomic_load(&tick->ring);
	const struct seam_ring_control *control = ring;
	const uint8_t *data = (const uint8_t *)ring + PAGE;
	struct tick_fields *sample = (struct tick_fields *)tick->record;
	uint64_t head;
	size_t size;

	if (!ring)
		return false;		/* just abandoned */
	/* acquire: the sample is complete */
	head = atomic_load_explicit(&control->data_head, memory_order_acquire);
	if (head == tick->seen)
		return false;
	copy(&sample->header, data, head, sizeof(sample->header));
	size = sample->header.size;
	if (sample->header.type != PERF_RECORD_SAMPLE ||
	    size < sizeof(*sample) || size > sizeof(tick->record))
		return false;
	/* ticks in between are far from filling the page */
	copy(sample, data, head, size);
	tick->seen = head;
	return sample->n_chain <= (size - sizeof(*sample)) / 8;
}

/* The part of the callchain after PERF_CONTEXT_KERNEL. */
static void take_kernel(const struct seam_tick *tick,
			struct seam_tick_taken *taken)
{
	const struct tick_fields *sample =
		(const struct tick_fields *)tick->record;
	size_t n = sample->n_chain;

	if (n < 2 || sample->chain[0] != (uint64_t)PERF_CONTEXT_KERNEL)
		return;
	taken->kernel = sample->chain + 1;
	while (taken->n_kernel < n - 1 &&
	       taken->kernel[taken->n_kernel] < (uint64_t)PERF_CONTEXT_MAX)
		taken->n_kernel++;
	taken->is_kernel_cut = taken->n_kernel >= SEAM_TICK_MAX_KERNEL;
}

/* Of the thread, since the start. */
static uint64_t cpu_time_ns(const struct seam_tick *tick)
{
	return seam_clock_thread_ns() - tick->base_ns;
}

/*
 * The ticks up to @now_ns of CPU time, rounded: a signal that comes a little
 * early is not a tick that has to wait for the next one.
 */
static uint64_t count_up_to(struct seam_tick *tick, uint64_t now_ns)
{
	uint64_t half_ns = tick->period_ns / 2;
	uint64_t n = now_ns + half_ns > tick->counted_ns ?
		     (now_ns + half_ns - tick->counted_ns) / tick->period_ns :
		     0;

	tick->counted_ns += n * tick->period_ns;
	tick->n_due += n;
	return n;
}

/*
 * The thread's CPU time at @sample.  The event's count also has time that a
 * hypervisor gave to others (a percent, or many), so it is compared now and
 * then; the handler is a little later than its sample, which the next
 * comparison evens out.
 */
static uint64_t time_of(struct seam_tick *tick,
			const struct tick_fields *sample)
{
	if (tick->n_samples++ % COMPARE_EVERY == 0)
		tick->ahead_ns = (int64_t)(sample->cpu_time_ns -
					   cpu_time_ns(tick));
	return sample->cpu_time_ns - (uint64_t)tick->ahead_ns;
}

void seam_tick_take(struct seam_tick *tick, const siginfo_t *info,
		    struct seam_tick_taken *taken)
{
	const struct tick_fields *sample =
		(const struct tick_fields *)tick->record;

	*taken = (struct seam_tick_taken) {
		.is_ours = seam_tick_is_ours(tick, info),
	};
	if (!taken->is_ours || tick->source == SEAM_TICK_OFF)
		return;
	if (tick->source == SEAM_TICK_TIMER) {
		taken->weight = count_up_to(tick, cpu_time_ns(tick));
		taken->time_ns = seam_clock_ns();
		taken->cpu = UINT32_MAX;
		return;
	}
	if (!read_sample(tick))
		return;
	taken->weight = count_up_to(tick, time_of(tick, sample));
	taken->time_ns = sample->time_ns;
	taken->cpu = sample->cpu;
	take_kernel(tick, taken);
}

uint64_t seam_tick_rest(struct seam_tick *tick)
{
	return tick->source == SEAM_TICK_OFF ? 0 :
	       count_up_to(tick, cpu_time_ns(tick));
}
