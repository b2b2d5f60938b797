/* SPDX-License-Identifier: MIT */
/* elf_module.c - read a file once, look addresses up; see elf_module.h */
#include "symbol/module/elf_module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "symbol/elf/elf_symbols.h"
#include "symbol/elf/find_elf.h"

/* More than most functions in assembler have. */
enum { UNSIZED_BYTES = 4096 };

/* -- reading ------------------------------------------------------------ */

static void read_tables(struct seam_elf_module *module, struct seam_elf *file,
			struct seam_elf *debug)
{
	struct seam_elf *dwarf = seam_dwarf_is_in(file) ? file : debug;
	struct seam_err err = { 0 };

	module->has_symtab = debug || seam_elf_has_symtab(file);
	if (seam_elf_all_symbols(&module->table, &module->arena, file, debug))
		seam_err_no_memory(&err);
	module->segments = file->segments;
	file->segments = (struct seam_segments) { 0 };
	if (!err.code && module->table.symbols.n == 0)
		seam_err_set(&err, -ENODATA, "the file has no symbols");
	if (!module->options->no_lines && dwarf && seam_dwarf_is_in(dwarf))
		seam_dwarf_open(&module->dwarf, dwarf, module->options,
				&module->arena, module->problem, &err);
	seam_err_text(&err, module->problem);
}

static bool has_code(const struct seam_elf *file)
{
	for (size_t i = 0; i < file->segments.n; i++)
		if (file->segments.items[i].is_executable)
			return true;
	return false;
}

/* @file has code; its debug file is searched where something is missing. */
static void read_with_debuginfo(struct seam_elf_module *module,
				struct seam_elf *file)
{
	bool is_whole = seam_elf_has_symtab(file) &&
			(module->options->no_lines || seam_dwarf_is_in(file));
	struct seam_err why = { 0 };
	struct seam_elf debug;

	if (!is_whole && !seam_find_debuginfo(&debug, module->options,
					      module->file, file, &why)) {
		read_tables(module, file, &debug);
		seam_elf_close(&debug);
		return;
	}
	read_tables(module, file, NULL);
	if (why.n_causes > 0 && !module->problem[0])
		seam_err_text(&why, module->problem);
}

bool seam_elf_module_read(struct seam_elf_module *module)
{
	struct seam_err why = { 0 };
	struct seam_elf file;

	module->missing = seam_find_elf(&file, module->options, module->file,
					&why);
	if (module->missing) {
		seam_err_text(&why, module->problem);
		return false;
	}
	if (has_code(&file)) {
		read_with_debuginfo(module, &file);
	} else {
		why = (struct seam_err) { 0 };
		seam_err_set(&why, -ENODATA, "the file holds no code; "
			     "debug information alone does not say where "
			     "code was mapped");
		seam_err_text(&why, module->problem);
	}
	seam_elf_close(&file);
	return module->segments.n > 0;
}

void seam_elf_module_fini(struct seam_elf_module *module)
{
	seam_dwarf_close(module->dwarf);
	seam_symtab_fini(&module->table);
	seam_function_ranges_fini(&module->ranges);
	free(module->segments.items);
	seam_arena_fini(&module->arena);
}

/* -- looking up --------------------------------------------------------- */

/*
 * Functions by .eh_frame or .gopclntab.  Their file is opened again for the
 * first address without a symbol: most files have none.
 */
static const struct seam_function_ranges *
ranges_of(struct seam_elf_module *module)
{
	struct seam_elf file;

	/* Without memory there are fewer ranges, or names. */
	if (!module->has_ranges &&
	    !seam_find_elf(&file, module->options, module->file, NULL)) {
		if (!seam_function_ranges_read(&module->ranges, &file))
			(void)seam_name_tables_read(&module->ranges, &file);
		seam_elf_close(&file);
	}
	module->has_ranges = true;
	return &module->ranges;
}

