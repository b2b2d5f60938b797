/* SPDX-License-Identifier: MIT */
/*
 * symbols.c - the modules of a recording; the contract is in symbols.h
 *
 * A module is a kernel, whose symbols are read here, or a file, which a
 * sandboxed process reads (symbolizer.h).  The tables of files stay in that
 * process: this side sends offsets, up to a thousand of one file in a message,
 * and keeps the results.
 *
 * When the process dies, the file that it was reading is not read again.  The
 * next request starts another process, which reads again what it needs.
 */
#include "symbol/symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/index.h"
#include "symbol/code/kernel_code.h"
#include "symbol/elf/find_elf.h"
#include "symbol/kernel/kernel.h"
#include "symbol/symbolizer/symbolizer.h"
#include "wire/xray/xray.h"

enum {
	MAX_PROCESSES = 100,	/* each file may end one, at a fork each */
	MAX_FILES = 4096,	/* of a request: more than find_elf.h tries */
	BATCH = 1024,		/* offsets of a request, at most */
};

/* A sandboxed process; another one after its death. */
struct file_reader {
	const struct seam_symbols_options *options;
	struct seam_sandbox sandbox;
	unsigned int n_processes;	/* started so far */
	unsigned int n_rested;		/* of these, ended on request */
};

/* The result for one offset. */
struct result {
	uint64_t offset;		/* in the file */
	size_t first;			/* of locations */
	uint32_t n;
	uint32_t flags;			/* of enum seam_symbolizer_flag */
	struct seam_extent extent;
};

struct module {
	bool is_kernel;
	bool is_open;			/* it was read, or tried */
	bool is_lost;			/* its reader died: problem is why */
	char problem[SEAM_ERR_TEXT];	/* "" when there is none */

	/* a kernel */
	struct seam_kernel kernel;	/* a copy */
	struct seam_kernel_symbols kernel_symbols;
	struct seam_arena arena;	/* names in results */

	/* a file */
	struct seam_module file;	/* a copy; of a kernel zero */
	unsigned int process;		/* which process has it; 0: none */
	uint32_t id;			/* its number there */
	bool has_code;
	int missing;			/* see seam_symbols_missing() */
	SEAM_ARRAY(uint64_t) expected;	/* offsets, not requested yet */
	SEAM_ARRAY(struct result) results;
	SEAM_ARRAY(struct seam_location) locations;
	struct seam_index index;	/* of results, by offset */
};

struct seam_symbols {
	struct seam_symbols_options options;
	struct seam_arena arena;	/* what modules and options point to */
	/* Pointers: a module stays where it is while others are added. */
	SEAM_ARRAY(struct module *) modules;
	struct seam_index index;	/* of modules, by path and build id */
	struct seam_strings strings;	/* in results */
	struct file_reader reader;		/* of files */
	struct file_reader disassembler;	/* started when first needed */
};

/* -- the process -------------------------------------------------------- */

/* Start a process unless one runs.  0 or -errno. */
static int start(struct file_reader *reader, struct seam_err *err)
{
	if (reader->sandbox.pid)
		return 0;
	if (reader->n_processes - reader->n_rested == MAX_PROCESSES)
		return seam_err_set(err, -EIO, "cannot start its reader: %d "
				    "others died of files", MAX_PROCESSES);
	reader->n_processes++;
	return seam_sandbox_start(&reader->sandbox, seam_symbolizer_serve,
				  (void *)(uintptr_t)reader->options, err);
}

/*
 * After failure @r of a request about @module (NULL: about none): end the
 * process.  -EIO, with the reason in @err and in the module.
 */
static int fail(struct file_reader *reader, struct module *module, int r,
		struct seam_err *err)
{
	char why[100], text[160];

	seam_sandbox_end(&reader->sandbox, why, sizeof(why));
	snprintf(text, sizeof(text), "the process that read it %s",
		 r == -EBADMSG ? "sent an invalid reply" :
		 r == -ENOMEM ? "sent more than fits in memory" : why);
	if (module) {
		module->is_lost = true;
		snprintf(module->problem, sizeof(module->problem), "%s", text);
	}
	return seam_err_set(err, -EIO, "%s", text);
}

/* -- files, opened for it ----------------------------------------------- */

