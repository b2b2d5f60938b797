/* SPDX-License-Identifier: MIT */
/*
 * test_jit_memory.c - every allocation of inject and annotate fails once
 *
 * A recording of a process with a dump of one function is annotated, and its
 * code made into a file.  Each time there is an answer or -ENOMEM.
 */

#include "../unit.h"
#include "cli/output_folder.h"
#include "export/inject/inject.h"
#include "folder.h"
#include "model/annotate/annotation.h"
#include "model/input.h"
#include "model/load.h"
#include "model/perf/load_perf.h"
#include "no_memory.h"
#include "perf_bytes.h"

enum { PID = 7 };

static char recording[96], dump[96];

static void write_bytes(const char *path, const struct bytes *b)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_int_equal(fwrite(b->data, 1, b->size, out), b->size);
	assert_int_equal(fclose(out), 0);
}

/* Source: wire/jit/jitdump.h, its tables. */
static void write_dump(void)
{
	struct bytes b = { .endian = SEAM_LITTLE };
	const uint32_t header[] = { 0x4a695444, 1, 40, 62, 0, PID };
	const uint32_t load[] = { 0, 16 + 40 + 2 + 3 };
	const uint64_t place[] = { 0x5000, 0x5000, 3, 1 };

	put(&b, header, sizeof(header));
	put_u64(&b, 1);
	put_u64(&b, 0);
	put(&b, load, sizeof(load));
	put_u64(&b, 30);
	put_u32(&b, PID);
	put_u32(&b, PID);
	put(&b, place, sizeof(place));
	put(&b, "f\0\x31\xc0\xc3", 5);
	write_bytes(dump, &b);
	free(b.data);
}

static int enter(void **state)
{
	const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_USER, 0x5002 };
	struct bytes b = { .endian = SEAM_LITTLE }, file;

	if (make_folder(state))
		return -1;
	snprintf(recording, sizeof(recording), "%s/perf.data", folder);
	snprintf(dump, sizeof(dump), "%s/jit-%d.dump", folder, PID);
	put_comm(&b, PID, PID, "x", true, 10);
	put_mmap2(&b, PID, 0x9000, 0x1000, 0, "/gone/jit-7.dump", 20);
	put_mmap2(&b, PID, 0x5000, 0x1000, 0, "//anon", 21);
	for (uint64_t i = 0; i < 4; i++)
		put_sample(&b, TEST_ID_1, PID, PID, 40 + i, chain, 2);
	file = make_file(&b);
	write_bytes(recording, &file);
	write_dump();
	free(b.data);
	free(file.data);
	return 0;
}

static int annotate_once(size_t *n_instructions)
{
	struct seam_load_options load = { .symbols.no_lines = true };
	struct seam_annotation_options how = { .symbol = "f" };
	struct seam_profile profile;
	struct seam_selection selection;
	struct seam_selected selected = { 0 };
	struct seam_annotation annotation = { 0 };
	int r = seam_profile_init(&profile);

	seam_selection_init(&selection);
	if (r == 0)
		r = seam_load(&profile, recording, &load, NULL);
	if (r == 0)
		r = seam_selected_init(&selected, &profile, &selection, NULL);
	if (r == 0) {
		r = seam_annotate(&annotation, &selected, &how, NULL);
		if (r == 0 && annotation.bodies.n)
			*n_instructions =
				annotation.bodies.items[0].instructions.n;
		seam_annotation_fini(&annotation);
		seam_selected_fini(&selected);
	}
	seam_profile_fini(&profile);
	return r;
}

static int create(void *context, const char *name, struct seam_err *err)
{
	return seam_output_folder_create(context, name, err);
}

static int inject_once(size_t *n_functions)
{
	struct seam_profile profile;
	struct seam_output_folder out;
	struct seam_inject_code code = {
		.profile = &profile, .create = create, .context = &out,
	};
	struct seam_input opened = { 0 };
	struct seam_perf_input input = {
		.data = &opened.data, .jit.recording = recording,
	};
	char path[4200];
	int r;

	snprintf(path, sizeof(path), "%s/out", folder);
	assert_int_equal(seam_output_folder_begin(&out, path, NULL), 0);
	r = seam_profile_init(&profile);
	if (r == 0)
		r = seam_input_open(&opened, recording, NULL);
	if (r == 0)
		r = seam_load_perf(&profile, &input, NULL, NULL);
	if (r == 0)
		r = seam_inject_code_make(&code, path, NULL);
	*n_functions = code.functions.n;
	seam_inject_code_fini(&code);
	seam_input_close(&opened);
	seam_profile_fini(&profile);
	/* All of it goes, whatever came of it. */
	seam_output_folder_undo(&out);
	assert_int_equal(access(path, F_OK), -1);
	return r;
}

/* @once, with the n-th allocation failing, until there are fewer. */
static void sweep(int (*once)(size_t *), size_t want)
{
	size_t n_made = 0;
	long n = 0;
	int r;

	do {
		until_failure = ++n;
		r = once(&n_made);
		assert_true(r == 0 || r == -ENOMEM);
	} while (until_failure <= 0);
	until_failure = 0;
	assert_int_equal(r, 0);
	assert_int_equal(n_made, want);
	assert_true(n > 20);
}

UNIT_TEST(any_allocation_of_annotate_may_fail)
{
	sweep(annotate_once, 2);
}

UNIT_TEST(any_allocation_of_inject_may_fail)
{
	sweep(inject_once, 1);
}

int main(void)
{
	return unit_run(enter, drop_folder, NULL, NULL);
}
