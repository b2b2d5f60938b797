/* SPDX-License-Identifier: MIT */
/* guest_run.c - a LuaJIT that is loaded as a plugin's is: in no global scope */
#include "guest_run.h"

#include <dlfcn.h>
#include <ucontext.h>

#include "unwind/in_process/self_images.h"
#include "../unit.h"

const char *library_path = "libluajit-5.1.so.2";
void *library;
struct seam_lua_api api;
__thread struct lua_thread *own;

static void *find_symbol(void *image, const char *name)
{
	return dlsym(image, name);
}

void load_library(void)
{
	const char *missing;

	library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail_msg("%s", dlerror());
	assert_true(seam_lua_api_find(&api, find_symbol, library, &missing));
	assert_true(seam_self_refresh() >= 0);
}

struct seam_guest_sample *new_sample(void)
{
	void *pages = mmap(NULL, sizeof(struct seam_guest_sample),
			   PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(pages != MAP_FAILED);
	return pages;
}

void free_sample(struct seam_guest_sample *sample)
{
	munmap(sample, sizeof(*sample));
}

void take_here(struct seam_guest_sample *sample)
{
	ucontext_t context;

	getcontext(&context);
	seam_guest_take(&context, sample);
}

const struct seam_luajit *proven(void)
{
	for (size_t i = 0; i < SEAM_GUEST_MAX_VMS; i++)
		if (atomic_load(&seam_guest_slots[i].state) ==
		    SEAM_GUEST_USED)
			return seam_guest_slots[i].object;
	fail_msg("no virtual machine is in use");
	return NULL;
}

int sample_own(struct seam_lua *lua)
{
	(void)lua;
	take_here(own->sample);
	own->vm = own->sample->head.vm;
	own->first_line = own->sample->n_frames ?
			  own->sample->origins[0].first_line : 0;
	return 0;
}

void run_chunk(const char *chunk)
{
	struct seam_lua *lua = api.newstate();

	api.openlibs(lua);
	assert_int_equal(api.loadbuffer(lua, chunk, strlen(chunk), "@c.lua"),
			 0);
	api.pushcclosure(lua, sample_own, 0);
	assert_int_equal(api.pcall(lua, 1, 0, 0), 0);
	api.close(lua);
}
