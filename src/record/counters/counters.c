/* SPDX-License-Identifier: MIT */
/* counters.c - open, follow, read, add up; see counters.h */
#include "record/counters/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "record/perf/sink.h"
#include "record/perf/sources.h"

enum {
	MAX_READ_THREADS = 1024,	/* files of schedstat, in one reading */
	HWM_SLACK_BYTES = 256 * 1024,	/* from the fork to the exec */
};

/* Between two readings of schedstat: 1,024 files of 2 us are 1 % of a CPU. */
#define READ_NS (200 * SEAM_NS_PER_MS)
/* Of the CPU time: of less, the wake delay is said to be unknown. */
#define MIN_PART 0.01

#define ROW(id, ...) [SEAM_COUNTER_##id] = { __VA_ARGS__ }
#define NS SEAM_COUNTER_NS
#define COUNT SEAM_COUNTER_COUNT

const struct seam_counter_row seam_counter_rows[SEAM_N_COUNTERS] = {
	ROW(ELAPSED, "elapsed_ns", "elapsed", NS, false),
	ROW(TASK_CLOCK, "task_clock_ns", "task-clock", NS, false),
	ROW(CPUS, "cpus_used", "CPUs used", SEAM_COUNTER_RATIO, false),
	ROW(USER, "user_ns", "user", NS, false),
	ROW(SYSTEM, "system_ns", "system", NS, false),
	ROW(BLOCKED_SWITCHES, "blocked_switches", "switches, blocked", COUNT,
	    false),
	ROW(PREEMPTED_SWITCHES, "preempted_switches", "switches, preempted",
	    COUNT, false),
	ROW(MIGRATIONS, "migrations", "migrations", COUNT, false),
	ROW(BLOCKED, "blocked_ns", "blocked", NS, false),
	ROW(PREEMPTED, "preempted_ns", "preempted", NS, false),
	ROW(WAKE_DELAY, "wake_delay_ns", "wake delay", NS, false),
	ROW(MINOR_FAULTS, "minor_faults", "faults, minor", COUNT, false),
	ROW(MAJOR_FAULTS, "major_faults", "faults, major", COUNT, false),
	ROW(MAX_RSS, "max_rss_bytes", "max RSS", SEAM_COUNTER_BYTES, false),
	ROW(CYCLES, "cycles", "cycles", COUNT, true),
	ROW(INSTRUCTIONS, "instructions", "instructions", COUNT, true),
	ROW(IPC, "instructions_per_cycle", "instructions/cycle",
	    SEAM_COUNTER_RATIO, true),
	ROW(CACHE_REFERENCES, "cache_references", "cache references", COUNT,
	    true),
	ROW(CACHE_MISSES, "cache_misses", "cache misses", COUNT, true),
	ROW(BRANCHES, "branches", "branches", COUNT, true),
	ROW(BRANCH_MISSES, "branch_misses", "branch misses", COUNT, true),
};

/* Counters of the kernel, and the rows that they are. */
static const struct kernel_counter {
	enum seam_counter row;
	const char *event;
} kernel_counters[] = {
	{ SEAM_COUNTER_TASK_CLOCK, "task-clock" },
	{ SEAM_COUNTER_CYCLES, "cycles" },
	{ SEAM_COUNTER_INSTRUCTIONS, "instructions" },
	{ SEAM_COUNTER_CACHE_REFERENCES, "cache-references" },
	{ SEAM_COUNTER_CACHE_MISSES, "cache-misses" },
	{ SEAM_COUNTER_BRANCHES, "branches" },
	{ SEAM_COUNTER_BRANCH_MISSES, "branch-misses" },
};

/* What the kernel says of one process; its children are those waited for. */
struct process_usage {
	int pid;
	uint64_t cpu_ns;			/* of the scheduler; no children */
	uint64_t minor, major;			/* faults, of children too */
	uint64_t user_ticks, system_ticks;	/* likewise */
	uint64_t max_rss_bytes;
};

struct open_counter {
	size_t of;		/* index in kernel_counters */
	int fd;
};

struct counters {
	struct seam_sink sink;
	struct seam_task_times times;
	struct seam_counts_of_run *out;
	SEAM_ARRAY(struct open_counter) open;
	int command;			/* counted; 0: none is */
	uint64_t base_on_ns, base_wait_ns;	/* of its schedstat */
	SEAM_ARRAY(struct process_usage) before;/* of all processes then */
	SEAM_ARRAY(bool) is_living;	/* of times.processes, at the end */
	uint64_t living_ns;		/* their CPU time since the begin */
	uint64_t begin_ns, end_ns;
	uint64_t read_ns;		/* when schedstat was read last */
};

