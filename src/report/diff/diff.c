/* SPDX-License-Identifier: MIT */
/*
 * diff.c - runs into one tree, and their differences; the contract is in diff.h
 *
 * While runs are added, code without names has one function for each build id
 * of its module.  What is the same in all runs is known after the last one:
 * then functions that are one get one number, and the tree is made again with
 * these.
 */
#include "report/diff/diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/text.h"
#include "report/diff/diff_names.h"

const char *const seam_diff_verdicts[] = {
	[SEAM_DIFF_NOISE] = "noise", [SEAM_DIFF_MORE] = "more",
	[SEAM_DIFF_LESS] = "less", [SEAM_DIFF_NEW] = "new",
	[SEAM_DIFF_GONE] = "gone", [SEAM_DIFF_FEW] = "few samples",
	[SEAM_DIFF_UNKNOWN] = "no noise estimate",
};

int seam_diff_init(struct seam_diff *diff)
{
	*diff = (struct seam_diff) { 0 };
	return seam_profile_init(&diff->profile) ||
	       seam_tree_add(&diff->tree, SEAM_NONE, 0, true) == SEAM_NONE ?
	       -ENOMEM : 0;
}

static void fini_run(struct seam_diff_run *run)
{
	free(run->node_self.items);
	free(run->node_total.items);
	free(run->self.items);
	free(run->total.items);
}

void seam_diff_fini(struct seam_diff *diff)
{
	for (size_t i = 0; i < diff->runs.n; i++)
		fini_run(&diff->runs.items[i]);
	free(diff->runs.items);
	free(diff->rows.items);
	free(diff->tree.items);
	seam_index_fini(&diff->nodes);
	seam_selected_fini(&diff->selected);
	seam_profile_fini(&diff->profile);
	*diff = (struct seam_diff) { 0 };
}

/* -- functions of a run ------------------------------------------------- */

/* The module @name; with the build id of @of, unless that is NULL. */
static uint32_t add_module(struct seam_diff *diff, const char *name,
			   enum seam_layer layer,
			   const struct seam_profile_module *of)
{
	struct seam_profile_module module = {
		.kind = layer == SEAM_LAYER_JIT ? SEAM_MODULE_JIT :
			SEAM_MODULE_FILE,
		.path = seam_strings_put(&diff->profile.strings, name),
		.pid = -1,
	};

	if (module.path == SEAM_NONE)
		return SEAM_NONE;
	if (of) {
		module.build_id_size = of->build_id_size;
		memcpy(module.build_id, of->build_id, sizeof(of->build_id));
	}
	return seam_profile_module(&diff->profile, &module);
}

static uint32_t add_function(struct seam_diff *diff, const char *name,
			     uint32_t module, uint8_t layer, bool is_named)
{
	struct seam_function function = {
		.name = seam_strings_put(&diff->profile.strings, name),
		.module = module, .layer = layer, .is_named = is_named,
	};

	return function.name == SEAM_NONE || module == SEAM_NONE ? SEAM_NONE :
	       seam_profile_function(&diff->profile, &function);
}

/* "[libc.so.6+0x1234] BUILD-ID": until it is known whether all runs have it. */
static const char *unnamed_name(char buf[SEAM_DIFF_NAME], const char *name,
				const struct seam_profile_module *module)
{
	char id[2 * sizeof(module->build_id) + 1];

	snprintf(buf, SEAM_DIFF_NAME, "%.*s %s", SEAM_DIFF_NAME / 2, name,
		 seam_text_hex(id, module->build_id, module->build_id_size));
	return buf;
}

/* The function of @frame as a tree's key; bit 0: it is a part of another one. */
static uint32_t key_of(struct seam_diff *diff, const struct seam_profile *p,
		       const struct seam_frame *frame)
{
	const struct seam_function *f = &p->functions.items[frame->function];
	const struct seam_profile_module *m = &p->modules.items[frame->module];
	const char *name = seam_profile_text(p, f->name);
	char module[SEAM_DIFF_NAME], buf[SEAM_DIFF_NAME];
	enum seam_layer layer = (enum seam_layer)f->layer;
	bool is_part = false, is_jit = layer == SEAM_LAYER_JIT;
	uint32_t function;

	seam_diff_module_name(module, seam_profile_path(p, f->module), layer);
	if (!f->is_named && is_jit)
		name = "[jit]";
	else if (!f->is_named)
		name = unnamed_name(buf, name, m);
	else
		name = seam_diff_function_name(buf, name, layer, &is_part);
	/* its build ids are counted, for code without names */
	if (add_module(diff, module, layer, m) == SEAM_NONE)
		return SEAM_NONE;
	function = add_function(diff, name, add_module(diff, module, layer,
				NULL), f->layer, f->is_named || is_jit);
	return function == SEAM_NONE ? SEAM_NONE : function << 1 | is_part;
}

