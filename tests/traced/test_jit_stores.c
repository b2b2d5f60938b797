/* SPDX-License-Identifier: MIT */
/*
 * test_jit_stores.c - a fork, or a death, between any two stores of a call
 *
 * A call is single-stepped.  After each instruction that changed the writer's
 * data the process forks, as if another thread had; or the thread ends.  The
 * child, or the next call, must find every piece of code that was loaded,
 * once, and the one that the call was about once or not at all.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "jit_written.h"
#include "ring/link/link_client.h"
#include "ring/ring_memory.h"

#if defined(__x86_64__)

enum { DATA_BYTES = 4096, N_RINGS = 8, TRAP_FLAG = 0x100,
       DONE = 42 };		/* exit status: the call came to its end */

static struct seam_jitdump *dump;
static struct seam_ring_memory rings;
static uint64_t moved, gone, stays;	/* ids */

/* In place of the recorder, that of the test. */
int __wrap_seam_link_client_connect(struct seam_link_client *c);

int __wrap_seam_link_client_connect(struct seam_link_client *c)
{
	*c = (struct seam_link_client) {
		.socket = -1, .wakeup_fd = -1, .wakeup.fd = -1,
		.memories[0] = rings,
	};
	return 0;
}

static void make_rings(void)
{
	static const struct seam_ring_geometry geometry = {
		.n_slots = N_RINGS, .data_bytes = DATA_BYTES,
	};
	int fd = seam_ring_memory_create(&rings, &geometry, NULL);

	assert_true(fd >= 0);
	close(fd);
	for (int i = 0; i < N_RINGS; i++)
		atomic_store(&rings.slots[i].word,
			     seam_ring_word(SEAM_RING_FREE, 0, 0));
}

/* ---- what is written ---- */

static uint8_t text[1 << 20];		/* a dump, of a file or of our ring */
static size_t n_text;
static uint64_t ring_tail;		/* what is before it is in text */

static struct seam_ring_control *our_ring(void)
{
	return dump->stream.claim.ring.control;
}

/* As if the recorder had not read enough of it. */
static void leave_room(size_t size)
{
	our_ring()->data_tail = our_ring()->data_head + size - DATA_BYTES;
}

/* The chunks in our ring, one after another, are a dump. */
static void drain_ring(void)
{
	const uint8_t *data = dump->stream.claim.ring.data;

	while (ring_tail != our_ring()->data_head) {
		uint8_t record[DATA_BYTES];
		struct seam_ring_header header;
		uint32_t size;

		for (size_t i = 0; i < sizeof(record); i++)
			record[i] = data[(ring_tail + i) % DATA_BYTES];
		memcpy(&header, record, sizeof(header));
		memcpy(&size, record + 12, sizeof(size));
		memcpy(text + n_text, record + 16, size);
		n_text += size;
		ring_tail += header.size;
	}
	our_ring()->data_tail = ring_tail;
}

static void read_file(void)
{
	FILE *file = fopen(seam_jitdump_path(dump), "r");

	n_text = file ? fread(text, 1, sizeof(text), file) : 0;
	if (file)
		fclose(file);
}

static void read_dump(void)
{
	if (!dump->stream.is_on)
		read_file();
	else
		do
			drain_ring();
		while (seam_jitdump_flush(dump) == -ENOBUFS ||
		       our_ring()->data_head != ring_tail);
}

/* The names of all loads, and M for a move. */
static bool is_written(const char *form, bool is_child)
{
	char names[64] = "";
	size_t n = 0;
	struct seam_jitdump_record rec;
	struct seam_jitdump_debug_entry line;
	struct seam_jitdump_lines lines;
	struct seam_jitdump_reader r;

	read_dump();
	if (seam_jitdump_begin(&r, (struct seam_bytes) { text, n_text }, NULL))
		return false;
	while (seam_jitdump_next(&r, &rec) && n < sizeof(names) - 1) {
		if (rec.id == SEAM_JITDUMP_LOAD)
			names[n++] = rec.load.name[0];
		if (rec.id == SEAM_JITDUMP_MOVE)
			names[n++] = 'M';
		if (rec.id != SEAM_JITDUMP_DEBUG_INFO || !is_child)
			continue;
		lines = seam_jitdump_lines_make(&rec.debug_info, r.endian);
		if (!seam_jitdump_line(&lines, &line) ||
		    rec.debug_info.code_addr % 0x1000 ||
		    line.code_addr != rec.debug_info.code_addr + 2)
			return false;
	}
	if (r.tail_bytes || seam_jitdump_lost(dump) ||
	    (dump->stream.is_on && n > our_ring()->program.n_offered))
		return false;
	/* "?x": an x or none */
	n = 0;
	for (; *form || names[n]; form++) {
		if (*form == '?')
			n += names[n] == *++form;
		else if (names[n++] != *form)
			return fprintf(stderr, "# %s\n", names), false;
	}
	return true;
}

