/* SPDX-License-Identifier: MIT */
/*
 * self_loads.c - handlers walk at 10 kHz while a program does what is delicate
 *
 * self_loads LOAD SECONDS LIBRARY THROWING-LIBRARY.  LOAD is heap, loader,
 * threads, exceptions, forks or jumps; or "guarded", whose handler calls
 * malloc(), to see that handler_guard.so finds it.  The owner's thread
 * refreshes the images all the time.  The exit status is 0 where every walk
 * ended as it should, and nothing is held in the end.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
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
static _Atomic bool is_over;
static volatile int sink;
static void *volatile leaked;

static void on_profile(int signal, siginfo_t *info, void *context)
{
	struct seam_unwind_frame frames[256];
	struct seam_unwind_stack stack = { .frames = frames, .max = 256 };

	(void)signal;
	(void)info;
	if (handler_guard_enter)
		handler_guard_enter();
	seam_self_walk(context, &stack);
	if (does_malloc_in_handler)
		leaked = malloc(10);
	if (handler_guard_leave)
		handler_guard_leave();
	atomic_fetch_add(&n_ends[stack.end & 15], 1);
}

/* Signal this thread each @period_ns. */
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
	timer_t timer = start_timer(SIGPROF, 100000);

	(void)unused;
	for (unsigned int i = 0; is_time_left(); i++) {
		void **slot = &held[i % 64];

		if (i % 3)
			*slot = realloc(*slot, i * 7919 % 70000 + 1);
		free(i % 3 ? NULL : *slot);
		if (i % 3 == 0)
			*slot = malloc(i * 104729 % 3000 + 1);
	}
	timer_delete(timer);
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
	timer_t timer = start_timer(SIGPROF, 100000);

	(void)unused;
	while (is_time_left())
		deep(10, spin);
	timer_delete(timer);
	return NULL;
}

/* Another thread walks all the time with what is replaced. */
static void loader(void)
{
	timer_t timer = start_timer(SIGPROF, 100000);
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
	timer_delete(timer);
	pthread_join(thread, NULL);
}

static void *live_briefly(void *is_begun)
{
	timer_t timer = start_timer(SIGPROF, 100000);

	if (is_begun)
		seam_self_thread_begin();
	for (int i = 0; i < 10; i++)
		deep(20, spin);
	timer_delete(timer);
	return NULL;
}

static void threads(void)
{
	while (is_time_left()) {
		pthread_t all[4];

		for (int i = 0; i < 4; i++)
			if (pthread_create(&all[i], NULL, live_briefly,
					   i % 2 ? all : NULL))
				exit(2);
		for (int i = 0; i < 4; i++)
			pthread_join(all[i], NULL);
	}
}

static void exceptions(void)
{
	timer_t timer = start_timer(SIGPROF, 100000);

	while (is_time_left())
		throw_and_catch(30);
	timer_delete(timer);
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
	timer_t timer = start_timer(SIGPROF, 100000);

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
	timer_delete(timer);
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
	timer_t timer = start_timer(SIGPROF, 100000), jumping;

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
	timer_delete(timer);
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
