/* SPDX-License-Identifier: MIT */
/* test_link_rings.c - how many rings programs get, and when */
#include "link_peer.h"

#include "base/clock.h"
#include "ring/producer/claim.h"

static struct seam_link_server server;

/* Until all rings are made. */
static void step_to_end(struct seam_link_server *s)
{
	do
		seam_link_server_step(s);
	while (s->is_behind);
}

/* Where all may have @max rings, the next program has @n. */
static void expect_rings(struct seam_link_server *s, size_t max, uint32_t n)
{
	const struct seam_link_rings *rings;
	int fd;

	if (s->n_targets)
		s->max_bytes = max *
			s->targets[0]->rings[0].owners.memory.ring_bytes;
	assert_int_equal(send_hello(s, &fd), SEAM_LINK_WELCOME);
	step_to_end(s);
	rings = &s->targets[s->n_targets - 1]->rings[0];
	assert_int_equal(rings->owners.n_present, n);
	close(fd);
}

/* Programs that connect while memory is short get fewer, and some to spare. */
UNIT_TEST(the_more_memory_rings_have_the_fewer_are_kept_free)
{
	const struct seam_link_service eight = {
		.name = "numbers", .n_free = 8, .geometry = numbers.geometry,
	};

	assert_int_equal(seam_link_server_open(&server, &eight, 1, NULL), 0);
	expect_rings(&server, 0, 8);
	expect_rings(&server, 33, 8);
	expect_rings(&server, 33, 2);
	expect_rings(&server, 36, 1);
}

UNIT_TEST(all_rings_have_no_more_than_they_may)
{
	enum { MAX = 8 };
	uint64_t ring_bytes = 0;
	size_t n = 0, n_rings = 0;
	int fds[MAX + 1];

	serve(&server);
	while (n <= MAX) {
		uint16_t kind = send_hello(&server, &fds[n++]);

		if (kind != SEAM_LINK_WELCOME) {
			assert_int_equal(kind, SEAM_LINK_REFUSED);
			break;
		}
		ring_bytes =
			server.targets[0]->rings[0].owners.memory.ring_bytes;
		server.max_bytes = MAX * ring_bytes;
	}
	for (size_t i = 0; i < server.n_targets; i++)
		n_rings += server.targets[i]->rings[0].owners.n_present;
	assert_int_equal(n_rings, MAX);
	/* The first has what is kept ready, the others one. */
	assert_int_equal(server.n_targets, 1 + MAX - numbers.n_free);
	assert_int_equal(server.n_refused, 1);
	close(fds[--n]);
	/* Who goes makes room. */
	seam_link_server_forget(&server, 0);
	assert_int_equal(send_hello(&server, &fds[n++]), SEAM_LINK_WELCOME);
	while (n > 0)
		close(fds[--n]);
}

/* While this is not 0, each reading of a clock takes so long. */
static uint64_t reading_ns, clock_ns;

static int close_server(void **state)
{
	reading_ns = 0;
	seam_link_server_close(&server);
	return 0;
}

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	if (!reading_ns)
		return __real_clock_gettime(clock, t);
	clock_ns += reading_ns;
	*t = (struct timespec) {
		.tv_sec = (time_t)(clock_ns / SEAM_NS_PER_S),
		.tv_nsec = (long)(clock_ns % SEAM_NS_PER_S),
	};
	return 0;
}

static void set_clock(uint64_t each_ns)
{
	if (!reading_ns)
		clock_ns = seam_clock_ns();
	reading_ns = each_ns;
}

/* A program that has @n rings so far; the clock is the test's. */
static struct seam_link_rings *connect_to_rings(struct seam_link_server *s,
						uint32_t n, int *fd)
{
	set_clock(SEAM_NS_PER_MS);
	assert_int_equal(send_hello(s, fd), SEAM_LINK_WELCOME);
	assert_in_range(s->targets[0]->rings[0].owners.n_present, 1, n - 1);
	return &s->targets[0]->rings[0];
}

static void open_slow(struct seam_link_server *s)
{
	const struct seam_link_service many = {
		.name = "numbers", .n_free = 16, .n_first = 1,
		.geometry = numbers.geometry,
	};

	assert_int_equal(seam_link_server_open(s, &many, 1, NULL), 0);
}

