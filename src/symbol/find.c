/* SPDX-License-Identifier: MIT */
/* find.c - candidates one after the other; the contract is in find.h */
#include "symbol/find.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>
#include <lzma.h>

#include "base/text.h"
#include "symbol/debuginfod.h"

#define DELETED " (deleted)"
#define DEBUG_ROOT "/usr/lib/debug"

/* The vdso has one or two pages; this is far more than any machine's. */
#define VDSO_MAX (64 * 1024)

enum { ID_TEXT = 2 * SEAM_BUILD_ID_MAX + 1 };

struct search {
	struct seam_elf *found;
	const struct seam_symbols_options *options;
	const uint8_t *id;		/* NULL: none is known */
	size_t id_size;
	char id_text[ID_TEXT];		/* "" when none is known */
	struct seam_err *why;
};

/*
 * Old recordings, and those of simpleperf, pad ids with zeros to 20 bytes:
 * MD5 has 16, lld's fast hash 8, a number given to the linker any.
 */
static size_t without_padding(const uint8_t *id, size_t size)
{
	static const uint8_t zeros[4];

	if (!id || size != SEAM_BUILD_ID_MAX)
		return size;
	while (size > sizeof(zeros) &&
	       memcmp(id + size - sizeof(zeros), zeros, sizeof(zeros)) == 0)
		size -= sizeof(zeros);
	return size;
}

static struct search search_for(struct seam_elf *found,
				const struct seam_symbols_options *options,
				const uint8_t *id, size_t id_size,
				struct seam_err *why)
{
	struct search s = {
		.found = found, .options = options, .why = why,
		.id = id_size > 0 ? id : NULL, .id_size = id ? id_size : 0,
	};

	if (s.id_size > SEAM_BUILD_ID_MAX)
		s.id_size = SEAM_BUILD_ID_MAX;
	s.id_size = without_padding(s.id, s.id_size);
	if (s.id)
		seam_build_id_text(s.id_text, s.id, s.id_size);
	*found = (struct seam_elf) { .fd = -1 };
	return s;
}

/* Close what was opened unless it carries the recorded build id. */
static bool prove(struct search *s)
{
	char have[ID_TEXT];

	if (!s->id || seam_elf_is(s->found, s->id, s->id_size))
		return true;
	if (s->found->build_id_size == 0)
		seam_err_set(s->why, -ESTALE, "the file has no build id, "
			     "the recording has %s", s->id_text);
	else
		seam_err_set(s->why, -ESTALE, "build id is %s, "
			     "the recording has %s",
			     seam_build_id_text(have, s->found->build_id,
						s->found->build_id_size),
			     s->id_text);
	seam_elf_close(s->found);
	return false;
}

/* Whether the file at the path that @fmt makes is the one. */
__attribute__((format(printf, 2, 3)))
static bool try(struct search *s, const char *fmt, ...)
{
	char path[PATH_MAX], shown[256];
	struct seam_err err = { 0 };
	va_list args;
	int n, r;

	va_start(args, fmt);
	n = vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(path))
		return false;
	r = seam_elf_open(s->found, path, &err);
	if (!r)
		return prove(s);
	/* That a place has no file is no news; the rest may explain it. */
	if (r != -ENOENT && r != -ENOTDIR)
		seam_err_set(s->why, r, "cannot read '%s': %s",
			     seam_text_copy(shown, sizeof(shown), path,
					    SEAM_TEXT_TERMINAL),
			     err.cause[0]);
	return false;
}

/* The last look before the search fails. */
static int try_servers(struct search *s, bool debug)
{
	struct seam_err err = { 0 };
	int fd;

	if (!s->options->debuginfod || !s->id)
		return -ENOENT;
	fd = seam_debuginfod_open(debug, s->id, s->id_size, &err);
	if (fd >= 0 && !seam_elf_open_at(s->found, fd, "debuginfod", &err) &&
	    prove(s))
		return 0;
	if (err.n_causes > 0)
		seam_err_set(s->why, err.code, "%s", err.cause[0]);
	return -ENOENT;
}

static bool try_debuginfod_cache(struct search *s, const char *kind)
{
	const char *path = getenv("DEBUGINFOD_CACHE_PATH");
	const char *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");

	if (path && *path && try(s, "%s/%s/%s", path, s->id_text, kind))
		return true;
	if (xdg && *xdg &&
	    try(s, "%s/debuginfod_client/%s/%s", xdg, s->id_text, kind))
		return true;
	return home && *home && try(s, "%s/.cache/debuginfod_client/%s/%s",
				    home, s->id_text, kind);
}

static bool try_perf_cache(struct search *s, const char *kind)
{
	const char *home = getenv("HOME");

	return home && *home &&
	       try(s, "%s/.debug/.build-id/%.2s/%s/%s", home, s->id_text,
		   s->id_text + 2, kind);
}

/* Under each symfs root, then as it is. */
static bool try_mapped(struct search *s, const char *path, int size)
{
	for (size_t i = 0; i < s->options->n_symfs; i++)
		if (try(s, "%s/%.*s", s->options->symfs[i], size, path))
			return true;
	return try(s, "%.*s", size, path);
}

static bool try_path(struct search *s, const char *path)
{
	size_t size = strlen(path), cut = strlen(DELETED);

	if (path[0] != '/' || path[1] == '/' || size > PATH_MAX)
		return false;
	if (try_mapped(s, path, (int)size))
		return true;
	/* Something else may be at the path now: only a build id can tell. */
	return s->id && size > cut &&
	       strcmp(path + size - cut, DELETED) == 0 &&
	       try_mapped(s, path, (int)(size - cut));
}

