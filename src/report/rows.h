/* SPDX-License-Identifier: MIT */
/*
 * rows.h - rows with self and total: by symbol, module, thread or process
 *
 * Self is what ended in the row's functions, total what had one of them
 * anywhere on its stack; a recursive function counts once a stack.  A thread
 * or process has no callers: its self and total are equal.
 */
#ifndef SEAM_ROWS_H
#define SEAM_ROWS_H

#include "model/tally.h"

enum seam_by {
	SEAM_BY_SYMBOL,
	SEAM_BY_MODULE,
	SEAM_BY_THREAD,
	SEAM_BY_PROCESS,
};

/* "symbol", "module", "thread", "process". */
const char *seam_by_name(enum seam_by by);

enum seam_sort {
	SEAM_SORT_SELF,
	SEAM_SORT_TOTAL,
};

struct seam_row {
	uint32_t id;		/* function, string, thread or process; */
				/* SEAM_NONE: samples without any stack */
	uint64_t self_samples;
	uint64_t self_weight;
	uint64_t samples;	/* total */
	uint64_t weight;
};

struct seam_rows {
	const struct seam_profile *profile;
	enum seam_by by;
	struct seam_row *items;
	size_t n, cap;
	uint64_t samples, weight;	/* of all, filtered or not */
};

/* Zeroed @table; free(items) ends it.  0 or -ENOMEM. */
int seam_rows_make(struct seam_rows *table,
		    const struct seam_selected *selected, uint32_t event,
		    enum seam_by by);

/*
 * Largest first, by weights or by numbers of samples; equal ones by their
 * other value, then by name, so that the order is always the same.
 */
void seam_rows_sort(struct seam_rows *table, enum seam_sort sort,
		     bool by_weight);

/* Keep the rows whose name or module has @text in it, in any case. */
void seam_rows_filter(struct seam_rows *table, const char *text);

/* The row's name: symbol, module path, thread or process name. */
const char *seam_row_name(const struct seam_rows *table,
			  const struct seam_row *row);

/* The module of a row by symbol; "" for others. */
const char *seam_row_module(const struct seam_rows *table,
			    const struct seam_row *row);

/* The layer of a row by symbol; SEAM_N_LAYERS for others. */
enum seam_layer seam_row_layer(const struct seam_rows *table,
			       const struct seam_row *row);

#endif /* SEAM_ROWS_H */
