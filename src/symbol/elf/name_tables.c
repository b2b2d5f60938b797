/* SPDX-License-Identifier: MIT */
/*
 * name_tables.c - names of functions by tables in a file's data
 *
 * Interpreters find functions by tables whose rows begin with a pointer to a
 * name and a pointer to its function: PyMethodDef and PyGetSetDef of CPython,
 * zend_function_entry of PHP, luaL_Reg of Lua and other tables of such pairs.
 * strip does not remove tables: a fifth of the functions of Debian's python3 is
 * in one.
 *
 * A row is a word that is relocated to an identifier in .rodata and a word that
 * is relocated to the start of a function by .eh_frame.  Three rows that follow
 * each other are a table, if their other fields are valid: there are structures
 * with a name before a function of something else.
 *
 * Methods of CPython have the name of their type or module before them:
 * "list.append"; functions of these types that are in no table are named after
 * their slot: "list.tp_dealloc".  Where two functions would have one name, each
 * has its address after the name: "close (0x5aeed0)".  So have those of pairs
 * alone, as names of options may have functions too.  A function that tables
 * name differently has no name.
 */
#include "symbol/elf/function_ranges.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/radix_sort.h"

enum {
	NAME_BYTES = 64,	/* of the longest name, with its NUL */
	SHOWN_BYTES = 2 * NAME_BYTES + 32,
	LEAST_ROWS = 3,
	PAIR_BYTES = 16,	/* of a row: luaL_Reg */
	METHOD_BYTES = 32,	/* PyMethodDef, zend_function_entry */
	PROPERTY_BYTES = 40,	/* PyGetSetDef */
};

/* A word of the file's data that is an address. */
struct word {
	uint64_t addr, value;
};

struct row {
	uint64_t addr;
	uint64_t range;		/* index of the function */
	const char *name;	/* in .rodata, as owner */
	const char *owner;	/* of its table; NULL: none */
	uint64_t table;		/* address of the first row; 0: in none */
	uint64_t row_bytes;	/* of it; 0: a slot of a type */
};

struct tables {
	const struct seam_elf *file;
	struct seam_function_ranges *ranges;
	uint64_t text_addr;	/* of .rodata */
	struct seam_bytes text;
	SEAM_ARRAY(struct word) words;	/* ascending */
	SEAM_ARRAY(struct row) rows;
	SEAM_ARRAY(struct row) slots;	/* of types: not in order */
	SEAM_ARRAY(uint32_t) n_named;	/* functions, by id of the name */
};

/* -- words -------------------------------------------------------------- */

static int add_word(void *t, uint64_t addr, uint64_t value)
{
	struct tables *tables = t;

	return SEAM_ARRAY_ADD(&tables->words, (struct word) { addr, value }) ?
	       0 : -ENOMEM;
}

/* Those of a file with fixed addresses: what may be one. */
static int read_words(struct tables *t, const char *name)
{
	GElf_Shdr header;
	struct seam_bytes bytes = seam_elf_bytes(t->file, name, &header);
	struct seam_cursor c = seam_cursor_over(bytes,
						seam_elf_endian(t->file));

	for (uint64_t addr = bytes.size ? header.sh_addr : 0;
	     seam_cursor_left(&c) >= 8; addr += 8) {
		uint64_t value = seam_cursor_u64(&c);

		if (value && add_word(t, addr, value))
			return -ENOMEM;
	}
	return 0;
}