/* Only ELF files: others may be confidential. */
static bool is_elf(int fd)
{
	char magic[SELFMAG];

	return pread(fd, magic, SELFMAG, 0) == SELFMAG &&
	       memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/* Open the file that the process requests, and send it. */
static int serve(struct file_reader *reader, struct seam_message *request)
{
	struct seam_ipc *ipc = &reader->sandbox.ipc;
	struct seam_cursor *body = &request->body;
	struct seam_err err = { 0 };
	int fd, r;

	if (request->kind == SEAM_SYMBOLIZER_FILE) {
		const char *path = seam_cursor_cstr(body);

		if (!path)
			return -EBADMSG;
		fd = seam_elf_open_fd(path, &err);
	} else if (request->kind == SEAM_SYMBOLIZER_DOWNLOAD) {
		bool is_debug = seam_cursor_u32(body);
		size_t size = seam_cursor_left(body);
		const uint8_t *id = seam_cursor_bytes(body, size);

		if (!reader->options->debuginfod || size == 0 ||
		    size > SEAM_BUILD_ID_MAX)
			return -EBADMSG;
		fd = seam_debuginfod_open(is_debug, id, size, &err);
	} else {
		return -EBADMSG;
	}
	if (fd >= 0 && !is_elf(fd)) {
		close(fd);
		fd = seam_err_set(&err, -EBADMSG, "not an ELF file");
	}
	seam_ipc_put_err(ipc, &err);
	r = seam_ipc_send(ipc, SEAM_SYMBOLIZER_FILE, fd);
	if (fd >= 0)
		close(fd);
	return r;
}

/* -- requests ----------------------------------------------------------- */

/*
 * Send what was put, about @module or NULL, with descriptor @fd unless it is
 * -1; serve files meanwhile; receive the reply.  0; -EIO when the process
 * failed and was ended; or the error that it sent.  A descriptor of
 * SEAM_SYMBOLIZER_OPEN's reply is the caller's to close.
 */
static int exchange(struct file_reader *reader, struct module *module,
		    enum seam_symbolizer_kind kind, int fd,
		    struct seam_message *reply, struct seam_err *err)
{
	struct seam_ipc *ipc = &reader->sandbox.ipc;
	int r = seam_ipc_send(ipc, kind, fd);

	for (int i = 0; !r; i++) {
		r = i < MAX_FILES ? seam_ipc_receive(ipc, reply) : -EBADMSG;
		if (r)
			break;
		if (reply->fd >= 0 && (reply->kind != SEAM_SYMBOLIZER_DONE ||
				       kind != SEAM_SYMBOLIZER_OPEN)) {
			close(reply->fd);
			reply->fd = -1;
		}
		if (reply->kind == SEAM_SYMBOLIZER_DONE)
			return 0;
		if (reply->kind == SEAM_SYMBOLIZER_FAILED) {
			r = seam_ipc_take_err(&reply->body, err);
			if (r && !reply->body.error)
				return r;
			r = -EBADMSG;
		} else {
			r = serve(reader, reply);
		}
	}
	return fail(reader, module, r, err);
}

/* What a process found of @module when it read it.  0 or -EBADMSG. */
static int take_module(struct module *module, struct seam_cursor *body)
{
	uint32_t id = seam_cursor_u32(body);
	uint32_t has_code = seam_cursor_u32(body);
	uint32_t missing = seam_cursor_u32(body);
	const char *problem = seam_cursor_cstr(body);

	if (body->error)
		return -EBADMSG;
	module->id = id;
	module->has_code = has_code;
	module->missing = missing < 4096 ? -(int)missing : -EIO;
	if (!module->problem[0])
		snprintf(module->problem, sizeof(module->problem), "%s",
			 problem);
	return 0;
}

/* Have a process read @module unless that was done.  0 or -errno. */
static int reach(struct file_reader *reader, struct module *module,
		 struct seam_err *err)
{
	struct seam_ipc *ipc = &reader->sandbox.ipc;
	const struct seam_module *file = &module->file;
	struct seam_message reply;
	int r;

	if (module->is_lost)
		return seam_err_set(err, -EIO, "%s", module->problem);
	r = start(reader, err);
	if (r || module->process == reader->n_processes)
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
	r = exchange(reader, module, SEAM_SYMBOLIZER_MODULE, -1, &reply, err);
	if (r)
		return r;
	if (take_module(module, &reply.body))
		return fail(reader, module, -EBADMSG, err);
	module->process = reader->n_processes;
	return 0;
}

void seam_symbols_rest(struct seam_symbols *symbols)
{
	struct file_reader *reader = &symbols->reader;

	if (!reader->sandbox.pid)
		return;
	seam_sandbox_end(&reader->sandbox, NULL, 0);
	reader->n_rested++;
}

/* Whether there is a process that has read @module, and it has code. */
static bool is_reachable(struct seam_symbols *symbols, struct module *module)
{
	return module->has_code && reach(&symbols->reader, module, NULL) == 0;
}

/* -- creation ----------------------------------------------------------- */

static bool copy_options(struct seam_symbols *symbols,
			 const struct seam_symbols_options *options)
{
	const char **roots = seam_arena_alloc(&symbols->arena,
		(options->n_symfs + 1) * sizeof(*roots));

	symbols->options = *options;
	symbols->options.symfs = roots;
	if (!roots || !seam_arena_copy(&symbols->arena,
				       &symbols->options.bundle,
				       options->bundle))
		return false;
	for (size_t i = 0; i < options->n_symfs; i++)
		if (!seam_arena_copy(&symbols->arena, &roots[i],
				     options->symfs[i]))
			return false;
	return true;
}

struct seam_symbols *
seam_symbols_new(const struct seam_symbols_options *options)
{
	struct seam_symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return NULL;
	symbols->reader = symbols->disassembler = (struct file_reader) {
		.options = &symbols->options, .sandbox.ipc.fd = -1,
	};
	if (!copy_options(symbols, options)) {
		seam_symbols_free(symbols);
		return NULL;
	}
	/*
	 * Before untrusted data is read: the process inherits little then.
	 * Where none can be started, each module's problem is the reason.
	 */
	start(&symbols->reader, NULL);
	return symbols;
}

static void free_module(struct module *module)
{
	free(module->expected.items);
	free(module->results.items);
	free(module->locations.items);
	seam_index_fini(&module->index);
	seam_kernel_close(&module->kernel_symbols);
	seam_arena_fini(&module->arena);
	free(module);
}

void seam_symbols_free(struct seam_symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->modules.n; i++)
		free_module(symbols->modules.items[i]);
	free(symbols->modules.items);
	seam_sandbox_end(&symbols->reader.sandbox, NULL, 0);
	seam_sandbox_end(&symbols->disassembler.sandbox, NULL, 0);
	seam_strings_fini(&symbols->strings);
	seam_index_fini(&symbols->index);
	seam_arena_fini(&symbols->arena);
	free(symbols);
}

