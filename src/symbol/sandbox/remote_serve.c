/* SPDX-License-Identifier: MIT */
/* remote_serve.c - the child's side: read files, answer; see remote.h */
#include "symbol/sandbox/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbol/sandbox/broker.h"
#include "symbol/sandbox/channel.h"
#include "symbol/symbols_inside.h"

/* More than the largest function has. */
#define MAX_CODE ((size_t)64 << 20)

enum { MAX_MISSING = 16 };

/* The process has one; the broker's functions have no context. */
static struct seam_channel *parent;

/* The same socket: files are asked for while an answer is being made. */
static struct seam_channel files;

/* -- files, from the parent --------------------------------------------- */

/* Folders that are not there, of the last few. */
static struct {
	char *paths[MAX_MISSING];
	unsigned int n;
} missing;

static void note_missing(const char *folder)
{
	char **slot = &missing.paths[missing.n % MAX_MISSING];

	if (!*folder)
		return;
	free(*slot);
	*slot = strdup(folder);
	missing.n++;
}

static bool is_below_missing(const char *path)
{
	for (unsigned int i = 0; i < MAX_MISSING; i++) {
		const char *folder = missing.paths[i];
		size_t n = folder ? strlen(folder) : 0;

		if (folder && strncmp(path, folder, n) == 0 && path[n] == '/')
			return true;
	}
	return false;
}

static int receive_file(struct seam_err *err)
{
	struct seam_message answer;
	int r = seam_channel_receive(&files, &answer);

	/* without its parent it has nothing to do */
	if (r == -EPIPE)
		_exit(0);
	if (!r)
		r = seam_channel_take_err(&answer.body, err);
	else
		seam_err_set(err, r, "%s", strerror(-r));
	if (r == -ENOENT)
		note_missing(seam_cursor_cstr(&answer.body));
	if (r == 0 && answer.fd < 0)
		r = seam_err_set(err, -EIO, "no file came");
	if (r && answer.fd >= 0)
		close(answer.fd);
	return r ? r : answer.fd;
}

static int open_file(const char *path, struct seam_err *err)
{
	if (is_below_missing(path))
		return seam_err_set(err, -ENOENT, "%s", strerror(ENOENT));
	seam_channel_put_text(&files, path);
	if (seam_channel_send(&files, SEAM_REMOTE_FILE, -1))
		_exit(0);
	return receive_file(err);
}

static int download(bool debug, const uint8_t *id, size_t id_size,
		    struct seam_err *err)
{
	seam_channel_put_u32(&files, debug);
	seam_channel_put(&files, id, id_size);
	if (seam_channel_send(&files, SEAM_REMOTE_DOWNLOAD, -1))
		_exit(0);
	return receive_file(err);
}

static const struct seam_broker broker = {
	.open = open_file, .download = download,
};

/* -- answers ------------------------------------------------------------ */

static void answer_module(struct seam_symbols *symbols,
			  struct seam_cursor *body)
{
	struct seam_module file = { 0 };
	const char *problem;
	bool is_readable = false;
	uint32_t id;

	file.pid = (int32_t)seam_cursor_u32(body);
	file.evidence = (enum seam_evidence)seam_cursor_u32(body);
	file.ino = seam_cursor_u64(body);
	file.ino_generation = seam_cursor_u64(body);
	file.mapped_ns = seam_cursor_u64(body);
	file.build_id_size = seam_cursor_u32(body);
	file.build_id = file.build_id_size ?
			seam_cursor_bytes(body, file.build_id_size) : NULL;
	file.path = seam_cursor_cstr(body);
	id = body->error ? SEAM_NONE : seam_symbols_module(symbols, &file);
	if (id != SEAM_NONE)
		is_readable = seam_symbols_read(symbols, id);
	problem = id == SEAM_NONE ? "out of memory" :
		  seam_symbols_problem(symbols, id);
	seam_channel_put_u32(parent, id);
	seam_channel_put_u32(parent, is_readable);
	seam_channel_put_u32(parent, (uint32_t)-seam_symbols_missing(symbols,
								     id));
	seam_channel_put_text(parent, problem);
}

