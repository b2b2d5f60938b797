/* SPDX-License-Identifier: MIT */
/* kernel_code.c - where vmlinux files are, /proc/kcore; see kernel_code.h */
#include "symbol/code/kernel_code.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/text.h"
#include "symbol/elf/elf_file.h"
#include "symbol/kernel/kernel.h"

#define KCORE "/proc/kcore"

/* Below a root. */
static const char *const places[] = {
	"usr/lib/debug/boot/vmlinux-*", "boot/vmlinux-*",
	"usr/lib/debug/lib/modules/*/vmlinux", "lib/modules/*/build/vmlinux",
};

/* Paths to try, in this order. */
struct vmlinux_search {
	const struct seam_symbols_options *options;
	const struct seam_kernel *kernel;
	struct seam_arena arena;
	SEAM_ARRAY(const char *) paths;
};

/* ---- files ---- */

/* Without memory there is one path less. */
static void add_path(struct vmlinux_search *s, const char *path)
{
	const char *copy;

	if (seam_arena_copy(&s->arena, &copy, path))
		(void)SEAM_ARRAY_ADD(&s->paths, copy);
}

static void add_all(struct vmlinux_search *s, const char *pattern)
{
	glob_t files;

	if (glob(pattern, 0, NULL, &files) == 0)
		for (size_t i = 0; i < files.gl_pathc; i++)
			add_path(s, files.gl_pathv[i]);
	globfree(&files);
}

static void add_below(struct vmlinux_search *s, const char *root)
{
	char path[4096], id[2 * SEAM_BUILD_ID_MAX + 1];

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, places[i]);
		add_all(s, path);
	}
	seam_text_hex(id, s->kernel->build_id, s->kernel->build_id_size);
	snprintf(path, sizeof(path), "%s/usr/lib/debug/.build-id/%.2s/%s.debug",
		 root, id, id + 2);
	add_path(s, path);
}

/* Roots are used as glob patterns: a user may pass one with a "*". */
static void list_files(struct vmlinux_search *s)
{
	char path[4096];

	for (size_t i = 0; i < s->options->n_symfs; i++) {
		snprintf(path, sizeof(path), "%s/vmlinux*",
			 s->options->symfs[i]);
		add_all(s, path);
		add_below(s, s->options->symfs[i]);
	}
	add_below(s, "");
}

/* ---- memory ---- */

int seam_kernel_core_read(const char *path, uint64_t addr, uint8_t *buf,
			  size_t size, struct seam_machine *machine,
			  struct seam_err *err)
{
	struct seam_elf core;
	int r = seam_elf_open(&core, path, err);

	if (r && r != -EBADMSG)
		return seam_err_add(err, r, "cannot open %s", path);
	if (!r) {
		*machine = seam_elf_machine(&core);
		r = seam_elf_read_at(&core, addr, buf, size, NULL);
		seam_elf_close(&core);
	}
	return r ? seam_err_set(err, -ENODATA, "%s does not have that address",
				path) : 0;
}

static bool is_running(const struct seam_kernel *kernel)
{
	struct seam_kernel_identity now;

	return kernel->boot_id && kernel->boot_id[0] &&
	       seam_kernel_identify(&now, NULL) == 0 &&
	       strcmp(now.boot_id, kernel->boot_id) == 0;
}

/* ---- both ---- */

/* Why /proc/kcore was not used. */
static void explain_core(char *text, size_t room, bool is_running,
			 const struct seam_err *core)
{
	if (!is_running)
		snprintf(text, room, " (" KCORE " is of another boot)");
	else if (core->code == -ENOENT)
		snprintf(text, room, " (the kernel has no " KCORE ")");
	else if (core->code == -EACCES || core->code == -EPERM)
		snprintf(text, room, ", or run seam as root, which may read "
			 KCORE);
	else
		snprintf(text, room, " (%.120s)", core->cause[0]);
}

static int give_up(const struct seam_kernel *kernel, const char *other,
		   bool is_running, const struct seam_err *core,
		   struct seam_err *err)
{
	char id[2 * SEAM_BUILD_ID_MAX + 1] = "not recorded", memory[128];

	if (kernel->build_id_size)
		seam_text_hex(id, kernel->build_id, kernel->build_id_size);
	explain_core(memory, sizeof(memory), is_running, core);
	return seam_err_set(err, -ENOENT, "the kernel's code was not found "
		"(build id %.12s)%s%s; install its debug package (Debian: "
		"linux-image-RELEASE-dbg), or name a folder that has its "
		"vmlinux by --symfs%s", id, other[0] ? "; " : "", other,
		memory);
}

int seam_kernel_code(const struct seam_symbols_options *options,
		     const struct seam_vmlinux_reader *reader,
		     const struct seam_kernel *kernel, uint64_t addr,
		     uint8_t *buf, size_t size, struct seam_machine *machine,
		     struct seam_err *err)
{
	struct vmlinux_search s = { .options = options, .kernel = kernel };
	struct seam_vmlinux_answer answer = { 0 };
	struct seam_err core = { 0 }, file = { 0 };
	bool runs;
	int r = -ENOENT;

	if (kernel->build_id_size && kernel->text_addr) {
		list_files(&s);
		r = reader->read(reader->context, &(struct seam_vmlinux_query) {
				.kernel = kernel, .paths = s.paths.items,
				.n_paths = s.paths.n, .addr = addr,
				.size = size,
			}, buf, &answer, &file);
		free(s.paths.items);
		seam_arena_fini(&s.arena);
	}
	if (r == 0) {
		*machine = answer.machine;
		return 0;
	}
	runs = is_running(kernel);
	if (runs &&
	    seam_kernel_core_read(KCORE, addr, buf, size, machine,
				  &core) == 0)
		return 0;
	return answer.is_found || r == -EIO ?
	       seam_err_set(err, r, "%s", file.cause[0]) :
	       give_up(kernel, answer.other, runs, &core, err);
}
