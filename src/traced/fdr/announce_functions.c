/* SPDX-License-Identifier: MIT */
/* announce_functions.c - which function has which id; see its header */
#include "traced/fdr/announce_functions.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "traced/fdr/cyg/cyg_profile.h"
#include "traced/fdr/fdr_process.h"
#include "traced/fdr/record/fdr_thread.h"
#include "traced/fdr/record/system.h"

enum {
	PAUSE_NS = 500 * 1000,
	MAX_WAIT_NS = 10 * 1000 * 1000,	/* of a process, in all */
	LOCK_YIELDS = 100,
	LOCK_PAUSE_NS = 20 * 1000,
};

static struct seam_fdr_process *const process = &seam_fdr_process;

static struct seam_ring_claim claim;
static bool has_claim;
/* 1 while a thread writes to the ring; signal handlers take the lock too */
static _Atomic uint32_t lock;
/* a child whose parent announced: everything is announced again */
static bool is_child;
/* something is left for the next time */
static _Atomic bool is_behind;
/* for a recorder that is slow, or stopped */
static uint64_t waited_ns;
static uint8_t bytes[SEAM_XRAY_MAX_ANNOUNCEMENT] __attribute__((aligned(8)));

/* ---- the ring ---- */

static int claim_ring(void)
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
	return claim_ring() ? NULL : claim.ring.control;
}

void seam_fdr_announce_begin_anew(void)
{
	is_child = is_child || has_claim;
	has_claim = false;
	/* the parent has announced the names, or announces them */
	atomic_store(&is_behind, false);
	waited_ns = 0;
	atomic_store(&lock, 0);
}

bool seam_fdr_announce_is_behind(void)
{
	return atomic_load(&is_behind);
}

/*
 * Not a mutex of libc: a handler takes the lock too, with all signals blocked,
 * and a forked child sets the lock to 0.  The lock is held for one write.  A
 * waiter sleeps soon: a waiter of a real-time priority would keep the holder
 * from its CPU.
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

/* Size 0: it cannot be encoded, and is skipped, so that later ones are sent. */
static int send(const struct seam_xray_announcement *a)
{
	const struct timespec pause = { 0, PAUSE_NS };
	size_t size = seam_xray_write_announcement(bytes, sizeof(bytes), a);
	int r = claim_ring();

	if (r < 0 || !size)
		return r;
	while ((r = try_to_send(bytes, size)) == -EAGAIN &&
	       waited_ns < MAX_WAIT_NS) {
		uint64_t begin = seam_clock_ns();

		seam_ring_wakeup_send(claim.ring.wakeup);
		nanosleep(&pause, NULL);
		waited_ns += seam_clock_ns() - begin;
	}
	return r == -EAGAIN ? -ENOBUFS : r;
}

/* ---- images ---- */

static int announce_image(const struct seam_fdr_image *image, uint32_t number,
			  bool entries_only)
{
	struct seam_xray_announcement a = { .image = {
		.kind = SEAM_XRAY_ANNOUNCED_IMAGE, .image = number,
		.bias = image->bias,
		.build_id_bytes = image->build_id_bytes, .path = image->path,
		.entries_only = entries_only,
	} };

	memcpy(a.image.build_id, image->build_id, image->build_id_bytes);
	return send(&a);
}

static int announce_addresses(const struct seam_fdr_image *image,
			      const struct seam_fdr_list *list, size_t first,
			      size_t n)
{
	static uint64_t addresses[SEAM_XRAY_MAX_ADDRESSES];
	const struct seam_fdr_functions *f = &list->functions;
	const struct seam_xray_announcement a = { .addresses = {
		.kind = SEAM_XRAY_ANNOUNCED_FUNCTIONS, .image = list->number,
		.first_id = f->first_id + (uint32_t)first,
		.n = (uint32_t)n, .link_addresses = addresses,
	} };

	for (size_t i = 0; i < n; i++)
		addresses[i] = f->sleds.functions.items[first + i] -
			       image->bias;
	return send(&a);
}

/* After the last announcement; n_announced counts the image as 1 first. */
static int announce_list(const struct seam_fdr_image *image,
			 struct seam_fdr_list *list)
{
	size_t all = 1 + list->functions.sleds.functions.n;
	int r = 0;

	while (r == 0 && list->n_announced < all) {
		size_t n = all - list->n_announced;

		if (n > SEAM_XRAY_MAX_ADDRESSES)
			n = SEAM_XRAY_MAX_ADDRESSES;
		if (list->n_announced) {
			r = announce_addresses(image, list,
					       list->n_announced - 1, n);
		} else {
			r = announce_image(image, list->number,
					seam_fdr_list_has_entries_only(list));
			n = 1;
		}
		if (r == 0)
			list->n_announced += n;
	}
	return r;
}

static int announce_lists(void)
{
	const struct seam_fdr_images *images = &process->images;
	int r = 0;

	for (size_t i = 0; i < images->list.n; i++) {
		struct seam_fdr_image *image = images->list.items[i];

		for (size_t j = 0; j < image->n_lists && r == 0; j++)
			r = announce_list(image, &image->lists[j]);
	}
	return r;
}

/*
 * ---- functions of -finstrument-functions ----
 *
 * A function is announced by the thread that calls the function first, which
 * may be in a handler: by the address in its image, which is found in a table
 * of all loaded images.  What the ring has no room for then is announced later.
 *
 * The table is made anew when images change, and published as a whole.
 * Handlers may still read the table before, so a table is never freed: that is
 * a page for each dlopen() in a program that is recorded so.
 */

/* Where an image's code is. */
struct cyg_range {
	uint64_t start, end, bias, number;
};