static int find_words(struct tables *t)
{
	GElf_Ehdr header;
	int r;

	if (!gelf_getehdr(t->file->elf, &header) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	if (header.e_type == ET_EXEC) {
		r = read_words(t, ".data.rel.ro");
		r = r ? r : read_words(t, ".data");
	} else {
		r = seam_elf_relocated(t->file, add_word, t);
	}
	return r ? r : SEAM_RADIX_SORT(&t->words, addr);
}

/* The value of the word at @addr, or 0. */
static uint64_t word_at(const struct tables *t, uint64_t addr)
{
	const struct word *words = t->words.items;
	size_t at = SEAM_ARRAY_SEARCH(i, t->words.n, words[i].addr < addr);

	return at < t->words.n && words[at].addr == addr ? words[at].value : 0;
}

/* -- rows and tables ---------------------------------------------------- */

static bool is_in_name(char c, size_t pos, bool dots)
{
	return isalpha((unsigned char)c) || c == '_' ||
	       (pos && (isdigit((unsigned char)c) || (dots && c == '.')));
}

/* The identifier at @addr, with dots after its first character; or NULL. */
static const char *name_at(const struct tables *t, uint64_t addr, bool dots)
{
	const char *name;
	size_t n = 0, left;

	if (addr < t->text_addr || addr - t->text_addr >= t->text.size)
		return NULL;
	name = (const char *)t->text.data + (addr - t->text_addr);
	left = t->text.size - (addr - t->text_addr);
	while (n < left && n < NAME_BYTES && is_in_name(name[n], n, dots))
		n++;
	return n >= 2 && n < NAME_BYTES && n < left && !name[n] ? name : NULL;
}

/* The range that starts at @addr, or SEAM_NONE. */
static uint32_t range_from(const struct tables *t, uint64_t addr)
{
	uint32_t id = seam_intervals_find(&t->ranges->intervals, addr);

	return id != SEAM_NONE && t->ranges->items.items[id].start == addr ?
	       id : SEAM_NONE;
}

static int find_rows(struct tables *t)
{
	const struct word *words = t->words.items;

	for (size_t i = 1; i < t->words.n; i++) {
		struct row row = { .addr = words[i - 1].addr };

		if (words[i].addr - row.addr != 8)
			continue;
		row.range = range_from(t, words[i].value);
		row.name = row.range == SEAM_NONE ? NULL :
			   name_at(t, words[i - 1].value, false);
		if (row.name && !SEAM_ARRAY_ADD(&t->rows, row))
			return -ENOMEM;
	}
	return 0;
}

/* The number at @addr, where no relocation is; 0: not in the file. */
static uint64_t number_at(const struct tables *t, uint64_t addr)
{
	uint8_t bytes[8] = { 0 };
	struct seam_cursor c = seam_cursor_make(bytes, sizeof(bytes),
						seam_elf_endian(t->file));

	if (seam_elf_read_at(t->file, addr, bytes, sizeof(bytes), NULL))
		return 0;
	return seam_cursor_u64(&c);
}

/*
 * Whether the rest of a row of 32 bytes is that of PyMethodDef (flags of
 * METH_VARARGS 1 to METH_METHOD 0x200) or zend_function_entry (a pointer to the
 * arguments, and their number).
 */
static bool is_method(const struct tables *t, uint64_t addr)
{
	uint64_t flags = number_at(t, addr + 16);
	const struct seam_segment *arguments =
		seam_segment_at(&t->file->segments, word_at(t, addr + 16));

	return (flags >= 1 && flags <= 0x3ff) ||
	       (arguments && !arguments->is_executable &&
		(uint32_t)number_at(t, addr + 24) <= 0xff);
}

static bool is_function(const struct tables *t, uint64_t addr)
{
	return range_from(t, word_at(t, addr)) != SEAM_NONE;
}

/* Rows from @first on that are at distances of @row_bytes, and methods. */
static size_t n_rows(const struct tables *t, size_t first, uint64_t row_bytes)
{
	const struct row *rows = t->rows.items;
	size_t i = first;

	do {
		if (row_bytes == METHOD_BYTES && !is_method(t, rows[i].addr))
			return i - first;
		i++;
	} while (i < t->rows.n && rows[i].addr - rows[i - 1].addr == row_bytes);
	return i - first;
}

/*
 * Whether @n rows are a table.  In one of pairs alone, functions could come
 * before their names: there must be none before the first, and NULLs after the
 * last.
 */
static bool is_table(const struct tables *t, size_t first, size_t n,
		     uint64_t row_bytes)
{
	uint64_t addr = t->rows.items[first].addr;
	uint64_t end = addr + n * row_bytes;

	if (n < LEAST_ROWS)
		return false;
	if (row_bytes == PAIR_BYTES)
		return !is_function(t, addr - 8) && !word_at(t, end) &&
		       !word_at(t, end + 8);
	return row_bytes == METHOD_BYTES || row_bytes == PROPERTY_BYTES;
}

static void find_tables(struct tables *t)
{
	struct row *rows = t->rows.items;
	size_t n;

	for (size_t i = 0; i + 1 < t->rows.n; i += n) {
		uint64_t row_bytes = rows[i + 1].addr - rows[i].addr;

		n = n_rows(t, i, row_bytes);
		if (!is_table(t, i, n, row_bytes)) {
			/* the last one may begin a table */
			n = n > 1 ? n - 1 : 1;
			continue;
		}
		for (size_t k = i; k < i + n; k++) {
			rows[k].table = rows[i].addr;
			rows[k].row_bytes = row_bytes;
		}
	}
}

/*
 * The objects of CPython that have tables.  Source: CPython 3.6 to 3.13, struct
 * PyModuleDef (m_name, m_methods), struct _typeobject (tp_name, tp_methods,
 * tp_getset); both begin with their reference count.
 */
static const struct {
	uint64_t row_bytes;
	uint64_t name_pos, table_pos;	/* of pointers in the object */
	bool is_type;
} owners[] = {
	{ METHOD_BYTES, 40, 64, false }, { METHOD_BYTES, 24, 232, true },
	{ PROPERTY_BYTES, 24, 248, true },
};

/* Functions of struct _typeobject, by their position in bytes. */
static const struct {
	uint64_t pos;
	const char *name;
} slots[] = {
	{ 48, "tp_dealloc" }, { 64, "tp_getattr" }, { 72, "tp_setattr" },
	{ 88, "tp_repr" }, { 120, "tp_hash" }, { 128, "tp_call" },
	{ 136, "tp_str" }, { 144, "tp_getattro" }, { 152, "tp_setattro" },
	{ 184, "tp_traverse" }, { 192, "tp_clear" }, { 200, "tp_richcompare" },
	{ 216, "tp_iter" }, { 224, "tp_iternext" }, { 272, "tp_descr_get" },
	{ 280, "tp_descr_set" }, { 296, "tp_init" }, { 304, "tp_alloc" },
	{ 312, "tp_new" }, { 320, "tp_free" },
};

static int add_slots(struct tables *t, uint64_t object, const char *owner)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(slots); i++) {
		struct row row = {
			.range = range_from(t, word_at(t, object +
						       slots[i].pos)),
			.name = slots[i].name, .owner = owner, .table = object,
		};

		if (row.range != SEAM_NONE && !SEAM_ARRAY_ADD(&t->slots, row))
			return -ENOMEM;
	}
	return 0;
}

