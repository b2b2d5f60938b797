/* SPDX-License-Identifier: MIT */
/* native_symbols.c - loaded files and their functions; see native_symbols.h */
#include "traced/sysprof/native_symbols.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "traced/sysprof/elf_functions.h"

/* Bytes between functions that alignment alone explains. */
enum { MAX_PADDING = 64 };

#define MAIN_PROGRAM	"/proc/self/exe"

struct file_listing {
	struct seam_native_symbols *symbols;
	SEAM_ARRAY(ElfW(Phdr)) headers;	/* of all files that are new */
	size_t n_seen;
	int error;
};

/* ---- which files ---- */

static void set_bounds(struct seam_loaded_file *file,
		       const struct dl_phdr_info *info)
{
	uint64_t start = UINT64_MAX, end = 0;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD)
			continue;
		if (p->p_vaddr < start)
			start = p->p_vaddr;
		if (p->p_vaddr + p->p_memsz > end)
			end = p->p_vaddr + p->p_memsz;
	}
	if (start < end) {
		file->start = info->dlpi_addr + start;
		file->end = info->dlpi_addr + end;
	}
}

/* The main program has no name, and the vdso one without a folder. */
static const char *path_of(const struct dl_phdr_info *info, size_t index)
{
	if (index == 0 && !*info->dlpi_name)
		return MAIN_PROGRAM;
	return strchr(info->dlpi_name, '/') ? info->dlpi_name : "";
}

static struct seam_loaded_file *find_file(struct seam_native_symbols *symbols,
					  uint64_t start, const char *path)
{
	for (size_t i = 0; i < symbols->files.n; i++)
		if (symbols->files.items[i].start == start &&
		    !strcmp(symbols->files.items[i].path, path))
			return &symbols->files.items[i];
	return NULL;
}

static bool add_file(struct file_listing *listing,
		     const struct dl_phdr_info *info,
		     struct seam_loaded_file file, const char *path)
{
	file.path = strdup(path);
	file.bias = info->dlpi_addr;
	file.first_header = listing->headers.n;
	file.n_headers = info->dlpi_phnum;
	file.is_loaded = true;
	if (file.path &&
	    SEAM_ARRAY_EXTEND(&listing->headers, info->dlpi_phdr,
			      file.n_headers) &&
	    SEAM_ARRAY_ADD(&listing->symbols->files, file))
		return true;
	free(file.path);
	return false;
}

static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
	struct file_listing *listing = context;
	struct seam_native_symbols *symbols = listing->symbols;
	const char *path = path_of(info, listing->n_seen++);
	struct seam_loaded_file file = { .path = NULL }, *known;

	(void)size;
	set_bounds(&file, info);
	symbols->loads = seam_self_loads_of(info);
	known = find_file(symbols, file.start, path);
	if (known)
		known->is_loaded = true;
	else if (!add_file(listing, info, file, path))
		listing->error = -ENOMEM;
	return listing->error < 0;
}

static void forget_unloaded(struct seam_native_symbols *symbols)
{
	size_t n = 0;

	for (size_t i = 0; i < symbols->files.n; i++)
		if (symbols->files.items[i].is_loaded)
			symbols->files.items[n++] = symbols->files.items[i];
		else
			free(symbols->files.items[i].path);
	symbols->files.n = n;
}

/* 1: the loader's files are listed; 0: they did not change. */
static int list_files(struct file_listing *listing)
{
	struct seam_native_symbols *symbols = listing->symbols;

	if (seam_self_loads_equal(symbols->loads, seam_self_loads_now()))
		return 0;
	for (size_t i = 0; i < symbols->files.n; i++)
		symbols->files.items[i].is_loaded = false;
	seam_self_loader_list(visit, listing);
	forget_unloaded(symbols);
	return 1;
}

/* ---- their functions ---- */

struct symbol_output {
	seam_native_symbol_put *put;
	void *context;
	const struct seam_native_names *names;	/* or NULL */
	const struct seam_loaded_file *file;
	struct seam_elf_functions functions;	/* of the file */
};

static void put_name(const struct symbol_output *out, uint64_t addr,
		     const char *name)
{
	out->put(out->context, addr, name, strlen(name));
}

