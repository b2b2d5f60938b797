/* SPDX-License-Identifier: MIT */
/*
 * random_main.c - run a random program, and compare its log with its trace
 *
 * usage: PROGRAM SEED MODE N [none]
 *
 *	plain 0, checked 0	all calls
 *	depth N			those with fewer than N around them
 *	args N			with their first N arguments
 *	min N			those that do not end, and around them, with
 *				their first N arguments
 *
 * With "none" nothing restarts, because glibc has an rseq area already.
 *
 * Prints what is wrong, or how many records are right: each with its CPU.
 */
#include "area_walk.h"
#include "patcher.h"
#include "random_log.h"
#include "source_local.h"

#include "ring/layout.h"
#include "traced/fdr/check/checked.h"
#include "traced/fdr/record/fdr_thread.h"
#include "traced/fdr/record/rseq.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

enum {
	N_THREADS = 4,
	N_CALLS = 20000,	/* of each */
	STACK_BYTES = 256 << 10,
	MAX_AROUND = 2 * 150,	/* records of the calls that are open */
};

enum mode { PLAIN, CHECKED, DEPTH, ARGS, MIN };

static const char *const modes[] = {
	"plain", "checked", "depth", "args", "min",
};

static cpu_set_t allowed;	/* CPUs of the process */
static struct random_thread threads[N_THREADS];
static __thread struct random_thread *self;
static uint32_t *ids;		/* of random_functions */
static enum mode mode;
static uint32_t limit;		/* N */
static uint32_t n_arguments;

/* ---- while it runs ---- */

uint64_t random_next(struct random_thread *t)
{
	/* xorshift64 */
	t->seed ^= t->seed << 13;
	t->seed ^= t->seed >> 7;
	t->seed ^= t->seed << 17;
	return t->seed >> 11;
}

void random_note(struct random_thread *t, unsigned int function,
		 enum random_kind kind, uint64_t a, uint64_t b)
{
	if (kind != RANDOM_ENTRY)
		t->level--;
	if (t->n == t->capacity)
		abort();
	t->log[t->n++] = (struct random_entry) {
		.function = (uint16_t)function, .kind = (uint8_t)kind,
		.level = (uint16_t)t->level, .cpu = (uint16_t)t->cpu,
		.arguments = { (uint64_t)(uintptr_t)t, a, b },
	};
	if (kind == RANDOM_ENTRY)
		t->level++;
}

static void on_signal(int signal)
{
	struct random_thread *t = self;
	uint32_t n_tries = t->n_tries, first_jump = t->first_jump;

	(void)signal;
	/* nothing is thrown or jumps out of a handler */
	t->n_tries = 0;
	t->first_jump = t->n_jumps;
	random_handle(t);
	t->n_tries = n_tries;
	t->first_jump = first_jump;
}

void random_signal(struct random_thread *t)
{
	(void)t;
	raise(SIGUSR1);
}

