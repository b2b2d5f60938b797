/* SPDX-License-Identifier: MIT */
/*
 * variants.c - each recording that a test loads is loaded in variants as well
 *
 * Linked with --wrap=seam_load_perf.  After each load of a test, the same file
 * is changed in ways that must change nothing of its samples, and loaded again:
 * a LOST or THROTTLE record of another thread before each record; each record a
 * second time, for another process; the records in two files; the file cut.
 * The samples of a cut file are those of a whole one of as many records.
 */
#include "variants.h"

#include "../perf_bytes.h"
#include "model/perf/load_perf.h"
#include "wire/perf/perf_stream.h"
#include "unit.h"

enum {
	OTHER = 10000000,	/* no pid of Linux is as large */
	N_LOST = 3,		/* in each LOST record */
	MAX_BYTES = 1 << 20,	/* a larger file has one cut */
};

int __real_seam_load_perf(struct seam_profile *, const struct seam_perf_input *,
			  struct seam_symbols *, struct seam_err *);
int __wrap_seam_load_perf(struct seam_profile *, const struct seam_perf_input *,
			  struct seam_symbols *, struct seam_err *);

bool variants_off;

/* A recording that a test loaded, and where its records begin. */
struct subject {
	const struct seam_perf_input *input;
	struct seam_symbols *symbols;
	const struct seam_profile *profile;	/* what the test sees */
	struct seam_perf_data data;
	SEAM_ARRAY(uint64_t) at;	/* of records; the last one: the end */
	size_t first;		/* of at: the first record of the kernel */
};

/* -- the samples of a profile, as text ---------------------------------- */

static void put_text(struct bytes *b, const char *format, ...)
{
	char text[1024];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	put(b, text, strlen(text));
}

static void put_sample_text(struct bytes *b, const struct seam_profile *p,
			    size_t i)
{
	const struct seam_samples *s = &p->samples;
	const struct seam_thread *t = &p->threads.items[s->thread[i]];
	const struct seam_process *process = &p->processes.items[t->process];

	put_text(b, "%llu-%llu %d/%d %s/%s: time %llu cpu %d event %d weight "
		 "%llu state %d", (unsigned long long)t->start_ns,
		 (unsigned long long)t->end_ns, process->pid, t->tid,
		 seam_profile_text(p, process->name),
		 seam_profile_text(p, seam_samples_comm(p, i)),
		 (unsigned long long)s->time_ns[i], s->cpu[i], s->event[i],
		 (unsigned long long)seam_samples_weight(s, i),
		 seam_samples_vmstate(s, i));
	for (uint32_t k = s->stack[i]; k; k = p->stacks.items[k].parent) {
		const struct seam_frame *f =
			&p->frames.items[p->stacks.items[k].frame];

		put_text(b, " %s+%llx", seam_profile_text(p,
			 p->functions.items[f->function].name),
			 (unsigned long long)f->addr);
	}
	put_text(b, "\n");
}

/* Of all samples but those of the processes that variants add. */
static struct bytes text_of(const struct seam_profile *p)
{
	struct bytes b = { 0 };

	for (size_t i = 0; i < p->samples.n; i++)
		if (p->processes.items[p->threads.items[p->samples.thread[i]]
		    .process].pid < OTHER)
			put_sample_text(&b, p, i);
	put(&b, "", 1);
	return b;
}

/* Takes both; fails with the first line that differs. */
static void compare(const char *variant, struct bytes want, struct bytes got)
{
	char *a = (char *)want.data, *b = (char *)got.data;

	while (strcmp(a, b) != 0) {
		size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");

		if (n == m && n && memcmp(a, b, n) == 0) {
			a += n + 1;
			b += m + 1;
			continue;
		}
		fail_msg("with %s:\n%.*s\ninstead of\n%.*s", variant, (int)m,
			 b, (int)n, a);
	}
	free(want.data);
	free(got.data);
}

/* -- loading a variant -------------------------------------------------- */

/* Takes @file.  The text of its samples; *@n_lost: what it says was lost. */
static struct bytes load(const struct subject *s, struct bytes file,
			 const struct seam_file *part, uint64_t *n_lost)
{
	struct seam_file data = { .bytes = exact(file.data, file.size) };
	struct seam_perf_input input = *s->input;
	struct seam_profile p;
	struct bytes text;

	input.data = &data;
	input.parts = part;
	input.n_parts = part != NULL;
	assert_int_equal(seam_profile_init(&p), 0);
	assert_int_equal(__real_seam_load_perf(&p, &input, s->symbols, NULL),
			 0);
	text = text_of(&p);
	*n_lost = seam_profile_n_lost(&p);
	seam_profile_fini(&p);
	free_exact(data.bytes);
	free(file.data);
	return text;
}