static void set(struct counters *c, enum seam_counter row, double value)
{
	c->out->values[row] = (struct seam_counter_value) {
		.is_known = true, .value = value, .part = 1,
	};
}

/* ---- files of /proc ---- */

/* The numbers of schedstat: on a CPU, and runnable without one. */
static bool read_schedstat(int tid, uint64_t *on_ns, uint64_t *wait_ns)
{
	char path[64], text[128];
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	seam_procfs_text(path, text, sizeof(text));
	end = seam_text_number(text, text + strlen(text), 10, on_ns);
	return end && *end == ' ' &&
	       seam_text_number(end + 1, text + strlen(text), 10, wait_ns);
}

/*
 * Field @n of /proc/PID/stat, counted from the state as 3.
 * Source: proc_pid_stat(5).
 */
static uint64_t stat_field(const char *text, int n)
{
	/* the name in parentheses may hold any character */
	const char *at = strrchr(text, ')');

	for (int i = 2; at && i < n; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* CPU time of process @pid by the scheduler; 0: it has ended. */
static uint64_t cpu_ns_of(int pid)
{
	struct timespec t;
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t) ?
	       0 : seam_clock_of(t);
}

/* False: there is no such process, or it has ended. */
static bool read_usage(int pid, struct process_usage *usage)
{
	char path[64], text[1024];
	const char *name_end;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	name_end = strrchr(seam_procfs_text(path, text, sizeof(text)), ')');
	if (!name_end || strchr("ZX", name_end[2]))
		return false;
	*usage = (struct process_usage) {
		.pid = pid, .cpu_ns = cpu_ns_of(pid),
		.minor = stat_field(text, 10) + stat_field(text, 11),
		.major = stat_field(text, 12) + stat_field(text, 13),
		.user_ticks = stat_field(text, 14) + stat_field(text, 16),
		.system_ticks = stat_field(text, 15) + stat_field(text, 17),
	};
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	usage->max_rss_bytes = 1024 * strtoull(seam_procfs_value(path, "VmHWM",
					       text, sizeof(text)), NULL, 10);
	return true;
}

/*
 * Wake delay so far: schedstat has the time that a thread could run and did
 * not, from which that after a preemption is taken off.
 */
static void read_thread(struct counters *c, struct seam_timed_thread *thread)
{
	struct seam_task_sums *sums = &thread->sums;
	bool is_command = thread->tid == c->command;
	uint64_t on_ns, wait_ns;

	if (!read_schedstat(thread->tid, &on_ns, &wait_ns))
		return;
	on_ns -= is_command ? c->base_on_ns : thread->base_on_ns;
	wait_ns -= is_command ? c->base_wait_ns : thread->base_wait_ns;
	if ((int64_t)on_ns <= 0 || (int64_t)wait_ns < 0)
		return;
	sums->read_on_ns = on_ns;
	sums->wake_ns = wait_ns > sums->preempted_ns ?
			wait_ns - sums->preempted_ns : 0;
}

/* The first thread of the command is there until it is waited for. */
static void on_end(void *context, struct seam_timed_thread *thread)
{
	read_thread(context, thread);
}

/* ---- counters of the kernel ---- */

static int open_counter(size_t i, int tid, bool on_exec, bool *is_user_only)
{
	struct seam_event event;
	int fd;

	seam_event_init(&event);
	if (seam_event_parse(&event, kernel_counters[i].event, NULL) < 0)
		return -EINVAL;
	event.attr.size = PERF_ATTR_SIZE_VER7;
	event.attr.disabled = event.attr.enable_on_exec = on_exec;
	event.attr.inherit = 1;
	event.attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				 PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = (int)syscall(SYS_perf_event_open, &event.attr, tid, -1, -1,
			  PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 && (errno == EACCES || errno == EPERM)) {
		*is_user_only |= event.attr.type != PERF_TYPE_SOFTWARE;
		event.attr.exclude_kernel = event.attr.exclude_hv = 1;
		fd = (int)syscall(SYS_perf_event_open, &event.attr, tid, -1,
				  -1, PERF_FLAG_FD_CLOEXEC);
	}
	return fd;
}

/* Those that the machine has, of one thread and what it starts. */
static int open_counters(struct counters *c, int tid, struct seam_err *err)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(kernel_counters); i++) {
		struct open_counter counter = {
			i, open_counter(i, tid, c->command > 0,
					&c->out->is_user_only),
		};

		if (counter.fd < 0)
			continue;
		if (!SEAM_ARRAY_ADD(&c->open, counter)) {
			close(counter.fd);
			return seam_err_no_memory(err);
		}
	}
	return 0;
}

