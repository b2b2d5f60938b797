/* SPDX-License-Identifier: MIT */
/* sender.c - take, put, remove; wait; see sender.h */
#include "fleet/sender.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "fleet/spool_notes.h"

enum {
	FIRST_WAIT_MS = 500,
	LONGEST_WAIT_MS = 60000,
	/* Without a wakeup: files of an agent that was killed, a freed lock. */
	IDLE_WAIT_MS = 10000,
	LOCK_WAIT_MS = 500,
	/* Until a server has given up the request of a sender that was killed. */
	KILLED_WAIT_MS = 15000,
};

struct sending {
	const struct seam_sender *options;
	struct seam_fleet_store *store;		/* NULL: not open */
	int folder, lock;
	uint64_t n_missed;			/* by .store, that are counted */
	bool has_ended;				/* no more wakeups */
	int wait_ms;
};

static volatile sig_atomic_t must_stop;

static void stop(int signal)
{
	(void)signal;
	must_stop = 1;
}

/* ---- counts ---- */

static void failed(struct sending *s, const struct seam_err *err)
{
	struct seam_sender_counts *counts = s->options->counts;

	seam_err_text(err, counts->error);
	counts->error_ns = seam_clock_now(CLOCK_REALTIME);
	counts->n_failed++;
}

static void succeeded(struct sending *s, uint64_t n_bytes)
{
	struct seam_sender_counts *counts = s->options->counts;

	counts->n_sent++;
	counts->sent_bytes += n_bytes;
	counts->last_sent_ns = seam_clock_now(CLOCK_REALTIME);
	counts->n_failed = 0;
	s->wait_ms = FIRST_WAIT_MS;
}

/* What the second output has not. */
static void count_missed(struct sending *s)
{
	const struct seam_fleet_missed *missed = seam_fleet_missed(s->store);
	struct seam_sender_counts *counts = s->options->counts;

	if (!missed || missed->n_batches == s->n_missed)
		return;
	counts->n_missed += missed->n_batches - s->n_missed;
	s->n_missed = missed->n_batches;
	seam_err_text(&missed->why, counts->missed_error);
}

/* ---- one file ---- */

static int refuse(struct sending *s, struct seam_spool_item *item,
		  struct seam_bytes file, struct seam_err *err)
{
	struct seam_bytes note = { 0 };
	int r = seam_spool_note_losses((void *)(uintptr_t)
				       SEAM_SPOOL_REFUSED, file, &note);

	if (r == 0)
		r = seam_spool_refused(item, note, err);
	free((void *)(uintptr_t)note.data);
	s->options->counts->n_refused += r == 0;
	return r;
}

/* Whether an error of the store is one of the file, or may pass. */
static bool is_final(int r)
{
	return r < 0 && r != -EAGAIN && r != -ENOMEM && r != -EINTR;
}

/* The lock has a byte while a request is on its way. */
static int put(struct sending *s, struct seam_bytes file, struct seam_err *err)
{
	int r;

	if (pwrite(s->lock, "!", 1, 0) < 0)
		return seam_err_errno(err, "cannot write to the spool");
	r = seam_fleet_put(s->store, file, err);
	count_missed(s);
	if (ftruncate(s->lock, 0) < 0)
		return seam_err_errno(err, "cannot write to the spool");
	return r;
}

/* 0: the file is gone from the spool; -errno: it stays. */
static int send_item(struct sending *s, struct seam_spool_item *item,
		     struct seam_err *err)
{
	struct seam_file file = { 0 };
	int r = seam_file_read_fd(&file, item->lock, SEAM_SPOOL_MAX_FILE, err);

	if (r == 0)
		r = put(s, file.bytes, err);
	if (r == 0)
		r = seam_spool_sent(item, err);
	else if (is_final(r)) {
		failed(s, err);
		r = refuse(s, item, file.bytes, err);
	} else {
		goto out;
	}
	if (r == 0)
		succeeded(s, file.bytes.size);
out:
	seam_file_close(&file);
	return r;
}

