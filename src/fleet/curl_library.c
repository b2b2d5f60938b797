/* SPDX-License-Identifier: MIT */
/* curl_library.c - dlopen of libcurl; see curl_library.h */
#include "fleet/curl_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

const struct seam_curl_library *seam_curl_library(struct seam_err *err)
{
	static struct seam_curl_library library;
	static bool is_loaded;
	void *handle;

	if (is_loaded)
		return &library;
	handle = dlopen("libcurl.so.4", RTLD_NOW);
	if (!handle)
		handle = dlopen("libcurl-gnutls.so.4", RTLD_NOW);
	if (!handle) {
		seam_err_set(err, -ENOENT, "libcurl.so.4 is not installed "
			     "(Debian: apt install libcurl4)");
		return NULL;
	}
#define LOAD(name)							\
	library.name = (__typeof__(name) *)dlsym(handle, #name);	\
	if (!library.name) {						\
		seam_err_set(err, -ENOENT, "libcurl has no " #name);	\
		return NULL;						\
	}
	SEAM_CURL_CALLS(LOAD)
	if (library.curl_global_init(CURL_GLOBAL_DEFAULT)) {
		seam_err_set(err, -EIO, "libcurl does not start");
		return NULL;
	}
	is_loaded = true;
	return &library;
}