/* The key of each frame of @p; NULL when memory ran out. */
static uint32_t *number_frames(struct seam_diff *diff,
			       const struct seam_profile *p)
{
	uint32_t *keys = calloc(p->frames.n + 1, sizeof(*keys));
	uint32_t *named = calloc(p->functions.n + 1, sizeof(*named));

	for (size_t i = 0; i < p->frames.n && keys && named; i++) {
		const struct seam_frame *frame = &p->frames.items[i];
		uint32_t *known = &named[frame->function];

		/* 0 is not known: function 0 is the one of no stack */
		keys[i] = *known ? *known : key_of(diff, p, frame);
		if (p->functions.items[frame->function].is_named)
			*known = keys[i];
		if (keys[i] != SEAM_NONE)
			continue;
		free(keys);
		keys = NULL;
	}
	if (!named) {
		free(keys);
		keys = NULL;
	}
	free(named);
	return keys;
}

/* -- a run into the common tree ----------------------------------------- */

static void add_amount(struct seam_diff_amount *to,
		       struct seam_diff_amount what)
{
	to->weight += what.weight;
	to->samples += what.samples;
}

/* Without weights, samples are the weights. */
static struct seam_diff_amount self_of(const struct seam_node *node,
				       bool has_weights)
{
	return (struct seam_diff_amount) {
		.weight = (double)(has_weights ? node->self_weight :
				   node->self_samples),
		.samples = (double)node->self_samples,
	};
}

/* The node of the common tree for @node, whose parent is @parent there. */
static uint32_t common_node(struct seam_diff *diff, uint32_t parent,
			    uint32_t key)
{
	bool is_part = key & 1;

	key &= ~1u;
	if (is_part && parent && diff->tree.items[parent].key == key)
		return parent;
	return seam_tree_child(&diff->tree, &diff->nodes, parent, key, false);
}

static int merge(struct seam_diff *diff, struct seam_diff_run *run,
		 const struct seam_tree *tree, bool has_weights)
{
	uint32_t *map = calloc(tree->n, sizeof(*map));
	int rc = map ? 0 : -ENOMEM;

	for (size_t i = 0; i < tree->n && !rc; i++) {
		const struct seam_node *node = &tree->items[i];
		struct seam_diff_amount self = self_of(node, has_weights);
		double *layer;

		if (i)
			map[i] = common_node(diff, map[node->parent],
					     node->key);
		else if (node->self_samples)	/* those without a stack */
			map[i] = common_node(diff, 0, 0);
		if (map[i] == SEAM_NONE ||
		    !SEAM_ARRAY_GROW(&run->node_self, diff->tree.n)) {
			rc = -ENOMEM;
			break;
		}
		add_amount(&run->node_self.items[map[i]], self);
		add_amount(&run->all, self);
		if (i == 0) {
			map[0] = 0;
			continue;
		}
		layer = &run->layers[diff->profile.functions.items[
				node->key >> 1].layer];
		*layer = fmax(*layer, (double)(has_weights ? node->weight :
					       node->samples));
	}
	free(map);
	return rc;
}

/*
 * The module of the program that has the most samples: the file of its
 * process's first executable mapping.  "": not known.
 */
static uint32_t main_program(struct seam_diff *diff,
			     const struct seam_selected *selected)
{
	const struct seam_profile *p = selected->profile;
	char name[SEAM_DIFF_NAME];
	uint64_t *n = calloc(p->processes.n + 1, sizeof(*n));
	uint32_t most = 0, string = 0;

	for (size_t i = 0; n && i < p->samples.n; i++)
		if (seam_selected_has(selected, i))
			n[p->threads.items[p->samples.thread[i]].process]++;
	for (uint32_t i = 0; n && i < p->processes.n; i++)
		most = n[i] > n[most] ? i : most;
	for (size_t i = 0; n && p->processes.n && i < p->mappings.n; i++) {
		const struct seam_mapping *m = &p->mappings.items[i];

		if (m->pid != p->processes.items[most].pid ||
		    !m->is_executable ||
		    p->modules.items[m->module].kind != SEAM_MODULE_FILE)
			continue;
		string = seam_strings_put(&diff->profile.strings,
			seam_diff_module_name(name, seam_profile_path(p,
				m->module), SEAM_LAYER_NATIVE));
		/* the last exec of a pid is what its samples are of */
		break;
	}
	free(n);
	return string == SEAM_NONE ? 0 : string;
}

