/* SPDX-License-Identifier: MIT */
/*
 * symbols.c - modules, and who answers for which; contract in symbols.h
 *
 * A module is opened when the first address of it is asked for.  From then
 * on it holds tables in memory and no descriptor, so that a recording of a
 * thousand files does not run out of them.
 */
#include "symbol/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/index.h"
#include "symbol/disassembly.h"
#include "symbol/dwarf/dwarf.h"
#include "symbol/elf/bounds.h"
#include "symbol/elf/elf_symbols.h"
#include "symbol/elf/find.h"
#include "symbol/elf/symtab.h"
#include "symbol/elf/trampoline.h"
#include "symbol/kernel/kernel.h"
#include "symbol/kernel/kernel_code.h"
#include "symbol/sandbox/remote.h"
#include "symbol/symbols_inside.h"

struct module {
	bool is_kernel;
	bool opened;
	int missing;			/* see seam_symbols_missing() */
	struct seam_module file;	/* a copy */
	struct seam_kernel kernel;	/* a copy */
	struct seam_arena arena;	/* names in answers */
	char problem[SEAM_ERR_TEXT];	/* "" when there is none */
	struct seam_segments segments;
	struct seam_symtab table;
	struct seam_dwarf *dwarf;	/* NULL: none */
	struct seam_bounds bounds;
	bool has_bounds;		/* they were read, if there are any */
	struct seam_remote_module remote;	/* where it is isolated */
	struct seam_kernel_symbols kernel_symbols;
};

struct seam_symbols {
	struct seam_symbols_options options;
	struct seam_arena arena;	/* what modules and options point to */
	/* Pointers: a module stays where it is while others are added. */
	SEAM_ARRAY(struct module *) modules;
	struct seam_index index;	/* of modules, by path and build id */
	struct seam_remote *remote;	/* NULL: files are read here */
	/* Decodes instructions; NULL: no code was disassembled yet. */
	struct seam_remote *decoder;
};

/* A copy of a string that may be NULL; false when memory ran out. */
static bool keep(struct seam_symbols *symbols, const char **to,
		 const char *text)
{
	*to = text ? seam_arena_text(&symbols->arena, text, strlen(text)) :
	      NULL;
	return !text || *to;
}

static bool keep_id(struct seam_symbols *symbols, const uint8_t **to,
		    size_t *to_size, const uint8_t *id, size_t size)
{
	if (size > SEAM_BUILD_ID_MAX)
		size = SEAM_BUILD_ID_MAX;
	*to_size = id ? size : 0;
	*to = *to_size > 0 ? (const uint8_t *)seam_arena_text(&symbols->arena,
			(const char *)id, size) : NULL;
	return *to_size == 0 || *to;
}

static bool keep_options(struct seam_symbols *symbols,
			 const struct seam_symbols_options *options)
{
	const char **roots = seam_arena_alloc(&symbols->arena,
		(options->n_symfs + 1) * sizeof(*roots));

	symbols->options = *options;
	symbols->options.symfs = roots;
	if (!roots || !keep(symbols, &symbols->options.bundle,
			    options->bundle))
		return false;
	for (size_t i = 0; i < options->n_symfs; i++)
		if (!keep(symbols, &roots[i], options->symfs[i]))
			return false;
	return true;
}

struct seam_symbols *
seam_symbols_new(const struct seam_symbols_options *options)
{
	struct seam_symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return NULL;
	if (keep_options(symbols, options)) {
		if (options->isolated)
			symbols->remote = seam_remote_new(&symbols->options);
		if (!options->isolated || symbols->remote)
			return symbols;
	}
	seam_symbols_free(symbols);
	return NULL;
}

static void free_module(struct module *module)
{
	seam_dwarf_close(module->dwarf);
	seam_symtab_fini(&module->table);
	seam_bounds_fini(&module->bounds);
	seam_kernel_close(&module->kernel_symbols);
	free(module->segments.items);
	seam_arena_fini(&module->arena);
	seam_remote_forget(&module->remote);
	free(module);
}