/* -- modules ------------------------------------------------------------ */

/* The size of a build id, cut to the longest that is in use. */
static size_t id_size(const uint8_t *id, size_t size)
{
	return !id ? 0 : size > SEAM_BUILD_ID_MAX ? SEAM_BUILD_ID_MAX : size;
}

static bool equal_ids(const uint8_t *a, size_t a_size, const uint8_t *b,
		      size_t b_size)
{
	return a_size == b_size && (a_size == 0 || !memcmp(a, b, a_size));
}

/* Whether both are one file; mapped_ns and pid do not count. */
static bool is_same_file(const struct seam_module *a,
			 const struct seam_module *b)
{
	return !strcmp(a->path, b->path) && a->evidence == b->evidence &&
	       a->content_id == b->content_id && a->ino == b->ino &&
	       a->ino_generation == b->ino_generation &&
	       equal_ids(a->build_id, a->build_id_size, b->build_id,
			 b->build_id_size);
}

static bool is_same_kernel(const struct seam_kernel *a,
			   const struct seam_kernel *b)
{
	return a->text_addr == b->text_addr &&
	       !strcmp(a->boot_id ? a->boot_id : "",
		       b->boot_id ? b->boot_id : "") &&
	       equal_ids(a->build_id, a->build_id_size, b->build_id,
			 b->build_id_size);
}

/* Have what *@id and *@text point to be a copy.  False: no memory. */
static bool keep(struct seam_arena *arena, const uint8_t **id, size_t size,
		 const char **text)
{
	*id = size ? (const uint8_t *)seam_arena_text(arena,
				(const char *)*id, size) : NULL;
	return (*id || !size) && seam_arena_copy(arena, text, *text);
}

