/* SPDX-License-Identifier: MIT */
/*
 * symbols.c - the modules of a recording; the contract is in symbols.h
 *
 * A module is a kernel, or a file that a sandboxed process reads
 * (symbolizer.h).
 */
#include "symbol/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/index.h"
#include "symbol/code/kernel_code.h"
#include "symbol/kernel/kernel.h"
#include "symbol/symbolizer/symbolizer.h"

struct module {
	bool is_kernel;
	struct seam_module file;	/* a copy; of a kernel zero */

	/* a kernel */
	struct seam_kernel kernel;	/* a copy */
	bool is_loaded;
	struct seam_kernel_symbols kernel_symbols;
	struct seam_arena arena;	/* names in results */
	char problem[SEAM_ERR_TEXT];	/* "" when there is none */

	struct seam_symbolizer_module elf;	/* a file */
	bool is_open;			/* it was read */
};

struct seam_symbols {
	struct seam_symbols_options options;
	struct seam_arena arena;	/* what modules and options point to */
	/* Pointers: a module stays where it is while others are added. */
	SEAM_ARRAY(struct module *) modules;
	struct seam_index index;	/* of modules, by path and build id */
	struct seam_symbolizer *symbolizer;	/* reads files */
	/* Disassembles; NULL: no code was disassembled yet. */
	struct seam_symbolizer *disassembler;
};

/* -- creation ----------------------------------------------------------- */

static bool copy_options(struct seam_symbols *symbols,
			 const struct seam_symbols_options *options)
{
	const char **roots = seam_arena_alloc(&symbols->arena,
		(options->n_symfs + 1) * sizeof(*roots));

	symbols->options = *options;
	symbols->options.symfs = roots;
	if (!roots || !seam_arena_copy(&symbols->arena,
				       &symbols->options.bundle,
				       options->bundle))
		return false;
	for (size_t i = 0; i < options->n_symfs; i++)
		if (!seam_arena_copy(&symbols->arena, &roots[i],
				     options->symfs[i]))
			return false;
	return true;
}

struct seam_symbols *
seam_symbols_new(const struct seam_symbols_options *options)
{
	struct seam_symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return NULL;
	if (copy_options(symbols, options))
		symbols->symbolizer = seam_symbolizer_new(&symbols->options);
	if (symbols->symbolizer)
		return symbols;
	seam_symbols_free(symbols);
	return NULL;
}

static void free_module(struct module *module)
{
	seam_symbolizer_module_fini(&module->elf);
	seam_kernel_close(&module->kernel_symbols);
	seam_arena_fini(&module->arena);
	free(module);
}

void seam_symbols_free(struct seam_symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->modules.n; i++)
		free_module(symbols->modules.items[i]);
	free(symbols->modules.items);
	seam_symbolizer_free(symbols->symbolizer);
	seam_symbolizer_free(symbols->disassembler);
	seam_index_fini(&symbols->index);
	seam_arena_fini(&symbols->arena);
	free(symbols);
}

/* -- modules ------------------------------------------------------------ */

static uint32_t add_module(struct seam_symbols *symbols, struct module *module,
			   uint64_t hash)
{
	uint32_t id = SEAM_INDEX_APPEND(&symbols->index, hash,
					&symbols->modules, module);

	module->elf.file = &module->file;
	if (id == SEAM_NONE)
		free_module(module);
	return id;
}

/* The module that equals @want, or SEAM_NONE. */
static uint32_t find_module(struct seam_symbols *symbols,
			    const struct seam_module *want, uint64_t hash)
{
	uint32_t id = SEAM_INDEX_FIND(&symbols->index, hash, i,
		!symbols->modules.items[i]->is_kernel &&
		seam_module_equal(&symbols->modules.items[i]->file, want));
	struct seam_module *file = id == SEAM_NONE ? NULL :
				   &symbols->modules.items[id]->file;

	if (file && want->mapped_ns < file->mapped_ns)
		file->mapped_ns = want->mapped_ns;
	return id;
}

/* @file without what does not identify it: a build id is enough. */
static struct seam_module normalize(const struct seam_module *file)
{
	struct seam_module m = *file;

	if (!m.build_id || m.build_id_size > SEAM_BUILD_ID_MAX)
		m.build_id_size = m.build_id ? SEAM_BUILD_ID_MAX : 0;
	if (m.build_id_size > 0)
		m.evidence = SEAM_EVIDENCE_PATH;
	if (m.evidence != SEAM_EVIDENCE_INODE)
		m.ino = m.ino_generation = m.mapped_ns = 0;
	if (m.evidence != SEAM_EVIDENCE_CONTENTS)
		m.content_id = 0;
	return m;
}

