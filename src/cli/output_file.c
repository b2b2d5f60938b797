/* SPDX-License-Identifier: MIT */
/* output_file.c - write a temporary file, then rename; see output_file.h */
#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Must not be copied while it is open. */
struct output_file {
	FILE *file;
	int fd;			/* of the file, unless that is stdout */
	int code;		/* errno of the first write that failed, or 0 */
	const char *path;	/* borrowed */
	char *temporary;	/* path until the rename; NULL: none */
};

static int fail(const struct output_file *output, const char *verb,
		struct seam_err *err)
{
	int code = output->code ? -output->code : errno ? -errno : -EIO;

	return seam_err_set(err, code, "cannot %s '%.200s': %s", verb,
			    output->path, strerror(-code));
}

/*
 * stdio records that a write failed, but not the errno; so the first one is
 * stored in output->code.
 */
static ssize_t put(void *cookie, const char *data, size_t size)
{
	struct output_file *output = cookie;
	size_t done = 0;

	while (done < size) {
		ssize_t n = write(output->fd, data + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			output->code = output->code ? output->code : errno;
			break;
		}
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int shut(void *cookie)
{
	struct output_file *output = cookie;

	if (close(output->fd) == 0)
		return 0;
	output->code = output->code ? output->code : errno;
	return -1;
}

/* Takes @fd over; closes it on failure. */
static void open_stream(struct output_file *output, int fd)
{
	const cookie_io_functions_t calls = { .write = put, .close = shut };

	output->fd = fd;
	output->file = fd < 0 ? NULL : fopencookie(output, "w", calls);
	if (fd >= 0 && !output->file)
		close(fd);
}

/* Whether to write a temporary file and rename: @path is new or regular. */
static bool is_replaceable(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT;
	return S_ISREG(st.st_mode);
}

static void open_temporary(struct output_file *output)
{
	mode_t mask = umask(0);
	int fd = -1;

	umask(mask);
	if (asprintf(&output->temporary, "%s.XXXXXX", output->path) < 0)
		output->temporary = NULL;
	else
		fd = mkostemp(output->temporary, O_CLOEXEC);
	if (fd < 0) {
		free(output->temporary);
		output->temporary = NULL;
	} else if (fchmod(fd, 0666 & ~mask) == 0) {	/* as open() */
		open_stream(output, fd);
	} else {
		close(fd);
	}
}

/* 0, or -errno with the reason. */
static int open_output(struct output_file *output, struct seam_err *err)
{
	errno = 0;
	if (strcmp(output->path, "-") == 0)
		output->file = stdout;
	else if (!is_replaceable(output->path))
		open_stream(output, open(output->path, O_WRONLY | O_CREAT |
					 O_TRUNC | O_CLOEXEC, 0666));
	else
		open_temporary(output);
	return output->file ? 0 : fail(output, "write", err);
}

/* 0, or -errno with the reason when not all was written. */
static int close_stream(struct output_file *output, struct seam_err *err)
{
	int r = 0;

	errno = 0;
	fflush(output->file);	/* sets the error indicator, if it fails */
	if (ferror(output->file))
		r = fail(output, "write", err);
	if (fclose(output->file) && !r)
		r = fail(output, "write", err);
	return r;
}

int seam_export_file(const char *path, const struct seam_exporter *exporter,
		     struct seam_export *export, struct seam_err *err)
{
	struct output_file output = { .path = path };
	int r = open_output(&output, err), closed = 0;

	if (!r) {
		export->out = output.file;
		r = exporter->write(export, err);
		if (output.file != stdout)
			closed = close_stream(&output, r ? NULL : err);
		r = r ? r : closed;
	}
	if (!r && output.temporary && rename(output.temporary, path))
		r = fail(&output, "replace", err);
	if (r && output.temporary)
		unlink(output.temporary);
	free(output.temporary);
	return r;
}
