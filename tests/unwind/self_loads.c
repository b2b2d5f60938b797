/* SPDX-License-Identifier: MIT */
/*
 * self_loads.c - handlers walk at 10 kHz while a program does what is delicate
 *
 * self_loads LOAD SECONDS LIBRARY THROWING-LIBRARY.  LOAD is heap, loader,
 * threads, exceptions, forks or jumps; or "guarded", whose handler calls
 * malloc(), to see that handler_guard.so finds it.  The owner's thread
 * refreshes the images all the time.  The exit status is 0 where every walk
 * ended as it should, and nothing is held in the end.
 *
 * The signals come from a perf event of each thread, every 100 us of its CPU
 * time: timers of CPU time stop at the kernel's tick, and those of wall-clock
 * time signal a thread that waits for a CPU once only.  Prints how many were
 * handled a second of CPU time: one at most while a system call runs, and none
 * of the kernel's time where the user may not sample that.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "self_stacks.h"

/* handler_guard.so's, where it is preloaded. */
void handler_guard_enter(void) __attribute__((weak));
void handler_guard_leave(void) __attribute__((weak));

static const char *library_path;
static void (*throw_and_catch)(int depth);
static struct timespec end_time;
static bool does_malloc_in_handler;
static _Atomic uint64_t n_ends[16], n_child_failures;
/* Of threads that are sampled: signals handled, and CPU time. */
static _Atomic uint64_t n_signals, cpu_ns;
static _Atomic bool has_no_event;
static _Atomic bool is_over;
static volatile int sink;
static void *volatile leaked;

static void on_profile(int signal, siginfo_t *info, void *context)
{
	struct seam_unwind_frame frames[256];
	struct seam_unwind_stack stack = { .frames = frames, .max = 256 };

	(void)signal;
	(void)info;
	atomic_fetch_add(&n_signals, 1);
	if (handler_guard_enter)
		handler_guard_enter();
	seam_self_walk(context, &stack);
	if (does_malloc_in_handler)
		leaked = malloc(10);
	if (handler_guard_leave)
		handler_guard_leave();
	atomic_fetch_add(&n_ends[stack.end & 15], 1);
}

/* Signal this thread each @period_ns of wall-clock time. */
static timer_t start_timer(int signal, long period_ns)
{
	const struct itimerspec period = {
		{ 0, period_ns }, { 0, period_ns } };
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal };
	timer_t timer;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &period, NULL)) {
		perror("self_loads: timer");
		exit(2);
	}
	return timer;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Send SIGPROF to this thread each PERIOD_NS of its CPU time. */
struct sampling {
	int fd;				/* -1: the timer is used */
	timer_t timer;
	uint64_t begin_ns;		/* CPU time */
};

enum { PERIOD_NS = 100000 };

/* A descriptor; -1 where the kernel refuses. */
static int open_event(bool with_kernel)
{
	const struct f_owner_ex owner = {
		.type = F_OWNER_TID, .pid = (pid_t)syscall(SYS_gettid) };
	struct perf_event_attr attr = {
		.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = PERIOD_NS, .disabled = 1,
		.exclude_kernel = !with_kernel, .exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
			      PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -1;
	if (fcntl(fd, F_SETSIG, SIGPROF) || fcntl(fd, F_SETOWN_EX, &owner) ||
	    fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
		perror("self_loads: event");
		exit(2);
	}
	return fd;
}

static struct sampling start_sampling(void)
{
	struct sampling s = { .fd = open_event(true) };

	if (s.fd < 0)
		s.fd = open_event(false);
	if (s.fd < 0) {
		s.timer = start_timer(SIGPROF, PERIOD_NS);
		has_no_event = true;
	}
	s.begin_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	return s;
}

static void count_cpu_time(const struct sampling *s)
{
	cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - s->begin_ns;
}

static void close_sampling(const struct sampling *s)
{
	if (s->fd < 0)
		timer_delete(s->timer);
	else
		close(s->fd);
}

static void stop_sampling(const struct sampling *s)
{
	count_cpu_time(s);
	close_sampling(s);
}

static bool is_time_left(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec < end_time.tv_sec ||
	       (now.tv_sec == end_time.tv_sec &&
		now.tv_nsec < end_time.tv_nsec);
}

__attribute__((noinline)) static void deep(int n, void (*callee)(void))
{
	volatile int keep = n;

	if (n > 0)
		deep(n - 1, callee);
	else
		callee();
	sink = keep;
}

static void spin(void)
{
	for (int i = 0; i < 20000; i++)
		sink = i;
}

/* --- the loads --- */

static void *use_heap(void *unused)
{
	void *held[64] = { NULL };
	const struct sampling sampling = start_sampling();

	(void)unused;
	for (unsigned int i = 0; is_time_left(); i++) {
		void **slot = &held[i % 64];

		if (i % 3)
			*slot = realloc(*slot, i * 7919 % 70000 + 1);
		free(i % 3 ? NULL : *slot);
		if (i % 3 == 0)
			*slot = malloc(i * 104729 % 3000 + 1);
	}
	stop_sampling(&sampling);
	for (int i = 0; i < 64; i++)
		free(held[i]);
	return NULL;
}

static void heap(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, use_heap, NULL) == 0) {
		use_heap(NULL);
		pthread_join(thread, NULL);
	}
}

