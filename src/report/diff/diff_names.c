/* SPDX-License-Identifier: MIT */
/* diff_names.c - names without what builds add; see diff_names.h */
#include "report/diff/diff_names.h"

#include <ctype.h>
#include <string.h>

static size_t skip_digits_back(const char *name, size_t end)
{
	while (end && isdigit((unsigned char)name[end - 1]))
		end--;
	return end;
}

static bool ends_with(const char *name, size_t end, const char *word)
{
	size_t n = strlen(word);

	return end > n && memcmp(name + end - n, word, n) == 0;
}

/*
 * Without clone suffixes, of which a name may have several.
 * Source: GCC 12, clone_function_name(); LLVM 14, ThinLTO promotion (.llvm.),
 * UniqueInternalLinkageNames (.__uniq.).
 */
static size_t cut_clones(const char *name, size_t end, bool *is_part)
{
	static const struct {
		const char *word;
		bool is_part;
	} suffixes[] = {
		{ ".isra", false }, { ".constprop", false }, { ".part", true },
		{ ".cold", true }, { ".lto_priv", false }, { ".llvm", false },
		{ ".__uniq", false },
	};
	bool again = true;

	while (again) {
		size_t base = skip_digits_back(name, end);

		again = false;
		base = base < end && base && name[base - 1] == '.' ? base - 1 :
		       end;
		for (size_t i = 0; i < SEAM_ARRAY_SIZE(suffixes); i++) {
			if (!ends_with(name, base, suffixes[i].word))
				continue;
			end = base - strlen(suffixes[i].word);
			*is_part |= suffixes[i].is_part;
			again = true;
			break;
		}
	}
	return end;
}

/* Without "::h" and 16 hexadecimal digits. */
static size_t cut_rust_hash(const char *name, size_t end)
{
	if (end <= 19 || memcmp(name + end - 19, "::h", 3) != 0)
		return end;
	for (size_t i = end - 16; i < end; i++)
		if (!isxdigit((unsigned char)name[i]))
			return end;
	return end - 19;
}

/* Without "@VERSION" or "@@VERSION"; "@plt" is another function. */
static size_t cut_version(const char *name, size_t end)
{
	const char *at = memchr(name, '@', end);

	return at && at > name && strncmp(at, "@plt", 4) != 0 ?
	       (size_t)(at - name) : end;
}

/* "#2}" to "}", "$_2" to "$_": compilers number these in order. */
static void cut_numbers(char *name)
{
	char *to = name;

	for (const char *from = name; *from;) {
		bool starts = *from == '#' ||
			      (from > name && from[-1] == '$' && *from == '_');
		size_t n = starts ? strspn(from + 1, "0123456789") : 0;

		if (*from == '#' && n && from[n + 1] == '}') {
			from += n + 1;
			continue;
		}
		*to++ = *from++;
		if (starts && to[-1] == '_')
			from += n;
	}
	*to = '\0';
}

static void native_name(char *name, bool *is_part)
{
	size_t end = cut_version(name, strlen(name));

	end = cut_clones(name, end, is_part);
	name[cut_rust_hash(name, end)] = '\0';
	cut_numbers(name);
}

/* "a/app.lua:12:3", at @place in a name, becomes "app.lua". */
static void cut_place(char *place)
{
	char *slash;

	for (int i = 0; i < 2; i++) {
		size_t end = strlen(place), at = skip_digits_back(place, end);

		if (at < end && at > 1 && place[at - 1] == ':')
			place[at - 1] = '\0';
	}
	slash = strrchr(place, '/');
	if (slash && slash[1])
		memmove(place, slash + 1, strlen(slash + 1) + 1);
}

/*
 * Without what changes when a script is edited, or compiled again.
 * Source: V8 10, LogEventListener's kinds of code; Seam's names of traces,
 * model/guest/guest_names.c.
 */
static void jit_name(char *name)
{
	static const char *const kinds[] = {
		"JS:", "LazyCompile:", "Function:", "Eval:", "Script:",
	};
	size_t digits = strspn(name + strcspn(name, "["), "[0123456789");
	char *place = strstr(name, " started at "), *mark = NULL;

	if (strncmp(name, "TRACE [", 7) == 0 && name[6 + digits] == ']') {
		memmove(name + 5, name + 7 + digits,
			strlen(name + 7 + digits) + 1);
		place = strstr(name, " started at ");
		cut_place(place ? place + strlen(" started at ") : name);
		return;
	}
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(kinds); i++)
		if (strncmp(name, kinds[i], strlen(kinds[i])) == 0)
			mark = name + strlen(kinds[i]);
	if (!mark)
		return;
	if (*mark && strchr("*~^+", *mark))	/* the tier */
		memmove(mark, mark + 1, strlen(mark));
	place = strchr(mark, ' ');
	cut_place(place ? place + 1 : mark);
}

/* "f a/app.lua:12" to "f app.lua"; functions without a name are "app.lua". */
static void guest_name(char *name)
{
	char *space = strchr(name, ' ');

	cut_place(space ? space + 1 : name);
}

const char *seam_diff_function_name(char buf[SEAM_DIFF_NAME], const char *name,
				    enum seam_layer layer, bool *is_part)
{
	size_t n = strlen(name);

	*is_part = false;
	if (n >= SEAM_DIFF_NAME)
		return name;
	memcpy(buf, name, n + 1);
	if (layer == SEAM_LAYER_JIT)
		jit_name(buf);
	else if (layer == SEAM_LAYER_GUEST)
		guest_name(buf);
	else
		native_name(buf, is_part);
	return *buf ? buf : name;
}

/* libpython3.11.so.1.0, libc-2.31.so: without the numbers around ".so". */
static void cut_library_version(char *name)
{
	char *so = strstr(name, ".so"), *at = so;
	bool has_point = false;

	if (!so || so == name || (so[3] && so[3] != '.'))
		return;
	so[3] = '\0';
	for (; at > name && (isdigit((unsigned char)at[-1]) || at[-1] == '.');
	     at--)
		has_point |= at[-1] == '.';
	if (at < so && at > name + 1 && (at[-1] == '-' || has_point))
		memmove(at[-1] == '-' ? at - 1 : at, so, strlen(so) + 1);
}

const char *seam_diff_module_name(char buf[SEAM_DIFF_NAME], const char *path,
				  enum seam_layer layer)
{
	size_t n;
	const char *name = seam_module_name(path, &n);

	if (layer == SEAM_LAYER_JIT || path[0] == '[') {
		/* [kernel.kallsyms], [vdso] */
		snprintf(buf, SEAM_DIFF_NAME, "%s",
			 layer == SEAM_LAYER_JIT ? "[jit]" : path);
		return buf;
	}
	memcpy(buf, name, n);
	buf[n] = '\0';
	cut_library_version(buf);
	return buf;
}
