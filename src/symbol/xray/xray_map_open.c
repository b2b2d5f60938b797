/* SPDX-License-Identifier: MIT */
/*
 * xray_map_open.c - a map's file, read by a sandboxed process
 *
 * libelf, libyaml and the demangler parse the file in a child (sandbox.h) that
 * has its bytes in memory as of the fork.  The reply is checked here and put
 * into a map of our own.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "symbol/sandbox/sandbox.h"
#include "symbol/xray/xray_map.h"
#include "wire/xray/xray.h"

enum { MAP = 1 };

/* -- the child's side --------------------------------------------------- */

static void put_function(struct seam_ipc *ipc, const struct seam_xray_map *map,
			 const struct seam_xray_mapped *f)
{
	seam_ipc_put_u32(ipc, f->id);
	seam_ipc_put_u32(ipc, f->kinds);
	seam_ipc_put_u64(ipc, f->addr);
	seam_ipc_put_u64(ipc, f->file_offset);
	seam_ipc_put_text(ipc, f->name ?
			  seam_strings_get(&map->strings, f->name) : "");
	seam_ipc_put_text(ipc, f->image ?
			  seam_strings_get(&map->strings, f->image) : "");
}

static void read_map(struct seam_ipc *ipc, void *context)
{
	const struct seam_file *file = context;
	struct seam_xray_map map;
	struct seam_err err = { 0 };

	seam_xray_map_read(&map, file->bytes, &err);
	seam_ipc_put_err(ipc, &err);
	seam_ipc_put_u32(ipc, map.from_elf);
	seam_ipc_put_u64(ipc, map.n_sleds);
	seam_ipc_put_u64(ipc, map.functions.n);
	for (size_t i = 0; i < map.functions.n; i++)
		put_function(ipc, &map, &map.functions.items[i]);
	seam_ipc_send(ipc, MAP, -1);
}

/* -- the parent's side -------------------------------------------------- */

static int take_function(struct seam_xray_map *map, struct seam_cursor *body)
{
	struct seam_xray_mapped f = { .id = seam_cursor_u32(body) };
	const struct seam_xray_mapped *last = map->functions.n ?
		&map->functions.items[map->functions.n - 1] : NULL;
	const char *name, *image;

	f.log_id = f.id;
	f.kinds = (uint8_t)seam_cursor_u32(body);
	f.addr = seam_cursor_u64(body);
	f.file_offset = seam_cursor_u64(body);
	name = seam_cursor_cstr(body);
	image = seam_cursor_cstr(body);
	/* look-ups are binary searches by id */
	if (body->error || !f.id || f.id > SEAM_XRAY_MAX_FUNCTION ||
	    (last && f.id < last->id))
		return -EBADMSG;
	f.name = *name ? seam_strings_put(&map->strings, name) : 0;
	f.image = *image ? seam_strings_put(&map->strings, image) : 0;
	return f.name != SEAM_NONE && f.image != SEAM_NONE &&
	       SEAM_ARRAY_ADD(&map->functions, f) ? 0 :
	       -ENOMEM;
}

static int take_map(struct seam_xray_map *map, struct seam_cursor *body,
		    struct seam_err *err)
{
	int r = seam_ipc_take_err(body, err);
	uint64_t n;

	if (r)
		return r;
	map->from_elf = seam_cursor_u32(body);
	map->n_sleds = seam_cursor_u64(body);
	n = seam_cursor_u64(body);
	for (uint64_t i = 0; i < n && !r; i++)
		r = take_function(map, body);
	/* a map without functions is an error, which the child reports */
	if (!r && (body->error || !n))
		r = -EBADMSG;
	return r ? seam_err_set(err, r, r == -ENOMEM ? "out of memory" :
				"the process that read it sent an invalid "
				"reply") : 0;
}

static int read_in_sandbox(struct seam_xray_map *map, struct seam_file *file,
			   struct seam_err *err)
{
	struct seam_sandbox reader;
	struct seam_message reply;
	char why[100];
	int r = seam_sandbox_start(&reader, read_map, file, err);

	if (r)
		return r;
	r = seam_ipc_receive(&reader.ipc, &reply);
	if (r) {
		seam_sandbox_end(&reader, why, sizeof(why));
		return seam_err_set(err, -EIO, "the process that read it %s",
				    why);
	}
	seam_file_close_fd(reply.fd);
	r = take_map(map, &reply.body, err);
	seam_sandbox_end(&reader, NULL, 0);
	return r;
}

/* After @r, of opening the file. */
static int read_file(struct seam_xray_map *map, const char *path,
		     struct seam_file *file, int r, struct seam_err *err)
{
	*map = (struct seam_xray_map) { 0 };
	if (!r)
		r = read_in_sandbox(map, file, err);
	seam_file_close(file);
	if (!r)
		return 0;
	seam_xray_map_fini(map);
	return seam_err_add(err, r, "cannot read instrumentation map '%s'",
			    path);
}

int seam_xray_map_open(struct seam_xray_map *map, const char *path,
		       struct seam_err *err)
{
	struct seam_file file;
	int r = seam_file_open(&file, path, err);

	return read_file(map, path, &file, r, err);
}

/* Open @path, which is no symbolic link, of at most @max bytes. */
static int open_limited(struct seam_file *file, const char *path, size_t max,
			struct seam_err *err)
{
	int r, fd = seam_file_open_fd(AT_FDCWD, path, O_NOFOLLOW, err);
	char link[32];
	size_t size;

	*file = (struct seam_file) { 0 };
	if (fd < 0)
		return fd;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	r = seam_file_open(file, link, err);
	close(fd);
	size = file->bytes.size;
	if (r || size <= max)
		return r;
	seam_file_close(file);
	return seam_err_set(err, -EFBIG, "with %zu bytes, it is larger than "
			    "the %zu left for maps beside logs", size, max);
}

int seam_xray_map_open_beside(struct seam_xray_map *map, const char *path,
			      size_t *left, struct seam_err *err)
{
	struct seam_file file;
	int r = open_limited(&file, path, *left, err);

	*left -= file.bytes.size;
	return read_file(map, path, &file, r, err);
}