static void put_location(const struct seam_location *at)
{
	seam_channel_put_u32(parent, at->line);
	seam_channel_put_u32(parent,
			     (at->is_inlined ? SEAM_REMOTE_INLINED : 0) |
			     (at->function ? SEAM_REMOTE_NAMED : 0) |
			     (at->file ? SEAM_REMOTE_HAS_FILE : 0));
	seam_channel_put_text(parent, at->function);
	seam_channel_put_text(parent, at->file);
}

static void put_extent(const struct seam_extent *extent)
{
	seam_channel_put_u64(parent, extent->offset);
	seam_channel_put_u64(parent, extent->addr);
	seam_channel_put_u64(parent, extent->size);
}

/* A place without a name is shown by where its function begins. */
static void put_place(struct seam_symbols *symbols, uint32_t id,
		      uint64_t offset, size_t cap)
{
	struct seam_location at[SEAM_REMOTE_LOCATIONS];
	struct seam_extent extent = { 0 };
	size_t n = seam_symbols_resolve(symbols, id, offset, at, cap);
	uint32_t flags = 0;

	if (n == 0 || !at[n - 1].function) {
		flags |= SEAM_REMOTE_HAS_EXTENT;
		if (seam_symbols_extent(symbols, id, offset, &extent))
			flags |= SEAM_REMOTE_MAPPED;
	}
	if (seam_symbols_is_trampoline(symbols, id, offset + 1))
		flags |= SEAM_REMOTE_BEFORE_TRAMPOLINE;
	seam_channel_put_u32(parent, flags);
	seam_channel_put_u32(parent, (uint32_t)n);
	if (flags & SEAM_REMOTE_HAS_EXTENT)
		put_extent(&extent);
	for (size_t i = 0; i < n; i++)
		put_location(&at[i]);
}

static void answer_resolve(struct seam_symbols *symbols,
			   struct seam_cursor *body)
{
	uint32_t id = seam_cursor_u32(body);
	size_t cap = seam_cursor_u32(body);

	if (cap > SEAM_REMOTE_LOCATIONS)
		cap = SEAM_REMOTE_LOCATIONS;
	while (!body->error && seam_cursor_left(body) >= 8)
		put_place(symbols, id, seam_cursor_u64(body), cap);
	/* reading a unit may find what is missing */
	seam_channel_put_text(parent, seam_symbols_problem(symbols, id));
}

static void answer_extent(struct seam_symbols *symbols,
			  struct seam_cursor *body)
{
	struct seam_extent extent = { 0 };
	uint32_t id = seam_cursor_u32(body);
	uint64_t offset = seam_cursor_u64(body);

	seam_channel_put_u32(parent, seam_symbols_extent(symbols, id, offset,
							 &extent));
	put_extent(&extent);
}

static void answer_code(struct seam_symbols *symbols, struct seam_cursor *body)
{
	uint32_t id = seam_cursor_u32(body);
	uint64_t offset = seam_cursor_u64(body);
	uint64_t size = seam_cursor_u64(body);
	struct seam_machine machine = { 0 };
	struct seam_err err = { 0 };
	uint8_t *code = size <= MAX_CODE ? malloc(size + 1) : NULL;

	if (!code)
		seam_err_set(&err, -ENOMEM, "out of memory");
	else if (!seam_symbols_code(symbols, id, offset, code, size, &machine,
				    &err))
		err.code = 0;	/* what was tried before is in it */
	seam_channel_put_err(parent, &err);
	seam_remote_put_machine(parent, &machine);
	if (!err.code)
		seam_channel_put(parent, code, size);
	free(code);
}

/* -- instructions, and kernels' files ----------------------------------- */

