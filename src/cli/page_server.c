/* SPDX-License-Identifier: MIT */
/* page_server.c - libmicrohttpd, one page, one token; see page_server.h */
#include "cli/page_server.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

/* It brings libgnutls: 3 MB that no other command needs. */
#define LIBRARY "libmicrohttpd.so.12"

enum {
	TOKEN_BYTES = 16,
	IDLE_SECONDS = 10,
	MAX_CONNECTIONS = 32,
	PATH_BYTES = 300,
};

#define CALLS(ROW)							\
	ROW(MHD_start_daemon) ROW(MHD_stop_daemon)			\
	ROW(MHD_get_daemon_info) ROW(MHD_lookup_connection_value)	\
	ROW(MHD_create_response_from_fd64)				\
	ROW(MHD_create_response_from_buffer)				\
	ROW(MHD_add_response_header) ROW(MHD_queue_response)		\
	ROW(MHD_destroy_response)

/* The functions of the library that are called. */
#define MEMBER(name) __typeof__(name) *name;
static struct { CALLS(MEMBER) } http;

struct page_server {
	int fd;
	uint64_t size;
	uint16_t port;
	char path[2 * TOKEN_BYTES + 3];	/* "/TOKEN/" */
};

static int load_library(struct seam_err *err)
{
	void *library = dlopen(LIBRARY, RTLD_NOW);

	if (!library)
		return seam_err_set(err, -ENOENT, "%s is not installed (Debian:"
				    " apt install libmicrohttpd12); -o FILE "
				    "writes the page instead", LIBRARY);
#define LOAD(name)							\
	http.name = (__typeof__(name) *)dlsym(library, #name);		\
	if (!http.name)							\
		return seam_err_set(err, -ENOENT, LIBRARY " has no " #name);
	CALLS(LOAD)
	return 0;
}

/* -- requests ------------------------------------------------------------- */

/* In a time that depends on the lengths only. */
static bool is_equal(const char *a, const char *b)
{
	size_t n = strlen(a);
	unsigned char differs = 0;

	if (strlen(b) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)(a[i] ^ b[i]);
	return !differs;
}

static bool is_own_host(const struct page_server *server, const char *host)
{
	static const char *const names[] = { "127.0.0.1", "localhost" };
	char text[64];

	for (size_t i = 0; host && i < SEAM_ARRAY_SIZE(names); i++) {
		snprintf(text, sizeof(text), "%s:%u", names[i], server->port);
		if (strcmp(host, text) == 0)
			return true;
	}
	return false;
}

static unsigned int judge(const struct page_server *server,
			  struct MHD_Connection *connection, const char *url,
			  const char *method)
{
	if (!is_own_host(server, http.MHD_lookup_connection_value(
			connection, MHD_HEADER_KIND, "Host")))
		return MHD_HTTP_MISDIRECTED_REQUEST;
	if (!is_equal(server->path, url))
		return MHD_HTTP_NOT_FOUND;
	return strcmp(method, MHD_HTTP_METHOD_GET) == 0 ? MHD_HTTP_OK :
	       MHD_HTTP_METHOD_NOT_ALLOWED;
}

static struct MHD_Response *respond(const struct page_server *server,
				    unsigned int status)
{
	static char refusal[] = "refused\n";
	int fd;

	if (status != MHD_HTTP_OK)
		return http.MHD_create_response_from_buffer(
			strlen(refusal), refusal, MHD_RESPMEM_PERSISTENT);
	/* the response closes it */
	fd = fcntl(server->fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? NULL :
	       http.MHD_create_response_from_fd64(server->size, fd);
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection,
			      const char *url, const char *method,
			      const char *version, const char *upload,
			      size_t *upload_size, void **state)
{
	/* the rest of the policy is in the page, which has the hashes */
	static const char *const headers[][2] = {
		{ "Cache-Control", "no-store" },
		{ "X-Content-Type-Options", "nosniff" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "Cross-Origin-Opener-Policy", "same-origin" },
		{ "Content-Security-Policy", "frame-ancestors 'none'" },
	};
	const struct page_server *server = context;
	unsigned int status = judge(server, connection, url, method);
	struct MHD_Response *response = respond(server, status);
	enum MHD_Result r;

	(void)version;
	(void)upload;
	(void)upload_size;
	(void)state;
	if (!response)
		return MHD_NO;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(headers); i++)
		http.MHD_add_response_header(response, headers[i][0],
					     headers[i][1]);
	http.MHD_add_response_header(response, "Content-Type",
			status == MHD_HTTP_OK ? "text/html; charset=utf-8" :
			"text/plain");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		http.MHD_add_response_header(response, "Allow", "GET");
	r = http.MHD_queue_response(connection, status, response);
	http.MHD_destroy_response(response);
	return r;
}

/* -- the browser ---------------------------------------------------------- */

/*
 * The command line of a browser is readable by other users, so it gets the name
 * of a file that only this user can read, which leads to the page.
 */
static int write_link(const char *url, char path[PATH_BYTES])
{
	const char *folder = getenv("XDG_RUNTIME_DIR");
	FILE *file;
	int fd;

	if (!folder || !*folder)
		folder = getenv("TMPDIR");
	snprintf(path, PATH_BYTES, "%.250s/seam-view-XXXXXX.html",
		 folder && *folder ? folder : "/tmp");
	fd = mkostemps(path, (int)strlen(".html"), O_CLOEXEC);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file) {
		if (fd >= 0)
			close(fd);
		*path = '\0';
		return -EACCES;
	}
	fprintf(file, "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n"
		"<title>Seam</title>\n<a href=\"%s\">the recording</a>\n",
		url, url);
	return fclose(file) ? -EIO : 0;
}

static void start_browser(const char *path)
{
	const char *browser = getenv("BROWSER");
	int null;

	if (!browser || !*browser)
		browser = "xdg-open";
	/* a grandchild, for which nobody has to wait */
	if (fork())
		_exit(0);
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(null, fd);
	setsid();
	execlp(browser, browser, path, (char *)NULL);
	_exit(127);
}

static void open_browser(const char *url, char path[PATH_BYTES])
{
	static const char *const displays[] = {
		"BROWSER", "DISPLAY", "WAYLAND_DISPLAY",
	};
	bool has_display = false;
	sigset_t none;
	pid_t child;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(displays); i++)
		has_display |= getenv(displays[i]) && *getenv(displays[i]);
	if (!has_display || write_link(url, path))
		return;
	child = fork();
	if (child == 0) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		start_browser(path);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}

