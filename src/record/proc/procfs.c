/* SPDX-License-Identifier: MIT */
/* procfs.c - small files of /proc and /sys; see procfs.h */
#include "record/proc/procfs.h"

#include "base/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_CPUS = 1 << 16 };

const char *seam_procfs_text(const char *path, char *buf, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, cap - 1);

	seam_file_close_fd(fd);
	if (n > 0 && buf[n - 1] == '\n')
		n--;
	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

long seam_procfs_sysctl(const char *name, long otherwise)
{
	char path[128], text[64], *end;
	long value;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	value = strtol(seam_procfs_text(path, text, sizeof(text)), &end, 10);
	return end == text ? otherwise : value;
}

int seam_number_list_add(struct seam_number_list *list, int number)
{
	return SEAM_ARRAY_ADD(list, number) ? 0 : -ENOMEM;
}

bool seam_number_list_has(const struct seam_number_list *list, int number)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i] == number)
			return true;
	return false;
}

static int by_number(const void *a, const void *b)
{
	return SEAM_COMPARE(*(const int *)a, *(const int *)b);
}

/* Sort it, and remove duplicates. */
static void sort_numbers(struct seam_number_list *list)
{
	size_t n = 0;

	if (list->n == 0)
		return;
	SEAM_ARRAY_SORT(list, by_number);
	for (size_t i = 1; i < list->n; i++)
		if (list->items[i] != list->items[n])
			list->items[++n] = list->items[i];
	list->n = n + 1;
}

static int add_range(struct seam_number_list *list, long first, long last)
{
	int r = 0;

	if (first < 0 || last < first || last >= MAX_CPUS)
		return -EBADMSG;
	for (long i = first; r == 0 && i <= last; i++)
		r = seam_number_list_add(list, (int)i);
	return r;
}

int seam_procfs_list(struct seam_number_list *list, const char *text)
{
	int r = 0;

	while (r == 0 && *text) {
		char *end;
		long first, last;

		if (!isdigit((unsigned char)*text))
			return -EBADMSG;
		first = last = strtol(text, &end, 10);
		if (*end == '-' && isdigit((unsigned char)end[1]))
			last = strtol(end + 1, &end, 10);
		if (*end && *end != ',')
			return -EBADMSG;
		r = add_range(list, first, last);
		text = *end ? end + 1 : end;
	}
	return r;
}

int seam_procfs_cpus(struct seam_number_list *cpus, struct seam_err *err)
{
	static const char path[] = "/sys/devices/system/cpu/online";
	char text[4096];
	int r = seam_procfs_list(cpus, seam_procfs_text(path, text,
							sizeof(text)));

	if (r == 0 && cpus->n == 0)
		r = add_range(cpus, 0, sysconf(_SC_NPROCESSORS_ONLN) - 1);
	if (r < 0)
		return seam_err_set(err, r, "cannot use the list of CPUs in "
				    "'%s': %s", path, strerror(-r));
	return 0;
}

/* Add the names in @folder that are numbers, ascending, and close it. */
static int add_numbers(struct seam_number_list *list, DIR *folder)
{
	struct dirent *e;
	int r = 0;

	while (r == 0 && (e = readdir(folder)))
		if (isdigit((unsigned char)e->d_name[0]))
			r = seam_number_list_add(list, atoi(e->d_name));
	closedir(folder);
	sort_numbers(list);
	return r;
}

int seam_procfs_threads(struct seam_number_list *tids, int pid,
			struct seam_err *err)
{
	char path[64];
	DIR *folder;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	folder = opendir(path);
	if (!folder && errno != ENOENT && errno != ESRCH)
		return seam_err_errno(err, "cannot list '%s'", path);
	if (!folder)
		return seam_err_set(err, -ESRCH, "there is no process %d", pid);
	r = add_numbers(tids, folder);
	return r < 0 ? seam_err_no_memory(err) : 0;
}

int seam_procfs_processes(struct seam_number_list *pids)
{
	DIR *folder = opendir("/proc");

	return folder ? add_numbers(pids, folder) : 0;
}

/* The text after "@key<blank>: " in @line; NULL: it has another key. */
static const char *value_in(const char *line, const char *key)
{
	size_t n = strlen(key);
	const char *colon = strchr(line, ':');

	if (strncmp(line, key, n) != 0 || !colon ||
	    strspn(line + n, " \t") != (size_t)(colon - line) - n)
		return NULL;
	return colon + 1 + strspn(colon + 1, " \t");
}

void seam_procfs_values(const char *path, struct seam_procfs_value *values,
			size_t n)
{
	FILE *in = fopen(path, "re");
	char line[1024];
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		values[i].text[0] = '\0';
	while (in && found < n && fgets(line, sizeof(line), in)) {
		for (size_t i = 0; i < n; i++) {
			const char *text = values[i].text[0] ? NULL :
					   value_in(line, values[i].key);

			if (!text)
				continue;
			snprintf(values[i].text, sizeof(values[i].text),
				 "%.*s", (int)strcspn(text, "\n"), text);
			found++;
		}
	}
	if (in)
		fclose(in);
}

const char *seam_procfs_value(const char *path, const char *key, char *buf,
			      size_t cap)
{
	struct seam_procfs_value value = { .key = key };

	seam_procfs_values(path, &value, 1);
	snprintf(buf, cap, "%s", value.text);
	return buf;
}

