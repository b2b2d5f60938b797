/* SPDX-License-Identifier: MIT */
/* link_server.c - listen, make rings, answer HELLO; see link_server.h */
#include "ring/link/link_server.h"

#include "base/clock.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX_EVENTS = 64,
	MAX_WAKEUPS = 1024,		/* read at once from one target */
	/* Making its rings takes longer, so it is one program in a step. */
	MAX_ANSWERING_NS = 5 * 1000 * 1000,
	MAKING_NS = 2 * 1000 * 1000,	/* in one step, beyond one ring each */
	MIN_LEFT_S = 2,		/* from bind() to listen() */
};

/* ---- the socket in the file system ---- */

/* Our folder below @parent, made now or before, with no access for others. */
static bool make_folder(char *path, size_t room, const char *parent)
{
	struct stat st;
	int n = snprintf(path, room, "%s/seam-%u", parent, (unsigned)geteuid());

	if (n < 0 || (size_t)n >= room)
		return false;
	if (mkdir(path, 0700) && errno != EEXIST)
		return false;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

/* Whether nobody listens there, as after a recorder that was killed. */
static bool is_left(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	struct sockaddr_un at;
	int size = seam_link_sockaddr(path, &at);
	bool is_refused = fd >= 0 && size > 0 &&
			  connect(fd, (struct sockaddr *)&at,
				  (socklen_t)size) < 0 && errno == ECONNREFUSED;

	seam_file_close_fd(fd);
	return is_refused;
}

/* Remove the sockets of killed recorders; a new one may not listen yet. */
static void remove_left(const char *folder)
{
	time_t now = time(NULL);
	DIR *all = opendir(folder);
	struct dirent *e;

	while (all && (e = readdir(all))) {
		char path[SEAM_LINK_ADDRESS_BYTES + 1 + NAME_MAX];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
		    now - st.st_ctime > MIN_LEFT_S && is_left(path))
			unlink(path);
	}
	if (all)
		closedir(all);
}

/*
 * A path that cannot be guessed or shadowed, in the user's run-time folder or
 * in /tmp; an abstract name where neither can be had.
 */
static void choose_address(char *address, size_t room)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	char folder[SEAM_LINK_ADDRESS_BYTES];
	uint64_t random = 0;
	int n = -1;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = seam_clock_ns();
	if ((run && run[0] == '/' &&
	     make_folder(folder, sizeof(folder), run)) ||
	    make_folder(folder, sizeof(folder), "/tmp")) {
		remove_left(folder);
		n = snprintf(address, room, "%s/%d-%016jx", folder, getpid(),
			     (uintmax_t)random);
	}
	if (n < 0 || (size_t)n >= room)
		snprintf(address, room, "@seam-%d-%016jx", getpid(),
			 (uintmax_t)random);
}

/* ---- open and close ---- */

static int watch(int epoll_fd, int fd, void *target)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = target };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static int listen_at(struct seam_link_server *s)
{
	struct sockaddr_un at;
	int size = seam_link_sockaddr(s->address, &at);

	if (size < 0)
		return size;
	if (bind(s->socket, (struct sockaddr *)&at, (socklen_t)size) ||
	    listen(s->socket, 64))
		return -errno;
	return 0;
}

/*
 * No message to us carries a descriptor, and closing one can take as long as
 * its sender likes (SO_LINGER).  Kernels before 6.16 cannot refuse them.
 * Source: SO_PASSRIGHTS, asm-generic/socket.h of Linux 6.16.
 */
static void refuse_descriptors(int socket)
{
	enum { PASSRIGHTS = 83 };
	const int no = 0;

	setsockopt(socket, SOL_SOCKET, PASSRIGHTS, &no, sizeof(no));
}

/* A descriptor to give up when there are no more. */
static void open_spare(struct seam_link_server *s)
{
	s->spare_fd = fcntl(s->socket, F_DUPFD_CLOEXEC, 0);
}

/* Each failure returns its own errno: a later call may succeed. */
static int make_descriptors(struct seam_link_server *s)
{
	s->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
			   SOCK_NONBLOCK, 0);
	if (s->socket < 0)
		return -errno;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	s->wakeup_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->wakeup_fd < 0)
		return -errno;
	open_spare(s);
	return watch(s->epoll_fd, s->wakeup_fd, s);
}

int seam_link_server_open(struct seam_link_server *s,
			  const struct seam_link_service *services, size_t n,
			  struct seam_err *err)
{
	int r;

