/* SPDX-License-Identifier: MIT */
/*
 * dwarf.c - from an address to its unit, calls and line; see dwarf.h
 *
 * The unit of an address is in .debug_aranges, which gcc writes and clang
 * does not.  Where that has no answer, the ranges of all units are read,
 * once.
 */
#include "symbol/dwarf/dwarf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>

#include "base/demangle.h"
#include "base/hash.h"
#include "base/index.h"
#include "symbol/dwarf/dies.h"
#include "symbol/elf/find_elf.h"

/* Calls inlined into each other at one address; compilers reach some 30. */
enum { MAX_CHAIN = 512 };

/* DIEs of one function: in each unit that inlines it, and its declaration. */
enum { MAX_ORIGINS = 8 };

/* A compilation unit that was read. */
struct unit {
	Dwarf_Die die;
	Dwarf_Files *files;	/* NULL: none */
	struct seam_inlines inlines;
};

/* A unit that has names of functions: of another file, or a part of several. */
struct named_unit {
	const void *addr;	/* of its DIE */
	struct seam_scopes scopes;
};

struct seam_dwarf {
	struct seam_elf file, alt_file;
	Dwarf *dwarf, *alt;
	struct seam_arena *arena;
	bool no_inline;
	Dwarf_Aranges *aranges;		/* NULL: none */
	bool has_ranges;		/* ranges and offsets are filled */
	struct seam_intervals ranges;	/* ids are indices of offsets */
	SEAM_ARRAY(Dwarf_Off) offsets;	/* of the DIEs of units */
	SEAM_ARRAY(struct unit) units;
	struct seam_index unit_index;	/* by offset of its DIE */
	SEAM_ARRAY(struct named_unit) named;
	struct seam_index named_index;	/* by address of its DIE */
	uint64_t budget;			/* see dies.h */
	const char *problem;		/* literal, or NULL */
};

bool seam_dwarf_is_in(const struct seam_elf *file)
{
	GElf_Shdr header;

	return seam_elf_section(file, ".debug_info", &header) ||
	       seam_elf_section(file, ".zdebug_info", &header);
}

/*
 * libdw reads strings of .debug_line_str (0.188: up to whatever NUL follows)
 * without checking the end of the section, so it has to end in one.  Called
 * after libdw has unpacked the sections.
 */
static bool strings_are_terminated(const struct seam_elf *file)
{
	static const char *const names[] = {
		".debug_line_str", ".debug_str", ".zdebug_line_str",
		".zdebug_str",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++) {
		GElf_Shdr header;
		Elf_Scn *section = seam_elf_section(file, names[i], &header);
		Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;

		if (data && data->d_size > 0 &&
		    ((const char *)data->d_buf)[data->d_size - 1] != '\0')
			return false;
	}
	return true;
}

/*
 * libdw would search the alternate file by itself, and open any file that the
 * section names.  It does not if one is set before.  Without one, units that
 * need it are not read.
 */
static bool set_alt(struct seam_dwarf *d,
		    const struct seam_symbols_options *options)
{
	const char *name;
	const void *id;
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(d->dwarf, &name, &id);

	if (size <= 0)
		return size == 0;
	if (seam_find_debugaltlink(&d->alt_file, options, &d->file, name, id,
				   (size_t)size))
		return false;
	d->alt = seam_elf_unpacks_well(&d->alt_file, NULL) ?
		 dwarf_begin_elf(d->alt_file.elf, DWARF_C_READ, NULL) : NULL;
	seam_elf_release_fd(&d->alt_file);
	if (!d->alt || !strings_are_terminated(&d->alt_file))
		return false;
	dwarf_setalt(d->dwarf, d->alt);
	return true;
}

int seam_dwarf_open(struct seam_dwarf **dwarf, struct seam_elf *file,
		    const struct seam_symbols_options *options,
		    struct seam_arena *arena, struct seam_err *err)
{
	struct seam_dwarf *d = calloc(1, sizeof(*d));
	size_t n;

	*dwarf = NULL;
	if (!d) {
		seam_elf_close(file);
		return seam_err_no_memory(err);
	}
	d->file = *file;
	d->alt_file.fd = -1;
	*file = (struct seam_elf) { .fd = -1 };
	d->arena = arena;
	d->no_inline = options->no_inline;
	/*
	 * An undamaged file has fewer attributes, ranges and lines than bytes,
	 * and those compressed to a tenth at most.
	 */
	d->budget = 64 * d->file.size + 4096;
	if (!seam_elf_unpacks_well(&d->file, err)) {
		seam_dwarf_close(d);
		return -EFBIG;
	}
	d->dwarf = dwarf_begin_elf(d->file.elf, DWARF_C_READ, NULL);
	if (!d->dwarf) {
		seam_dwarf_close(d);
		return seam_err_set(err, -EBADMSG, "cannot read DWARF: %s",
				    dwarf_errmsg(-1));
	}
	if (!strings_are_terminated(&d->file)) {
		seam_dwarf_close(d);
		return seam_err_set(err, -EBADMSG, "cannot read DWARF: "
			"the last of its strings has no end");
	}
	if (!set_alt(d, options)) {
		seam_dwarf_close(d);
		return seam_err_set(err, -ENOENT, "cannot read DWARF: the "
			"file that .gnu_debugaltlink names is not there");
	}
	seam_elf_release_fd(&d->file);
	if (dwarf_getaranges(d->dwarf, &d->aranges, &n) || n == 0)
		d->aranges = NULL;
	*dwarf = d;
	return 0;
}

