/* SPDX-License-Identifier: MIT */
/*
 * api.c - the public functions of the writer, one call at a time
 *
 * All signals but those of faults are blocked in a call, and cancellation is
 * disabled: no handler, longjmp() or pthread_exit() ends a call in its middle,
 * and a handler that calls finds the dump free.  So the lock is a futex
 * without an owner.  Only the handler of a fault (of the caller's pointers)
 * can leave a call and never release it.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "traced/jit/writer.h"

enum { WAIT_MS = 10, MAX_WAITS = 100 };	/* for the lock: a second */

/* What a call changes in its thread, and restores. */
struct call {
	uint64_t mask;
	int cancel_state;
	int saved_errno;
	int lost;		/* 0, or why inherited records were lost */
};

static uint64_t bit(int signal)
{
	return UINT64_C(1) << (signal - 1);
}

/* By the system call: glibc's function leaves its own signals unblocked. */
static void block_signals(struct call *call)
{
	uint64_t all = ~(bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) |
			 bit(SIGILL) | bit(SIGTRAP) | bit(SIGSYS));

	*call = (struct call) { .saved_errno = errno };
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &call->cancel_state);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &call->mask,
		sizeof(all));
}

static void restore_signals(const struct call *call)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &call->mask, NULL,
		sizeof(call->mask));
	pthread_setcancelstate(call->cancel_state, NULL);
	errno = call->saved_errno;
}

/* -EBUSY: it was not released for a second, by this call or one before. */
static int acquire(struct seam_writer_own *own)
{
	struct timespec wait = { .tv_nsec = WAIT_MS * SEAM_NS_PER_MS };
	uint32_t is_free = 0;
	int n = 0;

	/* acquire, here and below: pairs with the release in release() */
	if (atomic_compare_exchange_strong_explicit(
			&own->lock, &is_free, 1, memory_order_acquire,
			memory_order_relaxed))
		return 0;
	/* relaxed: a hint; a release clears it */
	if (atomic_load_explicit(&own->is_stuck, memory_order_relaxed))
		return -EBUSY;
	while (atomic_exchange_explicit(&own->lock, 2, memory_order_acquire))
		/* In short waits: a stop of the process is one of them. */
		if (syscall(SYS_futex, &own->lock, FUTEX_WAIT_PRIVATE, 2,
			    &wait, NULL, 0) && errno == ETIMEDOUT &&
		    ++n == MAX_WAITS) {
			atomic_store_explicit(&own->is_stuck, 1,
					      memory_order_relaxed);
			return -EBUSY;
		}
	return 0;
}

static void release(struct seam_writer_own *own)
{
	/* relaxed: a hint */
	atomic_store_explicit(&own->is_stuck, 0, memory_order_relaxed);
	/* release: pairs with the acquire in acquire() */
	if (atomic_exchange_explicit(&own->lock, 0,
				     memory_order_release) == 2)
		syscall(SYS_futex, &own->lock, FUTEX_WAKE_PRIVATE, 1, NULL,
			NULL, 0);
}

/* The caller's id, without a system call each time: a fork makes it stale. */
static int32_t thread_id(int32_t pid)
{
	static __thread struct { int32_t pid, tid; } self
		__attribute__((tls_model("initial-exec")));

	if (self.pid != pid) {
		self.tid = (int32_t)syscall(SYS_gettid);
		self.pid = pid;
	}
	return self.tid;
}

/*
 * Begin a call: @dump is locked, and its output this process's own.  Returns
 * 0; or -errno, and the call has ended.
 */
static int enter(struct seam_jitdump *dump, struct call *call)
{
	struct seam_writer_own *own = dump->own;
	int r;

	block_signals(call);
	r = acquire(own);
	if (r) {
		restore_signals(call);
		return r;
	}
	if (own->pid) {
		own->tid = thread_id(own->pid);
		return 0;
	}
	own->pid = getpid();
	own->tid = thread_id(own->pid);
	call->lost = seam_writer_inherit(dump);
	return 0;
}

/* End it, with @r; write first, unless records may be buffered. */
static int leave(struct seam_jitdump *dump, const struct call *call, int r)
{
	if (!dump->is_buffered || dump->is_streamed) {
		int flushed = seam_writer_flush(dump);

		r = r ? r : flushed;
	}
	release(dump->own);
	restore_signals(call);
	return call->lost ? call->lost : r;
}