	*s = (struct seam_link_server) {
		.socket = -1, .epoll_fd = -1, .wakeup_fd = -1, .spare_fd = -1,
		.n_services = (uint32_t)n, .max_bytes = UINT64_MAX,
	};
	memcpy(s->services, services, n * sizeof(*services));
	for (size_t i = 0; i < n; i++)
		if (!seam_ring_geometry_is_valid(&services[i].geometry))
			return seam_err_set(err, -EINVAL,
					    "invalid sizes of rings");
	s->targets = calloc(SEAM_LINK_MAX_TARGETS, sizeof(*s->targets));
	if (!s->targets)
		return seam_err_no_memory(err);
	r = make_descriptors(s);
	if (r < 0)
		return seam_err_set(err, r,
				    "cannot make a socket for programs: %s",
				    strerror(-r));
	choose_address(s->address, sizeof(s->address));
	/* Also of connections that are still in the accept queue. */
	refuse_descriptors(s->socket);
	r = listen_at(s);
	if (r < 0)
		return seam_err_set(err, r, "cannot listen at '%s': %s",
				    s->address, strerror(-r));
	r = watch(s->epoll_fd, s->socket, NULL);
	if (r < 0)
		return seam_err_set(err, r, "cannot watch for programs: %s",
				    strerror(-r));
	return 0;
}

static void disconnect(struct seam_link_server *s,
		       struct seam_link_target *target)
{
	if (target->socket < 0)
		return;
	/* Closing is not enough: a child of ours may hold the socket too. */
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, target->socket, NULL);
	close(target->socket);
	target->socket = -1;
}

static void free_target(struct seam_link_server *s,
			struct seam_link_target *target)
{
	disconnect(s, target);
	for (uint32_t i = 0; i < SEAM_LINK_MAX_SERVICES; i++)
		seam_owners_close(&target->rings[i].owners);
	if (target->wakeup_fd >= 0) {
		epoll_ctl(s->wakeup_fd, EPOLL_CTL_DEL, target->wakeup_fd, NULL);
		close(target->wakeup_fd);
	}
	free(target);
}

void seam_link_server_forget(struct seam_link_server *s, size_t i)
{
	free_target(s, s->targets[i]);
	s->n_targets--;
	memmove(s->targets + i, s->targets + i + 1,
		(s->n_targets - i) * sizeof(s->targets[0]));
}

void seam_link_server_close(struct seam_link_server *s)
{
	if (!s->targets)
		return;
	while (s->n_targets > 0)
		seam_link_server_forget(s, s->n_targets - 1);
	free(s->targets);
	seam_file_close_fd(s->socket);
	seam_file_close_fd(s->epoll_fd);
	seam_file_close_fd(s->wakeup_fd);
	seam_file_close_fd(s->spare_fd);
	if (s->address[0] == '/')
		unlink(s->address);
	*s = (struct seam_link_server) { 0 };
}

/*
 * ---- rings ----
 *
 * Making a ring takes a millisecond, for its pages: 16 of 4 MiB take longer
 * than most programs of a build run.  So a step makes one for each target that
 * has none free, and of the others as many as a few milliseconds allow: rings
 * of programs and children that have ended meanwhile are free before more are
 * made, and a program that connects does not wait for those of others.
 */

static uint64_t bytes_of(const struct seam_link_rings *rings)
{
	return rings->owners.n_present * rings->owners.memory.ring_bytes;
}

static uint64_t bytes_of_all(const struct seam_link_server *s)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < s->n_targets; i++)
		for (uint32_t k = 0; k < s->targets[i]->n_rings; k++)
			bytes += bytes_of(&s->targets[i]->rings[k]);
	return bytes;
}

static bool has_plenty(const struct seam_link_server *s, uint64_t bytes)
{
	return bytes < s->max_bytes / 4;
}

/* How many rings of @service to keep free, where all rings have @bytes. */
static uint32_t n_to_keep_free(const struct seam_link_server *s,
			       uint32_t service, uint64_t bytes)
{
	uint32_t n_free = s->services[service].n_free;

	if (has_plenty(s, bytes))
		return n_free;
	if (bytes < s->max_bytes / 2 && n_free >= 4)
		return n_free / 4;
	return bytes < s->max_bytes ? 1 : 0;
}

