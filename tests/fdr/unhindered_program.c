/* SPDX-License-Identifier: MIT */
/*
 * unhindered_program.c - what programs do that a recorder in them could break
 *
 *	unhindered_program HOW [WORD]
 *	sandbox END	a filter kills for each system call that libc does not
 *			make itself; then a thread ends, there is a child, a
 *			library is closed, and the program ends by "exit" or
 *			"return"
 *	alone		the same, but only write(2) and exit_group(2) are left
 *	probe		the kernel is asked for filters, and none is installed
 *	elsewhere	a child of vfork() installs a filter for itself
 *	refused		the kernel refuses its filters
 *	memory		its threads record, and it uses three quarters of its
 *			RLIMIT_AS
 *	locked		they record, and its memory is locked
 *	results		of many calls on doubles are right
 *	stopped LIBRARY	its recorder is stopped while it loads LIBRARY0 to
 *			LIBRARY39, of many functions each, and calls one of
 *			each; it ends when it has read a line
 *	descriptors HOW	opens a file, which gets number 3; closes all that is
 *			not its own ("loop", "range", "from", or "none"), opens
 *			files and sockets until all numbers are used, and goes
 *			on, as does a child of it: nobody writes to what it has
 *	loading LIBRARY	its constructor, which has the loader's lock, waits for
 *			a thread that begins to record
 *
 * Says "done" where it came to its end.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRACED __attribute__((noinline, xray_always_instrument))
#define PLAIN __attribute__((xray_never_instrument))

static volatile unsigned int sink;

TRACED void leaf(unsigned int i)
{
	sink = i;
}

PLAIN static void calls(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		leaf(i);
}

PLAIN static void need(int is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "not %s: %s\n", what, strerror(errno));
	_exit(3);
}

#define NEED(condition) need(condition, #condition)

/* ---- a sandbox ---- */

/* Kill for those system calls that only code like a recorder's makes here. */
static const int forbidden[] = {
	SYS_sendto, SYS_fstat, SYS_newfstatat, SYS_openat, SYS_getpid,
	SYS_gettid, SYS_membarrier, SYS_socket, SYS_connect, SYS_sendmsg,
	SYS_pwrite64, SYS_nanosleep, SYS_tgkill, SYS_rseq, SYS_mprotect,
	SYS_readlink, SYS_clock_nanosleep,
};

static const int needed[] = { SYS_write, SYS_exit_group };

enum { MAX_LISTED = sizeof(forbidden) / sizeof(forbidden[0]) };

PLAIN static void enter_sandbox(const int *list, unsigned int n,
				unsigned int if_listed, unsigned int if_not)
{
	struct sock_filter code[2 * MAX_LISTED + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = { (unsigned short)(2 * n + 2), code };

	for (unsigned int i = 0; i < n; i++) {
		code[2 * i + 1] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)list[i], 0, 1);
		code[2 * i + 2] = (struct sock_filter)BPF_STMT(
			BPF_RET | BPF_K, if_listed);
	}
	code[2 * n + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, if_not);
	NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	NEED(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		     SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
}

static pthread_barrier_t barrier;

PLAIN static void *sandboxed_thread(void *unused)
{
	calls(100);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	calls(100);
	return unused;
}

PLAIN static void run_sandbox(const char *end)
{
	pthread_t thread;
	pid_t child;
	int status;

	pthread_barrier_init(&barrier, NULL, 2);
	calls(100);
	NEED(pthread_create(&thread, NULL, sandboxed_thread, NULL) == 0);
	pthread_barrier_wait(&barrier);
	puts("done");
	fflush(stdout);
	enter_sandbox(forbidden, MAX_LISTED, SECCOMP_RET_KILL_PROCESS,
		      SECCOMP_RET_ALLOW);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	calls(100);
	child = fork();
	if (child == 0)
		_exit(7);
	NEED(waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	     WEXITSTATUS(status) == 7);
	if (strcmp(end, "exit") == 0)
		exit(0);
}

PLAIN static void run_alone(const char *word)
{
	calls(100);
	puts("done");
	fflush(stdout);
	enter_sandbox(needed, 2, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
	calls(100);
}

PLAIN static void run_probe(const char *word)
{
	calls(100);
	errno = 0;
	NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1 &&
	     errno == EFAULT);
	errno = 0;
	NEED(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 &&
	     errno == EFAULT);
	calls(100);
	puts("done");
}

