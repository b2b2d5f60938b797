/* SPDX-License-Identifier: MIT */
/*
 * otlp.h - batches as OpenTelemetry profiles
 *
 * One way, and experimental, as the signal is: its messages change with nearly
 * each version.  A sample of a batch is a sample with the same stack and
 * weight.  Not in it: histograms of calls, and losses.
 *
 *	origin	ResourceProfiles: service.name, host.name, the labels
 *	event	Profile, of each window: its samples, their unit and period
 *	frame	Location; inlined calls are lines of their caller's.  A place
 *		without a symbol has an address, its offset in the file, and no
 *		line.  profile.frame.type: kernel, native, jit, luajit
 *	module	Mapping, as if the file were loaded at 0; its build id
 *
 * The id of a profile is made from the batch's: a receiver can drop a second.
 *
 * Source: opentelemetry-proto 1.11.0,
 * opentelemetry/proto/profiles/v1development/profiles.proto; the keys of
 * attributes: OpenTelemetry semantic conventions, "Profiles", "Process",
 * "Thread"
 */
#pragma once

#include "base/proto.h"
#include "wire/fleet/batch.h"

/* Append ProfilesData of @batch to @to.  0 or -ENOMEM. */
int seam_otlp_encode(struct seam_proto *to, const struct seam_batch *batch,
		     struct seam_err *err);

enum { SEAM_OTLP_MAX_HEADERS = 16 };

/*
 * What each request has, such as a key of the receiver's.  Source:
 * OpenTelemetry specification, "OpenTelemetry Protocol Exporter", "Specifying headers via
 * environment variables"
 */
#define SEAM_OTLP_HEADERS "OTEL_EXPORTER_OTLP_HEADERS"

/* Lines "key: value", owned, and a NULL. */
struct seam_otlp_headers {
	char *lines[SEAM_OTLP_MAX_HEADERS + 1];
	size_t n;
};

/* Of the environment: 0 or -errno; to be freed in either case. */
int seam_otlp_headers_read(struct seam_otlp_headers *headers,
			   struct seam_err *err);
void seam_otlp_headers_fini(struct seam_otlp_headers *headers);
