/* SPDX-License-Identifier: MIT */
/*
 * own_names.c - names beside a log; see own_names.h
 *
 * Functions come from three places: sleds in images (start.h), those that
 * -finstrument-functions calls, whose addresses are looked up in the images,
 * and those that the program registered.  Only functions that are in a log are
 * written.
 */
#include "traced/fdr/own/own_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/array.h"
#include "traced/fdr/all_functions.h"
#include "traced/fdr/cyg/cyg_profile.h"
#include "traced/fdr/own/own_chunks.h"
#include "traced/fdr/registered.h"
#include "wire/xray/event_names.h"
#include "wire/xray/xray_map_write.h"

struct own_names {
	SEAM_ARRAY(struct seam_xray_map_function) list;
	struct seam_arena arena;
	/* of -finstrument-functions: ids by the index of the address */
	const uint32_t *ids;
	const char *path;		/* the one that was copied last */
	bool has_unseen;		/* functions that were not seen too */
};

/* ---- collect ---- */

/* Images have many functions, one after the other. */
static const char *copy_path(struct own_names *naming, const char *path)
{
	if (!naming->path || strcmp(naming->path, path) != 0)
		naming->path = seam_arena_text(&naming->arena, path,
					       strlen(path));
	return naming->path ? naming->path : "";
}

static int add(struct own_names *naming, const struct seam_fdr_function *f)
{
	struct seam_xray_map_function named = {
		.id = f->id, .address = f->link_address, .name = "",
		.path = "", .build_id = "", .entries_only = f->entries_only,
	};

	if (!naming->has_unseen && !seam_fdr_own_has_seen(f->id))
		return 0;
	if (f->name)
		named.name = seam_arena_text(&naming->arena, f->name,
					     strlen(f->name));
	if (f->path)
		named.path = copy_path(naming, f->path);
	return named.name && SEAM_ARRAY_ADD(&naming->list, named) ? 0 : -ENOMEM;
}

static int on_function(void *context, const struct seam_fdr_function *f)
{
	return add(context, f);
}

/* Here id is the index of the address. */
static int on_address(void *context, const struct seam_fdr_function *f)
{
	struct own_names *naming = context;
	struct seam_fdr_function found = *f;

	found.id = naming->ids[f->id];
	return add(naming, &found);
}

static int add_compiled(struct own_names *naming)
{
	uint32_t n = seam_fdr_cyg_count(), n_used = 0;
	uint64_t *addresses = calloc(n + 1, sizeof(*addresses));
	uint32_t *ids = calloc(n + 1, sizeof(*ids));
	int r = addresses && ids ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < n; i++)
		n_used += seam_fdr_cyg_function(i, &addresses[n_used],
						&ids[n_used]);
	naming->ids = ids;
	if (r == 0 && n_used)
		r = seam_fdr_each_address(addresses, n_used, on_address,
					  naming);
	free(addresses);
	free(ids);
	return r;
}

static int add_registered(struct own_names *naming)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < seam_fdr_registered_count(); i++) {
		struct seam_fdr_function f = { .path = NULL };

		f.name = seam_fdr_registered(i, &f.id);
		r = add(naming, &f);
	}
	return r;
}

static int by_id(const void *left, const void *right)
{
	const struct seam_xray_map_function *a = left, *b = right;

	return SEAM_COMPARE(a->id, b->id);
}

static int collect(struct own_names *naming)
{
	int r = seam_fdr_each_function(on_function, naming);

	if (r == 0)
		r = add_compiled(naming);
	if (r == 0)
		r = add_registered(naming);
	SEAM_ARRAY_SORT(&naming->list, by_id);
	return r;
}

/* ---- write ---- */

static FILE *create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC |
		      O_NOFOLLOW, 0600);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

	if (fd >= 0 && !out)
		close(fd);
	return out;
}

/* Close @out; NULL if it could not be created. */
static int finish(FILE *out)
{
	bool is_bad = !out || ferror(out);

	if (out && fclose(out))
		is_bad = true;
	return !is_bad ? 0 : errno ? -errno : -EIO;
}

static int put_functions(const char *path, const struct own_names *naming)
{
	FILE *out;

	if (!naming->list.n)
		return 0;
	out = create(path);
	if (out)
		seam_xray_map_write(out, naming->list.items, naming->list.n,
				    UINT64_MAX);
	return finish(out);
}

/* What was collected, if that did not fail: @r. */
static int write_collected(const char *path, struct own_names *naming, int r)
{
	if (r == 0)
		r = put_functions(path, naming);
	free(naming->list.items);
	seam_arena_fini(&naming->arena);
	return r;
}

int seam_fdr_names_write_functions(const char *path)
{
	struct own_names naming = { .ids = NULL };

	return write_collected(path, &naming, collect(&naming));
}

int seam_fdr_names_write_few(const char *path)
{
	struct own_names naming = { .has_unseen = true };

	if (seam_fdr_n_functions() > SEAM_FDR_FEW_FUNCTIONS)
		return 0;
	return write_collected(path, &naming, seam_fdr_each_function(
							on_function, &naming));
}

int seam_fdr_names_write_types(const char *path)
{
	FILE *out;

	if (!seam_fdr_type_name(1))
		return 0;
	out = create(path);
	for (uint16_t type = 1; out && seam_fdr_type_name(type); type++)
		seam_event_name_write(out, type, seam_fdr_type_name(type));
	return finish(out);
}