static void put_file(const struct symbol_output *out, uint64_t addr)
{
	const char *path = out->file->path, *slash;
	char target[PATH_MAX];
	ssize_t n;

	if (!strcmp(path, MAIN_PROGRAM)) {
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		path = n > 0 ? target : path;
	}
	slash = strrchr(path, '/');
	put_name(out, addr, slash ? slash + 1 : "[vdso]");
}

/* Bytes of a function: by its symbol, or by .eh_frame; 0: not known. */
static uint64_t size_of(const struct symbol_output *out, uint64_t addr,
			uint64_t size)
{
	uint64_t end = size ? 0 : seam_elf_functions_end(&out->functions, addr);

	return end > addr ? end - addr : size;
}

static void put_functions(const struct symbol_output *out)
{
	const struct seam_elf_functions *functions = &out->functions;
	uint64_t bias = out->file->bias, size = out->file->end - bias;

	for (size_t i = 0; i < functions->list.n; i++) {
		const struct seam_elf_function *f = &functions->list.items[i];
		uint64_t bytes = size_of(out, f->addr, f->size);
		uint64_t end = f->addr + bytes;
		bool is_last = i + 1 == functions->list.n;

		/* the table is not the loader's, so it may have any address */
		if (bias + f->addr < out->file->start || f->addr >= size)
			continue;
		put_name(out, bias + f->addr, functions->names + f->name);
		if (bytes && bytes < size - f->addr &&
		    (is_last || (f[1].addr > end &&
				 f[1].addr - end > MAX_PADDING)))
			put_file(out, bias + end);
	}
}

/* Whether the code at @addr has a symbol of its own. */
static bool is_covered(const struct symbol_output *out, uint64_t addr)
{
	const struct seam_elf_function *list = out->functions.list.items;
	uint64_t at = addr - out->file->bias;
	size_t after = SEAM_ARRAY_SEARCH(i, out->functions.list.n,
					 list[i].addr <= at);

	return after && (list[after - 1].addr == at ||
			 at - list[after - 1].addr < list[after - 1].size);
}

/* Whether one of the names begins at @addr. */
static bool is_name(const struct symbol_output *out, uint64_t addr)
{
	for (size_t i = 0; i < out->names->list.n; i++)
		if (out->names->list.items[i].addr == addr)
			return true;
	return false;
}

static void put_names(const struct symbol_output *out)
{
	for (size_t i = 0; out->names && i < out->names->list.n; i++) {
		const struct seam_native_name *name =
			&out->names->list.items[i];
		uint64_t bias = out->file->bias, end;

		if (name->addr < out->file->start ||
		    name->addr >= out->file->end ||
		    is_covered(out, name->addr))
			continue;
		put_name(out, name->addr, name->name);
		end = name->addr + size_of(out, name->addr - bias, name->size);
		if (end > name->addr && end < out->file->end &&
		    !is_covered(out, end) && !is_name(out, end))
			put_file(out, end);
	}
}

static int put_symbols(struct symbol_output *out, const ElfW(Phdr) *headers)
{
	const struct seam_loaded_file *file = out->file;
	int r = 0;

	put_file(out, file->start);
	if (*file->path)
		r = seam_elf_functions_read(&out->functions, file->path,
					    headers, file->n_headers);
	put_functions(out);
	put_names(out);
	/* what is mapped after it is no part of it */
	put_name(out, file->end, "[no file]");
	seam_elf_functions_fini(&out->functions);
	return r == -ENOMEM ? r : 0;
}

int seam_native_symbols_put(struct seam_native_symbols *symbols,
			    const struct seam_native_names *names,
			    seam_native_symbol_put *put, void *context)
{
	struct file_listing listing = { .symbols = symbols };
	int r = list_files(&listing);

	if (r > 0 && listing.error < 0)
		r = listing.error;
	for (size_t i = 0; i < symbols->files.n; i++) {
		struct seam_loaded_file *file = &symbols->files.items[i];
		struct symbol_output out = {
			.put = put, .context = context, .names = names,
			.file = file };

		if (!file->is_listed &&
		    put_symbols(&out, listing.headers.items +
				      file->first_header) < 0)
			r = -ENOMEM;
		file->is_listed = true;
	}
	free(listing.headers.items);
	return r;
}

void seam_native_symbols_fini(struct seam_native_symbols *symbols)
{
	for (size_t i = 0; i < symbols->files.n; i++)
		free(symbols->files.items[i].path);
	free(symbols->files.items);
	*symbols = (struct seam_native_symbols) { .files.n = 0 };
}
