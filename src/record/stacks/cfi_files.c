/* SPDX-License-Identifier: MIT */
/* cfi_files.c - what is mapped, opened and read; see cfi_files.h */
#include "record/stacks/cfi_files.h"

#include "base/hash.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>

/* A vdso below this belongs to a 32-bit process and is not ours. */
#define FIRST_64_BIT_ADDR (UINT64_C(1) << 32)

static const char vdso[] = "[vdso]";

/* ---- one file ---- */

/* Keep the cause if @error is the fault of the recorder, not of the file. */
static void note_shortage(struct seam_cfi_files *files, int error)
{
	if (error == -EMFILE || error == -ENFILE || error == -ENOMEM)
		files->shortage = error;
}

/* @j may be NULL: out of memory.  False: it will not run. */
static bool submit(struct seam_cfi_files *files, struct seam_cfi_job *j,
		   void (*done)(struct seam_helper_job *job, void *context),
		   void (*given_up)(void *context, uint64_t tag), uint64_t tag)
{
	struct seam_err err = { .code = j ? 0 : -ENOMEM };
	int r;

	if (j && !files->helper)
		files->helper = seam_helper_new(&err);
	note_shortage(files, err.code);
	if (!j)
		return false;
	j->job.done = done;
	j->job.given_up = given_up;
	j->job.context = files;
	j->job.tag = tag;
	if (files->helper) {
		r = seam_helper_submit(files->helper, &j->job);
		note_shortage(files, r);
		return r == 0;
	}
	j->job.free(&j->job);
	return false;
}

static void read_failed(void *context, uint64_t tag)
{
	struct seam_cfi_files *files = context;
	struct seam_mapped_file_cfi *file = files->files.items[tag];

	files->n_changes++;
	files->n_open--;
	seam_helper_close(files->helper, file->user, file->fd);
	file->fd = -1;
	file->state = SEAM_FILE_CFI_FAILED;
}

static void close_code(const struct seam_cfi_files *files,
		       struct seam_mapped_file_cfi *file)
{
	seam_helper_close(files->helper, file->user, file->cfi.fd);
	file->cfi.fd = -1;
}

static void take_rows(struct seam_cfi_files *files,
		      struct seam_mapped_file_cfi *file,
		      struct seam_cfi_job *j)
{
	files->n_changes++;
	files->n_bytes += j->cfi.n_owned_bytes +
			  seam_unwind_rows_bytes(&j->rows);
	file->cfi = j->cfi;
	seam_cfi_file_keep_code(&file->cfi);
	file->rows = j->rows;
	file->state = SEAM_FILE_CFI_READY;
	j->result = -EBADF;		/* moved */
	/* the descriptor is for bytes of code only; some files have them */
	if (files->n_open > SEAM_CFI_FILES_MAX_OPEN / 2) {
		close_code(files, file);
		files->n_open--;
	}
}

static void done_reading(struct seam_helper_job *job, void *context)
{
	struct seam_cfi_job *j = (struct seam_cfi_job *)job;
	struct seam_cfi_files *files = context;

	note_shortage(files, j->result);
	if (j->result < 0)
		read_failed(files, job->tag);
	else
		take_rows(files, files->files.items[job->tag], j);
}

/* Have the helper read the file of @m, for the first time. */
static void read_file(struct seam_cfi_files *files,
		      const struct seam_cfi_mapping *m)
{
	struct seam_mapped_file_cfi *file = files->files.items[m->file];
	struct seam_file_mapping mapping = m->mapping;
	struct seam_cfi_job *j;

	mapping.path = m->path;
	j = seam_cfi_read_job_new(&m->identity, &mapping, &file->version,
				  file->is_protected, file->fd);
	if (j) {
		file->fd = -1;
		file->state = SEAM_FILE_CFI_READING;
	}
	if (!submit(files, j, done_reading, read_failed, m->file))
		read_failed(files, m->file);
}

