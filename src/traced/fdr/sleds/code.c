/* SPDX-License-Identifier: MIT */
/* code.c - segments, beginnings of functions, nops; see code.h */
#include "traced/fdr/sleds/code.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	MAX_NOP_BYTES = 15,	/* of any instruction */
	HEADER_BYTES = 12,	/* of .eh_frame_hdr, before its table */
	ENTRY_BYTES = 8,
	/* Source: LSB 5.0, "DWARF Exception Header Encoding" */
	UDATA4 = 0x03,
	DATAREL_SDATA4 = 0x3b,
};

void seam_fdr_code_fini(struct seam_fdr_code *code)
{
	free(code->segments.items);
	*code = (struct seam_fdr_code) { .eh_frame_header = 0 };
}

/* ---- memory ---- */

const struct seam_fdr_segment *
seam_fdr_code_segment(const struct seam_fdr_code *code, uint64_t start,
		      uint64_t bytes, int rights)
{
	for (size_t i = 0; i < code->segments.n; i++) {
		const struct seam_fdr_segment *s = &code->segments.items[i];

		if ((s->rights & rights) == rights && start >= s->start &&
		    start <= s->end && bytes <= s->end - start)
			return s;
	}
	return NULL;
}

const uint8_t *seam_fdr_code_at(const struct seam_fdr_code *code,
				uint64_t start, uint64_t bytes)
{
	return seam_fdr_code_segment(code, start, bytes,
				     PROT_READ | PROT_EXEC) ?
	       (const uint8_t *)start : NULL;
}

bool seam_fdr_code_read(const struct seam_fdr_code *code, uint64_t start,
			void *to, size_t bytes)
{
	if (!seam_fdr_code_segment(code, start, bytes, PROT_READ))
		return false;
	memcpy(to, (const void *)start, bytes);
	return true;
}

/* ---- instructions ---- */

/* The bytes of the ModRM byte at @p and of its operand; @n are there. */
static size_t operand_bytes(const uint8_t *p, size_t n)
{
	uint8_t mode = p[0] >> 6, rm = p[0] & 7;
	size_t size = 1;

	if (mode == 3)
		return size;
	if (rm == 4) {
		size++;
		if (mode == 0 && n > 1 && (p[1] & 7) == 5)
			size += 4;
	} else if (mode == 0 && rm == 5) {
		size += 4;
	}
	return size + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
}

size_t seam_fdr_nop_bytes(const uint8_t *p, size_t n)
{
	size_t at = 0, size;

	while (at < n && (p[at] == 0x66 || p[at] == 0x2e))
		at++;
	if (at < n && p[at] == 0x90)
		size = at + 1;
	else if (n - at > 2 && p[at] == 0x0f && p[at + 1] == 0x1f)
		size = at + 2 + operand_bytes(p + at + 2, n - at - 2);
	else
		return 0;
	return size <= n && size <= MAX_NOP_BYTES ? size : 0;
}

bool seam_fdr_is_endbr(const uint8_t *p)
{
	return !memcmp(p, "\xf3\x0f\x1e\xfa", SEAM_FDR_ENDBR_BYTES);
}

static uint64_t after(uint64_t next, const uint8_t *relative)
{
	int32_t distance;

	memcpy(&distance, relative, sizeof(distance));
	return next + (uint64_t)(int64_t)distance;
}

static bool is_fentry_slot(const struct seam_fdr_code *code, uint64_t slot)
{
	for (size_t i = 0; i < code->n_fentry_slots; i++)
		if (code->fentry_slots[i] == slot)
			return true;
	return false;
}

/* Whether @start is the entry for __fentry__ of the linkage table. */
static bool is_fentry_plt(const struct seam_fdr_code *code, uint64_t start)
{
	const uint8_t *p = seam_fdr_code_at(code, start, 11);
	size_t at = 0;

	if (!p)
		return false;
	if (seam_fdr_is_endbr(p))
		at += SEAM_FDR_ENDBR_BYTES;
	if (p[at] == 0xf2)		/* bnd */
		at++;
	return p[at] == 0xff && p[at + 1] == 0x25 &&
	       is_fentry_slot(code, after(start + at + 6, p + at + 2));
}

size_t seam_fdr_code_fentry_bytes(const struct seam_fdr_code *code,
				  uint64_t start)
{
	const uint8_t *p = seam_fdr_code_at(code, start, 6);
	uint64_t target;

	if (p && p[0] == 0xff && p[1] == 0x15 &&
	    is_fentry_slot(code, after(start + 6, p + 2)))
		return 6;
	if (!p || p[0] != 0xe8)
		return 0;
	target = after(start + 5, p + 1);
	return (code->fentry && target == code->fentry) ||
	       is_fentry_plt(code, target) ? 5 : 0;
}

/* ---- beginnings of functions ---- */

size_t seam_fdr_code_n_functions(const struct seam_fdr_code *code)
{
	struct { uint8_t version, pointer, count, table; } encodings;
	const uint64_t header = code->eh_frame_header;
	uint32_t n;

	if (!header ||
	    !seam_fdr_code_read(code, header, &encodings, sizeof(encodings)) ||
	    encodings.version != 1 || (encodings.pointer & 0xf) != 0xb ||
	    encodings.count != UDATA4 || encodings.table != DATAREL_SDATA4 ||
	    !seam_fdr_code_read(code, header + 8, &n, sizeof(n)) ||
	    !seam_fdr_code_segment(code, header + HEADER_BYTES,
				   (uint64_t)n * ENTRY_BYTES, PROT_READ))
		return 0;
	return n;
}

uint64_t seam_fdr_code_function(const struct seam_fdr_code *code, size_t i)
{
	const uint64_t header = code->eh_frame_header;

	return after(header, (const uint8_t *)header + HEADER_BYTES +
			     i * ENTRY_BYTES);
}

size_t seam_fdr_code_find(const struct seam_fdr_code *code, uint64_t address)
{
	return SEAM_ARRAY_SEARCH(i, seam_fdr_code_n_functions(code),
				 seam_fdr_code_function(code, i) < address);
}

/* ---- change code that threads may be executing ---- */

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

void seam_fdr_write(struct seam_fdr_write *w, uint64_t address,
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

void seam_fdr_write_head(struct seam_fdr_write *w, uint64_t address,
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
