/* SPDX-License-Identifier: MIT */
/* program_file.c - sections, symbols and libraries; see program_file.h */
#include "record/preload/program_file.h"

#include <stdlib.h>
#include <unistd.h>

#include "symbol/elf/elf_file.h"

/* Its libraries are the strings at DT_NEEDED. */
static void read_dynamic(struct seam_program_file *p,
			 const struct seam_elf *file)
{
	GElf_Shdr header;
	Elf_Scn *section = seam_elf_section(file, ".dynamic", &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	GElf_Dyn entry;

	for (int i = 0; data && gelf_getdyn(data, i, &entry); i++) {
		const char *text = NULL;

		if (entry.d_tag == DT_NEEDED || entry.d_tag == DT_RPATH ||
		    entry.d_tag == DT_RUNPATH)
			text = elf_strptr(file->elf, header.sh_link,
					  entry.d_un.d_val);
		if (!text)
			continue;
		if (entry.d_tag != DT_NEEDED)
			snprintf(p->paths, sizeof(p->paths), "%s", text);
		else if (p->n_needed < SEAM_PROGRAM_MAX_NEEDED)
			snprintf(p->needed[p->n_needed++],
				 SEAM_PROGRAM_NAME_BYTES, "%s", text);
	}
}

/*
 * LuaJIT exports what no other Lua does; gcc's -finstrument-functions calls
 * the first of the hooks, -pg -mfentry the second.
 */
static void read_symbols(struct seam_program_file *p,
			 const struct seam_elf *file)
{
	GElf_Shdr header;
	Elf_Scn *section = seam_elf_section(file, ".dynsym", &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	GElf_Sym symbol;

	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		const char *name = elf_strptr(file->elf, header.sh_link,
					      symbol.st_name);

		if (name && symbol.st_shndx != SHN_UNDEF)
			p->has_luajit |= strcmp(name, "luaJIT_setmode") == 0;
		else if (name)
			p->has_calls |=
				strcmp(name, "__cyg_profile_func_enter") == 0 ||
				strcmp(name, "__fentry__") == 0;
	}
}

/*
 * Source: LLVM 14, X86AsmPrinter (xray_instr_map); GCC 12's manual,
 * -fpatchable-function-entry, -mrecord-mcount.
 */
static bool has_sleds(const struct seam_elf *file)
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

static bool open_program(struct seam_program_file *p, struct seam_elf *file,
			 const char *path)
{
	memset(p, 0, sizeof(*p));
	if (seam_elf_open(file, path, NULL))
		return false;
	if (file->machine == EM_X86_64) {
		read_dynamic(p, file);
		return true;
	}
	seam_elf_close(file);
	return false;
}

bool seam_program_file_read_needed(struct seam_program_file *p,
				   const char *path)
{
	struct seam_elf file;

	if (!open_program(p, &file, path))
		return false;
	seam_elf_close(&file);
	return true;
}

bool seam_program_file_read(struct seam_program_file *p, const char *path)
{
	struct seam_elf file;

	if (!open_program(p, &file, path))
		return false;
	p->is_dynamic = is_dynamic(&file);
	p->has_calls = has_sleds(&file);
	read_symbols(p, &file);
	seam_elf_close(&file);
	return true;
}

/* ---- the search ---- */

/* @name in the folder [@folder, @folder + @n), of the file @path. */
static bool is_in(const char *folder, size_t n, const char *path,
		  const char *name, char found[PATH_MAX])
{
	static const char origin[] = "$ORIGIN", braces[] = "${ORIGIN}";
	const char *slash = strrchr(path, '/');
	size_t skip = strncmp(folder, origin, sizeof(origin) - 1) == 0 ?
		      sizeof(origin) - 1 :
		      strncmp(folder, braces, sizeof(braces) - 1) == 0 ?
		      sizeof(braces) - 1 : 0;
	int length;

	if (n == 0 || skip > n)
		return false;
	length = skip ? snprintf(found, PATH_MAX, "%.*s%.*s/%s",
				 slash ? (int)(slash - path) : 1,
				 slash ? path : ".", (int)(n - skip),
				 folder + skip, name) :
		 snprintf(found, PATH_MAX, "%.*s/%s", (int)n, folder, name);
	return length > 0 && length < PATH_MAX && access(found, R_OK) == 0;
}

static bool is_in_list(const char *folders, const char *path, const char *name,
		       char found[PATH_MAX])
{
	while (folders && *folders) {
		size_t n = strcspn(folders, ":");

		if (is_in(folders, n, path, name, found))
			return true;
		folders += n + (folders[n] == ':');
	}
	return false;
}

bool seam_program_file_find(const struct seam_program_file *p,
			    const char *path, const char *name,
			    char found[PATH_MAX])
{
	static const char usual[] =
		"/usr/local/lib/x86_64-linux-gnu:/usr/local/lib:"
		"/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:"
		"/lib64:/usr/lib64:/lib:/usr/lib";

	if (strchr(name, '/'))
		return snprintf(found, PATH_MAX, "%s", name) < PATH_MAX &&
		       access(found, R_OK) == 0;
	return is_in_list(p->paths, path, name, found) ||
	       is_in_list(getenv("LD_LIBRARY_PATH"), path, name, found) ||
	       is_in_list(usual, path, name, found);
}
