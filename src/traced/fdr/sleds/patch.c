/* SPDX-License-Identifier: MIT */
/* patch.c - live code, changed; see patch.h */
#include "traced/fdr/sleds/patch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire/xray/xray_chunk.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

/*
 * ---- change code that threads may be executing ----
 *
 *	begin_write(&w, code, start, end);
 *	write_bytes(&w, ...);		what is not executed yet
 *	sync_code();
 *	write_head(&w, ...);		what makes it be executed
 *	sync_code();
 *	end_write(&w);
 *
 * Pages are writable and executable in between, and then as they were.  Where
 * the system refuses that (W^X: SELinux, PR_SET_MDWE), the bytes go through
 * /proc/self/mem, which pages need not be writable for.  The kernel may copy
 * these one by one (rep movsb, which is interrupted where the CPU has executed
 * the line that it writes to), so threads may see some of them before others.
 *
 * Source: Intel SDM, volume 3, 9.1.3 "Handling Self- and Cross-Modifying
 * Code"; membarrier(2).
 */

struct code_write {
	const struct seam_fdr_code *code;
	uint64_t start, end;
	int memory;		/* descriptor of /proc/self/mem; -1: not used */
	int error;		/* of the first write that failed */
};

enum { PAGE = 4096 };

/* Give all pages of @w their rights, and @more.  0, or the first -errno. */
static int set_rights(const struct code_write *w, int more)
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

/*
 * Prepare to write between @start and @end, in executable segments of @code.
 * 0, or -errno where neither way is allowed.
 */
static int begin_write(struct code_write *w, const struct seam_fdr_code *code,
		       uint64_t start, uint64_t end)
{
	*w = (struct code_write) { code, start, end, -1, 0 };
	if (set_rights(w, PROT_WRITE) == 0)
		return 0;
	set_rights(w, 0);
	w->memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	return w->memory < 0 ? -errno : 0;
}

/* 0, or the negative errno of the first write that failed. */
static int end_write(struct code_write *w)
{
	if (w->memory >= 0)
		close(w->memory);
	else
		set_rights(w, 0);
	return w->error;
}

/* Write @bytes at @address, that no thread can be executing. */
static void write_bytes(struct code_write *w, uint64_t address,
			const void *from, size_t bytes)
{
	ssize_t n;

	if (!memcmp((const void *)address, from, bytes))
		return;
	if (w->memory < 0) {
		memcpy((void *)address, from, bytes);
		return;
	}
	n = pwrite(w->memory, from, bytes, (off_t)address);
	if (n != (ssize_t)bytes && !w->error)
		w->error = n < 0 ? -errno : -EIO;
}

/*
 * Write two bytes, which are in one aligned word of 8.  A thread executes the
 * old or the new bytes; or, through /proc/self/mem, perhaps a byte of each.
 */
static void write_head(struct code_write *w, uint64_t address,
		       const uint8_t head[2])
{
	uint16_t value;

	memcpy(&value, head, sizeof(value));
	if (w->memory < 0) {
		/* the address need not be aligned */
		__asm__ volatile("movw %1, %0"
				 : "=m" (*(uint16_t *)address)
				 : "r" (value) : "memory");
		return;
	}
	write_bytes(w, address, head, 1);
	write_bytes(w, address + 1, head + 1, 1);
}

/*
 * From here on all threads execute what was written before.  By membarrier(2),
 * since Linux 4.16: false where the kernel does not have that.
 */
static bool sync_code(void)
{
	const int sync = MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE;
	const int enroll = MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE;

	/* a forked child has to register anew */
	return syscall(SYS_membarrier, sync, 0, 0) == 0 ||
	       (syscall(SYS_membarrier, enroll, 0, 0) == 0 &&
		syscall(SYS_membarrier, sync, 0, 0) == 0);
}

/*
 * ---- stubs: code near an image, for targets out of its reach ----
 *
 * A call in a sled reaches 2 GiB; this library may be further away.  A stub is
 * 32 bytes, in memory near the image, and is never freed or changed: a thread
 * may be about to execute the stub whatever is unpatched or unloaded meanwhile.
 */

enum {
	STUB_BYTES = 32,
	BLOCK_BYTES = 64 << 10,
};

#define NAME "seam-fdr stubs"

/* The image's code. */
struct stub_reach {
	uint64_t low, high;
};

