/* SPDX-License-Identifier: MIT */
/* all_functions.c - see all_functions.h */
#include "traced/fdr/all_functions.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "traced/fdr/sleds/function_names.h"
#include "traced/fdr/sleds/ids.h"
#include "traced/fdr/start.h"

struct all_functions {
	int (*on_function)(void *context, const struct seam_fdr_function *f);
	void *context;
	/* NULL: those with sleds */
	const uint64_t *addresses;
	uint32_t n;
};

/* ---- names of some functions of an image ---- */

struct first_names {
	struct seam_arena arena;
	const char **of;	/* of each address */
};

/* A function may have several names. */
static int keep_first(void *context, uint32_t function, const char *name)
{
	struct first_names *names = context;

	if (!names->of[function])
		names->of[function] = seam_arena_text(&names->arena, name,
						      strlen(name));
	return 0;
}

static int read_names(struct first_names *names,
		      const struct seam_fdr_image *image,
		      const uint64_t *addresses, size_t n)
{
	*names = (struct first_names) {
		.of = calloc(n + 1, sizeof(*names->of)),
	};
	if (!names->of)
		return -ENOMEM;
	/* where it cannot be read they have none */
	(void)seam_fdr_names_each(image, addresses, n, keep_first, names);
	return 0;
}

static void free_names(struct first_names *names)
{
	seam_arena_fini(&names->arena);
	free(names->of);
}

/* ---- functions with sleds ---- */

uint32_t seam_fdr_n_functions(void)
{
	return seam_fdr_n_ids();
}

static int each_of_list(const struct seam_fdr_image *image,
			const struct seam_fdr_list *list,
			const struct all_functions *all)
{
	const struct seam_fdr_functions *functions = &list->functions;
	const uint64_t *addresses = functions->sleds.functions.items;
	size_t n = functions->sleds.functions.n;
	struct first_names names;
	int r = read_names(&names, image, addresses, n);

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct seam_fdr_function f = {
			functions->first_id + (uint32_t)i, addresses[i],
			addresses[i] - image->bias, names.of[i], image->path,
			seam_fdr_list_has_entries_only(list),
		};

		r = all->on_function(all->context, &f);
	}
	free_names(&names);
	return r;
}

/* Lists have ids in the order of their numbers. */
static int each_with_sleds(struct seam_fdr_images *images, bool has_changed,
			   void *context)
{
	int r = 0;

	(void)has_changed;
	for (uint32_t number = 1; number <= images->n_lists; number++)
		for (size_t i = 0; i < images->list.n; i++) {
			struct seam_fdr_image *image = images->list.items[i];

			for (size_t j = 0; r == 0 && j < image->n_lists; j++)
				if (image->lists[j].number == number)
					r = each_of_list(image,
							 &image->lists[j],
							 context);
		}
	return r;
}

int seam_fdr_each_function(int (*on_function)(
					void *context,
					const struct seam_fdr_function *f),
			   void *context)
{
	struct all_functions all = { on_function, context, NULL, 0 };

	return seam_fdr_with_images(each_with_sleds, &all);
}

/* ---- functions by their addresses ---- */

/* What is loaded there; or was, and nothing is now. */
static const struct seam_fdr_image *
image_at(const struct seam_fdr_images *images, uint64_t address)
{
	const struct seam_fdr_image *found = seam_fdr_images_at(images,
								address);

	for (size_t i = images->list.n; !found && i > 0; i--)
		if (seam_fdr_code_segment(&images->list.items[i - 1]->code,
					  address, 1, 0))
			found = images->list.items[i - 1];
	return found;
}

static int each_of_image(const struct seam_fdr_images *images,
			 const struct seam_fdr_image *image,
			 const struct all_functions *all)
{
	struct first_names names;
	int r = read_names(&names, image, all->addresses, all->n);

	for (uint32_t i = 0; r == 0 && i < all->n; i++) {
		const struct seam_fdr_function f = {
			i, all->addresses[i], all->addresses[i] - image->bias,
			names.of[i], image->path ?: image->file, false,
		};

		if (image_at(images, f.address) == image)
			r = all->on_function(all->context, &f);
	}
	free_names(&names);
	return r;
}

static int each_at_addresses(struct seam_fdr_images *images, bool has_changed,
			     void *context)
{
	int r = 0;

	(void)has_changed;
	for (size_t i = 0; r == 0 && i < images->list.n; i++)
		r = each_of_image(images, images->list.items[i], context);
	return r;
}

int seam_fdr_each_address(const uint64_t *addresses, uint32_t n,
			  int (*on_function)(void *context,
					     const struct seam_fdr_function *f),
			  void *context)
{
	struct all_functions all = { on_function, context, addresses, n };

	return seam_fdr_with_images(each_at_addresses, &all);
}
