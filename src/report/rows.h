/* SPDX-License-Identifier: MIT */
/*
 * rows.h - rows with self and total, by one key or by several
 *
 * Self counts the samples with one of the row's functions at the leaf, total
 * those with one anywhere on the stack; a recursive function counts once per
 * stack.  In rows by thread, process, comm, CPU or VM state alone, self and
 * total are equal.  With several keys, such as comm and symbol, a row has the
 * samples that agree in all of them.
 */
#pragma once

#include "model/profile/tally.h"

/* Keys of rows: up to LINE a property of code, then of samples. */
enum seam_by {
	SEAM_BY_SYMBOL = 1,
	SEAM_BY_MODULE,
	SEAM_BY_ADDRESS,	/* of the function's code */
	SEAM_BY_LINE,		/* of source; else the function */
	SEAM_BY_COMM,		/* the thread's name at the sample */
	SEAM_BY_THREAD,
	SEAM_BY_PROCESS,
	SEAM_BY_CPU,
	SEAM_BY_VMSTATE,	/* what the VM did at the sample */
	SEAM_BY_WAIT,		/* why the thread waited */
	SEAM_BY_PARALLELISM,	/* how many threads ran at the sample */
	SEAM_BY_WAKER,		/* who ended the wait */
	SEAM_BY_CGROUP,		/* of the thread, at the sample */
	SEAM_BY_HOST,		/* of profiles of a fleet; and so is the next */
	SEAM_BY_SERVICE,
};

enum { SEAM_MAX_KEYS = 4 };

/*
 * Several keys in one number, four bits each, the first one lowest; one key
 * is its own number.  seam_by_key() returns key @i, 0 after the last.
 */
static inline enum seam_by seam_by_key(uint32_t by, size_t i)
{
	return (enum seam_by)(i < SEAM_MAX_KEYS ? by >> 4 * i & 0xf : 0);
}

static inline bool seam_by_has(uint32_t by, enum seam_by key)
{
	for (size_t i = 0; seam_by_key(by, i); i++)
		if (seam_by_key(by, i) == key)
			return true;
	return false;
}

/* The group that a key of samples is; NONE: a key of code. */
enum seam_group seam_by_group(enum seam_by by);

/* Whether rows are of code: then they have callers. */
static inline bool seam_by_is_code(uint32_t by)
{
	return seam_by_has(by, SEAM_BY_SYMBOL) ||
	       seam_by_has(by, SEAM_BY_MODULE) ||
	       seam_by_has(by, SEAM_BY_ADDRESS) ||
	       seam_by_has(by, SEAM_BY_LINE);
}

/*
 * "comm,symbol" as such a number.  -EINVAL unless @text has one to four names
 * of keys, each once.
 */
int seam_by_parse(const char *text, uint32_t *by);

/* The names with commas, into @buf; returns it. */
enum { SEAM_BY_NAMES = 64 };
const char *seam_by_names(uint32_t by, char buf[SEAM_BY_NAMES]);

enum seam_sort {
	SEAM_SORT_SELF,
	SEAM_SORT_TOTAL,
};

/* The code of a row; SEAM_NONE where the key is not used. */
struct seam_row_code {
	uint32_t function;
	uint32_t module;
	uint32_t file;		/* string; 0: the function has no lines */
	uint32_t line;
	uint64_t addr;		/* 0 where the key is not used */
};

struct seam_row {
	uint32_t code;		/* index in codes; SEAM_NONE: samples */
				/* without a stack, or no key of code */
	uint32_t group;		/* index in groups */
	uint64_t self_samples;
	uint64_t self_weight;
	uint64_t samples;	/* total */
	uint64_t weight;
};

struct seam_rows {
	const struct seam_profile *profile;
	uint32_t by;
	struct seam_row *items;
	size_t n, cap;
	struct {
		struct seam_row_code *items;
		size_t n, cap;
	} codes;
	struct seam_groups groups;
	uint64_t samples, weight;	/* of all rows, also filtered ones */
};

/* 0 or -ENOMEM; seam_rows_fini() is valid after both. */
int seam_rows_make(struct seam_rows *table,
		   const struct seam_selected *selected, uint32_t event,
		   uint32_t by);
void seam_rows_fini(struct seam_rows *table);

/*
 * Largest first, by weights or by numbers of samples; equal ones by the other
 * value, then by name, so that the order is reproducible.
 */
void seam_rows_sort(struct seam_rows *table, enum seam_sort sort,
		    bool by_weight);

/* Keep rows with @text in a key or in the module; case is ignored. */
void seam_rows_filter(struct seam_rows *table, const char *text);

/*
 * The id of the thread, process, comm (string), CPU, VM state, reason of a wait
 * (string), cgroup (string), host or service (strings), or number of threads;
 * @key is in the table.
 */
uint32_t seam_row_id(const struct seam_rows *table, const struct seam_row *row,
		     enum seam_by key);

enum { SEAM_ROW_TEXT = 4096 };

/*
 * The row's value of @key: a symbol, a module's path, "file:line", a name, a
 * CPU number.  Text of the profile, or @buf.
 */
const char *seam_row_text(const struct seam_rows *table,
			  const struct seam_row *row, enum seam_by key,
			  char buf[SEAM_ROW_TEXT]);

/* The module of a row that has a function; "" for others. */
const char *seam_row_module(const struct seam_rows *table,
			    const struct seam_row *row);

/*
 * The row of @table for the same code and samples as @row of @of, a table by the
 * same keys; NULL: none.  Cost: all rows of @table.
 */
const struct seam_row *seam_rows_same(const struct seam_rows *table,
				      const struct seam_rows *of,
				      const struct seam_row *row);

/*
 * Rows like those of a table of event @event, of the time that threads were
 * blocked: of the event of waits, where there is one and @event is no wait.
 * False: there is none, or no memory.  seam_rows_fini() is valid after both.
 */
bool seam_rows_make_off(struct seam_rows *table,
			const struct seam_selected *selected, uint32_t event,
			uint32_t by);

/* The layer of a row that has a function; SEAM_N_LAYERS for others. */
enum seam_layer seam_row_layer(const struct seam_rows *table,
			       const struct seam_row *row);
