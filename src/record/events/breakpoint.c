/* SPDX-License-Identifier: MIT */
/* breakpoint.c - "mem:ADDR[/LEN][:rwx[:u]]"; see event_kinds.h */
#include "record/events/event_kinds.h"

#include "base/text.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdlib.h>

static int malformed(const char *text, struct seam_err *err)
{
	char shown[2 * SEAM_EVENT_NAME];

	seam_text_copy(shown, sizeof(shown), text, SEAM_TEXT_TERMINAL);
	return seam_err_set(err, -EINVAL, "a breakpoint is written "
			    "mem:ADDR[/LEN][:rwx[:u]], and not '%s'", shown);
}

/* The type of "rw", which ends at a colon.  0: an unknown letter, or none. */
static uint32_t access_of(const char *letters)
{
	uint32_t type = 0;

	for (; *letters && *letters != ':'; letters++)
		switch (*letters) {
		case 'r': type |= HW_BREAKPOINT_R; break;
		case 'w': type |= HW_BREAKPOINT_W; break;
		case 'x': type |= HW_BREAKPOINT_X; break;
		default: return 0;
		}
	return type;
}

int seam_breakpoint_parse(struct seam_event *event, const char *text,
			  struct seam_err *err)
{
	char *end;

	snprintf(event->name, sizeof(event->name), "%s", text);
	event->each_time = true;
	event->attr.type = PERF_TYPE_BREAKPOINT;
	event->attr.sample_type = PERF_SAMPLE_ADDR;
	event->attr.bp_type = HW_BREAKPOINT_RW;
	event->attr.bp_len = HW_BREAKPOINT_LEN_4;
	errno = 0;
	event->attr.bp_addr = strtoull(text + strlen("mem:"), &end, 0);
	if (errno || end == text + strlen("mem:"))
		return malformed(text, err);
	if (*end == '/')
		event->attr.bp_len = strtoull(end + 1, &end, 10);
	if (*end == ':') {
		event->attr.bp_type = access_of(end + 1);
		end += 1 + strcspn(end + 1, ":");
	}
	if (*end == ':' && end[1]) {
		if (seam_event_modify(event, end + 1, err) < 0)
			return -EINVAL;
		end += strlen(end);
	}
	/* Source: perf_event_open(2): the length of a breakpoint on code */
	if (event->attr.bp_type == HW_BREAKPOINT_X)
		event->attr.bp_len = sizeof(long);
	if (*end || !event->attr.bp_type || !event->attr.bp_len ||
	    event->attr.bp_len > 8 ||
	    event->attr.bp_len & (event->attr.bp_len - 1))
		return malformed(text, err);
	return 0;
}