PLAIN static void run_elsewhere(const char *word)
{
	int status;
	pid_t child;

	calls(100);
	child = vfork();
	if (child == 0) {
		enter_sandbox(needed, 2, SECCOMP_RET_ALLOW,
			      SECCOMP_RET_KILL_PROCESS);
		_exit(0);
	}
	NEED(waitpid(child, &status, 0) == child && status == 0);
	calls(100);
	puts("done");
}

PLAIN static void run_refused(const char *word)
{
	struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL);
	struct sock_fprog program = { 0, &code };

	calls(100);
	NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == -1 &&
	     errno == EINVAL);
	calls(100);
	NEED(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, ~0u, &program) ==
	     -1 && errno == EINVAL);
	calls(100);
	puts("done");
}

/* ---- the loader's lock ---- */

extern int seam_fdr_start(const char *options) __attribute__((weak));

/* What may be called while another thread loads a library. */
PLAIN static void *call_interposed(void *unused)
{
	struct sigaction action;
	stack_t stack;

	NEED(sigaltstack(NULL, &stack) == 0);
	NEED(sigaction(SIGUSR1, NULL, &action) == 0);
	NEED(signal(SIGUSR1, SIG_DFL) == action.sa_handler);
	NEED(prctl(PR_GET_DUMPABLE) >= 0);
	if (seam_fdr_start)
		NEED(seam_fdr_start(NULL) == 0);
	return unused;
}

/* The library's constructor calls this. */
PLAIN void while_loading(void)
{
	pthread_t thread;

	NEED(pthread_create(&thread, NULL, call_interposed, NULL) == 0);
	pthread_join(thread, NULL);
}

PLAIN static void run_loading(const char *library)
{
	NEED(dlopen(library, RTLD_NOW) != NULL);
	calls(100);
	puts("done");
}

/* ---- descriptors ---- */

enum { MAX_FD = 1024 };

/* What the program has opened: st_mode is 0 where it has not. */
static struct stat own[MAX_FD];

PLAIN static void close_all(const char *how)
{
	if (strcmp(how, "loop") == 0)
		for (int fd = 3; fd < MAX_FD; fd++)
			close(fd);
	else if (strcmp(how, "range") == 0)
		NEED(syscall(SYS_close_range, 3, ~0u, 0) == 0);
	else if (strcmp(how, "from") == 0)
		closefrom(3);
}

/*
 * Until there are no more numbers but three; sockets of the kind that a wakeup
 * is sent to.
 */
PLAIN static void open_all(void)
{
	int fds[3], last[3];
	char path[64];

	for (int i = 0; ; i++) {
		snprintf(path, sizeof(path), "theirs.%d", i);
		fds[0] = open(path, O_CREAT | O_RDWR, 0600);
		if (fds[0] < 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, fds + 1))
			break;
		for (int j = 0; j < 3; j++)
			NEED(fstat(fds[j], &own[fds[j]]) == 0);
		memcpy(last, fds, sizeof(last));
	}
	NEED(errno == EMFILE);
	if (fds[0] >= 0)
		close(fds[0]);
	for (int j = 0; j < 3; j++) {
		close(last[j]);
		own[last[j]].st_mode = 0;
	}
}

PLAIN static void check_all(void)
{
	struct stat now;
	char byte;

	for (int fd = 3; fd < MAX_FD; fd++) {
		if (!own[fd].st_mode)
			continue;
		NEED(fstat(fd, &now) == 0 && now.st_ino == own[fd].st_ino &&
		     now.st_dev == own[fd].st_dev);
		if (S_ISREG(now.st_mode))
			NEED(now.st_size == 0);
		else
			NEED(recv(fd, &byte, 1, MSG_DONTWAIT) == -1 &&
			     errno == EAGAIN);
	}
}

PLAIN static void *work(void *unused)
{
	calls(20000);
	return unused;
}

PLAIN static void work_on(void)
{
	pthread_t thread;

	calls(20000);
	NEED(pthread_create(&thread, NULL, work, NULL) == 0);
	pthread_join(thread, NULL);
	check_all();
}