/*
 * The name of the object that points to a table from @addr, into *@owner; not
 * changed if there is none.  0 or -ENOMEM.
 */
static int find_owner(struct tables *t, uint64_t addr, uint64_t row_bytes,
		      const char **owner)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(owners); i++) {
		uint64_t object = addr - owners[i].table_pos;
		uint32_t count = (uint32_t)number_at(t, object);
		const char *name = name_at(t, word_at(t, object +
						owners[i].name_pos), true);

		/* an immortal object's count has both upper bits */
		if (!name || owners[i].row_bytes != row_bytes ||
		    (count != 1 && count < 3u << 30))
			continue;
		*owner = *owner && strcmp(*owner, name) ? "" : name;
		return owners[i].is_type ? add_slots(t, object, name) : 0;
	}
	return 0;
}

/* The owner of each table, "" if there are several; slots of these. */
static int find_owners(struct tables *t)
{
	struct row *rows = t->rows.items;
	int r = 0;

	for (size_t i = 0; !r && i < t->words.n; i++) {
		uint64_t addr = t->words.items[i].value;
		size_t at = SEAM_ARRAY_SEARCH(k, t->rows.n,
					      rows[k].addr < addr);

		if (at < t->rows.n && rows[at].addr == addr &&
		    rows[at].table == addr)
			r = find_owner(t, t->words.items[i].addr,
				       rows[at].row_bytes, &rows[at].owner);
	}
	for (size_t i = 1; i < t->rows.n; i++)
		if (rows[i].table && rows[i].table == rows[i - 1].table)
			rows[i].owner = rows[i - 1].owner;
	return r;
}

/* -- names -------------------------------------------------------------- */