/* Make rings of @service for @target, as its next.  -EDQUOT: at max_bytes. */
static int make_rings(const struct seam_link_server *s,
		      struct seam_link_target *target, uint32_t service)
{
	const struct seam_link_service *of = &s->services[service];
	struct seam_link_rings *rings = &target->rings[target->n_rings];
	uint32_t n = n_to_keep_free(s, service, bytes_of_all(s));
	int r;

	/* No system call here returns that: it is our own limit. */
	if (!n)
		return -EDQUOT;
	r = seam_owners_open(&rings->owners, &of->geometry, NULL);
	if (r < 0)
		return r;
	rings->service = service;
	target->n_rings++;
	/* the program waits for these */
	return seam_owners_prepare(&rings->owners, of->n_first && of->n_first <
				   n ? of->n_first : n, NULL);
}

/* Threads that begin faster than rings are made: keep more for the next. */
static void note_unclaimed(const struct seam_link_server *s,
			   struct seam_link_rings *rings)
{
	uint32_t n_free = s->services[rings->service].n_free;
	/* relaxed: a count, and the program's */
	uint64_t n = atomic_load_explicit(
			&rings->owners.memory.head->n_unclaimed,
			memory_order_relaxed);

	if (n == rings->n_unclaimed)
		return;
	rings->n_unclaimed = n;
	if (rings->n_more < 3 * n_free)
		rings->n_more += n_free;
}

/*
 * Make rings until @n are free, one at least, and no other after @until_ns; add
 * their bytes to @bytes.  False: there was no time for all.  Where there is no
 * memory, threads without a ring are counted.
 */
static bool make_free(struct seam_link_rings *rings, uint32_t n,
		      uint64_t until_ns, uint64_t *bytes)
{
	struct seam_owners *o = &rings->owners;

	for (uint32_t k = seam_owners_n_free(o); k < n; k++) {
		uint32_t n_present = o->n_present;

		if (seam_owners_prepare(o, k + 1, NULL) < 0 ||
		    o->n_present == n_present)
			break;
		*bytes += o->memory.ring_bytes;
		if (seam_clock_ns() >= until_ns)
			return k + 1 == n;
	}
	return true;
}

/* Make what @target should have free; false: there was no time for all. */
static bool fill(const struct seam_link_server *s,
		 struct seam_link_target *target, uint64_t until_ns,
		 uint64_t *bytes)
{
	for (uint32_t k = 0; k < target->n_rings; k++) {
		struct seam_link_rings *rings = &target->rings[k];
		uint32_t n = n_to_keep_free(s, rings->service, *bytes);

		if (has_plenty(s, *bytes))
			n += rings->n_more;
		if (!make_free(rings, n, until_ns, bytes))
			return false;
	}
	return true;
}

/* Find claims, and make rings.  False: more are to be made, in a next step. */
static bool keep_free(const struct seam_link_server *s)
{
	uint64_t bytes = bytes_of_all(s), until_ns;
	bool is_done = true;

	for (size_t i = 0; i < s->n_targets; i++)
		for (uint32_t k = 0; k < s->targets[i]->n_rings; k++) {
			struct seam_link_rings *rings =
				&s->targets[i]->rings[k];

			seam_owners_scan(&rings->owners);
			note_unclaimed(s, rings);
			make_free(rings, bytes < s->max_bytes, UINT64_MAX,
				  &bytes);
		}
	until_ns = seam_clock_ns() + MAKING_NS;
	for (size_t i = 0; is_done && i < s->n_targets; i++)
		is_done = s->targets[i]->is_over ||
			  fill(s, s->targets[i], until_ns, &bytes);
	return is_done;
}

/* ---- connections ---- */

static void refuse(struct seam_link_server *s, int socket, const char *reason)
{
	enum { MAX_DISCARDED = 4 };
	struct seam_link_refused refused = { 0 };
	char c;

	s->n_refused++;
	snprintf(refused.reason, sizeof(refused.reason), "%s", reason);
	/* closing with a HELLO unread would discard the answer */
	for (int i = 0; i < MAX_DISCARDED; i++)
		if (recv(socket, &c, sizeof(c), MSG_DONTWAIT) <= 0)
			break;
	seam_link_send(socket, SEAM_LINK_REFUSED, &refused, NULL, 0, 0);
}

/* Refuse for an error of the recorder; the first is kept for its user. */
static void fail(struct seam_link_server *s, int socket, const char *what,
		 int error)
{
	char why[SEAM_LINK_MAX_BYTES / 2];

	snprintf(why, sizeof(why), "%s: %s", what, strerror(-error));
	if (s->n_failed++ == 0)
		seam_err_set(&s->why, error, "%s", why);
	if (socket >= 0)
		refuse(s, socket, why);
	else
		s->n_refused++;
}

