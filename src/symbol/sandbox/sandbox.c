/* SPDX-License-Identifier: MIT */
/*
 * sandbox.c - messages, and a process that sends them; see sandbox.h
 *
 * The calls that it may make are an allow-list.  Optional calls of libraries
 * (open a debug file, get the memory size) fail with EACCES; all calls that are
 * not listed end the process.
 */
#include "symbol/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory_limit.h"

/* Where the child's socket is: after the standard three. */
enum { IPC_FD = 3 };

/* The kind of the child's first message. */
enum { HELLO = UINT32_C(0x6f6c6568) };

/* How long a process may take to die: 2 s. */
enum { WAIT_NS = 1000000, MAX_WAITS = 2000 };

#define CANNOT_START "cannot start a process to read files"

/* Without --max-memory. */
#define MEMORY_BYTES ((uint64_t)4 << 30)

/* For one request; the largest files take some ten seconds. */
unsigned int seam_sandbox_cpu_s = 60;

/* ---- messages ---- */

/* More than the instructions of the largest function take. */
#define MAX_MESSAGE ((size_t)1 << 30)

struct message_header {
	uint32_t kind, size;
};

void seam_ipc_put(struct seam_ipc *ipc, const void *data, size_t size)
{
	ipc->is_broken = ipc->is_broken ||
			 !SEAM_ARRAY_EXTEND(&ipc->out, data, size);
}

void seam_ipc_put_u32(struct seam_ipc *ipc, uint32_t v)
{
	seam_ipc_put(ipc, &v, sizeof(v));
}

void seam_ipc_put_u64(struct seam_ipc *ipc, uint64_t v)
{
	seam_ipc_put(ipc, &v, sizeof(v));
}

void seam_ipc_put_text(struct seam_ipc *ipc, const char *text)
{
	seam_ipc_put(ipc, text ? text : "",
		     text ? strlen(text) + 1 : 1);
}

/* Descriptor @fd is attached to the header. */
int seam_ipc_send(struct seam_ipc *ipc, uint32_t kind, int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct message_header header = { kind, (uint32_t)ipc->out.n };
	struct iovec left[] = {
		{ &header, sizeof(header) }, { ipc->out.items, ipc->out.n },
	};
	struct msghdr message = { .msg_iov = left, .msg_iovlen = 2 };
	bool is_whole = !ipc->is_broken && ipc->out.n <= MAX_MESSAGE;

	ipc->out.n = 0;
	ipc->is_broken = false;
	if (!is_whole)
		return -ENOMEM;
	if (fd >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		*CMSG_FIRSTHDR(&message) = (struct cmsghdr) {
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(fd)),
		};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof(fd));
	}
	while (left[0].iov_len + left[1].iov_len > 0) {
		ssize_t n = sendmsg(ipc->fd, &message, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		message.msg_controllen = 0;
		for (int i = 0; i < 2; i++) {
			size_t sent = (size_t)n < left[i].iov_len ? (size_t)n :
				      left[i].iov_len;

			left[i].iov_base = (uint8_t *)left[i].iov_base + sent;
			left[i].iov_len -= sent;
			n -= (ssize_t)sent;
		}
	}
	return 0;
}

static uint64_t cpu_s(pid_t pid)
{
	struct timespec used = { 0 };
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
		return 0;
	return (uint64_t)used.tv_sec;
}

/*
 * Called each second that a reply takes.  RLIMIT_CPU would count all requests
 * together, and raising it for each needs CAP_SYS_RESOURCE where the child is
 * another user.
 */
static int count_second(struct seam_ipc *ipc)
{
	ipc->n_seconds++;
	ipc->second_ns = seam_clock_ns();
	if (!ipc->peer)
		return 0;
	if (ipc->n_seconds == 1)
		ipc->begin_s = cpu_s(ipc->peer);
	/* a process that sleeps uses no CPU time: it has a limit too */
	ipc->is_slow = cpu_s(ipc->peer) - ipc->begin_s >= seam_sandbox_cpu_s ||
		       ipc->n_seconds > 10 * seam_sandbox_cpu_s;
	return ipc->is_slow ? -ETIMEDOUT : 0;
}

/*
 * Receive @size bytes, and into *@fd, if @fd is not NULL, the descriptor that
 * came with the first of them.
 */
