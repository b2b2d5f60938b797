/* SPDX-License-Identifier: MIT */
/* kept_files.c - remember mapped files, have them held and copied; see kept_files.h */
#include "record/bundle/kept_files.h"

#include "base/cursor.h"
#include "base/hash.h"
#include "record/bundle/kept_file_jobs.h"
#include "symbol/elf/elf_id.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	VDSO_BYTES = 64 * 1024,	/* no vdso is larger */
	WAIT_MS = 50,		/* between two looks whether a job hangs */
};

/* A vdso below this belongs to a 32-bit process and is not ours. */
#define FIRST_64_BIT_ADDR (UINT64_C(1) << 32)

bool seam_kept_files_read_mapping(const struct seam_ring_header *record,
			    struct seam_kept_files_mapping *m)
{
	struct seam_cursor c = seam_cursor_make(record, record->size,
						SEAM_LITTLE);
	uint8_t size;
	uint32_t prot;

	if (record->type != PERF_RECORD_MMAP2)
		return false;
	seam_cursor_skip(&c, sizeof(*record));
	m->pid = (int32_t)seam_cursor_u32(&c);
	seam_cursor_skip(&c, 4);		/* tid */
	m->addr = seam_cursor_u64(&c);
	m->bytes = seam_cursor_u64(&c);
	seam_cursor_skip(&c, 8);		/* offset in the file */
	size = seam_cursor_u8(&c);
	seam_cursor_skip(&c, 3);
	m->build_id = seam_cursor_bytes(&c, SEAM_KEEP_BUILD_ID);
	m->build_id_size = 0;
	if (record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID &&
	    size <= SEAM_KEEP_BUILD_ID)
		m->build_id_size = size;
	prot = seam_cursor_u32(&c);
	seam_cursor_skip(&c, 4);		/* flags */
	m->path = seam_cursor_cstr(&c);
	return !c.error && prot & PROT_EXEC;
}

static uint64_t hash_of(const uint8_t *build_id, size_t size)
{
	return seam_hash_bytes(build_id, size, 0);
}

/* Files with that build id, each under another path, are counted too. */
static struct seam_kept_results *find(struct seam_kept_files *keep, const char *path,
			      const uint8_t *id, size_t size, size_t *n)
{
	struct seam_index_probe probe =
		seam_index_probe(&keep->index, hash_of(id, size));
	uint32_t i;

	*n = 0;
	while ((i = seam_index_next(&keep->index, &probe)) != SEAM_NONE) {
		struct seam_kept_results *file = &keep->files.items[i];

		if (file->build_id_size != size ||
		    memcmp(file->build_id, id, size) != 0)
			continue;
		if (strcmp(file->path, path) == 0)
			return file;
		++*n;
	}
	return NULL;
}

struct seam_kept_results *seam_kept_files_find(struct seam_kept_files *keep, const char *path,
				 const uint8_t *build_id, size_t size)
{
	size_t n;

	return find(keep, path, build_id, size, &n);
}

/* Whether there is room, in general and for this process; takes it if so. */
static bool has_room(struct seam_kept_files *keep, const struct seam_kept_files_mapping *m,
		     size_t n_same)
{
	uint16_t *n = &keep->of_process[(uint32_t)m->pid %
					SEAM_KEEP_N_COUNTERS];
	size_t length = strlen(m->path) + 1;

	if (n_same >= SEAM_KEEP_MAX_PATHS || *n >= SEAM_KEEP_MAX_OF_PROCESS ||
	    keep->files.n >= SEAM_KEEP_MAX_FILES ||
	    keep->n_name_bytes + length > SEAM_KEEP_MAX_NAME_BYTES)
		return false;
	++*n;
	keep->n_name_bytes += length;
	return true;
}

static bool has_helper(struct seam_kept_files *keep)
{
	if (!keep->helper)
		keep->helper = seam_helper_new(NULL);
	return keep->helper;
}

static void hold(struct seam_kept_files *keep, const struct seam_kept_files_mapping *m)
{
	uint32_t i = (uint32_t)keep->files.n;
	char *path = strdup(m->path);
	struct seam_kept_results *file;

	if (!path || !SEAM_ARRAY_RESERVE(&keep->files, 1) ||
	    seam_index_add(&keep->index,
			   hash_of(m->build_id, m->build_id_size), i) < 0) {
		free(path);
		keep->n_too_many++;
		return;
	}
	file = &keep->files.items[keep->files.n++];
	*file = (struct seam_kept_results) {
		.fd = -1, .build_id_size = (uint8_t)m->build_id_size,
		.path = path,
	};
	memcpy(file->build_id, m->build_id, m->build_id_size);
	if (keep->n_held >= SEAM_KEEP_MAX_HELD || !has_helper(keep)) {
		file->code = -ENOENT;
		return;
	}
	keep->n_held++;
	if (seam_kept_file_open(keep, m, i) < 0) {
		file->code = -ETIMEDOUT;
		keep->n_held--;
	}
}