/* ---- one step at a time ---- */

static volatile bool is_stepping;
static void (*at_change)(void);

static size_t copy(uint8_t *to, size_t n, const void *from, size_t size)
{
	memcpy(to + n, from, size);
	return n + size;
}

/* Those of loaded code, and where their records begin. */
static size_t copy_blocks(uint8_t *to, size_t n)
{
	const struct seam_writer_entries *entries = &dump->out->entries;

	for (size_t i = 0; i < entries->n; i++)
		if (entries->items[i].size)
			n = copy(to, n, entries->items[i].records.block,
				 sizeof(struct seam_stream_block) + 64);
	return n;
}

/* What the stores of a call may change; of other records not the bytes. */
static size_t snapshot(uint8_t *to)
{
	struct seam_writer_stream *s = &dump->stream;
	size_t n = copy(to, 0, dump, offsetof(struct seam_jitdump, outputs));

	for (int i = 0; i < 2; i++) {
		struct seam_writer_output *out = &dump->outputs[i];

		n = copy(to, n, out, offsetof(struct seam_writer_output,
					      file.path));
		n = copy(to, n, &out->buffer, sizeof(out->buffer));
		n = copy(to, n, &out->entries, sizeof(out->entries));
		n = copy(to, n, out->entries.items, out->entries.n *
			 sizeof(*out->entries.items));
	}
	n = copy(to, n, s, offsetof(struct seam_writer_stream, client));
	for (struct seam_stream_block *b = s->head; b; b = b->next)
		n = copy(to, n, b, sizeof(*b));
	if (s->has_ring) {
		n = copy(to, n, &our_ring()->program, sizeof(our_ring()->program));
		n = copy(to, n, &our_ring()->data_head, 8);
	}
	return s->is_on ? copy_blocks(to, n) : n;
}

static bool is_changed(void)
{
	static uint8_t states[2][16384];
	static size_t sizes[2];
	static int now;

	now ^= 1;
	sizes[now] = snapshot(states[now]);
	return sizes[0] != sizes[1] ||
	       memcmp(states[0], states[1], sizes[0]) != 0;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	ucontext_t *c = context;

	(void)signal;
	(void)info;
	if (!is_stepping) {
		c->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
		return;
	}
	c->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
	if (is_changed())
		at_change();
}

static void step(void (*call)(void))
{
	struct sigaction action = { .sa_sigaction = on_trap,
				    .sa_flags = SA_SIGINFO };

	sigaction(SIGTRAP, &action, NULL);
	is_changed();
	is_stepping = true;
	raise(SIGTRAP);
	call();
	is_stepping = false;
}

/* ---- calls ---- */

/* More than the least chunk; see leave_room(). */
static const uint8_t code_bytes[600];

static uint64_t load_lines(const char *name, uint64_t addr)
{
	static const struct seam_jitdump_line line = {
		.offset = 2, .line = 5, .file = "x.lua" };
	struct seam_jitdump_code code = {
		.name = name, .bytes = code_bytes, .size = sizeof(code_bytes),
		.addr = addr, .lines = &line, .n_lines = 1,
	};

	seam_jitdump_load(dump, &code, 1);
	return code.id;
}

static void load_new(void) { load_lines("n", 0x5000); }
static void move_one(void) { seam_jitdump_move(dump, stays, 0x6000); }
static void unload_one(void) { seam_jitdump_unload(dump, stays); }
static void flush(void) { seam_jitdump_flush(dump); }

enum place { A_FILE, A_BUFFER, A_RING, A_FULL_RING };

struct scenario {
	enum place place;
	void (*call)(void);
	const char *by_next;	/* as is_written(), after a death */
	const char *by_child;	/* after a fork */
};

static struct scenario scenario;

/* a, which has moved; g, which is unloaded; s */
static void set_up(void)
{
	struct seam_jitdump_options options = {
		.folder = scenario.place < A_RING ? folder : NULL,
		.is_buffered = scenario.place == A_BUFFER,
	};

	make_rings();
	n_text = ring_tail = 0;
	setenv("SEAM_LINK", "the test", 1);
	assert_int_equal(seam_jitdump_open(&dump, &options), 0);
	assert_int_equal(dump->stream.is_on, scenario.place >= A_RING);
	moved = load_lines("a", 0x1000);
	gone = load_lines("g", 0x2000);
	stays = load_lines("s", 0x4000);
	seam_jitdump_unload(dump, gone);
	seam_jitdump_move(dump, moved, 0x3000);
	if (scenario.place >= A_RING)
		read_dump();
	if (scenario.place == A_FULL_RING)
		leave_room(700);
}

