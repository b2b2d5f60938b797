/* SPDX-License-Identifier: MIT */
/* clickhouse.c - statements over HTTP, and their errors; see clickhouse.h */
#include "fleet/clickhouse.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define LOOK_AGAIN_NS (60 * SEAM_NS_PER_S)

/* -- names and texts ---------------------------------------------------- */

bool seam_clickhouse_is_name(const char *name)
{
	size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyz"
			     "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	return size && !name[size] && size < SEAM_CLICKHOUSE_NAME;
}

void seam_clickhouse_literal(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('\'', out);
}

const char *seam_clickhouse_suffix(const struct seam_clickhouse *ch)
{
	return *ch->cluster ? "_all" : "";
}

const char *seam_clickhouse_shown(const char *url,
				  char shown[SEAM_CLICKHOUSE_SHOWN])
{
	const char *host = strstr(url, "://");
	size_t scheme = host ? (size_t)(host + 3 - url) : 0;
	const char *at = url + scheme, *user;
	char text[SEAM_CLICKHOUSE_SHOWN];

	while ((user = memchr(at, '@', strcspn(at, "/?"))))
		at = user + 1;
	snprintf(text, sizeof(text), "%.*s%.*s", (int)scheme, url,
		 (int)strcspn(at, "?#"), at);
	return seam_text_copy(shown, SEAM_CLICKHOUSE_SHOWN, text,
			      SEAM_TEXT_TERMINAL);
}

/* -- open --------------------------------------------------------------- */

/* The only parameter that a store's URL has: database=NAME. */
static int take_query(struct seam_clickhouse *ch, const char *query,
		      struct seam_err *err)
{
	static const char key[] = "database=";
	const char *name = query + sizeof(key) - 1;

	if (strncmp(query, key, sizeof(key) - 1) ||
	    !seam_clickhouse_is_name(name) || strchr(name, '-'))
		return seam_err_set(err, -EINVAL, "the URL's query is not "
				    "database=NAME, a name of letters, digits "
				    "and _");
	snprintf(ch->database, sizeof(ch->database), "%s", name);
	return 0;
}

static int take_url(struct seam_clickhouse *ch, const char *url,
		    struct seam_err *err)
{
	const char *query = strchr(url, '?');
	int ret = seam_http_check_url(url, "--credentials FILE", err);

	if (ret)
		return ret;
	ch->url = strndup(url, query ? (size_t)(query - url) : strlen(url));
	if (!ch->url)
		return seam_err_no_memory(err);
	return query ? take_query(ch, query + 1, err) : 0;
}

static void close_store(struct seam_fleet_store *store)
{
	seam_clickhouse_close((struct seam_clickhouse *)store);
}

int seam_clickhouse_open(struct seam_clickhouse **to,
			 const struct seam_fleet_place *place,
			 struct seam_err *err)
{
	static const struct seam_fleet_kind kind = {
		seam_clickhouse_put, seam_clickhouse_ask, close_store,
	};
	struct seam_clickhouse *ch = calloc(1, sizeof(*ch));
	int ret;

	*to = NULL;
	if (!ch)
		return seam_err_no_memory(err);
	ch->store.kind = &kind;
	ch->patience = 1;
	snprintf(ch->database, sizeof(ch->database), "seam");
	ret = take_url(ch, place->where, err);
	if (!ret)
		ret = seam_login_read(&ch->login, place->credentials, err);
	if (!ret && place->ca_file && !(ch->ca_file = strdup(place->ca_file)))
		ret = seam_err_no_memory(err);
	if (ret)
		seam_clickhouse_close(ch);
	else
		*to = ch;
	return ret;
}

void seam_clickhouse_close(struct seam_clickhouse *ch)
{
	if (!ch)
		return;
	explicit_bzero(&ch->login, sizeof(ch->login));
	free(ch->url);
	free(ch->ca_file);
	free(ch);
}

