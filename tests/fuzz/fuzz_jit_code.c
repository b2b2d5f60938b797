/* SPDX-License-Identifier: MIT */
/*
 * fuzz_jit_code.c - bytes as a program of loads, moves, forks and execs
 *
 * Oracle: a slow replay that keeps an owner for every byte of every process,
 * copied at a fork and emptied at an exec; both must agree for all addresses
 * and times.  So must what the recorder knows, which gets the records one
 * after the other.
 */
#include "record/stacks/live_jit.h"
#include "symbol/jit/jit_code.h"

#include "fuzz.h"
#include "jit_dump.h"

enum { SPACE = 64, N_PROCESSES = 3, MAX_STEPS = 60 };

struct process {
	uint8_t owner[SPACE];		/* 0: nobody */
	uint8_t start[MAX_STEPS + 1];	/* where each code begins */
};

struct moment {
	struct process processes[N_PROCESSES];
};

struct program {
	struct seam_jit_code *jit;
	struct seam_live_jit live;
	struct dump dumps[N_PROCESSES];
	struct moment now, *at;		/* at[t]: as of time t */
	uint8_t sizes[MAX_STEPS + 1], home[MAX_STEPS + 1];
	uint8_t life[MAX_STEPS + 1];	/* of its home when it was loaded */
	uint8_t lives[N_PROCESSES];
	uint8_t n_codes;
};

/* The record at @at of the dump of @pid, as the recorder gets it. */
static void announce(struct program *p, uint8_t pid, size_t at)
{
	struct dump *d = &p->dumps[pid];

	seam_live_jit_add(&p->live, pid + 1, (struct seam_bytes) {
			d->bytes + at, d->size - at });
}

static void move(struct program *p, uint64_t time, uint8_t id, uint8_t to)
{
	struct process *process = &p->now.processes[p->home[id]];

	announce(p, p->home[id], put_move(&p->dumps[p->home[id]], time,
			process->start[id], to, p->sizes[id], id));
	for (size_t i = 0; i < SPACE; i++)
		if (process->owner[i] == id)
			process->owner[i] = 0;
	process->start[id] = to;
	memset(process->owner + to, id, p->sizes[id]);
}

static void load(struct program *p, uint64_t time, uint8_t pid, uint8_t size,
		 uint8_t to)
{
	uint8_t id = ++p->n_codes;
	char name[8];

	p->sizes[id] = size;
	p->home[id] = pid;
	p->life[id] = p->lives[pid];
	snprintf(name, sizeof(name), "%u", id);
	announce(p, pid, put_load(&p->dumps[pid], time, name, to, size, id));
	p->now.processes[pid].start[id] = to;
	memset(p->now.processes[pid].owner + to, id, size);
}

/* Only what a process loaded in this life, and still has, can it move. */
static bool has(const struct program *p, uint8_t id)
{
	const struct process *process = &p->now.processes[p->home[id]];

	return p->life[id] == p->lives[p->home[id]] &&
	       process->owner[process->start[id]] == id;
}

/* One step from four bytes of input. */
static void step(struct program *p, uint64_t time, const uint8_t *in)
{
	uint8_t pid = in[0] / 8 % N_PROCESSES, other = in[1] % N_PROCESSES;
	uint8_t size = (uint8_t)(1 + in[2] % 16);
	uint8_t to = in[3] % (SPACE - 16);

	switch (in[0] % 8) {
	case 0:
		if (pid == other)
			return;
		p->lives[other]++;
		p->now.processes[other] = p->now.processes[pid];
		seam_jit_code_fork(p->jit, pid + 1, other + 1, time);
		seam_live_jit_fork(&p->live, other + 1, pid + 1, time);
		return;
	case 1:
		p->lives[pid]++;
		memset(p->now.processes[pid].owner, 0, SPACE);
		seam_jit_code_exec(p->jit, pid + 1, time);
		seam_live_jit_exec(&p->live, pid + 1, time);
		return;
	case 2:
	case 3:
		if (p->n_codes && has(p, (uint8_t)(1 + in[1] % p->n_codes)))
			move(p, time, (uint8_t)(1 + in[1] % p->n_codes), to);
		return;
	default:
		load(p, time, pid, size, to);
	}
}

static bool is_live(struct program *p, int32_t pid, uint64_t addr,
		    uint64_t time)
{
	struct seam_live_jit_process *of = seam_live_jit_process(&p->live, pid);
	struct seam_unwind_code code;

	return of && seam_live_jit_find(&p->live, of, addr, time, &code);
}

/* Whether the recorder has forgotten no life of a process. */
static bool knows_all(const struct program *p)
{
	for (size_t i = 0; i < N_PROCESSES; i++)
		if (p->lives[i] >= SEAM_LIVE_JIT_MAX_LIVES)
			return false;
	return true;
}

static void compare(struct program *p, uint64_t time)
{
	for (int pid = 0; pid < N_PROCESSES; pid++) {
		const struct process *process = &p->at[time].processes[pid];

		for (uint64_t a = 0; a < SPACE; a++) {
			uint8_t id = process->owner[a];
			struct seam_jit_location l = { .name = "0" };

			if (id && process->owner[process->start[id]] != id)
				id = 0;
			seam_jit_code_find(p->jit, pid + 1, a, time, &l);
			if (atoi(l.name) != id ||
			    (knows_all(p) &&
			     is_live(p, pid + 1, a, time) != (id > 0)))
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct moment at[MAX_STEPS + 2];
	static struct program p;
	size_t n = size / 4 < MAX_STEPS ? size / 4 : MAX_STEPS;

	memset(&p.now, 0, sizeof(p.now));
	p.n_codes = 0;
	memset(p.lives, 0, sizeof(p.lives));
	p.at = at;
	p.jit = seam_jit_code_new();
	for (int i = 0; i < N_PROCESSES; i++) {
		p.dumps[i].size = 0;
		put_header(&p.dumps[i]);
	}
	/* Times begin at 1: 0 stands for "not known". */
	for (size_t i = 0; i < n; i++) {
		step(&p, i + 1, data + 4 * i);
		at[i + 1] = p.now;
	}
	for (int i = 0; i < N_PROCESSES; i++) {
		struct seam_jit_code_options options = { .pid = i + 1 };

		if (seam_jit_code_add_dump(p.jit, dump_bytes(&p.dumps[i]),
					   &options, NULL))
			abort();
	}
	for (size_t i = 1; i <= n; i++)
		compare(&p, i);
	seam_jit_code_free(p.jit);
	seam_live_jit_fini(&p.live);
	return 0;
}
