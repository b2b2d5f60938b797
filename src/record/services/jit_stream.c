/* SPDX-License-Identifier: MIT */
/* jit_stream.c - groups checked, identified, appended; see jit_stream.h */
#include "record/services/jit_stream.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "record/bundle/bundle.h"
#include "symbol/jit/jit_find.h"

/* Offsets of the fields that are overwritten. */
enum {
	AT_TIME = 8,
	AT_PID = 16,
	AT_TID = 20,
	AT_LOAD_ID = 48,
	AT_MOVE_ID = 56,
	ID_BITS = 32,			/* of a stream's code ids */
};

enum {
	MAX_PENDING = 1 << 20,		/* bytes; then they are written */
	MIN_GROUP = 512,
	MAX_KEPT = 64 << 10,		/* for reuse; more is freed */
	MAX_GROUP_BYTES = 256 << 20,	/* of all unfinished groups */
	CHUNK_AT = 8,			/* in a record, after its header */
};

/* ---- files ---- */

static struct seam_jit_dump_file *file_of(struct seam_jit_stream *stream)
{
	return &stream->dumps->files.items[stream->file];
}

/* e_machine of the recorder: the default, see take_header(). */
static uint32_t own_machine(void)
{
	uint16_t machine = EM_NONE;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || pread(fd, &machine, sizeof(machine),
			    offsetof(Elf64_Ehdr, e_machine)) < 0)
		machine = EM_NONE;
	seam_file_close_fd(fd);
	return machine;
}

static void put_header(struct seam_jit_dump_file *file)
{
	struct seam_jitdump_header header = {
		.magic = SEAM_JITDUMP_MAGIC, .version = SEAM_JITDUMP_VERSION,
		.total_size = SEAM_JITDUMP_HEADER_BYTES, .pid = file->pid,
		.elf_mach = own_machine(),
		.timestamp = seam_clock_ns(),
	};

	_Static_assert(sizeof(header) == SEAM_JITDUMP_HEADER_BYTES,
		       "laid out as in the file");
	memcpy(file->pending.items, &header, sizeof(header));
	file->pending.n = sizeof(header);
}

static int make_file(struct seam_jit_dumps *dumps, uint32_t pid, size_t *at)
{
	struct seam_jit_dump_file *file;
	char name[32];

	for (*at = 0; *at < dumps->files.n; ++*at)
		if (dumps->files.items[*at].pid == pid)
			return 0;
	file = SEAM_ARRAY_PUSH(&dumps->files);
	if (!file)
		return -ENOMEM;
	*file = (struct seam_jit_dump_file) { .pid = pid, .fd = -1 };
	if (!SEAM_ARRAY_RESERVE(&file->pending, SEAM_JITDUMP_HEADER_BYTES)) {
		dumps->files.n--;
		return -ENOMEM;
	}
	put_header(file);
	snprintf(name, sizeof(name), "jit-%" PRIu32 ".dump", pid);
	file->fd = openat(dumps->folder, name, O_RDWR | O_CREAT | O_EXCL |
			  O_NOFOLLOW | O_CLOEXEC, 0600);
	return 0;
}

/* All bytes or none: a part would make those after it unreadable. */
static int append(struct seam_jit_dump_file *file)
{
	int r;

	if (file->fd < 0 ||
	    file->n_bytes + file->pending.n > SEAM_JIT_MAX_BYTES)
		return -EFBIG;
	r = seam_file_write_at(file->fd, file->pending.items, file->pending.n,
			       file->n_bytes, "a dump", NULL);
	if (r == 0)
		file->n_bytes += file->pending.n;
	else if (ftruncate(file->fd, (off_t)file->n_bytes))
		file->fd = (close(file->fd), -1);
	return r;
}

/* A file stays open: free the memory that one large piece took. */
static void shrink(struct seam_jit_dump_file *file)
{
	uint8_t *kept = file->pending.cap > MAX_KEPT ?
			realloc(file->pending.items, MAX_KEPT) : NULL;

	if (!kept)
		return;
	file->pending.items = kept;
	file->pending.cap = MAX_KEPT;
}

static void write_file(struct seam_jit_dumps *dumps,
		       struct seam_jit_dump_file *file)
{
	if (!file->pending.n)
		return;
	if (append(file))
		dumps->n_unwritten += file->n_pending;
	else
		dumps->n_written += file->n_pending;
	file->pending.n = file->n_pending = 0;
	shrink(file);
	/* The first bytes must be a header. */
	if (file->n_bytes == 0)
		put_header(file);
}

void seam_jit_dumps_write(struct seam_jit_dumps *dumps)
{
	for (size_t i = 0; i < dumps->files.n; i++)
		write_file(dumps, &dumps->files.items[i]);
}

int seam_jit_dumps_copy(const struct seam_jit_dumps *dumps, int folder,
			struct seam_err *err)
{
	char name[32];
	int r = 0;

