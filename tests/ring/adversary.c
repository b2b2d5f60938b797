/* SPDX-License-Identifier: MIT */
/*
 * adversary.c - a program that writes what it likes into its rings
 *
 *	adversary SECONDS
 *
 * A child scribbles over slots, control pages, records and AUX areas, with
 * random and with boundary values, and now and then behaves.  Meanwhile we
 * do all that a recorder does.  Run under AddressSanitizer.  Nothing may
 * crash, nothing may hang, and no record may pass that is not the child's.
 * Prints TAP.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ring/link/owners.h"
#include "ring/producer/claim.h"

static const struct seam_ring_geometry geometry = {
	.n_slots = 4, .data_bytes = 8192, .aux_bytes = 4096,
	.aux_free_running = 1,
};

enum { SAMPLE_ID_AT = 8, SAMPLE_TID_AT = 24, EVENT = 4711, PROCESS = 42 };

static uint64_t next_random(uint64_t *x)
{
	/* xorshift64; Marsaglia 2003 */
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* A value that somebody may have forgotten to think of. */
static uint64_t strange(uint64_t *x)
{
	static const uint64_t values[] = {
		0, 1, 7, 8, 4095, 4096, 4097, 8184, 8192, 8200,
		UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 63,
		UINT64_C(1) << 32, INT64_MAX, UINT32_MAX, 0x80000000,
	};
	uint64_t r = next_random(x);

	if (r % 4 == 0)
		return next_random(x);
	return values[r / 4 % SEAM_ARRAY_SIZE(values)] +
	       (r % 4 == 1 ? next_random(x) % 64 * 8 : 0);
}

static void scribble_control(struct seam_ring_control *c, uint64_t *x)
{
	uint64_t *words = (void *)c;
	_Atomic uint64_t *heads[] = {
		&c->data_head, &c->data_tail, &c->aux_head, &c->aux_tail,
		&c->program.head, &c->program.aux_head,
	};
	uint64_t r = next_random(x);
	_Atomic uint64_t *head = heads[r / 4 % SEAM_ARRAY_SIZE(heads)];

	if (r % 4 == 0)
		words[r / 4 % 512] = strange(x);
	else if (r % 4 == 1)
		*head = strange(x);
	else
		*head += next_random(x) % 1024 * 8;	/* as if it wrote */
}

static void scribble_records(uint8_t *data, uint64_t *x)
{
	uint64_t at = next_random(x) % (geometry.data_bytes / 8) * 8;
	struct seam_ring_header header = {
		.type = (uint32_t)(next_random(x) % 16),
		.size = (uint16_t)(next_random(x) % 5 ?
				   8 + next_random(x) % 32 * 8 : strange(x)),
	};

	memcpy(data + at, &header, sizeof(header));
}

static void scribble_slot(const struct seam_ring_memory *m, uint64_t *x)
{
	uint32_t i = (uint32_t)(next_random(x) % geometry.n_slots);
	uint32_t tid = next_random(x) % 2 ? (uint32_t)getppid() :
		       (uint32_t)strange(x);

	m->slots[i].word = seam_ring_word(
		(enum seam_ring_slot_state)(next_random(x) % 5),
		(uint32_t)next_random(x), tid);
}

/* A record that claims to be from somebody else. */
static void behave(struct seam_ring_memory *m, uint64_t *x)
{
	struct seam_ring_claim claim;
	uint64_t payload[8];

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(payload); i++)
		payload[i] = UINT64_C(0x0000000100000001);
	if (seam_ring_memory_claim(m, (uint32_t)syscall(SYS_gettid), &claim))
		return;
	for (int i = 0; i < 200; i++)
		seam_ring_write(&claim.ring, PERF_RECORD_SAMPLE, 0, payload,
				next_random(x) % sizeof(payload));
	if (next_random(x) % 2)
		seam_ring_memory_close(m, &claim);
}

static void attack(struct seam_ring_memory *m)
{
	uint64_t x = 0x9e3779b97f4a7c15 ^ (uint64_t)getpid();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		uint32_t i = (uint32_t)(next_random(&x) % geometry.n_slots);
		struct seam_ring_control *c = seam_ring_memory_control(m, i);
		uint64_t r = next_random(&x) % 4096;

		if (r == 0)
			scribble_slot(m, &x);
		else if (r < 16)
			behave(m, &x);
		else if (r == 16)
			memset((void *)m->head, (int)x, sizeof(*m->head));
		else if (r < 2048)
			scribble_control(c, &x);
		else
			scribble_records((uint8_t *)c + SEAM_RING_PAGE, &x);
	}
}

