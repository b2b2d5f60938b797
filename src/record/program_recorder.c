/* SPDX-License-Identifier: MIT */
/* program_recorder.c - begin, rounds, finish; see record.h */
#include "record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "record/bundle/bundle.h"
#include "record/services/fdr_service.h"
#include "record/services/services.h"
#include "symbol/kernel/kernel.h"
#include "wire/manifest.h"

enum {
	WAIT_MS = 256,		/* between rounds without a wakeup */
	CHECK_NS = 1000 * 1000 * 1000,	/* between looks at processes */
	FIRST_MS = 10000,	/* until the program connects */
};

/* A process that has rings, or may have: there are no records of its exec. */
struct watched_process {
	pid_t pid;
	dev_t device;			/* of what it executes */
	ino_t inode;
};

struct program_recorder {
	int control;			/* -1: the program has closed it */
	struct seam_bundle bundle;
	struct seam_file command;	/* of the program: words with a NUL each */
	SEAM_ARRAY(const char *) words;
	struct seam_tsc_tie start;
	struct seam_services services;
	struct seam_fdr_service fdr;
	struct seam_trace_logs logs;
	SEAM_ARRAY(struct watched_process) processes;
	uint64_t checked_ns;
	bool has_target;		/* a program has connected */
	bool is_flight;			/* it writes what it has kept */
};

static volatile sig_atomic_t must_end;

static void end_soon(int signal)
{
	(void)signal;
	must_end = 1;
}

/*
 * What the program blocked is not blocked here, a write to a full disk is only
 * an error, and the program's soft limits are for the program.
 */
static void set_signals_and_limits(void)
{
	static const int resources[] = { RLIMIT_NOFILE, RLIMIT_FSIZE };
	const struct sigaction end = { .sa_handler = end_soon };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct rlimit limit;
	sigset_t none;

	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(resources); i++) {
		if (getrlimit(resources[i], &limit))
			continue;
		limit.rlim_cur = limit.rlim_max;
		setrlimit(resources[i], &limit);
	}
}

static void reply(const struct program_recorder *p, int code, const char *text)
{
	struct seam_trace_reply message = { .code = code };

	snprintf(message.text, sizeof(message.text), "%.255s", text);
	/* a program that has ended needs none */
	(void)send(p->control, &message, sizeof(message), MSG_NOSIGNAL);
}

/* ---- begin ---- */

/* Without a command or memory the manifest has none. */
static void read_command(struct program_recorder *p, pid_t pid)
{
	struct seam_bytes *all = &p->command.bytes;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	if (seam_file_read(&p->command, AT_FDCWD, path, 1 << 20, NULL))
		return;
	for (size_t at = 0; at < all->size;) {
		const char *word = (const char *)all->data + at;
		size_t n = strnlen(word, all->size - at);

		if (at + n == all->size || !SEAM_ARRAY_ADD(&p->words, word))
			break;
		at += n + 1;
	}
}

