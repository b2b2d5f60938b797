/* SPDX-License-Identifier: MIT */
/* flight_bundle.c - see flight_bundle.h */
#include "traced/fdr/flight/flight_bundle.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ring/producer/local.h"
#include "traced/fdr/announce_functions.h"
#include "traced/fdr/fdr_process.h"
#include "traced/fdr/flight/flight_areas.h"
#include "traced/fdr/record/source_link.h"
#include "traced/fdr/record/thread_area.h"
#include "traced/fdr/recorder.h"
#include "traced/fdr/start.h"

enum {
	CHUNK = SEAM_XRAY_CHUNK_BYTES,
	MAX_WAIT_MS = 10000,		/* for room in the ring */
};

static struct {
	char path[PATH_MAX];		/* absolute; "": no bundle */
	pid_t creator;
	struct seam_tsc_tie start;
	uint64_t n_lost, n_paused;	/* until then, to subtract */
} bundle;

/* ---- to the recorder ---- */

/* Whether the ring of @area has room for a chunk at @at, some time. */
static bool wait_for_room(const struct seam_fdr_area *area, uint64_t at)
{
	const struct timespec pause = { .tv_nsec = 1000 * 1000 };

	for (int i = 0; i < MAX_WAIT_MS; i++) {
		/* acquire: what was there is read; pairs with its store */
		uint64_t tail = atomic_load_explicit(area->tail,
						     memory_order_acquire);

		if (at - tail <= area->size - CHUNK)
			return true;
		seam_ring_wakeup_send(area->wakeup);
		nanosleep(&pause, NULL);
	}
	return false;
}

/* A whole chunk, with zeroes after @size bytes. */
static int put_chunk(void *context, const uint8_t *chunk, size_t size)
{
	struct seam_fdr_area *area = context;
	uint64_t at = seam_local_load(area->cursor);
	uint8_t *to = area->bytes + (at & (area->size - 1));

	if (!wait_for_room(area, at))
		return -ETIMEDOUT;
	seam_local_store(area->reserved, at + CHUNK);
	memcpy(to, chunk, size);
	memset(to + size, 0, CHUNK - size);
	/* release: the bytes come before it */
	atomic_store_explicit(area->cursor, at + CHUNK, memory_order_release);
	return 0;
}

static int send_all(void)
{
	struct seam_fdr_area area = { 0 };
	int r = seam_fdr_source_link.claim((uint32_t)getpid(), &area);

	if (r)
		return r;
	seam_local_add(area.n_lost, seam_fdr_flight_lost() - bundle.n_lost);
	seam_local_add(area.n_paused,
		       seam_fdr_flight_paused() - bundle.n_paused);
	return seam_fdr_flight_areas_each(put_chunk, &area);
}

static int write_bundle(const char *path)
{
	char why[256];
	int r = seam_fdr_connect_recorder(path, &bundle.start, why,
					  sizeof(why)), s;

	if (r)
		return r;
	r = send_all();
	s = seam_fdr_recorder_stop();
	seam_fdr_announce_begin_anew();
	return r ? r : s;
}

/* ---- the bundle ---- */

static int begin(const char *path)
{
	seam_fdr_flight_areas_discard();
	bundle.n_lost = seam_fdr_flight_lost();
	bundle.n_paused = seam_fdr_flight_paused();
	bundle.start = seam_tsc_tie_now();
	bundle.creator = getpid();
	snprintf(bundle.path, sizeof(bundle.path), "%s", path);
	return 0;
}

/* A child's: NAME-PID.seam.  Most children record nothing. */
static int write_childs(void)
{
	size_t n = strlen(bundle.path);
	char path[PATH_MAX + 32];

	if (!seam_fdr_flight_has_records())
		return 0;
	if (n > 5 && strcmp(bundle.path + n - 5, ".seam") == 0)
		n -= 5;
	snprintf(path, sizeof(path), "%.*s-%d.seam", (int)n, bundle.path,
		 getpid());
	return write_bundle(path);
}

static int write_own(const char *unused)
{
	(void)unused;
	return bundle.creator == getpid() ? write_bundle(bundle.path) :
					    write_childs();
}

static int end(const char *unused)
{
	int r = write_own(unused);

	bundle.path[0] = '\0';
	return r;
}

static int snapshot(const char *folder)
{
	char path[PATH_MAX];
	int r = seam_fdr_bundle_path(folder, path);

	if (r)
		return r;
	return strcmp(path, bundle.path) ? write_bundle(path) : -EINVAL;
}

/* One thread at a time, which cannot be cancelled. */
static int work(int (*what)(const char *path), const char *path)
{
	int r, state;

	if (!seam_fdr_flight_lock())
		return -EBUSY;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	r = what(path);
	pthread_setcancelstate(state, &state);
	seam_fdr_flight_unlock();
	return r;
}

int seam_fdr_flight_begin(const char *path)
{
	return bundle.path[0] ? -EBUSY : work(begin, path);
}

const char *seam_fdr_flight_path(void)
{
	return bundle.path;
}

int seam_fdr_flight_snapshot(const char *folder)
{
	return folder ? work(snapshot, folder) : -EINVAL;
}

int seam_fdr_flight_write(void)
{
	return bundle.path[0] ? work(write_own, NULL) : 0;
}

int seam_fdr_flight_end(void)
{
	return bundle.path[0] ? work(end, NULL) : 0;
}
