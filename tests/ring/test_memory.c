/* SPDX-License-Identifier: MIT */
/* test_memory.c - the promises of ring/ring_memory.h, owners.h and set_owner.h */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring/link/owners.h"
#include "ring/link/proof.h"
#include "ring/link/set_owner.h"

static const struct seam_ring_shape shape = {
	.n_slots = 6, .data_bytes = DATA, .aux_bytes = AREA,
	.aux_free_running = 1,
};

struct house {
	struct seam_ring_memory memory;
	struct seam_owners tenants;
	int fd;
};

static void build(struct house *h, uint32_t n_free)
{
	h->fd = seam_ring_memory_create(&h->memory, &shape, NULL);
	assert_true(h->fd >= 0);
	assert_int_equal(seam_owners_init(&h->tenants, &h->memory, h->fd,
					   NULL), 0);
	assert_int_equal(seam_owners_prepare(&h->tenants, n_free, NULL), 0);
}

static void tear_down(struct house *h)
{
	seam_owners_fini(&h->tenants);
	seam_ring_memory_fini(&h->memory);
	close(h->fd);
}

static uint32_t my_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* Take what is there; the number of records of @type. */
static size_t drain(struct seam_owner *tenant, uint32_t type)
{
	static uint8_t record[UINT16_MAX];
	struct seam_ring_header header;
	struct seam_ring_span span;
	size_t n = 0, pos = 0;

	seam_ring_peek(&tenant->ring, &span);
	for (; seam_ring_copy(&span, pos, &header, record);
	     pos += header.size)
		n += header.type == type;
	seam_ring_advance(&tenant->ring, &span);
	return n;
}

static void takes_only_shapes_that_it_can_hold(void **state)
{
	static const struct seam_ring_shape bad[] = {
		{ .n_slots = 0, .data_bytes = DATA },
		{ .n_slots = SEAM_RING_MOST_SLOTS + 1, .data_bytes = DATA },
		{ .n_slots = 1, .data_bytes = 0 },
		{ .n_slots = 1, .data_bytes = 2048 },
		{ .n_slots = 1, .data_bytes = 3 * 4096 },
		{ .n_slots = 1, .data_bytes = UINT64_C(1) << 31 },
		{ .n_slots = 1, .data_bytes = DATA, .aux_bytes = 8 },
		{ .n_slots = 1, .data_bytes = DATA, .mode = 4 },
		{ .n_slots = 1, .data_bytes = DATA, .watermark = DATA },
		{ .n_slots = 1, .data_bytes = DATA, .aux_free_running = 2 },
	};
	struct seam_ring_memory m;

	(void)state;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(bad); i++) {
		assert_int_equal(seam_ring_memory_create(&m, &bad[i], NULL),
				 -EINVAL);
		assert_int_equal(seam_ring_memory_map(&m, 0, &bad[i], NULL),
				 -EBADMSG);
		seam_ring_memory_fini(&m);
	}
}

