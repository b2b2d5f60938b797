/* SPDX-License-Identifier: MIT */
/* function_names.c - names from symbol tables; see function_names.h */
#include "traced/fdr/sleds/function_names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "wire/elf_notes.h"

/*
 * ---- the debug file: the places of gdb, one after another ----
 *
 * Source: gdb's manual, "Debugging Information in Separate Files"
 */

#define DEBUG_ROOT "/usr/lib/debug"

enum {
	MAX_NOTES = 64,			/* sections; compilers make 3 to 6 */
	MAX_NOTE_BYTES = 1 << 16,
	MAX_LINK_BYTES = NAME_MAX + 16,	/* .gnu_debuglink */
	MAX_ID = 20,
};

struct debug_search {
	struct seam_image_file *debug;
	const struct seam_image_file *file;
	const uint8_t *id;
	size_t id_bytes;
};

/* The size of the id; 0: the section has none. */
static size_t read_id(const struct seam_image_file *debug,
		      const ElfW(Shdr) *section, uint8_t id[MAX_ID])
{
	void *bytes;
	size_t n;

	if (section->sh_size > MAX_NOTE_BYTES ||
	    seam_image_file_read(debug, section->sh_offset, section->sh_size,
				 &bytes) < 0)
		return 0;
	n = seam_build_id_in_notes((struct seam_bytes) { bytes,
							 section->sh_size },
				   id);
	free(bytes);
	return n;
}

/* By sections: eu-strip(1) leaves offsets of the image's file in segments. */
static bool has_id(const struct debug_search *s)
{
	const struct seam_image_file *debug = s->debug;
	uint8_t id[MAX_ID];
	size_t n = 0;

	for (size_t i = 0, n_notes = 0; n == 0 && i < debug->n_sections &&
					n_notes < MAX_NOTES; i++)
		if (debug->sections[i].sh_type == SHT_NOTE) {
			n = read_id(debug, &debug->sections[i], id);
			n_notes++;
		}
	return n == s->id_bytes && !memcmp(id, s->id, n);
}

static bool has_trusted_owner(const struct debug_search *s)
{
	struct stat file, debug;

	return fstat(s->file->fd, &file) == 0 &&
	       fstat(s->debug->fd, &debug) == 0 &&
	       (debug.st_uid == 0 || debug.st_uid == geteuid() ||
		debug.st_uid == file.st_uid);
}

/* Open the file at the path that @format makes, if it is the debug file. */
__attribute__((format(printf, 2, 3)))
static bool try(const struct debug_search *s, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	int n, fd;

	va_start(args, format);
	n = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(path))
		return false;
	fd = seam_file_open_fd(AT_FDCWD, path, 0, NULL);
	if (fd < 0 || seam_image_file_open_fd(s->debug, fd) < 0)
		return false;
	/* .gnu_debuglink may name the file that it is in, without symbols */
	if (has_trusted_owner(s) && has_id(s) &&
	    seam_image_file_section_of(s->debug, SHT_SYMTAB))
		return true;
	seam_image_file_close(s->debug);
	return false;
}

/* The name in .gnu_debuglink, for the caller to free.  NULL: no name. */
static char *read_link_name(const struct seam_image_file *file)
{
	const ElfW(Shdr) *s = NULL;
	void *name;

	for (size_t i = 0; i < file->n_sections && !s; i++)
		if (!strcmp(seam_image_file_section_name(file,
							 &file->sections[i]),
			    ".gnu_debuglink"))
			s = &file->sections[i];
	if (!s || s->sh_type == SHT_NOBITS || s->sh_size > MAX_LINK_BYTES ||
	    seam_image_file_read(file, s->sh_offset, s->sh_size, &name) < 0)
		return NULL;
	/* a file name, by its definition; a path could lead anywhere */
	if (*(char *)name && strlen(name) < s->sh_size && !strchr(name, '/'))
		return name;
	free(name);
	return NULL;
}

static bool try_link(const struct debug_search *s, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	char *name = slash ? read_link_name(s->file) : NULL;
	int n = slash ? (int)(slash - path) : 0;
	bool is_found = name &&
			(try(s, "%.*s/%s", n, path, name) ||
			 try(s, "%.*s/.debug/%s", n, path, name) ||
			 (path[0] == '/' &&
			  try(s, DEBUG_ROOT "%.*s/%s", n, path, name)));

	free(name);
	return is_found;
}

