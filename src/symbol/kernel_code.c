/* SPDX-License-Identifier: MIT */
/* kernel_code.c - vmlinux files and /proc/kcore; see kernel_code.h */
#include "symbol/kernel_code.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbol/elf_file.h"
#include "symbol/kernel.h"

#define KCORE "/proc/kcore"

/* Below a root. */
static const char *const places[] = {
	"usr/lib/debug/boot/vmlinux-*", "boot/vmlinux-*",
	"usr/lib/debug/lib/modules/*/vmlinux", "lib/modules/*/build/vmlinux",
};

/* What is looked for, and what was found instead. */
struct search {
	const struct seam_symbols_options *options;
	const struct seam_kernel *kernel;
	struct seam_elf *found;
	char other[256];		/* a file of another kernel */
};

/* ---- a file ---- */

/* Debug information alone has sections of code without bytes. */
static bool has_code(const struct seam_elf *file)
{
	GElf_Shdr text;

	return seam_elf_section(file, ".text", &text) &&
	       text.sh_type == SHT_PROGBITS;
}

static bool try_file(struct search *s, const char *path)
{
	if (seam_elf_open(s->found, path, NULL))
		return false;
	if (seam_elf_is(s->found, s->kernel->build_id,
			s->kernel->build_id_size) && has_code(s->found))
		return true;
	snprintf(s->other, sizeof(s->other), "'%.120s' is %s", path,
		 has_code(s->found) ? "of another kernel" :
		 "debug information without code");
	seam_elf_close(s->found);
	return false;
}

static bool try_all(struct search *s, const char *pattern)
{
	bool is_found = false;
	glob_t files;

	if (glob(pattern, 0, NULL, &files) == 0)
		for (size_t i = 0; i < files.gl_pathc && !is_found; i++)
			is_found = try_file(s, files.gl_pathv[i]);
	globfree(&files);
	return is_found;
}

static bool try_below(struct search *s, const char *root)
{
	char path[4096], id[2 * SEAM_BUILD_ID_MAX + 1];
	bool is_found = false;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(places) && !is_found; i++) {
		snprintf(path, sizeof(path), "%s/%s", root, places[i]);
		is_found = try_all(s, path);
	}
	if (is_found)
		return true;
	seam_build_id_text(id, s->kernel->build_id, s->kernel->build_id_size);
	snprintf(path, sizeof(path), "%s/usr/lib/debug/.build-id/%.2s/%s.debug",
		 root, id, id + 2);
	return try_file(s, path);
}

/* The roots are names and not patterns; but who writes a * means one. */
static bool find_file(struct search *s)
{
	char path[4096];

	for (size_t i = 0; i < s->options->n_symfs; i++) {
		snprintf(path, sizeof(path), "%s/vmlinux*",
			 s->options->symfs[i]);
		if (try_all(s, path) || try_below(s, s->options->symfs[i]))
			return true;
	}
	return try_below(s, "");
}

/* The address of _text in the file: the start of what runs, if not named. */
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
		if (file->segments.items[i].runs)
			return file->segments.items[i].addr;
	return 0;
}

static int read_file(const struct search *s, uint64_t addr, uint8_t *buf,
		     size_t size, struct seam_err *err)
{
	const struct seam_elf *file = s->found;
	uint64_t at = addr - s->kernel->text_addr + text_of(file);

	for (size_t i = 0; i < file->segments.n; i++) {
		const struct seam_segment *segment = &file->segments.items[i];

		if (at < segment->addr || at - segment->addr > segment->size ||
		    size > segment->size - (at - segment->addr))
			continue;
		if (pread(file->fd, buf, size, (off_t)(segment->offset + at -
			  segment->addr)) == (ssize_t)size)
			return 0;
		return seam_err_set(err, -ENODATA, "the kernel's file '%s' is "
				    "cut", file->path);
	}
	return seam_err_set(err, -ENOENT, "it is not in the kernel's file, but "
			    "in a module or made at run time; " KCORE
			    " has that for root, until the next boot");
}

/* ---- memory ---- */