/* -- the server ----------------------------------------------------------- */

static int make_path(struct page_server *server, struct seam_err *err)
{
	char text[2 * TOKEN_BYTES + 1];
	uint8_t token[TOKEN_BYTES];

	if (getrandom(token, sizeof(token), 0) != sizeof(token))
		return seam_err_set(err, -EIO, "no random numbers");
	snprintf(server->path, sizeof(server->path), "/%s/",
		 seam_text_hex(text, token, sizeof(token)));
	return 0;
}

static struct MHD_Daemon *start(struct page_server *server)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct MHD_Daemon *daemon = http.MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL, NULL,
		answer, server, MHD_OPTION_SOCK_ADDR, &at,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)IDLE_SECONDS,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)MAX_CONNECTIONS,
		MHD_OPTION_END);
	const union MHD_DaemonInfo *info = !daemon ? NULL :
		http.MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);

	server->port = info ? info->port : 0;
	return daemon;
}

static int serve(struct page_server *server, bool opens, const sigset_t *ends,
		 struct seam_err *err)
{
	struct MHD_Daemon *daemon = start(server);
	char url[100], link[PATH_BYTES] = "";
	int signal;

	if (!daemon)
		return seam_err_set(err, errno ? -errno : -EIO, "cannot listen "
				    "on 127.0.0.1: %s", strerror(errno));
	snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", server->port,
		 server->path);
	printf("%s\n", url);
	fflush(stdout);
	if (opens)
		open_browser(url, link);
	sigwait(ends, &signal);
	http.MHD_stop_daemon(daemon);
	if (*link)
		unlink(link);
	return 0;
}

int seam_page_serve(int fd, uint64_t size, bool opens, struct seam_err *err)
{
	struct page_server server = { .fd = fd, .size = size };
	sigset_t ends, before;
	int r = load_library(err);

	if (!r)
		r = make_path(&server, err);
	if (r)
		return r;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	/* the server's thread inherits the mask */
	sigprocmask(SIG_BLOCK, &ends, &before);
	r = serve(&server, opens, &ends, err);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}