/* The id of the file that @j has opened, known or new; SEAM_NONE: no room. */
static uint32_t add_file(struct seam_cfi_files *files, struct seam_cfi_job *j)
{
	uint64_t hash = seam_hash_bytes(&j->version, sizeof(j->version), 0);
	struct seam_mapped_file_cfi *file;
	uint32_t id = SEAM_INDEX_FIND(&files->by_version, hash, k,
		seam_file_version_is(&files->files.items[k]->version,
				     &j->version));

	if (id != SEAM_NONE)
		return id;
	file = files->files.n < SEAM_CFI_FILES_MAX ? calloc(1, sizeof(*file)) :
						     NULL;
	id = file ? SEAM_INDEX_APPEND(&files->by_version, hash, &files->files,
				      file) : SEAM_NONE;
	if (id == SEAM_NONE) {
		free(file);
		files->n_left_out++;
		return id;
	}
	file->is_protected = j->is_protected;
	file->version = j->version;
	file->user = j->job.user;
	file->fd = j->fd;
	j->fd = -1;
	return id;
}

static void free_file(const struct seam_cfi_files *files,
		      struct seam_mapped_file_cfi *file)
{
	seam_helper_close(files->helper, file->user, file->fd);
	if (file->state == SEAM_FILE_CFI_READY) {
		close_code(files, file);
		seam_unwind_rows_fini(&file->rows);
		seam_cfi_file_close(&file->cfi);
	}
	free(file);
}

/* ---- a file as processes map it ---- */

static uint64_t hash_of(const struct seam_file_identity *id, const char *path)
{
	return id->build_id_size ?
	       seam_hash_bytes(id->build_id, id->build_id_size, 0) :
	       seam_hash_bytes(path, strlen(path), id->ino);
}

static bool is_same(const struct seam_cfi_mapping *mapping,
		    const struct seam_file_identity *id, const char *path)
{
	const struct seam_file_identity *its = &mapping->identity;

	if (its->build_id_size != id->build_id_size)
		return false;
	return id->build_id_size ?
	       memcmp(its->build_id, id->build_id, id->build_id_size) == 0 :
	       its->ino == id->ino && strcmp(mapping->path, path) == 0;
}

/* The one that is for all processes. */
static uint32_t find(const struct seam_cfi_files *files,
		     const struct seam_file_identity *id, const char *path)
{
	return SEAM_INDEX_FIND(&files->for_all, hash_of(id, path), i,
			       is_same(&files->mappings.items[i], id, path));
}

/* Free the slot if nothing uses it. */
static void release(struct seam_cfi_files *files, uint32_t id)
{
	struct seam_cfi_mapping *m = &files->mappings.items[id];

	if (m->n_users || m->is_for_all ||
	    m->state == SEAM_CFI_MAPPING_OPENING)
		return;
	files->of_user[seam_user_share_of(m->user)]--;
	free(m->path);
	*m = (struct seam_cfi_mapping) { .state = SEAM_CFI_MAPPING_FREE };
	(void)SEAM_ARRAY_ADD(&files->free, id);
}

void seam_cfi_files_use(struct seam_cfi_files *files, uint32_t id, int n)
{
	if (id == SEAM_NONE)
		return;
	files->mappings.items[id].n_users += (uint32_t)n;
	if (n < 0)
		release(files, id);
}

/* Later mappings with this identity are of this file. */
static void share(struct seam_cfi_files *files, uint32_t id)
{
	struct seam_cfi_mapping *m = &files->mappings.items[id];

	m->is_for_all = find(files, &m->identity, m->path) == SEAM_NONE &&
			seam_index_add(&files->for_all,
				       hash_of(&m->identity, m->path), id) == 0;
}

static void open_failed(void *context, uint64_t tag)
{
	struct seam_cfi_files *files = context;

	files->n_changes++;
	files->n_open--;
	files->mappings.items[tag].state = SEAM_CFI_MAPPING_FAILED;
	release(files, (uint32_t)tag);
}

