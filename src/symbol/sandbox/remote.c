/* SPDX-License-Identifier: MIT */
/* remote.c - the parent's side: ask, open files, check; see remote.h */
#include "symbol/sandbox/remote.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbol/elf/debuginfod.h"
#include "symbol/elf/elf_file.h"
#include "symbol/sandbox/remote_ask.h"

/* A child that dies of each file costs a fork each; then it is enough. */
enum { MAX_CHILDREN = 100 };

/* Files that a child may have for one question: more than find.h tries. */
enum { MAX_FILES = 4096 };

/* -- the child ---------------------------------------------------------- */

int seam_remote_start(struct seam_remote *remote, struct seam_err *err)
{
	if (remote->sandbox.pid)
		return 0;
	if (remote->n_children == MAX_CHILDREN)
		return seam_err_set(err, -EIO, "its reader was not started: %d "
				    "others died of files", MAX_CHILDREN);
	remote->n_children++;
	return seam_sandbox_start(&remote->sandbox, seam_remote_serve,
				  (void *)(uintptr_t)remote->options, err);
}

struct seam_remote *seam_remote_new(const struct seam_symbols_options *options)
{
	struct seam_remote *remote = calloc(1, sizeof(*remote));

	if (!remote)
		return NULL;
	remote->options = options;
	remote->sandbox.channel.fd = -1;
	seam_remote_start(remote, NULL);
	remote->refused = remote->sandbox.refused;
	return remote;
}

void seam_remote_free(struct seam_remote *remote)
{
	if (!remote)
		return;
	seam_sandbox_end(&remote->sandbox, NULL, 0);
	seam_strings_fini(&remote->strings);
	free(remote);
}

const char *seam_remote_missing(const struct seam_remote *remote)
{
	return seam_sandbox_missing(&(struct seam_sandbox) {
		.refused = remote->refused,
	});
}

int seam_remote_lose(struct seam_remote *remote, char *lost, int r,
		     struct seam_err *err)
{
	char why[100] = "could not be heard: out of memory";

	if (r == -ENOMEM || r == -EBADMSG) {
		seam_sandbox_end(&remote->sandbox, NULL, 0);
		if (r == -EBADMSG)
			snprintf(why, sizeof(why), "gave no sane answer");
	} else {
		seam_sandbox_end(&remote->sandbox, why, sizeof(why));
	}
	snprintf(lost, SEAM_REMOTE_LOST, "the process that read it %s", why);
	return seam_err_set(err, -EIO, "%s", lost);
}

/* -- files for it ------------------------------------------------------- */

/* It reads ELF files; others may hold what is none of a stranger's business. */
static bool is_elf(int fd)
{
	char magic[SELFMAG];

	return pread(fd, magic, SELFMAG, 0) == SELFMAG &&
	       memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/*
 * Where @path cannot be because a folder before it is not there: what is
 * missing, for the child not to ask again.  "" when all folders are.
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

static int send_file(struct seam_remote *remote, int fd, struct seam_err *err,
		     const char *missing)
{
	int r;

	if (fd >= 0 && !is_elf(fd)) {
		close(fd);
		fd = seam_err_set(err, -EBADMSG, "not an ELF file");
	}
	seam_channel_put_err(&remote->sandbox.channel, err);
	seam_channel_put_text(&remote->sandbox.channel, missing);
	r = seam_channel_send(&remote->sandbox.channel, SEAM_REMOTE_FILE, fd);
	if (fd >= 0)
		close(fd);
	return r;
}

static int give_file(struct seam_remote *remote, struct seam_message *question)
{
	const char *path = seam_cursor_cstr(&question->body);
	struct seam_err err = { 0 };
	char copy[PATH_MAX];
	int fd;

	if (question->body.error || strlen(path) >= sizeof(copy))
		return -EBADMSG;
	fd = seam_elf_open_fd(path, &err);
	snprintf(copy, sizeof(copy), "%s", path);
	return send_file(remote, fd, &err,
			 fd == -ENOENT ? missing_folder(copy) : "");
}

static int give_download(struct seam_remote *remote,
			 struct seam_message *question)
{
	bool debug = seam_cursor_u32(&question->body);
	size_t size = seam_cursor_left(&question->body);
	const uint8_t *id = seam_cursor_bytes(&question->body, size);
	struct seam_err err = { 0 };

	if (question->body.error || !remote->options->debuginfod ||
	    size == 0 || size > SEAM_BUILD_ID_MAX)
		return -EBADMSG;
	return send_file(remote, seam_debuginfod_open(debug, id, size, &err),
			 &err, "");
}

/* -- questions ---------------------------------------------------------- */

int seam_remote_ask(struct seam_remote *remote, enum seam_remote_kind kind,
	       struct seam_message *answer)
{
	struct seam_channel *channel = &remote->sandbox.channel;
	int r = seam_channel_send(channel, kind, -1);

	for (int i = 0; !r && i < MAX_FILES; i++) {
		r = seam_channel_receive(channel, answer);
		if (r || answer->kind == SEAM_REMOTE_DONE)
			break;
		if (answer->kind == SEAM_REMOTE_FILE)
			r = give_file(remote, answer);
		else if (answer->kind == SEAM_REMOTE_DOWNLOAD)
			r = give_download(remote, answer);
		else
			r = -EBADMSG;
	}
	if (!r && answer->kind != SEAM_REMOTE_DONE)
		r = -EBADMSG;
	if (!r && answer->fd >= 0)
		close(answer->fd);
	return r;
}

int seam_remote_tell(struct seam_remote *remote,
		       struct seam_remote_module *module,
		       struct seam_message *answer, struct seam_err *err)
{
	struct seam_channel *channel = &remote->sandbox.channel;
	const struct seam_module *file = module->file;
	uint32_t missing;
	int r;

	*answer = (struct seam_message) { .fd = -1 };
	if (module->lost[0])
		return seam_err_set(err, -EIO, "%s", module->lost);
	r = seam_remote_start(remote, err);
	if (r || module->child == remote->n_children)
		return r;
	seam_channel_put_u32(channel, (uint32_t)file->pid);
	seam_channel_put_u32(channel, file->evidence);
	seam_channel_put_u64(channel, file->ino);
	seam_channel_put_u64(channel, file->ino_generation);
	seam_channel_put_u64(channel, file->mapped_ns);
	seam_channel_put_u32(channel, (uint32_t)file->build_id_size);
	seam_channel_put(channel, file->build_id, file->build_id_size);
	seam_channel_put_text(channel, file->path);
	r = seam_remote_ask(remote, SEAM_REMOTE_MODULE, answer);
	if (r)
		return seam_remote_lose(remote, module->lost, r, err);
	module->id = seam_cursor_u32(&answer->body);
	module->is_readable = seam_cursor_u32(&answer->body);
	missing = seam_cursor_u32(&answer->body);
	module->missing = missing < 4096 ? -(int)missing : -EIO;
	if (answer->body.error)
		return seam_remote_lose(remote, module->lost, -EBADMSG, err);
	module->child = remote->n_children;
	return 0;
}

void seam_remote_open(struct seam_remote *remote,
		      struct seam_remote_module *module, char *problem)
{
	struct seam_message answer;
	struct seam_err err = { 0 };
	const char *text = "";
	int r = seam_remote_tell(remote, module, &answer, &err);

	if (!r)
		text = seam_cursor_cstr(&answer.body);
	if (!r && answer.body.error)
		r = seam_remote_lose(remote, module->lost, -EBADMSG, &err);
	snprintf(problem, SEAM_ERR_TEXT, "%s", r ? err.cause[0] : text);
}