/* This process has a vdso too; with the same build id it is the same. */
static bool try_own_vdso(struct search *s)
{
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	uint8_t *image = vdso ? malloc(VDSO_MAX) : NULL;
	struct seam_err err = { 0 };
	long page = sysconf(_SC_PAGESIZE);
	size_t size = 0;
	int fds[2];

	if (!image)
		return false;
	if (pipe(fds) < 0) {
		free(image);
		return false;
	}
	/* write() tells where the mapping ends, where a load would crash. */
	while (page > 0 && size + (size_t)page <= VDSO_MAX &&
	       write(fds[1], (const uint8_t *)vdso + size, (size_t)page) ==
	       page && read(fds[0], image + size, (size_t)page) == page)
		size += (size_t)page;
	close(fds[0]);
	close(fds[1]);
	return !seam_elf_open_image(s->found, image, size, &err) && prove(s);
}

int seam_find_module(struct seam_elf *found,
		     const struct seam_symbols_options *options,
		     const struct seam_module *module, struct seam_err *why)
{
	struct search s = search_for(found, options, module->build_id,
				     module->build_id_size, why);

	seam_err_set(why, -ENOENT, module->path[0] == '/' ?
		     "file not found" : "not a file");
	if (s.id && options->bundle &&
	    try(&s, "%s/elf/%s", options->bundle, s.id_text))
		return 0;
	if (try_path(&s, module->path))
		return 0;
	if (!s.id)
		return why ? why->code : -ENOENT;
	if (strcmp(module->path, "[vdso]") == 0 && try_own_vdso(&s))
		return 0;
	if (try_perf_cache(&s, "elf") || try_perf_cache(&s, "vdso") ||
	    try_debuginfod_cache(&s, "executable") || !try_servers(&s, false))
		return 0;
	return why ? why->code : -ENOENT;
}

/* The CRC of .gnu_debuglink covers the whole file. */
static bool crc_is(const struct seam_elf *file, uint32_t expected)
{
	uint8_t *block = malloc(64 * 1024);
	uint32_t crc = 0;
	off_t pos = 0;
	ssize_t n = 0;

	while (block && (n = pread(file->fd, block, 64 * 1024, pos)) > 0) {
		crc = lzma_crc32(block, (size_t)n, crc);
		pos += n;
	}
	free(block);
	return block && n == 0 && crc == expected;
}

/*
 * One place for the file that .gnu_debuglink names.  Equal build ids say more
 * than a CRC and cost nothing; the CRC decides where one is missing.
 */
__attribute__((format(printf, 3, 4)))
static bool try_link(struct search *s, uint32_t crc, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(path) || !try(s, "%s", path))
		return false;
	if (s->id || crc_is(s->found, crc))
		return true;
	seam_err_set(s->why, -ESTALE, "the CRC of '%s' is not the one in "
		     ".gnu_debuglink", path);
	seam_elf_close(s->found);
	return false;
}

static bool try_debuglink(struct search *s, const struct seam_elf *file,
			  const char *mapped)
{
	GElf_Word crc;
	const char *name = dwelf_elf_gnu_debuglink(file->elf, &crc);
	const char *slash = file->path ? strrchr(file->path, '/') : NULL;
	int dir = slash ? (int)(slash - file->path) : 0;
	const char *end = strrchr(mapped, '/');

	/* A file name, by its definition; a path could lead anywhere. */
	if (!name || !*name || strchr(name, '/'))
		return false;
	if (slash && (try_link(s, crc, "%.*s/%s", dir, file->path, name) ||
		      try_link(s, crc, "%.*s/.debug/%s", dir, file->path,
			       name)))
		return true;
	if (mapped[0] != '/' || !end)
		return false;
	dir = (int)(end - mapped);
	for (size_t i = 0; i < s->options->n_symfs; i++)
		if (try_link(s, crc, "%s" DEBUG_ROOT "%.*s/%s",
			     s->options->symfs[i], dir, mapped, name))
			return true;
	return try_link(s, crc, DEBUG_ROOT "%.*s/%s", dir, mapped, name);
}

static bool try_debug_root(struct search *s)
{
	for (size_t i = 0; i < s->options->n_symfs; i++)
		if (try(s, "%s" DEBUG_ROOT "/.build-id/%.2s/%s.debug",
			s->options->symfs[i], s->id_text, s->id_text + 2))
			return true;
	return try(s, DEBUG_ROOT "/.build-id/%.2s/%s.debug", s->id_text,
		   s->id_text + 2);
}

int seam_find_debug(struct seam_elf *found,
		    const struct seam_symbols_options *options,
		    const struct seam_module *module,
		    const struct seam_elf *file, struct seam_err *why)
{
	struct search s = search_for(found, options, file->build_id,
				     file->build_id_size, why);

	if (s.id && options->bundle &&
	    try(&s, "%s/elf/%s.debug", options->bundle, s.id_text))
		return 0;
	if (s.id && (try_debug_root(&s) || try_perf_cache(&s, "debug") ||
		     try_debuginfod_cache(&s, "debuginfo")))
		return 0;
	if (try_debuglink(&s, file, module->path))
		return 0;
	return try_servers(&s, true);
}

int seam_find_alt(struct seam_elf *found,
		  const struct seam_symbols_options *options,
		  const struct seam_elf *file, const char *name,
		  const uint8_t *id, size_t id_size)
{
	struct search s = search_for(found, options, id, id_size, NULL);
	const char *slash = file->path ? strrchr(file->path, '/') : NULL;

	if (!s.id)
		return -ENOENT;
	if (try_debug_root(&s) || try_debuginfod_cache(&s, "debuginfo"))
		return 0;
	if (name[0] == '/')
		return try(&s, "%s", name) ? 0 : -ENOENT;
	return slash && try(&s, "%.*s/%s", (int)(slash - file->path),
			    file->path, name) ? 0 : -ENOENT;
}
