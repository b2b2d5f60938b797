/* SPDX-License-Identifier: MIT */
/* probe.c - uprobes and kprobes, by tracefs; see event_kinds.h */
#include "record/events/event_kinds.h"

#include "base/clock.h"
#include "base/file.h"
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

/* ---- uprobe:/path:where ---- */

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

		if (!s->name || strcmp(s->name, name) != 0)
			continue;
		for (size_t k = 0; k < file.segments.n; k++) {
			const struct seam_segment *in = &file.segments.items[k];

			if (!in->is_executable ||
			    s->start - in->addr >= in->size)
				continue;
			seam_ipc_put_u64(ipc, in->offset +
					 (s->start - in->addr));
			break;
		}
	}
	seam_ipc_send(ipc, 0, -1);
}

static int add_place(struct seam_probe *probe, uint64_t offset,
		     struct seam_err *err)
{
	for (size_t i = 0; i < probe->places.n; i++)
		if (probe->places.items[i] == offset)
			return 0;
	if (probe->places.n == MAX_PLACES)
		return seam_err_set(err, -E2BIG, "more than %d functions have "
				    "this name", MAX_PLACES);
	return SEAM_ARRAY_ADD(&probe->places, offset) ? 0 :
	       seam_err_no_memory(err);
}

/*
 * Add the places of functions @name.  A recorder with uprobes runs as root, so
 * a process without rights reads the file's symbols (sandbox.h).
 */
static int find_symbol(struct seam_probe *probe, const char *name,
		       struct seam_err *err)
{
	struct seam_sandbox reader;
	struct seam_message answer;
	char why[100];
	int r = seam_sandbox_start(&reader, serve_lookup,
				   (void *)(uintptr_t)name, err);

	if (r)
		return r;
	r = seam_ipc_send(&reader.ipc, 0, probe->fd);
	if (!r)
		r = seam_ipc_receive(&reader.ipc, &answer);
	if (r) {
		seam_sandbox_end(&reader, why, sizeof(why));
		return seam_err_set(err, r, "the process that read it %s", why);
	}
	r = seam_ipc_take_err(&answer.body, err);
	while (r == 0 && seam_cursor_left(&answer.body) >= sizeof(uint64_t))
		r = add_place(probe, seam_cursor_u64(&answer.body), err);
	seam_sandbox_end(&reader, NULL, 0);
	return r < 0 || probe->places.n ? r :
	       seam_err_set(err, -ENOENT, "it has no function '%s'", name);
}

/*
 * Give @event a probe for @text, "uprobe:...", "kretprobe:..." and such.
 * @place, of @cap bytes, gets what is after the colon.  NULL: no memory.
 */
static struct seam_probe *add_probe(struct seam_event *event, const char *text,
				    char *place, size_t cap,
				    struct seam_err *err)
{
	static const char suffix[] = "%return";
	struct seam_probe *probe = calloc(1, sizeof(*probe));
	size_t n;

	event->probe = probe;
	if (!probe) {
		seam_err_no_memory(err);
		return NULL;
	}
	probe->fd = -1;
	snprintf(event->name, sizeof(event->name), "%s", text);
	event->attr.type = PERF_TYPE_TRACEPOINT;
	event->each_time = true;
	snprintf(place, cap, "%s", strchr(text, ':') + 1);
	n = strlen(place);
	probe->is_return = strncmp(text + 1, "ret", 3) == 0;
	if (n >= strlen(suffix) &&
	    strcmp(place + n - strlen(suffix), suffix) == 0) {
		place[n - strlen(suffix)] = '\0';
		probe->is_return = true;
	}
	return probe;
}

int seam_uprobe_parse(struct seam_event *event, const char *text,
		      struct seam_err *err)
{
	char path[PATH_MAX + SEAM_EVENT_NAME], *place, *end;
	struct seam_probe *probe = add_probe(event, text, path, sizeof(path),
					     err);
	int r;

	if (!probe)
		return -ENOMEM;
	place = strrchr(path, ':');
	if (!place || place == path || !place[1])
		return seam_err_set(err, -EINVAL, "a probe is written "
			"uprobe:/path:symbol or uprobe:/path:0xoffset");
	*place++ = '\0';
	probe->fd = r = seam_elf_open_fd(path, err);
	if (r >= 0 && strncmp(place, "0x", 2) != 0) {
		r = find_symbol(probe, place, err);
	} else if (r >= 0) {
		r = add_place(probe, strtoull(place, &end, 16), err);
		if (*end)
			r = seam_err_set(err, -EINVAL, "'%s' is not an "
					 "offset", place);
	}
	return r >= 0 ? 0 : seam_err_add(err, r, "cannot probe '%s'", path);
}

/* ---- kprobe:function+offset ---- */

int seam_kprobe_parse(struct seam_event *event, const char *text,
		      struct seam_err *err)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789_.$:";
	char place[SEAM_EVENT_NAME], *end;
	struct seam_probe *probe = add_probe(event, text, place,
					     sizeof(place), err);
	size_t n = strspn(place, letters);

	if (!probe)
		return -ENOMEM;
	end = place + n;
	if (n && *end == '+' && end[1] >= '0' && end[1] <= '9' &&
	    !probe->is_return)
		strtoul(end + 1, &end, 0);
	if (!n || *end || strlen(text) >= SEAM_EVENT_NAME)
		return seam_err_set(err, -EINVAL, "a probe of the kernel is "
			"written kprobe:function, kprobe:function+offset or "
			"kretprobe:function");
	memcpy(probe->function, place, sizeof(place));
	return 0;
}

