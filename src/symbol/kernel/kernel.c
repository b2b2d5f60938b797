/* SPDX-License-Identifier: MIT */
/* kernel.c - identify, save and load a kernel's symbols; see kernel.h */
#include "symbol/kernel/kernel.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <zstd.h>

#include "base/cursor.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "wire/elf_notes.h"

#define KALLSYMS "/proc/kallsyms"
#define NAME "kernel.sym.zst"
#define FILE_MAX ((size_t)64 << 20)
#define KALLSYMS_MAX ((size_t)256 << 20)
#define MODULES_MAX ((size_t)16 << 20)

/* More BPF programs than this are not counted; nothing is cached then. */
#define BPF_MAX 4096

#define SKIPPABLE 0x184d2a50u
#define HEADER_MAX 4096
#define MAGIC_KEY "seam-kernel-symbols"

/*
 * The largest unpacked size: a kernel's list has 10 to 20 MB and packs to a
 * seventh.
 */
#define TEXT_FREE ((size_t)1 << 20)
#define MAX_RATIO 32

/* Level 1: a quarter more bytes than level 3 in half of its time. */
enum { LEVEL = 1 };

/* -- /proc/kallsyms ------------------------------------------------------- */

/*
 * Read in one pass: each report with kernel frames reads 120,000 lines, without
 * a copy, and without a call for each line but memchr().
 */

/*
 * A function without a size ends at the next symbol, but not further away
 * than this: beyond the last symbol of a module lies another module.
 */
#define LONGEST_FUNCTION (256 * 1024)

struct symbol_line {
	uint64_t addr;
	char type;
	const char *name;
	size_t name_size;
	bool in_module;
};

/* Read the line of @size bytes at @text, without its newline. */
static bool read_line(const char *text, size_t size, struct symbol_line *line)
{
	const char *blank = seam_text_number(text, text + size, 16,
					     &line->addr);
	size_t pos = blank ? (size_t)(blank - text) : 0, end;

	if (!blank || size - pos < 4 || text[pos] != ' ' ||
	    text[pos + 2] != ' ')
		return false;
	line->type = text[pos + 1];
	line->name = text + pos + 3;
	for (end = pos + 3; end < size; end++)
		if (text[end] == '\t' || text[end] == ' ' || text[end] == '\0')
			break;
	line->name_size = end - pos - 3;
	line->in_module = end < size && text[end] == '\t';
	return line->name_size > 0;
}

