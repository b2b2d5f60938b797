/* SPDX-License-Identifier: MIT */
/*
 * fuzz_jit_stream.c - bytes as what two programs of one pid say in their rings
 *
 * Half of the chunks are cut from a group as the writer makes it, so that
 * what is nearly right is tried too.  Oracle: the dump that comes of it is as
 * specified, of that process and of no time but now; it has as many loads and
 * moves as were counted; and what was held for unfinished groups is let go of.
 */
#include <fcntl.h>
#include <unistd.h>

#include "fuzz.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/file.h"
#include "record/services/jit_service.h"
#include "ring/layout.h"

enum { PID = 7, N_STREAMS = 2, NAME = 5, MOVE = 64 };

static char folder[] = "/dev/shm/seam-fuzz-XXXXXX";
static int folder_fd = -1;

static void leave(void)
{
	unlinkat(folder_fd, "jit-7.dump", 0);
	rmdir(folder);
}

/* A move and a load: what a chunk can be cut from. */
static size_t make_groups(uint8_t *to)
{
	struct seam_jitdump_move move = {
		.id = SEAM_JITDUMP_MOVE, .total_size = MOVE, .code_index = 1,
	};
	struct seam_jitdump_load load = {
		.id = SEAM_JITDUMP_LOAD, .total_size = 56 + NAME + 2,
		.vma = 64, .code_addr = 64, .code_size = 2, .code_index = 1,
		.name = "name", .code = { (const uint8_t *)"\x31\xc0", 2 },
	};
	size_t n = seam_wire_write(&seam_jitdump_move_table, &move,
				   SEAM_LITTLE, to, MOVE);

	return n + seam_wire_write(&seam_jitdump_load_table, &load,
				   SEAM_LITTLE, to + n, 128);
}

/* One record of a ring, on the heap and no longer than it says. */
static void give(struct seam_service_stream *stream, struct seam_cursor *c)
{
	uint32_t kind = seam_cursor_u8(c);
	size_t from = seam_cursor_u8(c), n = seam_cursor_u8(c), left;
	struct seam_jit_chunk chunk = { kind & 3, (uint32_t)n };
	struct seam_ring_header header = { .type = PERF_RECORD_SAMPLE };
	uint8_t groups[256] = { 0 }, *record;
	const uint8_t *bytes;
	size_t all = make_groups(groups);

	/* One of the two as it is, or any bytes of them. */
	if (kind & 0x30) {
		from = kind & 0x10 ? 0 : MOVE;
		chunk.size = (uint32_t)(n = kind & 0x10 ? MOVE : all - MOVE);
	}
	bytes = groups + from % 128;
	if (kind & 4) {
		left = seam_cursor_left(c);
		n = n < left ? n : left;
		bytes = seam_cursor_bytes(c, n);
	}
	n = n < 128 ? n : 128;
	if (kind & 8)
		chunk.size = seam_cursor_u32(c);
	header.size = (uint16_t)((16 + n + 7) & ~(size_t)7);
	if ((kind & 0xf0) == 0xf0)
		header.size = 8;	/* not even a chunk */
	record = calloc(1, (16 + n + 7) & ~(size_t)7);
	memcpy(record, &header, sizeof(header));
	memcpy(record + 8, &chunk, sizeof(chunk));
	if (n && bytes)
		memcpy(record + 16, bytes, n);
	stream->service->take(stream, record, header.size);
	free(record);
}

static void check_dump(uint64_t since_ns, uint64_t n_taken)
{
	struct seam_jitdump_reader reader;
	struct seam_jitdump_record record;
	struct seam_file file;
	uint64_t n = 0, now;

	must(!seam_file_read(&file, folder_fd, "jit-7.dump", 1 << 20, NULL));
	must(!seam_jitdump_begin(&reader, file.bytes, NULL));
	now = seam_clock_ns();
	while (seam_jitdump_next(&reader, &record)) {
		must(record.prefix.timestamp >= since_ns &&
		     record.prefix.timestamp <= now);
		if (record.id == SEAM_JITDUMP_LOAD)
			must(record.load.pid == PID);
		n += record.id == SEAM_JITDUMP_LOAD ||
		     record.id == SEAM_JITDUMP_MOVE;
	}
	must(n == n_taken && reader.tail_bytes == 0);
	for (int i = 0; i < SEAM_JITDUMP_N_NOTES; i++)
		must(reader.n_notes[i] == 0);
	seam_file_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seam_cursor c = seam_cursor_make(data, size, SEAM_LITTLE);
	static const struct seam_owner_counts none;
	struct seam_service_stream streams[N_STREAMS];
	struct seam_bundle bundle = { .path = "/" };
	struct seam_synth round = { 0 };
	struct seam_jit_service jit;
	uint64_t since_ns = seam_clock_ns();

	if (folder_fd < 0) {
		must(mkdtemp(folder) != NULL);
		folder_fd = open(folder, O_DIRECTORY | O_CLOEXEC);
		atexit(leave);
	}
	unlinkat(folder_fd, "jit-7.dump", 0);
	seam_jit_service_init(&jit, 4096);
	jit.bundle = &bundle;
	jit.folder = dup(folder_fd);
	for (int i = 0; i < N_STREAMS; i++) {
		streams[i] = (struct seam_service_stream) {
			.service = &jit.service, .pid = PID,
			.since_ns = since_ns,
		};
		must(jit.service.begin(&streams[i]) == 0);
	}
	while (seam_cursor_left(&c) > 0 && !c.error)
		give(&streams[seam_cursor_left(&c) % N_STREAMS], &c);
	for (int i = 0; i < N_STREAMS; i++)
		jit.service.end(&streams[i], &none);
	must(jit.n_group_bytes == 0 && jit.n_offered == jit.n_taken);
	jit.service.finish_round(&jit.service, &round);
	must(jit.n_written == jit.n_taken && !jit.n_unwritten);
	check_dump(since_ns, jit.n_taken);
	seam_jit_service_fini(&jit);
	seam_synth_fini(&round);
	return 0;
}
