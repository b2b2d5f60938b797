/* SPDX-License-Identifier: MIT */
/*
 * otlp_store.c - each batch to a receiver of OTLP too, or to that alone
 *
 * With a store, which has each batch once, OTLP is a second output: each batch
 * is sent after the store has it, and what the receiver does not take is
 * counted, not sent again.  Alone it is sent until the receiver takes it: more
 * than once, where an answer was lost.
 */
#include "fleet/store_kind.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "base/text.h"
#include "fleet/http.h"
#include "fleet/otlp.h"
#include "wire/fleet/batch_file.h"

#define PATH "/v1development/profiles"

enum {
	MAX_ANSWER = 64 << 10,
	TIMEOUT_SECONDS = 10,
};

struct otlp_store {
	struct seam_fleet_store base;
	struct seam_fleet_store *store;		/* the first output, or NULL */
	char *url, *ca_file;
	struct seam_otlp_headers headers;
	struct seam_fleet_missed missed;
};

static struct otlp_store *of(struct seam_fleet_store *store)
{
	return (struct otlp_store *)store;
}

/* -- the answer ----------------------------------------------------------- */

/*
 * How many profiles were refused.  Source: profiles_service.proto: field 1 of
 * field 1 of the answer.
 */
static uint64_t n_rejected(struct seam_bytes answer)
{
	struct seam_cursor c = seam_cursor_over(answer, SEAM_LITTLE);

	if (!answer.size || seam_cursor_uleb128(&c) != (1 << 3 | 2))
		return 0;
	seam_cursor_uleb128(&c);	/* the length of field 1 */
	return seam_cursor_uleb128(&c) == 1 << 3 ? seam_cursor_uleb128(&c) : 0;
}

static int judge(const struct seam_http_answer *answer, struct seam_err *err)
{
	struct seam_bytes body = { answer->body.items, answer->body.n };
	bool is_final = answer->status == 400 || answer->status == 413;
	char text[200] = "";
	uint64_t n;

	if (answer->status / 100 == 2) {
		n = n_rejected(body);
		return n ? seam_err_set(err, -EBADMSG, "the receiver refused "
					"%ju of the profiles", (uintmax_t)n) :
		       0;
	}
	if (body.size && seam_text_are_printable(body))
		seam_text_copy(text, sizeof(text), (const char *)body.data,
			       SEAM_TEXT_TERMINAL);
	return seam_err_set(err, is_final ? -EBADMSG : -EAGAIN, "HTTP status "
			    "%ld%s%s", answer->status, *text ? ": " : "", text);
}

/* -- a batch -------------------------------------------------------------- */

static int post(const struct otlp_store *s, struct seam_bytes body,
		struct seam_err *err)
{
	const struct seam_http_request request = {
		.url = s->url, .content_type = "application/x-protobuf",
		.headers = (const char *const *)s->headers.lines,
		.parts = { body }, .ca_file = s->ca_file,
		.max_answer = MAX_ANSWER, .timeout_s = TIMEOUT_SECONDS,
	};
	struct seam_http_answer answer;
	int r = seam_http_post(&request, &answer, err);

	if (r == 0)
		r = judge(&answer, err);
	else if (r != -ENOMEM)
		r = -EAGAIN;
	free(answer.body.items);
	return r;
}

static int send_file(const struct otlp_store *s, struct seam_bytes file,
		     struct seam_err *err)
{
	struct seam_batch batch = { 0 };
	struct seam_proto proto = { 0 };
	char shown[300];
	int r = seam_batch_file_read(&batch, file, err);

	/* calls and losses alone are no profile */
	if (r == 0 && batch.samples.n)
		r = seam_otlp_encode(&proto, &batch, err);
	seam_batch_fini(&batch);
	if (r == 0 && proto.n)
		r = post(s, (struct seam_bytes) { proto.items, proto.n }, err);
	free(proto.items);
	if (r < 0)
		seam_err_add(err, r, "cannot send profiles to '%s'",
			     seam_text_copy(shown, sizeof(shown), s->url,
					    SEAM_TEXT_TERMINAL));
	return r;
}

static int put(struct seam_fleet_store *store, struct seam_bytes file,
	       struct seam_err *err)
{
	struct otlp_store *s = of(store);
	struct seam_err why = { 0 };
	int r;

	if (!s->store)
		return send_file(s, file, err);
	r = seam_fleet_put(s->store, file, err);
	if (r == 0 && send_file(s, file, &why) < 0) {
		s->missed.n_batches++;
		s->missed.why = why;
	}
	return r;
}

static int ask(struct seam_fleet_store *store,
	       const struct seam_fleet_query *query,
	       struct seam_fleet_answer *answer, struct seam_err *err)
{
	struct otlp_store *s = of(store);

	return s->store ? seam_fleet_ask(s->store, query, answer, err) :
	       seam_err_set(err, -ENOTSUP, "profiles that were sent by OTLP "
			    "cannot be read again");
}

static void close_store(struct seam_fleet_store *store)
{
	struct otlp_store *s = of(store);

	seam_fleet_close(s->store);
	seam_otlp_headers_fini(&s->headers);
	free(s->url);
	free(s->ca_file);
	free(s);
}

static const struct seam_fleet_kind kind = { put, ask, close_store };

const struct seam_fleet_missed *
seam_fleet_missed(const struct seam_fleet_store *store)
{
	const struct otlp_store *s = (const struct otlp_store *)store;

	return store->kind == &kind && s->missed.n_batches ? &s->missed : NULL;
}

/* -- open ----------------------------------------------------------------- */

/* The path may be there already. */
static int take_url(struct otlp_store *s, const char *url, struct seam_err *err)
{
	size_t n = strlen(url), n_path = strlen(PATH);
	int r = seam_http_check_url(url, SEAM_OTLP_HEADERS, err);

	if (r < 0)
		return seam_err_add(err, r, "cannot use --otlp");
	while (n && url[n - 1] == '/')
		n--;
	if (n > n_path && !strncmp(url + n - n_path, PATH, n_path))
		n -= n_path;
	return asprintf(&s->url, "%.*s" PATH, (int)n, url) < 0 ?
	       seam_err_no_memory(err) : 0;
}

int seam_fleet_open_otlp(struct seam_fleet_store **store,
			 const struct seam_fleet_place *place,
			 struct seam_err *err)
{
	struct otlp_store *s = calloc(1, sizeof(*s));
	struct seam_fleet_place first = *place;
	int r;

	if (!s)
		return seam_err_no_memory(err);
	s->base.kind = &kind;
	first.otlp = NULL;
	r = take_url(s, place->otlp, err);
	if (r == 0)
		r = seam_otlp_headers_read(&s->headers, err);
	if (r == 0 && place->ca_file && !(s->ca_file = strdup(place->ca_file)))
		r = seam_err_no_memory(err);
	if (r == 0 && place->where)
		r = seam_fleet_open(&s->store, &first, err);
	if (r < 0)
		close_store(&s->base);
	else
		*store = &s->base;
	return r;
}
