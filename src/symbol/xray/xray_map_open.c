/* SPDX-License-Identifier: MIT */
/*
 * xray_map_open.c - a map's file, read by a sandboxed process
 *
 * libelf, libyaml and the demangler parse the file in a child (sandbox.h).  It
 * has the bytes in memory as of the fork; or they are sent to it, where there
 * may be thousands of files: a fork for each takes as long as all of those that
 * were read before have mappings.  The reply is checked here and put into a map
 * of our own.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "symbol/xray/xray_map.h"
#include "wire/xray/xray.h"

enum {
	MAP = 1,
	/* A larger file is read by a process of its own, and not copied. */
	MAX_SENT = 1 << 20,
	MAX_STARTS = 64,	/* of processes that files beside logs killed */
};

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

static int send_map(struct seam_ipc *ipc, struct seam_bytes bytes)
{
	struct seam_xray_map map;
	struct seam_err err = { 0 };
	int r;

	seam_xray_map_read(&map, bytes, &err);
	seam_ipc_put_err(ipc, &err);
	seam_ipc_put_u32(ipc, map.from_elf);
	seam_ipc_put_u64(ipc, map.n_sleds);
	seam_ipc_put_u64(ipc, map.functions.n);
	for (size_t i = 0; i < map.functions.n; i++)
		put_function(ipc, &map, &map.functions.items[i]);
	r = seam_ipc_send(ipc, MAP, -1);
	seam_xray_map_fini(&map);
	return r;
}

static void read_map(struct seam_ipc *ipc, void *context)
{
	const struct seam_file *file = context;

	send_map(ipc, file->bytes);
}

static void read_maps(struct seam_ipc *ipc, void *context)
{
	struct seam_message request;

	(void)context;
	while (seam_ipc_receive(ipc, &request) == 0)
		if (send_map(ipc, (struct seam_bytes) { request.body.base,
							request.body.size }))
			return;
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

/* The reply, after @r, of the request.  -EIO: the process has ended. */
static int receive_map(struct seam_xray_map *map, struct seam_sandbox *sandbox,
		       int r, struct seam_err *err)
{
	struct seam_message reply;
	char why[100];

	if (!r)
		r = seam_ipc_receive(&sandbox->ipc, &reply);
	if (r) {
		seam_sandbox_end(sandbox, why, sizeof(why));
		return seam_err_set(err, -EIO, "the process that read it %s",
				    why);
	}
	seam_file_close_fd(reply.fd);
	return take_map(map, &reply.body, err);
}

static int read_alone(struct seam_xray_map *map, struct seam_file *file,
		      struct seam_err *err)
{
	struct seam_sandbox sandbox;
	int r = seam_sandbox_start(&sandbox, read_map, file, err);

	if (r)
		return r;
	r = receive_map(map, &sandbox, 0, err);
	seam_sandbox_end(&sandbox, NULL, 0);
	return r;
}

/* A file that kills the process costs its own names. */
static int read_beside(struct seam_xray_map *map,
		       struct seam_xray_map_reader *reader,
		       struct seam_bytes bytes, struct seam_err *err)
{
	struct seam_ipc *ipc = &reader->sandbox.ipc;
	int r;

	if (!reader->sandbox.pid && reader->n_starts >= MAX_STARTS)
		return seam_err_set(err, -EIO, "%d processes that read such "
				    "files have died", MAX_STARTS);
	if (!reader->sandbox.pid) {
		r = seam_sandbox_start(&reader->sandbox, read_maps, NULL, err);
		if (r)
			return r;
		reader->n_starts++;
	}
	seam_ipc_put(ipc, bytes.data, bytes.size);
	return receive_map(map, &reader->sandbox, seam_ipc_send(ipc, MAP, -1),
			   err);
}

void seam_xray_map_reader_end(struct seam_xray_map_reader *reader)
{
	if (reader->sandbox.pid)
		seam_sandbox_end(&reader->sandbox, NULL, 0);
}

/* After @r, of opening the file. */
static int read_file(struct seam_xray_map *map,
		     struct seam_xray_map_reader *reader, const char *path,
		     struct seam_file *file, int r, struct seam_err *err)
{
	*map = (struct seam_xray_map) { 0 };
	if (!r)
		r = reader && file->bytes.size <= MAX_SENT ?
		    read_beside(map, reader, file->bytes, err) :
		    read_alone(map, file, err);
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

	return read_file(map, NULL, path, &file, r, err);
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

int seam_xray_map_open_beside(struct seam_xray_map *map,
			      struct seam_xray_map_reader *reader,
			      const char *path, size_t *left,
			      struct seam_err *err)
{
	struct seam_file file;
	int r = open_limited(&file, path, *left, err);

	*left -= file.bytes.size;
	return read_file(map, reader, path, &file, r, err);
}
