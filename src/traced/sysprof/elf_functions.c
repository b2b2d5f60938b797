/* SPDX-License-Identifier: MIT */
/* elf_functions.c - a file's symbol table; see elf_functions.h */
#include "traced/sysprof/elf_functions.h"

#include <errno.h>

#include "traced/elf/image_file.h"

/* Exported names before local ones, and before aliases with underscores. */
static uint32_t rank_of(uint8_t info, const char *name)
{
	static const uint8_t bind_rank[] = {
		[STB_LOCAL] = 2, [STB_GLOBAL] = 0, [STB_WEAK] = 1 };
	uint8_t bind = ELF64_ST_BIND(info);
	uint32_t rank = bind < SEAM_ARRAY_SIZE(bind_rank) ? bind_rank[bind] : 2;

	return rank * 4 + (name[0] == '_') + (name[0] == '_' && name[1] == '_');
}

static bool add_function(struct seam_elf_functions *functions,
			 const ElfW(Sym) *symbol, const char *name)
{
	return SEAM_ARRAY_ADD(&functions->list, (struct seam_elf_function) {
		symbol->st_value, symbol->st_size, symbol->st_name,
		rank_of(symbol->st_info, name) });
}

static int compare_functions(const void *left, const void *right)
{
	const struct seam_elf_function *a = left, *b = right;

	return SEAM_COMPARE(a->addr, b->addr) ?:
	       SEAM_COMPARE(a->rank, b->rank) ?: SEAM_COMPARE(a->name, b->name);
}

/* Sort, and of equal addresses use the best name. */
static void settle(struct seam_elf_functions *functions)
{
	size_t n = 0;

	SEAM_ARRAY_SORT(&functions->list, compare_functions);
	for (size_t i = 0; i < functions->list.n; i++)
		if (n == 0 || functions->list.items[n - 1].addr !=
			      functions->list.items[i].addr)
			functions->list.items[n++] = functions->list.items[i];
	functions->list.n = n;
}

/* Takes the names of @symbols. */
static int take_symbols(struct seam_elf_functions *functions,
			struct seam_image_symbols *symbols)
{
	int r = 0;

	for (size_t i = 0; i < symbols->n && r == 0; i++) {
		const ElfW(Sym) *symbol = &symbols->list[i];

		if (seam_image_symbol_is_function(symbols, symbol) &&
		    !add_function(functions, symbol,
				  seam_image_symbol_name(symbols, symbol)))
			r = -ENOMEM;
	}
	functions->names = symbols->names;
	symbols->names = NULL;
	settle(functions);
	return r;
}

/* The section called @name; it is kept in @bytes. */
static struct seam_bytes take_section(const struct seam_image_file *file,
				      const char *name, void **bytes,
				      uint64_t *addr)
{
	for (size_t i = 0; i < file->n_sections; i++) {
		const ElfW(Shdr) *s = &file->sections[i];

		if (strcmp(seam_image_file_section_name(file, s), name) ||
		    s->sh_type == SHT_NOBITS ||
		    seam_image_file_read(file, s->sh_offset, s->sh_size, bytes))
			continue;
		*addr = s->sh_addr;
		return (struct seam_bytes) { *bytes, s->sh_size };
	}
	return (struct seam_bytes) { NULL, 0 };
}

/* For functions without a size; most files have some. */
static void take_frame(struct seam_elf_functions *functions,
		       const struct seam_image_file *file)
{
	struct seam_eh_frame *frame = &functions->frame;

	frame->header = take_section(file, ".eh_frame_hdr",
				     &functions->frame_bytes[0],
				     &frame->header_addr);
	frame->entries = take_section(file, ".eh_frame",
				      &functions->frame_bytes[1],
				      &frame->entries_addr);
	frame->endian = SEAM_LITTLE;
	frame->address_bytes = 8;
	frame->ends_at_terminator = true;
}

uint64_t seam_elf_functions_end(const struct seam_elf_functions *functions,
				uint64_t addr)
{
	struct seam_eh_fde fde = { 0 };

	return functions->frame.header.size && functions->frame.entries.size &&
	       seam_eh_frame_find(&functions->frame, addr, &fde) == 1 ?
	       fde.end : 0;
}

int seam_elf_functions_read(struct seam_elf_functions *functions,
			    const char *path, const ElfW(Phdr) *headers,
			    size_t n)
{
	struct seam_image_symbols symbols;
	struct seam_image_file file;
	int r = seam_image_file_open(&file, path, headers, n);

	*functions = (struct seam_elf_functions) { .names = NULL };
	if (r < 0)
		return r;
	r = seam_image_file_symbols(&file, SHT_SYMTAB, &symbols);
	if (r == -ENOENT)
		r = seam_image_file_symbols(&file, SHT_DYNSYM, &symbols);
	r = r ?: take_symbols(functions, &symbols);
	take_frame(functions, &file);
	seam_image_symbols_fini(&symbols);
	seam_image_file_close(&file);
	/* the end of a function is known without a symbol too */
	if (r < 0 && r != -ENOENT)
		seam_elf_functions_fini(functions);
	return r;
}

void seam_elf_functions_fini(struct seam_elf_functions *functions)
{
	free(functions->list.items);
	free(functions->names);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(functions->frame_bytes); i++)
		free(functions->frame_bytes[i]);
	*functions = (struct seam_elf_functions) { .names = NULL };
}
