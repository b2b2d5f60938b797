/* SPDX-License-Identifier: MIT */
/*
 * folder.h - a folder of its own for a test, gone after it
 *
 * For cmocka's setup and teardown, of a test or of a group.
 */
#ifndef SEAM_TEST_FOLDER_H
#define SEAM_TEST_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/seam-test-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return chdir("/") || system(command);
}

#endif /* SEAM_TEST_FOLDER_H */