/* Of "seam record -o a.seam -- ./a" the part that differs: "./a". */
static const char *command_of(const struct seam_profile *p)
{
	const char *text = seam_profile_text(p, p->command);
	const char *dashes = strncmp(text, "seam record ", 12) == 0 ?
			     strstr(text, " -- ") : NULL;

	return dashes ? dashes + 4 : text;
}

/* What is compared to warn: the machine, the kernel, the event, losses. */
static void describe(struct seam_diff *diff, struct seam_diff_run *run,
		     const struct seam_selected *selected, uint32_t event)
{
	const struct seam_profile *p = selected->profile;
	const struct seam_profile_module *kernel =
		&p->modules.items[p->kernel];
	double lost = (double)seam_profile_n_lost(p);
	struct seam_strings *strings = &diff->profile.strings;
	char id[2 * sizeof(kernel->build_id) + 1];

	run->duration_ns = (double)seam_selected_duration_ns(selected);
	if (!run->n_units)
		run->n_units = run->duration_ns > 0 ? run->duration_ns / 1e9 :
			       1;
	run->is_lossy = p->losses.n > 0;
	run->lost = lost > 0 ? lost / (lost +
				(double)seam_profile_n_samples(p)) : 0;
	run->n_cpus = p->n_cpus;
	run->event = seam_strings_put(strings, seam_profile_text(p,
					p->events.items[event].name));
	if (p->kernel)
		run->kernel = seam_strings_put(strings, seam_text_hex(id,
				kernel->build_id, kernel->build_id_size));
	run->program = main_program(diff, selected);
	if (!diff->n_runs[run->side])
		diff->command[run->side] = seam_strings_put(strings,
							    command_of(p));
}

static int add_tree(struct seam_diff *diff, struct seam_diff_run *run,
		    const struct seam_selected *selected, uint32_t event)
{
	struct seam_tallies tallies;
	struct seam_tree tree = { 0 };
	uint32_t *keys = number_frames(diff, selected->profile);
	int rc = keys ? seam_tallies_make(&tallies, selected, event,
					  SEAM_GROUP_NONE) : -ENOMEM;

	if (!rc) {
		rc = seam_tree_make(&tree, selected, &tallies, keys, false);
		if (!rc)
			rc = merge(diff, run, &tree, tallies.weight != 0);
		free(tallies.items);
	}
	free(tree.items);
	free(keys);
	if (run->all.samples > 0)
		run->sample_weight = run->all.weight / run->all.samples;
	return rc;
}

int seam_diff_add(struct seam_diff *diff, const struct seam_diff_run *run,
		  const struct seam_selected *selected, uint32_t event,
		  struct seam_err *err)
{
	const struct seam_profile_event *e =
		&selected->profile->events.items[event];
	struct seam_diff_run *r;

	if (!diff->runs.n) {
		diff->unit = (enum seam_unit)e->unit;
		diff->is_measured = e->is_measured;
		if (add_function(diff, "[no stack]", 0, SEAM_LAYER_NATIVE,
				 true))
			return seam_err_no_memory(err);
	}
	if (diff->unit != (enum seam_unit)e->unit ||
	    diff->is_measured != e->is_measured)
		return seam_err_set(err, -EINVAL, "its event '%s' counts "
			"another unit than that of '%s'",
			seam_profile_text(selected->profile, e->name),
			diff->runs.items[0].path);
	if (!SEAM_ARRAY_ADD(&diff->runs, *run))
		return seam_err_no_memory(err);
	r = &diff->runs.items[diff->runs.n - 1];
	describe(diff, r, selected, event);
	diff->n_runs[r->side]++;
	return add_tree(diff, r, selected, event) ? seam_err_no_memory(err) :
	       0;
}

/* -- functions that are one --------------------------------------------- */

