/* SPDX-License-Identifier: MIT */
/* cfi_files.c - what is mapped, opened and read; see cfi_files.h */
#include "record/stacks/cfi_files.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "symbol/elf/build_id.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reading .eh_frame from a slow disk takes longer than opening a file. */
#define READ_LIMIT_NS (4 * SEAM_HELPER_LIMIT_NS)

/* A vdso below this belongs to a 32-bit process and is not ours. */
#define FIRST_64_BIT_ADDR (UINT64_C(1) << 32)

static const char vdso[] = "[vdso]";

/* A file as a process maps it, to be opened or read. */
struct cfi_job {
	struct seam_helper_job job;
	struct seam_file_identity identity;
	struct seam_file_mapping mapping;	/* .path is the job's */
	struct seam_file_version version;
	bool is_protected;			/* see target_file.h */
	int fd;
	/* Of one that reads: */
	int result;			/* 0 or -errno; 0: of the following */
	struct seam_cfi_file cfi;
	struct seam_unwind_rows rows;
	char path[];
};

static bool is_version(const struct seam_file_version *a,
		       const struct seam_file_version *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;	/* no padding */
}

/* ---- jobs: open ---- */

static int read_version(int fd, struct seam_file_version *version)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*version = (struct seam_file_version) {
		.dev = st.st_dev, .ino = st.st_ino,
		.size = (uint64_t)st.st_size,
		.mtime_ns = seam_clock_of(st.st_mtim),
		.ctime_ns = seam_clock_of(st.st_ctim),
		.uid = st.st_uid,
		.n_links = st.st_nlink,
	};
	return 0;
}

static void run_open(struct seam_helper_job *job)
{
	struct cfi_job *j = (struct cfi_job *)job;
	int r;

	j->fd = seam_mapped_file_open(&j->mapping, &j->identity,
				      &j->is_protected);
	r = j->fd < 0 ? 0 : read_version(j->fd, &j->version);
	if (r < 0) {
		close(j->fd);
		j->fd = r;
	}
}

/* ---- jobs: read ---- */

/*
 * Take .debug_frame of the debug file at @path, as the process sees it.  All
 * that map the main file will use it, so its author is to be the same.
 */
static bool take_debug_at(struct cfi_job *j, const char *path)
{
	const struct seam_file_mapping mapping = {
		.pid = j->mapping.pid, .path = path,
	};
	struct seam_file_identity identity = {
		.build_id_size = j->cfi.build_id_size,
	};
	struct seam_file_version version = { 0 };
	struct seam_cfi_file other;
	bool is_protected;
	int fd;

	memcpy(identity.build_id, j->cfi.build_id, identity.build_id_size);
	fd = seam_mapped_file_open(&mapping, &identity, &is_protected);
	seam_helper_progress(&j->job);
	if (fd >= 0 && !is_protected &&
	    (j->is_protected || read_version(fd, &version) < 0 ||
	     version.uid != j->version.uid)) {
		close(fd);
		return false;
	}
	return fd >= 0 && seam_cfi_file_open(&other, fd, NULL) == 0 &&
	       seam_cfi_file_take_debug(&j->cfi, &other);
}

/*
 * Whether nearly all code has .eh_frame, by PLACES addresses of each segment.
 * Most files are so, and need no further file.
 */
static bool is_covered(const struct seam_cfi_file *file)
{
	enum { PLACES = 64 };
	struct seam_eh_fde fde = { 0 };
	unsigned int n = 0, n_without = 0;

	for (size_t i = 0; i < file->segments.n; i++) {
		const struct seam_segment *s = &file->segments.items[i];

		for (uint64_t k = 0; s->is_executable && k < PLACES; k++, n++)
			n_without += seam_eh_frame_find(&file->eh, s->addr +
				s->size / PLACES * k, &fde) != 1;
	}
	return n_without <= n / 4;
}

