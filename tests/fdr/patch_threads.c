/* SPDX-License-Identifier: MIT */
/*
 * patch_threads.c - all sleds are patched and unpatched while threads run
 * through them: patch_threads ROUNDS [refused|later]
 *
 * The trampolines here count by thread and word.  A thread knows of each of its
 * calls whether it was in a window in which all sleds were in use, in none, or
 * in a change: what was counted is no less than the calls in windows, and no
 * more than these and those in changes.  While sleds are in use they are also
 * changed to a second set of trampolines, which counts the same.  A signal
 * stops threads anywhere, also in a sled, while others patch.  Prints TAP.
 *
 * refused: code is never writable.  Sleds of gcc, whose change is more than one
 * byte, are patched before there are threads and stay in use.
 * later: from the first thread on (PR_SET_MDWE, Linux 6.3; else never), so all
 * entries and tails stay in use, and calls are not counted.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/time.h>

#include "fdr/patch_calls.h"
#include "traced/fdr/sleds/images.h"
#include "wire/xray/xray_chunk.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

enum {
	N_THREADS = 4,
	N_WORDS = 1024,		/* ids below 64 */
	EVENT_WORD = 0,		/* counted as word 0, which no function has */
	CALLS_IN_PHASE = 50,	/* of all threads, at least */
	INTERRUPTION_US = 300,
};

/* ---- trampolines ---- */

__thread uint64_t test_counts[N_WORDS];

extern const char test_count_a[], test_count_b[], test_event[];
extern const char test_count_entry_a[], test_count_entry_b[];

#define COUNTER(name, word)						\
	".p2align 4\n"							\
	#name ":\n"							\
	"	endbr64\n"						\
	"	pushfq\n"						\
	"	incq %fs:test_counts@tpoff(,%" #word ",8)\n"		\
	"	popfq\n"						\
	"	ret\n"

__asm__(".text\n"
	COUNTER(test_count_a, r10)
	COUNTER(test_count_entry_a, r11)
	/* so far that more than one byte of a call differs */
	".skip 0x12345\n"
	COUNTER(test_count_b, r10)
	COUNTER(test_count_entry_b, r11)
	"test_event:\n"
	"	endbr64\n"
	"	pushfq\n"
	"	incq %fs:test_counts@tpoff\n"
	"	popfq\n"
	"	ret\n");

static bool is_second;

static const void *target_of(uint32_t id, enum seam_fdr_sled_kind kind)
{
	(void)id;
	switch (kind) {
	case SEAM_FDR_SLED_CALL:
		return is_second ? test_count_entry_b : test_count_entry_a;
	case SEAM_FDR_SLED_CUSTOM:
		return test_event;
	case SEAM_FDR_SLED_TYPED:
		return NULL;
	default:
		return is_second ? test_count_b : test_count_a;
	}
}

/* What events of unpatched sleds would call, and a linker asks for. */
void __xray_CustomEvent(void);
void __xray_CustomEvent(void)
{
	abort();
}

/* ---- threads ---- */

/* Modulo 4: off, changing, on, changing. */
static _Atomic uint32_t phase;
static _Atomic uint64_t n_calls;
static _Atomic bool is_ended;
static _Atomic uint64_t n_wrong;

static const struct function {
	int (*call)(int x);
	int factor, odd_factor, offset, flip;
	bool is_xray, has_tail, has_event;
} functions[] = {
	{ patch_leaf, 1, 1, 1, 0, true, false, false },
	{ patch_two_exits, 5, 3, 0, 0, true, false, false },
	{ patch_tail, 1, 1, 1, 0, true, true, false },
	{ patch_logged, 1, 1, 0, 1, true, false, false },
	{ patch_event, 1, 1, 0, 0, true, false, true },
	{ patch_entry, 1, 1, -1, 0, false, false, false },
	{ patch_long_entry, 1, 1, -2, 0, false, false, false },
};

