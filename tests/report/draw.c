/* SPDX-License-Identifier: MIT */
/*
 * draw.c - folded stacks on standard input into a flame graph
 *
 * For tests that need a picture of a known tree: lines of "comm;root;leaf
 * COUNT", names as built.h has them.  With an argument, root at the top.
 */
#include <stdlib.h>

#include "report/flamegraph.h"

#include "../model/built.h"

static void add_line(struct seam_profile *p, char *line)
{
	char *space = strrchr(line, ' ');
	char *stack = strchr(line, ';');

	if (!space || !stack)
		return;
	*space = *stack = '\0';
	for (long n = strtol(space + 1, NULL, 10); n > 0; n--)
		built_add(p, p->samples.n, line, stack + 1);
}

int main(int argc, char **argv)
{
	struct seam_profile p = built();
	struct seam_selection selection;
	struct seam_selected selected;
	struct seam_flamegraph graph = {
		.selected = &selected, .title = "drawn",
		.group = SEAM_GROUP_COMM, .inverted = argc > 1,
		.min_percent = -1,
	};
	char line[4096];
	int rc;

	(void)argv;
	while (fgets(line, sizeof(line), stdin))
		add_line(&p, line);
	seam_selection_init(&selection);
	if (seam_selected_init(&selected, &p, &selection, NULL))
		return 1;
	rc = seam_flamegraph_write(&graph, stdout);
	seam_selected_fini(&selected);
	seam_profile_fini(&p);
	return rc != 0;
}
