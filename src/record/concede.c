/* SPDX-License-Identifier: MIT */
/* concede.c - the steps, and what to say when none is left; see concede.h */
#include "record/concede.h"

#include "base/base.h"
#include "record/machine.h"

#include <errno.h>
#include <sys/resource.h>

/* What was refused, and all that is asked for with it. */
struct refused {
	struct seam_event *events;
	size_t n;
	struct seam_event *event;
};

/* One step down: false when it was taken before, or does not apply. */

static bool leave_kernel_out(const struct refused *r)
{
	const struct perf_event_attr *refused = &r->event->attr;

	/*
	 * Who asked for the kernel alone would be left with nothing, and so
	 * would who asked for a point in it.
	 */
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
	int code, other_code;	/* what the kernel said */
	unsigned int left_out;	/* enum seam_left_out */
	bool (*take)(const struct refused *r);
} steps[] = {
	{ EACCES, EPERM, SEAM_LEFT_OUT_KERNEL, leave_kernel_out },
	/* less precise may need fewer rights, or exist where more does not */
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
	};

	return (size_t)bit_index < SEAM_ARRAY_SIZE(names) ?
	       names[bit_index] : NULL;
}

bool seam_concede(struct seam_event *events, size_t n,
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

static int missing(const struct seam_event *event, struct seam_err *err)
{
	if (event->attr.type == PERF_TYPE_SOFTWARE)
		return seam_err_set(err, -ENOENT, "this kernel has no event "
				    "'%s'", event->name);
	return seam_err_set(err, -ENOENT, "this machine has no event '%s'%s",
			    event->name, ": use '-e cpu-clock', which needs "
			    "no hardware");
}

/* The level of paranoia at which anybody may have the event. */
static int harmless_level(const struct seam_event *event, bool system_wide)
{
	if (event->attr.type == PERF_TYPE_TRACEPOINT)
		return -1;
	if (system_wide)
		return 0;
	return event->attr.exclude_kernel ? 2 : 1;
}

int seam_concede_refusal(int code, const struct seam_event *event,
			 bool system_wide, struct seam_err *err)
{
	long paranoid = seam_machine_sysctl("perf_event_paranoid", 2);
	struct rlimit limit = { 0 };

	switch (-code) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
	case ENXIO:
		return missing(event, err);
	case EACCES:
	case EPERM:
		return seam_err_set(err, code, "no permission for event '%s' "
			"%sat kernel.perf_event_paranoid=%ld: it needs "
			"CAP_PERFMON, or 'sysctl kernel.perf_event_paranoid="
			"%d'", event->name,
			system_wide ? "of all processes " : "", paranoid,
			harmless_level(event, system_wide));
	case EMFILE:
		getrlimit(RLIMIT_NOFILE, &limit);
		return seam_err_set(err, code, "event '%s' needs more than "
			"the %lu descriptors of 'ulimit -n'", event->name,
			(unsigned long)limit.rlim_cur);
	default:
		return seam_err_set(err, code, "perf_event_open of event "
			"'%s': %s", event->name, strerror(-code));
	}
}
