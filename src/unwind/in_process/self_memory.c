/* SPDX-License-Identifier: MIT */
/* self_memory.c - reads that no address makes fault; see self_memory.h */
#include "unwind/in_process/self_memory.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

size_t seam_self_read(uint64_t addr, void *bytes, size_t size)
{
	struct iovec local = { bytes, size };
	struct iovec remote = { (void *)(uintptr_t)addr, size };
	/* not the wrapper, which a program may interpose */
	long n = syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1,
			 0);

	return n > 0 ? (size_t)n : 0;
}

static bool load(const struct seam_self_memory *m, uint64_t addr,
		 uint64_t *word)
{
	uint64_t offset = addr - m->window_addr;

	if (offset >= m->window_bytes ||
	    m->window_bytes - offset < sizeof(*word))
		return false;
	memcpy(word, m->window + offset, sizeof(*word));
	return true;
}

static bool read_word(void *context, uint64_t addr, uint64_t *word)
{
	struct seam_self_memory *m = context;
	uint64_t page = addr & ~(uint64_t)(SEAM_SELF_PAGE - 1);

	if (seam_self_range_has(m->alternate, addr) &&
	    m->alternate.high - addr >= sizeof(*word)) {
		memcpy(word, (const void *)(uintptr_t)addr, sizeof(*word));
		return true;
	}
	if (load(m, addr, word))
		return true;
	/*
	 * A walk goes up, and reads a little below where it read before.  A
	 * window does not begin in the page before, which may not be mapped.
	 */
	m->window_addr = addr - page < 64 ? page : addr - 64;
	m->window_bytes = seam_self_read(m->window_addr, m->window,
					 sizeof(m->window));
	return load(m, addr, word);
}

/*
 * Whether the aligned word at @addr can be read: the kernel copies a signal
 * set from there before it refuses the first argument, and nothing is changed.
 * A fifth of the time of process_vm_readv().
 */
static bool is_readable(uint64_t addr)
{
	enum { NO_SUCH_CHANGE = -1, SET_BYTES = 8 };

	return syscall(SYS_rt_sigprocmask, NO_SUCH_CHANGE, addr & ~UINT64_C(7),
		       NULL, SET_BYTES) < 0 && errno == EINVAL;
}

void seam_self_memory_init(struct seam_self_memory *m, uint64_t here,
			   uint64_t sp, const stack_t *alternate,
			   struct seam_self_range stack)
{
	struct seam_self_range other = {
		(uint64_t)(uintptr_t)alternate->ss_sp,
		(uint64_t)(uintptr_t)alternate->ss_sp + alternate->ss_size };
	bool is_alternate = !(alternate->ss_flags & SS_DISABLE) &&
			    seam_self_range_has(other, here);
	struct seam_self_range direct = { 0 };

	m->window_bytes = 0;
	m->alternate = (struct seam_self_range) { 0 };
	m->memory = (struct seam_unwind_memory) {
		.read = read_word, .context = m };
	/* what is between variables there must not be loaded, only copied */
	if (SEAM_IS_SANITIZED)
		return;
	if (is_alternate)
		m->alternate = (struct seam_self_range) { here, other.high };
	/* what may be loaded of the stack that was interrupted */
	if (seam_self_range_has(stack, here))
		direct = (struct seam_self_range) { here, stack.high };
	else if (seam_self_range_has(stack, sp) && is_readable(sp))
		direct = (struct seam_self_range) { sp, stack.high };
	m->memory.stack = (const uint8_t *)(uintptr_t)direct.low;
	m->memory.stack_addr = direct.low;
	m->memory.stack_bytes = direct.high - direct.low;
}