/* 0: one is gone; -ENOENT: none waits; or -errno. */
static int send_oldest(struct sending *s, struct seam_err *err)
{
	struct seam_spool_item item;
	int r = 0;

	*err = (struct seam_err) { 0 };
	if (!s->store)
		r = seam_fleet_open(&s->store, &s->options->place, err);
	if (r == 0)
		r = seam_spool_take(&item, s->folder, err);
	if (r < 0)
		return r;
	r = send_item(s, &item, err);
	seam_spool_release(&item);
	return r;
}

/* ---- the loop ---- */

/* Read the wakeups there are; false: there is nothing more to come. */
static bool read_wakeups(int fd)
{
	char bytes[256];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Wait for @ms; where @is_idle, no longer than until a wakeup. */
static void wait_ms(struct sending *s, int ms, bool is_idle)
{
	uint64_t end_ns = seam_clock_ns() + (uint64_t)ms * SEAM_NS_PER_MS;

	while (!s->has_ended && !must_stop) {
		struct pollfd wakeup = { s->options->wakeups, POLLIN, 0 };
		uint64_t now_ns = seam_clock_ns();
		struct timespec timeout;

		if (now_ns >= end_ns)
			return;
		timeout.tv_sec = (time_t)((end_ns - now_ns) / SEAM_NS_PER_S);
		timeout.tv_nsec = (long)((end_ns - now_ns) % SEAM_NS_PER_S);
		if (ppoll(&wakeup, 1, &timeout, s->options->mask) <= 0)
			continue;
		s->has_ended = !read_wakeups(wakeup.fd);
		if (is_idle)
			return;
	}
}

/* Many agents whose store was away must not all come back at once. */
static int jittered(int ms)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		return ms;
	return ms + (int)(random % (uint32_t)(ms / 2 + 1));
}

static void run(struct sending *s)
{
	const struct timespec now = { 0, 0 };
	struct seam_err err;

	while (!must_stop) {
		int r = send_oldest(s, &err);

		/* a signal that has come meanwhile */
		ppoll(NULL, 0, &now, s->options->mask);
		if (r == 0)
			continue;
		if (r != -ENOENT)
			failed(s, &err);
		if (s->has_ended)
			return;
		if (r == -ENOENT) {
			wait_ms(s, IDLE_WAIT_MS, true);
			continue;
		}
		wait_ms(s, jittered(s->wait_ms), false);
		s->wait_ms = 2 * s->wait_ms < LONGEST_WAIT_MS ?
			     2 * s->wait_ms : LONGEST_WAIT_MS;
	}
}

int seam_sender_run(const struct seam_sender *options, struct seam_err *err)
{
	struct sending s = { .options = options, .wait_ms = FIRST_WAIT_MS };
	struct sigaction action = { .sa_handler = stop };
	bool is_early = false;
	struct stat st;

	s.folder = seam_spool_folder(options->spool, err);
	if (s.folder < 0)
		return s.folder;
	fcntl(options->wakeups, F_SETFL, O_NONBLOCK);
	sigaction(SIGTERM, &action, NULL);
	/* that of an agent before may still be sending */
	while ((s.lock = seam_spool_lock(s.folder, "sender.lock", err)) ==
	       -EAGAIN && !s.has_ended && !must_stop)
		wait_ms(&s, LOCK_WAIT_MS, false);
	if (s.lock >= 0 && fstat(s.lock, &st) == 0 && st.st_size) {
		wait_ms(&s, KILLED_WAIT_MS, false);
		is_early = s.has_ended || must_stop;
	}
	if (s.lock >= 0 && !is_early)
		run(&s);
	if (s.store)
		seam_fleet_close(s.store);
	seam_file_close_fd(s.lock);
	close(s.folder);
	return s.lock == -EAGAIN || s.lock >= 0 ? 0 : s.lock;
}

void seam_sender_drop_rights(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct none[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
	const struct rlimit no_core = { 0, 0 };

	for (unsigned long i = 0; i <= CAP_LAST_CAP; i++)
		prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	syscall(SYS_capset, &header, none);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* it holds credentials: no core, no ptrace() by its user */
	setrlimit(RLIMIT_CORE, &no_core);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}
