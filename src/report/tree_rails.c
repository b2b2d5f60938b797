/* SPDX-License-Identifier: MIT */
/* tree_rails.c - lines of a call tree; the contract is in tree_rails.h */
#include "report/tree_rails.h"

#include <stdlib.h>

size_t seam_tree_rails_put(struct seam_tree_rails *rails,
			   const struct seam_view *view,
			   const struct seam_tree *tree, uint32_t id)
{
	/* a rail that ends, a rail, the last branch, a branch */
	static const char *const texts[2][4] = {
		{ "   ", "|  ", "`- ", "|- " }, { "   ", "│  ", "└─ ", "├─ " },
	};
	const char *const *text = texts[view->unicode];
	const struct seam_node *node = &tree->items[id];
	bool open = node->next_sibling != SEAM_NONE;
	bool has_siblings = open ||
			    tree->items[node->parent].first_child != id;

	rails->steps.n = node->depth - 1;
	rails->lines.n = rails->steps.n ?
			 rails->steps.items[rails->steps.n - 1] : 0;
	for (size_t i = 0; i < rails->lines.n; i++)
		fputs(text[rails->lines.items[i]], view->out);
	if (has_siblings) {
		fputs(text[2 + open], view->out);
		if (!SEAM_ARRAY_ADD(&rails->lines, open))
			return 0;
	}
	return SEAM_ARRAY_ADD(&rails->steps, (uint32_t)rails->lines.n) ?
	       3 * rails->lines.n + 1 : 0;
}

void seam_tree_rails_fini(struct seam_tree_rails *rails)
{
	free(rails->lines.items);
	free(rails->steps.items);
	*rails = (struct seam_tree_rails) { 0 };
}