bool seam_image_debug_open(struct seam_image_file *debug,
			   const struct seam_image_file *file, const char *path,
			   const uint8_t *id, size_t id_bytes)
{
	const struct debug_search s = { debug, file, id, id_bytes };
	char hex[2 * MAX_ID + 1];

	*debug = (struct seam_image_file) { .fd = -1 };
	if (id_bytes < 2 || id_bytes > MAX_ID)
		return false;
	seam_text_hex(hex, id, id_bytes);
	return try(&s, DEBUG_ROOT "/.build-id/%.2s/%s.debug", hex, hex + 2) ||
	       try_link(&s, path);
}

/* ---- names ---- */

/* Where a function of the list begins. */
struct function_start {
	uint64_t address;
	uint32_t function;
};

struct search {
	SEAM_ARRAY(struct function_start) places;	/* ascending */
	int (*on_name)(void *context, uint32_t function, const char *name);
	void *context;
};

static int compare_places(const void *left, const void *right)
{
	const struct function_start *a = left, *b = right;

	return SEAM_COMPARE(a->address, b->address) ?:
	       SEAM_COMPARE(a->function, b->function);
}

/* A damaged map may have the same function more than once. */
static int find_function(void *context, uint64_t address, const char *name)
{
	const struct search *s = context;
	size_t i = SEAM_ARRAY_SEARCH(j, s->places.n,
				     s->places.items[j].address < address);
	int r = 0;

	for (; r == 0 && i < s->places.n &&
	       s->places.items[i].address == address; i++)
		r = s->on_name(s->context, s->places.items[i].function, name);
	return r;
}

static int add_address(void *addresses, uint64_t address, const char *name)
{
	struct seam_fdr_addresses *all = addresses;

	(void)name;
	return SEAM_ARRAY_ADD(all, address) ? 0 : -ENOMEM;
}

/* Read symbols of the debug file.  -ENOENT: there is no debug file. */
static int read_debug_symbols(struct seam_image_symbols *symbols,
			      const struct seam_fdr_image *image,
			      const struct seam_image_file *file)
{
	struct seam_image_file debug;
	int r;

	if (!seam_image_debug_open(&debug, file, image->path, image->build_id,
				   image->build_id_bytes))
		return -ENOENT;
	r = seam_image_file_symbols(&debug, SHT_SYMTAB, symbols);
	seam_image_file_close(&debug);
	return r;
}

static int each_function(const struct seam_fdr_image *image,
			 int (*on_function)(void *context, uint64_t address,
					    const char *name),
			 void *context)
{
	struct seam_image_symbols symbols;
	struct seam_image_file file;
	int r = seam_fdr_image_open(image, &file);

	if (r < 0)
		return r;
	r = seam_image_file_symbols(&file, SHT_SYMTAB, &symbols);
	if (r == -ENOENT) {
		r = read_debug_symbols(&symbols, image, &file);
		if (r < 0)
			r = seam_image_file_symbols(&file, SHT_DYNSYM,
						    &symbols);
	}
	seam_image_file_close(&file);
	for (size_t i = 0; i < symbols.n && r == 0; i++)
		if (seam_image_symbol_is_function(&symbols, &symbols.list[i]))
			r = on_function(context, image->bias +
						 symbols.list[i].st_value,
					seam_image_symbol_name(
						&symbols, &symbols.list[i]));
	seam_image_symbols_fini(&symbols);
	return r;
}

int seam_fdr_names_each(const struct seam_fdr_image *image,
			const uint64_t *addresses, size_t n,
			int (*on_name)(void *context, uint32_t function,
				       const char *name),
			void *context)
{
	struct search s = { .on_name = on_name, .context = context };
	int r;

	if (!SEAM_ARRAY_RESERVE(&s.places, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		s.places.items[i] = (struct function_start) {
			addresses[i], (uint32_t)i };
	s.places.n = n;
	SEAM_ARRAY_SORT(&s.places, compare_places);
	r = each_function(image, find_function, &s);
	free(s.places.items);
	return r;
}

int seam_fdr_names_addresses(const struct seam_fdr_image *image,
			     struct seam_fdr_addresses *addresses)
{
	return each_function(image, add_address, addresses);
}
