/* SPDX-License-Identifier: MIT */
/*
 * dwarf.c - from an address to its unit, calls and line; see dwarf.h
 *
 * The unit of an address is in .debug_aranges, which gcc writes and clang
 * does not.  Where that has no answer, the ranges of all units are read,
 * once.
 *
 * Two tables of a unit are made by one walk over its DIEs each.  An inlined
 * call has the index of the call or function that encloses it: the frames of
 * an address are the path to the top.  Scopes are the namespaces, types and
 * functions around the DIEs of functions: gcc gives functions without external
 * linkage (static ones, those of unnamed namespaces, lambdas) no linkage name,
 * only the last part of their name.
 *
 * Each attribute of a DIE and each range costs one of a budget, and a walk
 * without budget ends: damaged DWARF can name the same bytes over and over.
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
#include "base/intervals.h"
#include "symbol/elf/find_elf.h"

enum {
	/* Calls inlined into each other at one address; compilers reach 30. */
	MAX_CHAIN = 512,
	/* DIEs of one function: in each unit that inlines it, declarations. */
	MAX_ORIGINS = 8,
	/* Deeper DIEs are left out; compilers nest a few dozen. */
	MAX_DEPTH = 128,
	/* Abbreviations whose cost is cached; a unit uses a few hundred. */
	MAX_KNOWN = 256,
	MAX_SCOPES = 16,	/* around a function; outer ones are left out */
	MAX_NAME = 1024,
};

/* A function, or a call of a function that was inlined. */
struct inlined {
	Dwarf_Die die;
	uint32_t parent;	/* the enclosing one; SEAM_NONE: a function */
	const char *name;	/* NULL until it is used */
};

/* A compilation unit that was read. */
struct unit {
	Dwarf_Die die;
	Dwarf_Files *files;	/* NULL: none */
	SEAM_ARRAY(struct inlined) calls;
	struct seam_intervals intervals;	/* ids are indices of calls */
};

/* A unit that has names of functions: of another file, or a part of several. */
struct named_unit {
	const void *addr;	/* of its DIE */
	SEAM_ARRAY(struct scope {
		const char *name;	/* borrowed from libdw */
		uint32_t parent;	/* SEAM_NONE: none */
	}) scopes;
	SEAM_ARRAY(struct scoped {
		Dwarf_Off die;		/* of a function; ascending */
		uint32_t scope;
	}) functions;
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
	uint64_t budget;
	char *problem;			/* the caller's */
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
		struct seam_bytes strings = seam_elf_bytes(file, names[i],
							   &header);

		if (strings.size && strings.data[strings.size - 1])
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
		    struct seam_arena *arena, char problem[SEAM_ERR_TEXT],
		    struct seam_err *err)
{
	struct seam_dwarf *d = calloc(1, sizeof(*d));
	int r = 0;

	*dwarf = NULL;
	if (!d) {
		seam_elf_close(file);
		return seam_err_no_memory(err);
	}
	d->file = *file;
	d->alt_file.fd = -1;
	*file = (struct seam_elf) { .fd = -1 };
	d->arena = arena;
	d->problem = problem;
	d->no_inline = options->no_inline;
	/*
	 * An undamaged file has fewer attributes, ranges and lines than bytes,
	 * and those compressed to a tenth at most.
	 */
	d->budget = 64 * d->file.size + 4096;
	if (!seam_elf_unpacks_well(&d->file, err))
		r = -EFBIG;
	else if (!(d->dwarf = dwarf_begin_elf(d->file.elf, DWARF_C_READ,
					      NULL)))
		r = seam_err_set(err, -EBADMSG, "cannot read DWARF: %s",
				 dwarf_errmsg(-1));
	else if (!strings_are_terminated(&d->file))
		r = seam_err_set(err, -EBADMSG, "cannot read DWARF: "
				 "the last of its strings has no end");
	else if (!set_alt(d, options))
		r = seam_err_set(err, -ENOENT, "cannot read DWARF: the file "
				 "that .gnu_debugaltlink names is not there");
	if (r) {
		seam_dwarf_close(d);
		return r;
	}
	seam_elf_release_fd(&d->file);
	if (dwarf_getaranges(d->dwarf, &d->aranges, NULL))
		d->aranges = NULL;
	*dwarf = d;
	return 0;
}

