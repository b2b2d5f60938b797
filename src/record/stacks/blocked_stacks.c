/* SPDX-License-Identifier: MIT */
/* blocked_stacks.c - which threads wait, reading one; see blocked_stacks.h */
#include "record/stacks/blocked_stacks.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#ifdef __x86_64__
#include <asm/perf_regs.h>
#endif

#define READ_NS (SEAM_NS_PER_S / SEAM_BLOCKED_HZ)
#define BURST_NS (SEAM_NS_PER_S / 10)

enum {
	LONGEST_WAIT_MS = 16,	/* of the recorder, where waits may begin */
	MAX_LINE = 256,		/* of syscall and schedstat */
	PAGE_BYTES = 4096,
};

struct seam_blocked_thread {
	uint32_t pid, tid;		/* 0: a free slot */
	uint32_t next, previous;	/* slots, and 1; 0: none */
	bool is_due;			/* it is in the list */
	bool is_refused;
	bool is_attached;		/* and had no SWITCH record yet */
	bool has_stack;			/* of the wait that begins next */
	uint64_t out_ns;		/* the wait that is not read yet */
	int syscall_fd, schedstat_fd, pagemap_fd;	/* 0: not open */
};

/* ---- which threads wait ---- */

static void leave_list(struct seam_blocked_stacks *b,
		       struct seam_blocked_thread *t)
{
	if (!t->is_due)
		return;
	*(t->previous ? &b->threads[t->previous - 1].next : &b->first) =
		t->next;
	*(t->next ? &b->threads[t->next - 1].previous : &b->last) =
		t->previous;
	t->is_due = false;
}

static void join_list(struct seam_blocked_stacks *b,
		      struct seam_blocked_thread *t)
{
	uint32_t slot = (uint32_t)(t - b->threads) + 1;

	t->next = 0;
	t->previous = b->last;
	*(b->last ? &b->threads[b->last - 1].next : &b->first) = slot;
	b->last = slot;
	t->is_due = true;
}

static void close_files(struct seam_blocked_stacks *b,
			struct seam_blocked_thread *t)
{
	if (!t->syscall_fd)
		return;
	close(t->syscall_fd);
	close(t->schedstat_fd);
	close(t->pagemap_fd);
	t->syscall_fd = t->schedstat_fd = t->pagemap_fd = 0;
	b->n_open--;
}

static void forget(struct seam_blocked_stacks *b, struct seam_blocked_thread *t)
{
	leave_list(b, t);
	close_files(b, t);
	*t = (struct seam_blocked_thread) { 0 };
}

static struct seam_blocked_thread *
thread_of(const struct seam_blocked_stacks *b, uint32_t tid)
{
	return &b->threads[tid % SEAM_BLOCKED_THREADS];
}

/* The slot of the thread, without another one's state. */
static struct seam_blocked_thread *slot_of(struct seam_blocked_stacks *b,
					   uint32_t pid, uint32_t tid)
{
	struct seam_blocked_thread *t = thread_of(b, tid);

	if (t->tid != tid || t->pid != pid) {
		forget(b, t);
		t->pid = pid;
		t->tid = tid;
	}
	return t;
}

static void add_wait(struct seam_blocked_stacks *b,
		     struct seam_blocked_thread *t, uint64_t time_ns)
{
	t->out_ns = time_ns;
	join_list(b, t);
	b->had_switch = true;
}

void seam_blocked_stacks_attach(struct seam_blocked_stacks *b, uint32_t pid,
				uint32_t tid, uint64_t time_ns)
{
	struct seam_blocked_thread *t;

	if (!b->threads || !tid)
		return;
	t = slot_of(b, pid, tid);
	leave_list(b, t);
	t->is_attached = true;
	add_wait(b, t, time_ns);
}

void seam_blocked_stacks_sample(struct seam_blocked_stacks *b, uint32_t pid,
				uint32_t tid)
{
	if (b->threads && tid)
		slot_of(b, pid, tid)->has_stack = true;
}

