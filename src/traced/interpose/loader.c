/* SPDX-License-Identifier: MIT */
/*
 * loader.c - libraries that the program loads and unloads
 *
 * dlopen() searches in its caller's RUNPATH, and in the RPATH of files that
 * loaded the caller, and finds its caller by the return address.  So we call
 * dlopen() only where the caller makes no difference: for a path, and where no
 * file has such an entry; else we jump to dlopen().  Libraries that are loaded
 * by such a jump are taken into account at the next call of ours.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>

#include "traced/interpose/interpose.h"

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
