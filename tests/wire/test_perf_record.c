/* SPDX-License-Identifier: MIT */
/* test_perf_record.c - records of the kernel, written and read back */
#include "wire/perf/perf_record.h"

#include <linux/perf_event.h>

#include "unit.h"

static const struct seam_perf_attr attrs[] = {
	{ .flags = UINT64_C(1) << SEAM_PERF_ATTR_SAMPLE_ID_ALL,
	  .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
			 PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU },
	{ .flags = UINT64_C(1) << SEAM_PERF_ATTR_SAMPLE_ID_ALL,
	  .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU },
	{ .sample_type = PERF_SAMPLE_TID },	/* without sample_id_all */
};

static const struct seam_perf_sample_id id = {
	.pid = 71, .tid = 72, .time = UINT64_C(0x1122334455667788),
	.id = 73, .stream_id = 74, .cpu = 75,
};

static const struct seam_perf_comm comm = { 1, 2, "java" };
static const struct seam_perf_task task = { 3, 4, 5, 6, 7 };
static const struct seam_perf_lost lost = { 8, 9 };
static const struct seam_perf_lost_samples lost_samples = { 10 };
static const struct seam_perf_aux aux = { 11, 12, 13 };
static const struct seam_perf_ksymbol ksymbol = { 14, 15, 1, 0, "bpf_prog" };
static const struct seam_perf_mmap mmap_1 = { 1, 2, 0x1000, 0x2000, 3, "/a" };
static const struct seam_perf_mmap2 mmap_2 = {
	1, 2, 0x1000, 0x2000, 3, 8, 1, 4711, 12, PROT_READ, MAP_PRIVATE, "/lib",
};
static const struct seam_perf_mmap2_build_id mmap_id = {
	.pid = 1, .tid = 2, .addr = 0x1000, .len = 0x2000, .pgoff = 3,
	.build_id_size = 20, .prot = PROT_EXEC, .filename = "/bin/su",
};

static const struct record {
	uint32_t type;
	uint16_t misc;
	const void *fields;
	size_t size;
} records[] = {
	{ PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, &comm, sizeof(comm) },
	{ PERF_RECORD_FORK, 0, &task, sizeof(task) },
	{ PERF_RECORD_EXIT, 0, &task, sizeof(task) },
	{ PERF_RECORD_LOST, 0, &lost, sizeof(lost) },
	{ PERF_RECORD_LOST_SAMPLES, 0, &lost_samples, sizeof(lost_samples) },
	{ PERF_RECORD_AUX, 0, &aux, sizeof(aux) },
	{ PERF_RECORD_KSYMBOL, 0, &ksymbol, sizeof(ksymbol) },
	{ PERF_RECORD_MMAP, PERF_RECORD_MISC_MMAP_DATA, &mmap_1, 0 },
	{ PERF_RECORD_MMAP2, 0, &mmap_2, 0 },
	{ PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID, &mmap_id, 0 },
};

/* The record @r on the heap and no byte longer. */
static struct seam_perf_record written(const struct record *r,
				       const struct seam_perf_attr *attr,
				       enum seam_endian endian)
{
	uint8_t buf[SEAM_PERF_SIDEBAND_MAX], *bytes;
	size_t n = seam_perf_sideband_write(attr, endian, r->type, r->misc,
					    r->fields, &id, buf, sizeof(buf));

	assert_true(n > SEAM_PERF_HEADER_BYTES && n % 8 == 0);
	bytes = malloc(n - SEAM_PERF_HEADER_BYTES);
	memcpy(bytes, buf + SEAM_PERF_HEADER_BYTES, n - SEAM_PERF_HEADER_BYTES);
	return (struct seam_perf_record) {
		.type = r->type, .misc = r->misc,
		.payload = { bytes, n - SEAM_PERF_HEADER_BYTES },
	};
}

static void release(struct seam_perf_record *record)
{
	free((void *)(uintptr_t)record->payload.data);
}

