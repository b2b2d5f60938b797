/* SPDX-License-Identifier: MIT */
/* fallback.c - the steps, and messages when none is left; see fallback.h */
#include "record/perf/fallback.h"

#include "base/text.h"
#include "record/proc/targets.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* The refused event, and all events of the recording. */
struct refused {
	struct seam_event *events;
	size_t n;
	struct seam_event *event;
};

/* A step returns false if it was taken before, or does not apply. */

static bool leave_kernel_out(const struct refused *r)
{
	const struct perf_event_attr *refused = &r->event->attr;

	/* an event of the kernel alone would count nothing */
	if (refused->exclude_kernel || refused->exclude_user ||
	    refused->type == PERF_TYPE_TRACEPOINT)
		return false;
	for (size_t i = 0; i < r->n; i++) {
		struct perf_event_attr *attr = &r->events[i].attr;

		if (attr->exclude_user)
			continue;
		attr->exclude_kernel = 1;
		attr->exclude_hv = 1;
		attr->exclude_callchain_kernel = 1;
	}
	return true;
}

static bool lower_precision(const struct refused *r)
{
	struct perf_event_attr *attr = &r->event->attr;

	if (!r->event->any_precision || attr->precise_ip == 0)
		return false;
	attr->precise_ip = (attr->precise_ip - 1) & 3;
	return true;
}

static bool leave_lost_counts_out(const struct refused *r)
{
	if (!(r->event->attr.read_format & PERF_FORMAT_LOST))
		return false;
	for (size_t i = 0; i < r->n; i++)
		r->events[i].attr.read_format &= ~(uint64_t)PERF_FORMAT_LOST;
	return true;
}

static bool leave_build_ids_out(const struct refused *r)
{
	bool had = r->event->attr.build_id;

	r->event->attr.build_id = 0;
	return had;
}

static bool leave_ksymbols_out(const struct refused *r)
{
	bool had = r->event->attr.ksymbol;

	r->event->attr.ksymbol = r->event->attr.bpf_event = 0;
	return had;
}

/* Tried in this order: the newest feature of the kernel first. */
static const struct step {
	int code, other_code;	/* errno of the kernel */
	unsigned int left_out;	/* enum seam_left_out */
	bool (*take)(const struct refused *r);
} steps[] = {
	{ EACCES, EPERM, SEAM_LEFT_OUT_KERNEL, leave_kernel_out },
	/* lower precision may be permitted, or exist where higher is not */
	{ EACCES, EPERM, 0, lower_precision },
	{ ENOENT, ENODEV, 0, lower_precision },
	{ EINVAL, EOPNOTSUPP, 0, lower_precision },
	{ EINVAL, 0, SEAM_LEFT_OUT_LOST_COUNTS, leave_lost_counts_out },
	{ EINVAL, E2BIG, SEAM_LEFT_OUT_BUILD_IDS, leave_build_ids_out },
	{ EINVAL, E2BIG, SEAM_LEFT_OUT_KSYMBOLS, leave_ksymbols_out },
};

const char *seam_left_out_name(int bit_index)
{
	static const char *const names[] = {
		"kernel", "build-ids", "lost-counts", "ksymbols", "ring-space",
		"stack-copies",
	};

	return (size_t)bit_index < SEAM_ARRAY_SIZE(names) ?
	       names[bit_index] : NULL;
}

bool seam_fallback(struct seam_event *events, size_t n,
		   struct seam_event *event, int code, unsigned int *left_out)
{
	struct refused refused = { events, n, event };

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(steps); i++) {
		const struct step *step = &steps[i];

		if (code != step->code && code != step->other_code)
			continue;
		if (step->take(&refused)) {
			*left_out |= step->left_out;
			return true;
		}
	}
	return false;
}

/* The name of @event in messages. */
static const char *name_of(const struct seam_event *event, char *buf,
			   size_t cap)
{
	char name[2 * SEAM_EVENT_NAME];

	if (strcmp(event->name, SEAM_EVENT_SIDEBAND) == 0)
		return "records";
	snprintf(buf, cap, "event '%s'",
		 seam_text_copy(name, sizeof(name), event->name,
				SEAM_TEXT_TERMINAL));
	return buf;
}

