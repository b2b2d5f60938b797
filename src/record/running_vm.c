/* SPDX-License-Identifier: MIT */
/* running_vm.c - a job for each process, and a limit; see running_vm.h */
#include "record/running_vm.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
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
	size_t n_files;
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

/* "7f00-7f10 r-xp 00001000 fd:00 1234   /usr/lib/libc.so.6" */
static void read_line(struct vm_job *j, const char *line)
{
	struct seam_file_mapping mapping = { .pid = j->pid };
	struct seam_file_identity identity = { .ino = 0 };
	char rights[5];
	int path_at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*x:%*x %" SCNu64
		   " %n", &mapping.begin, &mapping.end, rights, &identity.ino,
		   &path_at) < 4 || !path_at || rights[2] != 'x' ||
	    !identity.ino || line[path_at] != '/' || !is_new(j, identity.ino))
		return;
	mapping.path = line + path_at;
	read_file(j, seam_mapped_file_open(&mapping, &identity, NULL));
}

static void read_maps(struct vm_job *j, int process)
{
	int fd = openat(process, "maps", O_RDONLY | O_CLOEXEC);
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "re");
	char line[PATH_MAX + 128];

	for (int i = 0; maps && !j->has_vm && i < MAX_LINES &&
	     fgets(line, sizeof(line), maps); i++) {
		line[strcspn(line, "\n")] = '\0';
		read_line(j, line);
	}
	if (maps)
		fclose(maps);
	else
		seam_file_close_fd(fd);
}

static void run(struct seam_helper_job *job)
{
	struct vm_job *j = (struct vm_job *)job;
	struct seam_target target;

	if (seam_target_open(&target, j->pid, NULL) == 0) {
		read_file(j, seam_target_open_exe(&target, NULL));
		read_maps(j, target.process);
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
			.fd = seam_helper_fd(helper, true), .events = POLLIN,
		};

		if (!seam_helper_collect(helper))
			break;
		poll(&fd, 1, 10);
	}
	seam_helper_free(helper);
	return found;
}
