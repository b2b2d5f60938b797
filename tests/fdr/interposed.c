/* SPDX-License-Identifier: MIT */
/*
 * interposed.c - the recorder calls functions that are the program's, with sleds
 *
 * mmap() is called where a thread gets an area; it is here, and calls a
 * function with a sled.  Prints TAP.
 */
#include "area_walk.h"
#include "patcher.h"
#include "source_local.h"

#include "traced/fdr/record/rseq.h"
#include "traced/fdr/record/thread_area.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIDDEN __attribute__((xray_never_instrument))
#define SHOWN __attribute__((xray_always_instrument, noinline))

enum { N = 50000 };

static uint32_t id_leaf;

SHOWN void leaf(void)
{
	__asm__ volatile("");
}

SHOWN void inner(void)
{
	__asm__ volatile("");
}

SHOWN void *mmap(void *at, size_t bytes, int protection, int flags, int fd,
		 off_t offset)
{
	inner();
	return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd,
			       offset);
}

/* Entries and exits of leaf(), in turn. */
HIDDEN static uint64_t count(const struct local_area *area)
{
	struct walk w = {
		.area = local_bytes_of(area), .mask = area->size - 1,
		.end = area->cursor,
	};
	struct walk_record r;
	uint64_t n = 0;

	while (walk_next(&w, &r))
		if (r.function == id_leaf)
			n += r.kind == (n & 1 ? SEAM_XRAY_EXIT :
						SEAM_XRAY_ENTRY);
	return w.problem ? 0 : n;
}

HIDDEN static void *run(void *unused)
{
	(void)unused;
	for (int i = 0; i < N; i++)
		leaf();
	return NULL;
}

HIDDEN int main(void)
{
	static _Atomic uint64_t lost;
	uint64_t records = 0;
	pthread_t thread;
	bool good;

	local_bytes = 1 << 21;
	seam_fdr_rseq_init(false);
	if (seam_fdr_thread_init(&source_local))
		return 2;
	seam_fdr_n_lost = &lost;
	patcher_patch(&patcher_plain);
	id_leaf = patcher_id((void *)leaf);
	run(NULL);
	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
	for (struct local_area *area = local_areas; area;
	     area = area->next)
		records += count(area);
	/* of mmap() and inner(), in the program and in the thread */
	good = records == 2 * 2 * N && lost == 2 * 4;
	printf("1..1\n%s 1 - the recorder's own calls of the program end, are "
	       "counted as lost, and lose none of the others\n# %llu records, %llu lost\n",
	       good ? "ok" : "not ok", (unsigned long long)records,
	       (unsigned long long)lost);
	return !good;
}
