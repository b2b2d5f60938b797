/* SPDX-License-Identifier: MIT */
/*
 * fleet_query.h - a query of a store of profiles, from a command line
 *
 * The answer is a batch file in memory, which commands read as they read any
 * recording: so each of their views and options is one of a fleet.
 */
#pragma once

#include "cli/command.h"
#include "fleet/store.h"

/* For stores that are servers. */
struct seam_fleet_login {
	const char *credentials, *ca_file;
};

struct seam_fleet_options {
	const char *from;
	const char *service, *host;
	const char *since;
	struct seam_option_list labels;
	struct seam_fleet_login login;
};

#define SEAM_FLEET_LOGIN_OPTIONS(type, member)				\
	SEAM_OPTION(type, member.credentials, STRING, 0, "credentials",	\
		    "FILE", "a file with USER:PASSWORD, which only "	\
		    "its owner can read",				\
		    .detail = "The default is SEAM_FLEET_USER and "	\
		    "SEAM_FLEET_PASSWORD in the environment."),		\
	SEAM_OPTION(type, member.ca_file, STRING, 0, "ca-file", "FILE",	\
		    "verify the server's certificate by the authorities in " \
		    "FILE (PEM)")

#define SEAM_OTLP_OPTION(type, member)					\
	SEAM_OPTION(type, member, STRING, 0, "otlp", "URL",		\
		    "also send OpenTelemetry profiles to URL (experimental)", \
		    .detail = "Messages of opentelemetry-proto 1.11.0, "	\
		    "v1development, to URL/v1development/profiles, without " \
		    "histograms of calls and losses. Each batch is sent "	\
		    "once --to has it; what the receiver does not take is "	\
		    "not sent again. Without --to, 'seam agent' sends it "	\
		    "until the receiver takes it, maybe more than once. "	\
		    "Headers, such as a key, are those of "		\
		    "OTEL_EXPORTER_OTLP_HEADERS in the environment.")

#define SEAM_FLEET_OPTIONS(type, member)				\
	{ .kind = SEAM_OPTION_HEADING, .help = "Profiles of a fleet" },	\
	SEAM_OPTION(type, member.from, STRING, 0, "from", "WHERE",	\
		    "the store: a folder of batches, or a URL",		\
		    .detail = "What 'seam agent --to' and 'seam push --to' " \
		    "write."),						\
	SEAM_OPTION(type, member.service, STRING, 0, "service", "GLOB",	\
		    "only services whose name matches",			\
		    .detail = "With *, ? and [a-z]: web-*."),		\
	SEAM_OPTION(type, member.host, STRING, 0, "host", "GLOB",	\
		    "only hosts whose name matches"),			\
	SEAM_OPTION(type, member.labels, STRINGS, 0, "label", "K=V",	\
		    "only profiles with this label",			\
		    .detail = "May be given several times: profiles "	\
		    "that have all of them."),				\
	SEAM_OPTION(type, member.since, STRING, 0, "since", "TIME",	\
		    "only this time: 1h, 2h..1h, or dates in UTC",	\
		    .detail = "1h is the time since one hour ago; s, m, h " \
		    "and d are units. A..B is a range of such times or dates: "	\
		    "2026-11-24T10:00..2026-11-24T11:00. Either may " \
		    "be omitted. Profiles have windows of 10 s: those count " \
		    "that begin in the range. The default is all of a "	\
		    "folder, and the last hour of a server."),		\
	SEAM_FLEET_LOGIN_OPTIONS(type, member.login)

/*
 * Ask the store: the path of the answer, valid until the program ends.  @keep
 * as in struct seam_fleet_query.  What the store lacks is a loss in the answer.
 * SEAM_EXIT_DONE, or the exit status after a message.
 */
int seam_fleet_query_open(const struct seam_command *command,
			  const struct seam_fleet_options *options,
			  unsigned int keep, bool with_calls,
			  const char **path);

/* Free the answer @path, for queries that are asked again and again. */
void seam_fleet_query_close(const char *path);