static const uint64_t MAX_DISTANCE = (UINT64_C(1) << 31) - (1 << 20);
static const uint64_t FAR = 1 << 30, STEP = 1 << 21;

struct block {
	uint64_t start;
	uint32_t n_used, n_written;		/* bytes */
	uint8_t *bytes;				/* a copy, to write from */
};

/* What sleds call to come to @target: the target itself, or a stub. */
struct jump {
	uint64_t address, target;
	bool loads_word;
};

static SEAM_ARRAY(struct block) blocks;
static SEAM_ARRAY(struct jump) jumps;
/* No memory is near: not looked for again before the next write. */
static struct stub_reach without_memory;

static bool reaches(const struct stub_reach *reach, uint64_t address)
{
	uint64_t low = address < reach->low ? address : reach->low;
	uint64_t high = address > reach->high ? address : reach->high;

	return high - low < MAX_DISTANCE;
}

/*
 * Memory that is no file may not be executable where SELinux refuses execmem;
 * a file in memory may.
 */
static void *map_executable(uint64_t address)
{
	const int flags = MAP_PRIVATE | MAP_FIXED_NOREPLACE;
	const int rights = PROT_READ | PROT_EXEC;
	void *p = mmap((void *)address, BLOCK_BYTES, rights,
		       flags | MAP_ANONYMOUS, -1, 0);
	int fd;

	if (p != MAP_FAILED || (errno != EACCES && errno != EPERM))
		return p;
	fd = memfd_create(NAME, MFD_CLOEXEC);
	if (fd < 0)
		return p;
	if (ftruncate(fd, BLOCK_BYTES) == 0)
		p = mmap((void *)address, BLOCK_BYTES, rights, flags, fd, 0);
	close(fd);
	return p;
}

static bool map_at(uint64_t address)
{
	void *p = map_executable(address);

	if (p == MAP_FAILED)
		return false;
	if ((uint64_t)p == address) {
		/* for readers of /proc/PID/maps; Linux 5.17 */
		prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, BLOCK_BYTES, NAME);
		return true;
	}
	/* kernels before 4.17 take the address for a hint */
	munmap(p, BLOCK_BYTES);
	return false;
}

/*
 * Rather far than near: after a program is its heap, which grows by brk(2), and
 * next to libraries come libraries that are loaded later.
 */
static uint64_t map_near(const struct stub_reach *reach)
{
	uint64_t low = reach->low & ~(STEP - 1);
	uint64_t high = (reach->high + STEP - 1) & ~(STEP - 1);
	uint64_t distance = FAR;

	for (uint64_t i = 0; i < MAX_DISTANCE / STEP; i++) {
		if (reaches(reach, high + distance + BLOCK_BYTES) &&
		    map_at(high + distance))
			return high + distance;
		if (low > distance + STEP && reaches(reach, low - distance) &&
		    map_at(low - distance))
			return low - distance;
		distance = (distance + STEP) % MAX_DISTANCE ?: STEP;
	}
	return 0;
}

/* A block that @reach reaches, with room for a stub; NULL: no memory. */
static struct block *block_near(const struct stub_reach *reach)
{
	struct block block = { .n_used = 0 };

	for (size_t i = 0; i < blocks.n; i++)
		if (blocks.items[i].n_used < BLOCK_BYTES &&
		    reaches(reach, blocks.items[i].start) &&
		    reaches(reach, blocks.items[i].start + BLOCK_BYTES))
			return &blocks.items[i];
	if (without_memory.low == reach->low &&
	    without_memory.high == reach->high)
		return NULL;
	block.bytes = malloc(BLOCK_BYTES);
	if (!block.bytes || !SEAM_ARRAY_RESERVE(&blocks, 1))
		goto fail;
	block.start = map_near(reach);
	if (!block.start) {
		without_memory = *reach;
		goto fail;
	}
	blocks.items[blocks.n++] = block;
	return &blocks.items[blocks.n - 1];
fail:
	free(block.bytes);
	return NULL;
}

/* The stub's address, where it is after write_stubs(). */
static uint64_t add_stub(struct block *block, const uint8_t bytes[STUB_BYTES])
{
	uint64_t address = block->start + block->n_used;

	memcpy(block->bytes + block->n_used, bytes, STUB_BYTES);
	block->n_used += STUB_BYTES;
	return address;
}