/* A module's name: the number of build ids, and the sides that have it. */
struct module_use {
	uint32_t n_ids;
	bool on_side[2];
};

/* Which modules have samples, by their first. */
static struct module_use *find_modules(const struct seam_diff *diff)
{
	const struct seam_profile *p = &diff->profile;
	struct module_use *uses = calloc(p->modules.n, sizeof(*uses));

	for (uint32_t i = 0; uses && i < p->modules.n; i++)
		uses[p->modules.items[i].first].n_ids +=
			p->modules.items[i].build_id_size > 0;
	for (size_t r = 0; uses && r < diff->runs.n; r++) {
		const struct seam_diff_run *run = &diff->runs.items[r];

		for (size_t i = 1; i < run->node_self.n; i++) {
			const struct seam_function *f = &p->functions.items[
				diff->tree.items[i].key >> 1];

			if (run->node_self.items[i].samples > 0)
				uses[p->modules.items[f->module].first]
					.on_side[run->side] = true;
		}
	}
	return uses;
}

/* The program that all runs of @side have; 0: there is none. */
static uint32_t program_of(const struct seam_diff *diff,
			   enum seam_diff_side side)
{
	uint32_t program = SEAM_NONE;

	for (size_t i = 0; i < diff->runs.n; i++) {
		const struct seam_diff_run *run = &diff->runs.items[i];

		if (run->side != side)
			continue;
		if (program != SEAM_NONE && program != run->program)
			return 0;
		program = run->program;
	}
	return program == SEAM_NONE ? 0 : program;
}

/* Whether the program @path, of the other @side, has samples on @side, too. */
static bool is_also_on(const struct seam_diff *diff,
		       const struct module_use *uses, uint32_t path,
		       enum seam_diff_side side)
{
	for (uint32_t i = 0; i < diff->profile.modules.n; i++)
		if (diff->profile.modules.items[i].path == path &&
		    uses[diff->profile.modules.items[i].first].on_side[side])
			return true;
	return false;
}

/*
 * The name of code without names: its own where all runs have the same build of
 * its module, whose path is @path.
 */
static const char *name_unnamed(char name[SEAM_DIFF_NAME], const char *path,
				bool is_comparable)
{
	char *id = strrchr(name, ' ');

	if (id && id[1] && is_comparable)
		*id = '\0';
	else if (*path)
		snprintf(name, SEAM_DIFF_NAME, "[%.*s: without names]",
			 SEAM_DIFF_NAME / 2, path);
	else
		snprintf(name, SEAM_DIFF_NAME, "[unknown]");
	return name;
}

/* The function that @function is one with; SEAM_NONE: no memory. */
static uint32_t same_as(struct seam_diff *diff, const struct module_use *uses,
			uint32_t function, const uint32_t programs[2])
{
	struct seam_function f = diff->profile.functions.items[function];
	const struct seam_profile_module *module =
		&diff->profile.modules.items[f.module];
	bool is_renamed = module->path && module->path == programs[SEAM_DIFF_A];
	bool is_program = is_renamed ||
		(module->path && module->path == programs[SEAM_DIFF_B]);
	const char *path = seam_profile_text(&diff->profile, is_renamed ?
				programs[SEAM_DIFF_B] : module->path);
	char name[SEAM_DIFF_NAME];
	uint32_t to;

	if (f.is_named && !is_renamed)
		return function;
	snprintf(name, sizeof(name), "%s", seam_profile_text(&diff->profile,
							     f.name));
	if (!f.is_named)
		name_unnamed(name, path, !is_program &&
			     uses[module->first].n_ids == 1);
	to = add_module(diff, path, (enum seam_layer)f.layer, NULL);
	return add_function(diff, name, to, f.layer, f.is_named);
}

/* By function: what it is one with.  NULL when memory ran out. */
static uint32_t *match_functions(struct seam_diff *diff, bool *any)
{
	size_t n = diff->profile.functions.n;
	uint32_t *map = calloc(n + 1, sizeof(*map));
	struct module_use *uses = find_modules(diff);
	uint32_t programs[2] = {
		program_of(diff, SEAM_DIFF_A), program_of(diff, SEAM_DIFF_B),
	};
	bool failed = !map || !uses;

	*any = false;
	if (!failed && (!programs[0] || !programs[1] ||
			programs[0] == programs[1] ||
			is_also_on(diff, uses, programs[0], SEAM_DIFF_B) ||
			is_also_on(diff, uses, programs[1], SEAM_DIFF_A)))
		programs[0] = programs[1] = 0;
	for (uint32_t i = 0; i < n && !failed; i++) {
		map[i] = same_as(diff, uses, i, programs);
		*any |= map[i] != i;
		failed = map[i] == SEAM_NONE;
	}
	free(uses);
	if (!failed)
		return map;
	free(map);
	return NULL;
}

