/* SPDX-License-Identifier: MIT */
/* symbolizer.c - the sandboxed side: read files, reply; see symbolizer.h */
#include "symbol/symbolizer/symbolizer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol/code/disassembly.h"
#include "symbol/code/kernel_code.h"
#include "symbol/module/elf_module.h"
#include "symbol/xray/xray_map.h"

/* More than the largest function has. */
#define MAX_CODE ((size_t)64 << 20)

/* A module, and what the parent sent of it. */
struct served {
	struct seam_module file;
	struct seam_elf_module elf;
};

/* The process has one parent; the broker's functions have no context. */
static struct seam_ipc *parent;

/* The same socket: files are requested while a reply is being made. */
static struct seam_ipc files;

static const struct seam_symbols_options *options;

static SEAM_ARRAY(struct served *) modules;

/* Received with the request; sent with the reply; -1: none. */
static int request_fd, reply_fd;

/* -- files, from the parent --------------------------------------------- */

static int receive_file(struct seam_err *err)
{
	struct seam_message reply;
	int r = seam_ipc_receive(&files, &reply);

	/* the parent has ended */
	if (r == -EPIPE)
		_exit(0);
	if (!r)
		r = seam_ipc_take_err(&reply.body, err);
	else
		seam_err_set(err, r, "%s", strerror(-r));
	if (r == 0 && reply.fd < 0)
		r = seam_err_set(err, -EIO, "received no file");
	if (r && reply.fd >= 0)
		close(reply.fd);
	return r ? r : reply.fd;
}

static int open_file(const char *path, struct seam_err *err)
{
	seam_ipc_put_text(&files, path);
	if (seam_ipc_send(&files, SEAM_SYMBOLIZER_FILE, -1))
		_exit(0);
	return receive_file(err);
}

static int download(bool debug, const uint8_t *id, size_t id_size,
		    struct seam_err *err)
{
	seam_ipc_put_u32(&files, debug);
	seam_ipc_put(&files, id, id_size);
	if (seam_ipc_send(&files, SEAM_SYMBOLIZER_DOWNLOAD, -1))
		_exit(0);
	return receive_file(err);
}

static const struct seam_file_broker broker = {
	.open = open_file, .download = download,
};

/* -- modules ------------------------------------------------------------ */

static struct seam_module take_module(struct seam_cursor *body)
{
	struct seam_module file = { 0 };

	file.pid = (int32_t)seam_cursor_u32(body);
	file.evidence = (enum seam_evidence)seam_cursor_u32(body);
	file.ino = seam_cursor_u64(body);
	file.ino_generation = seam_cursor_u64(body);
	file.mapped_ns = seam_cursor_u64(body);
	file.content_id = seam_cursor_u64(body);
	file.build_id_size = seam_cursor_u32(body);
	file.build_id = file.build_id_size ?
			seam_cursor_bytes(body, file.build_id_size) : NULL;
	file.path = seam_cursor_cstr(body);
	file.bundle = seam_cursor_cstr(body);
	if (file.bundle && !*file.bundle)
		file.bundle = NULL;
	return file;
}

/* Of what @body has, in a copy. */
static struct seam_elf_module *add_module(struct seam_cursor *body,
					  struct seam_err *err)
{
	struct served *module = calloc(1, sizeof(*module));
	size_t size = seam_cursor_left(body);
	const char *copy = module ? seam_arena_text(&module->elf.arena,
		(const char *)seam_cursor_bytes(body, size), size) : NULL;
	struct seam_cursor c = seam_cursor_make((const uint8_t *)copy, size,
						SEAM_NATIVE);

	if (!copy || !SEAM_ARRAY_ADD(&modules, module)) {
		free(module);
		seam_err_no_memory(err);
		return NULL;
	}
	module->file = take_module(&c);
	module->elf.options = options;
	module->elf.file = &module->file;
	return &module->elf;
}

static void reply_module(struct seam_cursor *body, struct seam_err *err)
{
	struct seam_elf_module *module = add_module(body, err);
	bool has_code = module && seam_elf_module_read(module);

	if (!module)
		return;
	seam_ipc_put_u32(parent, (uint32_t)(modules.n - 1));
	seam_ipc_put_u32(parent, has_code);
	seam_ipc_put_u32(parent, (uint32_t)-module->missing);
	seam_ipc_put_text(parent, module->problem);
}