enum { N_FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

struct thread {
	pthread_t thread;
	uint64_t in_window[N_FUNCTIONS], in_change[N_FUNCTIONS];
	uint64_t n_calls;		/* of each function */
	uint64_t counts[N_WORDS];
};

static void make_call(struct thread *t, unsigned int i, int x)
{
	const struct function *f = &functions[i];
	uint32_t before = atomic_load(&phase), after;
	int y = f->call(x);

	after = atomic_load(&phase);
	if (y != ((x * (x & 1 ? f->odd_factor : f->factor) + f->offset) ^
		  f->flip))
		atomic_fetch_add(&n_wrong, 1);
	if (before != after || (before & 1))
		t->in_change[i]++;
	else if ((before & 3) == 2)
		t->in_window[i]++;
}

/* The thread stays where it is, which may be in a sled, while others run. */
static void stay(int signal)
{
	(void)signal;
	for (int i = 0; i < 4; i++)
		sched_yield();
}

static bool begin_interruptions(void)
{
	const struct sigaction action = {
		.sa_handler = stay, .sa_flags = SA_RESTART,
	};
	const struct itimerval period = {
		{ 0, INTERRUPTION_US }, { 0, INTERRUPTION_US },
	};
	sigset_t alarm;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	/* not in the thread that patches */
	return sigaction(SIGALRM, &action, NULL) == 0 &&
	       pthread_sigmask(SIG_BLOCK, &alarm, NULL) == 0 &&
	       setitimer(ITIMER_REAL, &period, NULL) == 0;
}

static void *run(void *argument)
{
	struct thread *t = argument;

	for (int x = 0; !atomic_load(&is_ended); x = (x + 1) & 0xffff) {
		for (unsigned int i = 0; i < N_FUNCTIONS; i++)
			make_call(t, i, x);
		t->n_calls++;
		atomic_fetch_add(&n_calls, 1);
	}
	memcpy(t->counts, test_counts, sizeof(t->counts));
	return NULL;
}

/* ---- patching ---- */

static struct seam_fdr_images images;
/* Sleds in use that stay so: those of gcc, or with all entries and tails. */
enum { NONE, REFUSED = 2, LATER = 8 };
static size_t n_stay;
static size_t n_left;		/* in the last change */

static int patch(struct seam_fdr_images *all, bool has_changed, void *context)
{
	const bool *is_wanted = context;
	int r = 0;

	(void)has_changed;
	n_left = 0;
	for (size_t i = 0; i < all->list.n && r == 0; i++) {
		struct seam_fdr_image *image = all->list.items[i];

		for (size_t j = 0; j < image->n_lists && r == 0; j++) {
			struct seam_fdr_functions *f =
				&image->lists[j].functions;
			struct seam_fdr_patched patched = { 0 };

			memset(f->is_wanted, *is_wanted, f->sleds.functions.n);
			r = seam_fdr_patch(f, &image->code, target_of,
					   &patched);
			n_left += patched.n_divided;
			if (patched.n_refused || patched.n_far)
				r = -1;
		}
	}
	return r;
}

static bool set(bool is_wanted)
{
	return seam_fdr_images_with(&images, patch, &is_wanted) == 0 &&
	       n_left == (is_wanted ? 0 : n_stay);
}

/* Let the threads make some calls. */
static void wait_for_calls(void)
{
	uint64_t before = atomic_load(&n_calls);

	while (atomic_load(&n_calls) - before < CALLS_IN_PHASE)
		sched_yield();
}

static bool make_round(void)
{
	bool is_good;

	atomic_fetch_add(&phase, 1);
	is_good = set(true);
	atomic_fetch_add(&phase, 1);
	wait_for_calls();
	/* the other trampolines, while it is on */
	is_second = !is_second;
	is_good = set(true) && is_good;
	wait_for_calls();
	atomic_fetch_add(&phase, 1);
	is_good = set(false) && is_good;
	atomic_fetch_add(&phase, 1);
	wait_for_calls();
	return is_good;
}

/* ---- the account ---- */

static uint32_t id_of(const struct function *f)
{
	for (size_t i = 0; i < images.list.n; i++)
		for (size_t j = 0; j < images.list.items[i]->n_lists; j++) {
			const struct seam_fdr_functions *list =
				&images.list.items[i]->lists[j].functions;

			for (size_t k = 0; k < list->sleds.functions.n; k++)
				if (list->sleds.functions.items[k] ==
				    (uint64_t)f->call)
					return list->first_id + (uint32_t)k;
		}
	return 0;
}

/* Calls of patch_tail() are calls of patch_leaf() as well. */
static bool check_word(const struct thread *t, unsigned int i, uint32_t word)
{
	uint64_t least = t->in_window[i], most = least + t->in_change[i];

	if (i == 0) {
		least += t->in_window[2];
		most += t->in_window[2] + t->in_change[2];
	}
	if (n_stay == LATER)
		return true;
	if (n_stay && !functions[i].is_xray)
		least = most = t->n_calls;
	if (t->counts[word] >= least && t->counts[word] <= most)
		return true;
	printf("# function %u, word %u: counted %lu, of %lu to %lu\n", i, word,
	       t->counts[word], least, most);
	return false;
}

static bool check_thread(const struct thread *t)
{
	bool is_good = true;

	for (unsigned int i = 0; i < N_FUNCTIONS; i++) {
		const struct function *f = &functions[i];
		uint32_t id = id_of(f);

		if (!id || id >= N_WORDS / 16) {
			printf("# function %u has no id\n", i);
			return false;
		}
		is_good &= check_word(t, i, seam_xray_word(
			id, f->call == patch_logged ? SEAM_XRAY_ENTRY_ARGS :
						      SEAM_XRAY_ENTRY));
		if (f->is_xray)
			is_good &= check_word(t, i, seam_xray_word(
				id, f->has_tail ? SEAM_XRAY_TAIL_EXIT :
						  SEAM_XRAY_EXIT));
		if (f->has_event)
			is_good &= check_word(t, i, EVENT_WORD);
	}
	return is_good;
}

static void tell(int number, bool is_good, const char *what)
{
	printf("%sok %d - %s\n", is_good ? "" : "not ", number, what);
}

int main(int argc, char **argv)
{
	static struct thread threads[N_THREADS];
	int n_rounds = argc > 1 ? atoi(argv[1]) : 200, n_bad = 0;
	uint64_t n_window = 0;
	bool is_good = true;

	if (argc > 2)
		n_stay = strcmp(argv[2], "later") ? REFUSED : LATER;
	atomic_store(&phase, 3);
	/* there are no threads yet that could see half of a change */
	n_bad += n_stay && !set(true);
	if (n_stay == LATER && prctl(PR_SET_MDWE, 1, 0, 0, 0))
		n_stay = NONE;
	for (int i = 0; i < N_THREADS; i++)
		if (pthread_create(&threads[i].thread, NULL, run, &threads[i]))
			return 2;
	if (!begin_interruptions())
		return 2;
	n_bad += !set(false);
	atomic_fetch_add(&phase, 1);
	for (int i = 0; i < n_rounds; i++)
		n_bad += !make_round();
	atomic_store(&is_ended, true);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i].thread, NULL);
	for (int i = 0; i < N_THREADS; i++) {
		is_good &= check_thread(&threads[i]);
		for (int j = 0; j < N_FUNCTIONS; j++)
			n_window += threads[i].in_window[j];
	}
	printf("1..3\n# %d rounds, %lu calls in windows\n", n_rounds, n_window);
	tell(1, n_bad == 0, "all sleds are patched and unpatched each time");
	tell(2, is_good && n_window, "each call in a window is counted, once");
	tell(3, n_wrong == 0, "functions return what they should");
	return n_bad || !is_good || n_wrong;
}