void seam_kept_files_see(struct seam_kept_files *keep,
		   const struct seam_ring_header *record)
{
	struct seam_kept_files_mapping m;
	size_t n_same;

	if (!seam_kept_files_read_mapping(record, &m))
		return;
	if (seam_kept_jit_is_runtime(m.path) && has_helper(keep))
		seam_kept_jit_see(&keep->jit, keep->helper, m.pid, m.path);
	if (strcmp(m.path, "[vdso]") == 0 && m.addr >= FIRST_64_BIT_ADDR)
		keep->saw_vdso = true;
	if (m.path[0] != '/' || m.path[1] == '/' || m.build_id_size == 0)
		return;		/* not a file, or none that can be told */
	if (find(keep, m.path, m.build_id, m.build_id_size, &n_same))
		return;
	if (has_room(keep, &m, n_same))
		hold(keep, &m);
	else
		keep->n_too_many++;
}

void seam_kept_files_round(struct seam_kept_files *keep)
{
	if (keep->helper)
		seam_helper_collect(keep->helper);
}

uint64_t seam_kept_files_reserved_bytes(const struct seam_kept_files *keep, uint64_t most)
{
	uint64_t bytes = 0;

	for (size_t i = 0; bytes < most && i < keep->files.n; i++)
		bytes += keep->files.items[i].lost_bytes;
	return bytes < most ? bytes : most;
}

/* Our own vdso: the kernel gives all 64-bit processes the same. */
static void keep_vdso(struct seam_kept_files *keep, const struct seam_bundle *bundle,
		      struct seam_kept_files_counts *counts)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *header = (const void *)image;
	const ElfW(Phdr) *segments;
	size_t bytes;

	if (!image)
		return;
	segments = (const void *)(image + header->e_phoff);
	for (size_t i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_NOTE && !keep->vdso_build_id_size)
			keep->vdso_build_id_size = seam_elf_id_in_notes(
				(struct seam_bytes) {
					image + segments[i].p_offset,
					segments[i].p_filesz },
				keep->vdso_build_id);
	bytes = header->e_shoff + (size_t)header->e_shnum *
				  header->e_shentsize;
	if (keep->vdso_build_id_size && bytes <= VDSO_BYTES &&
	    seam_kept_file_put(bundle, keep->vdso_build_id,
			       keep->vdso_build_id_size, image, bytes) == 0)
		return;
	keep->vdso_build_id_size = 0;
	counts->n_failed++;
}

/* Until all jobs have ended.  False: there is no more time. */
static bool wait_for_jobs(struct seam_kept_files *keep,
			  const struct seam_kept_files_ending *ending)
{
	int fd = seam_helper_fd(keep->helper, true);
	bool has_time = true;

	while (has_time && seam_helper_collect(keep->helper))
		has_time = ending->wait(ending->context, fd, WAIT_MS);
	if (!has_time)
		seam_helper_abandon(keep->helper);
	seam_helper_fd(keep->helper, false);
	return has_time;
}

static uint64_t left(uint64_t budget, uint64_t taken)
{
	return taken < budget ? budget - taken : 0;
}

static void copy_files(struct seam_kept_files *keep,
		       const struct seam_kept_files_ending *ending, uint64_t budget,
		       bool has_time, struct seam_kept_files_counts *counts)
{
	if (budget > SEAM_KEEP_MAX_BYTES)
		budget = SEAM_KEEP_MAX_BYTES;
	if (!keep->helper) {
		counts->n_stuck += keep->files.n;
		return;
	}
	if (has_time && keep->files.n && seam_kept_file_look(keep) == 0)
		has_time = wait_for_jobs(keep, ending);
	for (size_t i = 0; i < keep->files.n; i++) {
		if (keep->files.items[i].is_there &&
		    !keep->files.items[i].is_hit)
			continue;
		if (!has_time) {
			counts->n_interrupted++;
			continue;
		}
		if (seam_kept_file_copy(keep, (uint32_t)i, ending->bundle,
					left(budget, counts->n_bytes),
					counts) < 0)
			counts->n_stuck++;
		else
			has_time = wait_for_jobs(keep, ending);
	}
	if (!has_time || counts->n_stuck)
		seam_kept_file_drop(ending->bundle);
}

void seam_kept_files_finish(struct seam_kept_files *keep,
		      const struct seam_kept_files_ending *ending,
		      struct seam_kept_files_counts *counts)
{
	bool has_time = !keep->helper || wait_for_jobs(keep, ending);
	uint64_t budget = ending->budget_bytes;

	*counts = (struct seam_kept_files_counts) { .n_too_many = keep->n_too_many };
	if (keep->saw_vdso)
		keep_vdso(keep, ending->bundle, counts);
	seam_kept_jit_begin(&keep->jit, ending->bundle, &counts->jit);
	for (size_t i = 0; i < keep->jit.runtimes.n; i++) {
		if (!has_time)
			counts->jit.n_interrupted++;
		else if (seam_kept_jit_copy(&keep->jit, keep->helper, i,
				left(budget, counts->jit.n_bytes),
				&counts->jit) == 0)
			has_time = wait_for_jobs(keep, ending);
	}
	seam_kept_jit_end(&keep->jit, ending->bundle, ending->is_snapshot,
			  &counts->jit);
	copy_files(keep, ending, left(budget, counts->jit.n_bytes), has_time,
		   counts);
}

void seam_kept_files_fini(struct seam_kept_files *keep)
{
	seam_helper_free(keep->helper);
	for (size_t i = 0; i < keep->files.n; i++) {
		if (keep->files.items[i].fd >= 0)
			close(keep->files.items[i].fd);
		free(keep->files.items[i].path);
	}
	free(keep->files.items);
	seam_index_fini(&keep->index);
	seam_kept_jit_fini(&keep->jit);
	*keep = (struct seam_kept_files) { 0 };
}
