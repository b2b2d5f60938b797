/* SPDX-License-Identifier: MIT */
/*
 * trace_forger.c - a program that sends what libseam-fdr never sends
 *
 *	trace_forger garbage	chunks and announcements, random and changed;
 *				positions that jump
 *	trace_forger shadow PATH ADDRESS
 *				a call of a function of a file that it has not
 *				mapped
 *	trace_forger names	control characters, quotes and lines in names
 *	trace_forger functions	calls of functions with the names $NAMES
 *	trace_forger hits	triggers that were not met, thousands of them
 *	trace_forger claims	claims of other threads, rings without records,
 *				changed control pages
 *	trace_forger many	calls of as many functions as there are records
 *	trace_forger ids	calls of functions all over the ids
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chunk_made.h"
#include "ring/link/link.h"
#include "base/clock.h"
#include "base/text.h"
#include "wire/xray/trace_service.h"
#include "wire/xray/xray_functions.h"

enum { CALLS, FUNCTIONS, N_SERVICES, CHUNK = SEAM_XRAY_CHUNK_BYTES };

static struct seam_link_client client = { .wakeup_fd = -1 };
static struct seam_ring_claim claims[N_SERVICES];
static struct chunk chunk;
static uint64_t seed = 1;

static void announce_bytes(const uint8_t *bytes, size_t size)
{
	/* a full ring is the recorder's to count */
	(void)seam_ring_write(&claims[FUNCTIONS].ring, PERF_RECORD_SAMPLE, 0,
			      bytes, size);
}

static void announce(const struct seam_xray_announcement *a)
{
	static uint8_t buf[SEAM_XRAY_MAX_ANNOUNCEMENT];

	announce_bytes(buf, seam_xray_write_announcement(buf, sizeof(buf), a));
}

static void announce_image(uint32_t image, const char *path)
{
	announce(&(struct seam_xray_announcement) { .image = {
		.kind = SEAM_XRAY_ANNOUNCED_IMAGE, .image = image,
		.path = path } });
}

static void announce_address(uint32_t image, uint32_t id, uint64_t address)
{
	announce(&(struct seam_xray_announcement) { .addresses = {
		.kind = SEAM_XRAY_ANNOUNCED_FUNCTIONS, .image = image,
		.first_id = id, .n = 1, .link_addresses = &address } });
}

static void announce_type(uint16_t type, const char *name)
{
	announce(&(struct seam_xray_announcement) {
		.named = { SEAM_XRAY_ANNOUNCED_EVENT_TYPE, type, name } });
}

static void begin_chunk(void)
{
	chunk_begin(&chunk, getpid(), getpid(), seam_clock_ns() / 1000, 0, 1);
}

/* Store @n bytes of the chunk, and a head that is @ahead of where it was. */
static void send_chunk(size_t n, uint64_t ahead)
{
	struct seam_ring_control *control = claims[CALLS].ring.control;
	uint64_t head = atomic_load(&control->aux_head);

	for (size_t i = 0; i < n; i++)
		claims[CALLS].aux[(head + i) & (claims[CALLS].aux_bytes - 1)] =
			chunk.bytes[i];
	atomic_store(&control->aux_head, head + ahead);
}

static void send_garbage(void)
{
	begin_chunk();
	while (chunk_random_record(&chunk, &seed))
		;
	for (uint32_t n = chunk_random(&seed) % 64; n > 0; n--)
		chunk.bytes[chunk_random(&seed) % CHUNK] ^=
			(uint8_t)(1 << chunk_random(&seed) % 8);
	if (chunk_random(&seed) % 8 == 0)
		for (size_t i = 0; i < CHUNK; i++)
			chunk.bytes[i] = (uint8_t)chunk_random(&seed);
	send_chunk(CHUNK, chunk_random(&seed) % 64 ? CHUNK :
			  (uint64_t)chunk_random(&seed) << 20 |
			  chunk_random(&seed));
}

static void announce_garbage(void)
{
	uint8_t buf[4096];
	size_t n = seam_xray_write_announcement(buf, sizeof(buf),
		&(struct seam_xray_announcement) { .image = {
			.kind = SEAM_XRAY_ANNOUNCED_IMAGE,
			.image = 1 + chunk_random(&seed) % 99,
			.path = "/bin/true" } });

	for (uint32_t i = chunk_random(&seed) % 4; i > 0; i--)
		buf[chunk_random(&seed) % n] ^=
			(uint8_t)(1 << chunk_random(&seed) % 8);
	announce_bytes(buf, chunk_random(&seed) % 4 ? n :
			    chunk_random(&seed) % (n / 8) * 8);
}

static void forge_garbage(void)
{
	const struct timespec pause = { .tv_nsec = 20000000 };

	for (int i = 0; i < 200; i++) {
		send_garbage();
		announce_garbage();
		if (i % 16 == 0) {
			(void)seam_ring_wakeup_send(&client.wakeup);
			nanosleep(&pause, NULL);
		}
	}
}

static void call(uint32_t function)
{
	chunk_call(&chunk, SEAM_XRAY_ENTRY, function, 1);
	chunk_call(&chunk, SEAM_XRAY_EXIT, function, 1);
}

static void forge_shadow(const char *path, uint64_t address)
{
	announce_image(1, path);
	announce_address(1, 1, address);
	begin_chunk();
	call(1);
	send_chunk(chunk.n, chunk.n);
}

