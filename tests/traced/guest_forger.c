/* SPDX-License-Identifier: MIT */
/*
 * guest_forger.c - a program that writes what no sampler writes
 *
 *	guest_forger garbage	random records, and good ones with changes
 *	guest_forger names	names with control characters, each id
 *	guest_forger weights	samples that are of 2^32-1 ticks
 *	guest_forger kernel	user parts that are kernel addresses
 *	guest_forger note	a message with control characters
 *
 * All of them use the CPU for some time, so that the recorder has samples.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ring/link/link.h"
#include "wire/guest/guest_encode.h"

enum { GUEST, SYMTAB, N_SERVICES, TABLE = 7, MAX_RECORD = 40000 };

struct record {
	uint8_t bytes[MAX_RECORD];
	size_t size;
};

static struct seam_ring_claim claims[N_SERVICES];
static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static void put(struct record *r, const void *bytes, size_t size)
{
	memcpy(r->bytes + r->size, bytes, size);
	r->size += size;
}

static void put64(struct record *r, uint64_t value)
{
	put(r, &value, sizeof(value));
}

/* What comes before the callchain, or the RAW data. */
static void put_fixed(struct record *r)
{
	r->size = 0;
	put64(r, 0);			/* id */
	put64(r, 0x401000);		/* ip */
	put64(r, 0);			/* pid and tid */
	put64(r, seam_clock_ns());
	put64(r, 0);			/* cpu */
	put64(r, UINT64_MAX);		/* period */
}

static void put_raw(struct record *r, const uint8_t *raw, uint32_t n)
{
	static const uint8_t zeroes[8];
	uint32_t size = n + (n % 8 == 4 ? 0 : 8 - (n + 4) % 8);

	put(r, &size, sizeof(size));
	put(r, raw, n);
	put(r, zeroes, size - n);
}

static void write_record(int service, const struct record *r)
{
	seam_ring_write(&claims[service].ring, PERF_RECORD_SAMPLE, 0, r->bytes,
			r->size);
}

static void make_sample(struct record *r, uint32_t id, uint32_t n_ticks,
			const uint64_t *chain, size_t n_chain)
{
	const struct seam_guest_head head = {
		.adapter = SEAM_GUEST_LUAJIT, .table = TABLE, .n_segments = 1,
		.n_ticks = n_ticks,
	};
	const struct seam_guest_segment segment = {
		.join = 0, .n_replaced = 1, .n_frames = 1,
	};
	const struct seam_guest_frame frame =
		seam_guest_frame_make(SEAM_GUEST_FRAME_GUEST, id, 10);
	uint8_t raw[256];

	put_fixed(r);
	put64(r, n_chain);
	put(r, chain, 8 * n_chain);
	put_raw(r, raw, (uint32_t)seam_guest_encode_sample(raw, sizeof(raw),
			&head, &segment, &frame));
}

static const uint64_t user_chain[] = {
	(uint64_t)PERF_CONTEXT_USER, 0x401000, 0x402000,
};

static void write_sample(uint32_t id, uint32_t n_ticks)
{
	static struct record r;

	make_sample(&r, id, n_ticks, user_chain, 3);
	write_record(GUEST, &r);
}

static void make_symbol(struct record *r, uint32_t id, const char *chunk,
			const char *name)
{
	struct seam_guest_symbol s = {
		.adapter = SEAM_GUEST_LUAJIT, .table = TABLE, .id = id,
		.start = id, .n_chunk = (uint16_t)strlen(chunk),
		.n_name = (uint8_t)strlen(name),
	};
	uint8_t raw[SEAM_GUEST_SYMBOL_BYTES];

	memcpy(s.chunk, chunk, s.n_chunk);
	memcpy(s.name, name, s.n_name);
	put_fixed(r);
	put_raw(r, raw, (uint32_t)seam_guest_encode_symbol(raw, &s));
}

static void write_symbol(uint32_t id, const char *chunk, const char *name)
{
	static struct record r;

	make_symbol(&r, id, chunk, name);
	write_record(SYMTAB, &r);
}

/* Bits, sizes and services that are not what they should be. */
static void write_garbage(void)
{
	static struct record r;
	int service = (int)below(N_SERVICES);

	if (below(2))
		make_sample(&r, below(9), 1 + below(3), user_chain, 3);
	else
		make_symbol(&r, below(9), "@a.lua", "f");
	for (uint32_t n = below(4); n > 0; n--)
		r.bytes[below((uint32_t)r.size)] ^= (uint8_t)(1 << below(8));
	if (below(8) == 0)
		r.size = 8 * below((uint32_t)r.size / 8 + 1);
	if (below(500) == 0) {
		for (r.size = 8 * below(4096); below(2) && r.size > 0;)
			r.size -= 8;
		for (size_t i = 0; i < r.size; i++)
			r.bytes[i] = (uint8_t)below(256);
	}
	write_record(service, &r);
}

static void write_names(void)
{
	static const char bad[] = "\033[2J<b>\"';\n\r\\\xff";

	for (uint32_t id = UINT32_MAX - 2; id != 3; id++) {
		if (id)
			write_symbol(id, "@\033[31m</text>.lua", bad);
		if (id)
			write_sample(id, 1);
	}
	/* a trace that starts in itself */
	write_sample(77, 1);
}

static void write_kernel(void)
{
	static const uint64_t chain[] = {
		(uint64_t)PERF_CONTEXT_KERNEL, UINT64_C(0xffffffff81000010),
		(uint64_t)PERF_CONTEXT_USER, UINT64_C(0xffffffff81000020),
		UINT64_C(0x8000000000000000), 0, 1,
	};
	static const uint64_t turned[] = {
		(uint64_t)PERF_CONTEXT_USER, 0x401000,
		(uint64_t)PERF_CONTEXT_KERNEL, UINT64_C(0xffffffff81000010),
	};
	static struct record r;

	make_sample(&r, 1, 1, chain, SEAM_ARRAY_SIZE(chain));
	write_record(GUEST, &r);
	make_sample(&r, 1, 1, turned, SEAM_ARRAY_SIZE(turned));
	write_record(GUEST, &r);
}

static void connect_to_recorder(const char *mode)
{
	const char *address = getenv(SEAM_LINK_VARIABLE);
	static struct seam_link_client c;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	if (address && strcmp(mode, "note") == 0 &&
	    seam_link_client_note(address, "\033[2J<b>\n\rnote") == 0)
		exit(0);
	if (!address ||
	    seam_link_client_connect(&c, address, "guest guest_symtab", 5000)) {
		puts("not connected");
		exit(1);
	}
	for (uint32_t i = 0; i < N_SERVICES; i++)
		if (seam_link_client_claim(&c, i, tid, &claims[i]))
			exit(1);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	bool is_names = strcmp(mode, "names") == 0;
	uint64_t end_ns, next_ns = 0;

	connect_to_recorder(mode);
	end_ns = seam_clock_ns() + 300 * SEAM_NS_PER_MS;
	while (seam_clock_ns() < end_ns) {
		if (seam_clock_ns() < next_ns)
			continue;
		/* six ticks of names in so long are not too many */
		next_ns = seam_clock_ns() +
			  (is_names ? 10 : 1) * SEAM_NS_PER_MS;
		if (strcmp(mode, "garbage") == 0)
			for (int i = 0; i < 50; i++)
				write_garbage();
		else if (is_names)
			write_names();
		else if (strcmp(mode, "weights") == 0)
			write_sample(1, UINT32_MAX);
		else if (strcmp(mode, "kernel") == 0)
			write_kernel();
	}
	return 0;
}
