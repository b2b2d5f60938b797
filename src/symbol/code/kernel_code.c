/* SPDX-License-Identifier: MIT */
/* kernel_code.c - vmlinux files and /proc/kcore; see kernel_code.h */
#include "symbol/code/kernel_code.h"

#include <errno.h>
#include <glob.h>
#include <string.h>

#include "base/text.h"
#include "symbol/elf/elf_file.h"
#include "symbol/kernel/kernel.h"

#define KCORE "/proc/kcore"

/* Below a root. */
static const char *const places[] = {
	"usr/lib/debug/boot/vmlinux-*", "boot/vmlinux-*",
	"usr/lib/debug/lib/modules/*/vmlinux", "lib/modules/*/build/vmlinux",
};

/* ---- where files may be ---- */

struct vmlinux_search {
	void (*add)(void *context, const char *path);
	void *context;
};

static void add_all(const struct vmlinux_search *s, const char *pattern)
{
	glob_t files;

	if (glob(pattern, 0, NULL, &files) == 0)
		for (size_t i = 0; i < files.gl_pathc; i++)
			s->add(s->context, files.gl_pathv[i]);
	globfree(&files);
}

static void add_below(const struct vmlinux_search *s, const char *root,
		      const char *id)
{
	char path[4096];

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, places[i]);
		add_all(s, path);
	}
	snprintf(path, sizeof(path), "%s/usr/lib/debug/.build-id/%.2s/%s.debug",
		 root, id, id + 2);
	s->add(s->context, path);
}

/* Roots are used as glob patterns: a user may pass one with a "*". */
void seam_vmlinux_find(const struct seam_symbols_options *options,
		       const struct seam_kernel *kernel,
		       void (*add)(void *context, const char *path),
		       void *context)
{
	const struct vmlinux_search s = { add, context };
	char path[4096], id[2 * SEAM_BUILD_ID_MAX + 1];

	seam_text_hex(id, kernel->build_id, kernel->build_id_size);
	for (size_t i = 0; i < options->n_symfs; i++) {
		snprintf(path, sizeof(path), "%s/vmlinux*", options->symfs[i]);
		add_all(&s, path);
		add_below(&s, options->symfs[i], id);
	}
	add_below(&s, "", id);
}

/* ---- a file ---- */

/* Debug information alone has sections of code without bytes. */
static bool has_code(const struct seam_elf *file)
{
	GElf_Shdr text;

	return seam_elf_section(file, ".text", &text) &&
	       text.sh_type == SHT_PROGBITS;
}

/* The address of _text in the file, or of its first executable segment. */
static uint64_t text_of(const struct seam_elf *file)
{
	GElf_Shdr header;
	Elf_Scn *section = seam_elf_section(file, ".symtab", &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	GElf_Sym symbol;

	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		const char *name = elf_strptr(file->elf, header.sh_link,
					      symbol.st_name);

		if (name && strcmp(name, "_text") == 0)
			return symbol.st_value;
	}
	for (size_t i = 0; i < file->segments.n; i++)
		if (file->segments.items[i].is_executable)
			return file->segments.items[i].addr;
	return 0;
}

int seam_vmlinux_code(const struct seam_kernel *kernel, const char *path,
		      uint64_t addr, uint8_t *buf, size_t size,
		      struct seam_machine *machine, struct seam_err *err)
{
	struct seam_elf file;
	int r = -ENOENT;

	if (seam_elf_open(&file, path, NULL))
		return r;
	*machine = seam_elf_machine(&file);
	if (!has_code(&file))
		seam_err_set(err, r, "'%.120s' is debug information without "
			     "code", path);
	else if (!seam_elf_is(&file, kernel->build_id, kernel->build_id_size))
		seam_err_set(err, r, "'%.120s' is of another kernel", path);
	else
		r = seam_elf_read_at(&file, addr - kernel->text_addr +
				     text_of(&file), buf, size, err);
	if (r == -ENXIO)
		seam_err_set(err, r, "it is not in the kernel's file, but in a "
			     "module or made at run time; /proc/kcore has that "
			     "for root, until the next boot");
	seam_elf_close(&file);
	return r;
}

/* ---- memory ---- */

static int read_core(const char *path, uint64_t addr, uint8_t *buf,
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

int seam_kernel_core_code(const struct seam_kernel *kernel,
			  const struct seam_err *file, uint64_t addr,
			  uint8_t *buf, size_t size,
			  struct seam_machine *machine, struct seam_err *err)
{
	struct seam_err core = { 0 };
	bool runs = is_running(kernel);

	if (runs && read_core(KCORE, addr, buf, size, machine, &core) == 0)
		return 0;
	return file->code && file->code != -ENOENT ?
	       seam_err_set(err, file->code, "%s", file->cause[0]) :
	       give_up(kernel, file->cause[0], runs, &core, err);
}