/* The sum over all threads, scaled where the counters had to take turns. */
static void read_counters(struct counters *c)
{
	struct { uint64_t value, enabled_ns, running_ns; } one;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(kernel_counters); i++) {
		double sum = 0, enabled = 0, running = 0;

		for (size_t k = 0; k < c->open.n; k++) {
			if (c->open.items[k].of != i ||
			    read(c->open.items[k].fd, &one, sizeof(one)) !=
			    sizeof(one))
				continue;
			sum += (double)one.value;
			enabled += (double)one.enabled_ns;
			running += (double)one.running_ns;
		}
		if (running <= 0)
			continue;
		set(c, kernel_counters[i].row, sum * enabled / running);
		c->out->values[kernel_counters[i].row].part =
			running / enabled;
	}
}

/* ---- the sink ---- */

/* A thread that runs already. */
static int begin_thread(struct counters *c, int tid, struct seam_err *err)
{
	int pid = seam_targets_process(tid);
	struct seam_timed_thread *thread;
	struct process_usage usage;
	char path[64], text[1024], name[64];
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	end = strrchr(seam_procfs_text(path, text, sizeof(text)), ')');
	if (!pid || !end || !end[1])
		return 0;	/* it has ended */
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	seam_procfs_text(path, name, sizeof(name));
	thread = seam_task_times_begin(&c->times, pid, tid, name, end[2],
				       seam_clock_ns());
	if (!thread)
		return seam_err_no_memory(err);
	read_schedstat(tid, &thread->base_on_ns, &thread->base_wait_ns);
	if (tid == pid && read_usage(pid, &usage) &&
	    !SEAM_ARRAY_ADD(&c->before, usage))
		return seam_err_no_memory(err);
	return open_counters(c, tid, err);
}

static int begin(struct seam_sink *sink, const struct seam_sources *sources,
		 pid_t command, struct seam_err *err)
{
	struct counters *c = (struct counters *)sink;
	struct process_usage usage;
	int r = 0;

	c->begin_ns = seam_clock_ns();
	if (command && sources->on_exec) {
		c->command = command;
		read_schedstat(command, &c->base_on_ns, &c->base_wait_ns);
		if (read_usage(command, &usage) &&
		    !SEAM_ARRAY_ADD(&c->before, usage))
			return seam_err_no_memory(err);
		return open_counters(c, command, err);
	}
	for (size_t i = 0; r == 0 && i < sources->tids.n; i++)
		r = begin_thread(c, sources->tids.items[i], err);
	return r;
}

/* At the end: the CPU time of processes that live. */
static void read_clocks(struct counters *c)
{
	c->times.no_memory |= !SEAM_ARRAY_GROW(&c->is_living,
					       c->times.processes.n);
	for (size_t i = 0; i < c->is_living.n; i++) {
		const struct seam_timed_process *p =
			&c->times.processes.items[i];
		uint64_t ns = p->pid && !p->end_ns ? cpu_ns_of(p->pid) : 0;

		c->is_living.items[i] = ns > 0;
		for (size_t k = 0; ns && k < c->before.n; k++)
			if (c->before.items[k].pid == p->pid)
				ns -= c->before.items[k].cpu_ns;
		c->living_ns += ns;
	}
}

static bool is_living(const struct counters *c, size_t i)
{
	return i < c->is_living.n && c->is_living.items[i];
}

static void take(struct seam_sink *sink, struct seam_bytes records)
{
	struct counters *c = (struct counters *)sink;

	for (size_t at = 0; at < records.size;) {
		struct seam_perf_record record =
			seam_perf_record_at(records.data + at);

		seam_task_times_take(&c->times, &record);
		at += SEAM_PERF_HEADER_BYTES + record.payload.size;
	}
}

static bool after_round(struct seam_sink *sink, uint64_t until_ns, bool at_end)
{
	struct counters *c = (struct counters *)sink;
	uint64_t now_ns = seam_clock_ns();

	seam_task_times_apply(&c->times, until_ns);
	if (now_ns - c->read_ns < READ_NS && !at_end)
		return true;
	c->read_ns = now_ns;
	for (size_t i = 0; i < c->times.threads.n && i < MAX_READ_THREADS; i++)
		if (c->times.threads.items[i].state != SEAM_TASK_ENDED)
			read_thread(c, &c->times.threads.items[i]);
	if (!at_end)
		return true;
	c->end_ns = now_ns;
	read_counters(c);
	read_clocks(c);
	seam_task_times_end(&c->times, now_ns);
	return true;
}

/* ---- results ---- */

