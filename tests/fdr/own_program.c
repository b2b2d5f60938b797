/* SPDX-License-Identifier: MIT */
/*
 * own_program.c - a program that records its calls itself: own_program MODE
 *
 * Built by clang with -fxray-instrument, linked with libseam-fdr, and without
 * LLVM's runtime.  What it has called it prints: NAME COUNT.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <seam/fdr.h>

#define CALLED __attribute__((noinline, xray_always_instrument))

enum {
	CHUNKS = 10000,
	MANY = 60000,		/* calls: 16 chunks of entries and exits */
	N_THREADS = 4,
};

static volatile unsigned int sink;

CALLED static void leaf(unsigned int n)
{
	sink += n;
}

CALLED static void node(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		leaf(i);
}

/* Their sleds are at all places in a word of 8. */
#define PADDED(name, bytes)						\
	CALLED static void name(void)					\
	{								\
		__asm__ volatile(".skip " #bytes ", 0x90");		\
		leaf(0);						\
	}

PADDED(padded_0, 0)
PADDED(padded_1, 1)
PADDED(padded_2, 2)
PADDED(padded_3, 3)
PADDED(padded_5, 5)
PADDED(padded_7, 7)

CALLED static void padded(void)
{
	padded_0();
	padded_1();
	padded_2();
	padded_3();
	padded_5();
	padded_7();
}

static void say(const char *name, unsigned long count)
{
	printf("%s %lu\n", name, count);
	fflush(stdout);
}

static void check(int r, const char *what)
{
	if (r) {
		fprintf(stderr, "%s: %s\n", what, strerror(-r));
		exit(1);
	}
}

/* A recorder may have started it. */
static void start(void)
{
	int r = seam_fdr_start(NULL);

	check(r == -EALREADY ? 0 : r, "start");
}

/* One thread. */
static void chunks(void)
{
	start();
	for (unsigned int i = 0; i < CHUNKS; i++)
		node(i % 5);
	check(seam_fdr_stop(), "stop");
	say("node", CHUNKS);
	say("leaf", CHUNKS / 5 * (0 + 1 + 2 + 3 + 4));
}

static void *run(void *unused)
{
	(void)unused;
	for (int i = 0; i < MANY / 10; i++)
		node(10);
	return NULL;
}

static void threads(void)
{
	pthread_t t[N_THREADS];

	start();
	for (int i = 0; i < N_THREADS; i++)
		pthread_create(&t[i], NULL, run, NULL);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(t[i], NULL);
	check(seam_fdr_stop(), "stop");
	say("leaf", (unsigned long)N_THREADS * MANY);
	say("node", (unsigned long)N_THREADS * MANY / 10);
}

/* Events of both kinds, by clang's builtins and by the library. */
CALLED static void events(void)
{
	static const size_t sizes[] = { 0, 1, 7, 8, 13, 4096, 5000 };
	static char data[5000];
	int type;

	start();
	type = seam_fdr_register_type("request \"x\"");
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)('a' + i % 26);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		leaf(1);
		seam_fdr_log_event(data, sizes[i]);
		seam_fdr_log_typed((uint16_t)type, data, sizes[i]);
	}
	check(seam_fdr_stop(), "stop");
	/* not recorded any more */
	seam_fdr_log_event(data, 3);
	say("leaf", sizeof(sizes) / sizeof(sizes[0]));
	say("type", (unsigned long)type);
}

/*
 * All of this file is compiled without optimization and without a red zone: of
 * operands in some registers clang 14 makes code that is wrong also where the
 * sled is not used, or it fails; and sleds store below the stack pointer of
 * leaf functions.
 */
CALLED static void custom(const char *data, size_t bytes)
{
	__xray_customevent(data, bytes);
}

CALLED static void typed(size_t type, const char *data, size_t bytes)
{
	__xray_typedevent(type, data, bytes);
}

/* Registers and the stack are as before: in a leaf function too. */
CALLED static double leaf_event(const char *data, double a, double b)
{
	double c = a * b;

	__xray_customevent(data, 5);
	return c + a - b;
}

