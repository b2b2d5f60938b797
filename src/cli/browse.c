/* SPDX-License-Identifier: MIT */
/* browse.c - keys until the end, code on request; see browse.h */
#include "cli/browse.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "report/annotate.h"
#include "report/summary.h"
#include "screen/browser.h"

struct browse {
	const struct seam_opened *opened;
	const struct seam_reading *reading;
};

static volatile sig_atomic_t must_end;

static void end_soon(int signal)
{
	(void)signal;
	must_end = 1;
}

/* The function's instructions as text of our own, or why there are none. */
static char *annotate(void *context, const struct seam_selected *selected,
		      const char *symbol)
{
	const struct browse *b = context;
	const struct seam_profile *p = &b->opened->profile;
	struct seam_annotation annotation = { 0 };
	struct seam_annotation_options how = {
		.symbol = symbol,
		.symbols = seam_reading_load_options(b->reading).symbols,
	};
	struct seam_report report = {
		.profile = p, .selected = selected,
		.path = seam_command_named(b->opened->path),
	};
	struct seam_annotate_view what = {
		.report = &report, .annotation = &annotation,
		.symbol = symbol, .no_source = true,
	};
	struct seam_err err = { 0 };
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct seam_view view = { .out = out };

	if (!out)
		return NULL;
	if (p->bundle)
		how.symbols.bundle = seam_profile_text(p, p->bundle);
	if (seam_annotate(&annotation, selected, &how, &err))
		fprintf(out, "%s", err.n_causes ? err.cause[0] : "no memory");
	else if (!annotation.bodies.n)
		fprintf(out, "no sample is in the function itself");
	else
		seam_annotate_text(&what, &view);
	fclose(out);
	seam_annotation_fini(&annotation);
	return text;
}

int seam_browse(const struct seam_opened *opened,
		const struct seam_reading *reading, struct seam_err *err)
{
	struct browse b = { opened, reading };
	const struct seam_browser_source source = { annotate, &b };
	struct sigaction action = { .sa_handler = end_soon };
	struct pollfd key = { STDIN_FILENO, POLLIN, 0 };
	const struct seam_profile *p = &opened->profile;
	struct seam_browser *browser;
	char line[512];

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return seam_err_set(err, -ENOTTY, "--tui needs a terminal, for "
				    "standard input and output");
	browser = seam_browser_open(seam_command_named(opened->path),
				    false, err);
	if (!browser)
		return -ENOTTY;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	seam_browser_set_source(browser, &source);
	seam_browser_show(browser, p,
			  seam_summary_line(&opened->selected,
					    seam_profile_n_samples(p), line,
					    sizeof(line)),
			  seam_profile_n_lost(p) > 0);
	while (!must_end && seam_browser_keys(browser) &&
	       !(key.revents & (POLLHUP | POLLERR)))
		/* a signal, or another size of the terminal */
		if (poll(&key, 1, -1) < 0)
			key.revents = 0;
	seam_browser_close(browser);
	return 0;
}