/* The module that equals @want, or SEAM_NONE. */
static uint32_t find_module(struct seam_symbols *symbols,
			    const struct seam_module *want, uint64_t hash)
{
	uint32_t id = SEAM_INDEX_FIND(&symbols->index, hash, i,
		!symbols->modules.items[i]->is_kernel &&
		is_same_file(&symbols->modules.items[i]->file, want));
	struct seam_module *file = id == SEAM_NONE ? NULL :
				   &symbols->modules.items[id]->file;

	if (file && want->mapped_ns < file->mapped_ns)
		file->mapped_ns = want->mapped_ns;
	return id;
}

/* @file without what does not identify it: a build id is enough. */
static struct seam_module normalize(const struct seam_module *file)
{
	struct seam_module m = *file;

	m.build_id_size = id_size(m.build_id, m.build_id_size);
	if (m.build_id_size > 0)
		m.evidence = SEAM_EVIDENCE_PATH;
	if (m.evidence != SEAM_EVIDENCE_INODE)
		m.ino = m.ino_generation = m.mapped_ns = 0;
	if (m.evidence != SEAM_EVIDENCE_CONTENTS)
		m.content_id = 0;
	return m;
}

/* Add a copy of @file, or of @kernel where that is not NULL. */
static uint32_t add_module(struct seam_symbols *symbols,
			   const struct seam_module *file,
			   const struct seam_kernel *kernel, uint64_t hash)
{
	struct module *module = calloc(1, sizeof(*module));
	struct seam_arena *arena = &symbols->arena;
	uint32_t id = SEAM_NONE;

	if (!module)
		return SEAM_NONE;
	module->is_kernel = kernel;
	if (kernel)
		module->kernel = *kernel;
	else
		module->file = *file;
	if (kernel ? keep(arena, &module->kernel.build_id,
			  kernel->build_id_size, &module->kernel.boot_id) :
	    keep(arena, &module->file.build_id, file->build_id_size,
		 &module->file.path) &&
	    seam_arena_copy(arena, &module->file.bundle, file->bundle))
		id = SEAM_INDEX_APPEND(&symbols->index, hash,
				       &symbols->modules, module);
	if (id == SEAM_NONE)
		free_module(module);
	return id;
}

uint32_t seam_symbols_module(struct seam_symbols *symbols,
			     const struct seam_module *file)
{
	struct seam_module want = normalize(file);
	uint64_t hash = seam_hash_bytes(want.path, strlen(want.path), 0);
	uint32_t id;

	if (want.build_id_size > 0)
		hash = seam_hash_bytes(want.build_id, want.build_id_size,
				       hash);
	id = find_module(symbols, &want, hash);
	return id != SEAM_NONE ? id : add_module(symbols, &want, NULL, hash);
}

uint32_t seam_symbols_kernel(struct seam_symbols *symbols,
			     const struct seam_kernel *kernel)
{
	struct seam_kernel want = *kernel;

	want.build_id_size = id_size(want.build_id, want.build_id_size);
	for (size_t i = 0; i < symbols->modules.n; i++)
		if (symbols->modules.items[i]->is_kernel &&
		    is_same_kernel(&symbols->modules.items[i]->kernel, &want))
			return (uint32_t)i;
	return add_module(symbols, NULL, &want, want.text_addr);
}

/* Module @id, ready for look-ups; NULL: there is none. */
static struct module *open_module(struct seam_symbols *symbols, uint32_t id)
{
	struct module *module = id < symbols->modules.n ?
				symbols->modules.items[id] : NULL;
	struct seam_err err = { 0 };
	int r;

	if (!module || module->is_open)
		return module;
	module->is_open = true;
	r = module->is_kernel ?
	    seam_kernel_load(&module->kernel_symbols, symbols->options.bundle,
			     &module->kernel, &err) :
	    reach(&symbols->reader, module, &err);
	if (r)
		seam_err_text(&err, module->problem);
	return module;
}

/* -- results for offsets ------------------------------------------------ */

/* A copy of a string of a reply; NULL where it is empty. */
static const char *intern(struct seam_symbols *symbols, const char *text)
{
	uint32_t id = *text ? seam_strings_put(&symbols->strings, text) :
		      SEAM_NONE;

	return id == SEAM_NONE ? NULL :
	       seam_strings_get(&symbols->strings, id);
}

