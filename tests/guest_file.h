/* SPDX-License-Identifier: MIT */
/*
 * guest_file.h - recordings with guest records, as a sampler makes them
 *
 * On top of perf_bytes.h, whose sideband it shares.  Events: cpu-clock
 * (TEST_ID_1), seam:guest, seam:guest_symtab.
 */
#ifndef SEAM_TESTS_GUEST_FILE_H
#define SEAM_TESTS_GUEST_FILE_H

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perf_bytes.h"
#include "wire/guest/guest_encode.h"
#include "wire/perf/perf_writer.h"

#define TEST_ID_GUEST 0x2001
#define TEST_ID_SYMTAB 0x2002
#define TEST_GUEST_TYPE (TEST_SAMPLE_TYPE | PERF_SAMPLE_RAW)
#define TEST_SYMTAB_TYPE						\
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |	\
	 PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW)

/* RAW data: its size, and padding to a record's multiple of 8. */
static inline void put_raw(struct bytes *b, const uint8_t *raw, size_t size)
{
	static const uint8_t zero[8];
	size_t padding = -(4 + size) & 7;

	put_u32(b, size + padding);
	put(b, raw, size);
	put(b, zero, padding);
}

/* What one instant of a thread is made of. */
struct guest_instant {
	int32_t pid, tid;
	uint64_t time, weight;
	const uint64_t *chain;
	size_t n_chain;
	struct seam_guest_head head;
	const struct seam_guest_segment *segments;
	const struct seam_guest_frame *frames;
};

/* A sample of seam:guest with any RAW data. */
static inline void put_guest_raw(struct bytes *b,
				 const struct guest_instant *i,
				 const uint8_t *raw, size_t size)
{
	size_t at = begin_record(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);

	put_u64(b, TEST_ID_GUEST);
	put_u64(b, i->n_chain > 1 ? i->chain[1] : 0);
	put_u32(b, (uint32_t)i->pid);
	put_u32(b, (uint32_t)i->tid);
	put_u64(b, i->time);
	put_u32(b, 1);
	put_u32(b, 0);
	put_u64(b, i->weight);
	put_u64(b, i->n_chain);
	for (size_t k = 0; k < i->n_chain; k++)
		put_u64(b, i->chain[k]);
	put_raw(b, raw, size);
	end_record(b, at);
}

static inline void put_guest(struct bytes *b, const struct guest_instant *i)
{
	static uint8_t raw[SEAM_GUEST_MAX_BYTES];
	size_t size = seam_guest_encode_sample(raw, sizeof(raw), &i->head,
					       i->segments, i->frames);

	put_guest_raw(b, i, raw, size);
}

static inline void put_symbol_raw(struct bytes *b, int32_t pid, uint64_t time,
				  const uint8_t *raw, size_t size)
{
	size_t at = begin_record(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);

	put_u64(b, TEST_ID_SYMTAB);
	put_u64(b, 0);
	put_u32(b, (uint32_t)pid);
	put_u32(b, (uint32_t)pid);
	put_u64(b, time);
	put_u32(b, 1);
	put_u32(b, 0);
	put_raw(b, raw, size);
	end_record(b, at);
}

/* The name of @s is @name, defined in @chunk. */
static inline void put_symbol(struct bytes *b, int32_t pid, uint64_t time,
			      struct seam_guest_symbol s, const char *chunk,
			      const char *name)
{
	uint8_t raw[SEAM_GUEST_SYMBOL_BYTES];

	s.adapter = SEAM_GUEST_LUAJIT;
	s.n_chunk = (uint16_t)strlen(chunk);
	s.n_name = (uint8_t)strlen(name);
	memcpy(s.chunk, chunk, s.n_chunk);
	memcpy(s.name, name, s.n_name);
	put_symbol_raw(b, pid, time, raw, seam_guest_encode_symbol(raw, &s));
}

static inline struct perf_event_attr guest_attr(uint64_t config,
						uint64_t sample_type)
{
	return (struct perf_event_attr) {
		.type = PERF_TYPE_SOFTWARE, .size = 128, .config = config,
		.sample_period = 1000000, .sample_type = sample_type,
		.read_format = PERF_FORMAT_ID, .sample_id_all = 1,
		.use_clockid = 1, .clockid = 1,
	};
}

/* The file around @data, as seam record writes it: free(.data). */
static inline struct bytes make_guest_file(const struct bytes *data,
					   bool has_clock)
{
	static uint64_t ids[] = { TEST_ID_1, TEST_ID_GUEST, TEST_ID_SYMTAB };
	struct perf_event_attr attrs[] = {
		guest_attr(has_clock ? PERF_COUNT_SW_CPU_CLOCK :
			   PERF_COUNT_SW_PAGE_FAULTS, TEST_SAMPLE_TYPE),
		guest_attr(PERF_COUNT_SW_BPF_OUTPUT, TEST_GUEST_TYPE),
		guest_attr(PERF_COUNT_SW_BPF_OUTPUT, TEST_SYMTAB_TYPE),
	};
	const char *const names[] = { has_clock ? "cpu-clock" : "faults",
				      "seam:guest", "seam:guest_symtab" };
	struct seam_perf_event events[3] = { 0 };
	struct seam_perf_features features = { 0 };
	struct seam_perf_writer writer;
	struct iovec all = { data->data, data->size };
	char host[256] = "";
	int fd = memfd_create("data", MFD_CLOEXEC);
	struct bytes file = { .endian = SEAM_LITTLE };

	for (size_t i = 0; i < 3; i++)
		events[i] = (struct seam_perf_event) {
			.attr = seam_perf_attr_of(&attrs[i]),
			.name = names[i], .ids = &ids[i], .n_ids = 1,
		};
	/* this machine's, so that the files of its mappings are used */
	gethostname(host, sizeof(host) - 1);
	seam_perf_features_string(&features, SEAM_PERF_FEATURE_HOSTNAME, host);
	seam_perf_features_string(&features, SEAM_PERF_FEATURE_ARCH, "x86_64");
	seam_perf_features_events(&features, events, 3);
	if (fd < 0 ||
	    seam_perf_writer_begin(&writer, fd, "data", events, 3, NULL) ||
	    seam_perf_writer_append(&writer, &all, 1, NULL) ||
	    seam_perf_writer_finish(&writer, &features, NULL))
		abort();
	file.size = (size_t)lseek(fd, 0, SEEK_END);
	file.data = malloc(file.size);
	if (!file.data || pread(fd, file.data, file.size, 0) !=
			  (ssize_t)file.size)
		abort();
	seam_perf_features_fini(&features);
	close(fd);
	return file;
}

#endif /* SEAM_TESTS_GUEST_FILE_H */
