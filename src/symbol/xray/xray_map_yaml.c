/* SPDX-License-Identifier: MIT */
/* xray_map_yaml.c - a map as 'llvm-xray extract' prints it, by libyaml */
#include "symbol/xray/xray_map.h"

#include <errno.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/demangle.h"
#include "base/json_read.h"
#include "base/text.h"
#include "wire/xray/xray.h"

enum {
	MAX_IMAGES = 65536,
	MAX_GROWTH = 8,		/* of the file, by names for people */
};

/* A binary: functions from @first_id on are its own. */
struct named_image {
	uint32_t first_id, path;	/* a string of the map */
};

struct named_images {
	SEAM_ARRAY(struct named_image) items;	/* by rising first_id */
};

struct yaml_reader {
	yaml_parser_t parser;
	struct seam_xray_map *map;
	struct seam_err *err;
	/* the entry being read */
	struct seam_xray_sled sled;
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
	err = seam_xray_map_add(r->map, &r->sled);
	free(r->name);
	r->name = NULL;
	r->sled = (struct seam_xray_sled) { 0 };
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

/* "# image 812 "/usr/lib/libapp.so"".  0, also for other comments. */
static int take_image(struct seam_xray_map *map, struct named_images *images,
		      const char *p, const char *end)
{
	static const char begin[] = "# image ";
	size_t n = sizeof(begin) - 1;
	struct seam_bytes quoted;
	struct named_image image;
	char path[4096];
	uint64_t id;

	if ((size_t)(end - p) <= n || memcmp(p, begin, n) != 0)
		return 0;
	p = seam_text_number(p + n, end, 10, &id);
	if (!p || p == end || id > SEAM_XRAY_MAX_FUNCTION ||
	    images->items.n == MAX_IMAGES || (images->items.n &&
	     id < images->items.items[images->items.n - 1].first_id))
		return 0;
	quoted = (struct seam_bytes) { (const uint8_t *)p + 1,
				       (size_t)(end - p) - 1 };
	if (!seam_json_unquote(path, sizeof(path), quoted))
		return 0;
	image = (struct named_image) { (uint32_t)id,
				 seam_strings_put(&map->strings, path) };
	return image.path != SEAM_NONE &&
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

int seam_xray_map_read_yaml(struct seam_xray_map *map, struct seam_bytes bytes,
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
