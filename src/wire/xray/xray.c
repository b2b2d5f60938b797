/* SPDX-License-Identifier: MIT */
/* xray.c - the header that both kinds of log share; see xray.h */
#include "wire/xray/xray.h"

#include <errno.h>

#define F(member, text) SEAM_FIELD(struct seam_xray_header, member, text)
const struct seam_record seam_xray_header_record = SEAM_RECORD(
	"Header", "XRay FDR format, version 1, \"Header Section\"",
	F(version, "FDR 1 to 5, basic 1 to 3"),
	F(log_type, "0 basic, 1 FDR"),
	F(flags, "bit 0 constant_tsc, bit 1 nonstop_tsc"),
	F(cycle_frequency,
	  "TSC ticks a second; 10^9 when the TSC was emulated"),
	F(buffer_size, "FDR: bytes of one thread's buffer"),
	F(reserved, "not meaningful, and not zero"));
#undef F

const char *seam_xray_action_name(unsigned int action)
{
	static const char *const names[] = {
		"Entry", "Exit", "Tail_Exit", "Entry_Args",
	};

	return action < SEAM_ARRAY_SIZE(names) ? names[action] : NULL;
}

bool seam_xray_is_lost(const struct seam_xray_payload *payload)
{
	return payload->type == SEAM_XRAY_LOST &&
	       payload->data.size == sizeof(uint64_t);
}

uint64_t seam_xray_n_lost(const struct seam_xray_payload *payload)
{
	struct seam_cursor c = seam_cursor_over(payload->data,
						SEAM_LITTLE);

	return seam_cursor_u64(&c);
}

void seam_xray_problems_add(struct seam_xray_problems *problems,
			    const struct seam_xray_problem *problem)
{
	size_t at = problems->n_kept;

	problems->n++;
	problems->lost_bytes += problem->lost_bytes;
	while (at > 0 && problems->items[at - 1].offset > problem->offset)
		at--;
	if (at == SEAM_XRAY_PROBLEMS)
		return;
	if (problems->n_kept < SEAM_XRAY_PROBLEMS)
		problems->n_kept++;
	memmove(&problems->items[at + 1], &problems->items[at],
		(problems->n_kept - at - 1) * sizeof(*problem));
	problems->items[at] = *problem;
}

void seam_xray_problems_merge(struct seam_xray_problems *into,
			      const struct seam_xray_problems *from)
{
	uint64_t n = into->n + from->n;
	uint64_t lost_bytes = into->lost_bytes + from->lost_bytes;

	for (size_t i = 0; i < from->n_kept; i++)
		seam_xray_problems_add(into, &from->items[i]);
	into->n = n;
	into->lost_bytes = lost_bytes;
}

/* By type.  Type 2 is what the profiling mode writes, which no tool reads. */
static const struct {
	const char *name;
	uint16_t newest;
} kinds[] = {
	[SEAM_XRAY_BASIC] = { "basic mode", SEAM_XRAY_BASIC_VERSION },
	[SEAM_XRAY_FDR] = { "the flight data recorder",
			    SEAM_XRAY_FDR_VERSION },
};

int seam_xray_header_read(struct seam_bytes file, size_t offset,
			  struct seam_xray_header *header,
			  enum seam_endian *endian, struct seam_err *err)
{
	size_t left = offset < file.size ? file.size - offset : 0;

	if (left < SEAM_XRAY_HEADER_BYTES)
		return seam_err_set(err, -ENODATA,
				    "cannot read XRay header: %zu of %d bytes",
				    left, SEAM_XRAY_HEADER_BYTES);
	for (int e = SEAM_LITTLE; e <= SEAM_BIG; e++) {
		struct seam_cursor c = seam_cursor_make(file.data + offset,
			SEAM_XRAY_HEADER_BYTES, (enum seam_endian)e);

		seam_wire_read(&c, &seam_xray_header_record, header);
		*endian = (enum seam_endian)e;
		/* small in one byte order is huge in the other: 5 is 1280 */
		if (header->version < 1 || header->version > 255 ||
		    header->log_type > 255)
			continue;
		if (header->log_type >= SEAM_ARRAY_SIZE(kinds))
			return seam_err_set(err, -ENOTSUP, "an XRay log with "
				"type=%u: basic mode (0) and flight data "
				"recorder (1) are read", header->log_type);
		if (header->version <= kinds[header->log_type].newest)
			return 0;
		return seam_err_set(err, -ENOTSUP, "an XRay log of %s with "
				    "version=%u: those up to %u are read",
				    kinds[header->log_type].name,
				    header->version,
				    kinds[header->log_type].newest);
	}
	return seam_err_set(err, -EBADMSG, "not an XRay log");
}