uint32_t seam_symbols_module(struct seam_symbols *symbols,
			     const struct seam_module *file)
{
	struct seam_module want = normalize(file);
	uint64_t hash = seam_hash_bytes(want.path, strlen(want.path), 0);
	struct module *module;
	uint32_t id;

	if (want.build_id_size > 0)
		hash = seam_hash_bytes(want.build_id, want.build_id_size,
				       hash);
	id = find_module(symbols, &want, hash);
	if (id != SEAM_NONE)
		return id;
	module = calloc(1, sizeof(*module));
	if (!module)
		return SEAM_NONE;
	if (seam_module_copy(&symbols->arena, &module->file, &want)) {
		free_module(module);
		return SEAM_NONE;
	}
	return add_module(symbols, module, hash);
}

uint32_t seam_symbols_kernel(struct seam_symbols *symbols,
			     const struct seam_kernel *kernel)
{
	struct module *module;

	for (size_t i = 0; i < symbols->modules.n; i++) {
		module = symbols->modules.items[i];
		if (module->is_kernel &&
		    seam_kernel_equal(&module->kernel, kernel))
			return (uint32_t)i;
	}
	module = calloc(1, sizeof(*module));
	if (!module)
		return SEAM_NONE;
	module->is_kernel = true;
	if (seam_kernel_copy(&symbols->arena, &module->kernel, kernel)) {
		free_module(module);
		return SEAM_NONE;
	}
	return add_module(symbols, module, kernel->text_addr);
}

/* Module @id, ready for look-ups; NULL: there is none. */
static struct module *open_module(struct seam_symbols *symbols, uint32_t id)
{
	struct module *module;
	struct seam_err err = { 0 };

	if (id >= symbols->modules.n)
		return NULL;
	module = symbols->modules.items[id];
	if (module->is_kernel && !module->is_loaded) {
		module->is_loaded = true;
		if (seam_kernel_load(&module->kernel_symbols,
				     symbols->options.bundle, &module->kernel,
				     &err))
			seam_err_text(&err, module->problem);
	} else if (!module->is_kernel && !module->is_open) {
		module->is_open = true;
		seam_symbolizer_open(symbols->symbolizer, &module->elf);
	}
	return module;
}

size_t seam_symbols_n_modules(const struct seam_symbols *symbols)
{
	return symbols->modules.n;
}

/* -- addresses ---------------------------------------------------------- */

static size_t resolve_kernel(struct module *module, uint64_t addr,
			     struct seam_location *out)
{
	const char *name = seam_symtab_name(&module->kernel_symbols.table, addr,
					    &module->arena);

	if (!name)
		return 0;
	*out = (struct seam_location) { .function = name };
	return 1;
}

size_t seam_symbols_resolve(struct seam_symbols *symbols, uint32_t id,
			    uint64_t addr, struct seam_location *out,
			    size_t cap)
{
	struct module *module = cap ? open_module(symbols, id) : NULL;

	if (!module)
		return 0;
	if (module->is_kernel)
		return resolve_kernel(module, addr, out);
	return seam_symbolizer_resolve(symbols->symbolizer, &module->elf, addr,
				       out, cap);
}

/* Symbols of the kernel have no size: each ends where the next begins. */
static bool kernel_extent(struct module *module, uint64_t addr,
			  struct seam_extent *out)
{
	const struct seam_symtab *table = &module->kernel_symbols.table;
	const struct seam_symbol *symbol = seam_symtab_find(table, addr);

	*out = (struct seam_extent) { .offset = addr, .addr = addr };
	if (!symbol)
		return !module->problem[0];
	out->addr = out->offset = symbol->start;
	out->size = seam_symtab_end(table, symbol) - symbol->start;
	return true;
}

bool seam_symbols_extent(struct seam_symbols *symbols, uint32_t id,
			 uint64_t addr, struct seam_extent *out)
{
	struct module *module = open_module(symbols, id);

	if (!module)
		return false;
	if (module->is_kernel)
		return kernel_extent(module, addr, out);
	return seam_symbolizer_extent(symbols->symbolizer, &module->elf, addr,
				      out);
}

bool seam_symbols_is_trampoline(struct seam_symbols *symbols, uint32_t id,
				uint64_t addr)
{
	struct module *module = open_module(symbols, id);

	return module && !module->is_kernel &&
	       seam_symbolizer_is_trampoline(symbols->symbolizer, &module->elf,
					     addr);
}

void seam_symbols_expect(struct seam_symbols *symbols, uint32_t id,
			 uint64_t addr)
{
	if (id < symbols->modules.n)
		seam_symbolizer_expect(&symbols->modules.items[id]->elf, addr);
}

int seam_symbols_names(struct seam_symbols *symbols, uint32_t id,
		       const struct seam_named_addresses *names)
{
	struct module *module = open_module(symbols, id);

	return !module || module->is_kernel ? 0 :
	       seam_symbolizer_names(symbols->symbolizer, &module->elf, names);
}

/* -- instrumentation maps ----------------------------------------------- */

