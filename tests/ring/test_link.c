/* SPDX-License-Identifier: MIT */
/*
 * test_link.c - the promises of ring/link*.h, with real programs
 *
 *	test_link TARGET
 */
#include "link_peer.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "ring/link/link.h"
#include "ring/link/link_server.h"
#include "ring/producer/claim.h"

enum { STRANGER = 65534, OTHER_STRANGER = 65533 };

static const char *target_program;
static struct seam_link_server server;

static int set_up(void **state)
{
	serve(&server);
	return 0;
}

static int tear_down(void **state)
{
	seam_link_server_close(&server);
	return 0;
}

static pid_t start(const struct seam_link_server *s, const char *n,
		   const char *how)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	execl(target_program, "target", s->address, n, how, (char *)NULL);
	_exit(127);
}

/* One step of the loop of a recorder. */
static void step(struct seam_link_server *s)
{
	struct pollfd p[] = {
		{ .fd = s->epoll_fd, .events = POLLIN },
		{ .fd = s->wakeup_fd, .events = POLLIN },
	};

	poll(p, 2, 10);
	seam_link_server_step(s);
}

struct sums {
	uint64_t n, sum;
};

static void drain(struct seam_owner *owner, struct sums *sums)
{
	static uint8_t record[UINT16_MAX];
	struct seam_ring_header header;
	struct seam_ring_span span;
	size_t pos = 0;

	seam_ring_peek(&owner->ring, &span);
	for (; seam_ring_copy(&span, pos, &header, record);
	     pos += header.size) {
		sums->n++;
		sums->sum += word_at(record, 8);
	}
	seam_ring_advance(&owner->ring, &span);
}

/* Drain target 0 until @n records have come, from rings that are closed. */
static void record(struct seam_link_server *s, uint64_t n, struct sums *sums)
{
	memset(sums, 0, sizeof(*sums));
	while (sums->n < n) {
		struct seam_owners *t;

		step(s);
		if (s->n_targets == 0 || !s->targets[0]->n_rings)
			continue;
		t = &s->targets[0]->rings[0].owners;
		for (uint32_t i = 0; i < t->n_present; i++) {
			struct seam_owner *owner = &t->items[i];
			bool ending = owner->is_ending;

			if (!owner->word)
				continue;
			drain(owner, sums);
			if (ending)
				seam_owners_release(t, i);
		}
	}
}

/* A program that ends well as @how says; it writes @n records in all. */
static pid_t serve_one(struct seam_link_server *s, const char *how, uint64_t n,
		       struct sums *sums)
{
	int status;
	pid_t pid;

	serve(s);
	pid = start(s, "1000", how);
	record(s, n, sums);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	return pid;
}

UNIT_TEST(delivers_all_records_of_a_program)
{
	struct seam_link_server s;
	struct sums sums;
	pid_t pid = serve_one(&s, "leave", 1000, &sums);

	assert_int_equal(sums.n, 1000);
	assert_int_equal(sums.sum, 1000 * 999 / 2);
	assert_int_equal(s.targets[0]->pid, pid);
	assert_int_equal(s.targets[0]->uid, geteuid());
	assert_int_equal(
		s.targets[0]->rings[0].owners.memory.head->n_unclaimed, 0);
	seam_link_server_close(&s);
}

UNIT_TEST(follows_a_child_that_closed_every_descriptor)
{
	struct seam_link_server s;
	struct sums sums;

	serve_one(&s, "fork", 2000, &sums);
	assert_int_equal(sums.n, 2000);
	assert_int_equal(sums.sum, 2000 * 1999 / 2);
	seam_link_server_close(&s);
}

UNIT_TEST(delivers_what_a_killed_program_left)
{
	struct sums sums;
	pid_t pid;

	pid = start(&server, "777", "kill");
	waitpid(pid, NULL, WNOHANG);
	/* it is waiting for the WELCOME */
	record(&server, 777, &sums);
	waitpid(pid, NULL, 0);
	assert_int_equal(sums.n, 777);
}