void seam_symbols_free(struct seam_symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->modules.n; i++)
		free_module(symbols->modules.items[i]);
	free(symbols->modules.items);
	seam_remote_free(symbols->remote);
	seam_remote_free(symbols->decoder);
	seam_index_fini(&symbols->index);
	seam_arena_fini(&symbols->arena);
	free(symbols);
}

static uint32_t add_module(struct seam_symbols *symbols, struct module *module,
			   uint64_t hash)
{
	uint32_t id = (uint32_t)symbols->modules.n;
	struct module **slot = SEAM_ARRAY_PUSH(&symbols->modules);

	if (slot && !seam_index_add(&symbols->index, hash, id)) {
		*slot = module;
		return id;
	}
	if (slot)
		symbols->modules.n--;
	free_module(module);
	return SEAM_NONE;
}

static bool same_id(const uint8_t *a, size_t a_size, const uint8_t *b,
		    size_t b_size)
{
	return a_size == b_size && (a_size == 0 || !memcmp(a, b, a_size));
}

static bool is_file(const struct module *module, const struct seam_module *file)
{
	const struct seam_module *have = &module->file;

	return !module->is_kernel && !strcmp(have->path, file->path) &&
	       have->evidence == file->evidence && have->ino == file->ino &&
	       have->ino_generation == file->ino_generation &&
	       same_id(have->build_id, have->build_id_size, file->build_id,
		       file->build_id_size);
}

/* The module that equals @want, or SEAM_NONE. */
static uint32_t find_module(struct seam_symbols *symbols,
			    const struct seam_module *want, uint64_t hash)
{
	struct seam_index_probe probe = seam_index_probe(&symbols->index, hash);
	uint32_t id;

	while ((id = seam_index_next(&symbols->index, &probe)) != SEAM_NONE) {
		struct module *module = symbols->modules.items[id];

		if (!is_file(module, want))
			continue;
		if (want->mapped_ns < module->file.mapped_ns)
			module->file.mapped_ns = want->mapped_ns;
		break;
	}
	return id;
}

uint32_t seam_symbols_module(struct seam_symbols *symbols,
			     const struct seam_module *file)
{
	struct seam_module want = *file;
	struct module *module;
	uint64_t hash;
	uint32_t id;

	if (!want.build_id || want.build_id_size > SEAM_BUILD_ID_MAX)
		want.build_id_size = want.build_id ? SEAM_BUILD_ID_MAX : 0;
	if (want.build_id_size > 0)	/* which says it all */
		want.evidence = SEAM_EVIDENCE_PATH;
	if (want.evidence != SEAM_EVIDENCE_INODE)
		want.ino = want.ino_generation = want.mapped_ns = 0;
	hash = seam_hash_bytes(want.path, strlen(want.path), 0);
	if (want.build_id_size > 0)
		hash = seam_hash_bytes(want.build_id, want.build_id_size,
				       hash);
	id = find_module(symbols, &want, hash);
	if (id != SEAM_NONE)
		return id;
	module = calloc(1, sizeof(*module));
	if (!module)
		return SEAM_NONE;
	module->file = want;
	if (!keep(symbols, &module->file.path, want.path) ||
	    !keep_id(symbols, &module->file.build_id,
		     &module->file.build_id_size, want.build_id,
		     want.build_id_size)) {
		free_module(module);
		return SEAM_NONE;
	}
	return add_module(symbols, module, hash);
}

static bool is_kernel(const struct module *module,
		      const struct seam_kernel *kernel)
{
	const struct seam_kernel *have = &module->kernel;
	const char *boot_id = kernel->boot_id ? kernel->boot_id : "";

	return module->is_kernel && have->text_addr == kernel->text_addr &&
	       !strcmp(have->boot_id ? have->boot_id : "", boot_id) &&
	       same_id(have->build_id, have->build_id_size, kernel->build_id,
		       kernel->build_id ? kernel->build_id_size : 0);
}

