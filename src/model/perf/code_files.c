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

/*
 * .debug_frame is often only in the debug file; it is for functions without
 * .eh_frame.
 */
static void open_debug(struct seam_code_files *files, uint32_t id,
		       struct seam_code_file *file)
{
	struct seam_module_file opened;
	struct seam_err err = { 0 };

	if (file->main.debug.entries.size == 0 &&
	    seam_symbols_open(files->symbols, id, true, &opened, &err) == 0 &&
	    read_file(&file->debug, &opened))
		seam_cfi_file_release_fd(&file->debug);
}

static bool is_file(const struct seam_code_files *files, uint32_t module)
{
	enum seam_module_kind kind = files->profile->modules.items[module].kind;

	return kind == SEAM_MODULE_FILE || kind == SEAM_MODULE_VDSO;
}

int seam_code_files_open(struct seam_code_files *files, uint32_t module)
{
	struct seam_module_file opened;
	struct seam_code_file *file;
	struct seam_err err = { 0 };
	uint32_t id;

	if (seam_code_files_get(files, module))
		return 0;
	while (files->items.n <= module)
		if (!SEAM_ARRAY_ADD(&files->items, NULL))
			return -ENOMEM;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	file->main.fd = file->debug.fd = -1;
	files->items.items[module] = file;
	if (!is_file(files, module))
		return 0;
	id = seam_origin_symbols(files->profile, module, files->symbols);
	if (id == SEAM_NONE)
		return -ENOMEM;
	if (seam_symbols_open(files->symbols, id, false, &opened, &err) ||
	    !read_file(&file->main, &opened))
		return 0;
	file->is_found = file->main.may_wait = true;
	open_debug(files, id, file);
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