/* From the exec to the end of the last thread, if both were recorded. */
static void set_times(struct counters *c)
{
	const struct seam_task_sums *sums = &c->times.ended;
	const struct seam_timed_process *first = c->times.processes.items;
	struct seam_counter_value *values = c->out->values;
	uint64_t begin_ns = c->begin_ns, end_ns = c->end_ns;
	double part = sums->on_ns ? (double)sums->read_on_ns /
				    (double)sums->on_ns : 0;

	if (c->command && c->times.processes.n && first->pid == c->command) {
		begin_ns = first->begin_ns;
		end_ns = first->end_ns;
	}
	set(c, SEAM_COUNTER_ELAPSED, (double)(end_ns - begin_ns));
	if (c->out->n_lost || c->times.no_memory)
		return;
	set(c, SEAM_COUNTER_BLOCKED_SWITCHES, (double)sums->n_blocked);
	set(c, SEAM_COUNTER_PREEMPTED_SWITCHES, (double)sums->n_preempted);
	set(c, SEAM_COUNTER_MIGRATIONS, (double)sums->n_migrations);
	set(c, SEAM_COUNTER_BLOCKED, (double)sums->blocked_ns);
	set(c, SEAM_COUNTER_PREEMPTED, (double)sums->preempted_ns);
	if (part < MIN_PART)
		return;
	set(c, SEAM_COUNTER_WAKE_DELAY, (double)sums->wake_ns);
	values[SEAM_COUNTER_WAKE_DELAY].part = part < 1 ? part : 1;
}

/*
 * Whether process @i, which has ended, can have been waited for by those above
 * it: then its CPU time is in the rusage of the command.
 */
static bool is_in_rusage(const struct counters *c, size_t i)
{
	const struct seam_timed_process *all = c->times.processes.items;

	for (; all[i].parent != SEAM_NONE; i = all[i].parent)
		if (all[i].end_ns > all[all[i].parent].end_ns)
			return false;
	return true;
}

/*
 * CPU time: @clock_ns by the scheduler's clock, of the processes that @has says
 * and that had @n_switches; of others the time between their switches, which is
 * some microseconds less for each of them.  Where that cannot be all, because
 * records were lost or a process of these was not waited for, the kernel's
 * counter if it has more: it leaves as much of each switch out, and has the
 * time that a hypervisor took.
 */
static void set_task_clock(struct counters *c, double clock_ns,
			   uint64_t n_switches,
			   bool (*has)(const struct counters *c, size_t i))
{
	const struct seam_counter_value *counter =
		&c->out->values[SEAM_COUNTER_TASK_CLOCK];
	uint64_t n_seen = 0;

	for (size_t i = 0; i < c->times.processes.n; i++) {
		const struct seam_task_sums *sums =
			&c->times.processes.items[i].sums;

		if (has(c, i))
			n_seen += sums->n_blocked + sums->n_preempted;
		else
			clock_ns += (double)sums->on_ns;
	}
	if ((c->out->n_lost || c->times.no_memory || n_seen > n_switches) &&
	    counter->is_known && counter->value > clock_ns)
		return;
	set(c, SEAM_COUNTER_TASK_CLOCK, clock_ns);
}

static double timeval_ns(struct timeval t)
{
	return (double)t.tv_sec * 1e9 + (double)t.tv_usec * 1e3;
}

/* Of the command and of the processes that were waited for. */
static void set_rusage(struct counters *c, const struct rusage *before)
{
	struct seam_counter_value *values = c->out->values;
	struct process_usage base = { 0 };
	struct rusage now;

	if (getrusage(RUSAGE_CHILDREN, &now) < 0)
		return;
	if (c->before.n)
		base = c->before.items[0];	/* before its exec */
	set(c, SEAM_COUNTER_USER,
	    timeval_ns(now.ru_utime) - timeval_ns(before->ru_utime));
	set(c, SEAM_COUNTER_SYSTEM,
	    timeval_ns(now.ru_stime) - timeval_ns(before->ru_stime));
	set_task_clock(c, values[SEAM_COUNTER_USER].value +
		       values[SEAM_COUNTER_SYSTEM].value -
		       (double)c->base_on_ns,
		       (uint64_t)(now.ru_nvcsw - before->ru_nvcsw +
				  now.ru_nivcsw - before->ru_nivcsw),
		       is_in_rusage);
	set(c, SEAM_COUNTER_MINOR_FAULTS,
	    (double)(now.ru_minflt - before->ru_minflt) - (double)base.minor);
	set(c, SEAM_COUNTER_MAJOR_FAULTS,
	    (double)(now.ru_majflt - before->ru_majflt) - (double)base.major);
	set(c, SEAM_COUNTER_MAX_RSS, (double)now.ru_maxrss * 1024);
	c->out->is_max_rss_ours = (uint64_t)now.ru_maxrss * 1024 <=
				  base.max_rss_bytes + HWM_SLACK_BYTES;
}

