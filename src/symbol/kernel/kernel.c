/* SPDX-License-Identifier: MIT */
/* kernel.c - identify, save and load a kernel's symbols; see kernel.h */
#include "symbol/kernel/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "symbol/kernel/kallsyms.h"
#include "symbol/kernel/kernel_cache.h"
#include "symbol/kernel/kernel_file.h"
#include "wire/elf_notes.h"

#define KALLSYMS "/proc/kallsyms"
#define FILE_MAX ((size_t)64 << 20)
#define KALLSYMS_MAX ((size_t)256 << 20)

static void read_boot_id(struct seam_kernel_identity *identity)
{
	struct seam_file file;
	const size_t size = SEAM_BOOT_ID_TEXT - 1;

	if (seam_file_read(&file, AT_FDCWD, "/proc/sys/kernel/random/boot_id",
			   4096, NULL))
		return;
	if (file.bytes.size >= size)
		memcpy(identity->boot_id, file.bytes.data, size);
	seam_file_close(&file);
}

size_t seam_kernel_build_id(uint8_t id[SEAM_BUILD_ID_MAX])
{
	struct seam_file file;
	size_t size;

	if (seam_file_read(&file, AT_FDCWD, "/sys/kernel/notes", 1 << 20,
			   NULL))
		return 0;
	size = seam_build_id_in_notes(file.bytes, id);
	seam_file_close(&file);
	return size;
}

/*
 * _text is among the first lines: the kernel makes the rest only when it is
 * read, so this stops as soon as it can.
 */
static int read_text_addr(struct seam_kernel_identity *identity,
			  struct seam_err *err)
{
	enum { MAX = 4 << 20 };
	FILE *in = fopen(KALLSYMS, "re");
	char *line = NULL;
	size_t cap = 0, done = 0;
	ssize_t n = 0;
	int r = 0;

	if (!in)
		return errno == ENOENT || errno == EACCES || errno == EPERM ?
		       0 : seam_err_errno(err, "cannot open " KALLSYMS);
	while (done < MAX && (n = getline(&line, &cap, in)) > 0 &&
	       !seam_kallsyms_is(line, (size_t)n, "_text",
				 &identity->text_addr))
		done += (size_t)n;
	if (n < 0 && ferror(in))
		r = seam_err_errno(err, "cannot read " KALLSYMS);
	free(line);
	fclose(in);
	return r;
}

int seam_kernel_identify(struct seam_kernel_identity *identity,
			 struct seam_err *err)
{
	*identity = (struct seam_kernel_identity) { 0 };
	read_boot_id(identity);
	identity->build_id_size = seam_kernel_build_id(identity->build_id);
	return read_text_addr(identity, err);
}

/*
 * The setting that would show addresses to this user.  Source:
 * kallsyms_show_value() in kernel/ksyms_common.c of Linux 6.1: kptr_restrict 0
 * shows them to users that may profile the kernel (perf_event_paranoid <= 1),
 * 0 and 1 to CAP_SYSLOG, 2 to no user.
 */
static int hidden(struct seam_err *err)
{
	struct seam_file file = { 0 };
	char value = '1';

	if (!seam_file_read(&file, AT_FDCWD, "/proc/sys/kernel/kptr_restrict",
			    64, NULL) && file.bytes.size > 0)
		value = (char)file.bytes.data[0];
	seam_file_close(&file);
	return seam_err_set(err, -EPERM, "cannot read kernel symbols: "
		KALLSYMS " shows no addresses to this user; "
		"'sysctl%s kernel.perf_event_paranoid=1' changes that%s",
		value == '0' ? "" : " kernel.kptr_restrict=0",
		value == '2' ? "" : ", and so does CAP_SYSLOG");
}

static int read_kallsyms(struct seam_file *file, struct seam_err *err)
{
	int fd = open(KALLSYMS, O_RDONLY | O_CLOEXEC);
	int r;

	*file = (struct seam_file) { 0 };
	if (fd < 0)
		return seam_err_errno(err, "cannot open " KALLSYMS);
	r = seam_file_read_fd(file, fd, KALLSYMS_MAX, err);
	close(fd);
	return r ? seam_err_add(err, r, "cannot read " KALLSYMS) : 0;
}

/* Read and compress, and cache the result. */
static int capture_new(int dirfd, const char *name,
		       const struct seam_kernel_file *header,
		       struct seam_err *err)
{
	struct seam_file text;
	struct seam_bytes file = { 0 };
	uint8_t *bytes = NULL;
	int r = read_kallsyms(&text, err);

	if (!r)
		r = seam_kernel_file_write(header, text.bytes, &bytes,
					   &file.size, err);
	seam_file_close(&text);
	if (r)
		return r;
	file.data = bytes;
	r = seam_file_create(dirfd, name, file, err);
	/* Modules that changed meanwhile may be in the text or not. */
	if (!r && header->modules && header->modules == seam_kernel_modules())
		seam_kernel_cache_write(file);
	free(bytes);
	return r;
}

