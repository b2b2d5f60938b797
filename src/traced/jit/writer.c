/* SPDX-License-Identifier: MIT */
/*
 * writer.c - from a call to records in a file, or in a ring of a recorder
 *
 * Records are laid out in a block, and blocks are queued in the order of their
 * commits.  A block that was written is freed, unless it has the records of
 * loaded code: a child that is forked later queues those again.
 *
 * A file is written with as few calls as can be.  Where a write fails, the
 * part of it that reached the file is truncated again, and the queue is lost.
 * There may be room again later, so the next call tries again.
 *
 * In a ring the records of a block are a group (wire/jit/jitdump.h).  Each
 * call sends as much of the queue as the ring has room for.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "traced/jit/writer.h"
#include "wire/jit/jitdump.h"

enum {
	CONNECT_MS = 1000,	/* for the recorder to answer */
	/* No smaller part of a group is sent, unless it is the last. */
	MIN_CHUNK = 512,
};

/* ---- the queue ---- */

/* Count @n pieces of code or moves as lost.  Returns @error. */
static int lose(struct seam_jitdump *dump, uint64_t n, int error)
{
	/* relaxed: counters, nothing is ordered by them */
	atomic_fetch_add_explicit(&dump->n_lost, n, memory_order_relaxed);
	atomic_fetch_add_explicit(&dump->own->n_offered, n,
				  memory_order_relaxed);
	return error;
}

/*
 * A block with room for @size bytes of records; NULL with *@error set.
 * Nothing changes until it is committed.
 */
static struct seam_writer_block *reserve(struct seam_jitdump *dump, size_t size,
					 int *error)
{
	struct seam_writer_block *block;

	*error = !dump->is_streamed ? 0 :
		 dump->is_over ? -EPIPE :
		 size > SEAM_JIT_MAX_GROUP ? -EMSGSIZE :
		 dump->own->n_queued > SEAM_WRITER_MAX_QUEUED ? -ENOBUFS : 0;
	if (*error)
		return NULL;
	block = seam_writer_alloc(&dump->memory, size);
	*error = block ? 0 : -ENOMEM;
	return block;
}

static int write_queue(struct seam_jitdump *dump);

/*
 * The first @size bytes of @block are the records of code @id, or, if that is
 * 0, another record.  @n: how many pieces of code or moves that is, 0 or 1.
 * Returns 0; or why records, perhaps earlier ones, were lost.
 */
static int commit(struct seam_jitdump *dump, struct seam_writer_block *block,
		  size_t size, uint8_t n, uint64_t id)
{
	struct seam_writer_own *own = dump->own;

	block->size = (uint32_t)size;
	block->n = n;
	block->id = id;
	block->is_queued = true;
	/* relaxed: a count.  First: what is recorded was offered. */
	atomic_fetch_add_explicit(&own->n_offered, n, memory_order_relaxed);
	if (own->head)
		own->tail->next = block;
	else
		own->head = block;
	own->tail = block;
	own->n_queued += size;
	seam_writer_barrier();
	if (id)
		dump->entries.items[id - 1].block = block;
	return dump->is_streamed || own->n_queued < SEAM_WRITER_BUFFER_BYTES ?
	       0 : write_queue(dump);
}

/* Remove the first block of the queue, which is written. */
static void pop(struct seam_jitdump *dump)
{
	struct seam_writer_own *own = dump->own;
	struct seam_writer_block *block = own->head;

	own->head = block->next;
	own->n_queued -= block->size;
	block->is_queued = false;
	if (!block->id)
		seam_writer_free(&dump->memory, block);
}

static void forget_records(struct seam_writer_entry *entry)
{
	struct seam_writer_block *block = entry->block;

	entry->block = NULL;
	seam_writer_barrier();
	block->id = 0;
}

/* All records of the queue are lost.  Returns their number. */
static uint64_t lose_queue(struct seam_jitdump *dump)
{
	uint64_t n = 0;

	for (struct seam_writer_block *block; (block = dump->own->head); ) {
		if (block->id)
			forget_records(&dump->entries.items[block->id - 1]);
		n += block->n;
		pop(dump);
	}
	/* relaxed: a count; they were offered already */
	atomic_fetch_add_explicit(&dump->n_lost, n, memory_order_relaxed);
	return n;
}

/* Queue the header of a dump. */
static int add_header(struct seam_jitdump *dump)
{
	struct seam_writer_block *block;
	int error;

	if (dump->format == SEAM_JITDUMP_FORMAT_MAP)
		return 0;
	block = reserve(dump, SEAM_WRITER_SMALL, &error);
	return !block ? error : commit(dump, block,
			seam_writer_put_header(dump, block->bytes), 0, 0);
}