/* To one CPU, so that each record's is known. */
void random_migrate(struct random_thread *t)
{
	cpu_set_t set;

	do
		t->cpu = (uint32_t)(random_next(t) % CPU_SETSIZE);
	while (!CPU_ISSET(t->cpu, &allowed));
	CPU_ZERO(&set);
	CPU_SET(t->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		abort();
}

static void *run(void *argument)
{
	static char stacks[N_THREADS][STACK_BYTES];
	struct random_thread *t = argument;
	stack_t stack = {
		.ss_sp = stacks[t - threads], .ss_size = STACK_BYTES,
	};

	self = t;
	t->tid = (uint32_t)gettid();
	if ((t - threads) % 2)
		sigaltstack(&stack, NULL);
	t->fuel = N_CALLS;
	random_migrate(t);
	while (t->fuel > 0)
		random_run(t);
	return NULL;
}

/* ---- afterwards ---- */

static void fail(const struct random_thread *t, size_t at, const char *why)
{
	printf("thread %td, entry %zu of %zu: %s\n", t - threads, at, t->n,
	       why);
	exit(1);
}

enum { MAX_INSIDE = 16 };

/*
 * Where the call of @function begins that ends after log[@end - 1], with
 * nothing but calls in it that went on in tail calls, and all calls that went
 * on to it.  @end: there is no such call.
 */
static size_t begin_of(const struct random_entry *log, size_t end,
		       unsigned int function)
{
	unsigned int inside[MAX_INSIDE];
	size_t n_inside = 0, begin = end;
	bool found = false;

	for (size_t i = end; i > 0 && log[i - 1].kind != RANDOM_EXIT; i--) {
		const struct random_entry *e = &log[i - 1];

		if (e->kind == RANDOM_TAIL) {
			if (n_inside == MAX_INSIDE)
				break;
			inside[n_inside++] = e->function;
		} else if (n_inside > 0) {
			if (inside[--n_inside] != e->function)
				break;
		} else if (!found && e->function == function) {
			found = true;
		} else {
			break;
		}
		if (found && n_inside == 0)
			begin = i - 1;
	}
	return begin;
}

/* How much is left of short calls, where no metadata comes in between. */
static size_t take_back(struct random_entry *log, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		size_t begin = begin_of(log, kept, log[i].function);

		if (log[i].kind == RANDOM_EXIT && begin < kept)
			kept = begin;
		else
			log[kept++] = log[i];
	}
	return kept;
}

/* What is left without calls that ended, from the inside out. */
static size_t reduce(struct random_entry *log, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (kept > 0 && log[i].kind != RANDOM_ENTRY &&
		    log[kept - 1].kind == RANDOM_ENTRY &&
		    log[kept - 1].function == log[i].function)
			kept--;
		else
			log[kept++] = log[i];
	return kept;
}

static size_t limit_depth(struct random_entry *log, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (log[i].level < limit)
			log[kept++] = log[i];
	return kept;
}

static unsigned int index_of(uint32_t id)
{
	for (size_t i = 0; i < random_n_functions; i++)
		if (ids[i] == id)
			return (unsigned int)i;
	return UINT16_MAX;
}

static const struct local_area *area_of(uint32_t tid)
{
	const struct local_area *area = local_areas;

	while (area && area->tid != tid)
		area = area->next;
	return area;
}

/* One record of the trace, with its arguments. */
static size_t add(const struct random_thread *t, struct random_entry *trace,
		  size_t n, const struct walk_record *r, unsigned int *n_left)
{
	if (r->kind == SEAM_XRAY_ARGUMENT) {
		if (n == 0 || *n_left == 0)
			fail(t, n, "an argument too much");
		trace[n - 1].arguments[n_arguments - *n_left] = r->value;
		--*n_left;
		return n;
	}
	if (*n_left)
		fail(t, n, "an argument is missing");
	if (n_arguments && r->kind == SEAM_XRAY_ENTRY_ARGS)
		*n_left = n_arguments;
	else if (r->kind > SEAM_XRAY_TAIL_EXIT ||
		 (n_arguments && r->kind == SEAM_XRAY_ENTRY))
		fail(t, n, "another kind");
	trace[n] = (struct random_entry) {
		.function = (uint16_t)index_of(r->function),
		.kind = r->kind == SEAM_XRAY_ENTRY_ARGS ? RANDOM_ENTRY :
							  (uint8_t)r->kind,
		.cpu = (uint16_t)r->cpu,
	};
	return n + 1;
}

/* The thread's trace; @w has the counts of its metadata. */
static size_t read_trace(const struct random_thread *t,
			 struct random_entry *trace, struct walk *w)
{
	const struct local_area *area = area_of(t->tid);
	unsigned int n_left = 0;
	struct walk_record r;
	uint64_t tsc = 0;
	size_t n = 0;

	if (!area || area->n_lost)
		fail(t, 0, "no area, or lost records");
	*w = (struct walk) {
		.area = local_bytes_of(area), .mask = area->size - 1,
		.end = area->cursor & SEAM_RING_AUX_POSITION,
	};
	while (walk_next(w, &r)) {
		if (r.tsc < tsc)
			fail(t, n, "a time that steps back");
		tsc = r.tsc;
		if (n == t->capacity)
			fail(t, n, "too many records");
		n = add(t, trace, n, &r, &n_left);
	}
	if (w->problem)
		fail(t, n, w->problem);
	return n;
}

