/* SPDX-License-Identifier: MIT */
/* link.c - the recorder's side of a stream; see link.h */
#include "record/services/link_service.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/perf/synth.h"
#include "record/perf/synth_parts.h"
#include "ring/link/thread_identity.h"

enum {
	MAX_PROCESSES = 128,	/* of one program at a time; it and its forks */
	FREE_RINGS = 4,		/* kept ready, while there is much room */
	MAX_RING_BYTES = 256 << 20,	/* of all programs; or so many rings: */
	LEAST_MOST_RINGS = 8,
	N_LOOKS = 2,		/* rounds: who says EXIT is not gone yet */
	MAX_CHILDREN = 65536,	/* remembered; the oldest are forgotten */
	MAX_PIDS = 1 << 22,	/* Source: PID_MAX_LIMIT, linux/threads.h */
	/* No program tells of a piece of code in less: it takes five times that. */
	PIECE_NS = 20,
	RECORD_BYTES = UINT16_MAX + 1,
};

/* What reads one ring: the owner's drainer. */
struct ring_reader {
	struct seam_jit_stream stream;
	SEAM_ARRAY(uint8_t) held;	/* whole records, for the next round */
};

void seam_record_link_open(struct seam_record_link *link, size_t ring_bytes,
			   struct seam_err *why)
{
	struct seam_link_service jit = {
		.name = SEAM_JIT_SERVICE, .n_free = FREE_RINGS,
		.geometry = {
			.n_slots = MAX_PROCESSES,
			.data_bytes = ring_bytes, .watermark =
				(uint32_t)(ring_bytes / 4),
		},
	};

	/* One that we may have from a recorder above us is not for ours. */
	unsetenv(SEAM_LINK_VARIABLE);
	link->record = malloc(RECORD_BYTES);
	/* As many pages of it as there are processes. */
	link->latest = calloc(MAX_PIDS, sizeof(*link->latest));
	if (!link->record || !link->latest) {
		seam_err_set(why, -ENOMEM, "out of memory");
		return;
	}
	if (seam_link_server_open(&link->server, &jit, 1, why) < 0) {
		seam_link_server_close(&link->server);
		return;
	}
	if (setenv(SEAM_LINK_VARIABLE, link->server.address, 1)) {
		seam_err_set(why, -errno, "cannot set " SEAM_LINK_VARIABLE
			     ": %s", strerror(errno));
		seam_link_server_close(&link->server);
		return;
	}
	link->server.max_bytes = LEAST_MOST_RINGS * (uint64_t)ring_bytes;
	if (link->server.max_bytes < MAX_RING_BYTES)
		link->server.max_bytes = MAX_RING_BYTES;
	link->is_open = true;
	link->dumps.folder = -1;
}

void seam_record_link_forked(struct seam_record_link *link)
{
	if (link->is_open)
		unsetenv(SEAM_LINK_VARIABLE);
}

/* ---- who is it ---- */

static struct seam_record_child *child_of(const struct seam_record_link *link,
					   uint32_t pid)
{
	uint32_t number = pid < MAX_PIDS ? link->latest[pid] : 0;

	return number > link->first_child ?
	       &link->children.items[number - link->first_child - 1] : NULL;
}

static bool descends(const struct seam_record_link *link, uint32_t pid,
		     uint32_t from)
{
	/* Pids are used again, so what was told may be a circle. */
	for (int i = 0; i < MAX_PROCESSES && pid && pid != from; i++) {
		const struct seam_record_child *child = child_of(link, pid);

		pid = child ? child->parent : 0;
	}
	return pid == from;
}

/* Its target may be over with it. */
static void see_end(struct seam_record_link *link, uint32_t pid)
{
	for (size_t i = 0; i < link->server.n_targets; i++) {
		struct seam_link_target *target = link->server.targets[i];

		if (descends(link, pid, (uint32_t)target->pid))
			target->n_checks = N_LOOKS;
	}
}