static int write_block(struct block *block)
{
	uint64_t end = block->start + block->n_used;
	uint64_t at = block->start + block->n_written;
	struct seam_fdr_segment segment = {
		block->start, block->start + BLOCK_BYTES, PROT_READ | PROT_EXEC,
	};
	const struct seam_fdr_code code = { .segments = { &segment, 1, 1 } };
	struct code_write w;
	int r;

	if (at == end)
		return 0;
	r = begin_write(&w, &code, at, end);
	if (r < 0)
		return r;
	write_bytes(&w, at, block->bytes + block->n_written, end - at);
	r = end_write(&w);
	if (r == 0)
		block->n_written = block->n_used;
	return r;
}

/*
 * Write the stubs that were made since the last time; before that they must not
 * be executed.  0; or -errno, and the stubs are not there.
 */
static int write_stubs(void)
{
	int r = 0;

	without_memory = (struct stub_reach) { 0, 0 };
	for (size_t i = 0; i < blocks.n && r == 0; i++)
		r = write_block(&blocks.items[i]);
	return r;
}

/* 0: no memory. */
static uint64_t make_jump(const struct stub_reach *reach, uint64_t target,
			  bool loads_word)
{
	/* mov (%rsp), %r10; mov -9(%r10), %r10d; jmp *0(%rip) */
	static const uint8_t code[] = { 0x4c, 0x8b, 0x14, 0x24, 0x45, 0x8b,
					0x52, 0xf7, 0xff, 0x25, 0, 0, 0, 0 };
	const size_t skip = loads_word ? 0 : 8;
	uint8_t bytes[STUB_BYTES] = { 0 };
	struct block *block;

	if (!loads_word && reaches(reach, target))
		return target;
	block = block_near(reach);
	if (!block)
		return 0;
	memcpy(bytes, code + skip, sizeof(code) - skip);
	memcpy(bytes + sizeof(code) - skip, &target, sizeof(target));
	return add_stub(block, bytes);
}

/*
 * An address that goes to @target, and that all of @reach can call: @target
 * itself, or a stub, the same stub for each call.  With @loads_word it is a
 * stub that first sets r10d to the 4 bytes in front of the call instruction,
 * which has 5 bytes.  0: no memory is near.
 */
static uint64_t stub_jump(const struct stub_reach *reach, const void *target,
			  bool loads_word)
{
	struct jump jump = { 0, (uint64_t)target, loads_word };

	for (size_t i = 0; i < jumps.n; i++)
		if (jumps.items[i].target == jump.target &&
		    jumps.items[i].loads_word == loads_word &&
		    reaches(reach, jumps.items[i].address))
			return jumps.items[i].address;
	if (!SEAM_ARRAY_RESERVE(&jumps, 1))
		return 0;
	jump.address = make_jump(reach, jump.target, loads_word);
	if (jump.address)
		jumps.items[jumps.n++] = jump;
	return jump.address;
}

/*
 * A stub for one function: sets r11d to @word and jumps to @target, which
 * returns to its caller.  0 as above.
 */
static uint64_t stub_entry(const struct stub_reach *reach, uint32_t word,
			   const void *target)
{
	/* mov $word, %r11d; jmp *0(%rip) */
	uint8_t bytes[STUB_BYTES] = { 0x41, 0xbb, 0, 0, 0, 0, 0xff, 0x25 };
	struct block *block = block_near(reach);
	uint64_t address = (uint64_t)target;

	if (!block)
		return 0;
	memcpy(bytes + 2, &word, sizeof(word));
	memcpy(bytes + 12, &address, sizeof(address));
	return add_stub(block, bytes);
}

/* Whether stub_jump() has returned @address. */
static bool is_stub_jump(uint64_t address)
{
	for (size_t i = 0; i < jumps.n; i++)
		if (jumps.items[i].address == address)
			return true;
	return false;
}

/* ---- forms: what sleds are made ---- */

enum { OPCODE_CALL = 0xe8, OPCODE_JUMP = 0xe9, MOV_R10D = 0xba };

/* Of the process, by its first patch: whether code is not writable. */
static bool has_begun, by_one_byte;

/* The bytes of a sled in use: its head, and its tail. */
struct form {
	uint8_t head[2];
	uint8_t n_tail;
	int8_t tail_at;		/* from the sled's address */
	uint8_t tail[SEAM_FDR_MAX_CALL_BYTES];
};

