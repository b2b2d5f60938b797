/* SPDX-License-Identifier: MIT */
/* snapshot.c - 'seam snapshot': request a snapshot from a recorder */
#include "cli/command.h"

#include "base/text.h"
#include "record/snapshot_client.h"

#include <limits.h>

static int run(const struct seam_command *self, int argc, char **argv)
{
	char path[PATH_MAX + 16];
	struct seam_err err = { 0 };
	int first, r = seam_command_parse(self, argc, argv, NULL, &first);

	if (r != 0)
		return r < 0 ? SEAM_EXIT_USAGE : SEAM_EXIT_DONE;
	if (argc - first > 1)
		return seam_command_misused(self, "one recorder at a time");
	r = seam_snapshot_request(first < argc ? argv[first] : "recording.seam",
				  path, sizeof(path), &err);
	if (r < 0)
		return seam_command_failed(&err);
	seam_text_put(stdout, path, SEAM_TEXT_TERMINAL);
	putchar('\n');
	return SEAM_EXIT_DONE;
}

const struct seam_command seam_snapshot_command = {
	.name = "snapshot",
	.summary = "request a snapshot from a flight recorder",
	.synopsis = "[PID|NAME.seam]",
	.description =
		"Requests a snapshot from 'seam record' with --overwrite, -S "
		"or --flight-recorder. The recorder is selected by its process "
		"id, by that of a process that it has started, or by its "
		"recording (recording.seam). Waits until the snapshot is "
		"complete and prints its name. The recording continues.",
	.examples =
		"seam snapshot\tof recording.seam in this folder\n"
		"seam report \"$(seam snapshot app.seam)\"\tthe newest "
		"samples\n",
	.run = run,
};
