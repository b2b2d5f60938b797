/* SPDX-License-Identifier: MIT */
/* code_write.c - change code that threads may be executing; see code_write.h */
#include "traced/fdr/sleds/code_write.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* Give all pages of @w their rights, and @more.  0, or the first -errno. */
static int set_rights(const struct seam_fdr_write *w, int more)
{
	for (size_t i = 0; i < w->code->segments.n; i++) {
		const struct seam_fdr_segment *s = &w->code->segments.items[i];
		uint64_t start = w->start > s->start ? w->start : s->start;
		uint64_t end = w->end < s->end ? w->end : s->end;

		if (start >= end || !(s->rights & PROT_EXEC))
			continue;
		start &= ~(uint64_t)(PAGE - 1);
		end = (end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
		if (mprotect((void *)start, end - start, s->rights | more) < 0)
			return -errno;
	}
	return 0;
}

int seam_fdr_write_begin(struct seam_fdr_write *w,
			 const struct seam_fdr_code *code, uint64_t start,
			 uint64_t end)
{
	*w = (struct seam_fdr_write) { code, start, end, -1, 0 };
	if (set_rights(w, PROT_WRITE) == 0)
		return 0;
	set_rights(w, 0);
	w->memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	return w->memory < 0 ? -errno : 0;
}

int seam_fdr_write_end(struct seam_fdr_write *w)
{
	if (w->memory >= 0)
		close(w->memory);
	else
		set_rights(w, 0);
	return w->error;
}

static void write_through(struct seam_fdr_write *w, uint64_t address,
			  const void *from, size_t bytes)
{
	ssize_t n = pwrite(w->memory, from, bytes, (off_t)address);

	if (n != (ssize_t)bytes && !w->error)
		w->error = n < 0 ? -errno : -EIO;
}

void seam_fdr_write(struct seam_fdr_write *w, uint64_t address,
		    const void *from, size_t bytes)
{
	if (!memcmp((const void *)address, from, bytes))
		return;
	if (w->memory >= 0)
		write_through(w, address, from, bytes);
	else
		memcpy((void *)address, from, bytes);
}

void seam_fdr_write_head(struct seam_fdr_write *w, uint64_t address,
			 const uint8_t head[2])
{
	uint16_t value;

	memcpy(&value, head, sizeof(value));
	if (w->memory < 0) {
		/* it need not be aligned */
		__asm__ volatile("movw %1, %0"
				 : "=m" (*(uint16_t *)address)
				 : "r" (value) : "memory");
		return;
	}
	seam_fdr_write(w, address, head, 1);
	seam_fdr_write(w, address + 1, head + 1, 1);
}

static bool sync_core(void)
{
	return syscall(SYS_membarrier,
		       MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0;
}

bool seam_fdr_write_can_sync(void)
{
	/* a forked child has to register anew */
	return sync_core() ||
	       (syscall(SYS_membarrier,
			MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE,
			0, 0) == 0 && sync_core());
}

void seam_fdr_write_sync(void)
{
	(void)seam_fdr_write_can_sync();
}