static void want_file(struct seam_cfi_files *files, struct seam_cfi_mapping *m)
{
	if (files->files.items[m->file]->state != SEAM_FILE_CFI_UNREAD)
		return;
	if (files->n_bytes <= SEAM_CFI_FILES_MAX_BYTES) {
		read_file(files, m);
		return;
	}
	files->n_left_out++;
	read_failed(files, m->file);
}

static void done_opening(struct seam_helper_job *job, void *context)
{
	struct seam_cfi_job *j = (struct seam_cfi_job *)job;
	struct seam_cfi_files *files = context;
	struct seam_cfi_mapping *m = &files->mappings.items[job->tag];

	if (j->fd < 0) {
		note_shortage(files, j->fd);
		open_failed(files, job->tag);
		return;
	}
	files->n_changes++;
	m->file = add_file(files, j);
	files->n_open -= j->fd >= 0;	/* closed with the job */
	m->state = m->file != SEAM_NONE ? SEAM_CFI_MAPPING_OPEN :
					  SEAM_CFI_MAPPING_FAILED;
	if (m->file != SEAM_NONE && j->is_protected)
		share(files, (uint32_t)job->tag);
	if (m->file != SEAM_NONE && m->is_wanted)
		want_file(files, m);
	release(files, (uint32_t)job->tag);
}

static void open_file(struct seam_cfi_files *files, uint32_t id)
{
	struct seam_cfi_mapping *m = &files->mappings.items[id];
	struct seam_file_mapping mapping = m->mapping;
	struct seam_cfi_job *j;

	mapping.path = m->path;
	j = seam_cfi_open_job_new(&m->identity, &mapping);
	m->state = SEAM_CFI_MAPPING_OPENING;
	files->n_open++;
	if (!submit(files, j, done_opening, open_failed, id))
		open_failed(files, id);
}

struct seam_mapped_file_cfi *seam_cfi_files_want(struct seam_cfi_files *files,
						 uint32_t id, bool *is_pending)
{
	struct seam_cfi_mapping *m = &files->mappings.items[id];
	struct seam_mapped_file_cfi *file;

	m->is_wanted = true;
	if (m->state == SEAM_CFI_MAPPING_CLOSED)
		open_file(files, id);
	*is_pending = m->state == SEAM_CFI_MAPPING_OPENING;
	if (m->state != SEAM_CFI_MAPPING_OPEN)
		return NULL;
	want_file(files, m);
	file = files->files.items[m->file];
	*is_pending = file->state == SEAM_FILE_CFI_READING;
	return file->state == SEAM_FILE_CFI_READY ? file : NULL;
}

static bool ends_in(const char *path, const char *name)
{
	size_t n = strlen(path), length = strlen(name);

	return n >= length && strcmp(path + n - length, name) == 0;
}

/* The kernel gives all 64-bit processes the same vdso as us. */
static int read_vdso(struct seam_mapped_file_cfi *file)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *header = (const void *)image;
	int r;

	if (!image)
		return -ENOENT;
	r = seam_cfi_file_open_image(&file->cfi, (struct seam_bytes) {
			image, header->e_shoff +
			(size_t)header->e_shnum * header->e_shentsize }, NULL);
	if (r < 0)
		return r;
	r = seam_unwind_rows_init(&file->rows, &file->cfi.eh,
				  &file->cfi.debug);
	if (r < 0)
		seam_cfi_file_close(&file->cfi);
	return r;
}

/* It is there at once, for all processes, and known by a version of zeros. */
static void add_vdso(struct seam_cfi_files *files, uint32_t id)
{
	struct seam_cfi_mapping *m = &files->mappings.items[id];
	struct seam_cfi_job none = { .fd = -1, .is_protected = true };
	struct seam_mapped_file_cfi *file;

	m->file = add_file(files, &none);
	m->state = SEAM_CFI_MAPPING_FAILED;
	if (m->file == SEAM_NONE)
		return;
	file = files->files.items[m->file];
	if (file->state == SEAM_FILE_CFI_UNREAD)
		file->state = read_vdso(file) < 0 ? SEAM_FILE_CFI_FAILED :
						    SEAM_FILE_CFI_READY;
	m->state = SEAM_CFI_MAPPING_OPEN;
	share(files, id);
}