void seam_dwarf_close(struct seam_dwarf *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->units.n; i++)
		seam_inlines_fini(&d->units.items[i].inlines);
	free(d->units.items);
	for (size_t i = 0; i < d->named.n; i++)
		seam_scopes_fini(&d->named.items[i].scopes);
	free(d->named.items);
	seam_index_fini(&d->named_index);
	free(d->offsets.items);
	seam_index_fini(&d->unit_index);
	seam_intervals_fini(&d->ranges);
	dwarf_end(d->dwarf);
	dwarf_end(d->alt);
	seam_elf_close(&d->file);
	seam_elf_close(&d->alt_file);
	free(d);
}

const char *seam_dwarf_problem(const struct seam_dwarf *d)
{
	return d->problem;
}

static bool spend(struct seam_dwarf *d, uint64_t amount)
{
	if (seam_die_spend(&d->budget, amount))
		return true;
	d->problem = "DWARF repeats itself without end";
	return false;
}

/* The ranges of one unit into the index of all. */
static bool add_unit_ranges(struct seam_dwarf *d, Dwarf_Die *die)
{
	uint32_t id = (uint32_t)d->offsets.n;
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	if (id == SEAM_NONE ||
	    !SEAM_ARRAY_ADD(&d->offsets, dwarf_dieoffset(die)) ||
	    !spend(d, seam_die_cost(die)))
		return false;
	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0)
		if (!spend(d, 1) ||
		    seam_intervals_add(&d->ranges, start, end, id))
			return false;
	return true;
}

static void index_units(struct seam_dwarf *d)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;

	d->has_ranges = true;
	while (dwarf_get_units(d->dwarf, cu, &cu, NULL, &type, &die, NULL) ==
	       0)
		if ((type == DW_UT_compile || type == DW_UT_skeleton ||
		     type == DW_UT_partial) && !add_unit_ranges(d, &die))
			break;
	seam_intervals_cut(&d->ranges);
}

/* The DIE of the unit that has code at @addr. */
static bool find_unit(struct seam_dwarf *d, uint64_t addr, Dwarf_Die *unit)
{
	Dwarf_Arange *arange = d->aranges ?
			       dwarf_getarange_addr(d->aranges, addr) : NULL;
	Dwarf_Off offset;
	uint32_t id;
	Dwarf_Die die;

	if (arange && dwarf_getarangeinfo(arange, NULL, NULL, &offset) == 0 &&
	    dwarf_offdie(d->dwarf, offset, &die) &&
	    dwarf_diecu(&die, unit, NULL, NULL))
		return true;
	if (!d->has_ranges)
		index_units(d);
	id = seam_intervals_find(&d->ranges, addr);
	return id != SEAM_NONE &&
	       dwarf_offdie(d->dwarf, d->offsets.items[id], unit);
}

/* Read a unit, once. */
static void read_unit(struct seam_dwarf *d, struct unit *unit)
{
	Dwarf_Lines *lines;
	size_t n;

	if (dwarf_hasattr(&unit->die, DW_AT_dwo_name) ||
	    dwarf_hasattr(&unit->die, DW_AT_GNU_dwo_name))
		d->problem = "split DWARF (.dwo files) is not read: "
			     "inlined calls are missing";
	if (dwarf_getsrcfiles(&unit->die, &unit->files, &n))
		unit->files = NULL;
	if (dwarf_getsrclines(&unit->die, &lines, &n) == 0)
		spend(d, n);
	if (seam_inlines_read(&unit->inlines, &unit->die, &d->budget) == -E2BIG)
		spend(d, 1);
}

static struct unit *get_unit(struct seam_dwarf *d, uint64_t addr)
{
	Dwarf_Die die;
	uint64_t hash;
	uint32_t id;

	if (!find_unit(d, addr, &die))
		return NULL;
	hash = seam_hash_u64(dwarf_dieoffset(&die));
	id = SEAM_INDEX_FIND(&d->unit_index, hash, i,
		dwarf_dieoffset(&d->units.items[i].die) ==
		dwarf_dieoffset(&die));
	if (id != SEAM_NONE)
		return &d->units.items[id];
	if (d->budget)
		id = SEAM_INDEX_APPEND(&d->unit_index, hash, &d->units,
				       (struct unit) { .die = die });
	if (id == SEAM_NONE)
		return NULL;
	read_unit(d, &d->units.items[id]);
	return &d->units.items[id];
}

