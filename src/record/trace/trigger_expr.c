/* SPDX-License-Identifier: MIT */
/* trigger_expr.c - see trigger_expr.h */
#include "record/trace/trigger_expr.h"

#include <errno.h>
#include <signal.h>

#include "wire/xray/trigger_text.h"

static int refuse(struct seam_err *err, const char *text, const char *cause)
{
	return seam_err_set(err, -EINVAL, "'%s' is no trigger: %s", text,
			    cause);
}

int seam_trigger_expr_check(const char *text, struct seam_err *err)
{
	struct seam_trigger trigger;
	const char *cause = seam_trigger_parse(text, &trigger);

	if (cause)
		return refuse(err, text, cause);
	if (trigger.signal == SIGKILL || trigger.signal == SIGSTOP)
		return refuse(err, text, "no program receives this signal; a "
			      "killed program's calls are kept anyway");
	return 0;
}
