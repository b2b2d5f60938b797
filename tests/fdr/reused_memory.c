/* SPDX-License-Identifier: MIT */
/*
 * reused_memory.c - loads plugins, over and over: reused_memory PLUGIN...
 *
 * Each is PATH and the name of its function, in turn; it is loaded and unloaded
 * some times, and then stays, and its function is called 10 times.  malloc() is
 * here, so that a block that is freed is the next of its size.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 64 << 20, ALIGNMENT = 16 };

struct block {
	size_t bytes;
	struct block *next;
};

static char memory[BYTES] __attribute__((aligned(ALIGNMENT)));
static size_t used;
static struct block *freed;
/* with the lock */
static volatile int lock;

static void take_lock(void)
{
	while (__sync_lock_test_and_set(&lock, 1))
		continue;
}

void *malloc(size_t n)
{
	struct block *b, **at = &freed;

	n = (n + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	take_lock();
	while ((b = *at) && b->bytes != n)
		at = &b->next;
	if (b) {
		*at = b->next;
	} else if (n + sizeof(*b) <= BYTES - used) {
		b = (struct block *)(memory + used);
		used += sizeof(*b) + n;
		b->bytes = n;
	}
	__sync_lock_release(&lock);
	return b ? b + 1 : NULL;
}

void *calloc(size_t n, size_t size)
{
	void *p = malloc(n * size);

	return p ? memset(p, 0, n * size) : NULL;
}

void free(void *p)
{
	struct block *b = (struct block *)p - 1;

	if (!p)
		return;
	take_lock();
	b->next = freed;
	freed = b;
	__sync_lock_release(&lock);
}

void *realloc(void *old, size_t n)
{
	void *p = malloc(n);
	size_t had = old ? ((struct block *)old - 1)->bytes : 0;

	if (p && old)
		memcpy(p, old, had < n ? had : n);
	if (p)
		free(old);
	return p;
}

int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		int (*call)(int);
		void *handle;

		for (int j = 0; j < 8; j++)
			dlclose(dlopen(argv[i], RTLD_NOW));
		handle = dlopen(argv[i], RTLD_NOW);
		call = (int (*)(int))dlsym(handle, argv[i + 1]);
		for (int j = 0; j < 10; j++)
			call(j);
	}
	puts("done");
	return 0;
}
