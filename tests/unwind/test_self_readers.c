/* SPDX-License-Identifier: MIT */
/*
 * test_self_readers.c - what a handler uses stays until it has left
 *
 * An adapter's function runs in the middle of a walk, and there does what may
 * happen to a thread: another signal, longjmp, a fork, its end.
 */
#include "unwind/in_process/self_readers.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "unit.h"

#include "self_stacks.h"

static const char *library_path;	/* of self_library.so */

/* Called once in the next walk. */
static void (*during_walk)(void);
static volatile int n_walks;
static volatile enum seam_unwind_end last_end;

static bool interrupt_walk(void *context, uint64_t pc, bool is_in_image)
{
	void (*act)(void) = during_walk;

	(void)context;
	(void)pc;
	(void)is_in_image;
	during_walk = NULL;
	if (act)
		act();
	return false;
}

static const struct seam_self_adapter adapter = { .has_code = interrupt_walk };

static void on_signal(int signal, siginfo_t *info, void *context)
{
	struct seam_unwind_frame frames[64];
	struct seam_unwind_stack stack = { .frames = frames, .max = 64 };

	(void)signal;
	(void)info;
	seam_self_walk(context, &stack);
	last_end = (enum seam_unwind_end)stack.end;
	n_walks++;
}

static void walk_and(void (*act)(void))
{
	during_walk = act;
	send_signal(SIGUSR1);
}

static void use_handler(int flags)
{
	struct sigaction action = {
		.sa_flags = SA_SIGINFO | SA_NODEFER | flags };

	action.sa_sigaction = on_signal;
	sigaction(SIGUSR1, &action, NULL);
}

/* Whether no handler has what is retired now. */
static bool is_quiet(void)
{
	return seam_self_unused(seam_self_retire());
}

static bool was_quiet;

static void look(void)
{
	was_quiet = is_quiet();
}

/* --- one walk in another --- */

UNIT_TEST(a_walk_holds_what_it_uses)
{
	was_quiet = true;
	walk_and(look);
	assert_int_equal(last_end, SEAM_UNWIND_ROOT);
	assert_false(was_quiet);
	assert_true(is_quiet());
}

static void walk_again(void)
{
	send_signal(SIGUSR1);
	look();
}

UNIT_TEST(a_walk_in_a_walk_leaves_the_outer_its_hold)
{
	n_walks = 0;
	was_quiet = true;
	walk_and(walk_again);
	assert_int_equal(n_walks, 2);
	assert_false(was_quiet);
	assert_true(is_quiet());
}

static sigjmp_buf back;

static void jump_back(void)
{
	siglongjmp(back, 1);
}

static void leave_walk(void)
{
	if (!sigsetjmp(back, 1))
		walk_and(jump_back);
}

/* The walk below a frame that was left; on either stack of the thread. */
UNIT_TEST(a_walk_that_was_left_ends_with_the_next)
{
	const size_t size = 64 << 10;
	stack_t other = { .ss_sp = malloc(size), .ss_size = size };
	const stack_t none = { .ss_flags = SS_DISABLE };

	leave_walk();
	assert_false(is_quiet());
	walk_and(NULL);
	assert_true(is_quiet());

	sigaltstack(&other, NULL);
	use_handler(SA_ONSTACK);
	leave_walk();
	assert_false(is_quiet());
	walk_and(NULL);
	assert_true(is_quiet());
	use_handler(0);
	sigaltstack(&none, NULL);
	free(other.ss_sp);
}

/* --- threads and processes --- */

static void end_thread(void)
{
	syscall(SYS_exit, 0);
}

static void *walk_and_end(void *tid)
{
	*(long *)tid = syscall(SYS_gettid);
	walk_and(end_thread);
	return NULL;
}

