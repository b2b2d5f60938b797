/* SPDX-License-Identifier: MIT */
/*
 * guest_run.h - a LuaJIT, and samples of what it runs
 *
 * It is loaded as a plugin's is: into no global scope.
 */
#ifndef GUEST_RUN_H
#define GUEST_RUN_H

#include <pthread.h>

#include "traced/guest/guest_adapter.h"
#include "traced/guest/luajit/luajit.h"

extern const char *library_path;
extern void *library;		/* since load_library() */
extern struct seam_lua_api api;	/* of it */

void load_library(void);

/* What the search has found out of it. */
const struct seam_luajit *proven(void);

/* The number of VMs in use whose image's or adapter's name has @name. */
static inline size_t count_vms(const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < SEAM_GUEST_MAX_VMS; i++) {
		const struct seam_guest_slot *slot = &seam_guest_slots[i];

		n += atomic_load(&slot->state) == SEAM_GUEST_USED &&
		     (strstr(slot->name, name) ||
		      strstr(slot->vm->name, name));
	}
	return n;
}

struct seam_guest_sample *new_sample(void);
void free_sample(struct seam_guest_sample *sample);

/* A sample of the calling function. */
void take_here(struct seam_guest_sample *sample);

/* What a thread runs, and the last sample of it. */
struct lua_thread {
	pthread_t thread;
	struct seam_guest_sample *sample;
	struct seam_lua *lua;
	uint64_t vm;
	uint32_t first_line;
	int number;
};

extern __thread struct lua_thread *own;

/* A function for Lua: takes the calling thread's sample. */
int sample_own(struct seam_lua *lua);

/* Run @chunk as "@c.lua" for @own, with sample_own() as its argument. */
void run_chunk(const char *chunk);

#endif /* GUEST_RUN_H */
