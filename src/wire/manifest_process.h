/* SPDX-License-Identifier: MIT */
/*
 * manifest_process.h - meta.json of a bundle that has calls of one program
 *
 * Of a program that keeps a flight recorder, and of the recorder that a program
 * has started (doc/design/standalone.md).  Not in handlers: uses malloc.
 */
#ifndef SEAM_MANIFEST_PROCESS_H
#define SEAM_MANIFEST_PROCESS_H

#include <sys/types.h>
#include <sys/utsname.h>

#include "base/array.h"
#include "base/tsc.h"
#include "wire/manifest.h"

/* What a manifest says of the program and its machine. */
struct seam_manifest_process {
	struct utsname host;
	char boot_id[37];
	char command[4096];
	SEAM_ARRAY(const char *) words;		/* of command */
	struct seam_tsc_tie start;		/* when it was described */
};

/* Describe process @pid, which runs. */
void seam_manifest_process_init(struct seam_manifest_process *process,
				pid_t pid);

/*
 * Write meta.json in the folder @dir, at once in the place of the one before.
 * @m has counts, and ties if there are any; this sets the version, the command,
 * the machine and times: from the start until now.  0 or -errno, and what was
 * there before stays.
 */
int seam_manifest_process_write(const struct seam_manifest_process *process,
				int dir, struct seam_manifest *m);

/* Valid on a zeroed struct. */
void seam_manifest_process_fini(struct seam_manifest_process *process);

#endif /* SEAM_MANIFEST_PROCESS_H */