UNIT_TEST(a_thread_that_died_in_a_walk_holds_nothing)
{
	pthread_t thread;
	long tid;

	assert_int_equal(pthread_create(&thread, NULL, walk_and_end, &tid), 0);
	pthread_join(thread, NULL);
	/* the kernel tells that it has ended before its id is free */
	while (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
		sched_yield();
	assert_true(is_quiet());
}

static _Atomic bool is_in_walk, may_leave;

static void stay_in_walk(void)
{
	atomic_store(&is_in_walk, true);
	while (!atomic_load(&may_leave))
		sched_yield();
}

static void *walk_and_stay(void *unused)
{
	(void)unused;
	walk_and(stay_in_walk);
	return NULL;
}

/* A new set of images in the child, whose parent's threads do not exist. */
static int refresh_in_child(void)
{
	if (!is_quiet())
		return 1;
	walk_and(NULL);
	if (last_end != SEAM_UNWIND_ROOT || !is_quiet())
		return 2;
	if (!dlopen(library_path, RTLD_NOW) || seam_self_refresh() != 1)
		return 3;
	walk_and(NULL);
	if (last_end != SEAM_UNWIND_ROOT)
		return 4;
	/* another thread has what it needs as well */
	last_end = SEAM_UNWIND_CALLER;
	walk_and(look);
	return last_end == SEAM_UNWIND_ROOT && !was_quiet ? 0 : 5;
}

UNIT_TEST(a_child_is_free_of_its_parents_threads)
{
	pthread_t thread;
	int status;
	pid_t child;

	assert_int_equal(pthread_create(&thread, NULL, walk_and_stay, NULL), 0);
	while (!atomic_load(&is_in_walk))
		sched_yield();
	assert_false(is_quiet());
	/* the owner may be in a refresh when another thread forks */
	atomic_store(&atomic_load(&seam_self_process)->is_owned, 1);
	assert_int_equal(seam_self_refresh(), -EBUSY);
	child = fork();
	if (child == 0)
		_exit(refresh_in_child());
	atomic_store(&atomic_load(&seam_self_process)->is_owned, 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_false(is_quiet());
	atomic_store(&may_leave, true);
	pthread_join(thread, NULL);
	assert_true(is_quiet());
}

static int hold_lock(struct dl_phdr_info *info, size_t size, void *context)
{
	const struct timespec hold = { 0, 50 * 1000 * 1000 };

	(void)info;
	(void)size;
	(void)context;
	atomic_store(&is_in_walk, true);
	nanosleep(&hold, NULL);
	return 1;
}

static void *be_in_loader(void *unused)
{
	(void)unused;
	seam_self_loader_list(hold_lock, NULL);
	return NULL;
}

static int fork_there(struct dl_phdr_info *info, size_t size, void *child)
{
	(void)info;
	(void)size;
	*(pid_t *)child = fork();
	if (*(pid_t *)child == 0)
		_exit(0);
	return 1;
}

/* The child would wait for it in its first dlopen(), for ever. */
UNIT_TEST(a_fork_does_not_copy_a_lock_of_the_loader)
{
	pthread_t thread;
	int status;
	pid_t child;

	atomic_store(&is_in_walk, false);
	assert_int_equal(pthread_create(&thread, NULL, be_in_loader, NULL), 0);
	while (!atomic_load(&is_in_walk))
		sched_yield();
	child = fork();
	if (child == 0) {
		alarm(5);
		_exit(!dlopen(library_path, RTLD_NOW) ||
		      seam_self_refresh() != 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	pthread_join(thread, NULL);
	/* a fork in the owner's own thread waits for nothing */
	seam_self_loader_list(fork_there, &child);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

UNIT_TEST(more_threads_than_slots_have_their_program_counter)
{
	struct seam_self_process *process = atomic_load(&seam_self_process);
	struct seam_self_slot *own = seam_self_thread.slot;
	enum { NO_THREAD = 0x3fffff };	/* above the largest pid */
	pthread_t thread;

	/* slots of process 1, which exists, so that none may be freed */
	for (size_t i = 0; i < SEAM_SELF_SLOTS; i++)
		if (&process->slots[i] != own)
			atomic_store(&process->slots[i].thread, 1);
	atomic_store(&is_in_walk, false);
	atomic_store(&may_leave, true);
	assert_int_equal(pthread_create(&thread, NULL, walk_and_stay, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(last_end, SEAM_UNWIND_NO_MAPPING);
	/* without a slot no adapter is used: it might be gone */
	assert_false(atomic_load(&is_in_walk));
	during_walk = NULL;

	/* those of threads that ended are taken */
	for (size_t i = 0; i < SEAM_SELF_SLOTS; i++)
		if (&process->slots[i] != own) {
			atomic_store(&process->slots[i].thread, NO_THREAD);
			atomic_store(&process->slots[i].epoch, 1);
		}
	assert_int_equal(pthread_create(&thread, NULL, walk_and_stay, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(last_end, SEAM_UNWIND_ROOT);
	assert_true(atomic_load(&is_in_walk));
	assert_true(is_quiet());
}

static void *walk_once(void *unused)
{
	walk_and(NULL);
	return unused;
}

/* More than there are slots, where no library is ever loaded. */
UNIT_TEST(threads_that_come_and_go_have_slots)
{
	struct seam_self_process *process = atomic_load(&seam_self_process);
	size_t n_used = 0;

	for (int i = 0; i < 3000; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, walk_once,
						NULL), 0);
		pthread_join(thread, NULL);
		assert_int_equal(last_end, SEAM_UNWIND_ROOT);
		if (i % 100 == 0)
			assert_true(seam_self_refresh() >= 0);
	}
	for (size_t i = 0; i < SEAM_SELF_SLOTS; i++)
		n_used += atomic_load(&process->slots[i].thread) != 0;
	assert_in_range(n_used, 1, SEAM_SELF_SLOTS / 2);
}

/* So that the owner cannot free it for a dead thread of the same id. */
UNIT_TEST(a_slot_that_is_claimed_again_is_another_one_for_its_owner)
{
	struct seam_self_thread *self = &seam_self_thread;
	uint64_t first;

	walk_and(NULL);
	first = self->slot_thread;
	self->slot = NULL;
	walk_and(NULL);
	assert_int_equal(last_end, SEAM_UNWIND_ROOT);
	assert_int_equal((uint32_t)self->slot_thread, (uint32_t)first);
	assert_true(self->slot_thread != first);
}

/* --- what is freed, and what is not --- */

static bool could_remove, could_free;

static void remove_and_free(void)
{
	could_remove = seam_self_remove_adapter(&adapter) == 0;
	could_free = seam_self_fini() == 0;
}

UNIT_TEST(nothing_in_use_is_removed)
{
	static struct seam_self_adapter more[SEAM_SELF_MAX_ADAPTERS];
	int i = 0;

	could_remove = could_free = true;
	walk_and(remove_and_free);
	assert_false(could_remove);
	assert_false(could_free);
	/* the walk went on with the tables it had */
	assert_int_equal(last_end, SEAM_UNWIND_ROOT);
	walk_and(NULL);
	assert_int_equal(last_end, SEAM_UNWIND_NO_MAPPING);
	assert_int_equal(seam_self_remove_adapter(&adapter), 0);
	assert_int_equal(seam_self_fini(), 0);
	assert_int_equal(seam_self_bytes(), 0);

	assert_int_equal(seam_self_init(), 0);
	walk_and(NULL);
	assert_int_equal(last_end, SEAM_UNWIND_ROOT);
	for (; i < SEAM_SELF_MAX_ADAPTERS; i++) {
		more[i] = adapter;
		assert_int_equal(seam_self_add_adapter(&more[i]), 0);
	}
	assert_int_equal(seam_self_add_adapter(&adapter), -ENOSPC);
	while (i-- > 0)
		assert_int_equal(seam_self_remove_adapter(&more[i]), 0);
}

/*
 * A thread that stops in a walk: what it may have is bounded, then there is
 * no refresh until it goes on.
 */
UNIT_TEST(a_stopped_walk_bounds_what_is_held)
{
	pthread_t thread;
	int r = 0, n = 0;

	assert_int_equal(seam_self_add_adapter(&adapter), 0);
	atomic_store(&is_in_walk, false);
	atomic_store(&may_leave, false);
	assert_int_equal(pthread_create(&thread, NULL, walk_and_stay, NULL), 0);
	while (!atomic_load(&is_in_walk))
		sched_yield();
	for (; r >= 0 && n < 2 * SEAM_SELF_MAX_RETIRED; n++) {
		void *library = dlopen(library_path, RTLD_NOW);

		r = seam_self_refresh();
		if (r > 0)
			walk_and(NULL);
		dlclose(library);
	}
	assert_int_equal(r, -EBUSY);
	assert_int_equal(last_end, SEAM_UNWIND_ROOT);
	atomic_store(&may_leave, true);
	pthread_join(thread, NULL);
	assert_true(seam_self_refresh() >= 0);
	assert_true(is_quiet());
	assert_int_equal(seam_self_remove_adapter(&adapter), 0);
}

int main(int argc, char **argv)
{
	int r;

	if (argc < 2 || seam_self_init() < 0 ||
	    seam_self_thread_begin() < 0 || seam_self_add_adapter(&adapter))
		return 2;
	library_path = argv[1];
	use_handler(0);
	r = unit_run(NULL, NULL, NULL, NULL);
	return r ? r : -seam_self_fini();
}
