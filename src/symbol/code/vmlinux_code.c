/* SPDX-License-Identifier: MIT */
/* vmlinux_code.c - vmlinux files; see vmlinux_code.h */
#include "symbol/code/vmlinux_code.h"

#include <errno.h>

#include "symbol/elf/elf_file.h"

/* Debug information alone has sections of code without bytes. */
static bool has_code(const struct seam_elf *file)
{
	GElf_Shdr text;

	return seam_elf_section(file, ".text", &text) &&
	       text.sh_type == SHT_PROGBITS;
}

static bool try_file(const struct seam_vmlinux_query *query, const char *path,
		     struct seam_elf *found, struct seam_vmlinux_answer *out)
{
	if (seam_elf_open(found, path, NULL))
		return false;
	if (seam_elf_is(found, query->kernel->build_id,
			query->kernel->build_id_size) && has_code(found))
		return true;
	snprintf(out->other, sizeof(out->other), "'%.120s' is %s", path,
		 has_code(found) ? "of another kernel" :
		 "debug information without code");
	seam_elf_close(found);
	return false;
}

/* The address of _text in the file, or of its first executable segment. */
static uint64_t text_of(const struct seam_elf *file)
{
	GElf_Shdr header;
	Elf_Scn *section = seam_elf_section(file, ".symtab", &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	GElf_Sym symbol;

	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		const char *name = elf_strptr(file->elf, header.sh_link,
					      symbol.st_name);

		if (name && strcmp(name, "_text") == 0)
			return symbol.st_value;
	}
	for (size_t i = 0; i < file->segments.n; i++)
		if (file->segments.items[i].is_executable)
			return file->segments.items[i].addr;
	return 0;
}

static int read_file(const struct seam_vmlinux_query *query,
		     const struct seam_elf *file, uint8_t *buf,
		     struct seam_err *err)
{
	uint64_t at = query->addr - query->kernel->text_addr + text_of(file);
	int r = seam_elf_read_at(file, at, buf, query->size, err);

	return r != -ENOENT ? r :
	       seam_err_set(err, r, "it is not in the kernel's file, but in a "
			    "module or made at run time; /proc/kcore has that "
			    "for root, until the next boot");
}

int seam_vmlinux_code(const struct seam_vmlinux_query *query, uint8_t *buf,
		      struct seam_vmlinux_answer *out, struct seam_err *err)
{
	struct seam_elf found = { .fd = -1 };
	int r;

	*out = (struct seam_vmlinux_answer) { 0 };
	for (size_t i = 0; i < query->n_paths && !out->is_found; i++)
		out->is_found = try_file(query, query->paths[i], &found, out);
	if (!out->is_found)
		return seam_err_set(err, -ENOENT, "no file of that kernel");
	out->machine = seam_elf_machine(&found);
	r = read_file(query, &found, buf, err);
	seam_elf_close(&found);
	return r;
}
