/* SPDX-License-Identifier: MIT */
/*
 * signals.c - a timer's handler, instrumented as all else, in trampolines
 *
 * Threads call functions at random: calls, recursion, tail calls, long jumps,
 * exceptions (thrower.cc), and go from CPU to CPU.  A timer interrupts each of
 * them.  Each thread notes what it does; the handler notes how much the thread
 * had noted.
 * In the end the records must be that, call for call.
 *
 * usage: signals INTERRUPTIONS plain|checked|filtered [own|none|failed]
 *	filtered	checked, with a depth that all calls are within, and
 *		timed
 *	own	glibc registers no rseq area (GLIBC_TUNABLES), so we do
 *	none	glibc's is there and not used: ours is refused
 *	failed	glibc's is used, and is not that of these threads
 */
#include "area_walk.h"
#include "patcher.h"
#include "source_local.h"

#include "traced/fdr/check/checked.h"
#include "traced/fdr/record/fdr_record.h"
#include "traced/fdr/record/fdr_thread.h"
#include "traced/fdr/record/rseq.h"
#include "traced/fdr/record/system.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define HIDDEN __attribute__((xray_never_instrument))
#define SHOWN __attribute__((xray_always_instrument, noinline))

enum {
	N_THREADS = 2,
	AREA = 1 << 23,
	MAX_NOTES = 3 << 17,		/* of a round */
	MAX_HANDLERS = 1 << 16,
	PERIOD_NS = 12000,
};

struct thread {
	uint32_t *notes;		/* words of function records */
	uint32_t *at;			/* by handler: n_notes when it ran */
	volatile uint32_t n_notes, n_handlers, n_inside;
	uint32_t depth;
	uint64_t random;
	jmp_buf out;
	timer_t timer;
	uint64_t n_checked, n_early;
};

extern const char etext;

static __thread struct thread *me;
static const char *library;		/* its code: from here to etext */
static uint32_t id_leaf, id_recurse, id_tail, id_target, id_jump, id_outer,
	id_throws, id_catches, id_handler, id_inner;
static uint64_t wanted;

static _Atomic uint64_t n_interrupted;

HIDDEN static inline void note(uint32_t id, enum seam_xray_kind kind)
{
	struct thread *t = me;

	t->notes[t->n_notes] = seam_xray_word(id, kind);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->n_notes++;
}

HIDDEN static inline uint32_t any(void)
{
	me->random = me->random * 6364136223846793005ULL + 1442695040888963407;
	return (uint32_t)(me->random >> 40);
}

void signals_note_throws(int entry);
void signals_note_catches(int entry);
void signals_throws(unsigned int n);
void signals_catches(unsigned int n);

HIDDEN void signals_note_throws(int entry)
{
	note(id_throws, entry ? SEAM_XRAY_ENTRY : SEAM_XRAY_EXIT);
}

HIDDEN void signals_note_catches(int entry)
{
	note(id_catches, entry ? SEAM_XRAY_ENTRY : SEAM_XRAY_EXIT);
}

HIDDEN static void go_to_any_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(any() % (uint32_t)sysconf(_SC_NPROCESSORS_CONF), &set);
	/* may be one that we may not use */
	sched_setaffinity(0, sizeof(set), &set);
}

SHOWN void leaf(void)
{
	note(id_leaf, SEAM_XRAY_ENTRY);
	note(id_leaf, SEAM_XRAY_EXIT);
}

SHOWN void target(uint32_t n)
{
	note(id_target, SEAM_XRAY_ENTRY);
	__asm__ volatile("" :: "r" (n));
	note(id_target, SEAM_XRAY_EXIT);
}

SHOWN void tail(uint32_t n)
{
	note(id_tail, SEAM_XRAY_ENTRY);
	note(id_tail, SEAM_XRAY_TAIL_EXIT);
	__attribute__((musttail)) return target(n + 1);
}

SHOWN void recurse(uint32_t n)
{
	note(id_recurse, SEAM_XRAY_ENTRY);
	if (n)
		recurse(n - 1);
	else
		tail(n);
	note(id_recurse, SEAM_XRAY_EXIT);
}

SHOWN void jump(void)
{
	note(id_jump, SEAM_XRAY_ENTRY);
	longjmp(me->out, 1);
}

