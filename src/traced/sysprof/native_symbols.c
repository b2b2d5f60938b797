/* SPDX-License-Identifier: MIT */
/* native_symbols.c - loaded files and their functions; see native_symbols.h */
#include "traced/sysprof/native_symbols.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "traced/elf/image_file.h"
#include "wire/eh_frame.h"

/* Bytes between functions that alignment alone explains. */
enum { MAX_PADDING = 64 };

#define MAIN_PROGRAM	"/proc/self/exe"

/* ---- which files ---- */

static void set_bounds(struct seam_loaded_file *file,
		       const struct seam_loaded_image *image)
{
	uint64_t start = UINT64_MAX, end = 0;

	for (size_t i = 0; i < image->n_headers; i++) {
		const ElfW(Phdr) *p = &image->headers[i];

		if (p->p_type != PT_LOAD)
			continue;
		if (p->p_vaddr < start)
			start = p->p_vaddr;
		if (p->p_vaddr + p->p_memsz > end)
			end = p->p_vaddr + p->p_memsz;
	}
	if (start < end) {
		file->start = image->bias + start;
		file->end = image->bias + end;
	}
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

/* ---- the functions of a file ---- */

struct elf_function {
	uint64_t addr;		/* in the file's addresses */
	uint64_t size;		/* bytes; 0: not known */
	uint32_t name;		/* offset into the names */
	uint32_t rank;		/* of equal addresses the lowest is best */
};

/* The named functions of a file.  Zeroed is valid and empty. */
struct elf_functions {
	SEAM_ARRAY(struct elf_function) list;	/* ascending, no two equal */
	char *names;		/* NUL-terminated */
	void *frame_bytes[2];		/* .eh_frame_hdr, .eh_frame */
	struct seam_eh_frame frame;
};

/* Exported names before local ones, and before aliases with underscores. */
static uint32_t rank_of(uint8_t info, const char *name)
{
	static const uint8_t bind_rank[] = {
		[STB_LOCAL] = 2, [STB_GLOBAL] = 0, [STB_WEAK] = 1 };
	uint8_t bind = ELF64_ST_BIND(info);
	uint32_t rank = bind < SEAM_ARRAY_SIZE(bind_rank) ? bind_rank[bind] : 2;

	return rank * 4 + (name[0] == '_') + (name[0] == '_' && name[1] == '_');
}

static int compare_functions(const void *left, const void *right)
{
	const struct elf_function *a = left, *b = right;

	return SEAM_COMPARE(a->addr, b->addr) ?:
	       SEAM_COMPARE(a->rank, b->rank) ?: SEAM_COMPARE(a->name, b->name);
}

/* Takes the names of @symbols. */
static int take_symbols(struct elf_functions *functions,
			struct seam_image_symbols *symbols)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < symbols->n && r == 0; i++) {
		const ElfW(Sym) *symbol = &symbols->list[i];

		if (seam_image_symbol_is_function(symbols, symbol) &&
		    !SEAM_ARRAY_ADD(&functions->list, (struct elf_function) {
			symbol->st_value, symbol->st_size, symbol->st_name,
			rank_of(symbol->st_info, seam_image_symbol_name(
					symbols, symbol)) }))
			r = -ENOMEM;
	}
	functions->names = symbols->names;
	symbols->names = NULL;
	/* of equal addresses the best name is the first */
	SEAM_ARRAY_SORT(&functions->list, compare_functions);
	for (size_t i = 0; i < functions->list.n; i++)
		if (n == 0 || functions->list.items[n - 1].addr !=
			      functions->list.items[i].addr)
			functions->list.items[n++] = functions->list.items[i];
	functions->list.n = n;
	return r;
}

/* The section called @name; it is kept in @bytes. */
static struct seam_bytes take_section(const struct seam_image_file *file,
				      const char *name, void **bytes,
				      uint64_t *addr)
{
	for (size_t i = 0; i < file->n_sections; i++) {
		const ElfW(Shdr) *s = &file->sections[i];

		if (strcmp(seam_image_file_section_name(file, s), name) ||
		    s->sh_type == SHT_NOBITS ||
		    seam_image_file_read(file, s->sh_offset, s->sh_size, bytes))
			continue;
		*addr = s->sh_addr;
		return (struct seam_bytes) { *bytes, s->sh_size };
	}
	return (struct seam_bytes) { NULL, 0 };
}

/* For functions without a size; most files have some. */
static void take_frame(struct elf_functions *functions,
		       const struct seam_image_file *file)
{
	struct seam_eh_frame *frame = &functions->frame;

	frame->header = take_section(file, ".eh_frame_hdr",
				     &functions->frame_bytes[0],
				     &frame->header_addr);
	frame->entries = take_section(file, ".eh_frame",
				      &functions->frame_bytes[1],
				      &frame->entries_addr);
	frame->endian = SEAM_LITTLE;
	frame->address_bytes = 8;
	frame->ends_at_terminator = true;
}

/*
 * Where the code of the function at @addr ends, by the file's .eh_frame; 0: not
 * known.
 */
