/* SPDX-License-Identifier: MIT */
/* own_manifest.c - see own_manifest.h; the format is in wire/manifest.h */
#include "target/fdr/own/own_manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "target/fdr/own/text_out.h"

/* The bytes of @path; their number, 0 where it cannot be read. */
static size_t read_file(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, to, size);

	if (fd >= 0)
		close(fd);
	return n < 0 ? 0 : (size_t)n;
}

/* The words of the command line, as far as they fit. */
static void put_command(struct seam_fdr_text *t)
{
	char words[4096];
	size_t n = read_file("/proc/self/cmdline", words, sizeof(words));

	seam_fdr_text_put(t, ",\"command\":[");
	for (size_t at = 0; at < n;) {
		size_t length = strnlen(words + at, n - at);

		seam_fdr_text_put(t, at ? "," : "");
		seam_fdr_text_json(t, words + at, length);
		at += length + 1;
	}
	seam_fdr_text_put(t, "]");
}

static void put_member(struct seam_fdr_text *t, const char *name,
		       const char *value)
{
	seam_fdr_text_put(t, name);
	seam_fdr_text_json(t, value, SIZE_MAX);
}

static void put_host(struct seam_fdr_text *t)
{
	char boot[37] = "";
	struct utsname host;

	if (uname(&host))
		return;
	read_file("/proc/sys/kernel/random/boot_id", boot, sizeof(boot) - 1);
	put_member(t, ",\"host\":{\"name\":", host.nodename);
	put_member(t, ",\"release\":", host.release);
	put_member(t, ",\"arch\":", host.machine);
	put_member(t, ",\"boot_id\":", boot);
	seam_fdr_text_put(t, "}");
}

static void put_count(struct seam_fdr_text *t, const char *name, uint64_t n)
{
	seam_fdr_text_put(t, name);
	seam_fdr_text_number(t, n);
}

static void put_times(struct seam_fdr_text *t, const struct seam_tsc_tie *start)
{
	const struct seam_tsc_tie now = seam_tsc_tie_now();
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	put_count(t, ",\"clock\":\"CLOCK_MONOTONIC\",\"start\":{\"wall_ns\":",
		  seam_clock_of(wall) - (now.ns - start->ns));
	put_count(t, ",\"monotonic_ns\":", start->ns);
	put_count(t, "},\"duration_ns\":", now.ns - start->ns);
	put_count(t, ",\"events\":[],\"samples\":0,\"xray\":{\"ties\":[[",
		  start->tsc);
	put_count(t, ",", start->ns);
	put_count(t, "],[", now.tsc);
	put_count(t, ",", now.ns);
	seam_fdr_text_put(t, "]]");
}

int seam_fdr_manifest_write(const char *folder,
			    const struct seam_tsc_tie *start, bool is_flight,
			    const struct seam_fdr_own_counts *counts)
{
	char path[PATH_MAX + 16], part[PATH_MAX + 16];
	struct seam_fdr_text t;
	int r;

	snprintf(path, sizeof(path), "%s/meta.json", folder);
	snprintf(part, sizeof(part), "%s/meta.json.part", folder);
	seam_fdr_text_begin(&t, part);
	seam_fdr_text_put(&t, "{\"schema\":\"seam.bundle/1\","
			  "\"version\":\"seam " SEAM_VERSION "\","
			  "\"complete\":");
	seam_fdr_text_put(&t, counts ? "true" : "false");
	seam_fdr_text_put(&t, is_flight ? ",\"overwrite\":true" :
					  ",\"overwrite\":false");
	put_command(&t);
	put_host(&t);
	put_times(&t, start);
	put_count(&t, ",\"records\":", counts ? counts->n_records : 0);
	put_count(&t, ",\"lost\":", counts ? counts->n_lost : 0);
	put_count(&t, ",\"bad_bytes\":", counts ? counts->n_bad_bytes : 0);
	/* as a recorder counts them, so that every reader shows them */
	put_count(&t, "},\"calls\":{\"not_written\":",
		  counts ? counts->n_lost : 0);
	seam_fdr_text_put(&t, "}}\n");
	r = seam_fdr_text_end(&t);
	if (!r && rename(part, path))
		r = -errno;
	if (r)
		unlink(part);
	return r;
}
