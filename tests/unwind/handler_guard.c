/* SPDX-License-Identifier: MIT */
/*
 * handler_guard.c - preloaded: calls that a signal handler may not make, abort
 *
 * A program brackets its handler's work with handler_guard_enter() and
 * handler_guard_leave().  In between, in that thread, the heap, locks, stdio
 * and the dynamic loader end the process with the name of the call.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static __thread int depth __attribute__((tls_model("initial-exec")));

EXPORTED void handler_guard_enter(void);
EXPORTED void handler_guard_leave(void);

void handler_guard_enter(void)
{
	depth++;
}

/* To the depth of no handler: one may have been left by longjmp(). */
void handler_guard_leave(void)
{
	depth = 0;
}

static void refuse(const char *name)
{
	static const char text[] = ": called in a signal handler\n";

	if (depth == 0)
		return;
	if (write(2, name, strlen(name)) < 0 ||
	    write(2, text, sizeof(text) - 1) < 0)
		_exit(3);
	abort();
}

/* libc's own; what finds the others may allocate. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

EXPORTED void *malloc(size_t size)
{
	refuse("malloc");
	return __libc_malloc(size);
}

EXPORTED void *calloc(size_t n, size_t size)
{
	refuse("calloc");
	return __libc_calloc(n, size);
}

EXPORTED void *realloc(void *old, size_t size)
{
	refuse("realloc");
	return __libc_realloc(old, size);
}

EXPORTED void *memalign(size_t alignment, size_t size);
EXPORTED void *memalign(size_t alignment, size_t size)
{
	refuse("memalign");
	return __libc_memalign(alignment, size);
}

EXPORTED void *aligned_alloc(size_t alignment, size_t size)
{
	refuse("aligned_alloc");
	return __libc_memalign(alignment, size);
}

EXPORTED void free(void *memory)
{
	refuse("free");
	__libc_free(memory);
}

/* The next definition of a function, found at its first call. */
#define GUARDED(result, name, parameters, arguments)			\
	EXPORTED result name parameters					\
	{								\
		static result (*next) parameters;			\
		refuse(#name);						\
		if (!next)						\
			*(void **)&next = dlsym(RTLD_NEXT, #name);	\
		return next arguments;					\
	}

GUARDED(int, pthread_mutex_lock, (pthread_mutex_t *m), (m))
GUARDED(int, pthread_mutex_trylock, (pthread_mutex_t *m), (m))
GUARDED(int, pthread_mutex_unlock, (pthread_mutex_t *m), (m))
GUARDED(int, pthread_rwlock_rdlock, (pthread_rwlock_t *l), (l))
GUARDED(int, pthread_rwlock_wrlock, (pthread_rwlock_t *l), (l))
GUARDED(int, pthread_rwlock_unlock, (pthread_rwlock_t *l), (l))
GUARDED(int, pthread_spin_lock, (pthread_spinlock_t *l), (l))
GUARDED(int, pthread_once, (pthread_once_t *o, void (*f)(void)), (o, f))
GUARDED(int, pthread_getattr_np, (pthread_t t, pthread_attr_t *a), (t, a))
GUARDED(int, dl_iterate_phdr,
	(int (*f)(struct dl_phdr_info *, size_t, void *), void *c), (f, c))
GUARDED(void *, dlopen, (const char *name, int flags), (name, flags))
GUARDED(int, dlclose, (void *handle), (handle))
GUARDED(int, dladdr, (const void *addr, Dl_info *info), (addr, info))
GUARDED(FILE *, fopen, (const char *name, const char *mode), (name, mode))
GUARDED(int, fclose, (FILE *f), (f))
GUARDED(int, fflush, (FILE *f), (f))
GUARDED(int, puts, (const char *text), (text))
GUARDED(int, fputs, (const char *text, FILE *f), (text, f))
GUARDED(size_t, fwrite, (const void *p, size_t s, size_t n, FILE *f),
	(p, s, n, f))
GUARDED(int, vfprintf, (FILE *f, const char *format, va_list l), (f, format, l))
GUARDED(int, vsnprintf, (char *to, size_t n, const char *format, va_list l),
	(to, n, format, l))
GUARDED(char *, getenv, (const char *name), (name))
