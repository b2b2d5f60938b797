/* SPDX-License-Identifier: MIT */
/*
 * whole_stacks.c - joined stacks beside the whole stacks of the same moments
 *
 * whole_stacks_bench COMMAND [WORD...]: runs COMMAND, stops each of its
 * threads that runs once a millisecond (ptrace), and reads its registers and
 * the whole of its stack.  The recorder's own code (record/stacks) has copies
 * of 16, 24 and 48 KiB of it; what it makes of each is compared with the walk
 * of the whole.
 *
 *   cut        of all stacks, those that are deeper than the copy
 *   complete   as the recorder has them: to the root
 *   wrong      complete, and not equal to the whole stack, frame by frame
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "record/stacks/live_stacks.h"
#include "wire/perf/perf_registers.h"

enum {
	SIZES = 3, MAX_TASKS = 512, MAX_FRAMES = 16384, ROUND = 20,
	MAX_WHOLE = 8 << 20,
};

/* One size of copies, as a recorder of its own. */
struct size {
	uint32_t bytes;
	struct seam_perf_attr attr;
	struct seam_live_stacks stacks;
	struct seam_stack_counts counts;
	uint64_t n_cut, n_complete, n_wrong;
};

/* The whole stack of a sample; its time is its index. */
struct whole {
	uint64_t *pcs;
	size_t n;
	bool is_root;
};

struct task {
	int32_t tid, pid;
	uint64_t maps;		/* a hash of those that were announced */
};

static struct size sizes[SIZES] = {
	{ .bytes = 49152 }, { .bytes = 24576 }, { .bytes = 16384 },
};
static SEAM_ARRAY(struct whole) wholes;
static struct task tasks[MAX_TASKS];
static size_t n_tasks;
static struct seam_unwind_frame frames[MAX_FRAMES];
static uint8_t memory[MAX_WHOLE];
static uint64_t stack_end;		/* of the mapping with the last sp */

/* ---- what the recorder would see ---- */

static void announce(const struct seam_perf_sideband *record)
{
	for (size_t i = 0; i < SIZES; i++)
		seam_live_stacks_sideband(&sizes[i].stacks, record, true);
}

static void announce_line(int32_t pid, char *line, bool is_new, uint64_t sp)
{
	struct seam_perf_sideband r = {
		.type = PERF_RECORD_MMAP2, .mapping = { .pid = pid },
	};
	char prot[8], path[512] = "//anon";
	uint64_t end;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %" SCNu64
		   " %511[^\n]", &r.mapping.addr, &end, prot, &r.mapping.pgoff,
		   &r.mapping.ino, path) < 5)
		return;
	if (sp >= r.mapping.addr && sp < end)
		stack_end = end;
	r.mapping.len = end - r.mapping.addr;
	r.mapping.filename = path;
	r.mapping.prot = prot[2] == 'x' ? PROT_READ | PROT_EXEC : PROT_READ;
	if (is_new && prot[2] == 'x')
		announce(&r);
}

/* Announce the mappings of @task, if there are others than before. */
static void read_maps(struct task *task, uint64_t sp)
{
	static char text[1 << 20];
	char path[64], *line, *next = NULL;
	uint64_t hash;
	FILE *in;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/maps", task->tid);
	in = fopen(path, "r");
	n = in ? fread(text, 1, sizeof(text) - 1, in) : 0;
	text[n] = '\0';
	if (in)
		fclose(in);
	hash = seam_hash_bytes(text, n, 0);
	stack_end = 0;
	for (line = strtok_r(text, "\n", &next); line;
	     line = strtok_r(NULL, "\n", &next))
		announce_line(task->pid, line, hash != task->maps, sp);
	task->maps = hash;
}

static void record_sample(struct size *size, const struct task *task,
			  const uint64_t *regs, size_t n)
{
	static uint64_t words[65536 / 8];
	struct seam_perf_header header = {
		.type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER,
	};
	size_t at = 1;

	words[at++] = regs[8];
	words[at++] = (uint32_t)task->pid | (uint64_t)task->tid << 32;
	words[at++] = wholes.n - 1;
	words[at++] = 2;
	words[at++] = (uint64_t)PERF_CONTEXT_USER;
	words[at++] = regs[8];
	words[at++] = PERF_SAMPLE_REGS_ABI_64;
	memcpy(words + at, regs, 17 * sizeof(*regs));
	at += 17;
	n = n < size->bytes ? n & ~(size_t)7 : size->bytes;
	words[at++] = size->bytes;
	memcpy(words + at, memory, n);
	at += size->bytes / 8;
	words[at++] = n;
	header.size = (uint16_t)(8 * at);
	memcpy(words, &header, sizeof(header));
	seam_live_stacks_sample(&size->stacks, 0, words);
}

