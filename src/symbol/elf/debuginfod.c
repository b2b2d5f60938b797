/* SPDX-License-Identifier: MIT */
/* debuginfod.c - the client library, found at run time; see debuginfod.h */
#include "symbol/elf/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "symbol/elf/file_broker.h"

#define LIBRARY "libdebuginfod.so.1"

/* The part of elfutils/debuginfod.h that is used here. */
struct client;
typedef struct client *(*begin_fn)(void);
typedef void (*end_fn)(struct client *client);
typedef int (*find_fn)(struct client *client, const unsigned char *id,
		       int id_size, char **path);

/* Written once under "loaded", then only read. */
static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static begin_fn begin;
static end_fn end;
static find_fn find_debug, find_executable;

static void load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return;
	begin = (begin_fn)dlsym(library, "debuginfod_begin");
	end = (end_fn)dlsym(library, "debuginfod_end");
	find_debug = (find_fn)dlsym(library, "debuginfod_find_debuginfo");
	find_executable = (find_fn)dlsym(library, "debuginfod_find_executable");
}

int seam_debuginfod_open(bool debug, const uint8_t *id, size_t id_size,
			 struct seam_err *err)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct client *client;
	find_fn find;
	int fd;

	if (seam_file_broker)
		return seam_file_broker->download(debug, id, id_size, err);
	if (!urls || !*urls)
		return seam_err_set(err, -EINVAL,
				    "DEBUGINFOD_URLS names no server");
	pthread_once(&loaded, load);
	find = debug ? find_debug : find_executable;
	client = begin && end && find ? begin() : NULL;
	if (!client)
		return seam_err_set(err, -ENOTSUP, "cannot load " LIBRARY
				    " (package libdebuginfod1)");
	fd = find(client, id, (int)id_size, NULL);
	end(client);
	if (fd < 0)
		seam_err_set(err, fd, "debuginfod servers: %s", strerror(-fd));
	return fd;
}
