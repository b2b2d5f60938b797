/* SPDX-License-Identifier: MIT */
/*
 * curl_library.h - libcurl, loaded when a request is made
 *
 * No command but those of a fleet needs it, and it brings twenty libraries.
 */
#pragma once

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "base/err.h"

#define SEAM_CURL_CALLS(ROW)						\
	ROW(curl_global_init) ROW(curl_easy_init) ROW(curl_easy_setopt)	\
	ROW(curl_easy_perform) ROW(curl_easy_getinfo)			\
	ROW(curl_easy_cleanup) ROW(curl_easy_strerror)			\
	ROW(curl_slist_append) ROW(curl_slist_free_all)

struct seam_curl_library {
#define MEMBER(name) __typeof__(name) *name;
	SEAM_CURL_CALLS(MEMBER)
#undef MEMBER
};

/* The functions; NULL with the reason, and which package has them. */
const struct seam_curl_library *seam_curl_library(struct seam_err *err);
