/* SPDX-License-Identifier: MIT */
/* link_server.c - listen, meet, part; see link_server.h */
#include "ring/link/link_server.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	MAX_EVENTS = 64,
	MAX_RINGS = 1024,		/* taken at once from one bell */
};

/* Our folder below @parent: made now or before, and nobody else's. */
static bool make_folder(char *path, size_t room, const char *parent)
{
	struct stat st;
	int n = snprintf(path, room, "%s/seam-%u", parent,
			 (unsigned)geteuid());

	if (n < 0 || (size_t)n >= room)
		return false;
	if (mkdir(path, 0700) && errno != EEXIST)
		return false;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

/*
 * A path that nobody can guess or shadow, in the user's run-time folder or
 * in /tmp; an abstract name where neither will do.
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
	    make_folder(folder, sizeof(folder), "/tmp"))
		n = snprintf(address, room, "%s/%d-%016jx", folder, getpid(),
			     (uintmax_t)random);
	if (n < 0 || (size_t)n >= room)
		snprintf(address, room, "@seam-%d-%016jx", getpid(),
			 (uintmax_t)random);
}

static int watch(int epoll_fd, int fd, void *who)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = who };

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
 * Nobody has to pass us a descriptor, and to close one may take as long as its
 * sender likes (SO_LINGER).  Kernels before 6.16 cannot refuse them.
 * Source: SO_PASSRIGHTS, asm-generic/socket.h of Linux 6.16.
 */
static void take_no_rights(int socket)
{
	enum { PASSRIGHTS = 83 };
	const int no = 0;

	setsockopt(socket, SOL_SOCKET, PASSRIGHTS, &no, sizeof(no));
}

/* A descriptor to give up when there are no more. */
static void take_spare(struct seam_link_server *s)
{
	s->spare_fd = fcntl(s->socket, F_DUPFD_CLOEXEC, 0);
}

/* Each failure is told with its own cause: what comes after may succeed. */
static int make_descriptors(struct seam_link_server *s)
{
	s->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
			   SOCK_NONBLOCK, 0);
	if (s->socket < 0)
		return -errno;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	s->bell_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->bell_fd < 0)
		return -errno;
	take_spare(s);
	return 0;
}

int seam_link_server_open(struct seam_link_server *s,
			  const struct seam_ring_shape *shape,
			  struct seam_err *err)
{
	int r;

	*s = (struct seam_link_server) {
		.socket = -1, .epoll_fd = -1, .bell_fd = -1, .spare_fd = -1,
		.shape = *shape,
		.n_free_slots = SEAM_LINK_FREE_SLOTS,
		.most_bytes = UINT64_MAX,
	};
	if (!seam_ring_shape_is_valid(shape))
		return seam_err_set(err, -EINVAL, "no rings of such a shape");
	s->targets = calloc(SEAM_LINK_MOST_TARGETS, sizeof(*s->targets));
	if (!s->targets)
		return seam_err_set(err, -ENOMEM, "out of memory");
	r = make_descriptors(s);
	if (r < 0)
		return seam_err_set(err, r,
				    "cannot make a socket for programs: %s",
				    strerror(-r));
	choose_address(s->address, sizeof(s->address));
	seam_link_remove_stale(s->address);
	take_no_rights(s->socket);	/* nor those that wait at the door */
	r = listen_at(s);
	if (r < 0)
		return seam_err_set(err, r, "cannot listen at '%s': %s",
				    s->address, strerror(-r));
	r = watch(s->epoll_fd, s->socket, NULL);
	if (r < 0)
		return seam_err_set(err, r, "cannot wait for programs: %s",
				    strerror(-r));
	return 0;
}

static void hang_up(struct seam_link_server *s,
		    struct seam_link_target *target)
{
	if (target->socket < 0)
		return;
	/* Closing is not enough: a child of ours may have the socket too. */
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, target->socket, NULL);
	close(target->socket);
	target->socket = -1;
}