/*
 * Of processes that run.  If one of those that were named has ended, its values
 * are gone; those of its children are its own once it has waited for them, with
 * what they had used before.
 */
static void set_usage(struct counters *c, const struct seam_number_list *named)
{
	double ns = 1e9 / (double)sysconf(_SC_CLK_TCK);
	struct process_usage sum = { 0 };

	for (size_t i = 0; i < c->before.n; i++) {
		const struct process_usage *before = &c->before.items[i];
		struct process_usage now = { 0 };

		if (!read_usage(before->pid, &now) &&
		    seam_number_list_has(named, before->pid))
			return;
		sum.minor += now.minor - before->minor;
		sum.major += now.major - before->major;
		sum.user_ticks += now.user_ticks - before->user_ticks;
		sum.system_ticks += now.system_ticks - before->system_ticks;
		if (now.max_rss_bytes > sum.max_rss_bytes)
			sum.max_rss_bytes = now.max_rss_bytes;
	}
	set(c, SEAM_COUNTER_USER, (double)sum.user_ticks * ns);
	set(c, SEAM_COUNTER_SYSTEM, (double)sum.system_ticks * ns);
	set(c, SEAM_COUNTER_MINOR_FAULTS, (double)sum.minor);
	set(c, SEAM_COUNTER_MAJOR_FAULTS, (double)sum.major);
	set(c, SEAM_COUNTER_MAX_RSS, (double)sum.max_rss_bytes);
}

static void set_results(struct counters *c,
			const struct seam_record_options *what,
			const struct seam_record_result *result,
			const struct rusage *before)
{
	const struct seam_counter_value *values = c->out->values;
	const struct seam_counter_value *cycles = &values[SEAM_COUNTER_CYCLES];
	const struct seam_counter_value *instructions =
		&values[SEAM_COUNTER_INSTRUCTIONS];
	const struct seam_counter_value *task_clock =
		&values[SEAM_COUNTER_TASK_CLOCK];
	const struct seam_counter_value *elapsed =
		&values[SEAM_COUNTER_ELAPSED];

	for (size_t i = 0; i < SEAM_N_COUNTS; i++)
		if (seam_count_rows[i].amount == SEAM_COUNT_IS_RECORDS)
			c->out->n_lost += result->counts.n[i];
	set_times(c);
	if (!c->command)
		set_task_clock(c, (double)c->living_ns, UINT64_MAX, is_living);
	if (!c->command)
		set_usage(c, &what->pids);
	else if (result->command.has_ended)
		set_rusage(c, before);
	if (task_clock->is_known && elapsed->value > 0)
		set(c, SEAM_COUNTER_CPUS, task_clock->value / elapsed->value);
	if (cycles->is_known && instructions->is_known && cycles->value > 0)
		set(c, SEAM_COUNTER_IPC, instructions->value / cycles->value);
	c->out->processes = c->times.processes.items;
	c->out->n_processes = c->times.processes.n;
	c->times.processes.items = NULL;
}

int seam_counters_run(const struct seam_record_options *options,
		      struct seam_counts_of_run *out, struct seam_err *err)
{
	static const char *const events[] = { "dummy" };
	struct seam_record_options what = *options;
	struct counters c = {
		.sink = { .fd = -1, .begin = begin, .take = take,
			  .after_round = after_round, .due_ns = UINT64_MAX },
		.times = { .on_end = on_end, .context = &c },
		.out = out,
	};
	struct seam_record_result result;
	struct rusage before = { 0 };
	int r;

	*out = (struct seam_counts_of_run) { 0 };
	what.events = events;
	what.n_events = 1;
	what.period = 1;
	what.call_graph = SEAM_CALL_GRAPH_NONE;
	what.layers = SEAM_LAYERS_NATIVE;
	what.switch_events = true;
	what.sink = &c.sink;
	getrusage(RUSAGE_CHILDREN, &before);
	r = seam_record(&what, &result, err);
	out->command = result.command;
	if (r == 0)
		set_results(&c, &what, &result, &before);
	seam_record_result_fini(&result);
	for (size_t i = 0; i < c.open.n; i++)
		close(c.open.items[i].fd);
	free(c.open.items);
	free(c.before.items);
	free(c.is_living.items);
	seam_task_times_fini(&c.times);
	return r;
}
