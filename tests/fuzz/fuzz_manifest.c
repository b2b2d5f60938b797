/* SPDX-License-Identifier: MIT */
/*
 * fuzz_manifest.c - any bytes as meta.json
 *
 * Oracle: what was read, written and read again, is the same.
 */
#include "fuzz.h"
#include "wire/manifest.h"

#include <sys/mman.h>
#include <unistd.h>

static void same(const struct seam_manifest *a, const struct seam_manifest *b)
{
	if (a->n_words != b->n_words || a->complete != b->complete ||
	    strcmp(a->boot_id, b->boot_id) != 0 ||
	    strcmp(a->release, b->release) != 0 ||
	    a->kernel_build_id_size != b->kernel_build_id_size ||
	    memcmp(a->kernel_build_id, b->kernel_build_id,
		   a->kernel_build_id_size) != 0 ||
	    a->kernel_text_addr != b->kernel_text_addr ||
	    a->start_ns != b->start_ns ||
	    memcmp(&a->counts, &b->counts, sizeof(a->counts)) != 0)
		abort();
	for (size_t i = 0; i < a->n_words; i++)
		if (strcmp(a->words[i], b->words[i]) != 0)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seam_manifest first, again;
	uint8_t *copy;
	off_t n;
	int fd;

	if (seam_manifest_read(&first, (struct seam_bytes) { data, size },
			       NULL) < 0)
		return 0;
	fd = memfd_create("meta", MFD_CLOEXEC);
	if (seam_manifest_write(fd, &first, NULL) < 0)
		abort();
	n = lseek(fd, 0, SEEK_END);
	copy = malloc((size_t)n);
	if (pread(fd, copy, (size_t)n, 0) != n ||
	    seam_manifest_read(&again, (struct seam_bytes) { copy, (size_t)n },
			       NULL) < 0)
		abort();
	same(&first, &again);
	seam_manifest_fini(&again);
	seam_manifest_fini(&first);
	free(copy);
	close(fd);
	return 0;
}
