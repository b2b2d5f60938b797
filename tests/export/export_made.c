/* SPDX-License-Identifier: MIT */
/*
 * export_made NAME DIR - a profile made up, in every format, for exports.py
 *
 * DIR gets a file for each format, and as the reference, for each event, folded
 * stacks by thread: N.samples and N.weights, whose events are lines of
 * events.txt as JSON.
 */
#include <err.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/text.h"
#include "export/exporter.h"
#include "profiles_made.h"

/* -- files ---------------------------------------------------------------- */

static FILE *create(const char *name)
{
	FILE *out = fopen(name, "w");

	if (!out)
		err(1, "%s", name);
	return out;
}

__attribute__((format(printf, 1, 2)))
static void ignore_line(const char *fmt, ...)
{
	(void)fmt;
}

static void write_as(const struct seam_profile *p, const char *format,
		     const char *file, uint32_t event, bool by_weight)
{
	const struct seam_exporter *exporter = seam_exporter_find(format);
	struct seam_selection selection;
	struct seam_selected selected;
	struct seam_err why = { 0 };
	FILE *out = create(file);

	seam_selection_init(&selection);
	if (seam_selected_init(&selected, p, &selection, &why))
		errx(1, "%s", why.cause[0]);
	selected.event = event;
	if (exporter->write(&(struct seam_export) {
			.out = out, .selected = &selected,
			.group = SEAM_GROUP_THREAD, .by_weight = by_weight,
			.say = ignore_line }, &why))
		errx(1, "%s: %s", format, why.cause[0]);
	if (fclose(out))
		err(1, "%s", file);
	seam_selected_fini(&selected);
}

static void write_all(const struct seam_profile *p)
{
	static const char *const formats[] = {
		"pprof", "firefox", "speedscope", "perfetto", "page",
	};
	FILE *events = create("events.txt");
	char name[32];

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(formats); i++)
		write_as(p, formats[i], formats[i], SEAM_NONE, false);
	for (uint32_t i = 0; i < p->events.n; i++) {
		fputc('"', events);
		seam_text_put(events, seam_profile_text(p,
				p->events.items[i].name), SEAM_TEXT_JSON);
		fputs("\"\n", events);
		snprintf(name, sizeof(name), "%" PRIu32 ".samples", i);
		write_as(p, "folded", name, i, false);
		snprintf(name, sizeof(name), "%" PRIu32 ".weights", i);
		write_as(p, "folded", name, i, true);
	}
	fclose(events);
}

int main(int argc, char **argv)
{
	struct seam_profile p;

	if (argc != 3 || chdir(argv[2]))
		err(1, "export_made NAME DIR");
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(made_profiles); i++) {
		if (strcmp(made_profiles[i].name, argv[1]) != 0)
			continue;
		p = made_profile(i);
		write_all(&p);
		seam_profile_fini(&p);
		return 0;
	}
	errx(1, "no profile '%s'", argv[1]);
}
