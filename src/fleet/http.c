/* SPDX-License-Identifier: MIT */
/* http.c - see http.h */
#include "fleet/http.h"

#include <errno.h>

#include "base/text.h"
#include "fleet/curl_library.h"

enum { CONNECT_SECONDS = 10 };

/* What a transfer's callbacks use. */
struct transfer {
	const struct seam_http_request *request;
	struct seam_http_answer *answer;
	size_t part, pos;	/* of the next byte to send */
	size_t left;		/* bytes to send */
	bool is_too_large, is_out_of_memory;
};

/* -- callbacks ---------------------------------------------------------- */

static size_t give_body(char *to, size_t size, size_t n, void *context)
{
	struct transfer *t = context;
	size_t given = 0, room = size * n;

	while (given < room && t->part < SEAM_HTTP_MAX_PARTS) {
		struct seam_bytes part = t->request->parts[t->part];
		size_t some = part.size - t->pos;

		if (some > room - given)
			some = room - given;
		if (some)
			memcpy(to + given, part.data + t->pos, some);
		given += some;
		t->pos += some;
		if (t->pos == part.size) {
			t->part++;
			t->pos = 0;
		}
	}
	t->left -= given;
	t->answer->is_sent = !t->left;
	return given;
}

static size_t take_body(char *from, size_t size, size_t n, void *context)
{
	struct transfer *t = context;
	struct seam_http_answer *answer = t->answer;

	size *= n;
	t->is_too_large = size > t->request->max_answer - answer->body.n;
	if (t->is_too_large)
		return 0;
	/* Bytes that are there when this fails are not used. */
	t->is_out_of_memory = !SEAM_ARRAY_RESERVE(&answer->body, size + 1);
	if (t->is_out_of_memory)
		return 0;
	memcpy(&answer->body.items[answer->body.n], from, size);
	answer->body.n += size;
	answer->body.items[answer->body.n] = 0;
	return size;
}

/* -- a request ---------------------------------------------------------- */

static size_t body_size(const struct seam_http_request *request)
{
	size_t size = 0;

	for (size_t i = 0; i < SEAM_HTTP_MAX_PARTS; i++)
		size += request->parts[i].size;
	return size;
}

/* NULL when memory ran out. */
static struct curl_slist *make_headers(const struct seam_curl_library *lib,
				       const struct seam_http_request *request)
{
	/* Without Expect, a server that ignores it costs no second. */
	static const char *const ours[] = { "Expect:", NULL };
	const char *const *lists[] = { ours, request->headers };
	const char *type = request->content_type;
	struct curl_slist *list = NULL, *longer;
	char line[160];

	snprintf(line, sizeof(line), "Content-Type: %s",
		 type ? type : "application/octet-stream");
	list = lib->curl_slist_append(NULL, line);
	for (size_t i = 0; list && i < SEAM_ARRAY_SIZE(lists); i++)
		for (const char *const *at = lists[i]; at && *at; at++) {
			longer = lib->curl_slist_append(list, *at);
			if (!longer) {
				lib->curl_slist_free_all(list);
				return NULL;
			}
			list = longer;
		}
	return list;
}