/* Why the kernel refused a kprobe with @code. */
static int refuse_kprobe(const struct seam_probe *probe, int code,
			 struct seam_err *err)
{
	const char *function = probe->function;
	const char *name = strrchr(function, ':') ?
			   strrchr(function, ':') + 1 : function;
	FILE *symbols = fopen("/proc/kallsyms", "re");
	char line[512], symbol[256];
	size_t n = strcspn(name, "+");
	bool found = false;

	/* of the kernel or a module, as far as root can see */
	while (symbols && !found && fgets(line, sizeof(line), symbols))
		found = sscanf(line, "%*s %*c %255s", symbol) == 1 &&
			strlen(symbol) == n && memcmp(symbol, name, n) == 0;
	if (symbols)
		fclose(symbols);
	if (!found)
		return seam_err_set(err, -ENOENT, "the kernel has no function "
			"'%s': see available_filter_functions of tracefs",
			function);
	if (code == -EILSEQ)
		return seam_err_set(err, code, "no instruction begins at '%s'",
				    function);
	if (code == -EADDRNOTAVAIL)
		return seam_err_set(err, code, "several functions of the "
			"kernel are named '%s'", function);
	return seam_err_set(err, code, "the kernel refuses a probe at '%s': "
		"%s (it has none in its own handlers, see "
		"/sys/kernel/debug/kprobes/blacklist)", function,
		strerror(-code));
}

/* ---- in the kernel ---- */

/* Write a line to @fd, a file of probes of tracefs.  0 or -errno. */
__attribute__((format(printf, 2, 3)))
static int command(int fd, const char *fmt, ...)
{
	char line[SEAM_EVENT_NAME + 128];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	return write(fd, line, (size_t)n) < 0 ? -errno : 0;
}

/* Remove the events of recorders that were killed. */
static void remove_left(int root, const char *file, int fd)
{
	int in = openat(root, file, O_RDONLY | O_CLOEXEC), pid;
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

/* The file of tracefs in which probes of its kind are defined. */
static const char *file_of(const struct seam_probe *probe)
{
	return probe->function[0] ? "kprobe_events" : "uprobe_events";
}

/*
 * A file is named by a link to the descriptor that was read: the path may lead
 * to another file now, and tracefs takes no path with spaces.  One event has
 * all places.
 */
static int define(struct seam_event *event, int root, int fd,
		  struct seam_err *err)
{
	struct seam_probe *p = event->probe;
	char type = p->is_return ? 'r' : 'p';
	int r = 0, id;

	remove_left(root, file_of(p), fd);
	/* unique: a process of another namespace may have the same pid */
	snprintf(p->name, sizeof(p->name), "p%d_%" PRIx64, (int)getpid(),
		 seam_clock_ns());
	if (p->function[0])
		r = command(fd, "%c:" SYSTEM "/%s %s\n", type, p->name,
			    p->function);
	for (size_t i = 0; r == 0 && i < p->places.n; i++)
		r = command(fd, "%c:" SYSTEM "/%s /proc/self/fd/%d:0x%" PRIx64
			    "\n", type, p->name, p->fd, p->places.items[i]);
	if (r < 0) {
		r = p->function[0] ? refuse_kprobe(p, r, err) :
		    seam_err_set(err, r, "%s", strerror(-r));
		return seam_err_add(err, r, "cannot define '%s'", event->name);
	}
	id = seam_tracefs_id(root, SYSTEM, p->name, err);
	event->attr.config = (__u64)id;
	snprintf(event->kernel_name, sizeof(event->kernel_name), SYSTEM ":%s",
		 p->name);
	return id < 0 ? id : 0;
}

/* Open a file of probes to write, and tracefs as *@root, for the caller. */
static int open_events(const char *file, int *root, struct seam_err *err)
{
	int fd;

	*root = seam_tracefs_open(err);
	if (*root < 0)
		return seam_err_add(err, *root, "probes need root");
	fd = openat(*root, file, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno == ENOENT)
		return seam_err_set(err, -ENOTSUP, "this kernel has no such "
			"probes: tracefs has no '%s' (CONFIG_%s)", file,
			*file == 'k' ? "KPROBE_EVENTS" : "UPROBE_EVENTS");
	return seam_err_errno(err, "probes need root: cannot write to '%s' of "
			      "tracefs", file);
}

int seam_probe_define(struct seam_event *event, struct seam_err *err)
{
	int root, fd = open_events(file_of(event->probe), &root, err);
	int r = fd < 0 ? fd : define(event, root, fd, err);

	seam_file_close_fd(fd);
	seam_file_close_fd(root);
	return r;
}

/* An event that is in use is left to the next recorder's remove_left(). */
void seam_probe_free(struct seam_probe *probe)
{
	int root, fd;

	if (!probe)
		return;
	if (probe->name[0]) {
		fd = open_events(file_of(probe), &root, NULL);
		if (fd >= 0)
			command(fd, "-:" SYSTEM "/%s\n", probe->name);
		seam_file_close_fd(fd);
		seam_file_close_fd(root);
	}
	seam_file_close_fd(probe->fd);
	free(probe->places.items);
	free(probe);
}