static bool goes_on(const char *form, bool is_child)
{
	load_lines("o", 0x7000);
	if (is_child) {
		n_text = 0;
		ring_tail = our_ring() ? our_ring()->data_tail : 0;
	}
	seam_jitdump_flush(dump);
	return is_written(form, is_child);
}

/* ---- forks ---- */

static void fork_and_check(void)
{
	struct seam_ring_claim *claim = &dump->stream.claim;
	int status;
	pid_t pid = fork();

	if (!pid) {
		is_stepping = false;
		alarm(20);
		status = !goes_on(scenario.by_child, true);
		if (scenario.place >= A_RING)
			atomic_store(&rings.slots[claim->slot].word,
				     seam_ring_word(SEAM_RING_FREE, 0, 0));
		else
			unlink(seam_jitdump_path(dump));
		_exit(status);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		_exit(1);
}

/* Run @work in a child; its exit status. */
static int status_of(int (*work)(int), int n)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(work(n));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int call_with_forks(int n)
{
	(void)n;
	at_change = fork_and_check;
	step(scenario.call);
	return 0;
}

static int set_up_and(int (*work)(int), bool in_child, int n)
{
	set_up();
	return in_child ? status_of(work, n) : work(n);
}

/* ---- deaths ---- */

static int n_changes, die_at;
static bool is_orphan;

static void end_thread(void)
{
	if (++n_changes == die_at)
		syscall(SYS_exit, 0);
}

static void *call_with_death(void *is_done)
{
	at_change = end_thread;
	step(scenario.call);
	*(bool *)is_done = true;
	return NULL;
}

static int die(int n)
{
	bool is_done = false;
	pthread_t thread;

	alarm(20);
	die_at = n;
	pthread_create(&thread, NULL, call_with_death, &is_done);
	pthread_join(thread, NULL);
	if (is_done)
		return DONE;
	return !goes_on(is_orphan ? scenario.by_child : scenario.by_next,
			is_orphan);
}

static int set_up_and_die(int n)
{
	return set_up_and(die, is_orphan, n);
}

static int set_up_and_fork(int n)
{
	return set_up_and(call_with_forks, is_orphan, n);
}

static void at_each_store(const struct scenario *which, bool in_child)
{
	int status = 0, n = 1;

	scenario = *which;
	is_orphan = in_child;
	if (scenario.by_child)
		assert_int_equal(status_of(set_up_and_fork, 0), 0);
	/* A child's first call changes much: each third of it is enough. */
	for (; !status; n += in_child ? 3 : 1)
		status = status_of(set_up_and_die, n);
	assert_int_equal(status, DONE);
	assert_true(n > 5);
}

#define AT_EACH_STORE(name, in_child, ...)				\
static void name(void **state)						\
{									\
	static const struct scenario scenarios[] = { __VA_ARGS__ };	\
									\
	(void)state;							\
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(scenarios); i++)		\
		at_each_store(&scenarios[i], in_child);			\
}

AT_EACH_STORE(a_load_to_a_file, false,
	      { A_FILE, load_new, "agsM?no", "as?no" },
	      { A_BUFFER, load_new, "agsM?no", "as?no" })
AT_EACH_STORE(a_move_in_a_file, false,
	      { A_FILE, move_one, "agsM?Mo", "aso" })
AT_EACH_STORE(a_flush, false,
	      { A_BUFFER, flush, "agsMo", "aso" })
AT_EACH_STORE(a_load_to_a_ring, false,
	      { A_RING, load_new, "agsM?no", "as?no" },
	      { A_FULL_RING, load_new, "agsM?no", "as?no" })
AT_EACH_STORE(a_move_and_an_unload_in_a_ring, false,
	      { A_RING, move_one, "agsM?Mo", "aso" },
	      { A_RING, unload_one, "agsMo", "a?so" })
AT_EACH_STORE(the_first_call_of_a_child, true,
	      { A_FILE, load_new, NULL, "as?no" },
	      { A_BUFFER, flush, NULL, "aso" },
	      { A_FULL_RING, load_new, NULL, "as?no" })

int main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, make_folder, drop_folder)
	const struct CMUnitTest tests[] = {
		TEST(a_load_to_a_file),
		TEST(a_move_in_a_file),
		TEST(a_flush),
		TEST(a_load_to_a_ring),
		TEST(a_move_and_an_unload_in_a_ring),
		TEST(the_first_call_of_a_child),
	};

	return cmocka_run_group_tests_name("jit_stores", tests, NULL, NULL);
}

#else		/* no way to step */

int main(void)
{
	return 77;
}

#endif
