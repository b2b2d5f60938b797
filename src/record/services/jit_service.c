/* SPDX-License-Identifier: MIT */
/* jit_service.c - groups checked, identified, appended; see jit_service.h */
#include "record/services/jit_service.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "symbol/jit/jit_find.h"
#include "wire/manifest.h"

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
	MAX_PROCESSES = 128,	/* of one program at a time; it and its forks */
	FREE_RINGS = 4,
	MAX_PENDING = 1 << 20,		/* bytes; then they are written */
	MIN_GROUP = 512,
	MAX_KEPT = 64 << 10,		/* for reuse; more is freed */
	MAX_GROUP_BYTES = 256 << 20,	/* of all unfinished groups */
	CHUNK_AT = 8,			/* in a record, after its header */
#ifdef __x86_64__
	OWN_MACHINE = EM_X86_64,
#else
	OWN_MACHINE = EM_AARCH64,
#endif
};

/* ---- files ---- */

static void put_header(struct seam_jit_dump_file *file)
{
	struct seam_jitdump_header header = {
		.magic = SEAM_JITDUMP_MAGIC, .version = SEAM_JITDUMP_VERSION,
		.total_size = SEAM_JITDUMP_HEADER_BYTES, .pid = file->pid,
		.elf_mach = OWN_MACHINE,	/* see take_header() */
		.timestamp = seam_clock_ns(),
	};

	_Static_assert(sizeof(header) == SEAM_JITDUMP_HEADER_BYTES,
		       "laid out as in the file");
	memcpy(file->pending.items, &header, sizeof(header));
	file->pending.n = sizeof(header);
}

