/* SPDX-License-Identifier: MIT */
/*
 * xray_map.c - functions by id, from ELF and from YAML; see xray_map.h
 *
 * In ELF the section xray_instr_map is not aligned, and in a position-
 * independent program of map version 0 or 1 its addresses are in the
 * relocations, not in the file.  YAML is as 'llvm-xray extract' prints it; it
 * is read by libyaml.
 */
#include "symbol/xray/xray_map.h"

#include <errno.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/demangle.h"
#include "base/json.h"
#include "base/text.h"
#include "symbol/elf/elf_symbols.h"
#include "wire/wire.h"
#include "wire/xray/xray.h"

/* One sled, in the map's order. */
struct map_sled {
	uint32_t id;		/* 0: count the changes of function */
	uint64_t function;
	uint8_t kind;
	uint32_t name;		/* string of the map; 0: not known */
};

static int add_sled(struct seam_xray_map *map, const struct map_sled *sled)
{
	struct seam_xray_mapped *f = map->functions.n ?
		&map->functions.items[map->functions.n - 1] : NULL;
	bool same = f && f->addr == sled->function &&
		    (sled->id == 0 || sled->id == f->id);

	if (!same) {
		uint32_t id = sled->id ? sled->id : f ? f->id + 1 : 1;

		if (!SEAM_ARRAY_ADD(&map->functions, (struct seam_xray_mapped) {
			.id = id, .log_id = id, .addr = sled->function }))
			return -ENOMEM;
		f = &map->functions.items[map->functions.n - 1];
	}
	if (!f->name)
		f->name = sled->name;
	f->kinds |= (uint8_t)(1u << sled->kind);
	return 0;
}

/* ---- ELF ---- */

/* Source: LLVM 14, X86AsmPrinter; bytes after these members are padding. */
enum { SLED_BYTES = 32, FUNCTION_POS = 8 };

struct sled_entry {
	uint64_t function;	/* its start; in version 2 from here on */
	uint8_t kind;		/* enum seam_xray_sled_kind */
	uint8_t version;	/* 0, 1 or 2 */
};

struct elf_image {
	struct seam_elf file;
	GElf_Shdr section;
	uint8_t *bytes;			/* a copy of the section's */
	size_t n_bytes;
	struct seam_arena arena;	/* names */
	struct seam_symtab symbols;
};

/* Have the copy be as the loader leaves the section. */
static int relocate(void *context, uint64_t addr, uint64_t value)
{
	struct elf_image *image = context;
	uint64_t at = addr - image->section.sh_addr;

	if (addr >= image->section.sh_addr && image->n_bytes >= 8 &&
	    at <= image->n_bytes - 8)
		seam_wire_put_uint(image->bytes + at, value, 8,
				   seam_elf_endian(&image->file));
	return 0;
}

/*
 * The name for people of the function at @addr; 0 where there is none,
 * SEAM_NONE without memory.  A function has many sleds, one after another: it
 * is needed for the first.
 */
static uint32_t name_at(struct seam_xray_map *map, struct elf_image *image,
			uint64_t addr)
{
	const struct seam_symbol *symbol;

	if (map->functions.n &&
	    map->functions.items[map->functions.n - 1].addr == addr)
		return 0;
	symbol = seam_symtab_find(&image->symbols, addr);
	return !symbol || symbol->start != addr ? 0 :
	       seam_strings_put(&map->strings, seam_demangle_with_parameters(
					&image->arena, symbol->name));
}

static uint64_t to_file_offset(const struct elf_image *image, uint64_t addr)
{
	const struct seam_segment *s = seam_segment_at(&image->file.segments,
						       addr);

	return s ? addr - s->addr + s->offset : 0;
}

static int add_entry(struct seam_xray_map *map, struct elf_image *image,
		     const struct sled_entry *entry, size_t offset,
		     struct seam_err *err)
{
	struct map_sled sled = {
		.function = entry->function, .kind = entry->kind,
	};

	if (entry->version > 2)
		return seam_err_set(err, -ENOTSUP, "entry at %#zx: version=%u",
				    offset, entry->version);
	if (entry->kind >= SEAM_XRAY_N_SLEDS)
		return seam_err_set(err, -EBADMSG, "entry at %#zx: kind=%u",
				    offset, entry->kind);
	/* no program has a function at 0: it is in a relocation */
	if (entry->version < 2 && entry->function == 0)
		return seam_err_set(err, -ENOTSUP, "entry at %#zx: it has no "
				    "address, and relocations of machine=%d "
				    "are not known", offset,
				    image->file.machine);
	if (entry->version == 2)
		sled.function += image->section.sh_addr + offset +
				 FUNCTION_POS;
	sled.name = name_at(map, image, sled.function);
	if (sled.name == SEAM_NONE || add_sled(map, &sled))
		return seam_err_no_memory(err);
	map->functions.items[map->functions.n - 1].file_offset =
		to_file_offset(image, sled.function);
	return 0;
}

