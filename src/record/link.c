/* SPDX-License-Identifier: MIT */
/* link.c - the recorder's side of a stream; see link.h */
#include "record/link.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/synth.h"
#include "ring/proof.h"

enum {
	MOST_PROCESSES = 128,	/* of one program at a time; it and its forks */
	FREE_RINGS = 4,		/* kept ready, while there is much room */
	MOST_RING_BYTES = 256 << 20,	/* of all programs; or so many rings: */
	LEAST_MOST_RINGS = 8,
	N_LOOKS = 2,		/* rounds: who says EXIT is not gone yet */
	MOST_CHILDREN = 65536,	/* remembered; the oldest are forgotten */
	MOST_PIDS = 1 << 22,	/* Source: PID_MAX_LIMIT, linux/threads.h */
	RECORD_BYTES = UINT16_MAX + 1,
};

void seam_record_link_open(struct seam_record_link *link, size_t ring_bytes,
			   struct seam_err *why)
{
	struct seam_ring_shape shape = {
		.n_slots = MOST_PROCESSES, .mode = SEAM_RING_FORWARD,
		.data_bytes = ring_bytes, .watermark =
			(uint32_t)(ring_bytes / 4),
	};

	/* One that we may have from a recorder above us is not for ours. */
	unsetenv(SEAM_LINK_VARIABLE);
	link->record = malloc(RECORD_BYTES);
	/* As many pages of it as there are processes. */
	link->parents = calloc(MOST_PIDS, sizeof(*link->parents));
	if (!link->record || !link->parents ||
	    seam_link_server_open(&link->server, &shape, why) < 0 ||
	    setenv(SEAM_LINK_VARIABLE, link->server.address, 1)) {
		seam_link_server_close(&link->server);
		return;
	}
	link->server.n_free_slots = FREE_RINGS;
	link->server.most_bytes = LEAST_MOST_RINGS * (uint64_t)ring_bytes;
	if (link->server.most_bytes < MOST_RING_BYTES)
		link->server.most_bytes = MOST_RING_BYTES;
	link->is_open = true;
	link->dumps.folder = -1;
}

void seam_record_link_forked(struct seam_record_link *link)
{
	if (link->is_open)
		unsetenv(SEAM_LINK_VARIABLE);
}

/* ---- who is it ---- */

static bool descends(const struct seam_record_link *link, uint32_t pid,
		     uint32_t from)
{
	/* Pids are used again, so what was told may be a circle. */
	for (int i = 0; i < MOST_PROCESSES && pid && pid != from; i++)
		pid = pid < MOST_PIDS ? link->parents[pid] : 0;
	return pid == from;
}

/* Its target may be over with it. */
static void see_end(struct seam_record_link *link, uint32_t pid)
{
	for (size_t i = 0; i < link->server.n_targets; i++) {
		struct seam_link_target *target = link->server.targets[i];

		if (descends(link, pid, (uint32_t)target->pid))
			target->n_looks = N_LOOKS;
	}
}

static void see_fork(struct seam_record_link *link, uint32_t pid,
		     uint32_t parent)
{
	uint32_t *child;

	link->parents[pid] = parent;
	if (link->children.n == MOST_CHILDREN) {
		link->children.n /= 2;
		memmove(link->children.items,
			link->children.items + link->children.n,
			link->children.n * sizeof(*link->children.items));
	}
	child = SEAM_ARRAY_PUSH(&link->children);
	if (child)
		*child = pid;
}

void seam_record_link_see(struct seam_record_link *link,
			  const struct seam_ring_header *record)
{
	struct { uint32_t pid, ppid, tid, ptid; } task;

	if (!link->is_open || (record->type != PERF_RECORD_FORK &&
			       record->type != PERF_RECORD_EXIT) ||
	    record->size < sizeof(*record) + sizeof(task))
		return;
	memcpy(&task, record + 1, sizeof(task));
	if (task.pid != task.tid || task.pid >= MOST_PIDS)
		return;			/* a thread */
	if (record->type == PERF_RECORD_FORK)
		see_fork(link, task.pid, task.ppid);
	else
		see_end(link, task.pid);
}

/* The process that has the ring; 0 while it is not known. */
static uint32_t owner_of(const struct seam_record_link *link,
			 const struct seam_link_target *target,
			 const struct seam_tenant *tenant)
{
	if (tenant->tid == (uint32_t)target->pid)
		return tenant->tid;
	if (tenant->proof == SEAM_TENANT_PROVEN)
		return tenant->pid;
	return descends(link, tenant->tid, (uint32_t)target->pid) ?
	       tenant->tid : 0;
}

/* ---- rings ---- */

static struct seam_jit_stream *stream_of(struct seam_record_link *link,
					 struct seam_link_target *target,
					 struct seam_tenant *tenant)
{
	struct seam_jit_stream *stream = tenant->drainer;
	uint32_t pid;

