/* SPDX-License-Identifier: MIT */
/*
 * fleet_store.c - a store of a fleet, driven by tests
 *
 *	fleet_store WHERE init [CLUSTER]
 *	fleet_store WHERE put FILE...	each once, until it is stored
 *	fleet_store WHERE try FILE	one time: "stored", "later" or "never"
 *	fleet_store WHERE ask [option=value...]	the answer, a batch file
 *
 * Options: service host label event from to step keep calls; keep has the
 * letters of enum seam_fleet_keep's names: w s h p t.  What the answer has
 * besides its rows is on stderr: "rows N nodes N missing N (names)".
 * SEAM_CREDENTIALS and SEAM_CA_FILE name files.  Repeats end after a minute.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "fleet/clickhouse.h"
#include "wire/fleet/batch_file.h"

enum { MINUTE = 60 };

static int put(struct seam_fleet_store *store, const char *path, bool once)
{
	struct seam_err err = { 0 };
	struct seam_file file;
	uint64_t end = seam_clock_ns() + MINUTE * SEAM_NS_PER_S;
	int ret = seam_file_open(&file, path, &err);

	while (!ret) {
		ret = seam_fleet_put(store, file.bytes, &err);
		if (ret)
			seam_err_print(stderr, "fleet_store", &err);
		if (ret != -EAGAIN || once || seam_clock_ns() > end)
			break;
		ret = 0;
		usleep(300000);
	}
	seam_file_close(&file);
	puts(!ret ? "stored" : ret == -EAGAIN ? "later" : "never");
	return ret;
}

static unsigned int keep_of(const char *letters)
{
	static const char all[] = "wshpt";
	unsigned int keep = 0;

	for (; *letters; letters++)
		keep |= 1u << (strchr(all, *letters) - all);
	return keep;
}

static void set_option(struct seam_fleet_query *query, const char **labels,
		       const char *name, const char *value)
{
	if (!strcmp(name, "service"))
		query->service = value;
	else if (!strcmp(name, "host"))
		query->host = value;
	else if (!strcmp(name, "event"))
		query->event = value;
	else if (!strcmp(name, "from"))
		query->from_ns = strtoull(value, NULL, 10);
	else if (!strcmp(name, "to"))
		query->to_ns = strtoull(value, NULL, 10);
	else if (!strcmp(name, "step"))
		query->step_ns = strtoull(value, NULL, 10);
	else if (!strcmp(name, "keep"))
		query->keep = keep_of(value);
	else if (!strcmp(name, "calls"))
		query->with_calls = true;
	else if (!strcmp(name, "label"))
		labels[query->n_labels++] = value;
}

static int ask(struct seam_fleet_store *store, char **options, int n)
{
	const char *labels[SEAM_BATCH_MAX_LABELS];
	struct seam_fleet_query query = {
		.labels = labels, .to_ns = INT64_MAX,
	};
	struct seam_native_buffer bytes = { 0 };
	struct seam_fleet_answer answer;
	struct seam_err err = { 0 };
	int ret;

	for (int i = 0; i < n; i++) {
		char *value = strchr(options[i], '=');

		if (!value)
			return -EINVAL;
		*value = 0;
		set_option(&query, labels, options[i], value + 1);
	}
	ret = seam_fleet_ask(store, &query, &answer, &err);
	if (!ret)
		ret = seam_batch_file_write(&answer.batch, &bytes, &err);
	if (ret)
		seam_err_print(stderr, "fleet_store", &err);
	else
		fprintf(stderr, "rows %llu nodes %u missing %u (%s)\n",
			(unsigned long long)answer.n_rows, answer.n_nodes,
			answer.n_missing, answer.missing);
	fwrite(bytes.bytes.items, 1, ret ? 0 : bytes.bytes.n, stdout);
	free(bytes.bytes.items);
	seam_fleet_answer_fini(&answer);
	return ret;
}

static int init(struct seam_fleet_store *store, const char *cluster)
{
	struct seam_clickhouse_made made;
	struct seam_err err = { 0 };
	int ret = seam_clickhouse_init((struct seam_clickhouse *)store, &(struct seam_clickhouse_init) {
				       cluster, 0 }, &made, &err);

	if (ret)
		seam_err_print(stderr, "fleet_store", &err);
	return ret;
}

int main(int argc, char **argv)
{
	struct seam_fleet_place place = {
		.where = argc > 1 ? argv[1] : "",
		.credentials = getenv("SEAM_CREDENTIALS"),
		.ca_file = getenv("SEAM_CA_FILE"),
	};
	struct seam_fleet_store *store;
	struct seam_err err = { 0 };
	int ret = 0;

	if (argc < 3)
		return 2;
	if (seam_fleet_open(&store, &place, &err)) {
		seam_err_print(stderr, "fleet_store", &err);
		return 1;
	}
	if (!strcmp(argv[2], "init"))
		ret = init(store, argc > 3 ? argv[3] : NULL);
	else if (!strcmp(argv[2], "ask"))
		ret = ask(store, argv + 3, argc - 3);
	else
		for (int i = 3; !ret && i < argc; i++)
			ret = put(store, argv[i], !strcmp(argv[2], "try"));
	seam_fleet_close(store);
	return ret ? 1 : 0;
}