/* Write meta.json in the place of the one before. */
static int write_manifest(struct program_recorder *p, struct seam_manifest *m)
{
	const struct seam_tsc_tie ties[] = { p->start, seam_tsc_tie_now() };
	char boot_id[SEAM_BOOT_ID_TEXT];
	struct utsname host = { 0 };
	int dir = p->bundle.dir, r;
	int fd = openat(dir, "meta.json.part", O_WRONLY | O_CREAT | O_TRUNC |
			O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	seam_kernel_boot_id(boot_id);
	(void)uname(&host);
	m->version = "seam " SEAM_VERSION;
	m->words = p->words.items;
	m->n_words = p->words.n;
	m->host = host.nodename;
	m->release = host.release;
	m->arch = host.machine;
	m->boot_id = boot_id;
	if (!m->n_ties) {
		m->ties = ties;
		m->n_ties = SEAM_ARRAY_SIZE(ties);
	}
	m->start_ns = p->start.ns;
	m->duration_ns = ties[1].ns - p->start.ns;
	m->start_wall_ns = seam_clock_now(CLOCK_REALTIME) - m->duration_ns;
	r = seam_manifest_write(fd, m, NULL);
	if (close(fd) && !r)
		r = -errno;
	if (!r && renameat(dir, "meta.json.part", dir, "meta.json"))
		r = -errno;
	if (r)
		unlinkat(dir, "meta.json.part", 0);
	return r;
}

static int begin(struct program_recorder *p, const char *path,
		 const char *since, struct seam_err *err)
{
	struct seam_manifest m = { .overwrite = since != NULL };
	struct seam_tsc_tie *first = &p->fdr.clock.ties[0];
	struct ucred starter = { .pid = 0 };
	socklen_t size = sizeof(starter);
	char *end;
	int r, xray;

	seam_fdr_service_init(&p->fdr, 0);
	p->is_flight = since != NULL;
	/* ticks of the calls are older than this process */
	if (since) {
		first->tsc = strtoull(since, &end, 10);
		first->ns = strtoull(*end ? end + 1 : end, NULL, 10);
	}
	p->services.believes_claims = true;
	seam_services_add(&p->services, &p->fdr.functions);
	seam_services_add(&p->services, &p->fdr.calls);
	r = seam_bundle_create(&p->bundle, path, err);
	if (r < 0)
		return r;
	/* by it a bundle of calls is known */
	xray = seam_bundle_folder(&p->bundle, "xray", err);
	if (xray < 0)
		return xray;
	close(xray);
	/* the process at the other end of the socket pair made the pair */
	getsockopt(p->control, SOL_SOCKET, SO_PEERCRED, &starter, &size);
	read_command(p, starter.pid);
	p->start = *first;
	seam_trace_logs_init(&p->logs, &p->bundle, &p->fdr.clock);
	p->fdr.logs = &p->logs;
	seam_services_open(&p->services, err);
	if (!p->services.is_open)
		return err->code ? err->code : -ENOMEM;
	r = write_manifest(p, &m);
	if (r)
		return seam_err_set(err, r, "cannot write 'meta.json': %s",
				    strerror(-r));
	return seam_bundle_place(&p->bundle, err);
}

/* ---- rounds ---- */

/*
 * What @pid executes, zeros where that is not for us; false: it is no process,
 * or a zombie.
 */
static bool find_executable(pid_t pid, struct watched_process *found)
{
	char path[32];
	struct stat st = { 0 };

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (stat(path, &st) && errno == ENOENT)
		return false;
	*found = (struct watched_process) { pid, st.st_dev, st.st_ino };
	return true;
}

static void watch(struct program_recorder *p, pid_t pid)
{
	struct watched_process found;

	for (size_t i = 0; i < p->processes.n; i++)
		if (p->processes.items[i].pid == pid)
			return;
	if (find_executable(pid, &found))
		(void)SEAM_ARRAY_ADD(&p->processes, found);
}

static void see_task(struct program_recorder *p, uint32_t type, pid_t pid,
		     pid_t parent)
{
	struct seam_perf_sideband record = {
		.type = type, .sample_id.time = seam_clock_ns(),
	};

	if (type == PERF_RECORD_COMM) {
		record.misc = PERF_RECORD_MISC_COMM_EXEC;
		record.comm.pid = pid;
	} else {
		record.task.pid = record.task.tid = pid;
		record.task.ppid = parent;
	}
	seam_services_see_task(&p->services, &record);
}

/* The records of ends and execs that there are not. */
static void check_processes(struct program_recorder *p)
{
	size_t n = 0;

	p->checked_ns = seam_clock_ns();
	for (size_t i = 0; i < p->processes.n; i++) {
		struct watched_process was = p->processes.items[i], is;

		if (!find_executable(was.pid, &is))
			see_task(p, PERF_RECORD_EXIT, was.pid, 0);
		else if (is.device != was.device || is.inode != was.inode)
			see_task(p, PERF_RECORD_COMM, was.pid, 0);
		else
			p->processes.items[n++] = was;
	}
	p->processes.n = n;
}

static void drain(struct program_recorder *p)
{
	const struct seam_link_server *server = &p->services.server;

	/* programs may wait to be connected */
	p->services.is_ready = true;
	seam_services_copy(&p->services, false);
	for (size_t i = 0; i < server->n_targets; i++)
		watch(p, server->targets[i]->pid);
	if (seam_clock_ns() - p->checked_ns > CHECK_NS)
		check_processes(p);
	seam_services_learn(&p->services);
	seam_services_take(&p->services);
	p->has_target |= server->n_targets > 0;
}

/* Whether @request ends the recording. */
static bool take_request(struct program_recorder *p,
			 const struct seam_trace_request *request)
{
	if (request->kind == SEAM_TRACE_FORKED) {
		see_task(p, PERF_RECORD_FORK, request->pid, request->parent);
		seam_trace_functions_fork(&p->fdr.known, (uint32_t)request->pid,
					  (uint32_t)request->parent);
		watch(p, request->pid);
	}
	if (request->kind != SEAM_TRACE_EXIT)
		return request->kind == SEAM_TRACE_STOP;
	check_processes(p);
	drain(p);
	/* another process may have rings */
	for (size_t i = 0; i < p->processes.n; i++)
		if (p->processes.items[i].pid != request->pid) {
			reply(p, 0, "");
			return false;
		}
	return true;
}

static void run(struct program_recorder *p)
{
	const uint64_t begin_ns = seam_clock_ns();
	struct seam_trace_request request;
	bool ends = false;
	ssize_t n = 0;

	while (!ends && !must_end) {
		struct pollfd fds[] = {
			{ p->services.server.epoll_fd, POLLIN, 0 },
			{ p->control, POLLIN, 0 },
		};
		bool is_new = !p->has_target &&
			      seam_clock_ns() - begin_ns <
			      FIRST_MS * SEAM_NS_PER_MS;

		poll(fds, 2, p->services.server.is_behind ? 0 : WAIT_MS);
		/* forks before what the children record */
		while (fds[1].revents && !ends &&
		       (n = recv(p->control, &request, sizeof(request),
				 MSG_DONTWAIT)) == (ssize_t)sizeof(request))
			ends = take_request(p, &request);
		if (fds[1].revents && !ends &&
		    (n >= 0 || (errno != EAGAIN && errno != EINTR))) {
			/* the program has closed its end */
			close(p->control);
			p->control = -1;
		}
		drain(p);
		/* it is over, or never came */
		if (!is_new && !p->services.server.n_targets)
			ends = true;
	}
}

/* ---- finish ---- */

static bool goes_on(void *unused)
{
	(void)unused;
	return !must_end;
}

static int finish(struct program_recorder *p)
{
	const struct seam_trace_logs_caller caller = { .goes_on = goes_on };
	struct seam_manifest m = {
		.complete = true, .overwrite = p->is_flight,
	};
	uint64_t n_functions;
	int r, s;

	/* with the last round */
	seam_services_close(&p->services);
	seam_tsc_clock_end(&p->fdr.clock);
	seam_trace_logs_finish(&p->logs, &caller);
	r = seam_trace_functions_write(&p->fdr.known, &p->logs, 0,
				       &n_functions, NULL);
	seam_fdr_service_count(&p->fdr, &p->logs, &p->services, n_functions);
	m.counts = p->fdr.counts;
	m.ties = p->fdr.clock.ties;
	m.n_ties = p->fdr.clock.n;
	s = write_manifest(p, &m);
	seam_bundle_settle(&p->bundle);
	r = p->logs.why.code ? p->logs.why.code : r;
	return r ? r : s;
}

int seam_program_recorder_run(int control, const char *path, const char *since)
{
	struct program_recorder p = {
		.control = control, .bundle.dir = -1,
	};
	struct seam_err err = { 0 };
	int r;

	set_signals_and_limits();
	closefrom(control + 1);
	if (chdir("/"))
		return -errno;
	r = begin(&p, path, since, &err);
	reply(&p, r, r ? err.cause[0] : p.services.server.address);
	if (r == 0)
		run(&p);
	if (r == 0 && p.has_target) {
		r = finish(&p);
		reply(&p, r, "");
	} else if (p.bundle.dir >= 0) {
		seam_bundle_remove(&p.bundle);
	}
	seam_services_fini(&p.services);
	seam_trace_logs_fini(&p.logs);
	seam_fdr_service_fini(&p.fdr);
	seam_file_close(&p.command);
	free(p.words.items);
	free(p.processes.items);
	seam_bundle_close(&p.bundle);
	close(p.control);
	return r;
}