static uint64_t function_end(const struct elf_functions *functions,
			     uint64_t addr)
{
	struct seam_eh_fde fde = { 0 };

	return functions->frame.header.size && functions->frame.entries.size &&
	       seam_eh_frame_find(&functions->frame, addr, &fde) == 1 ?
	       fde.end : 0;
}

static void free_functions(struct elf_functions *functions)
{
	free(functions->list.items);
	free(functions->names);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(functions->frame_bytes); i++)
		free(functions->frame_bytes[i]);
	*functions = (struct elf_functions) { .names = NULL };
}

/*
 * Read the functions of the file at @path, which has the @n program headers
 * @headers if it is the one that was loaded: .symtab, or else .dynsym.  0;
 * -ENOMEM; -ENOENT where there is no such table; -ESTALE where the file is
 * another one by now; -EBADMSG; or the negative errno of open(2) or pread(2).
 */
static int read_functions(struct elf_functions *functions, const char *path,
			  const ElfW(Phdr) *headers, size_t n)
{
	struct seam_image_symbols symbols;
	struct seam_image_file file;
	int r = seam_image_file_open(&file, path, headers, n);

	*functions = (struct elf_functions) { .names = NULL };
	if (r < 0)
		return r;
	r = seam_image_file_symbols(&file, SHT_SYMTAB, &symbols);
	if (r == -ENOENT)
		r = seam_image_file_symbols(&file, SHT_DYNSYM, &symbols);
	r = r ?: take_symbols(functions, &symbols);
	take_frame(functions, &file);
	seam_image_symbols_fini(&symbols);
	seam_image_file_close(&file);
	/* the end of a function is known without a symbol too */
	if (r < 0 && r != -ENOENT)
		free_functions(functions);
	return r;
}

/* ---- their symbols ---- */

struct symbol_output {
	seam_native_symbol_put *put;
	void *context;
	const struct seam_native_names *names;	/* or NULL */
	const struct seam_loaded_file *file;
	struct elf_functions functions;	/* of the file */
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
	uint64_t end = size ? 0 : function_end(&out->functions, addr);

	return end > addr ? end - addr : size;
}

static void put_functions(const struct symbol_output *out)
{
	const struct elf_functions *functions = &out->functions;
	uint64_t bias = out->file->bias, size = out->file->end - bias;

	for (size_t i = 0; i < functions->list.n; i++) {
		const struct elf_function *f = &functions->list.items[i];
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
	const struct elf_function *list = out->functions.list.items;
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

static int put_symbols(struct symbol_output *out,
		       const struct seam_loaded_image *image)
{
	const struct seam_loaded_file *file = out->file;
	int r = 0;

	put_file(out, file->start);
	if (*file->path)
		r = read_functions(&out->functions, file->path,
				   image->headers, image->n_headers);
	put_functions(out);
	put_names(out);
	/* what is mapped after it is no part of it */
	put_name(out, file->end, "[no file]");
	free_functions(&out->functions);
	return r == -ENOMEM ? r : 0;
}

/* Put the symbols of @image, unless they were put before. */
static int put_image(struct symbol_output out,
		     struct seam_native_symbols *symbols,
		     const struct seam_loaded_image *image, bool is_first)
{
	/* the program has no name, the vdso's is without a folder */
	const char *path = is_first && !*image->name ? MAIN_PROGRAM :
			   strchr(image->name, '/') ? image->name : "";
	struct seam_loaded_file file = { .bias = image->bias,
					 .is_loaded = true }, *known;

	set_bounds(&file, image);
	known = find_file(symbols, file.start, path);
	if (known) {
		known->is_loaded = true;
		return 0;
	}
	file.path = strdup(path);
	if (!file.path || !SEAM_ARRAY_ADD(&symbols->files, file)) {
		free(file.path);
		return -ENOMEM;
	}
	out.file = &file;
	return put_symbols(&out, image);
}

int seam_native_symbols_put(struct seam_native_symbols *symbols,
			    const struct seam_native_names *names,
			    seam_native_symbol_put *put, void *context)
{
	const struct symbol_output out = {
		.put = put, .context = context, .names = names };
	struct seam_loaded_images *images;
	size_t n = 0;
	int r = 1;

	if (seam_self_loads_equal(symbols->loads, seam_self_loads_now()))
		return 0;
	images = seam_loaded_images_list();
	if (!images)
		return -ENOMEM;
	for (size_t i = 0; i < symbols->files.n; i++)
		symbols->files.items[i].is_loaded = false;
	for (size_t i = 0; i < images->n; i++)
		if (put_image(out, symbols, &images->list[i], i == 0) < 0)
			r = -ENOMEM;
	for (size_t i = 0; i < symbols->files.n; i++)
		if (symbols->files.items[i].is_loaded)
			symbols->files.items[n++] = symbols->files.items[i];
		else
			free(symbols->files.items[i].path);
	symbols->files.n = n;
	symbols->loads = images->loads;
	seam_loaded_images_free(images);
	return r;
}

void seam_native_symbols_fini(struct seam_native_symbols *symbols)
{
	for (size_t i = 0; i < symbols->files.n; i++)
		free(symbols->files.items[i].path);
	free(symbols->files.items);
	*symbols = (struct seam_native_symbols) { .files.n = 0 };
}