/* The self of each old node goes to its new one. */
static int move_amounts(struct seam_diff_run *run, const uint32_t *node_map,
			size_t n_nodes)
{
	struct seam_diff_amounts old = run->node_self;

	run->node_self = (struct seam_diff_amounts) { 0 };
	if (!SEAM_ARRAY_GROW(&run->node_self, n_nodes)) {
		free(old.items);
		return -ENOMEM;
	}
	for (size_t i = 0; i < old.n; i++)
		add_amount(&run->node_self.items[node_map[i]], old.items[i]);
	free(old.items);
	return 0;
}

static int remake_tree(struct seam_diff *diff, const uint32_t *map)
{
	struct seam_tree old = diff->tree;
	uint32_t *node_map = calloc(old.n, sizeof(*node_map));
	int rc = node_map ? 0 : -ENOMEM;

	diff->tree = (struct seam_tree) { 0 };
	seam_index_fini(&diff->nodes);
	if (seam_tree_add(&diff->tree, SEAM_NONE, 0, true) == SEAM_NONE)
		rc = -ENOMEM;
	for (size_t i = 1; i < old.n && !rc; i++) {
		node_map[i] = common_node(diff,
					  node_map[old.items[i].parent],
					  map[old.items[i].key >> 1] << 1);
		rc = node_map[i] == SEAM_NONE ? -ENOMEM : 0;
	}
	for (size_t r = 0; r < diff->runs.n && !rc; r++)
		rc = move_amounts(&diff->runs.items[r], node_map,
				  diff->tree.n);
	free(node_map);
	free(old.items);
	return rc;
}

static int match(struct seam_diff *diff)
{
	bool any;
	uint32_t *map = match_functions(diff, &any);
	int rc = !map ? -ENOMEM : any ? remake_tree(diff, map) : 0;

	free(map);
	return rc;
}

/* -- sums --------------------------------------------------------------- */

/* Self and total by function; of nested nodes of one, the outermost counts. */
static int add_functions(struct seam_diff *diff, struct seam_diff_run *run)
{
	const struct seam_node *nodes = diff->tree.items;
	size_t n = diff->profile.functions.n;
	uint32_t *open = calloc(n + 1, sizeof(*open));	/* on the path */
	SEAM_ARRAY(uint32_t) path = { 0 };
	int rc = open && SEAM_ARRAY_GROW(&run->self, n) &&
		 SEAM_ARRAY_GROW(&run->total, n) ? 0 : -ENOMEM;

	for (uint32_t i = seam_tree_next(&diff->tree, 0, true);
	     i != SEAM_NONE && !rc; i = seam_tree_next(&diff->tree, i, true)) {
		uint32_t function = nodes[i].key >> 1;

		while (path.n >= nodes[i].depth)
			open[path.items[--path.n]]--;
		add_amount(&run->self.items[function],
			   run->node_self.items[i]);
		if (open[function]++ == 0)
			add_amount(&run->total.items[function],
				   run->node_total.items[i]);
		rc = SEAM_ARRAY_ADD(&path, function) ? 0 : -ENOMEM;
	}
	free(path.items);
	free(open);
	return rc;
}

static int add_up(struct seam_diff *diff, struct seam_diff_run *run)
{
	size_t n = diff->tree.n;

	if (!SEAM_ARRAY_GROW(&run->node_self, n) ||
	    !SEAM_ARRAY_GROW(&run->node_total, n))
		return -ENOMEM;
	for (size_t i = n; i-- > 0;) {
		add_amount(&run->node_total.items[i], run->node_self.items[i]);
		if (i)
			add_amount(&run->node_total.items[
					diff->tree.items[i].parent],
				   run->node_total.items[i]);
	}
	return add_functions(diff, run);
}

