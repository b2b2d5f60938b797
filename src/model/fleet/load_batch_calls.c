/* SPDX-License-Identifier: MIT */
/* load_batch_calls.c - histograms of batches as an account; see load_batch.h */
#include "model/fleet/load_batch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "model/fleet/batch_parts.h"

struct batch_account {
	struct seam_account *account;
	struct seam_xray_map *names;
	struct seam_profile *profile;
	const struct seam_batch *batch;
	struct seam_batch_ids frames;	/* rows of the batch's table */
	struct seam_index by_name;	/* rows of the account */
};

static uint32_t put_name(struct batch_account *a, uint32_t string)
{
	return seam_strings_put(&a->names->strings, seam_strings_get(
					&a->batch->strings, string));
}

/* The row of the function of @calls, made if new; SEAM_NONE: no memory. */
static uint32_t row_of(struct batch_account *a,
		       const struct seam_batch_calls *calls)
{
	static const struct seam_batch_frame none;
	uint32_t at = seam_batch_ids_find(&a->frames, calls->frame);
	const struct seam_batch_frame *frame = at == SEAM_NONE ? &none :
		&a->batch->frames.items[at];
	const struct seam_xray_mapped *all = a->names->functions.items;
	struct seam_xray_mapped f = {
		.id = (uint32_t)a->names->functions.n + 1,
		.log_id = (uint32_t)a->names->functions.n + 1,
		.name = at == SEAM_NONE ? seam_strings_put(&a->names->strings,
			"[missing]") : put_name(a, frame->function),
		.file = put_name(a, frame->file),
		.image = put_name(a, frame->module),
		.build_id = put_name(a, frame->build_id),
		.line = frame->line, .file_offset = frame->offset,
		/* without a histogram only entries are known */
		.kinds = 1u << SEAM_XRAY_SLED_ENTER |
			 (calls->n ? 1u << SEAM_XRAY_SLED_EXIT : 0u),
	};
	uint64_t hash = seam_hash_add((uint64_t)f.name << 32 | f.image,
				      (uint64_t)f.file << 32 | f.line);
	uint32_t id;

	if (f.name == SEAM_NONE || f.file == SEAM_NONE ||
	    f.image == SEAM_NONE || f.build_id == SEAM_NONE)
		return SEAM_NONE;
	id = SEAM_INDEX_INTERN(&a->by_name, hash, &a->names->functions, i,
		all[i].name == f.name && all[i].image == f.image &&
		all[i].file == f.file && all[i].line == f.line &&
		all[i].kinds == f.kinds && all[i].file_offset == f.file_offset,
		f);
	if (id == SEAM_NONE || id < a->account->rows.n)
		return id;
	return SEAM_ARRAY_ADD(&a->account->rows, (struct seam_account_row) {
			.function = f.id, .min_ns = UINT64_MAX }) ? id :
	       SEAM_NONE;
}

/* Octave 0 is in no row. */
static struct seam_octave *octave_of(struct seam_account *account,
				     uint32_t *octave)
{
	while (!*octave) {
		if (!SEAM_ARRAY_ADD(&account->octaves,
				    (struct seam_octave) { 0 }))
			return NULL;
		*octave = (uint32_t)account->octaves.n - 1;
	}
	return &account->octaves.items[*octave];
}

static int add_buckets(struct batch_account *a,
		       const struct seam_batch_calls *calls,
		       struct seam_account_row *row)
{
	for (uint32_t i = 0; i < calls->n; i++) {
		struct seam_batch_bucket b =
			a->batch->buckets.items[calls->first + i];
		unsigned int o = b.bucket / SEAM_HISTOGRAM_STEPS;
		struct seam_octave *octave;

		if (o >= SEAM_HISTOGRAM_OCTAVES)
			continue;
		octave = octave_of(a->account, &row->octave[o]);
		if (!octave)
			return -ENOMEM;
		octave->n[b.bucket % SEAM_HISTOGRAM_STEPS] += b.count;
	}
	return 0;
}

static int add_calls(void *context, const struct seam_batch *batch,
		     struct seam_err *err)
{
	struct batch_account *a = context;
	int r = 0;

	a->batch = batch;
	seam_batch_ids_fini(&a->frames);
	for (uint32_t i = 0; i < batch->frames.n; i++)
		if (!seam_batch_ids_add(&a->frames, batch->frames.items[i].id,
					i))
			return seam_err_no_memory(err);
	for (size_t i = 0; !r && i < batch->calls.n; i++) {
		const struct seam_batch_calls *c = &batch->calls.items[i];
		uint32_t id = row_of(a, c);
		struct seam_account_row *row;

		if (id == SEAM_NONE)
			return seam_err_no_memory(err);
		row = &a->account->rows.items[id];
		row->count += c->count;
		row->min_ns = c->min_ns < row->min_ns ? c->min_ns :
			      row->min_ns;
		row->max_ns = c->max_ns > row->max_ns ? c->max_ns :
			      row->max_ns;
		row->sum_ns += c->sum_ns;
		row->total_ns += c->total_ns;
		row->self_ns += c->self_ns;
		a->account->n_calls += c->count;
		r = add_buckets(a, c, row);
	}
	return r || seam_load_batch_losses(a->profile, batch) ?
	       seam_err_no_memory(err) : 0;
}

static int add_file(struct batch_account *a, const char *path,
		    struct seam_err *err)
{
	struct seam_batch batch;
	struct seam_file file;
	int r = seam_file_open(&file, path, err);

	if (r)
		return r;
	r = seam_batch_file_read(&batch, file.bytes, err);
	if (!r)
		r = add_calls(a, &batch, err);
	seam_batch_fini(&batch);
	seam_file_close(&file);
	return r;
}

static int add_folder(struct batch_account *a, const char *path,
		      struct seam_err *err)
{
	struct seam_batch_folder folder;
	int r = seam_batch_folder_open(&folder, path, err);

	if (!r)
		r = seam_load_batch_each(&folder, a->profile, add_calls, a,
					 err);
	seam_batch_folder_close(&folder);
	return r;
}

int seam_load_batch_calls(struct seam_account *account,
			  struct seam_xray_map *names,
			  struct seam_profile *profile, const char *path,
			  struct seam_err *err)
{
	struct batch_account a = {
		.account = account, .names = names, .profile = profile,
	};
	struct stat st;
	int r;

	*account = (struct seam_account) { 0 };
	r = stat(path, &st) == 0 && S_ISDIR(st.st_mode) ?
	    add_folder(&a, path, err) : add_file(&a, path, err);
	seam_batch_ids_fini(&a.frames);
	seam_index_fini(&a.by_name);
	return r ? seam_err_add(err, r, "cannot read '%s'", path) : 0;
}