UNIT_TEST(listens_in_a_folder_of_its_own)
{
	char folder[SEAM_LINK_ADDRESS_BYTES];
	struct stat st;

	assert_int_equal(server.address[0], '/');
	snprintf(folder, sizeof(folder), "%s", server.address);
	*strrchr(folder, '/') = '\0';
	assert_int_equal(lstat(folder, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	seam_link_server_close(&server);
	assert_int_equal(access(folder, F_OK), 0);
}

/* What is added to the time. */
static time_t later_s;

time_t __real_time(time_t *t);
time_t __wrap_time(time_t *t);

time_t __wrap_time(time_t *t)
{
	return __real_time(t) + later_s;
}

UNIT_TEST(the_socket_of_a_killed_recorder_is_removed_by_a_later_one)
{
	struct seam_link_server other;
	struct sockaddr_un at;
	int size = seam_link_sockaddr(server.address, &at);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	seam_link_server_close(&server);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, (socklen_t)size), 0);
	close(fd);
	/* a new one may not listen yet */
	serve(&server);
	assert_int_equal(access(at.sun_path, F_OK), 0);
	later_s = 60;
	serve(&other);
	later_s = 0;
	assert_int_equal(access(at.sun_path, F_OK), -1);
	assert_int_equal(access(server.address, F_OK), 0);
	seam_link_server_close(&other);
}

UNIT_TEST(takes_an_abstract_name_where_the_path_is_too_long)
{
	char run[] = "/tmp/seam-test-XXXXXX", longest[200];
	struct seam_link_server s;
	struct sockaddr_un at;
	struct stat st;

	assert_non_null(mkdtemp(run));
	snprintf(longest, sizeof(longest), "%s/%0100d", run, 0);
	assert_int_equal(mkdir(longest, 0700), 0);
	setenv("XDG_RUNTIME_DIR", longest, 1);
	serve(&s);	/* falls back to /tmp, or to a name */
	assert_int_equal(strncmp(s.address, longest, strlen(longest)) != 0, 1);
	seam_link_server_close(&s);
	/* a folder that is not ours alone is not used */
	setenv("XDG_RUNTIME_DIR", run, 1);
	snprintf(longest, sizeof(longest), "%s/seam-%u", run, geteuid());
	assert_int_equal(mkdir(longest, 0755), 0);
	assert_int_equal(chmod(longest, 0755), 0);
	serve(&s);
	assert_int_equal(strncmp(s.address, run, strlen(run)) != 0, 1);
	seam_link_server_close(&s);
	assert_int_equal(stat(longest, &st), 0);
	/* nor one of another user, who could put another socket there */
	if (geteuid() == 0) {
		assert_int_equal(chmod(longest, 0700), 0);
		assert_int_equal(chown(longest, STRANGER, STRANGER), 0);
		serve(&s);
		assert_int_equal(strncmp(s.address, run, strlen(run)) != 0, 1);
		seam_link_server_close(&s);
	}
	rmdir(longest);
	snprintf(longest, sizeof(longest), "%s/%0100d", run, 0);
	rmdir(longest);
	rmdir(run);
	unsetenv("XDG_RUNTIME_DIR");

	assert_int_equal(seam_link_sockaddr("", &at), -ENAMETOOLONG);
	snprintf(longest, sizeof(longest), "/%0107d", 0);
	assert_int_equal(seam_link_sockaddr(longest, &at), -ENAMETOOLONG);
	snprintf(longest, sizeof(longest), "@%0106d", 0);
	assert_int_equal(seam_link_sockaddr(longest, &at), 2 + 107);
	assert_int_equal(at.sun_path[0], 0);
}

static uint64_t random_number(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 40;
}