	for (size_t i = 0; r == 0 && i < dumps->files.n; i++) {
		const struct seam_jit_dump_file *file = &dumps->files.items[i];

		if (file->fd < 0)
			continue;
		snprintf(name, sizeof(name), "jit-%" PRIu32 ".dump", file->pid);
		r = seam_bundle_copy(file->fd, folder, name, file->n_bytes,
				     err);
	}
	return r;
}

void seam_jit_dumps_fini(struct seam_jit_dumps *dumps)
{
	for (size_t i = 0; i < dumps->files.n; i++) {
		seam_file_close_fd(dumps->files.items[i].fd);
		free(dumps->files.items[i].pending.items);
	}
	free(dumps->files.items);
	dumps->files.items = NULL;
	dumps->files.n = dumps->files.cap = 0;
}

/* ---- groups ---- */

/* @tid if it is a thread of the process; else the pid. */
static uint32_t verified_tid(struct seam_jit_stream *stream, uint32_t tid)
{
	char path[64];

	if (tid == stream->tid)
		return tid;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32,
		 stream->pid, tid);
	if (access(path, F_OK))
		return stream->pid;
	return stream->tid = tid;
}

static void set_identity(struct seam_jit_stream *stream, uint8_t *record,
			 enum seam_jitdump_id id)
{
	uint64_t now = seam_clock_ns(), index;
	uint64_t time = seam_u64_at(record + AT_TIME);
	size_t at = id == SEAM_JITDUMP_LOAD ? AT_LOAD_ID : AT_MOVE_ID;
	uint32_t tid;

	time = time > now ? now : time < stream->since_ns ? stream->since_ns :
	       time;
	if (stream->until_ns && time > stream->until_ns)
		time = stream->until_ns;
	memcpy(record + AT_TIME, &time, sizeof(time));
	if (id != SEAM_JITDUMP_LOAD && id != SEAM_JITDUMP_MOVE)
		return;
	tid = verified_tid(stream, seam_u32_at(record + AT_TID));
	memcpy(record + AT_PID, &stream->pid, sizeof(stream->pid));
	memcpy(record + AT_TID, &tid, sizeof(tid));
	index = (seam_u64_at(record + at) & ((UINT64_C(1) << ID_BITS) - 1)) |
		stream->id_base;
	memcpy(record + at, &index, sizeof(index));
}

/* Whether the reader accepted all bytes as they are. */
static bool is_clean(const struct seam_jitdump_reader *reader)
{
	uint64_t n = reader->tail_bytes;

	for (int i = 0; i < SEAM_JITDUMP_N_NOTES; i++)
		n += reader->n_notes[i];
	return n == 0;
}

/*
 * Read the group as any reader will, and set the identity of its records.
 * *@n: its pieces of code and moves.  False: it is invalid.
 */
static bool check_group(struct seam_jit_stream *stream, uint8_t *bytes,
			size_t size, uint64_t *n)
{
	struct seam_jitdump_reader reader = {
		.cursor = seam_cursor_make(bytes, size, SEAM_NATIVE),
		.endian = SEAM_NATIVE,
	};
	struct seam_jitdump_record record = { .id = SEAM_JITDUMP_UNKNOWN };
	uint32_t seen = 0;

	*n = 0;
	while (seam_jitdump_next(&reader, &record)) {
		/* Each kind once; a load or a move is the last. */
		if (*n || record.id == SEAM_JITDUMP_UNKNOWN ||
		    seen >> record.id & 1)
			return false;
		seen |= UINT32_C(1) << record.id;
		*n = record.id == SEAM_JITDUMP_LOAD ||
		     record.id == SEAM_JITDUMP_MOVE;
		set_identity(stream, bytes + record.pos, record.id);
	}
	return is_clean(&reader) &&
	       (*n || seen == UINT32_C(1) << SEAM_JITDUMP_CLOSE);
}

/* Of a header, use the machine only. */
static void take_header(struct seam_jit_stream *stream, const uint8_t *bytes)
{
	struct seam_jit_dump_file *file = file_of(stream);
	struct seam_jitdump_header header;

	memcpy(&header, bytes, sizeof(header));
	if (file->n_bytes == 0 && header.elf_mach != EM_NONE &&
	    header.elf_mach <= UINT16_MAX)
		memcpy(file->pending.items +
		       offsetof(struct seam_jitdump_header, elf_mach),
		       &header.elf_mach, sizeof(header.elf_mach));
}

static void take_group(struct seam_jit_stream *stream)
{
	struct seam_jit_dumps *dumps = stream->dumps;
	struct seam_jit_dump_file *file = file_of(stream);
	uint8_t *bytes = stream->group.items;
	size_t size = stream->group.n;
	uint64_t n;

	if (size == SEAM_JITDUMP_HEADER_BYTES &&
	    seam_u32_at(bytes) == SEAM_JITDUMP_MAGIC) {
		take_header(stream, bytes);
		return;
	}
	if (!check_group(stream, bytes, size, &n)) {
		dumps->n_bad++;
		return;
	}
	/* Code stays after a close, and another dump may follow. */
	if (n == 0)
		return;
	stream->n_taken += n;
	if (stream->is_split && dumps->on_code)
		dumps->on_code(dumps->context, stream->pid,
			       (struct seam_bytes) { bytes, size });
	if (!SEAM_ARRAY_EXTEND(&file->pending, bytes, size)) {
		dumps->n_unwritten += n;
		return;
	}
	file->n_pending += n;
	if (file->pending.n >= MAX_PENDING)
		write_file(dumps, file);
}

