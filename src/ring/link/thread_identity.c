/* SPDX-License-Identifier: MIT */
/* thread_identity.c - files of /proc; see thread_identity.h */
#include "ring/link/thread_identity.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

/* @id is a thread's id, or "PID/task/TID". */
static FILE *open_proc(const char *id, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/%s", id, name);
	return fopen(path, "re");
}

static bool is_gone(int r)
{
	return r == -ENOENT || r == -ESRCH;
}

/*
 * Why a file of thread @tid could not be opened.  A /proc that hides other
 * users' threads, or is not mounted, has no such file either.
 */
static int open_error(uint32_t tid)
{
	int r = -errno;

	if (!is_gone(r))
		return r;
	if (tid == 0 || tid > INT32_MAX)
		return -ESRCH; /* no thread has such an id */
	return kill((pid_t)tid, 0) == 0 || errno != ESRCH ? -EACCES : -ESRCH;
}

/* Why nothing more was read: -ESRCH where the thread has died. */
static int read_error(FILE *f)
{
	return ferror(f) ? -errno : -EIO;
}

/* Field @n of stat, from the 3rd on; "" where it is missing. */
static const char *field_at(const char *text, int n)
{
	/* The 2nd, the name in parentheses, may hold any character. */
	const char *p = strrchr(text, ')');

	for (int field = 2; p && field < n; field++)
		p = strchr(p + 1, ' ');
	return p ? p + 1 : "";
}

/* A zombie writes nothing, unless other threads of its process do. */
static bool is_zombie(const char *text)
{
	char state = *field_at(text, 3);

	return (state == 'Z' || state == 'X') &&
	       strtoul(field_at(text, 20), NULL, 10) <= 1;
}

static int read_start_time(uint32_t tid, const char *id, uint64_t *ticks)
{
	FILE *f = open_proc(id, "stat");
	char text[1024];
	size_t n;
	int r = 0;

	if (!f)
		return open_error(tid);
	/* Not a line: the name may hold line ends. */
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	if (n == 0)
		r = read_error(f);
	else if (is_zombie(text))
		r = -ESRCH;
	else
		*ticks = strtoull(field_at(text, 22), NULL, 10);
	fclose(f);
	return r;
}

static int read_pid(uint32_t tid, const char *id, uint32_t *pid)
{
	FILE *f = open_proc(id, "status");
	char line[256];
	int r = 1;

	if (!f)
		return open_error(tid);
	while (r > 0) {
		if (!fgets(line, sizeof(line), f))
			r = read_error(f);
		else if (sscanf(line, "Tgid: %u", pid) == 1)
			r = 0;
	}
	fclose(f);
	return r;
}

int seam_thread_identify(uint32_t tid, struct seam_thread_identity *out)
{
	char id[16];
	int r;

	snprintf(id, sizeof(id), "%u", tid);
	r = read_start_time(tid, id, &out->start_time);
	return r < 0 ? r : read_pid(tid, id, &out->pid);
}

int seam_thread_has_mapped(uint32_t tid, dev_t device, ino_t inode)
{
	unsigned dev_major, dev_minor;
	unsigned long number;
	char *line = NULL, id[16];
	bool found = false, is_empty = true;
	size_t room = 0;
	int r = 0;
	FILE *f;

	snprintf(id, sizeof(id), "%u", tid);
	f = open_proc(id, "maps");
	if (!f)
		return open_error(tid);
	for (; !found && getline(&line, &room, f) > 0; is_empty = false)
		found = sscanf(line, "%*x-%*x %*s %*x %x:%x %lu", &dev_major,
			       &dev_minor, &number) == 3 &&
			dev_major == major(device) &&
			dev_minor == minor(device) && number == inode;
	if (!found && !feof(f))
		r = -errno;
	else if (is_empty)
		r = -ESRCH;
	free(line);
	fclose(f);
	return r < 0 ? r : found;
}

/* ---- pid namespaces below ours ---- */

/*
 * The id that thread @id has in its own pid namespace.  Returns the depth of
 * that namespace, 1 for ours, or a negative errno.
 */
static int read_own_tid(const char *id, uint32_t *own)
{
	FILE *f = open_proc(id, "status");
	int depth = f ? 0 : -errno;
	char line[1024];

	while (depth == 0) {
		char *p = line + strlen("NSpid:"), *end;

		if (!fgets(line, sizeof(line), f)) {
			/* A kernel without namespaces has no such line. */
			depth = ferror(f) ? -errno : 1;
			break;
		}
		if (strncmp(line, "NSpid:", strlen("NSpid:")) != 0)
			continue;
		for (;; p = end, depth++) {
			unsigned long number = strtoul(p, &end, 10);

			if (end == p)
				break;
			*own = (uint32_t)number;
		}
	}
	if (f)
		fclose(f);
	return depth;
}

/* Thread @tid has id @own in its namespace: is it one of @claims? */
static void compare(struct seam_thread_claims *claims, uint32_t tid,
		    uint32_t own)
{
	for (size_t i = 0; i < claims->n; i++) {
		struct seam_thread_claim *claim = &claims->items[i];
		int r;

		if (claim->own_tid != own || claim->found == 1)
			continue;
		r = seam_thread_has_mapped(tid, claims->device, claims->inode);
		if (r == 0 || r == -ESRCH)
			continue;
		if (r == 1 && seam_thread_identify(tid, &claim->id) < 0)
			r = -EAGAIN;
		claim->tid = tid;
		claim->found = r;
	}
}

/* Call @visit with each number that is a name in @path.  0 or its error. */
static int each_number(const char *path,
		       int (*visit)(struct seam_thread_claims *claims,
				    const char *path, uint32_t number),
		       struct seam_thread_claims *claims)
{
	DIR *names = opendir(path);
	struct dirent *e = NULL;
	int r = 0;

	if (!names)
		return -errno;
	while (r == 0) {
		errno = 0;
		e = readdir(names);
		if (!e)
			break;
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			r = visit(claims, path,
				  (uint32_t)strtoul(e->d_name, NULL, 10));
		r = is_gone(r) ? 0 : r;
	}
	if (!e)
		r = -errno;
	closedir(names);
	return r;
}

static int visit_thread(struct seam_thread_claims *claims, const char *path,
			uint32_t tid)
{
	uint32_t own;
	char id[64];
	int depth;

	/* "/proc/PID/task" */
	snprintf(id, sizeof(id), "%s/%u", path + strlen("/proc/"), tid);
	depth = read_own_tid(id, &own);
	if (depth > 1)
		compare(claims, tid, own);
	return depth < 0 ? depth : 0;
}

static int visit_process(struct seam_thread_claims *claims, const char *path,
			 uint32_t pid)
{
	char id[16], tasks[64];
	uint32_t own;
	int depth;

	snprintf(id, sizeof(id), "%u", pid);
	depth = read_own_tid(id, &own);
	if (depth <= 1)
		return depth < 0 ? depth : 0;
	snprintf(tasks, sizeof(tasks), "%s/%u/task", path, pid);
	return each_number(tasks, visit_thread, claims);
}

void seam_threads_find_below(struct seam_thread_claims *claims)
{
	int r = each_number("/proc", visit_process, claims);

	/* Threads that were not found may be where reading failed. */
	for (size_t i = 0; r < 0 && i < claims->n; i++)
		if (claims->items[i].found == 0)
			claims->items[i].found = r;
}