/* False: libcurl refused an option, which none of the known versions does. */
static bool set_options(const struct seam_curl_library *lib, CURL *curl,
			struct transfer *t, struct curl_slist *headers,
			char *why)
{
	const struct seam_http_request *request = t->request;
	bool ok = true;

#define SET(option, value)						\
	(ok &= lib->curl_easy_setopt(curl, CURLOPT_##option, value) == CURLE_OK)
	SET(URL, request->url);
	SET(PROTOCOLS_STR, "http,https");
	SET(HTTPHEADER, headers);
	SET(USERAGENT, "seam/" SEAM_VERSION);
	SET(POST, 1L);
	SET(POSTFIELDSIZE_LARGE, (curl_off_t)t->left);
	SET(READFUNCTION, give_body);
	SET(READDATA, t);
	SET(WRITEFUNCTION, take_body);
	SET(WRITEDATA, t);
	SET(UPLOAD_BUFFERSIZE, 1L << 20);
	SET(BUFFERSIZE, 256L << 10);
	SET(FRESH_CONNECT, 1L);
	SET(FORBID_REUSE, 1L);
	SET(FOLLOWLOCATION, 0L);
	SET(NOSIGNAL, 1L);
	SET(CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	SET(TIMEOUT, (long)request->timeout_s);
	SET(ERRORBUFFER, why);
	SET(SSL_VERIFYPEER, 1L);
	SET(SSL_VERIFYHOST, 2L);
	SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (request->ca_file)
		SET(CAINFO, request->ca_file);
#undef SET
	return ok;
}

static int code_of(CURLcode code)
{
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
		return -ECONNREFUSED;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		return -EPROTO;
	default:
		return -EIO;
	}
}

static int explain(const struct transfer *t, CURLcode code, const char *why,
		   const char *general, struct seam_err *err)
{
	char text[SEAM_ERR_TEXT / 2];

	if (t->is_out_of_memory)
		return seam_err_no_memory(err);
	if (t->is_too_large)
		return seam_err_set(err, -EFBIG, "the answer is larger than "
				    "%zu bytes", t->request->max_answer);
	seam_text_copy(text, sizeof(text), *why ? why : general,
		       SEAM_TEXT_TERMINAL);
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		return seam_err_set(err, -EPROTO, "%s (--ca-file FILE has the "
				    "authority that signed the server's "
				    "certificate)", text);
	return seam_err_set(err, code_of(code), "%s", text);
}

int seam_http_post(const struct seam_http_request *request,
		   struct seam_http_answer *answer, struct seam_err *err)
{
	const struct seam_curl_library *lib = seam_curl_library(err);
	struct transfer t = {
		.request = request, .answer = answer,
		.left = body_size(request),
	};
	char why[CURL_ERROR_SIZE] = "";
	struct curl_slist *headers;
	CURLcode code;
	CURL *curl;
	int ret = 0;

	*answer = (struct seam_http_answer) { 0 };
	if (!lib)
		return -ENOENT;
	curl = lib->curl_easy_init();
	headers = make_headers(lib, request);
	if (!curl || !headers) {
		ret = seam_err_no_memory(err);
	} else if (!set_options(lib, curl, &t, headers, why)) {
		ret = seam_err_set(err, -ENOTSUP, "this libcurl is too old: "
				   "7.85 or newer is needed");
	} else {
		code = lib->curl_easy_perform(curl);
		if (code)
			ret = explain(&t, code, why,
				      lib->curl_easy_strerror(code), err);
		else
			lib->curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE,
					       &answer->status);
	}
	lib->curl_slist_free_all(headers);
	if (curl)
		lib->curl_easy_cleanup(curl);
	return ret;
}

int seam_http_check_url(const char *url, const char *instead,
			struct seam_err *err)
{
	const char *host = strncmp(url, "http://", 7) == 0 ? url + 7 :
			   strncmp(url, "https://", 8) == 0 ? url + 8 : NULL;

	for (const char *at = url; *at; at++)
		if ((unsigned char)*at <= 0x20 || *at == 0x7f || *at == '#')
			return seam_err_set(err, -EINVAL, "the URL has a "
					    "space, a '#' or a control "
					    "character");
	if (!host || !*host)
		return seam_err_set(err, -EINVAL, "the URL is not "
				    "http://HOST or https://HOST");
	if (memchr(host, '@', strcspn(host, "/?")))
		return seam_err_set(err, -EINVAL, "the URL has a user or a "
				    "password, which others see in the list "
				    "of processes: use %s", instead);
	return 0;
}

void seam_http_escape(char *to, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	for (; *text; text++)
		if (strchr(plain, *text))
			*to++ = *text;
		else
			to += snprintf(to, 4, "%%%02X", (unsigned char)*text);
	*to = 0;
}