static bool is_equal(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/*
 * One row for the @n of one function, slots last: the first of a table; without
 * an owner where other tables have the same name; of no name where they have
 * another.
 */
static struct row join_rows(const struct row *rows, size_t n)
{
	struct row row = rows[0];

	for (size_t i = 1; i < n && row.name; i++) {
		if (rows[i].table == row.table ||
		    (row.row_bytes && !rows[i].row_bytes))
			continue;
		if (!is_equal(rows[i].name, row.name))
			row.name = NULL;
		if (!is_equal(rows[i].owner, row.owner))
			row.owner = NULL;
	}
	return row;
}

/* Leave the rows of tables, one a function. */
static int keep_functions(struct tables *t)
{
	struct row *rows;
	size_t n_kept = 0, n;
	int r;

	if (t->slots.n && !SEAM_ARRAY_EXTEND(&t->rows, t->slots.items,
					     t->slots.n))
		return -ENOMEM;
	r = SEAM_RADIX_SORT(&t->rows, range);
	rows = t->rows.items;
	/* other structures look like tables of properties */
	for (size_t i = 0; i < t->rows.n; i++)
		if (rows[i].table && (rows[i].owner ||
				      rows[i].row_bytes != PROPERTY_BYTES))
			rows[n_kept++] = rows[i];
	t->rows.n = n_kept;
	n_kept = 0;
	for (size_t i = 0; i < t->rows.n; i += n) {
		struct row row;

		for (n = 1; i + n < t->rows.n &&
		     rows[i + n].range == rows[i].range;)
			n++;
		row = join_rows(&rows[i], n);
		if (row.name)
			rows[n_kept++] = row;
	}
	t->rows.n = n_kept;
	return r;
}

/*
 * The name of the function of @row, into @name; with its address where the name
 * @is_shared, and in tables of pairs: it may be the name of an option.
 */
static void put_name(const struct tables *t, const struct row *row,
		     bool is_shared, char name[SHOWN_BYTES])
{
	bool has_owner = row->owner && row->owner[0];
	int n = snprintf(name, SHOWN_BYTES, "%s%s%s",
			 has_owner ? row->owner : "", has_owner ? "." : "",
			 row->name);

	if (is_shared || row->row_bytes == PAIR_BYTES)
		snprintf(name + n, SHOWN_BYTES - (size_t)n, " (%#" PRIx64 ")",
			 t->ranges->items.items[row->range].start);
}

static int give_names(struct tables *t)
{
	struct seam_function_range *ranges = t->ranges->items.items;
	struct seam_strings *names = &t->ranges->names;
	char name[SHOWN_BYTES];

	for (size_t i = 0; i < t->rows.n; i++) {
		uint32_t id;

		put_name(t, &t->rows.items[i], false, name);
		id = seam_strings_put(names, name);
		if (id == SEAM_NONE ||
		    !SEAM_ARRAY_GROW(&t->n_named, (size_t)id + 1))
			return -ENOMEM;
		t->n_named.items[id]++;
		ranges[t->rows.items[i].range].name = id;
	}
	for (size_t i = 0; i < t->rows.n; i++) {
		uint32_t *id = &ranges[t->rows.items[i].range].name;

		if (t->n_named.items[*id] == 1)
			continue;
		put_name(t, &t->rows.items[i], true, name);
		*id = seam_strings_put(names, name);
		if (*id == SEAM_NONE)
			return -ENOMEM;
	}
	return 0;
}

static int read_tables(struct tables *t)
{
	int r = find_words(t);

	if (!r)
		r = find_rows(t);
	if (r)
		return r;
	find_tables(t);
	r = find_owners(t);
	if (!r)
		r = keep_functions(t);
	return r ? r : give_names(t);
}

int seam_name_tables_read(struct seam_function_ranges *ranges,
			  const struct seam_elf *file)
{
	struct tables t = { .file = file, .ranges = ranges };
	GElf_Shdr header;
	int r;

	t.text = seam_elf_bytes(file, ".rodata", &header);
	if (!t.text.data)
		return 0;
	t.text_addr = header.sh_addr;
	r = read_tables(&t);
	free(t.words.items);
	free(t.rows.items);
	free(t.slots.items);
	free(t.n_named.items);
	return r;
}
