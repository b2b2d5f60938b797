/* SPDX-License-Identifier: MIT */
/*
 * sampler_program.c - programs under the sampler, and what it must not do
 *
 *	sampler_program HOW [ARGUMENT]
 *
 * Each way uses CPU time in a Lua state and prints "cpu TID NANOSECONDS" for
 * each thread that did; a check of its own that fails is exit status 1 with a
 * message.  See the table at the end for the ways.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <lauxlib.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <lualib.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
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
	char left[32], *words[] = { "sampler_program", "execs", left, NULL };

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
	switch (n % 6) {
	case 0:
		execl("/proc/self/exe", "sampler_program", "execs", left,
		      (char *)NULL);
		break;
	case 1:
		execle("/proc/self/exe", "sampler_program", "execs", left,
		       (char *)NULL, environ);
		break;
	case 2:
		execvp("/proc/self/exe", words);
		break;
	case 3:
		execve("/proc/self/exe", words, environ);
		break;
	case 4:
		syscall(SYS_execve, "/proc/self/exe", words, environ);
		break;
	default:
		fexecve(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), words,
			environ);
	}
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
	      old.sa_sigaction == on_urgent && old.sa_flags & SA_SIGINFO &&
	      sigismember(&old.sa_mask, SIGUSR1), "another handler");
	for (int i = 0; i < 100; i++) {
		raise(SIGURG);
		use_cpu(seconds / 100);
	}
	CHECK(!is_wrong && n_urgent == 100, "%ld SIGURGs", n_urgent);
}

/* By a call that is not libc's: the sampler sees it when a thread begins. */
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

/* ---- what the program sees of its signals, on stdout ---- */

static void tell(const char *what, long value)
{
	printf("%s %ld\n", what, value);
	fflush(stdout);
}

static bool is_shown_blocked(int signal)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	return sigismember(&now, signal) == 1;
}

static int subject;	/* the signal */

static void *tell_in_thread(void *what)
{
	tell(what, is_shown_blocked(subject));
	return NULL;
}

static void tell_in_a_thread(const char *what)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, tell_in_thread,
			      (void *)(uintptr_t)what), "no thread");
	pthread_join(thread, NULL);
}

/* What programs that are executed in all ways inherit. */
static void tell_in_programs(void)
{
	static char *const status[] = {
		"grep", "-E", "SigBlk|SigIgn|SigPnd", "/proc/self/status", NULL,
	};
	char line[256];
	pid_t child;
	FILE *pipe;

	child = fork();
	if (child == 0) {
		use_cpu(0.005);
		execlp("grep", "grep", "-E", "SigBlk|SigIgn|SigPnd",
		       "/proc/self/status", (char *)NULL);
		_exit(1);
	}
	wait_for(child);
	child = vfork();
	if (child == 0) {
		execvp("grep", status);
		_exit(1);
	}
	wait_for(child);
	CHECK(!posix_spawnp(&child, "grep", NULL, NULL, status, environ),
	      "posix_spawnp");
	wait_for(child);
	CHECK(!system("grep -E 'SigBlk|SigIgn|SigPnd' /proc/self/status"),
	      "system");
	pipe = popen("grep -E 'SigBlk|SigIgn|SigPnd' /proc/self/status", "r");
	while (pipe && fgets(line, sizeof(line), pipe))
		fputs(line, stdout);
	CHECK(pipe && !pclose(pipe), "popen");
	fflush(stdout);
}

static void set_mask(int how, bool all)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, subject);
	if (all)
		sigfillset(&set);
	pthread_sigmask(how, &set, NULL);
}

static void block_all(int signal)
{
	(void)signal;
	set_mask(SIG_BLOCK, true);
}

/* The mask is restored without a call of sigprocmask(). */
static void tell_restored_masks(void)
{
	static ucontext_t context;
	static sigjmp_buf before;
	static volatile int round;

	if (!sigsetjmp(before, 1)) {
		block_all(0);
		use_cpu(0.01);
		tell("blocked", is_shown_blocked(subject));
		siglongjmp(before, 1);
	}
	tell("after siglongjmp", is_shown_blocked(subject));
	tell_in_a_thread("its thread");
	signal(SIGUSR1, block_all);
	raise(SIGUSR1);
	use_cpu(0.01);
	tell("after a handler that blocks", is_shown_blocked(subject));
	getcontext(&context);
	if (round++ == 0) {
		block_all(0);
		setcontext(&context);
	}
	tell("after setcontext", is_shown_blocked(subject));
	block_all(0);
	if (!sigsetjmp(before, 1)) {
		set_mask(SIG_UNBLOCK, true);
		siglongjmp(before, 1);
	}
	tell("blocked again", is_shown_blocked(subject));
	tell_in_a_thread("its thread");
	set_mask(SIG_UNBLOCK, true);
}