/* The module that @body begins with; NULL: there is none. */
static struct seam_elf_module *module_of(struct seam_cursor *body)
{
	uint32_t id = seam_cursor_u32(body);

	return id < modules.n ? &modules.items[id]->elf : NULL;
}

static void put_location(const struct seam_location *at)
{
	seam_ipc_put_u32(parent, at->line);
	seam_ipc_put_u32(parent, at->is_inlined);
	seam_ipc_put_text(parent, at->function);
	seam_ipc_put_text(parent, at->file);
}

static void put_result(struct seam_elf_module *module, uint64_t offset)
{
	struct seam_location at[SEAM_SYMBOLIZER_LOCATIONS];
	struct seam_extent extent = { 0 };
	size_t n = seam_elf_module_resolve(module, offset, at,
					   SEAM_SYMBOLIZER_LOCATIONS);
	uint32_t flags = 0;

	if (seam_elf_module_extent(module, offset, &extent))
		flags |= SEAM_SYMBOLIZER_MAPPED;
	if (seam_elf_module_is_trampoline(module, offset + 1))
		flags |= SEAM_SYMBOLIZER_BEFORE_TRAMPOLINE;
	seam_ipc_put_u32(parent, flags);
	seam_ipc_put_u32(parent, (uint32_t)n);
	seam_ipc_put_u64(parent, extent.offset);
	seam_ipc_put_u64(parent, extent.addr);
	seam_ipc_put_u64(parent, extent.size);
	for (size_t i = 0; i < n; i++)
		put_location(&at[i]);
}

static void reply_resolve(struct seam_cursor *body, struct seam_err *err)
{
	struct seam_elf_module *module = module_of(body);

	(void)err;
	while (module && !body->error && seam_cursor_left(body) >= 8)
		put_result(module, seam_cursor_u64(body));
	/* reading a unit may find what is missing */
	seam_ipc_put_text(parent, module ? module->problem : NULL);
}

/* The names for people are needed until they are sent. */
static void reply_names(struct seam_cursor *body, struct seam_err *err)
{
	struct seam_elf_module *module = module_of(body);
	struct seam_arena arena = { 0 };

	(void)err;
	while (module && !body->error && seam_cursor_left(body) >= 8)
		seam_ipc_put_text(parent, seam_elf_module_name(module,
					seam_cursor_u64(body), &arena));
	seam_arena_fini(&arena);
}

static void put_function(const struct seam_xray_map *map,
			 const struct seam_xray_mapped *f)
{
	const uint32_t strings[] = { f->name, f->image, f->build_id };

	seam_ipc_put_u32(parent, f->id);
	seam_ipc_put_u32(parent, f->kinds);
	seam_ipc_put_u64(parent, f->addr);
	seam_ipc_put_u64(parent, f->file_offset);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(strings); i++)
		seam_ipc_put_text(parent, strings[i] ?
			seam_strings_get(&map->strings, strings[i]) : NULL);
}

/* From the file that came with the request, or from the request itself. */
static void reply_map(struct seam_cursor *body, struct seam_err *err)
{
	struct seam_bytes bytes = { body->base, body->size };
	int fd = request_fd;
	struct seam_xray_map map = { 0 };
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		bytes = (struct seam_bytes) { NULL, (size_t)st.st_size };
	if (fd >= 0 && bytes.size)
		bytes.data = mmap(NULL, bytes.size, PROT_READ, MAP_PRIVATE, fd,
				  0);
	if ((const void *)bytes.data == MAP_FAILED)
		seam_err_errno(err, "cannot map %zu bytes", bytes.size);
	else
		seam_xray_map_read(&map, bytes, err);
	seam_ipc_put_u32(parent, map.from_elf);
	seam_ipc_put_u64(parent, map.functions.n);
	for (size_t i = 0; i < map.functions.n; i++)
		put_function(&map, &map.functions.items[i]);
	seam_xray_map_fini(&map);
	if (fd >= 0 && (const void *)bytes.data != MAP_FAILED)
		munmap((void *)(uintptr_t)bytes.data, bytes.size);
}