static struct {
	uint64_t n_rounds, n_records, n_refused, n_snapshots, n_owners;
	uint64_t n_foreign, n_torn;
} seen;

/* What a recorder would write to its file. */
static void keep(const struct seam_owner *owner, uint8_t *record,
		 const struct seam_ring_header *header)
{
	const struct seam_ring_identity identity = {
		.sample_type = PERF_SAMPLE_IP, .id = EVENT,
		.pid = PROCESS, .tid = owner->tid,
		.min_ns = 1, .max_ns = UINT64_MAX,
	};
	uint64_t id;
	uint32_t who[2];
	uint16_t size;

	memcpy(&size, record + 6, sizeof(size));
	seen.n_torn += size != header->size;
	if (!seam_ring_set_owner(record, header, &identity)) {
		seen.n_refused++;
		return;
	}
	memcpy(who, record + SAMPLE_TID_AT, sizeof(who));
	memcpy(&id, record + SAMPLE_ID_AT, sizeof(id));
	seen.n_records++;
	seen.n_foreign +=
		who[0] != PROCESS || who[1] != owner->tid || id != EVENT;
}

static void drain(struct seam_owner *owner)
{
	uint8_t *record = malloc(UINT16_MAX);	/* ASan watches its end */
	struct seam_ring_header header;
	struct seam_ring_span span;
	size_t pos = 0;

	seam_ring_peek(&owner->ring, &span);
	for (; seam_ring_copy(&span, pos, &header, record); pos += header.size)
		keep(owner, record, &header);
	seam_ring_advance(&owner->ring, &span);
	free(record);
}

static volatile uint8_t sink;	/* so that bytes are really read */

static void read_aux(struct seam_owner *owner)
{
	struct seam_ring_aux_snapshot shot;
	struct seam_ring_span span;

	seam_ring_aux_snapshot_init(&shot, &owner->aux, NULL);
	seam_ring_aux_snapshot_program(&owner->aux, &shot);
	for (size_t i = 0; i < shot.bytes; i++)
		sink += shot.data[i];
	seam_ring_aux_snapshot(&owner->aux, &shot);
	for (size_t i = 0; i < shot.bytes; i++)
		sink += shot.data[i];
	seam_ring_aux_snapshot_fini(&shot);
	seam_ring_aux_peek(&owner->aux, &span);
	for (int part = 0; part < 2; part++)
		for (size_t i = 0; i < span.size[part]; i++)
			sink += span.part[part][i];
	seam_ring_aux_advance(&owner->aux, &span);
	seen.n_snapshots++;
}

/* All rings once. */
static void serve(struct seam_owners *t)
{
	struct seam_owner_counts counts;

	seen.n_owners += seam_owners_scan(t);
	for (uint32_t i = 0; i < t->n_present; i++) {
		struct seam_owner *owner = &t->items[i];

		if (!owner->word)
			continue;
		drain(owner);
		read_aux(owner);
		seam_owners_counts(t, i, &counts);
		if (owner->is_ending)
			seam_owners_release(t, i);
	}
	seen.n_rounds++;
}

int main(int argc, char **argv)
{
	uint64_t end = seam_clock_ns() + SEAM_NS_PER_S *
		       (argc > 1 ? strtoull(argv[1], NULL, 10) : 5);
	struct seam_owners t;
	bool holds;
	pid_t pid;

	if (seam_owners_open(&t, &geometry, NULL) ||
	    seam_owners_prepare(&t, geometry.n_slots, NULL))
		return 1;
	pid = fork();
	if (pid == 0)
		attack(&t.memory);
	while (seam_clock_ns() < end) {
		alarm(60);		/* a round that takes that long hangs */
		serve(&t);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	seam_owners_close(&t);
	holds = seen.n_foreign == 0 && seen.n_torn == 0;
	printf("# %ju rounds, %ju owners came or left, %ju records kept, "
	       "%ju refused, %ju snapshots\n", (uintmax_t)seen.n_rounds,
	       (uintmax_t)seen.n_owners, (uintmax_t)seen.n_records,
	       (uintmax_t)seen.n_refused, (uintmax_t)seen.n_snapshots);
	printf("%sok 1 - no record in another's name, none torn\n",
	       holds ? "" : "not ");
	printf("%sok 2 - the attack took place\n",
	       seen.n_records && seen.n_owners > 1 ? "" : "not ");
	printf("1..2\n");
	return !holds || !seen.n_records;
}
