/* SPDX-License-Identifier: MIT */
/* packed.c - read in a sandbox, written outside of it; see packed.h */
#include "cli/packed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file.h"
#include "cli/archive_library.h"
#include "cli/output_folder.h"
#include "symbol/sandbox/sandbox.h"

enum {
	PART_BYTES = 256 << 10,		/* of a message */
	MAX_LEVELS = 3,			/* NAME/FOLDER/FILE */
	MAX_FOLDERS = 8,
};

/* Messages: the parent asks for the next one of them. */
enum packed_kind {
	PACKED_NEXT,		/* from the parent; the first has the file */
	PACKED_FILE,		/* type, name */
	PACKED_DATA,		/* bytes of the file before it */
	PACKED_END,
	PACKED_ERROR,		/* text */
};

/* -- in the sandbox ------------------------------------------------------- */

struct packed_reader {
	const struct seam_archive_library *library;
	struct archive *archive;
	int fd;
	bool in_file;
	uint8_t input[PART_BYTES], part[PART_BYTES];
};

static la_ssize_t read_input(struct archive *archive, void *context,
			     const void **to)
{
	struct packed_reader *reader = context;

	(void)archive;
	*to = reader->input;
	return read(reader->fd, reader->input, sizeof(reader->input));
}

static void open_archive(struct packed_reader *r)
{
	r->archive = r->library->archive_read_new();
	if (!r->archive)
		return;
	r->library->archive_read_support_filter_zstd(r->archive);
	r->library->archive_read_support_format_tar(r->archive);
	r->library->archive_read_open(r->archive, r, NULL, read_input, NULL);
}

static void send_error(struct packed_reader *r, struct seam_ipc *ipc)
{
	const char *text = r->archive ?
		r->library->archive_error_string(r->archive) : NULL;

	seam_ipc_put_text(ipc, text ? text : "out of memory");
	seam_ipc_send(ipc, PACKED_ERROR, -1);
}

static void send_next(struct packed_reader *r, struct seam_ipc *ipc)
{
	struct archive_entry *entry;
	const char *name;
	la_ssize_t n;
	int status;

	if (r->in_file) {
		n = r->library->archive_read_data(r->archive, r->part,
						  sizeof(r->part));
		if (n < 0) {
			send_error(r, ipc);
			return;
		}
		if (n > 0) {
			seam_ipc_put(ipc, r->part, (size_t)n);
			seam_ipc_send(ipc, PACKED_DATA, -1);
			return;
		}
	}
	status = r->archive ? r->library->archive_read_next_header(
			r->archive, &entry) : ARCHIVE_FATAL;
	if (status == ARCHIVE_EOF) {
		seam_ipc_send(ipc, PACKED_END, -1);
		return;
	}
	if (status != ARCHIVE_OK) {
		send_error(r, ipc);
		return;
	}
	r->in_file = true;
	name = r->library->archive_entry_pathname(entry);
	/* a hard link has the type of its file */
	seam_ipc_put_u32(ipc, r->library->archive_entry_hardlink(entry) ?
			 S_IFLNK : r->library->archive_entry_filetype(entry));
	seam_ipc_put_text(ipc, name);
	seam_ipc_send(ipc, PACKED_FILE, -1);
}

static void serve_archive(struct seam_ipc *ipc, void *context)
{
	struct packed_reader *reader = calloc(1, sizeof(*reader));
	struct seam_message message;

	while (reader && seam_ipc_receive(ipc, &message) == 0) {
		if (message.fd >= 0) {
			reader->library = context;
			reader->fd = message.fd;
			open_archive(reader);
		}
		send_next(reader, ipc);
	}
}

/* -- names ---------------------------------------------------------------- */

/* What is unpacked, and where. */
struct unpacking {
	char root[PATH_MAX];		/* the temporary folder */
	int folder;			/* the same */
	char name[NAME_MAX + 1];	/* the recording's; "": none yet */
	int file;			/* that is written; -1: none */
	uint64_t n_bytes, max_bytes;
	size_t n_files, n_folders;
};

/* 0, or -EBADMSG: @path could lead out of the folder. */
static int check_name(struct unpacking *u, const char *path,
		      struct seam_err *err)
{
	const char *at = path, *why = NULL;
	unsigned int level = 0;

