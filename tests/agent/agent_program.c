/* SPDX-License-Identifier: MIT */
/*
 * agent_program.c - programs that the agent samples, and what it must not do
 *
 *	agent_program HOW [ARGUMENT]
 *
 * Each way uses CPU time in a Lua state and prints "cpu TID NANOSECONDS" for
 * each thread that did; a check of its own that fails is exit status 1 with a
 * message.  See the table at the end for the ways.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fenv.h>
#include <lauxlib.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <lualib.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { N_THREADS = 3 };

#define NS_PER_S 1000000000L
#define CHECK(is_right, ...)						\
	do {								\
		if (!(is_right)) {					\
			fprintf(stderr, __VA_ARGS__);			\
			fputc('\n', stderr);				\
			_exit(1);					\
		}							\
	} while (0)

static double seconds = 0.2;	/* of CPU time, in each thread */
static char **arguments;

static long cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void report(long ns)
{
	printf("cpu %ld %ld\n", syscall(SYS_gettid), ns);
	fflush(stdout);
}

/* Run a Lua function until @s seconds of CPU time are over. */
static void use_cpu(double s)
{
	static const char code[] =
		"local function work(n) local x = 0 "
		"for i = 1, n do x = x + i % 7 end return x end "
		"return work(20000)";
	long begin = cpu_ns();
	lua_State *lua = luaL_newstate();

	CHECK(lua, "no Lua state");
	luaL_openlibs(lua);
	while ((double)(cpu_ns() - begin) < s * 1e9) {
		CHECK(!luaL_dostring(lua, code), "%s", lua_tostring(lua, -1));
		lua_settop(lua, 0);
	}
	lua_close(lua);
	/* from the thread's start on */
	report(cpu_ns());
}

static void busy(void)
{
	use_cpu(seconds);
}

/* ---- threads ---- */

static void *run_thread(void *function)
{
	((void (*)(void))(uintptr_t)function)();
	return NULL;
}

static void in_threads(void (*function)(void), const pthread_attr_t *attr)
{
	pthread_t threads[N_THREADS];

	for (int i = 0; i < N_THREADS; i++)
		CHECK(!pthread_create(&threads[i], attr, run_thread,
				      (void *)(uintptr_t)function),
		      "no thread");
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void threads(void)
{
	in_threads(busy, NULL);
}

/* Threads that end soon, again and again. */
static void rounds(void)
{
	long n = arguments[0] ? atol(arguments[0]) : 10;

	for (long i = 0; i < n; i++)
		threads();
}

/* The signal stays unblocked, and the program is told that it is blocked. */
static void blocked(void)
{
	sigset_t all, now;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	CHECK(sigismember(&now, SIGURG) == 1, "SIGURG is not blocked");
	busy();
}

static void blocked_threads(void)
{
	in_threads(blocked, NULL);
}

static void small_stacks(void)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	/* what a Lua state and libc need; the handler has its own */
	pthread_attr_setstacksize(&attr, 48 << 10);
	in_threads(busy, &attr);
}

static ucontext_t outside, inside;

static void run_coroutine(void)
{
	long begin = cpu_ns();

	while (cpu_ns() - begin < (long)(seconds * 1e9))
		;
}

/* A coroutine with 6 KiB, nothing below; a signal's frame takes 4 of them. */
static void coroutine(void)
{
	enum { PAGE = 4096, STACK = 6 << 10 };
	char *pages = mmap(NULL, PAGE + STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(pages != MAP_FAILED && !mprotect(pages, PAGE, PROT_NONE),
	      "no stack");
	getcontext(&inside);
	inside.uc_stack.ss_sp = pages + PAGE;
	inside.uc_stack.ss_size = STACK;
	inside.uc_link = &outside;
	makecontext(&inside, run_coroutine, 0);
	CHECK(!swapcontext(&outside, &inside), "swapcontext");
	busy();
}

/* The first thread ends before the others, which end the process. */
static void exit_of_main(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, run_thread,
			      (void *)(uintptr_t)busy), "no thread");
	pthread_detach(thread);
	pthread_exit(NULL);
}

/* ---- processes ---- */

static void wait_for(pid_t child)
{
	int status;

	CHECK(child > 0 && waitpid(child, &status, 0) == child, "no child");
	CHECK(status == 0, "the child ended with %#x", status);
}