/* Each step has an end, however long it takes to make a ring. */
UNIT_TEST(rings_that_take_long_are_made_in_several_steps)
{
	struct seam_link_rings *rings;
	int fd;

	open_slow(&server);
	rings = connect_to_rings(&server, 16, &fd);
	while (rings->owners.n_present < 16) {
		uint32_t n = rings->owners.n_present;

		assert_true(server.is_behind);
		seam_link_server_step(&server);
		assert_in_range(rings->owners.n_present, n + 1, n + 3);
	}
	seam_link_server_step(&server);
	assert_false(server.is_behind);
	close(fd);
}

static uint32_t n_with_rings(const struct seam_link_server *s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->n_targets; i++)
		n += s->targets[i]->n_rings > 0;
	return n;
}

/* Those that record are drained in between. */
UNIT_TEST(programs_that_connect_at_once_are_answered_in_turn)
{
	enum { N = 16, MOST = 4 };
	struct seam_link_hello hello = { .services = "numbers" };
	int fds[N];

	open_slow(&server);
	for (int i = 0; i < N; i++) {
		fds[i] = connect_raw(&server);
		assert_int_equal(seam_link_send(fds[i], SEAM_LINK_HELLO, &hello,
						NULL, 0, 0), 0);
	}
	seam_link_server_step(&server);
	assert_int_equal(server.n_targets, N);
	set_clock(SEAM_NS_PER_MS);
	for (uint32_t n = n_with_rings(&server); n < N;
	     n = n_with_rings(&server)) {
		seam_link_server_step(&server);
		assert_in_range(n_with_rings(&server), n + 1, n + MOST);
	}
	for (int i = 0; i < N; i++)
		close(fds[i]);
}

/* The caller knows that no process is left that could claim one. */
UNIT_TEST(no_rings_are_made_for_a_program_that_is_over)
{
	struct seam_link_rings *rings;
	uint32_t n;
	int fd;

	open_slow(&server);
	rings = connect_to_rings(&server, 16, &fd);
	n = rings->owners.n_present;
	server.targets[0]->is_over = true;
	seam_link_server_step(&server);
	assert_int_equal(rings->owners.n_present, n);
	assert_false(server.is_behind);
	close(fd);
}

UNIT_TEST(a_program_whose_threads_claim_rings_gets_more)
{
	struct seam_ring_claim claim;
	struct seam_link_rings *rings;
	int fd;

	serve(&server);
	assert_int_equal(send_hello(&server, &fd), SEAM_LINK_WELCOME);
	close(fd);
	seam_link_server_step(&server);
	rings = &server.targets[0]->rings[0];
	for (uint32_t i = 0; i < numbers.n_free; i++)
		assert_int_equal(seam_ring_memory_claim(
					&rings->owners.memory, (uint32_t)getpid(),
					&claim), 0);
	step_to_end(&server);
	assert_int_equal(seam_owners_n_free(&rings->owners), numbers.n_free);
}

/* The first before WELCOME, the rest soon; more where there were too few. */
UNIT_TEST(rings_are_made_ahead_of_the_threads_that_claim_them)
{
	const struct seam_link_service few = {
		.name = "numbers", .n_free = 4, .n_first = 1,
		.geometry = numbers.geometry,
	};
	struct seam_link_rings *rings;
	int fd;

	assert_int_equal(seam_link_server_open(&server, &few, 1, NULL), 0);
	assert_int_equal(send_hello(&server, &fd), SEAM_LINK_WELCOME);
	rings = &server.targets[0]->rings[0];
	step_to_end(&server);
	assert_int_equal(rings->owners.n_present, 4);
	/* twice the same count is one shortage */
	for (uint32_t n = 1; n < 6; n++)
		for (int twice = 0; twice < 2; twice++) {
			atomic_store(&rings->owners.memory.head->n_unclaimed,
				     n);
			step_to_end(&server);
			assert_int_equal(rings->owners.n_present,
					 4 + 4 * (n < 3 ? n : 3));
		}
	close(fd);
}

int main(void)
{
	unsetenv("XDG_RUNTIME_DIR");
	return unit_run(NULL, NULL, NULL, close_server);
}