static bool is_function(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

static uint32_t flags_of(char type)
{
	if (!is_function(type))
		return SEAM_SYMBOL_FENCE;
	if (type == 'W' || type == 'w')
		return SEAM_SYMBOL_WEAK;
	return type == 'T' ? SEAM_SYMBOL_GLOBAL : 0;
}

static int add_symbol(struct seam_symtab *table, const struct symbol_line *line)
{
	struct seam_symbol symbol = {
		.start = line->addr, .end = line->addr,
		.limit = line->addr < UINT64_MAX - LONGEST_FUNCTION ?
			 line->addr + LONGEST_FUNCTION : UINT64_MAX,
		.name = line->name,
		.flags = flags_of(line->type),
	};

	/* Of names for one address the last counts, so that perf agrees. */
	if (table->symbols.n && is_function(line->type)) {
		struct seam_symbol *last =
			&table->symbols.items[table->symbols.n - 1];

		if (last->start == symbol.start &&
		    !(last->flags & SEAM_SYMBOL_FENCE)) {
			*last = symbol;
			return 0;
		}
	}
	return seam_symtab_add(table, &symbol);
}

/*
 * Add the functions (t T w W) that @text of @size bytes names; other symbols
 * only end them.  Without @modules those in [brackets] are left out: their
 * addresses are true for one boot, while those of the kernel itself are true
 * wherever _text is the same.
 *
 * @text is changed, a NUL after each name, and must outlive the table;
 * text[size] must be there to be written.  Lines that are not of this form
 * are skipped, and so are addresses of 0, which this user may not see.
 *
 * Returns how many functions the text has, or -ENOMEM.  Of several at one
 * address the table keeps the last.  Sorts the table.
 */
static ptrdiff_t read_kallsyms(struct seam_symtab *table, char *text,
			       size_t size, bool modules)
{
	ptrdiff_t n = 0;
	size_t pos = 0;

	text[size] = '\0';
	while (pos < size) {
		const char *newline = memchr(text + pos, '\n', size - pos);
		size_t end = newline ? (size_t)(newline - text) : size;
		struct symbol_line line;

		if (read_line(text + pos, end - pos, &line) &&
		    line.addr != 0 && (modules || !line.in_module)) {
			if (add_symbol(table, &line))
				return -ENOMEM;
			n += is_function(line.type);
			text[(size_t)(line.name - text) + line.name_size] = 0;
		}
		pos = end + 1;
	}
	return seam_symtab_sort(table) ? -ENOMEM : n;
}

/* Whether the line @text, its newline included, is of @name: its address. */
static bool is_line_of(const char *text, size_t size, const char *name,
		      uint64_t *addr)
{
	struct symbol_line line;
	const char *end = memchr(text, '\n', size);

	if (!end || !read_line(text, (size_t)(end - text), &line) ||
	    line.name_size != strlen(name) ||
	    memcmp(line.name, name, line.name_size) != 0)
		return false;
	*addr = line.addr;
	return true;
}

/* -- which kernel ------------------------------------------------------- */

void seam_kernel_boot_id(char boot_id[SEAM_BOOT_ID_TEXT])
{
	struct seam_file file;
	const size_t size = SEAM_BOOT_ID_TEXT - 1;

	memset(boot_id, 0, SEAM_BOOT_ID_TEXT);
	if (seam_file_read(&file, AT_FDCWD, "/proc/sys/kernel/random/boot_id",
			   4096, NULL))
		return;
	if (file.bytes.size >= size)
		memcpy(boot_id, file.bytes.data, size);
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
	       !is_line_of(line, (size_t)n, "_text", &identity->text_addr))
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
	seam_kernel_boot_id(identity->boot_id);
	identity->build_id_size = seam_kernel_build_id(identity->build_id);
	return read_text_addr(identity, err);
}

/* -- kernel.sym.zst ----------------------------------------------------- */

struct kernel_file {
	struct seam_kernel_identity identity;
	uint64_t modules;
	struct seam_bytes packed;	/* frame 2; borrowed */
};

static size_t print_header(const struct kernel_file *file, char *text)
{
	const struct seam_kernel_identity *id = &file->identity;
	char hex[2 * SEAM_BUILD_ID_MAX + 1];
	int n = snprintf(text, HEADER_MAX, MAGIC_KEY "=1\ntext=%" PRIx64
			 "\nmodules=%" PRIx64 "\n", id->text_addr,
			 file->modules);

	if (id->boot_id[0])
		n += snprintf(text + n, HEADER_MAX - (size_t)n, "boot_id=%s\n",
			      id->boot_id);
	if (id->build_id_size > 0)
		n += snprintf(text + n, HEADER_MAX - (size_t)n, "build_id=%s\n",
			      seam_text_hex(hex, id->build_id,
					    id->build_id_size));
	return (size_t)n;
}

/* A file for @text: malloc()ed into *@out.  0 or -ENOMEM. */
static int write_file(const struct kernel_file *file,
		      struct seam_bytes text, uint8_t **out, size_t *out_size,
		      struct seam_err *err)
{
	char header[HEADER_MAX];
	size_t n = print_header(file, header);
	size_t cap = ZSTD_compressBound(text.size);
	uint8_t *bytes = malloc(8 + n + cap);
	size_t packed;

	*out = NULL;
	if (!bytes)
		return seam_err_no_memory(err);
	memcpy(bytes, (uint32_t[]) { htole32(SKIPPABLE), htole32((uint32_t)n) },
	       8);
	memcpy(bytes + 8, header, n);
	packed = ZSTD_compress(bytes + 8 + n, cap, text.data, text.size, LEVEL);
	if (ZSTD_isError(packed)) {
		free(bytes);
		return seam_err_set(err, -ENOMEM, "cannot compress: %s",
				    ZSTD_getErrorName(packed));
	}
	*out = bytes;
	*out_size = 8 + n + packed;
	return 0;
}

