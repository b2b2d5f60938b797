/* SPDX-License-Identifier: MIT */
/*
 * symbolizer.c - the parent's side: requests, and files opened for the process;
 * see symbolizer.h
 */
#include "symbol/symbolizer/symbolizer.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "symbol/elf/debuginfod.h"
#include "symbol/elf/elf_file.h"
#include "symbol/symbolizer/symbolizer_protocol.h"
#include "wire/xray/xray.h"

/* The most processes: each file may end one, and the next costs a fork. */
enum { MAX_PROCESSES = 100 };

/* Files of one request: more than find_elf.h tries. */
enum { MAX_FILES = 4096 };

struct seam_symbolizer {
	const struct seam_symbols_options *options;
	struct seam_sandbox sandbox;
	unsigned int n_processes;	/* started so far */
	unsigned int refused;		/* of the first one */
	struct seam_strings strings;	/* in results */
};

/* -- the process -------------------------------------------------------- */

/* Start a process unless one runs.  0 or -errno. */
static int start(struct seam_symbolizer *s, struct seam_err *err)
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
	start(s, NULL);
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

/*
 * After failure @r of a request: end the process.  -EIO, with the reason in
 * @err and in @lost, which has SEAM_SYMBOLIZER_LOST bytes.
 */
static int fail(struct seam_symbolizer *s, char *lost, int r,
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

/*
 * Send what was put, with descriptor @fd unless it is -1, serve files
 * meanwhile, and receive the reply.  A descriptor of SEAM_SYMBOLIZER_OPEN's
 * reply is the caller's to close.
 */
static int request(struct seam_symbolizer *s, enum seam_symbolizer_kind kind,
		   int fd, struct seam_message *reply)
{
	struct seam_ipc *ipc = &s->sandbox.ipc;
	int r = seam_ipc_send(ipc, kind, fd);

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

/* Have a process read @module unless that was done.  0 or -errno. */
static int reach(struct seam_symbolizer *s,
		 struct seam_symbolizer_module *module, struct seam_err *err)
{
	struct seam_ipc *ipc = &s->sandbox.ipc;
	const struct seam_module *file = module->file;
	struct seam_message reply;
	int r;

	if (module->lost[0])
		return seam_err_set(err, -EIO, "%s", module->lost);
	r = start(s, err);
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
	seam_ipc_put_text(ipc, file->bundle);
	r = request(s, SEAM_SYMBOLIZER_MODULE, -1, &reply);
	if (!r)
		r = take_module(s, module, &reply.body);
	return r ? fail(s, module->lost, r, err) : 0;
}

void seam_symbolizer_open(struct seam_symbolizer *s,
			  struct seam_symbolizer_module *module)
{
	struct seam_err err = { 0 };

	if (reach(s, module, &err))
		snprintf(module->problem, sizeof(module->problem), "%s",
			 err.cause[0]);
}

/* ---- names and extents of offsets ---- */

void seam_symbolizer_expect(struct seam_symbolizer_module *module,
			    uint64_t offset)
{
	(void)SEAM_ARRAY_ADD(&module->expected, offset);
}

void seam_symbolizer_module_fini(struct seam_symbolizer_module *module)
{
	free(module->expected.items);
	free(module->results.items);
	free(module->locations.items);
	seam_index_fini(&module->index);
}

/* -- replies ------------------------------------------------------------ */

/* A copy of a string of a reply; NULL when it is not there. */
static const char *intern(struct seam_symbolizer *s, const char *text,
			  bool is_there)
{
	uint32_t id = is_there ? seam_strings_put(&s->strings, text) :
		      SEAM_NONE;

	return id == SEAM_NONE ? NULL : seam_strings_get(&s->strings, id);
}

/* @n locations, after those of earlier results. */
static int take_locations(struct seam_symbolizer *s,
			  struct seam_symbolizer_module *module,
			  struct seam_cursor *body, size_t n)
{
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
				.function = intern(s, function, flags &
						   SEAM_SYMBOLIZER_NAMED),
				.file = intern(s, file, flags &
					       SEAM_SYMBOLIZER_HAS_FILE),
				.line = line,
				.is_inlined = flags & SEAM_SYMBOLIZER_INLINED,
			};
	}
	return body->error;
}

