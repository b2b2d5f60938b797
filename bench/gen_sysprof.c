/* SPDX-License-Identifier: MIT */
/*
 * gen_sysprof.c - a large sysprof stream for benchmarks
 *
 *	gen_sysprof MEGABYTES FILE [PATHS]
 *
 * A program of 400 Lua functions and 5,000 C functions.  Each sample is on one
 * of PATHS (20,000) paths of 8 to 40 Lua frames below 12 of the host, at one of
 * 64 instructions of the interpreter; the first paths are sampled more often
 * than the last, as in any program.  One sample in ten is in the collector, one
 * in twenty in compiled code.  The same arguments give the same bytes on every
 * machine.
 */
#include "wire/sysprof/sysprof.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	N_LUA = 400,
	N_C = 5000,
	MAX_DEPTH = 40,
	N_HOST = 12,
	N_PLACES = 64,		/* of the interpreter */
};

#define C_BASE UINT64_C(0x55ad5105e000)
#define PROTO_BASE UINT64_C(0x41d5f000)

static uint64_t state = UINT64_C(88172645463325252);

static uint32_t next_random(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % below;
}

static void must(bool holds)
{
	if (!holds) {
		fprintf(stderr, "gen_sysprof: cannot write the file\n");
		exit(1);
	}
}

static void put(struct seam_sysprof_buffer *out,
		const struct seam_sysprof_item *item)
{
	must(seam_sysprof_write(out, item) == 0);
}

static struct seam_bytes text(char buf[64], const char *form, int i)
{
	int n = snprintf(buf, 64, form, i);

	return (struct seam_bytes) { (const uint8_t *)buf, (size_t)n };
}

static void put_symbols(struct seam_sysprof_buffer *out)
{
	struct seam_sysprof_item item = { .kind = SEAM_SYSPROF_SYMTAB };
	char name[64];

	put(out, &item);
	item.kind = SEAM_SYSPROF_SYMBOL_LFUNC;
	for (int i = 0; i < N_LUA; i++) {
		item.lfunc.addr = PROTO_BASE + (uint64_t)i * 96;
		item.lfunc.chunk = text(name, "@/srv/app/module_%d.lua",
					i / 20);
		item.lfunc.line = (uint64_t)(i % 20) * 15;
		put(out, &item);
	}
	item.kind = SEAM_SYSPROF_SYMBOL_CFUNC;
	for (int i = 0; i < N_C; i++) {
		item.cfunc.addr = C_BASE + (uint64_t)i * 192;
		item.cfunc.name = i == N_HOST ? text(name, "lua_pcall", 0) :
				  i < N_PLACES ? text(name, "lj_BC_%d", i) :
				  text(name, "function_%d", i);
		put(out, &item);
	}
	item.kind = SEAM_SYSPROF_SYMTAB_END;
	put(out, &item);
	item.kind = SEAM_SYSPROF_PROFILE;
	put(out, &item);
}

/* The outer paths: a walk, in which neighbours share their outer frames. */
struct path {
	uint16_t functions[MAX_DEPTH];
	int depth;
};

static struct path *make_paths(int n)
{
	struct path *paths = calloc((size_t)n, sizeof(*paths)), at = { 0 };

	must(paths != NULL);
	for (int i = 0; i < n; i++) {
		at.depth -= at.depth < 9 ? 0 : 1 + (int)next_random(8);
		do
			at.functions[at.depth++] =
				(uint16_t)next_random(N_LUA);
		while (at.depth < 8 ||
		       (at.depth < MAX_DEPTH && next_random(4)));
		paths[i] = at;
	}
	return paths;
}

static void put_sample(struct seam_sysprof_buffer *out, const struct path *p)
{
	struct seam_sysprof_frame lua[MAX_DEPTH];
	uint64_t host[N_HOST + 1];
	struct seam_sysprof_item item = {
		.kind = SEAM_SYSPROF_SAMPLE, .lua = lua, .host = host,
		.vmstate = next_random(10) ? SEAM_VMSTATE_LFUNC :
			   SEAM_VMSTATE_GC,
	};

	for (int i = p->depth; i-- > 0;)
		lua[item.n_lua++] = (struct seam_sysprof_frame) {
			.kind = SEAM_SYSPROF_LFUNC,
			.value = PROTO_BASE + p->functions[i] * UINT64_C(96),
			.line = (uint64_t)(p->functions[i] % 20) * 15,
		};
	host[item.n_host++] = C_BASE + next_random(N_PLACES) * UINT64_C(192) +
			      8;
	for (int i = 0; i < N_HOST; i++)
		host[item.n_host++] = C_BASE + (uint64_t)(N_HOST + 97 * i) *
				      192 + 40;
	if (next_random(20) == 0) {
		item.vmstate = SEAM_VMSTATE_TRACE;
		item.trace = (struct seam_sysprof_trace) {
			next_random(500) + 1, lua[0].value, lua[0].line };
	}
	put(out, &item);
}

static void flush(struct seam_sysprof_buffer *out, FILE *file, size_t *written)
{
	must(fwrite(out->items, 1, out->n, file) == out->n);
	*written += out->n;
	out->n = 0;
}

int main(int argc, char **argv)
{
	size_t size = argc > 2 ? strtoul(argv[1], NULL, 10) << 20 : 0;
	int n_paths = argc > 3 ? atoi(argv[3]) : 20000;
	FILE *file = argc > 2 ? fopen(argv[2], "wb") : NULL;
	struct seam_sysprof_buffer out = { 0 };
	size_t written = 0;
	struct path *paths;

	if (!file || n_paths < 1) {
		fprintf(stderr, "usage: gen_sysprof MEGABYTES FILE [PATHS]\n");
		return 2;
	}
	paths = make_paths(n_paths);
	put_symbols(&out);
	while (written < size) {
		uint32_t a = next_random((uint32_t)n_paths);
		uint32_t b = next_random(a + 1);

		put_sample(&out, &paths[next_random(b + 1)]);
		if (out.n > 1 << 20)
			flush(&out, file, &written);
	}
	put(&out, &(struct seam_sysprof_item) { .kind = SEAM_SYSPROF_END });
	flush(&out, file, &written);
	must(fclose(file) == 0);
	free(out.items);
	free(paths);
	return 0;
}
