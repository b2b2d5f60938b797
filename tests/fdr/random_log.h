/* SPDX-License-Identifier: MIT */
/*
 * random_log.h - what a random program notes of its own calls
 *
 * Between random_main.c, which runs and checks it, and the C++ program that
 * random_programs.py makes.
 */
#ifndef SEAM_TESTS_FDR_RANDOM_LOG_H
#define SEAM_TESTS_FDR_RANDOM_LOG_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RANDOM_MAX_JUMPS = 32 };

/* As enum seam_xray_kind. */
enum random_kind { RANDOM_ENTRY, RANDOM_EXIT, RANDOM_TAIL };

struct random_entry {
	uint16_t function;	/* index in random_functions */
	uint8_t kind;
	uint16_t cpu;
	uint16_t level;		/* calls that are open around it */
	uint64_t arguments[3];
};

/* Of one thread.  What a jump restores is restored by who catches it. */
struct random_thread {
	struct random_entry *log;
	size_t n, capacity;
	uint64_t seed;
	uint32_t tid;
	uint32_t level, cpu;
	uint32_t n_tries, n_jumps;
	uint32_t first_jump;	/* those before are not of this handler */
	int64_t fuel;		/* calls that may still be made */
	jmp_buf jumps[RANDOM_MAX_JUMPS];
	uint32_t levels[RANDOM_MAX_JUMPS], tries[RANDOM_MAX_JUMPS];
};

/* The program: its functions, and what a thread and a handler do. */
extern const void *const random_functions[];
extern const size_t random_n_functions;
void random_run(struct random_thread *t);
void random_handle(struct random_thread *t);

/* random_main.c */
void random_note(struct random_thread *t, unsigned int function,
		 enum random_kind kind, uint64_t a, uint64_t b);
uint64_t random_next(struct random_thread *t);
void random_signal(struct random_thread *t);
void random_migrate(struct random_thread *t);

#ifdef __cplusplus
}
#endif

#endif /* SEAM_TESTS_FDR_RANDOM_LOG_H */