/* Callers count on @offset being in the extent. */
static int take_extent(struct seam_cursor *body, uint64_t offset,
		       struct seam_extent *extent)
{
	extent->offset = seam_cursor_u64(body);
	extent->addr = seam_cursor_u64(body);
	extent->size = seam_cursor_u64(body);
	if (body->error)
		return body->error;
	return extent->offset > offset || (extent->size &&
		offset - extent->offset >= extent->size) ? -EBADMSG : 0;
}

static int take_result(struct seam_symbolizer *s,
		       struct seam_symbolizer_module *module, uint64_t offset,
		       struct seam_cursor *body)
{
	struct seam_symbolizer_result *result =
		SEAM_ARRAY_PUSH(&module->results);
	uint32_t flags = seam_cursor_u32(body), n = seam_cursor_u32(body);
	int r = body->error ? body->error :
		n > SEAM_SYMBOLIZER_LOCATIONS ? -EBADMSG : 0;

	if (!result)
		return -ENOMEM;
	*result = (struct seam_symbolizer_result) {
		.offset = offset, .n = n, .first = module->locations.n,
		.is_mapped = flags & SEAM_SYMBOLIZER_MAPPED,
		.before_trampoline = flags & SEAM_SYMBOLIZER_BEFORE_TRAMPOLINE,
	};
	if (!r)
		r = take_extent(body, offset, &result->extent);
	if (!r)
		r = take_locations(s, module, body, n);
	if (r) {
		module->locations.n = result->first;
		module->results.n--;
		return r;
	}
	return seam_index_add(&module->index, seam_hash_u64(offset),
			      (uint32_t)(module->results.n - 1));
}

static const struct seam_symbolizer_result *
find_result(const struct seam_symbolizer_module *module, uint64_t offset)
{
	uint32_t id = SEAM_INDEX_FIND(&module->index, seam_hash_u64(offset), i,
				module->results.items[i].offset == offset);

	return id == SEAM_NONE ? NULL : &module->results.items[id];
}

/* -- requests ----------------------------------------------------------- */

/* @offset and some of what is expected, into @batch; how many. */
static size_t fill_batch(struct seam_symbolizer_module *module, uint64_t offset,
			 uint64_t batch[SEAM_SYMBOLIZER_BATCH])
{
	size_t n = 0;

	batch[n++] = offset;
	while (module->expected.n > 0 && n < SEAM_SYMBOLIZER_BATCH) {
		batch[n] = module->expected.items[--module->expected.n];
		/* other processes have the same file at the same place */
		if (batch[n] != offset && !find_result(module, batch[n]))
			n++;
	}
	return n;
}

static int request_batch(struct seam_symbolizer *s,
			 struct seam_symbolizer_module *module,
			 const uint64_t *batch, size_t n)
{
	struct seam_ipc *ipc = &s->sandbox.ipc;
	struct seam_message reply;
	const char *problem;
	int r;

	seam_ipc_put_u32(ipc, module->id);
	seam_ipc_put(ipc, batch, n * sizeof(*batch));
	r = request(s, SEAM_SYMBOLIZER_RESOLVE, -1, &reply);
	for (size_t i = 0; !r && i < n; i++)
		r = take_result(s, module, batch[i], &reply.body);
	problem = r ? "" : seam_cursor_cstr(&reply.body);
	if (!r && reply.body.error)
		return -EBADMSG;
	if (!module->problem[0])
		snprintf(module->problem, sizeof(module->problem), "%s",
			 problem);
	return r;
}

/* Whether there is a process that has read @module, and it has code. */
static bool is_reachable(struct seam_symbolizer *s,
			 struct seam_symbolizer_module *module)
{
	return module->is_readable && reach(s, module, NULL) == 0;
}

static void give_up(struct seam_symbolizer *s,
		    struct seam_symbolizer_module *module, int r)
{
	fail(s, module->lost, r, NULL);
	snprintf(module->problem, sizeof(module->problem), "%s", module->lost);
}

/* The result for @offset, received earlier or now; NULL: none. */
static const struct seam_symbolizer_result *
result_at(struct seam_symbolizer *s, struct seam_symbolizer_module *module,
	  uint64_t offset)
{
	const struct seam_symbolizer_result *known = find_result(module,
								 offset);
	uint64_t batch[SEAM_SYMBOLIZER_BATCH];
	int r;

	if (known || !is_reachable(s, module))
		return known;
	r = request_batch(s, module, batch, fill_batch(module, offset, batch));
	if (r) {
		give_up(s, module, r);
		return NULL;
	}
	return find_result(module, offset);
}