static int make_target(int socket, struct seam_link_target **made)
{
	struct seam_link_target *target = calloc(1, sizeof(*target));
	int r;

	if (!target)
		return -ENOMEM;
	target->socket = socket;
	target->wakeup_fd = -1;
	for (int i = 0; i < SEAM_LINK_MAX_SERVICES; i++)
		target->rings[i].owners.fd = -1;
	target->connected_ns = seam_clock_ns();
	r = seam_link_peer(socket, &target->pid, &target->uid);
	if (r < 0) {
		free(target);
		return r;
	}
	*made = target;
	return 0;
}

/*
 * All descriptors are in use.  A connection that stays in the queue would keep
 * the socket readable for ever: accept it with the spare one, and close it.
 */
static bool refuse_with_spare(struct seam_link_server *s, int error)
{
	int socket;

	if (s->spare_fd < 0)
		return false;
	close(s->spare_fd);
	socket = accept4(s->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (socket >= 0) {
		fail(s, socket, "cannot accept a connection", error);
		close(socket);
	}
	open_spare(s);
	return socket >= 0;
}

/* Accept one connection.  False when there is none. */
static bool accept_target(struct seam_link_server *s)
{
	int socket = accept4(s->socket, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct seam_link_target *target = NULL;
	int r;

	if (socket < 0)
		return (errno == EMFILE || errno == ENFILE) &&
		       refuse_with_spare(s, -errno);
	refuse_descriptors(socket);
	if (s->n_targets == SEAM_LINK_MAX_TARGETS) {
		refuse(s, socket, "too many programs");
		close(socket);
		return true;
	}
	r = make_target(socket, &target);
	if (r == 0 && geteuid() != 0 && target->uid != 0 &&
	    target->uid != geteuid()) {
		refuse(s, socket, "another user's recorder");
		free_target(s, target);
		return true;
	}
	if (r == 0)
		r = watch(s->epoll_fd, socket, target);
	if (r == 0) {
		s->targets[s->n_targets++] = target;
		return true;
	}
	fail(s, socket, "cannot take a connection", r);
	if (target)
		free_target(s, target);
	else
		close(socket);
	return true;
}

/*
 * A socket pair for the wakeups of @target.  Returns the end to pass on: the
 * program may change its flags and fill its queue, which must not block us or
 * another target.  Not SOCK_SEQPACKET: when the program ends, our end would be
 * readable for ever.
 */
static int make_wakeup(struct seam_link_server *s,
		       struct seam_link_target *target)
{
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		       ends))
		return -errno;
	refuse_descriptors(ends[0]);
	target->wakeup_fd = ends[0];
	r = watch(s->wakeup_fd, ends[0], target);
	if (r == 0)
		return ends[1];
	close(ends[1]);
	return r;
}

static int send_welcome(const struct seam_link_server *s,
			const struct seam_link_target *target, uint32_t i,
			uint32_t index, int wakeup_fd)
{
	const struct seam_link_rings *rings = &target->rings[i];
	struct seam_link_welcome welcome = {
		.service = index, .n_more = target->n_rings - i - 1,
		.geometry = s->services[rings->service].geometry,
		.pid = (uint32_t)target->pid,
		.parameter = s->services[rings->service].parameter,
	};
	const int fds[] = { rings->owners.fd, wakeup_fd };

	return seam_link_send(target->socket, SEAM_LINK_WELCOME, &welcome, fds,
			      2, 0);
}

/* The service whose name is the first of @names; n_services: there is none. */
static uint32_t find_service(const struct seam_link_server *s,
			     const char *names)
{
	size_t n = strcspn(names, " ");
	uint32_t i;

	for (i = 0; i < s->n_services; i++)
		if (strlen(s->services[i].name) == n &&
		    memcmp(s->services[i].name, names, n) == 0)
			break;
	return i;
}

/*
 * Make rings for each of @names that is a service of ours; @indices: which of
 * the names the rings are for.  0 or -errno.
 */
static int make_all_rings(struct seam_link_server *s,
			  struct seam_link_target *target, const char *names,
			  uint32_t *indices)
{
	bool is_made[SEAM_LINK_MAX_SERVICES] = { false };
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < SEAM_LINK_MAX_SERVICES && *names;
	     i++) {
		uint32_t service = find_service(s, names);

		if (service < s->n_services && !is_made[service]) {
			is_made[service] = true;
			indices[target->n_rings] = i;
			r = make_rings(s, target, service);
		}
		names += strcspn(names, " ");
		names += *names == ' ';
	}
	return r;
}

