/* SPDX-License-Identifier: MIT */
/* address_names.c - both sides of the request; see address_names.h */
#include "symbol/xray/address_names.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/demangle.h"
#include "base/file.h"
#include "symbol/elf/elf_symbols.h"

enum {
	NAMES = 1,
	BATCH = 1024,		/* addresses of a message */
	KEPT_FILES = 8,		/* whose symbols are not read twice */
	WAIT_MS = 1000,
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

/* ---- the parent's side: processes ---- */

/* In seconds, of a reply that has begun to come: it comes at once. */
static bool is_stalled(struct seam_ipc *ipc)
{
	return ipc->n_waits >= 3;
}

int seam_address_names_start(struct seam_address_names *names,
			      struct seam_err *err)
{
	int r = 0;

	*names = (struct seam_address_names) { 0 };
	for (int i = 0; i < SEAM_ADDRESS_NAMES_PROCESSES && !r; i++) {
		struct seam_sandbox *sandbox = &names->readers[i].sandbox;

		r = seam_sandbox_start(sandbox, serve, NULL, i ? NULL : err);
		if (r)
			break;
		sandbox->ipc.is_timed_out = is_stalled;
		/* what timeout(1), say, sends to our group is not for it */
		setpgid(sandbox->pid, sandbox->pid);
		names->n++;
	}
	return names->n ? 0 : r;
}

static struct seam_address_reader *running(struct seam_address_names *names)
{
	return &names->readers[names->n - 1];
}

/* Make reader @i the one that is running(). */
static void make_last(struct seam_address_names *names, size_t i)
{
	struct seam_address_reader reader = names->readers[i];

	names->readers[i] = *running(names);
	*running(names) = reader;
}

/* The process is of no use any more. */
static int end_lost(struct seam_address_names *names, struct seam_err *err)
{
	char why[100];

	seam_sandbox_end(&running(names)->sandbox, why, sizeof(why));
	names->n--;
	return seam_err_set(err, -EIO, "the process that read it %s", why);
}

static bool can_read(const struct seam_address_reader *reader, int timeout_ms)
{
	struct pollfd poll_fd = {
		.fd = reader->sandbox.ipc.fd, .events = POLLIN,
	};

	return poll(&poll_fd, 1, timeout_ms) > 0;
}

/* The reply to a request that was left out has come. */
static void drop_reply(struct seam_address_names *names)
{
	struct seam_message reply;

	if (seam_ipc_receive(&running(names)->sandbox.ipc, &reply)) {
		end_lost(names, NULL);
		return;
	}
	seam_file_close_fd(reply.fd);
	running(names)->is_busy = false;
}

static bool hangs(const struct seam_address_reader *reader)
{
	return seam_clock_ns() - reader->requested_ns > SEAM_ADDRESS_NAMES_HANG_NS;
}

void seam_address_names_collect(struct seam_address_names *names)
{
	for (size_t i = names->n; i-- > 0;) {
		const struct seam_address_reader *reader = &names->readers[i];
		bool has_replied = reader->is_busy && can_read(reader, 0);

		if (!reader->is_busy || !(has_replied || hangs(reader)))
			continue;
		make_last(names, i);
		if (has_replied)
			drop_reply(names);
		else
			end_lost(names, NULL);
	}
}

/* Have one run that is not busy.  False: there is none. */
static bool choose_reader(struct seam_address_names *names)
{
	seam_address_names_collect(names);
	for (size_t i = names->n; i-- > 0;)
		if (!names->readers[i].is_busy) {
			make_last(names, i);
			return true;
		}
	return false;
}

/* ---- the parent's side: requests ---- */

static int left_out(struct seam_err *err)
{
	return seam_err_set(err, -ETIMEDOUT, "reading it took too long");
}

/* Wait for the reply, or let its process be busy with it. */
static int wait_for_reply(struct seam_address_names *names,
			  const struct seam_address_request *request,
			  uint64_t end_ns, struct seam_err *err)
{
	struct seam_address_reader *reader = running(names);
	int fd = reader->sandbox.ipc.fd;

	while (!can_read(reader, request->goes_on ? 0 : WAIT_MS)) {
		reader->is_busy = seam_clock_ns() >= end_ns ||
				  (request->goes_on &&
				   !request->goes_on(request->context, fd));
		if (reader->is_busy)
			return left_out(err);
	}
	return 0;
}

static int send_part(struct seam_address_reader *reader,
		     const struct seam_address_request *request, size_t first,
		     size_t n)
{
	struct seam_ipc *ipc = &reader->sandbox.ipc;

	reader->requested_ns = seam_clock_ns();
	seam_ipc_put_u32(ipc, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		seam_ipc_put_u64(ipc, request->addresses[first + i]);
	return seam_ipc_send(ipc, NAMES, first ? -1 : request->fd);
}

/* The reply to a request for @n names.  1: take() wants no more. */
static int take_reply(struct seam_address_names *names,
		      const struct seam_address_request *request, size_t first,
		      size_t n, struct seam_err *err)
{
	struct seam_message reply;
	int r;

	if (seam_ipc_receive(&running(names)->sandbox.ipc, &reply))
		return end_lost(names, err);
	seam_file_close_fd(reply.fd);
	r = seam_ipc_take_err(&reply.body, err);
	for (size_t i = 0; !r && i < n; i++) {
		const char *name = seam_cursor_cstr(&reply.body);

		r = !request->take(request->context, first + i,
				   name ? name : "");
	}
	return r;
}

int seam_address_names_of(struct seam_address_names *names,
			   const struct seam_address_request *request,
			   struct seam_err *err)
{
	uint64_t end_ns = seam_clock_ns() + SEAM_ADDRESS_NAMES_FILE_NS;
	int r = 0;

	if (!choose_reader(names))
		return names->n ? left_out(err) :
		       seam_err_set(err, -EIO, "no process can read it");
	for (size_t done = 0, n; done < request->n && !r; done += n) {
		n = request->n - done < BATCH ? request->n - done : BATCH;
		if (send_part(running(names), request, done, n))
			return end_lost(names, err);
		r = wait_for_reply(names, request, end_ns, err) ?:
		    take_reply(names, request, done, n, err);
	}
	return r < 0 ? r : 0;
}

void seam_address_names_end(struct seam_address_names *names)
{
	for (; names->n; names->n--)
		seam_sandbox_end(&running(names)->sandbox, NULL, 0);
}
