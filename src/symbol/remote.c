/* SPDX-License-Identifier: MIT */
/* remote.c - the parent's side: ask, open files, check; see remote.h */
#include "symbol/remote.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/strings.h"
#include "symbol/broker.h"
#include "symbol/debuginfod.h"
#include "symbol/sandbox.h"

/* A child that dies of each file costs a fork each; then it is enough. */
enum { MAX_CHILDREN = 100 };

/* Files that a child may have for one question: more than find.h tries. */
enum { MAX_FILES = 4096 };

struct seam_remote {
	const struct seam_symbols_options *options;
	struct seam_sandbox sandbox;
	unsigned int n_children;
	unsigned int refused;		/* of the first child */
	struct seam_strings strings;	/* in answers */
};

/* -- the child ---------------------------------------------------------- */

static int start(struct seam_remote *remote, struct seam_err *err)
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
	start(remote, NULL);
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

/* The child died, or what it says makes no sense: it was @module's doing. */
static int lose(struct seam_remote *remote, struct seam_remote_module *module,
		int r, struct seam_err *err)
{
	char why[100] = "could not be heard: out of memory";

	if (r == -ENOMEM || r == -EBADMSG) {
		seam_sandbox_end(&remote->sandbox, NULL, 0);
		if (r == -EBADMSG)
			snprintf(why, sizeof(why), "gave no sane answer");
	} else {
		seam_sandbox_end(&remote->sandbox, why, sizeof(why));
	}
	snprintf(module->lost, sizeof(module->lost), "the process that read "
		 "it %s", why);
	return seam_err_set(err, -EIO, "%s", module->lost);
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

/* Send what was put, give it what it needs, and wait for the answer. */
static int ask(struct seam_remote *remote, enum seam_remote_kind kind,
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

/*
 * A child that knows @module.  *@answer is what it said when it was told of
 * it just now; its body is empty when it knew already.
 */
static int tell_module(struct seam_remote *remote,
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
	r = start(remote, err);
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
	r = ask(remote, SEAM_REMOTE_MODULE, answer);
	if (r)
		return lose(remote, module, r, err);
	module->id = seam_cursor_u32(&answer->body);
	module->has_dwarf = seam_cursor_u32(&answer->body);
	missing = seam_cursor_u32(&answer->body);
	module->missing = missing < 4096 ? -(int)missing : -EIO;
	if (answer->body.error)
		return lose(remote, module, -EBADMSG, err);
	module->child = remote->n_children;
	return 0;
}

static int take_segments(struct seam_cursor *body,
			 struct seam_segments *segments)
{
	size_t n = seam_cursor_count(body, seam_cursor_u64(body),
				     sizeof(*segments->items));
	const uint8_t *from = seam_cursor_bytes(body,
						n * sizeof(*segments->items));

	if (body->error || n == 0)
		return body->error;
	if (!SEAM_ARRAY_RESERVE(segments, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct seam_segment *to = &segments->items[i];
		uint8_t runs = from[offsetof(struct seam_segment, runs)];

		memcpy(to, from, offsetof(struct seam_segment, runs));
		to->runs = runs != 0;
		from += sizeof(*to);
	}
	segments->n = n;
	return 0;
}

/* The rest of @body is names, each with its NUL; they stay there. */
static int take_table(struct seam_cursor *body, struct seam_symtab *table)
{
	size_t n = seam_cursor_count(body, seam_cursor_u64(body),
				     sizeof(struct seam_remote_symbol));
	const uint8_t *from = seam_cursor_bytes(body, n *
					sizeof(struct seam_remote_symbol));
	size_t size = seam_cursor_left(body);
	const char *names = (const char *)body->base + body->pos;

	if (body->error)
		return body->error;
	if (n && (size == 0 || names[size - 1] != '\0'))
		return -EBADMSG;
	if (n && !SEAM_ARRAY_RESERVE(&table->symbols, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++, from += sizeof(struct
						      seam_remote_symbol)) {
		struct seam_remote_symbol s;

		memcpy(&s, from, sizeof(s));
		if (s.name >= size)
			return -EBADMSG;
		if (seam_symtab_add(table, &(struct seam_symbol) {
				.start = s.start, .end = s.end,
				.limit = s.limit, .flags = s.flags,
				.name = names + s.name,
			}))
			return -ENOMEM;
	}
	return seam_symtab_sort(table);
}

void seam_remote_open(struct seam_remote *remote,
		      struct seam_remote_module *module,
		      struct seam_symtab *table,
		      struct seam_segments *segments, char *problem)
{
	struct seam_message answer;
	struct seam_err err = { 0 };
	int r = tell_module(remote, module, &answer, &err);

	if (!r) {
		const char *text = seam_cursor_cstr(&answer.body);

		snprintf(problem, SEAM_ERR_TEXT, "%s",
			 answer.body.error ? "" : text);
		r = take_segments(&answer.body, segments);
		if (!r)
			r = take_table(&answer.body, table);
		module->bytes = seam_channel_take_message(
			&remote->sandbox.channel);
		if (r == -ENOMEM)
			seam_err_set(&err, r, "out of memory");
		else if (r)
			lose(remote, module, -EBADMSG, &err);
	}
	if (r)
		snprintf(problem, SEAM_ERR_TEXT, "%s", err.cause[0]);
}

/* Texts come from strangers' files, and are kept. */
static const char *keep(struct seam_remote *remote, const char *text,
			bool is_there)
{
	uint32_t id = is_there ? seam_strings_put(&remote->strings, text) :
		      SEAM_NONE;

	return id == SEAM_NONE ? NULL : seam_strings_get(&remote->strings, id);
}

void seam_remote_expect(struct seam_remote_module *module, uint64_t offset)
{
	uint64_t *slot = SEAM_ARRAY_PUSH(&module->expected);

	if (slot)
		*slot = offset;
}

void seam_remote_forget(struct seam_remote_module *module)
{
	free(module->bytes);
	free(module->expected.items);
	free(module->answers.items);
	free(module->locations.items);
	seam_index_fini(&module->index);
}

/* The locations of one address, to the end of those that are kept. */
static int take_locations(struct seam_remote *remote,
			  struct seam_remote_module *module,
			  struct seam_cursor *body, size_t cap)
{
	size_t n = seam_cursor_count(body, seam_cursor_u64(body), 8);

	if (n > cap)
		return -EBADMSG;
	if (n && !SEAM_ARRAY_RESERVE(&module->locations, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint32_t line = seam_cursor_u32(body);
		uint32_t flags = seam_cursor_u32(body);
		const char *function = seam_cursor_cstr(body);
		const char *file = seam_cursor_cstr(body);

		if (body->error)
			break;
		module->locations.items[module->locations.n++] =
			(struct seam_location) {
				.function = keep(remote, function, flags & 2),
				.file = keep(remote, file, flags & 4),
				.line = line, .is_inlined = flags & 1,
			};
	}
	return body->error;
}

static int take_answer(struct seam_remote *remote,
		       struct seam_remote_module *module, uint64_t addr,
		       struct seam_cursor *body, size_t cap)
{
	struct seam_remote_answer *answer = SEAM_ARRAY_PUSH(&module->answers);
	size_t first = module->locations.n;
	int r;

	if (!answer)
		return -ENOMEM;
	*answer = (struct seam_remote_answer) {
		.addr = addr, .first = first, .cap = cap,
	};
	r = take_locations(remote, module, body, cap);
	answer->n = module->locations.n - first;
	return r ? r : seam_index_add(&module->index, seam_hash_add(addr, cap),
				      (uint32_t)(module->answers.n - 1));
}

static const struct seam_remote_answer *
find_answer(const struct seam_remote_module *module, uint64_t addr, size_t cap)
{
	struct seam_index_probe probe = seam_index_probe(&module->index,
						seam_hash_add(addr, cap));
	uint32_t id;

	while ((id = seam_index_next(&module->index, &probe)) != SEAM_NONE)
		if (module->answers.items[id].addr == addr &&
		    module->answers.items[id].cap == cap)
			return &module->answers.items[id];
	return NULL;
}

/* @addr and some of what is expected, into @batch; how many. */
static size_t fill_batch(struct seam_remote_module *module, uint64_t addr,
			 const struct seam_segments *segments, size_t cap,
			 uint64_t batch[SEAM_REMOTE_BATCH])
{
	size_t n = 0;

	batch[n++] = addr;
	while (module->expected.n > 0 && n < SEAM_REMOTE_BATCH) {
		uint64_t offset = module->expected.items[--module->expected.n];

		/* other processes have the same file at the same place */
		if (seam_segments_addr(segments, offset, &batch[n]) &&
		    batch[n] != addr && !find_answer(module, batch[n], cap))
			n++;
	}
	return n;
}

static int ask_batch(struct seam_remote *remote,
		     struct seam_remote_module *module, const uint64_t *batch,
		     size_t n, size_t cap, char *problem)
{
	struct seam_channel *channel = &remote->sandbox.channel;
	struct seam_message answer;
	const char *text;
	int r;

	seam_channel_put_u32(channel, module->id);
	seam_channel_put_u32(channel, (uint32_t)cap);
	seam_channel_put(channel, batch, n * sizeof(*batch));
	r = ask(remote, SEAM_REMOTE_RESOLVE, &answer);
	for (size_t i = 0; !r && i < n; i++)
		r = take_answer(remote, module, batch[i], &answer.body, cap);
	text = r ? "" : seam_cursor_cstr(&answer.body);
	if (!r && answer.body.error)
		return -EBADMSG;
	if (!problem[0])
		snprintf(problem, SEAM_ERR_TEXT, "%s", text);
	return r;
}

size_t seam_remote_resolve(struct seam_remote *remote,
			   struct seam_remote_module *module, uint64_t addr,
			   const struct seam_segments *segments,
			   struct seam_location *out, size_t cap,
			   char *problem)
{
	const struct seam_remote_answer *known;
	uint64_t batch[SEAM_REMOTE_BATCH];
	struct seam_message told;
	size_t n;
	int r;

	if (!module->has_dwarf)
		return 0;
	if (cap > SEAM_REMOTE_LOCATIONS)
		cap = SEAM_REMOTE_LOCATIONS;
	known = find_answer(module, addr, cap);
	if (!known) {
		if (tell_module(remote, module, &told, NULL))
			return 0;
		n = fill_batch(module, addr, segments, cap, batch);
		r = ask_batch(remote, module, batch, n, cap, problem);
		if (r) {
			/* half of a batch would be names by chance */
			lose(remote, module, r, NULL);
			snprintf(problem, SEAM_ERR_TEXT, "%s", module->lost);
			return 0;
		}
		known = find_answer(module, addr, cap);
	}
	if (!known)
		return 0;
	if (known->n)
		memcpy(out, module->locations.items + known->first,
		       known->n * sizeof(*out));
	return known->n;
}

static int take_bounds(struct seam_cursor *body, struct seam_bounds *bounds)
{
	size_t n = seam_cursor_count(body, seam_cursor_u64(body), 24);

	if (n && !SEAM_ARRAY_RESERVE(&bounds->items, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct seam_bound *bound = &bounds->items.items[i];

		bound->start = seam_cursor_u64(body);
		bound->end = seam_cursor_u64(body);
		bound->go = seam_cursor_u32(body);
		bound->is_signal_frame = seam_cursor_u32(body);
		bounds->items.n++;
		if (seam_intervals_add(&bounds->intervals, bound->start,
				       bound->end, (uint32_t)i))
			return -ENOMEM;
	}
	return body->error;
}

/* Go's table is parsed here: by a cursor of ours, and no library. */
static int take_go(struct seam_cursor *body, struct seam_bounds *bounds)
{
	enum seam_endian endian = seam_cursor_u32(body) ? SEAM_BIG :
				  SEAM_LITTLE;
	uint64_t text_addr = seam_cursor_u64(body);
	size_t size = seam_cursor_left(body);
	const uint8_t *bytes = seam_cursor_bytes(body, size);

	if (body->error || size == 0)
		return body->error;
	bounds->go_bytes = malloc(size);
	if (!bounds->go_bytes)
		return -ENOMEM;
	memcpy(bounds->go_bytes, bytes, size);
	if (seam_gopclntab_open(&bounds->go, (struct seam_bytes) {
			bounds->go_bytes, size }, endian))
		bounds->go.text_addr = text_addr;
	return 0;
}

int seam_remote_bounds(struct seam_remote *remote,
		       struct seam_remote_module *module,
		       struct seam_bounds *bounds)
{
	struct seam_message answer;
	int r = tell_module(remote, module, &answer, NULL);

	if (r)
		return 0;
	seam_channel_put_u32(&remote->sandbox.channel, module->id);
	r = ask(remote, SEAM_REMOTE_BOUNDS, &answer);
	if (!r)
		r = take_bounds(&answer.body, bounds);
	if (!r)
		r = take_go(&answer.body, bounds);
	if (!r)
		r = seam_intervals_cut(&bounds->intervals);
	if (r) {
		seam_bounds_fini(bounds);
		if (r != -ENOMEM)
			lose(remote, module, r, NULL);
	}
	return r == -ENOMEM ? r : 0;
}

int seam_remote_code(struct seam_remote *remote,
		     struct seam_remote_module *module, uint64_t offset,
		     uint8_t *buf, size_t size, struct seam_machine *machine,
		     struct seam_err *err)
{
	struct seam_channel *channel = &remote->sandbox.channel;
	struct seam_message answer;
	uint32_t machine_number, flags;
	const uint8_t *bytes = NULL;
	int r = tell_module(remote, module, &answer, err);

	if (r)
		return r;
	seam_channel_put_u32(channel, module->id);
	seam_channel_put_u64(channel, offset);
	seam_channel_put_u64(channel, size);
	r = ask(remote, SEAM_REMOTE_CODE, &answer);
	if (r)
		return lose(remote, module, r, err);
	r = seam_channel_take_err(&answer.body, err);
	machine_number = seam_cursor_u32(&answer.body);
	flags = seam_cursor_u32(&answer.body);
	if (r && !answer.body.error)
		return r;
	if (!answer.body.error) {
		*machine = (struct seam_machine) {
			.elf_machine = machine_number,
			.is_64 = flags & 1, .is_big_endian = flags & 2,
		};
		bytes = seam_cursor_bytes(&answer.body, size);
	}
	if (answer.body.error)
		return lose(remote, module, -EBADMSG, err);
	memcpy(buf, bytes, size);
	return 0;
}