static void answer_hello(struct seam_link_server *s,
			 struct seam_link_target *target,
			 const struct seam_link_message *m)
{
	uint32_t indices[SEAM_LINK_MAX_SERVICES];
	int wakeup = -1, r;

	if (m->head.version != SEAM_LINK_VERSION) {
		refuse(s, target->socket, "another version of the library");
		return;
	}
	r = make_all_rings(s, target, m->hello.services, indices);
	if (r == 0 && target->n_rings)
		r = wakeup = make_wakeup(s, target);
	if (r == -EDQUOT)
		refuse(s, target->socket, "the rings of other programs have "
		       "all the memory that rings may have");
	else if (r < 0)
		fail(s, target->socket, "cannot make rings", r);
	else if (!target->n_rings)
		refuse(s, target->socket, SEAM_LINK_NO_SERVICE);
	if (wakeup < 0) {
		target->n_rings = 0;
		return;
	}
	r = 0;
	target->rings_ns = seam_clock_ns();
	for (uint32_t i = 0; r == 0 && i < target->n_rings; i++)
		r = send_welcome(s, target, i, indices[i], wakeup);
	close(wakeup);
	/* it has its own limit for the time that it waits */
	if (r < 0)
		fail(s, -1, "a program gave up waiting", r);
}

/* Read the one message of a connection, and close it. */
static void read_message(struct seam_link_server *s,
			 struct seam_link_target *target)
{
	struct seam_link_message m;
	int r = seam_link_receive(target->socket, &m, 0);

	if (r == -EAGAIN || r == -EINTR)
		return;
	if (r > 0 && m.head.kind == SEAM_LINK_HELLO) {
		answer_hello(s, target, &m);
	} else if (r > 0 && m.head.kind == SEAM_LINK_NOTE &&
		   m.head.version == SEAM_LINK_VERSION) {
		s->n_notes++;
		memcpy(s->note, m.note.text, sizeof(s->note));
	}
	if (r > 0)
		seam_link_drop_fds(&m);
	s->n_refused += r < 0;
	disconnect(s, target);
}

/* Targets that are disconnected or too late, and have no rings. */
static void forget_without_hello(struct seam_link_server *s)
{
	uint64_t now = seam_clock_ns();

	for (size_t i = s->n_targets; i-- > 0;) {
		struct seam_link_target *target = s->targets[i];
		bool is_late = now - target->connected_ns >
			       SEAM_LINK_HELLO_MS * SEAM_NS_PER_MS;

		if (target->n_rings || (target->socket >= 0 && !is_late))
			continue;
		s->n_refused += is_late;
		seam_link_server_forget(s, i);
	}
}

/*
 * Drain the wakeups: as many as a queue can hold and no more, because a
 * program may send them without end.  The rest keeps the socket readable.
 */
static void drain_wakeups(struct seam_link_server *s)
{
	struct epoll_event events[MAX_EVENTS];
	int n = epoll_wait(s->wakeup_fd, events, MAX_EVENTS, 0);
	char c;

	for (int i = 0; i < n; i++) {
		const struct seam_link_target *target = events[i].data.ptr;

		for (int k = 0; k < MAX_WAKEUPS; k++)
			if (recv(target->wakeup_fd, &c, sizeof(c),
				 MSG_DONTWAIT) < 0 && errno == EAGAIN)
				break;
	}
}

void seam_link_server_step(struct seam_link_server *s)
{
	struct epoll_event events[MAX_EVENTS];
	int n = epoll_wait(s->epoll_fd, events, MAX_EVENTS, 0);
	uint64_t until_ns = seam_clock_ns() + MAX_ANSWERING_NS;

	/* A later wakeup is for records that this round may not read. */
	drain_wakeups(s);
	/* Those that are left are ready in the next step. */
	for (int i = 0; i < n && (i == 0 || seam_clock_ns() < until_ns); i++) {
		void *source = events[i].data.ptr;

		if (!source)
			for (int k = 0; k < MAX_EVENTS && accept_target(s); k++)
				;
		else if (source != s)
			read_message(s, source);
	}
	forget_without_hello(s);
	s->is_behind = !keep_free(s);
}
