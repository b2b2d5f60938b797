/* SPDX-License-Identifier: MIT */
/* announce_functions.c - which function has which id; see its header */
#include "traced/fdr/announce_functions.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "traced/fdr/record/source_link.h"
#include "traced/fdr/record/system.h"
#include "traced/fdr/record/thread_area.h"

enum {
	PAUSE_NS = 500 * 1000,
	MAX_WAIT_NS = 10 * 1000 * 1000,	/* of a process, in all */
	LOCK_YIELDS = 100,
	LOCK_PAUSE_NS = 20 * 1000,
};

static struct seam_ring_claim claim;
static bool has_claim;
/* of the thread that writes to the ring, also in a handler */
static _Atomic uint32_t lock;
/* everything, in a child with a ring of its own */
static bool is_child;
/* something is left for the next time */
static _Atomic bool is_behind;
/* for a recorder that is slow, or stopped */
static uint64_t waited_ns;
static uint8_t bytes[SEAM_XRAY_MAX_ANNOUNCEMENT] __attribute__((aligned(8)));

int seam_fdr_announce_claim(void)
{
	int r;

	if (has_claim)
		return 0;
	r = seam_link_client_claim(&seam_fdr_link, SEAM_FDR_SERVICE_FUNCTIONS,
				   seam_fdr_states_pid(), &claim);
	has_claim = r == 0;
	return r;
}

struct seam_ring_control *seam_fdr_announce_control(void)
{
	return has_claim ? claim.ring.control : NULL;
}

void seam_fdr_announce_begin_anew(void)
{
	is_child = is_child || has_claim;
	has_claim = false;
	/* its parent has the names, or sends them */
	atomic_store(&is_behind, false);
	waited_ns = 0;
	atomic_store(&lock, 0);
}

void seam_fdr_announce_set_behind(bool behind)
{
	atomic_store(&is_behind, behind);
}

bool seam_fdr_announce_is_behind(void)
{
	return atomic_load(&is_behind);
}

void seam_fdr_announce_begin_end(void)
{
	waited_ns = 0;
}

/*
 * Not a mutex of libc: a handler takes it too, with all signals blocked, and in
 * a forked child it is set to 0.  It is held for one write.  A waiter sleeps
 * soon: one of a real-time priority would keep the holder from its CPU.
 */
static void take_lock(void)
{
	const struct timespec pause = { 0, LOCK_PAUSE_NS };
	uint32_t zero = 0;

	for (int i = 0; !atomic_compare_exchange_weak(&lock, &zero, 1); i++) {
		zero = 0;
		/* nanosleep() is where a thread may be cancelled */
		if (i < LOCK_YIELDS)
			sched_yield();
		else
			syscall(SYS_nanosleep, &pause, NULL);
	}
}

/*
 * Write a record, if there is room now.  Signals are blocked while this thread
 * has the lock, so a handler waits only for other threads, and not for long.
 */
static int try_to_send(const void *payload, size_t size)
{
	uint64_t blocked = seam_fdr_block();
	/* a fork in a fault's handler: the ring is the parent's */
	int r = has_claim ? -EAGAIN : -ENOSPC;

	take_lock();
	if (has_claim && seam_ring_room(&claim.ring) >= size)
		r = seam_ring_write(&claim.ring, PERF_RECORD_SAMPLE, 0,
				    payload, size);
	atomic_store(&lock, 0);
	seam_fdr_unblock(blocked);
	return r;
}

/* False: this process has waited for the recorder for as long as it may. */
static bool pause_once(void)
{
	const struct timespec pause = { 0, PAUSE_NS };
	uint64_t begin = seam_clock_ns();

	if (waited_ns >= MAX_WAIT_NS)
		return false;
	seam_ring_wakeup_send(claim.ring.wakeup);
	nanosleep(&pause, NULL);
	waited_ns += seam_clock_ns() - begin;
	return true;
}

/* Of size 0 it is none, now or later: the next ones do not wait for it. */
static int send(size_t size)
{
	int r = size ? try_to_send(bytes, size) : 0;

	while (r == -EAGAIN && pause_once())
		r = try_to_send(bytes, size);
	return r == -EAGAIN ? -ENOBUFS : r;
}

int seam_fdr_announce_at_once(const struct seam_xray_addresses *addresses)
{
	_Alignas(8) uint8_t payload[32];
	size_t size = seam_xray_write_addresses(payload, sizeof(payload),
						addresses);
	int r = !has_claim ? -EAGAIN : !size ? -EINVAL :
		try_to_send(payload, size);

	if (r == -EAGAIN)
		seam_fdr_announce_set_behind(true);
	return r;
}

