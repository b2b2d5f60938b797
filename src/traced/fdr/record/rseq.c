/* SPDX-License-Identifier: MIT */
/* rseq.c - see rseq.h */
#include "traced/fdr/record/rseq.h"

#include "traced/fdr/record/critical.h"
#include "traced/fdr/record/system.h"

#include <linux/rseq.h>
#include <sys/syscall.h>

enum { OWN_BYTES = 32 };	/* of the first version of struct rseq */

/*
 * Of glibc; both absent before 2.35, the size 0 where glibc does not register.
 */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

struct own {
	uint32_t cpu_id_start;
	uint32_t cpu_id;
	uint64_t rseq_cs;
	uint32_t flags, node_id, mm_cid, unused;
} __attribute__((aligned(OWN_BYTES)));

_Static_assert(sizeof(struct own) == OWN_BYTES, "");
_Static_assert(offsetof(struct own, cpu_id) == RSEQ_CPU_ID, "");
_Static_assert(offsetof(struct own, rseq_cs) == RSEQ_CS, "");

static __thread struct own own
	__attribute__((tls_model("initial-exec"))) = {
	.cpu_id = (uint32_t)RSEQ_CPU_ID_UNINITIALIZED,
};

ptrdiff_t seam_fdr_rseq_offset;
static bool is_own;

static uint8_t *thread_pointer(void)
{
	uint8_t *p;

	__asm__("movq %%fs:0, %0" : "=r" (p));
	return p;
}

void seam_fdr_rseq_init(bool use_own)
{
	is_own = use_own || !&__rseq_offset || !&__rseq_size || !__rseq_size;
	seam_fdr_rseq_offset = is_own ? (uint8_t *)&own - thread_pointer() :
					__rseq_offset;
}

bool seam_fdr_rseq_register(void)
{
	return seam_fdr_rseq_is_active() ||
	       (is_own && seam_fdr_syscall4(SYS_rseq, (long)&own, OWN_BYTES, 0,
					    RSEQ_SIGNATURE) == 0);
}

bool seam_fdr_rseq_is_active(void)
{
	/*
	 * the kernel sets it when it registers the thread; below 0: it did not
	 */
	return (int32_t)seam_fdr_rseq_cpu() >= 0;
}

uint32_t seam_fdr_rseq_cpu(void)
{
	const volatile struct own *used =
		(void *)(thread_pointer() + seam_fdr_rseq_offset);

	return used->cpu_id;
}