/* From @time_ns on process @pid is another, or another program. */
static void end_life(struct seam_record_link *link, uint32_t pid,
		     uint64_t time_ns)
{
	for (size_t i = 0; i < link->server.n_targets; i++) {
		struct seam_link_target *target = link->server.targets[i];
		struct seam_owners *t = &target->rings[0].owners;

		if (!target->n_rings || time_ns <= target->rings_ns)
			continue;
		if ((uint32_t)target->pid == pid && !target->last_ns)
			target->last_ns = time_ns - 1;
		for (uint32_t k = 0; k < t->n_present; k++) {
			struct ring_reader *reader = t->items[k].input;

			if (reader && reader->stream.pid == pid &&
			    !reader->stream.until_ns)
				reader->stream.until_ns = time_ns - 1;
		}
	}
}

static void forget_oldest(struct seam_record_link *link)
{
	size_t n = link->children.n / 2;

	link->children.n -= n;
	link->first_child += (uint32_t)n;
	memmove(link->children.items, link->children.items + n,
		link->children.n * sizeof(*link->children.items));
}

static void see_fork(struct seam_record_link *link, uint32_t pid,
		     uint32_t parent, uint64_t time_ns)
{
	struct seam_record_child *child;

	end_life(link, pid, time_ns);
	if (link->children.n == MAX_CHILDREN)
		forget_oldest(link);
	child = SEAM_ARRAY_PUSH(&link->children);
	if (!child)
		return;
	*child = (struct seam_record_child) {
		.pid = pid, .parent = parent, .fork_ns = time_ns,
	};
	link->latest[pid] = link->first_child + (uint32_t)link->children.n;
}

static void see_exec(struct seam_record_link *link, uint32_t pid,
		     uint64_t time_ns)
{
	struct seam_record_child *child = child_of(link, pid);

	end_life(link, pid, time_ns);
	if (child && !child->exec_ns)
		child->exec_ns = time_ns;
}

/* The time of a record out of what is at its end, as we have it recorded. */
static uint64_t time_of(const struct seam_record_link *link,
			const struct seam_ring_header *record)
{
	struct seam_synth_sample_id trailer;

	/* A little late: what was seen since counts as from before. */
	if (link->other_clock)
		return seam_clock_ns();
	memcpy(&trailer, (const uint8_t *)record + record->size -
	       sizeof(trailer), sizeof(trailer));
	return trailer.time_ns;
}

void seam_record_link_see(struct seam_record_link *link,
			  const struct seam_ring_header *record)
{
	struct { uint32_t pid, ppid, tid, ptid; } task = { 0 };
	struct { uint32_t pid, tid; } comm;
	bool is_exec = record->type == PERF_RECORD_COMM &&
		       record->misc & PERF_RECORD_MISC_COMM_EXEC;

	if (!link->is_open || record->size < sizeof(*record) + sizeof(task) +
	    sizeof(struct seam_synth_sample_id))
		return;
	if (is_exec) {
		memcpy(&comm, record + 1, sizeof(comm));
		see_exec(link, comm.pid, time_of(link, record));
	}
	if (record->type != PERF_RECORD_FORK &&
	    record->type != PERF_RECORD_EXIT)
		return;
	memcpy(&task, record + 1, sizeof(task));
	if (task.pid != task.tid || task.pid >= MAX_PIDS)
		return;			/* a thread */
	if (record->type == PERF_RECORD_FORK)
		see_fork(link, task.pid, task.ppid, time_of(link, record));
	else
		see_end(link, task.pid);
}

/*
 * Whether process @pid was forked from @target's when that had the memory, and
 * had it until *@until_ns (0: to now) by that.
 */
static bool inherits(const struct seam_record_link *link,
		     const struct seam_link_target *target, uint32_t pid,
		     uint64_t *until_ns)
{
	const struct seam_record_child *child = child_of(link, pid), *parent;

	*until_ns = child && child->exec_ns ? child->exec_ns - 1 : 0;
	for (int i = 0; child && i < MAX_PROCESSES; i++, child = parent) {
		if (child->fork_ns <= target->rings_ns)
			return false;
		if (child->parent == (uint32_t)target->pid)
			return !target->last_ns ||
			       child->fork_ns <= target->last_ns;
		parent = child_of(link, child->parent);
		if (parent && parent->exec_ns &&
		    child->fork_ns >= parent->exec_ns)
			return false;
	}
	return false;
}

