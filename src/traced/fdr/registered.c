/* SPDX-License-Identifier: MIT */
/*
 * registered.c - what the program records by itself (seam/fdr.h): events, calls
 * of functions that exist by name alone, and the names of both
 */
#include <seam/fdr.h>

#include <errno.h>
#include <stdatomic.h>

#include "traced/fdr/announce_functions.h"
#include "traced/fdr/fdr_process.h"
#include "traced/fdr/record/fdr_record.h"
#include "traced/fdr/sleds/ids.h"

enum {
	MAX_TYPES = 1024,
	MAX_FUNCTIONS = 65536,
	MAX_NAME = 255,			/* bytes; longer names are cut */
};

_Static_assert((int)SEAM_FDR_MAX_EVENT_BYTES == (int)SEAM_XRAY_MAX_PAYLOAD, "");
_Static_assert((int)SEAM_FDR_MAX_LOGGED_ARGUMENTS ==
	       (int)SEAM_XRAY_MAX_ARGUMENTS, "");

static struct seam_fdr_process *const process = &seam_fdr_process;

/* From any context. */
static bool is_on(void)
{
	/* relaxed: areas are ready before, and stay after it */
	return atomic_load_explicit(&seam_fdr_is_on, memory_order_relaxed);
}

/* ---- names ---- */

/* With the lock.  Returns @number; 0: there is no memory. */
static uint32_t add(struct seam_fdr_names *names,
		    enum seam_xray_announcement_kind kind, uint32_t number,
		    const char *name)
{
	char *copy = number ? strndup(name, MAX_NAME) : NULL;

	if (!copy || !SEAM_ARRAY_ADD(&names->list, (struct seam_xray_named) {
					kind, number, copy })) {
		free(copy);
		return 0;
	}
	if (is_on() && process->address[0])
		(void)seam_fdr_announce_new();
	return number;
}

int seam_fdr_register_type(const char *name)
{
	struct seam_fdr_names *types = &process->types;
	int saved_errno = errno;
	uint32_t type = 0;

	if (!name[0])
		return -EINVAL;
	if (!seam_fdr_lock())
		return -ENOSPC;
	for (size_t i = 0; i < types->list.n && !type; i++)
		if (!strncmp(types->list.items[i].name, name, MAX_NAME))
			type = types->list.items[i].number;
	if (!type && types->list.n < MAX_TYPES)
		type = add(types, SEAM_XRAY_ANNOUNCED_EVENT_TYPE,
			   (uint32_t)types->list.n + 1, name);
	seam_fdr_unlock();
	errno = saved_errno;
	return type ? (int)type : -ENOSPC;
}

/* As LLVM's runtime has; a program without that runtime finds ours. */
SEAM_FDR_PUBLIC
uint16_t __xray_register_event_type(const char *name);

uint16_t __xray_register_event_type(const char *name)
{
	int type = seam_fdr_register_type(name);

	return type < 0 ? 0 : (uint16_t)type;
}

uint32_t seam_fdr_register_function(const char *name)
{
	struct seam_fdr_names *functions = &process->functions;
	int saved_errno = errno;
	uint32_t id = 0;

	if (!seam_fdr_lock())
		return 0;
	/* ids of the executable's functions come first, as in its map */
	if (!functions->list.n)
		seam_fdr_number_functions();
	if (functions->list.n < MAX_FUNCTIONS)
		id = add(functions, SEAM_XRAY_ANNOUNCED_NAME,
			 seam_fdr_new_ids(1), name);
	seam_fdr_unlock();
	errno = saved_errno;
	return id;
}

/* ---- records ---- */

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