int seam_kernel_capture(int dirfd, const char *name, struct seam_err *err)
{
	struct seam_kernel_file header = { 0 };
	struct seam_file kept;
	int r = seam_kernel_identify(&header.identity, err);

	if (r)
		return r;
	if (header.identity.text_addr == 0)
		return hidden(err);
	header.modules = seam_kernel_modules();
	if (!seam_kernel_cache_read(&kept, &header.identity, header.modules))
		return capture_new(dirfd, name, &header, err);
	r = seam_file_create(dirfd, name, kept.bytes, err);
	seam_file_close(&kept);
	return r;
}

static bool same_bytes(const uint8_t *a, size_t a_size, const uint8_t *b,
		       size_t b_size)
{
	return a_size == b_size && memcmp(a, b, a_size) == 0;
}

/*
 * Whether @have is the kernel that was recorded.  @proven: nothing recorded
 * is no proof.  Equal boots have equal addresses; equal builds need _text.
 */
static bool is_recorded(const struct seam_kernel_identity *have,
			const struct seam_kernel *kernel, bool proven)
{
	bool has_boot = kernel->boot_id && kernel->boot_id[0];
	bool has_build = kernel->build_id && kernel->build_id_size > 0;

	if (kernel->text_addr && have->text_addr != kernel->text_addr)
		return false;
	if (has_boot && have->boot_id[0] &&
	    strcmp(have->boot_id, kernel->boot_id) == 0)
		return true;
	if (has_build && have->build_id_size > 0)
		return same_bytes(have->build_id, have->build_id_size,
				  kernel->build_id, kernel->build_id_size) &&
		       (kernel->text_addr || !proven);
	return !proven && !has_boot;
}

/* Whether modules are where they were, unless it is not known. */
static bool is_same_boot(const struct seam_kernel_identity *have,
			 const struct seam_kernel *kernel)
{
	return !have->boot_id[0] || !kernel->boot_id || !kernel->boot_id[0] ||
	       strcmp(have->boot_id, kernel->boot_id) == 0;
}

static int take_text(struct seam_kernel_symbols *symbols, char *text,
		     size_t size, bool modules, struct seam_err *err)
{
	ptrdiff_t n;

	symbols->text = text;
	n = seam_kallsyms_read(&symbols->table, text, size, modules);
	if (n > 0)
		return 0;
	seam_kernel_close(symbols);
	return n < 0 ? seam_err_no_memory(err) :
	       seam_err_set(err, -ENODATA, "no function has an address");
}

static int load_kept(struct seam_kernel_symbols *symbols, const char *path,
		     const struct seam_kernel *kernel, struct seam_err *err)
{
	struct seam_kernel_file kept;
	struct seam_file file;
	size_t size;
	char *text;
	int r = seam_file_read(&file, AT_FDCWD, path, FILE_MAX, err);

	if (r)
		return r;
	r = seam_kernel_file_read(&kept, file.bytes, err);
	if (!r && !is_recorded(&kept.identity, kernel, false))
		r = seam_err_set(err, -ESTALE, "it is of another kernel");
	if (!r)
		r = seam_kernel_file_text(&kept, &text, &size, err);
	if (!r)
		r = take_text(symbols, text, size,
			      is_same_boot(&kept.identity, kernel), err);
	seam_file_close(&file);
	return r;
}

static int load_running(struct seam_kernel_symbols *symbols,
			const struct seam_kernel *kernel, struct seam_err *err)
{
	struct seam_kernel_identity now;
	struct seam_file file;
	char *text;
	int r = seam_kernel_identify(&now, err);

	if (r)
		return r;
	if (now.text_addr == 0)
		return hidden(err);
	if (!is_recorded(&now, kernel, true))
		return seam_err_set(err, -ESTALE, "the recorded kernel is not "
			"the one that runs now, and its symbols were not kept");
	r = read_kallsyms(&file, err);
	if (r)
		return r;
	text = realloc((void *)(uintptr_t)file.bytes.data,
		       file.bytes.size + 1);
	if (!text) {
		seam_file_close(&file);
		return seam_err_no_memory(err);
	}
	return take_text(symbols, text, file.bytes.size,
			 is_same_boot(&now, kernel), err);
}

int seam_kernel_load(struct seam_kernel_symbols *symbols, const char *bundle,
		     const struct seam_kernel *kernel, struct seam_err *err)
{
	char path[4096];
	int r;

	*symbols = (struct seam_kernel_symbols) { 0 };
	if (bundle && snprintf(path, sizeof(path), "%s/kernel.sym.zst",
			       bundle) < (int)sizeof(path)) {
		r = load_kept(symbols, path, kernel, err);
		if (r != -ENOENT && r != -ENOTDIR && r != -ESTALE)
			return r ? seam_err_add(err, r,
				"cannot read kernel.sym.zst") : 0;
		if (!r)
			return 0;
	}
	return load_running(symbols, kernel, err);
}

void seam_kernel_close(struct seam_kernel_symbols *symbols)
{
	seam_symtab_fini(&symbols->table);
	free(symbols->text);
	*symbols = (struct seam_kernel_symbols) { 0 };
}
