/* SPDX-License-Identifier: MIT */
/*
 * requests.c - a server that keeps what led up to its slowest requests
 *
 *	ninja -C build examples/fdr/requests
 *	build/examples/fdr/requests
 *	build/seam calls --stacks=1 slow-1.seam
 *
 * It is compiled with -finstrument-functions, so all its functions are
 * recorded, into memory that overwrites itself (flight=1).  After a request that
 * took longer than a limit it writes what that memory has to a bundle, with the
 * request's number in an event.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <seam/fdr.h>

enum {
	N_REQUESTS = 200000,
	N_ROWS = 64,
	LIMIT_US = 20000,
	MAX_SNAPSHOTS = 3,
};

static unsigned int rows[N_ROWS];

static unsigned int hash(const char *key)
{
	unsigned int h = 2166136261;

	while (*key)
		h = (h ^ (unsigned char)*key++) * 16777619;
	return h;
}

static unsigned int rebuild(unsigned int part)
{
	unsigned int h = part;

	for (int round = 0; round < 10000; round++)
		for (int i = 0; i < N_ROWS; i++)
			h = h * 31 + rows[i];
	return h;
}

/* Once in a while it is due, and then it takes its time. */
static void reorganize(void)
{
	for (unsigned int i = 0; i < N_ROWS; i++)
		rows[i] ^= rebuild(i) & 1;
}

static void insert(const char *key)
{
	static unsigned int n;

	rows[n++ % N_ROWS] = hash(key);
	if (n % 50000 == 0)
		reorganize();
}

static void handle(unsigned int number)
{
	char key[32];

	snprintf(key, sizeof(key), "user %u", number % 977);
	insert(key);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* What a snapshot says about its request. */
static void keep(int type, unsigned int number, double us, int n_snapshots)
{
	char text[80], folder[32];

	snprintf(text, sizeof(text), "{\"request\":%u,\"us\":%.0f}", number, us);
	seam_fdr_log_typed((uint16_t)type, text, strlen(text));
	snprintf(folder, sizeof(folder), "slow-%d.seam", n_snapshots);
	if (seam_fdr_snapshot(folder) == 0)
		printf("request %u took %.0f us: %s\n", number, us, folder);
}

int main(void)
{
	int r = seam_fdr_start("flight=1;out=requests.seam");
	int type = seam_fdr_register_type("slow request");
	int n_snapshots = 0;

	if (r) {
		fprintf(stderr, "not recorded: %s\n", strerror(-r));
		return 1;
	}
	for (unsigned int i = 0; i < N_REQUESTS; i++) {
		double start = now_us(), us;

		handle(i);
		us = now_us() - start;
		if (us > LIMIT_US && n_snapshots < MAX_SNAPSHOTS)
			keep(type, i, us, ++n_snapshots);
	}
	return -seam_fdr_stop();
}