size_t seam_symbolizer_resolve(struct seam_symbolizer *s,
			       struct seam_symbolizer_module *module,
			       uint64_t offset, struct seam_location *out,
			       size_t cap)
{
	const struct seam_symbolizer_result *result = result_at(s, module,
								offset);
	const struct seam_location *at;
	size_t n = !result ? 0 : result->n < cap ? result->n : cap;

	if (n == 0)
		return 0;
	at = module->locations.items + result->first;
	memcpy(out, at, n * sizeof(*out));
	/* the function itself, whatever there is no room for */
	out[n - 1] = at[result->n - 1];
	return n;
}

bool seam_symbolizer_is_trampoline(struct seam_symbolizer *s,
				   struct seam_symbolizer_module *module,
				   uint64_t offset)
{
	const struct seam_symbolizer_result *result =
		offset == 0 ? NULL : result_at(s, module, offset - 1);

	return result && result->before_trampoline;
}

bool seam_symbolizer_extent(struct seam_symbolizer *s,
			    struct seam_symbolizer_module *module,
			    uint64_t offset, struct seam_extent *out)
{
	const struct seam_symbolizer_result *result = result_at(s, module,
								offset);

	if (!result || !result->is_mapped)
		return false;
	*out = result->extent;
	return true;
}

/* ---- names of functions, and instrumentation maps ---- */

static int request_names(struct seam_symbolizer *s,
			 struct seam_symbolizer_module *module,
			 const struct seam_named_addresses *names, size_t first,
			 size_t n)
{
	struct seam_ipc *ipc = &s->sandbox.ipc;
	struct seam_message reply;
	int r;

	seam_ipc_put_u32(ipc, module->id);
	seam_ipc_put(ipc, names->addresses + first,
		     n * sizeof(*names->addresses));
	r = request(s, SEAM_SYMBOLIZER_NAMES, -1, &reply);
	for (size_t i = 0; !r && i < n; i++) {
		const char *name = seam_cursor_cstr(&reply.body);

		if (reply.body.error)
			return -EBADMSG;
		if (*name)
			r = names->take(names->context, first + i, name);
	}
	return r;
}

int seam_symbolizer_names(struct seam_symbolizer *s,
			  struct seam_symbolizer_module *module,
			  const struct seam_named_addresses *names)
{
	int r = 0;

	for (size_t done = 0, n; done < names->n && !r; done += n) {
		n = names->n - done < SEAM_SYMBOLIZER_BATCH ?
		    names->n - done : SEAM_SYMBOLIZER_BATCH;
		if (!is_reachable(s, module))
			return 0;
		r = request_names(s, module, names, done, n);
	}
	if (r && r != -ENOMEM) {
		give_up(s, module, r);
		r = 0;
	}
	return r;
}

static int take_function(struct seam_xray_map *map, struct seam_cursor *body)
{
	struct seam_xray_mapped f = { .id = seam_cursor_u32(body) };
	const struct seam_xray_mapped *last = map->functions.n ?
		&map->functions.items[map->functions.n - 1] : NULL;
	uint32_t *const strings[] = { &f.name, &f.image, &f.build_id };

	f.log_id = f.id;
	f.kinds = (uint8_t)seam_cursor_u32(body);
	f.addr = seam_cursor_u64(body);
	f.file_offset = seam_cursor_u64(body);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(strings); i++) {
		const char *text = seam_cursor_cstr(body);

		if (body->error)
			return -EBADMSG;
		*strings[i] = *text ? seam_strings_put(&map->strings, text) : 0;
		if (*strings[i] == SEAM_NONE)
			return -ENOMEM;
	}
	/* look-ups are binary searches by id */
	if (!f.id || f.id > SEAM_XRAY_MAX_FUNCTION || (last && f.id < last->id))
		return -EBADMSG;
	return SEAM_ARRAY_ADD(&map->functions, f) ? 0 : -ENOMEM;
}