/*
 * Whether the kernel permits us to inspect thread @tid.  Its links in /proc
 * have the same condition as perf_event_open().
 * Source: perf_event_open(2), PTRACE_MODE_READ_REALCREDS; proc(5).
 */
static bool may_inspect(int tid)
{
	char path[64], target[2];

	snprintf(path, sizeof(path), "/proc/%d/exe", tid);
	return readlink(path, target, sizeof(target)) >= 0 ||
	       (errno != EACCES && errno != EPERM);
}

/* Thread @tid belongs to another user, or has more privileges. */
static int forbidden_process(int code, int tid, struct seam_err *err)
{
	char path[64], text[64];
	int process = seam_targets_process(tid);
	struct passwd *owner;
	uid_t uid;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	uid = (uid_t)strtoul(seam_procfs_value(path, "Uid", text,
					       sizeof(text)), NULL, 10);
	if (uid == getuid())
		return seam_err_set(err, code, "process %d has privileges "
			"that you do not have: recording it needs CAP_PERFMON "
			"or CAP_SYS_PTRACE", process);
	owner = getpwuid(uid);
	if (owner)
		snprintf(text, sizeof(text), "'%.50s'", owner->pw_name);
	else
		snprintf(text, sizeof(text), "%u", uid);
	return seam_err_set(err, code, "process %d belongs to user %s: "
		"recording it needs that user, CAP_PERFMON or "
		"CAP_SYS_PTRACE", process, text);
}

/* The perf_event_paranoid at which no privilege is needed. */
static int unprivileged_level(const struct seam_event *event, int tid)
{
	if (event->attr.type == PERF_TYPE_TRACEPOINT)
		return -1;
	if (tid < 0)
		return 0;
	return event->attr.exclude_kernel ? 2 : 1;
}

static int forbidden(int code, const struct seam_event *event,
		     const char *what, int tid, struct seam_err *err)
{
	long paranoid = seam_procfs_sysctl("perf_event_paranoid", 2);
	int level = unprivileged_level(event, tid);

	if (tid > 0 && !may_inspect(tid))
		return forbidden_process(code, tid, err);
	if (paranoid > level)
		return seam_err_set(err, code, "no permission for %s%s at "
			"kernel.perf_event_paranoid=%ld: it needs CAP_PERFMON, "
			"or 'sysctl kernel.perf_event_paranoid=%d'", what,
			tid < 0 ? " of all processes" : "", paranoid, level);
	if (event->attr.namespaces)
		return seam_err_set(err, code, "no permission for records of "
			"namespaces (--namespaces): they need CAP_PERFMON");
	return seam_err_set(err, code, "no permission for %s, though "
		"kernel.perf_event_paranoid=%ld: it needs a seccomp profile "
		"(of the container?) that allows perf_event_open, or "
		"CAP_PERFMON", what, paranoid);
}

int seam_fallback_refusal(int code, const struct seam_event *event, int tid,
			  struct seam_err *err)
{
	char buf[3 * SEAM_EVENT_NAME];
	const char *what = name_of(event, buf, sizeof(buf));
	struct rlimit limit = { 0 };

	switch (-code) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
	case ENXIO:
		return seam_err_set(err, -ENOENT, "this %s has no %s%s",
			event->attr.type == PERF_TYPE_SOFTWARE ? "kernel" :
			"machine", what,
			event->attr.type == PERF_TYPE_SOFTWARE ? "" :
			": use '-e cpu-clock', which needs no hardware");
	case EACCES:
	case EPERM:
		return forbidden(code, event, what, tid, err);
	case ENOSPC:
		return seam_err_set(err, code, "no hardware breakpoint is "
			"free for %s: a CPU has few, x86 four", what);
	case EMFILE:
		getrlimit(RLIMIT_NOFILE, &limit);
		return seam_err_set(err, code, "%s needs more than "
			"the %lu descriptors of 'ulimit -n'", what,
			(unsigned long)limit.rlim_cur);
	default:
		return seam_err_set(err, code, "perf_event_open of %s: %s",
				    what, strerror(-code));
	}
}
