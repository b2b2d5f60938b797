/* SPDX-License-Identifier: MIT */
/*
 * test_jit_corpus.c - what perf inject resolved in real recordings, we do too
 *
 * The oracle is perf script's text after perf inject --jit.  A frame there is
 * "IP SYMBOL+OFFSET (.../jitted-PID-INDEX.so)", with IP relative to a file
 * whose code begins at 0x80: so the load with that index gives the address.
 */
#include "symbol/jit/jit_code.h"

#include <inttypes.h>

#include "base/demangle.h"
#include "jit_corpus.h"
#include "unit.h"
#include "wire/jit/jitdump.h"

enum { TEXT_OFFSET = 0x80, MAX_DUMPS = 4, MAX_INDEX = 20000 };

static const struct recording {
	const char *name;
	const char *dumps[MAX_DUMPS];
	unsigned int n_frames;		/* that perf resolved: cmd.txt */
} recordings[] = {
	{ "cpython313-perfjit", { "jit-30109.dump" }, 2 },
	{ "cpython313-perfjit-dwarf", { "jit-31302.dump" }, 592 },
	{ "erlang25-jpperf-dump", { "jit-27930.dump.xz" }, 1072 },
	{ "java17-jvmti", { "jit-29996.dump" }, 3972 },
	{ "lli14-mcjit", { "jit-29836.dump" }, 206 },
	{ "lli15-mcjit", { "jit-29874.dump" }, 203 },
	{ "lli19-mcjit", { "jit-29950.dump" }, 202 },
	{ "node20-multiprocess-workers",
	  { "jit-31240.dump.xz", "jit-31248.dump.xz", "jit-31249.dump.xz" },
	  3470 },
	{ "node20-perfprof", { "jit-27809.dump.xz" }, 8671 },
	{ "node20-perfprof-unwind", { "jit-27852.dump.xz" }, 3528 },
	{ "php82-tracing-dump", { "jit-29135.dump" }, 550 },
	{ "postgres15-llvmjit", { "jit-31742.dump" }, 14 },
};

struct dumps {
	struct seam_jit_code *jit;
	struct seam_file files[MAX_DUMPS];
	int32_t pids[MAX_DUMPS];
	uint64_t (*addrs)[MAX_INDEX];	/* by dump and code_index */
};

static bool add(struct dumps *d, size_t i, const char *name)
{
	struct seam_jit_code_options options = { 0 };
	struct seam_jitdump_reader reader;
	struct seam_jitdump_record record;

	if (!jit_corpus_read(name, &d->files[i]))
		return false;
	assert_int_equal(seam_jitdump_begin(&reader, d->files[i].bytes, NULL),
			 0);
	while (seam_jitdump_next(&reader, &record))
		if (record.id == SEAM_JITDUMP_LOAD &&
		    record.load.code_index < MAX_INDEX)
			d->addrs[i][record.load.code_index] =
				record.load.code_addr;
	d->pids[i] = (int32_t)reader.header.pid;
	options.pid = d->pids[i];
	assert_int_equal(seam_jit_code_add_dump(d->jit, d->files[i].bytes,
						&options, NULL), 0);
	return true;
}

/* "COMM PID/TID SECONDS.MICROSECONDS:" of a sample. */
static bool read_time(const char *line, uint64_t *time_ns)
{
	const char *slash = strchr(line, '/');
	uint64_t s, us;
	unsigned int tid;

	if (!slash || *line == '\t' ||
	    sscanf(slash, "/%u %" SCNu64 ".%" SCNu64 ":", &tid, &s, &us) != 3)
		return false;
	*time_ns = s * 1000000000 + us * 1000 + 999;
	return true;
}

/* The symbol of a jitted frame, cut out of @line; NULL for other lines. */
static char *read_frame(char *line, uint64_t *ip, int *pid, unsigned int *index)
{
	char *file = strstr(line, "/jitted-"), *end = line, *symbol, *paren;

	if (*line != '\t' || !file ||
	    sscanf(file, "/jitted-%d-%u.so", pid, index) != 2)
		return NULL;
	*ip = strtoull(line, &end, 16);
	symbol = end + 1;
	for (paren = file; paren > symbol && memcmp(paren, " (", 2); paren--)
		;
	while (paren > symbol && *paren != '+')
		paren--;
	*paren = '\0';
	return symbol;
}

static unsigned int compare(struct dumps *d, FILE *script)
{
	unsigned int n = 0;
	uint64_t time_ns = 0, ip;
	char line[8192], java[4096];

	while (fgets(line, sizeof(line), script)) {
		struct seam_jit_location location;
		unsigned int index;
		char *symbol;
		size_t i = 0;
		int pid;

		if (read_time(line, &time_ns))
			continue;
		symbol = read_frame(line, &ip, &pid, &index);
		if (!symbol)
			continue;
		while (i < MAX_DUMPS && d->pids[i] != pid)
			i++;
		assert_true(i < MAX_DUMPS && index < MAX_INDEX);
		if (!seam_jit_code_find(d->jit, pid, d->addrs[i][index] + ip -
					TEXT_OFFSET, time_ns, &location))
			fail_msg("not found: %s", line);
		if (!seam_java_name(location.name, java, sizeof(java)))
			snprintf(java, sizeof(java), "%s", location.name);
		if (strcmp(java, symbol))
			fail_msg("'%s' is '%s'", symbol, location.name);
		n++;
	}
	return n;
}

/* How many frames agreed. */
static size_t check(const struct recording *r)
{
	struct dumps d = {
		.jit = seam_jit_code_new(),
		.addrs = calloc(MAX_DUMPS, sizeof(*d.addrs)),
	};
	struct seam_file script = { 0 };
	char name[256];
	FILE *text;
	size_t n;

	for (size_t i = 0; i < MAX_DUMPS && r->dumps[i]; i++) {
		snprintf(name, sizeof(name), "%s/%s", r->name, r->dumps[i]);
		assert_true(add(&d, i, name));
	}
	snprintf(name, sizeof(name), "%s/injected.script.txt.gz", r->name);
	assert_true(jit_corpus_read(name, &script));
	text = fmemopen((void *)(uintptr_t)script.bytes.data,
			script.bytes.size, "r");
	n = compare(&d, text);
	fclose(text);
	seam_jit_code_free(d.jit);
	seam_file_close(&script);
	for (size_t i = 0; i < MAX_DUMPS; i++)
		seam_file_close(&d.files[i]);
	free(d.addrs);
	return n;
}

UNIT_TEST(all_that_perf_resolves_is_resolved_to_the_same)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(recordings); i++)
		assert_int_equal(check(&recordings[i]),
				 recordings[i].n_frames);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
