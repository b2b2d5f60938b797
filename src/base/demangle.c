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

static bool is_mangled(const char *name)
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

	if (!is_mangled(name) || strlen(name) > SEAM_DEMANGLE_MAX)
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

/* -- the JVM ------------------------------------------------------------- */

struct text {
	char *buf;
	size_t n, cap;		/* n may pass cap: then it did not fit */
};

static void put(struct text *t, const char *s, size_t size)
{
	if (t->n + size < t->cap)
		memcpy(t->buf + t->n, s, size);
	t->n += size;
}

/* "java/util/Arrays;" with dots.  What follows the ';', or NULL. */
static const char *put_class(struct text *t, const char *s)
{
	for (; *s && *s != ';' && *s != '('; s++)
		put(t, *s == '/' ? "." : s, 1);
	return *s == ';' ? s + 1 : NULL;
}

static const char *base_type(char c)
{
	switch (c) {
	case 'B': return "byte";
	case 'C': return "char";
	case 'D': return "double";
	case 'F': return "float";
	case 'I': return "int";
	case 'J': return "long";
	case 'S': return "short";
	case 'Z': return "boolean";
	default: return NULL;
	}
}

/* One type of a descriptor.  What follows it, or NULL. */
static const char *put_type(struct text *t, const char *s)
{
	size_t n_arrays = strspn(s, "[");
	const char *base = base_type(s[n_arrays]);

	s += n_arrays;
	if (base)
		put(t, base, strlen(base));
	if (*s == 'L')
		s = put_class(t, s + 1);
	else
		s = base ? s + 1 : NULL;
	while (s && n_arrays--)
		put(t, "[]", 2);
	return s;
}

bool seam_java_name(const char *name, char *buf, size_t cap)
{
	struct text t = { .buf = buf, .cap = cap };
	const char *s, *method;

	if (*name != 'L' || !(s = put_class(&t, name + 1)))
		return false;
	method = s;
	s += strcspn(s, "(;/");
	if (*s != '(' || s == method)
		return false;
	put(&t, ".", 1);
	put(&t, method, (size_t)(s - method) + 1);
	for (s++; *s != ')'; ) {
		if (s[-1] != '(')
			put(&t, ", ", 2);
		s = put_type(&t, s);
		if (!s)
			return false;
	}
	put(&t, ")", 1);
	if (t.n >= cap)
		return false;
	buf[t.n] = '\0';
	return true;
}
