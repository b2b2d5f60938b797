/* SPDX-License-Identifier: MIT */
/* fleet_init.c - 'seam fleet init': the tables of a fleet's store */
#include <errno.h>

#include "cli/command.h"
#include "fleet/clickhouse.h"

struct fleet_init_options {
	struct seam_option_list to;
	const char *cluster, *credentials, *ca_file;
	uint64_t ttl_days;
};

#define OPTION(...) SEAM_OPTION(struct fleet_init_options, __VA_ARGS__)

static const struct seam_option options[] = {
	OPTION(to, STRINGS, 0, "to", "URL",
	       "a node of ClickHouse, as http://HOST:8123; once for each node "
	       "of a cluster"),
	OPTION(cluster, STRING, 0, "cluster", "NAME",
	       "spread rows over the shards of this cluster of the servers' "
	       "<remote_servers>"),
	OPTION(ttl_days, U64, 0, "ttl", "DAYS",
	       "remove what is older", .least = 1,
	       .detail = "The server does so by itself. One that is older "
			 "than ClickHouse 20 cannot: 'seam fleet init' drops "
			 "the days that are older each time it runs with this "
			 "option, from cron(8) for instance."),
	OPTION(credentials, STRING, 0, "credentials", "FILE",
	       "a file with USER:PASSWORD, which only its owner can read"),
	OPTION(ca_file, STRING, 0, "ca-file", "FILE",
	       "verify the server's certificate by the authorities in FILE "
	       "(PEM)"),
};

static void say_made(const char *url, const struct seam_clickhouse_made *made)
{
	char shown[SEAM_CLICKHOUSE_SHOWN], dropped[40] = "";

	seam_clickhouse_shown(url, shown);
	if (made->n_dropped)
		snprintf(dropped, sizeof(dropped), "; %u old day%s dropped",
			 made->n_dropped, made->n_dropped == 1 ? "" : "s");
	if (made->from == made->to)
		seam_command_say("%s: the tables are there, version %u%s",
				 shown, made->to, dropped);
	else if (made->from)
		seam_command_say("%s: tables of version %u, before %u%s",
				 shown, made->to, made->from, dropped);
	else
		seam_command_say("%s: tables created, version %u", shown,
				 made->to);
}

static int init_node(const struct fleet_init_options *o, const char *url,
		     struct seam_err *err)
{
	const struct seam_fleet_place place = {
		.where = url, .credentials = o->credentials,
		.ca_file = o->ca_file,
	};
	const struct seam_clickhouse_init init = {
		o->cluster, (uint32_t)o->ttl_days,
	};
	struct seam_clickhouse_made made;
	struct seam_clickhouse *ch;
	char shown[SEAM_CLICKHOUSE_SHOWN];
	int ret = seam_clickhouse_open(&ch, &place, err);

	if (ret)
		return seam_err_add(err, ret, "cannot open '%s'",
				    seam_clickhouse_shown(url, shown));
	ret = seam_clickhouse_init(ch, &init, &made, err);
	if (!ret)
		say_made(url, &made);
	seam_clickhouse_close(ch);
	return ret;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct fleet_init_options o = { 0 };
	struct seam_err err = { 0 };
	int first, status = seam_command_parse(self, argc, argv, &o, &first);
	int ret = 0;

	if (status)
		return status;
	if (argc > first)
		return seam_command_misused(self, "'%s': a server is named by "
					    "--to URL", argv[first]);
	if (!o.to.n)
		return seam_command_misused(self, "--to URL is needed");
	for (size_t i = 0; i < o.to.n; i++)
		if (strncmp(o.to.items[i], "http://", 7) &&
		    strncmp(o.to.items[i], "https://", 8))
			return seam_command_misused(self, "--to: '%s' is no "
				"URL of ClickHouse (a folder needs no tables)",
				o.to.items[i]);
	if (o.cluster && !seam_clickhouse_is_name(o.cluster))
		return seam_command_misused(self, "--cluster: not a name of "
					    "letters, digits, _ and -");
	if (o.ttl_days > 36500)
		return seam_command_misused(self, "--ttl: more than 36500 "
					    "days");
	for (size_t i = 0; !ret && i < o.to.n; i++)
		ret = init_node(&o, o.to.items[i], &err);
	return ret ? seam_command_failed(&err) : SEAM_EXIT_DONE;
}

const struct seam_command seam_fleet_init_command = {
	.name = "fleet init",
	.summary = "create or update the tables of a fleet in ClickHouse",
	.synopsis = "--to URL [--to URL...] [--cluster NAME] [--ttl DAYS]",
	.description =
		"Creates the database and the tables, or brings those of an "
		"older Seam up to date. It may be repeated. ClickHouse 18.16 "
		"and later are supported.\n\n"
		"The database is 'seam', or what the URL names: "
		"http://HOST:8123/?database=NAME. On a cluster each node is "
		"named by a --to of its own.\n\n"
		"Credentials are read from --credentials FILE, from the file "
		"'fleet' that systemd's LoadCredential= gives, or from "
		"SEAM_FLEET_USER and SEAM_FLEET_PASSWORD: never from a URL.",
	.examples =
		"seam fleet init --to http://db1:8123\tone server\n"
		"seam fleet init --to https://db1:8443 --to https://db2:8443 "
		"--cluster seam --ttl 30\ttwo shards, kept for 30 days\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.run = run,
};