/* -- errors of the server ----------------------------------------------- */

/*
 * What to do about an error, by ClickHouse's code.
 * Source: ClickHouse, src/Common/ErrorCodes.cpp.
 */
static const struct {
	int code, ret;
	const char *fix;
} known_errors[] = {
	{ 60, -ENOENT, "run 'seam fleet init --to URL'" },
	{ 81, -ENOENT, "run 'seam fleet init --to URL'" },
	{ 115, -ENOTSUP, "versions from 18.16 on are known to work" },
	{ 164, -EACCES, "the user may only read: grant INSERT" },
	{ 170, -ENOENT, "the cluster is none of <remote_servers>" },
	{ 192, -EACCES, "name a user by --credentials FILE" },
	{ 193, -EACCES, "correct the password: --credentials FILE" },
	{ 194, -EACCES, "a password is needed: --credentials FILE" },
	{ 195, -EACCES, "the user may not connect from this host" },
	{ 252, -EAGAIN, "the server is behind with its merges" },
	{ 279, -EHOSTUNREACH, "a node of the cluster is down" },
	{ 497, -EACCES, "doc/design/fleet.md has the grants" },
	{ 516, -EACCES, "correct user and password: --credentials FILE" },
};

/* "Code: 60, e.displayText() = DB::Exception: " and "Code: 60. DB::..." */
static const char *parse_error(const char *body, int *code)
{
	static const char name[] = "DB::";
	const char *text;

	*code = 0;
	if (sscanf(body, "Code: %9d", code) != 1)
		return body;
	text = strstr(body, name);
	text = text ? strstr(text, ": ") : NULL;
	return text ? text + 2 : body;
}

static int explain_status(struct seam_clickhouse_reply *reply,
			  struct seam_err *err)
{
	const char *body = reply->body.n ? (const char *)reply->body.items :
			   "no text";
	const char *text = parse_error(body, &reply->code);
	int ret = reply->status >= 500 ? -EIO : -EINVAL;
	const char *end = strstr(text, ", e.what()");
	const char *fix = NULL;
	char cut[280], shown[240];

	snprintf(cut, sizeof(cut), "%.*s", end ? (int)(end - text) : 279, text);
	cut[strcspn(cut, "\r\n")] = 0;
	seam_text_copy(shown, sizeof(shown), cut, SEAM_TEXT_TERMINAL);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(known_errors); i++)
		if (reply->code && known_errors[i].code == reply->code) {
			ret = known_errors[i].ret;
			fix = known_errors[i].fix;
		}
	if (!reply->code)
		return seam_err_set(err, ret, "HTTP status %ld: %s",
				    reply->status, shown);
	return seam_err_set(err, ret, "HTTP status %ld, ClickHouse's code %d: "
			    "%s%s%s%s", reply->status, reply->code, shown,
			    fix ? " (" : "", fix ? fix : "", fix ? ")" : "");
}

/* -- a statement -------------------------------------------------------- */

enum { BOUNDARY_BYTES = 16 };

/*
 * What is around the bytes of a table "d" in a body of multipart/form-data.
 * The boundary is random: names in the data cannot have it.
 */
struct multipart {
	char begin[200], end[60], type[100];
};

static int make_form(struct multipart *form, struct seam_err *err)
{
	uint8_t bytes[BOUNDARY_BYTES];
	char boundary[2 * BOUNDARY_BYTES + 1];

	if (getentropy(bytes, sizeof(bytes)))
		return seam_err_errno(err, "cannot get random bytes");
	seam_text_hex(boundary, bytes, sizeof(bytes));
	snprintf(form->begin, sizeof(form->begin),
		 "--%s\r\nContent-Disposition: form-data; name=\"d\"; "
		 "filename=\"d\"\r\nContent-Type: application/octet-stream"
		 "\r\n\r\n", boundary);
	snprintf(form->end, sizeof(form->end), "\r\n--%s--\r\n", boundary);
	snprintf(form->type, sizeof(form->type),
		 "multipart/form-data; boundary=%s", boundary);
	return 0;
}

