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
	int (*on_name)(void *context, uint32_t function, const char *name);
	void *context;
};

static int compare_places(const void *left, const void *right)
{
	const struct function_start *a = left, *b = right;

	return SEAM_COMPARE(a->address, b->address) ?:
	       SEAM_COMPARE(a->function, b->function);
}

/* A damaged map may have the same function more than once. */
static int find_function(void *context, uint64_t address, const char *name)
{
	const struct search *s = context;
	size_t i = SEAM_ARRAY_SEARCH(j, s->places.n,
				     s->places.items[j].address < address);
	int r = 0;

	for (; r == 0 && i < s->places.n &&
	       s->places.items[i].address == address; i++)
		r = s->on_name(s->context, s->places.items[i].function, name);
	return r;
}

static int add_address(void *addresses, uint64_t address, const char *name)
{
	struct seam_fdr_addresses *all = addresses;

	(void)name;
	return SEAM_ARRAY_ADD(all, address) ? 0 : -ENOMEM;
}

/* Of the debug file.  -ENOENT: there is none. */
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

static int each_function(const struct seam_fdr_image *image,
			 int (*on_function)(void *context, uint64_t address,
					    const char *name),
			 void *context)
{
	struct seam_image_symbols symbols;
	struct seam_image_file file;
	int r = seam_fdr_image_open(image, &file);

	if (r < 0)
		return r;
	r = seam_image_file_symbols(&file, SHT_SYMTAB, &symbols);
	if (r == -ENOENT) {
		r = read_debug_symbols(&symbols, image, &file);
		if (r < 0)
			r = seam_image_file_symbols(&file, SHT_DYNSYM,
						    &symbols);
	}
	seam_image_file_close(&file);
	for (size_t i = 0; i < symbols.n && r == 0; i++)
		if (seam_image_symbol_is_function(&symbols, &symbols.list[i]))
			r = on_function(context, image->bias +
						 symbols.list[i].st_value,
					seam_image_symbol_name(
						&symbols, &symbols.list[i]));
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
	int r;

	if (!SEAM_ARRAY_RESERVE(&s.places, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		s.places.items[i] = (struct function_start) {
			addresses[i], (uint32_t)i };
	s.places.n = n;
	SEAM_ARRAY_SORT(&s.places, compare_places);
	r = each_function(image, find_function, &s);
	free(s.places.items);
	return r;
}

int seam_fdr_names_addresses(const struct seam_fdr_image *image,
			     struct seam_fdr_addresses *addresses)
{
	return each_function(image, add_address, addresses);
}
