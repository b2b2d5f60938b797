/* SPDX-License-Identifier: MIT */
/* function_names.c - names from symbol tables; see function_names.h */
#include "traced/fdr/sleds/function_names.h"

#include <errno.h>
#include <stdlib.h>

#include "traced/elf/image_debug.h"

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
static int put_function(struct search *s, uint64_t address, const char *name)
{
	size_t i = SEAM_ARRAY_SEARCH(j, s->places.n,
				     s->places.items[j].address < address);
	int r = 0;

	if (s->all)
		return SEAM_ARRAY_ADD(s->all, address) ? 0 : -ENOMEM;
	for (; r == 0 && i < s->places.n &&
	       s->places.items[i].address == address; i++)
		r = s->on_name(s->context, s->places.items[i].function, name);
	return r;
}

static int put_functions(struct search *s,
			 const struct seam_image_symbols *symbols)
{
	int r = 0;

	for (size_t i = 0; i < symbols->n && r == 0; i++) {
		const ElfW(Sym) *symbol = &symbols->list[i];

		if (seam_image_symbol_is_function(symbols, symbol))
			r = put_function(s, s->bias + symbol->st_value,
					 seam_image_symbol_name(symbols,
								symbol));
	}
	return r;
}

/* Of its debug file.  -ENOENT: it has none. */
static int read_debug_symbols(struct seam_image_symbols *symbols,
			      const struct seam_fdr_image *image,
			      const struct seam_image_file *file)
{
	struct seam_image_file debug;
	int r;

	if (!seam_image_debug_open(&debug, file, image->path, image->build_id,
				   image->build_id_bytes))
		return -ENOENT;
	r = seam_image_file_symbols(&debug, SHT_SYMTAB, symbols);
	seam_image_file_close(&debug);
	return r;
}

static int read_symbols(struct search *s, const struct seam_fdr_image *image)
{
	struct seam_image_symbols symbols;
	struct seam_image_file file;
	int r = seam_fdr_image_open(image, &file);

	if (r < 0)
		return r;
	s->bias = image->bias;
	r = seam_image_file_symbols(&file, SHT_SYMTAB, &symbols);
	if (r == -ENOENT) {
		r = read_debug_symbols(&symbols, image, &file);
		if (r < 0)
			r = seam_image_file_symbols(&file, SHT_DYNSYM,
						    &symbols);
	}
	seam_image_file_close(&file);
	r = r ?: put_functions(s, &symbols);
	seam_image_symbols_fini(&symbols);
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