static int take_map(struct seam_xray_map *map, struct seam_cursor *body)
{
	uint64_t n;
	int r = 0;

	map->from_elf = seam_cursor_u32(body);
	n = seam_cursor_u64(body);
	for (uint64_t i = 0; i < n && !r; i++)
		r = take_function(map, body);
	/* a map without functions is an error, which the process reports */
	return r ? r : body->error || !n ? -EBADMSG : 0;
}

int seam_symbolizer_map(struct seam_symbolizer *s, struct seam_xray_map *map,
			int fd, struct seam_bytes bytes, struct seam_err *err)
{
	char lost[SEAM_SYMBOLIZER_LOST];
	struct seam_message reply;
	int r = start(s, err), refused = 0;

	*map = (struct seam_xray_map) { 0 };
	if (r)
		return r;
	seam_ipc_put(&s->sandbox.ipc, bytes.data, bytes.size);
	r = request(s, SEAM_SYMBOLIZER_MAP, fd, &reply);
	if (!r)
		refused = seam_ipc_take_err(&reply.body, err);
	if (!r && !refused)
		r = take_map(map, &reply.body);
	if (!r)
		return refused;
	seam_xray_map_fini(map);
	return fail(s, lost, r, err);
}

/* ---- machine code and instructions ---- */

void seam_symbolizer_put_machine(struct seam_ipc *ipc,
				 const struct seam_machine *machine)
{
	seam_ipc_put_u32(ipc, machine->elf_machine);
	seam_ipc_put_u32(ipc, machine->is_64 |
			 (machine->is_big_endian ? 2u : 0));
}

void seam_symbolizer_take_machine(struct seam_cursor *body,
				  struct seam_machine *machine)
{
	uint32_t number = seam_cursor_u32(body);
	uint32_t flags = seam_cursor_u32(body);

	*machine = (struct seam_machine) {
		.elf_machine = number,
		.is_64 = flags & 1, .is_big_endian = flags & 2,
	};
}

/*
 * Send what was put.  0, or the error in the reply, with the rest of its body
 * unread; an invalid one ends the process.
 */
static int exchange(struct seam_symbolizer *s, enum seam_symbolizer_kind kind,
		    char *lost, struct seam_message *reply,
		    struct seam_err *err)
{
	int r = request(s, kind, -1, reply), sent = 0;

	if (!r) {
		sent = seam_ipc_take_err(&reply->body, err);
		r = reply->body.error ? -EBADMSG : 0;
	}
	return r ? fail(s, lost, r, err) : sent;
}

/* @size bytes of code into @buf; -EBADMSG when there are fewer. */
static int take_code(struct seam_cursor *body, uint8_t *buf, size_t size)
{
	const uint8_t *bytes = seam_cursor_bytes(body, size);

	if (body->error)
		return -EBADMSG;
	memcpy(buf, bytes, size);
	return 0;
}

int seam_symbolizer_code(struct seam_symbolizer *s,
			 struct seam_symbolizer_module *module, uint64_t offset,
			 uint8_t *buf, size_t size,
			 struct seam_machine *machine, struct seam_err *err)
{
	struct seam_ipc *ipc = &s->sandbox.ipc;
	struct seam_machine is;
	struct seam_message reply;
	int r = reach(s, module, err);

	if (r)
		return r;
	seam_ipc_put_u32(ipc, module->id);
	seam_ipc_put_u64(ipc, offset);
	seam_ipc_put_u64(ipc, size);
	r = exchange(s, SEAM_SYMBOLIZER_CODE, module->lost, &reply, err);
	if (r)
		return r;
	seam_symbolizer_take_machine(&reply.body, &is);
	if (take_code(&reply.body, buf, size))
		return fail(s, module->lost, -EBADMSG, err);
	*machine = is;
	return 0;
}

/* The process may send any descriptor that it has: only files are taken. */
static int take_open_file(struct seam_message *reply,
			  struct seam_module_file *file)
{
	size_t size = seam_cursor_left(&reply->body);
	struct stat st;

	*file = (struct seam_module_file) { .fd = reply->fd };
	if (file->fd >= 0)
		return fstat(file->fd, &st) == 0 && S_ISREG(st.st_mode) ?
		       0 : -EBADMSG;
	if (size == 0)
		return -EBADMSG;
	file->image = malloc(size);
	if (!file->image)
		return -ENOMEM;
	file->size = size;
	return take_code(&reply->body, file->image, size);
}

