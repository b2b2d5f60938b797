/* SPDX-License-Identifier: MIT */
/* demangle.c - libiberty with a limit; the contract is in demangle.h */
#include "base/demangle.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

/*
 * The D demangler has no callback and so no way out; its back references
 * cannot grow far from a name of this size.
 */
#define D_MAX 512

struct output {
	char text[SEAM_DEMANGLE_MAX];
	size_t size;
	jmp_buf full;
};

bool seam_is_mangled(const char *name)
{
	return name[0] == '_' &&
	       (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D');
}

static void append(const char *text, size_t size, void *context)
{
	struct output *output = context;

	if (size >= sizeof(output->text) - output->size)
		longjmp(output->full, 1);
	memcpy(output->text + output->size, text, size);
	output->size += size;
}

/* The printers pass over what follows a name; this part of it matters. */
static const char *suffix(const char *name)
{
	size_t size = strlen(name);

	return size > 4 && strcmp(name + size - 4, "@plt") == 0 ? "@plt" : "";
}

/*
 * Leaving the printers by longjmp() loses nothing: given a callback, they
 * keep all of their state on the stack.
 */
static bool print(struct output *output, const char *name, int options)
{
	output->size = 0;
	if (setjmp(output->full))
		return false;
	if (rust_demangle_callback(name, DMGL_NO_OPTS, append, output))
		return true;
	output->size = 0;
	if (!cplus_demangle_v3_callback(name, options, append, output))
		return false;
	append(suffix(name), strlen(suffix(name)), output);
	return true;
}

static const char *demangle(struct seam_arena *arena, const char *name,
			    int options)
{
	struct output output;
	const char *copy = NULL;
	char *text;

	if (!seam_is_mangled(name) || strlen(name) > SEAM_DEMANGLE_MAX)
		return name;
	if (name[1] == 'D') {
		text = strlen(name) <= D_MAX ?
		       dlang_demangle(name, DMGL_NO_OPTS) : NULL;
		if (text && strlen(text) <= SEAM_DEMANGLE_MAX)
			copy = seam_arena_text(arena, text, strlen(text));
		free(text);
	} else if (print(&output, name, options) && output.size > 0)
		copy = seam_arena_text(arena, output.text, output.size);
	return copy ? copy : name;
}

const char *seam_demangle(struct seam_arena *arena, const char *name)
{
	return demangle(arena, name, DMGL_NO_OPTS);
}

const char *seam_demangle_with_parameters(struct seam_arena *arena,
					  const char *name)
{
	return demangle(arena, name, DMGL_PARAMS | DMGL_ANSI);
}