struct patch_run {
	struct seam_fdr_functions *functions;
	const struct seam_fdr_code *code;
	const void *(*target_of)(uint32_t id, enum seam_fdr_sled_kind kind);
	struct seam_fdr_patched *patched;
	struct stub_reach reach;
	struct code_write write;
	uint8_t *steps;		/* for each sled: the next step */
	bool has_threads;
};

static void put_relative(uint8_t *to, uint64_t next, uint64_t target)
{
	int32_t distance = (int32_t)(target - next);

	memcpy(to, &distance, sizeof(distance));
}

static uint64_t relative_at(uint64_t address)
{
	int32_t distance;

	memcpy(&distance, (const void *)address, sizeof(distance));
	return address + 4 + (uint64_t)(int64_t)distance;
}

static const struct seam_fdr_sled_traits *
traits_of(const struct seam_fdr_sled *sled)
{
	return &seam_fdr_sled_traits[sled->kind];
}

static uint32_t word_of(const struct patch_run *run,
			const struct seam_fdr_sled *sled)
{
	return seam_xray_word(run->functions->first_id + sled->function,
			      traits_of(sled)->action);
}

/* mov $word, %r10d, or a jump over the word; call or jmp @target */
static struct form sled_form(const struct patch_run *run,
			     const struct seam_fdr_sled *sled, uint64_t target)
{
	struct form form = {
		.head = { 0x41, MOV_R10D }, .n_tail = 9, .tail_at = 2,
	};
	uint32_t word = word_of(run, sled);

	memcpy(form.tail, &word, sizeof(word));
	form.tail[4] = sled->kind == SEAM_FDR_SLED_EXIT ? OPCODE_JUMP :
							  OPCODE_CALL;
	if (by_one_byte && traits_of(sled)->has_word)
		memcpy(form.head, "\xeb\x04", 2);
	put_relative(form.tail + 5, sled->address + sled->bytes,
		     target);
	return form;
}

static struct form event_form(const struct seam_fdr_sled *sled, uint64_t target)
{
	uint8_t call = traits_of(sled)->event_call;
	struct form form = {
		.head = { 0xeb, 0 }, .n_tail = 4,
		.tail_at = (int8_t)(call + 1),
	};

	put_relative(form.tail, sled->address + call + 5, target);
	return form;
}

/* A call at the end of the room, after nops or a prefix without meaning. */
static struct form call_form(const struct seam_fdr_sled *sled, uint64_t target)
{
	uint8_t bytes[SEAM_FDR_MAX_CALL_BYTES];
	size_t pad = sled->bytes - 5u;
	struct form form = {
		.n_tail = (uint8_t)(sled->bytes - 2), .tail_at = 2,
	};

	memset(bytes, 0x90, sizeof(bytes));
	if (pad == 1)
		bytes[0] = 0x67;
	else if (pad > 1)
		bytes[0] = 0x66;
	bytes[pad] = OPCODE_CALL;
	put_relative(bytes + pad + 1, sled->address + sled->bytes, target);
	memcpy(form.head, bytes, 2);
	memcpy(form.tail, bytes + 2, form.n_tail);
	return form;
}

static struct form form_of(const struct patch_run *run,
			   const struct seam_fdr_sled *sled, uint64_t target)
{
	if (traits_of(sled)->event_call)
		return event_form(sled, target);
	if (sled->kind == SEAM_FDR_SLED_CALL)
		return call_form(sled, target);
	return sled_form(run, sled, target);
}

/* The head of a sled that is not in use. */
static void free_head(const struct seam_fdr_sled *sled, uint8_t head[2])
{
	head[0] = 0xeb;
	head[1] = (uint8_t)(sled->bytes - 2);
	if (sled->kind == SEAM_FDR_SLED_EXIT) {
		/* the ret; the bytes after a ret are not executed */
		head[0] = sled->original[0];
		head[1] = MOV_R10D;
	}
}

/* ---- what a sled is now ---- */