static void free_group(struct seam_jit_stream *stream)
{
	stream->dumps->n_group_bytes -= stream->group.cap;
	free(stream->group.items);
	stream->group.items = NULL;
	stream->group.n = stream->group.cap = 0;
}

static void drop_group(struct seam_jit_stream *stream)
{
	stream->dumps->n_bad += stream->is_begun;
	stream->is_begun = false;
	stream->group.n = 0;
	if (stream->group.cap > MAX_KEPT)
		free_group(stream);
}

/* The stream with the largest group; NULL: none is larger than @least. */
static struct seam_jit_stream *find_largest(const struct seam_jit_dumps *dumps,
					    size_t least)
{
	struct seam_jit_stream *largest = NULL;

	for (struct seam_jit_stream *s = dumps->streams; s; s = s->next)
		if (s->group.cap > least) {
			least = s->group.cap;
			largest = s;
		}
	return largest;
}

/* Growth doubles; the limit is on allocated bytes. */
static bool make_room(struct seam_jit_stream *stream, size_t size)
{
	struct seam_jit_dumps *dumps = stream->dumps;
	size_t had = stream->group.cap, cap = had ? had : MIN_GROUP;

	while (cap < stream->group.n + size)
		cap *= 2;
	while (dumps->n_group_bytes + cap - had > MAX_GROUP_BYTES) {
		struct seam_jit_stream *other = find_largest(dumps, had);

		if (!other)
			return false;	/* this is the largest */
		drop_group(other);
		free_group(other);
	}
	if (!SEAM_ARRAY_RESERVE(&stream->group, cap - stream->group.n))
		return false;
	dumps->n_group_bytes += stream->group.cap - had;
	return true;
}

static bool add_bytes(struct seam_jit_stream *stream, const uint8_t *bytes,
		      size_t size)
{
	return size <= SEAM_JIT_MAX_GROUP - stream->group.n &&
	       make_room(stream, size) &&
	       SEAM_ARRAY_EXTEND(&stream->group, bytes, size);
}

void seam_jit_stream_take(struct seam_jit_stream *stream, uint8_t *record,
			  size_t size)
{
	struct seam_jit_chunk chunk;
	size_t room;

	if (seam_u32_at(record) != PERF_RECORD_SAMPLE ||
	    size < CHUNK_AT + sizeof(chunk))
		return;		/* LOST: counted by program_ring.c */
	room = size - CHUNK_AT - sizeof(chunk);
	memcpy(&chunk, record + CHUNK_AT, sizeof(chunk));
	stream->is_split = !(chunk.flags & SEAM_JIT_CHUNK_FIRST);
	if (chunk.flags & SEAM_JIT_CHUNK_FIRST) {
		drop_group(stream);
		stream->is_begun = true;
	}
	if (!stream->is_begun)
		return;			/* its beginning was dropped */
	if (chunk.size > room ||
	    !add_bytes(stream, record + CHUNK_AT + sizeof(chunk), chunk.size)) {
		drop_group(stream);
		return;
	}
	if (!(chunk.flags & SEAM_JIT_CHUNK_LAST))
		return;
	if (stream->group.n)
		take_group(stream);
	stream->is_begun = false;
	drop_group(stream);
}

/* ---- streams ---- */

struct seam_jit_stream *seam_jit_stream_begin(struct seam_jit_dumps *dumps,
					      uint32_t pid, uint64_t since_ns)
{
	struct seam_jit_stream *stream = malloc(sizeof(*stream));
	size_t at;

	if (!stream || make_file(dumps, pid, &at) < 0) {
		free(stream);
		return NULL;
	}
	*stream = (struct seam_jit_stream) {
		.dumps = dumps, .next = dumps->streams, .file = at,
		.pid = pid, .tid = pid, .since_ns = since_ns,
		.id_base = (uint64_t)dumps->files.items[at].n_streams++ <<
			   ID_BITS,
	};
	dumps->streams = stream;
	dumps->n_streams++;
	return stream;
}

void seam_jit_stream_end(struct seam_jit_stream *stream, uint64_t n_offered)
{
	struct seam_jit_dumps *dumps = stream->dumps;
	struct seam_jit_stream **link = &dumps->streams;

	while (*link != stream)
		link = &(*link)->next;
	*link = stream->next;
	/* A group that is begun is not invalid: its writer died. */
	free_group(stream);
	dumps->n_taken += stream->n_taken;
	/* Untrusted: never fewer than were taken. */
	dumps->n_offered += n_offered > stream->n_taken ? n_offered :
			    stream->n_taken;
	free(stream);
}
