/* SPDX-License-Identifier: MIT */
/* live_dumps.c - open, read on, hand to live_jit; see live_dumps.h */
#include "record/stacks/live_dumps.h"

#include "base/cursor.h"
#include "base/file.h"
#include "record/proc/target_file.h"
#include "wire/jit/jitdump.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* A file that is not written to is looked at less and less often. */
enum { MAX_WAITS = 16 };

/* ---- in the helper thread ---- */

struct dump_job {
	struct seam_helper_job job;
	int32_t pid;
	int fd;				/* negative: to be opened */
	bool has_ended;			/* before this read */
	uint64_t pos;
	size_t n;			/* bytes read */
	char *path;
	uint8_t bytes[SEAM_LIVE_DUMPS_READ];
};

static int open_dump(const struct dump_job *j)
{
	struct seam_target target;
	int fd;

	seam_target_open(&target, j->pid, NULL);
	seam_jit_marker(j->path, &target.owner.inner_pid);
	fd = seam_target_open_path(&target, j->path, NULL);
	if (fd >= 0)
		fd = seam_jit_check(&target.owner, SEAM_JIT_DUMP, j->path, fd,
				    SEAM_JIT_MAX_BYTES, NULL);
	seam_target_close(&target);
	return fd;
}

static void run(struct seam_helper_job *job)
{
	struct dump_job *j = (struct dump_job *)job;
	ssize_t n;

	if (j->fd < 0)
		j->fd = open_dump(j);
	seam_helper_progress(job);
	if (j->fd < 0)
		return;
	n = pread(j->fd, j->bytes, sizeof(j->bytes), (off_t)j->pos);
	j->n = n > 0 ? (size_t)n : 0;
}

static void free_job(struct seam_helper_job *job)
{
	struct dump_job *j = (struct dump_job *)job;

	seam_file_close_fd(j->fd);
	free(j->path);
	free(j);
}

/* ---- what was read ---- */

/* The bytes of the header, if times are ns and numbers as ours; 0: no use. */
static size_t header_bytes(struct seam_bytes bytes)
{
	struct seam_jitdump_reader reader;

	if (seam_jitdump_begin(&reader, bytes, NULL) ||
	    reader.endian != SEAM_NATIVE ||
	    reader.header.flags == SEAM_JITDUMP_ARCH_TIMESTAMP ||
	    reader.header.total_size > bytes.size)
		return 0;
	return reader.header.total_size > SEAM_JITDUMP_HEADER_BYTES ?
	       reader.header.total_size : SEAM_JITDUMP_HEADER_BYTES;
}

/*
 * The bytes of whole records up to a load or a move, which what is before it
 * belongs to.
 */
static size_t whole_bytes(struct seam_bytes bytes)
{
	size_t pos = 0, whole = 0;

	while (bytes.size - pos >= SEAM_JITDUMP_PREFIX_BYTES) {
		uint32_t id, size;

		memcpy(&id, bytes.data + pos, sizeof(id));
		memcpy(&size, bytes.data + pos + sizeof(id), sizeof(size));
		if (size < SEAM_JITDUMP_PREFIX_BYTES ||
		    size > bytes.size - pos)
			break;
		pos += size;
		if (id != SEAM_JITDUMP_DEBUG_INFO &&
		    id != SEAM_JITDUMP_UNWINDING_INFO)
			whole = pos;
	}
	return whole;
}

/* A record that is larger than a read is skipped, with what belongs to it. */
static void skip_large(struct seam_live_dump *dump, struct seam_bytes bytes)
{
	uint32_t size;

	if (bytes.size < SEAM_LIVE_DUMPS_READ)
		return;			/* its end is not written yet */
	memcpy(&size, bytes.data + sizeof(uint32_t), sizeof(size));
	dump->is_over = size < SEAM_JITDUMP_PREFIX_BYTES;
	dump->pos += size;
}

static void take(struct seam_live_dumps *dumps, struct seam_live_dump *dump,
		 struct seam_bytes bytes)
{
	size_t n, header = 0;

	if (dump->pos == 0) {
		header = header_bytes(bytes);
		dump->is_over = header == 0;
		bytes.data += header;
		bytes.size -= header;
	}
	if (dump->is_over)
		return;
	n = whole_bytes(bytes);
	dump->pos += header + n;
	if (n)
		seam_live_jit_add(dumps->jit, dump->pid, (struct seam_bytes) {
				  bytes.data, n });
	else if (!header)
		skip_large(dump, bytes);
	dump->wait_ns = n || header ? SEAM_LIVE_DUMPS_WAIT_NS :
			2 * dump->wait_ns;
	if (dump->wait_ns > MAX_WAITS * SEAM_LIVE_DUMPS_WAIT_NS)
		dump->wait_ns = MAX_WAITS * SEAM_LIVE_DUMPS_WAIT_NS;
}

/* ---- files ---- */

static struct seam_live_dump *by_serial(struct seam_live_dumps *dumps,
					uint64_t serial)
{
	for (size_t i = 0; i < dumps->items.n; i++)
		if (dumps->items.items[i].serial == serial)
			return &dumps->items.items[i];
	return NULL;
}