/* @s must have the same samples as @file, which is taken. */
static void check(const struct subject *s, const char *variant,
		  struct bytes file, const struct seam_file *part,
		  uint64_t n_more_lost)
{
	uint64_t n_lost;
	struct bytes text = load(s, file, part, &n_lost);

	compare(variant, text_of(s->profile), text);
	if (seam_profile_n_lost(s->profile) == 0)
		assert_int_equal(n_lost, n_more_lost);
}

/* -- making variants ---------------------------------------------------- */

/* The file of @s with the records of @data; the features are moved. */
static struct bytes with_data(const struct subject *s, struct bytes data)
{
	const struct seam_perf_data *d = &s->data;
	struct bytes b = { .endian = d->endian };
	uint64_t moved = data.size - (d->data_end - d->data_begin);
	uint64_t table = d->data_begin + data.size;

	put(&b, d->bytes.data, d->data_begin);
	put(&b, data.data, data.size);
	put(&b, d->bytes.data + d->data_end, d->bytes.size - d->data_end);
	free(data.data);
	if (d->is_pipe || d->is_cut)
		return b;
	set_n(&b, 48, data.size, 8);
	for (size_t i = 0; i < SEAM_PERF_N_FEATURES; i++) {
		struct seam_cursor c;

		if (!d->features[i].data)
			continue;
		c = seam_cursor_make(b.data + table, 8, b.endian);
		set_n(&b, table, seam_cursor_u64(&c) + moved, 8);
		table += 16;
	}
	return b;
}

/* The first event's id, for the trailers of records that are added. */
static void put_noise(const struct subject *s, struct bytes *b, uint32_t type)
{
	const struct seam_perf_event *event = &s->data.events.items[0];
	const struct seam_perf_sample_id sample_id = {
		.pid = OTHER, .tid = OTHER, .time = 1,
		.id = seam_perf_data_first_id(&s->data),
	};
	const struct seam_perf_lost lost = { sample_id.id, N_LOST };
	const uint64_t throttle[] = { 1, sample_id.id, sample_id.id };
	uint8_t record[256];
	size_t n = seam_perf_sideband_write(&event->attr, s->data.endian, type,
			0, type == PERF_RECORD_LOST ? (const void *)&lost :
			throttle, &sample_id, record, sizeof(record));

	assert_true(n > 0);
	put(b, record, n);
}

static uint32_t u32_at(const struct bytes *b, size_t pos)
{
	struct seam_cursor c = seam_cursor_make(b->data + pos, 4, b->endian);

	return seam_cursor_u32(&c);
}

/* The pid or tid at @pos is that of another process, but for the kernel's. */
static void make_other(struct bytes *b, size_t pos)
{
	int32_t pid = (int32_t)u32_at(b, pos);

	if (pid > 0)
		set_n(b, pos, (uint32_t)pid + OTHER, 4);
}

/* How many pids and tids a record of @type has; *@from: where they begin. */
static size_t ids_of(uint32_t type, uint64_t sample_type, size_t *from)
{
	*from = SEAM_PERF_HEADER_BYTES;
	switch (type) {
	case PERF_RECORD_SAMPLE:
		*from += 8 * (size_t)(!!(sample_type & PERF_SAMPLE_IDENTIFIER) +
				      !!(sample_type & PERF_SAMPLE_IP));
		return sample_type & PERF_SAMPLE_TID ? 2 : 0;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
		return 2;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return 4;
	}
	return 0;
}

/* Record @i once more, for another process. */
static void put_other(const struct subject *s, struct bytes *b, size_t i)
{
	uint64_t at = s->at.items[i], n = s->at.items[i + 1] - at;
	struct seam_bytes payload = { s->data.bytes.data + at + 8, n - 8 };
	const struct seam_perf_attr *attr = &s->data.events.items[0].attr;
	size_t to = b->size, from, n_ids;
	uint32_t type;

	put(b, s->data.bytes.data + at, n);
	type = u32_at(b, to);
	n_ids = ids_of(type, attr->sample_type, &from);
	for (size_t k = 0; k < n_ids; k++)
		make_other(b, to + from + 4 * k);
	if (n_ids && type != PERF_RECORD_SAMPLE) {
		attr = seam_perf_data_attr_of(&s->data, payload);
		from = n - seam_perf_sample_id_bytes(attr);
		if (from < n && attr->sample_type & PERF_SAMPLE_TID) {
			make_other(b, to + from);
			make_other(b, to + from + 4);
		}
	}
	/* not of a process, or of the kernel: not twice */
	if (n_ids == 0 || (int32_t)u32_at(b, to + from) < OTHER)
		b->size = to;
}

/* Copy the records [@from, @to) to the end of @b. */
static void put_records(const struct subject *s, struct bytes *b, size_t from,
			size_t to)
{
	uint64_t at = s->at.items[from];

	put(b, s->data.bytes.data + at, s->at.items[to] - at);
}

/* -- the variants ------------------------------------------------------- */