static struct seam_xray_image announced(const struct seam_fdr_image *image,
					uint32_t number)
{
	struct seam_xray_image a = {
		.image = number, .first_id = 1, .bias = image->bias,
		.build_id_bytes = image->build_id_bytes, .path = image->path,
	};

	memcpy(a.build_id, image->build_id, sizeof(a.build_id));
	return a;
}

static int send_image(const struct seam_xray_image *a)
{
	return send(seam_xray_write_image(bytes, sizeof(bytes), a));
}

int seam_fdr_announce_image(const struct seam_fdr_image *image, uint32_t number)
{
	const struct seam_xray_image a = announced(image, number);
	int r = seam_fdr_announce_claim();

	return r ?: send_image(&a);
}

static int announce_addresses(const struct seam_fdr_image *image,
			      const struct seam_fdr_list *list, size_t first,
			      size_t n)
{
	static uint64_t addresses[SEAM_XRAY_MAX_ADDRESSES];
	const struct seam_fdr_functions *f = &list->functions;
	const struct seam_xray_addresses a = {
		.image = list->number,
		.first_id = f->first_id + (uint32_t)first,
		.n = (uint32_t)n, .link_addresses = addresses,
	};

	for (size_t i = 0; i < n; i++)
		addresses[i] = f->sleds.functions.items[first + i] -
			       image->bias;
	return send(seam_xray_write_addresses(bytes, sizeof(bytes), &a));
}

static int announce_itself(const struct seam_fdr_image *image,
			   const struct seam_fdr_list *list)
{
	struct seam_xray_image a = announced(image, list->number);

	a.first_id = list->functions.first_id;
	a.n_functions = (uint32_t)list->functions.sleds.functions.n;
	a.entries_only = seam_fdr_list_has_entries_only(list);
	return send_image(&a);
}

/* What a list announces: itself, and its functions. */
static size_t n_to_announce(const struct seam_fdr_list *list)
{
	return 1 + list->functions.sleds.functions.n;
}

/* From where it came to the last time. */
static int announce_list(const struct seam_fdr_image *image,
			 struct seam_fdr_list *list)
{
	size_t all = n_to_announce(list);
	int r = list->n_announced ? 0 : announce_itself(image, list);

	if (r == 0 && !list->n_announced)
		list->n_announced = 1;
	while (r == 0 && list->n_announced < all) {
		size_t n = all - list->n_announced;

		if (n > SEAM_XRAY_MAX_ADDRESSES)
			n = SEAM_XRAY_MAX_ADDRESSES;
		r = announce_addresses(image, list, list->n_announced - 1, n);
		if (r == 0)
			list->n_announced += n;
	}
	return r;
}

int seam_fdr_announce(struct seam_fdr_images *images)
{
	int r = 0;

	for (size_t i = 0; i < images->list.n; i++) {
		struct seam_fdr_image *image = images->list.items[i];

		for (size_t j = 0; j < image->n_lists && r == 0; j++) {
			struct seam_fdr_list *list = &image->lists[j];

			if (list->n_announced == n_to_announce(list))
				continue;
			r = seam_fdr_announce_claim();
			r = r ?: announce_list(image, list);
		}
	}
	return r;
}

bool seam_fdr_announce_is_child(void)
{
	return is_child;
}

int seam_fdr_announce_again(struct seam_fdr_images *images)
{
	int r = seam_fdr_announce_claim();

	if (r < 0)
		return r;
	for (size_t i = 0; i < images->list.n; i++)
		for (size_t j = 0; j < images->list.items[i]->n_lists; j++)
			images->list.items[i]->lists[j].n_announced = 0;
	is_child = false;
	return 0;
}

int seam_fdr_announce_match(uint32_t trigger, uint32_t n)
{
	const struct seam_xray_match a = {
		.trigger = trigger, .n_functions = n,
	};
	int r = seam_fdr_announce_claim();

	return r ?: send(seam_xray_write_match(bytes, sizeof(bytes), &a));
}

int seam_fdr_announce_named(enum seam_xray_announcement_kind kind,
			    uint32_t number, const char *name)
{
	const struct seam_xray_named a = { number, name };
	int r = seam_fdr_announce_claim();

	return r ?: send(seam_xray_write_named(bytes, sizeof(bytes), kind, &a));
}