SHOWN void outer(void)
{
	note(id_outer, SEAM_XRAY_ENTRY);
	switch (any() % 16) {
	case 0:
		recurse(any() % 8);
		break;
	case 1:
		jump();
		break;
	case 2:
		tail(3);
		break;
	case 3:
		if (any() % 16 == 0)
			signals_catches(any() % 4);
		break;
	case 4:
		if (any() % 1024 == 0)
			go_to_any_cpu();
		break;
	default:
		leaf();
	}
	note(id_outer, SEAM_XRAY_EXIT);
}

SHOWN void inner(void)
{
	__asm__ volatile("");
}

HIDDEN static void arm(struct thread *t, bool on)
{
	const struct itimerspec spec = {
		{ 0, on ? PERIOD_NS : 0 }, { 0, on ? PERIOD_NS : 0 },
	};

	timer_settime(t->timer, 0, &spec, NULL);
}

SHOWN void handler(int signal, siginfo_t *info, void *context)
{
	const ucontext_t *u = context;
	const char *ip = (const char *)u->uc_mcontext.gregs[REG_RIP];
	struct thread *t = me;

	(void)signal;
	(void)info;
	t->at[t->n_handlers++] = t->n_notes;
	t->n_inside += ip >= library && ip < &etext;
	/* on a machine that is slow there is one after the other */
	if (t->n_handlers == MAX_HANDLERS - 64)
		arm(t, false);
	inner();
}

/* In @t's records at @w, the handler's four.  Returns whether they are. */
HIDDEN static bool is_handler(struct walk *w, uint64_t *last)
{
	static const enum seam_xray_kind kinds[] = {
		SEAM_XRAY_ENTRY, SEAM_XRAY_EXIT, SEAM_XRAY_EXIT,
	};
	const uint32_t ids[] = { id_inner, id_inner, id_handler };

	for (int i = 0; i < 3; i++) {
		struct walk_record r;

		if (!walk_next(w, &r) || r.kind != kinds[i] ||
		    r.function != ids[i] || r.tsc < *last)
			return false;
		*last = r.tsc;
	}
	return true;
}

HIDDEN static void die(const char *why, uint64_t at, uint64_t more)
{
	fprintf(stderr, "%s at %llu (%llu)\n", why, (unsigned long long)at,
		(unsigned long long)more);
	printf("not ok 1 - %s\n", why);
	fflush(stdout);
	_exit(1);
}

/* Records from @from on against what @t noted. */
HIDDEN static void check(struct thread *t, const struct walk *from)
{
	struct walk w = *from;
	uint64_t last = 0;
	uint32_t n = 0, h = 0;
	struct walk_record r;

	while (walk_next(&w, &r)) {
		if (r.tsc < last)
			die("a time that steps back", n, h);
		last = r.tsc;
		if (r.function == id_handler) {
			if (h >= t->n_handlers)
				die("a handler too many", n, h);
			/* between a record and its note are trampolines */
			if (n + 1 < t->at[h] || n > t->at[h] + 1)
				die("a handler out of order", n, t->at[h]);
			t->n_early += n > t->at[h];
			if (!is_handler(&w, &last))
				die("a torn handler", n, h);
			h++;
			continue;
		}
		if (n >= t->n_notes)
			die("a record too many", n, h);
		if (seam_xray_word(r.function, r.kind) != t->notes[n])
			die("another record than noted", n, t->notes[n]);
		n++;
	}
	
	if (w.problem)
		die(w.problem, n, h);
	if (n != t->n_notes)
		die("lost records", n, t->n_notes);
	if (h != t->n_handlers)
		die("lost handlers", h, t->n_handlers);
	t->n_checked += n;
}