size_t seam_procfs_pmus(struct seam_perf_pmu *pmus, size_t cap)
{
	static const char root[] = "/sys/bus/event_source/devices";
	DIR *folder = opendir(root);
	struct dirent *e;
	size_t n = 0;

	while (folder && n < cap && (e = readdir(folder))) {
		char path[512], text[32];
		size_t length = strlen(e->d_name);

		if (e->d_name[0] == '.' || length >= sizeof(pmus->name))
			continue;
		snprintf(path, sizeof(path), "%s/%s/type", root, e->d_name);
		seam_procfs_text(path, text, sizeof(text));
		pmus[n].type = (uint32_t)strtoul(text, NULL, 10);
		memcpy(pmus[n].name, e->d_name, length + 1);
		n++;
	}
	if (folder)
		closedir(folder);
	return n;
}

/* "7f00-7f10 r-xp 00001000 fd:00 1234   /usr/lib/libc.so.6" */
static bool parse_mapping(const char *line, struct seam_procfs_mapping *m)
{
	int name_at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32
		   ":%" SCNx32 " %" SCNu64 " %n", &m->begin, &m->end,
		   m->rights, &m->offset, &m->maj, &m->min, &m->ino,
		   &name_at) < 7)
		return false;
	m->name = line + name_at;
	return name_at > 0;
}

/*
 * A line, without its end.  A path can be longer than one that can be opened:
 * what is after @size bytes is left out, as it could look like another line.
 */
static bool read_line(FILE *in, char *line, size_t size)
{
	int c;

	if (!fgets(line, (int)size, in))
		return false;
	if (!strchr(line, '\n'))
		while ((c = getc(in)) != EOF && c != '\n')
			;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

void seam_procfs_maps(int process,
		      bool (*take)(void *context,
				   const struct seam_procfs_mapping *mapping),
		      void *context)
{
	int fd = process < 0 ? -1 :
		 openat(process, "maps", O_RDONLY | O_CLOEXEC);
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "re");
	char line[PATH_MAX + 128];
	bool goes_on = true;

	while (maps && goes_on && read_line(maps, line, sizeof(line))) {
		struct seam_procfs_mapping mapping;

		if (parse_mapping(line, &mapping))
			goes_on = take(context, &mapping);
	}
	if (maps)
		fclose(maps);
	else
		seam_file_close_fd(fd);
}

/* ---- the threads that a recording samples ---- */

int seam_targets_parse(struct seam_number_list *ids, const char *text)
{
	int r = 0;

	do {
		char *end;
		long id;

		if (!isdigit((unsigned char)*text))
			return -EBADMSG;
		id = strtol(text, &end, 10);
		if (id <= 0 || id > INT32_MAX || (*end && *end != ','))
			return -EBADMSG;
		r = seam_number_list_add(ids, (int)id);
		text = *end ? end + 1 : NULL;
	} while (r == 0 && text);
	return r;
}

int seam_targets_process(int tid)
{
	char path[64], text[32];

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	return atoi(seam_procfs_value(path, "Tgid", text, sizeof(text)));
}

/* The parent of process @pid; 0: it has ended, or has none. */
static int parent_of(int pid)
{
	char path[64], text[512];
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	/* the name in parentheses may hold any character */
	end = strrchr(seam_procfs_text(path, text, sizeof(text)), ')');
	return end && end[1] && end[2] && end[3] ? atoi(end + 4) : 0;
}

/* Add the descendants of @pids, but not this process. */
static int add_descendants(struct seam_number_list *pids)
{
	struct seam_number_list all = { 0 }, parents = { 0 };
	size_t before = 0;
	int r = seam_procfs_processes(&all);

	for (size_t i = 0; r == 0 && i < all.n; i++)
		r = seam_number_list_add(&parents, parent_of(all.items[i]));
	while (r == 0 && pids->n != before) {
		before = pids->n;
		for (size_t i = 0; r == 0 && i < all.n; i++)
			if (parents.items[i] > 0 && all.items[i] != getpid() &&
			    seam_number_list_has(pids, parents.items[i]) &&
			    !seam_number_list_has(pids, all.items[i]))
				r = seam_number_list_add(pids, all.items[i]);
	}
	free(all.items);
	free(parents.items);
	return r;
}

int seam_targets_list(struct seam_number_list *out,
		      const struct seam_number_list *pids,
		      const struct seam_number_list *tids, bool children,
		      struct seam_err *err)
{
	struct seam_number_list all = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < pids->n; i++)
		r = seam_number_list_add(&all, pids->items[i]);
	if (r == 0 && pids->n && children)
		r = add_descendants(&all);
	if (r < 0)
		seam_err_no_memory(err);
	for (size_t i = 0; r == 0 && i < all.n; i++) {
		r = seam_procfs_threads(out, all.items[i],
					i < pids->n ? err : NULL);
		if (r == -ESRCH && i >= pids->n)
			r = 0;		/* a descendant that has ended since */
	}
	free(all.items);
	for (size_t i = 0; r == 0 && i < tids->n; i++) {
		if (!seam_targets_process(tids->items[i]))
			return seam_err_set(err, -ESRCH, "there is no thread "
					    "%d", tids->items[i]);
		r = seam_number_list_add(out, tids->items[i]);
	}
	sort_numbers(out);
	return r;
}

bool seam_targets_is_of_user(int pid, uid_t user)
{
	char path[64], text[128];
	unsigned int real, effective;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return sscanf(seam_procfs_value(path, "Uid", text, sizeof(text)),
		      "%u %u", &real, &effective) == 2 && effective == user;
}

bool seam_targets_are_in(const struct seam_number_list *some,
			 const struct seam_number_list *all)
{
	size_t at = 0;

	for (size_t i = 0; i < some->n; i++) {
		while (at < all->n && all->items[at] < some->items[i])
			at++;
		if (at == all->n || all->items[at] != some->items[i])
			return false;
	}
	return true;
}