static void builtins(void)
{
	static const char text[] = "{\"n\":7}";
	size_t type;
	double d = 0;

	start();
	type = (size_t)seam_fdr_register_type("builtin");
	for (int i = 0; i < 10; i++) {
		custom(text, sizeof(text) - 1);
		leaf(2);
		typed(type, text, sizeof(text) - 1);
		d += leaf_event("12345", i + 0.5, 2.25);
	}
	check(seam_fdr_stop(), "stop");
	say("leaf", 10);
	say("sum", (unsigned long)(d * 1000));
}

static void forked(void)
{
	start();
	node(100);
	if (fork() == 0) {
		node(7);
		exit(0);
	}
	wait(NULL);
	node(20);
	check(seam_fdr_stop(), "stop");
	say("leaf", 120);
	say("child", 7);
}

static sem_t is_held, is_forked;

static int hold(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)info;
	(void)size;
	(void)unused;
	sem_post(&is_held);
	sem_wait(&is_forked);
	return 1;
}

static void *hold_loader(void *unused)
{
	dl_iterate_phdr(hold, unused);
	return NULL;
}

/* A child finds the loader's list locked, by a thread that it does not have. */
static void locked(void)
{
	pthread_t t;
	int status;

	sem_init(&is_held, 0, 0);
	sem_init(&is_forked, 0, 0);
	start();
	node(100);
	pthread_create(&t, NULL, hold_loader, NULL);
	sem_wait(&is_held);
	if (fork() == 0) {
		alarm(50);
		node(7);
		exit(0);
	}
	wait(&status);
	sem_post(&is_forked);
	pthread_join(t, NULL);
	node(20);
	check(status, "child");
	check(seam_fdr_stop(), "stop");
	say("leaf", 120);
	say("child", 7);
}

/* Another program, in its place, with the same SEAM_TRACE. */
static void other(void)
{
	start();
	node(3);
	execl("/proc/self/exe", "own_program", "forked", NULL);
}

/* The second start, into SECOND, has options of its own. */
static void again(void)
{
	start();
	padded();
	check(seam_fdr_stop(), "seam_fdr_stop");
	check(seam_fdr_start(getenv("SECOND")), "seam_fdr_start");
	padded();
	check(seam_fdr_stop(), "seam_fdr_stop");
}

/* It starts others. */
static void programs(void)
{
	start();
	node(100);
	if (fork() == 0) {
		execl("/proc/self/exe", "own_program", "other", NULL);
		_exit(1);
	}
	wait(NULL);
	node(20);
	check(seam_fdr_stop(), "stop");
	say("leaf", 120);
}

/* It ends without a word; @end does. */
static void ended(const char *end)
{
	start();
	for (int i = 0; i < MANY / 10; i++)
		node(10);
	say("leaf", MANY);
	if (strcmp(end, "_exit") == 0)
		_exit(0);
	if (strcmp(end, "abort") == 0)
		abort();
	kill(getpid(), SIGKILL);
}

/* What a daemon does to descriptors that it did not open. */
static void closed(void)
{
	start();
	for (int i = 0; i < MANY / 20; i++)
		node(10);
	for (int fd = 3; fd < 1000; fd++)
		close(fd);
	if (!tmpfile() || !tmpfile() || !tmpfile())
		exit(1);
	for (int i = 0; i < MANY / 20; i++)
		node(10);
	check(seam_fdr_stop() == -EBADF ? 0 : -1, "stop");
	say("leaf", MANY);
}

/* A daemon that gives up what it has. */
static void jailed(void)
{
	start();
	check(chroot("/proc/self/fdinfo") ? -errno : 0, "chroot");
	check(setuid(65534) ? -errno : 0, "setuid");
	for (int i = 0; i < MANY / 10; i++)
		node(10);
	(void)seam_fdr_stop();
	say("leaf", MANY);
}

/* One that uses all of its descriptors. */
static void crowded(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 16;
	setrlimit(RLIMIT_NOFILE, &limit);
	start();
	say("first", (unsigned long)dup(0));
	while (dup(0) >= 0)
		;
	for (int i = 0; i < MANY / 10; i++)
		node(10);
	say("lost", seam_fdr_lost());
	for (int fd = 3; fd < 12; fd++)
		close(fd);
	check(seam_fdr_stop(), "stop");
	say("leaf", MANY);
}

