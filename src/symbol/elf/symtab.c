/* SPDX-License-Identifier: MIT */
/*
 * symtab.c - sizes, aliases and look-up; the contract is in symtab.h
 *
 * Which alias counts follows perf, so that names compare equal: first one
 * with a size, then one with a type, then not weak, then global; among the
 * rest the name with fewer underscores before it, then the longer one.  The
 * last two rules look at demangled names, which is too slow for every alias
 * of a table, so they are applied when the name is first used.
 */
#include "symbol/elf/symtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/radix_sort.h"

/* More aliases than this at one address are not compared by name. */
enum { MAX_NAMES = 64 };

int seam_symtab_add(struct seam_symtab *table, const struct seam_symbol *symbol)
{
	return table->symbols.n < SEAM_NONE &&
	       SEAM_ARRAY_ADD(&table->symbols, *symbol) ? 0 : -ENOMEM;
}

/* Of aliases the one with the largest merit is used. */
static unsigned int merit(const struct seam_symbol *symbol)
{
	return (symbol->flags & SEAM_SYMBOL_FENCE ? 0 : 16) |
	       (symbol->end > symbol->start ? 8 : 0) |
	       (symbol->flags & SEAM_SYMBOL_LABEL ? 0 : 4) |
	       (symbol->flags & SEAM_SYMBOL_WEAK ? 0 : 2) |
	       (symbol->flags & SEAM_SYMBOL_GLOBAL ? 1 : 0);
}

static uint64_t end_of(const struct seam_symbol *symbol, uint64_t next)
{
	if (symbol->end > symbol->start)
		return symbol->end;
	return symbol->limit < next ? symbol->limit : next;
}

/*
 * Hand the best alias of each address to the intervals.  @inside is the end
 * of the sized symbols so far: a label before it is inside one of them.
 */
static int cut(struct seam_symtab *table)
{
	const struct seam_symbol *symbols = table->symbols.items;
	size_t n = table->symbols.n, i = 0;
	uint64_t inside = 0;

	while (i < n) {
		size_t best = i, next = i + 1;

		while (next < n && symbols[next].start == symbols[i].start) {
			if (merit(&symbols[next]) > merit(&symbols[best]))
				best = next;
			next++;
		}
		i = next;
		if (symbols[best].flags & SEAM_SYMBOL_FENCE)
			continue;
		if (symbols[best].flags & SEAM_SYMBOL_LABEL &&
		    symbols[best].end <= symbols[best].start &&
		    symbols[best].start < inside)
			continue;
		if (symbols[best].end > inside)
			inside = symbols[best].end;
		if (seam_intervals_add(&table->intervals, symbols[best].start,
				       end_of(&symbols[best], next < n ?
					      symbols[next].start :
					      UINT64_MAX), (uint32_t)best))
			return -ENOMEM;
	}
	return seam_intervals_cut(&table->intervals);
}

int seam_symtab_sort(struct seam_symtab *table)
{
	int r;

	seam_intervals_fini(&table->intervals);
	if (table->symbols.n == 0)
		return 0;
	r = SEAM_RADIX_SORT(&table->symbols, start);
	return r ? r : cut(table);
}

const struct seam_symbol *seam_symtab_find(const struct seam_symtab *table,
					   uint64_t addr)
{
	uint32_t id = seam_intervals_find(&table->intervals, addr);

	return id != SEAM_NONE ? &table->symbols.items[id] : NULL;
}

uint64_t seam_symtab_end(const struct seam_symtab *table,
			 const struct seam_symbol *symbol)
{
	const struct seam_symbol *last = table->symbols.items +
					 table->symbols.n;
	const struct seam_symbol *next = symbol + 1;

	while (next < last && next->start == symbol->start)
		next++;
	return end_of(symbol, next < last ? next->start : UINT64_MAX);
}

/* Whether @a is the better one of two demangled names. */
static bool reads_better(const char *a, const char *b)
{
	size_t lead_a = strspn(a, "_"), lead_b = strspn(b, "_");

	if (lead_a != lead_b)
		return lead_a < lead_b;
	return strlen(a) > strlen(b);
}

/* The best name of @symbol and its aliases, which follow it. */
static const char *choose_name(const struct seam_symtab *table,
			       const struct seam_symbol *symbol,
			       struct seam_arena *arena)
{
	const struct seam_symbol *last = table->symbols.items +
					 table->symbols.n;
	const char *best = seam_demangle(arena, symbol->name);
	unsigned int n = 1;

	for (const struct seam_symbol *other = symbol + 1;
	     other < last && other->start == symbol->start && n < MAX_NAMES;
	     other++, n++) {
		const char *name;

		if (merit(other) != merit(symbol))
			continue;
		name = seam_demangle(arena, other->name);
		if (reads_better(name, best))
			best = name;
	}
	return best;
}

const char *seam_symtab_name(struct seam_symtab *table, uint64_t addr,
			     struct seam_arena *arena)
{
	uint32_t id = seam_intervals_find(&table->intervals, addr);
	struct seam_symbol *symbol;

	if (id == SEAM_NONE)
		return NULL;
	symbol = &table->symbols.items[id];
	if (!symbol->shown)
		symbol->shown = choose_name(table, symbol, arena);
	return symbol->shown;
}

void seam_symtab_fini(struct seam_symtab *table)
{
	free(table->symbols.items);
	seam_intervals_fini(&table->intervals);
	*table = (struct seam_symtab) { 0 };
}