static bool is_same(const struct random_entry *a, const struct random_entry *b)
{
	uint32_t n = a->kind == RANDOM_ENTRY ? n_arguments : 0;

	for (uint32_t i = 0; i < n; i++)
		if (a->arguments[i] != b->arguments[i])
			return false;
	return a->function == b->function && a->kind == b->kind &&
	       a->cpu == b->cpu;
}

/* The record at @at, and some before it. */
static void show(const char *what, const struct random_entry *e, size_t at)
{
	printf("%s:", what);
	for (size_t i = at < 10 ? 0 : at - 10; i <= at + 6; i++)
		printf(" %c%u", "EXT"[e[i].kind], e[i].function);
	printf("\n");
}

static size_t check(const struct random_thread *t)
{
	struct random_entry *trace = malloc(t->capacity * sizeof(*trace));
	size_t n, n_log = t->n, n_trace;
	struct walk w;

	n = n_trace = read_trace(t, trace, &w);
	if (mode == DEPTH)
		n_log = limit_depth(t->log, t->n);
	if (mode == MIN) {
		n_log = take_back(t->log, t->n);
		/* what metadata divides stays, and what is around it */
		if (n_trace < n_log ||
		    n_trace - n_log > MAX_AROUND *
				      (w.n_chunks + w.n_cpu + w.n_wrap)) {
			show("trace", trace, n_trace > 7 ? n_trace - 7 : 0);
			printf("%zu records, %zu of them due; ", n_trace,
			       n_log);
			fail(t, n_log, "not what may stay");
		}
		n_log = reduce(t->log, n_log);
		n = reduce(trace, n);
	}
	for (size_t i = 0; i < n && i < n_log; i++)
		if (!is_same(&trace[i], &t->log[i])) {
			show("log", t->log, i);
			show("trace", trace, i);
			fail(t, i, "another record");
		}
	if (n != n_log)
		fail(t, n < n_log ? n : n_log, n < n_log ? "lost" : "added");
	free(trace);
	return n_trace;
}

static void begin(bool use_own_rseq)
{
	struct seam_fdr_options options = {
		.depth = mode == DEPTH ? limit : 0,
		.n_arguments = n_arguments,
		.min_ns = mode == MIN ? INT64_MAX : 0,
	};

	local_bytes = 256 * SEAM_XRAY_CHUNK_BYTES;
	seam_fdr_rseq_init(use_own_rseq);
	if (seam_fdr_thread_init(&source_local) ||
	    seam_fdr_check_init(&options))
		exit(2);
	patcher_patch(mode == PLAIN ? &patcher_plain : &patcher_checked);
	ids = calloc(random_n_functions, sizeof(*ids));
	for (size_t i = 0; i < random_n_functions; i++)
		ids[i] = patcher_id(random_functions[i]);
}

int main(int argc, char **argv)
{
	struct sigaction action = {
		.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER,
	};
	pthread_t running[N_THREADS];
	size_t n = 0;

	if (argc < 4)
		return 2;
	while (mode <= MIN && strcmp(argv[2], modes[mode]))
		mode++;
	if (mode > MIN)
		return 2;
	limit = (uint32_t)atoi(argv[3]);
	n_arguments = mode == ARGS || mode == MIN ? limit : 0;
	begin(argc > 4);
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return 2;
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < N_THREADS; i++) {
		threads[i].seed = strtoull(argv[1], NULL, 0) * 977 +
				  (uint64_t)i + 1;
		threads[i].capacity = 8 * N_CALLS;
		threads[i].log = calloc(threads[i].capacity,
					sizeof(*threads[i].log));
		if (pthread_create(&running[i], NULL, run, &threads[i]))
			return 2;
	}
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(running[i], NULL);
	for (int i = 0; i < N_THREADS; i++)
		n += check(&threads[i]);
	printf("%zu records\n", n);
	return 0;
}