/* A sled in use calls a trampoline, or a stub; gcc's, the function's stub. */
static bool is_in_use(const struct patch_run *run,
		      const struct seam_fdr_sled *sled)
{
	const uint8_t *p = (const uint8_t *)sled->address;
	struct form form;
	uint64_t target;

	if (traits_of(sled)->has_stub) {
		target = run->functions->stubs[sled->function];
		if (!target)
			return false;
	} else {
		target = relative_at(sled->address + 1 +
				     (traits_of(sled)->event_call ?: 6));
		if (!is_stub_jump(target))
			return false;
	}
	form = form_of(run, sled, target);
	return !memcmp(p, form.head, 2) &&
	       !memcmp(p + form.tail_at, form.tail, form.n_tail);
}

/* ---- the steps ---- */

enum patch_step {
	NOTHING,
	MAKE_JUMP,	/* gcc's nops; then as the next */
	WRITE_TAIL,
	WRITE_HEAD,
	DONE,
	RESTORE_TAIL,	/* the program's call of __fentry__; then its head */
	RESTORE_HEAD,
	RESTORED,
};

static const void *callee_of(const struct patch_run *run,
			     const struct seam_fdr_sled *sled)
{
	return run->target_of(run->functions->first_id + sled->function,
			      (enum seam_fdr_sled_kind)sled->kind);
}

/* What the sled is to call, as near as a call reaches; 0: nothing is near. */
static uint64_t near_target(struct patch_run *run,
			    const struct seam_fdr_sled *sled)
{
	const void *target = callee_of(run, sled);
	uint64_t *stub = &run->functions->stubs[sled->function];

	if (!traits_of(sled)->has_stub)
		return stub_jump(&run->reach, target,
				 by_one_byte && traits_of(sled)->has_word);
	if (!*stub)
		*stub = stub_entry(&run->reach, word_of(run, sled), target);
	return *stub;
}

/* Whether another thread could see one byte of its head without the other. */
static bool has_split_head(const struct patch_run *run,
			   const struct seam_fdr_sled *sled)
{
	return run->write.memory >= 0 && run->has_threads &&
	       (traits_of(sled)->has_stub ||
		(traits_of(sled)->has_word && !by_one_byte));
}

/* Not in use yet, and wanted. */
static enum patch_step first_step(struct patch_run *run,
				  const struct seam_fdr_sled *sled)
{
	bool is_divided = sled->is_divided && run->has_threads &&
			  *(const uint8_t *)sled->address != 0xeb;

	if (!callee_of(run, sled))
		return NOTHING;
	if (is_divided || has_split_head(run, sled)) {
		run->patched->n_divided++;
		return NOTHING;
	}
	if (!near_target(run, sled)) {
		run->patched->n_far++;
		return NOTHING;
	}
	return sled->kind == SEAM_FDR_SLED_CALL &&
	       *(const uint8_t *)sled->address != 0xeb ? MAKE_JUMP : WRITE_TAIL;
}

static enum patch_step begin_sled(struct patch_run *run,
				  const struct seam_fdr_sled *sled)
{
	const bool *wanted = run->functions->is_wanted;
	bool is_wanted = wanted && wanted[sled->function];
	uint8_t head[2];

	/* readable: it was accepted as such, and the image is still loaded */
	if (!is_in_use(run, sled)) {
		if (!seam_fdr_sled_is_free(run->code, sled))
			run->patched->n_refused++;
		else if (is_wanted)
			return first_step(run, sled);
		return NOTHING;
	}
	if (is_wanted)
		return NOTHING;
	if (has_split_head(run, sled)) {
		run->patched->n_divided++;
		return NOTHING;
	}
	free_head(sled, head);
	write_head(&run->write, sled->address, head);
	run->patched->n_unpatched++;
	/* __fentry__'s call, or call *SLOT(%rip); all others are nops */
	return sled->kind == SEAM_FDR_SLED_CALL &&
	       (sled->original[0] == OPCODE_CALL || sled->original[0] == 0xff) ?
	       RESTORE_TAIL : NOTHING;
}

/*
 * A tail of before stays, because a thread may be in the sled: it calls what
 * the sled is to call, or, of a function that had a trigger, does as well.
 */
static void write_tail(struct patch_run *run, const struct seam_fdr_sled *sled)
{
	struct form form = form_of(run, sled, near_target(run, sled));
	uint64_t at = sled->address + (uint64_t)(int64_t)form.tail_at;

	if (sled->kind == SEAM_FDR_SLED_EXIT)
		write_bytes(&run->write, sled->address + 1, form.head + 1,
			       1);
	if (form.n_tail != 9 || memcmp((const void *)at, form.tail, 5) ||
	    !is_stub_jump(relative_at(at + 5)))
		write_bytes(&run->write, at, form.tail, form.n_tail);
}

