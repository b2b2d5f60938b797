/* SPDX-License-Identifier: MIT */
/* view.c - 'seam view': a recording as a page for a browser */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/fleet_query.h"
#include "cli/page_server.h"
#include "cli/reading.h"
#include "export/page/page.h"
#include "model/input.h"

struct view_options {
	struct seam_reading reading;
	struct seam_fleet_options fleet;
	const char *output;
	bool no_browser;
	bool source;
	bool no_code;
	uint64_t max_rows;
};

#define OPTION(...) SEAM_OPTION(struct view_options, __VA_ARGS__)

static const struct seam_option options[] = {
	OPTION(output, STRING, 'o', "output", "FILE",
	       "write the page, - for standard output",
	       .detail = "Without it the page is served on 127.0.0.1, under a "
	       "random path, until Ctrl-C."),
	OPTION(no_browser, FLAG, 0, "no-browser", NULL,
	       "do not open a browser, only print the URL"),
	OPTION(source, FLAG, 0, "source", NULL,
	       "put source files that have samples into the page",
	       .detail = "Files of at most 2 MiB, 32 MiB of all, that are "
	       "named as sources of a programming language. They are in the page as "
	       "they are now: look at whom it is for before it is sent."),
	OPTION(no_code, FLAG, 0, "no-code", NULL,
	       "leave machine code out",
	       .detail = "Else the page has the instructions of the 40 "
	       "functions with the most samples in themselves."),
	OPTION(max_rows, U64, 0, "max-rows", "N",
	       "at most N samples and N calls in the page (2000000)",
	       .least = 100,
	       .detail = "Of larger recordings samples of one stack that are "
	       "near each other are added up, and the shortest calls are left "
	       "out of the time line; no sum changes, and the page says so. A "
	       "browser needs about 100 bytes a row."),
	SEAM_INPUT_OPTION(struct view_options, reading),
	SEAM_READING_OPTIONS(struct view_options, reading),
	SEAM_FLEET_OPTIONS(struct view_options, fleet),
};

static const struct seam_exporter page_exporter = {
	"page", SEAM_NEEDS_PROFILE, seam_write_page, false,
};

/* A recording that is open, and what its page needs beside its profile. */
struct viewed {
	struct seam_opened opened;
	struct seam_manifest manifest;
	struct seam_symbols_options symbols;
	struct seam_profile wait_threads;
	struct seam_waits waits;
};

static int read_source(void *context, const char *path, struct seam_file *file)
{
	const struct view_options *o = context;

	return seam_reading_source(&o->reading.symfs, path, file);
}

/* Open FILE number @i: the exit status. */
static int open_one(struct viewed *v, const struct seam_command *self,
		    const struct view_options *o, char **argv, int first,
		    int end)
{
	struct seam_err unused = { 0 };
	const char *bundle;
	int status = seam_reading_open(&v->opened, self, &o->reading, end,
				       argv, first);

	if (status)
		return status;
	v->symbols = seam_reading_load_options(&o->reading).symbols;
	v->symbols.no_inline = v->symbols.no_lines = false;
	if (!v->opened.profile.bundle)
		return SEAM_EXIT_DONE;
	bundle = seam_profile_text(&v->opened.profile,
				   v->opened.profile.bundle);
	v->symbols.bundle = bundle;
	/* a manifest that cannot be read is a note of the profile */
	seam_input_manifest(&v->manifest, bundle, &unused);
	/* what cannot be read is a note too */
	if (v->opened.profile.clock_skew_ns &&
	    v->opened.profile.thread_times.n &&
	    seam_profile_init(&v->wait_threads) == 0)
		seam_load_waits(&v->wait_threads, v->opened.path, &v->waits,
				&unused);
	return SEAM_EXIT_DONE;
}

static void add_part(struct seam_page *page, const struct viewed *v,
		     struct view_options *o)
{
	page->parts[page->n_parts++] = (struct seam_page_part) {
		.selected = &v->opened.selected,
		.file = seam_command_named(v->opened.path),
		.manifest = &v->manifest,
		.wait_threads = &v->wait_threads, .waits = &v->waits,
		.symbols = o->no_code ? NULL : &v->symbols,
		.source = o->source ? read_source : NULL, .context = o,
	};
}