/* What the picture is drawn from: the mean of B's runs, for a unit of work. */
static void average(struct seam_diff *diff)
{
	double scale = 0;

	for (size_t r = 0; r < diff->runs.n; r++)
		if (diff->runs.items[r].side == SEAM_DIFF_B)
			scale += diff->runs.items[r].n_units;
	for (size_t i = diff->tree.n; i-- > 0;) {
		struct seam_node *node = &diff->tree.items[i];
		double weight = 0, samples = 0;

		for (size_t r = 0; r < diff->runs.n; r++) {
			const struct seam_diff_run *run = &diff->runs.items[r];

			if (run->side != SEAM_DIFF_B)
				continue;
			weight += run->node_self.items[i].weight /
				  run->n_units;
			samples += run->node_self.items[i].samples;
		}
		/* for a run of mean length, so that integers are precise */
		node->self_weight = (uint64_t)(weight * scale /
			(double)diff->n_runs[SEAM_DIFF_B] /
			(double)diff->n_runs[SEAM_DIFF_B] + 0.5);
		node->self_samples = (uint64_t)(samples /
			(double)diff->n_runs[SEAM_DIFF_B] + 0.5);
		node->weight += node->self_weight;
		node->samples += node->self_samples;
		if (i == 0)
			continue;
		diff->tree.items[node->parent].weight += node->weight;
		diff->tree.items[node->parent].samples += node->samples;
	}
}

/* -- changes ------------------------------------------------------------ */

/*
 * Mean and variance of the logarithms of a side's runs.  *@mean is the
 * geometric mean, or where a run has no sample the arithmetic one.
 */
static struct seam_diff_side_stats
side_stats(const struct seam_diff *diff, enum seam_diff_side side,
	   const struct seam_diff_amount *amounts, double *mean)
{
	struct seam_diff_side_stats s = { .n = diff->n_runs[side] };
	double sum = 0, squares = 0, samples = 0, whole = 0;
	bool has_zero = false;

	for (int pass = 0; pass < 2; pass++)
		for (size_t r = 0; r < diff->runs.n; r++) {
			const struct seam_diff_run *run = &diff->runs.items[r];
			double weight = amounts[r].weight;
			double value;

			if (run->side != side)
				continue;
			has_zero |= weight <= 0;
			if (weight <= 0)
				weight = run->sample_weight > 0 ?
					 run->sample_weight / 2 : 0.5;
			value = log(weight / run->n_units);
			if (pass) {
				squares += (value - s.mean) *
					   (value - s.mean);
				continue;
			}
			sum += value;
			whole += amounts[r].weight / run->n_units;
			samples += amounts[r].samples;
			s.mean = sum / (double)s.n;
		}
	if (s.n > 1)
		s.variance = squares / (double)(s.n - 1);
	/* rounding of n samples to whole ones: 1 / 12 / n^2 */
	samples = s.n ? samples / (double)s.n : 0;
	samples = samples > 0.5 ? samples : 0.5;
	s.least_variance = diff->is_measured ? 0 : 1 / (12 * samples * samples);
	*mean = !s.n ? 0 : has_zero ? whole / (double)s.n : exp(s.mean);
	return s;
}

struct seam_diff_change
seam_diff_measure(const struct seam_diff *diff,
		  const struct seam_diff_amount *amounts)
{
	struct seam_diff_change change = { .q = 1 };
	struct seam_diff_side_stats sides[2];

	for (size_t r = 0; r < diff->runs.n; r++)
		change.samples[diff->runs.items[r].side] += amounts[r].samples;
	for (int side = 0; side < 2; side++) {
		sides[side] = side_stats(diff, (enum seam_diff_side)side,
					 amounts, &change.mean[side]);
		if (diff->n_runs[side])
			change.samples[side] /= (double)diff->n_runs[side];
	}
	change.test = seam_diff_compare(&sides[SEAM_DIFF_A],
					&sides[SEAM_DIFF_B]);
	change.own_error = seam_diff_mean_error(&sides[SEAM_DIFF_B]);
	return change;
}

/* Of all runs: amount @i of the array at @offset in a run. */
static struct seam_diff_change
measure_item(const struct seam_diff *diff, size_t offset, size_t i,
	     struct seam_diff_amount *scratch)
{
	for (size_t r = 0; r < diff->runs.n; r++) {
		const struct seam_diff_amounts *amounts = (const void *)
			((const char *)&diff->runs.items[r] + offset);

		scratch[r] = amounts->items[i];
	}
	return seam_diff_measure(diff, scratch);
}