static int receive(struct seam_ipc *ipc, void *to, size_t size, int *fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_LEN(sizeof(int))];
	struct iovec left = { to, size };
	int r = 0;

	while (!r && left.iov_len > 0) {
		struct msghdr message = {
			.msg_iov = &left, .msg_iovlen = 1,
			.msg_control = fd ? control : NULL,
			.msg_controllen = fd ? sizeof(control) : 0,
		};
		ssize_t n = recvmsg(ipc->fd, &message, MSG_CMSG_CLOEXEC);
		bool is_timeout = n < 0 && (errno == EAGAIN ||
					    errno == EWOULDBLOCK);
		const struct cmsghdr *c;

		if (n == 0 || (n < 0 && errno != EINTR && !is_timeout))
			return -EPIPE;
		/* also of a message that comes byte by byte */
		if (is_timeout ||
		    seam_clock_ns() - ipc->second_ns >= SEAM_NS_PER_S)
			r = count_second(ipc);
		if (n < 0)
			continue;
		c = fd ? CMSG_FIRSTHDR(&message) : NULL;
		if (c && c->cmsg_level == SOL_SOCKET &&
		    c->cmsg_type == SCM_RIGHTS &&
		    c->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(fd, CMSG_DATA(c), sizeof(*fd));
		fd = NULL;
		left.iov_base = (uint8_t *)left.iov_base + n;
		left.iov_len -= (size_t)n;
	}
	return r;
}

int seam_ipc_receive(struct seam_ipc *ipc, struct seam_message *message)
{
	struct message_header header;
	int r;

	*message = (struct seam_message) { .fd = -1 };
	ipc->n_seconds = 0;
	ipc->second_ns = seam_clock_ns();
	r = receive(ipc, &header, sizeof(header), &message->fd);
	if (!r && header.size > MAX_MESSAGE)
		r = -EBADMSG;
	ipc->in.n = 0;
	if (!r)
		r = SEAM_ARRAY_RESERVE(&ipc->in, header.size + (size_t)1) ?
		    receive(ipc, ipc->in.items, header.size, NULL) : -ENOMEM;
	if (r) {
		if (message->fd >= 0)
			close(message->fd);
		message->fd = -1;
		return r;
	}
	message->kind = header.kind;
	message->body = seam_cursor_make(ipc->in.items, header.size,
					 SEAM_NATIVE);
	return 0;
}

void seam_ipc_put_err(struct seam_ipc *ipc, const struct seam_err *err)
{
	seam_ipc_put_u32(ipc, (uint32_t)-err->code);
	seam_ipc_put_text(ipc, err->n_causes > 0 ?
			  err->cause[err->n_causes - 1] : "");
}

int seam_ipc_take_err(struct seam_cursor *body, struct seam_err *err)
{
	uint32_t code = seam_cursor_u32(body);
	const char *text = seam_cursor_cstr(body);

	if (body->error)
		return seam_err_set(err, -EBADMSG, "invalid reply");
	if (code == 0)
		return 0;
	return seam_err_set(err, code < 4096 ? -(int)code : -EIO, "%s", text);
}

/* ---- in the child: what it may do ---- */

/* The user "nobody", which owns no files. */
enum { NOBODY = 65534 };

enum { ALL_CPU_S = 3600 };

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#endif

#ifdef ARCHITECTURE
#define LOAD(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
/* The call @name does @what; the next one is compared otherwise. */
#define CALL(name, what) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), RETURN(what)
#define ALLOW(name) CALL(name, SECCOMP_RET_ALLOW)
#define FAIL(name) CALL(name, SECCOMP_RET_ERRNO | EACCES)

/* Any other call; a sanitizer's runtime makes some, and does without. */
#define REFUSE (SEAM_IS_SANITIZED ? SECCOMP_RET_ERRNO | EPERM :		\
		SECCOMP_RET_KILL_PROCESS)

/*
 * Allow the call @name where comparison @op of argument @arg with @value is
 * @is_true; @otherwise.
 */
#define ALLOW_IF(name, arg, op, value, is_true, otherwise)		\
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 5),		\
	LOAD(args[arg]),						\
	BPF_JUMP(BPF_JMP | (op) | BPF_K, (value), (is_true), !(is_true)), \
	RETURN(otherwise), RETURN(SECCOMP_RET_ALLOW), LOAD(nr)

#define REFUSED (SECCOMP_RET_ERRNO | EACCES)

/* Memory, unless it is to be executed. */
#define ALLOW_DATA(name) \
	ALLOW_IF(name, 2, BPF_JSET, PROT_EXEC, 0, REFUSED)

/*
 * glibc's fstat().  A path could be passed all the same; it would reveal the
 * size of a file, not its bytes.
 */
#define ALLOW_FSTAT \
	ALLOW_IF(newfstatat, 3, BPF_JSET, AT_EMPTY_PATH, 1, REFUSED)

/* A file's inode generation, which find_elf.c compares. */
#define ALLOW_GETVERSION \
	ALLOW_IF(ioctl, 1, BPF_JEQ, (uint32_t)FS_IOC_GETVERSION, 1, REFUSED)

