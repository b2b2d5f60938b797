/* SPDX-License-Identifier: MIT */
/* symbolizer.c - start the process, open files for it; see symbolizer.h */
#include "symbol/symbolizer/symbolizer.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbol/elf/debuginfod.h"
#include "symbol/elf/elf_file.h"
#include "symbol/symbolizer/symbolizer_protocol.h"

/* The most processes: each file may end one, and the next costs a fork. */
enum { MAX_PROCESSES = 100 };

/* Files of one request: more than find_elf.h tries. */
enum { MAX_FILES = 4096 };

/* -- the process -------------------------------------------------------- */

int seam_symbolizer_start(struct seam_symbolizer *s, struct seam_err *err)
{
	if (s->sandbox.pid)
		return 0;
	if (s->n_processes == MAX_PROCESSES)
		return seam_err_set(err, -EIO, "cannot start its reader: %d "
				    "others died of files", MAX_PROCESSES);
	s->n_processes++;
	return seam_sandbox_start(&s->sandbox, seam_symbolizer_serve,
				  (void *)(uintptr_t)s->options, err);
}

struct seam_symbolizer *
seam_symbolizer_new(const struct seam_symbols_options *options)
{
	struct seam_symbolizer *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->options = options;
	s->sandbox.ipc.fd = -1;
	seam_symbolizer_start(s, NULL);
	s->refused = s->sandbox.refused;
	return s;
}

void seam_symbolizer_free(struct seam_symbolizer *s)
{
	if (!s)
		return;
	seam_sandbox_end(&s->sandbox, NULL, 0);
	seam_strings_fini(&s->strings);
	free(s);
}

const char *seam_symbolizer_unprotected(const struct seam_symbolizer *s)
{
	return seam_sandbox_missing(&(struct seam_sandbox) {
		.refused = s->refused,
	});
}

int seam_symbolizer_fail(struct seam_symbolizer *s, char *lost, int r,
			 struct seam_err *err)
{
	char why[100] = "sent more than fits in memory";

	if (r == -ENOMEM || r == -EBADMSG) {
		seam_sandbox_end(&s->sandbox, NULL, 0);
		if (r == -EBADMSG)
			snprintf(why, sizeof(why), "sent an invalid reply");
	} else {
		seam_sandbox_end(&s->sandbox, why, sizeof(why));
	}
	snprintf(lost, SEAM_SYMBOLIZER_LOST, "the process that read it %s",
		 why);
	return seam_err_set(err, -EIO, "%s", lost);
}

/* -- files, opened for it ----------------------------------------------- */