/* The process maps a regular file; a pipe is read here. */
static int read_map(struct seam_symbols *symbols, struct seam_xray_map *map,
		    const char *path, struct seam_err *err)
{
	struct seam_file file;
	int fd = seam_file_open_fd(AT_FDCWD, path, 0, NULL);
	int r;

	if (fd >= 0) {
		r = seam_symbolizer_map(symbols->symbolizer, map, fd,
					(struct seam_bytes) { 0 }, err);
		close(fd);
		return r;
	}
	r = seam_file_open(&file, path, err);
	if (!r)
		r = seam_symbolizer_map(symbols->symbolizer, map, -1,
					file.bytes, err);
	seam_file_close(&file);
	return r;
}

/* A file that was found, not named: no link, and of @left bytes at most. */
static int read_map_beside(struct seam_symbols *symbols,
			   struct seam_xray_map *map, const char *path,
			   uint64_t *left, struct seam_err *err)
{
	int r, fd = seam_file_open_fd(AT_FDCWD, path, O_NOFOLLOW, err);
	struct stat st = { 0 };

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		r = seam_err_errno(err, "cannot read its size");
	else if ((uint64_t)st.st_size > *left)
		r = seam_err_set(err, -EFBIG, "with %lld bytes, it is larger "
				 "than the %llu left for maps beside logs",
				 (long long)st.st_size,
				 (unsigned long long)*left);
	else
		r = seam_symbolizer_map(symbols->symbolizer, map, fd,
					(struct seam_bytes) { 0 }, err);
	if (r != -EFBIG)
		*left -= (uint64_t)st.st_size;
	close(fd);
	return r;
}

int seam_symbols_read_map(struct seam_symbols *symbols,
			  struct seam_xray_map *map, const char *path,
			  uint64_t *left, struct seam_err *err)
{
	int r;

	*map = (struct seam_xray_map) { 0 };
	r = left ? read_map_beside(symbols, map, path, left, err) :
	    read_map(symbols, map, path, err);
	return r ? seam_err_add(err, r, "cannot read instrumentation map '%s'",
				path) : 0;
}

/* -- code --------------------------------------------------------------- */

int seam_symbols_code(struct seam_symbols *symbols, uint32_t id, uint64_t addr,
		      uint8_t *buf, size_t size, struct seam_machine *machine,
		      struct seam_err *err)
{
	const struct seam_vmlinux_reader reader = {
		.read = seam_symbolizer_vmlinux_code,
		.context = symbols->symbolizer,
	};
	struct module *module;

	if (id >= symbols->modules.n)
		return seam_err_set(err, -EINVAL, "there is no such module");
	module = symbols->modules.items[id];
	if (module->is_kernel)
		return seam_kernel_code(&symbols->options, &reader,
					&module->kernel, addr, buf, size,
					machine, err);
	return seam_symbolizer_code(symbols->symbolizer, &module->elf, addr,
				    buf, size, machine, err);
}

int seam_symbols_open(struct seam_symbols *symbols, uint32_t id, bool is_debug,
		      struct seam_module_file *file, struct seam_err *err)
{
	struct module *module = open_module(symbols, id);

	if (!module || module->is_kernel)
		return seam_err_set(err, -EINVAL, "there is no such module");
	return seam_symbolizer_open_file(symbols->symbolizer, &module->elf,
					 is_debug, file, err);
}

int seam_symbols_disassemble(struct seam_symbols *symbols,
			     const struct seam_code_block *code,
			     seam_instruction_add *add, void *context,
			     struct seam_err *err)
{
	int r;

	/*
	 * The library is loaded before the fork: a sandboxed process can open
	 * nothing.  The one that reads files was started without it.
	 */
	r = seam_disassembly_load(err);
	if (r)
		return r;
	if (!symbols->disassembler)
		symbols->disassembler = seam_symbolizer_new(&symbols->options);
	if (!symbols->disassembler)
		return seam_err_no_memory(err);
	return seam_symbolizer_disassemble(symbols->disassembler, code, add,
					   context, err);
}

/* -- what is missing ---------------------------------------------------- */

static const struct module *get_module(const struct seam_symbols *symbols,
				       uint32_t id)
{
	return id < symbols->modules.n ? symbols->modules.items[id] : NULL;
}

int seam_symbols_missing(const struct seam_symbols *symbols, uint32_t id)
{
	const struct module *module = get_module(symbols, id);

	return module ? module->elf.missing : 0;
}

const char *seam_symbols_problem(const struct seam_symbols *symbols,
				 uint32_t id)
{
	const struct module *module = get_module(symbols, id);
	const char *problem;

	if (!module)
		return NULL;
	problem = module->is_kernel ? module->problem : module->elf.problem;
	return *problem ? problem : NULL;
}

const char *seam_symbols_lost(const struct seam_symbols *symbols, uint32_t id)
{
	const struct module *module = get_module(symbols, id);

	return module && module->elf.lost[0] ? module->elf.lost : NULL;
}

const char *seam_symbols_unprotected(const struct seam_symbols *symbols)
{
	return seam_symbolizer_unprotected(symbols->symbolizer);
}

const char *seam_symbols_path(const struct seam_symbols *symbols, uint32_t id)
{
	const struct module *module = get_module(symbols, id);

	return module ? module->file.path : NULL;
}