/* The scopes of @unit, the DIE of a unit; NULL without memory. */
static const struct seam_scopes *get_scopes(struct seam_dwarf *d,
					    Dwarf_Die *unit)
{
	uint64_t hash = seam_hash_u64((uintptr_t)unit->addr);
	uint32_t id = SEAM_INDEX_FIND(&d->named_index, hash, i,
				      d->named.items[i].addr == unit->addr);

	if (id == SEAM_NONE) {
		id = SEAM_INDEX_APPEND(&d->named_index, hash, &d->named,
			(struct named_unit) { .addr = unit->addr });
		if (id != SEAM_NONE &&
		    seam_scopes_read(&d->named.items[id].scopes, unit,
				     &d->budget) == -E2BIG)
			spend(d, 1);
	}
	return id == SEAM_NONE ? NULL : &d->named.items[id].scopes;
}

/* C has no scopes around functions, and many units. */
static bool is_c(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Mips_Assembler:
		return true;
	default:
		return false;
	}
}

/* The DIE that @die is an instance or the definition of. */
static bool get_origin(Dwarf_Die *die, Dwarf_Die *origin)
{
	Dwarf_Attribute attribute;

	return dwarf_formref_die(dwarf_attr(die, DW_AT_abstract_origin,
					    &attribute), origin) ||
	       dwarf_formref_die(dwarf_attr(die, DW_AT_specification,
					    &attribute), origin);
}

/* @name, the last part of that of @die, with the parts before it. */
static const char *qualify(struct seam_dwarf *d, Dwarf_Die die,
			   const char *name)
{
	const struct seam_scopes *scopes;
	Dwarf_Die origin, unit;

	for (int i = 0; i < MAX_ORIGINS && get_origin(&die, &origin); i++)
		die = origin;
	if (!dwarf_diecu(&die, &unit, NULL, NULL) || is_c(&unit))
		return name;
	scopes = get_scopes(d, &unit);
	return scopes ? seam_scopes_qualify(scopes, dwarf_dieoffset(&die),
					    name, d->arena) : name;
}

/* libdw bounds the chain of origins and specifications that it follows. */
static const char *name_of(struct seam_dwarf *d, struct seam_inline *call)
{
	static const unsigned int names[] = {
		DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name,
	};

	for (size_t i = 0; !call->name && i < SEAM_ARRAY_SIZE(names); i++) {
		Dwarf_Attribute attribute;
		const char *text = dwarf_formstring(dwarf_attr_integrate(
			&call->die, names[i], &attribute));

		if (text && *text)
			call->name = seam_demangle(d->arena, text);
		if (call->name && names[i] == DW_AT_name)
			call->name = qualify(d, call->die, call->name);
	}
	return call->name;
}

static uint32_t number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) ||
	    value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

/* Where the inlined call @die was written. */
static void locate_call(const struct unit *unit, Dwarf_Die *die,
			struct seam_location *at)
{
	uint32_t file = number(die, DW_AT_call_file);

	at->line = number(die, DW_AT_call_line);
	at->file = unit->files ? dwarf_filesrc(unit->files, file, NULL, NULL) :
		   NULL;
}

/* File and line of @addr by the line table. */
static void locate_addr(struct unit *unit, uint64_t addr,
			struct seam_location *at)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, addr);
	int number = 0;

	if (!line)
		return;
	at->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		at->line = (uint32_t)number;
}

size_t seam_dwarf_resolve(struct seam_dwarf *d, uint64_t addr,
			  struct seam_location *out, size_t cap)
{
	struct unit *unit = cap > 0 ? get_unit(d, addr) : NULL;
	struct seam_location at = { 0 };
	size_t n = 0;
	uint32_t id;

	if (!unit)
		return 0;
	locate_addr(unit, addr, &at);
	id = seam_intervals_find(&unit->inlines.intervals, addr);
	for (int i = 0; id != SEAM_NONE && i < MAX_CHAIN; i++) {
		struct seam_inline *call = &unit->inlines.calls.items[id];

		at.function = name_of(d, call);
		at.is_inlined = call->parent != SEAM_NONE;
		/* Without room, outer ones replace what was last. */
		if (n == cap || (d->no_inline && n > 0))
			n--;
		/* An inlined call without a name has no information. */
		if (at.function || (!at.is_inlined && (at.file || n > 0)))
			out[n++] = at;
		if (at.is_inlined)
			locate_call(unit, &call->die, &at);
		id = call->parent;
	}
	if (n == 0 && at.file)
		out[n++] = at;
	/* A chain longer than any compiler's ends as if it were whole. */
	if (n > 0)
		out[n - 1].is_inlined = false;
	return n;
}