/*
 * The process that has the ring, and until when (0: now); 0 while it is not
 * known.  That a living process does not have the memory outweighs who it
 * descends from, unless it had the memory until an exec.
 */
static uint32_t owner_of(const struct seam_record_link *link,
			 const struct seam_link_target *target,
			 const struct seam_owner *owner, uint64_t *until_ns)
{
	bool is_proven = owner->status == SEAM_OWNER_VERIFIED, had_it;
	uint32_t pid = is_proven ? owner->pid : owner->tid;

	*until_ns = target->last_ns;
	had_it = pid == (uint32_t)target->pid ||
		 inherits(link, target, pid, until_ns);
	if (is_proven && !had_it)
		*until_ns = 0;
	if (owner->status == SEAM_OWNER_REFUTED && !*until_ns)
		had_it = false;
	return is_proven || had_it ? pid : 0;
}

/* ---- rings ---- */

static struct ring_reader *reader_of(struct seam_record_link *link,
				     struct seam_link_target *target,
				     struct seam_owner *owner)
{
	struct ring_reader *reader = owner->input;
	uint64_t until_ns;
	uint32_t pid;

	if (reader)
		return reader;
	pid = owner_of(link, target, owner, &until_ns);
	if (!pid)
		return NULL;
	if (link->dumps.folder < 0)
		link->dumps.folder = seam_bundle_folder(link->bundle, "jit",
							NULL);
	reader = calloc(1, sizeof(*reader));
	if (!reader || seam_jit_stream_begin(&reader->stream, &link->dumps,
					     pid, target->connected_ns)) {
		free(reader);
		return NULL;
	}
	reader->stream.until_ns = until_ns;
	return owner->input = reader;
}

/* What the round before has copied; the side-band until then is known now. */
static void use_held(struct ring_reader *reader)
{
	struct seam_ring_header header;

	for (size_t pos = 0; pos < reader->held.n; pos += header.size) {
		uint8_t *record = reader->held.items + pos;

		memcpy(&header, record, sizeof(header));
		seam_jit_stream_take(&reader->stream, record, header.size);
	}
	free(reader->held.items);
	reader->held.items = NULL;
	reader->held.n = reader->held.cap = 0;
}

static void hold(struct seam_record_link *link, struct ring_reader *reader,
		 const struct seam_ring_header *header)
{
	if (!SEAM_ARRAY_RESERVE(&reader->held, header->size)) {
		link->dumps.n_bad++;
		return;
	}
	memcpy(reader->held.items + reader->held.n, link->record,
	       header->size);
	reader->held.n += header->size;
}

static void drain(struct seam_record_link *link, struct seam_owner *owner)
{
	struct seam_ring_header header;
	struct seam_ring_span span;
	size_t pos = 0;

	use_held(owner->input);
	seam_ring_peek(&owner->ring, &span);
	while (seam_ring_copy(&span, pos, &header, link->record)) {
		hold(link, owner->input, &header);
		pos += header.size;
	}
	link->dumps.n_bad += pos != seam_ring_span_bytes(&span);
	seam_ring_advance(&owner->ring, &span);
}

/* The most that a program of @target can have told of. */
static uint64_t limit_claim(const struct seam_link_target *target, uint64_t n)
{
	uint64_t most = (seam_clock_ns() - target->connected_ns) / PIECE_NS;

	return n < most ? n : most;
}

static void part(struct seam_record_link *link,
		 struct seam_link_target *target, uint32_t i)
{
	struct seam_owner *owner = &target->rings[0].owners.items[i];
	struct ring_reader *reader = owner->input;
	struct seam_owner_counts counts;
	uint64_t n_offered;