	for (; !why && *at; level++) {
		size_t n = strcspn(at, "/");

		why = n == 0 ? "begins with '/' or has '//'" :
		      at[0] == '.' ? "has a part that begins with a dot" :
		      n > NAME_MAX || level == MAX_LEVELS ? "is too long" :
		      NULL;
		if (!why && level == 0 && !*u->name)
			memcpy(u->name, at, n);
		if (!why && level == 0 &&
		    (strlen(u->name) != n || memcmp(u->name, at, n)))
			why = "is in another folder than those before it";
		at += n;
		at += at[0] == '/';	/* also at the end of a folder's */
	}
	if (!why && level == 0)
		why = "has no name";
	return why ? seam_err_set(err, -EBADMSG, "'%.200s' %s", path, why) : 0;
}

static int make_folder(struct unpacking *u, const char *path, size_t n,
		       struct seam_err *err)
{
	char text[PATH_MAX];

	snprintf(text, sizeof(text), "%.*s", (int)n, path);
	if (mkdirat(u->folder, text, 0700) == 0)
		return ++u->n_folders <= MAX_FOLDERS ? 0 :
		       seam_err_set(err, -E2BIG, "it has more than %d folders",
				    MAX_FOLDERS);
	return errno == EEXIST ? 0 :
	       seam_err_set(err, -errno, "cannot make '%s': %s", text,
			    strerror(errno));
}

/* The folders of @path; its last part is a file's. */
static int make_folders(struct unpacking *u, const char *path,
			struct seam_err *err)
{
	int r = 0;

	for (const char *at = strchr(path, '/'); at && !r;
	     at = strchr(at + 1, '/'))
		r = make_folder(u, path, (size_t)(at - path), err);
	return r;
}

static int begin_entry(struct unpacking *u, uint32_t type, const char *path,
		       struct seam_err *err)
{
	int r = check_name(u, path, err);

	seam_file_close_fd(u->file);
	u->file = -1;
	if (r)
		return r;
	if (++u->n_files > SEAM_PACKED_FILES)
		return seam_err_set(err, -E2BIG, "it has more than %d files",
				    SEAM_PACKED_FILES);
	if (type != S_IFREG && type != S_IFDIR)
		return seam_err_set(err, -EBADMSG, "'%.200s' is a link or a "
				    "device; only files can be in it", path);
	r = make_folders(u, path, err);
	if (!r && type == S_IFDIR)
		r = make_folder(u, path, strlen(path), err);
	if (r || type == S_IFDIR)
		return r;
	u->file = openat(u->folder, path, O_WRONLY | O_CREAT | O_EXCL |
			 O_NOFOLLOW | O_CLOEXEC, 0600);
	return u->file < 0 ? seam_err_set(err, -errno, "cannot write '%.200s': "
					  "%s", path, strerror(errno)) : 0;
}

static int write_part(struct unpacking *u, struct seam_cursor *body,
		      struct seam_err *err)
{
	size_t size = seam_cursor_left(body);
	const uint8_t *bytes = seam_cursor_bytes(body, size);

