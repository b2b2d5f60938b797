/* SPDX-License-Identifier: MIT */
/* symbolizer_code.c - machine code and instructions; see symbolizer.h */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol/symbolizer/symbolizer_protocol.h"

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
	int r = seam_symbolizer_request(s, kind, reply), sent = 0;

	if (!r) {
		sent = seam_ipc_take_err(&reply->body, err);
		r = reply->body.error ? -EBADMSG : 0;
	}
	return r ? seam_symbolizer_fail(s, lost, r, err) : sent;
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
	int r = seam_symbolizer_reach(s, module, err);

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
		return seam_symbolizer_fail(s, module->lost, -EBADMSG, err);
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
	int taken, r = seam_symbolizer_reach(s, module, err);

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
	       seam_symbolizer_fail(s, module->lost, taken, err) :
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
	int r = seam_symbolizer_start(s, err);

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
	return r == -EBADMSG ? seam_symbolizer_fail(s, lost, r, err) : r;
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
	int r = seam_symbolizer_start(s, err);

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
	       seam_symbolizer_fail(s, lost, -EBADMSG, err) : r;
}