int seam_kernel_core_read(const char *path, uint64_t addr, uint8_t *buf,
			  size_t size, struct seam_machine *machine,
			  struct seam_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;
	Elf64_Phdr p = { 0 };
	Elf64_Ehdr e = { 0 };
	int code = -ENODATA;

	if (fd < 0)
		return seam_err_set(err, -errno, "cannot open %s: %s", path,
				    strerror(errno));
	errno = 0;
	if (pread(fd, &e, sizeof(e), 0) == sizeof(e) &&
	    memcmp(e.e_ident, ELFMAG, SELFMAG) == 0 &&
	    e.e_ident[EI_CLASS] == ELFCLASS64 &&
	    e.e_phentsize == sizeof(p))
		for (uint16_t i = 0; i < e.e_phnum && n < 0; i++) {
			if (pread(fd, &p, sizeof(p), (off_t)(e.e_phoff +
				  i * sizeof(p))) != sizeof(p))
				break;
			if (p.p_type == PT_LOAD && addr >= p.p_vaddr &&
			    addr - p.p_vaddr < p.p_memsz)
				n = pread(fd, buf, size, (off_t)(p.p_offset +
					  (addr - p.p_vaddr)));
			code = n < 0 && errno ? -errno : -ENODATA;
		}
	close(fd);
	if (n != (ssize_t)size)
		return seam_err_set(err, code, "%s does not have that address",
				    path);
	*machine = (struct seam_machine) {
		.elf_machine = e.e_machine, .is_64 = true,
		.is_big_endian = e.e_ident[EI_DATA] == ELFDATA2MSB,
	};
	return 0;
}

static bool is_running(const struct seam_kernel *kernel)
{
	struct seam_kernel_identity now;

	return kernel->boot_id && kernel->boot_id[0] &&
	       seam_kernel_identify(&now, NULL) == 0 &&
	       strcmp(now.boot_id, kernel->boot_id) == 0;
}

/* ---- both ---- */

/* What /proc/kcore has to do with it. */
static void tell_core(char *text, size_t room, bool is_running,
		      const struct seam_err *core)
{
	if (!is_running)
		snprintf(text, room, " (" KCORE " is of another boot)");
	else if (core->code == -ENOENT)
		snprintf(text, room, " (the kernel has no " KCORE ")");
	else if (core->code == -EACCES || core->code == -EPERM)
		snprintf(text, room, ", or run seam as root, who may read "
			 KCORE);
	else
		snprintf(text, room, " (%.120s)", core->cause[0]);
}

static int give_up(const struct search *s, bool is_running,
		   const struct seam_err *core, struct seam_err *err)
{
	char id[2 * SEAM_BUILD_ID_MAX + 1] = "not recorded", memory[128];

	if (s->kernel->build_id_size)
		seam_build_id_text(id, s->kernel->build_id,
				   s->kernel->build_id_size);
	tell_core(memory, sizeof(memory), is_running, core);
	return seam_err_set(err, -ENOENT, "the kernel's code was not found "
		"(build id %.12s)%s%s; install its debug package (Debian: "
		"linux-image-RELEASE-dbg), or name a folder that has its "
		"vmlinux by --symfs%s", id, s->other[0] ? "; " : "", s->other,
		memory);
}

int seam_kernel_code(const struct seam_symbols_options *options,
		     const struct seam_kernel *kernel, uint64_t addr,
		     uint8_t *buf, size_t size, struct seam_machine *machine,
		     struct seam_err *err)
{
	struct seam_elf found = { 0 };
	struct search s = {
		.options = options, .kernel = kernel, .found = &found,
	};
	struct seam_err core = { 0 }, file = { 0 };
	bool runs;
	int r = -ENOENT;

	if (kernel->build_id_size && kernel->text_addr && find_file(&s)) {
		*machine = (struct seam_machine) {
			.elf_machine = (uint32_t)found.machine,
			.is_64 = gelf_getclass(found.elf) == ELFCLASS64,
			.is_big_endian = elf_getident(found.elf, NULL)
					 [EI_DATA] == ELFDATA2MSB,
		};
		r = read_file(&s, addr, buf, size, &file);
		seam_elf_close(&found);
	}
	if (r == 0)
		return 0;
	runs = is_running(kernel);
	if (runs &&
	    seam_kernel_core_read(KCORE, addr, buf, size, machine,
				  &core) == 0)
		return 0;
	return file.code ? seam_err_set(err, r, "%s", file.cause[0]) :
	       give_up(&s, runs, &core, err);
}
