/* SPDX-License-Identifier: MIT */
/* announce_functions.c - which function has which id; see its header */
#include "target/fdr/announce_functions.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "target/fdr/record/short_lock.h"
#include "target/fdr/record/source_link.h"
#include "target/fdr/record/system.h"

enum {
	PAUSE_NS = 1000 * 1000,
	MAX_PAUSES = 1000,	/* a second, of a call */
};

static struct seam_ring_claim claim;
static bool has_claim;
/* of the thread that writes to the ring, also in a handler */
static _Atomic uint32_t lock;
/* everything, in a child with a ring of its own */
static bool is_child;
static uint8_t bytes[SEAM_XRAY_MAX_ANNOUNCEMENT] __attribute__((aligned(8)));

int seam_fdr_announce_claim(void)
{
	int r;

	if (has_claim)
		return 0;
	r = seam_link_client_claim(&seam_fdr_link, SEAM_FDR_SERVICE_FUNCTIONS,
				   (uint32_t)syscall(SYS_gettid), &claim);
	has_claim = r == 0;
	return r;
}

struct seam_ring_control *seam_fdr_announce_control(void)
{
	return has_claim ? claim.ring.control : NULL;
}

void seam_fdr_announce_begin_child(void)
{
	is_child = is_child || has_claim;
	has_claim = false;
	atomic_store(&lock, 0);
}

/*
 * Write a record, if there is room now.  Signals are blocked while this thread
 * has the lock, so a handler waits only for other threads, and not for long.
 */
static int try_to_send(const void *payload, size_t size)
{
	uint64_t blocked = seam_fdr_block();
	int r = -EAGAIN;

	seam_fdr_short_lock(&lock);
	if (seam_ring_room(&claim.ring) >= size)
		r = seam_ring_write(&claim.ring, PERF_RECORD_SAMPLE, 0,
				    payload, size);
	seam_fdr_short_unlock(&lock);
	seam_fdr_unblock(blocked);
	return r;
}

/* A full ring is read soon: half of it has woken the recorder. */
static int send(size_t size)
{
	const struct timespec pause = { 0, PAUSE_NS };

	for (int i = 0; i < MAX_PAUSES; i++) {
		int r = try_to_send(bytes, size);

		if (r != -EAGAIN)
			return r;
		nanosleep(&pause, NULL);
	}
	return -ENOBUFS;
}

int seam_fdr_announce_at_once(const struct seam_xray_addresses *addresses)
{
	_Alignas(8) uint8_t payload[32];
	size_t size = seam_xray_write_addresses(payload, sizeof(payload),
						addresses);

	return !has_claim ? -EAGAIN : !size ? -EINVAL :
	       try_to_send(payload, size);
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
	size_t size = seam_xray_write_image(bytes, sizeof(bytes), a);

	return size ? send(size) : -EINVAL;
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

static int announce_list(const struct seam_fdr_image *image,
			 const struct seam_fdr_list *list)
{
	size_t n = list->functions.sleds.functions.n;
	struct seam_xray_image a = announced(image, list->number);
	int r;

	a.first_id = list->functions.first_id;
	a.n_functions = (uint32_t)n;
	a.entries_only = seam_fdr_list_has_entries_only(list);
	r = send_image(&a);
	for (size_t at = 0; at < n && r == 0; at += SEAM_XRAY_MAX_ADDRESSES)
		r = announce_addresses(image, list, at,
				       n - at < SEAM_XRAY_MAX_ADDRESSES ?
				       n - at : SEAM_XRAY_MAX_ADDRESSES);
	return r;
}

static bool has_news(const struct seam_fdr_images *images)
{
	for (size_t i = 0; i < images->list.n; i++)
		for (size_t j = 0; j < images->list.items[i]->n_lists; j++)
			if (!images->list.items[i]->lists[j].is_announced)
				return true;
	return false;
}

static int announce_all(struct seam_fdr_images *images)
{
	int r = seam_fdr_announce_claim();

	for (size_t i = 0; i < images->list.n && r == 0; i++) {
		struct seam_fdr_image *image = images->list.items[i];

		for (size_t j = 0; j < image->n_lists && r == 0; j++) {
			struct seam_fdr_list *list = &image->lists[j];

			if (!list->is_announced || is_child)
				r = announce_list(image, list);
			list->is_announced = true;
		}
	}
	is_child = false;
	return r;
}

int seam_fdr_announce(struct seam_fdr_images *images)
{
	return has_news(images) ? announce_all(images) : 0;
}

bool seam_fdr_announce_is_child(void)
{
	return is_child;
}

int seam_fdr_announce_again(struct seam_fdr_images *images)
{
	return is_child ? announce_all(images) : 0;
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
