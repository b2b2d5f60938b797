/* SPDX-License-Identifier: MIT */
/*
 * sandbox_privileges.c - what a reading process may do: an allow-list
 *
 * Optional calls of libraries (open a debug file, get the memory size) fail
 * with EACCES; all calls that are not listed end the process.
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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* Memory, unless it is to be executed: argument 2 is the protection. */
#define ALLOW_DATA(name)						\
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 5),		\
	LOAD(args[2]),							\
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),		\
	RETURN(SECCOMP_RET_ERRNO | EACCES),				\
	RETURN(SECCOMP_RET_ALLOW),					\
	LOAD(nr)

/*
 * glibc's fstat(): AT_EMPTY_PATH in argument 3.  A path could be passed all
 * the same; it would reveal the size of a file, not its bytes.
 */
#define ALLOW_FSTAT							\
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_newfstatat, 0, 5),	\
	LOAD(args[3]),							\
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, AT_EMPTY_PATH, 1, 0),	\
	RETURN(SECCOMP_RET_ERRNO | EACCES),				\
	RETURN(SECCOMP_RET_ALLOW),					\
	LOAD(nr)

/*
 * A signal to the process itself (argument 0): abort() of a library that found
 * its heap or its stack damaged, which is reported as that.
 */
#define ALLOW_OWN_SIGNAL(pid)						\
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 4),		\
	LOAD(args[0]),							\
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (pid), 1, 0),		\
	RETURN(REFUSE),							\
	RETURN(SECCOMP_RET_ALLOW)

/* A file's inode generation, which find_elf.c compares. */
#define ALLOW_GETVERSION						\
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 5),		\
	LOAD(args[1]),							\
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)FS_IOC_GETVERSION,\
		 1, 0),							\
	RETURN(SECCOMP_RET_ERRNO | EACCES),				\
	RETURN(SECCOMP_RET_ALLOW),					\
	LOAD(nr)

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
		ALLOW_OWN_SIGNAL((uint32_t)getpid()),
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

unsigned int seam_sandbox_drop_privileges(uint64_t memory_bytes)
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