void seam_dwarf_close(struct seam_dwarf *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->units.n; i++) {
		free(d->units.items[i].calls.items);
		seam_intervals_fini(&d->units.items[i].intervals);
	}
	free(d->units.items);
	for (size_t i = 0; i < d->named.n; i++) {
		free(d->named.items[i].scopes.items);
		free(d->named.items[i].functions.items);
	}
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

/* The first one stays. */
static void set_problem(struct seam_dwarf *d, const char *text)
{
	if (!d->problem[0])
		snprintf(d->problem, SEAM_ERR_TEXT, "%s", text);
}

/* -- the budget and the walk -------------------------------------------- */

/* Take @amount from the budget; false, and none is left, if it has less. */
static bool spend(struct seam_dwarf *d, uint64_t amount)
{
	if (d->budget >= amount) {
		d->budget -= amount;
		return true;
	}
	d->budget = 0;
	set_problem(d, "DWARF repeats itself without end");
	return false;
}

/* The cost of reading @die: its attributes, which may take no bytes. */
static uint64_t cost_of(Dwarf_Die *die)
{
	size_t n = 0;

	/* Reading the tag makes libdw find the abbreviation. */
	if (dwarf_tag(die) == DW_TAG_invalid ||
	    dwarf_getattrcnt(die->abbrev, &n))
		return 1;
	return n + 1;
}

/* Add the ranges of @die.  False when there is no budget, or no memory. */
static bool add_ranges(struct seam_dwarf *d, struct seam_intervals *to,
		       Dwarf_Die *die, uint32_t id)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0)
		if (!spend(d, 1) || seam_intervals_add(to, start, end, id))
			return false;
	return true;
}

struct level {
	Dwarf_Die die;		/* the next of its siblings */
	uint32_t enclosing;
};

struct die_walk {
	struct level levels[MAX_DEPTH];
	size_t depth;
	struct {
		const Dwarf_Abbrev *abbrev;
		uint64_t cost;
	} known[MAX_KNOWN];	/* by the address of the abbreviation */
};

/* cost_of(), cached: counting takes as long as reading. */
static uint64_t known_cost_of(struct die_walk *walk, Dwarf_Die *die)
{
	size_t i;

	if (dwarf_tag(die) == DW_TAG_invalid)
		return 1;
	i = ((uintptr_t)die->abbrev / 32) % MAX_KNOWN;
	if (walk->known[i].abbrev != die->abbrev) {
		walk->known[i].abbrev = die->abbrev;
		walk->known[i].cost = cost_of(die);
	}
	return walk->known[i].cost;
}

/* The children of @die are next. */
static void enter(struct die_walk *walk, Dwarf_Die *die, uint32_t enclosing)
{
	struct level *level = &walk->levels[walk->depth];

	if (walk->depth < MAX_DEPTH && dwarf_child(die, &level->die) == 0) {
		level->enclosing = enclosing;
		walk->depth++;
	}
}

enum visited { STEP_OVER, ENTER, END };

/*
 * Called with an id of what encloses @die, *@enclosing, as the visitor of the
 * enclosing DIEs set it; SEAM_NONE at the top.  Set it for the children of
 * @die.
 */
typedef enum visited visit_die(struct seam_dwarf *d, void *context,
			       Dwarf_Die *die, uint32_t *enclosing);

/*
 * The DIEs below @unit, without recursion.  Each step is to a DIE further on
 * (libdw refuses a sibling at a lower offset), and costs budget.
 */