uint32_t seam_symbols_kernel(struct seam_symbols *symbols,
			     const struct seam_kernel *kernel)
{
	struct module *module;

	for (size_t i = 0; i < symbols->modules.n; i++)
		if (is_kernel(symbols->modules.items[i], kernel))
			return (uint32_t)i;
	module = calloc(1, sizeof(*module));
	if (!module)
		return SEAM_NONE;
	module->is_kernel = true;
	module->kernel.text_addr = kernel->text_addr;
	if (!keep(symbols, &module->kernel.boot_id, kernel->boot_id) ||
	    !keep_id(symbols, &module->kernel.build_id,
		     &module->kernel.build_id_size, kernel->build_id,
		     kernel->build_id_size)) {
		free_module(module);
		return SEAM_NONE;
	}
	return add_module(symbols, module, kernel->text_addr);
}

/* The causes of @err in one line, the last one first. */
static void set_problem(struct module *module, const struct seam_err *err)
{
	size_t pos = 0;

	for (int i = err->n_causes - 1; i >= 0; i--) {
		int n = snprintf(module->problem + pos,
				 sizeof(module->problem) - pos, "%s%s",
				 pos ? ": " : "", err->cause[i]);

		if (n < 0 || (size_t)n >= sizeof(module->problem) - pos)
			break;
		pos += (size_t)n;
	}
}

/*
 * All symbols there are.  The small table in .gnu_debugdata is for files whose
 * full one is not at hand.
 */
static int read_symbols(struct module *module, const struct seam_elf *file,
			const struct seam_elf *debug)
{
	struct seam_symtab *table = &module->table;
	size_t n;
	int r = seam_elf_symbols(table, &module->arena, file);

	if (!r && debug)
		r = seam_elf_symbols(table, &module->arena, debug);
	else if (!r && !seam_elf_has_symtab(file))
		r = seam_elf_minidebug(table, &module->arena, file);
	if (!r)
		r = seam_symtab_sort(table);
	n = table->symbols.n;
	if (!r)
		r = seam_elf_plt(table, &module->arena, file);
	return r || table->symbols.n == n ? r : seam_symtab_sort(table);
}

static void read_file(struct seam_symbols *symbols, struct module *module,
		      struct seam_elf *file, struct seam_elf *debug)
{
	struct seam_elf *dwarf = seam_dwarf_is_in(file) ? file : debug;
	struct seam_err err = { 0 };

	if (read_symbols(module, file, debug))
		seam_err_set(&err, -ENOMEM, "out of memory");
	module->segments = file->segments;
	file->segments = (struct seam_segments) { 0 };
	if (!err.code && module->table.symbols.n == 0)
		seam_err_set(&err, -ENODATA, "the file has no symbols");
	if (!symbols->options.no_lines && dwarf && seam_dwarf_is_in(dwarf))
		seam_dwarf_open(&module->dwarf, dwarf, &symbols->options,
				&module->arena, &err);
	set_problem(module, &err);
}

static bool has_code(const struct seam_elf *file)
{
	for (size_t i = 0; i < file->segments.n; i++)
		if (file->segments.items[i].runs)
			return true;
	return false;
}

static void open_file(struct seam_symbols *symbols, struct module *module)
{
	const struct seam_symbols_options *options = &symbols->options;
	struct seam_err why = { 0 };
	struct seam_elf file, debug;
	bool whole, has_debug;

	module->missing = seam_find_module(&file, options, &module->file,
					   &why);
	if (module->missing) {
		set_problem(module, &why);
		return;
	}
	if (!has_code(&file)) {
		seam_err_set(&why, -ENODATA, "the file holds no code; "
			     "debug information alone does not say where "
			     "code was mapped");
		set_problem(module, &why);
		seam_elf_close(&file);
		return;
	}
	whole = seam_elf_has_symtab(&file) &&
		(options->no_lines || seam_dwarf_is_in(&file));
	why = (struct seam_err) { 0 };
	has_debug = !whole && !seam_find_debug(&debug, options, &module->file,
					       &file, &why);
	read_file(symbols, module, &file, has_debug ? &debug : NULL);
	if (!has_debug && !whole && why.n_causes > 0 && !module->problem[0])
		set_problem(module, &why);
	if (has_debug)
		seam_elf_close(&debug);
	seam_elf_close(&file);
}