void seam_blocked_stacks_switch(struct seam_blocked_stacks *b, uint32_t pid,
				uint32_t tid, uint64_t time_ns, bool is_out,
				bool is_preempt)
{
	struct seam_blocked_thread *t;

	if (!b->threads || !tid)
		return;
	/* a wait that is to be read may follow: mostly none does of samples */
	b->had_switch |= !b->has_samples;
	t = slot_of(b, pid, tid);
	leave_list(b, t);
	if (is_out && !is_preempt && !t->is_refused && !t->has_stack)
		add_wait(b, t, time_ns);
	t->is_attached = t->has_stack = false;
}

void seam_blocked_stacks_sideband(struct seam_blocked_stacks *b,
				  const struct seam_perf_sideband *record)
{
	uint32_t tid = record->type == PERF_RECORD_EXIT ?
		       (uint32_t)record->task.tid :
		       record->type == PERF_RECORD_COMM &&
		       record->misc & PERF_RECORD_MISC_COMM_EXEC ?
		       (uint32_t)record->comm.tid : 0;

	/* after an exec other rights may hold */
	if (b->threads && tid && thread_of(b, tid)->tid == tid)
		forget(b, thread_of(b, tid));
}

/* ---- reading one ---- */

/* What /proc has of a thread, now. */
struct waiting {
	uint64_t number;	/* of the system call */
	uint64_t sp, pc;
	uint64_t n_runs;	/* how often it was switched in */
};