static size_t count_fds(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

UNIT_TEST(a_hostile_peer_costs_only_itself)
{
	struct seam_link_welcome body = { 0 };
	uint8_t bytes[4096] = { 0 };
	int fds[SEAM_LINK_MAX_FDS] = { 0, 1, 2, 0 };
	size_t n_fds;
	uint64_t seed = 1;

	n_fds = count_fds();
	for (int i = 0; i < 300; i++) {
		int fd = connect_raw(&server);

		for (int k = 0; k < 3; k++) {
			size_t n = random_number(&seed) %
				   (i % 2 ? 40 : sizeof(bytes));

			for (size_t b = 0; b < n; b++)
				bytes[b] = (uint8_t)random_number(&seed);
			/* half of them begin well */
			if (i % 4 < 2 && n >= 8)
				memcpy(bytes, "seam\3\0\1\0", 8);
			send(fd, bytes, n, MSG_NOSIGNAL);
			seam_link_send(fd, SEAM_LINK_WELCOME, &body, fds,
				       SEAM_LINK_MAX_FDS, 0);
		}
		seam_link_server_step(&server);
		seam_link_server_step(&server);
		close(fd);
	}
	while (server.n_targets > 0) {
		seam_link_server_step(&server);
		for (size_t i = server.n_targets; i-- > 0;)
			if (server.targets[i]->n_rings &&
			    server.targets[i]->socket < 0)
				seam_link_server_forget(&server, i);
	}
	assert_int_equal(count_fds(), n_fds);
	assert_true(server.n_refused > 100);
}

UNIT_TEST(a_connection_without_hello_is_counted_and_forgotten)
{
	int fd;

	fd = connect_raw(&server);
	seam_link_server_step(&server);
	assert_int_equal(server.n_targets, 1);
	assert_int_equal(server.n_refused, 0);
	server.targets[0]->connected_ns -=
		(SEAM_LINK_HELLO_MS + 1) * UINT64_C(1000000);
	seam_link_server_step(&server);
	assert_int_equal(server.n_targets, 0);
	assert_int_equal(server.n_refused, 1);
	close(fd);
}

/* Only root can become somebody else; a user's server is made to think so. */
static uid_t pretended_uid;

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);

uid_t __wrap_geteuid(void)
{
	return pretended_uid ? pretended_uid : __real_geteuid();
}

/* Serve as STRANGER; a byte to @out when there is somewhere to connect to. */
static int serve_a_stranger(int out)
{
	bool is_root = geteuid() == 0;
	struct seam_link_server s;

	umask(0); /* anybody may connect: it is not the mode that refuses */
	if (is_root && (setgid(STRANGER) || setuid(STRANGER)))
		return 1;
	serve(&s);
	pretended_uid = is_root ? 0 : STRANGER;
	(void)!write(out, s.address, sizeof(s.address));
	while (s.n_refused == 0)
		step(&s);
	seam_link_server_close(&s);
	return 0;
}