static bool parse_hex(const char *text, uint64_t *value)
{
	const char *end = text + strlen(text);

	return seam_text_number(text, end, 16, value) == end;
}

/* A known key with an unknown value is none that can be read. */
static bool parse_line(struct kernel_file *file, const char *key,
		       const char *value)
{
	struct seam_kernel_identity *id = &file->identity;

	if (strcmp(key, "boot_id") == 0)
		return snprintf(id->boot_id, SEAM_BOOT_ID_TEXT, "%s", value) <
		       SEAM_BOOT_ID_TEXT;
	if (strcmp(key, "build_id") == 0)
		return (id->build_id_size = seam_text_unhex(id->build_id,
			SEAM_BUILD_ID_MAX, value, strlen(value))) != 0;
	if (strcmp(key, "text") == 0)
		return parse_hex(value, &id->text_addr);
	if (strcmp(key, "modules") == 0)
		return parse_hex(value, &file->modules);
	return strcmp(key, MAGIC_KEY) != 0 || strcmp(value, "1") == 0;
}

/* The lines of @text, each of which ends in a newline. */
static int parse_header(struct kernel_file *file, char *text,
			struct seam_err *err)
{
	char *next = text, *line, *value;

	if (strncmp(text, MAGIC_KEY "=", strlen(MAGIC_KEY "=")) != 0)
		return seam_err_set(err, -EBADMSG,
				    "byte 8: not a file of kernel symbols");
	while ((line = strsep(&next, "\n")) && (*line || next)) {
		size_t at = 8 + (size_t)(line - text);

		value = next ? strchr(line, '=') : NULL;
		if (!value)
			return seam_err_set(err, -EBADMSG,
				"byte %zu: not a key=value line", at);
		*value++ = '\0';
		if (!parse_line(file, line, value))
			return seam_err_set(err, -ENOTSUP,
				"byte %zu: a value that is not read here", at);
	}
	return 0;
}

/* Read the first frame.  0, or -EBADMSG, -ENODATA, -ENOTSUP. */
static int read_file(struct kernel_file *file, struct seam_bytes bytes,
		     struct seam_err *err)
{
	struct seam_cursor c = seam_cursor_over(bytes, SEAM_LITTLE);
	uint32_t magic = seam_cursor_u32(&c);
	uint32_t size = seam_cursor_u32(&c);
	char header[HEADER_MAX + 1];
	const uint8_t *text;

	*file = (struct kernel_file) { 0 };
	if (!c.error && (magic != SKIPPABLE || size > HEADER_MAX))
		return seam_err_set(err, -EBADMSG,
				    "byte 0: not a file of kernel symbols");
	text = seam_cursor_bytes(&c, size);
	if (c.error)
		return seam_err_set(err, c.error,
				    "byte %zu: the file ends early",
				    c.error_pos);
	memcpy(header, text, size);
	header[size] = '\0';
	file->packed = (struct seam_bytes) {
		bytes.data + c.pos, seam_cursor_left(&c),
	};
	return parse_header(file, header, err);
}

/*
 * The text, with room for one more byte after it: malloc()ed.  0, or
 * -EBADMSG, -ENOMEM; at most KALLSYMS_MAX.
 */
static int unpack_text(const struct kernel_file *file, char **text,
		       size_t *size, struct seam_err *err)
{
	unsigned long long n = ZSTD_getFrameContentSize(file->packed.data,
							file->packed.size);
	size_t got;

	*text = NULL;
	if (n == ZSTD_CONTENTSIZE_ERROR || n == ZSTD_CONTENTSIZE_UNKNOWN ||
	    n > KALLSYMS_MAX)
		return seam_err_set(err, -EBADMSG,
				    "the compressed text has an invalid size");
	if (n > TEXT_FREE + MAX_RATIO * (uint64_t)file->packed.size)
		return seam_err_set(err, -EBADMSG, "the compressed text would "
				    "unpack to over %d times its size",
				    MAX_RATIO);
	*text = malloc((size_t)n + 1);
	if (!*text)
		return seam_err_no_memory(err);
	got = ZSTD_decompress(*text, (size_t)n, file->packed.data,
			      file->packed.size);
	if (ZSTD_isError(got)) {
		free(*text);
		*text = NULL;
		return seam_err_set(err, -EBADMSG, "cannot unpack: %s",
				    ZSTD_getErrorName(got));
	}
	*size = got;
	return 0;
}

