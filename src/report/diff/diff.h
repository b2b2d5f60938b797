/* SPDX-License-Identifier: MIT */
/*
 * diff.h - recordings of two builds, A and B, in one table and one call tree
 *
 * Each recording is a run.  Runs are added one after another, so that one
 * profile is in memory at a time; of a run the diff keeps self weights by node
 * of the call tree that is common to all runs.
 *
 *	seam_diff_init(&diff)
 *	seam_diff_add(&diff, &run, &selected, event)	for each recording
 *	seam_diff_finish(&diff)
 *	diff.rows, seam_diff_nodes(), seam_diff_gate_decide()
 *	seam_diff_fini(&diff)
 *
 * The functions are those of diff.profile, with names as every build has them
 * (diff_names.h); node keys are function << 1.  Functions of equal name, module
 * and layer are one.  Code without names is compared only where all
 * recordings have the same build id of its module; else it is one function,
 * "[module: without names]".  Where the programs of A and B have different
 * names, they are one module.
 *
 * Values are weights for a unit of work.  Estimator: the ratio of geometric
 * means, and Welch's test on logarithms; a run without samples counts as half a
 * sample.  Runs of one build differ by more, or by less, than independent
 * samples would, so the variance comes from the runs alone.
 */
#pragma once

#include "model/profile/tree.h"
#include "report/diff/diff_stats.h"
#include "report/rows.h"

enum seam_diff_side {
	SEAM_DIFF_A,
	SEAM_DIFF_B,
};

enum {
	SEAM_DIFF_MAX_RUNS = 1000,
	SEAM_DIFF_LEAST_SAMPLES = 10,	/* a run, for a verdict */
};

struct seam_diff_amount {
	double weight;
	double samples;
};

struct seam_diff_run {
	enum seam_diff_side side;	/* these three are the caller's */
	const char *path;		/* borrowed */
	double n_units;			/* of work; 0: seconds of the run */

	double duration_ns;		/* of what is selected */
	double sample_weight;		/* of a sample, mean */
	struct seam_diff_amount all;
	double lost;			/* share of its records, 0 to 1 */
	bool is_lossy;
	uint32_t n_cpus;		/* of the machine; 0: not known */
	uint32_t kernel;		/* string: build id; 0: not known */
	uint32_t event;			/* string */
	uint32_t program;		/* string: module of the main program */
	double layers[SEAM_N_LAYERS];	/* total of a node, the largest */
	/* By node of the common tree, then by function; later ones are 0. */
	struct seam_diff_amounts {
		struct seam_diff_amount *items;
		size_t n, cap;
	} node_self, node_total, self, total;
};

enum seam_diff_verdict {
	SEAM_DIFF_NOISE,	/* as differences between equal builds */
	SEAM_DIFF_MORE,
	SEAM_DIFF_LESS,
	SEAM_DIFF_NEW,		/* no sample in A */
	SEAM_DIFF_GONE,		/* no sample in B */
	SEAM_DIFF_FEW,		/* under SEAM_DIFF_LEAST_SAMPLES: not tested */
	SEAM_DIFF_UNKNOWN,	/* too few runs for an estimate of noise */
	SEAM_DIFF_N_VERDICTS,
};

extern const char *const seam_diff_verdicts[SEAM_DIFF_N_VERDICTS];

/* Of a function, a node or a gate. */
struct seam_diff_change {
	/* a unit: geometric, or arithmetic where a run has no sample */
	double mean[2];
	double samples[2];	/* a run, mean */
	struct seam_diff_test test;
	double own_error;	/* standard error of log(mean[SEAM_DIFF_B]) */
	double q;		/* test.p, adjusted for the number of tests */
	enum seam_diff_verdict verdict;
};

struct seam_diff_row {
	uint32_t function;
	struct seam_diff_change self, total;
};

struct seam_diff {
	struct seam_profile profile;	/* functions; notes are warnings */
	struct seam_selected selected;	/* nothing of it */
	struct seam_tree tree;		/* weights: mean of B's runs */
	struct seam_index nodes;
	SEAM_ARRAY(struct seam_diff_run) runs;
	size_t n_runs[2];
	uint32_t command[2];		/* string: of the first run */
	enum seam_unit unit;
	bool is_measured;		/* calls, with their exact times */
	enum seam_sort sort;		/* set by the caller: what is tested */
	struct seam_diff_change all;
	SEAM_ARRAY(struct seam_diff_row) rows;	/* largest changes first */
	size_t n_verdicts[SEAM_DIFF_N_VERDICTS];
};

/* 0 or -ENOMEM.  seam_diff_fini() is due in both cases. */
int seam_diff_init(struct seam_diff *diff);
void seam_diff_fini(struct seam_diff *diff);

/*
 * Add @run with the selected samples of @event.  Nothing of @selected is needed
 * afterwards.  -EINVAL: the event counts another unit than those before.
 */
int seam_diff_add(struct seam_diff *diff, const struct seam_diff_run *run,
		  const struct seam_selected *selected, uint32_t event,
		  struct seam_err *err);

/* After the last run: match, test and sort.  0 or -ENOMEM. */
int seam_diff_finish(struct seam_diff *diff);

static inline bool seam_diff_has_estimate(const struct seam_diff *diff)
{
	return diff->n_runs[SEAM_DIFF_A] >= SEAM_DIFF_LEAST_RUNS &&
	       diff->n_runs[SEAM_DIFF_B] >= SEAM_DIFF_LEAST_RUNS;
}

/* The share of records that a side has lost: the largest of its runs. */
double seam_diff_lost(const struct seam_diff *diff, enum seam_diff_side side);

/* What @amounts, one for each run, changed by; without q and verdict. */
struct seam_diff_change
seam_diff_measure(const struct seam_diff *diff,
		  const struct seam_diff_amount *amounts);

/* By node the change of its total, adjusted; for free().  NULL: -ENOMEM. */
struct seam_diff_change *seam_diff_nodes(const struct seam_diff *diff);

/* Whether a change is a verdict: more, less, new or gone. */
static inline bool seam_diff_is_change(const struct seam_diff_change *change)
{
	return change->verdict >= SEAM_DIFF_MORE &&
	       change->verdict <= SEAM_DIFF_GONE;
}

/* The change that the rows are tested and sorted by. */
static inline const struct seam_diff_change *
seam_diff_main(const struct seam_diff *diff, const struct seam_diff_row *row)
{
	return diff->sort == SEAM_SORT_TOTAL ? &row->total : &row->self;
}