#define MEASURE(diff, array, i, scratch)				\
	measure_item(diff, offsetof(struct seam_diff_run, array), i, scratch)

static enum seam_diff_verdict
verdict_of(const struct seam_diff *diff, const struct seam_diff_change *change)
{
	double most = fmax(change->samples[0], change->samples[1]);

	if (!diff->is_measured && most < SEAM_DIFF_LEAST_SAMPLES)
		return SEAM_DIFF_FEW;
	if (!seam_diff_has_estimate(diff))
		return SEAM_DIFF_UNKNOWN;
	if (change->q > SEAM_DIFF_LEVEL)
		return SEAM_DIFF_NOISE;
	if (change->samples[SEAM_DIFF_A] <= 0)
		return SEAM_DIFF_NEW;
	if (change->samples[SEAM_DIFF_B] <= 0)
		return SEAM_DIFF_GONE;
	return change->test.ratio > 1 ? SEAM_DIFF_MORE : SEAM_DIFF_LESS;
}

/* @n changes at @first, @step bytes apart, become one family of tests. */
static int judge(const struct seam_diff *diff, struct seam_diff_change *first,
		 size_t n, size_t step)
{
	double *p = calloc(n + 1, sizeof(*p));
	size_t *order = calloc(n + 1, sizeof(*order));
	size_t n_tested = 0;
	int rc = p && order ? 0 : -ENOMEM;

#define NTH(i) ((struct seam_diff_change *)(void *)((char *)first + (i) * step))
	for (size_t i = 0; i < n && !rc; i++) {
		NTH(i)->verdict = verdict_of(diff, NTH(i));
		if (NTH(i)->verdict != SEAM_DIFF_FEW)
			p[n_tested++] = NTH(i)->test.p;
	}
	if (!rc)
		seam_diff_adjust(p, order, n_tested);
	n_tested = 0;
	for (size_t i = 0; i < n && !rc; i++) {
		if (NTH(i)->verdict == SEAM_DIFF_FEW)
			continue;
		NTH(i)->q = p[n_tested++];
		NTH(i)->verdict = verdict_of(diff, NTH(i));
	}
#undef NTH
	free(p);
	free(order);
	return rc;
}

struct seam_diff_change *seam_diff_nodes(const struct seam_diff *diff)
{
	struct seam_diff_change *changes = calloc(diff->tree.n,
						  sizeof(*changes));
	struct seam_diff_amount *scratch = calloc(diff->runs.n + 1,
						  sizeof(*scratch));
	int rc = changes && scratch ? 0 : -ENOMEM;

	for (size_t i = 0; i < diff->tree.n && !rc; i++)
		changes[i] = MEASURE(diff, node_total, i, scratch);
	if (!rc)
		rc = judge(diff, changes, diff->tree.n, sizeof(*changes));
	free(scratch);
	if (!rc)
		return changes;
	free(changes);
	return NULL;
}

static double size_of_change(const struct seam_diff_change *change)
{
	return fabs(change->mean[SEAM_DIFF_B] - change->mean[SEAM_DIFF_A]);
}

/* Verdicts first, then what has none, each by the size of the change. */
static int by_change(const void *x, const void *y, void *context)
{
	const struct seam_diff *diff = context;
	const struct seam_diff_row *a = x, *b = y;
	const struct seam_diff_change *p = seam_diff_main(diff, a);
	const struct seam_diff_change *q = seam_diff_main(diff, b);

	return SEAM_COMPARE(seam_diff_is_change(q), seam_diff_is_change(p)) ?:
	       SEAM_COMPARE(p->verdict == SEAM_DIFF_FEW,
			    q->verdict == SEAM_DIFF_FEW) ?:
	       SEAM_COMPARE(size_of_change(q), size_of_change(p)) ?:
	       SEAM_COMPARE(a->function, b->function);
}

static int make_rows(struct seam_diff *diff)
{
	struct seam_diff_amount *scratch = calloc(diff->runs.n + 1,
						  sizeof(*scratch));
	int rc = scratch ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < diff->profile.functions.n && !rc; i++) {
		struct seam_diff_row row = {
			.function = i, .self = MEASURE(diff, self, i, scratch),
			.total = MEASURE(diff, total, i, scratch),
		};

		if (row.total.samples[0] + row.total.samples[1] <= 0)
			continue;
		seam_diff_find_interval(&row.self.test);
		seam_diff_find_interval(&row.total.test);
		rc = SEAM_ARRAY_ADD(&diff->rows, row) ? 0 : -ENOMEM;
	}
	if (!rc) {
		diff->all = MEASURE(diff, node_total, 0, scratch);
		seam_diff_find_interval(&diff->all.test);
		rc = judge(diff, &diff->all, 1, sizeof(diff->all));
	}
	free(scratch);
	return rc;
}

