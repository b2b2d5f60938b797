/* SPDX-License-Identifier: MIT */
/*
 * output.c - records on their way out: a queue, then a file or a ring
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
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "traced/jit/writer.h"
#include "wire/jit/jitdump.h"

enum {
	CONNECT_MS = 1000,	/* for the recorder to answer */
	/* No smaller part of a group is sent, unless it is the last. */
	MIN_CHUNK = 512,
};

/* ---- the queue ---- */

int seam_writer_lose(struct seam_jitdump *dump, uint64_t n, int error)
{
	/* relaxed: counters, nothing is ordered by them */
	atomic_fetch_add_explicit(&dump->n_lost, n, memory_order_relaxed);
	atomic_fetch_add_explicit(&dump->own->n_offered, n,
				  memory_order_relaxed);
	return error;
}

struct seam_writer_block *seam_writer_reserve(struct seam_jitdump *dump,
					      size_t size, int *error)
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

int seam_writer_commit(struct seam_jitdump *dump,
		       struct seam_writer_block *block, size_t size, uint8_t n,
		       uint64_t id)
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

int seam_writer_add_header(struct seam_jitdump *dump)
{
	struct seam_writer_block *block;
	int error;

	if (dump->format == SEAM_JITDUMP_FORMAT_MAP)
		return 0;
	block = seam_writer_reserve(dump, SEAM_WRITER_SMALL, &error);
	return block ? seam_writer_commit(dump, block, seam_writer_put_header(
						dump, block->bytes), 0, 0) :
	       error;
}

void seam_writer_unload(struct seam_jitdump *dump,
			struct seam_writer_entry *entry)
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

bool seam_writer_owns_fd(const struct seam_writer_file *file)
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
	if (seam_writer_owns_fd(file))
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

int seam_writer_choose_file(struct seam_jitdump *dump, const char *folder)
{
	const char *folders[] = {
		folder, secure_getenv("JITDUMPDIR"), "/tmp",
		secure_getenv("XDG_RUNTIME_DIR"), secure_getenv("HOME"), ".",
	};
	size_t n = folder ? 1 : SEAM_ARRAY_SIZE(folders);
	int r = -ENOENT;

	if (!folder && dump->format == SEAM_JITDUMP_FORMAT_MAP) {
		folders[0] = "/tmp";
		n = 1;
	}
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
	r = seam_writer_owns_fd(file) ? 0 : -EBADF;
	while (!r && dump->own->head)
		r = write_blocks(dump);
	if (!r)
		return 0;
	/* after the last whole record; else nothing more is added to it */
	if (seam_writer_owns_fd(file) &&
	    ftruncate(file->fd, (off_t)file->size)) {
		close(file->fd);
		file->fd = -1;
	}
	lose_queue(dump);
	/* No record can be read without the header: it is queued again. */
	if (!file->size && file->fd >= 0 && r != -EBADF)
		seam_writer_add_header(dump);
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

int seam_writer_open_stream(struct seam_jitdump *dump, const char *address)
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
	/* The recorder paused the ring: the recording ends.  relaxed: a request */
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

void seam_writer_close_stream(struct seam_jitdump *dump)
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

int seam_writer_flush(struct seam_jitdump *dump)
{
	return dump->is_streamed ? send_queue(dump) : write_queue(dump);
}

/*
 * The records of code @id in a block of this process.  The queue may become
 * longer than that of seam_writer_reserve(): all code is inherited.
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
		return seam_writer_lose(dump, 1, -ENOMEM);
	}
	size = seam_writer_put_again(dump, block->bytes, old->bytes, old->size,
				     entry->addr);
	r = seam_writer_commit(dump, block, size, 1, id);
	seam_writer_free(&dump->memory, old);
	return r;
}

int seam_writer_inherit(struct seam_jitdump *dump)
{
	struct seam_writer_file *file = &dump->file;
	int first = 0, r;

	if (!dump->is_streamed) {
		seam_writer_close_file(file);
		first = seam_writer_create_file(file, dump->format,
						dump->own->pid, dump->folder);
	}
	/* Without memory for it a stream has no header, which is valid. */
	seam_writer_add_header(dump);
	for (uint64_t id = 1; id <= dump->entries.n; id++) {
		r = inherit_code(dump, id);
		first = first ? first : r;
	}
	if (dump->is_streamed)
		return first;
	r = write_queue(dump);
	return first ? first : r;
}
