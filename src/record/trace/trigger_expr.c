/* SPDX-License-Identifier: MIT */
/* trigger_expr.c - check, and write for the program; see trigger_expr.h */
#include "record/trace/trigger_expr.h"

#include "base/base.h"
#include "base/text.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

static int refuse(struct seam_err *err, const char *text, const char *cause)
{
	return seam_err_set(err, -EINVAL, "'%s' is no trigger: %s", text,
			    cause);
}

static bool is_time(const char *text)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 },
		{ "s", 1000000000 },
	};
	uint64_t n;
	const char *unit = seam_text_number(text, text + strlen(text), 10, &n);

	for (size_t i = 0; unit && i < SEAM_ARRAY_SIZE(units); i++)
		if (strcmp(unit, units[i].name) == 0)
			return !__builtin_mul_overflow(n, units[i].ns, &n);
	return false;
}

/* SEGV, SIGSEGV or 11. */
static bool is_signal(const char *name)
{
	uint64_t n;
	const char *end = seam_text_number(name, name + strlen(name), 10, &n);

	if (end)
		return !*end && n > 0 && n < NSIG;
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (int i = 1; i < NSIG; i++) {
		const char *known = sigabbrev_np(i);

		if (known && strcmp(known, name) == 0)
			return true;
	}
	return false;
}

/* The rest of @text after @prefix and a name; NULL: it is a name by itself. */
static const char *after(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);

	/* "calls::f" is f of the namespace "calls" */
	return strncmp(text, prefix, n) == 0 && text[n] != ':' ? text + n :
	       NULL;
}

static int check_signal(const char *text, const char *name,
			struct seam_err *err)
{
	if (!is_signal(name))
		return refuse(err, text, "there is no such signal");
	if (strcmp(name, "KILL") == 0 || strcmp(name, "STOP") == 0 ||
	    strcmp(name, "SIGKILL") == 0 || strcmp(name, "SIGSTOP") == 0 ||
	    strcmp(name, "9") == 0 || strcmp(name, "19") == 0)
		return refuse(err, text, "no program receives this signal; a "
			      "killed program's calls are kept anyway");
	return 0;
}

int seam_trigger_expr_check(const char *text, struct seam_err *err)
{
	const char *name, *limit;

	if ((name = after(text, "signal:")))
		return check_signal(text, name, err);
	if ((name = after(text, "calls:")))
		return *name ? 0 : refuse(err, text, "it has no function");
	limit = strrchr(text, '>');
	if (!limit)
		return refuse(err, text, "use FUNCTION>TIME, calls:FUNCTION "
			      "or signal:NAME");
	if (limit == text)
		return refuse(err, text, "it has no function");
	return is_time(limit + 1) ? 0 : refuse(err, text, "its time is not one "
					       "such as 10ms, 500us or 2s");
}

static void write_one(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == ',' || *text == ';')
			putc('\\', out);
		/* what the user has escaped stays so */
		if (*text == '\\' && text[1])
			putc(*text++, out);
		putc(*text, out);
	}
}

void seam_trigger_expr_write(FILE *out, const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			putc(',', out);
		write_one(out, texts[i]);
	}
}
