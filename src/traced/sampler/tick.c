/* SPDX-License-Identifier: MIT */
/* tick.c - a task-clock event or a timer of one thread; see tick.h */
#include "traced/sampler/tick.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
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

/*
 * siginfo of such a signal.  Source: include/uapi/asm-generic/siginfo.h,
 * _sigfault._perf; glibc 2.36 has no names for it.
 */
enum { CODE_PERF = 6, PERF_DATA_AT = 24 };

/* Its address is the data of all our events. */
static const char own_data;

static struct perf_event_attr attr_of(int signal, uint64_t period_ns,
				      bool with_kernel)
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
		.sample_max_stack = SEAM_TICK_MAX_KERNEL,
	};

	if (signal == SIGTRAP) {
		attr.sigtrap = attr.remove_on_exec = 1;
		attr.sig_data = (uintptr_t)&own_data;
	}
	return attr;
}

/* With kernel.perf_event_max_stack below our limit: that one. */
static int open_event(int32_t tid, struct perf_event_attr *attr)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, tid, -1, -1,
			      PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0 || errno != EOVERFLOW)
		return fd;
	attr->sample_max_stack = 0;
	return (int)syscall(SYS_perf_event_open, attr, tid, -1, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

/*
 * From Linux 6.15.  Before 6.11 the signal is sent in the system call that the
 * tick interrupts, and before 5.18 it kills where it is blocked.  From 6.11
 * until 6.15 closing an event whose signal is due may wait for ever.  Source:
 * Linux, c5d93d23a260, 78ed93d72ded, 56799bc03565.
 */
static bool is_new_kernel(void)
{
	enum { MAJOR = 6, MINOR = 15 };
	struct utsname name;
	int part[2] = { 0, 0 }, i = 0;

	if (uname(&name))
		return false;
	for (const char *p = name.release; i < 2; p++)
		if (*p >= '0' && *p <= '9' && part[i] < 1000)
			part[i] = part[i] * 10 + (*p - '0');
		else if (*p != '.' || ++i == 2)
			break;
	return part[0] > MAJOR || (part[0] == MAJOR && part[1] >= MINOR);
}

/* A debugger stops at each SIGTRAP. */
static bool is_traced(void)
{
	static const char field[] = "\nTracerPid:\t";
	char text[1024];
	const char *found;
	ssize_t n = -1;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n < 0)
		return true;
	text[n] = 0;
	found = strstr(text, field);
	return !found || found[sizeof(field) - 1] != '0';
}

int seam_tick_signal(void)
{
	struct perf_event_attr attr = attr_of(SIGTRAP, SEAM_NS_PER_S, false);
	int fd = is_new_kernel() && !is_traced() ? open_event(0, &attr) : -1;

	if (fd < 0)
		return SIGURG;
	close(fd);
	return SIGTRAP;
}

static int send_signals(int fd, int32_t tid, int signal)
{
	struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = tid };

	if ((signal != SIGTRAP &&
	     (fcntl(fd, F_SETSIG, signal) < 0 ||
	      fcntl(fd, F_SETOWN_EX, &owner) < 0 ||
	      fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC) < 0)) ||
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

/*
 * The clock of a thread's CPU time.  Source: include/linux/posix-timers_types.h,
 * MAKE_THREAD_CPUCLOCK(tid, CPUCLOCK_SCHED).
 */
static clockid_t clock_of(int32_t tid)
{
	return (clockid_t)(~(uint32_t)tid << 3 | 6);
}

static int start_event(struct seam_tick *tick, int32_t tid, int signal)
{
	struct perf_event_attr attr = attr_of(signal, tick->period_ns, true);
	bool with_kernel = true;
	void *ring;
	int fd = open_event(tid, &attr), r;

	if (fd < 0 && (errno == EACCES || errno == EPERM)) {
		with_kernel = false;
		attr = attr_of(signal, tick->period_ns, false);
		fd = open_event(tid, &attr);
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
		tick->base_ns = seam_clock_now(clock_of(tid));
		r = send_signals(fd, tid, signal);
	}
	close(fd);
	if (r == 0)
		return 0;
	tick->source = SEAM_TICK_OFF;
	unmap_ring(tick);
	return r;
}

