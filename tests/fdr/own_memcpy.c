/* SPDX-License-Identifier: MIT */
/*
 * own_memcpy.c - libc's functions are the program's own, and recorded
 *
 * mmap() is called where a thread gets an area, memcpy() by seam_fdr_snapshot().
 * Says "done".
 */
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TRACED __attribute__((noinline, xray_always_instrument))

extern int seam_fdr_snapshot(const char *folder) __attribute__((weak));

TRACED void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		((char *)to)[i] = ((const char *)from)[i];
		__asm__ volatile("");
	}
	return to;
}

TRACED void *memset(void *to, int value, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		((char *)to)[i] = (char)value;
		__asm__ volatile("");
	}
	return to;
}

TRACED void leaf(void)
{
	__asm__ volatile("");
}

TRACED void *mmap(void *at, size_t bytes, int rights, int flags, int fd,
		  off_t offset)
{
	leaf();
	return (void *)syscall(SYS_mmap, at, bytes, rights, flags, fd, offset);
}

TRACED void sleep_1_ms(void)
{
	nanosleep(&(struct timespec) { 0, 1000000 }, NULL);
}

__attribute__((xray_never_instrument))
int main(void)
{
	for (int i = 0; i < 100; i++) {
		for (int j = 0; j < 1000; j++)
			leaf();
		if (seam_fdr_snapshot)
			(void)seam_fdr_snapshot(NULL);
	}
	for (int i = 0; i < 100000; i++)
		leaf();
	sleep_1_ms();
	puts("done");
	return 0;
}