/*
 * Whether a recorder takes the records.  A folder in the options means a
 * file, and a map has no times to stream.
 */
static bool is_streamed(struct seam_jitdump *dump,
			const struct seam_jitdump_options *options)
{
	const char *address = secure_getenv(SEAM_LINK_VARIABLE);

	return address && *address && !options->folder &&
	       options->format == SEAM_JITDUMP_FORMAT_DUMP &&
	       !seam_writer_open_stream(dump, address);
}

/* Free @dump.  The marker stays mapped: code that was loaded may still run. */
static void free_dump(struct seam_jitdump *dump)
{
	seam_writer_close_stream(dump);
	if (seam_writer_owns_fd(&dump->file))
		close(dump->file.fd);
	seam_writer_free_blocks(dump);
	seam_writer_unmap(dump->entries.items,
			  dump->entries.cap * sizeof(*dump->entries.items));
	seam_writer_unmap(dump->own, sizeof(*dump->own));
	seam_writer_unmap(dump, sizeof(*dump));
}

/* An empty dump without an output. */
static int make_dump(struct seam_jitdump **out,
		     const struct seam_jitdump_options *options)
{
	struct seam_jitdump *dump = seam_writer_map(sizeof(*dump));
	struct seam_writer_own *own = seam_writer_map(sizeof(*own));
	int r = dump && own ? 0 : -ENOMEM;

	/* Source: madvise(2), Linux 4.14; -EINVAL before */
	if (!r && madvise(own, sizeof(*own), MADV_WIPEONFORK))
		r = -errno;
	if (r) {
		seam_writer_unmap(dump, sizeof(*dump));
		seam_writer_unmap(own, sizeof(*own));
		return r;
	}
	own->pid = getpid();
	own->tid = thread_id(own->pid);
	dump->own = own;
	dump->file.fd = -1;
	dump->format = options->format;
	dump->is_buffered = options->is_buffered;
	*out = dump;
	return 0;
}

int seam_jitdump_open(struct seam_jitdump **out,
		      const struct seam_jitdump_options *options)
{
	static const struct seam_jitdump_options defaults;
	struct seam_jitdump *dump;
	struct call call;
	int r;

	*out = NULL;
	options = options ? options : &defaults;
	block_signals(&call);
	r = make_dump(&dump, options);
	if (r)
		goto out;
	r = is_streamed(dump, options) ? 0 :
	    seam_writer_choose_file(dump, options->folder);
	r = r ? r : seam_writer_add_header(dump);
	r = r ? r : seam_writer_flush(dump);
	if (!r) {
		*out = dump;
		goto out;
	}
	if (dump->file.fd >= 0)
		unlink(dump->file.path);
	seam_writer_close_file(&dump->file);
	free_dump(dump);
out:
	restore_signals(&call);
	return r;
}

/* Add one piece of code; its records may be lost, but it has an id. */
static int load_one(struct seam_jitdump *dump, struct seam_jitdump_code *code)
{
	uint64_t addr = code->addr ? code->addr : (uintptr_t)code->bytes;
	size_t size = seam_writer_code_bytes(dump, code);
	struct seam_writer_block *block = NULL;
	int error = -EFBIG;

	code->id = seam_writer_add_entry(&dump->entries, addr, code->size);
	if (!code->id)
		return seam_writer_lose(dump, 1, -ENOMEM);
	/* A line of a map is of at least a byte of code. */
	if (dump->format == SEAM_JITDUMP_FORMAT_MAP && !code->size)
		return 0;
	if (size)
		block = seam_writer_reserve(dump, size, &error);
	if (!block)
		return seam_writer_lose(dump, 1, error);
	size = seam_writer_put_code(dump, block->bytes, code, code->id, addr);
	return seam_writer_commit(dump, block, size, 1, code->id);
}

int seam_jitdump_load(struct seam_jitdump *dump,
		      struct seam_jitdump_code *codes, size_t n)
{
	struct call call;
	int r;

