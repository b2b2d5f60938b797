/* SPDX-License-Identifier: MIT */
/* own_manifest.c - see own_manifest.h */
#include "traced/fdr/own/own_manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "wire/manifest.h"

/* What @fields refers to. */
struct own_manifest {
	struct seam_manifest fields;
	struct utsname host;
	char boot_id[37];
	char command[4096];
	SEAM_ARRAY(const char *) words;
	struct seam_tsc_tie ties[2];
};

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

static void set_command(struct own_manifest *m)
{
	size_t n = read_text("/proc/self/cmdline", m->command,
			     sizeof(m->command));

	for (size_t at = 0; at < n; at += strlen(m->command + at) + 1)
		if (!SEAM_ARRAY_ADD(&m->words, m->command + at))
			break;
	m->fields.words = m->words.items;
	m->fields.n_words = m->words.n;
}

static void set_host(struct own_manifest *m)
{
	(void)uname(&m->host);
	read_text("/proc/sys/kernel/random/boot_id", m->boot_id,
		  sizeof(m->boot_id));
	m->fields.host = m->host.nodename;
	m->fields.release = m->host.release;
	m->fields.arch = m->host.machine;
	m->fields.boot_id = m->boot_id;
}

static void set_times(struct own_manifest *m, const struct seam_tsc_tie *start)
{
	const struct seam_tsc_tie now = seam_tsc_tie_now();

	m->ties[0] = *start;
	m->ties[1] = now;
	m->fields.ties = m->ties;
	m->fields.n_ties = SEAM_ARRAY_SIZE(m->ties);
	m->fields.start_ns = start->ns;
	m->fields.duration_ns = now.ns - start->ns;
	m->fields.start_wall_ns = seam_clock_now(CLOCK_REALTIME) -
				  m->fields.duration_ns;
}

/* As a recorder counts them, so that every view shows them. */
static void set_counts(struct seam_manifest *fields,
		       const struct seam_fdr_own_counts *counts)
{
	fields->complete = true;
	fields->counts.n[SEAM_COUNT_CALLS_RECORDS] = counts->n_records;
	fields->counts.n[SEAM_COUNT_CALLS_FROZEN] = counts->n_paused;
	fields->counts.n[SEAM_COUNT_CALLS_UNWRITTEN] = counts->n_lost;
	fields->counts.n[SEAM_COUNT_CALLS_BAD_BYTES] = counts->n_bad_bytes;
}

/* In the place of the one before at once: it may be read at any time. */
static int replace(const char *folder, const struct seam_manifest *fields)
{
	char path[PATH_MAX + 16], part[PATH_MAX + 16];
	int fd, r;

	snprintf(path, sizeof(path), "%s/meta.json", folder);
	snprintf(part, sizeof(part), "%s/meta.json.part", folder);
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		  0600);
	if (fd < 0)
		return -errno;
	r = seam_manifest_write(fd, fields, NULL);
	if (close(fd) && !r)
		r = -errno;
	if (!r && rename(part, path))
		r = -errno;
	if (r)
		unlink(part);
	return r;
}

int seam_fdr_manifest_write(const char *folder,
			    const struct seam_tsc_tie *start, bool is_flight,
			    const struct seam_fdr_own_counts *counts)
{
	struct own_manifest m = { .fields = {
		.version = "seam " SEAM_VERSION, .overwrite = is_flight,
	} };
	int r;

	set_command(&m);
	set_host(&m);
	set_times(&m, start);
	if (counts)
		set_counts(&m.fields, counts);
	r = replace(folder, &m.fields);
	free(m.words.items);
	return r;
}