/* Code is unloaded: free its records, once they are written. */
static void unload(struct seam_jitdump *dump, struct seam_writer_entry *entry)
{
	struct seam_writer_block *block = entry->block;

	entry->is_loaded = false;
	if (!block)
		return;
	forget_records(entry);
	if (!block->is_queued)
		seam_writer_free(&dump->memory, block);
}

/* ---- the file ---- */

/* Append @text at @n of a path.  Past the end it only counts. */
static size_t append(char *path, size_t n, const char *text)
{
	for (; *text; text++, n++)
		if (n < SEAM_WRITER_PATH_BYTES)
			path[n] = *text;
	return n;
}

/* "FOLDER/jit-PID.dump" or perf-PID.map; false when it is too long. */
static bool make_path(char *path, bool is_map, int32_t pid,
		      const char *folder)
{
	char digits[12], *first = digits + sizeof(digits) - 1;
	size_t n;

	*first = '\0';
	do {
		*--first = (char)('0' + pid % 10);
		pid /= 10;
	} while (pid);
	n = append(path, 0, folder);
	n = append(path, n, is_map ? "/perf-" : "/jit-");
	n = append(path, n, first);
	n = append(path, n, is_map ? ".map" : ".dump");
	if (n >= SEAM_WRITER_PATH_BYTES)
		return false;
	path[n] = '\0';
	return true;
}

/*
 * Remove the file of an earlier process with our pid.  A writer that runs holds
 * a lock on its file, which then is not ours to remove.
 */
static int remove_stale(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r = 0;

	if (fd >= 0) {
		if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
			r = -EEXIST;
		close(fd);
	}
	if (!r && unlink(path))
		r = -errno;
	return r;
}

static int create_file(const char *path)
{
	int flags = O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW |
		    O_CLOEXEC;
	int fd = open(path, flags, 0600);
	int r;

	if (fd >= 0 || errno != EEXIST)
		return fd < 0 ? -errno : fd;
	r = remove_stale(path);
	if (r)
		return r;
	fd = open(path, flags, 0600);
	return fd < 0 ? -errno : fd;
}

/* The page that profilers see.  Fails on a file system mounted noexec. */
static int map_marker(struct seam_writer_file *file)
{
	file->marker = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE),
			    PROT_READ | PROT_EXEC, MAP_PRIVATE, file->fd, 0);
	if (file->marker != MAP_FAILED)
		return 0;
	file->marker = NULL;
	return -errno;
}

/*
 * Not fstat(): that reads the times, and each write after it has to store new
 * ones (Linux 6.13), which makes it three times as slow on ext4.
 */
static bool identify(int fd, struct seam_writer_identity *identity)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO, &st))
		return false;
	*identity = (struct seam_writer_identity) {
		.ino = st.stx_ino, .dev_major = st.stx_dev_major,
		.dev_minor = st.stx_dev_minor,
	};
	return true;
}

/* Whether the descriptor still is the file that was opened. */
static bool owns_fd(const struct seam_writer_file *file)
{
	struct seam_writer_identity now;

	return file->fd >= 0 && identify(file->fd, &now) &&
	       now.ino == file->identity.ino &&
	       now.dev_major == file->identity.dev_major &&
	       now.dev_minor == file->identity.dev_minor;
}

void seam_writer_close_file(struct seam_writer_file *file)
{
	void *marker = file->marker;

	/* First: what unmaps it again in a child unmaps another mapping. */
	file->marker = NULL;
	seam_writer_barrier();
	if (marker)
		munmap(marker, (size_t)sysconf(_SC_PAGESIZE));
	if (owns_fd(file))
		close(file->fd);
	file->fd = -1;
}

int seam_writer_create_file(struct seam_writer_file *file,
			    enum seam_jitdump_format format, int32_t pid,
			    const char *folder)
{
	bool is_map = format == SEAM_JITDUMP_FORMAT_MAP;
	int r;

	file->size = 0;
	if (!make_path(file->path, is_map, pid, folder))
		return -ENAMETOOLONG;
	r = create_file(file->path);
	if (r < 0)
		return r;
	file->fd = r;
	r = identify(r, &file->identity) &&
	    !flock(file->fd, LOCK_EX | LOCK_NB) ? 0 : -errno;
	if (!r && !is_map)
		r = map_marker(file);
	if (r) {
		unlink(file->path);
		seam_writer_close_file(file);
	}
	return r;
}

