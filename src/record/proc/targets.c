/* SPDX-License-Identifier: MIT */
/* targets.c - threads and descendants of processes; see targets.h */
#include "record/proc/targets.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

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
	seam_number_list_sort(out);
	return r;
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