static int test_rows(struct seam_diff *diff)
{
	struct seam_diff_row *rows = diff->rows.items;
	size_t n = diff->rows.n;

	if (!n)
		return 0;
	if (judge(diff, &rows[0].self, n, sizeof(*rows)) ||
	    judge(diff, &rows[0].total, n, sizeof(*rows)))
		return -ENOMEM;
	qsort_r(rows, n, sizeof(*rows), by_change, diff);
	for (size_t i = 0; i < n; i++)
		diff->n_verdicts[seam_diff_main(diff, &rows[i])->verdict]++;
	return 0;
}

double seam_diff_lost(const struct seam_diff *diff, enum seam_diff_side side)
{
	double most = 0;

	for (size_t r = 0; r < diff->runs.n; r++)
		if (diff->runs.items[r].side == side)
			most = fmax(most, diff->runs.items[r].lost);
	return most;
}

/* -- what makes recordings differ, besides the builds ------------------- */

static const char *text_or(const struct seam_diff *diff, uint32_t string)
{
	const char *text = seam_profile_text(&diff->profile, string);

	return *text ? text : "-";
}

/* Layers that have 1 % of the one run, and nothing of the other. */
static void warn_of_layers(struct seam_diff *diff,
			   const struct seam_diff_run *a,
			   const struct seam_diff_run *b)
{
	for (int i = 0; i < SEAM_N_LAYERS; i++) {
		bool missing = a->layers[i] > a->all.weight / 100 &&
			       b->layers[i] <= 0;

		if (missing)
			seam_profile_note(&diff->profile, "'%s' has no "
				"samples of the layer %s, which '%s' has",
				b->path, seam_layer_names[i], a->path);
	}
}

/* Each run beside the first one; equal notes are one. */
static void warn(struct seam_diff *diff)
{
	const struct seam_diff_run *a = &diff->runs.items[0];
	struct seam_profile *p = &diff->profile;
	uint32_t n_noted = 0;

	for (size_t r = 1; r < diff->runs.n && n_noted == 0; r++) {
		const struct seam_diff_run *b = &diff->runs.items[r];
		double rate = a->sample_weight > 0 ?
			      b->sample_weight / a->sample_weight : 1;

		if (a->event != b->event)
			seam_profile_note(p, "the events differ: '%s' in "
				"'%s', '%s' in '%s'", text_or(diff, a->event),
				a->path, text_or(diff, b->event), b->path);
		if (rate > 1.2 || (rate > 0 && rate < 1 / 1.2))
			seam_profile_note(p, "the sampling rates differ: "
				"%.3g %s a sample in '%s', %.3g in '%s'",
				a->sample_weight, diff->unit == SEAM_UNIT_NS ?
				"ns" : "events", a->path, b->sample_weight,
				b->path);
		if (a->n_cpus && b->n_cpus && a->n_cpus != b->n_cpus)
			seam_profile_note(p, "the machines differ: '%s' has "
				"%u CPUs, '%s' %u", a->path, a->n_cpus,
				b->path, b->n_cpus);
		if (a->kernel && b->kernel && a->kernel != b->kernel)
			seam_profile_note(p, "the kernels of '%s' and '%s' "
				"differ", a->path, b->path);
		warn_of_layers(diff, a, b);
		warn_of_layers(diff, b, a);
		n_noted = (uint32_t)p->notes.n;
	}
}

static int select_nothing(struct seam_diff *diff)
{
	struct seam_selection all;

	seam_selection_init(&all);
	return seam_selected_init(&diff->selected, &diff->profile, &all, NULL);
}

int seam_diff_finish(struct seam_diff *diff)
{
	int rc = match(diff);

	for (size_t r = 0; r < diff->runs.n && !rc; r++)
		rc = add_up(diff, &diff->runs.items[r]);
	if (rc)
		return rc;
	average(diff);
	warn(diff);
	rc = make_rows(diff);
	if (!rc)
		rc = test_rows(diff);
	return rc ? rc : select_nothing(diff);
}