	if (stream)
		return stream;
	pid = owner_of(link, target, tenant);
	if (!pid)
		return NULL;
	if (link->dumps.folder < 0)
		link->dumps.folder = seam_bundle_folder(link->bundle, "jit",
							NULL);
	stream = calloc(1, sizeof(*stream));
	if (!stream || seam_jit_stream_begin(stream, &link->dumps, pid,
					     target->since_ns)) {
		free(stream);
		return NULL;
	}
	return tenant->drainer = stream;
}

static void drain(struct seam_record_link *link, struct seam_tenant *tenant)
{
	struct seam_ring_header header;
	struct seam_ring_span span;
	size_t pos = 0;

	seam_ring_peek(&tenant->ring, &span);
	while (seam_ring_copy(&span, pos, &header, link->record)) {
		seam_jit_stream_take(tenant->drainer, link->record,
				     header.size);
		pos += header.size;
	}
	link->dumps.n_bad += pos != seam_ring_span_bytes(&span);
	seam_ring_advance(&tenant->ring, &span);
}

static void part(struct seam_record_link *link,
		 struct seam_link_target *target, uint32_t i)
{
	struct seam_tenant *tenant = &target->tenants.items[i];
	struct seam_tenant_counts counts;

	seam_tenants_counts(&target->tenants, i, &counts);
	if (tenant->drainer) {
		seam_jit_stream_end(tenant->drainer, counts.n_offered);
		free(tenant->drainer);
	} else {
		link->n_unproven++;
		link->dumps.n_offered += counts.n_offered;
	}
	seam_tenants_release(&target->tenants, i);
}

/* @is_last: whoever is not known by now will not be. */
static void drain_target(struct seam_record_link *link,
			 struct seam_link_target *target, bool is_last)
{
	struct seam_tenants *t = &target->tenants;

	for (uint32_t i = 0; i < t->n_present; i++) {
		/* Before we look: what it wrote last is seen then. */
		bool is_ending = t->items[i].is_ending;

		if (!t->items[i].word)
			continue;
		if (stream_of(link, target, &t->items[i]))
			drain(link, &t->items[i]);
		else if (!is_last)
			continue;
		if (is_ending || is_last)
			part(link, target, i);
	}
}

/* ---- programs ---- */

static bool is_running(const struct seam_link_target *target, uint32_t pid)
{
	struct seam_thread_identity id;

	/* 0: it has become another program.  Not known: it may be. */
	return seam_thread_identify(pid, &id) != -ESRCH &&
	       seam_thread_has_mapped(pid, target->tenants.device,
				      target->tenants.inode) != 0;
}

/* Whether nobody can come into the memory of @target any more. */
static bool is_over(const struct seam_record_link *link,
		    struct seam_link_target *target)
{
	if (!seam_link_target_is_over(target) ||
	    is_running(target, (uint32_t)target->pid))
		return false;
	for (size_t i = 0; i < link->children.n; i++) {
		uint32_t child = link->children.items[i];

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
	link->n_unringed += atomic_load_explicit(&target->memory.head->n_lost,
						 memory_order_relaxed);
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

		if (target->has_met && target->n_looks)
			seam_tenants_check(&target->tenants, true);
	}
}

/* And behind that.  Their memory is large, and others come. */
static void let_go_of_ended(struct seam_record_link *link)
{
	for (size_t i = link->server.n_targets; i-- > 0;) {
		struct seam_link_target *target = link->server.targets[i];

		if (!target->has_met || !target->n_looks)
			continue;
		target->n_looks--;
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

		if (!target->has_met)
			continue;
		seam_tenants_check(&target->tenants, false);
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
		struct seam_jit_dump_file *file = &link->dumps.files.items[i];

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
		if (link->server.targets[i]->has_met)
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
	for (uint32_t i = 0; i < target->tenants.n_present; i++)
		/* relaxed: a request */
		atomic_store_explicit(&seam_ring_memory_control(
				&target->memory, i)->own.paused, 1,
				memory_order_relaxed);
}

void seam_record_link_finish(struct seam_record_link *link)
{
	struct seam_link_server *server = &link->server;

	if (!link->is_open)
		return;
	seam_link_server_step(server);
	for (size_t i = 0; i < server->n_targets; i++)
		if (server->targets[i]->has_met) {
			stop_rings(server->targets[i]);
			seam_tenants_look(&server->targets[i]->tenants);
		}
	drain_all(link, true);
	for (size_t i = 0; i < server->n_targets; i++)
		if (server->targets[i]->has_met) {
			count_unringed(link, server->targets[i]);
			/* Those that are free now, for children to come. */
			stop_rings(server->targets[i]);
		}
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

uint64_t seam_record_link_lost(const struct seam_record_link *link)
{
	const struct seam_jit_dumps *d = &link->dumps;

	return d->n_offered - d->n_taken + d->n_unwritten + link->n_unringed;
}

void seam_record_link_fini(struct seam_record_link *link)
{
	/* A recording that came to nothing: nobody was let run. */
	seam_record_link_finish(link);
	if (link->dumps.folder > 0)
		close(link->dumps.folder);
	free(link->children.items);
	free(link->parents);
	free(link->record);
	*link = (struct seam_record_link) { 0 };
}
