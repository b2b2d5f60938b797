/* SPDX-License-Identifier: MIT */
/* code_files.c - search, open, read; the contract is in code_files.h */
#include "model/perf/code_files.h"

#include <errno.h>
#include <stdlib.h>

#include "model/origin.h"

/* Read what is open as @from, and close that.  False: it is of no use. */
static bool read_file(struct seam_cfi_file *file,
		      const struct seam_module_file *from)
{
	struct seam_err err = { 0 };
	int r;

	if (!from->image)
		return seam_cfi_file_open(file, from->fd, &err) == 0;
	r = seam_cfi_file_open_image(file, (struct seam_bytes) {
			from->image, from->size }, &err);
	free(from->image);
	return r == 0;
}

static void open_main(struct seam_code_files *files, uint32_t id,
		      struct seam_code_file *file)
{
	struct seam_module_file opened;
	struct seam_err err = { 0 };

	file->is_found = seam_symbols_open(files->symbols, id, false, &opened,
					   &err) == 0 &&
			 read_file(&file->main, &opened);
	file->main.may_wait = true;
	if (file->main.fd >= 0 && ++files->n_open > SEAM_CODE_FILES_MAX_OPEN)
		seam_cfi_file_release_fd(&file->main);
}

/* .debug_frame is often in the debug file alone. */
static void open_debug(struct seam_code_files *files, uint32_t id,
		       struct seam_code_file *file)
{
	struct seam_module_file opened;
	struct seam_err err = { 0 };

	file->is_debug_tried = true;
	if (file->main.debug.entries.size == 0 &&
	    seam_symbols_open(files->symbols, id, true, &opened, &err) == 0 &&
	    read_file(&file->debug, &opened))
		seam_cfi_file_release_fd(&file->debug);
}

int seam_code_files_open(struct seam_code_files *files, uint32_t module,
			 bool is_debug)
{
	uint32_t id = seam_origin_symbols(files->profile, module,
					  files->symbols);
	struct seam_code_file **slot;

	if (id == SEAM_NONE ||
	    !SEAM_ARRAY_GROW(&files->items, (size_t)module + 1))
		return -ENOMEM;
	slot = &files->items.items[module];
	if (!*slot) {
		*slot = calloc(1, sizeof(**slot));
		if (!*slot)
			return -ENOMEM;
		(*slot)->main.fd = (*slot)->debug.fd = -1;
		open_main(files, id, *slot);
	}
	if (is_debug && !(*slot)->is_debug_tried)
		open_debug(files, id, *slot);
	return 0;
}

void seam_code_files_fini(struct seam_code_files *files)
{
	for (size_t i = 0; i < files->items.n; i++) {
		struct seam_code_file *file = files->items.items[i];

		if (!file)
			continue;
		seam_cfi_file_close(&file->main);
		seam_cfi_file_close(&file->debug);
		free(file);
	}
	free(files->items.items);
	*files = (struct seam_code_files) { 0 };
}
