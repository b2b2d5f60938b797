/* SPDX-License-Identifier: MIT */
/* cfi_files.c - jobs that open and read mapped files; see cfi_files.h */
#include "record/stacks/cfi_files.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* A vdso below this belongs to a 32-bit process and is not ours. */
#define FIRST_64_BIT_ADDR (UINT64_C(1) << 32)

/* Reading .eh_frame from a slow disk takes longer than opening a file. */
#define READ_LIMIT_NS (4 * SEAM_HELPER_LIMIT_NS)

static const char vdso[] = "[vdso]";

/* ---- in the helper thread ---- */

struct cfi_job {
	struct seam_helper_job job;
	struct seam_file_identity identity;
	struct seam_file_mapping mapping;	/* .path: path */
	bool reads;			/* not only opens */
	int fd;				/* or -errno; -1: to be opened */
	bool is_read;			/* the result is below */
	struct seam_cfi_file cfi;
	struct seam_unwind_rows rows;
	char path[];
};

/* Whether two states of a file have the same contents. */
static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ino == b->st_ino;
}

/* Take .debug_frame of the debug file at @path, as the process sees it. */
static bool take_debug_at(struct cfi_job *j, const char *path)
{
	const struct seam_file_mapping mapping = {
		.pid = j->mapping.pid, .path = path,
	};
	struct seam_file_identity identity = {
		.build_id_size = j->cfi.build_id_size,
	};
	struct seam_cfi_file other;
	int fd;

	memcpy(identity.build_id, j->cfi.build_id, identity.build_id_size);
	fd = seam_mapped_file_open(&mapping, &identity);
	seam_helper_progress(&j->job);
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
 * A program without .eh_frame may have its rules in a separate debug file:
 * by its build id, or as .gnu_debuglink names it, in the places of gdb.
 */
static void find_debug(struct cfi_job *j)
{
	static const char root[] = "/usr/lib/debug";
	static const struct {
		const char *root, *folder;
	} links[] = { { "", "" }, { "", "/.debug" }, { root, "" } };
	const struct seam_cfi_file *file = &j->cfi;
	const char *base = strrchr(j->path, '/');
	int n = base ? (int)(base - j->path) : 0;
	char id[2 * SEAM_BUILD_ID_MAX + 1], path[PATH_MAX];

	if (file->debug.entries.size || file->build_id_size < 2 ||
	    is_covered(file))
		return;
	seam_text_hex(id, file->build_id, file->build_id_size);
	snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", root, id,
		 id + 2);
	for (size_t i = 0; !take_debug_at(j, path) && file->debug_link[0] &&
	     i < SEAM_ARRAY_SIZE(links); i++)
		snprintf(path, sizeof(path), "%s%.*s%s/%s", links[i].root, n,
			 j->path, links[i].folder, file->debug_link);
}

