/* SPDX-License-Identifier: MIT */
/* manifest_process.c - see manifest_process.h */
#include "wire/manifest_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

/* @path as a string, as far as it fits.  Returns the bytes read. */
static size_t read_text(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, to, size - 1);

	if (fd >= 0)
		close(fd);
	to[n < 0 ? 0 : n] = '\0';
	return n < 0 ? 0 : (size_t)n;
}

void seam_manifest_process_init(struct seam_manifest_process *process,
				pid_t pid)
{
	char path[64];
	size_t n;

	*process = (struct seam_manifest_process) {
		.start = seam_tsc_tie_now(),
	};
	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	n = read_text(path, process->command, sizeof(process->command));
	for (size_t at = 0; at < n; at += strlen(process->command + at) + 1)
		if (!SEAM_ARRAY_ADD(&process->words, process->command + at))
			break;
	(void)uname(&process->host);
	read_text("/proc/sys/kernel/random/boot_id", process->boot_id,
		  sizeof(process->boot_id));
}

static int replace(int dir, const struct seam_manifest *m)
{
	int fd = openat(dir, "meta.json.part", O_WRONLY | O_CREAT | O_TRUNC |
			O_CLOEXEC | O_NOFOLLOW, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = seam_manifest_write(fd, m, NULL);
	if (close(fd) && !r)
		r = -errno;
	if (!r && renameat(dir, "meta.json.part", dir, "meta.json"))
		r = -errno;
	if (r)
		unlinkat(dir, "meta.json.part", 0);
	return r;
}

int seam_manifest_process_write(const struct seam_manifest_process *process,
				int dir, struct seam_manifest *m)
{
	const struct seam_tsc_tie now = seam_tsc_tie_now();
	const struct seam_tsc_tie ties[] = { process->start, now };

	m->version = "seam " SEAM_VERSION;
	m->words = process->words.items;
	m->n_words = process->words.n;
	m->host = process->host.nodename;
	m->release = process->host.release;
	m->arch = process->host.machine;
	m->boot_id = process->boot_id;
	if (!m->n_ties) {
		m->ties = ties;
		m->n_ties = SEAM_ARRAY_SIZE(ties);
	}
	m->start_ns = process->start.ns;
	m->duration_ns = now.ns - process->start.ns;
	m->start_wall_ns = seam_clock_now(CLOCK_REALTIME) - m->duration_ns;
	return replace(dir, m);
}

void seam_manifest_process_fini(struct seam_manifest_process *process)
{
	free(process->words.items);
	*process = (struct seam_manifest_process) { 0 };
}