static void with_noise(const struct subject *s, uint32_t type)
{
	size_t n = s->at.n - 1;
	struct bytes b = { .endian = s->data.endian };

	put_records(s, &b, 0, s->first);
	for (size_t i = s->first; i < n; i++) {
		put_noise(s, &b, type);
		put_records(s, &b, i, i + 1);
	}
	check(s, type == PERF_RECORD_LOST ? "LOST records" :
	      "THROTTLE records", with_data(s, b), NULL,
	      type == PERF_RECORD_LOST ? N_LOST * (n - s->first) : 0);
}

/* Counters are those of one process. */
static bool has_counters(const struct subject *s)
{
	return s->data.events.items[0].attr.sample_type & PERF_SAMPLE_READ;
}

/* The records before @end, each of them for two processes. */
static struct bytes of_two_processes(const struct subject *s, size_t end)
{
	struct bytes b = { .endian = s->data.endian };

	put_records(s, &b, 0, s->first);
	for (size_t i = s->first; i < end; i++) {
		put_other(s, &b, i);
		put_records(s, &b, i, i + 1);
	}
	return b;
}

static void with_two_processes(const struct subject *s)
{
	if (!has_counters(s))
		check(s, "a second process",
		      with_data(s, of_two_processes(s, s->at.n - 1)), NULL, 0);
}

/*
 * As of a recording in one file a CPU: a folder.  The second process is in one
 * of them only, so that equal ids of the two do not mean the same.
 */
static void in_two_files(const struct subject *s, size_t cut)
{
	uint64_t at = s->at.items[cut], end = s->data.data_end;
	uint64_t has = s->data.events.items[0].attr.sample_type;
	struct seam_file part = {
		.bytes = exact(s->data.bytes.data + at, end - at),
	};

	/*
	 * Without times, the order is that of one file.  Without records, the
	 * size of the data is 0: that of a file whose writer was killed.
	 */
	if (!s->data.is_pipe && at > s->data.data_begin &&
	    has & PERF_SAMPLE_TIME && !has_counters(s))
		check(s, "its records in two files",
		      with_data(s, of_two_processes(s, cut)), &part, 0);
	free_exact(part.bytes);
}

/* The same without features, which are after the data. */
static void cut_at(const struct subject *s, size_t record, uint64_t n_more)
{
	struct bytes whole = { .endian = s->data.endian }, cut = whole;
	uint64_t end = s->at.items[record], n_lost;
	struct bytes want;

	put(&whole, s->data.bytes.data, end);
	put(&cut, s->data.bytes.data, end + n_more);
	if (!s->data.is_pipe) {
		set_n(&whole, 48, end - s->data.data_begin, 8);
		for (size_t i = 0; i < 4; i++)
			set_n(&whole, 72 + 8 * i, 0, 8);
	}
	want = load(s, whole, NULL, &n_lost);
	compare("a cut", want, load(s, cut, NULL, &n_lost));
}

/* -- every load of a test ----------------------------------------------- */

/* False: the records are not as they are in the file. */
static bool find_records(struct subject *s)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	int r;

	s->first = SIZE_MAX;
	seam_perf_stream_init(&stream, s->data.bytes, s->data.endian,
			      s->data.data_begin, s->data.data_end, true);
	while ((r = seam_perf_stream_next(&stream, &record, NULL)) > 0) {
		if (record.type < 64 && s->first == SIZE_MAX)
			s->first = s->at.n;
		if (record.type == SEAM_PERF_COMPRESSED ||
		    record.type == SEAM_PERF_COMPRESSED2 ||
		    !SEAM_ARRAY_ADD(&s->at, record.offset))
			r = -1;
		if (r < 0)
			break;
	}
	if (r == 0 && !SEAM_ARRAY_ADD(&s->at, stream.pos))
		r = -1;
	seam_perf_stream_fini(&stream);
	return r == 0 && s->first != SIZE_MAX;
}

static void try_all(const struct subject *s)
{
	size_t n = s->at.n - 1 - s->first;
	size_t n_cuts = s->data.bytes.size > MAX_BYTES ? 1 : 8;

	with_noise(s, PERF_RECORD_LOST);
	with_noise(s, PERF_RECORD_THROTTLE);
	with_two_processes(s);
	for (size_t i = 0; i < n_cuts; i++) {
		size_t record = s->first + n * (i + 1) / (n_cuts + 1);

		in_two_files(s, record);
		cut_at(s, record, i % 2 * 12);
	}
}

int __wrap_seam_load_perf(struct seam_profile *profile,
			  const struct seam_perf_input *input,
			  struct seam_symbols *symbols, struct seam_err *err)
{
	int r = __real_seam_load_perf(profile, input, symbols, err);
	struct subject s = {
		.input = input, .symbols = symbols, .profile = profile,
	};

	if (r || variants_off || !symbols || input->n_parts || input->by_record)
		return r;
	if (seam_perf_data_open(&s.data, input->data->bytes, NULL) == 0 &&
	    !s.data.is_cut && find_records(&s))
		try_all(&s);
	free(s.at.items);
	seam_perf_data_close(&s.data);
	return 0;
}