/* Signals of the program's own, to a thread that has them blocked. */
static void tell_pending(bool all)
{
	const struct timespec now = { 0, 0 };
	struct signalfd_siginfo read_info;
	sigset_t set, pending;
	siginfo_t info;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, subject);
	set_mask(SIG_BLOCK, all);
	use_cpu(0.01);
	sigpending(&pending);
	tell("pending", sigismember(&pending, subject));
	tell("waited for", sigtimedwait(&set, NULL, &now));
	raise(subject);
	sigpending(&pending);
	tell("pending", sigismember(&pending, subject));
	memset(&info, 0, sizeof(info));
	tell("waited for", sigtimedwait(&set, &info, &now));
	tell("its code", info.si_code);
	tell("is ours", info.si_pid == getpid());
	fd = signalfd(-1, &set, SFD_NONBLOCK);
	kill(getpid(), subject);
	tell("read", read(fd, &read_info, sizeof(read_info)));
	use_cpu(0.01);
	tell("read", read(fd, &read_info, sizeof(read_info)));
	close(fd);
	set_mask(SIG_UNBLOCK, true);
}

static _Atomic int n_waited_for;

static void *wait_for_all(void *unused)
{
	sigset_t all;
	int signal;

	sigfillset(&all);
	do {
		CHECK(!sigwait(&all, &signal), "sigwait");
		tell("a thread waited for", signal);
		n_waited_for++;
	} while (signal != SIGTERM);
	return unused;
}

/* All is blocked, and a thread of its own waits for all. */
static void tell_waited_for(void)
{
	pthread_t thread;

	set_mask(SIG_BLOCK, true);
	CHECK(!pthread_create(&thread, NULL, wait_for_all, NULL), "no thread");
	use_cpu(0.05);
	kill(getpid(), subject);
	/* with both pending it would take the lower number first */
	while (!n_waited_for)
		usleep(1000);
	kill(getpid(), SIGTERM);
	pthread_join(thread, NULL);
	set_mask(SIG_UNBLOCK, true);
}

static _Atomic long n_handled, n_wrong;

static void on_subject(int signal, siginfo_t *info, void *context)
{
	(void)context;
	n_handled++;
	n_wrong += signal != subject || info->si_pid != getpid() ||
		   !is_shown_blocked(SIGUSR2) || !is_shown_blocked(subject) ||
		   is_shown_blocked(SIGUSR1);
}

static void tell_handled(void)
{
	struct sigaction action = {
		.sa_sigaction = on_subject, .sa_flags = SA_SIGINFO,
	};

	sigaddset(&action.sa_mask, SIGUSR2);
	CHECK(!sigaction(subject, &action, NULL), "sigaction");
	for (int i = 0; i < 20; i++) {
		raise(subject);
		use_cpu(0.002);
	}
	block_all(0);
	raise(subject);
	tell("handled", n_handled);
	sigaction(subject, NULL, &action);
	tell("flags", action.sa_flags);
	set_mask(SIG_UNBLOCK, true);
	tell("handled", n_handled);
	tell("wrong", n_wrong);
	action.sa_flags |= (int)SA_RESETHAND;
	sigaction(subject, &action, NULL);
	raise(subject);
	sigaction(subject, NULL, &action);
	tell("reset", action.sa_handler == SIG_DFL);
}

/* The same with and without a sampler, but for lines with "cpu". */
static void shows(void)
{
	struct sigaction action;

	subject = atoi(arguments[0]);
	use_cpu(0.02);
	tell("blocked", is_shown_blocked(subject));
	tell_restored_masks();
	for (int all = 0; all < 2; all++) {
		set_mask(SIG_BLOCK, all);
		tell_in_programs();
		set_mask(SIG_UNBLOCK, all);
		tell_pending(all);
	}
	tell_in_programs();
	tell_waited_for();
	sigaction(subject, NULL, &action);
	tell("default", action.sa_handler == SIG_DFL);
	tell("flags", action.sa_flags);
	signal(subject, SIG_IGN);
	raise(subject);
	use_cpu(0.01);
	sigaction(subject, NULL, &action);
	tell("ignored", action.sa_handler == SIG_IGN);
	tell_in_programs();
	signal(subject, SIG_DFL);
	tell_handled();
}

/* ---- SIGTRAP ---- */

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)context;
	n_handled++;
	n_wrong += signal != SIGTRAP || info->si_code != SI_KERNEL;
}

/* A breakpoint, without a debugger; with an argument without a handler. */
static void traps(void)
{
	struct sigaction action = {
		.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO,
	};

	use_cpu(0.02);
	if (arguments[0]) {
		if (!strcmp(arguments[0], "blocked"))
			block_all(0);
		if (!strcmp(arguments[0], "ignored"))
			signal(SIGTRAP, SIG_IGN);
		__asm__ volatile("int3");
	}
	CHECK(!sigaction(SIGTRAP, &action, NULL), "sigaction");
	for (int i = 0; i < 1000; i++) {
		__asm__ volatile("int3");
		use_cpu(seconds / 1000);
	}
	CHECK(n_handled == 1000 && !n_wrong, "%ld of 1000 SIGTRAPs, %ld wrong",
	      n_handled, n_wrong);
}