struct cyg_ranges {
	const struct cyg_ranges *before;
	size_t n;
	struct cyg_range list[];
};

static struct cyg_ranges *_Atomic ranges;

static const struct cyg_range *range_of(uint64_t address)
{
	/* acquire: the table is whole; pairs with the release in publish() */
	const struct cyg_ranges *all =
		atomic_load_explicit(&ranges, memory_order_acquire);

	for (size_t i = 0; all && i < all->n; i++)
		if (address >= all->list[i].start && address < all->list[i].end)
			return &all->list[i];
	return NULL;
}

/*
 * Announce function @i, by the thread that calls it first: -EAGAIN where there
 * is no room now.  Code in no image, as of a JIT, is announced by its absolute
 * address; but not on the @is_first_call: constructors of a library are called
 * before the library is in the table.
 */
static int announce_cyg(uint32_t i, bool is_first_call)
{
	struct seam_xray_announcement a = { .addresses = {
		.kind = SEAM_XRAY_ANNOUNCED_FUNCTIONS, .n = 1,
	} };
	_Alignas(8) uint8_t payload[32];
	const struct cyg_range *range;
	uint64_t address;
	int r = -EAGAIN;

	if (!seam_fdr_cyg_function(i, &address, &a.addresses.first_id))
		return 0;
	range = range_of(address);
	if (range) {
		a.addresses.image = (uint32_t)range->number;
		address -= range->bias;
	}
	a.addresses.link_addresses = &address;
	if (has_claim && (range || !is_first_call))
		r = try_to_send(payload, seam_xray_write_announcement(
					payload, sizeof(payload), &a));
	if (r == -EAGAIN)
		atomic_store(&is_behind, true);
	return r;
}

/* Images, with the lock of start.c. */

/* Whether it has functions that call __cyg_profile_func_enter(). */
static bool may_call(const struct seam_fdr_image *image)
{
	return image->is_loaded && image->records_itself;
}

static void add_ranges(struct cyg_ranges *all,
		       const struct seam_fdr_image *image)
{
	for (size_t i = 0; i < image->code.segments.n; i++) {
		const struct seam_fdr_segment *s =
			&image->code.segments.items[i];

		if (s->rights & PROT_EXEC)
			all->list[all->n++] = (struct cyg_range) {
				s->start, s->end, image->bias, image->number,
			};
	}
}

static int publish(struct seam_fdr_images *images)
{
	struct cyg_ranges *all;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < images->list.n; i++)
		if (may_call(images->list.items[i]))
			n += images->list.items[i]->code.segments.n;
	all = calloc(1, sizeof(*all) + n * sizeof(*all->list));
	for (size_t i = 0; all && i < images->list.n; i++) {
		struct seam_fdr_image *image = images->list.items[i];

		if (!may_call(image))
			continue;
		if (!image->number)
			image->number = ++images->n_lists;
		/* without room functions of the image are still announced */
		if (r == 0 && !image->is_announced) {
			r = announce_image(image, image->number, false);
			image->is_announced = r == 0;
		}
		add_ranges(all, image);
	}
	if (!all)
		return -ENOMEM;
	all->before = ranges;
	if (all->before && all->before->n == all->n &&
	    !memcmp(all->before->list, all->list, all->n * sizeof(*all->list)))
		free(all);
	else
		/* release: pairs with the acquire in range_of() */
		atomic_store_explicit(&ranges, all, memory_order_release);
	return r;
}

/* ---- triggers, and names that the program registers ---- */

/* The user learns of triggers that no function is for. */
static int announce_matches(void)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < process->options.n_triggers; i++) {
		const struct seam_xray_announcement a = { .match = {
			.kind = SEAM_XRAY_ANNOUNCED_MATCH, .trigger = i,
			.n_functions = process->n_matches[i],
		} };

		if (!(process->matches_due >> i & 1))
			continue;
		r = send(&a);
		if (r < 0)
			break;
		process->matches_due &= ~(UINT32_C(1) << i);
		process->n_matches[i] = 0;
	}
	return r;
}

static int announce_names(struct seam_fdr_names *names)
{
	int r = 0;

	while (r == 0 && names->n_announced < names->list.n) {
		r = send(&(struct seam_xray_announcement) {
			.named = names->list.items[names->n_announced] });
		names->n_announced += r == 0;
	}
	return r;
}

/* ---- all of it ---- */

static int begin_again(void)
{
	const struct seam_fdr_images *images = &process->images;
	int r = claim_ring();

	if (r < 0)
		return r;
	for (size_t i = 0; i < images->list.n; i++) {
		struct seam_fdr_image *image = images->list.items[i];

		image->is_announced = false;
		for (size_t j = 0; j < image->n_lists; j++)
			image->lists[j].n_announced = 0;
	}
	process->types.n_announced = process->functions.n_announced = 0;
	seam_fdr_cyg_announce_again();
	is_child = false;
	return 0;
}

int seam_fdr_announce_new(void)
{
	int r = 0;

	atomic_store(&is_behind, false);
	if (is_child)
		r = begin_again();
	r = r ?: announce_lists();
	r = r ?: publish(&process->images);
	r = r ?: seam_fdr_cyg_set_announce(announce_cyg);
	r = r ?: announce_names(&process->types);
	r = r ?: announce_names(&process->functions);
	r = r ?: announce_matches();
	if (r < 0)
		atomic_store(&is_behind, true);
	return r;
}

void seam_fdr_announce_rest(void)
{
	waited_ns = 0;
	if (process->address[0] && seam_fdr_announce_is_behind())
		(void)seam_fdr_announce_new();
}