static void free_target(struct seam_link_server *s,
			struct seam_link_target *target)
{
	hang_up(s, target);
	seam_owners_fini(&target->tenants);
	seam_ring_memory_fini(&target->memory);
	if (target->memory_fd >= 0)
		close(target->memory_fd);
	if (target->bell_fd >= 0) {
		epoll_ctl(s->bell_fd, EPOLL_CTL_DEL, target->bell_fd, NULL);
		close(target->bell_fd);
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
	if (s->socket >= 0)
		close(s->socket);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	if (s->bell_fd >= 0)
		close(s->bell_fd);
	if (s->spare_fd >= 0)
		close(s->spare_fd);
	if (s->address[0] == '/')
		unlink(s->address);
	*s = (struct seam_link_server) { 0 };
}

/*
 * Before it is closed: a hello that was not read would reset the connection,
 * and with it what it was told.
 */
static void discard_messages(int socket)
{
	enum { MAX_DISCARDED = 4 };
	char c;

	for (int i = 0; i < MAX_DISCARDED; i++)
		if (recv(socket, &c, sizeof(c), MSG_DONTWAIT) <= 0)
			break;
}

static void refuse(struct seam_link_server *s, int socket, const char *why)
{
	struct seam_link_refused refused = { .reason = why };

	s->n_refused++;
	discard_messages(socket);
	seam_link_send(socket, SEAM_LINK_REFUSED, &refused, NULL, 0, 0);
}

/* The recorder itself could not, @error: that is told to its user too. */
static void fail(struct seam_link_server *s, int socket, const char *what,
		 int error)
{
	char why[SEAM_LINK_MOST_BYTES / 2];

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
	target->memory_fd = target->bell_fd = -1;
	target->since_ns = seam_clock_ns();
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
 * the socket ready for ever, so it is taken with the spare one and closed.
 */
static bool turn_away(struct seam_link_server *s, int error)
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
	take_spare(s);
	return socket >= 0;
}

/* One that waits at the door.  False when there is none. */
static bool let_in(struct seam_link_server *s)
{
	int socket = accept4(s->socket, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct seam_link_target *target = NULL;
	int r;

	if (socket < 0)
		return (errno == EMFILE || errno == ENFILE) &&
		       turn_away(s, -errno);
	take_no_rights(socket);
	if (s->n_targets == SEAM_LINK_MOST_TARGETS) {
		refuse(s, socket, "too many programs");
		close(socket);
		return true;
	}
	r = make_target(socket, &target);
	if (r == 0 && !seam_link_may_meet(target->uid)) {
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

static uint64_t bytes_of(const struct seam_link_target *target)
{
	return target->tenants.n_present * target->memory.ring_bytes;
}

static uint64_t bytes_of_all(const struct seam_link_server *s)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < s->n_targets; i++)
		bytes += bytes_of(s->targets[i]);
	return bytes;
}

/* The free rings of one target, where all rings have @bytes. */
static uint32_t n_to_keep(const struct seam_link_server *s, uint64_t bytes)
{
	return bytes < s->most_bytes / 4 ? s->n_free_slots :
	       bytes < s->most_bytes ? 1 : 0;
}

static int make_rings(struct seam_link_server *s,
		      struct seam_link_target *target)
{
	uint32_t n = n_to_keep(s, bytes_of_all(s));
	/* No system call here gives that: it is our own limit. */
	int r = n ? seam_ring_memory_create(&target->memory, &s->shape, NULL) :
		-EDQUOT;

	if (r < 0)
		return r;
	target->memory_fd = r;
	r = seam_owners_init(&target->tenants, &target->memory,
			      target->memory_fd, NULL);
	return r < 0 ? r : seam_owners_prepare(&target->tenants, n, NULL);
}

/*
 * A bell of its own for @target.  Returns the end to pass on: with it goes
 * all that can be done to a socket, flags and queue, and nothing of it may
 * reach us or another target.  No SOCK_SEQPACKET: when the program ends, that
 * would be ready for ever.
 */
static int make_bell(struct seam_link_server *s,
		     struct seam_link_target *target)
{
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		       ends))
		return -errno;
	take_no_rights(ends[0]);
	target->bell_fd = ends[0];
	r = watch(s->bell_fd, ends[0], target);
	if (r == 0)
		return ends[1];
	close(ends[1]);
	return r;
}