/* ---- the timer ---- */

static int start_timer(struct seam_tick *tick, int32_t tid, int signal)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = signal,
		.sigev_value.sival_ptr = tick,
		._sigev_un._tid = tid,
	};
	struct timespec period = {
		.tv_sec = (time_t)(tick->period_ns / SEAM_NS_PER_S),
		.tv_nsec = (long)(tick->period_ns % SEAM_NS_PER_S),
	};
	struct itimerspec spec = { period, period };

	/* libc's function allocates */
	if (syscall(SYS_timer_create, clock_of(tid), &event, &tick->timer) < 0)
		return -errno;
	tick->base_ns = seam_clock_now(clock_of(tid));
	tick->source = SEAM_TICK_TIMER;
	if (syscall(SYS_timer_settime, tick->timer, 0, &spec, NULL) == 0)
		return 0;
	seam_tick_stop(tick);
	return -errno;
}

int seam_tick_start(struct seam_tick *tick, int32_t tid, int signal,
		    uint64_t period_ns)
{
	int r;

	*tick = (struct seam_tick) {
		.fd = -1, .period_ns = period_ns, .pid = getpid(),
	};
	if (period_ns < SEAM_TICK_MIN_NS)
		return -EINVAL;
	r = start_event(tick, tid, signal);
	if (r == 0)
		return 0;
	tick->refusal = -r;
	return start_timer(tick, tid, signal);
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
	uint64_t data;

	/* any event of ours: the program must not get its signal */
	if (info->si_signo == SIGTRAP && info->si_code == CODE_PERF) {
		memcpy(&data, (const char *)info + PERF_DATA_AT, sizeof(data));
		return data == (uintptr_t)&own_data;
	}
	if (!tick->period_ns)
		return false;		/* never started, or cleared */
	if (info->si_code == SI_TIMER)
		return info->si_value.sival_ptr == tick;
	if (tick->pid != getpid())
		return false;		/* a copy, of a parent's */
	/* Source: fs/fcntl.c, send_sigio_to_task(); without memory for it the
	   signal comes without its siginfo, from pid 0. */
	if (info->si_code == POLL_IN || info->si_code == POLL_HUP)
		return info->si_fd == tick->fd;
	return info->si_code == SI_USER && info->si_pid == 0 &&
	       info->si_signo != SIGTRAP && tick->source != SEAM_TICK_OFF;
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
static bool read_sample(struct seam_tick *tick, struct tick_fields *sample)
{
	const void *ring = atomic_load(&tick->ring);
	const struct seam_ring_control *control = ring;
	const uint8_t *data = (const uint8_t *)ring + PAGE;
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
	    size < sizeof(*sample) || size > SEAM_TICK_RECORD_WORDS * 8)
		return false;
	/* ticks in between are far from filling the page */
	copy(sample, data, head, size);
	tick->seen = head;
	return sample->n_chain <= (size - sizeof(*sample)) / 8;
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
		    uint64_t record[SEAM_TICK_RECORD_WORDS],
		    struct seam_tick_taken *taken)
{
	struct tick_fields *sample = (struct tick_fields *)record;

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
	if (!read_sample(tick, sample))
		return;
	taken->weight = count_up_to(tick, time_of(tick, sample));
	taken->time_ns = sample->time_ns;
	taken->cpu = sample->cpu;
	/* the part of the callchain after PERF_CONTEXT_KERNEL */
	if (sample->n_chain < 2 ||
	    sample->chain[0] != (uint64_t)PERF_CONTEXT_KERNEL)
		return;
	taken->kernel = sample->chain + 1;
	while (taken->n_kernel < sample->n_chain - 1 &&
	       taken->kernel[taken->n_kernel] < (uint64_t)PERF_CONTEXT_MAX)
		taken->n_kernel++;
}

uint64_t seam_tick_rest(struct seam_tick *tick)
{
	return tick->source == SEAM_TICK_OFF ? 0 :
	       count_up_to(tick, cpu_time_ns(tick));
}