/*
 * Create the file of @dump in @folder or, if that is NULL, in the first folder
 * that works; see jitdump.h.  dump->folder is the folder of the file.
 */
static int choose_file(struct seam_jitdump *dump, const char *folder)
{
	bool is_map = dump->format == SEAM_JITDUMP_FORMAT_MAP;
	const char *given = folder || !is_map ? folder : "/tmp";
	const char *folders[] = {
		given, secure_getenv("JITDUMPDIR"), "/tmp",
		secure_getenv("XDG_RUNTIME_DIR"), secure_getenv("HOME"), ".",
	};
	size_t n = given ? 1 : SEAM_ARRAY_SIZE(folders);
	int r = -ENOENT;

	for (size_t i = 0; i < n; i++) {
		if (!folders[i] || (!*folders[i] && !folder))
			continue;
		r = seam_writer_create_file(&dump->file, dump->format,
					    dump->own->pid, folders[i]);
		/* a child's file goes there, and the string is the caller's */
		if (!r)
			dump->folder[append(dump->folder, 0, folders[i])] =
				'\0';
		if (!r || r == -EEXIST)
			break;
	}
	return r;
}

/*
 * A write past the limit on file sizes raised SIGXFSZ, which is blocked here.
 * Remove it: it would end the program.
 */
static void take_signal(void)
{
	uint64_t set = UINT64_C(1) << (SIGXFSZ - 1);
	struct timespec no_time = { 0 };

	syscall(SYS_rt_sigtimedwait, &set, NULL, &no_time, sizeof(set));
}

static int write_parts(int fd, struct iovec *part, size_t n)
{
	while (n) {
		ssize_t done = writev(fd, part, (int)n);

		if (done < 0 && errno == EFBIG) {
			take_signal();
			return -EFBIG;
		}
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		for (; n && (size_t)done >= part->iov_len; part++, n--)
			done -= (ssize_t)part->iov_len;
		if (n) {
			part->iov_base = (uint8_t *)part->iov_base + done;
			part->iov_len -= (size_t)done;
		}
	}
	return 0;
}

/* As many blocks as one call takes. */
static int write_blocks(struct seam_jitdump *dump)
{
	struct seam_writer_block *block = dump->own->head;
	size_t n = 0, size = 0;
	int r;

	for (; block && n < SEAM_WRITER_N_PARTS; block = block->next) {
		dump->parts[n++] = (struct iovec) { block->bytes, block->size };
		size += block->size;
	}
	r = write_parts(dump->file.fd, dump->parts, n);
	if (r)
		return r;
	dump->file.size += size;
	while (n--)
		pop(dump);
	return 0;
}

/*
 * Write the queue: whole records, or none of them.  Signals are blocked: a
 * limit on file sizes raises one.
 */
static int write_queue(struct seam_jitdump *dump)
{
	struct seam_writer_file *file = &dump->file;
	int r;

	if (!dump->own->head)
		return 0;
	/* The program may have closed it; the descriptor may be any file. */
	r = owns_fd(file) ? 0 : -EBADF;
	while (!r && dump->own->head)
		r = write_blocks(dump);
	if (!r)
		return 0;
	/* after the last whole record; else nothing more is added to it */
	if (owns_fd(file) && ftruncate(file->fd, (off_t)file->size)) {
		close(file->fd);
		file->fd = -1;
	}
	lose_queue(dump);
	/* No record can be read without the header: it is queued again. */
	if (!file->size && file->fd >= 0 && r != -EBADF)
		add_header(dump);
	return r;
}

/* ---- the ring ---- */

static int claim_ring(struct seam_jitdump *dump)
{
	struct seam_writer_own *own = dump->own;
	/* For the process: its threads may end before the dump. */
	int r = seam_link_client_claim(&dump->client, 0, (uint32_t)own->pid,
				       &own->claim);

	own->has_ring = r == 0;
	if (r)
		return r;
	/* relaxed: a count; from now on the ring has it */
	atomic_fetch_sub_explicit(&dump->client.memories[0].head->n_lost,
				  own->n_announced, memory_order_relaxed);
	own->n_announced = 0;
	return 0;
}

/*
 * Connect to the recorder at @address and claim a ring.  Returns 0, or -errno
 * and @dump unchanged: use a file then.
 */
static int open_stream(struct seam_jitdump *dump, const char *address)
{
	int r;

	r = seam_link_client_connect(&dump->client, address, SEAM_JIT_SERVICE,
				     CONNECT_MS);
	if (r)
		return r;
	r = claim_ring(dump);
	if (r)
		seam_link_client_fini(&dump->client);
	dump->is_streamed = r == 0;
	return r;
}

