/* SPDX-License-Identifier: MIT */
/* cyg_select.c - by the symbols of images; see cyg_select.h */
#include "traced/fdr/cyg/cyg_select.h"

#include <errno.h>
#include <stdlib.h>

#include "traced/fdr/cyg/cyg_profile.h"
#include "traced/fdr/select.h"
#include "traced/fdr/sleds/function_names.h"

/* Images that were looked through, by their serials. */
static SEAM_ARRAY(uint64_t) done;

/* While an image is: what seam_fdr_select() calls has no context. */
static const uint64_t *addresses;
static void (*on_id)(unsigned int trigger, uint32_t id);

void seam_fdr_cyg_select_none(const struct seam_fdr_options *options)
{
	done.n = 0;
	seam_fdr_cyg_want_none(options->functions.list.n ||
			       options->except.list.n);
}

/* The functions of an image have ids from 1 here. */
static void on_index(unsigned int trigger, uint32_t index)
{
	uint32_t id = seam_fdr_cyg_want(addresses[index - 1]);

	if (id)
		on_id(trigger, id);
}

static int select_of(const struct seam_fdr_options *options,
		     const struct seam_fdr_image *image, size_t n)
{
	struct seam_fdr_list list = { .functions.first_id = 1 };
	bool *is_wanted = calloc(n + 1, sizeof(*is_wanted));
	int r;

	if (!is_wanted)
		return -ENOMEM;
	/* borrowed: no sled is looked at */
	list.functions.sleds.functions.items = (uint64_t *)(uintptr_t)addresses;
	list.functions.sleds.functions.n = n;
	list.functions.is_wanted = is_wanted;
	r = seam_fdr_select(options, image, &list, on_index);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (is_wanted[i] && options->functions.list.n +
				    options->except.list.n)
			seam_fdr_cyg_want(addresses[i]);
	free(is_wanted);
	return r;
}

static int select_image(const struct seam_fdr_options *options,
			const struct seam_fdr_image *image)
{
	struct seam_fdr_addresses all = { .items = NULL };
	int r = seam_fdr_names_addresses(image, &all);

	addresses = all.items;
	if (r == 0 && all.n)
		r = select_of(options, image, all.n);
	free(all.items);
	return r;
}

static bool is_done(const struct seam_fdr_image *image)
{
	for (size_t i = 0; i < done.n; i++)
		if (done.items[i] == image->serial)
			return true;
	return false;
}

int seam_fdr_cyg_select(const struct seam_fdr_options *options,
			const struct seam_fdr_images *images,
			void (*on_trigger)(unsigned int trigger, uint32_t id))
{
	int r = 0;

	if (!seam_fdr_needs_names(options))
		return 0;
	on_id = on_trigger;
	for (size_t i = 0; i < images->list.n; i++) {
		const struct seam_fdr_image *image = images->list.items[i];
		int failure;

		if (!image->is_loaded || !image->records_itself ||
		    is_done(image))
			continue;
		if (!SEAM_ARRAY_ADD(&done, image->serial))
			return -ENOMEM;
		failure = select_image(options, image);
		r = r ? r : failure;
	}
	return r;
}
