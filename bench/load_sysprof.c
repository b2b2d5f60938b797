/* SPDX-License-Identifier: MIT */
/*
 * load_sysprof.c - how fast a sysprof stream becomes stacks
 *
 *	load_sysprof ROUNDS FILE
 *
 * The median CPU time of ROUNDS loads: stacks and names of all samples, nothing
 * printed, and that of a mere walk over the items.
 */
#include "model/sysprof/load_sysprof.h"
#include "wire/sysprof/sysprof.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
	return SEAM_COMPARE(*(const double *)a, *(const double *)b);
}

static double walk(const char *path, size_t *n_stacks)
{
	struct seam_sysprof_reader reader;
	struct seam_sysprof_item item;
	struct seam_file file;
	double start;

	(void)n_stacks;
	if (seam_file_open(&file, path, NULL))
		exit(1);
	start = cpu_now();
	seam_sysprof_begin(&reader, file.bytes);
	while (seam_sysprof_next(&reader, &item, NULL) > 0)
		;
	seam_sysprof_fini(&reader);
	start = cpu_now() - start;
	seam_file_close(&file);
	return start;
}

static double load(const char *path, size_t *n_stacks)
{
	struct seam_profile profile;
	struct seam_file file;
	double start;

	if (seam_file_open(&file, path, NULL) || seam_profile_init(&profile))
		exit(1);
	start = cpu_now();
	if (seam_load_sysprof(&profile, &file, false, NULL))
		exit(1);
	start = cpu_now() - start;
	*n_stacks = profile.stacks.n;
	seam_profile_fini(&profile);
	return start;
}

static double median(int rounds, const char *path, size_t *n_stacks,
		     double (*measure)(const char *path, size_t *n_stacks))
{
	double *seconds = calloc((size_t)rounds, sizeof(*seconds)), result;

	if (!seconds)
		exit(1);
	for (int i = 0; i < rounds; i++)
		seconds[i] = measure(path, n_stacks);
	qsort(seconds, (size_t)rounds, sizeof(*seconds), by_value);
	result = seconds[rounds / 2];
	free(seconds);
	return result;
}

int main(int argc, char **argv)
{
	int rounds = argc == 3 ? atoi(argv[1]) : 0;
	struct seam_file file;
	size_t n_stacks = 0;
	double mb, walked, loaded;

	if (rounds < 1 || seam_file_open(&file, argv[2], NULL)) {
		fprintf(stderr, "usage: load_sysprof ROUNDS FILE\n");
		return 2;
	}
	mb = (double)file.bytes.size / 1e6;
	seam_file_close(&file);
	walked = median(rounds, argv[2], &n_stacks, walk);
	loaded = median(rounds, argv[2], &n_stacks, load);
	printf("%.0f MB: items %.0f MB/s, stacks %.0f MB/s (%zu nodes)\n", mb,
	       mb / walked, mb / loaded, n_stacks);
	return 0;
}
