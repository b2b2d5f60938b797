/* SPDX-License-Identifier: MIT */
/*
 * target.c - a program as a recorder meets it, for the tests
 *
 *	target ADDRESS N [leave|fork|kill]
 *
 * Connects to the recorder at ADDRESS, writes N numbered records, and then
 * disconnects; continues in a forked child that has closed every descriptor;
 * or kills itself.
 * Exit 0, or 1 when any of that failed.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring/link/link.h"

static int put_numbers(struct seam_link_client *c, uint64_t first, uint64_t n)
{
	struct seam_ring_claim claim;

	if (seam_link_client_claim(c, 0, (uint32_t)syscall(SYS_gettid), &claim))
		return 1;
	for (uint64_t i = first; i < first + n; i++)
		if (seam_ring_write(&claim.ring, PERF_RECORD_SAMPLE, 0, &i,
				    sizeof(i)))
			return 1;
	seam_ring_memory_close(&c->memories[0], &claim);
	return 0;
}

int main(int argc, char **argv)
{
	struct seam_link_client c;
	const char *how = argc > 3 ? argv[3] : "leave";
	uint64_t n;
	int r;

	if (argc < 3)
		return 2;
	n = strtoull(argv[2], NULL, 10);
	r = seam_link_client_connect(&c, argv[1], "numbers", 5000);
	if (r) {
		fprintf(stderr, "target: no recorder: %s\n", strerror(-r));
		return 1;
	}
	if (put_numbers(&c, 0, n))
		return 1;
	if (!strcmp(how, "fork") && fork() == 0) {
		for (int fd = 0; fd < 64; fd++)
			close(fd);
		_exit(put_numbers(&c, n, n));
	}
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	seam_link_client_fini(&c);
	return 0;
}
