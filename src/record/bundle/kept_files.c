/* SPDX-License-Identifier: MIT */
/* kept_files.c - the list of files, and the order of jobs; see kept_files.h */
#include "record/bundle/kept_files.h"

#include "base/hash.h"
#include "symbol/elf/build_id.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	WAIT_MS = 50,		/* between two checks for overdue jobs */
};

/* A vdso below this belongs to a 32-bit process and is not ours. */
#define FIRST_64_BIT_ADDR (UINT64_C(1) << 32)

const struct seam_perf_mapping *
seam_kept_files_mapping_of(const struct seam_perf_sideband *record)
{
	return record->type == PERF_RECORD_MMAP2 &&
	       record->mapping.prot & PROT_EXEC ? &record->mapping : NULL;
}

/* Files without a build id by their inode. */
static uint64_t hash_of(const uint8_t *build_id, size_t size, uint64_t ino)
{
	return size ? seam_hash_bytes(build_id, size, 0) : seam_hash_u64(ino);
}

/* @n: files with that identity and another path, which are counted. */
static bool is_file(const struct seam_kept_file *file,
		    const struct seam_perf_mapping *m, size_t *n)
{
	bool is_same = file->build_id_size == m->build_id_size &&
		       (m->build_id_size ?
			memcmp(file->build_id, m->build_id,
			       m->build_id_size) == 0 : file->ino == m->ino);
	bool is_at_path = is_same && strcmp(file->path, m->filename) == 0;

	*n += is_same && !is_at_path;
	return is_at_path;
}

static struct seam_kept_file *find(struct seam_kept_files *kept,
				   const struct seam_perf_mapping *m, size_t *n)
{
	struct seam_kept_file *files = kept->files.items;
	uint32_t i;

	*n = 0;
	i = SEAM_INDEX_FIND(&kept->index,
			    hash_of(m->build_id, m->build_id_size, m->ino), k,
			    is_file(&files[k], m, n));
	return i == SEAM_NONE ? NULL : &files[i];
}

struct seam_kept_file *
seam_kept_files_find(struct seam_kept_files *kept,
		     const struct seam_perf_mapping *m)
{
	size_t n;

	return find(kept, m, &n);
}

/* Whether there is room, in general and for this user; reserves it. */
static bool reserve(struct seam_kept_files *kept,
		    const struct seam_perf_mapping *m, uid_t user)
{
	size_t length = strlen(m->filename) + 1;

	if (kept->files.n >= SEAM_KEPT_MAX_FILES ||
	    kept->n_name_bytes + length > SEAM_KEPT_MAX_NAME_BYTES ||
	    !seam_user_share_take_file(kept->of_user, user))
		return false;
	kept->n_name_bytes += length;
	return true;
}

static bool has_helper(struct seam_kept_files *kept)
{
	if (!kept->helper)
		kept->helper = seam_helper_new(NULL);
	return kept->helper;
}

/* False: out of memory. */
static bool add_file(struct seam_kept_files *kept,
		     const struct seam_perf_mapping *m, uid_t user)
{
	struct seam_kept_file file = {
		.fd = -1, .user = user, .build_id_size = (uint8_t)m->build_id_size,
		.ino = m->ino, .path = strdup(m->filename),
	};

	if (m->build_id_size)
		memcpy(file.build_id, m->build_id, m->build_id_size);
	if (file.path &&
	    SEAM_INDEX_APPEND(&kept->index,
			      hash_of(m->build_id, m->build_id_size, m->ino),
			      &kept->files, file) != SEAM_NONE)
		return true;
	free(file.path);
	return false;
}

/* Have the helper open the file that was added last, mapped as @m. */
static void open_last(struct seam_kept_files *kept,
		      const struct seam_perf_mapping *m)
{
	uint32_t i = (uint32_t)kept->files.n - 1;
	int r = kept->n_held >= SEAM_KEPT_MAX_HELD ? -ENFILE :
		!has_helper(kept) ? -ENOMEM : seam_kept_file_open(kept, m, i);

	kept->files.items[i].code = r;
	kept->n_held += r == 0;
}

void seam_kept_files_sideband(struct seam_kept_files *kept,
			      const struct seam_perf_sideband *record)
{
	const struct seam_perf_mapping *m = seam_kept_files_mapping_of(record);
	const char *path = m ? m->filename : NULL;
	size_t n_paths;
	uid_t user;

	seam_follow_sideband(&kept->follow, record);
	if (!m)
		return;
	if (strcmp(path, "[vdso]") == 0 && m->addr >= FIRST_64_BIT_ADDR)
		kept->has_vdso = true;
	/* "//anon" and "[heap]" are no files */
	if (path[0] != '/' || path[1] == '/' ||
	    (!m->build_id_size && !m->ino) || find(kept, m, &n_paths))
		return;
	user = n_paths < SEAM_KEPT_MAX_PATHS ? seam_helper_user_of(m->pid) :
					       SEAM_HELPER_NO_USER;
	if (n_paths < SEAM_KEPT_MAX_PATHS && reserve(kept, m, user) &&
	    add_file(kept, m, user))
		open_last(kept, m);
	else
		kept->n_too_many++;
}

void seam_kept_files_collect(struct seam_kept_files *kept)
{
	if (kept->helper)
		seam_helper_collect(kept->helper);
	seam_follow_step(&kept->follow);
}