/* The index of the file of @pid; -ENOMEM. */
static int make_file(struct seam_jit_service *jit, uint32_t pid, size_t *at)
{
	struct seam_jit_dump_file *file;
	char name[32];

	for (*at = 0; *at < jit->files.n; ++*at)
		if (jit->files.items[*at].pid == pid)
			return 0;
	file = SEAM_ARRAY_PUSH(&jit->files);
	if (!file)
		return -ENOMEM;
	*file = (struct seam_jit_dump_file) { .pid = pid, .fd = -1 };
	if (!SEAM_ARRAY_RESERVE(&file->pending, SEAM_JITDUMP_HEADER_BYTES)) {
		jit->files.n--;
		return -ENOMEM;
	}
	put_header(file);
	snprintf(name, sizeof(name), "jit-%" PRIu32 ".dump", pid);
	file->fd = openat(jit->folder, name, O_RDWR | O_CREAT | O_EXCL |
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

static void write_file(struct seam_jit_service *jit,
		       struct seam_jit_dump_file *file)
{
	uint8_t *kept = NULL;

	if (!file->pending.n)
		return;
	if (append(file))
		jit->n_unwritten += file->n_pending;
	else
		jit->n_written += file->n_pending;
	file->pending.n = file->n_pending = 0;
	/* the memory that one large piece took */
	if (file->pending.cap > MAX_KEPT)
		kept = realloc(file->pending.items, MAX_KEPT);
	if (kept) {
		file->pending.items = kept;
		file->pending.cap = MAX_KEPT;
	}
	/* The first bytes must be a header. */
	if (file->n_bytes == 0)
		put_header(file);
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
	/* the reader must have accepted all bytes as they are */
	for (int i = 0; i < SEAM_JITDUMP_N_NOTES; i++)
		reader.tail_bytes += reader.n_notes[i];
	return !reader.tail_bytes &&
	       (*n || seen == UINT32_C(1) << SEAM_JITDUMP_CLOSE);
}

/* Of a header, use the machine only. */
static void take_header(struct seam_jit_dump_file *file, const uint8_t *bytes)
{
	struct seam_jitdump_header header;

	memcpy(&header, bytes, sizeof(header));
	if (file->n_bytes == 0 && header.elf_mach != EM_NONE &&
	    header.elf_mach <= UINT16_MAX)
		memcpy(file->pending.items +
		       offsetof(struct seam_jitdump_header, elf_mach),
		       &header.elf_mach, sizeof(header.elf_mach));
}

static void take_group(struct seam_jit_service *jit,
		       struct seam_jit_stream *stream)
{
	struct seam_jit_dump_file *file = &jit->files.items[stream->file];
	uint8_t *bytes = stream->group.items;
	size_t size = stream->group.n;
	uint64_t n;

	if (size == SEAM_JITDUMP_HEADER_BYTES &&
	    seam_u32_at(bytes) == SEAM_JITDUMP_MAGIC) {
		take_header(file, bytes);
		return;
	}
	if (!check_group(stream, bytes, size, &n)) {
		jit->n_bad++;
		return;
	}
	/* Code stays after a close, and another dump may follow. */
	if (n == 0)
		return;
	stream->n_taken += n;
	if (stream->is_split && jit->on_code)
		jit->on_code(jit->context, stream->pid,
			     (struct seam_bytes) { bytes, size });
	if (!SEAM_ARRAY_EXTEND(&file->pending, bytes, size)) {
		jit->n_unwritten += n;
		return;
	}
	file->n_pending += n;
	if (file->pending.n >= MAX_PENDING)
		write_file(jit, file);
}

static void free_group(struct seam_jit_service *jit,
		       struct seam_jit_stream *stream)
{
	jit->n_group_bytes -= stream->group.cap;
	free(stream->group.items);
	stream->group.items = NULL;
	stream->group.n = stream->group.cap = 0;
}

static void drop_group(struct seam_jit_service *jit,
		       struct seam_jit_stream *stream)
{
	jit->n_bad += stream->is_begun;
	stream->is_begun = false;
	stream->group.n = 0;
	if (stream->group.cap > MAX_KEPT)
		free_group(jit, stream);
}

/* The stream with the largest group; NULL: none is larger than @least. */
static struct seam_jit_stream *find_largest(const struct seam_jit_service *jit,
					    size_t least)
{
	struct seam_jit_stream *largest = NULL;

	for (struct seam_jit_stream *s = jit->streams; s; s = s->next)
		if (s->group.cap > least) {
			least = s->group.cap;
			largest = s;
		}
	return largest;
}

/* Append; growth doubles, and the limit is on allocated bytes. */
static bool add_bytes(struct seam_jit_service *jit,
		      struct seam_jit_stream *stream, const uint8_t *bytes,
		      size_t size)
{
	size_t had = stream->group.cap, cap = had ? had : MIN_GROUP;

	if (size > SEAM_JIT_MAX_GROUP - stream->group.n)
		return false;
	while (cap < stream->group.n + size)
		cap *= 2;
	while (jit->n_group_bytes + cap - had > MAX_GROUP_BYTES) {
		struct seam_jit_stream *other = find_largest(jit, had);

		if (!other)
			return false;	/* this is the largest */
		drop_group(jit, other);
		free_group(jit, other);
	}
	if (!SEAM_ARRAY_RESERVE(&stream->group, cap - stream->group.n))
		return false;
	jit->n_group_bytes += stream->group.cap - had;
	return SEAM_ARRAY_EXTEND(&stream->group, bytes, size);
}

/* ---- streams ---- */

static int begin(struct seam_service_stream *of)
{
	struct seam_jit_service *jit = of->service->context;
	struct seam_jit_stream *stream = malloc(sizeof(*stream));
	size_t at;

	if (jit->folder < 0)
		jit->folder = seam_bundle_folder(jit->bundle, "jit", NULL);
	if (!stream || make_file(jit, of->pid, &at) < 0) {
		free(stream);
		return -ENOMEM;
	}
	*stream = (struct seam_jit_stream) {
		.next = jit->streams, .file = at, .pid = of->pid,
		.tid = of->pid, .since_ns = of->since_ns,
		.id_base = (uint64_t)jit->files.items[at].n_streams++ <<
			   ID_BITS,
	};
	jit->streams = stream;
	jit->n_streams++;
	of->state = stream;
	return 0;
}

/* Before the samples of the round are unwound: whole groups as they come. */
static void preview(struct seam_service *service,
		    struct seam_service_stream *stream, const uint8_t *record,
		    size_t size)
{
	enum { WHOLE = SEAM_JIT_CHUNK_FIRST | SEAM_JIT_CHUNK_LAST };
	const struct seam_jit_service *jit = service->context;
	struct seam_jit_chunk chunk;
	const size_t at = CHUNK_AT + sizeof(chunk);

	if (!jit->on_code || size < at ||
	    seam_u32_at(record) != PERF_RECORD_SAMPLE)
		return;
	memcpy(&chunk, record + CHUNK_AT, sizeof(chunk));
	if (chunk.flags == WHOLE && chunk.size <= size - at)
		jit->on_code(jit->context, stream->pid, (struct seam_bytes) {
			     record + at, chunk.size });
}

/* LOST records, which program_ring.c counts, are no chunks. */
static bool take(struct seam_service_stream *of, uint8_t *record, size_t size)
{
	struct seam_jit_service *jit = of->service->context;
	struct seam_jit_stream *stream = of->state;
	struct seam_jit_chunk chunk;
	const size_t at = CHUNK_AT + sizeof(chunk);

	if (seam_u32_at(record) != PERF_RECORD_SAMPLE || size < at)
		return false;
	memcpy(&chunk, record + CHUNK_AT, sizeof(chunk));
	stream->until_ns = of->until_ns;
	stream->is_split = !(chunk.flags & SEAM_JIT_CHUNK_FIRST);
	if (chunk.flags & SEAM_JIT_CHUNK_FIRST) {
		drop_group(jit, stream);
		stream->is_begun = true;
	}
	if (!stream->is_begun)
		return false;		/* its beginning was dropped */
	if (chunk.size > size - at ||
	    !add_bytes(jit, stream, record + at, chunk.size)) {
		drop_group(jit, stream);
		return false;
	}
	if (!(chunk.flags & SEAM_JIT_CHUNK_LAST))
		return false;
	if (stream->group.n)
		take_group(jit, stream);
	stream->is_begun = false;
	drop_group(jit, stream);
	return false;
}

static void end(struct seam_service_stream *of,
		const struct seam_owner_counts *counts)
{
	struct seam_jit_service *jit = of->service->context;
	struct seam_jit_stream *stream = of->state;
	struct seam_jit_stream **link = &jit->streams;

	while (*link != stream)
		link = &(*link)->next;
	*link = stream->next;
	/* A group that is begun is not invalid: its writer died. */
	free_group(jit, stream);
	jit->n_taken += stream->n_taken;
	/* Untrusted: never fewer than were taken. */
	jit->n_offered += counts->n_offered > stream->n_taken ?
			  counts->n_offered : stream->n_taken;
	free(stream);
}

/* Write the dumps, and name new ones.  Nothing can be mapped at address 0. */
static void finish_round(struct seam_service *service, struct seam_synth *round)
{
	struct seam_jit_service *jit = service->context;
	char folder[PATH_MAX], path[PATH_MAX + 32];

	round->id = jit->sideband_id;
	for (size_t i = 0; i < jit->files.n; i++) {
		struct seam_jit_dump_file *file = &jit->files.items[i];

		write_file(jit, file);
		if (file->is_named)
			continue;
		file->is_named = true;
		if (!realpath(jit->bundle->path, folder))
			snprintf(folder, sizeof(folder), "%s",
				 jit->bundle->path);
		snprintf(path, sizeof(path), "%s/jit/jit-%" PRIu32 ".dump",
			 folder, file->pid);
		seam_synth_marker(round, (int)file->pid, path, seam_clock_ns());
	}
}

/* ---- the recording ---- */

static void start(struct seam_service *service,
		  const struct seam_bundle *bundle, uint64_t sideband_id)
{
	struct seam_jit_service *jit = service->context;

	jit->bundle = bundle;
	jit->sideband_id = sideband_id;
}

static uint64_t n_bytes(const struct seam_service *service)
{
	const struct seam_jit_service *jit = service->context;
	uint64_t bytes = 0;

	for (size_t i = 0; i < jit->files.n; i++)
		bytes += jit->files.items[i].n_bytes +
			 jit->files.items[i].pending.n;
	return bytes;
}

static int copy(struct seam_service *service, const struct seam_bundle *bundle,
		struct seam_err *err)
{
	const struct seam_jit_service *jit = service->context;
	int folder = jit->files.n ? seam_bundle_folder(bundle, "jit", err) : -1;
	int r = jit->files.n && folder < 0 ? folder : 0;
	char name[32];

	for (size_t i = 0; r == 0 && i < jit->files.n; i++) {
		const struct seam_jit_dump_file *file = &jit->files.items[i];

		if (file->fd < 0)
			continue;
		snprintf(name, sizeof(name), "jit-%" PRIu32 ".dump", file->pid);
		r = seam_bundle_copy(file->fd, folder, name, file->n_bytes,
				     err);
	}
	seam_file_close_fd(folder);
	return r;
}

static void describe(struct seam_service *service, struct seam_manifest *m,
		     bool is_snapshot)
{
	const struct seam_jit_service *jit = service->context;
	uint64_t *n = m->counts.n;

	(void)is_snapshot;
	n[SEAM_COUNT_JIT_STREAMS] = jit->n_streams;
	n[SEAM_COUNT_JIT_RECORDS] = jit->n_written;
	n[SEAM_COUNT_JIT_LOST] = jit->n_offered - jit->n_taken +
				 jit->n_unwritten + service->n_unowned_offered +
				 service->n_without_ring;
	n[SEAM_COUNT_JIT_BAD] = jit->n_bad + service->n_bad;
	n[SEAM_COUNT_JIT_UNOWNED] = service->n_unowned;
}

void seam_jit_service_init(struct seam_jit_service *jit, size_t ring_bytes)
{
	*jit = (struct seam_jit_service) {
		.folder = -1,
		.service = {
			.link = {
				.name = SEAM_JIT_SERVICE,
				.n_free = FREE_RINGS,
				.geometry = {
					.n_slots = MAX_PROCESSES,
					.data_bytes = ring_bytes,
					.watermark = (uint32_t)ring_bytes / 4,
				},
			},
			.begin = begin, .take = take, .end = end,
			.preview = preview, .finish_round = finish_round,
			.start = start, .n_bytes = n_bytes, .copy = copy,
			.describe = describe, .context = jit,
		},
	};
}

void seam_jit_service_fini(struct seam_jit_service *jit)
{
	for (size_t i = 0; i < jit->files.n; i++) {
		seam_file_close_fd(jit->files.items[i].fd);
		free(jit->files.items[i].pending.items);
	}
	free(jit->files.items);
	jit->files.items = NULL;
	jit->files.n = jit->files.cap = 0;
	if (jit->folder > 0)
		close(jit->folder);
	jit->folder = -1;
}
