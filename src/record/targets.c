/* SPDX-License-Identifier: MIT */
/* targets.c - lists of threads, from options and from /proc; see targets.h */
#include "record/targets.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

int seam_targets_add(struct seam_number_list *list, int id)
{
	int *slot = SEAM_ARRAY_PUSH(list);

	if (!slot)
		return -ENOMEM;
	*slot = id;
	return 0;
}

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
		r = seam_targets_add(ids, (int)id);
		text = *end ? end + 1 : NULL;
	} while (r == 0 && text);
	return r;
}

static int by_number(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) -
	       (*(const int *)a < *(const int *)b);
}

static void sort_once_each(struct seam_number_list *list)
{
	size_t n = 0;

	if (list->n == 0)
		return;
	qsort(list->items, list->n, sizeof(*list->items), by_number);
	for (size_t i = 1; i < list->n; i++)
		if (list->items[i] != list->items[n])
			list->items[++n] = list->items[i];
	list->n = n + 1;
}

int seam_targets_process(int tid)
{
	char path[64], text[32];

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	return atoi(seam_machine_value(path, "Tgid", text, sizeof(text)));
}

int seam_targets_list(struct seam_number_list *out,
		      const struct seam_number_list *pids,
		      const struct seam_number_list *tids,
		      struct seam_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < pids->n; i++)
		r = seam_machine_threads(out, pids->items[i], err);
	for (size_t i = 0; r == 0 && i < tids->n; i++) {
		if (!seam_targets_process(tids->items[i]))
			return seam_err_set(err, -ESRCH, "there is no thread "
					    "%d", tids->items[i]);
		r = seam_targets_add(out, tids->items[i]);
	}
	sort_once_each(out);
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
