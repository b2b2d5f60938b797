/* SPDX-License-Identifier: MIT */
/* address_names.c - both sides of the request; see address_names.h */
#include "symbol/xray/address_names.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/demangle.h"
#include "base/file.h"
#include "symbol/elf/elf_symbols.h"

enum {
	NAMES = 1,
	BATCH = 1024,		/* addresses of a message */
};

/* ---- the child's side ---- */

/* The file whose names are requested; another one with each descriptor. */
struct named_file {
	struct seam_elf elf;
	struct seam_arena arena;
	struct seam_symtab symbols;
};

static void close_file(struct named_file *file)
{
	seam_symtab_fini(&file->symbols);
	seam_arena_fini(&file->arena);
	seam_elf_close(&file->elf);
	*file = (struct named_file) { 0 };
}

static int open_file(struct named_file *file, int fd, struct seam_err *err)
{
	int r;

	close_file(file);
	r = seam_elf_open_at(&file->elf, fd, "image", err);
	if (r)
		return r;
	if (seam_elf_symbols(&file->symbols, &file->arena, &file->elf) ||
	    seam_symtab_sort(&file->symbols) ||
	    seam_elf_minidebug(&file->symbols, &file->arena, &file->elf) ||
	    seam_symtab_sort(&file->symbols))
		return seam_err_no_memory(err);
	return 0;
}

static const char *name_at(struct named_file *file, uint64_t address)
{
	const struct seam_symbol *symbol = seam_symtab_find(&file->symbols,
							    address);

	return symbol && symbol->start == address ?
	       seam_demangle_with_parameters(&file->arena, symbol->name) : "";
}

static void serve(struct seam_ipc *ipc, void *context)
{
	struct named_file file = { 0 };
	struct seam_message request;

	(void)context;
	while (seam_ipc_receive(ipc, &request) == 0) {
		struct seam_err err = { 0 };
		uint32_t n = seam_cursor_u32(&request.body);

		if (request.fd >= 0)
			open_file(&file, request.fd, &err);
		seam_ipc_put_err(ipc, &err);
		for (uint32_t i = 0; i < n && n <= BATCH; i++)
			seam_ipc_put_text(ipc, name_at(&file,
				seam_cursor_u64(&request.body)));
		if (seam_ipc_send(ipc, NAMES, -1))
			return;
	}
}

/* ---- the parent's side ---- */

int seam_address_names_start(struct seam_address_names *names,
			      struct seam_err *err)
{
	int r = seam_sandbox_start(&names->sandbox, serve, NULL, err);

	names->is_running = r == 0;
	/* what a terminal, or timeout(1), sends to our group is not for it */
	if (names->is_running)
		setpgid(names->sandbox.pid, names->sandbox.pid);
	return r;
}

/* The process is of no use any more. */
static int end_lost(struct seam_address_names *names, struct seam_err *err)
{
	char why[100];

	seam_sandbox_end(&names->sandbox, why, sizeof(why));
	names->is_running = false;
	return seam_err_set(err, -EIO, "the process that read it %s", why);
}

static int ask(struct seam_address_names *names, int fd,
	       const uint64_t *addresses, size_t n)
{
	struct seam_ipc *ipc = &names->sandbox.ipc;

	seam_ipc_put_u32(ipc, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		seam_ipc_put_u64(ipc, addresses[i]);
	return seam_ipc_send(ipc, NAMES, fd);
}

int seam_address_names_of(struct seam_address_names *names, int fd,
			   const uint64_t *addresses, size_t n,
			   void (*take)(void *context, size_t i,
					const char *name),
			   void *context, struct seam_err *err)
{
	struct seam_message reply;

	if (!names->is_running)
		return seam_err_set(err, -EIO, "no process can read it");
	for (size_t done = 0, some; done < n; done += some) {
		int r;

		some = n - done < BATCH ? n - done : BATCH;
		if (ask(names, done ? -1 : fd, addresses + done, some) ||
		    seam_ipc_receive(&names->sandbox.ipc, &reply))
			return end_lost(names, err);
		seam_file_close_fd(reply.fd);
		r = seam_ipc_take_err(&reply.body, err);
		if (r)
			return r;
		for (size_t i = 0; i < some; i++) {
			const char *name = seam_cursor_cstr(&reply.body);

			take(context, done + i, name ? name : "");
		}
	}
	return 0;
}

void seam_address_names_end(struct seam_address_names *names)
{
	if (names->is_running)
		seam_sandbox_end(&names->sandbox, NULL, 0);
	names->is_running = false;
}