/* Once slow, and what led up to it. */
CALLED static void maybe_slow(int is_slow)
{
	leaf(3);
	if (is_slow)
		usleep(20000);
}

static void flight(void)
{
	char folder[4096];

	start();
	for (int i = 0; i < MANY; i++)
		node(10);
	maybe_slow(0);
	snprintf(folder, sizeof(folder), "%s.snapshot", seam_fdr_path());
	check(seam_fdr_snapshot(folder), "snapshot");
	maybe_slow(1);
	for (int i = 0; i < MANY; i++)
		node(10);
	check(seam_fdr_stop(), "stop");
}

/* Calls of its own making, with arguments. */
static void registered(void)
{
	static const uint64_t arguments[] = { 11, 22, 33 };
	uint32_t in_child;
	uint32_t id = seam_fdr_register_function("request 'é'");

	start();
	say("functions", (unsigned long)seam_fdr_find("*", NULL, 0));
	check(seam_fdr_unpatch_functions("leaf") != 1, "unpatch");
	for (int i = 0; i < 10; i++) {
		seam_fdr_log_entry(id, arguments, 3);
		leaf(1);
		seam_fdr_log_exit(id);
	}
	say("id", id);
	if (fork() == 0) {
		in_child = seam_fdr_register_function("in child");
		seam_fdr_log_entry(in_child, NULL, 0);
		seam_fdr_log_entry(id, NULL, 0);
		seam_fdr_log_exit(id);
		seam_fdr_log_exit(in_child);
		exit(0);
	}
	wait(NULL);
	check(seam_fdr_stop(), "stop");
}

/* Patched and unpatched while it records. */
static void selected(void)
{
	uint32_t ids[2] = { 0, 0 };

	start();
	node(10);
	check(seam_fdr_unpatch_functions("lea?") != 1, "unpatch");
	node(10);
	check(seam_fdr_find("leaf", ids, 2) != 1, "find");
	check(seam_fdr_patch_id(ids[0]), "patch_id");
	node(10);
	check(seam_fdr_unpatch_functions("*") < 2, "unpatch all");
	node(10);
	check(seam_fdr_patch_functions("node") != 1, "patch");
	node(10);
	check(seam_fdr_patch_id(ids[0]), "patch_id");
	node(10);
	check(seam_fdr_unpatch_id(ids[0]), "unpatch_id");
	node(10);
	check(seam_fdr_stop(), "stop");
	say("node", 6);
	say("leaf", 30);
}

static int n_expected;

static void expect(int is_so, const char *what)
{
	n_expected++;
	if (!is_so)
		printf("not %s\n", what);
}

#define EXPECT(condition) expect(condition, #condition)

static void expect_names(void)
{
	char name[32];

	EXPECT(seam_fdr_register_type("") == -EINVAL);
	EXPECT(seam_fdr_register_type("a") == 1);
	EXPECT(seam_fdr_register_type("b") == 2);
	EXPECT(seam_fdr_register_type("a") == 1);
	for (int i = 3; i <= 1024; i++) {
		snprintf(name, sizeof(name), "type %d", i);
		EXPECT(seam_fdr_register_type(name) == i);
	}
	EXPECT(seam_fdr_register_type("one more") == -ENOSPC);
	EXPECT(seam_fdr_register_type("type 1024") == 1024);
	for (int i = 0; i < 65536; i++)
		EXPECT(seam_fdr_register_function("f") != 0);
	EXPECT(seam_fdr_register_function("f") == 0);
}

static void expect_before(void)
{
	uint32_t id;

	EXPECT(seam_fdr_stop() == 0);
	EXPECT(seam_fdr_snapshot(NULL) == -ENOENT);
	EXPECT(seam_fdr_snapshot("x.seam") == -ENOENT);
	EXPECT(seam_fdr_path()[0] == 0);
	EXPECT(seam_fdr_lost() == 0);
	EXPECT(seam_fdr_patch_functions("leaf") == -EAGAIN);
	EXPECT(seam_fdr_unpatch_functions("leaf") == -EAGAIN);
	EXPECT(seam_fdr_patch_id(1) == -EAGAIN);
	EXPECT(seam_fdr_unpatch_id(1) == -EAGAIN);
	EXPECT(seam_fdr_find("leaf", &id, 1) == -EAGAIN);
	seam_fdr_log_event("x", 1);
	seam_fdr_log_typed(1, "x", 1);
	seam_fdr_log_entry(1, NULL, 0);
	seam_fdr_log_exit(1);
}