static struct seam_bytes bytes_of(const char *text)
{
	return (struct seam_bytes) { (const uint8_t *)text, strlen(text) };
}

static bool put_escaped(FILE *out, const char *text)
{
	char *escaped = malloc(3 * strlen(text) + 1);

	if (!escaped)
		return false;
	seam_http_escape(escaped, text);
	fputs(escaped, out);
	free(escaped);
	return true;
}

/* The URL of @call; NULL when memory ran out. */
static char *make_url(const struct seam_clickhouse *ch,
		      const struct seam_clickhouse_call *call)
{
	char *url = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&url, &size);
	bool ok = out != NULL;

	if (!out)
		return NULL;
	/* The status says whether all went well: after all was done. */
	fprintf(out, "%s%s?wait_end_of_query=1%s", ch->url,
		strchr(strstr(ch->url, "://") + 3, '/') ? "" : "/",
		call->settings ? call->settings : "");
	if (call->query_id)
		fprintf(out, "&query_id=%s", call->query_id);
	if (call->data) {
		fputs("&d_format=Native&d_structure=", out);
		ok &= put_escaped(out, call->structure);
		fputs("&query=", out);
		ok &= put_escaped(out, call->sql);
	}
	if (fclose(out) || !ok) {
		free(url);
		return NULL;
	}
	return url;
}

static int post(struct seam_clickhouse *ch,
		const struct seam_clickhouse_call *call,
		struct seam_http_request *request,
		struct seam_clickhouse_reply *reply, struct seam_err *err)
{
	char user[SEAM_LOGIN_MAX + 32], key[SEAM_LOGIN_MAX + 32];
	const char *headers[] = { user, key, NULL };
	struct seam_http_answer answer;
	int ret;

	snprintf(user, sizeof(user), "X-ClickHouse-User: %s", ch->login.user);
	snprintf(key, sizeof(key), "X-ClickHouse-Key: %s", ch->login.password);
	request->headers = *ch->login.user ? headers : NULL;
	request->ca_file = ch->ca_file;
	request->max_answer = call->max_answer ? call->max_answer : 1 << 20;
	request->timeout_s = call->timeout_s ? call->timeout_s : 60;
	ret = seam_http_post(request, &answer, err);
	explicit_bzero(key, sizeof(key));
	reply->body.items = answer.body.items;
	reply->body.n = answer.body.n;
	reply->status = answer.status;
	reply->is_sent = answer.is_sent;
	return ret ? ret : answer.status == 200 ? 0 :
	       explain_status(reply, err);
}

int seam_clickhouse_run(struct seam_clickhouse *ch,
			const struct seam_clickhouse_call *call,
			struct seam_clickhouse_reply *reply,
			struct seam_err *err)
{
	struct seam_http_request request = {
		.parts = { bytes_of(call->sql) },
	};
	struct multipart form;
	char *url;
	int ret;

	*reply = (struct seam_clickhouse_reply) { 0 };
	if (call->data) {
		ret = make_form(&form, err);
		if (ret)
			return ret;
		request.content_type = form.type;
		request.parts[0] = bytes_of(form.begin);
		request.parts[1] = *call->data;
		request.parts[2] = bytes_of(form.end);
	}
	url = make_url(ch, call);
	if (!url)
		return seam_err_no_memory(err);
	request.url = url;
	ret = post(ch, call, &request, reply, err);
	free(url);
	return ret;
}

/* -- the server --------------------------------------------------------- */

static int parse_server(struct seam_clickhouse *ch, const char *text,
			struct seam_err *err)
{
	unsigned long long now;

