/* SPDX-License-Identifier: MIT */
/* output_file.c - write a temporary file, then rename; see output_file.h */
#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const struct seam_output *output, const char *verb,
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
	struct seam_output *output = cookie;
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
	struct seam_output *output = cookie;

	if (close(output->fd) == 0)
		return 0;
	output->code = output->code ? output->code : errno;
	return -1;
}

/* Takes @fd over; closes it on failure. */
static void open_stream(struct seam_output *output, int fd)
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

/* The mode of a file created by open(); mkstemp() makes it 0600. */
static mode_t usual_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

static int open_temporary(struct seam_output *output)
{
	int fd;

	if (asprintf(&output->temporary, "%s.XXXXXX", output->path) < 0) {
		output->temporary = NULL;
		return -1;
	}
	fd = mkostemp(output->temporary, O_CLOEXEC);
	if (fd < 0) {
		free(output->temporary);
		output->temporary = NULL;
		return -1;
	}
	if (fchmod(fd, usual_mode()) == 0)
		open_stream(output, fd);
	else
		close(fd);
	return output->file ? 0 : -1;
}

int seam_output_open(struct seam_output *output, const char *path,
		     struct seam_err *err)
{
	*output = (struct seam_output) { .path = path };
	errno = 0;
	if (strcmp(path, "-") == 0)
		output->file = stdout;
	else if (!is_replaceable(path))
		open_stream(output, open(path, O_WRONLY | O_CREAT | O_TRUNC |
					 O_CLOEXEC, 0666));
	else
		open_temporary(output);
	if (output->file)
		return 0;
	fail(output, "write", err);
	if (output->temporary)
		unlink(output->temporary);
	free(output->temporary);
	return err ? err->code : -EIO;
}

int seam_output_close(struct seam_output *output, bool keep,
		      struct seam_err *err)
{
	bool failed;
	int rc = 0;

	if (output->file == stdout)
		return 0;
	errno = 0;
	failed = fflush(output->file) != 0 || ferror(output->file);
	if (failed)
		rc = fail(output, "write", err);
	if (fclose(output->file) && !rc)
		rc = fail(output, "write", err);
	if (output->temporary) {
		if (!rc && keep && rename(output->temporary, output->path))
			rc = fail(output, "replace", err);
		if (rc || !keep)
			unlink(output->temporary);
	}
	free(output->temporary);
	output->temporary = NULL;
	return rc;
}

int seam_export_file(const char *path, const struct seam_exporter *exporter,
		     struct seam_export *export, struct seam_err *err)
{
	struct seam_output output;
	int r = seam_output_open(&output, path, err), closed;

	if (r)
		return r;
	export->out = output.file;
	r = exporter->write(export, err);
	closed = seam_output_close(&output, r == 0, r ? NULL : err);
	return r ? r : closed;
}