static int read_section(struct seam_xray_map *map, struct elf_image *image,
			struct seam_err *err)
{
	struct seam_cursor c = seam_cursor_make(image->bytes, image->n_bytes,
						seam_elf_endian(&image->file));

	if (c.size % SLED_BYTES)
		return seam_err_set(err, -EBADMSG, "xray_instr_map: %zu bytes "
				    "are no multiple of %d", c.size,
				    SLED_BYTES);
	while (seam_cursor_left(&c) > 0) {
		size_t offset = c.pos;
		struct seam_cursor one = seam_cursor_split(&c, SLED_BYTES);
		struct sled_entry entry;
		int r;

		seam_cursor_skip(&one, FUNCTION_POS);	/* the sled's address */
		entry.function = seam_cursor_u64(&one);
		entry.kind = seam_cursor_u8(&one);
		seam_cursor_u8(&one);			/* always instrument */
		entry.version = seam_cursor_u8(&one);
		r = add_entry(map, image, &entry, offset, err);
		if (r)
			return r;
	}
	return 0;
}

static int load_image(struct elf_image *image, struct seam_err *err)
{
	Elf_Scn *map = seam_elf_section(&image->file, "xray_instr_map",
					&image->section);
	Elf_Data *data = map ? elf_rawdata(map, NULL) : NULL;

	if (!data || !data->d_buf)
		return seam_err_set(err, -ENODATA, "it has no section "
				    "xray_instr_map: not built with "
				    "-fxray-instrument");
	image->n_bytes = data->d_size;
	image->bytes = malloc(image->n_bytes + 1);
	if (!image->bytes)
		return seam_err_no_memory(err);
	memcpy(image->bytes, data->d_buf, image->n_bytes);
	seam_elf_relocated(&image->file, relocate, image);
	return seam_elf_symbols(&image->symbols, &image->arena, &image->file) ||
	       seam_symtab_sort(&image->symbols) ? seam_err_no_memory(err) : 0;
}

static int read_elf(struct seam_xray_map *map, struct seam_bytes bytes,
		    struct seam_err *err)
{
	struct elf_image image = { 0 };
	int r = seam_elf_open_bytes(&image.file, bytes, err);
	GElf_Ehdr header;

	if (!r && gelf_getclass(image.file.elf) != ELFCLASS64)
		r = seam_err_set(err, -ENOTSUP, "an ELF file of 32 bits: maps "
				 "of 64-bit programs are read");
	if (!r && gelf_getehdr(image.file.elf, &header) &&
	    header.e_type == ET_REL)
		r = seam_err_set(err, -ENOTSUP, "an object file: it must be "
				 "linked");
	if (!r)
		r = load_image(&image, err);
	if (!r)
		r = read_section(map, &image, err);
	free(image.bytes);
	seam_symtab_fini(&image.symbols);
	seam_arena_fini(&image.arena);
	seam_elf_close(&image.file);
	return r;
}

/* ---- YAML ---- */

enum { MAX_GROWTH = 8 };	/* of the file, by names for people */

/* A binary: functions from @first_id on are its own. */
struct named_image {
	uint32_t first_id;
	uint32_t path, build_id;	/* strings of the map */
};

struct named_images {
	SEAM_ARRAY(struct named_image) items;	/* by rising first_id */
};

/* What the next scalar of an entry is. */
enum yaml_key {
	KEY,
	ID,
	FUNCTION,
	KIND,
	NAME,
	OTHER,
};

struct yaml_reader {
	yaml_parser_t parser;
	struct seam_xray_map *map;
	struct seam_err *err;
	struct map_sled sled;	/* the entry that is read */
	enum yaml_key next;
	bool has_kind;
	int depth;		/* open sequences and mappings */
};

static const char *const kinds[SEAM_XRAY_N_SLEDS] = {
	[SEAM_XRAY_SLED_ENTER] = "function-enter",
	[SEAM_XRAY_SLED_EXIT] = "function-exit",
	[SEAM_XRAY_SLED_TAIL] = "tail-exit",
	[SEAM_XRAY_SLED_ENTER_ARGS] = "log-args-enter",
	[SEAM_XRAY_SLED_CUSTOM] = "custom-event",
	[SEAM_XRAY_SLED_TYPED] = "typed-event",
};

static int bad(const struct yaml_reader *r, const char *what)
{
	return seam_err_set(r->err, -EBADMSG, "line %zu: %s",
			    r->parser.mark.line + 1, what);
}

