/* SPDX-License-Identifier: MIT */
/* java_name.c - descriptors of the JVM to Java; see java_name.h */
#include "symbol/names/java_name.h"

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