static void expect_while_on(void)
{
	uint32_t ids[4] = { 0 };

	EXPECT(seam_fdr_start("") == -EALREADY);
	EXPECT(seam_fdr_path()[0] == '/');
	EXPECT(seam_fdr_snapshot("x.seam") == -ENOTSUP);
	EXPECT(seam_fdr_snapshot(NULL) == -ENOTSUP);
	EXPECT(seam_fdr_find("leaf", ids, 4) == 1 && ids[0] && !ids[1]);
	EXPECT(seam_fdr_find("*", ids, 2) > 4 && ids[1] > ids[0]);
	EXPECT(seam_fdr_find("no_such", ids, 4) == -ENOENT);
	EXPECT(seam_fdr_patch_functions("no_such") == -ENOENT);
	EXPECT(seam_fdr_patch_id(0) == -ENOENT);
	EXPECT(seam_fdr_patch_id(1 << 27) == -ENOENT);
	errno = 77;
	leaf(1);
	EXPECT(seam_fdr_stop() == 0 && errno == 77);
	EXPECT(seam_fdr_path()[0] == 0);
}

/* Every error that the header names, as far as a program can make it. */
static void errors(void)
{
	char file[] = "file.seam", why[64];
	int fd = open(file, O_CREAT | O_WRONLY, 0600);

	expect_before();
	EXPECT(seam_fdr_start("nonsense=1") == -EINVAL);
	EXPECT(seam_fdr_start("min=five") == -EINVAL);
	EXPECT(seam_fdr_start_why("min=five", why, sizeof(why)) == -EINVAL &&
	       strstr(why, "min=five: not a time"));
	EXPECT(seam_fdr_start("out=file.seam") == -EEXIST);
	EXPECT(seam_fdr_start("out=no/such/folder.seam") == -ENOENT);
	EXPECT(seam_fdr_path()[0] == 0);
	EXPECT(seam_fdr_start(NULL) == 0);
	expect_while_on();
	EXPECT(seam_fdr_start("flight=1;out=other.seam") == -EINVAL);
	EXPECT(seam_fdr_start("out=second.seam") == 0);
	leaf(1);
	EXPECT(seam_fdr_stop() == 0);
	expect_names();
	close(fd);
	unlink(file);
	say("expected", (unsigned long)n_expected);
}

/* As far as it is different. */
static void flight_errors(void)
{
	start();
	leaf(1);
	EXPECT(seam_fdr_snapshot(NULL) == -EINVAL);
	EXPECT(seam_fdr_snapshot("no/such/folder.seam") == -ENOENT);
	EXPECT(seam_fdr_snapshot(".") == -EEXIST);
	EXPECT(seam_fdr_snapshot("flight_1.seam") == 0);
	EXPECT(seam_fdr_snapshot(seam_fdr_path()) == -EINVAL);
	EXPECT(seam_fdr_snapshot("flight_1.seam") == 0);
	EXPECT(seam_fdr_stop() == 0);
	say("expected", (unsigned long)n_expected);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {
		{ "chunks", chunks }, { "threads", threads },
		{ "events", events }, { "builtins", builtins },
		{ "forked", forked }, { "locked", locked },
		{ "programs", programs },
		{ "again", again }, { "other", other }, { "closed", closed },
		{ "jailed", jailed }, { "crowded", crowded },
		{ "flight", flight }, { "registered", registered },
		{ "selected", selected }, { "errors", errors },
		{ "flight_errors", flight_errors },
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (argc > 1 && strcmp(argv[1], modes[i].name) == 0) {
			modes[i].run();
			return 0;
		}
	if (argc > 1)
		ended(argv[1]);
	return 2;
}