static int set_number(const struct yaml_reader *r, const char *text,
		      uint64_t max, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	if (end == text || *end || errno || *text == '-' || *out > max)
		return bad(r, "not a number, or too large");
	return 0;
}

static int set_kind(struct yaml_reader *r, const char *text)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(kinds); i++) {
		if (strcmp(text, kinds[i]) == 0) {
			r->sled.kind = (uint8_t)i;
			r->has_kind = true;
			return 0;
		}
	}
	return bad(r, "unknown kind of sled");
}

static enum yaml_key key_of(const char *text)
{
	static const char *const keys[] = {
		[ID] = "id", [FUNCTION] = "function", [KIND] = "kind",
		[NAME] = "function-name",
	};

	for (enum yaml_key i = ID; i < OTHER; i++)
		if (strcmp(text, keys[i]) == 0)
			return i;
	return OTHER;
}

static int take_scalar(struct yaml_reader *r, const char *text)
{
	enum yaml_key key = r->next;
	uint64_t number = 0;
	int err = 0;

	r->next = key == KEY ? key_of(text) : KEY;
	switch (key) {
	case ID:
		err = set_number(r, text, SEAM_XRAY_MAX_FUNCTION, &number);
		r->sled.id = (uint32_t)number;
		return err;
	case FUNCTION:
		return set_number(r, text, UINT64_MAX, &r->sled.function);
	case KIND:
		return set_kind(r, text);
	case NAME:
		r->sled.name = seam_strings_put(&r->map->strings, text);
		return r->sled.name == SEAM_NONE ? seam_err_no_memory(r->err) :
						   0;
	default:
		return 0;
	}
}

static int end_entry(struct yaml_reader *r)
{
	int err;

	if (r->sled.id == 0 || !r->has_kind)
		return bad(r, "an entry without id or kind");
	err = add_sled(r->map, &r->sled);
	r->sled = (struct map_sled) { 0 };
	r->has_kind = false;
	return err ? seam_err_no_memory(r->err) : 0;
}

/* A sequence of mappings of scalars, and nothing else. */
static int take(struct yaml_reader *r, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SEQUENCE_START_EVENT:
		return r->depth++ == 0 ? 0 : bad(r, "a list in an entry");
	case YAML_MAPPING_START_EVENT:
		return r->depth++ == 1 ? 0 : bad(r, "no list of entries");
	case YAML_SEQUENCE_END_EVENT:
		r->depth--;
		return 0;
	case YAML_MAPPING_END_EVENT:
		r->depth--;
		return end_entry(r);
	case YAML_SCALAR_EVENT:
		return r->depth != 2 ? bad(r, "no list of entries") :
		       take_scalar(r, (const char *)event->data.scalar.value);
	case YAML_ALIAS_EVENT:
		return bad(r, "an alias");
	default:
		return 0;
	}
}

/*
 * "# image 812 "/usr/lib/libapp.so" 98fe..": its first id, path and build id.
 * 0, also for other comments, or -ENOMEM.
 */
static int take_image(struct seam_xray_map *map, struct named_images *images,
		      const char *p, const char *end)
{
	static const char begin[] = "# image ";
	char path[4096], build_id[2 * SEAM_BUILD_ID_MAX + 1];
	size_t n = sizeof(begin) - 1;
	struct named_image image;
	const char *after;
	uint64_t id;

	if ((size_t)(end - p) <= n || memcmp(p, begin, n) != 0)
		return 0;
	p = seam_text_number(p + n, end, 10, &id);
	if (!p || p == end || id > SEAM_XRAY_MAX_FUNCTION ||
	    (images->items.n &&
	     id < images->items.items[images->items.n - 1].first_id))
		return 0;
	p++;
	after = memrchr(p, '"', (size_t)(end - p));
	after = after ? after + 1 : p;
	n = (size_t)(end - after);
	if (n > sizeof(build_id) || (n && *after != ' ') ||
	    !seam_json_unquote(path, sizeof(path), (struct seam_bytes) {
			(const uint8_t *)p, (size_t)(after - p) }))
		return 0;
	snprintf(build_id, sizeof(build_id), "%.*s", n ? (int)n - 1 : 0,
		 n ? after + 1 : "");
	image.first_id = (uint32_t)id;
	image.path = seam_strings_put(&map->strings, path);
	image.build_id = seam_strings_put(&map->strings, build_id);
	return image.path != SEAM_NONE && image.build_id != SEAM_NONE &&
	       SEAM_ARRAY_ADD(&images->items, image) ? 0 : -ENOMEM;
}

/* The comments that begin the file; libyaml skips them. */
static int read_images(struct seam_xray_map *map, struct named_images *images,
		       struct seam_bytes bytes)
{
	const char *p = (const char *)bytes.data, *end = p + bytes.size;
	int r = 0;

