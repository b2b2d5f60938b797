/* SPDX-License-Identifier: MIT */
/* find_elf.c - try paths in order; the contract is in find_elf.h */
#include "symbol/elf/find_elf.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>
#include <lzma.h>

#include "base/clock.h"
#include "base/text.h"
#include "symbol/elf/build_id.h"

#define DELETED " (deleted)"
#define DEBUG_ROOT "/usr/lib/debug"

enum { ID_TEXT = 2 * SEAM_BUILD_ID_MAX + 1 };

/* -- debuginfod ----------------------------------------------------------- */

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

/* -- the search ----------------------------------------------------------- */

struct elf_search {
	struct seam_elf *found;
	const struct seam_symbols_options *options;
	const uint8_t *id;		/* NULL: none is known */
	size_t id_size;
	char id_text[ID_TEXT];		/* "" when none is known */
	const uint32_t *crc;		/* of the whole file; NULL: not known */
	const struct seam_elf *stripped;	/* not this one; may be NULL */
	bool is_stale;			/* another file is at the path */
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

static struct elf_search search_for(struct seam_elf *found,
				    const struct seam_symbols_options *options,
				    const uint8_t *id, size_t id_size,
				    struct seam_err *why)
{
	struct elf_search s = {
		.found = found, .options = options, .why = why,
		.id = id_size > 0 ? id : NULL, .id_size = id ? id_size : 0,
	};