/*
 * The @i-th path to try for the debug file of the file that was mapped from
 * @mapped: by its build id; by the name in .gnu_debuglink beside the file, in
 * .debug/ beside it, and below /usr/lib/debug.  False: there are no more.
 * Source: gdb's manual, "Debugging Information in Separate Files".
 */
static bool debug_path(const struct seam_cfi_file *file, const char *mapped,
		       unsigned int i, char path[PATH_MAX])
{
	static const char debug_root[] = "/usr/lib/debug";
	static const struct {
		const char *root, *folder;
	} places[] = { { "", "" }, { "", "/.debug" }, { debug_root, "" } };
	const char *base = strrchr(mapped, '/');
	char id[2 * SEAM_MAPPED_BUILD_ID + 1];

	if (i == 0) {
		seam_text_hex(id, file->build_id, file->build_id_size);
		snprintf(path, PATH_MAX, "%s/.build-id/%.2s/%s.debug",
			 debug_root, id, id + 2);
		return true;
	}
	if (i > SEAM_ARRAY_SIZE(places) || !file->debug_link[0] || !base)
		return false;
	snprintf(path, PATH_MAX, "%s%.*s%s/%s", places[i - 1].root,
		 (int)(base - mapped), mapped, places[i - 1].folder,
		 file->debug_link);
	return true;
}

static void run_read(struct seam_helper_job *job)
{
	struct cfi_job *j = (struct cfi_job *)job;
	struct seam_file_version now = { 0 };
	char path[PATH_MAX];
	unsigned int i = 0;
	int r = seam_cfi_file_open(&j->cfi, j->fd, NULL);

	j->fd = -1;
	seam_helper_progress(job);
	j->result = r;
	if (r < 0)
		return;
	/* what was written to meanwhile is not what the program runs */
	r = read_version(j->cfi.fd, &now);
	/* its inode changes when the file is removed, or replaced by another */
	if (now.n_links < j->version.n_links) {
		now.n_links = j->version.n_links;
		now.ctime_ns = j->version.ctime_ns;
	}
	if (r < 0 || !is_version(&now, &j->version) ||
	    (j->identity.build_id_size &&
	     !seam_mapped_file_is(j->cfi.fd, &j->identity)))
		r = -ESTALE;
	/* a program without .eh_frame may have its rules in a debug file */
	if (r == 0 && !j->cfi.debug.entries.size && j->cfi.build_id_size >= 2 &&
	    !is_covered(&j->cfi))
		while (debug_path(&j->cfi, j->path, i, path) &&
		       !take_debug_at(j, path))
			i++;
	if (r == 0)
		r = seam_unwind_rows_init(&j->rows, &j->cfi.eh, &j->cfi.debug);
	if (r < 0)
		seam_cfi_file_close(&j->cfi);
	j->result = r;
}

static void free_job(struct seam_helper_job *job)
{
	struct cfi_job *j = (struct cfi_job *)job;

	seam_file_close_fd(j->fd);
	if (j->result == 0) {
		seam_unwind_rows_fini(&j->rows);
		seam_cfi_file_close(&j->cfi);
	}
	free(j);
}

/* ---- one file ---- */

/*
 * A job for the file of @m, which opens it: the result is .fd or -errno,
 * .version and .is_protected.  The caller sets .done and .given_up.  NULL: no
 * memory.
 */
static struct cfi_job *new_job(const struct seam_cfi_mapping *m)
{
	size_t path_bytes = strlen(m->path) + 1;
	struct cfi_job *j = calloc(1, sizeof(*j) + path_bytes);

	if (!j)
		return NULL;
	memcpy(j->path, m->path, path_bytes);
	j->identity = m->identity;
	j->mapping = m->mapping;
	j->mapping.path = j->path;
	j->job.run = run_open;
	j->job.free = free_job;
	j->job.limit_ns = READ_LIMIT_NS;
	j->job.user = seam_helper_user_of(m->mapping.pid);
	j->fd = -1;
	j->result = -EBADF;		/* nothing was read yet */
	return j;
}