/* The recording ended: what is queued is lost, and no child inherits. */
static int end_stream(struct seam_jitdump *dump)
{
	uint64_t n = lose_queue(dump);

	dump->is_over = true;
	seam_writer_free_blocks(dump);
	return n ? -EPIPE : 0;
}

/* Send the next part of @block, the first of the queue; false without room. */
static bool send_chunk(struct seam_ring_producer *ring,
		       struct seam_writer_block *block)
{
	size_t room = seam_ring_room(ring), left = block->size - block->n_sent;
	struct seam_jit_chunk chunk = {
		.flags = block->n_sent ? 0 : SEAM_JIT_CHUNK_FIRST,
	};
	struct seam_ring_writer w;

	room = room > sizeof(chunk) ? room - sizeof(chunk) : 0;
	if (room < left && room < MIN_CHUNK)
		return false;
	chunk.size = (uint32_t)(room < left ? room : left);
	chunk.flags |= chunk.size == left ? SEAM_JIT_CHUNK_LAST : 0;
	if (seam_ring_begin(ring, &w, PERF_RECORD_SAMPLE, 0,
			    sizeof(chunk) + chunk.size))
		return false;
	seam_ring_put(&w, &chunk, sizeof(chunk));
	seam_ring_put(&w, block->bytes + block->n_sent, chunk.size);
	seam_ring_end(&w);
	block->n_sent += chunk.size;
	return true;
}

/* Send whole blocks and, of the next, the part that there is room for. */
static void send_blocks(struct seam_jitdump *dump)
{
	struct seam_writer_block *block;

	for (; (block = dump->own->head); pop(dump))
		while (block->n_sent < block->size)
			if (!send_chunk(&dump->own->claim.ring, block))
				return;
}

/* Store the count in shared memory, where it outlives this process. */
static void announce_offered(struct seam_jitdump *dump)
{
	struct seam_writer_own *own = dump->own;
	/* relaxed: a count */
	uint64_t n = atomic_load_explicit(&own->n_offered,
					  memory_order_relaxed);

	if (own->has_ring) {
		/* relaxed: a count, written under the lock */
		atomic_store_explicit(
			&own->claim.ring.control->program.n_offered, n,
			memory_order_relaxed);
	} else if (n > own->n_announced) {
		/* relaxed: a count */
		atomic_fetch_add_explicit(
			&dump->client.memories[0].head->n_lost,
			n - own->n_announced, memory_order_relaxed);
	}
	own->n_announced = n;
}

/* Send what the ring has room for; a full ring never makes a call wait. */
static int send_queue(struct seam_jitdump *dump)
{
	struct seam_writer_own *own = dump->own;

	if (dump->is_over) {
		/* Without a ring, losses are counted in the memory's head. */
		if (!own->has_ring)
			announce_offered(dump);
		return 0;
	}
	if (!own->has_ring) {
		claim_ring(dump);
		/* Wake the recorder, so that it prepares further rings. */
		seam_ring_wakeup_send(&dump->client.wakeup);
	}
	/* The recorder paused the ring: the end.  relaxed: a request */
	if (own->has_ring && atomic_load_explicit(
			&own->claim.ring.control->program.paused,
			memory_order_relaxed))
		return end_stream(dump);
	/* The program closed the slot, or another process claimed it. */
	if (own->has_ring &&
	    !seam_ring_memory_is_held(&dump->client.memories[0],
				      &own->claim)) {
		own->has_ring = false;
		announce_offered(dump);
		return end_stream(dump);
	}
	announce_offered(dump);
	if (own->has_ring)
		send_blocks(dump);
	return 0;
}

/* Close the ring.  Queued records are lost, and the recorder counts them. */
static void close_stream(struct seam_jitdump *dump)
{
	if (!dump->is_streamed)
		return;
	/* A child has no ring before its first call. */
	if (dump->own->has_ring)
		seam_ring_memory_close(&dump->client.memories[0],
				       &dump->own->claim);
	seam_link_client_fini(&dump->client);
}

/* ---- both ---- */

/* Write or send the queue.  What fails is counted as lost. */
static int flush(struct seam_jitdump *dump)
{
	return dump->is_streamed ? send_queue(dump) : write_queue(dump);
}

/*
 * The records of code @id in a block of this process.  The queue may become
 * longer than that of reserve(): all code is inherited.
 */
