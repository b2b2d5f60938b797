/* SPDX-License-Identifier: MIT */
/* doctor.c - 'seam doctor': what can be recorded, and what would enable more */
#include "cli/command.h"

#include "base/json.h"
#include "record/doctor.h"
#include "record/events/event.h"

#include <sys/utsname.h>
#include <unistd.h>

enum { WIDTH = 80 };

struct doctor_options {
	bool json;
};

static const struct seam_option options[] = {
	SEAM_OPTION(struct doctor_options, json, SEAM_OPTION_FLAG, 0, "json",
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

static void json_events(struct seam_json *j)
{
	seam_json_open(j, "events", '[');
	for (size_t i = 0; seam_event_name(i); i++) {
		seam_json_open(j, NULL, '{');
		seam_json_string(j, "name", seam_event_name(i));
		seam_json_string(j, "kind", seam_event_kind(i));
		seam_json_bool(j, "available", seam_doctor_event(i));
		seam_json_close(j);
	}
	seam_json_close(j);
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
	json_events(&j);
	seam_json_close(&j);
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct doctor_options o = { 0 };
	struct seam_doctor anything;
	int first;
	int r = seam_command_parse(self, argc, argv, &o, &first);

	if (r != 0)
		return r < 0 ? SEAM_EXIT_USAGE : SEAM_EXIT_DONE;
	if (first < argc)
		return seam_command_misused(self, "takes no operand");
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
	.synopsis = "[--json]",
	.description =
		"Tests each thing that a recording may need, and names the "
		"sysctl, the capability or the kernel that would enable what "
		"does not work.\n\n"
		"The exit status is 1 if nothing can be recorded.",
	.examples = "seam doctor\twhat works here\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.run = run,
};
