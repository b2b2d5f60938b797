/* SPDX-License-Identifier: MIT */
/*
 * fail_nth.c - the n-th allocation of a program fails
 *
 * Loaded with LD_PRELOAD.  Of a process whose name is seam: FAIL_AT=n fails
 * the n-th allocation, with FAIL_ON=1 all that follow too; FAIL_COUNT names a
 * file that gets how many there were.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Source: glibc, malloc/malloc.c: what the public names stand for. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static atomic_long n_calls;
static long fail_at;
static bool goes_on, is_ours;
static pid_t process;

static bool fails(void)
{
	long n = is_ours ? atomic_fetch_add(&n_calls, 1) + 1 : 0;

	if (n == 0 || fail_at == 0 || (goes_on ? n < fail_at : n != fail_at))
		return false;
	errno = ENOMEM;
	return true;
}

__attribute__((visibility("default")))
void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

__attribute__((visibility("default")))
void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

__attribute__((visibility("default")))
void *realloc(void *old, size_t size)
{
	return fails() ? NULL : __libc_realloc(old, size);
}

__attribute__((constructor))
static void begin(void)
{
	const char *at = getenv("FAIL_AT");
	int fd = open("/proc/self/comm", O_RDONLY);
	char name[16] = "";

	if (fd < 0 || read(fd, name, sizeof(name) - 1) <= 0)
		return;
	close(fd);
	fail_at = at ? atol(at) : 0;
	goes_on = getenv("FAIL_ON") != NULL;
	process = getpid();
	is_ours = strcmp(name, "seam\n") == 0;
}

__attribute__((destructor))
static void end(void)
{
	const char *path = getenv("FAIL_COUNT");
	FILE *file;

	if (!is_ours || !path || getpid() != process)
		return;
	is_ours = false;
	file = fopen(path, "w");
	if (!file)
		return;
	fprintf(file, "%ld\n", (long)n_calls);
	fclose(file);
}
