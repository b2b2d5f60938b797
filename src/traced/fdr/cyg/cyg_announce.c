/* SPDX-License-Identifier: MIT */
/*
 * cyg_announce.c - see cyg_announce.h
 *
 * The table of images is made anew when they change, and published as a whole.
 * Handlers may still read the one before, so it is never freed: that is a page
 * for each dlopen() in a program that is recorded so.
 */
#include "traced/fdr/cyg/cyg_announce.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "traced/fdr/announce_functions.h"
#include "traced/fdr/cyg/cyg_profile.h"
#include "traced/fdr/select.h"
#include "traced/fdr/sleds/function_names.h"

/* An image, and the number by which it is announced. */
struct cyg_image {
	const struct seam_fdr_image *image;
	uint64_t serial;	/* its own: the image may be freed */
	uint32_t number;
	bool is_announced;
};

/* Where an image's code is. */
struct cyg_range {
	uint64_t start, end, bias, number;
};

struct cyg_ranges {
	struct cyg_ranges *next;
	size_t n;
	struct cyg_range list[];
};

/* with the lock of start.c */
static SEAM_ARRAY(struct cyg_image) known;
/*
 * All that were ever published, each once: a handler may still read an old one,
 * and libraries that come and go have the same ones again.
 */
static struct cyg_ranges *published;
/* written with that lock, read anywhere */
static _Atomic(struct cyg_ranges *) ranges;

/* ---- functions, from any context ---- */

static const struct cyg_range *range_of(uint64_t address)
{
	/* acquire: the table is whole; pairs with the release in publish() */
	const struct cyg_ranges *all =
		atomic_load_explicit(&ranges, memory_order_acquire);

	for (size_t i = 0; all && i < all->n; i++)
		if (address >= all->list[i].start && address < all->list[i].end)
			return &all->list[i];
	return NULL;
}

/*
 * Code in no image, as of a JIT, has its absolute address; but not where it is
 * met: a library that calls its constructors is in the table after them.
 */
static int announce(uint64_t address, uint32_t id, bool is_met)
{
	const struct cyg_range *range = range_of(address);
	uint64_t link_address = range ? address - range->bias : address;
	const struct seam_xray_addresses a = {
		.image = range ? (uint32_t)range->number : 0,
		.first_id = id, .n = 1,
		.link_addresses = &link_address,
	};

	if (!range && is_met) {
		seam_fdr_announce_set_behind(true);
		return -EAGAIN;
	}
	return seam_fdr_announce_at_once(&a);
}

static int announce_function(uint32_t i, bool is_met)
{
	uint64_t address;
	uint32_t id;

	if (!seam_fdr_cyg_function(i, &address, &id))
		return 0;
	return announce(address, id, is_met);
}

static int announce_met(uint32_t i)
{
	return announce_function(i, true);
}

static int announce_left(uint32_t i)
{
	return announce_function(i, false);
}

/* ---- images, with the lock of start.c ---- */

static struct cyg_image *know(struct seam_fdr_images *images,
			      const struct seam_fdr_image *image)
{
	for (size_t i = 0; i < known.n; i++)
		if (known.items[i].serial == image->serial)
			return &known.items[i];
	return SEAM_ARRAY_ADD(&known, (struct cyg_image) {
			.image = image, .serial = image->serial,
			.number = ++images->n_lists }) ?
	       &known.items[known.n - 1] : NULL;
}

static int announce_image(struct cyg_image *c)
{
	int r = c->is_announced ? 0 :
		seam_fdr_announce_image(c->image, c->number);

	c->is_announced = r == 0;
	return r;
}

/* Whether it has functions that call __cyg_profile_func_enter(). */
static bool may_call(const struct seam_fdr_image *image)
{
	return image->is_loaded && image->records_itself;
}

static size_t count_segments(const struct seam_fdr_images *images)
{
	size_t n = 0;

	for (size_t i = 0; i < images->list.n; i++)
		if (may_call(images->list.items[i]))
			n += images->list.items[i]->code.segments.n;
	return n;
}

static void add_ranges(struct cyg_ranges *all, const struct cyg_image *c)
{
	const struct seam_fdr_code *code = &c->image->code;

	for (size_t i = 0; i < code->segments.n; i++)
		if (code->segments.items[i].rights & PROT_EXEC)
			all->list[all->n++] = (struct cyg_range) {
				code->segments.items[i].start,
				code->segments.items[i].end, c->image->bias,
				c->number,
			};
}

static bool is_same(const struct cyg_ranges *a, const struct cyg_ranges *b)
{
	return a->n == b->n &&
	       memcmp(a->list, b->list, a->n * sizeof(*a->list)) == 0;
}

/* @new, or one like it that was published before; then @new is freed. */
static struct cyg_ranges *keep(struct cyg_ranges *new)
{
	for (struct cyg_ranges *old = published; old; old = old->next)
		if (is_same(old, new)) {
			free(new);
			return old;
		}
	new->next = published;
	published = new;
	return new;
}

static int publish(struct seam_fdr_images *images)
{
	struct cyg_ranges *all = malloc(sizeof(*all) + sizeof(*all->list) *
					count_segments(images));
	int r = 0;

	if (!all)
		return -ENOMEM;
	all->n = 0;
	for (size_t i = 0; i < images->list.n; i++) {
		const struct seam_fdr_image *image = images->list.items[i];
		struct cyg_image *c;

		if (!may_call(image))
			continue;
		c = know(images, image);
		if (!c) {
			free(all);
			return -ENOMEM;
		}
		/* where there is no room, its functions may still be met */
		r = r ? r : announce_image(c);
		add_ranges(all, c);
	}
	/* release: pairs with the acquire in range_of() */
	atomic_store_explicit(&ranges, keep(all), memory_order_release);
	return r;
}

int seam_fdr_cyg_announce(struct seam_fdr_images *images)
{
	int r = publish(images);

	if (r == 0)
		r = seam_fdr_cyg_set_announce(announce_met, announce_left);
	return r;
}

void seam_fdr_cyg_announce_all_again(void)
{
	for (size_t i = 0; i < known.n; i++)
		known.items[i].is_announced = false;
	seam_fdr_cyg_announce_again();
}

/* ---- which of them are recorded ---- */

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