static void forks(void)
{
	pid_t child = fork();

	if (child == 0) {
		busy();
		_exit(0);
	}
	busy();
	wait_for(child);
}

/* 200 forks of a process with 1 GiB; prints their seconds of CPU time. */
static void big_forks(void)
{
	enum { N = 200 };
	const size_t bytes = (size_t)1 << 30;
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long begin;

	CHECK(memory != MAP_FAILED, "no memory");
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < bytes; i += 4096)
		memory[i] = 1;
	use_cpu(0.05);
	begin = cpu_ns();
	for (int i = 0; i < N; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		wait_for(child);
	}
	printf("%.3f\n", (double)(cpu_ns() - begin) / 1e9);
}

static void fork_and_wait(int signal)
{
	pid_t child = fork();

	(void)signal;
	if (child == 0)
		_exit(0);
	wait_for(child);
}

/* A handler forks too, mostly while the program does: it takes long. */
static void forks_in_handlers(void)
{
	enum { N = 100 };
	const size_t bytes = 32 << 20;
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED, "no memory");
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	memset(memory, 1, bytes);
	signal(SIGALRM, fork_and_wait);
	for (int i = 0; i < N; i++) {
		/* once: a fork that is interrupted begins again */
		const struct itimerval soon = { .it_value = { 0, 10 * i + 1 } };

		setitimer(ITIMER_REAL, &soon, NULL);
		fork_and_wait(0);
	}
	busy();
}

/* Without libc's fork(): not sampled, and not disturbed. */
static void clones(void)
{
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (child == 0) {
		volatile long x = 0;

		for (long i = 0; i < 30000000; i++)
			x += i;
		_exit(0);
	}
	busy();
	wait_for(child);
}

/* Each program executes the next, at a high rate of signals. */
static void execs(void)
{
	long n = arguments[0] ? atol(arguments[0]) : 100;
	char left[32];

	use_cpu(0.002);
	if (n == 0)
		return;
	snprintf(left, sizeof(left), "%ld", n - 1);
	if (n % 2) {
		pid_t child = vfork();

		if (child == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		wait_for(child);
	}
	execl("/proc/self/exe", "agent_program", "execs", left, (char *)NULL);
	CHECK(false, "exec: %s", strerror(errno));
}

/* ---- signals of the program's own ---- */

static _Atomic long n_urgent, n_profiling;
static _Atomic bool is_wrong;

static void on_urgent(int signal, siginfo_t *info, void *context)
{
	(void)context;
	if (signal != SIGURG || info->si_code != SI_TKILL ||
	    info->si_pid != getpid())
		is_wrong = true;
	n_urgent++;
}

static void on_profiling(int signal)
{
	(void)signal;
	n_profiling++;
}

static void profiled(void)
{
	const struct itimerval each = { { 0, 10000 }, { 0, 10000 } };
	const struct itimerval none = { { 0, 0 }, { 0, 0 } };

	CHECK(signal(SIGPROF, on_profiling) == SIG_DFL, "signal");
	setitimer(ITIMER_PROF, &each, NULL);
	busy();
	setitimer(ITIMER_PROF, &none, NULL);
	CHECK(n_profiling > 0, "no SIGPROF");
}

/* A handler of SIGURG, which gets its signals and no other. */
static void handlers(void)
{
	struct sigaction urgent = {
		.sa_sigaction = on_urgent, .sa_flags = SA_SIGINFO,
	};
	struct sigaction old;

	use_cpu(0.02);
	CHECK(!sigaction(SIGURG, NULL, &old) && old.sa_handler == SIG_DFL,
	      "SIGURG has a handler");
	sigaddset(&urgent.sa_mask, SIGUSR1);
	CHECK(!sigaction(SIGURG, &urgent, NULL), "sigaction");
	CHECK(!sigaction(SIGURG, NULL, &old) &&
	      old.sa_sigaction == on_urgent && old.sa_flags == SA_SIGINFO &&
	      sigismember(&old.sa_mask, SIGUSR1), "another handler");
	for (int i = 0; i < 100; i++) {
		raise(SIGURG);
		use_cpu(seconds / 100);
	}
	CHECK(!is_wrong && n_urgent == 100, "%ld SIGURGs", n_urgent);
}

/* By a call that is not libc's: the agent sees it when a thread begins. */
static void replaced(void)
{
	const struct {
		sighandler_t handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} ignore = { .handler = SIG_IGN };

	use_cpu(0.02);
	CHECK(!syscall(SYS_rt_sigaction, SIGURG, &ignore, NULL, 8),
	      "rt_sigaction");
	threads();
}

static void spin_on_this_stack(int signal)
{
	long begin = cpu_ns();

	(void)signal;
	while (cpu_ns() - begin < (long)(seconds * 1e9))
		;
}

/* A handler on a stack that has too little room for a second one. */
static void small_signal_stack(void)
{
	static char bytes[15 << 10];
	const stack_t stack = { .ss_sp = bytes, .ss_size = sizeof(bytes) };
	const struct sigaction action = {
		.sa_handler = spin_on_this_stack, .sa_flags = SA_ONSTACK,
	};

	use_cpu(0.02);
	CHECK(!sigaltstack(&stack, NULL) && !sigaction(SIGUSR1, &action, NULL),
	      "sigaltstack");
	raise(SIGUSR1);
	use_cpu(0.02);
}

static void *check_blocked(void *unused)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	CHECK(sigismember(&now, SIGURG) == 1, "a thread has another mask");
	raise(SIGURG);
	return unused;
}

