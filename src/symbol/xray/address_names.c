/* SPDX-License-Identifier: MIT */
/* address_names.c - both sides of the request; see address_names.h */
#include "symbol/xray/address_names.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/demangle.h"
#include "base/file.h"
#include "symbol/elf/elf_symbols.h"

enum {
	NAMES = 1,
	BATCH = 1024,		/* addresses of a message */
	KEPT_FILES = 8,		/* whose symbols are not read twice */
};

/* ---- the child's side ---- */

/* The symbols of a file: forks of a program have the same ones. */
struct named_file {
	struct stat st;
	struct seam_arena arena;
	struct seam_symtab symbols;
};

struct named_files {
	struct named_file items[KEPT_FILES];
	size_t n_read;			/* so far; the oldest one goes */
	struct named_file *now;		/* NULL: it could not be read */
};

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
	       a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void forget(struct named_file *file)
{
	seam_symtab_fini(&file->symbols);
	seam_arena_fini(&file->arena);
	*file = (struct named_file) { 0 };
}

static int read_symbols(struct named_file *file, int fd, struct seam_err *err)
{
	struct seam_elf elf;
	int r = seam_elf_open_at(&elf, fd, "image", err);

	if (r)
		return r;
	if (seam_elf_symbols(&file->symbols, &file->arena, &elf) ||
	    seam_symtab_sort(&file->symbols) ||
	    seam_elf_minidebug(&file->symbols, &file->arena, &elf) ||
	    seam_symtab_sort(&file->symbols))
		r = seam_err_no_memory(err);
	seam_elf_close(&elf);
	return r;
}

/* Set files->now to the file @fd, which is taken. */
static void choose_file(struct named_files *files, int fd, struct seam_err *err)
{
	struct named_file *file = &files->items[files->n_read % KEPT_FILES];
	struct stat st = { 0 };

	files->now = NULL;
	if (fstat(fd, &st) < 0) {
		seam_err_errno(err, "cannot stat it");
		close(fd);
		return;
	}
	for (size_t i = 0; i < KEPT_FILES && !files->now; i++)
		if (is_same(&files->items[i].st, &st))
			files->now = &files->items[i];
	if (files->now) {
		close(fd);
		return;
	}
	forget(file);
	if (read_symbols(file, fd, err)) {
		forget(file);
		return;
	}
	file->st = st;
	files->now = file;
	files->n_read++;
}

static const char *name_at(struct named_file *file, uint64_t address)
{
	const struct seam_symbol *symbol = seam_symtab_find(&file->symbols,
							    address);

	/* many symbols may share one name of any length */
	return symbol && symbol->start == address &&
	       strnlen(symbol->name, SEAM_DEMANGLE_MAX) < SEAM_DEMANGLE_MAX ?
	       seam_demangle_with_parameters(&file->arena, symbol->name) : "";
}

static void serve(struct seam_ipc *ipc, void *context)
{
	struct named_files files = { 0 };
	struct seam_message request;

	(void)context;
	while (seam_ipc_receive(ipc, &request) == 0) {
		struct seam_err err = { 0 };
		uint32_t n = seam_cursor_u32(&request.body);

		if (request.fd >= 0)
			choose_file(&files, request.fd, &err);
		seam_ipc_put_err(ipc, &err);
		for (uint32_t i = 0; files.now && i < n && n <= BATCH; i++)
			seam_ipc_put_text(ipc, name_at(files.now,
				seam_cursor_u64(&request.body)));
		if (seam_ipc_send(ipc, NAMES, -1))
			return;
	}
}

/* ---- the parent's side ---- */

int seam_address_names_start(struct seam_address_names *names,
			      struct seam_err *err)
{
	int r = 0;

	*names = (struct seam_address_names) { 0 };
	for (int i = 0; i < SEAM_ADDRESS_NAMES_PROCESSES && !r; i++) {
		struct seam_sandbox *sandbox = &names->sandboxes[i];

		r = seam_sandbox_start(sandbox, serve, NULL, i ? NULL : err);
		if (r)
			break;
		/* what timeout(1), say, sends to our group is not for it */
		setpgid(sandbox->pid, sandbox->pid);
		names->n++;
	}
	return names->n ? 0 : r;
}

static struct seam_sandbox *running(struct seam_address_names *names)
{
	return &names->sandboxes[names->n - 1];
}

/* The process is of no use any more. */
static int end_lost(struct seam_address_names *names, struct seam_err *err)
{
	char why[100];

	seam_sandbox_end(running(names), why, sizeof(why));
	names->n--;
	return seam_err_set(err, -EIO, "the process that read it %s", why);
}

static int request(struct seam_address_names *names, int fd,
		   const uint64_t *addresses, size_t n)
{
	struct seam_ipc *ipc = &running(names)->ipc;

	seam_ipc_put_u32(ipc, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		seam_ipc_put_u64(ipc, addresses[i]);
	return seam_ipc_send(ipc, NAMES, fd);
}

int seam_address_names_of(struct seam_address_names *names, int fd,
			   const uint64_t *addresses, size_t n,
			   bool (*take)(void *context, size_t i,
					const char *name),
			   void *context, struct seam_err *err)
{
	struct seam_message reply;

	if (!names->n)
		return seam_err_set(err, -EIO, "no process can read it");
	for (size_t done = 0, some; done < n; done += some) {
		int r;

		some = n - done < BATCH ? n - done : BATCH;
		if (request(names, done ? -1 : fd, addresses + done, some) ||
		    seam_ipc_receive(&running(names)->ipc, &reply))
			return end_lost(names, err);
		seam_file_close_fd(reply.fd);
		r = seam_ipc_take_err(&reply.body, err);
		if (r)
			return r;
		for (size_t i = 0; i < some; i++) {
			const char *name = seam_cursor_cstr(&reply.body);

			if (!take(context, done + i, name ? name : ""))
				return 0;
		}
	}
	return 0;
}

void seam_address_names_end(struct seam_address_names *names)
{
	for (; names->n; names->n--)
		seam_sandbox_end(running(names), NULL, 0);
}
