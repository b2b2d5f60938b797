/* SPDX-License-Identifier: MIT */
/* uprobe.c - "uprobe:/path:where"; see event_kinds.h */
#include "record/events/event_kinds.h"

#include "base/text.h"
#include "record/events/pmu.h"
#include "symbol/elf/elf_symbols.h"
#include "symbol/sandbox/sandbox.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

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

/* In the sandbox: find the function @context in the file from @ipc. */
static void serve_lookup(struct seam_ipc *ipc, void *context)
{
	const char *name = context;
	struct seam_elf file = { .fd = -1 };
	struct seam_symtab table = { 0 };
	struct seam_arena arena = { 0 };
	struct seam_message sent;
	struct seam_err err = { 0 };
	uint64_t offset = 0;
	int r = seam_ipc_receive(ipc, &sent), found = -ENOENT;

	if (!r)
		r = seam_elf_open_at(&file, sent.fd, "", &err);
	if (!r && seam_elf_symbols(&table, &arena, &file))
		r = seam_err_no_memory(&err);
	for (size_t i = 0; !r && found < 0 && i < table.symbols.n; i++) {
		const struct seam_symbol *s = &table.symbols.items[i];

		if (s->name && strcmp(s->name, name) == 0)
			found = offset_of(&file, s->start, &offset);
	}
	seam_ipc_put_err(ipc, &err);
	seam_ipc_put_u32(ipc, found == 0);
	seam_ipc_put_u64(ipc, offset);
	seam_ipc_send(ipc, 0, -1);
}

/*
 * Find function @name in @fd, in a sandbox, and close @fd.  0 and *@found, or
 * -errno.
 */
static int look_up(int fd, const char *name, bool *found, uint64_t *offset,
		   struct seam_err *err)
{
	struct seam_sandbox reader;
	struct seam_message answer;
	char why[100];
	int r = seam_sandbox_start(&reader, serve_lookup,
				   (void *)(uintptr_t)name, err);

	if (r == 0) {
		r = seam_ipc_send(&reader.ipc, 0, fd);
		if (!r)
			r = seam_ipc_receive(&reader.ipc, &answer);
		if (r) {
			seam_sandbox_end(&reader, why, sizeof(why));
			seam_err_set(err, r, "the process that read it %s",
				     why);
		} else {
			r = seam_ipc_take_err(&answer.body, err);
			*found = seam_cursor_u32(&answer.body);
			*offset = seam_cursor_u64(&answer.body);
		}
		seam_sandbox_end(&reader, NULL, 0);
	}
	close(fd);
	return r;
}

/*
 * A recorder with uprobes runs as root, so a process without rights reads the
 * file's symbols (sandbox.h).
 */
static int find_symbol(const char *path, const char *name, uint64_t *offset,
		       struct seam_err *err)
{
	int fd = seam_elf_open_fd(path, err);
	bool found = false;
	int r = fd < 0 ? fd : look_up(fd, name, &found, offset, err);

	if (r < 0)
		return seam_err_add(err, r, "cannot read '%s'", path);
	return found ? 0 :
	       seam_err_set(err, -ENOENT, "'%s' has no function '%s'", path,
			    name);
}

/* Set the offset in the file: @place is "0xoffset" or a symbol. */
static int find_place(struct seam_event *event, const char *place,
		      struct seam_err *err)
{
	char *end;
	uint64_t offset = 0;
	int r;

	if (strncmp(place, "0x", 2) == 0) {
		event->attr.probe_offset = strtoull(place, &end, 16);
		return *end ? seam_err_set(err, -EINVAL, "'%s' is not an "
					   "offset", place) : 0;
	}
	r = find_symbol(event->probe_path, place, &offset, err);
	event->attr.probe_offset = offset;
	return r;
}

/* Set @event->probe_path, an absolute path as the kernel requires. */
static int set_path(struct seam_event *event, const char *path,
		    struct seam_err *err)
{
	char shown[2 * SEAM_EVENT_NAME];

	errno = strlen(path) < PATH_MAX ? 0 : ENAMETOOLONG;
	if (!errno)
		event->probe_path = *path == '/' ? strdup(path) :
				    realpath(path, NULL);
	event->attr.uprobe_path = (uintptr_t)event->probe_path;
	if (event->probe_path)
		return 0;
	return seam_err_errno(err, "cannot read '%s'",
			      seam_text_copy(shown, sizeof(shown), path,
					     SEAM_TEXT_TERMINAL));
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
	char copy[PATH_MAX + SEAM_EVENT_NAME], *place;
	const char *path = copy + strlen(prefix);
	int type = seam_pmu_type("uprobe"), r;
	bool returns;

	if (type < 0)
		return seam_err_set(err, type, "this kernel has no uprobes");
	snprintf(event->name, sizeof(event->name), "%s", text);
	snprintf(copy, sizeof(copy), "%s", text);
	returns = cut_return(copy);
	if (returns) {
		char bit[64];

		seam_pmu_text("uprobe", "format/retprobe", bit, sizeof(bit));
		if (seam_pmu_set_bits(&event->attr, bit, 1) < 0)
			return seam_err_set(err, -ENOENT, "this kernel cannot "
					    "probe returns");
	}
	place = strrchr(copy, ':');
	if (!place || place <= path || !place[1])
		return seam_err_set(err, -EINVAL, "a probe is written "
			"uprobe:/path:symbol or uprobe:/path:0xoffset");
	*place++ = '\0';
	event->attr.type = (uint32_t)type;
	event->origin = SEAM_EVENT_OF_UPROBE;
	event->each_time = true;
	r = set_path(event, path, err);
	return r == 0 ? find_place(event, place, err) : r;
}