/* Keep the cause if @error is the fault of the recorder, not of the file. */
static void note_shortage(struct seam_cfi_files *files, int error)
{
	if (error == -EMFILE || error == -ENFILE || error == -ENOMEM)
		files->shortage = error;
}

/* @j may be NULL: out of memory.  False: it will not run. */
static bool submit(struct seam_cfi_files *files, struct cfi_job *j,
		   uint32_t tag)
{
	struct seam_err err = { .code = -ENOMEM };

	if (j && !files->helper)
		files->helper = seam_helper_new(&err);
	if (j && files->helper) {
		j->job.context = files;
		j->job.tag = tag;
		err.code = seam_helper_submit(files->helper, &j->job);
	} else if (j) {
		free_job(&j->job);
	}
	note_shortage(files, err.code);
	return err.code == 0;
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

static void done_reading(struct seam_helper_job *job, void *context)
{
	struct cfi_job *j = (struct cfi_job *)job;
	struct seam_cfi_files *files = context;
	struct seam_mapped_file_cfi *file = files->files.items[job->tag];

	note_shortage(files, j->result);
	if (j->result < 0) {
		read_failed(files, job->tag);
		return;
	}
	files->n_changes++;
	files->n_bytes += j->cfi.n_owned_bytes;
	file->cfi = j->cfi;
	seam_cfi_file_keep_code(&file->cfi);
	file->rows = j->rows;
	file->state = SEAM_FILE_CFI_READY;
	j->result = -EBADF;		/* moved */
	/* the descriptor is for bytes of code only; some files have them */
	if (files->n_open > SEAM_CFI_FILES_MAX_OPEN / 2) {
		seam_helper_close(files->helper, file->user, file->cfi.fd);
		file->cfi.fd = -1;
		files->n_open--;
	}
}

/* Have the helper read the file of @m, for the first time. */
static void read_file(struct seam_cfi_files *files,
		      const struct seam_cfi_mapping *m)
{
	struct seam_mapped_file_cfi *file = files->files.items[m->file];
	struct cfi_job *j = new_job(m);

	if (j) {
		j->job.run = run_read;
		j->job.done = done_reading;
		j->job.given_up = read_failed;
		j->version = file->version;
		j->is_protected = file->is_protected;
		j->fd = file->fd;
		file->fd = -1;
		file->state = SEAM_FILE_CFI_READING;
	}
	if (!submit(files, j, m->file))
		read_failed(files, m->file);
}

/* The id of the file that @j has opened, known or new; SEAM_NONE: no room. */
static uint32_t add_file(struct seam_cfi_files *files, struct cfi_job *j)
{
	uint64_t hash = seam_hash_bytes(&j->version, sizeof(j->version), 0);
	struct seam_mapped_file_cfi *file;
	uint32_t id = SEAM_INDEX_FIND(&files->by_version, hash, k,
		is_version(&files->files.items[k]->version, &j->version));

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

	if (m->n_users || m->is_for_all || m->state == SEAM_CFI_MAPPING_OPENING)
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
	struct cfi_job *j = (struct cfi_job *)job;
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
	struct cfi_job *j = new_job(&files->mappings.items[id]);

	if (j) {
		j->job.done = done_opening;
		j->job.given_up = open_failed;
	}
	files->mappings.items[id].state = SEAM_CFI_MAPPING_OPENING;
	files->n_open++;
	if (!submit(files, j, id))
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

/* The kernel gives all 64-bit processes the same vdso as us. */
static int read_vdso(struct seam_mapped_file_cfi *file)
{
	uint8_t id[SEAM_MAPPED_BUILD_ID];
	size_t id_size;
	struct seam_bytes vdso_file = seam_own_vdso(id, &id_size);
	int r = seam_cfi_file_open_image(&file->cfi, vdso_file, NULL);

	if (r < 0)
		return r;
	r = seam_unwind_rows_init(&file->rows, &file->cfi.eh, &file->cfi.debug);
	if (r < 0)
		seam_cfi_file_close(&file->cfi);
	return r;
}

/* It is there at once, for all processes, and known by a version of zeros. */
static void add_vdso(struct seam_cfi_files *files, uint32_t id)
{
	struct seam_cfi_mapping *m = &files->mappings.items[id];
	struct cfi_job none = { .fd = -1, .is_protected = true };
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

static uint32_t add_mapping(struct seam_cfi_files *files,
			    const struct seam_perf_mapping *m,
			    const struct seam_file_identity *identity)
{
	uid_t user = seam_helper_user_of(m->pid);
	bool has_room = seam_user_share_take_file(files->of_user, user);
	char *path = has_room ? strdup(m->filename) : NULL;
	const char *base = path ? strrchr(path, '/') : NULL;
	uint32_t id = (uint32_t)files->mappings.n;

	if (!path)
		id = SEAM_NONE;
	else if (files->free.n)
		id = files->free.items[--files->free.n];
	else if (id >= SEAM_CFI_FILES_MAX_MAPPED ||
		 !SEAM_ARRAY_GROW(&files->mappings, id + 1))
		id = SEAM_NONE;
	if (id == SEAM_NONE) {
		files->of_user[seam_user_share_of(user)] -= has_room;
		free(path);
		return id;
	}
	files->mappings.items[id] = (struct seam_cfi_mapping) {
		.state = SEAM_CFI_MAPPING_CLOSED, .path = path, .n_users = 1,
		.user = user,
		.is_memory = seam_perf_mapping_is_memory(path),
		.is_jvm = base && strcmp(base, "/libjvm.so") == 0,
		.identity = *identity,
		.mapping = { .pid = m->pid, .begin = m->addr,
			     .end = m->addr + m->len },
	};
	if (strcmp(path, vdso) == 0)
		add_vdso(files, id);
	return id;
}

uint32_t seam_cfi_files_add(struct seam_cfi_files *files,
			    const struct seam_perf_mapping *mapping,
			    bool is_new, uint32_t near)
{
	struct seam_file_identity identity = {
		.build_id_size = mapping->build_id_size, .ino = mapping->ino,
	};
	const char *path = mapping->filename;
	uint32_t id;

	/*
	 * "//anon", "[heap]" and the like are no files; nor is "/dev/zero
	 * (deleted)", shared memory.  A 32-bit vdso is not ours.
	 */
	if (strcmp(path, vdso) == 0 ? mapping->addr < FIRST_64_BIT_ADDR :
	    path[0] != '/' || path[1] == '/' ||
	    strncmp(path, "/dev/", strlen("/dev/")) == 0)
		return SEAM_NONE;
	if (mapping->build_id_size)
		memcpy(identity.build_id, mapping->build_id,
		       mapping->build_id_size);
	id = find(files, &identity, path);
	if (id == SEAM_NONE && near != SEAM_NONE &&
	    is_same(&files->mappings.items[near], &identity, path))
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
	for (size_t i = 0; i < files->files.n; i++) {
		struct seam_mapped_file_cfi *file = files->files.items[i];

		seam_helper_close(files->helper, file->user, file->fd);
		if (file->state == SEAM_FILE_CFI_READY) {
			seam_helper_close(files->helper, file->user,
					  file->cfi.fd);
			file->cfi.fd = -1;
			seam_unwind_rows_fini(&file->rows);
			seam_cfi_file_close(&file->cfi);
		}
		free(file);
	}
	seam_helper_free(files->helper);
	free(files->mappings.items);
	free(files->free.items);
	free(files->files.items);
	seam_index_fini(&files->for_all);
	seam_index_fini(&files->by_version);
	*files = (struct seam_cfi_files) { 0 };
}