/*
 * A signal to the process itself: abort() of a library that found its heap or
 * its stack damaged, which is reported as that.
 */
#define ALLOW_OWN_SIGNAL \
	ALLOW_IF(tgkill, 0, BPF_JEQ, (uint32_t)getpid(), 1, REFUSE)

static bool filter_calls(void)
{
	const struct sock_filter filter[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		/* received descriptors, and the socket to its parent */
		ALLOW(read), ALLOW(pread64), ALLOW(lseek), ALLOW(close),
		ALLOW(recvfrom), ALLOW(recvmsg), ALLOW(sendto),
		ALLOW(sendmsg), ALLOW(fcntl), ALLOW(write), ALLOW(fstat),
		ALLOW_FSTAT, ALLOW_GETVERSION,
		/* memory */
		ALLOW_DATA(mmap), ALLOW_DATA(mprotect),
		ALLOW(munmap), ALLOW(mremap), ALLOW(madvise), ALLOW(brk),
		/* itself */
		ALLOW(futex), ALLOW(exit), ALLOW(exit_group),
		ALLOW(rt_sigreturn), ALLOW(rt_sigprocmask), ALLOW(getpid),
		ALLOW(gettid), ALLOW(getrandom), ALLOW(clock_gettime),
		ALLOW(sched_yield), ALLOW(pipe2),
		/* optional for libraries */
		FAIL(openat), FAIL(readlinkat), FAIL(faccessat),
		FAIL(getcwd), FAIL(prlimit64), FAIL(uname),
		FAIL(sysinfo), FAIL(sched_getaffinity),
#ifdef SYS_open
		FAIL(open), FAIL(stat), FAIL(lstat), FAIL(readlink),
		FAIL(access), ALLOW(pipe),
#endif
#if SEAM_IS_SANITIZED
		ALLOW(sigaltstack), ALLOW(rt_sigaction),
#endif
		ALLOW_OWN_SIGNAL,
		RETURN(REFUSE),
	};
	struct sock_fprog program = {
		.len = SEAM_ARRAY_SIZE(filter),
		.filter = (struct sock_filter *)(uintptr_t)filter,
	};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#else
static bool filter_calls(void)
{
	return false;
}
#endif

/* Bytes of address space that are in use. */
static uint64_t mapped_bytes(void)
{
	unsigned long pages = 0;
	FILE *in = fopen("/proc/self/statm", "re");

	if (in && fscanf(in, "%lu", &pages) != 1)
		pages = 0;
	if (in)
		fclose(in);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool limit(__rlimit_resource_t what, uint64_t most)
{
	struct rlimit r;

	if (getrlimit(what, &r))
		return false;
	if (most < r.rlim_cur)
		r.rlim_cur = most;
	if (r.rlim_cur < r.rlim_max)
		r.rlim_max = r.rlim_cur;
	return setrlimit(what, &r) == 0;
}

static bool set_limits(uint64_t memory_bytes)
{
	uint64_t before = mapped_bytes();
	bool all = limit(RLIMIT_CORE, 0);

	all &= limit(RLIMIT_FSIZE, 0);
	all &= limit(RLIMIT_NOFILE, 64);
	/* For all files; for one the parent has a limit of its own. */
	all &= limit(RLIMIT_CPU, ALL_CPU_S);
	/* A sanitizer reserves terabytes. */
	if (!SEAM_IS_SANITIZED && before && memory_bytes < UINT64_MAX - before)
		all &= limit(RLIMIT_AS, before + memory_bytes);
	return all;
}

/* A process of root becomes one of "nobody"; others keep their user. */
static bool leave_root(void)
{
	if (geteuid() != 0)
		return true;
	return setgroups(0, NULL) == 0 &&
	       setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
	       setresuid(NOBODY, NOBODY, NOBODY) == 0;
}

/* Returns what was refused. */
static unsigned int drop_privileges(uint64_t memory_bytes)
{
	unsigned int refused = 0;

	if (!set_limits(memory_bytes))
		refused |= SEAM_SANDBOX_LIMITS;
	if (!leave_root())
		refused |= SEAM_SANDBOX_USER;
	/* after that, because a change of user forgets it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || !filter_calls())
		refused |= SEAM_SANDBOX_SECCOMP;
	return refused;
}

/* Only the socket, and /dev/null for the standard three, stay open. */
static bool close_all_but(int socket)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
	    dup2(null, 2) < 0)
		return false;
	if (socket != IPC_FD && dup2(socket, IPC_FD) < 0)
		return false;
#ifdef SYS_close_range
	if (syscall(SYS_close_range, IPC_FD + 1, ~0U, 0) == 0)
		return true;
#endif
	for (int fd = IPC_FD + 1; fd < (int)sysconf(_SC_OPEN_MAX); fd++)
		close(fd);
	return true;
}

/* Dispositions as of a program that was just started. */
static void reset_signals(void)
{
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	/* The parent handles those of the terminal. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn static void run(int socket, seam_sandbox_work *work, void *context)
{
	struct seam_ipc ipc = { .fd = IPC_FD };
	uint64_t memory = seam_memory_limited();

	if (memory == UINT64_MAX)
		memory = MEMORY_BYTES;
	reset_signals();
	if (!close_all_but(socket))
		_exit(1);
	seam_ipc_put_u32(&ipc, drop_privileges(memory));
	if (seam_ipc_send(&ipc, HELLO, -1) == 0)
		work(&ipc, context);
	_exit(0);
}

/* ---- in the parent ---- */

static void close_ipc(struct seam_ipc *ipc)
{
	if (ipc->fd >= 0)
		close(ipc->fd);
	free(ipc->out.items);
	free(ipc->in.items);
	*ipc = (struct seam_ipc) { .fd = -1 };
}

static int receive_hello(struct seam_sandbox *sandbox)
{
	struct seam_message hello;
	int r = seam_ipc_receive(&sandbox->ipc, &hello);

	if (r || hello.kind != HELLO)
		return r ? r : -EBADMSG;
	sandbox->refused = seam_cursor_u32(&hello.body);
	return 0;
}

int seam_sandbox_start(struct seam_sandbox *sandbox, seam_sandbox_work *work,
		       void *context, struct seam_err *err)
{
	const struct timeval second = { .tv_sec = 1 };
	const struct timeval minute = { .tv_sec = 60 };
	char why[64];
	int ends[2], r = 0;
	pid_t pid;

	*sandbox = (struct seam_sandbox) { .ipc = { .fd = -1 } };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return seam_err_errno(err, CANNOT_START);
	pid = fork();
	if (pid == 0)
		run(ends[1], work, context);
	if (pid < 0)
		r = seam_err_errno(err, CANNOT_START);
	close(ends[1]);
	if (r) {
		close(ends[0]);
		return r;
	}
	sandbox->pid = pid;
	sandbox->ipc.fd = ends[0];
	sandbox->ipc.peer = pid;
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &minute, sizeof(minute));
	if (receive_hello(sandbox)) {
		seam_sandbox_end(sandbox, why, sizeof(why));
		return seam_err_set(err, -EIO, CANNOT_START ": it %s", why);
	}
	return 0;
}

static void describe(bool is_slow, int status, char *why, size_t room)
{
	int signal_number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (is_slow || signal_number == SIGXCPU)
		snprintf(why, room, "took more than %u seconds",
			 seam_sandbox_cpu_s);
	else if (signal_number == SIGSYS)
		snprintf(why, room, "made a forbidden system call");
	else if (signal_number)
		snprintf(why, room, "was killed by signal %d (%s)",
			 signal_number, strsignal(signal_number));
	else
		snprintf(why, room, "ended with status %d",
			 WEXITSTATUS(status));
}

/*
 * A process that reads from a file system whose server does not answer (FUSE,
 * NFS) cannot be killed until it does.  It stays a zombie after that.
 */
static void wait_for_end(pid_t pid, int *status)
{
	const struct timespec pause = { .tv_nsec = WAIT_NS };

	for (int i = 0; i < MAX_WAITS; i++) {
		pid_t r = waitpid(pid, status, WNOHANG);

		if (r > 0 || (r < 0 && errno != EINTR))
			return;
		nanosleep(&pause, NULL);
	}
	*status = SIGKILL;
}

void seam_sandbox_end(struct seam_sandbox *sandbox, char *why, size_t room)
{
	bool is_slow = sandbox->ipc.is_slow;
	int status = 0;

	close_ipc(&sandbox->ipc);
	if (sandbox->pid == 0)
		return;
	/* Harmless for a process that has ended; ends one that hangs. */
	kill(sandbox->pid, SIGKILL);
	wait_for_end(sandbox->pid, &status);
	if (why)
		describe(is_slow, status, why, room);
	sandbox->pid = 0;
}

const char *seam_sandbox_missing(const struct seam_sandbox *sandbox)
{
	static const char *const lists[] = {
		NULL, "system calls", "user", "system calls, user", "memory",
		"system calls, memory", "user, memory",
		"system calls, user, memory",
	};

	return lists[sandbox->refused % SEAM_ARRAY_SIZE(lists)];
}
