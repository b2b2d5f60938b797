/* SPDX-License-Identifier: MIT */
/*
 * registered.c - names that the program gives to types of events and to
 * functions
 *
 * A name is written once, before its number is known, and never changes, so
 * readers need no lock.
 */
#include "traced/fdr/registered.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "traced/fdr/fdr_process.h"
#include "traced/fdr/sleds/ids.h"

struct registered {
	const char *name;
	uint32_t id;
};

/* Of one kind; its items are changed with the lock of the process. */
struct registry {
	struct registered *items;	/* room for max */
	uint32_t max;
	_Atomic uint32_t n;
};

static struct registry types = { .max = SEAM_FDR_MAX_TYPES };
static struct registry functions = { .max = SEAM_FDR_MAX_REGISTERED };

/* A child must not find it held by a thread that it does not have. */
static bool lock(void)
{
	(void)seam_fdr_fork_init();
	return seam_fdr_lock();
}

static uint32_t count(struct registry *r)
{
	/* acquire: the items are whole; pairs with the release in add() */
	return atomic_load_explicit(&r->n, memory_order_acquire);
}

/* With the lock.  0: there is no more room. */
static uint32_t add(struct registry *r, const char *name, uint32_t id)
{
	uint32_t n = count(r);

	if (!r->items)
		r->items = calloc(r->max, sizeof(*r->items));
	if (!id || !r->items || n == r->max)
		return 0;
	r->items[n].name = strndup(name, SEAM_FDR_MAX_NAME);
	r->items[n].id = id;
	if (!r->items[n].name)
		return 0;
	/* release: pairs with the acquire in count() */
	atomic_store_explicit(&r->n, n + 1, memory_order_release);
	return id;
}

static uint32_t find(struct registry *r, const char *name)
{
	for (uint32_t i = 0; i < count(r); i++)
		if (strncmp(r->items[i].name, name, SEAM_FDR_MAX_NAME) == 0)
			return r->items[i].id;
	return 0;
}

uint16_t seam_fdr_type_register(const char *name, bool *is_new)
{
	uint32_t type;

	*is_new = false;
	if (!lock())
		return 0;
	type = find(&types, name);
	*is_new = !type;
	if (!type)
		type = add(&types, name, count(&types) + 1);
	seam_fdr_unlock();
	return (uint16_t)type;
}

const char *seam_fdr_type_name(uint16_t type)
{
	return type > 0 && type <= count(&types) ?
	       types.items[type - 1].name : NULL;
}

uint32_t seam_fdr_function_register(const char *name)
{
	uint32_t id;

	if (!lock())
		return 0;
	/* ids of the executable's functions come first, as in its map */
	if (!count(&functions))
		seam_fdr_number_functions();
	id = count(&functions) < functions.max ?
	     add(&functions, name, seam_fdr_new_ids(1)) : 0;
	seam_fdr_unlock();
	return id;
}

uint32_t seam_fdr_registered_count(void)
{
	return count(&functions);
}

const char *seam_fdr_registered(uint32_t i, uint32_t *id)
{
	*id = functions.items[i].id;
	return functions.items[i].name;
}
