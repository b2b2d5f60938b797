/* SPDX-License-Identifier: MIT */
/* test_err.c - the promises of err.h */
#include "base/err.h"

#include "unit.h"

UNIT_TEST(prints_newest_context_first)
{
	struct seam_err err = { 0 };
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(seam_err_set(&err, -EBADMSG, "size %d", 99), -EBADMSG);
	assert_int_equal(seam_err_add(&err, -EBADMSG, "record 4"), -EBADMSG);
	seam_err_print(out, "seam", &err);
	fclose(out);
	assert_string_equal(text,
			    "seam: record 4\n  caused by: size 99\n");
	free(text);
}

UNIT_TEST(keeps_the_root_cause_when_full)
{
	struct seam_err err = { 0 };

	seam_err_set(&err, -EIO, "root");
	for (int i = 0; i < 20; i++)
		seam_err_add(&err, -EIO, "context %d", i);
	assert_int_equal(err.n_causes, SEAM_ERR_CAUSES);
	assert_string_equal(err.cause[0], "root");
	assert_string_equal(err.cause[SEAM_ERR_CAUSES - 1], "context 19");
}

UNIT_TEST(cuts_long_text)
{
	struct seam_err err = { 0 };
	char big[2 * SEAM_ERR_TEXT];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	seam_err_set(&err, -EIO, "%s", big);
	assert_int_equal(strlen(err.cause[0]), SEAM_ERR_TEXT - 1);
}

UNIT_TEST(takes_the_reason_from_errno)
{
	struct seam_err err = { 0 };

	errno = ENOENT;
	assert_int_equal(seam_err_errno(&err, "cannot open '%s'", "a"),
			 -ENOENT);
	assert_string_equal(err.cause[0],
			    "cannot open 'a': No such file or directory");
	/* A failure that set none is still one. */
	errno = 0;
	assert_int_equal(seam_err_errno(&err, "x"), -EIO);
	errno = EPERM;
	assert_int_equal(seam_err_errno(NULL, "x"), -EPERM);
	assert_int_equal(seam_err_no_memory(&err), -ENOMEM);
	assert_string_equal(err.cause[0], "out of memory");
}

UNIT_TEST(makes_one_line_of_all_causes)
{
	struct seam_err err = { 0 };
	char text[SEAM_ERR_TEXT] = "before";

	seam_err_text(&err, text);
	assert_string_equal(text, "");
	seam_err_set(&err, -EIO, "root");
	seam_err_add(&err, -EIO, "context");
	seam_err_text(&err, text);
	assert_string_equal(text, "context: root");
}

UNIT_TEST(accepts_no_error_object)
{
	assert_int_equal(seam_err_set(NULL, -ENOMEM, "x"), -ENOMEM);
	assert_int_equal(seam_err_add(NULL, -ENOMEM, "x"), -ENOMEM);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
