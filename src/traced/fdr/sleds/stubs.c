/* SPDX-License-Identifier: MIT */
/* stubs.c - code near an image; see stubs.h */
#include "traced/fdr/sleds/stubs.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "traced/fdr/sleds/code.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

enum {
	STUB_BYTES = 32,
	BLOCK_BYTES = 64 << 10,
};

#define NAME "seam-fdr stubs"

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
static struct seam_fdr_reach without_memory;

/* ---- memory ---- */

static bool reaches(const struct seam_fdr_reach *reach, uint64_t address)
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
static uint64_t map_near(const struct seam_fdr_reach *reach)
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
static struct block *block_near(const struct seam_fdr_reach *reach)
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

/* ---- code ---- */

/* The stub's address, where it is after seam_fdr_stubs_write(). */
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
	struct seam_fdr_write w;
	int r;

	if (at == end)
		return 0;
	r = seam_fdr_write_begin(&w, &code, at, end);
	if (r < 0)
		return r;
	seam_fdr_write(&w, at, block->bytes + block->n_written, end - at);
	r = seam_fdr_write_end(&w);
	if (r == 0)
		block->n_written = block->n_used;
	return r;
}

int seam_fdr_stubs_write(void)
{
	int r = 0;

	without_memory = (struct seam_fdr_reach) { 0, 0 };
	for (size_t i = 0; i < blocks.n && r == 0; i++)
		r = write_block(&blocks.items[i]);
	return r;
}

/* 0: no memory. */
static uint64_t make_jump(const struct seam_fdr_reach *reach, uint64_t target,
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

uint64_t seam_fdr_stub_jump(const struct seam_fdr_reach *reach,
			    const void *target, bool loads_word)
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

uint64_t seam_fdr_stub_entry(const struct seam_fdr_reach *reach, uint32_t word,
			     const void *target, uint64_t back)
{
	/* mov $word, %r11d; jmp *0(%rip), or call *7(%rip) and jmp back */
	uint8_t bytes[STUB_BYTES] = { 0x41, 0xbb, 0, 0, 0, 0, 0xff, 0x25 };
	struct block *block = block_near(reach);
	uint64_t address = (uint64_t)target;
	int32_t distance;

	if (!block)
		return 0;
	memcpy(bytes + 2, &word, sizeof(word));
	if (back) {
		bytes[7] = 0x15;
		bytes[8] = 5;
		bytes[12] = 0xe9;
		distance = (int32_t)(back - block->start - block->n_used - 17);
		memcpy(bytes + 13, &distance, sizeof(distance));
		memcpy(bytes + 17, &address, sizeof(address));
	} else {
		memcpy(bytes + 12, &address, sizeof(address));
	}
	return add_stub(block, bytes);
}

bool seam_fdr_stub_is_jump(uint64_t address)
{
	for (size_t i = 0; i < jumps.n; i++)
		if (jumps.items[i].address == address)
			return true;
	return false;
}
