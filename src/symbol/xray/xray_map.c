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
#include "base/json_read.h"
#include "base/text.h"
#include "symbol/elf/elf_symbols.h"
#include "wire/wire.h"
#include "wire/xray/xray.h"

/* One sled, in the map's order. */
struct map_sled {
	uint32_t id;		/* 0: count the changes of function */
	uint64_t function;
	uint8_t kind;
	const char *name;	/* NULL: not known */
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
	if (sled->name && !f->name) {
		f->name = seam_strings_put(&map->strings, sled->name);
		if (f->name == SEAM_NONE)
			return -ENOMEM;
	}
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
	GElf_Half type;			/* e_type */
	GElf_Shdr section;
	struct seam_bytes bytes;	/* the section's, ours to change */
	struct seam_arena arena;	/* names */
	struct seam_symtab symbols;
};

static void put_u64(struct elf_image *image, uint64_t offset, uint64_t v)
{
	if (image->bytes.size >= 8 && offset <= image->bytes.size - 8)
		seam_wire_put_uint((uint8_t *)(uintptr_t)image->bytes.data +
				   offset, v, 8,
				   seam_elf_endian(&image->file));
}

/* The relocation type "load address + addend" of each machine. */
static bool is_relative(const struct elf_image *image, uint64_t type)
{
	static const struct { int machine; uint32_t type; } types[] = {
		{ EM_X86_64, R_X86_64_RELATIVE },
		{ EM_AARCH64, R_AARCH64_RELATIVE },
		{ EM_PPC64, R_PPC64_RELATIVE },
		{ EM_S390, R_390_RELATIVE },
		{ EM_RISCV, R_RISCV_RELATIVE },
		{ EM_LOONGARCH, R_LARCH_RELATIVE },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(types); i++)
		if (types[i].machine == image->file.machine)
			return types[i].type == type;
	return false;
}

/* S + A and S + A - P, which is all that a map in an object file needs. */
static void relocate_object(struct elf_image *image, const GElf_Rela *rela,
			    Elf_Data *symbols)
{
	GElf_Sym sym;
	uint64_t v;

	if (image->file.machine != EM_X86_64 || !symbols ||
	    !gelf_getsym(symbols, (int)GELF_R_SYM(rela->r_info), &sym))
		return;
	v = sym.st_value + (uint64_t)rela->r_addend;
	if (GELF_R_TYPE(rela->r_info) == R_X86_64_64)
		put_u64(image, rela->r_offset, v);
	else if (GELF_R_TYPE(rela->r_info) == R_X86_64_PC64)
		put_u64(image, rela->r_offset, v - rela->r_offset);
}

static void relocate(struct elf_image *image, Elf_Scn *scn,
		     const GElf_Shdr *shdr, size_t map_index)
{
	bool is_object = image->type == ET_REL;
	Elf_Data *data = elf_getdata(scn, NULL);
	Elf_Scn *link = elf_getscn(image->file.elf, shdr->sh_link);
	Elf_Data *symbols = link ? elf_getdata(link, NULL) : NULL;
	size_t n = shdr->sh_entsize ? shdr->sh_size / shdr->sh_entsize : 0;
	GElf_Rela rela;

	if (!data || (is_object && shdr->sh_info != map_index))
		return;
	for (size_t i = 0; i < n && i <= INT32_MAX; i++) {
		if (!gelf_getrela(data, (int)i, &rela))
			break;
		if (is_object)
			relocate_object(image, &rela, symbols);
		else if (is_relative(image, GELF_R_TYPE(rela.r_info)) &&
			 rela.r_offset >= image->section.sh_addr)
			put_u64(image, rela.r_offset - image->section.sh_addr,
				(uint64_t)rela.r_addend);
	}
}

static void relocate_all(struct elf_image *image, size_t map_index)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(image->file.elf, scn))) {
		GElf_Shdr shdr;

		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_RELA)
			relocate(image, scn, &shdr, map_index);
	}
}

/*
 * The name for people of the function at @addr, in image->arena; NULL where
 * there is none.  A function has many sleds, one after another: it is needed
 * for the first.
 */
static const char *name_at(const struct seam_xray_map *map,
			   struct elf_image *image, uint64_t addr)
{
	const struct seam_symbol *symbol;

