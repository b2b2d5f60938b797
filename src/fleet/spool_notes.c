/* SPDX-License-Identifier: MIT */
/* spool_notes.c - from a batch to its losses; see spool_notes.h */
#include "fleet/spool_notes.h"

#include <errno.h>

#include "wire/fleet/batch_file.h"

/* Add a loss of @batch, or to the one with equal cause and source. */
static bool add(struct seam_batch *to, const char *cause, const char *source,
		uint64_t records, uint64_t bytes)
{
	struct seam_batch_loss loss = {
		.ts_ns = to->from_ns, .records = records, .bytes = bytes,
		.cause = seam_strings_put(&to->strings, cause),
		.source = seam_strings_put(&to->strings, source),
	};

	for (size_t i = 0; i < to->losses.n; i++) {
		struct seam_batch_loss *old = &to->losses.items[i];

		if (old->cause != loss.cause || old->source != loss.source)
			continue;
		old->records += records;
		old->bytes += bytes;
		return true;
	}
	return loss.cause != SEAM_NONE && loss.source != SEAM_NONE &&
	       SEAM_ARRAY_ADD(&to->losses, loss);
}

/* 0 or -ENOMEM. */
static int to_losses(struct seam_batch *to, const struct seam_batch *from,
		     const char *cause)
{
	const struct seam_strings *texts = &from->strings;
	bool ok = true;

	for (size_t i = 0; ok && i < from->samples.n; i++)
		ok = add(to, cause, seam_strings_get(texts,
				from->samples.items[i].event),
			 from->samples.items[i].count, 0);
	for (size_t i = 0; ok && i < from->losses.n; i++) {
		const struct seam_batch_loss *loss = &from->losses.items[i];

		ok = add(to, seam_strings_get(texts, loss->cause),
			 seam_strings_get(texts, loss->source), loss->records,
			 loss->bytes);
	}
	return ok ? 0 : -ENOMEM;
}

int seam_spool_note_losses(void *cause, struct seam_bytes file,
			   struct seam_bytes *note)
{
	struct seam_batch batch = { 0 }, losses = { 0 };
	struct seam_native_buffer out = { 0 };
	int r = seam_batch_file_read(&batch, file, NULL);

	losses.id = batch.id;
	losses.from_ns = batch.from_ns;
	losses.to_ns = batch.to_ns;
	if (r == -ENOMEM)
		goto out;
	if (seam_batch_origin(&losses, &(struct seam_batch_origin) { 0 }) ==
	    SEAM_NONE)
		r = -ENOMEM;
	else if (r < 0)
		r = add(&losses, cause, "unreadable batch", 0, file.size) ?
		    0 : -ENOMEM;
	else
		r = to_losses(&losses, &batch, cause);
	if (r == 0)
		r = seam_batch_file_write(&losses, &out, NULL);
	if (r == 0)
		*note = (struct seam_bytes) { out.bytes.items, out.bytes.n };
	else
		free(out.bytes.items);
out:
	seam_batch_fini(&losses);
	seam_batch_fini(&batch);
	return r;
}

int seam_spool_note_add(struct seam_fleet_build *build, uint64_t ts_ns,
			struct seam_bytes note, struct seam_err *err)
{
	struct seam_batch batch = { 0 };
	int r = seam_batch_file_read(&batch, note, err);

	if (r < 0 && r != -ENOMEM)
		r = seam_fleet_build_lost(build, ts_ns, SEAM_SPOOL_FULL,
					  "damaged note", 0, note.size, err);
	for (size_t i = 0; r == 0 && i < batch.losses.n; i++) {
		const struct seam_batch_loss *loss = &batch.losses.items[i];

		r = seam_fleet_build_lost(build, ts_ns,
			seam_strings_get(&batch.strings, loss->cause),
			seam_strings_get(&batch.strings, loss->source),
			loss->records, loss->bytes, err);
	}
	seam_batch_fini(&batch);
	return r;
}
