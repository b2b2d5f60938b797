/* SPDX-License-Identifier: MIT */
/* doctor.c - 'seam doctor': what can be recorded, and what would enable more */
#include "cli/command.h"

#include "base/json.h"
#include "base/text.h"
#include "record/doctor.h"
#include "record/events/event.h"

#include <inttypes.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { WIDTH = 80 };

struct doctor_options {
	bool json;
};

static const struct seam_option options[] = {
	SEAM_OPTION(struct doctor_options, json, FLAG, 0, "json",
		    NULL, "print JSON (schema seam.doctor/1)"),
};

static void print_probe(const struct seam_doctor *p)
{
	const char *verdict = seam_verdict_name(p->verdict);

	if (p->found[0])
		printf("%-7s  %-32s  %s\n", verdict, p->title, p->found);
	else
		printf("%-7s  %s\n", verdict, p->title);
	if (p->remedy[0])
		printf("         needs %s\n", p->remedy);
}

/* The events of one kind that open here, on as many lines as they take. */
static void print_events(const char *kind)
{
	int column = printf("\n%s events:", kind);
	size_t n = 0;

	for (size_t i = 0; seam_event_name(i); i++) {
		const char *name = seam_event_name(i);

		if (strcmp(seam_event_kind(i), kind) != 0 ||
		    !seam_doctor_event(i))
			continue;
		if (column + 1 + (int)strlen(name) > WIDTH)
			column = printf("\n ") - 1;
		column += printf(" %s", name);
		n++;
	}
	printf("%s\n", n ? "" : " none");
}

static void print_text(void)
{
	static const char *const kinds[] = { "software", "hardware", "cache" };
	struct seam_doctor p;
	struct utsname host;

	if (uname(&host) == 0)
		printf("Linux %s on %s, user %u\n\n", host.release,
		       host.machine, geteuid());
	for (size_t i = 0; i < seam_doctor_count(); i++) {
		seam_doctor_run(i, &p);
		print_probe(&p);
	}
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(kinds); i++)
		print_events(kinds[i]);
}

static void print_json(void)
{
	struct seam_json j = seam_json_make(stdout, true);
	struct utsname host = { 0 };
	struct seam_doctor p;

	uname(&host);
	seam_json_open(&j, NULL, '{');
	seam_json_string(&j, "schema", "seam.doctor/1");
	seam_json_string(&j, "release", host.release);
	seam_json_string(&j, "arch", host.machine);
	seam_json_u64(&j, "uid", geteuid());
	seam_json_open(&j, "checks", '[');
	for (size_t i = 0; i < seam_doctor_count(); i++) {
		seam_doctor_run(i, &p);
		seam_json_open(&j, NULL, '{');
		seam_json_string(&j, "check", p.key);
		seam_json_string(&j, "verdict", seam_verdict_name(p.verdict));
		seam_json_string(&j, "found", p.found);
		seam_json_string(&j, "needs", p.remedy);
		seam_json_close(&j);
	}
	seam_json_close(&j);
	seam_json_open(&j, "events", '[');
	for (size_t i = 0; seam_event_name(i); i++) {
		seam_json_open(&j, NULL, '{');
		seam_json_string(&j, "name", seam_event_name(i));
		seam_json_string(&j, "kind", seam_event_kind(i));
		seam_json_bool(&j, "available", seam_doctor_event(i));
		seam_json_close(&j);
	}
	seam_json_close(&j);
	seam_json_close(&j);
}

static void print_program(const struct seam_doctor_program *p)
{
	if (p->script[0]) {
		seam_text_put(stdout, p->script, SEAM_TEXT_TERMINAL);
		printf(", a script of ");
	}
	seam_text_put(stdout, p->path, SEAM_TEXT_TERMINAL);
	printf("%s\n", p->is_go ? " (Go)" : p->is_jvm ? " (JVM)" : "");
	if (p->cfi_bytes)
		printf("  call frame information  %.1f KiB, %" PRIu64
		       " functions\n", (double)p->cfi_bytes / 1024,
		       p->n_functions);
	else
		printf("  call frame information  none\n");
	if (p->frame_pointer_percent >= 0)
		printf("  frame pointers          in %d %% of its functions\n",
		       p->frame_pointer_percent);
	else
		printf("  frame pointers          %s\n",
		       p->is_go ? "in all Go code" : "not known");
	printf("  stacks                  %s: %s\n",
	       p->needs == SEAM_CALL_GRAPH_AUTO ?
	       "--call-graph auto (the default)" : "nothing unwinds it",
	       p->why);
	if (p->cost[0])
		printf("  cost                    %s\n", p->cost);
}

static void json_program(struct seam_json *j,
			 const struct seam_doctor_program *p)
{
	seam_json_open(j, NULL, '{');
	seam_json_string(j, "path", p->path);
	if (p->script[0])
		seam_json_string(j, "script", p->script);
	seam_json_u64(j, "cfi_bytes", p->cfi_bytes);
	seam_json_u64(j, "functions", p->n_functions);
	seam_json_i64(j, "frame_pointer_percent", p->frame_pointer_percent);
	seam_json_bool(j, "go", p->is_go);
	seam_json_bool(j, "jvm", p->is_jvm);
	seam_json_string(j, "call_graph", p->needs == SEAM_CALL_GRAPH_AUTO ?
			 "auto" : "none");
	seam_json_string(j, "why", p->why);
	seam_json_string(j, "cost", p->cost);
	seam_json_close(j);
}

/* The programs that are named.  The exit status. */
static int report_programs(char **names, bool as_json)
{
	struct seam_json j = seam_json_make(stdout, true);
	int status = SEAM_EXIT_DONE;

	if (as_json) {
		seam_json_open(&j, NULL, '{');
		seam_json_string(&j, "schema", "seam.doctor/1");
		seam_json_open(&j, "programs", '[');
	}
	for (; *names; names++) {
		struct seam_doctor_program p;
		struct seam_err err = { 0 };

		if (seam_doctor_program(&p, *names, &err) < 0) {
			seam_command_failed(&err);
			status = SEAM_EXIT_FAILED;
		} else if (as_json) {
			json_program(&j, &p);
		} else {
			print_program(&p);
		}
	}
	if (as_json) {
		seam_json_close(&j);
		seam_json_close(&j);
	}
	return status;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct doctor_options o = { 0 };
	struct seam_doctor anything;
	int first;
	int status = seam_command_parse(self, argc, argv, &o, &first);

	if (status)
		return status;
	if (first < argc)
		return report_programs(argv + first, o.json);
	if (o.json)
		print_json();
	else
		print_text();
	seam_doctor_run(0, &anything);
	return anything.verdict == SEAM_VERDICT_NO ? SEAM_EXIT_FAILED :
	       SEAM_EXIT_DONE;
}

const struct seam_command seam_doctor_command = {
	.name = "doctor",
	.summary = "show what this machine and this user can record",
	.synopsis = "[--json] [PROGRAM...]",
	.description =
		"Tests each thing that a recording may need, and names the "
		"sysctl, the capability or the kernel that would enable what "
		"does not work.\n\n"
		"With PROGRAM, a path or a name in PATH, it looks at that "
		"program or library, or at the interpreter of a script: "
		"whether it has call frame information and frame pointers, "
		"whether it is a Go program or a JVM, and by which "
		"--call-graph of 'seam record' its stacks are complete.\n\n"
		"The exit status is 1 if nothing can be recorded, or if a "
		"PROGRAM cannot be read.",
	.examples = "seam doctor\twhat works here\n"
		"seam doctor python3 ./server\thow to record their stacks\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.run = run,
};