UNIT_TEST(a_program_of_another_user_is_refused)
{
	char address[SEAM_LINK_ADDRESS_BYTES], path[64];
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct seam_link_message m;
	bool is_root = geteuid() == 0;
	int pipes[2], door, fd, status;
	pid_t pid;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		_exit(serve_a_stranger(pipes[1]));
	assert_int_equal(read(pipes[0], address, sizeof(address)),
			 sizeof(address));
	/* through its folder as root, to its door as somebody else */
	door = open(address, O_PATH | O_CLOEXEC);
	assert_true(door >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", door);
	memcpy(to.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (is_root)
		assert_int_equal(seteuid(OTHER_STRANGER), 0);
	status = connect(fd, (struct sockaddr *)&to, sizeof(to));
	if (is_root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(status, 0);
	assert_int_equal(seam_link_receive(fd, &m, 1000), 1);
	assert_int_equal(m.head.kind, SEAM_LINK_REFUSED);
	assert_non_null(strstr(m.refused.reason, "another user"));
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	close(door);
	close(fd);
	close(pipes[0]);
	close(pipes[1]);
}

/* Its receiver has to close what is passed; a sender can make that slow. */
UNIT_TEST(takes_no_descriptors)
{
	enum { PASSRIGHTS = 83 };
	const int no = 0;
	struct seam_link_hello hello = { .services = "numbers" };
	int fd, pair[2];
	bool can;

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	can = setsockopt(pair[0], SOL_SOCKET, PASSRIGHTS, &no, sizeof(no)) == 0;
	fd = connect_raw(&server);
	/* at the door, and behind it; Linux before 6.16 cannot refuse them */
	for (int i = 0; can && i < 2; i++) {
		assert_int_equal(seam_link_send(fd, SEAM_LINK_HELLO, &hello,
						&pair[0], 1, 0), -EPERM);
		seam_link_server_step(&server);
	}
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

/* The rings need none: a program may close what it did not open. */
UNIT_TEST(the_connection_ends_with_the_welcome)
{
	struct seam_link_message m;
	int fd;

	assert_int_equal(send_hello(&server, &fd), SEAM_LINK_WELCOME);
	assert_int_equal(seam_link_receive(fd, &m, 1000), 0);
	assert_int_equal(server.n_targets, 1);
	assert_int_equal(server.targets[0]->socket, -1);
	assert_int_equal(server.targets[0]->n_rings, 1);
	close(fd);
}

/* Connect as a program would: the socket, and the wakeup as it came. */
static int connect_program(struct seam_link_server *s, int *wakeup_fd)
{
	struct seam_link_message m;
	int fd = greet(s, "numbers", &m);

	assert_int_equal(m.head.kind, SEAM_LINK_WELCOME);
	assert_int_equal(m.n_fds, 2);
	close(m.fds[0]);
	*wakeup_fd = m.fds[1];
	return fd;
}

/* From now on there are @n descriptors more, and then none. */
static struct rlimit limit_descriptors(rlim_t n)
{
	int next = dup(0);
	struct rlimit old, limit;

	close(next);
	getrlimit(RLIMIT_NOFILE, &old);
	limit = old;
	limit.rlim_cur = (rlim_t)next + n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return old;
}

UNIT_TEST(a_server_that_cannot_be_opened_reports_why)
{
	for (rlim_t n = 0; n < 3; n++) {
		struct rlimit old = limit_descriptors(n);
		struct seam_link_server s;
		struct seam_err err = { 0 };

		assert_int_equal(seam_link_server_open(&s, &numbers, 1, &err),
				 -EMFILE);
		assert_non_null(strstr(err.cause[0], strerror(EMFILE)));
		seam_link_server_close(&s);
		setrlimit(RLIMIT_NOFILE, &old);
	}
}

/* What the program is told, with @n descriptors for the recorder. */
static void expect_refusal(rlim_t n, const char *why)
{
	struct seam_link_hello hello = { .services = "numbers" };
	struct seam_link_message m;
	struct seam_link_server s;
	struct rlimit old;
	struct pollfd p;
	int fd;

	serve(&s);
	fd = connect_raw(&s);
	assert_int_equal(seam_link_send(fd, SEAM_LINK_HELLO, &hello, NULL, 0,
					0), 0);
	old = limit_descriptors(n);
	for (int i = 0; i < 3; i++)
		seam_link_server_step(&s);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(seam_link_receive(fd, &m, 1000), 1);
	assert_int_equal(m.head.kind, SEAM_LINK_REFUSED);
	assert_string_equal(m.refused.reason, why);
	assert_int_equal(s.n_failed, 1);
	assert_string_equal(s.why.cause[0], why);
	assert_int_equal(s.why.code, -EMFILE);
	/* Nothing is left that would wake the recorder again and again. */
	p = (struct pollfd) { .fd = s.epoll_fd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 0), 0);
	close(fd);
	seam_link_server_close(&s);
}

UNIT_TEST(a_refusal_for_an_error_of_the_recorder_reports_which)
{
	expect_refusal(0, "cannot accept a connection: Too many open files");
	expect_refusal(1, "cannot make rings: Too many open files");
	/* The memory, one end of the wakeup, and not the other. */
	expect_refusal(3, "cannot make rings: Too many open files");
}

/* What accept4() fails with next; 0: it does not. */
static int accept_error;

int __real_accept4(int fd, struct sockaddr *from, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *size, int flags);

int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *size, int flags)
{
	if (accept_error) {
		errno = accept_error;
		accept_error = 0;
		return -1;
	}
	return __real_accept4(fd, from, size, flags);
}

UNIT_TEST(a_connection_waits_while_the_kernel_has_no_memory)
{
	static const int errors[] = { ENOMEM, ENOBUFS, ECONNABORTED };

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(errors); i++) {
		struct seam_link_server s;
		int first, second;

		serve(&s);
		first = connect_raw(&s);
		accept_error = errors[i];
		seam_link_server_step(&s);
		assert_int_equal(accept_error, 0);
		assert_int_equal(s.n_targets, 0);
		assert_int_equal(send_hello(&s, &second), SEAM_LINK_WELCOME);
		assert_int_equal(s.n_targets, 2);
		assert_int_equal(s.n_refused, 0);
		close(first);
		close(second);
		seam_link_server_close(&s);
	}
}

static bool is_woken(const struct seam_link_server *s)
{
	struct pollfd p = { .fd = s->wakeup_fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* What is passed to a program is the program's: its flags, its queue. */
UNIT_TEST(a_wakeup_is_read_once_and_in_bad_hands_stops_nobody)
{
	struct sockaddr off = { .sa_family = AF_UNSPEC };
	struct seam_ring_wakeup wakeups[2];
	int links[2], fds[2];

	for (int i = 0; i < 2; i++) {
		links[i] = connect_program(&server, &fds[i]);
		seam_ring_wakeup_init(&wakeups[i], fds[i]);
	}
	assert_false(is_woken(&server));
	for (int i = 0; i < 2; i++) {
		assert_true(seam_ring_wakeup_send(&wakeups[i]));
		assert_true(is_woken(&server));
		seam_link_server_step(&server);
		assert_false(is_woken(&server));
		assert_int_equal(fcntl(fds[i], F_SETFL, 0), 0);
	}
	alarm(20);		/* hanging is failing */
	while (send(fds[0], "rubbish", 7, MSG_DONTWAIT) > 0)
		;
	assert_true(seam_ring_wakeup_send(&wakeups[1]));
	seam_link_server_step(&server);
	assert_false(is_woken(&server));
	assert_int_equal(connect(fds[0], &off, sizeof(off)), 0);
	shutdown(fds[0], SHUT_RDWR);
	seam_link_server_step(&server);
	assert_false(is_woken(&server));
	assert_true(seam_ring_wakeup_send(&wakeups[1]));
	assert_true(is_woken(&server));
	alarm(0);
	for (int i = 0; i < 2; i++) {
		close(links[i]);
		close(fds[i]);
	}
	seam_link_server_step(&server);
	assert_false(is_woken(&server));
}

static const struct seam_link_service odd = {
	.name = "odd", .n_free = 1, .parameter = 4711,
	.geometry = {
		.n_slots = 3, .data_bytes = 8192,
		.aux_bytes = 16384, .aux_free_running = 1, .watermark = 5,
	},
};

static void serve_both(struct seam_link_server *s)
{
	const struct seam_link_service both[] = { numbers, odd };

	assert_int_equal(seam_link_server_open(s, both, 2, NULL), 0);
}

static bool has_geometry(const struct seam_ring_memory *m,
			 const struct seam_link_service *service)
{
	return m->head && memcmp(&m->geometry, &service->geometry,
				 sizeof(m->geometry)) == 0;
}

/* Whether a program that lists @names has rings of these services. */
static bool check_services(const struct seam_link_server *s, const char *names,
			   const struct seam_link_service *const *services)
{
	struct seam_link_client c;
	bool holds = seam_link_client_connect(&c, s->address, names, 5000) == 0;

	for (int i = 0; i < SEAM_LINK_MAX_SERVICES; i++)
		holds &= services[i] ?
			 has_geometry(&c.memories[i], services[i]) &&
			 c.parameters[i] == services[i]->parameter :
			 !c.memories[i].head;
	seam_link_client_fini(&c);
	return holds;
}

/* Serve until the program @pid has ended, well. */
static void serve_to_end(struct seam_link_server *s, pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0)
		step(s);
	assert_int_equal(status, 0);
	seam_link_server_close(s);
}

/* The program reads by hand what the recorder writes by a table. */
UNIT_TEST(a_program_gets_every_number_of_each_geometry)
{
	static const struct seam_link_service *const
		expected[SEAM_LINK_MAX_SERVICES] = { NULL, &odd, &numbers };
	struct seam_link_server s;
	pid_t pid;

	serve_both(&s);
	pid = fork();
	if (pid == 0)
		_exit(!check_services(&s, "none odd numbers odd", expected));
	serve_to_end(&s, pid);
}

static int lowest_free(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* Whether a program that is connected opens the same number as before. */
static bool opens_as_before(const struct seam_link_server *s, rlim_t limit)
{
	const struct rlimit descriptors = { limit, limit };
	struct seam_link_client c;
	int before = lowest_free();
	bool is_same;

	if (setrlimit(RLIMIT_NOFILE, &descriptors) ||
	    seam_link_client_connect(&c, s->address, "numbers", 5000))
		return false;
	is_same = lowest_free() == before && c.wakeup_fd > before;
	seam_link_client_fini(&c);
	return is_same && lowest_free() == before;
}

/* Where no high number is free, it is connected all the same. */
static bool connects_with_few(const struct seam_link_server *s)
{
	struct seam_link_client c;
	int first = lowest_free(), before;
	bool is_connected;

	while (dup(0) >= 0)
		;
	/* the socket, the memory until it is mapped, the wakeup */
	for (int fd = first; fd < first + 3; fd++)
		close(fd);
	before = lowest_free();
	is_connected = seam_link_client_connect(&c, s->address, "numbers",
						5000) == 0;
	seam_link_client_fini(&c);
	return is_connected && lowest_free() == before;
}

static bool counts_as_before(const struct seam_link_server *s)
{
	return opens_as_before(s, 1024) && opens_as_before(s, 64) &&
	       connects_with_few(s);
}

UNIT_TEST(the_numbers_that_a_program_opens_are_as_without_us)
{
	struct seam_link_server s;
	pid_t pid;

	serve(&s);
	pid = fork();
	if (pid == 0)
		_exit(!counts_as_before(&s));
	serve_to_end(&s, pid);
}

UNIT_TEST(rings_are_made_for_services_that_hello_names_only)
{
	static const struct { const char *names; uint32_t n; } cases[] = {
		{ "odd", 1 }, { "numbers odd", 2 }, { "odd odd odd odd", 1 },
		{ "none", 0 }, { "", 0 }, { " ", 0 }, { "od", 0 },
		{ "odds", 0 }, { "a b c d e f g h odd", 0 }, { "none odd", 1 },
	};
	struct seam_link_server s;

	serve_both(&s);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		struct seam_link_message m;
		int fd = greet(&s, cases[i].names, &m);

		assert_int_equal(m.head.kind, cases[i].n ? SEAM_LINK_WELCOME
							 : SEAM_LINK_REFUSED);
		assert_int_equal(s.n_targets, cases[i].n > 0);
		if (cases[i].n) {
			assert_int_equal(m.welcome.n_more, cases[i].n - 1);
			assert_int_equal(s.targets[0]->n_rings, cases[i].n);
			seam_link_drop_fds(&m);
			seam_link_server_forget(&s, 0);
		}
		close(fd);
	}
	seam_link_server_close(&s);
}

UNIT_TEST(gives_up_on_a_recorder_that_does_not_answer)
{
	struct seam_link_client c;
	struct seam_link_server s;

	serve(&s);	/* and never steps */
	assert_int_equal(
		seam_link_client_connect(&c, s.address, "numbers", 20),
		-ETIMEDOUT);
	seam_link_client_fini(&c);
	seam_link_server_close(&s);
	assert_true(seam_link_client_connect(&c, "/nowhere/at/all", "numbers",
					     20) < 0);
	seam_link_client_fini(&c);
	assert_true(seam_link_client_connect(&c, "", "numbers", 20) < 0);
	seam_link_client_fini(&c);
}

UNIT_TEST(the_last_note_is_kept_and_all_are_counted)
{
	char text[2 * SEAM_LINK_NOTE_BYTES];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(seam_link_client_note(server.address, text), 0);
	step(&server);
	step(&server);
	assert_int_equal(server.n_notes, 1);
	assert_int_equal(strlen(server.note), SEAM_LINK_NOTE_BYTES - 1);
	assert_int_equal(seam_link_client_note(server.address, "second"), 0);
	for (int i = 0; i < 4; i++)
		step(&server);
	assert_int_equal(server.n_notes, 2);
	assert_string_equal(server.note, "second");
	assert_int_equal(server.n_targets, 0);
	assert_true(seam_link_client_note("/nowhere", "text") < 0);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	target_program = argv[1];
	unsetenv("XDG_RUNTIME_DIR");
	return unit_run(NULL, NULL, set_up, tear_down);
}
