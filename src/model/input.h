/* SPDX-License-Identifier: MIT */
/*
 * input.h - open the files of a recording, given its path
 *
 * The path is a bundle (NAME.seam), a folder of perf's threads (data, data.0,
 * data.1...), one file, or "-".  This opens the files; loaders read them.  A
 * bundle that a traced program wrote by itself has no data, but XRay logs; a
 * folder of a fleet's batches (model/fleet) has neither.
 */
#pragma once

#include "base/array.h"
#include "base/file.h"
#include "wire/manifest.h"

/*
 * Data files besides the first: perf record --threads makes one for each
 * CPU, and Linux has at most 8192 of those (NR_CPUS, arch/x86/Kconfig).
 */
enum {
	SEAM_INPUT_MAX_PARTS = 8192,
	SEAM_INPUT_TRIGGER = 400,
	/* no recorder writes a larger one: a line of JSON for each ring */
	SEAM_INPUT_MAX_MANIFEST = 16 << 20,
};

struct seam_input {
	struct seam_file data;
	SEAM_ARRAY(struct seam_file) parts;
	const char *path;		/* as given; borrowed */
	const char *folder;		/* the same, NULL for a file alone */
	bool is_logs;			/* a folder without data, which has XRay
					 * logs: a program's own recording */
	bool is_batches;		/* a folder of batch files alone */
	struct seam_manifest manifest;	/* zeroed where there is none */
	uint64_t written_ns;		/* UTC of the last change of data */
	struct seam_err bad_manifest;	/* code 0, or why it is ignored */
};

/*
 * Open @path (NULL: SEAM_LOAD_DEFAULT), which must outlive the input.  0, or
 * -errno with the reason; to be closed in either case.
 */
int seam_input_open(struct seam_input *input, const char *path,
		    struct seam_err *err);
void seam_input_close(struct seam_input *input);

/*
 * Line @i of why the recording, a snapshot, was made: the first triggers, and
 * how many more there are.  False: there is no such line.
 */
bool seam_input_trigger(const struct seam_input *input, size_t i,
			char text[SEAM_INPUT_TRIGGER]);

/*
 * Read the manifest of the bundle @folder.  0; or -errno, -ENOENT where it has
 * none, and @manifest is zeroed or to be freed as after 0.
 */
int seam_input_manifest(struct seam_manifest *manifest, const char *folder,
			struct seam_err *err);

/*
 * The XRay logs of the bundle @folder, xray/PID.xray, by their names: as
 * scandir(3) returns them.
 */
struct dirent;
int seam_input_logs(const char *folder, struct dirent ***entries);
