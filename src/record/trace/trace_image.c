/* SPDX-License-Identifier: MIT */
/* trace_image.c - the mapping at an address, and its file; trace_image.h */
#include "record/trace/trace_image.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "base/file.h"
#include "record/proc/mapped_file.h"

enum { MAX_LINES = 1 << 18 };	/* vm.max_map_count is 65530 by default */

struct image_job {
	struct seam_helper_job job;	/* tag: the image */
	int32_t pid;
	uint64_t address;
	struct seam_file_identity identity;
	int fd;				/* the result: or -errno */
	char announced[];		/* path */
};

/* "begin-end rights offset device inode    path" */
static bool read_line(const char *line, uint64_t address,
		      struct seam_file_mapping *mapping, uint64_t *ino,
		      char path[PATH_MAX])
{
	int at = 0;
	size_t n;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %" SCNu64 " %n",
		   &mapping->begin, &mapping->end, ino, &at) < 3 || !at ||
	    address < mapping->begin || address >= mapping->end)
		return false;
	n = strcspn(line + at, "\n");
	n = n < PATH_MAX ? n : PATH_MAX - 1;
	memcpy(path, line + at, n);
	path[n] = '\0';
	mapping->path = path;
	return *ino && path[0] == '/';
}

/*
 * A line, cut.  A path may be longer than any that can be opened: what is after
 * the cut is no line of its own, though it may look like one.
 */
static bool next_line(FILE *maps, char *line, size_t size)
{
	int c;

	if (!fgets(line, (int)size, maps))
		return false;
	if (!strchr(line, '\n'))
		while ((c = getc(maps)) != EOF && c != '\n')
			;
	return true;
}

/* The kernel knows what is mapped there; the program has only said so. */
static bool find_mapping(int32_t pid, uint64_t address,
			 struct seam_file_mapping *mapping, uint64_t *ino,
			 char path[PATH_MAX])
{
	char name[32], line[PATH_MAX + 128];
	bool is_found = false;
	FILE *maps;

	snprintf(name, sizeof(name), "/proc/%" PRId32 "/maps", pid);
	maps = fopen(name, "re");
	for (int i = 0; maps && !is_found && i < MAX_LINES &&
	     next_line(maps, line, sizeof(line)); i++)
		is_found = read_line(line, address, mapping, ino, path);
	if (maps)
		fclose(maps);
	return is_found;
}

static void run(struct seam_helper_job *job)
{
	struct image_job *j = (struct image_job *)job;
	struct seam_file_mapping mapping = { .pid = j->pid };
	char path[PATH_MAX];

	if (find_mapping(j->pid, j->address, &mapping, &j->identity.ino,
			 path)) {
		j->fd = seam_mapped_file_open(&mapping, &j->identity, NULL);
		return;
	}
	mapping = (struct seam_file_mapping) {
		.pid = j->pid, .path = j->announced,
	};
	j->identity.ino = 0;
	j->fd = j->identity.build_id_size && j->announced[0] == '/' ?
		seam_mapped_file_open(&mapping, &j->identity, NULL) : -ESRCH;
}

static void done(struct seam_helper_job *job, void *context)
{
	struct image_job *j = (struct image_job *)job;
	struct seam_trace_announced *p = context;
	struct seam_trace_image *image =
		seam_trace_find_image(p, (uint32_t)job->tag);
	int fd = j->fd;

	if (!image)
		return;
	image->is_opening = false;
	if (fd >= 0)
		fd = seam_trace_keep_file(p->functions, fd);
	image->fd = fd < 0 ? -1 : fd;
	image->code = fd < 0 ? fd : 0;
	j->fd = -1;
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

	seam_file_close_fd(j->fd);
	free(j);
}

int seam_trace_image_open(struct seam_helper *helper,
			  struct seam_trace_announced *p,
			  const struct seam_trace_image *image,
			  uint64_t address)
{
	size_t path_bytes = strlen(image->path) + 1;
	struct image_job *j = calloc(1, sizeof(*j) + path_bytes);

	if (!j)
		return -ENOMEM;
	*j = (struct image_job) {
		.job = {
			.run = run, .done = done, .given_up = given_up,
			.free = free_job, .context = p, .tag = image->image,
			.user = seam_helper_user_of((int32_t)p->program.pid),
		},
		.pid = (int32_t)p->program.pid, .address = address, .fd = -1,
		.identity.build_id_size = image->build_id_bytes,
	};
	memcpy(j->identity.build_id, image->build_id, sizeof(image->build_id));
	memcpy(j->announced, image->path, path_bytes);
	return seam_helper_submit(helper, &j->job);
}
