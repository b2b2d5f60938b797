/* SPDX-License-Identifier: MIT */
/* uprobe.c - "uprobe:/path:where"; see event_kinds.h */
#include "record/events/event_kinds.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "record/events/tracefs.h"
#include "symbol/elf/elf_symbols.h"
#include "symbol/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_PLACES = 1024 };	/* functions of one name */

/* Of all events that recorders define in tracefs. */
#define SYSTEM "seam"

static const char prefix[] = "uprobe:";
static const char return_suffix[] = "%return";

/* Get the offset in the file of address @addr. */
static int offset_of(const struct seam_elf *file, uint64_t addr,
		     uint64_t *offset)
{
	for (size_t i = 0; i < file->segments.n; i++) {
		const struct seam_segment *s = &file->segments.items[i];

		if (s->is_executable && addr - s->addr < s->size) {
			*offset = s->offset + (addr - s->addr);
			return 0;
		}
	}
	return -ENOENT;
}

/*
 * In the sandbox: send the offset of each function @context of the file from
 * @ipc.  Static functions of several source files may have one name.
 */
static void serve_lookup(struct seam_ipc *ipc, void *context)
{
	const char *name = context;
	struct seam_elf file = { .fd = -1 };
	struct seam_symtab table = { 0 };
	struct seam_arena arena = { 0 };
	struct seam_message sent;
	struct seam_err err = { 0 };
	int r = seam_ipc_receive(ipc, &sent);

	if (!r)
		r = seam_elf_open_at(&file, sent.fd, "", &err);
	if (!r && seam_elf_symbols(&table, &arena, &file))
		r = seam_err_no_memory(&err);
	seam_ipc_put_err(ipc, &err);
	for (size_t i = 0; !r && i < table.symbols.n; i++) {
		const struct seam_symbol *s = &table.symbols.items[i];
		uint64_t offset;

		if (s->name && strcmp(s->name, name) == 0 &&
		    offset_of(&file, s->start, &offset) == 0)
			seam_ipc_put_u64(ipc, offset);
	}
	seam_ipc_send(ipc, 0, -1);
}

static int add_place(struct seam_uprobe *uprobe, uint64_t offset,
		     struct seam_err *err)
{
	for (size_t i = 0; i < uprobe->places.n; i++)
		if (uprobe->places.items[i] == offset)
			return 0;
	if (uprobe->places.n == MAX_PLACES)
		return seam_err_set(err, -E2BIG, "more than %d functions have "
				    "this name", MAX_PLACES);
	return SEAM_ARRAY_ADD(&uprobe->places, offset) ? 0 :
	       seam_err_no_memory(err);
}

/*
 * Add the places of functions @name.  A recorder with uprobes runs as root, so
 * a process without rights reads the file's symbols (sandbox.h).
 */
static int find_symbol(struct seam_uprobe *uprobe, const char *name,
		       struct seam_err *err)
{
	struct seam_sandbox reader;
	struct seam_message answer;
	char why[100];
	int r = seam_sandbox_start(&reader, serve_lookup,
				   (void *)(uintptr_t)name, err);

	if (r == 0) {
		r = seam_ipc_send(&reader.ipc, 0, uprobe->fd);
		if (!r)
			r = seam_ipc_receive(&reader.ipc, &answer);
		if (r) {
			seam_sandbox_end(&reader, why, sizeof(why));
			seam_err_set(err, r, "the process that read it %s",
				     why);
		} else {
			r = seam_ipc_take_err(&answer.body, err);
		}
		while (r == 0 && seam_cursor_left(&answer.body) >=
		       sizeof(uint64_t))
			r = add_place(uprobe, seam_cursor_u64(&answer.body),
				      err);
		seam_sandbox_end(&reader, NULL, 0);
	}
	return r < 0 || uprobe->places.n ? r :
	       seam_err_set(err, -ENOENT, "it has no function '%s'", name);
}

/* Set the offsets in the file: @place is "0xoffset" or a symbol. */
static int find_places(struct seam_uprobe *uprobe, const char *place,
		       struct seam_err *err)
{
	char *end;
	uint64_t offset;

	if (strncmp(place, "0x", 2) != 0)
		return find_symbol(uprobe, place, err);
	offset = strtoull(place, &end, 16);
	return *end ? seam_err_set(err, -EINVAL, "'%s' is not an offset",
				   place) : add_place(uprobe, offset, err);
}

/* Cut "%return" off.  True when it was there. */
static bool cut_return(char *text)
{
	size_t n = strlen(text), suffix = strlen(return_suffix);

	if (n < suffix || strcmp(text + n - suffix, return_suffix) != 0)
		return false;
	text[n - suffix] = '\0';
	return true;
}

