/* SPDX-License-Identifier: MIT */
/*
 * http.h - a request over HTTP or HTTPS, by libcurl, which is loaded when used
 *
 * A request is sent once, on a connection of its own: libcurl would repeat a
 * request on a connection that it kept, and a server could have done it twice.
 * Certificates are verified; redirects are not followed; nothing is read from
 * .netrc.  Proxies are those of the environment, as curl(1) has them.
 *
 * Threads: one at a time.
 */
#pragma once

#include "base/array.h"
#include "base/err.h"

enum {
	SEAM_HTTP_MAX_PARTS = 3,
	SEAM_LOGIN_MAX = 256,	/* bytes of a name, or of a password */
};

/* A user and a password, of a file or the environment; "" without. */
struct seam_login {
	char user[SEAM_LOGIN_MAX], password[SEAM_LOGIN_MAX];
};

/*
 * Read "USER:PASSWORD" from the first line of @file, which must belong to this
 * user or root, and be readable by its owner only.  NULL: the file "fleet"
 * in $CREDENTIALS_DIRECTORY (systemd.exec(5), LoadCredential=) if it is there;
 * else SEAM_FLEET_USER and SEAM_FLEET_PASSWORD; else none.  0 or -errno: the
 * message has no byte of what was read.
 */
int seam_login_read(struct seam_login *login, const char *file,
		    struct seam_err *err);

/* Borrows all of it. */
struct seam_http_request {
	const char *url;
	const char *content_type;	/* NULL: application/octet-stream */
	/* "Name: value"; NULL at the end */
	const char *const *headers;
	struct seam_bytes parts[SEAM_HTTP_MAX_PARTS];	/* of the body */
	const char *ca_file;		/* PEM; NULL: the system's */
	size_t max_answer;		/* bytes */
	unsigned int timeout_s;		/* of all */
};

struct seam_http_answer {
	long status;			/* 200; 0: the server did not answer */
	SEAM_ARRAY(uint8_t) body;	/* and a NUL after it */
	/* The server may have the whole body, so may act on it. */
	bool is_sent;
};

/*
 * POST @request.  0 with an answer, of whatever status; -errno where none
 * came: -ECONNREFUSED, -ETIMEDOUT, -EFBIG of one that is too large, -EPROTO of
 * TLS, -ENOENT without libcurl, -EIO of all else.  free(body.items) in each case.
 */
int seam_http_post(const struct seam_http_request *request,
		   struct seam_http_answer *answer, struct seam_err *err);

/*
 * Whether @url can be used: http: or https:, a host, and no user, password,
 * fragment or control character.  @instead: where a password may be.  0 or
 * -EINVAL.
 */
int seam_http_check_url(const char *url, const char *instead,
			struct seam_err *err);

/* @text as it may be in a URL's query, in @to of 3 * its length + 1 bytes. */
void seam_http_escape(char *to, const char *text);
