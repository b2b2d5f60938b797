/* SPDX-License-Identifier: MIT */
/* elf_functions.c - a file's symbol table; see elf_functions.h */
#include "target/sysprof/elf_functions.h"

#include <errno.h>

#include "target/elf/image_file.h"

/* Exported names before local ones, and before aliases with underscores. */
static uint32_t rank_of(uint8_t info, const char *name)
{
	static const uint8_t bind_rank[] = {
		[STB_LOCAL] = 2, [STB_GLOBAL] = 0, [STB_WEAK] = 1 };
	uint8_t bind = ELF64_ST_BIND(info);
	uint32_t rank = bind < SEAM_ARRAY_SIZE(bind_rank) ? bind_rank[bind] : 2;

	return rank * 4 + (name[0] == '_') + (name[0] == '_' && name[1] == '_');
}

/* Add it if it is a function of this file with a name. */
static bool add_function(struct seam_elf_functions *functions,
			 const ElfW(Sym) *symbol, size_t n_names)
{
	uint8_t type = ELF64_ST_TYPE(symbol->st_info);

	if ((type != STT_FUNC && type != STT_GNU_IFUNC) ||
	    symbol->st_shndx == SHN_UNDEF || symbol->st_name >= n_names ||
	    !functions->names[symbol->st_name])
		return true;
	return SEAM_ARRAY_ADD(&functions->list, (struct seam_elf_function) {
		symbol->st_value, symbol->st_size, symbol->st_name,
		rank_of(symbol->st_info, functions->names + symbol->st_name) });
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

static int read_table(struct seam_elf_functions *functions,
		      const struct seam_image_file *file,
		      const ElfW(Shdr) *table, const ElfW(Shdr) *names)
{
	void *bytes, *text;
	size_t n = table->sh_size / sizeof(ElfW(Sym));
	int r = seam_image_file_read(file, names->sh_offset, names->sh_size,
				     &text);

	if (r < 0)
		return r;
	functions->names = text;
	r = seam_image_file_read(file, table->sh_offset,
				 n * sizeof(ElfW(Sym)), &bytes);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n && r == 0; i++)
		if (!add_function(functions, (ElfW(Sym) *)bytes + i,
				  names->sh_size))
			r = -ENOMEM;
	free(bytes);
	settle(functions);
	return r;
}

int seam_elf_functions_read(struct seam_elf_functions *functions,
			    const char *path, const ElfW(Phdr) *headers,
			    size_t n)
{
	struct seam_image_file file;
	const ElfW(Shdr) *table;
	int r = seam_image_file_open(&file, path, headers, n);

	*functions = (struct seam_elf_functions) { .names = NULL };
	if (r < 0)
		return r;
	table = seam_image_file_section_of(&file, SHT_SYMTAB) ?:
		seam_image_file_section_of(&file, SHT_DYNSYM);
	if (!table)
		r = -ENOENT;
	else if (table->sh_link >= file.n_sections)
		r = -EBADMSG;
	else
		r = read_table(functions, &file, table,
			       &file.sections[table->sh_link]);
	seam_image_file_close(&file);
	if (r < 0)
		seam_elf_functions_fini(functions);
	return r;
}

void seam_elf_functions_fini(struct seam_elf_functions *functions)
{
	free(functions->list.items);
	free(functions->names);
	*functions = (struct seam_elf_functions) { .names = NULL };
}
