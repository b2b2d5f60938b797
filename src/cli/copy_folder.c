/* SPDX-License-Identifier: MIT */
/* copy_folder.c - a walk by fts(3) that follows no link; see copy_folder.h */
#include "cli/copy_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { MAX_DEPTH = 5 };			/* a bundle's files are at 2 */

/* A file that is replaced by something else meanwhile is skipped. */
static int copy_file(const FTSENT *entry, const char *name,
		     struct seam_output_folder *to, struct seam_err *err)
{
	int out, in = open(entry->fts_accpath, O_RDONLY | O_NOFOLLOW |
			   O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int r;

	if (in < 0)
		return errno == ELOOP || errno == ENXIO ? 0 :
		       seam_err_errno(err, "cannot open '%s'", name);
	if (fstat(in, &st) || !S_ISREG(st.st_mode)) {
		close(in);
		return 0;
	}
	out = seam_output_folder_create(to, name, err);
	r = out < 0 ? out : seam_file_copy(in, out, UINT64_MAX, name, err);
	if (out >= 0 && close(out) && r == 0)
		r = seam_err_errno(err, "cannot write '%s'", name);
	close(in);
	return r;
}

static int make_folder(const char *name, struct seam_output_folder *to,
		       struct seam_err *err)
{
	if (mkdirat(to->folder, name, 0700))
		return seam_err_errno(err, "cannot make folder '%s'", name);
	return seam_output_folder_note(to, name, err);
}

/* Anything but regular files and folders is skipped. */
static int copy_entry(FTS *walk, FTSENT *entry, size_t from_size,
		      const char *but, const struct stat *made,
		      struct seam_output_folder *to, struct seam_err *err)
{
	const char *name = entry->fts_path + from_size;

	name += strspn(name, "/");
	switch (entry->fts_info) {
	case FTS_F:
		return strcmp(name, but) == 0 ? 0 :
		       copy_file(entry, name, to, err);
	case FTS_D:
		if (entry->fts_level == FTS_ROOTLEVEL)
			return 0;
		if (entry->fts_level < MAX_DEPTH &&
		    (entry->fts_dev != made->st_dev ||
		     entry->fts_ino != made->st_ino))
			return make_folder(name, to, err);
		return fts_set(walk, entry, FTS_SKIP);
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		errno = entry->fts_errno;
		return seam_err_errno(err, "cannot read '%s'", name);
	default:
		return 0;
	}
}

int seam_copy_folder(const char *from, struct seam_output_folder *to,
		     const char *but, struct seam_err *err)
{
	char *paths[] = { (char *)(uintptr_t)from, NULL };
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW, NULL);
	size_t from_size = strlen(from);
	struct stat made;
	FTSENT *entry = NULL;
	int r = 0;

	if (!walk || fstat(to->folder, &made))
		r = seam_err_errno(err, "cannot open '%s'", from);
	while (r == 0 && (errno = 0, entry = fts_read(walk)) != NULL)
		r = copy_entry(walk, entry, from_size, but, &made, to, err);
	if (r == 0 && errno)
		r = seam_err_errno(err, "cannot list '%s'", from);
	if (walk)
		fts_close(walk);
	return r;
}
