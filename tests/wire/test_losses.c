/* SPDX-License-Identifier: MIT */
/* test_losses.c - no kind of loss is forgotten on its way to the reader */
#include "wire/losses.h"

#include "wire/manifest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { N_COUNTS = offsetof(struct seam_losses, refusal) / sizeof(uint64_t) };

static uint64_t *count_at(struct seam_losses *losses, size_t i)
{
	return (uint64_t *)losses + i;
}

/* More about another count, and no loss by itself. */
static bool is_detail(const struct seam_losses *losses, const uint64_t *count)
{
	return count == &losses->late_ns || count == &losses->cpu_ns ||
	       count == &losses->longest_late_ns || count == &losses->n_jit;
}

static size_t describe_all(const struct seam_losses *losses,
			   struct seam_losses_line *line)
{
	size_t n = 0;

	for (size_t i = 0; i < SEAM_LOSSES_N_KINDS; i++)
		n += seam_losses_describe(losses, i, line);
	return n;
}

static void each_count_has_a_line_or_is_records_lost(void **state)
{
	struct seam_losses_line line;

	(void)state;
	for (size_t i = 0; i < N_COUNTS; i++) {
		struct seam_losses losses = { 0 };

		*count_at(&losses, i) = 77;
		if (is_detail(&losses, count_at(&losses, i))) {
			assert_int_equal(describe_all(&losses, &line), 0);
			assert_false(seam_losses_any(&losses));
		} else if (describe_all(&losses, &line)) {
			assert_int_equal(describe_all(&losses, &line), 1);
			assert_int_equal(strncmp(line.text, "77 ", 3), 0);
			assert_int_equal(seam_losses_any(&losses),
					 line.cause != NULL);
		} else {
			assert_true(seam_losses_any(&losses));
		}
	}
}

static void each_count_is_read_back_from_a_manifest(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_COUNTS; i++) {
		struct seam_manifest m = { 0 }, again;
		char text[8192];
		ssize_t n;
		int fd = memfd_create("meta", MFD_CLOEXEC);

		*count_at(&m.losses, i) = 77;
		assert_int_equal(seam_manifest_write(fd, &m, NULL), 0);
		n = pread(fd, text, sizeof(text), 0);
		assert_true(n > 0);
		assert_int_equal(seam_manifest_read(&again,
				 (struct seam_bytes) { (uint8_t *)text,
				 (size_t)n }, NULL), 0);
		assert_memory_equal(&again.losses, &m.losses,
				    sizeof(m.losses));
		seam_manifest_fini(&again);
		close(fd);
	}
}

static void examples_are_named_where_they_are_known(void **state)
{
	struct seam_losses losses = { .n_stopped = 1, .stopped = "su" };
	struct seam_losses_line line;

	(void)state;
	assert_int_equal(describe_all(&losses, &line), 1);
	assert_non_null(strstr(line.text, "1 program ran"));
	assert_non_null(strstr(line.text, "('su' is one)"));
	losses.n_stopped = 2;
	losses.stopped[0] = '\0';
	assert_int_equal(describe_all(&losses, &line), 1);
	assert_non_null(strstr(line.text, "2 programs ran"));
	assert_null(strstr(line.text, "is one"));
}

static void the_longest_texts_fit(void **state)
{
	struct seam_losses losses;
	struct seam_losses_line line;

	(void)state;
	memset(&losses, 0xff, sizeof(losses));
	memset(losses.refusal, 'x', sizeof(losses.refusal) - 1);
	losses.refusal[sizeof(losses.refusal) - 1] = '\0';
	losses.stopped[sizeof(losses.stopped) - 1] = '\0';
	for (size_t i = 0; i < SEAM_LOSSES_N_KINDS; i++) {
		assert_true(seam_losses_describe(&losses, i, &line));
		assert_true(strlen(line.text) < sizeof(line.text) - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_count_has_a_line_or_is_records_lost),
		cmocka_unit_test(each_count_is_read_back_from_a_manifest),
		cmocka_unit_test(examples_are_named_where_they_are_known),
		cmocka_unit_test(the_longest_texts_fit),
	};

	return cmocka_run_group_tests_name("losses", tests, NULL, NULL);
}