static void forge_names(void)
{
	static const char *const names[] = {
		"\x1b[2J", "a\"b", "a\nb", "- { id: 1 }", "\xff\xfe", "",
	};

	begin_chunk();
	for (uint32_t i = 0; i < 6; i++) {
		announce_image(i + 1, names[i]);
		announce_address(i + 1, i + 1, i);
		announce_type((uint16_t)(i + 1), names[i]);
		call(i + 1);
		chunk_put(&chunk, &(struct seam_xray_record) {
			.state = SEAM_XRAY_AT_TYPED,
			.marker.event_type = (uint16_t)(i + 1),
			.data = { (const uint8_t *)names[i],
				  strlen(names[i]) } });
	}
	send_chunk(chunk.n, chunk.n);
}

/* Functions without an image, named by $NAMES: lines of hexadecimal digits. */
static void forge_function_names(void)
{
	char *line = getenv("NAMES"), *next;
	uint32_t id = 1;

	begin_chunk();
	for (; line && *line; line = next, id++) {
		char name[SEAM_XRAY_MAX_NAME] = "";
		size_t n = strcspn(line, "\n");

		next = line + n + (line[n] != '\0');
		seam_text_unhex((uint8_t *)name, sizeof(name) - 1, line, n);
		announce(&(struct seam_xray_announcement) {
			.named = { SEAM_XRAY_ANNOUNCED_NAME, id, name } });
		call(id);
	}
	send_chunk(chunk.n, chunk.n);
}

static void wake(long ns)
{
	const struct timespec pause = { .tv_nsec = ns };

	(void)seam_ring_wakeup_send(&client.wakeup);
	nanosleep(&pause, NULL);
}

static void forge_hits(void)
{
	for (uint32_t i = 0; i < 20000; i++) {
		announce(&(struct seam_xray_announcement) { .trigger = {
			.kind = SEAM_XRAY_ANNOUNCED_TRIGGER,
			.trigger = chunk_random(&seed) % 3,
			.tid = chunk_random(&seed),
			.number = chunk_random(&seed),
			.tsc = (uint64_t)chunk_random(&seed) << 32,
			.ticks = UINT64_MAX / (1 + i % 9),
			.function = chunk_random(&seed) % 99 } });
		announce(&(struct seam_xray_announcement) { .match = {
			.kind = SEAM_XRAY_ANNOUNCED_MATCH,
			.trigger = chunk_random(&seed) % 3,
			.n_functions = chunk_random(&seed) } });
		if (i % 2000 == 0)
			wake(50000000);
	}
}

/* All that the recorder could read of it, but not its geometry. */
static void spoil(struct seam_ring_claim *claim)
{
	uint8_t *page = (uint8_t *)claim->ring.control;

	for (size_t i = 512; i < sizeof(struct seam_ring_control); i++)
		page[i] = (uint8_t)chunk_random(&seed);
}

static void forge_claims(void)
{
	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < N_SERVICES; i++) {
			struct seam_ring_claim claim;
			uint32_t tid = round % 2 ? (uint32_t)getppid() :
				       round % 3 ? (uint32_t)getpid() :
				       chunk_random(&seed);

			if (seam_link_client_claim(&client, i, tid, &claim))
				continue;
			if (round % 4)
				spoil(&claim);
			if (round % 5 == 0)
				seam_ring_memory_close(&client.memories[i],
						       &claim);
		}
		wake(20000000);
	}
}

static void forge_ids(void)
{
	begin_chunk();
	for (uint32_t id = 1; id < SEAM_XRAY_MAX_FUNCTION; id += 1 << 17)
		call(id);
	call(SEAM_XRAY_MAX_FUNCTION);
	send_chunk(chunk.n, chunk.n);
}

/* Calls of 400,000 functions: 3 MiB of records. */
static void forge_many(void)
{
	enum { N_RANGES = 100 };
	uint64_t addresses[SEAM_XRAY_MAX_ADDRESSES];
	uint32_t id = 1, end = 1;

	for (uint32_t i = 0; i < N_RANGES; i++) {
		for (size_t k = 0; k < SEAM_XRAY_MAX_ADDRESSES; k++)
			addresses[k] = UINT64_MAX - end - k;
		announce(&(struct seam_xray_announcement) { .addresses = {
			.kind = SEAM_XRAY_ANNOUNCED_FUNCTIONS,
			.first_id = end, .n = SEAM_XRAY_MAX_ADDRESSES,
			.link_addresses = addresses } });
		end += SEAM_XRAY_MAX_ADDRESSES;
		if (i % 16 == 15)
			wake(100000000);
	}
	while (id < end) {
		begin_chunk();
		while (id < end &&
		       chunk_call(&chunk, SEAM_XRAY_ENTRY, id, 1))
			id++;
		send_chunk(CHUNK, CHUNK);
	}
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*forge)(void); } modes[] = {
		{ "garbage", forge_garbage }, { "names", forge_names },
		{ "functions", forge_function_names }, { "hits", forge_hits },
		{ "claims", forge_claims }, { "many", forge_many },
		{ "ids", forge_ids },
	};
	const char *address = getenv(SEAM_LINK_VARIABLE);

	if (argc < 2 || !address ||
	    seam_link_client_connect(&client, address, SEAM_TRACE_SERVICES,
				     1000) < 0)
		return 2;
	for (uint32_t i = 0; i < N_SERVICES; i++)
		if (seam_link_client_claim(&client, i, (uint32_t)getpid(),
					   &claims[i]))
			return 3;
	if (strcmp(argv[1], "shadow") == 0 && argc == 4)
		forge_shadow(argv[2], strtoull(argv[3], NULL, 0));
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(modes); i++)
		if (strcmp(argv[1], modes[i].name) == 0)
			modes[i].forge();
	return 0;
}
