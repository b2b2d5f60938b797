/* SPDX-License-Identifier: MIT */
/* proof.c - see proof.h */
#include "ring/proof.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

static FILE *open_proc(uint32_t id, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", id, name);
	return fopen(path, "re");
}

/* The 22nd field; the 2nd, in parentheses, may hold spaces and more. */
static int read_start_time(uint32_t tid, uint64_t *ticks)
{
	char line[1024];
	FILE *f = open_proc(tid, "stat");
	char *p;

	if (!f)
		return -errno;
	p = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p)
		return -ENOENT;		/* it died while we read */
	*ticks = strtoull(p, NULL, 10);
	return 0;
}

static int read_pid(uint32_t tid, uint32_t *pid)
{
	char line[256];
	FILE *f = open_proc(tid, "status");
	int r = -ENOENT;

	if (!f)
		return -errno;
	while (r < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "Tgid: %u", pid) == 1)
			r = 0;
	fclose(f);
	return r;
}

int seam_thread_identify(uint32_t tid, struct seam_thread_identity *out)
{
	int r = read_start_time(tid, &out->start_time);

	return r < 0 ? r : read_pid(tid, &out->pid);
}

int seam_thread_has_mapped(uint32_t tid, dev_t device, ino_t inode)
{
	FILE *f = open_proc(tid, "maps");
	unsigned dev_major, dev_minor;
	unsigned long number;
	char *line = NULL;
	size_t room = 0;
	bool found = false, is_empty = true;

	if (!f)
		return -errno;
	for (; !found && getline(&line, &room, f) > 0; is_empty = false)
		found = sscanf(line, "%*x-%*x %*s %*x %x:%x %lu", &dev_major,
			       &dev_minor, &number) == 3 &&
			dev_major == major(device) &&
			dev_minor == minor(device) && number == inode;
	free(line);
	fclose(f);
	return is_empty ? -ENOENT : found;
}
