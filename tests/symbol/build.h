/* SPDX-License-Identifier: MIT */
/*
 * build.h - small programs, built for a test in a folder of its own
 *
 * Each function fails the test that calls it when it cannot do its job.
 */
#ifndef SEAM_TEST_BUILD_H
#define SEAM_TEST_BUILD_H

#include "symbol/symbols.h"

/* Make a folder and go there; remove it with all that is in it. */
int build_enter(void **state);
int build_leave(void **state);

/* The folder, absolute. */
const char *build_folder(void);

/* The absolute path of @name in the folder; of the last eight calls. */
const char *build_path(const char *name);

void build_write(const char *name, const char *text);

/* Run a shell command there; it must succeed. */
__attribute__((format(printf, 1, 2)))
void build_run(const char *fmt, ...);

/* The first line that a shell command prints, without its newline. */
__attribute__((format(printf, 1, 2)))
const char *build_ask(const char *fmt, ...);

/* Whether the shell finds the program @name. */
bool build_has(const char *name);

/* The address of symbol @name of file @name, by nm. */
uint64_t build_symbol(const char *file, const char *name);

/* The offset in @file of the byte at @addr. */
uint64_t build_offset(const char *file, uint64_t addr);

/* The build id of @file as bytes, at most 20; how many. */
size_t build_id(const char *file, uint8_t *id);

struct build_answer {
	size_t n;		/* functions: inlined calls, and their caller */
	char function[256];	/* of the outermost; "none" without one */
	uint32_t line;		/* of the outermost */
	char problem[512];	/* "" when there is none */
};

/* What a new seam_symbols with @options says of @module at @offset. */
struct build_answer
build_resolve_with(const struct seam_symbols_options *options,
		   const struct seam_module *module, uint64_t offset);

/* The same for the address of a file in the folder, without options. */
struct build_answer build_resolve(const char *file, uint64_t addr);

#endif /* SEAM_TEST_BUILD_H */