	if (!dump)
		return 0;
	r = enter(dump, &call);
	if (r) {
		for (size_t i = 0; i < n; i++)
			codes[i].id = 0;
		return seam_writer_lose(dump, n, r);
	}
	for (size_t i = 0; i < n; i++) {
		int one = load_one(dump, &codes[i]);

		r = r ? r : one;
	}
	return leave(dump, &call, r);
}

/*
 * Add the move of @entry, which is @id, to @new_addr.  A map has no moves: the
 * line again, with the new address.
 */
static int add_move(struct seam_jitdump *dump,
		    const struct seam_writer_entry *entry, uint64_t id,
		    uint64_t new_addr)
{
	bool is_map = dump->format == SEAM_JITDUMP_FORMAT_MAP;
	const struct seam_writer_block *old = entry->block;
	struct seam_writer_block *block;
	size_t size;
	int error;

	block = seam_writer_reserve(dump, SEAM_WRITER_SMALL +
				    (is_map ? old->size : 0), &error);
	if (!block)
		return seam_writer_lose(dump, 1, error);
	size = is_map ? seam_writer_put_again(dump, block->bytes, old->bytes,
					      old->size, new_addr) :
	       seam_writer_put_move(dump, block->bytes, entry, id, new_addr);
	return seam_writer_commit(dump, block, size, 1, 0);
}

static int move_code(struct seam_jitdump *dump, uint64_t id, uint64_t new_addr)
{
	struct seam_writer_entry *entry =
		seam_writer_find_entry(&dump->entries, id);
	int r = 0;

	if (!entry)
		return -ENOENT;
	/* Readers cannot use a move of code whose load they do not have. */
	if (entry->block)
		r = add_move(dump, entry, id, new_addr);
	else if (entry->code_size)
		r = seam_writer_lose(dump, 1, -ENODATA);
	entry->addr = new_addr;
	return r;
}

int seam_jitdump_move(struct seam_jitdump *dump, uint64_t id,
		      uint64_t new_addr)
{
	struct call call;
	int r;

	if (!dump)
		return 0;
	r = enter(dump, &call);
	return r ? seam_writer_lose(dump, 1, r) :
	       leave(dump, &call, move_code(dump, id, new_addr));
}

int seam_jitdump_unload(struct seam_jitdump *dump, uint64_t id)
{
	struct seam_writer_entry *entry;
	struct call call;
	int r;

	if (!dump)
		return 0;
	r = enter(dump, &call);
	if (r)
		return r;
	entry = seam_writer_find_entry(&dump->entries, id);
	if (entry)
		seam_writer_unload(dump, entry);
	return leave(dump, &call, entry ? 0 : -ENOENT);
}

int seam_jitdump_flush(struct seam_jitdump *dump)
{
	struct call call;
	int r;

	if (!dump)
		return 0;
	r = enter(dump, &call);
	if (r)
		return r;
	r = seam_writer_flush(dump);
	if (!r && dump->own->head)
		r = -ENOBUFS;
	release(dump->own);
	restore_signals(&call);
	return call.lost ? call.lost : r;
}

uint64_t seam_jitdump_lost(const struct seam_jitdump *dump)
{
	/* relaxed: a counter, nothing is ordered by it */
	return dump ? atomic_load_explicit(&dump->n_lost,
					   memory_order_relaxed) : 0;
}

const char *seam_jitdump_path(const struct seam_jitdump *dump)
{
	return dump ? dump->file.path : "";
}

/* Add CLOSE to a dump that is this process's own. */
static void finish(struct seam_jitdump *dump)
{
	struct seam_writer_block *block = NULL;
	int error;

	if (dump->format == SEAM_JITDUMP_FORMAT_DUMP)
		block = seam_writer_reserve(dump, SEAM_WRITER_SMALL, &error);
	if (block)
		seam_writer_commit(dump, block,
				   seam_writer_put_close(block->bytes), 0, 0);
	seam_writer_flush(dump);
	/* close(2) would not unlock it: the marker keeps the file open. */
	if (seam_writer_owns_fd(&dump->file))
		flock(dump->file.fd, LOCK_UN);
}

void seam_jitdump_close(struct seam_jitdump *dump)
{
	struct call call;

	if (!dump)
		return;
	block_signals(&call);
	/* Not locked: no other thread is in a call, or comes back to it. */
	if (dump->own->pid)
		finish(dump);
	free_dump(dump);
	restore_signals(&call);
}