static void take_step_of(struct patch_run *run,
			 const struct seam_fdr_sled *sled, enum patch_step step)
{
	struct form form;
	uint8_t head[2];

	switch (step) {
	case MAKE_JUMP:
		free_head(sled, head);
		write_head(&run->write, sled->address, head);
		break;
	case WRITE_TAIL:
		write_tail(run, sled);
		break;
	case WRITE_HEAD:
		/* the tail is there, which the head does not depend on */
		form = form_of(run, sled, near_target(run, sled));
		write_head(&run->write, sled->address, form.head);
		run->patched->n_patched++;
		break;
	case RESTORE_TAIL:
		write_bytes(&run->write, sled->address + 2,
			       sled->original + 2, sled->bytes - 2u);
		break;
	case RESTORE_HEAD:
		write_head(&run->write, sled->address, sled->original);
		break;
	default:
		break;
	}
}

/* Take @step of all sleds that are at @step, and sync. */
static void take_step(struct patch_run *run, enum patch_step step)
{
	const struct seam_fdr_sleds *sleds = &run->functions->sleds;
	bool is_taken = false;

	for (size_t i = 0; i < sleds->list.n; i++) {
		const struct seam_fdr_sled *sled = &sleds->list.items[i];

		if (run->steps[i] != step)
			continue;
		is_taken = true;
		take_step_of(run, sled, step);
		run->steps[i]++;
	}
	if (is_taken)
		sync_code();
}

/* ---- all of a list ---- */

/* Whether other threads may run, also where that is not known. */
static bool count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	size_t n = 0;

	while (tasks && (entry = readdir(tasks)))
		n += entry->d_name[0] != '.';
	if (tasks)
		closedir(tasks);
	return n != 1;
}

static void set_reach(struct patch_run *run)
{
	run->reach = (struct stub_reach) { UINT64_MAX, 0 };
	for (size_t i = 0; i < run->code->segments.n; i++) {
		const struct seam_fdr_segment *s =
			&run->code->segments.items[i];

		if (!(s->rights & PROT_EXEC))
			continue;
		if (s->start < run->reach.low)
			run->reach.low = s->start;
		if (s->end > run->reach.high)
			run->reach.high = s->end;
	}
}

/* Where stubs cannot be written, sleds of before are as they were. */
static int patch_sleds(struct patch_run *run)
{
	const struct seam_fdr_sleds *sleds = &run->functions->sleds;
	int r;

	for (size_t i = 0; i < sleds->list.n; i++)
		run->steps[i] = (uint8_t)begin_sled(run,
						    &sleds->list.items[i]);
	r = write_stubs();
	if (r == 0) {
		take_step(run, MAKE_JUMP);
		take_step(run, WRITE_TAIL);
		take_step(run, WRITE_HEAD);
	}
	/* all heads of sleds that are no longer used are written */
	sync_code();
	take_step(run, RESTORE_TAIL);
	take_step(run, RESTORE_HEAD);
	return r;
}

int seam_fdr_patch(struct seam_fdr_functions *functions,
		   const struct seam_fdr_code *code,
		   const void *(*target_of)(uint32_t id,
					    enum seam_fdr_sled_kind kind),
		   struct seam_fdr_patched *patched)
{
	const struct seam_fdr_sled *sleds = functions->sleds.list.items;
	const size_t n = functions->sleds.list.n;
	struct patch_run run = {
		.functions = functions, .code = code,
		.target_of = target_of, .patched = patched,
	};
	int r, e;

	if (!n)
		return 0;
	run.has_threads = count_threads();
	if (functions->is_wanted && run.has_threads &&
	    !sync_code())
		return -ENOTSUP;
	run.steps = calloc(n, 1);
	if (!run.steps)
		return -ENOMEM;
	set_reach(&run);
	r = begin_write(&run.write, code, sleds[0].address,
			sleds[n - 1].address + sleds[n - 1].bytes);
	if (r == 0 && !has_begun)
		by_one_byte = run.write.memory >= 0;
	has_begun = has_begun || r == 0;
	if (r == 0) {
		r = patch_sleds(&run);
		e = end_write(&run.write);
		r = r ?: e;
	}
	free(run.steps);
	return r;
}