/* @n locations, after those of earlier results. */
static int take_locations(struct seam_symbols *symbols, struct module *module,
			  struct seam_cursor *body, size_t n)
{
	if (n && !SEAM_ARRAY_RESERVE(&module->locations, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint32_t line = seam_cursor_u32(body);
		uint32_t is_inlined = seam_cursor_u32(body);
		const char *function = seam_cursor_cstr(body);
		const char *file = seam_cursor_cstr(body);

		if (body->error)
			return -EBADMSG;
		module->locations.items[module->locations.n++] =
			(struct seam_location) {
				.function = intern(symbols, function),
				.file = intern(symbols, file),
				.line = line, .is_inlined = is_inlined,
			};
	}
	return 0;
}

static int take_result(struct seam_symbols *symbols, struct module *module,
		       uint64_t offset, struct seam_cursor *body)
{
	struct result result = {
		.offset = offset, .first = module->locations.n,
	};
	int r;

	result.flags = seam_cursor_u32(body);
	result.n = seam_cursor_u32(body);
	result.extent.offset = seam_cursor_u64(body);
	result.extent.addr = seam_cursor_u64(body);
	result.extent.size = seam_cursor_u64(body);
	/* callers count on the offset being in the extent */
	if (body->error || result.n > SEAM_SYMBOLIZER_LOCATIONS ||
	    result.extent.offset > offset || (result.extent.size &&
	    offset - result.extent.offset >= result.extent.size))
		return -EBADMSG;
	r = take_locations(symbols, module, body, result.n);
	if (r)
		return r;
	return SEAM_INDEX_APPEND(&module->index, seam_hash_u64(offset),
				 &module->results, result) == SEAM_NONE ?
	       -ENOMEM : 0;
}

static const struct result *find_result(const struct module *module,
					uint64_t offset)
{
	uint32_t id = SEAM_INDEX_FIND(&module->index, seam_hash_u64(offset), i,
				module->results.items[i].offset == offset);

	return id == SEAM_NONE ? NULL : &module->results.items[id];
}

void seam_symbols_expect(struct seam_symbols *symbols, uint32_t id,
			 uint64_t addr)
{
	if (id < symbols->modules.n)
		(void)SEAM_ARRAY_ADD(&symbols->modules.items[id]->expected,
				     addr);
}

/* @offset and some of what is expected, into @batch; how many. */
static size_t fill_batch(struct module *module, uint64_t offset,
			 uint64_t batch[BATCH])
{
	size_t n = 0;

	batch[n++] = offset;
	while (module->expected.n > 0 && n < BATCH) {
		batch[n] = module->expected.items[--module->expected.n];
		/* other processes have the same file at the same place */
		if (batch[n] != offset && !find_result(module, batch[n]))
			n++;
	}
	return n;
}

static void request_batch(struct seam_symbols *symbols, struct module *module,
			  uint64_t offset)
{
	struct seam_ipc *ipc = &symbols->reader.sandbox.ipc;
	uint64_t batch[BATCH];
	size_t n = fill_batch(module, offset, batch);
	struct seam_message reply;
	const char *problem;
	int r = 0;

	seam_ipc_put_u32(ipc, module->id);
	seam_ipc_put(ipc, batch, n * sizeof(*batch));
	if (exchange(&symbols->reader, module, SEAM_SYMBOLIZER_RESOLVE, -1,
		     &reply, NULL))
		return;
	for (size_t i = 0; !r && i < n; i++)
		r = take_result(symbols, module, batch[i], &reply.body);
	problem = r ? NULL : seam_cursor_cstr(&reply.body);
	if (!problem)
		fail(&symbols->reader, module, r ? r : -EBADMSG, NULL);
	else if (!module->problem[0])
		snprintf(module->problem, sizeof(module->problem), "%s",
			 problem);
}

/* The result for @offset of a file, received earlier or now; NULL: none. */
static const struct result *result_at(struct seam_symbols *symbols,
				      struct module *module, uint64_t offset)
{
	const struct result *known = find_result(module, offset);

	if (known || !is_reachable(symbols, module))
		return known;
	request_batch(symbols, module, offset);
	return find_result(module, offset);
}

static size_t resolve_kernel(struct module *module, uint64_t addr,
			     struct seam_location *out)
{
	const char *name = seam_symtab_name(&module->kernel_symbols.table, addr,
					    &module->arena);