/* Returns 0 or -errno; the descriptor is taken. */
static int read_cfi(struct cfi_job *j)
{
	struct stat before, after;
	int fd = j->fd, r;

	j->fd = -1;
	if (fstat(fd, &before) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	r = seam_cfi_file_open(&j->cfi, fd, NULL);
	if (r < 0)
		return r;
	/* what was written to meanwhile is not what the program runs */
	if (fstat(j->cfi.fd, &after) < 0 || !is_unchanged(&before, &after) ||
	    (j->identity.build_id_size &&
	     !seam_mapped_file_is(j->cfi.fd, &j->identity)))
		r = -ESTALE;
	if (r == 0)
		find_debug(j);
	if (r == 0)
		r = seam_unwind_rows_init(&j->rows, &j->cfi.eh,
					  &j->cfi.debug);
	if (r < 0)
		seam_cfi_file_close(&j->cfi);
	j->is_read = r == 0;
	return r;
}

static void run(struct seam_helper_job *job)
{
	struct cfi_job *j = (struct cfi_job *)job;
	int r;

	if (j->fd < 0)
		j->fd = seam_mapped_file_open(&j->mapping, &j->identity);
	seam_helper_progress(job);
	if (j->fd < 0 || !j->reads)
		return;
	r = read_cfi(j);
	j->fd = r < 0 ? r : -EBADF;
}

static void free_job(struct seam_helper_job *job)
{
	struct cfi_job *j = (struct cfi_job *)job;

	seam_file_close_fd(j->fd);
	if (j->is_read) {
		seam_unwind_rows_fini(&j->rows);
		seam_cfi_file_close(&j->cfi);
	}
	free(j);
}

/* ---- in the recorder's thread ---- */

static void fail(struct seam_cfi_files *files, struct seam_mapped_cfi *file)
{
	files->n_open--;
	file->state = SEAM_MAPPED_CFI_FAILED;
}

static void submit(struct seam_cfi_files *files, uint32_t id);

static void take_rows(struct seam_cfi_files *files,
		      struct seam_mapped_cfi *file, struct cfi_job *j)
{
	files->n_bytes += j->cfi.n_owned_bytes +
			  seam_unwind_rows_bytes(&j->rows);
	file->cfi = j->cfi;
	seam_cfi_file_keep_code(&file->cfi);
	file->rows = j->rows;
	file->state = SEAM_MAPPED_CFI_READY;
	j->is_read = false;
	/* the descriptor is for bytes of code only; some files have them */
	if (files->n_open > SEAM_CFI_FILES_MAX_OPEN / 2) {
		seam_cfi_file_release_fd(&file->cfi);
		files->n_open--;
	}
}

/* Keep the cause if @error says that the recorder, not the file, is at fault. */
static void note_shortage(struct seam_cfi_files *files, int error)
{
	if (error == -EMFILE || error == -ENFILE || error == -ENOMEM)
		files->shortage = error;
}

static void done(struct seam_helper_job *job, void *context)
{
	struct cfi_job *j = (struct cfi_job *)job;
	struct seam_cfi_files *files = context;
	struct seam_mapped_cfi *file = files->files.items[job->tag];

	files->n_changes++;
	if (j->is_read) {
		take_rows(files, file, j);
	} else if (j->fd >= 0) {
		file->fd = j->fd;
		j->fd = -1;
		file->state = SEAM_MAPPED_CFI_OPEN;
		if (file->is_wanted)
			submit(files, (uint32_t)job->tag);
	} else {
		note_shortage(files, j->fd);
		fail(files, file);
	}
}

static void given_up(void *context, uint64_t tag)
{
	struct seam_cfi_files *files = context;

	files->n_changes++;
	fail(files, files->files.items[tag]);
}

static struct cfi_job *new_job(struct seam_cfi_files *files, uint32_t id)
{
	struct seam_mapped_cfi *file = files->files.items[id];
	size_t path_bytes = strlen(file->path) + 1;
	struct cfi_job *j = calloc(1, sizeof(*j) + path_bytes);

	if (!j)
		return NULL;
	j->job = (struct seam_helper_job) {
		.run = run, .done = done, .given_up = given_up,
		.free = free_job, .context = files, .tag = id,
		.limit_ns = READ_LIMIT_NS,
	};
	j->identity = file->identity;
	j->mapping = file->mapping;
	memcpy(j->path, file->path, path_bytes);
	j->mapping.path = j->path;
	j->reads = file->is_wanted;
	j->fd = -1;
	return j;
}

/* Have the helper open the file, or read it if it is open. */
static void submit(struct seam_cfi_files *files, uint32_t id)
{
	struct seam_mapped_cfi *file = files->files.items[id];
	bool is_open = file->state == SEAM_MAPPED_CFI_OPEN;
	struct cfi_job *j = new_job(files, id);
	struct seam_err err = { 0 };

	if (!is_open)
		files->n_open++;
	if (j && is_open) {
		j->fd = file->fd;
		file->fd = -1;
	}
	file->state = SEAM_MAPPED_CFI_OPENING;
	if (!files->helper)
		files->helper = seam_helper_new(&err);
	note_shortage(files, err.code);
	if (!j || !files->helper) {
		if (j)
			free_job(&j->job);
		fail(files, file);
	} else if (seam_helper_submit(files->helper, &j->job) < 0) {
		fail(files, file);
	}
}

struct seam_mapped_cfi *seam_cfi_files_want(struct seam_cfi_files *files,
					    uint32_t id)
{
	struct seam_mapped_cfi *file = files->files.items[id];

	if (file->is_wanted)
		return file;
	file->is_wanted = true;
	if (files->n_bytes > SEAM_CFI_FILES_MAX_BYTES) {
		files->n_left_out++;
		return file;
	}
	if (file->state == SEAM_MAPPED_CFI_CLOSED ||
	    file->state == SEAM_MAPPED_CFI_OPEN)
		submit(files, id);
	return file;
}

static uint64_t hash_of(const struct seam_perf_mapping *m)
{
	return m->build_id_size ?
	       seam_hash_bytes(m->build_id, m->build_id_size, 0) :
	       seam_hash_bytes(m->filename, strlen(m->filename), m->ino);
}

static bool is_same(const struct seam_mapped_cfi *file,
		    const struct seam_perf_mapping *m)
{
	const struct seam_file_identity *id = &file->identity;

	if (id->build_id_size != m->build_id_size)
		return false;
	return m->build_id_size ?
	       memcmp(id->build_id, m->build_id, m->build_id_size) == 0 :
	       id->ino == m->ino && strcmp(file->path, m->filename) == 0;
}

static uint32_t find(const struct seam_cfi_files *files,
		     const struct seam_perf_mapping *m)
{
	return SEAM_INDEX_FIND(&files->index, hash_of(m), i,
			       is_same(files->files.items[i], m));
}

static void free_file(struct seam_mapped_cfi *file)
{
	seam_file_close_fd(file->fd);
	if (file->state == SEAM_MAPPED_CFI_READY) {
		seam_unwind_rows_fini(&file->rows);
		seam_cfi_file_close(&file->cfi);
	}
	free(file->path);
	free(file);
}

static bool ends_in(const char *path, const char *name)
{
	size_t n = strlen(path), length = strlen(name);

	return n >= length && strcmp(path + n - length, name) == 0;
}

/* The kernel gives all 64-bit processes the same vdso as us. */
static int read_vdso(struct seam_mapped_cfi *file)
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

static uint32_t add_file(struct seam_cfi_files *files,
			 const struct seam_perf_mapping *m)
{
	uint16_t *n = &files->of_process[(uint32_t)m->pid %
					 SEAM_CFI_FILES_COUNTERS];
	struct seam_mapped_cfi *file;
	uint32_t id;

	if (files->files.n >= SEAM_CFI_FILES_MAX ||
	    *n >= SEAM_CFI_FILES_MAX_OF_PROCESS)
		return SEAM_NONE;
	++*n;
	file = calloc(1, sizeof(*file));
	if (!file)
		return SEAM_NONE;
	*file = (struct seam_mapped_cfi) {
		.fd = -1, .path = strdup(m->filename),
		.is_jvm = ends_in(m->filename, "/libjvm.so"),
		.identity = { .build_id_size = m->build_id_size,
			      .ino = m->ino },
	};
	if (m->build_id_size)
		memcpy(file->identity.build_id, m->build_id,
		       m->build_id_size);
	id = file->path ? SEAM_INDEX_APPEND(&files->index, hash_of(m),
					    &files->files, file) : SEAM_NONE;
	if (id == SEAM_NONE)
		free_file(file);
	else if (strcmp(m->filename, vdso) == 0)
		file->state = read_vdso(file) < 0 ? SEAM_MAPPED_CFI_FAILED :
			      SEAM_MAPPED_CFI_READY;
	return id;
}

/* "//anon", "[heap]" and the like are no files; nor is a 32-bit vdso ours. */
static bool is_file(const struct seam_perf_mapping *m)
{
	return strcmp(m->filename, vdso) == 0 ? m->addr >= FIRST_64_BIT_ADDR :
	       m->filename[0] == '/' && m->filename[1] != '/';
}

uint32_t seam_cfi_files_add(struct seam_cfi_files *files,
			    const struct seam_perf_mapping *mapping,
			    bool is_new)
{
	struct seam_mapped_cfi *file;
	uint32_t id;

	if (!is_file(mapping))
		return SEAM_NONE;
	id = find(files, mapping);
	if (id == SEAM_NONE)
		id = add_file(files, mapping);
	if (id == SEAM_NONE) {
		files->n_left_out++;
		return id;
	}
	file = files->files.items[id];
	file->mapping = (struct seam_file_mapping) {
		.pid = mapping->pid, .begin = mapping->addr,
		.end = mapping->addr + mapping->len,
	};
	if (file->path[0] != '/' ||
	    (file->state != SEAM_MAPPED_CFI_CLOSED &&
	     file->state != SEAM_MAPPED_CFI_FAILED) ||
	    file->n_tries >= SEAM_CFI_FILES_MAX_TRIES)
		return id;
	if (is_new && files->n_open < SEAM_CFI_FILES_MAX_OPEN) {
		file->n_tries++;
		submit(files, id);
	}
	return id;
}

bool seam_cfi_files_collect(struct seam_cfi_files *files)
{
	return files->helper && seam_helper_collect(files->helper);
}

void seam_cfi_files_fini(struct seam_cfi_files *files)
{
	seam_helper_free(files->helper);
	for (size_t i = 0; i < files->files.n; i++)
		free_file(files->files.items[i]);
	free(files->files.items);
	seam_index_fini(&files->index);
	*files = (struct seam_cfi_files) { 0 };
}