static int open_file(const struct seam_blocked_thread *t, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", t->pid, t->tid,
		 name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* 0 or a positive errno. */
static int open_files(struct seam_blocked_stacks *b,
		      struct seam_blocked_thread *t)
{
	struct stat owner;
	int error;

	if (t->syscall_fd)
		return 0;
	t->syscall_fd = open_file(t, "syscall");
	t->schedstat_fd = t->syscall_fd < 0 ? -1 : open_file(t, "schedstat");
	t->pagemap_fd = t->schedstat_fd < 0 ? -1 : open_file(t, "pagemap");
	error = t->pagemap_fd < 0 || fstat(t->syscall_fd, &owner) < 0 ? errno :
		owner.st_uid != geteuid() ? EPERM : 0;
	if (!error) {
		b->n_open++;
		return 0;
	}
	seam_file_close_fd(t->syscall_fd);
	seam_file_close_fd(t->schedstat_fd);
	seam_file_close_fd(t->pagemap_fd);
	t->syscall_fd = t->schedstat_fd = t->pagemap_fd = 0;
	return error;
}

/* Up to @n numbers of a line.  How many there are; or a negative errno. */
static int read_line(int fd, uint64_t *numbers, int n)
{
	char line[MAX_LINE], *at = line;
	ssize_t got = pread(fd, line, sizeof(line) - 1, 0);
	int i = 0;

	if (got < 0)
		return -errno;
	line[got] = '\0';
	for (char *end; i < n; i++, at = end) {
		/* "-1" and hexadecimal numbers */
		numbers[i] = strtoull(at, &end, 0);
		if (end == at)
			break;
	}
	return i;
}

/* How often the thread was switched in.  0 or a positive errno. */
static int read_runs(const struct seam_blocked_thread *t, uint64_t *n)
{
	uint64_t numbers[3];
	int r = read_line(t->schedstat_fd, numbers, 3);

	if (r < 0)
		return -r;
	/* one that waits has run: the kernel does not count */
	if (r < 3 || numbers[2] == 0)
		return ENOTSUP;
	*n = numbers[2];
	return 0;
}

/* 0 or a positive errno; EAGAIN: it runs. */
static int read_place(const struct seam_blocked_thread *t, struct waiting *w)
{
	enum { N_ARGUMENTS = 6, N = N_ARGUMENTS + 3 };
	uint64_t numbers[N];
	int r = read_line(t->syscall_fd, numbers, N);

	if (r < 0)
		return -r;
	/* without a system call there are no arguments */
	if (r != N && r != N - N_ARGUMENTS)
		return EAGAIN;
	w->number = numbers[0];
	w->sp = numbers[r - 2];
	w->pc = numbers[r - 1];
	return 0;
}

/*
 * Copy the stack from @sp on: pages that are in memory or swapped, with zeros
 * for those in between, which were never written to.  A page of another kind
 * may never come, as of a file system that hangs, and would block the recorder.
 * How many bytes; or a negative errno.
 *
 * Source: Documentation/admin-guide/mm/pagemap.rst: bits 63 and 62.
 */
static ssize_t copy_stack(const struct seam_blocked_thread *t, uint64_t sp,
			  uint8_t *to)
{
	uint64_t entries[SEAM_BLOCKED_STACK_BYTES / PAGE_BYTES + 1];
	struct iovec local[SEAM_ARRAY_SIZE(entries)];
	struct iovec remote[SEAM_ARRAY_SIZE(entries)];
	uint64_t at = sp, end = sp + SEAM_BLOCKED_STACK_BYTES, whole = sp;
	ssize_t got = pread(t->pagemap_fd, entries, sizeof(entries),
			    (off_t)(sp / PAGE_BYTES * sizeof(*entries)));
	unsigned long n = 0;
	size_t wanted = 0;

	if (got <= 0)
		return got < 0 ? -errno : -ESRCH;
	for (size_t i = 0; i < (size_t)got / sizeof(*entries) && at < end;
	     i++) {
		uint64_t next = (at / PAGE_BYTES + 1) * PAGE_BYTES;
		size_t bytes = (size_t)((next < end ? next : end) - at);

		if (entries[i] >> 62) {
			local[n] = (struct iovec) { to + (at - sp), bytes };
			remote[n++] = (struct iovec) {
				(void *)(uintptr_t)at, bytes,
			};
			whole = at + bytes;
			wanted += bytes;
		} else {
			memset(to + (at - sp), 0, bytes);
		}
		at += bytes;
	}
	if (n == 0)
		return -EFAULT;
	got = process_vm_readv((pid_t)t->tid, local, n, remote, n, 0);
	if (got < 0)
		return -errno;
	/* a page that has gone: what is behind it is not this thread's */
	return (size_t)got == wanted ? (ssize_t)(whole - sp) : -EFAULT;
}

static uint8_t *put(uint8_t *at, uint64_t word)
{
	memcpy(at, &word, sizeof(word));
	return at + sizeof(word);
}

/*
 * Write the sample, by seam_sources_common and seam_blocked_stacks_describe(),
 * with the stack from @w on; without one where .sp is 0.  0 or a positive errno.
 */
static int write_sample(struct seam_blocked_stacks *b,
			const struct seam_blocked_thread *t,
			const struct waiting *w)
{
	/* with a stack pointer below 4 GiB, of a 32-bit program */
	uint64_t abi = w->sp >> 32 ? PERF_SAMPLE_REGS_ABI_64 :
		       w->sp ? PERF_SAMPLE_REGS_ABI_32 :
			       PERF_SAMPLE_REGS_ABI_NONE;
	struct seam_perf_header header = {
		.type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER,
	};
	uint8_t *at = b->record + sizeof(header), *time;
	ssize_t got = 0;
	uint64_t size;

	at = put(at, b->event_id);
	at = put(at, w->pc);
	at = put(at, t->pid | (uint64_t)t->tid << 32);
	time = at;
	at = put(at, 0);
	at = put(at, UINT32_MAX);	/* no CPU */
	at = put(at, 1);		/* period */
	at = put(at, 0);		/* addresses in the callchain */
	at = put(at, abi);
	if (w->sp) {
		at = put(at, w->sp);
		at = put(at, w->pc);
		got = copy_stack(t, w->sp, at + sizeof(size));
	}
	if (got < 0)
		return (int)-got;
	put(time, seam_clock_ns());
	size = (uint64_t)got & ~7ULL;
	at = put(at, size) + size;
	if (size)
		at = put(at, size);	/* all of it is valid */
	at = put(at, w->number);	/* weight */
	header.size = (uint16_t)(at - b->record);
	memcpy(b->record, &header, sizeof(header));
	return 0;
}

static enum seam_blocked_result read_thread(struct seam_blocked_stacks *b,
					    struct seam_blocked_thread *t)
{
	struct waiting w = { .sp = 0 };
	uint64_t n_runs = 0;
	int error = open_files(b, t);

	if (!error)
		error = read_runs(t, &w.n_runs);
	if (!error)
		error = read_place(t, &w);
	if (!error)
		error = write_sample(b, t, &w);
	if (!error)
		error = read_runs(t, &n_runs);
	if (b->n_open > SEAM_BLOCKED_FDS)
		close_files(b, t);
	if (error == EPERM || error == EACCES || error == ENOTSUP)
		return SEAM_BLOCKED_REFUSED;
	return !error && n_runs == w.n_runs ? SEAM_BLOCKED_READ : SEAM_BLOCKED_RAN;
}

/*
 * Whether a thread waits, by what everybody may read: a sample without a stack.
 * Source: proc_pid_stat(5): the state follows the name in brackets, which may
 * have brackets too.
 */
static bool note_waiting(struct seam_blocked_stacks *b,
			 const struct seam_blocked_thread *t)
{
	const struct waiting w = { .number = SEAM_BLOCKED_NOT_READ };
	int fd = open_file(t, "stat");
	char line[MAX_LINE];
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	const char *state;

	seam_file_close_fd(fd);
	line[n < 0 ? 0 : n] = '\0';
	state = strrchr(line, ')');
	return state && state[1] && strchr("SDTt", state[2]) &&
	       write_sample(b, t, &w) == 0;
}

/* Whether one more read is within the rate. */
static bool is_allowed(struct seam_blocked_stacks *b, uint64_t now_ns)
{
	if (b->allowed_ns + BURST_NS < now_ns)
		b->allowed_ns = now_ns - BURST_NS;
	if (b->allowed_ns > now_ns)
		return false;
	b->allowed_ns += READ_NS;
	return true;
}

const void *seam_blocked_stacks_next(struct seam_blocked_stacks *b)
{
	uint64_t now_ns = seam_clock_ns();

	while (b->first) {
		struct seam_blocked_thread *t = &b->threads[b->first - 1];
		enum seam_blocked_result result = SEAM_BLOCKED_OVER_RATE;
		bool is_attached = t->is_attached;

		/* at the next look, a wait of the minimum may be over */
		if (t->out_ns + b->min_ns / 2 > now_ns)
			break;
		leave_list(b, t);
		if (is_allowed(b, now_ns))
			result = read_thread(b, t);
		b->n[result]++;
		t->is_refused = result == SEAM_BLOCKED_REFUSED;
		t->is_attached = false;
		if (result == SEAM_BLOCKED_READ ||
		    (is_attached && note_waiting(b, t)))
			return b->record;
	}
	return NULL;
}

int seam_blocked_stacks_wait_ms(struct seam_blocked_stacks *b, int wait_ms)
{
	int ms = b->min_ns > SEAM_NS_PER_MS * LONGEST_WAIT_MS ?
		 LONGEST_WAIT_MS : (int)(b->min_ns / SEAM_NS_PER_MS);

	if (!b->threads || (b->has_samples && !b->had_switch && !b->first))
		return wait_ms;
	/* after a switch there may be others; longer the longer there is none */
	if (!b->had_switch && !b->first)
		ms = LONGEST_WAIT_MS;
	b->had_switch = false;
	if (ms < 1)
		ms = 1;
	return ms < wait_ms ? ms : wait_ms;
}

/* ---- life ---- */

void seam_blocked_stacks_describe(struct perf_event_attr *attr)
{
	attr->sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
			    PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT;
#ifdef __x86_64__
	attr->sample_regs_user = UINT64_C(1) << PERF_REG_X86_SP |
				 UINT64_C(1) << PERF_REG_X86_IP;
#endif
	attr->sample_stack_user = SEAM_BLOCKED_STACK_BYTES;
}

int seam_blocked_stacks_init(struct seam_blocked_stacks *b, uint64_t min_ns,
			     struct seam_err *err)
{
	b->min_ns = min_ns;
	b->threads = calloc(SEAM_BLOCKED_THREADS, sizeof(*b->threads));
	b->record = malloc(UINT16_MAX);
	return b->threads && b->record ? 0 : seam_err_no_memory(err);
}

void seam_blocked_stacks_fini(struct seam_blocked_stacks *b)
{
	for (size_t i = 0; b->threads && i < SEAM_BLOCKED_THREADS; i++)
		close_files(b, &b->threads[i]);
	free(b->threads);
	free(b->record);
	*b = (struct seam_blocked_stacks) { 0 };
}