/* A debugger of its own: no tick may stop its child. */
static void traced(void)
{
	int status, n_stops = 0;
	pid_t child = fork();

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execl("/proc/self/exe", "sampler_program", "busy", (char *)NULL);
		_exit(1);
	}
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		siginfo_t info;

		ptrace(PTRACE_GETSIGINFO, child, 0, &info);
		n_stops += WSTOPSIG(status) == SIGTRAP && info.si_code == 6;
		ptrace(PTRACE_CONT, child, 0, WSTOPSIG(status) == SIGTRAP ?
		       0 : WSTOPSIG(status));
	}
	CHECK(status == 0 && n_stops == 0, "status %#x, %d ticks", status,
	      n_stops);
}

/* It executes others with a tick pending: in a handler that blocks all. */
static void execute_in_handler(int signal)
{
	(void)signal;
	use_cpu(0.003);
	execl("/no/such/program", "program", (char *)NULL);
	execv("/proc/self/exe", (char *[]) {
		"sampler_program", "unblocks", NULL });
}

static void executes(void)
{
	struct sigaction action = { .sa_handler = execute_in_handler };

	sigfillset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
	use_cpu(0.01);
	raise(SIGUSR1);
}

static void unblocks(void)
{
	sigset_t pending;

	sigpending(&pending);
	CHECK(sigisemptyset(&pending), "a signal is pending");
	set_mask(SIG_UNBLOCK, true);
	puts("unblocked");
}

/* ---- many threads ---- */

static pthread_barrier_t all_begun, may_end;

static void *wait_and_spin(void *is_last)
{
	pthread_barrier_wait(&all_begun);
	pthread_barrier_wait(&may_end);
	if (is_last)
		use_cpu(0.02);
	return NULL;
}

static long n_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	long n = 0;

	CHECK(maps, "no maps");
	for (int c; (c = getc(maps)) != EOF; )
		n += c == '\n';
	fclose(maps);
	return n;
}

/* Threads that wait, but for the last; prints their number and mappings. */
static void many(void)
{
	long n = atol(arguments[0]);
	pthread_t *all = calloc((size_t)n, sizeof(*all));
	pthread_attr_t attr;

	use_cpu(0.02);
	pthread_barrier_init(&all_begun, NULL, (unsigned int)n + 1);
	pthread_barrier_init(&may_end, NULL, (unsigned int)n + 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 48 << 10);
	for (long i = 0; i < n; i++)
		CHECK(!pthread_create(&all[i], &attr, wait_and_spin,
				      i == n - 1 ? all : NULL),
		      "%ld threads", i);
	pthread_barrier_wait(&all_begun);
	tell("mappings", n_mappings());
	pthread_barrier_wait(&may_end);
	for (long i = 0; i < n; i++)
		pthread_join(all[i], NULL);
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
		/* all but what only the sampler calls */
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

/* A filter of no instructions: the kernel refuses it. */
static void refused(void)
{
	struct sock_fprog filter = { 0, NULL };

	busy();
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) < 0,
	      "it is not refused");
	use_cpu(0.2);
	threads();
}

/*
 * Threads that end by a system call stay in the sampler's list; a filter ends
 * the ticks of all that are in it.
 */
static void *end_by_a_system_call(void *unused)
{
	syscall(SYS_exit, 0);
	return unused;
}

static void exits(void)
{
	pthread_t thread;

	use_cpu(0.02);
	for (int i = 0; i < 50; i++) {
		CHECK(!pthread_create(&thread, NULL, end_by_a_system_call,
				      NULL), "no thread");
		pthread_join(thread, NULL);
	}
	seccomp();
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
	setenv("LD_PRELOAD", getenv("SAMPLER"), 1);
	execl("/proc/self/exe", "sampler_program", "threads", (char *)NULL);
	CHECK(false, "exec: %s", strerror(errno));
}

/* A child that shares the memory has a filter of its own, and executes. */
static void vforks(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
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

	use_cpu(0.02);
	for (long i = 0; i < n; i++)
		n_ended += i % 2 ? nanosleep(&pause, NULL) != 0 :
			   ppoll(NULL, 0, &pause, NULL) != 0;
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
	{ "seccomp", seccomp }, { "refused", refused },
	{ "sandbox", sandbox }, { "vforks", vforks },
	{ "no_events", no_events }, { "replaced", replaced },
	{ "small_signal_stack", small_signal_stack },
	{ "closed", closed }, { "jailed", jailed },
	{ "shows", shows }, { "traps", traps }, { "traced", traced },
	{ "executes", executes }, { "unblocks", unblocks },
	{ "many", many }, { "exits", exits },
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