/* Only ELF files: others may be confidential. */
static bool is_elf(int fd)
{
	char magic[SELFMAG];

	return pread(fd, magic, SELFMAG, 0) == SELFMAG &&
	       memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/*
 * The first folder of @path that does not exist, or "".  The process then
 * requests no other file below it.
 */
static const char *missing_folder(char *path)
{
	for (char *slash = strchr(path + 1, '/'); path[0] && slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (access(path, F_OK) && errno == ENOENT)
			return path;
		*slash = '/';
	}
	return "";
}

static int send_file(struct seam_symbolizer *s, int fd, struct seam_err *err,
		     const char *missing)
{
	int r;

	if (fd >= 0 && !is_elf(fd)) {
		close(fd);
		fd = seam_err_set(err, -EBADMSG, "not an ELF file");
	}
	seam_ipc_put_err(&s->sandbox.ipc, err);
	seam_ipc_put_text(&s->sandbox.ipc, missing);
	r = seam_ipc_send(&s->sandbox.ipc, SEAM_SYMBOLIZER_FILE, fd);
	if (fd >= 0)
		close(fd);
	return r;
}

static int serve_file(struct seam_symbolizer *s, struct seam_message *request)
{
	const char *path = seam_cursor_cstr(&request->body);
	struct seam_err err = { 0 };
	char copy[PATH_MAX];
	int fd;

	if (request->body.error || strlen(path) >= sizeof(copy))
		return -EBADMSG;
	fd = seam_elf_open_fd(path, &err);
	snprintf(copy, sizeof(copy), "%s", path);
	return send_file(s, fd, &err,
			 fd == -ENOENT ? missing_folder(copy) : "");
}

static int serve_download(struct seam_symbolizer *s,
			  struct seam_message *request)
{
	bool debug = seam_cursor_u32(&request->body);
	size_t size = seam_cursor_left(&request->body);
	const uint8_t *id = seam_cursor_bytes(&request->body, size);
	struct seam_err err = { 0 };

	if (request->body.error || !s->options->debuginfod ||
	    size == 0 || size > SEAM_BUILD_ID_MAX)
		return -EBADMSG;
	return send_file(s, seam_debuginfod_open(debug, id, size, &err),
			 &err, "");
}

/* -- requests ----------------------------------------------------------- */

int seam_symbolizer_request(struct seam_symbolizer *s,
			    enum seam_symbolizer_kind kind,
			    struct seam_message *reply)
{
	struct seam_ipc *ipc = &s->sandbox.ipc;
	int r = seam_ipc_send(ipc, kind, -1);

	for (int i = 0; !r && i < MAX_FILES; i++) {
		r = seam_ipc_receive(ipc, reply);
		if (r || reply->kind == SEAM_SYMBOLIZER_DONE)
			break;
		if (reply->kind == SEAM_SYMBOLIZER_FILE)
			r = serve_file(s, reply);
		else if (reply->kind == SEAM_SYMBOLIZER_DOWNLOAD)
			r = serve_download(s, reply);
		else
			r = -EBADMSG;
	}
	if (!r && reply->kind != SEAM_SYMBOLIZER_DONE)
		r = -EBADMSG;
	if (!r && reply->fd >= 0 && kind != SEAM_SYMBOLIZER_OPEN)
		close(reply->fd);
	return r;
}

/* The reply for @module. */
static int take_module(struct seam_symbolizer *s,
		       struct seam_symbolizer_module *module,
		       struct seam_cursor *body)
{
	uint32_t id = seam_cursor_u32(body);
	uint32_t is_readable = seam_cursor_u32(body);
	uint32_t missing = seam_cursor_u32(body);
	const char *problem = seam_cursor_cstr(body);

	if (body->error)
		return -EBADMSG;
	module->id = id;
	module->is_readable = is_readable;
	module->missing = missing < 4096 ? -(int)missing : -EIO;
	if (!module->problem[0])
		snprintf(module->problem, sizeof(module->problem), "%s",
			 problem);
	module->process = s->n_processes;
	return 0;
}

int seam_symbolizer_reach(struct seam_symbolizer *s,
			  struct seam_symbolizer_module *module,
			  struct seam_err *err)
{
	struct seam_ipc *ipc = &s->sandbox.ipc;
	const struct seam_module *file = module->file;
	struct seam_message reply;
	int r;

	if (module->lost[0])
		return seam_err_set(err, -EIO, "%s", module->lost);
	r = seam_symbolizer_start(s, err);
	if (r || module->process == s->n_processes)
		return r;
	seam_ipc_put_u32(ipc, (uint32_t)file->pid);
	seam_ipc_put_u32(ipc, file->evidence);
	seam_ipc_put_u64(ipc, file->ino);
	seam_ipc_put_u64(ipc, file->ino_generation);
	seam_ipc_put_u64(ipc, file->mapped_ns);
	seam_ipc_put_u64(ipc, file->content_id);
	seam_ipc_put_u32(ipc, (uint32_t)file->build_id_size);
	seam_ipc_put(ipc, file->build_id, file->build_id_size);
	seam_ipc_put_text(ipc, file->path);
	r = seam_symbolizer_request(s, SEAM_SYMBOLIZER_MODULE,
				    &reply);
	if (!r)
		r = take_module(s, module, &reply.body);
	return r ? seam_symbolizer_fail(s, module->lost, r, err) : 0;
}

void seam_symbolizer_open(struct seam_symbolizer *s,
			  struct seam_symbolizer_module *module)
{
	struct seam_err err = { 0 };

	if (seam_symbolizer_reach(s, module, &err))
		snprintf(module->problem, sizeof(module->problem), "%s",
			 err.cause[0]);
}