static void open_module(struct seam_symbols *symbols, struct module *module)
{
	struct seam_err err = { 0 };

	module->opened = true;
	module->remote.file = &module->file;
	if (!module->is_kernel && symbols->remote) {
		seam_remote_open(symbols->remote, &module->remote,
				 module->problem);
		module->missing = module->remote.missing;
	} else if (!module->is_kernel)
		open_file(symbols, module);
	else if (seam_kernel_load(&module->kernel_symbols,
				  symbols->options.bundle, &module->kernel,
				  &err))
		set_problem(module, &err);
}

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

/*
 * The function at @addr where symbols do not say.  Its file is opened again,
 * when the first address without a symbol comes: most files have none.
 */
static void read_bounds(struct seam_symbols *symbols, struct module *module)
{
	struct seam_err why = { 0 };
	struct seam_elf file;

	module->has_bounds = true;
	/* Without memory there are fewer of them. */
	if (!seam_find_module(&file, &symbols->options, &module->file,
			      &why)) {
		(void)seam_bounds_read(&module->bounds, &file);
		seam_elf_close(&file);
	}
}

static const struct seam_bound *bound_at(struct seam_symbols *symbols,
					 struct module *module, uint64_t addr)
{
	if (!module->has_bounds)
		read_bounds(symbols, module);
	return seam_bounds_find(&module->bounds, addr);
}

/*
 * The symbol of the function at @addr.  One without a size reaches up to the
 * next; where functions between were stripped, it ends before the first.
 */
static const struct seam_symbol *symbol_at(struct seam_symbols *symbols,
					   struct module *module, uint64_t addr)
{
	const struct seam_symbol *symbol = seam_symtab_find(&module->table,
							    addr);
	const struct seam_bound *bound;

	if (!symbol || symbol->end > symbol->start)
		return symbol;
	bound = bound_at(symbols, module, addr);
	return bound && bound->start > symbol->start ? NULL : symbol;
}

/* Without a symbol: only some tables have names. */
static size_t resolve_bound(struct seam_symbols *symbols,
			    struct module *module, uint64_t addr,
			    struct seam_location *out, size_t n)
{
	const struct seam_bound *bound = bound_at(symbols, module, addr);
	const char *name = bound ? seam_bounds_name(&module->bounds, bound) :
			   NULL;

	if (!name)
		return n;
	if (n == 0)
		out[n++] = (struct seam_location) { 0 };
	out[n - 1].function = name;
	return n;
}

/*
 * DWARF knows the calls, but the linker knows the function's real name; unless
 * the symbol has no size, and reaches here only because none follows it.
 */
static size_t resolve_file(struct seam_symbols *symbols, struct module *module,
			   uint64_t offset, struct seam_location *out,
			   size_t cap)
{
	const struct seam_symbol *symbol;
	uint64_t addr;
	size_t n;

	if (!seam_segments_addr(&module->segments, offset, &addr))
		return 0;
	n = module->dwarf ? seam_dwarf_resolve(module->dwarf, addr, out, cap) :
	    0;
	symbol = seam_symtab_find(&module->table, addr);
	if (n > 0 && out[n - 1].function &&
	    (!symbol || symbol->end <= symbol->start))
		return n;
	symbol = symbol_at(symbols, module, addr);
	if (!symbol)
		return resolve_bound(symbols, module, addr, out, n);
	if (n == 0)
		out[n++] = (struct seam_location) { 0 };
	out[n - 1].function = seam_symtab_name(&module->table, addr,
					       &module->arena);
	return n;
}