	if (!name)
		return 0;
	*out = (struct seam_location) { .function = name };
	return 1;
}

size_t seam_symbols_resolve(struct seam_symbols *symbols, uint32_t id,
			    uint64_t addr, struct seam_location *out,
			    size_t cap)
{
	struct module *module = cap ? open_module(symbols, id) : NULL;
	const struct seam_location *at;
	const struct result *result;
	size_t n;

	if (!module)
		return 0;
	if (module->is_kernel)
		return resolve_kernel(module, addr, out);
	result = result_at(symbols, module, addr);
	n = !result ? 0 : result->n < cap ? result->n : cap;
	if (n == 0)
		return 0;
	at = module->locations.items + result->first;
	memcpy(out, at, n * sizeof(*out));
	/* the function itself, whatever there is no room for */
	out[n - 1] = at[result->n - 1];
	return n;
}

/* Symbols of the kernel have no size: each ends where the next begins. */
static bool kernel_extent(struct module *module, uint64_t addr,
			  struct seam_extent *out)
{
	const struct seam_symtab *table = &module->kernel_symbols.table;
	const struct seam_symbol *symbol = seam_symtab_find(table, addr);

	*out = (struct seam_extent) { .offset = addr, .addr = addr };
	if (!symbol)
		return !module->problem[0];
	out->addr = out->offset = symbol->start;
	out->size = seam_symtab_end(table, symbol) - symbol->start;
	return true;
}

bool seam_symbols_extent(struct seam_symbols *symbols, uint32_t id,
			 uint64_t addr, struct seam_extent *out)
{
	struct module *module = open_module(symbols, id);
	const struct result *result;

	if (!module)
		return false;
	if (module->is_kernel)
		return kernel_extent(module, addr, out);
	result = result_at(symbols, module, addr);
	if (!result || !(result->flags & SEAM_SYMBOLIZER_MAPPED))
		return false;
	*out = result->extent;
	return true;
}

/* It comes with the result for the call before @addr. */
bool seam_symbols_is_trampoline(struct seam_symbols *symbols, uint32_t id,
				uint64_t addr)
{
	struct module *module = addr ? open_module(symbols, id) : NULL;
	const struct result *result = !module || module->is_kernel ? NULL :
				      result_at(symbols, module, addr - 1);

	return result && result->flags & SEAM_SYMBOLIZER_BEFORE_TRAMPOLINE;
}

/* -- names of functions ------------------------------------------------- */

static int request_names(struct seam_symbols *symbols, struct module *module,
			 const struct seam_named_addresses *names, size_t first,
			 size_t n)
{
	struct seam_ipc *ipc = &symbols->reader.sandbox.ipc;
	struct seam_message reply;
	int r = 0;

	seam_ipc_put_u32(ipc, module->id);
	seam_ipc_put(ipc, names->addresses + first,
		     n * sizeof(*names->addresses));
	if (exchange(&symbols->reader, module, SEAM_SYMBOLIZER_NAMES, -1,
		     &reply, NULL))
		return 0;
	for (size_t i = 0; !r && i < n; i++) {
		const char *name = seam_cursor_cstr(&reply.body);

		if (!name) {
			fail(&symbols->reader, module, -EBADMSG, NULL);
			return 0;
		}
		if (*name)
			r = names->take(names->context, first + i, name);
	}
	return r;
}

int seam_symbols_names(struct seam_symbols *symbols, uint32_t id,
		       const struct seam_named_addresses *names)
{
	struct module *module = open_module(symbols, id);
	int r = 0;

	for (size_t done = 0, n; module && done < names->n && !r; done += n) {
		n = names->n - done < BATCH ? names->n - done : BATCH;
		if (!is_reachable(symbols, module))
			break;
		r = request_names(symbols, module, names, done, n);
	}
	return r;
}

/* -- instrumentation maps ----------------------------------------------- */

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

/* From regular file @fd, which the process maps, or where it is -1 @bytes. */
static int request_map(struct file_reader *reader, struct seam_xray_map *map,
		       int fd, struct seam_bytes bytes, struct seam_err *err)
{
	struct seam_message reply;
	int r = start(reader, err);

	if (r)
		return r;
	seam_ipc_put(&reader->sandbox.ipc, bytes.data, bytes.size);
	r = exchange(reader, NULL, SEAM_SYMBOLIZER_MAP, fd, &reply, err);
	if (r)
		return r;
	r = take_map(map, &reply.body);
	if (!r)
		return 0;
	seam_xray_map_fini(map);
	return fail(reader, NULL, r, err);
}

/* Take the size of the file from the bytes that are *@left. */
static int take_size(int fd, uint64_t *left, struct seam_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return seam_err_errno(err, "cannot read its size");
	if ((uint64_t)st.st_size > *left)
		return seam_err_set(err, -EFBIG, "with %lld bytes, it is "
				    "larger than the %llu left for maps beside "
				    "logs", (long long)st.st_size,
				    (unsigned long long)*left);
	*left -= (uint64_t)st.st_size;
	return 0;
}

int seam_symbols_read_map(struct seam_symbols *symbols,
			  struct seam_xray_map *map, const char *path,
			  uint64_t *left, struct seam_err *err)
{
	int fd = seam_file_open_fd(AT_FDCWD, path, left ? O_NOFOLLOW : 0, err);
	struct seam_file pipe = { 0 };
	int r = fd;

	*map = (struct seam_xray_map) { 0 };
	/* a user may name a pipe */
	if (fd >= 0)
		r = left ? take_size(fd, left, err) : 0;
	else if (!left)
		r = seam_file_open(&pipe, path, err);
	if (!r)
		r = request_map(&symbols->reader, map, fd, pipe.bytes, err);
	seam_file_close(&pipe);
	if (fd >= 0)
		close(fd);
	return r ? seam_err_add(err, r, "cannot read instrumentation map '%s'",
				path) : 0;
}

/* -- files and their code ----------------------------------------------- */

/* The process may send any descriptor that it has: only files are taken. */
static int take_open_file(struct seam_message *reply,
			  struct seam_module_file *file)
{
	struct stat st;