static int inherit_code(struct seam_jitdump *dump, uint64_t id)
{
	struct seam_writer_entry *entry = &dump->entries.items[id - 1];
	struct seam_writer_block *old = entry->block, *block;
	bool is_map = dump->format == SEAM_JITDUMP_FORMAT_MAP;
	size_t size;
	int r;

	if (!old)
		return 0;
	block = seam_writer_alloc(&dump->memory, old->size +
				  (is_map ? SEAM_WRITER_MAX_HEX : 0));
	if (!block) {
		entry->block = NULL;
		return lose(dump, 1, -ENOMEM);
	}
	size = seam_writer_put_again(dump, block->bytes, old->bytes, old->size,
				     entry->addr);
	r = commit(dump, block, size, 1, id);
	seam_writer_free(&dump->memory, old);
	return r;
}

/*
 * In a forked child: an output of its own, with all code that is loaded.
 * Returns 0, or why some of it was lost, which is counted.
 */
static int inherit(struct seam_jitdump *dump)
{
	struct seam_writer_file *file = &dump->file;
	int first = 0, r;

	if (!dump->is_streamed) {
		seam_writer_close_file(file);
		first = seam_writer_create_file(file, dump->format,
						dump->own->pid, dump->folder);
	}
	/* Without memory for it a stream has no header, which is valid. */
	add_header(dump);
	for (uint64_t id = 1; id <= dump->entries.n; id++) {
		r = inherit_code(dump, id);
		first = first ? first : r;
	}
	if (dump->is_streamed)
		return first;
	r = write_queue(dump);
	return first ? first : r;
}

/*
 * ---- a call
 *
 * All signals but those of faults are blocked in a call, and cancellation is
 * disabled: no handler, longjmp() or pthread_exit() ends a call in its middle,
 * and a handler that calls finds the dump free.  So the lock is a futex
 * without an owner.  Only the handler of a fault (of the caller's pointers)
 * can leave a call and never release it.
 */

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
	call->lost = inherit(dump);
	return 0;
}

/* End it, with @r; write first, unless records may be buffered. */
static int leave(struct seam_jitdump *dump, const struct call *call, int r)
{
	if (!dump->is_buffered || dump->is_streamed) {
		int flushed = flush(dump);

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
	       !open_stream(dump, address);
}

/* Free @dump.  The marker stays mapped: code that was loaded may still run. */
static void free_dump(struct seam_jitdump *dump)
{
	close_stream(dump);
	if (owns_fd(&dump->file))
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
	r = is_streamed(dump, options) ? 0 : choose_file(dump, options->folder);
	r = r ? r : add_header(dump);
	r = r ? r : flush(dump);
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
		return lose(dump, 1, -ENOMEM);
	/* A line of a map is of at least a byte of code. */
	if (dump->format == SEAM_JITDUMP_FORMAT_MAP && !code->size)
		return 0;
	if (size)
		block = reserve(dump, size, &error);
	if (!block)
		return lose(dump, 1, error);
	size = seam_writer_put_code(dump, block->bytes, code, code->id, addr);
	return commit(dump, block, size, 1, code->id);
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
		return lose(dump, n, r);
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

	block = reserve(dump, SEAM_WRITER_SMALL + (is_map ? old->size : 0),
			&error);
	if (!block)
		return lose(dump, 1, error);
	size = is_map ? seam_writer_put_again(dump, block->bytes, old->bytes,
					      old->size, new_addr) :
	       seam_writer_put_move(dump, block->bytes, entry, id, new_addr);
	return commit(dump, block, size, 1, 0);
}

/* The entry of @id, or NULL when that code is not loaded. */
static struct seam_writer_entry *find_entry(const struct seam_jitdump *dump,
					    uint64_t id)
{
	const struct seam_writer_entries *entries = &dump->entries;

	if (!id || id > entries->n || !entries->items[id - 1].is_loaded)
		return NULL;
	return &entries->items[id - 1];
}

static int move_code(struct seam_jitdump *dump, uint64_t id, uint64_t new_addr)
{
	struct seam_writer_entry *entry = find_entry(dump, id);
	int r = 0;

	if (!entry)
		return -ENOENT;
	/* Readers cannot use a move of code whose load they do not have. */
	if (entry->block)
		r = add_move(dump, entry, id, new_addr);
	else if (entry->code_size)
		r = lose(dump, 1, -ENODATA);
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
	return r ? lose(dump, 1, r) :
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
	entry = find_entry(dump, id);
	if (entry)
		unload(dump, entry);
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
	r = flush(dump);
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
		block = reserve(dump, SEAM_WRITER_SMALL, &error);
	if (block)
		commit(dump, block, seam_writer_put_close(block->bytes), 0, 0);
	flush(dump);
	/* close(2) would not unlock it: the marker keeps the file open. */
	if (owns_fd(&dump->file))
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