size_t seam_symbols_resolve(struct seam_symbols *symbols, uint32_t id,
			    uint64_t addr, struct seam_location *out,
			    size_t cap)
{
	struct module *module;

	if (id >= symbols->modules.n || cap == 0)
		return 0;
	module = symbols->modules.items[id];
	if (!module->opened)
		open_module(symbols, module);
	if (module->is_kernel)
		return resolve_kernel(module, addr, out);
	if (symbols->remote)
		return seam_remote_resolve(symbols->remote, &module->remote,
					   addr, out, cap, module->problem);
	return resolve_file(symbols, module, addr, out, cap);
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

/* The function at @addr: the extent of its symbol, or of what bounds it. */
static bool function_at(struct seam_symbols *symbols, struct module *module,
			uint64_t addr, uint64_t *start, uint64_t *end)
{
	const struct seam_symbol *symbol = symbol_at(symbols, module, addr);
	const struct seam_bound *bound;

	if (symbol) {
		*start = symbol->start;
		*end = seam_symtab_end(&module->table, symbol);
		return true;
	}
	bound = bound_at(symbols, module, addr);
	if (!bound)
		return false;
	*start = bound->start;
	*end = bound->end;
	return true;
}

bool seam_symbols_extent(struct seam_symbols *symbols, uint32_t id,
			 uint64_t offset, struct seam_extent *out)
{
	struct module *module;
	uint64_t addr, start, end;

	if (id >= symbols->modules.n)
		return false;
	module = symbols->modules.items[id];
	if (!module->opened)
		open_module(symbols, module);
	if (module->is_kernel)
		return kernel_extent(module, offset, out);
	if (symbols->remote)
		return seam_remote_extent(symbols->remote, &module->remote,
					  offset, out, module->problem);
	if (!seam_segments_addr(&module->segments, offset, &addr))
		return false;
	*out = (struct seam_extent) { .offset = offset, .addr = addr };
	if (!function_at(symbols, module, addr, &start, &end) ||
	    addr - start > offset)
		return true;
	out->addr = start;
	out->offset = offset - (addr - start);
	out->size = end - start;
	return true;
}

/*
 * Whether a function begins at @addr that the kernel returns to.  Its entry in
 * .eh_frame begins a byte earlier, because unwinders look there.
 */
static bool is_trampoline(struct seam_symbols *symbols, struct module *module,
			  uint64_t addr)
{
	const struct seam_symbol *symbol = seam_symtab_find(&module->table,
							    addr);
	const struct seam_bound *bound;
	const char *name;

	if (symbol && symbol->start == addr)
		return seam_trampoline_is_name(symbol->name);
	bound = bound_at(symbols, module, addr);
	if (!bound || (bound->start != addr && bound->start + 1 != addr))
		return false;
	name = seam_bounds_name(&module->bounds, bound);
	return bound->is_signal_frame || (name && seam_trampoline_is_name(name));
}

bool seam_symbols_is_trampoline(struct seam_symbols *symbols, uint32_t id,
				uint64_t offset)
{
	const struct seam_symbol *before;
	struct module *module;
	uint64_t addr;

	if (id >= symbols->modules.n)
		return false;
	module = symbols->modules.items[id];
	if (!module->opened)
		open_module(symbols, module);
	if (symbols->remote && !module->is_kernel)
		return seam_remote_is_trampoline(symbols->remote,
						 &module->remote, offset,
						 module->problem);
	if (module->is_kernel || offset == 0 ||
	    !seam_segments_addr(&module->segments, offset, &addr))
		return false;
	/* Nearly all return addresses are in the middle of a function. */
	before = addr ? seam_symtab_find(&module->table, addr - 1) : NULL;
	return (!before || seam_symtab_end(&module->table, before) <= addr) &&
	       is_trampoline(symbols, module, addr);
}

/* Bytes of memory, or of the file. */
static int read_code(const struct seam_elf *file, uint64_t offset,
		     uint8_t *buf, size_t size, struct seam_err *err)
{
	ssize_t n;

	if (offset > file->size || size > file->size - offset)
		return seam_err_set(err, -ENODATA, "the file ends before the "
				    "function does");
	if (file->fd < 0 && file->image) {
		memcpy(buf, (const uint8_t *)file->image + offset, size);
		return 0;
	}
	n = pread(file->fd, buf, size, (off_t)offset);
	if (n == (ssize_t)size)
		return 0;
	return seam_err_set(err, n < 0 ? -errno : -ENODATA, "cannot read: %s",
			    n < 0 ? strerror(errno) : "the file is cut");
}

int seam_symbols_code(struct seam_symbols *symbols, uint32_t id,
		      uint64_t offset, uint8_t *buf, size_t size,
		      struct seam_machine *machine, struct seam_err *err)
{
	struct seam_elf file;
	int r;

	if (id >= symbols->modules.n)
		return seam_err_set(err, -EINVAL, "there is no such module");
	if (symbols->modules.items[id]->is_kernel)
		return seam_kernel_code(&symbols->options,
					symbols->remote,
					&symbols->modules.items[id]->kernel,
					offset, buf, size, machine, err);
	if (symbols->remote) {
		struct module *module = symbols->modules.items[id];

		module->remote.file = &module->file;
		return seam_remote_code(symbols->remote, &module->remote,
					offset, buf, size, machine, err);
	}
	r = seam_find_module(&file, &symbols->options,
			     &symbols->modules.items[id]->file, err);
	if (r < 0)
		return r;
	*machine = (struct seam_machine) {
		.elf_machine = (uint32_t)file.machine,
		.is_64 = gelf_getclass(file.elf) == ELFCLASS64,
		.is_big_endian = elf_getident(file.elf, NULL)[EI_DATA] ==
				 ELFDATA2MSB,
	};
	r = read_code(&file, offset, buf, size, err);
	seam_elf_close(&file);
	return r;
}

int seam_symbols_disassemble(struct seam_symbols *symbols,
			     const struct seam_code_block *code,
			     seam_instruction_add *add, void *context,
			     struct seam_err *err)
{
	int r;

	if (!symbols->remote)
		return seam_disassembly_walk(code, add, context, err);
	/*
	 * The library is loaded before the fork: a sandboxed process can open
	 * nothing.  The one that reads files has been running without it.
	 */
	r = seam_disassembly_load(err);
	if (r)
		return r;
	if (!symbols->decoder)
		symbols->decoder = seam_remote_new(&symbols->options);
	if (!symbols->decoder)
		return seam_err_set(err, -ENOMEM, "out of memory");
	return seam_remote_disassemble(symbols->decoder, code, add, context,
				       err);
}

int seam_symbols_missing(const struct seam_symbols *symbols, uint32_t id)
{
	return id < symbols->modules.n ? symbols->modules.items[id]->missing :
	       0;
}

const char *seam_symbols_problem(const struct seam_symbols *symbols,
				 uint32_t id)
{
	const struct module *module;

	if (id >= symbols->modules.n)
		return NULL;
	module = symbols->modules.items[id];
	if (module->problem[0])
		return module->problem;
	return module->dwarf ? seam_dwarf_problem(module->dwarf) : NULL;
}

void seam_symbols_expect(struct seam_symbols *symbols, uint32_t id,
			 uint64_t addr)
{
	if (symbols->remote && id < symbols->modules.n)
		seam_remote_expect(&symbols->modules.items[id]->remote, addr);
}

bool seam_symbols_expects(const struct seam_symbols *symbols)
{
	return symbols->remote;
}

bool seam_symbols_read(struct seam_symbols *symbols, uint32_t id)
{
	struct module *module = symbols->modules.items[id];

	if (!module->opened)
		open_module(symbols, module);
	return module->segments.n > 0;
}

const char *seam_symbols_lost(const struct seam_symbols *symbols, uint32_t id)
{
	return id < symbols->modules.n &&
	       symbols->modules.items[id]->remote.lost[0] ?
	       symbols->modules.items[id]->remote.lost : NULL;
}

const char *seam_symbols_unprotected(const struct seam_symbols *symbols)
{
	return symbols->remote ? seam_remote_missing(symbols->remote) : NULL;
}

size_t seam_symbols_n_modules(const struct seam_symbols *symbols)
{
	return symbols->modules.n;
}

const char *seam_symbols_path(const struct seam_symbols *symbols, uint32_t id)
{
	return id < symbols->modules.n &&
	       !symbols->modules.items[id]->is_kernel ?
	       symbols->modules.items[id]->file.path : NULL;
}
