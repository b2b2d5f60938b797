/* SPDX-License-Identifier: MIT */
/* function_names.c - names from symbol tables; see function_names.h */
#include "target/fdr/sleds/function_names.h"

#include <errno.h>
#include <stdlib.h>

#include "target/elf/image_file.h"

/* Where a function of the list begins. */
struct function_start {
	uint64_t address;
	uint32_t function;
};

struct search {
	SEAM_ARRAY(struct function_start) places;	/* ascending */
	uint64_t bias;
	int (*on_name)(void *context, uint32_t function, const char *name);
	void *context;
	struct seam_fdr_addresses *all;	/* not NULL: list them */
};

static int compare_places(const void *left, const void *right)
{
	const struct function_start *a = left, *b = right;

	return SEAM_COMPARE(a->address, b->address) ?:
	       SEAM_COMPARE(a->function, b->function);
}

static int list_places(struct search *s, const uint64_t *addresses, size_t n)
{
	if (!SEAM_ARRAY_RESERVE(&s->places, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		s->places.items[i] = (struct function_start) {
			addresses[i], (uint32_t)i };
	s->places.n = n;
	SEAM_ARRAY_SORT(&s->places, compare_places);
	return 0;
}

/* A damaged map may have the same function more than once. */
static int put_symbol(struct search *s, const ElfW(Sym) *symbol,
		      const char *name)
{
	uint8_t type = ELF64_ST_TYPE(symbol->st_info);
	uint64_t address = s->bias + symbol->st_value;
	size_t i;
	int r = 0;

	if ((type != STT_FUNC && type != STT_GNU_IFUNC) ||
	    symbol->st_shndx == SHN_UNDEF || !name[0])
		return 0;
	if (s->all)
		return SEAM_ARRAY_ADD(s->all, address) ? 0 : -ENOMEM;
	i = SEAM_ARRAY_SEARCH(j, s->places.n,
			      s->places.items[j].address < address);
	for (; r == 0 && i < s->places.n &&
	       s->places.items[i].address == address; i++)
		r = s->on_name(s->context, s->places.items[i].function, name);
	return r;
}

static int read_table(struct search *s, const struct seam_image_file *file,
		      const ElfW(Shdr) *table)
{
	const ElfW(Shdr) *names;
	void *symbols, *text;
	size_t n = table->sh_size / sizeof(ElfW(Sym));
	int r;

	if (table->sh_link >= file->n_sections)
		return -EBADMSG;
	names = &file->sections[table->sh_link];
	r = seam_image_file_read(file, names->sh_offset, names->sh_size, &text);
	if (r < 0)
		return r;
	r = seam_image_file_read(file, table->sh_offset,
				 n * sizeof(ElfW(Sym)), &symbols);
	if (r < 0) {
		free(text);
		return r;
	}
	for (size_t i = 0; i < n && r == 0; i++) {
		const ElfW(Sym) *symbol = (const ElfW(Sym) *)symbols + i;

		if (symbol->st_name < names->sh_size)
			r = put_symbol(s, symbol,
				       (const char *)text + symbol->st_name);
	}
	free(symbols);
	free(text);
	return r;
}

static int read_symbols(struct search *s, const struct seam_fdr_image *image)
{
	struct seam_image_file file;
	const ElfW(Shdr) *table;
	int r = seam_fdr_image_open(image, &file);

	if (r < 0)
		return r;
	s->bias = image->bias;
	table = seam_image_file_section_of(&file, SHT_SYMTAB) ?:
		seam_image_file_section_of(&file, SHT_DYNSYM);
	r = table ? read_table(s, &file, table) : -ENOENT;
	seam_image_file_close(&file);
	return r;
}

int seam_fdr_names_each(const struct seam_fdr_image *image,
			const uint64_t *addresses, size_t n,
			int (*on_name)(void *context, uint32_t function,
				       const char *name),
			void *context)
{
	struct search s = { .on_name = on_name, .context = context };
	int r = list_places(&s, addresses, n);

	r = r ?: read_symbols(&s, image);
	free(s.places.items);
	return r;
}

int seam_fdr_names_addresses(const struct seam_fdr_image *image,
			     struct seam_fdr_addresses *addresses)
{
	struct search s = { .all = addresses };

	return read_symbols(&s, image);
}