PLAIN static void run_descriptors(const char *how)
{
	int status, fd = open("/dev/null", O_RDONLY);
	pid_t child;

	NEED(fd == 3);
	calls(20000);
	close_all(how);
	open_all();
	work_on();
	child = fork();
	if (child == 0) {
		work_on();
		exit(0);
	}
	NEED(waitpid(child, &status, 0) == child && status == 0);
	work_on();
	puts("done");
}

/* ---- vector registers ---- */

TRACED double twice(double x)
{
	return x + x;
}

PLAIN static void run_results(const char *word)
{
	for (int i = 0; i < 1000000; i++)
		NEED(twice(i) == 2.0 * i);
	puts("done");
}

/* ---- limited memory ---- */

enum { N_THREADS = 20, LOCKED_BYTES = 64 << 20 };

PLAIN static void *record_and_stay(void *unused)
{
	calls(100);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return unused;
}

/* @bytes are there while threads record. */
PLAIN static void need_memory(size_t bytes)
{
	pthread_t threads[N_THREADS];
	pthread_attr_t attr;

	pthread_barrier_init(&barrier, NULL, N_THREADS + 1);
	NEED(pthread_attr_init(&attr) == 0);
	NEED(pthread_attr_setstacksize(&attr, 64 << 10) == 0);
	calls(100);
	for (int i = 0; i < N_THREADS; i++)
		NEED(pthread_create(&threads[i], &attr, record_and_stay,
				    NULL) == 0);
	pthread_barrier_wait(&barrier);
	NEED(mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < N_THREADS; i++)
		NEED(pthread_join(threads[i], NULL) == 0);
	puts("done");
}

PLAIN static void run_memory(const char *word)
{
	struct rlimit limit;

	NEED(getrlimit(RLIMIT_AS, &limit) == 0);
	need_memory(limit.rlim_cur / 4 * 3);
}

PLAIN static unsigned long locked_kib(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	unsigned long kib = ~0ul;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "VmLck: %lu", &kib);
	if (status)
		fclose(status);
	return kib;
}

/* A user's limit may be less than what a recording has: 8 MiB on Debian 12. */
PLAIN static void run_locked(const char *word)
{
	struct rlimit limit;

	NEED(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
	calls(100);
	NEED(mlockall(geteuid() && limit.rlim_cur < LOCKED_BYTES ?
		      MCL_FUTURE : MCL_CURRENT | MCL_FUTURE) == 0);
	NEED(locked_kib() < LOCKED_BYTES >> 10);
	need_memory(5 << 20);
}

/* ---- a recorder that is stopped ---- */

PLAIN static void load_and_call(const char *library, int i)
{
	char path[4096];
	void (*call)(void);
	void *handle;

	snprintf(path, sizeof(path), "%s%d", library, i);
	handle = dlopen(path, RTLD_NOW);
	NEED(handle != NULL);
	call = (void (*)(void))dlsym(handle, "last");
	NEED(call != NULL);
	call();
}

PLAIN static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

PLAIN static void run_stopped(const char *library)
{
	pid_t recorder = getppid();
	double begin;

	calls(100);
	kill(recorder, SIGSTOP);
	begin = seconds();
	for (int i = 0; i < 40; i++)
		load_and_call(library, i);
	begin = seconds() - begin;
	kill(recorder, SIGCONT);
	/* a third of them do not fit: a second each would be 14 */
	NEED(begin < 10);
	/* whole chunks, which the recorder takes */
	calls(20000);
	getchar();
	puts("done");
}

PLAIN int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const char *word);
	} hows[] = {
		{ "sandbox", run_sandbox }, { "alone", run_alone },
		{ "probe", run_probe }, { "results", run_results },
		{ "memory", run_memory }, { "locked", run_locked },
		{ "elsewhere", run_elsewhere }, { "refused", run_refused },
		{ "loading", run_loading }, { "stopped", run_stopped },
		{ "descriptors", run_descriptors },
	};

	for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++)
		if (argc > 1 && strcmp(argv[1], hows[i].name) == 0) {
			hows[i].run(argc > 2 ? argv[2] : "");
			return 0;
		}
	return 2;
}
