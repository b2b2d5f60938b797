/* SPDX-License-Identifier: MIT */
/* login.c - a user and a password from a file or the environment; see http.h */
#include "fleet/http.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"

enum { FILE_MAX = 4096 };

/* A header line holds no others: that would be another header. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

static int store(struct seam_login *login, const char *user, size_t user_size,
		 const char *password, struct seam_err *err)
{
	if (!user_size || user_size >= SEAM_LOGIN_MAX ||
	    strlen(password) >= SEAM_LOGIN_MAX)
		return seam_err_set(err, -EINVAL, "the user is empty, or user "
				    "or password has more than %d bytes",
				    SEAM_LOGIN_MAX - 1);
	memcpy(login->user, user, user_size);
	login->user[user_size] = 0;
	snprintf(login->password, sizeof(login->password), "%s", password);
	if (!is_plain(login->user) || !is_plain(login->password))
		return seam_err_set(err, -EINVAL, "user or password has "
				    "control characters");
	return 0;
}

static int check_owner(int fd, struct seam_err *err)
{
	struct stat status;

	if (fstat(fd, &status))
		return seam_err_errno(err, "cannot stat");
	if (status.st_mode & 077)
		return seam_err_set(err, -EACCES, "others may read it: chmod "
				    "600");
	if (status.st_uid != geteuid() && status.st_uid)
		return seam_err_set(err, -EACCES, "it belongs to another user: "
				    "uid=%u", (unsigned int)status.st_uid);
	return 0;
}

/* Both texts are wiped by the caller. */
static int parse(struct seam_login *login, char *text, struct seam_err *err)
{
	char *colon;

	text[strcspn(text, "\r\n")] = 0;
	colon = strchr(text, ':');
	if (!colon)
		return seam_err_set(err, -EINVAL, "its first line is not "
				    "USER:PASSWORD");
	return store(login, text, (size_t)(colon - text), colon + 1, err);
}

static int read_file(struct seam_login *login, int fd, struct seam_err *err)
{
	char text[FILE_MAX];
	ssize_t size;
	int ret = check_owner(fd, err);

	if (ret)
		return ret;
	size = read(fd, text, sizeof(text) - 1);
	if (size < 0)
		return seam_err_errno(err, "cannot read");
	text[size] = 0;
	ret = parse(login, text, err);
	explicit_bzero(text, sizeof(text));
	return ret;
}

static int open_file(struct seam_login *login, const char *path,
		     struct seam_err *err)
{
	char shown[SEAM_ERR_TEXT / 2];
	int fd = seam_file_open_fd(AT_FDCWD, path, 0, err);
	int ret = fd < 0 ? fd : read_file(login, fd, err);

	seam_file_close_fd(fd);
	if (!ret)
		return 0;
	explicit_bzero(login, sizeof(*login));
	return seam_err_add(err, ret, "cannot use the credentials '%s'",
			    seam_text_copy(shown, sizeof(shown), path,
					   SEAM_TEXT_TERMINAL));
}

int seam_login_read(struct seam_login *login, const char *file,
		    struct seam_err *err)
{
	const char *folder = getenv("CREDENTIALS_DIRECTORY");
	const char *user = getenv("SEAM_FLEET_USER");
	const char *password = getenv("SEAM_FLEET_PASSWORD");
	char path[PATH_MAX];
	int ret;

	*login = (struct seam_login) { 0 };
	if (file)
		return open_file(login, file, err);
	if (folder) {
		snprintf(path, sizeof(path), "%s/fleet", folder);
		if (!access(path, F_OK))
			return open_file(login, path, err);
	}
	if (!user)
		return 0;
	ret = store(login, user, strlen(user), password ? password : "", err);
	return ret ? seam_err_add(err, ret, "cannot use SEAM_FLEET_USER and "
				  "SEAM_FLEET_PASSWORD") : 0;
}
