/* SPDX-License-Identifier: MIT */
/* remote_code.c - code, and what it says; see remote.h */
#include <errno.h>

#include "symbol/sandbox/remote_ask.h"

void seam_remote_put_machine(struct seam_channel *channel,
			     const struct seam_machine *machine)
{
	seam_channel_put_u32(channel, machine->elf_machine);
	seam_channel_put_u32(channel, machine->is_64 |
			     (machine->is_big_endian ? 2u : 0));
}

void seam_remote_take_machine(struct seam_cursor *body,
			      struct seam_machine *machine)
{
	uint32_t number = seam_cursor_u32(body);
	uint32_t flags = seam_cursor_u32(body);

	*machine = (struct seam_machine) {
		.elf_machine = number,
		.is_64 = flags & 1, .is_big_endian = flags & 2,
	};
}

int seam_remote_code(struct seam_remote *remote,
		     struct seam_remote_module *module, uint64_t offset,
		     uint8_t *buf, size_t size, struct seam_machine *machine,
		     struct seam_err *err)
{
	struct seam_channel *channel = &remote->sandbox.channel;
	struct seam_message answer;
	struct seam_machine is = { 0 };
	const uint8_t *bytes = NULL;
	int r = seam_remote_tell(remote, module, &answer, err);

	if (r)
		return r;
	seam_channel_put_u32(channel, module->id);
	seam_channel_put_u64(channel, offset);
	seam_channel_put_u64(channel, size);
	r = seam_remote_ask(remote, SEAM_REMOTE_CODE, &answer);
	if (r)
		return seam_remote_lose(remote, module->lost, r, err);
	r = seam_channel_take_err(&answer.body, err);
	seam_remote_take_machine(&answer.body, &is);
	if (r && !answer.body.error)
		return r;
	bytes = seam_cursor_bytes(&answer.body, size);
	if (answer.body.error)
		return seam_remote_lose(remote, module->lost, -EBADMSG, err);
	*machine = is;
	memcpy(buf, bytes, size);
	return 0;
}

/* The sizes of @body tell where the next instruction is: within the code. */
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

int seam_remote_disassemble(struct seam_remote *remote,
			    const struct seam_code_block *code,
			    seam_instruction_add *add, void *context,
			    struct seam_err *err)
{
	struct seam_channel *channel = &remote->sandbox.channel;
	struct seam_message answer;
	char lost[SEAM_REMOTE_LOST];
	int r = seam_remote_start(remote, err);

	if (r)
		return r;
	seam_remote_put_machine(channel, &code->machine);
	seam_channel_put_u64(channel, code->addr);
	seam_channel_put_u64(channel, code->middle);
	seam_channel_put(channel, code->bytes.data, code->bytes.size);
	r = seam_remote_ask(remote, SEAM_REMOTE_DISASSEMBLE, &answer);
	if (r)
		return seam_remote_lose(remote, lost, r, err);
	r = seam_channel_take_err(&answer.body, err);
	if (r && !answer.body.error)
		return r;
	r = take_instructions(&answer.body, code, add, context);
	return r == -EBADMSG ? seam_remote_lose(remote, lost, r, err) : r;
}

/* @err has what the child said, if it said it in a message that is one. */
static int take_kernel_code(struct seam_cursor *body, uint8_t *buf,
			    size_t size, struct seam_kernel_file_answer *out,
			    struct seam_err *err)
{
	int r = seam_channel_take_err(body, err);
	const uint8_t *bytes;

	seam_remote_take_machine(body, &out->machine);
	out->is_found = seam_cursor_u32(body);
	snprintf(out->other, sizeof(out->other), "%s",
		 body->error ? "" : seam_cursor_cstr(body));
	if (body->error || r)
		return body->error ? -EBADMSG : r;
	bytes = seam_cursor_bytes(body, size);
	if (body->error)
		return -EBADMSG;
	memcpy(buf, bytes, size);
	return 0;
}

int seam_remote_kernel_code(struct seam_remote *remote,
			    const struct seam_kernel_file_query *query,
			    uint8_t *buf, struct seam_kernel_file_answer *out,
			    struct seam_err *err)
{
	struct seam_channel *channel = &remote->sandbox.channel;
	const struct seam_kernel *kernel = query->kernel;
	struct seam_message answer;
	char lost[SEAM_REMOTE_LOST];
	int r = seam_remote_start(remote, err);

	if (r)
		return r;
	seam_channel_put_u64(channel, kernel->text_addr);
	seam_channel_put_u64(channel, query->addr);
	seam_channel_put_u64(channel, query->size);
	seam_channel_put_u32(channel, (uint32_t)kernel->build_id_size);
	seam_channel_put(channel, kernel->build_id, kernel->build_id_size);
	for (size_t i = 0; i < query->n_paths && i < SEAM_REMOTE_PATHS; i++)
		seam_channel_put_text(channel, query->paths[i]);
	r = seam_remote_ask(remote, SEAM_REMOTE_KERNEL_CODE, &answer);
	if (!r)
		r = take_kernel_code(&answer.body, buf, query->size, out, err);
	else
		return seam_remote_lose(remote, lost, r, err);
	return r == -EBADMSG ? seam_remote_lose(remote, lost, r, err) : r;
}