int seam_uprobe_parse(struct seam_event *event, const char *text,
		      struct seam_err *err)
{
	char copy[PATH_MAX + SEAM_EVENT_NAME], shown[2 * SEAM_EVENT_NAME];
	const char *path = copy + strlen(prefix);
	struct seam_uprobe *uprobe = calloc(1, sizeof(*uprobe));
	char *place;
	int r;

	event->uprobe = uprobe;
	if (!uprobe)
		return seam_err_no_memory(err);
	uprobe->fd = -1;
	snprintf(event->name, sizeof(event->name), "%s", text);
	snprintf(copy, sizeof(copy), "%s", text);
	uprobe->is_return = cut_return(copy);
	place = strrchr(copy, ':');
	if (!place || place <= path || !place[1])
		return seam_err_set(err, -EINVAL, "a probe is written "
			"uprobe:/path:symbol or uprobe:/path:0xoffset");
	*place++ = '\0';
	event->attr.type = PERF_TYPE_TRACEPOINT;
	event->each_time = true;
	uprobe->fd = r = seam_elf_open_fd(path, err);
	if (r >= 0)
		r = find_places(uprobe, place, err);
	return r >= 0 ? 0 :
	       seam_err_add(err, r, "cannot probe '%s'",
			    seam_text_copy(shown, sizeof(shown), path,
					   SEAM_TEXT_TERMINAL));
}

/* ---- in the kernel ---- */

/* Write a line to @fd, uprobe_events of tracefs.  0 or -errno. */
__attribute__((format(printf, 2, 3)))
static int command(int fd, const char *fmt, ...)
{
	char line[128];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	return write(fd, line, (size_t)n) < 0 ? -errno : 0;
}

/* Remove the events of recorders that were killed. */
static void remove_left(int root, int fd)
{
	int in = openat(root, "uprobe_events", O_RDONLY | O_CLOEXEC), pid;
	FILE *events = in < 0 ? NULL : fdopen(in, "r");
	char line[256], name[40];

	if (!events) {
		seam_file_close_fd(in);
		return;
	}
	while (fgets(line, sizeof(line), events))
		if (sscanf(line, "%*c:" SYSTEM "/%39[a-z0-9_]", name) == 1 &&
		    sscanf(name, "p%d_", &pid) == 1 &&
		    kill(pid, 0) < 0 && errno == ESRCH)
			command(fd, "-:" SYSTEM "/%s\n", name);
	fclose(events);
}

/*
 * By a link to the file that was read: its path may lead to another file now,
 * and one with spaces cannot be written.  One event has all places.
 */
static int define(struct seam_event *event, int root, int fd,
		  struct seam_err *err)
{
	struct seam_uprobe *u = event->uprobe;
	int r = 0, id;

	remove_left(root, fd);
	/* unique: the pid may be that of another in another namespace */
	snprintf(u->name, sizeof(u->name), "p%d_%" PRIx64, (int)getpid(),
		 seam_clock_ns());
	for (size_t i = 0; r == 0 && i < u->places.n; i++)
		r = command(fd, "%c:" SYSTEM "/%s /proc/self/fd/%d:0x%" PRIx64
			    "\n", u->is_return ? 'r' : 'p', u->name, u->fd,
			    u->places.items[i]);
	if (r < 0)
		return seam_err_set(err, r, "cannot define '%s': %s",
				    event->name, strerror(-r));
	id = seam_tracefs_id(root, SYSTEM, u->name, err);
	event->attr.config = (__u64)id;
	snprintf(event->kernel_name, sizeof(event->kernel_name), SYSTEM ":%s",
		 u->name);
	return id < 0 ? id : 0;
}

/* Open uprobe_events to write, and tracefs as *@root, for the caller. */
static int open_events(int *root, struct seam_err *err)
{
	int fd;

	*root = seam_tracefs_open(err);
	if (*root < 0)
		return seam_err_add(err, *root, "probes need root");
	fd = openat(*root, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);
	return fd >= 0 ? fd :
	       seam_err_errno(err, "probes need root: cannot write to "
			      "'uprobe_events' of tracefs");
}

int seam_uprobe_define(struct seam_event *event, struct seam_err *err)
{
	int root, fd = open_events(&root, err);
	int r = fd < 0 ? fd : define(event, root, fd, err);

	seam_file_close_fd(fd);
	seam_file_close_fd(root);
	return r;
}

/* What is in use still (EBUSY) is left to the next recorder's remove_left(). */
static void remove_event(const char *name)
{
	int root, fd = open_events(&root, NULL);

	if (fd >= 0)
		command(fd, "-:" SYSTEM "/%s\n", name);
	seam_file_close_fd(fd);
	seam_file_close_fd(root);
}

void seam_uprobe_free(struct seam_uprobe *uprobe)
{
	if (!uprobe)
		return;
	if (uprobe->name[0])
		remove_event(uprobe->name);
	seam_file_close_fd(uprobe->fd);
	free(uprobe->places.items);
	free(uprobe);
}