/* -- the cache ---------------------------------------------------------- */

/*
 * Reading and compressing takes 50 ms at the end of every recording, and the
 * symbols rarely change.  One file in a folder that is the user's own, and
 * closed to other users, holds them and what they are valid for.  Without such
 * a folder there is no cache, and that is no error.
 */

/*
 * Fold name, size and address of each line of /proc/modules; its counts of
 * users change all the time.
 */
static uint64_t hash_modules(const char *text, size_t size)
{
	uint64_t hash = 0;
	size_t start = 0;
	int field = 0;

	for (size_t i = 0; i < size; i++) {
		if (text[i] != ' ' && text[i] != '\n')
			continue;
		if (field != 2 && field != 3 && field != 4)
			hash = seam_hash_stable(text + start, i - start,
						hash);
		field = text[i] == '\n' ? 0 : field + 1;
		start = i + 1;
	}
	return hash;
}

/* Names in [bpf] come and go with the programs; ids are not used again. */
static bool hash_bpf(uint64_t *hash)
{
	union bpf_attr attr = { 0 };

	for (int i = 0; i < BPF_MAX; i++) {
		if (syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &attr,
			    sizeof(attr)))
			return errno == ENOENT || errno == ENOSYS;
		*hash = seam_hash_stable(&attr.next_id,
					 sizeof(attr.next_id), *hash);
		attr.start_id = attr.next_id;
	}
	return false;
}

uint64_t seam_kernel_modules(void)
{
	struct seam_file file;
	uint64_t hash = 1;
	int r = seam_file_read(&file, AT_FDCWD, "/proc/modules", MODULES_MAX,
			       NULL);

	/* A kernel without modules has no such file. */
	if (r && r != -ENOENT)
		return 0;
	if (!r)
		hash = hash_modules((const char *)file.bytes.data,
				    file.bytes.size);
	seam_file_close(&file);
	if (!hash_bpf(&hash))
		return 0;
	return hash ? hash : 1;
}

/* The folder, made if it is not there; or -1. */
static int open_folder(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	char base[PATH_MAX], path[PATH_MAX];
	struct stat st;
	int fd;

	if (xdg && xdg[0] == '/')
		snprintf(base, sizeof(base), "%s", xdg);
	else if (home && home[0] == '/')
		snprintf(base, sizeof(base), "%s/.cache", home);
	else
		return -1;
	if (snprintf(path, sizeof(path), "%s/seam", base) >= PATH_MAX)
		return -1;
	mkdir(base, 0700);
	mkdir(path, 0700);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	    (st.st_mode & 077) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool is_same(const struct kernel_file *file,
		    const struct seam_kernel_identity *identity,
		    uint64_t modules)
{
	const struct seam_kernel_identity *have = &file->identity;

	return file->modules == modules && identity->boot_id[0] &&
	       strcmp(have->boot_id, identity->boot_id) == 0 &&
	       have->text_addr == identity->text_addr &&
	       have->build_id_size == identity->build_id_size &&
	       memcmp(have->build_id, identity->build_id,
		      have->build_id_size) == 0;
}

/*
 * The file for this kernel and these modules, whole.  False when there is
 * none.  seam_file_close() frees it.
 */
static bool read_cache(struct seam_file *file,
		       const struct seam_kernel_identity *identity,
		       uint64_t modules)
{
	struct kernel_file kept;
	int folder = modules ? open_folder() : -1;
	int r;

	if (folder < 0)
		return false;
	r = seam_file_read(file, folder, NAME, FILE_MAX, NULL);
	close(folder);
	if (r)
		return false;
	if (!read_file(&kept, file->bytes, NULL) &&
	    is_same(&kept, identity, modules))
		return true;
	seam_file_close(file);
	return false;
}

/* Write @bytes as a new file.  0; or -errno, and there is no file. */
static int create(int dir, const char *name, struct seam_bytes bytes,
		  struct seam_err *err)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC |
			O_NOFOLLOW, 0600);
	int r;

	if (fd < 0)
		return seam_err_errno(err, "cannot create '%s'", name);
	r = seam_file_write_at(fd, bytes.data, bytes.size, 0, name, err);
	if (close(fd) < 0 && !r)
		r = seam_err_errno(err, "cannot write '%s'", name);
	if (r)
		unlinkat(dir, name, 0);
	return r;
}

