/* SPDX-License-Identifier: MIT */
/* sample_code.c - mappings, files, JITs; see sample_code.h */
#include "record/stacks/sample_code.h"

static const struct seam_process_mapping *
mapping_at(struct seam_sample_code *c, uint64_t addr)
{
	const struct seam_process_mapping *m = c->mapping;

	if (!m || addr < m->begin || addr >= m->end)
		m = c->map ? seam_process_map_at(c->map, addr) : NULL;
	if (m)
		c->mapping = m;
	return m;
}

/* The file of @m, and the address of @addr in it; NULL: it has no CFI. */
static struct seam_mapped_file_cfi *
file_at(struct seam_sample_code *c, const struct seam_process_mapping *m,
	uint64_t addr, uint64_t *file_addr)
{
	struct seam_mapped_file_cfi *file;
	bool is_pending;

	c->no_file = SEAM_STACK_WITHOUT_CFI;
	if (m->file == SEAM_NONE)
		return NULL;
	file = seam_cfi_files_want(c->files, m->file, &is_pending);
	if (file)
		return seam_cfi_file_addr(&file->cfi,
					  addr - m->begin + m->offset,
					  file_addr) ? file : NULL;
	c->is_pending |= is_pending;
	c->no_file = is_pending ? SEAM_STACK_NOT_READY :
		     c->files->mappings.items[m->file].is_memory ?
		     SEAM_STACK_WITHOUT_CFI : SEAM_STACK_NO_FILE;
	return NULL;
}

static bool is_jit(struct seam_sample_code *c, uint64_t addr,
		   struct seam_unwind_code *code)
{
	if (!c->jit || !seam_live_jit_find(c->jits, c->jit, addr, c->time_ns,
					   code))
		return false;
	c->no_file = SEAM_STACK_WITHOUT_CFI;
	return true;
}

static bool find_code(void *context, uint64_t addr,
		      struct seam_unwind_code *code)
{
	struct seam_sample_code *c = context;
	const struct seam_process_mapping *m;
	struct seam_mapped_file_cfi *file;
	uint64_t file_addr;

	if (is_jit(c, addr, code))
		return true;
	*code = (struct seam_unwind_code) { .rules = NULL };
	m = mapping_at(c, addr);
	if (!m)
		return false;
	file = file_at(c, m, addr, &file_addr);
	if (!file)
		return !c->is_pending || c->is_last_try;
	code->id = seam_unwind_rows_find(&file->rows, file_addr);
	code->rules = &file->rows.rules;
	code->is_entry = code->id == SEAM_UNWIND_NO_CFI &&
			 seam_cfi_file_is_entry(&file->cfi, file_addr);
	return true;
}

static size_t code_before(void *context, uint64_t addr, uint8_t *bytes)
{
	struct seam_sample_code *c = context;
	const struct seam_process_mapping *m = mapping_at(c, addr - 1);
	struct seam_unwind_code code;
	uint64_t file_addr;
	struct seam_mapped_file_cfi *file =
		m && !is_jit(c, addr - 1, &code) ?
		file_at(c, m, addr - 1, &file_addr) : NULL;

	return file ? seam_cfi_file_code_before(&file->cfi, file_addr + 1,
						bytes,
						SEAM_UNWIND_CALL_BYTES) : 0;
}

struct seam_unwind_space seam_sample_code_space(struct seam_sample_code *code)
{
	return (struct seam_unwind_space) {
		.find = find_code, .code_before = code_before, .context = code,
	};
}