static void *keep_walking(void *unused)
{
	const struct sampling sampling = start_sampling();

	(void)unused;
	while (is_time_left())
		deep(10, spin);
	stop_sampling(&sampling);
	return NULL;
}

/* Another thread walks all the time with what is replaced. */
static void loader(void)
{
	const struct sampling sampling = start_sampling();
	pthread_t thread;

	if (pthread_create(&thread, NULL, keep_walking, NULL))
		exit(2);
	while (is_time_left()) {
		void *library = dlopen(library_path, RTLD_NOW);
		void (*call)(void (*callee)(void));

		*(void **)&call = dlsym(library, "library_call");
		for (int i = 0; i < 20; i++)
			call(spin);
		dlclose(library);
	}
	stop_sampling(&sampling);
	pthread_join(thread, NULL);
}

struct brief_life {
	bool is_begun;		/* seam_self_thread_begin() */
	struct sampling sampling;
};

/* It is sampled until the kernel has ended it. */
static void *live_briefly(void *of)
{
	struct brief_life *life = of;

	life->sampling = start_sampling();
	if (life->is_begun)
		seam_self_thread_begin();
	for (int i = 0; i < 50; i++)
		deep(20, spin);
	count_cpu_time(&life->sampling);
	return NULL;
}

static void threads(void)
{
	const struct sampling sampling = start_sampling();

	while (is_time_left()) {
		struct brief_life lives[4] = { { .is_begun = false } };
		pthread_t all[4];

		for (int i = 0; i < 4; i++) {
			lives[i].is_begun = i % 2;
			if (pthread_create(&all[i], NULL, live_briefly,
					   &lives[i]))
				exit(2);
		}
		for (int i = 0; i < 4; i++) {
			pthread_join(all[i], NULL);
			close_sampling(&lives[i].sampling);
		}
	}
	stop_sampling(&sampling);
}

static void exceptions(void)
{
	const struct sampling sampling = start_sampling();

	while (is_time_left())
		throw_and_catch(30);
	stop_sampling(&sampling);
}

/*
 * The child has no timer; it walks with what it has inherited, and loads a
 * library: no lock of the loader may have been held by the owner's thread.
 */
static int walk_in_child(void)
{
	uint64_t n_roots = atomic_load(&n_ends[SEAM_UNWIND_ROOT]);

	alarm(20);
	send_signal(SIGPROF);
	deep(10, spin);
	if (!dlopen(library_path, RTLD_NOW))
		return 3;
	if (seam_self_refresh() < 0)
		return 1;
	send_signal(SIGPROF);
	return atomic_load(&n_ends[SEAM_UNWIND_ROOT]) == n_roots + 2 ? 0 : 2;
}

static void forks(void)
{
	const struct sampling sampling = start_sampling();

	while (is_time_left()) {
		pid_t child = fork();
		int status;

		if (child == 0)
			_exit(walk_in_child());
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		n_child_failures += child < 0 || status != 0;
		deep(10, spin);
	}
	stop_sampling(&sampling);
}

static sigjmp_buf back;
static _Atomic bool may_jump;

static void jump_from_handler(int signal)
{
	(void)signal;
	if (atomic_exchange(&may_jump, false))
		siglongjmp(back, 1);
}

static void jump_from_here(void)
{
	spin();
	if (atomic_exchange(&may_jump, false))
		siglongjmp(back, 1);
}