	if (map->functions.n &&
	    map->functions.items[map->functions.n - 1].addr == addr)
		return NULL;
	symbol = seam_symtab_find(&image->symbols, addr);
	return symbol && symbol->start == addr ?
	       seam_demangle_with_parameters(&image->arena, symbol->name) :
	       NULL;
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
	if (entry->version < 2 && entry->function == 0 &&
	    image->type != ET_REL)
		return seam_err_set(err, -ENOTSUP, "entry at %#zx: it has no "
				    "address, and relocations of machine=%d "
				    "are not known", offset,
				    image->file.machine);
	if (entry->version == 2)
		sled.function += image->section.sh_addr + offset +
				 FUNCTION_POS;
	sled.name = name_at(map, image, sled.function);
	if (add_sled(map, &sled))
		return seam_err_no_memory(err);
	map->functions.items[map->functions.n - 1].file_offset =
		to_file_offset(image, sled.function);
	return 0;
}

static int read_section(struct seam_xray_map *map, struct elf_image *image,
			struct seam_err *err)
{
	struct seam_cursor c = seam_cursor_over(image->bytes,
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

static int open_image(struct elf_image *image, struct seam_bytes bytes,
		      struct seam_err *err)
{
	GElf_Ehdr header;
	int r = seam_elf_open_bytes(&image->file, bytes, err);

	if (r)
		return r;
	if (gelf_getclass(image->file.elf) != ELFCLASS64)
		return seam_err_set(err, -ENOTSUP, "an ELF file of 32 bits: "
				    "maps of 64-bit programs are read");
	image->type = gelf_getehdr(image->file.elf, &header) ? header.e_type :
		      ET_NONE;
	if (image->type == ET_REL && image->file.machine != EM_X86_64)
		return seam_err_set(err, -ENOTSUP, "an object file of machine="
				    "%d: it must be linked",
				    image->file.machine);
	return 0;
}

static int load_image(struct elf_image *image, struct seam_err *err)
{
	Elf_Scn *scn = seam_elf_section(&image->file, "xray_instr_map",
					&image->section);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;
	void *copy;

	if (!data || !data->d_buf)
		return seam_err_set(err, -ENODATA, "it has no section "
				    "xray_instr_map: not built with "
				    "-fxray-instrument");
	copy = malloc(data->d_size + 1);
	if (!copy)
		return seam_err_no_memory(err);
	memcpy(copy, data->d_buf, data->d_size);
	image->bytes = (struct seam_bytes) { copy, data->d_size };
	relocate_all(image, elf_ndxscn(scn));
	return seam_elf_symbols(&image->symbols, &image->arena, &image->file) ||
	       seam_symtab_sort(&image->symbols) ? seam_err_no_memory(err) : 0;
}

static int read_elf(struct seam_xray_map *map, struct seam_bytes bytes,
		    struct seam_err *err)
{
	struct elf_image image = { 0 };
	int r = open_image(&image, bytes, err);

	if (!r)
		r = load_image(&image, err);
	if (!r)
		r = read_section(map, &image, err);
	free((void *)(uintptr_t)image.bytes.data);
	seam_symtab_fini(&image.symbols);
	seam_arena_fini(&image.arena);
	seam_elf_close(&image.file);
	return r;
}

/* ---- YAML ---- */

enum {
	MAX_IMAGES = 65536,
	MAX_GROWTH = 8,		/* of the file, by names for people */
};

/* A binary: functions from @first_id on are its own. */
struct named_image {
	uint32_t first_id;
	uint32_t path, build_id;	/* strings of the map */
};

struct named_images {
	SEAM_ARRAY(struct named_image) items;	/* by rising first_id */
};

struct yaml_reader {
	yaml_parser_t parser;
	struct seam_xray_map *map;
	struct seam_err *err;
	/* the entry being read */
	struct map_sled sled;
	char *name;		/* owned */
	char *key;		/* owned; NULL before a key */
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

static int set_value(struct yaml_reader *r, const char *text)
{
	uint64_t number = 0;
	int err = 0;

	if (strcmp(r->key, "id") == 0) {
		err = set_number(r, text, SEAM_XRAY_MAX_FUNCTION, &number);
		r->sled.id = (uint32_t)number;
	} else if (strcmp(r->key, "function") == 0) {
		err = set_number(r, text, UINT64_MAX, &r->sled.function);
	} else if (strcmp(r->key, "kind") == 0) {
		err = set_kind(r, text);
	} else if (strcmp(r->key, "function-name") == 0) {
		free(r->name);
		r->name = strdup(text);
		err = r->name ? 0 : seam_err_no_memory(r->err);
	}
	free(r->key);
	r->key = NULL;
	return err;
}

static int end_entry(struct yaml_reader *r)
{
	int err;

	if (r->sled.id == 0 || !r->has_kind)
		return bad(r, "an entry without id or kind");
	r->sled.name = r->name;
	err = add_sled(r->map, &r->sled);
	free(r->name);
	r->name = NULL;
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
		if (r->depth != 2)
			return bad(r, "no list of entries");
		if (r->key)
			return set_value(
				r, (const char *)event->data.scalar.value);
		r->key = strdup((const char *)event->data.scalar.value);
		return r->key ? 0 : seam_err_no_memory(r->err);
	case YAML_ALIAS_EVENT:
		return bad(r, "an alias");
	default:
		return 0;
	}
}

/* The path and the build id of "PATH" BUILD-ID; false: it is no such text. */
static bool take_binary(struct seam_xray_map *map, const char *p,
			const char *end, struct named_image *image)
{
	const char *quote = memrchr(p, '"', (size_t)(end - p));
	char path[4096], build_id[2 * SEAM_BUILD_ID_MAX + 1];
	const char *after = quote ? quote + 1 : p;
	size_t n = (size_t)(end - after);

	if (n > sizeof(build_id) || (n && *after != ' ') ||
	    !seam_json_unquote(path, sizeof(path), (struct seam_bytes) {
			(const uint8_t *)p, (size_t)(after - p) }))
		return false;
	snprintf(build_id, sizeof(build_id), "%.*s", n ? (int)n - 1 : 0,
		 n ? after + 1 : "");
	image->path = seam_strings_put(&map->strings, path);
	image->build_id = seam_strings_put(&map->strings, build_id);
	return true;
}

/* "# image 812 "/usr/lib/libapp.so" 98fe..".  0, also for other comments. */
static int take_image(struct seam_xray_map *map, struct named_images *images,
		      const char *p, const char *end)
{
	static const char begin[] = "# image ";
	size_t n = sizeof(begin) - 1;
	struct named_image image;
	uint64_t id;

	if ((size_t)(end - p) <= n || memcmp(p, begin, n) != 0)
		return 0;
	p = seam_text_number(p + n, end, 10, &id);
	if (!p || p == end || id > SEAM_XRAY_MAX_FUNCTION ||
	    images->items.n == MAX_IMAGES || (images->items.n &&
	     id < images->items.items[images->items.n - 1].first_id))
		return 0;
	image.first_id = (uint32_t)id;
	if (!take_binary(map, p + 1, end, &image))
		return 0;
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
			code = bad(r, r->parser.problem ? r->parser.problem :
				   "not YAML");
			break;
		}
		done = event.type == YAML_STREAM_END_EVENT;
		code = take(r, &event);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&r->parser);
	free(r->name);
	free(r->key);
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

/* Files of other systems, which could be taken for YAML. */
static int refuse(struct seam_bytes bytes, struct seam_err *err)
{
	static const struct {
		const char *magic, *what;
	} others[] = {
		{ "\xcf\xfa\xed\xfe", "a Mach-O file" },
		{ "\xfe\xed\xfa\xcf", "a Mach-O file" },
		{ "\xce\xfa\xed\xfe", "a Mach-O file" },
		{ "\xfe\xed\xfa\xce", "a Mach-O file" },
		{ "\xca\xfe\xba\xbe", "a Mach-O file" },
		{ "MZ", "a Windows program" },
		{ "!<ar", "an archive" },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(others); i++) {
		size_t n = strlen(others[i].magic);

		if (bytes.size >= n &&
		    memcmp(bytes.data, others[i].magic, n) == 0)
			return seam_err_set(err, -ENOTSUP, "%s: maps are read "
					    "from ELF files of 64 bits and "
					    "from YAML", others[i].what);
	}
	return 0;
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
	r = refuse(bytes, err);
	if (r)
		return r;
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

const char *seam_xray_map_program(const struct seam_xray_map *map)
{
	uint32_t image = 0;

	/* one that the program has registered is of no image */
	for (size_t i = 0; !image && i < map->functions.n; i++)
		image = map->functions.items[i].image;
	return seam_strings_get(&map->strings, image);
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

int seam_xray_map_resolve(struct seam_xray_map *map,
			  size_t (*resolve)(void *context, uint64_t offset,
					    struct seam_location *out,
					    size_t cap),
			  void *context)
{
	for (size_t i = 0; i < map->functions.n; i++) {
		struct seam_xray_mapped *f = &map->functions.items[i];
		struct seam_location at[8];
		size_t n = resolve(context, f->file_offset, at,
				   SEAM_ARRAY_SIZE(at));

		/* the last is the function itself, not what it inlined */
		if (n == 0 || n > SEAM_ARRAY_SIZE(at) || !at[n - 1].function)
			continue;
		f->name = seam_strings_put(&map->strings, at[n - 1].function);
		f->file = seam_strings_put(&map->strings, at[n - 1].file);
		f->line = at[n - 1].line;
		if (f->name == SEAM_NONE || f->file == SEAM_NONE)
			return -ENOMEM;
	}
	return 0;
}