uint64_t seam_kept_files_reserved_bytes(const struct seam_kept_files *kept,
					uint64_t max)
{
	uint64_t bytes = 0;

	for (size_t i = 0; bytes < max && i < kept->files.n; i++)
		bytes += kept->files.items[i].copy_bytes;
	return bytes < max ? bytes : max;
}

/* Copy our own vdso: the kernel gives all 64-bit processes the same. */
static void copy_vdso(struct seam_kept_files *kept,
		      const struct seam_bundle *bundle,
		      struct seam_kept_counts *counts)
{
	struct seam_bytes vdso = seam_own_vdso(kept->vdso_build_id,
					       &kept->vdso_build_id_size);

	if (!vdso.data)
		return;
	if (vdso.size &&
	    seam_kept_file_write(bundle, kept->vdso_build_id,
				 kept->vdso_build_id_size, vdso.data,
				 vdso.size) == 0)
		return;
	kept->vdso_build_id_size = 0;
	counts->n_left_out[SEAM_KEPT_NOT_WRITTEN]++;
}

/* Wait for all jobs to end.  False: time is up, and they are given up. */
static bool wait_for_jobs(struct seam_kept_files *kept,
			  const struct seam_kept_destination *to)
{
	int fd = seam_helper_fd(kept->helper);
	bool has_time = true;

	while (has_time && seam_helper_collect(kept->helper))
		has_time = to->wait(to->context, fd, WAIT_MS);
	if (!has_time)
		seam_helper_abandon(kept->helper);
	return has_time;
}

static uint64_t rest(uint64_t budget, uint64_t used)
{
	return used < budget ? budget - used : 0;
}

static bool is_same(const struct seam_kept_file *file,
		    const struct seam_kept_file *other)
{
	return file->build_id_size == other->build_id_size &&
	       memcmp(file->build_id, other->build_id,
		      file->build_id_size) == 0 &&
	       (file->build_id_size || file->content_id == other->content_id);
}

/*
 * The file to copy where file @i is needed: a protected one with its build id,
 * else itself; SEAM_NONE: others with it differ.
 */
static uint32_t source_of(const struct seam_kept_files *kept, uint32_t i)
{
	const struct seam_kept_file *files = kept->files.items;
	const struct seam_kept_file *file = &files[i];
	uint64_t hash = hash_of(file->build_id, file->build_id_size,
				file->ino);
	uint32_t found = SEAM_INDEX_FIND(&kept->index, hash, k,
		is_same(&files[k], file) && files[k].fd >= 0 &&
		(files[k].is_protected || files[k].is_protected_there));

	if (found != SEAM_NONE)
		return found;
	found = SEAM_INDEX_FIND(&kept->index, hash, k, files[k].is_ambiguous &&
				is_same(&files[k], file));
	return found == SEAM_NONE ? i : SEAM_NONE;
}

/* One file at a time, so that the budget is exact. */
static void copy_files(struct seam_kept_files *kept,
		       const struct seam_kept_destination *to, uint64_t budget,
		       bool has_time, struct seam_kept_counts *counts)
{
	if (budget > SEAM_KEPT_MAX_BYTES)
		budget = SEAM_KEPT_MAX_BYTES;
	if (!kept->helper) {
		counts->n_left_out[SEAM_KEPT_TOO_MANY] += kept->files.n;
		return;
	}
	if (has_time && kept->files.n && seam_kept_file_check_paths(kept) == 0)
		has_time = wait_for_jobs(kept, to);
	for (uint32_t i = 0; i < kept->files.n; i++) {
		const struct seam_kept_file *file = &kept->files.items[i];
		uint32_t source;
		int r;

		if (file->is_at_path && !file->is_hit)
			continue;
		if (!has_time) {
			counts->n_left_out[SEAM_KEPT_INTERRUPTED]++;
			continue;
		}
		source = source_of(kept, i);
		r = source == SEAM_NONE ? -EACCES :
		    seam_kept_file_copy(kept, source, to->bundle,
					rest(budget, counts->n_bytes), counts);
		if (r < 0)
			seam_kept_counts_leave_out(counts, r, NULL);
		else
			has_time = wait_for_jobs(kept, to);
	}
	if (!has_time || counts->n_left_out[SEAM_KEPT_TIMED_OUT])
		seam_kept_file_remove_part(to->bundle);
}

void seam_kept_files_copy(struct seam_kept_files *kept,
			  const struct seam_kept_destination *to,
			  struct seam_kept_files_counts *counts)
{
	bool has_time = !kept->helper || wait_for_jobs(kept, to);

	*counts = (struct seam_kept_files_counts) {
		.files.n_left_out[SEAM_KEPT_TOO_MANY] = kept->n_too_many,
	};
	if (kept->has_vdso)
		copy_vdso(kept, to->bundle, &counts->files);
	seam_follow_copy(&kept->follow, to, &counts->jit);
	copy_files(kept, to, rest(to->budget_bytes, counts->jit.n_bytes),
		   has_time, &counts->files);
}

void seam_kept_files_fini(struct seam_kept_files *kept)
{
	for (size_t i = 0; i < kept->files.n; i++) {
		seam_helper_close(kept->helper, kept->files.items[i].user,
				  kept->files.items[i].fd);
		free(kept->files.items[i].path);
	}
	seam_helper_free(kept->helper);
	free(kept->files.items);
	seam_index_fini(&kept->index);
	seam_follow_fini(&kept->follow);
	*kept = (struct seam_kept_files) { 0 };
}