	seam_owners_counts(&target->rings[0].owners, i, &counts);
	n_offered = limit_claim(target, counts.n_offered);
	if (reader) {
		seam_jit_stream_end(&reader->stream, n_offered);
		free(reader->held.items);
		free(reader);
	} else {
		link->n_unproven++;
		link->dumps.n_offered += n_offered;
	}
	seam_owners_release(&target->rings[0].owners, i);
}

/* @is_last: whoever is not known by now will not be. */
static void drain_target(struct seam_record_link *link,
			 struct seam_link_target *target, bool is_last)
{
	struct seam_owners *t = &target->rings[0].owners;

	for (uint32_t i = 0; i < t->n_present; i++) {
		/* Before we look: what it wrote last is seen then. */
		bool is_ending = t->items[i].is_ending;
		struct ring_reader *reader;

		if (!t->items[i].word)
			continue;
		reader = reader_of(link, target, &t->items[i]);
		if (reader)
			drain(link, &t->items[i]);
		else if (!is_last)
			continue;
		if (reader && is_last)
			use_held(reader);
		if (is_last || (is_ending && !reader->held.n))
			part(link, target, i);
	}
}

/* ---- programs ---- */

static bool is_running(const struct seam_link_target *target, uint32_t pid)
{
	struct seam_thread_identity id;

	/* 0: it has become another program.  Not known: it may be. */
	return seam_thread_identify(pid, &id) != -ESRCH &&
	       seam_thread_has_mapped(pid, target->rings[0].owners.device,
				      target->rings[0].owners.inode) != 0;
}

/* Whether nobody can come into the memory of @target any more. */
static bool is_over(const struct seam_record_link *link,
		    struct seam_link_target *target)
{
	if (!seam_link_target_is_over(target) ||
	    is_running(target, (uint32_t)target->pid))
		return false;
	for (size_t i = 0; i < link->children.n; i++) {
		uint32_t child = link->children.items[i].pid;

		if (descends(link, child, (uint32_t)target->pid) &&
		    is_running(target, child))
			return false;
	}
	return true;
}

static void count_unringed(struct seam_record_link *link,
			   const struct seam_link_target *target)
{
	/* relaxed: a count */
	link->n_unringed += limit_claim(target, atomic_load_explicit(
			&target->rings[0].memory.head->n_lost, memory_order_relaxed));
}

static void let_go_if_over(struct seam_record_link *link, size_t i)
{
	struct seam_link_target *target = link->server.targets[i];

	if (!is_over(link, target))
		return;
	count_unringed(link, target);
	seam_link_server_forget(&link->server, i);
}

/* Before the rings are emptied: those of the dead for the last time. */
static void look_at_ended(struct seam_record_link *link)
{
	for (size_t i = 0; i < link->server.n_targets; i++) {
		struct seam_link_target *target = link->server.targets[i];

		if (target->n_rings && target->n_checks)
			seam_owners_check(&target->rings[0].owners, true);
	}
}

/* And behind that.  Their memory is large, and others come. */
static void let_go_of_ended(struct seam_record_link *link)
{
	for (size_t i = link->server.n_targets; i-- > 0;) {
		struct seam_link_target *target = link->server.targets[i];

		if (!target->n_rings || !target->n_checks)
			continue;
		target->n_checks--;
		let_go_if_over(link, i);
	}
}

/* Once a second: it reads files of /proc. */
static void look_for_dead(struct seam_record_link *link)
{
	struct seam_link_server *server = &link->server;
	uint64_t now_ns = seam_clock_ns();

	if (now_ns - link->checked_ns < SEAM_NS_PER_S)
		return;
	link->checked_ns = now_ns;
	for (size_t i = server->n_targets; i-- > 0;) {
		struct seam_link_target *target = server->targets[i];

		if (!target->n_rings)
			continue;
		seam_owners_check(&target->rings[0].owners, false);
		let_go_if_over(link, i);
	}
}

/* ---- the recording ---- */

/*
 * Name the new dumps in the recording, as a mapping of their file would: that
 * is how every reader of perf.data finds one.  Nothing can be mapped at 0.
 */