static const struct seam_function_range *
range_at(struct seam_elf_module *module, uint64_t addr)
{
	return seam_function_ranges_find(ranges_of(module), addr);
}

/* Where the next range begins or ends after @addr; UINT64_MAX: nowhere. */
static uint64_t next_range(const struct seam_function_ranges *ranges,
			   uint64_t addr)
{
	const struct seam_interval_piece *pieces =
		ranges->intervals.pieces.items;
	size_t n = ranges->intervals.pieces.n;
	size_t at = SEAM_ARRAY_SEARCH(i, n, pieces[i].start <= addr);

	return at < n ? pieces[at].start : UINT64_MAX;
}

/*
 * Where the function of @symbol ends.  One without a size reaches up to the
 * next symbol, but functions between may have been stripped: it ends where a
 * range begins or ends.  Code in assembler may have no ranges either: in a file
 * without the full table it ends after UNSIZED_BYTES.
 */
static uint64_t end_of(struct seam_elf_module *module,
		       const struct seam_symbol *symbol)
{
	uint64_t end = seam_symtab_end(&module->table, symbol), range_end;
	const struct seam_function_ranges *ranges;

	if (symbol->end > symbol->start)
		return end;
	ranges = ranges_of(module);
	range_end = next_range(ranges, symbol->start);
	if (!module->has_symtab && range_end - symbol->start > UNSIZED_BYTES &&
	    !seam_function_ranges_find(ranges, symbol->start))
		range_end = symbol->start + UNSIZED_BYTES;
	return range_end < end ? range_end : end;
}

static const struct seam_symbol *symbol_at(struct seam_elf_module *module,
					   uint64_t addr)
{
	const struct seam_symbol *symbol = seam_symtab_find(&module->table,
							    addr);

	return symbol && addr < end_of(module, symbol) ? symbol : NULL;
}

/* The name of the function at @addr; NULL: not known. */
static const char *name_at(struct seam_elf_module *module, uint64_t addr)
{
	const struct seam_function_range *range;

	if (symbol_at(module, addr))
		return seam_symtab_name(&module->table, addr, &module->arena);
	range = range_at(module, addr);
	return range ? seam_function_ranges_name(&module->ranges, range) :
	       NULL;
}

/*
 * DWARF has the inlined calls, but the linker has the function's real name;
 * unless the symbol has no size, and reaches here only because none follows.
 */
size_t seam_elf_module_resolve(struct seam_elf_module *module, uint64_t offset,
			       struct seam_location *out, size_t cap)
{
	const struct seam_symbol *symbol;
	const char *name;
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
	name = name_at(module, addr);
	if (name && n == 0)
		out[n++] = (struct seam_location) { 0 };
	if (name)
		out[n - 1].function = name;
	return n;
}

const char *seam_elf_module_name(struct seam_elf_module *module, uint64_t addr,
				 struct seam_arena *arena)
{
	const struct seam_symbol *symbol;

	symbol = seam_symtab_find(&module->table, addr);
	/* many symbols may share one name of any length */
	return symbol && symbol->start == addr &&
	       strnlen(symbol->name, SEAM_DEMANGLE_MAX) < SEAM_DEMANGLE_MAX ?
	       seam_demangle_with_parameters(arena, symbol->name) : NULL;
}

/* The function at @addr: the extent of its symbol, or its range. */
static bool function_at(struct seam_elf_module *module, uint64_t addr,
			uint64_t *start, uint64_t *end)
{
	const struct seam_symbol *symbol = symbol_at(module, addr);
	const struct seam_function_range *range;

	if (symbol) {
		*start = symbol->start;
		*end = end_of(module, symbol);
		return true;
	}
	range = range_at(module, addr);
	if (!range)
		return false;
	*start = range->start;
	*end = range->end;
	return true;
}

bool seam_elf_module_extent(struct seam_elf_module *module, uint64_t offset,
			    struct seam_extent *out)
{
	uint64_t addr, start, end;

