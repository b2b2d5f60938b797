/* SPDX-License-Identifier: MIT */
/* trace_image.c - the mapping at an address, and its file; trace_image.h */
#include "record/trace/trace_image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "record/proc/debug_file.h"
#include "record/proc/procfs.h"

struct image_job {
	struct seam_helper_job job;	/* tag: the image */
	int32_t pid;
	uint64_t address;
	struct seam_file_identity identity;
	struct seam_trace_file file, debug_file;	/* the result */
	char announced[];		/* path */
};

/* Where it is looked for, and what is there. */
struct mapping_at {
	uint64_t address;
	struct seam_file_mapping mapping;
	uint64_t ino;
	char path[PATH_MAX];		/* "": no file is mapped there */
};

static bool take_mapping(void *context, const struct seam_procfs_mapping *m)
{
	struct mapping_at *at = context;

	if (at->address < m->begin || at->address >= m->end)
		return true;
	at->mapping.begin = m->begin;
	at->mapping.end = m->end;
	at->ino = m->ino;
	if (m->ino && m->name[0] == '/')
		snprintf(at->path, sizeof(at->path), "%s", m->name);
	return false;
}

/* By the kernel's list of mappings: the announced path is not trusted. */
static bool find_mapping(int32_t pid, struct mapping_at *at)
{
	char name[32];
	int process;

	snprintf(name, sizeof(name), "/proc/%" PRId32, pid);
	process = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	at->mapping.pid = pid;
	at->mapping.path = at->path;
	seam_procfs_maps(process, take_mapping, at);
	seam_file_close_fd(process);
	return at->path[0];
}

/* fstat() is here too: a file system may be slow, or not answer. */
static void identify(struct seam_trace_file *file)
{
	struct stat st;
	int code;

	if (file->fd < 0)
		return;
	if (fstat(file->fd, &st) == 0) {
		file->device = st.st_dev;
		file->inode = st.st_ino;
		return;
	}
	code = -errno;
	close(file->fd);
	file->fd = code;
}

static void run(struct seam_helper_job *job)
{
	struct image_job *j = (struct image_job *)job;
	struct mapping_at at = { .address = j->address };
	struct seam_file_mapping mapping = {
		.pid = j->pid, .path = j->announced,
	};

	if (find_mapping(j->pid, &at)) {
		j->identity.ino = at.ino;
		mapping = at.mapping;
	} else if (!j->identity.build_id_size || j->announced[0] != '/') {
		j->file.fd = -ESRCH;
		return;
	}
	mapping.user = &job->user;
	j->file.fd = seam_mapped_file_open(&mapping, &j->identity, NULL);
	seam_helper_progress(job);
	identify(&j->file);
	j->debug_file.fd = seam_debug_file_open(&mapping, j->file.fd,
						&j->identity);
	seam_helper_progress(job);
	identify(&j->debug_file);
}

/* ---- in the caller's thread ---- */

/* Set *@to to a descriptor to borrow instead of @file's, or -1.  Or -errno. */
static int keep(struct seam_trace_announced *p, const struct image_job *j,
		struct seam_trace_file *file, int *to)
{
	int kept = file->fd < 0 ? file->fd :
		   seam_trace_keep_file(p->functions, file);

	seam_helper_close(p->functions->helper, j->job.user, file->fd);
	file->fd = -1;
	*to = kept < 0 ? -1 : kept;
	return kept < 0 ? kept : 0;
}

static void done(struct seam_helper_job *job, void *context)
{
	struct image_job *j = (struct image_job *)job;
	struct seam_trace_announced *p = context;
	struct seam_trace_image *image =
		seam_trace_find_image(p, (uint32_t)job->tag);

	if (!image)
		return;
	image->is_opening = false;
	image->code = keep(p, j, &j->file, &image->fd);
	keep(p, j, &j->debug_file, &image->debug_fd);
}

static void given_up(void *context, uint64_t tag)
{
	struct seam_trace_image *image =
		seam_trace_find_image(context, (uint32_t)tag);

	if (!image)
		return;
	image->is_opening = false;
	image->code = -ETIMEDOUT;
}

static void free_job(struct seam_helper_job *job)
{
	struct image_job *j = (struct image_job *)job;

	seam_file_close_fd(j->file.fd);
	seam_file_close_fd(j->debug_file.fd);
	free(j);
}

int seam_trace_image_open(struct seam_helper *helper,
			  struct seam_trace_announced *p,
			  const struct seam_trace_image *image,
			  uint64_t address)
{
	size_t path_bytes = strlen(image->path) + 1;
	uid_t user = seam_helper_user_of((int32_t)p->program.pid);
	struct image_job *j = calloc(1, sizeof(*j) + path_bytes);

	if (!j)
		return -ENOMEM;
	*j = (struct image_job) {
		.job = {
			.run = run, .done = done, .given_up = given_up,
			.free = free_job, .context = p, .tag = image->image,
			.user = user == SEAM_HELPER_NO_USER ? p->user : user,
		},
		.pid = (int32_t)p->program.pid, .address = address,
		.file.fd = -1, .debug_file.fd = -1,
		.identity.build_id_size = image->build_id_bytes,
	};
	memcpy(j->identity.build_id, image->build_id, sizeof(image->build_id));
	memcpy(j->announced, image->path, path_bytes);
	return seam_helper_submit(helper, &j->job);
}