static void walk_dies(struct seam_dwarf *d, Dwarf_Die *unit, visit_die *visit,
		      void *context)
{
	struct die_walk walk = { .depth = 0 };

	enter(&walk, unit, SEAM_NONE);
	while (walk.depth > 0) {
		struct level *level = &walk.levels[walk.depth - 1];
		uint32_t enclosing = level->enclosing;
		Dwarf_Die die = level->die, next;
		enum visited next_is;

		if (!spend(d, known_cost_of(&walk, &die)))
			return;
		next_is = visit(d, context, &die, &enclosing);
		if (next_is == END)
			return;
		if (dwarf_siblingof(&die, &next) == 0)
			level->die = next;
		else
			walk.depth--;
		if (next_is == ENTER)
			enter(&walk, &die, enclosing);
	}
}

/* -- units --------------------------------------------------------------- */

/*
 * Add the function or call @die.  *@call is the enclosing call, and then that
 * of its children.
 */
static enum visited take_call(struct seam_dwarf *d, struct unit *unit,
			      Dwarf_Die *die, bool is_inlined, uint32_t *call)
{
	uint32_t id = (uint32_t)unit->calls.n;

	/* Declarations, and the abstract originals of inlined functions. */
	if (!dwarf_hasattr(die, DW_AT_low_pc) &&
	    !dwarf_hasattr(die, DW_AT_ranges))
		return STEP_OVER;
	if (id == SEAM_NONE || !SEAM_ARRAY_ADD(&unit->calls, (struct inlined) {
		.die = *die, .parent = is_inlined ? *call : SEAM_NONE }))
		return END;
	*call = id;
	return add_ranges(d, &unit->intervals, die, id) ? ENTER : END;
}

/* Only DIEs that can hold code are entered. */
static enum visited visit_call(struct seam_dwarf *d, void *unit, Dwarf_Die *die,
			       uint32_t *call)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		return take_call(d, unit, die, false, call);
	case DW_TAG_inlined_subroutine:
		return take_call(d, unit, die, true, call);
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return ENTER;
	default:
		return STEP_OVER;
	}
}

/* The ranges of all units. */
static void index_units(struct seam_dwarf *d)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;

	d->has_ranges = true;
	while (dwarf_get_units(d->dwarf, cu, &cu, NULL, &type, &die, NULL) ==
	       0) {
		uint32_t id = (uint32_t)d->offsets.n;

		if (type != DW_UT_compile && type != DW_UT_skeleton &&
		    type != DW_UT_partial)
			continue;
		if (id == SEAM_NONE ||
		    !SEAM_ARRAY_ADD(&d->offsets, dwarf_dieoffset(&die)) ||
		    !spend(d, cost_of(&die)) ||
		    !add_ranges(d, &d->ranges, &die, id))
			break;
	}
	seam_intervals_cut(&d->ranges);
}

/* The DIE of the unit that has code at @addr. */
static bool find_unit(struct seam_dwarf *d, uint64_t addr, Dwarf_Die *unit)
{
	Dwarf_Arange *arange = dwarf_getarange_addr(d->aranges, addr);
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
		set_problem(d, "split DWARF (.dwo files) is not read: "
			    "inlined calls are missing");
	if (dwarf_getsrcfiles(&unit->die, &unit->files, &n))
		unit->files = NULL;
	if (dwarf_getsrclines(&unit->die, &lines, &n) == 0)
		spend(d, n);
	walk_dies(d, &unit->die, visit_call, unit);
	/* What was read before the budget or memory ended is kept. */
	seam_intervals_cut(&unit->intervals);
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

/* -- names of functions -------------------------------------------------- */

/* Its children are in the scope @die. */
static enum visited add_scope(struct named_unit *unit, Dwarf_Die *die,
			      uint32_t *enclosing)
{
	bool is_namespace = dwarf_tag(die) == DW_TAG_namespace;
	struct scope scope = { dwarf_diename(die), *enclosing };

	if (!scope.name)
		scope.name = is_namespace ? "(anonymous namespace)" :
			     "(unnamed)";
	*enclosing = (uint32_t)unit->scopes.n;
	return *enclosing != SEAM_NONE && SEAM_ARRAY_ADD(&unit->scopes, scope) ?
	       ENTER : END;
}

static enum visited visit_scope(struct seam_dwarf *d, void *context,
				Dwarf_Die *die, uint32_t *enclosing)
{
	struct named_unit *unit = context;

	(void)d;
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		if (*enclosing != SEAM_NONE &&
		    !SEAM_ARRAY_ADD(&unit->functions, (struct scoped) {
			dwarf_dieoffset(die), *enclosing }))
			return END;
		return dwarf_haschildren(die) > 0 ?
		       add_scope(unit, die, enclosing) : STEP_OVER;
	case DW_TAG_namespace:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return add_scope(unit, die, enclosing);
	case DW_TAG_lexical_block:
		return ENTER;
	default:
		return STEP_OVER;
	}
}

