/* SPDX-License-Identifier: MIT */
/* live_stream.c - one recorder, one profile; see live_stream.h */
#include "cli/live_stream.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/proc/target_file.h"
#include "symbol/kernel/kernel.h"

/*
 * Whose files are read while the profile is made: those of our own user, also
 * of the one that ran sudo.  Those of others may be on a file system that never
 * answers; 'seam record' reads them in a helper.
 */
static bool owner_of(int32_t pid, struct seam_jit_owner *owner)
{
	const char *sudo = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
	struct seam_target target;
	bool is_ours = seam_targets_is_of_user(pid, geteuid()) ||
		       (sudo && seam_targets_is_of_user(pid,
					(uid_t)strtoul(sudo, NULL, 10)));

	if (!is_ours || seam_target_open(&target, pid, NULL) < 0)
		return false;
	*owner = (struct seam_jit_owner) {
		.pid = pid, .inner_pid = target.inner_pid,
		.uid = target.uid, .start_ns = target.start_ns,
	};
	seam_target_close(&target);
	return true;
}

/* The one that runs; its texts are those of @identity. */
static struct seam_kernel running_kernel(struct seam_kernel_identity *identity)
{
	seam_kernel_identify(identity, NULL);
	return (struct seam_kernel) {
		.boot_id = identity->boot_id, .build_id = identity->build_id,
		.build_id_size = identity->build_id_size,
		.text_addr = identity->text_addr,
	};
}

int seam_live_stream_open(struct seam_live_stream *s,
			  const struct seam_symbols_options *symbols,
			  struct seam_err *err)
{
	struct seam_kernel_identity identity;
	struct seam_kernel kernel = running_kernel(&identity);

	s->symbols = *symbols;
	s->live = seam_live_new(symbols, &kernel);
	if (!s->live)
		return seam_err_no_memory(err);
	seam_live_follow_names(s->live, owner_of);
	return 0;
}

int seam_live_stream_start(struct seam_live_stream *s,
			   const struct seam_record_options *options,
			   const struct seam_stream_ticks *ticks,
			   bool hides_output, pid_t root, struct seam_err *err)
{
	struct seam_own_processes own = { { 0 } };
	int r = seam_stream_start(&s->stream, options, ticks, hides_output,
				  err);

	if (r == 0)
		seam_own_processes_find(&own, root);
	for (size_t i = 0; i < own.pids.n; i++)
		seam_live_exclude(s->live, own.pids.items[i]);
	free(own.pids.items);
	return r;
}

static int take_event(struct seam_live_stream *s, struct seam_bytes body)
{
	struct seam_stream_event event;

	memcpy(&event, body.data, sizeof(event));
	/* the last one, and without samples */
	return event.is_sideband ? 0 : seam_live_add_event(s->live,
			&(struct seam_live_event) {
		.name = event.name, .attr = seam_perf_attr_of(&event.attr) });
}

int seam_live_stream_take(struct seam_live_stream *s,
			  const struct seam_stream_header *header,
			  struct seam_bytes body)
{
	struct seam_stream_id id;

	switch (header->kind) {
	case SEAM_STREAM_EVENT:
		return take_event(s, body);
	case SEAM_STREAM_ID:
		memcpy(&id, body.data, sizeof(id));
		return seam_live_add_id(s->live, id.id, id.event);
	case SEAM_STREAM_RECORDS:
		return seam_live_take(s->live, body);
	}
	return 0;
}

int seam_live_stream_renew(struct seam_live_stream *s)
{
	struct seam_kernel_identity identity;
	struct seam_kernel kernel = running_kernel(&identity);
	struct seam_live *next = seam_live_renewed(s->live, &s->symbols,
						   &kernel);

	if (!next)
		return -ENOMEM;
	seam_live_free(s->live);
	s->live = next;
	return 0;
}

void seam_live_stream_close(struct seam_live_stream *s)
{
	seam_stream_close(&s->stream);
	seam_live_free(s->live);
	s->live = NULL;
}
