/* SPDX-License-Identifier: MIT */
/* test_counts.c - no count is forgotten on its way to the reader */
#include "wire/counts.h"

#include "wire/manifest.h"

#include "unit.h"

static size_t describe_all(const struct seam_counts *counts, char *line)
{
	size_t n = 0;

	for (size_t i = 0; i < SEAM_N_COUNTS; i++)
		n += seam_counts_describe(counts, i, line);
	return n;
}

UNIT_TEST(each_loss_has_words)
{
	char line[SEAM_COUNT_LINE], list[SEAM_COUNT_LINE];

	for (size_t i = 0; i < SEAM_N_COUNTS; i++) {
		const struct seam_count_row *row = &seam_count_rows[i];
		struct seam_counts counts = { 0 };

		counts.n[i] = 77;
		assert_non_null(row->key);
		assert_int_equal(seam_counts_any_lost(&counts),
				 row->cause != NULL);
		assert_true(!row->line || !row->part);
		assert_true(row->line || row->part || !row->cause);
		assert_int_equal(describe_all(&counts, line),
				 row->line != NULL);
		if (row->section) {
			seam_counts_list(&counts, row->section, list,
					 sizeof(list));
			assert_int_equal(list[0] != '\0', row->part != NULL);
		}
		if (row->line || row->part)
			assert_int_equal(strncmp(row->line ? line : list,
						 "77 ", 3), 0);
	}
}

UNIT_TEST(each_count_is_read_back_from_a_manifest)
{
	for (size_t i = 0; i < SEAM_N_COUNTS; i++) {
		struct seam_manifest m = { 0 }, again;
		char text[8192];
		ssize_t n;
		int fd = memfd_create("meta", MFD_CLOEXEC);

		m.counts.n[i] = 77;
		assert_int_equal(seam_manifest_write(fd, &m, NULL), 0);
		n = pread(fd, text, sizeof(text), 0);
		assert_true(n > 0);
		assert_int_equal(seam_manifest_read(&again,
				 (struct seam_bytes) { (uint8_t *)text,
				 (size_t)n }, NULL), 0);
		assert_memory_equal(&again.counts, &m.counts, sizeof(m.counts));
		seam_manifest_fini(&again);
		close(fd);
	}
}

UNIT_TEST(counts_of_a_section_are_a_list)
{
	struct seam_counts counts = { 0 };
	char list[200];

	seam_counts_list(&counts, "lost", list, sizeof(list));
	assert_string_equal(list, "");
	counts.n[SEAM_COUNT_PAUSED] = 2;
	counts.n[SEAM_COUNT_RING_FULL] = 5;
	counts.n[SEAM_COUNT_GUEST_LOST] = 7;
	seam_counts_list(&counts, "lost", list, sizeof(list));
	assert_string_equal(list, "5 because rings were full (larger ones: "
			    "-m), 2 while snapshots were copied");
	seam_counts_list(&counts, "lost", list, 10);
	assert_string_equal(list, "5 because");
}

UNIT_TEST(examples_are_named_where_they_are_known)
{
	struct seam_counts counts = {
		.n[SEAM_COUNT_PROGRAMS_STOPPED] = 1, .stopped = "su",
	};
	char line[SEAM_COUNT_LINE];

	assert_int_equal(describe_all(&counts, line), 1);
	assert_non_null(strstr(line, "1 program ran"));
	assert_non_null(strstr(line, "('su' is one)"));
	counts.n[SEAM_COUNT_PROGRAMS_STOPPED] = 2;
	counts.stopped[0] = '\0';
	assert_int_equal(describe_all(&counts, line), 1);
	assert_non_null(strstr(line, "2 programs ran"));
	assert_null(strstr(line, "is one"));
}

UNIT_TEST(the_longest_texts_fit)
{
	struct seam_counts counts;
	char line[SEAM_COUNT_LINE];

	memset(&counts, 0xff, sizeof(counts));
	memset(counts.refusal, 'x', sizeof(counts.refusal) - 1);
	counts.refusal[sizeof(counts.refusal) - 1] = '\0';
	counts.stopped[sizeof(counts.stopped) - 1] = '\0';
	for (size_t i = 0; i < SEAM_N_COUNTS; i++)
		if (seam_counts_describe(&counts, i, line))
			assert_true(strlen(line) < sizeof(line) - 1);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
