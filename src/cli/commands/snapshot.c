/* SPDX-License-Identifier: MIT */
/* snapshot.c - 'seam snapshot': ask a flight recorder for what it has */
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
	.summary = "have a flight recorder write what it holds",
	.synopsis = "[PID|NAME.seam]",
	.description =
		"Asks 'seam record' with --overwrite or -S for a snapshot: by "
		"the id of the recorder's process, or by its recording "
		"(recording.seam). Waits until it is whole and prints its "
		"name. The recording goes on.",
	.examples =
		"seam snapshot\tof the recording in this folder\n"
		"seam report \"$(seam snapshot app.seam)\"\twhat happened just "
		"now\n",
	.run = run,
};
