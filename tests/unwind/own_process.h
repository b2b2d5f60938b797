/* SPDX-License-Identifier: MIT */
/* own_process.h - a test unwinds its own stacks: its modules and registers */
#ifndef OWN_PROCESS_H
#define OWN_PROCESS_H

#include "unwind/compile/table.h"
#include "unwind/walk/walk.h"

#include <link.h>
#include <ucontext.h>

#include "elf_frames.h"
#include "unit.h"

enum { MAX_FRAMES = 4096, MAX_MODULES = 16 };

static struct module {
	uint64_t bias, start, end;
	struct seam_cfi_file file;
	struct seam_unwind_table table;
} modules[MAX_MODULES];
static size_t n_modules;

static int add_module(struct dl_phdr_info *info, size_t size, void *context)
{
	const char *path = info->dlpi_name[0] ? info->dlpi_name :
						"/proc/self/exe";
	struct module *m = &modules[n_modules];

	(void)size;
	(void)context;
	if (n_modules == MAX_MODULES || !open_frames(&m->file, path))
		return 0;	/* the vdso */
	m->bias = info->dlpi_addr;
	m->start = UINT64_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD)
			continue;
		if (m->bias + p->p_vaddr < m->start)
			m->start = m->bias + p->p_vaddr;
		if (m->bias + p->p_vaddr + p->p_memsz > m->end)
			m->end = m->bias + p->p_vaddr + p->p_memsz;
	}
	assert_int_equal(seam_unwind_table_build(&m->table, &m->file.eh,
						 NULL), 0);
	n_modules++;
	return 0;
}

static inline int load_modules(void **state)
{
	(void)state;
	dl_iterate_phdr(add_module, NULL);
	return n_modules == 0;
}

static inline int unload_modules(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_modules; i++) {
		seam_unwind_table_fini(&modules[i].table);
		seam_cfi_file_close(&modules[i].file);
	}
	return 0;
}

static inline const struct module *module_at(uint64_t addr)
{
	for (size_t i = 0; i < n_modules; i++)
		if (addr >= modules[i].start && addr < modules[i].end)
			return &modules[i];
	return NULL;
}

/* A second executable range without call frame information; or empty. */
static struct {
	uint64_t start, end;
	const struct seam_unwind_adapter *adapter;
} jit_code;

static inline bool find_code(void *context, uint64_t addr,
			     struct seam_unwind_code *code)
{
	const struct module *m = module_at(addr);

	(void)context;
	if (addr - jit_code.start < jit_code.end - jit_code.start) {
		code->adapter = jit_code.adapter;
		return true;
	}
	if (!m)
		return false;
	code->rules = &m->table.rules;
	code->id = seam_unwind_table_find(&m->table, addr - m->bias);
	return true;
}

static inline bool is_mapped_code(uint64_t addr)
{
	return module_at(addr) ||
	       (addr >= jit_code.start && addr < jit_code.end);
}

/* What is before @addr may be a sanitizer's red zone. */
__attribute__((no_sanitize_address))
static inline size_t code_before(void *context, uint64_t addr, uint8_t *bytes)
{
	const volatile uint8_t *code =
		(const void *)(uintptr_t)(addr - SEAM_UNWIND_CALL_BYTES);

	(void)context;
	if (!is_mapped_code(addr - 1) ||
	    !is_mapped_code(addr - SEAM_UNWIND_CALL_BYTES))
		return 0;
	for (int i = 0; i < SEAM_UNWIND_CALL_BYTES; i++)
		bytes[i] = code[i];
	return SEAM_UNWIND_CALL_BYTES;
}

static const struct seam_unwind_space own_space = {
	.find = find_code, .code_before = code_before,
};

static inline bool read_own(void *context, uint64_t addr, uint64_t *word)
{
	(void)context;
	memcpy(word, (const void *)(uintptr_t)addr, sizeof(*word));
	return true;
}

static const struct seam_unwind_memory own_memory = { .read = read_own };

/* ucontext's order of registers, by column. */
static inline void take_registers(const ucontext_t *context,
				  struct seam_unwind_registers *regs)
{
	static const int order[SEAM_X86_64_COLUMNS] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP,
		REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13,
		REG_R14, REG_R15, REG_RIP,
	};

	for (int i = 0; i < SEAM_X86_64_COLUMNS; i++)
		regs->value[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
	regs->known = (UINT64_C(1) << SEAM_X86_64_COLUMNS) - 1;
}

#endif /* OWN_PROCESS_H */