	if (!seam_segments_addr(&module->segments, offset, &addr))
		return false;
	*out = (struct seam_extent) { .offset = offset, .addr = addr };
	if (!function_at(module, addr, &start, &end) || addr - start > offset)
		return true;
	out->addr = start;
	out->offset = offset - (addr - start);
	out->size = end - start;
	return true;
}

/* -- signal trampolines -------------------------------------------------- */

/*
 * A signal handler's return address is that of a few instructions which call
 * sigreturn(2).  There is no call before them, so this one return address of a
 * callchain is looked up without subtracting a byte.  So is that of glibc's
 * coroutines, which makecontext() sets.
 *
 * Source: glibc sysdeps/unix/sysv/linux, musl src/signal, Linux arch/.../vdso,
 * Go src/runtime/sys_linux_amd64.s; Go's linker appends the ABI.
 */
static const char *const trampolines[] = {
	"__restore_rt", "__restore", "__kernel_rt_sigreturn",
	"__kernel_sigreturn", "__vdso_rt_sigreturn", "__kernel_sigtramp_rt64",
	"__kernel_sigtramp_rt32", "__default_rt_sa_restorer",
	"__default_sa_restorer", "runtime.sigreturn",
	"runtime.sigreturn__sigaction", "__start_context",
};

static bool is_trampoline_name(const char *name)
{
	static const char abi[] = ".abi0";
	size_t size = strlen(name), abi_size = sizeof(abi) - 1;

	if (size > abi_size && strcmp(name + size - abi_size, abi) == 0)
		size -= abi_size;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(trampolines); i++)
		if (strlen(trampolines[i]) == size &&
		    memcmp(name, trampolines[i], size) == 0)
			return true;
	return false;
}

/*
 * Whether a signal trampoline begins at @addr.  Its entry in .eh_frame begins
 * a byte earlier, because unwinders look up one byte before a return address.
 */
static bool begins_trampoline(struct seam_elf_module *module, uint64_t addr)
{
	const struct seam_symbol *symbol = seam_symtab_find(&module->table,
							    addr);
	const struct seam_function_range *range;
	const char *name;

	if (symbol && symbol->start == addr)
		return is_trampoline_name(symbol->name);
	range = range_at(module, addr);
	if (!range || (range->start != addr && range->start + 1 != addr))
		return false;
	name = seam_function_ranges_name(&module->ranges, range);
	return range->is_signal_frame ||
	       (name && is_trampoline_name(name));
}

bool seam_elf_module_is_trampoline(struct seam_elf_module *module,
				   uint64_t offset)
{
	const struct seam_symbol *before;
	uint64_t addr;

	if (offset == 0 ||
	    !seam_segments_addr(&module->segments, offset, &addr))
		return false;
	/* Nearly all return addresses are in the middle of a function. */
	before = addr ? seam_symtab_find(&module->table, addr - 1) : NULL;
	return (!before || seam_symtab_end(&module->table, before) <= addr) &&
	       begins_trampoline(module, addr);
}

/* What is open of @file, without libelf's part of it. */
static void take_file(struct seam_elf *file, struct seam_module_file *out)
{
	*out = (struct seam_module_file) {
		.fd = file->fd, .image = file->image,
		.size = (size_t)file->size,
		.machine = seam_elf_machine(file),
	};
	file->fd = -1;
	elf_end(file->elf);
	file->elf = NULL;
	file->image = NULL;
	seam_elf_close(file);
}

int seam_elf_module_open(const struct seam_elf_module *module, bool is_debug,
			 struct seam_module_file *out, struct seam_err *err)
{
	struct seam_elf file, debug;
	int r = seam_find_elf(&file, module->options, module->file, err);

	if (r < 0)
		return r;
	if (!is_debug) {
		take_file(&file, out);
		return 0;
	}
	r = seam_find_debuginfo(&debug, module->options, module->file, &file,
				err);
	seam_elf_close(&file);
	if (r == 0)
		take_file(&debug, out);
	return r;
}