	*file = (struct seam_module_file) { .fd = reply->fd };
	seam_symbolizer_take_machine(&reply->body, &file->machine);
	if (reply->body.error)
		return -EBADMSG;
	if (file->fd >= 0)
		return fstat(file->fd, &st) == 0 && S_ISREG(st.st_mode) ?
		       0 : -EBADMSG;
	file->size = seam_cursor_left(&reply->body);
	file->image = file->size ? malloc(file->size) : NULL;
	if (!file->image)
		return file->size ? -ENOMEM : -EBADMSG;
	memcpy(file->image, seam_cursor_bytes(&reply->body, file->size),
	       file->size);
	return 0;
}

static int open_file(struct seam_symbols *symbols, struct module *module,
		     bool is_debug, struct seam_module_file *file,
		     struct seam_err *err)
{
	struct file_reader *reader = &symbols->reader;
	struct seam_message reply;
	int r = reach(reader, module, err);

	if (r)
		return r;
	seam_ipc_put_u32(&reader->sandbox.ipc, module->id);
	seam_ipc_put_u32(&reader->sandbox.ipc, is_debug);
	r = exchange(reader, module, SEAM_SYMBOLIZER_OPEN, -1, &reply, err);
	if (r)
		return r;
	r = take_open_file(&reply, file);
	if (r && reply.fd >= 0)
		close(reply.fd);
	return r ? fail(reader, module, r, err) : 0;
}

int seam_symbols_open(struct seam_symbols *symbols, uint32_t id, bool is_debug,
		      struct seam_module_file *file, struct seam_err *err)
{
	struct module *module = open_module(symbols, id);

	if (!module || module->is_kernel)
		return seam_err_set(err, -EINVAL, "there is no such module");
	return open_file(symbols, module, is_debug, file, err);
}

static int read_code(struct seam_symbols *symbols, struct module *module,
		     uint64_t offset, uint8_t *buf, size_t size,
		     struct seam_machine *machine, struct seam_err *err)
{
	struct seam_module_file file;
	ssize_t n = 0;
	int r = open_file(symbols, module, false, &file, err);

