/* SPDX-License-Identifier: MIT */
/*
 * killed.c - a traced program that notes how far it is, until it is killed
 *
 * usage: killed LOG INDEX [NS]
 *
 * LOG is a file of struct killed_program, which killed.py reads.  A thread ends
 * when that says so.  A thread makes calls 1, 2, 3, ..., and what each of them
 * is follows from its number, so how far it came is the whole log.  After NS a
 * timer of the kernel kills it: in the middle of what it does, as no other
 * process could on a loaded machine.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((xray_never_instrument))
#define SHOWN __attribute__((xray_always_instrument, noinline))

enum { KILLED_THREADS = 2 };

struct killed_program {
	_Atomic uint32_t pid;
	_Atomic uint32_t is_done;
	struct {
		_Atomic uint32_t tid;
		_Atomic uint32_t must_end;	/* set by killed.py */
		/* before and after the call of this number */
		_Atomic uint64_t begun, done;
	} threads[KILLED_THREADS];
};

static struct killed_program *program;

SHOWN void first(void)
{
	__asm__ volatile("");
}

SHOWN void second(void)
{
	__asm__ volatile("");
}

SHOWN void tail(void)
{
	__asm__ volatile("");
	__attribute__((musttail)) return second();
}

SHOWN void both(void)
{
	first();
	tail();
	__asm__ volatile("");
}

HIDDEN static void call(uint64_t number)
{
	switch ((number * 0x9e3779b97f4a7c15) >> 62) {
	case 0: return first();
	case 1: return second();
	case 2: return tail();
	default: return both();
	}
}

HIDDEN static void *run(void *argument)
{
	size_t i = (size_t)argument;

	program->threads[i].tid = (uint32_t)gettid();
	for (uint64_t k = 1; !program->threads[i].must_end; k++) {
		/* relaxed: one word each, read after the process' death */
		atomic_store_explicit(&program->threads[i].begun, k,
				      memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		call(k);
		atomic_signal_fence(memory_order_seq_cst);
		atomic_store_explicit(&program->threads[i].done, k,
				      memory_order_relaxed);
	}
	return NULL;
}

HIDDEN static void kill_after(long ns)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL,
	};
	struct itimerspec when = { .it_value.tv_nsec = ns };
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &when, NULL))
		exit(3);
}

HIDDEN int main(int argc, char **argv)
{
	pthread_t thread;
	struct stat st;
	void *log;
	int fd;

	if (argc < 3 || (fd = open(argv[1], O_RDWR | O_CLOEXEC)) < 0 ||
	    fstat(fd, &st))
		return 2;
	log = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
		   MAP_SHARED, fd, 0);
	if (log == MAP_FAILED)
		return 2;
	program = (struct killed_program *)log + atoi(argv[2]);
	program->pid = (uint32_t)getpid();
	if (argc > 3)
		kill_after(atol(argv[3]));
	if (pthread_create(&thread, NULL, run, (void *)1))
		return 2;
	run((void *)0);
	pthread_join(thread, NULL);
	program->is_done = 1;
	return 7;
}