static void assert_fields(const struct record *r,
			  const struct seam_perf_sideband *got)
{
	const struct seam_perf_mapping *m = &got->mapping;

	assert_int_equal(got->type, r->type);
	assert_int_equal(got->misc, r->misc);
	if (r->fields == &comm) {
		assert_int_equal(got->comm.pid, 1);
		assert_int_equal(got->comm.tid, 2);
		assert_string_equal(got->comm.comm, "java");
	} else if (r->fields == &ksymbol) {
		assert_int_equal(got->ksymbol.addr, 14);
		assert_int_equal(got->ksymbol.len, 15);
		assert_string_equal(got->ksymbol.name, "bpf_prog");
	} else if (r->size) {
		assert_memory_equal(&got->task, r->fields, r->size);
	} else {
		assert_int_equal(m->pid, 1);
		assert_int_equal(m->tid, 2);
		assert_int_equal(m->addr, 0x1000);
		assert_int_equal(m->len, 0x2000);
		assert_int_equal(m->pgoff, 3);
	}
	if (r->fields == &mmap_1) {
		assert_string_equal(m->filename, "/a");
		assert_int_equal(m->prot, PROT_READ);
	} else if (r->fields == &mmap_2) {
		assert_string_equal(m->filename, "/lib");
		assert_int_equal(m->ino, 4711);
		assert_int_equal(m->maj, 8);
	} else if (r->fields == &mmap_id) {
		assert_string_equal(m->filename, "/bin/su");
		assert_int_equal(m->build_id_size, 20);
		assert_int_equal(m->prot, PROT_EXEC);
	}
}

static void assert_sample_id(const struct seam_perf_attr *attr,
			     const struct seam_perf_sample_id *got)
{
	if (seam_perf_sample_id_bytes(attr) == 0) {
		assert_int_equal(got->pid, -1);
		assert_int_equal(got->time, 0);
		return;
	}
	assert_int_equal(got->pid, id.pid);
	assert_int_equal(got->tid, id.tid);
	assert_true(got->time == id.time);
	assert_int_equal(got->id, id.id);
	assert_int_equal(got->cpu, id.cpu);
	if (attr->sample_type & PERF_SAMPLE_STREAM_ID)
		assert_int_equal(got->stream_id, id.stream_id);
}

UNIT_TEST(reads_what_it_wrote_in_either_byte_order)
{
	for (size_t a = 0; a < SEAM_ARRAY_SIZE(attrs); a++)
		for (size_t i = 0; i < 2 * SEAM_ARRAY_SIZE(records); i++) {
			enum seam_endian endian = i % 2 ? SEAM_BIG :
							  SEAM_LITTLE;
			const struct record *r = &records[i / 2];
			struct seam_perf_sideband got;
			struct seam_perf_record bytes =
				written(r, &attrs[a], endian);

			assert_int_equal(seam_perf_sideband_read(&attrs[a],
					 endian, &bytes, &got), 0);
			assert_fields(r, &got);
			assert_sample_id(&attrs[a], &got.sample_id);
			release(&bytes);
		}
}

/* An MMAP2 without its last bytes may be one of an older kernel, from 56 on. */
UNIT_TEST(refuses_a_record_cut_in_its_fields)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(records); i++) {
		struct seam_perf_record whole =
			written(&records[i], &attrs[2], SEAM_NATIVE);

		for (size_t n = 0; n + 8 <= whole.payload.size; n++) {
			uint8_t *cut = malloc(n ? n : 1);
			struct seam_perf_record record = whole;
			struct seam_perf_sideband got;

			memcpy(cut, whole.payload.data, n);
			record.payload = (struct seam_bytes) { cut, n };
			if (records[i].fields != &mmap_2 || n <= 56)
				assert_int_equal(seam_perf_sideband_read(
						 &attrs[2], SEAM_NATIVE,
						 &record, &got), -EBADMSG);
			free(cut);
		}
		release(&whole);
	}
}

UNIT_TEST(refuses_samples_and_records_of_the_tool)
{
	static const uint64_t words[16];
	struct seam_perf_record record = {
		.type = PERF_RECORD_SAMPLE,
		.payload = { (const uint8_t *)words, sizeof(words) },
	};
	struct seam_perf_sideband got;

	assert_int_equal(seam_perf_sideband_read(&attrs[0], SEAM_NATIVE,
						 &record, &got), -EBADMSG);
	record.type = SEAM_PERF_AUXTRACE;
	assert_int_equal(seam_perf_sideband_read(&attrs[0], SEAM_NATIVE,
						 &record, &got), -EBADMSG);
}

UNIT_TEST(writes_nothing_where_there_is_no_room)
{
	uint8_t buf[SEAM_PERF_SIDEBAND_MAX];
	size_t n = seam_perf_sideband_write(&attrs[0], SEAM_NATIVE,
			PERF_RECORD_COMM, 0, &comm, &id, buf, sizeof(buf));

	assert_int_equal(n, 8 + 16 + 32);	/* header, fields, trailer */
	for (size_t cap = 0; cap < n; cap++) {
		uint8_t *small = malloc(cap ? cap : 1);

		assert_int_equal(seam_perf_sideband_write(&attrs[0],
				 SEAM_NATIVE, PERF_RECORD_COMM, 0, &comm, &id,
				 small, cap), 0);
		free(small);
	}
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
