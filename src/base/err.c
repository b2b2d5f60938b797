/* SPDX-License-Identifier: MIT */
/* err.c - error chains in fixed storage; the contract is in err.h */
#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

__attribute__((format(printf, 3, 0)))
static void push(struct seam_err *err, int code, const char *fmt, va_list args)
{
	int last = SEAM_ERR_CAUSES - 1;

	assert(code < 0);
	if (!err)
		return;
	err->code = code;
	vsnprintf(err->cause[err->n_causes < last ? err->n_causes : last],
		  SEAM_ERR_TEXT, fmt, args);
	err->n_causes += err->n_causes < SEAM_ERR_CAUSES;
}

int seam_err_set(struct seam_err *err, int code, const char *fmt, ...)
{
	va_list args;

	if (err)
		err->n_causes = 0;
	va_start(args, fmt);
	push(err, code, fmt, args);
	va_end(args);
	return code;
}

int seam_err_errno(struct seam_err *err, const char *fmt, ...)
{
	int code = errno ? errno : EIO;
	char text[SEAM_ERR_TEXT];
	va_list args;

	if (!err)
		return -code;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return seam_err_set(err, -code, "%s: %s", text, strerror(code));
}

int seam_err_no_memory(struct seam_err *err)
{
	return seam_err_set(err, -ENOMEM, "out of memory");
}

int seam_err_add(struct seam_err *err, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	push(err, code, fmt, args);
	va_end(args);
	return code;
}

void seam_err_print(FILE *out, const char *prefix, const struct seam_err *err)
{
	fprintf(out, "%s: ", prefix);
	if (err->n_causes == 0)
		fprintf(out, "%s\n", strerror(-err->code));
	for (int i = err->n_causes - 1; i >= 0; i--)
		fprintf(out, "%s%s\n",
			i == err->n_causes - 1 ? "" : "  caused by: ",
			err->cause[i]);
}

void seam_err_text(const struct seam_err *err, char text[SEAM_ERR_TEXT])
{
	size_t pos = 0;

	text[0] = '\0';
	for (int i = err->n_causes - 1; i >= 0 && pos < SEAM_ERR_TEXT; i--)
		pos += (size_t)snprintf(text + pos, SEAM_ERR_TEXT - pos,
					"%s%s", pos ? ": " : "",
					err->cause[i]);
}