static void reply_open(struct seam_cursor *body, struct seam_err *err)
{
	struct seam_elf_module *module = module_of(body);
	struct seam_module_file file = { .fd = -1 };
	bool is_debug = seam_cursor_u32(body);

	if (!module) {
		seam_err_no_memory(err);
		return;
	}
	if (!seam_elf_module_open(module, is_debug, &file, err))
		err->code = 0;	/* what was tried before is in it */
	seam_symbolizer_put_machine(parent, &file.machine);
	if (file.image)
		seam_ipc_put(parent, file.image, file.size);
	free(file.image);
	reply_fd = file.fd;
}

/* -- machine code ------------------------------------------------------- */

static int put_instruction(void *context,
			   const struct seam_instruction *instruction)
{
	const struct seam_code_block *code = context;

	/* where the first one begins, then how long each is */
	if (parent->out.n == 0)
		seam_ipc_put_u32(parent, (uint32_t)(instruction->addr -
							code->addr));
	seam_ipc_put_u32(parent, (uint32_t)instruction->size);
	seam_ipc_put_text(parent, instruction->text);
	return 0;
}

static void reply_disassemble(struct seam_cursor *body, struct seam_err *err)
{
	struct seam_code_block code = { 0 };

	seam_symbolizer_take_machine(body, &code.machine);
	code.addr = seam_cursor_u64(body);
	code.middle = seam_cursor_u64(body);
	code.bytes.size = seam_cursor_left(body);
	code.bytes.data = seam_cursor_bytes(body, code.bytes.size);
	if (!seam_disassembly_walk(&code, put_instruction, &code, err) &&
	    parent->out.n == 0)
		seam_ipc_put_u32(parent, 0);
}

/* From the first of the paths after the query that is of the kernel. */
static void reply_kernel_code(struct seam_cursor *body, struct seam_err *err)
{
	struct seam_kernel kernel = { .text_addr = seam_cursor_u64(body) };
	uint64_t addr = seam_cursor_u64(body), size = seam_cursor_u64(body);
	struct seam_machine machine = { 0 };
	uint8_t *code = size <= MAX_CODE ? malloc(size + 1) : NULL;
	int r = code ? -ENOENT : seam_err_no_memory(err);

	kernel.build_id_size = seam_cursor_u32(body);
	kernel.build_id = seam_cursor_bytes(body, kernel.build_id_size);
	while (r == -ENOENT && seam_cursor_left(body) > 0)
		r = seam_vmlinux_code(&kernel, seam_cursor_cstr(body), addr,
				      code, size, &machine, err);
	if (r) {
		err->code = r;
	} else {
		err->code = 0;	/* what was tried before is in it */
		seam_symbolizer_put_machine(parent, &machine);
		seam_ipc_put(parent, code, size);
	}
	free(code);
}

typedef void reply_fn(struct seam_cursor *body, struct seam_err *err);

static reply_fn *const replies[SEAM_SYMBOLIZER_DONE] = {
	[SEAM_SYMBOLIZER_MODULE] = reply_module,
	[SEAM_SYMBOLIZER_RESOLVE] = reply_resolve,
	[SEAM_SYMBOLIZER_NAMES] = reply_names,
	[SEAM_SYMBOLIZER_MAP] = reply_map,
	[SEAM_SYMBOLIZER_OPEN] = reply_open,
	[SEAM_SYMBOLIZER_DISASSEMBLE] = reply_disassemble,
	[SEAM_SYMBOLIZER_KERNEL_CODE] = reply_kernel_code,
};

void seam_symbolizer_serve(struct seam_ipc *ipc, void *context)
{
	struct seam_message request;
	int r = 0;

	parent = ipc;
	options = context;
	files = (struct seam_ipc) { .fd = ipc->fd };
	seam_file_broker = &broker;
	while (!r && seam_ipc_receive(ipc, &request) == 0) {
		struct seam_err err = { 0 };

		request_fd = request.fd;
		reply_fd = -1;
		replies[request.kind](&request.body, &err);
		if (err.code) {
			ipc->out.n = 0;
			seam_ipc_put_err(ipc, &err);
		}
		r = seam_ipc_send(ipc, err.code ? SEAM_SYMBOLIZER_FAILED :
				  SEAM_SYMBOLIZER_DONE, reply_fd);
		if (request_fd >= 0)
			close(request_fd);
		if (reply_fd >= 0)
			close(reply_fd);
	}
}
