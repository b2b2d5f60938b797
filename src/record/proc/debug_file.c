/* SPDX-License-Identifier: MIT */
/* debug_file.c - the places of gdb, one after another; see debug_file.h */
#include "record/proc/debug_file.h"

#include "base/text.h"

static const char debug_root[] = "/usr/lib/debug";

bool seam_debug_file_path(size_t i, const char *mapped,
			  const struct seam_file_identity *identity,
			  const struct seam_debug_link *link,
			  char path[PATH_MAX])
{
	static const struct {
		const char *root, *folder;
	} places[] = { { "", "" }, { "", "/.debug" }, { debug_root, "" } };
	const char *base = strrchr(mapped, '/');
	bool has_id = identity->build_id_size >= 2;
	char id[2 * SEAM_MAPPED_BUILD_ID + 1];

	if (has_id && i == 0) {
		seam_text_hex(id, identity->build_id, identity->build_id_size);
		snprintf(path, PATH_MAX, "%s/.build-id/%.2s/%s.debug",
			 debug_root, id, id + 2);
		return true;
	}
	i -= has_id;
	if (i >= SEAM_ARRAY_SIZE(places) || !link->name[0] || !base)
		return false;
	snprintf(path, PATH_MAX, "%s%.*s%s/%s", places[i].root,
		 (int)(base - mapped), mapped, places[i].folder, link->name);
	return true;
}