static uint32_t new_slot(struct seam_cfi_files *files)
{
	uint32_t id = (uint32_t)files->mappings.n;

	if (files->free.n)
		return files->free.items[--files->free.n];
	return id < SEAM_CFI_FILES_MAX_MAPPED &&
	       SEAM_ARRAY_GROW(&files->mappings, id + 1) ? id : SEAM_NONE;
}

static uint32_t add_mapping(struct seam_cfi_files *files,
			    const struct seam_perf_mapping *m,
			    const struct seam_file_identity *identity)
{
	uid_t user = seam_helper_user_of(m->pid);
	bool has_room = seam_user_share_take_file(files->of_user, user);
	char *path = has_room ? strdup(m->filename) : NULL;
	uint32_t id = path ? new_slot(files) : SEAM_NONE;

	if (id == SEAM_NONE) {
		files->of_user[seam_user_share_of(user)] -= has_room;
		free(path);
		return id;
	}
	files->mappings.items[id] = (struct seam_cfi_mapping) {
		.state = SEAM_CFI_MAPPING_CLOSED, .path = path, .n_users = 1,
		.user = user,
		.is_memory = seam_perf_mapping_is_memory(path),
		.is_jvm = ends_in(path, "/libjvm.so"), .identity = *identity,
		.mapping = { .pid = m->pid, .begin = m->addr,
			     .end = m->addr + m->len },
	};
	if (strcmp(path, vdso) == 0)
		add_vdso(files, id);
	return id;
}

/*
 * "//anon", "[heap]" and the like are no files; nor is "/dev/zero (deleted)",
 * shared memory.  A 32-bit vdso is not ours.
 */
static bool is_file(const struct seam_perf_mapping *m)
{
	return strcmp(m->filename, vdso) == 0 ? m->addr >= FIRST_64_BIT_ADDR :
	       m->filename[0] == '/' && m->filename[1] != '/' &&
	       strncmp(m->filename, "/dev/", strlen("/dev/")) != 0;
}

uint32_t seam_cfi_files_add(struct seam_cfi_files *files,
			    const struct seam_perf_mapping *mapping,
			    bool is_new, uint32_t near)
{
	struct seam_file_identity identity = {
		.build_id_size = mapping->build_id_size, .ino = mapping->ino,
	};
	uint32_t id;

	if (!is_file(mapping))
		return SEAM_NONE;
	if (mapping->build_id_size)
		memcpy(identity.build_id, mapping->build_id,
		       mapping->build_id_size);
	id = find(files, &identity, mapping->filename);
	if (id == SEAM_NONE && near != SEAM_NONE &&
	    is_same(&files->mappings.items[near], &identity,
		    mapping->filename))
		id = near;
	if (id != SEAM_NONE) {
		files->mappings.items[id].n_users++;
		return id;
	}
	id = add_mapping(files, mapping, &identity);
	if (id == SEAM_NONE)
		files->n_left_out++;
	else if (is_new && files->n_open < SEAM_CFI_FILES_MAX_OPEN &&
		 files->mappings.items[id].state == SEAM_CFI_MAPPING_CLOSED)
		open_file(files, id);
	return id;
}

bool seam_cfi_files_collect(struct seam_cfi_files *files)
{
	return files->helper && seam_helper_collect(files->helper);
}

void seam_cfi_files_fini(struct seam_cfi_files *files)
{
	for (size_t i = 0; i < files->mappings.n; i++)
		free(files->mappings.items[i].path);
	for (size_t i = 0; i < files->files.n; i++)
		free_file(files, files->files.items[i]);
	seam_helper_free(files->helper);
	free(files->mappings.items);
	free(files->free.items);
	free(files->files.items);
	seam_index_fini(&files->for_all);
	seam_index_fini(&files->by_version);
	*files = (struct seam_cfi_files) { 0 };
}