static bool meet(struct seam_link_server *s, struct seam_link_target *target,
		 const struct seam_link_message *m)
{
	const struct seam_ring_shape *shape = &s->shape;
	struct seam_link_welcome welcome = {
		.n_slots = shape->n_slots, .mode = shape->mode,
		.data_bytes = shape->data_bytes,
		.aux_bytes = shape->aux_bytes,
		.aux_free_running = shape->aux_free_running,
		.watermark = shape->watermark,
		.pid = (uint32_t)target->pid,
	};
	int fds[2], r;

	if (target->has_met || m->head.version != SEAM_LINK_VERSION) {
		refuse(s, target->socket, target->has_met ? "a second hello" :
		       "another version of the agent");
		return false;
	}
	r = make_rings(s, target);
	if (r == 0)
		r = make_bell(s, target);
	if (r == -EDQUOT) {
		refuse(s, target->socket, "the rings of other programs have "
		       "all the memory that rings may have");
		return false;
	}
	if (r < 0) {
		fail(s, target->socket, "cannot make rings", r);
		return false;
	}
	snprintf(target->name, sizeof(target->name), "%s", m->hello.name);
	fds[0] = target->memory_fd;
	fds[1] = r;
	target->has_met = true;
	target->met_ns = seam_clock_ns();
	r = seam_link_send(target->socket, SEAM_LINK_WELCOME, &welcome, fds,
			   2, 0);
	close(fds[1]);
	return r == 0;
}

/* Hear one message.  False when this target has nothing more to say. */
static bool hear(struct seam_link_server *s, struct seam_link_target *target)
{
	struct seam_link_message m;
	bool stays = true;
	int r = seam_link_receive(target->socket, &m, 0);

	if (r == -EAGAIN || r == -EINTR)
		return true;
	if (r <= 0) {
		s->n_refused += r < 0;
		return false;
	}
	if (m.head.kind == SEAM_LINK_HELLO) {
		stays = meet(s, target, &m);
	} else if (m.head.kind == SEAM_LINK_BYE) {
		target->said_bye = true;
		target->bye = m.bye;
	}
	seam_link_drop_fds(&m);
	return stays;
}

static void forget_strangers(struct seam_link_server *s)
{
	uint64_t now = seam_clock_ns();

	for (size_t i = s->n_targets; i-- > 0;) {
		struct seam_link_target *target = s->targets[i];
		bool is_late = now - target->since_ns >
			       SEAM_LINK_HELLO_MS * UINT64_C(1000000);

		if (target->has_met || (target->socket >= 0 && !is_late))
			continue;
		s->n_refused += is_late;
		seam_link_server_forget(s, i);
	}
}

static void keep_ready(struct seam_link_server *s)
{
	uint64_t bytes = bytes_of_all(s), had;

	for (size_t i = 0; i < s->n_targets; i++) {
		struct seam_link_target *target = s->targets[i];

		if (!target->has_met)
			continue;
		seam_owners_look(&target->tenants);
		/* No memory: threads go without, and are counted. */
		had = bytes_of(target);
		seam_owners_prepare(&target->tenants, n_to_keep(s, bytes),
				     NULL);
		bytes += bytes_of(target) - had;
	}
}

/*
 * Take the rings of those who rang: as many as a queue can hold and no more,
 * because somebody may ring without end.  What is left keeps the bell ready.
 */
static void silence_bells(struct seam_link_server *s)
{
	struct epoll_event events[MAX_EVENTS];
	int n = epoll_wait(s->bell_fd, events, MAX_EVENTS, 0);
	char c;

	for (int i = 0; i < n; i++) {
		const struct seam_link_target *target = events[i].data.ptr;

		for (int k = 0; k < MAX_RINGS; k++)
			if (recv(target->bell_fd, &c, sizeof(c),
				 MSG_DONTWAIT) < 0 && errno == EAGAIN)
				break;
	}
}

size_t seam_link_server_step(struct seam_link_server *s)
{
	struct epoll_event events[MAX_EVENTS];
	int n = epoll_wait(s->epoll_fd, events, MAX_EVENTS, 0);
	size_t n_changed = 0;

	/* Whoever rings from now on has data that the caller will not see. */
	silence_bells(s);

	for (int i = 0; i < n; i++) {
		struct seam_link_target *target = events[i].data.ptr;
		bool had_met;

		if (!target) {
			for (int k = 0; k < MAX_EVENTS && let_in(s); k++)
				;
			continue;
		}
		had_met = target->has_met;
		if (!hear(s, target)) {
			hang_up(s, target);
			n_changed += had_met;
		}
		n_changed += target->has_met && !had_met;
	}
	forget_strangers(s);
	keep_ready(s);
	return n_changed;
}

bool seam_link_target_is_over(struct seam_link_target *target)
{
	struct seam_owners *t = &target->tenants;

	if (target->socket >= 0)
		return false;
	seam_owners_look(t);
	seam_owners_check(t, true);
	for (uint32_t i = 0; i < t->n_present; i++)
		if (t->items[i].word)
			return false;
	return true;
}
