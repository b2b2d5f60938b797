/* SPDX-License-Identifier: MIT */
/* Batches are built as those of an agent, from a profile of two events. */
#include "unit.h"

#include "fleet/spool_notes.h"
#include "wire/fleet/batch_file.h"

static struct seam_batch_loss found[16];
static char causes[16][64], sources[16][64];
static size_t n_found;
static struct seam_native_buffer out;

static int take(void *context, const struct seam_batch *batch,
		struct seam_err *err)
{
	for (size_t i = 0; i < batch->losses.n; i++) {
		found[n_found] = batch->losses.items[i];
		snprintf(causes[n_found], 64, "%s", seam_strings_get(
			 &batch->strings, found[n_found].cause));
		snprintf(sources[n_found], 64, "%s", seam_strings_get(
			 &batch->strings, found[n_found].source));
		n_found++;
	}
	out = (struct seam_native_buffer) { 0 };
	return seam_batch_file_write(batch, &out, err);
}

static struct seam_fleet_build *begin(void)
{
	struct seam_fleet_build *build;

	n_found = 0;
	assert_int_equal(seam_fleet_build_begin(&build,
		&(struct seam_fleet_source) { .service = "s", .host = "h" },
		(struct seam_batch_id) { 1, 2 }, take, NULL, NULL), 0);
	return build;
}

/* The losses of @note in a batch. */
static void add(struct seam_bytes note)
{
	struct seam_fleet_build *build = begin();

	assert_int_equal(seam_spool_note_add(build, UINT64_C(1) << 60, note,
					     NULL), 0);
	assert_int_equal(seam_fleet_build_flush(build, NULL), 0);
	seam_fleet_build_free(build);
	free((void *)(uintptr_t)note.data);
}

static uint64_t records(const char *cause, const char *source)
{
	for (size_t i = 0; i < n_found; i++)
		if (!strcmp(causes[i], cause) && !strcmp(sources[i], source))
			return found[i].records;
	return UINT64_MAX;
}

/* A batch of 3 + 4 samples of one event and 5 of another, and a loss. */
static struct seam_bytes made(void)
{
	struct seam_batch batch = { .id = { 1, 1 } };
	struct seam_native_buffer to = { 0 };
	uint32_t texts[] = {
		seam_strings_put(&batch.strings, "cpu-clock"),
		seam_strings_put(&batch.strings, "off-cpu"),
		seam_strings_put(&batch.strings, "ring full"),
	};

	batch.from_ns = UINT64_C(1) << 60;
	batch.to_ns = batch.from_ns + 1000;
	assert_int_equal(seam_batch_origin(&batch,
			&(struct seam_batch_origin) { 0 }), 0);
	for (uint64_t i = 3; i < 6; i++)
		assert_true(SEAM_ARRAY_ADD(&batch.samples,
			(struct seam_batch_sample) {
				.ts_ns = batch.from_ns, .count = i,
				.value = 1, .event = texts[i == 5],
				.tid = (int32_t)i }));
	assert_true(SEAM_ARRAY_ADD(&batch.losses, (struct seam_batch_loss) {
		.ts_ns = batch.from_ns, .records = 9, .cause = texts[2],
		.source = texts[0] }));
	assert_int_equal(seam_batch_file_write(&batch, &to, NULL), 0);
	seam_batch_fini(&batch);
	return (struct seam_bytes) { to.bytes.items, to.bytes.n };
}

UNIT_TEST(a_note_has_the_samples_of_each_event_and_the_losses_of_the_batch)
{
	struct seam_bytes file = made(), note;

	assert_int_equal(seam_spool_note_losses((char[]) { SEAM_SPOOL_FULL },
						file, &note), 0);
	add(note);
	assert_int_equal(n_found, 3);
	assert_int_equal(records(SEAM_SPOOL_FULL, "cpu-clock"), 7);
	assert_int_equal(records(SEAM_SPOOL_FULL, "off-cpu"), 5);
	assert_int_equal(records("ring full", "cpu-clock"), 9);
	/* a batch of losses that is dropped itself loses none of them */
	assert_int_equal(seam_spool_note_losses((char[]) { "again" },
		(struct seam_bytes) { out.bytes.items, out.bytes.n }, &note),
		0);
	free(out.bytes.items);
	add(note);
	free(out.bytes.items);
	assert_int_equal(n_found, 3);
	assert_int_equal(records(SEAM_SPOOL_FULL, "cpu-clock"), 7);
	free((void *)(uintptr_t)file.data);
}

UNIT_TEST(a_damaged_batch_or_note_is_one_loss)
{
	struct seam_bytes file = made(), note;

	assert_int_equal(seam_spool_note_losses((char[]) { SEAM_SPOOL_FULL },
		(struct seam_bytes) { file.data, file.size / 2 }, &note), 0);
	add(note);
	free(out.bytes.items);
	assert_int_equal(n_found, 1);
	assert_int_equal(records(SEAM_SPOOL_FULL, "unreadable batch"), 0);
	assert_int_equal(found[0].bytes, file.size / 2);
	free((void *)(uintptr_t)file.data);
	add((struct seam_bytes) { (uint8_t *)strdup("junk"), 4 });
	free(out.bytes.items);
	assert_int_equal(records(SEAM_SPOOL_FULL, "damaged note"), 0);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
