/* SPDX-License-Identifier: MIT */
/* modules.c - the index of modules; see modules.h */
#include "model/profile/modules.h"

#include "base/hash.h"
#include "model/profile/profile.h"
#include "wire/perf/perf_sideband.h"

static bool is_same(const struct seam_profile_module *a,
		    const struct seam_profile_module *b)
{
	return a->path == b->path && a->kind == b->kind &&
	       a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, a->build_id_size) == 0 &&
	       (a->build_id_size > 0 ||
		(a->ino == b->ino && a->ino_generation == b->ino_generation));
}

static uint64_t hash_of(const struct seam_profile_module *m)
{
	return m->build_id_size == 0 ? seam_hash_add(m->ino, m->path) :
	       seam_hash_bytes(m->build_id, m->build_id_size, m->path);
}

/* The first module with this path; SEAM_NONE: there is none. */
static uint32_t find_first(struct seam_profile *profile, uint32_t path)
{
	const struct seam_profile_module *modules = profile->modules.items;

	return SEAM_INDEX_FIND(&profile->module_index, seam_hash_u64(path), i,
			       modules[i].path == path &&
			       modules[i].first == i);
}

/* One index holds all modules by hash_of() and the first ones by path. */
uint32_t seam_profile_module(struct seam_profile *profile,
			     const struct seam_profile_module *module)
{
	uint64_t hash = hash_of(module);
	struct seam_index *index = &profile->module_index;
	struct seam_profile_module *modules = profile->modules.items;
	uint32_t id = SEAM_INDEX_FIND(index, hash, i,
				      is_same(&modules[i], module)), first;

	if (id != SEAM_NONE) {
		if (module->mapped_ns < modules[id].mapped_ns)
			modules[id].mapped_ns = module->mapped_ns;
		return id;
	}
	if (module->path == SEAM_NONE)
		return SEAM_NONE;
	first = find_first(profile, module->path);
	id = SEAM_INDEX_APPEND(index, hash, &profile->modules, *module);
	if (id == SEAM_NONE)
		return SEAM_NONE;
	profile->modules.items[id].first = first == SEAM_NONE ? id : first;
	return first == SEAM_NONE &&
	       seam_index_add(index, seam_hash_u64(module->path), id) ?
	       SEAM_NONE : id;
}

enum seam_module_kind seam_module_kind_of(const char *filename)
{
	if (strncmp(filename, "[vdso]", strlen("[vdso]")) == 0)
		return SEAM_MODULE_VDSO;
	return filename[0] == '\0' || seam_perf_mapping_is_memory(filename) ?
	       SEAM_MODULE_ANON : SEAM_MODULE_FILE;
}

const char *seam_module_name(const char *path, size_t *size)
{
	const char *slash = strrchr(path, '/');

	if (path[0] == '[')
		path++;
	else if (slash && slash[1])
		path = slash + 1;
	*size = strlen(path);
	if (*size && path[*size - 1] == ']')
		--*size;
	if (*size > SEAM_MODULE_NAME_MAX)
		*size = SEAM_MODULE_NAME_MAX;
	return path;
}
