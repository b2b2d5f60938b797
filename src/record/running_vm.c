/* SPDX-License-Identifier: MIT */
/* running_vm.c - a job for each process, and a limit; see running_vm.h */
#include "record/running_vm.h"

#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "record/preload/elf_needs.h"
#include "record/proc/helper.h"
#include "record/proc/mapped_file.h"
#include "record/proc/target_file.h"

enum {
	MAX_PROCESSES = 64,
	MAX_LINES = 4096,	/* of /proc/PID/maps */
	MAX_FILES = 64,		/* of a process */
	WAIT_MS = 1000,
};

struct vm_job {
	struct seam_helper_job job;
	int pid;
	bool has_vm;
	size_t n_lines, n_files;
	uint64_t inodes[MAX_FILES];	/* that were read */
	struct seam_elf_needs needs;
};

/* Closes @fd. */
static void read_file(struct vm_job *j, int fd)
{
	if (fd >= 0)
		j->has_vm |= seam_elf_needs_read_fd(&j->needs, fd) &&
			     j->needs.has_luajit;
	seam_file_close_fd(fd);
	seam_helper_progress(&j->job);
}

static bool is_new(struct vm_job *j, uint64_t inode)
{
	for (size_t i = 0; i < j->n_files; i++)
		if (j->inodes[i] == inode)
			return false;
	if (j->n_files == MAX_FILES)
		return false;
	j->inodes[j->n_files++] = inode;
	return true;
}

static bool take_mapping(void *context, const struct seam_procfs_mapping *line)
{
	struct vm_job *j = context;
	struct seam_file_mapping mapping = {
		.pid = j->pid, .begin = line->begin, .end = line->end,
		.path = line->name,
	};
	struct seam_file_identity identity = { .ino = line->ino };

	if (line->rights[2] == 'x' && line->ino && line->name[0] == '/' &&
	    is_new(j, line->ino))
		read_file(j, seam_mapped_file_open(&mapping, &identity, NULL));
	return !j->has_vm && ++j->n_lines < MAX_LINES;
}

static void run(struct seam_helper_job *job)
{
	struct vm_job *j = (struct vm_job *)job;
	struct seam_target target;

	if (seam_target_open(&target, j->pid, NULL) == 0) {
		read_file(j, seam_target_open_exe(&target, NULL));
		if (!j->has_vm)
			seam_procfs_maps(target.process, take_mapping, j);
	}
	seam_target_close(&target);
}

static void done(struct seam_helper_job *job, void *context)
{
	struct vm_job *j = (struct vm_job *)job;
	int *found = context;

	if (j->has_vm && !*found)
		*found = j->pid;
}

static void free_job(struct seam_helper_job *job)
{
	free(job);
}

static void submit(struct seam_helper *helper, int pid, int *found)
{
	struct vm_job *j = calloc(1, sizeof(*j));

	if (!j)
		return;
	j->job = (struct seam_helper_job) {
		.run = run, .done = done, .free = free_job, .context = found,
		.user = seam_helper_user_of(pid),
	};
	j->pid = pid;
	(void)seam_helper_submit(helper, &j->job);
}

int seam_running_vm_find(const struct seam_number_list *pids)
{
	struct seam_helper *helper = pids->n ? seam_helper_new(NULL) : NULL;
	uint64_t end_ns = seam_clock_ns() + WAIT_MS * SEAM_NS_PER_MS;
	int found = 0;

	if (!helper)
		return 0;
	for (size_t i = 0; i < pids->n && i < MAX_PROCESSES; i++)
		submit(helper, pids->items[i], &found);
	while (!found && seam_clock_ns() < end_ns) {
		struct pollfd fd = {
			.fd = seam_helper_fd(helper), .events = POLLIN,
		};

		if (!seam_helper_collect(helper))
			break;
		poll(&fd, 1, 10);
	}
	seam_helper_free(helper);
	return found;
}