/* Write the page to @path; losses of a second recording are in the page. */
static int write_page(const struct viewed *v, const struct seam_page *page,
		      const char *path)
{
	struct seam_export export = {
		.picture = page, .say = seam_command_say,
	};

	return seam_reading_export(&v->opened, path, &page_exporter, &export);
}

/* A page that is in memory only, until the user ends the server. */
static int serve_page(const struct viewed *v, const struct seam_page *page,
		      const struct view_options *o)
{
	int fd = memfd_create("seam-view", MFD_CLOEXEC);
	struct seam_err err = { 0 };
	int status = SEAM_EXIT_FAILED;
	struct stat st = { 0 };
	char path[40];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd >= 0)
		status = write_page(v, page, path);
	if (fd < 0 || fstat(fd, &st))
		r = seam_err_set(&err, -errno, "%s", strerror(errno));
	else if (status != SEAM_EXIT_FAILED)
		r = seam_page_serve(fd, (uint64_t)st.st_size, !o->no_browser,
				    &err);
	if (fd >= 0)
		close(fd);
	if (r) {
		seam_err_add(&err, r, "cannot serve the page");
		return seam_command_failed(&err);
	}
	return status == SEAM_EXIT_FAILED ? status : SEAM_EXIT_DONE;
}

/* The answer of a store as the recording, as by -i. */
static int query_fleet(const struct seam_command *self, struct view_options *o,
		       int n)
{
	const struct seam_fleet_options *fleet = &o->fleet;
	bool selects = fleet->service || fleet->host || fleet->since ||
		       fleet->labels.n;

	if (!fleet->from)
		return !selects ? SEAM_EXIT_DONE :
		       seam_command_misused(self, "--service, --host, --label "
					    "and --since select from the "
					    "store of --from");
	if (n || o->reading.input)
		return seam_command_misused(self, "--from and FILE cannot be "
					    "combined");
	return seam_fleet_query_open(self, fleet, ~0u, false,
				     &o->reading.input);
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct view_options o = { .max_rows = SEAM_PAGE_ROWS };
	struct viewed viewed[SEAM_PAGE_PARTS] = { 0 };
	struct seam_page page = { .n_parts = 0 };
	int first, n, status = seam_command_parse(self, argc, argv, &o, &first);

	if (status)
		return status;
	page.max_rows = o.max_rows;
	n = argc - first;
	if (n > SEAM_PAGE_PARTS)
		return seam_command_misused(self, "one recording, or two to be "
					    "compared; not also '%s'",
					    argv[first + SEAM_PAGE_PARTS]);
	status = query_fleet(self, &o, n);
	for (int i = 0; i < (n ? n : 1) && status == SEAM_EXIT_DONE; i++) {
		status = open_one(&viewed[i], self, &o, argv, first + i,
				  n ? first + i + 1 : first);
		add_part(&page, &viewed[i], &o);
	}
	if (status == SEAM_EXIT_DONE)
		status = o.output ? write_page(&viewed[0], &page, o.output) :
			 serve_page(&viewed[0], &page, &o);
	for (size_t i = 0; i < page.n_parts; i++) {
		seam_manifest_fini(&viewed[i].manifest);
		seam_profile_fini(&viewed[i].wait_threads);
		free(viewed[i].waits.items.items);
		seam_reading_close(&viewed[i].opened);
	}
	return status;
}

const struct seam_command seam_view_command = {
	.name = "view",
	.summary = "look at a recording in a browser",
	.synopsis = "[options] [FILE [FILE]]",
	.description =
		"Makes one HTML page of a recording: a time line of threads "
		"and CPUs, flame graph, callers and callees, tables, source "
		"and machine code, histograms of calls, all of one selection. "
		"With two recordings the page compares them.\n\n"
		"Without -o the page is served to this machine's browser, "
		"which is opened: on 127.0.0.1, under a path of 128 random "
		"bits, which is also printed. Requests with another path, host "
		"or method are refused. Ctrl-C ends the server, with exit "
		"status 0. With -o the page is a file that needs no network "
		"and no other file, and can be sent to others.",
	.examples =
		"seam view\tthe last recording, in a browser\n"
		"seam view --source -o app.html app.seam\t"
		"a page for a colleague\n"
		"seam view --time 2s,3s -o part.html\t"
		"one second of it, in every detail\n"
		"seam view before.seam after.seam\ta comparison\n"
		"seam view --from /srv/profiles --service web --since 1h\t"
		"profiles of a fleet\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.reads = true,
	.run = run,
};
