/* SPDX-License-Identifier: MIT */
/* err.c - error chains in fixed storage; the contract is in err.h */
#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

__attribute__((format(printf, 2, 0)))
static void push(struct seam_err *err, const char *fmt, va_list args)
{
	int slot = err->n_causes;

	if (slot == SEAM_ERR_CAUSES)
		slot--;
	else
		err->n_causes++;
	vsnprintf(err->cause[slot], SEAM_ERR_TEXT, fmt, args);
}

int seam_err_set(struct seam_err *err, int code, const char *fmt, ...)
{
	va_list args;

	assert(code < 0);
	if (!err)
		return code;

	err->code = code;
	err->n_causes = 0;
	va_start(args, fmt);
	push(err, fmt, args);
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

	assert(code < 0);
	if (!err)
		return code;

	err->code = code;
	va_start(args, fmt);
	push(err, fmt, args);
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
