/* SPDX-License-Identifier: MIT */
/* interpose.c - libraries that are loaded, and filters; see interpose.h */
#include "traced/interpose/interpose.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * ---- libraries that the program loads and unloads ----
 *
 * dlopen() searches in its caller's RUNPATH, and in the RPATH of files that
 * loaded the caller, and finds its caller by the return address.  So we call
 * dlopen() only where the caller makes no difference: for a path, and where no
 * file has such an entry; else we jump to dlopen().  Libraries that are loaded
 * by such a jump are taken into account at the next call of ours.
 */

enum { MAX_OBJECTS = 4096, MAX_ENTRIES = 256 };

/* named by the assembly below */
extern void *(*seam_interpose_real_dlopen)(const char *, int);
void *(*seam_interpose_real_dlopen)(const char *, int);

/* Of the linker: the functions of this library. */
extern struct seam_real __start_seam_reals[]
	__attribute__((visibility("hidden")));
extern struct seam_real __stop_seam_reals[]
	__attribute__((visibility("hidden")));

__attribute__((constructor))
static void find_all(void)
{
	for (struct seam_real *real = __start_seam_reals;
	     real < __stop_seam_reals; real++)
		(void)seam_real_find(real);
}

static bool has_entry(const struct link_map *object, ElfW(Sxword) tag)
{
	const ElfW(Dyn) *d = object->l_ld;

	for (int i = 0; d && i < MAX_ENTRIES && d[i].d_tag != DT_NULL; i++)
		if (d[i].d_tag == tag)
			return true;
	return false;
}

/* A file's name without a slash is searched by the caller's paths. */
static bool depends_on_caller(const char *file, const void *caller)
{
	const struct link_map *object = _r_debug.r_map;
	struct link_map *of_caller = NULL;
	Dl_info info;
	int n = 0;

	if (!file || !file[0])
		return false;
	if (strchr(file, '$'))
		return true;		/* $ORIGIN of the caller */
	if (strchr(file, '/'))
		return false;
	if (!dladdr1(caller, &info, (void **)&of_caller, RTLD_DL_LINKMAP) ||
	    !of_caller || has_entry(of_caller, DT_RUNPATH))
		return true;
	for (; object; object = object->l_next)
		if (++n > MAX_OBJECTS || has_entry(object, DT_RPATH))
			return true;
	return false;
}

/* For the assembly below: find libc's dlopen(); whether we may call it. */
bool seam_interpose_may_call_dlopen(const char *file, const void *caller);
void *seam_interpose_call_dlopen(const char *file, int mode);

bool seam_interpose_may_call_dlopen(const char *file, const void *caller)
{
	if (!seam_interpose_real_dlopen)
		seam_interpose_real_dlopen = (void *(*)(const char *, int))
					     dlsym(RTLD_NEXT, "dlopen");
	return seam_interpose_wants_loads() &&
	       !depends_on_caller(file, caller);
}

void *seam_interpose_call_dlopen(const char *file, int mode)
{
	void *handle = seam_interpose_real_dlopen(file, mode);

	if (handle && file)
		seam_interpose_loads(handle);
	return handle;
}

__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	/* the return address is above what was pushed */
	"	movq 24(%rsp), %rsi\n"
	"	call seam_interpose_may_call_dlopen\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	testb %al, %al\n"
	"	jnz seam_interpose_call_dlopen\n"
	"	jmp *seam_interpose_real_dlopen(%rip)\n"
	"	.cfi_endproc\n"
	".size dlopen, . - dlopen\n");

SEAM_INTERPOSED
int dlclose(void *handle)
{
	int r = SEAM_REAL(dlclose)(handle);

	if (r == 0)
		seam_interpose_loads(NULL);
	return r;
}

/*
 * ---- a program that is about to restrict its own system calls ----
 *
 * A seccomp filter may kill a thread for a call of our code, so our code ends
 * before the filter is there.  Inherited filters fail the calls in most cases;
 * a filter that kills would have killed the program at its start too.
 */

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
