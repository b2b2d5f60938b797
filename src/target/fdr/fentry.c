/* SPDX-License-Identifier: MIT */
/* fentry.c - how an image reaches __fentry__; see fentry.h */
#include "target/fdr/fentry.h"

#include <stdlib.h>

#include "target/elf/image_file.h"

static const char name[] = "__fentry__";

/* The symbols of a section, and their names. */
struct symbols {
	ElfW(Sym) *list;
	size_t n;
	char *names;
	size_t names_bytes;
};

static void free_symbols(struct symbols *s)
{
	free(s->list);
	free(s->names);
}

static bool read_symbols(const struct seam_image_file *file,
			 const ElfW(Shdr) *table, struct symbols *s)
{
	const ElfW(Shdr) *names;
	void *list = NULL, *text = NULL;

	*s = (struct symbols) { .list = NULL };
	if (!table || table->sh_link >= file->n_sections)
		return false;
	names = &file->sections[table->sh_link];
	if (seam_image_file_read(file, names->sh_offset, names->sh_size,
				 &text) < 0)
		return false;
	if (seam_image_file_read(file, table->sh_offset, table->sh_size,
				 &list) < 0) {
		free(text);
		return false;
	}
	*s = (struct symbols) { list, table->sh_size / sizeof(*s->list), text,
				names->sh_size };
	return true;
}

static bool is_fentry(const struct symbols *s, size_t i)
{
	return i < s->n && s->list[i].st_name < s->names_bytes &&
	       !strcmp(s->names + s->list[i].st_name, name);
}

static void find_slots(struct seam_fdr_image *image,
		       const struct seam_image_file *file,
		       const struct symbols *s, const ElfW(Shdr) *section)
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
	struct symbols s;

	if (!read_symbols(file, seam_image_file_section_of(file, SHT_SYMTAB),
			  &s))
		return;
	for (size_t i = 0; i < s.n; i++)
		if (is_fentry(&s, i) && s.list[i].st_shndx != SHN_UNDEF)
			image->code.fentry = image->bias + s.list[i].st_value;
	free_symbols(&s);
}

static bool has_fentry(const struct symbols *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (is_fentry(s, i))
			return true;
	return false;
}

void seam_fdr_find_fentry(struct seam_fdr_image *image,
			  const struct seam_image_file *file)
{
	struct symbols s;

	if (is_static(image)) {
		find_function(image, file);
		return;
	}
	if (!read_symbols(file, seam_image_file_section_of(file, SHT_DYNSYM),
			  &s))
		return;
	for (size_t i = 0; i < file->n_sections && has_fentry(&s); i++)
		if (file->sections[i].sh_type == SHT_RELA &&
		    (file->sections[i].sh_flags & SHF_ALLOC))
			find_slots(image, file, &s, &file->sections[i]);
	free_symbols(&s);
}