/* The scopes of @unit, the DIE of a unit; NULL without memory. */
static const struct named_unit *get_scopes(struct seam_dwarf *d,
					   Dwarf_Die *unit)
{
	uint64_t hash = seam_hash_u64((uintptr_t)unit->addr);
	uint32_t id = SEAM_INDEX_FIND(&d->named_index, hash, i,
				      d->named.items[i].addr == unit->addr);

	if (id == SEAM_NONE) {
		id = SEAM_INDEX_APPEND(&d->named_index, hash, &d->named,
			(struct named_unit) { .addr = unit->addr });
		if (id != SEAM_NONE)
			walk_dies(d, unit, visit_scope, &d->named.items[id]);
	}
	return id == SEAM_NONE ? NULL : &d->named.items[id];
}

/*
 * "a::(anonymous namespace)::B::name" for the function at @die of @unit; @name
 * where nothing is around it.
 */
static const char *put_scopes(struct seam_dwarf *d,
			      const struct named_unit *unit, Dwarf_Off die,
			      const char *name)
{
	const struct scoped *functions = unit->functions.items;
	size_t n = unit->functions.n, used = strlen(name);
	size_t at = SEAM_ARRAY_SEARCH(i, n, functions[i].die < die);
	uint32_t scope = at < n && functions[at].die == die ?
			 functions[at].scope : SEAM_NONE;
	char text[MAX_NAME], *end = text + sizeof(text) - 1, *p = end;

	if (scope == SEAM_NONE || used >= sizeof(text))
		return name;
	/* from the last part to the first */
	p -= used;
	memcpy(p, name, used);
	for (int i = 0; scope != SEAM_NONE && i < MAX_SCOPES; i++) {
		const char *part = unit->scopes.items[scope].name;

		used = strlen(part);
		if (used + 2 > (size_t)(p - text))
			break;
		p -= used + 2;
		memcpy(p, part, used);
		memcpy(p + used, "::", 2);
		scope = unit->scopes.items[scope].parent;
	}
	name = seam_arena_text(d->arena, p, (size_t)(end - p));
	return name ? name : "?";
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
	const struct named_unit *named;
	Dwarf_Die origin, unit;

	for (int i = 0; i < MAX_ORIGINS && get_origin(&die, &origin); i++)
		die = origin;
	if (!dwarf_diecu(&die, &unit, NULL, NULL) || is_c(&unit))
		return name;
	named = get_scopes(d, &unit);
	return named ? put_scopes(d, named, dwarf_dieoffset(&die), name) :
	       name;
}

/* libdw bounds the chain of origins and specifications that it follows. */
static const char *name_of(struct seam_dwarf *d, struct inlined *call)
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

/* -- locations ----------------------------------------------------------- */

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
	id = seam_intervals_find(&unit->intervals, addr);
	for (int i = 0; id != SEAM_NONE && i < MAX_CHAIN; i++) {
		struct inlined *call = &unit->calls.items[id];

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