/* Out of deep calls, and out of handlers that interrupted a walk. */
static void jumps(void)
{
	struct sigaction action = { .sa_handler = jump_from_handler };
	const struct sampling sampling = start_sampling();
	timer_t jumping;

	sigaction(SIGUSR1, &action, NULL);
	jumping = start_timer(SIGUSR1, 130000);
	while (is_time_left()) {
		if (sigsetjmp(back, 1) == 0) {
			atomic_store(&may_jump, true);
			deep(30, jump_from_here);
		}
		if (handler_guard_leave)
			handler_guard_leave();
	}
	timer_delete(jumping);
	stop_sampling(&sampling);
}

static const struct load {
	const char *name;
	void (*run)(void);
} loads[] = {
	{ "heap", heap }, { "loader", loader }, { "threads", threads },
	{ "exceptions", exceptions }, { "forks", forks }, { "jumps", jumps },
	{ "guarded", heap },
};

/* --- the owner, and what is left --- */

static void *refresh(void *n_failed)
{
	const struct timespec pause = { 0, 200000 };
	uint64_t *failed = n_failed;

	while (!atomic_load(&is_over)) {
		int r = seam_self_refresh();

		*failed += r < 0 && r != -EAGAIN;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void print_rate(void)
{
	printf("# %llu signals in %.1f s of CPU time: %.0f a second%s\n",
	       (unsigned long long)n_signals, (double)cpu_ns / 1e9,
	       (double)n_signals * 1e9 / (double)(cpu_ns ? cpu_ns : 1),
	       has_no_event ? ", by a timer of wall-clock time: events are "
			      "refused" : "");
}

/* A walk that was left is over when the thread walks again. */
static bool is_nothing_held(void)
{
	send_signal(SIGPROF);
	return seam_self_fini() == 0;
}

/*
 * One stack in a hundred may end at an instruction whose CFI is not true:
 * longjmp() has set the stack pointer before it jumps, _Unwind_Resume() has put
 * the registers of the frame that catches where its own were saved.
 */
static bool are_ends_right(bool has_new_code)
{
	uint64_t n = 0, n_roots = atomic_load(&n_ends[SEAM_UNWIND_ROOT]);

	printf("# stacks by end:");
	for (int i = 0; i < 16; i++) {
		n += n_ends[i];
		printf(" %llu", (unsigned long long)n_ends[i]);
	}
	printf("\n");
	/*
	 * Code loaded since the last refresh is in no table; _init(), where a
	 * new library meets its first page fault, has no CFI.
	 */
	if (has_new_code)
		n_roots += n_ends[SEAM_UNWIND_NO_MAPPING] +
			   n_ends[SEAM_UNWIND_WITHOUT_CFI];
	return n > 0 && n_roots + n / 100 + 3 >= n;
}

static bool run_load(const struct load *load)
{
	uint64_t n_failed = 0;
	pthread_t owner;
	bool are_right;

	if (pthread_create(&owner, NULL, refresh, &n_failed))
		return false;
	load->run();
	atomic_store(&is_over, true);
	pthread_join(owner, NULL);
	print_rate();
	are_right = are_ends_right(load->run == loader);
	if (n_failed || n_child_failures)
		printf("# %llu refreshes and %llu children failed\n",
		       (unsigned long long)n_failed,
		       (unsigned long long)n_child_failures);
	return are_right && !n_failed && !n_child_failures &&
	       is_nothing_held();
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_RESTART };
	void *throwing;

	if (argc < 5 || seam_self_init() < 0 || seam_self_thread_begin() < 0)
		return 2;
	library_path = argv[3];
	throwing = dlopen(argv[4], RTLD_NOW);
	if (throwing)
		*(void **)&throw_and_catch = dlsym(throwing,
						   "throw_and_catch");
	if (!throw_and_catch || seam_self_refresh() < 0)
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &end_time);
	end_time.tv_sec += atoi(argv[2]);
	action.sa_sigaction = on_profile;
	sigaction(SIGPROF, &action, NULL);
	does_malloc_in_handler = strcmp(argv[1], "guarded") == 0;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(loads); i++)
		if (strcmp(argv[1], loads[i].name) == 0)
			return run_load(&loads[i]) ? 0 : 1;
	return 2;
}