static void maps_nothing_that_could_shrink_under_it(void **state)
{
	uint64_t bytes = seam_ring_shape_bytes(&shape);
	const struct seam_ring_memory_head head = {
		.magic = SEAM_RING_MEMORY_MAGIC,
		.version = SEAM_RING_MEMORY_VERSION,
	};
	struct seam_ring_shape other = shape;
	struct seam_ring_memory m;
	struct house h;
	int fd = memfd_create("test", MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(seam_ring_memory_map(&m, fd, &shape, NULL),
			 -EBADMSG);
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	assert_int_equal(seam_ring_memory_map(&m, fd, &shape, NULL), 0);
	m.head->magic = 0;
	seam_ring_memory_fini(&m);
	assert_int_equal(seam_ring_memory_map(&m, fd, &shape, NULL),
			 -EBADMSG);
	close(fd);
	fd = open("/dev/zero", O_RDWR);
	assert_int_equal(seam_ring_memory_map(&m, fd, &shape, NULL),
			 -EBADMSG);
	close(fd);
	build(&h, 1);
	other.n_slots++;
	assert_int_equal(seam_ring_memory_map(&m, h.fd, &other, NULL),
			 -EBADMSG);
	assert_int_equal(seam_ring_memory_map(&m, h.fd, &shape, NULL), 0);
	assert_int_equal(ftruncate(h.fd, 0), -1);
	assert_int_equal(ftruncate(h.fd, (off_t)bytes * 2), -1);
	seam_ring_memory_fini(&m);
	tear_down(&h);
}

static void gives_each_claim_a_ring_of_its_own(void **state)
{
	struct seam_ring_claim claims[7];
	struct house h;

	(void)state;
	build(&h, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(seam_ring_memory_claim(&h.memory, my_tid(),
							&claims[i]), 0);
		assert_int_equal(claims[i].slot, i);
	}
	/* none is ready, though there could be more */
	assert_int_equal(seam_ring_memory_claim(&h.memory, my_tid(),
						&claims[3]), -ENOSPC);
	assert_int_equal(h.memory.head->n_unclaimed, 1);
	assert_int_equal(seam_owners_look(&h.tenants), 3);
	assert_int_equal(seam_owners_look(&h.tenants), 0);
	assert_int_equal(seam_owners_prepare(&h.tenants, 10, NULL), 0);
	for (uint32_t i = 3; i < 6; i++)
		assert_int_equal(seam_ring_memory_claim(&h.memory, my_tid(),
							&claims[i]), 0);
	assert_int_equal(seam_ring_memory_claim(&h.memory, my_tid(),
						&claims[6]), -ENOSPC);
	seam_owners_look(&h.tenants);
	for (uint32_t i = 0; i < 6; i++) {
		seam_ring_write(&claims[i].ring, 100 + i, 0, "", 1);
		assert_int_equal(drain(&h.tenants.items[i], 100 + i), 1);
	}
	seam_ring_memory_lose(&h.memory);
	assert_int_equal(h.memory.head->n_lost, 1);
	tear_down(&h);
}

static void frees_a_closed_ring_when_it_is_drained(void **state)
{
	struct seam_ring_claim claim, next;
	struct seam_ring_aux_chunk chunk;
	struct seam_ring_aux_snapshot shot;
	struct seam_owner_counts counts;
	struct seam_owner *tenant;
	struct house h;

	(void)state;
	build(&h, 1);
	tenant = &h.tenants.items[0];
	seam_ring_memory_claim(&h.memory, my_tid(), &claim);
	for (int i = 0; i < 1000; i++)
		seam_ring_write(&claim.ring, 9, 0, "", 1);
	seam_ring_aux_begin(&claim.aux, &chunk);
	seam_ring_aux_put(&chunk, "secret", 6);
	seam_ring_aux_end(&chunk, 0);
	seam_ring_memory_close(&h.memory, &claim);
	assert_int_equal(seam_owners_look(&h.tenants), 1);
	assert_true(tenant->is_ending);
	assert_false(tenant->is_orphan);
	seam_owners_counts(&h.tenants, 0, &counts);
	assert_int_equal(counts.n_begun, drain(tenant, 9));
	assert_int_equal(counts.n_begun +
			 counts.n_lost[SEAM_RING_LOST_FULL], 1000);
	seam_ring_aux_snapshot_init(&shot, &tenant->aux, NULL);
	assert_int_equal(seam_ring_aux_snapshot_own(&tenant->aux, &shot), 6);
	seam_owners_release(&h.tenants, 0);
	assert_int_equal(seam_owners_look(&h.tenants), 0);

	assert_int_equal(seam_ring_memory_claim(&h.memory, my_tid(), &next),
			 0);
	assert_true(next.word != claim.word);
	seam_ring_memory_close(&h.memory, &claim);	/* too late */
	seam_ring_write(&next.ring, 10, 0, "", 1);
	seam_owners_look(&h.tenants);
	assert_false(tenant->is_ending);
	seam_owners_counts(&h.tenants, 0, &counts);
	assert_int_equal(counts.n_begun, 1);
	assert_int_equal(counts.n_lost[SEAM_RING_LOST_FULL], 0);
	assert_int_equal(drain(tenant, 10), 1);
	assert_int_equal(seam_ring_aux_snapshot_own(&tenant->aux, &shot), 0);
	seam_ring_aux_snapshot_fini(&shot);
	tear_down(&h);
}

/* A child that claims a ring, writes a record, and waits. */
static pid_t start_child(struct house *h)
{
	struct seam_ring_claim claim;
	int pipes[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		if (seam_ring_memory_claim(&h->memory, my_tid(), &claim) ||
		    seam_ring_write(&claim.ring, 9, 0, "", 1) ||
		    write(pipes[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(pipes[0], &c, 1), 1);
	close(pipes[0]);
	close(pipes[1]);
	return pid;
}

static void drains_what_a_killed_child_has_left(void **state)
{
	struct seam_owner *tenant;
	struct house h;
	pid_t pid;

	(void)state;
	build(&h, 2);
	tenant = &h.tenants.items[0];
	pid = start_child(&h);
	assert_int_equal(seam_owners_look(&h.tenants), 1);
	assert_int_equal(tenant->proof, SEAM_OWNER_PROVEN);
	assert_int_equal(tenant->pid, pid);
	assert_int_equal(tenant->tid, pid);
	assert_int_equal(seam_owners_check(&h.tenants, true), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(seam_owners_check(&h.tenants, false), 1);
	assert_true(tenant->is_orphan);
	assert_int_equal(drain(tenant, 9), 1);
	seam_owners_release(&h.tenants, 0);
	assert_int_equal(seam_owners_prepare(&h.tenants, 2, NULL), 0);
	assert_int_equal(h.tenants.n_present, 2);
	tear_down(&h);
}

static void believes_only_threads_that_have_the_memory(void **state)
{
	struct seam_ring_claim claim;
	struct house h;
	pid_t dead = fork();

	(void)state;
	if (dead == 0)
		_exit(0);
	waitpid(dead, NULL, 0);
	build(&h, 4);
	seam_ring_memory_claim(&h.memory, (uint32_t)getppid(), &claim);
	seam_ring_memory_claim(&h.memory, (uint32_t)dead, &claim);
	seam_ring_memory_claim(&h.memory, my_tid(), &claim);
	seam_owners_look(&h.tenants);
	assert_int_equal(h.tenants.items[0].proof, SEAM_OWNER_UNPROVEN);
	assert_int_equal(h.tenants.items[0].pid, 0);
	assert_false(h.tenants.items[0].is_ending);
	assert_int_equal(seam_owners_check(&h.tenants, false), 2);
	assert_int_equal(h.tenants.items[0].proof, SEAM_OWNER_FORGED);
	assert_int_equal(h.tenants.items[0].pid, 0);
	assert_true(h.tenants.items[0].is_ending);
	assert_true(h.tenants.items[1].is_orphan);
	assert_int_equal(h.tenants.items[1].proof, SEAM_OWNER_UNPROVEN);
	assert_int_equal(h.tenants.items[1].pid, 0);
	assert_int_equal(h.tenants.items[2].proof, SEAM_OWNER_PROVEN);
	assert_int_equal(h.tenants.items[2].pid, getpid());

	assert_int_equal(seam_thread_has_mapped(my_tid(), h.tenants.device,
						h.tenants.inode), 1);
	assert_int_equal(seam_thread_has_mapped(my_tid(), h.tenants.device,
						h.tenants.inode + 1000000), 0);
	assert_int_equal(seam_thread_has_mapped(my_tid(),
						h.tenants.device + 1,
						h.tenants.inode), 0);
	assert_int_equal(seam_thread_has_mapped((uint32_t)dead,
						h.tenants.device,
						h.tenants.inode),
			 -ESRCH);
	tear_down(&h);
}

static pid_t start_short_child(struct house *h, const char *program)
{
	struct seam_ring_claim claim;
	pid_t pid = fork();

	if (pid)
		return pid;
	if (seam_ring_memory_claim(&h->memory, my_tid(), &claim) == 0 &&
	    seam_ring_write(&claim.ring, 9, 0, "", 1) == 0 && program)
		execl(program, program, (char *)NULL);
	_exit(0);
}

static void a_child_that_was_gone_before_we_looked_is_no_forger(void **state)
{
	struct seam_owner *tenant;
	struct house h;
	siginfo_t info;
	pid_t pid;

	(void)state;
	build(&h, 1);
	tenant = &h.tenants.items[0];
	pid = start_short_child(&h, NULL);
	/* a zombie: its maps can be read, and are empty */
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(seam_thread_has_mapped((uint32_t)pid, h.tenants.device,
						h.tenants.inode),
			 -ESRCH);
	assert_int_equal(seam_owners_look(&h.tenants), 1);
	assert_int_equal(tenant->proof, SEAM_OWNER_UNPROVEN);
	assert_int_equal(seam_owners_check(&h.tenants, false), 1);
	assert_int_equal(tenant->proof, SEAM_OWNER_UNPROVEN);
	assert_true(tenant->is_orphan);
	assert_int_equal(drain(tenant, 9), 1);
	seam_owners_release(&h.tenants, 0);
	waitpid(pid, NULL, 0);
	tear_down(&h);
}

static void a_child_that_became_another_program_leaves_its_ring(void **state)
{
	struct seam_owner *tenant;
	int pipes[2], saved = dup(0);
	struct house h;
	pid_t pid;

	(void)state;
	build(&h, 1);
	tenant = &h.tenants.items[0];
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	dup2(pipes[0], 0);
	pid = start_short_child(&h, "/bin/cat");
	dup2(saved, 0);
	while (seam_thread_has_mapped((uint32_t)pid, h.tenants.device,
				      h.tenants.inode) != 0)
		usleep(100);
	assert_int_equal(seam_owners_look(&h.tenants), 1);
	assert_int_equal(tenant->proof, SEAM_OWNER_UNPROVEN);
	assert_false(tenant->is_ending);
	assert_int_equal(seam_owners_check(&h.tenants, false), 1);
	assert_true(tenant->is_orphan);
	assert_int_equal(drain(tenant, 9), 1);
	close(pipes[0]);
	close(pipes[1]);
	close(saved);
	waitpid(pid, NULL, 0);
	tear_down(&h);
}

static void nobody_dies_of_our_want_of_descriptors(void **state)
{
	struct seam_owner *known, *unknown;
	struct rlimit old, none;
	struct house h;
	pid_t pids[2];

	(void)state;
	build(&h, 2);
	known = &h.tenants.items[0];
	unknown = &h.tenants.items[1];
	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = 0;
	pids[0] = start_child(&h);
	seam_owners_look(&h.tenants);
	assert_int_equal(known->proof, SEAM_OWNER_PROVEN);
	pids[1] = start_child(&h);

	setrlimit(RLIMIT_NOFILE, &none);
	seam_owners_look(&h.tenants);
	assert_int_equal(seam_owners_check(&h.tenants, true), 0);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_false(known->is_ending);
	assert_false(unknown->is_ending);
	assert_int_equal(unknown->proof, SEAM_OWNER_UNPROVEN);

	/* As soon as we can look again we know. */
	assert_int_equal(seam_owners_check(&h.tenants, true), 0);
	assert_int_equal(unknown->proof, SEAM_OWNER_PROVEN);
	assert_int_equal(unknown->pid, pids[1]);
	for (int i = 0; i < 2; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	assert_int_equal(seam_owners_check(&h.tenants, true), 2);
	tear_down(&h);
}

static void finds_a_thread_of_another_pid_namespace(void **state)
{
	struct seam_owner *tenant;
	struct house h;
	pid_t outer, inner;
	int pipes[2], status;

	(void)state;
	build(&h, 1);
	tenant = &h.tenants.items[0];
	assert_int_equal(pipe(pipes), 0);
	outer = fork();
	if (outer == 0) {
		if (unshare(CLONE_NEWPID) &&
		    unshare(CLONE_NEWUSER | CLONE_NEWPID))
			_exit(errno == EPERM ? 77 : 1);
		inner = start_child(&h); /* which calls itself 1 */
		if (write(pipes[1], &inner, sizeof(inner)) != sizeof(inner))
			_exit(1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	if (read(pipes[0], &inner, sizeof(inner)) != sizeof(inner)) {
		waitpid(outer, &status, 0);
		assert_int_equal(WEXITSTATUS(status), 77);
		close(pipes[0]);
		tear_down(&h);
		return; /* no namespaces, so nobody is misled by them */
	}
	seam_owners_look(&h.tenants);
	assert_int_equal(tenant->tid, 1);
	assert_int_equal(tenant->proof, SEAM_OWNER_UNPROVEN);
	assert_false(tenant->is_ending);
	assert_int_equal(seam_owners_check(&h.tenants, true), 0);
	assert_int_equal(tenant->proof, SEAM_OWNER_PROVEN);
	assert_int_equal(tenant->pid, inner);
	assert_int_equal(tenant->tid, inner);
	assert_int_equal(seam_owners_check(&h.tenants, true), 0);
	kill(inner, SIGKILL);
	while (seam_owners_check(&h.tenants, true) == 0)
		usleep(100);
	assert_int_equal(drain(tenant, 9), 1);
	kill(outer, SIGKILL);
	waitpid(outer, NULL, 0);
	close(pipes[0]);
	tear_down(&h);
}

/* A house of one ring, which this thread claims. */
static void move_in(struct house *h)
{
	struct seam_ring_claim claim;

	build(h, 1);
	seam_ring_memory_claim(&h->memory, my_tid(), &claim);
	seam_owners_look(&h->tenants);
}

static void a_thread_id_that_is_used_again_is_another_thread(void **state)
{
	struct house h;

	(void)state;
	move_in(&h);
	assert_int_equal(seam_owners_check(&h.tenants, true), 0);
	h.tenants.items[0].start_time--;	/* as the first one's was */
	assert_int_equal(seam_owners_check(&h.tenants, true), 1);
	assert_true(h.tenants.items[0].is_orphan);
	tear_down(&h);
	/* begun in the same tick, but in another process */
	move_in(&h);
	h.tenants.items[0].pid++;
	assert_int_equal(seam_owners_check(&h.tenants, true), 1);
	tear_down(&h);
}

static void what_a_process_proved_ends_with_its_tenancy(void **state)
{
	struct seam_ring_claim claim;
	struct house h;

	(void)state;
	build(&h, 2);
	seam_ring_memory_claim(&h.memory, my_tid(), &claim);
	seam_owners_look(&h.tenants);
	assert_int_equal(h.tenants.items[0].proof, SEAM_OWNER_PROVEN);
	/* it has become another program, without the memory */
	seam_ring_memory_close(&h.memory, &claim);
	seam_owners_look(&h.tenants);
	h.tenants.inode += 1000000;
	seam_ring_memory_claim(&h.memory, my_tid(), &claim);
	seam_owners_look(&h.tenants);
	assert_int_equal(h.tenants.items[1].proof, SEAM_OWNER_UNPROVEN);
	assert_int_equal(seam_owners_check(&h.tenants, false), 1);
	assert_int_equal(h.tenants.items[1].proof, SEAM_OWNER_FORGED);
	tear_down(&h);
}

static void lost_bytes_of_an_aux_area_are_told(void **state)
{
	static uint8_t bytes[65536];
	struct seam_owner_counts counts;
	struct seam_ring_claim claim;
	struct seam_ring_shape small = shape;
	struct house h = { 0 };
	struct seam_ring_aux_chunk chunk;

	(void)state;
	small.aux_free_running = 0;
	h.fd = seam_ring_memory_create(&h.memory, &small, NULL);
	assert_int_equal(seam_owners_init(&h.tenants, &h.memory, h.fd, NULL),
			 0);
	assert_int_equal(seam_owners_prepare(&h.tenants, 1, NULL), 0);
	seam_ring_memory_claim(&h.memory, my_tid(), &claim);
	seam_owners_look(&h.tenants);
	seam_ring_aux_begin(&claim.aux, &chunk);
	seam_ring_aux_put(&chunk, bytes, sizeof(bytes));
	seam_ring_aux_end(&chunk, 0);
	seam_owners_counts(&h.tenants, 0, &counts);
	assert_int_equal(counts.aux_lost_bytes,
			 sizeof(bytes) - shape.aux_bytes);
	tear_down(&h);
}

/* Claims a ring when the process's first thread is gone. */
static void *claim_late(void *arg)
{
	struct house *h = arg;
	struct seam_ring_claim claim;

	/* In proc(5) a first thread that has ended is a zombie. */
	while (seam_thread_has_mapped((uint32_t)getpid(), h->tenants.device,
				      h->tenants.inode) == 1)
		usleep(100);
	seam_ring_memory_claim(&h->memory, my_tid(), &claim);
	for (;;)
		pause();
	return NULL;
}

static void believes_a_thread_that_outlived_the_first(void **state)
{
	struct house h;
	pthread_t thread;
	pid_t pid;

	(void)state;
	build(&h, 1);
	pid = fork();
	if (pid == 0) {
		pthread_create(&thread, NULL, claim_late, &h);
		syscall(SYS_exit, 0);	/* this thread alone */
	}
	while (seam_owners_look(&h.tenants) == 0)
		usleep(100);
	assert_int_equal(h.tenants.items[0].proof, SEAM_OWNER_PROVEN);
	assert_int_equal(h.tenants.items[0].pid, pid);
	assert_true(h.tenants.items[0].tid != (uint32_t)pid);
	assert_int_equal(seam_owners_check(&h.tenants, true), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(seam_owners_check(&h.tenants, true), 1);
	tear_down(&h);
}

static void a_tenant_never_becomes_another(void **state)
{
	struct house h;

	(void)state;
	move_in(&h);
	atomic_store(&h.memory.slots[0].word,
		     seam_ring_word(SEAM_RING_CLAIMED, 0, 1));
	assert_int_equal(seam_owners_look(&h.tenants), 1);
	assert_true(h.tenants.items[0].is_ending);
	assert_int_equal(h.tenants.items[0].tid, my_tid());
	tear_down(&h);
}

static void stamps_the_owner_on_each_record(void **state)
{
	const struct seam_ring_stamp stamp = {
		.pid = 11, .tid = 12, .sample_at = 24, .trailer_bytes = 16,
		.trailer_at = 8,
	};
	static const struct {
		uint32_t type, size;
		int at;			/* of the stamp; 0: refused */
	} cases[] = {
		{ PERF_RECORD_SAMPLE, 32, 24 }, { PERF_RECORD_SAMPLE, 24, 0 },
		{ PERF_RECORD_SAMPLE, 8, 0 }, { PERF_RECORD_LOST, 40, 32 },
		{ PERF_RECORD_LOST, 24, 0 }, { PERF_RECORD_LOST, 48, 0 },
		{ PERF_RECORD_AUX, 48, 40 }, { PERF_RECORD_MMAP2, 120, 0 },
		{ PERF_RECORD_LOST_SAMPLES, 32, 24 }, { 0, 64, 0 },
		{ PERF_RECORD_COMM, 40, 0 }, { PERF_RECORD_EXIT, 48, 0 },
		{ 68, 8, 0 }, { UINT32_MAX, 64, 0 },
	};

	(void)state;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		struct seam_ring_header header = {
			.type = cases[i].type,
			.size = (uint16_t)cases[i].size,
		};
		uint8_t *bytes = calloc(1, cases[i].size);
		uint32_t who[2];

		assert_int_equal(seam_ring_stamp(bytes, &header, &stamp),
				 cases[i].at > 0);
		if (cases[i].at) {
			memcpy(who, bytes + cases[i].at, sizeof(who));
			assert_int_equal(who[0], 11);
			assert_int_equal(who[1], 12);
		}
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_only_shapes_that_it_can_hold),
		cmocka_unit_test(maps_nothing_that_could_shrink_under_it),
		cmocka_unit_test(gives_each_claim_a_ring_of_its_own),
		cmocka_unit_test(frees_a_closed_ring_when_it_is_drained),
		cmocka_unit_test(drains_what_a_killed_child_has_left),
		cmocka_unit_test(believes_only_threads_that_have_the_memory),
		cmocka_unit_test(
			a_child_that_was_gone_before_we_looked_is_no_forger),
		cmocka_unit_test(
			a_child_that_became_another_program_leaves_its_ring),
		cmocka_unit_test(nobody_dies_of_our_want_of_descriptors),
		cmocka_unit_test(finds_a_thread_of_another_pid_namespace),
		cmocka_unit_test(
			a_thread_id_that_is_used_again_is_another_thread),
		cmocka_unit_test(what_a_process_proved_ends_with_its_tenancy),
		cmocka_unit_test(lost_bytes_of_an_aux_area_are_told),
		cmocka_unit_test(believes_a_thread_that_outlived_the_first),
		cmocka_unit_test(a_tenant_never_becomes_another),
		cmocka_unit_test(stamps_the_owner_on_each_record),
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
