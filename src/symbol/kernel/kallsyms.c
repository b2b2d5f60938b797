/* SPDX-License-Identifier: MIT */
/*
 * kallsyms.c - lines of text, read in one pass; the contract is in kallsyms.h
 *
 * Each report with kernel frames reads 120,000 lines: no copy, and no call for
 * each line but memchr().
 */
#include "symbol/kernel/kallsyms.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

/*
 * A function without a size ends at the next symbol, but not further away
 * than this: beyond the last symbol of a module lies another module.
 */
#define LONGEST_FUNCTION (256 * 1024)

struct symbol_line {
	uint64_t addr;
	char type;
	const char *name;
	size_t name_size;
	bool in_module;
};

/* Read the line of @size bytes at @text, without its newline. */
static bool read_line(const char *text, size_t size, struct symbol_line *line)
{
	const char *blank = seam_text_number(text, text + size, 16,
					     &line->addr);
	size_t pos = blank ? (size_t)(blank - text) : 0, end;

	if (!blank || size - pos < 4 || text[pos] != ' ' ||
	    text[pos + 2] != ' ')
		return false;
	line->type = text[pos + 1];
	line->name = text + pos + 3;
	for (end = pos + 3; end < size; end++)
		if (text[end] == '\t' || text[end] == ' ' || text[end] == '\0')
			break;
	line->name_size = end - pos - 3;
	line->in_module = end < size && text[end] == '\t';
	return line->name_size > 0;
}

static bool is_function(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

static uint32_t flags_of(char type)
{
	if (!is_function(type))
		return SEAM_SYMBOL_FENCE;
	if (type == 'W' || type == 'w')
		return SEAM_SYMBOL_WEAK;
	return type == 'T' ? SEAM_SYMBOL_GLOBAL : 0;
}

static int add(struct seam_symtab *table, const struct symbol_line *line)
{
	struct seam_symbol symbol = {
		.start = line->addr, .end = line->addr,
		.limit = line->addr < UINT64_MAX - LONGEST_FUNCTION ?
			 line->addr + LONGEST_FUNCTION : UINT64_MAX,
		.name = line->name,
		.flags = flags_of(line->type),
	};

	/* Of names for one address the last counts, so that perf agrees. */
	if (table->symbols.n && is_function(line->type)) {
		struct seam_symbol *last =
			&table->symbols.items[table->symbols.n - 1];

		if (last->start == symbol.start &&
		    !(last->flags & SEAM_SYMBOL_FENCE)) {
			*last = symbol;
			return 0;
		}
	}
	return seam_symtab_add(table, &symbol);
}

ptrdiff_t seam_kallsyms_read(struct seam_symtab *table, char *text, size_t size,
			     bool modules)
{
	ptrdiff_t n = 0;
	size_t pos = 0;

	text[size] = '\0';
	while (pos < size) {
		const char *newline = memchr(text + pos, '\n', size - pos);
		size_t end = newline ? (size_t)(newline - text) : size;
		struct symbol_line line;

		if (read_line(text + pos, end - pos, &line) &&
		    line.addr != 0 && (modules || !line.in_module)) {
			if (add(table, &line))
				return -ENOMEM;
			n += is_function(line.type);
			text[(size_t)(line.name - text) + line.name_size] = 0;
		}
		pos = end + 1;
	}
	return seam_symtab_sort(table) ? -ENOMEM : n;
}

bool seam_kallsyms_is(const char *text, size_t size, const char *name,
		      uint64_t *addr)
{
	struct symbol_line line;
	const char *end = memchr(text, '\n', size);

	if (!end || !read_line(text, (size_t)(end - text), &line) ||
	    line.name_size != strlen(name) ||
	    memcmp(line.name, name, line.name_size) != 0)
		return false;
	*addr = line.addr;
	return true;
}