static void write_cache(struct seam_bytes bytes)
{
	int folder = open_folder();
	char name[64];

	if (folder < 0)
		return;
	snprintf(name, sizeof(name), NAME ".%ld", (long)getpid());
	if (!create(folder, name, bytes, NULL) &&
	    renameat(folder, name, folder, NAME))
		unlinkat(folder, name, 0);
	close(folder);
}

/* -- saving ------------------------------------------------------------- */

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

static int copy_kallsyms(struct seam_file *file, struct seam_err *err)
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
		       const struct kernel_file *header,
		       struct seam_err *err)
{
	struct seam_file text;
	struct seam_bytes file = { 0 };
	uint8_t *bytes = NULL;
	int r = copy_kallsyms(&text, err);

	if (!r)
		r = write_file(header, text.bytes, &bytes, &file.size, err);
	seam_file_close(&text);
	if (r)
		return r;
	file.data = bytes;
	r = create(dirfd, name, file, err);
	/* Modules that changed meanwhile may be in the text or not. */
	if (!r && header->modules && header->modules == seam_kernel_modules())
		write_cache(file);
	free(bytes);
	return r;
}

int seam_kernel_capture(int dirfd, const char *name, struct seam_err *err)
{
	struct kernel_file header = { 0 };
	struct seam_file kept;
	int r = seam_kernel_identify(&header.identity, err);

	if (r)
		return r;
	if (header.identity.text_addr == 0)
		return hidden(err);
	header.modules = seam_kernel_modules();
	if (!read_cache(&kept, &header.identity, header.modules))
		return capture_new(dirfd, name, &header, err);
	r = create(dirfd, name, kept.bytes, err);
	seam_file_close(&kept);
	return r;
}

/* -- loading ------------------------------------------------------------ */

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
		return have->build_id_size == kernel->build_id_size &&
		       memcmp(have->build_id, kernel->build_id,
			      have->build_id_size) == 0 &&
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
	n = read_kallsyms(&symbols->table, text, size, modules);
	if (n > 0)
		return 0;
	seam_kernel_close(symbols);
	return n < 0 ? seam_err_no_memory(err) :
	       seam_err_set(err, -ENODATA, "no function has an address");
}

static int load_kept(struct seam_kernel_symbols *symbols, const char *path,
		     const struct seam_kernel *kernel, struct seam_err *err)
{
	struct kernel_file kept;
	struct seam_file file;
	size_t size = 0;
	char *text;
	int r = seam_file_read(&file, AT_FDCWD, path, FILE_MAX, err);

	if (r)
		return r;
	r = read_file(&kept, file.bytes, err);
	if (!r && !is_recorded(&kept.identity, kernel, false))
		r = seam_err_set(err, -ESTALE, "it is of another kernel");
	if (!r)
		r = unpack_text(&kept, &text, &size, err);
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
	r = copy_kallsyms(&file, err);
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
	if (bundle && snprintf(path, sizeof(path), "%s/" NAME,
			       bundle) < (int)sizeof(path)) {
		r = load_kept(symbols, path, kernel, err);
		if (r != -ENOENT && r != -ENOTDIR && r != -ESTALE)
			return r ? seam_err_add(err, r, "cannot read " NAME) :
			       0;
	}
	return load_running(symbols, kernel, err);
}

void seam_kernel_close(struct seam_kernel_symbols *symbols)
{
	seam_symtab_fini(&symbols->table);
	free(symbols->text);
	*symbols = (struct seam_kernel_symbols) { 0 };
}