HIDDEN static void block(bool on)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(on ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static bool unregisters;

/* As where the kernel refused what glibc registered for others. */
HIDDEN static void unregister(void)
{
	uint8_t *area = (uint8_t *)__builtin_thread_pointer() + __rseq_offset;

	if (unregisters && syscall(SYS_rseq, area, 32, RSEQ_FLAG_UNREGISTER,
				   RSEQ_SIG))
		die("unregister", (uint64_t)errno, 0);
}

/* Nothing is recorded while the area is read and begins anew. */
HIDDEN static void *run(void *argument)
{
	struct thread *t = argument;
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1,
	};

	unregister();
	me = t;
	event._sigev_un._tid = (int)seam_fdr_syscall4(SYS_gettid, 0, 0, 0, 0);
	block(true);
	if (timer_create(CLOCK_MONOTONIC, &event, &t->timer))
		die("timer_create", (uint64_t)errno, 0);
	while (n_interrupted < wanted) {
		struct seam_fdr_area *area;
		struct walk w;

		arm(t, true);
		t->n_notes = t->n_handlers = t->n_inside = 0;
		if (!seam_fdr_thread())
			die("no area", 0, 0);
		area = &seam_fdr_self.state->area;
		/* the reader has read all of it */
		*(_Atomic uint64_t *)(uintptr_t)area->tail =
			*area->cursor / SEAM_XRAY_CHUNK_BYTES *
			SEAM_XRAY_CHUNK_BYTES;
		w = (struct walk) {
			.area = area->bytes, .mask = area->size - 1,
			.at = *area->cursor, .tsc = 0,
		};
		w.tsc = seam_fdr_self.state->at[w.at >> 3 & 1].tsc;
		block(false);
		while (t->n_notes < MAX_NOTES - 64 &&
		       t->n_handlers < MAX_HANDLERS - 64) {
			if (setjmp(t->out) == 0)
				outer();
		}
		block(true);
		w.end = *area->cursor;
		check(t, &w);
		if (*area->n_lost)
			die("records counted as lost", *area->n_lost, 0);
		n_interrupted += t->n_inside;
	}
	timer_delete(t->timer);
	return NULL;
}

HIDDEN static void filter(void)
{
	const struct seam_fdr_options options = {
		.depth = SEAM_FDR_MAX_DEPTH,
		.triggers = { { .kind = SEAM_TRIGGER_SLOW,
				.limit_ns = INT64_MAX } },
		.n_triggers = 1,
	};
	const uint32_t ids[] = { id_leaf, id_recurse, id_outer, id_throws };

	if (seam_fdr_check_init(&options))
		exit(2);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		seam_fdr_trigger_function(0, ids[i]);
}

HIDDEN int main(int argc, char **argv)
{
	const struct sigaction action = {
		.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART,
	};
	const char *kind = argc > 2 ? argv[2] : "plain",
		   *how = argc > 3 ? argv[3] : "";
	static struct thread threads[N_THREADS];
	pthread_t ids[N_THREADS];
	uint64_t n_checked = 0;

	wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
	if (!strcmp(how, "own") && !getenv("GLIBC_TUNABLES")) {
		setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
		execv("/proc/self/exe", argv);
	}

	unregisters = !strcmp(how, "failed");
	printf("1..1\n");
	local_bytes = AREA;
	seam_fdr_rseq_init(!strcmp(how, "none"));
	if (seam_fdr_thread_init(&source_local))
		return 2;
	patcher_patch(*kind == 'p' ? &patcher_plain : &patcher_checked);
	library = (const char *)seam_fdr_commit;
	if (seam_fdr_entry < library)
		library = seam_fdr_entry;
	if ((const char *)seam_fdr_record < library)
		library = (const char *)seam_fdr_record;
	id_leaf = patcher_id((void *)leaf);
	id_recurse = patcher_id((void *)recurse);
	id_tail = patcher_id((void *)tail);
	id_target = patcher_id((void *)target);
	id_jump = patcher_id((void *)jump);
	id_outer = patcher_id((void *)outer);
	id_throws = patcher_id((void *)signals_throws);
	id_catches = patcher_id((void *)signals_catches);
	id_handler = patcher_id((void *)handler);
	id_inner = patcher_id((void *)inner);
	if (*kind == 'f')
		filter();
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < N_THREADS; i++) {
		threads[i].notes = malloc(MAX_NOTES * sizeof(uint32_t));
		threads[i].at = malloc(MAX_HANDLERS * sizeof(uint32_t));
		threads[i].random = (uint64_t)i + 1;
		pthread_create(&ids[i], NULL, run, &threads[i]);
	}
	for (int i = 0; i < N_THREADS; i++) {
		pthread_join(ids[i], NULL);
		n_checked += threads[i].n_checked;
	}
	printf("ok 1 - %s%s%s: %llu interrupted trampolines, %llu records as "
	       "noted\n", kind, *how ? ", rseq " : "", how,
	       (unsigned long long)n_interrupted,
	       (unsigned long long)n_checked);
	return 0;
}