/* ---- comparison ---- */

static void compare(struct size *size, const struct seam_perf_sample *sample)
{
	const struct whole *whole = &wholes.items[sample->time];
	size_t n = sample->callchain.n - 1, equal = 0;

	while (equal < n && equal < whole->n &&
	       seam_perf_u64(&sample->callchain, equal + 1) ==
	       whole->pcs[equal])
		equal++;
	if (!whole->is_root)
		return;
	size->n_complete += equal < n || n == whole->n;
	size->n_wrong += equal < n;
}

static void read_round(struct size *size, bool all)
{
	struct seam_perf_attr attr = size->attr;
	struct seam_perf_header header;

	attr.sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER |
					PERF_SAMPLE_STACK_USER);
	seam_live_stacks_end_round(&size->stacks, all);
	for (size_t at = 0; at < size->stacks.out.n; at += header.size) {
		const uint8_t *record = size->stacks.out.items + at;
		struct seam_perf_sample sample;

		memcpy(&header, record, sizeof(header));
		if (seam_perf_sample_read(&attr, SEAM_NATIVE,
					  seam_perf_record_at(record).payload,
					  &sample))
			abort();
		compare(size, &sample);
	}
	seam_live_stacks_begin_round(&size->stacks, all);
}

/* The walk of the whole stack, by the files of the first recorder. */
static void walk_whole(const struct task *task,
		       const struct seam_unwind_registers *regs, size_t n)
{
	struct seam_live_stacks *stacks = &sizes[0].stacks;
	const struct seam_unwind_memory whole_stack = {
		.stack = memory, .stack_bytes = n,
		.stack_addr = regs->value[SEAM_X86_64_RSP],
	};
	struct seam_unwind_stack stack = { .frames = frames,
					   .max = MAX_FRAMES };
	struct seam_sample_code code = { .is_pending = true };
	struct whole *whole = SEAM_ARRAY_PUSH(&wholes);

	while (code.is_pending) {
		struct seam_unwind_space space;

		code = (struct seam_sample_code) {
			.files = &stacks->files, .jits = &stacks->jit,
			.map = seam_process_maps_find(&stacks->maps,
						      task->pid),
		};
		space = seam_sample_code_space(&code);
		seam_unwind_walk(&space, &whole_stack, regs, &stack);
		if (code.is_pending)
			usleep(500);
		seam_cfi_files_collect(&stacks->files);
	}
	*whole = (struct whole) {
		.pcs = malloc(stack.n * sizeof(*whole->pcs)), .n = stack.n,
		.is_root = stack.end == SEAM_UNWIND_ROOT,
	};
	for (size_t i = 0; i < stack.n; i++)
		whole->pcs[i] = frames[i].pc;
	for (size_t i = 0; whole->is_root && i < SIZES; i++)
		sizes[i].n_cut += frames[stack.n - 1].sp - frames[0].sp >
				  sizes[i].bytes;
}

/* ---- stops ---- */

static void take_sample(struct task *task)
{
	struct user_regs_struct r;
	struct seam_unwind_registers regs;
	struct iovec local, remote;
	ssize_t n;

	if (ptrace(PTRACE_GETREGS, task->tid, NULL, &r))
		return;
	read_maps(task, r.rsp);
	local = (struct iovec) { memory, stack_end - r.rsp };
	if (!stack_end || local.iov_len > sizeof(memory))
		return;
	remote = (struct iovec) { (void *)r.rsp, local.iov_len };
	n = process_vm_readv(task->tid, &local, 1, &remote, 1, 0);
	if (n <= 0)
		return;
	{
		/* in the order of the kernel's dumps, and in that of DWARF */
		const uint64_t dumped[] = {
			r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.rsp,
			r.rip, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14,
			r.r15,
		};
		const uint64_t columns[] = {
			r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp,
			r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15,
			r.rip,
		};

		regs = (struct seam_unwind_registers) {
			.known = (UINT64_C(1) << 17) - 1,
		};
		memcpy(regs.value, columns, sizeof(columns));
		walk_whole(task, &regs, (size_t)n);
		for (size_t i = 0; i < SIZES; i++)
			record_sample(&sizes[i], task, dumped, (size_t)n);
	}
	for (size_t i = 0; wholes.n % ROUND == 0 && i < SIZES; i++)
		read_round(&sizes[i], false);
}