static void check_blocked_thread(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, check_blocked, NULL),
	      "no thread");
	pthread_join(thread, NULL);
}

/*
 * A signal is blocked before it has a handler; and a child that shares the
 * memory has no handler of its parent's.
 */
static void blocked_handler(void)
{
	sigset_t urgent;
	pid_t child;

	use_cpu(0.02);
	sigemptyset(&urgent);
	sigaddset(&urgent, SIGURG);
	pthread_sigmask(SIG_BLOCK, &urgent, NULL);
	check_blocked_thread();
	signal(SIGURG, on_profiling);
	check_blocked_thread();
	raise(SIGURG);
	use_cpu(0.01);
	CHECK(n_profiling == 0, "a blocked signal was handled");
	sigpending(&urgent);
	CHECK(sigismember(&urgent, SIGURG) == 1, "it is not pending");
	child = vfork();
	if (child == 0) {
		signal(SIGURG, SIG_DFL);
		_exit(0);
	}
	wait_for(child);
	sigemptyset(&urgent);
	sigaddset(&urgent, SIGURG);
	pthread_sigmask(SIG_UNBLOCK, &urgent, NULL);
	CHECK(n_profiling == 1, "%ld SIGURGs", n_profiling);
}

/* ---- what a handler could change ---- */

static void state(void)
{
	long n = arguments[0] ? atol(arguments[0]) : 1;
	long begin = cpu_ns();
	char folder[4096];
	sigset_t mask, now;
	stack_t stack;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	fesetround(FE_UPWARD);
	CHECK(getcwd(folder, sizeof(folder)), "getcwd");
	while (cpu_ns() - begin < n * NS_PER_S / 2) {
		volatile double x = 1.0, y = 3.0, sum = 0;

		errno = 12345;
		for (int i = 0; i < 20000; i++)
			sum += x / y;
		CHECK(errno == 12345, "errno is %d", errno);
		CHECK(fegetround() == FE_UPWARD, "another rounding");
		CHECK(sum > 6666.0, "%f", sum);
	}
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	CHECK(memcmp(&mask, &now, 8) == 0, "another mask");
	CHECK(!sigaltstack(NULL, &stack) && stack.ss_flags == SS_DISABLE,
	      "a signal stack");
	fesetround(FE_TONEAREST);
	busy();
}

/* ---- restricted programs ---- */

static void seccomp(void)
{
	struct sock_filter allow[] = {
		/* all but what only the agent calls */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 3,
			 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_timer_create, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog filter = { 7, allow };

	busy();
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0),
	      "seccomp: %s", strerror(errno));
	threads();
}

static pthread_barrier_t before_filter, after_filter;

static void *outlast_filter(void *unused)
{
	busy();
	pthread_barrier_wait(&before_filter);
	pthread_barrier_wait(&after_filter);
	for (volatile long x = 0; x < 30000000; x++)
		;
	return unused;
}

static void *return_at_once(void *unused)
{
	return unused;
}