	if (sscanf(text, "%u.%*[^\t]\t%llu", &ch->major, &now) != 2)
		return seam_err_set(err, -EBADMSG, "the answer is not of "
				    "ClickHouse");
	ch->now = now;
	ch->looked_ns = seam_clock_ns();
	return 0;
}

uint64_t seam_clickhouse_now(const struct seam_clickhouse *ch)
{
	return ch->now + (seam_clock_ns() - ch->looked_ns) / SEAM_NS_PER_S;
}

static int look_at_server(struct seam_clickhouse *ch, struct seam_err *err)
{
	struct seam_clickhouse_call call = {
		.sql = "SELECT version(), toUnixTimestamp(now())",
		.timeout_s = 20,
	};
	struct seam_clickhouse_reply reply;
	int ret = seam_clickhouse_run(ch, &call, &reply, err);

	if (!ret)
		ret = parse_server(ch, reply.body.n ?
				   (const char *)reply.body.items : "", err);
	free(reply.body.items);
	return ret;
}

static int parse_schema(struct seam_clickhouse *ch, const char *text,
			struct seam_err *err)
{
	char cluster[SEAM_CLICKHOUSE_NAME] = "";
	unsigned int version;

	if (sscanf(text, "%u\t%63[^\t\n]", &version, cluster) < 1 ||
	    (*cluster && !seam_clickhouse_is_name(cluster)))
		return seam_err_set(err, -EBADMSG, "the table 'meta' of the "
				    "database '%s' is not Seam's",
				    ch->database);
	ch->schema = version;
	memcpy(ch->cluster, cluster, sizeof(cluster));
	return 0;
}

int seam_clickhouse_look(struct seam_clickhouse *ch, struct seam_err *err)
{
	struct seam_clickhouse_reply reply = { 0 };
	char sql[200];
	struct seam_clickhouse_call call = { .sql = sql, .timeout_s = 20 };
	int ret = look_at_server(ch, err);

	ch->schema = 0;
	*ch->cluster = 0;
	if (ret)
		return ret;
	snprintf(sql, sizeof(sql), "SELECT version, cluster FROM %s.meta "
		 "ORDER BY version DESC, cluster DESC LIMIT 1", ch->database);
	ret = seam_clickhouse_run(ch, &call, &reply, err);
	if (reply.code == 60 || reply.code == 81)
		ret = 0;
	else if (!ret && reply.body.n)
		ret = parse_schema(ch, (const char *)reply.body.items, err);
	free(reply.body.items);
	return ret;
}

void seam_clickhouse_forget(struct seam_clickhouse *ch)
{
	ch->schema = 0;
	ch->shard.is_known = false;
}

int seam_clickhouse_ready(struct seam_clickhouse *ch, struct seam_err *err)
{
	int ret;

	if (ch->schema == SEAM_CLICKHOUSE_SCHEMA &&
	    seam_clock_ns() - ch->looked_ns < LOOK_AGAIN_NS)
		return 0;
	seam_clickhouse_forget(ch);
	ret = seam_clickhouse_look(ch, err);
	if (ret)
		return ret;
	if (!ch->schema)
		return seam_err_set(err, -ENOENT, "the database '%s' has no "
				    "tables of Seam's (run 'seam fleet init "
				    "--to URL')", ch->database);
	if (ch->schema == SEAM_CLICKHOUSE_SCHEMA)
		return 0;
	if (ch->schema > SEAM_CLICKHOUSE_SCHEMA)
		return seam_err_set(err, -ENOTSUP, "the database '%s' has "
				    "version %u of the tables, which a newer "
				    "Seam made; this one knows version %d "
				    "(install the newer one here)",
				    ch->database, ch->schema,
				    SEAM_CLICKHOUSE_SCHEMA);
	return seam_err_set(err, -ENOTSUP, "the database '%s' has version %u "
			    "of the tables, older than %d (run 'seam fleet "
			    "init --to URL')", ch->database, ch->schema,
			    SEAM_CLICKHOUSE_SCHEMA);
}