	u->n_bytes += size;
	if (u->file < 0)
		return seam_err_set(err, -EBADMSG, "it has data of no file");
	if (u->n_bytes > u->max_bytes)
		return seam_err_set(err, -EFBIG, "it has more than %d times "
				    "its size, unpacked", SEAM_PACKED_RATIO);
	while (size) {
		ssize_t n = write(u->file, bytes, size);

		if (n < 0 && errno != EINTR)
			return seam_err_set(err, -errno, "cannot write to "
					    "'%.200s': %s", u->root,
					    strerror(errno));
		if (n > 0) {
			bytes += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

/* -- unpacking ------------------------------------------------------------ */

/* 1: there is more; 0: that was all; or -errno. */
static int take_message(struct unpacking *u, struct seam_message *message,
			struct seam_err *err)
{
	const char *text;
	uint32_t type;
	int r;

	switch (message->kind) {
	case PACKED_FILE:
		type = seam_cursor_u32(&message->body);
		text = seam_cursor_cstr(&message->body);
		r = begin_entry(u, type, text ? text : "", err);
		return r ? r : 1;
	case PACKED_DATA:
		r = write_part(u, &message->body, err);
		return r ? r : 1;
	case PACKED_END:
		return *u->name ? 0 : seam_err_set(err, -EBADMSG,
						   "it is empty");
	case PACKED_ERROR:
		text = seam_cursor_cstr(&message->body);
		return seam_err_set(err, -EBADMSG, "%.200s",
				    text ? text : "damaged");
	}
	return seam_err_set(err, -EBADMSG, "its reader sent something else");
}

static int unpack(struct unpacking *u, int archive, struct seam_err *err)
{
	const struct seam_archive_library *library = seam_archive_library(err);
	struct seam_sandbox reader;
	struct seam_message message;
	char why[100];
	int r = library ? seam_sandbox_start(&reader, serve_archive,
			(void *)(uintptr_t)library, err) : -ENOENT;

	if (r)
		return r;
	for (r = 1; r > 0; archive = -1) {
		r = seam_ipc_send(&reader.ipc, PACKED_NEXT, archive);
		if (!r)
			r = seam_ipc_receive(&reader.ipc, &message);
		if (r) {
			seam_sandbox_end(&reader, why, sizeof(why));
			return seam_err_set(err, r, "the process that read it "
					    "%s", why);
		}
		r = take_message(u, &message, err);
	}
	seam_sandbox_end(&reader, NULL, 0);
	return r;
}

/* -- the temporary folder ------------------------------------------------- */

static int cleaner_fd = -1;
static pid_t cleaner;

static void end_cleaner(void)
{
	close(cleaner_fd);
	waitpid(cleaner, NULL, 0);
}

/* The process that removes @root when all others have ended. */
_Noreturn static void clean_up(int pipe, const char *root)
{
	sigset_t all;
	char byte;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	setsid();
	/* a reader of this program's output is not to wait for it */
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	while (read(pipe, &byte, 1) < 0 && errno == EINTR)
		;
	seam_output_folder_remove(root);
	_exit(0);
}

static int start_cleaner(const char *root, struct seam_err *err)
{
	int pipes[2];
	pid_t pid = pipe2(pipes, O_CLOEXEC) ? -1 : fork();

	if (pid < 0)
		return seam_err_set(err, -errno, "cannot start a process: %s",
				    strerror(errno));
	if (pid == 0) {
		close(pipes[1]);
		if (cleaner_fd >= 0)
			close(cleaner_fd);
		clean_up(pipes[0], root);
	}
	close(pipes[0]);
	/* of two archives, the first one's ends with the program */
	if (cleaner_fd < 0)
		atexit(end_cleaner);
	cleaner_fd = pipes[1];
	cleaner = pid;
	return 0;
}

static int make_root(struct unpacking *u, struct seam_err *err)
{
	const char *folder = getenv("TMPDIR");

	snprintf(u->root, sizeof(u->root), "%.3000s/seam-XXXXXX",
		 folder && *folder ? folder : "/var/tmp");
	u->folder = mkdtemp(u->root) ? open(u->root, O_RDONLY | O_DIRECTORY |
					    O_CLOEXEC) : -1;
	return u->folder < 0 ? seam_err_set(err, -errno, "cannot make '%.200s':"
			" %s", u->root, strerror(errno)) : 0;
}

bool seam_packed_is(const char *path)
{
	size_t n = strlen(path), end = strlen(SEAM_PACKED_ENDING);

	return n > end && strcmp(path + n - end, SEAM_PACKED_ENDING) == 0;
}

int seam_packed_open(const char *path, char **folder, struct seam_err *err)
{
	struct unpacking u = { .file = -1 };
	struct stat st = { 0 };
	int fd = seam_file_open_fd(AT_FDCWD, path, 0, err);
	int r = fd < 0 ? fd : make_root(&u, err);

	if (!r && fstat(fd, &st) == 0)
		u.max_bytes = SEAM_PACKED_BYTES + SEAM_PACKED_RATIO *
			      (uint64_t)st.st_size;
	if (!r)
		r = start_cleaner(u.root, err);
	if (!r)
		r = unpack(&u, fd, err);
	seam_file_close_fd(u.file);
	seam_file_close_fd(fd);
	if (u.folder > 0)
		close(u.folder);
	if (!r && asprintf(folder, "%s/%s", u.root, u.name) < 0)
		r = seam_err_no_memory(err);
	return r ? seam_err_add(err, r, "cannot unpack '%s'", path) : 0;
}