static void announce(struct seam_record_link *link)
{
	struct seam_synth synth = { .id = link->sideband_id };
	char folder[PATH_MAX], path[PATH_MAX + 32];
	struct iovec piece;

	for (size_t i = 0; i < link->dumps.files.n; i++) {
		struct seam_jitdump_text_file *file = &link->dumps.files.items[i];

		if (file->is_told)
			continue;
		file->is_told = true;
		if (!realpath(link->bundle->path, folder))
			snprintf(folder, sizeof(folder), "%s",
				 link->bundle->path);
		snprintf(path, sizeof(path), "%s/jit/jit-%" PRIu32 ".dump",
			 folder, file->pid);
		seam_synth_marker(&synth, (int)file->pid, path,
				  seam_clock_ns());
	}
	piece = (struct iovec) { synth.bytes.items, synth.bytes.n };
	if (synth.bytes.n)
		seam_perf_writer_append(link->writer, &piece, 1, NULL);
	seam_synth_fini(&synth);
}

static void drain_all(struct seam_record_link *link, bool is_last)
{
	for (size_t i = 0; i < link->server.n_targets; i++)
		if (link->server.targets[i]->n_rings)
			drain_target(link, link->server.targets[i], is_last);
	seam_jit_dumps_write(&link->dumps);
	announce(link);
}

void seam_record_link_round(struct seam_record_link *link)
{
	if (!link->is_open || (!link->has_news && !link->server.n_targets))
		return;
	link->has_news = false;
	seam_link_server_step(&link->server);
	look_at_ended(link);
	drain_all(link, false);
	let_go_of_ended(link);
	look_for_dead(link);
}

/* From here on a writer throws away what it has, and keeps nothing. */
static void stop_rings(const struct seam_link_target *target)
{
	for (uint32_t i = 0; i < target->rings[0].owners.n_present; i++)
		/* relaxed: a request */
		atomic_store_explicit(&seam_ring_memory_control(
				&target->rings[0].memory, i)->own.paused, 1,
				memory_order_relaxed);
}

void seam_record_link_finish(struct seam_record_link *link)
{
	struct seam_link_server *server = &link->server;

	if (!link->is_open)
		return;
	seam_link_server_step(server);
	for (size_t i = 0; i < server->n_targets; i++)
		if (server->targets[i]->n_rings) {
			stop_rings(server->targets[i]);
			seam_owners_scan(&server->targets[i]->rings[0].owners);
		}
	drain_all(link, true);
	for (size_t i = 0; i < server->n_targets; i++)
		if (server->targets[i]->n_rings) {
			count_unringed(link, server->targets[i]);
			/* Those that are free now, for children to come. */
			stop_rings(server->targets[i]);
		}
	link->n_failed = server->n_failed;
	link->why = server->why;
	seam_link_server_close(server);
	seam_jit_dumps_fini(&link->dumps);
	link->is_open = false;
}

int seam_record_link_copy(struct seam_record_link *link,
			  const struct seam_bundle *bundle,
			  struct seam_err *err)
{
	int folder, r;

	if (!link->dumps.files.n)
		return 0;
	folder = seam_bundle_folder(bundle, "jit", err);
	r = folder < 0 ? folder :
	    seam_jit_dumps_copy(&link->dumps, folder, err);
	if (folder >= 0)
		close(folder);
	return r;
}

void seam_record_link_losses(const struct seam_record_link *link,
			     struct seam_losses *losses)
{
	const struct seam_jit_dumps *d = &link->dumps;

	losses->n_jit = d->n_written;
	losses->n_jit_bad = d->n_bad;
	losses->n_jit_unowned = link->n_unproven;
	if (!link->is_open)
		losses->n_jit_lost = d->n_offered - d->n_taken +
				     d->n_unwritten + link->n_unringed;
}

void seam_record_link_fini(struct seam_record_link *link)
{
	/* A recording that came to nothing: nobody was let run. */
	seam_record_link_finish(link);
	if (link->dumps.folder > 0)
		close(link->dumps.folder);
	free(link->children.items);
	free(link->latest);
	free(link->record);
	*link = (struct seam_record_link) { 0 };
}