static int32_t process_of(int32_t tid)
{
	char path[64], line[256];
	int32_t pid = tid;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	in = fopen(path, "r");
	while (in && fgets(line, sizeof(line), in) &&
	       sscanf(line, "Tgid: %d", &pid) != 1)
		;
	if (in)
		fclose(in);
	return pid;
}

static struct task *task_of(int32_t tid)
{
	for (size_t i = 0; i < n_tasks; i++)
		if (tasks[i].tid == tid)
			return &tasks[i];
	if (n_tasks == MAX_TASKS)
		abort();
	tasks[n_tasks++] = (struct task) { tid, process_of(tid), 0 };
	return &tasks[n_tasks - 1];
}

static void on_stop(int32_t tid, int status)
{
	struct task *task = task_of(tid);
	int event = status >> 16, signal = WSTOPSIG(status);
	const struct seam_perf_sideband exec = {
		.type = PERF_RECORD_COMM, .misc = PERF_RECORD_MISC_COMM_EXEC,
		.comm = { .pid = task->pid, .tid = tid },
	};

	if (!WIFSTOPPED(status)) {
		*task = tasks[--n_tasks];
		return;
	}
	if (event == PTRACE_EVENT_EXEC) {
		announce(&exec);
		task->maps = 0;
	}
	if (event == PTRACE_EVENT_STOP && signal == SIGTRAP)
		take_sample(task);
	if (event == PTRACE_EVENT_STOP && signal != SIGTRAP)
		ptrace(PTRACE_LISTEN, tid, NULL, NULL);
	else
		ptrace(PTRACE_CONT, tid, NULL, event ? 0L : (long)signal);
}

static bool is_running(int32_t tid)
{
	char path[64], text[512] = "";
	const char *state;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	in = fopen(path, "r");
	if (!in)
		return false;
	state = fgets(text, sizeof(text), in) ? strrchr(text, ')') : NULL;
	fclose(in);
	return state && state[2] == 'R';
}

/* Take all stops that there are.  Whether one was of @tid. */
static bool take_stops(int32_t tid)
{
	bool was_of_tid = false;
	int status, one;

	while ((one = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
		was_of_tid |= one == tid;
		on_stop(one, status);
	}
	return was_of_tid;
}

/* One that waits for a child of vfork() stops later. */
static void stop(int32_t tid)
{
	if (!is_running(tid) || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return;
	for (int i = 0; i < 100 && !take_stops(tid); i++)
		usleep(20);
}

static void trace(void)
{
	while (n_tasks) {
		usleep(1000);
		take_stops(0);
		for (size_t i = 0; i < n_tasks; i++)
			stop(tasks[i].tid);
	}
}

static void start(char **words)
{
	long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
		       PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC;
	int status, pid = fork();

	if (pid == 0) {
		raise(SIGSTOP);
		execvp(words[0], words);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, WUNTRACED) != pid ||
	    ptrace(PTRACE_SEIZE, pid, NULL, options))
		exit(1);
	task_of(pid);
	kill(pid, SIGCONT);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	for (size_t i = 0; i < SIZES; i++) {
		sizes[i].attr = (struct seam_perf_attr) {
			.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN |
				PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
			.sample_regs_user = SEAM_PERF_X86_64_MASK,
			.sample_stack_user = sizes[i].bytes,
		};
		if (seam_live_stacks_init(&sizes[i].stacks, &sizes[i].attr, 1,
					  127, &sizes[i].counts, NULL))
			return 1;
		seam_live_stacks_begin_round(&sizes[i].stacks, false);
	}
	start(argv + 1);
	trace();
	for (size_t i = 0; i < SIZES; i++) {
		double n = wholes.n ? (double)wholes.n / 100 : 1;

		for (int fd; seam_live_stacks_is_busy(&sizes[i].stacks, &fd); )
			read_round(&sizes[i], false);
		read_round(&sizes[i], true);
		read_round(&sizes[i], true);
		printf("%8zu %7" PRIu32 " %8.2f %8.2f %8.2f %8.2f\n",
		       wholes.n, sizes[i].bytes, (double)sizes[i].n_cut / n,
		       (double)sizes[i].n_complete / n,
		       (double)sizes[i].counts.n_joined / n,
		       (double)sizes[i].n_wrong / n);
		seam_live_stacks_fini(&sizes[i].stacks);
	}
	return 0;
}