int seam_symbolizer_open_file(struct seam_symbolizer *s,
			      struct seam_symbolizer_module *module,
			      bool is_debug, struct seam_module_file *file,
			      struct seam_err *err)
{
	struct seam_ipc *ipc = &s->sandbox.ipc;
	struct seam_message reply;
	int taken, r = reach(s, module, err);

	if (r)
		return r;
	seam_ipc_put_u32(ipc, module->id);
	seam_ipc_put_u32(ipc, is_debug);
	reply.fd = -1;
	r = exchange(s, SEAM_SYMBOLIZER_OPEN, module->lost, &reply, err);
	taken = r ? 0 : take_open_file(&reply, file);
	if (r == 0 && taken == 0)
		return 0;
	if (reply.fd >= 0)
		close(reply.fd);
	return taken == -EBADMSG ?
	       fail(s, module->lost, taken, err) :
	       r ? r : taken;
}

/* Each size in @body leads to the next instruction, within the code. */
static int take_instructions(struct seam_cursor *body,
			     const struct seam_code_block *code,
			     seam_instruction_add *add, void *context)
{
	size_t at = seam_cursor_u32(body);
	int r = 0;

	while (!r && !body->error && seam_cursor_left(body) > 0) {
		struct seam_instruction one = { .addr = code->addr + at };

		one.size = seam_cursor_u32(body);
		snprintf(one.text, sizeof(one.text), "%s",
			 seam_cursor_cstr(body));
		if (body->error || one.size == 0 || at > code->bytes.size ||
		    one.size > code->bytes.size - at)
			return -EBADMSG;
		at += one.size;
		r = add(context, &one);
	}
	return r ? r : body->error || at != code->bytes.size ? -EBADMSG : 0;
}

int seam_symbolizer_disassemble(struct seam_symbolizer *s,
				const struct seam_code_block *code,
				seam_instruction_add *add, void *context,
				struct seam_err *err)
{
	struct seam_ipc *ipc = &s->sandbox.ipc;
	char lost[SEAM_SYMBOLIZER_LOST];
	struct seam_message reply;
	int r = start(s, err);

	if (r)
		return r;
	seam_symbolizer_put_machine(ipc, &code->machine);
	seam_ipc_put_u64(ipc, code->addr);
	seam_ipc_put_u64(ipc, code->middle);
	seam_ipc_put(ipc, code->bytes.data, code->bytes.size);
	r = exchange(s, SEAM_SYMBOLIZER_DISASSEMBLE, lost, &reply, err);
	if (r)
		return r;
	r = take_instructions(&reply.body, code, add, context);
	return r == -EBADMSG ? fail(s, lost, r, err) : r;
}

int seam_symbolizer_vmlinux_code(void *symbolizer,
				 const struct seam_vmlinux_query *query,
				 uint8_t *buf, struct seam_vmlinux_answer *out,
				 struct seam_err *err)
{
	struct seam_symbolizer *s = symbolizer;
	struct seam_ipc *ipc = &s->sandbox.ipc;
	const struct seam_kernel *kernel = query->kernel;
	char lost[SEAM_SYMBOLIZER_LOST];
	struct seam_message reply;
	const char *other;
	int r = start(s, err);

	if (r)
		return r;
	seam_ipc_put_u64(ipc, kernel->text_addr);
	seam_ipc_put_u64(ipc, query->addr);
	seam_ipc_put_u64(ipc, query->size);
	seam_ipc_put_u32(ipc, (uint32_t)kernel->build_id_size);
	seam_ipc_put(ipc, kernel->build_id, kernel->build_id_size);
	for (size_t i = 0; i < query->n_paths && i < SEAM_SYMBOLIZER_PATHS; i++)
		seam_ipc_put_text(ipc, query->paths[i]);
	r = exchange(s, SEAM_SYMBOLIZER_KERNEL_CODE, lost, &reply, err);
	if (r == -EIO)
		return r;
	seam_symbolizer_take_machine(&reply.body, &out->machine);
	out->is_found = seam_cursor_u32(&reply.body);
	other = seam_cursor_cstr(&reply.body);
	snprintf(out->other, sizeof(out->other), "%s", other ? other : "");
	return reply.body.error ||
	       (!r && take_code(&reply.body, buf, query->size)) ?
	       fail(s, lost, -EBADMSG, err) : r;
}
