/* SPDX-License-Identifier: MIT */
/* fdr_api.c - seam/fdr.h, over the rooms that do it */
#include <seam/fdr.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "traced/fdr/flight/flight_areas.h"
#include "traced/fdr/flight/flight_bundle.h"
#include "traced/fdr/record/fdr_record.h"
#include "traced/fdr/recorder.h"
#include "traced/fdr/registered.h"
#include "traced/fdr/start.h"
#include "wire/xray/trace_service.h"

_Static_assert((int)SEAM_FDR_MAX_EVENT_BYTES == (int)SEAM_XRAY_MAX_PAYLOAD, "");
_Static_assert((int)SEAM_FDR_MAX_LOGGED_ARGUMENTS ==
	       (int)SEAM_XRAY_MAX_ARGUMENTS, "");

/* From any context. */
static bool is_on(void)
{
	/* relaxed: areas are ready before, and stay after it */
	return atomic_load_explicit(&seam_fdr_is_on, memory_order_relaxed);
}

/* ---- begin and end ---- */

int seam_fdr_start_why(const char *options, char *why, size_t why_bytes)
{
	if (!options)
		options = secure_getenv(SEAM_TRACE_VARIABLE);
	return seam_fdr_begin(options ? options : "", why, why_bytes);
}

int seam_fdr_start(const char *options)
{
	char why[256];

	return seam_fdr_start_why(options, why, sizeof(why));
}

int seam_fdr_stop(void)
{
	return seam_fdr_end(NULL);
}

int seam_fdr_snapshot(const char *folder)
{
	int saved_errno = errno, r;

	if (!is_on())
		return -ENOENT;
	r = seam_fdr_flight_path()[0] ? seam_fdr_flight_snapshot(folder) :
					-ENOTSUP;
	errno = saved_errno;
	return r;
}

const char *seam_fdr_path(void)
{
	const char *path = seam_fdr_flight_path();

	return path[0] ? path : seam_fdr_recorder_path();
}

uint64_t seam_fdr_lost(void)
{
	return seam_fdr_flight_lost();
}

/* ---- which functions ---- */

static int64_t set_wanted(const char *glob, bool is_wanted)
{
	int64_t n = seam_fdr_set_wanted(glob, is_wanted);

	return n == -ENODATA ? -EAGAIN : n == 0 ? -ENOENT : n;
}

int64_t seam_fdr_patch_functions(const char *glob)
{
	return set_wanted(glob, true);
}

int64_t seam_fdr_unpatch_functions(const char *glob)
{
	return set_wanted(glob, false);
}

static int set_wanted_id(uint32_t id, bool is_wanted)
{
	int64_t n = seam_fdr_set_wanted_id(id, is_wanted);

	return n == -ENODATA ? -EAGAIN : n < 0 ? (int)n : 0;
}

int seam_fdr_patch_id(uint32_t id)
{
	return set_wanted_id(id, true);
}

int seam_fdr_unpatch_id(uint32_t id)
{
	return set_wanted_id(id, false);
}

int64_t seam_fdr_find(const char *glob, uint32_t *ids, size_t n)
{
	int64_t found;

	if (!is_on())
		return -EAGAIN;
	found = seam_fdr_find_functions(glob, ids, n);
	return found ? found : -ENOENT;
}

/* ---- events ---- */

void seam_fdr_log_event(const void *data, size_t bytes)
{
	if (is_on())
		seam_fdr_event(SEAM_XRAY_CUSTOM, 0, data, bytes);
}

void seam_fdr_log_typed(uint16_t type, const void *data, size_t bytes)
{
	if (is_on())
		seam_fdr_event(SEAM_XRAY_TYPED, type, data, bytes);
}

int seam_fdr_register_type(const char *name)
{
	uint16_t type;
	bool is_new;

	if (!name[0])
		return -EINVAL;
	type = seam_fdr_type_register(name, &is_new);
	if (!type)
		return -ENOSPC;
	if (is_new)
		seam_fdr_names_changed();
	return type;
}

/* LLVM's runtime has it, and a program without that runtime finds ours. */
SEAM_FDR_PUBLIC
uint16_t __xray_register_event_type(const char *name);

uint16_t __xray_register_event_type(const char *name)
{
	int type = seam_fdr_register_type(name);

	return type < 0 ? 0 : (uint16_t)type;
}

/* ---- calls that the program records itself ---- */

uint32_t seam_fdr_register_function(const char *name)
{
	uint32_t id = seam_fdr_function_register(name);

	if (id)
		seam_fdr_names_changed();
	return id;
}

void seam_fdr_log_entry(uint32_t id, const uint64_t *arguments, unsigned int n)
{
	if (!is_on() || !id || id > SEAM_XRAY_MAX_FUNCTION)
		return;
	if (n)
		seam_fdr_record(seam_xray_word(id, SEAM_XRAY_ENTRY_ARGS),
				arguments, n);
	else
		seam_fdr_record_plain(seam_xray_word(id, SEAM_XRAY_ENTRY));
}

void seam_fdr_log_exit(uint32_t id)
{
	if (is_on() && id && id <= SEAM_XRAY_MAX_FUNCTION)
		seam_fdr_record_plain(seam_xray_word(id, SEAM_XRAY_EXIT));
}

/* ---- the process ends ---- */

__attribute__((destructor))
static void end_with_the_process(void)
{
	seam_fdr_at_exit();
}