/* A filter in all threads; from there on, threads and a child begin and end. */
static void sandbox(void)
{
	struct sock_filter allow[] = {
		/* all but what libc does not call in threads and forks */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 7, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 4,
			 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_tgsigqueueinfo, 2,
			 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_timer_create, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog filter = { 10, allow };
	pthread_t older, newer;
	pid_t child;

	pthread_barrier_init(&before_filter, NULL, 2);
	pthread_barrier_init(&after_filter, NULL, 2);
	CHECK(!pthread_create(&older, NULL, outlast_filter, NULL),
	      "no thread");
	pthread_barrier_wait(&before_filter);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_TSYNC, &filter),
	      "seccomp: %s", strerror(errno));
	pthread_barrier_wait(&after_filter);
	pthread_join(older, NULL);
	CHECK(!pthread_create(&newer, NULL, return_at_once, NULL),
	      "no thread");
	pthread_join(newer, NULL);
	child = fork();
	if (child == 0)
		_exit(0);
	wait_for(child);
	puts("done");
}

/* Where a container's filter refuses events; with an argument timers too. */
static void no_events(void)
{
	struct sock_filter refuse[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arguments[0] ?
			 SYS_timer_create : SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { 5, refuse };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0),
	      "seccomp: %s", strerror(errno));
	/* it is in this program's environment under another name */
	setenv("LD_PRELOAD", getenv("AGENT"), 1);
	execl("/proc/self/exe", "agent_program", "threads", (char *)NULL);
	CHECK(false, "exec: %s", strerror(errno));
}

/* A child that shares the memory has a filter of its own, and executes. */
static void vforks(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K,
					    SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { 1, &allow };
	pid_t child;

	use_cpu(0.02);
	child = vfork();
	if (child == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	wait_for(child);
	use_cpu(seconds);
}

static void closed(void)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	/* its numbers are others' now */
	for (int i = 0; i < 8; i++)
		CHECK(dup(1) > 2, "dup");
	threads();
}

static void jailed(void)
{
	CHECK(!chroot("/var/empty") || !chroot("/proc/self/fdinfo"),
	      "chroot: %s", strerror(errno));
	CHECK(!setgid(65534) && !setuid(65534), "setuid");
	busy();
	threads();
}

/* Nothing of a recorder's is open, but the wakeup's descriptor. */
static void descriptors(void)
{
	int n = 0;

	busy();
	for (int fd = 3; fd < 1024; fd++) {
		int flags = (int)syscall(SYS_fcntl, fd, 1 /* F_GETFD */);

		if (flags < 0)
			continue;
		n++;
		CHECK(flags & 1 /* FD_CLOEXEC */, "%d is inherited", fd);
	}
	CHECK(n <= 1, "%d descriptors", n);
	for (int wanted = 3; wanted < 10; wanted++) {
		n = dup(0);
		CHECK(n == wanted, "its own is %d, not %d", n, wanted);
	}
}

/* Blocking calls, of which a signal could end one. */
static void sleeps(void)
{
	long n = arguments[0] ? atol(arguments[0]) : 20000, n_ended = 0;
	const struct timespec pause = { 0, 20000 };

	for (long i = 0; i < n; i++)
		n_ended += nanosleep(&pause, NULL) != 0;
	printf("ended %ld of %ld\n", n_ended, n);
	busy();
}

static const struct way {
	const char *name;
	void (*run)(void);
} ways[] = {
	{ "busy", busy }, { "threads", threads }, { "rounds", rounds },
	{ "forks", forks }, { "forks_in_handlers", forks_in_handlers },
	{ "blocked", blocked_threads }, { "small_stacks", small_stacks },
	{ "coroutine", coroutine }, { "exit_of_main", exit_of_main },
	{ "big_forks", big_forks },
	{ "clones", clones },
	{ "execs", execs }, { "profiled", profiled },
	{ "handlers", handlers }, { "blocked_handler", blocked_handler },
	{ "state", state },
	{ "seccomp", seccomp }, { "sandbox", sandbox }, { "vforks", vforks },
	{ "no_events", no_events }, { "replaced", replaced },
	{ "small_signal_stack", small_signal_stack },
	{ "closed", closed }, { "jailed", jailed },
	{ "descriptors", descriptors }, { "sleeps", sleeps },
};

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	arguments = argv + 2;
	if (getenv("SECONDS_OF_CPU"))
		seconds = atof(getenv("SECONDS_OF_CPU"));
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(ways[i].name, argv[1]) == 0) {
			ways[i].run();
			return 0;
		}
	return 2;
}
