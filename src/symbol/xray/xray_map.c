/* SPDX-License-Identifier: MIT */
/* xray_map.c - functions by id, whatever the map came from; see xray_map.h */
#include "symbol/xray/xray_map.h"

#include <errno.h>
#include <stdlib.h>

int seam_xray_map_add(struct seam_xray_map *map,
		      const struct seam_xray_sled *sled)
{
	struct seam_xray_mapped *f = map->functions.n ?
		&map->functions.items[map->functions.n - 1] : NULL;
	bool same = f && f->addr == sled->function &&
		    (sled->id == 0 || sled->id == f->id);

	if (!same) {
		uint32_t id = sled->id ? sled->id : f ? f->id + 1 : 1;

		if (!SEAM_ARRAY_ADD(&map->functions, (struct seam_xray_mapped) {
			.id = id, .log_id = id, .addr = sled->function }))
			return -ENOMEM;
		f = &map->functions.items[map->functions.n - 1];
	}
	if (sled->name && !f->name) {
		f->name = seam_strings_put(&map->strings, sled->name);
		if (f->name == SEAM_NONE)
			return -ENOMEM;
	}
	f->kinds |= (uint8_t)(1u << sled->kind);
	map->n_sleds++;
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct seam_xray_mapped *x = a, *y = b;

	return SEAM_COMPARE(x->id, y->id);
}

/* Files of other systems, which could be taken for YAML. */
static int refuse(struct seam_bytes bytes, struct seam_err *err)
{
	static const struct {
		const char *magic, *what;
	} others[] = {
		{ "\xcf\xfa\xed\xfe", "a Mach-O file" },
		{ "\xfe\xed\xfa\xcf", "a Mach-O file" },
		{ "\xce\xfa\xed\xfe", "a Mach-O file" },
		{ "\xfe\xed\xfa\xce", "a Mach-O file" },
		{ "\xca\xfe\xba\xbe", "a Mach-O file" },
		{ "MZ", "a Windows program" },
		{ "!<ar", "an archive" },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(others); i++) {
		size_t n = strlen(others[i].magic);

		if (bytes.size >= n &&
		    memcmp(bytes.data, others[i].magic, n) == 0)
			return seam_err_set(err, -ENOTSUP, "%s: maps are read "
					    "from ELF files of 64 bits and "
					    "from YAML", others[i].what);
	}
	return 0;
}

int seam_xray_map_read(struct seam_xray_map *map, struct seam_bytes bytes,
		       struct seam_err *err)
{
	int r;

	*map = (struct seam_xray_map) { 0 };
	/* libyaml takes no empty text */
	if (bytes.size == 0)
		return seam_err_set(err, -ENODATA, "it is empty");
	map->from_elf = bytes.size >= 4 &&
			memcmp(bytes.data, "\177ELF", 4) == 0;
	r = refuse(bytes, err);
	if (r)
		return r;
	r = map->from_elf ? seam_xray_map_read_elf(map, bytes, err) :
	    seam_xray_map_read_yaml(map, bytes, err);
	if (r) {
		seam_xray_map_fini(map);
		return r;
	}
	seam_xray_map_sort(map);
	return 0;
}

void seam_xray_map_sort(struct seam_xray_map *map)
{
	SEAM_ARRAY_SORT(&map->functions, by_id);
}

const char *seam_xray_map_program(const struct seam_xray_map *map)
{
	uint32_t image = 0;

	/* one that the program has registered is of no image */
	for (size_t i = 0; !image && i < map->functions.n; i++)
		image = map->functions.items[i].image;
	return seam_strings_get(&map->strings, image);
}

void seam_xray_map_fini(struct seam_xray_map *map)
{
	free(map->functions.items);
	seam_strings_fini(&map->strings);
	*map = (struct seam_xray_map) { 0 };
}

const struct seam_xray_mapped *
seam_xray_map_find(const struct seam_xray_map *map, uint32_t id)
{
	const struct seam_xray_mapped *f = map->functions.items;
	size_t at = SEAM_ARRAY_SEARCH(i, map->functions.n, f[i].id < id);

	return at < map->functions.n && f[at].id == id ? &f[at] : NULL;
}

int seam_xray_map_resolve(struct seam_xray_map *map,
			  size_t (*resolve)(void *context, uint64_t offset,
					    struct seam_location *out,
					    size_t cap),
			  void *context)
{
	for (size_t i = 0; i < map->functions.n; i++) {
		struct seam_xray_mapped *f = &map->functions.items[i];
		struct seam_location at[8];
		size_t n = resolve(context, f->file_offset, at,
				   SEAM_ARRAY_SIZE(at));

		/* the last is the function itself, not what it inlined */
		if (n == 0 || n > SEAM_ARRAY_SIZE(at) || !at[n - 1].function)
			continue;
		f->name = seam_strings_put(&map->strings, at[n - 1].function);
		f->file = seam_strings_put(&map->strings, at[n - 1].file);
		f->line = at[n - 1].line;
		if (f->name == SEAM_NONE || f->file == SEAM_NONE)
			return -ENOMEM;
	}
	return 0;
}