	if (r)
		return r;
	*machine = file.machine;
	if (file.fd >= 0) {
		n = offset > INT64_MAX ? 0 :
		    pread(file.fd, buf, size, (off_t)offset);
		if (n < 0)
			r = seam_err_errno(err, "cannot read");
		close(file.fd);
	} else if (offset < file.size && size <= file.size - offset) {
		memcpy(buf, (const uint8_t *)file.image + offset, size);
		n = (ssize_t)size;
	}
	free(file.image);
	return r || n == (ssize_t)size ? r :
	       seam_err_set(err, -ENODATA, "the file ends before the function "
			    "does");
}

static void put_path(void *context, const char *path)
{
	seam_ipc_put_text(context, path);
}

/* From a vmlinux file, which the process reads, or from /proc/kcore. */
static int read_kernel_code(struct seam_symbols *symbols,
			    const struct seam_kernel *kernel, uint64_t addr,
			    uint8_t *buf, size_t size,
			    struct seam_machine *machine, struct seam_err *err)
{
	struct file_reader *reader = &symbols->reader;
	struct seam_ipc *ipc = &reader->sandbox.ipc;
	struct seam_err file = { 0 };
	struct seam_message reply;
	const uint8_t *code;
	int r = -ENOENT;

	if (kernel->build_id_size && kernel->text_addr)
		r = start(reader, &file);
	if (!r) {
		seam_ipc_put_u64(ipc, kernel->text_addr);
		seam_ipc_put_u64(ipc, addr);
		seam_ipc_put_u64(ipc, size);
		seam_ipc_put_u32(ipc, (uint32_t)kernel->build_id_size);
		seam_ipc_put(ipc, kernel->build_id, kernel->build_id_size);
		seam_vmlinux_find(&symbols->options, kernel, put_path, ipc);
		r = exchange(reader, NULL, SEAM_SYMBOLIZER_KERNEL_CODE, -1,
			     &reply, &file);
	}
	if (r)
		return seam_kernel_core_code(kernel, &file, addr, buf, size,
					     machine, err);
	seam_symbolizer_take_machine(&reply.body, machine);
	code = seam_cursor_bytes(&reply.body, size);
	if (!code)
		return fail(reader, NULL, -EBADMSG, err);
	memcpy(buf, code, size);
	return 0;
}

int seam_symbols_code(struct seam_symbols *symbols, uint32_t id, uint64_t addr,
		      uint8_t *buf, size_t size, struct seam_machine *machine,
		      struct seam_err *err)
{
	struct module *module;

	if (id >= symbols->modules.n)
		return seam_err_set(err, -EINVAL, "there is no such module");
	module = symbols->modules.items[id];
	return module->is_kernel ?
	       read_kernel_code(symbols, &module->kernel, addr, buf, size,
				machine, err) :
	       read_code(symbols, module, addr, buf, size, machine, err);
}

/* -- instructions ------------------------------------------------------- */

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

int seam_symbols_disassemble(struct seam_symbols *symbols,
			     const struct seam_code_block *code,
			     seam_instruction_add *add, void *context,
			     struct seam_err *err)
{
	struct file_reader *reader = &symbols->disassembler;
	struct seam_ipc *ipc = &reader->sandbox.ipc;
	struct seam_message reply;
	/*
	 * The library is loaded before the fork: a sandboxed process can open
	 * nothing.  The process that reads files was started without it.
	 */
	int r = seam_disassembly_load(err);

	if (!r)
		r = start(reader, err);
	if (r)
		return r;
	seam_symbolizer_put_machine(ipc, &code->machine);
	seam_ipc_put_u64(ipc, code->addr);
	seam_ipc_put_u64(ipc, code->middle);
	seam_ipc_put(ipc, code->bytes.data, code->bytes.size);
	r = exchange(reader, NULL, SEAM_SYMBOLIZER_DISASSEMBLE, -1, &reply,
		     err);
	if (r)
		return r;
	r = take_instructions(&reply.body, code, add, context);
	return r == -EBADMSG ? fail(reader, NULL, r, err) : r;
}

/* -- what is missing ---------------------------------------------------- */

bool seam_symbols_state(const struct seam_symbols *symbols, uint32_t id,
			struct seam_module_state *state)
{
	const struct module *module = id < symbols->modules.n ?
				      symbols->modules.items[id] : NULL;

	*state = (struct seam_module_state) { 0 };
	if (!module)
		return false;
	state->path = module->file.path;
	state->missing = module->missing;
	state->problem = module->problem[0] ? module->problem : NULL;
	state->is_lost = module->is_lost;
	return true;
}

const char *seam_symbols_unprotected(const struct seam_symbols *symbols)
{
	return seam_sandbox_missing(&symbols->reader.sandbox);
}