	if (s.id_size > SEAM_BUILD_ID_MAX)
		s.id_size = SEAM_BUILD_ID_MAX;
	s.id_size = without_padding(s.id, s.id_size);
	if (s.id)
		seam_text_hex(s.id_text, s.id, s.id_size);
	*found = (struct seam_elf) { .fd = -1 };
	return s;
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

/* By .gnu_debuglink a stripped file itself may be found. */
static bool is_stripped_one(const struct elf_search *s)
{
	struct stat a, b;

	return s->stripped && fstat(s->found->fd, &a) == 0 &&
	       fstat(s->stripped->fd, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/*
 * Close what was opened unless it has the recorded build id.  Equal build ids
 * prove more than a CRC and cost nothing; the CRC decides where one is missing.
 */
static bool is_recorded(struct elf_search *s)
{
	char have[ID_TEXT];

	if (is_stripped_one(s)) {
		seam_elf_close(s->found);
		return false;
	}
	if (s->id ? seam_elf_is(s->found, s->id, s->id_size) :
	    !s->crc || crc_is(s->found, *s->crc))
		return true;
	s->is_stale = true;
	if (!s->id)
		seam_err_set(s->why, -ESTALE, "the CRC of '%s' is not the one "
			     "in .gnu_debuglink", s->found->path);
	else if (s->found->build_id_size == 0)
		seam_err_set(s->why, -ESTALE, "the file has no build id, "
			     "the recording has %s", s->id_text);
	else
		seam_err_set(s->why, -ESTALE, "build id is %s, "
			     "the recording has %s",
			     seam_text_hex(have, s->found->build_id,
					   s->found->build_id_size),
			     s->id_text);
	seam_elf_close(s->found);
	return false;
}

/* Open the file at the path that @fmt makes, if it is the one. */
__attribute__((format(printf, 2, 3)))
static bool try(struct elf_search *s, const char *fmt, ...)
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
		return is_recorded(s);
	/* A missing file is expected; other errors may explain the result. */
	if (r != -ENOENT && r != -ENOTDIR)
		seam_err_set(s->why, r, "cannot read '%s': %s",
			     seam_text_copy(shown, sizeof(shown), path,
					    SEAM_TEXT_TERMINAL),
			     err.cause[0]);
	return false;
}

/* Each symfs root, then "", then NULL. */
static const char *root_of(const struct elf_search *s, size_t i)
{
	return i < s->options->n_symfs ? s->options->symfs[i] :
	       i == s->options->n_symfs ? "" : NULL;
}

/* The last attempt. */
static int try_servers(struct elf_search *s, bool debug)
{
	struct seam_err err = { 0 };
	int fd;

	if (!s->options->debuginfod || !s->id)
		return -ENOENT;
	fd = seam_debuginfod_open(debug, s->id, s->id_size, &err);
	if (fd >= 0 && !seam_elf_open_at(s->found, fd, "debuginfod", &err) &&
	    is_recorded(s))
		return 0;
	if (err.n_causes > 0)
		seam_err_set(s->why, err.code, "%s", err.cause[0]);
	return -ENOENT;
}

static bool try_debuginfod_cache(struct elf_search *s, const char *kind)
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

static bool try_perf_cache(struct elf_search *s, const char *kind)
{
	const char *home = getenv("HOME");

	return home && *home &&
	       try(s, "%s/.debug/.build-id/%.2s/%s/%s", home, s->id_text,
		   s->id_text + 2, kind);
}

/* The inode's generation, where the file system has one. */
static bool get_generation(int fd, uint32_t *generation)
{
	int value;

	if (ioctl(fd, FS_IOC_GETVERSION, &value) < 0)
		return false;
	*generation = (uint32_t)value;
	return true;
}

/* Why the open file at the path of @module is another one; NULL: it is not. */
static const char *difference(const struct seam_elf *file,
			      const struct seam_module *module)
{
	uint32_t generation;
	struct stat st;

	if (module->evidence == SEAM_EVIDENCE_CONTENTS)
		return seam_content_id_read(file->fd) == module->content_id ?
		       NULL : "the file at its path has other contents";
	if (module->evidence != SEAM_EVIDENCE_INODE)
		return NULL;
	if (fstat(file->fd, &st) < 0)
		return "the file cannot be examined";
	if (module->ino && module->ino != st.st_ino)
		return "another file is in its place";
	if (module->ino_generation && get_generation(file->fd, &generation) &&
	    generation != (uint32_t)module->ino_generation)
		return "another file is in its place";
	/* not ctime: a link, another name or mode changes it too */
	if (module->mapped_ns && seam_clock_of(st.st_mtim) > module->mapped_ns)
		return "the file was written after it was mapped";
	return NULL;
}

/* What was found is the file of @module; else it is closed. */
static bool is_module(struct elf_search *s, const struct seam_module *module)
{
	const char *why = s->id ? NULL : difference(s->found, module);

	if (!why)
		return true;
	s->is_stale = true;
	seam_err_set(s->why, -ESTALE, "%s", why);
	seam_elf_close(s->found);
	return false;
}

/* Without a root. */
static bool try_here(struct elf_search *s, const struct seam_module *module,
		     int size)
{
	if (!s->id && module->evidence == SEAM_EVIDENCE_NONE) {
		seam_err_set(s->why, -EXDEV, "recorded on another machine, "
			     "without a build id");
		return false;
	}
	return try(s, "%.*s", size, module->path) && is_module(s, module);
}

static const char *bundle_of(const struct seam_symbols_options *options,
			     const struct seam_module *module)
{
	return module->bundle ? module->bundle : options->bundle;
}

/* The copy in the recording, by build id or contents. */
static bool try_bundle(struct elf_search *s, const struct seam_module *module)
{
	const char *bundle = bundle_of(s->options, module);

	if (!bundle)
		return false;
	if (s->id)
		return try(s, "%s/elf/%s", bundle, s->id_text);
	return module->evidence == SEAM_EVIDENCE_CONTENTS &&
	       try(s, "%s/elf/%016" PRIx64, bundle, module->content_id) &&
	       is_module(s, module);
}

/* Under each symfs root, then without a root. */
static bool try_mapped(struct elf_search *s, const struct seam_module *module,
		       int size)
{
	for (size_t i = 0; i < s->options->n_symfs; i++)
		if (try(s, "%s/%.*s", s->options->symfs[i], size,
			module->path))
			return true;
	return try_here(s, module, size);
}

static bool try_path(struct elf_search *s, const struct seam_module *module)
{
	size_t size = strlen(module->path), cut = strlen(DELETED);

	if (module->path[0] != '/' || module->path[1] == '/' ||
	    size > PATH_MAX)
		return false;
	if (try_mapped(s, module, (int)size))
		return true;
	if (size <= cut || strcmp(module->path + size - cut, DELETED) != 0)
		return false;
	/* Another file may be at the path now: an inode is no proof. */
	if (s->id || module->evidence == SEAM_EVIDENCE_CONTENTS)
		return try_mapped(s, module, (int)(size - cut));
	s->is_stale = true;
	seam_err_set(s->why, -ESTALE, "the file was deleted");
	return false;
}

/* This process has a vdso too; with the same build id it is the same. */
static bool try_own_vdso(struct elf_search *s)
{
	uint8_t id[SEAM_BUILD_ID_MAX], *image;
	size_t id_size;
	struct seam_bytes vdso = seam_own_vdso(id, &id_size);

	image = vdso.size ? malloc(vdso.size) : NULL;
	if (!image)
		return false;
	memcpy(image, vdso.data, vdso.size);
	return !seam_elf_open_image(s->found, image, vdso.size, NULL) &&
	       is_recorded(s);
}

int seam_find_elf(struct seam_elf *found,
		  const struct seam_symbols_options *options,
		  const struct seam_module *module, struct seam_err *why)
{
	struct elf_search s = search_for(found, options, module->build_id,
					 module->build_id_size, why);
	bool is_stale;

	seam_err_set(why, -ENOENT, module->path[0] == '/' ?
		     "file not found" : "not a file");
	if (try_path(&s, module))
		return 0;
	is_stale = s.is_stale;
	if (try_bundle(&s, module))
		return 0;
	if (!s.id)
		return is_stale ? -ESTALE : why ? why->code : -ENOENT;
	if (strcmp(module->path, "[vdso]") == 0 && try_own_vdso(&s))
		return 0;
	if (try_perf_cache(&s, "elf") || try_perf_cache(&s, "vdso") ||
	    try_debuginfod_cache(&s, "executable") || !try_servers(&s, false))
		return 0;
	return is_stale ? -ESTALE : why ? why->code : -ENOENT;
}

static bool try_debuglink(struct elf_search *s, const struct seam_elf *file,
			  const char *mapped)
{
	GElf_Word crc = 0;
	const char *name = dwelf_elf_gnu_debuglink(file->elf, &crc);
	const char *slash = file->path ? strrchr(file->path, '/') : NULL;
	int dir = slash ? (int)(slash - file->path) : 0;
	bool found;

	/* A file name, by its definition; a path could lead anywhere. */
	if (!name || !*name || strchr(name, '/'))
		return false;
	s->crc = &crc;
	s->stripped = file;
	found = slash && (try(s, "%.*s/%s", dir, file->path, name) ||
			  try(s, "%.*s/.debug/%s", dir, file->path, name));
	dir = mapped[0] == '/' ? (int)(strrchr(mapped, '/') - mapped) : 0;
	for (size_t i = 0; !found && mapped[0] == '/' && root_of(s, i); i++)
		found = try(s, "%s" DEBUG_ROOT "%.*s/%s", root_of(s, i), dir,
			    mapped, name);
	s->crc = NULL;
	s->stripped = NULL;
	return found;
}

static bool try_debug_root(struct elf_search *s)
{
	for (size_t i = 0; root_of(s, i); i++)
		if (try(s, "%s" DEBUG_ROOT "/.build-id/%.2s/%s.debug",
			root_of(s, i), s->id_text, s->id_text + 2))
			return true;
	return false;
}

int seam_find_debuginfo(struct seam_elf *found,
			const struct seam_symbols_options *options,
			const struct seam_module *module,
			const struct seam_elf *file, struct seam_err *why)
{
	struct elf_search s = search_for(found, options, file->build_id,
					 file->build_id_size, why);
	const char *bundle = bundle_of(options, module);

	if (s.id && bundle &&
	    try(&s, "%s/elf/%s.debug", bundle, s.id_text))
		return 0;
	if (s.id && (try_debug_root(&s) || try_perf_cache(&s, "debug") ||
		     try_debuginfod_cache(&s, "debuginfo")))
		return 0;
	if (try_debuglink(&s, file, module->path))
		return 0;
	return try_servers(&s, true);
}

int seam_find_debugaltlink(struct seam_elf *found,
			   const struct seam_symbols_options *options,
			   const struct seam_elf *file, const char *name,
			   const uint8_t *id, size_t id_size)
{
	struct elf_search s = search_for(found, options, id, id_size, NULL);
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