	while (!r && p < end && *p == '#') {
		const char *next = memchr(p, '\n', (size_t)(end - p));

		r = take_image(map, images, p, next ? next : end);
		p = next ? next + 1 : end;
	}
	return r;
}

static void set_images(struct seam_xray_map *map,
		       const struct named_images *images)
{
	const struct named_image *items = images->items.items;

	for (size_t i = 0; i < map->functions.n; i++) {
		struct seam_xray_mapped *f = &map->functions.items[i];
		size_t after = SEAM_ARRAY_SEARCH(k, images->items.n,
						 items[k].first_id <= f->id);

		f->image = after ? items[after - 1].path : 0;
		f->build_id = after ? items[after - 1].build_id : 0;
	}
}

static int read_entries(struct yaml_reader *r, struct seam_bytes bytes)
{
	bool done = false;
	int code = 0;

	if (!yaml_parser_initialize(&r->parser))
		return seam_err_no_memory(r->err);
	yaml_parser_set_input_string(&r->parser, bytes.data, bytes.size);
	while (!code && !done) {
		yaml_event_t event;

		if (!yaml_parser_parse(&r->parser, &event)) {
			code = seam_err_set(r->err, -EBADMSG, "no ELF file, "
				"and no YAML: line %zu: %s",
				r->parser.mark.line + 1, r->parser.problem ?
				r->parser.problem : "damaged");
			break;
		}
		done = event.type == YAML_STREAM_END_EVENT;
		code = take(r, &event);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&r->parser);
	return code;
}

/*
 * As the compiler made them: so 'llvm-xray extract' prints names, and so a
 * program writes its own, which has no process to read them for people.
 */
static int demangle_names(struct seam_xray_map *map, size_t bytes_left)
{
	struct seam_arena arena = { 0 };
	int r = 0;

	for (size_t i = 0; !r && i < map->functions.n; i++) {
		struct seam_xray_mapped *f = &map->functions.items[i];
		const char *raw = seam_strings_get(&map->strings, f->name);
		const char *name = seam_demangle_with_parameters(&arena, raw);
		size_t n = strlen(name);

		if (name == raw)
			continue;
		/* a name of a few bytes may become one of 16 KiB */
		if (n > bytes_left)
			break;
		bytes_left -= n;
		f->name = seam_strings_add(&map->strings, name, n);
		if (f->name == SEAM_NONE)
			r = -ENOMEM;
	}
	seam_arena_fini(&arena);
	return r;
}

static int read_yaml(struct seam_xray_map *map, struct seam_bytes bytes,
		     struct seam_err *err)
{
	struct yaml_reader r = { .map = map, .err = err };
	struct named_images images = { 0 };
	int code = read_images(map, &images, bytes) ?
		   seam_err_no_memory(err) : read_entries(&r, bytes);

	if (!code && demangle_names(map, bytes.size * MAX_GROWTH))
		code = seam_err_no_memory(err);
	set_images(map, &images);
	free(images.items.items);
	if (!code && map->functions.n == 0)
		return seam_err_set(err, -ENODATA, "it has no entries");
	return code;
}

/* ---- either ---- */

static int by_id(const void *a, const void *b)
{
	const struct seam_xray_mapped *x = a, *y = b;

	return SEAM_COMPARE(x->id, y->id);
}

int seam_xray_map_read(struct seam_xray_map *map, struct seam_bytes bytes,
		       struct seam_err *err)
{
	int r;

	*map = (struct seam_xray_map) { 0 };
	/* libyaml takes no empty text */
	if (bytes.size == 0)
		return seam_err_set(err, -ENODATA, "it is empty");
	map->from_elf = bytes.size >= 4 &&
			memcmp(bytes.data, "\177ELF", 4) == 0;
	r = map->from_elf ? read_elf(map, bytes, err) :
	    read_yaml(map, bytes, err);
	if (r) {
		seam_xray_map_fini(map);
		return r;
	}
	seam_xray_map_sort(map);
	return 0;
}

void seam_xray_map_sort(struct seam_xray_map *map)
{
	SEAM_ARRAY_SORT(&map->functions, by_id);
}

void seam_xray_map_fini(struct seam_xray_map *map)
{
	free(map->functions.items);
	seam_strings_fini(&map->strings);
	*map = (struct seam_xray_map) { 0 };
}

const struct seam_xray_mapped *
seam_xray_map_find(const struct seam_xray_map *map, uint32_t id)
{
	const struct seam_xray_mapped *f = map->functions.items;
	size_t at = SEAM_ARRAY_SEARCH(i, map->functions.n, f[i].id < id);

	return at < map->functions.n && f[at].id == id ? &f[at] : NULL;
}
