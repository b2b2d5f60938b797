/* SPDX-License-Identifier: MIT */
/* elf_sleds.c - sections and symbols that instrumentation leaves */
#include "record/preload/elf_sleds.h"

#include "symbol/elf/elf_file.h"

/*
 * Source: LLVM 14, X86AsmPrinter (xray_instr_map); GCC 12's manual,
 * -fpatchable-function-entry, -mrecord-mcount.
 */
static bool has_section(const struct seam_elf *file)
{
	static const char *const names[] = {
		"xray_instr_map", "__patchable_function_entries",
		"__mcount_loc",
	};
	GElf_Shdr header;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++)
		if (seam_elf_section(file, names[i], &header))
			return true;
	return false;
}

/* gcc's -finstrument-functions calls the first, -pg -mfentry the second. */
static bool calls_hook(const struct seam_elf *file)
{
	GElf_Shdr header;
	Elf_Scn *scn = seam_elf_section(file, ".dynsym", &header);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	size_t n = data && header.sh_entsize ?
		   data->d_size / header.sh_entsize : 0;
	GElf_Sym symbol;

	for (size_t i = 0; i < n && i <= INT32_MAX; i++) {
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx)
			continue;
		name = elf_strptr(file->elf, header.sh_link, symbol.st_name);
		if (name && (strcmp(name, "__cyg_profile_func_enter") == 0 ||
			     strcmp(name, "__fentry__") == 0))
			return true;
	}
	return false;
}

static bool is_dynamic(const struct seam_elf *file)
{
	GElf_Phdr header;
	size_t n = 0;

	if (elf_getphdrnum(file->elf, &n))
		return false;
	for (size_t i = 0; i < n && i <= INT32_MAX; i++)
		if (gelf_getphdr(file->elf, (int)i, &header) &&
		    header.p_type == PT_INTERP)
			return true;
	return false;
}

enum seam_elf_sleds seam_elf_sleds_read(const char *path)
{
	enum seam_elf_sleds sleds = SEAM_SLEDS_NOT_READ;
	struct seam_elf file;

	if (seam_elf_open(&file, path, NULL))
		return sleds;
	if (file.machine == EM_X86_64)
		sleds = !is_dynamic(&file) ? SEAM_SLEDS_STATIC :
			has_section(&file) || calls_hook(&file) ?
			SEAM_SLEDS_THERE : SEAM_SLEDS_NONE;
	seam_elf_close(&file);
	return sleds;
}
