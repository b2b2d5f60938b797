/* SPDX-License-Identifier: MIT */
/* image_imports.c - what of ours an image calls; see image_imports.h */
#include "traced/fdr/sleds/image_imports.h"

#include <stdlib.h>

#include "traced/elf/image_file.h"

static const char name[] = "__fentry__";

enum { MAX_NAME = 64 };	/* longer ones are not ours */

/* ---- in the file ---- */

static bool is_fentry(const struct seam_image_symbols *s, size_t i)
{
	return i < s->n &&
	       !strcmp(seam_image_symbol_name(s, &s->list[i]), name);
}

static void find_slots(struct seam_fdr_image *image,
		       const struct seam_image_file *file,
		       const struct seam_image_symbols *s,
		       const ElfW(Shdr) *section)
{
	struct seam_fdr_code *code = &image->code;
	size_t n = section->sh_size / sizeof(ElfW(Rela));
	const ElfW(Rela) *rela;
	void *bytes;

	if (seam_image_file_read(file, section->sh_offset, section->sh_size,
				 &bytes) < 0)
		return;
	rela = bytes;
	for (size_t i = 0; i < n; i++)
		if (is_fentry(s, ELF64_R_SYM(rela[i].r_info)) &&
		    code->n_fentry_slots < SEAM_FDR_MAX_SLOTS)
			code->fentry_slots[code->n_fentry_slots++] =
				image->bias + rela[i].r_offset;
	free(bytes);
}

/* In a program with an interpreter it is libc's. */
static bool is_static(const struct seam_fdr_image *image)
{
	for (size_t i = 0; i < image->n_headers; i++)
		if (image->headers[i].p_type == PT_INTERP)
			return false;
	return !strcmp(image->file, "/proc/self/exe");
}

static void find_function(struct seam_fdr_image *image,
			  const struct seam_image_file *file)
{
	struct seam_image_symbols s;

	if (seam_image_file_symbols(file, SHT_SYMTAB, &s) < 0)
		return;
	for (size_t i = 0; i < s.n; i++)
		if (is_fentry(&s, i) && s.list[i].st_shndx != SHN_UNDEF)
			image->code.fentry = image->bias + s.list[i].st_value;
	seam_image_symbols_fini(&s);
}

/* ---- in memory ---- */

/* Addresses of the dynamic section; 0: it has none. */
struct dynamic {
	uint64_t symbols, names, names_bytes, gnu_hash;
};

/* The loader adds the bias, but not where the section is constant. */
static uint64_t loaded(const struct seam_fdr_image *image, uint64_t address)
{
	return seam_fdr_code_segment(&image->code, address, 1, PROT_READ) ?
	       address : address + image->bias;
}

static void read_entry(struct dynamic *d, const struct seam_fdr_image *image,
		       const ElfW(Dyn) *entry)
{
	uint64_t value = entry->d_un.d_val;

	switch (entry->d_tag) {
	case DT_SYMTAB:
		d->symbols = loaded(image, value);
		break;
	case DT_STRTAB:
		d->names = loaded(image, value);
		break;
	case DT_STRSZ:
		d->names_bytes = value;
		break;
	case DT_GNU_HASH:
		d->gnu_hash = loaded(image, value);
		break;
	}
}

static void read_dynamic(struct dynamic *d, const struct seam_fdr_image *image)
{
	*d = (struct dynamic) { 0 };
	for (size_t i = 0; i < image->n_headers; i++) {
		const ElfW(Phdr) *h = &image->headers[i];
		size_t n = h->p_memsz / sizeof(ElfW(Dyn));

		for (size_t j = 0; h->p_type == PT_DYNAMIC && j < n; j++) {
			ElfW(Dyn) entry;

			if (!seam_fdr_code_read(&image->code, image->bias +
						h->p_vaddr + j * sizeof(entry),
						&entry, sizeof(entry)) ||
			    entry.d_tag == DT_NULL)
				return;
			read_entry(d, image, &entry);
		}
	}
}

/*
 * Symbols that may be undefined: those before the first that is hashed.  Where
 * none is, the table says 1, and it can be any.
 */
static size_t count_undefined(const struct dynamic *d,
			      const struct seam_fdr_image *image,
			      const struct seam_image_file *file)
{
	const ElfW(Shdr) *all = seam_image_file_section_of(file, SHT_DYNSYM);
	size_t n = all ? all->sh_size / sizeof(ElfW(Sym)) : 0;
	uint32_t words[2];	/* number of buckets, first that is hashed */

	if (d->gnu_hash &&
	    seam_fdr_code_read(&image->code, d->gnu_hash, words,
			       sizeof(words)) &&
	    words[1] > 1 && words[1] < n)
		return words[1];
	return n;
}

static bool read_name(const struct dynamic *d,
		      const struct seam_fdr_image *image, size_t i,
		      char text[MAX_NAME])
{
	ElfW(Sym) symbol;
	uint64_t n;

	if (!seam_fdr_code_read(&image->code, d->symbols + i * sizeof(symbol),
				&symbol, sizeof(symbol)) ||
	    symbol.st_shndx != SHN_UNDEF || symbol.st_name >= d->names_bytes)
		return false;
	n = d->names_bytes - symbol.st_name;
	if (n > MAX_NAME - 1)
		n = MAX_NAME - 1;
	text[n] = 0;
	return seam_fdr_code_read(&image->code, d->names + symbol.st_name,
				  text, n);
}

static bool records(const char *text)
{
	return !strncmp(text, "seam_fdr_", 9) ||
	       !strncmp(text, "__cyg_profile_func_", 19);
}

/* Whether it calls __fentry__. */
static bool read_undefined(struct seam_fdr_image *image,
			   const struct seam_image_file *file)
{
	struct dynamic d;
	bool has_fentry = false;
	char text[MAX_NAME];
	size_t n;

	read_dynamic(&d, image);
	n = count_undefined(&d, image, file);
	for (size_t i = 1; i < n; i++) {
		if (!read_name(&d, image, i, text))
			continue;
		has_fentry |= !strcmp(text, name);
		image->records_itself |= records(text);
	}
	return has_fentry;
}

void seam_fdr_find_imports(struct seam_fdr_image *image,
			   const struct seam_image_file *file)
{
	struct seam_image_symbols s;

	if (is_static(image)) {
		/* it is linked with this library */
		image->records_itself = true;
		find_function(image, file);
		return;
	}
	if (!read_undefined(image, file) ||
	    seam_image_file_symbols(file, SHT_DYNSYM, &s) < 0)
		return;
	for (size_t i = 0; i < file->n_sections; i++)
		if (file->sections[i].sh_type == SHT_RELA &&
		    (file->sections[i].sh_flags & SHF_ALLOC))
			find_slots(image, file, &s, &file->sections[i]);
	seam_image_symbols_fini(&s);
}
