/* SPDX-License-Identifier: MIT */
/*
 * seccomp.c - a program that is about to restrict its own system calls
 *
 * A seccomp filter may kill a thread for a call of our code, so our code ends
 * before the filter is there.  Inherited filters fail the calls in most cases;
 * a filter that kills would have killed the program at its start too.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "traced/interpose/interpose.h"

/*
 * Without a filter the call fails: programs ask so what the kernel has.  The
 * strict mode needs no filter.
 */
static bool installs(unsigned long mode, unsigned long filter)
{
	return mode == SECCOMP_MODE_STRICT || filter;
}

SEAM_INTERPOSED
int prctl(int option, ...)
{
	unsigned long a[4];
	bool is_filter;
	va_list list;
	int r;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(list, unsigned long);
	va_end(list);
	is_filter = option == PR_SET_SECCOMP && installs(a[0], a[1]) &&
		    seam_interpose_is_own_process();
	if (is_filter)
		seam_interpose_before_filter();
	r = SEAM_REAL(prctl)(option, a[0], a[1], a[2], a[3]);
	if (is_filter && r < 0)
		seam_interpose_filter_refused();
	return r;
}

static bool installs_filter(long number, const long *a)
{
	if (number == SYS_seccomp)
		return a[0] == SECCOMP_SET_MODE_STRICT ||
		       (a[0] == SECCOMP_SET_MODE_FILTER && a[2]);
	return number == SYS_prctl && a[0] == PR_SET_SECCOMP &&
	       installs((unsigned long)a[1], (unsigned long)a[2]);
}

/* Called in handlers of ours too: without a search for libc's syscall(). */
SEAM_INTERPOSED
long syscall(long number, ...)
{
	register long r10 __asm__("r10");
	register long r8 __asm__("r8");
	register long r9 __asm__("r9");
	va_list list;
	long a[6], r;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (installs_filter(number, a) && seam_interpose_is_own_process()) {
		seam_interpose_before_filter();
		/* another library of ours may have to know as well */
		r = SEAM_REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4],
				       a[5]);
		if (r < 0)
			seam_interpose_filter_refused();
		return r;
	}
	/* libc's functions are where a library of ours is in front */
	if (number == SYS_execve)
		return execve((char *)a[0], (char **)a[1], (char **)a[2]);
	if (number == SYS_execveat)
		return execveat((int)a[0], (char *)a[1], (char **)a[2],
				(char **)a[3], (int)a[4]);
	r10 = a[3];
	r8 = a[4];
	r9 = a[5];
	__asm__ volatile("syscall"
			 : "=a" (r)
			 : "a" (number), "D" (a[0]), "S" (a[1]), "d" (a[2]),
			   "r" (r10), "r" (r8), "r" (r9)
			 : "rcx", "r11", "memory");
	/* Source: System V ABI, x86-64, A.2.1 */
	if (r < 0 && r > -4096) {
		errno = (int)-r;
		return -1;
	}
	return r;
}