static int put_instruction(void *context,
			   const struct seam_instruction *instruction)
{
	const struct seam_code_block *code = context;

	/* where the first one begins, then how long each is */
	if (parent->out.n == 0) {
		seam_channel_put_err(parent, &(struct seam_err) { 0 });
		seam_channel_put_u32(parent, (uint32_t)(instruction->addr -
							code->addr));
	}
	seam_channel_put_u32(parent, (uint32_t)instruction->size);
	seam_channel_put_text(parent, instruction->text);
	return 0;
}

static void answer_disassemble(struct seam_cursor *body)
{
	struct seam_code_block code = { 0 };
	struct seam_err err = { 0 };

	seam_remote_take_machine(body, &code.machine);
	code.addr = seam_cursor_u64(body);
	code.middle = seam_cursor_u64(body);
	code.bytes.size = seam_cursor_left(body);
	code.bytes.data = seam_cursor_bytes(body, code.bytes.size);
	if (body->error)
		seam_err_set(&err, -EINVAL, "not a question");
	else
		seam_disassembly_walk(&code, put_instruction, &code, &err);
	if (parent->out.n == 0) {
		seam_channel_put_err(parent, &err);
		seam_channel_put_u32(parent, 0);
	}
}

static size_t take_paths(struct seam_cursor *body,
			 const char *paths[SEAM_REMOTE_PATHS])
{
	size_t n = 0;

	while (n < SEAM_REMOTE_PATHS && seam_cursor_left(body) > 0) {
		paths[n] = seam_cursor_cstr(body);
		if (body->error)
			break;
		n++;
	}
	return n;
}

static void answer_kernel_code(struct seam_cursor *body)
{
	struct seam_kernel kernel = { .text_addr = seam_cursor_u64(body) };
	const char *paths[SEAM_REMOTE_PATHS];
	struct seam_kernel_file_query query = {
		.kernel = &kernel, .paths = paths,
		.addr = seam_cursor_u64(body),
	};
	struct seam_kernel_file_answer found = { 0 };
	struct seam_err err = { 0 };
	uint8_t *code;

	query.size = seam_cursor_u64(body);
	kernel.build_id_size = seam_cursor_u32(body);
	kernel.build_id = seam_cursor_bytes(body, kernel.build_id_size);
	query.n_paths = take_paths(body, paths);
	code = query.size <= MAX_CODE ? malloc(query.size + 1) : NULL;
	if (!code)
		seam_err_set(&err, -ENOMEM, "out of memory");
	else
		seam_kernel_file_code(&query, code, &found, &err);
	seam_channel_put_err(parent, &err);
	seam_remote_put_machine(parent, &found.machine);
	seam_channel_put_u32(parent, found.is_found);
	seam_channel_put_text(parent, found.other);
	if (!err.code)
		seam_channel_put(parent, code, query.size);
	free(code);
}

static void answer(struct seam_symbols *symbols, struct seam_message *question)
{
	switch (question->kind) {
	case SEAM_REMOTE_MODULE:
		answer_module(symbols, &question->body);
		break;
	case SEAM_REMOTE_RESOLVE:
		answer_resolve(symbols, &question->body);
		break;
	case SEAM_REMOTE_EXTENT:
		answer_extent(symbols, &question->body);
		break;
	case SEAM_REMOTE_CODE:
		answer_code(symbols, &question->body);
		break;
	case SEAM_REMOTE_DISASSEMBLE:
		answer_disassemble(&question->body);
		break;
	case SEAM_REMOTE_KERNEL_CODE:
		answer_kernel_code(&question->body);
		break;
	}
}

void seam_remote_serve(struct seam_channel *channel, void *context)
{
	struct seam_symbols_options options =
		*(const struct seam_symbols_options *)context;
	struct seam_symbols *symbols;
	struct seam_message question;

	options.isolated = false;
	symbols = seam_symbols_new(&options);
	if (!symbols)
		return;
	parent = channel;
	files = (struct seam_channel) { .fd = channel->fd };
	seam_broker = &broker;
	while (seam_channel_receive(channel, &question) == 0) {
		if (question.fd >= 0)
			close(question.fd);
		answer(symbols, &question);
		if (seam_channel_send(channel, SEAM_REMOTE_DONE, -1))
			break;
	}
}