static void done(struct seam_helper_job *job, void *context)
{
	struct dump_job *j = (struct dump_job *)job;
	struct seam_live_dumps *dumps = context;
	struct seam_live_dump *dump = by_serial(dumps, job->tag);

	dumps->is_busy = false;
	if (!dump)
		return;			/* of a program that has ended */
	if (j->fd < 0) {
		/* its header may not be written yet */
		dump->is_over = ++dump->n_tries >= SEAM_LIVE_DUMPS_TRIES;
		return;
	}
	take(dumps, dump, (struct seam_bytes) { j->bytes, j->n });
	if (j->has_ended && dump->pos == j->pos)
		dump->is_over = true;
	if (dump->is_over)
		return;			/* closed with the job */
	dump->fd = j->fd;
	j->fd = -1;
}

static void given_up(void *context, uint64_t tag)
{
	struct seam_live_dumps *dumps = context;
	struct seam_live_dump *dump = by_serial(dumps, tag);

	dumps->is_busy = false;
	if (dump)
		dump->is_over = true;
}

static void begin_read(struct seam_live_dumps *dumps,
		       struct seam_live_dump *dump, uint64_t now_ns)
{
	struct dump_job *j = malloc(sizeof(*j));
	char *path = strdup(dump->path);

	dump->due_ns = now_ns + dump->wait_ns;
	if (!j || !path) {
		free(path);
		free(j);
		return;
	}
	j->job = (struct seam_helper_job) {
		.run = run, .done = done, .given_up = given_up,
		.free = free_job, .context = dumps, .tag = dump->serial,
		.user = dump->user,
	};
	j->pid = dump->pid;
	j->fd = dump->fd;
	j->pos = dump->pos;
	j->has_ended = dump->has_ended;
	j->n = 0;
	j->path = path;
	dump->fd = -1;
	dumps->is_busy = seam_helper_submit(dumps->helper, &j->job) == 0;
}

void seam_live_dumps_step(struct seam_live_dumps *dumps, uint64_t now_ns)
{
	struct seam_live_dump *next = NULL;

	if (!dumps->items.n)
		return;
	seam_helper_collect(dumps->helper);
	for (size_t i = 0; !dumps->is_busy && i < dumps->items.n; i++) {
		struct seam_live_dump *dump = &dumps->items.items[i];

		if (!dump->is_over && dump->due_ns <= now_ns &&
		    (!next || dump->due_ns < next->due_ns))
			next = dump;
	}
	if (next)
		begin_read(dumps, next, now_ns);
}

static void drop(const struct seam_live_dumps *dumps,
		 struct seam_live_dump *dump)
{
	seam_helper_close(dumps->helper, dump->user, dump->fd);
	free(dump->path);
	*dump = (struct seam_live_dump) { .fd = -1, .is_over = true };
}

/* A place for one more: free, or of the file that was idle the longest. */
static struct seam_live_dump *new_place(struct seam_live_dumps *dumps)
{
	struct seam_live_dump *found = NULL;

	for (size_t i = 0; i < dumps->items.n; i++) {
		struct seam_live_dump *dump = &dumps->items.items[i];

		if (!dump->path)
			return dump;
		if (!found || dump->is_over > found->is_over ||
		    (dump->is_over == found->is_over &&
		     dump->wait_ns > found->wait_ns))
			found = dump;
	}
	if (dumps->items.n < SEAM_LIVE_DUMPS_MAX)
		return SEAM_ARRAY_PUSH(&dumps->items);
	drop(dumps, found);
	return found;
}

void seam_live_dumps_add(struct seam_live_dumps *dumps, int32_t pid,
			 const char *path)
{
	struct seam_live_dump *dump;
	int32_t inner_pid;

	if (!dumps->jit || path[0] != '/' ||
	    !seam_jit_marker(path, &inner_pid))
		return;
	for (size_t i = 0; i < dumps->items.n; i++)
		if (dumps->items.items[i].path &&
		    dumps->items.items[i].pid == pid &&
		    strcmp(dumps->items.items[i].path, path) == 0)
			return;
	if (!dumps->helper)
		dumps->helper = seam_helper_new(NULL);
	dump = dumps->helper ? new_place(dumps) : NULL;
	if (!dump)
		return;
	*dump = (struct seam_live_dump) {
		.pid = pid, .user = seam_helper_user_of(pid), .fd = -1,
		.path = strdup(path),
		.serial = ++dumps->n_serials,
		.wait_ns = SEAM_LIVE_DUMPS_WAIT_NS,
	};
	if (!dump->path)
		drop(dumps, dump);
}

void seam_live_dumps_forget(struct seam_live_dumps *dumps, int32_t pid)
{
	for (size_t i = 0; i < dumps->items.n; i++)
		if (dumps->items.items[i].pid == pid)
			drop(dumps, &dumps->items.items[i]);
}

void seam_live_dumps_exit(struct seam_live_dumps *dumps, int32_t pid)
{
	for (size_t i = 0; i < dumps->items.n; i++)
		if (dumps->items.items[i].pid == pid)
			dumps->items.items[i].has_ended = true;
}

void seam_live_dumps_fini(struct seam_live_dumps *dumps)
{
	for (size_t i = 0; i < dumps->items.n; i++)
		drop(dumps, &dumps->items.items[i]);
	seam_helper_free(dumps->helper);
	free(dumps->items.items);
	*dumps = (struct seam_live_dumps) { 0 };
}
