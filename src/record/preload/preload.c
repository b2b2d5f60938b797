/* SPDX-License-Identifier: MIT */
/* preload.c - read, decide, set the environment; see preload.h */
#include "record/preload/preload.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "symbol/elf/elf_file.h"

enum { MAX_LIBRARIES = 64 };	/* of one program */

/* ---- the ELF file of a command ---- */

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

bool seam_program_file_read(struct seam_program_file *p, const char *path,
			    bool whole)
{
	struct seam_elf file;
	bool is_ours;

	memset(p, 0, sizeof(*p));
	if (seam_elf_open(&file, path, NULL))
		return false;
	is_ours = file.machine == EM_X86_64;
	if (is_ours)
		read_dynamic(p, &file);
	if (is_ours && whole) {
		p->is_dynamic = is_dynamic(&file);
		p->has_calls = has_sleds(&file);
		read_symbols(p, &file);
	}
	seam_elf_close(&file);
	return is_ours;
}

/* @name in one of @folders, "a:b"; $ORIGIN is the folder of the file @path. */
static bool is_in(const char *folders, const char *path, const char *name,
		  char found[PATH_MAX])
{
	static const char *const origins[] = { "$ORIGIN", "${ORIGIN}" };
	const char *slash = strrchr(path, '/');

	while (folders && *folders) {
		size_t n = strcspn(folders, ":"), skip = 0;
		int size;

		for (size_t i = 0; i < SEAM_ARRAY_SIZE(origins); i++)
			if (strncmp(folders, origins[i],
				    strlen(origins[i])) == 0)
				skip = strlen(origins[i]);
		size = snprintf(found, PATH_MAX, "%.*s%.*s/%s", !skip ? 0 :
				slash ? (int)(slash - path) : 1,
				slash ? path : ".", (int)(n - skip),
				folders + skip, name);
		if (n && size < PATH_MAX && access(found, R_OK) == 0)
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
	return is_in(p->paths, path, name, found) ||
	       is_in(getenv("LD_LIBRARY_PATH"), path, name, found) ||
	       is_in(usual, path, name, found);
}

/* ---- the VM of a command ---- */

/* Paths that were seen, so that each library is read once. */
struct libraries {
	size_t n;
	char paths[MAX_LIBRARIES][PATH_MAX];
	struct seam_program_file file;	/* the one that is read */
};

static void add_library(struct libraries *all, const char *path)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->paths[i], path) == 0)
			return;
	if (all->n < MAX_LIBRARIES)
		snprintf(all->paths[all->n++], PATH_MAX, "%s", path);
}

/*
 * The file at @path or a library that it needs has LuaJIT, or needs a LuaJIT;
 * breadth first.
 */
static bool has_vm(const char *path, char found[PATH_MAX])
{
	struct libraries *all = calloc(1, sizeof(*all));
	bool has = false;

	if (all)
		add_library(all, path);
	for (size_t i = 0; all && !has && i < all->n; i++) {
		const struct seam_program_file *file = &all->file;

		if (!seam_program_file_read(&all->file, all->paths[i], i == 0))
			continue;
		has = file->has_luajit;
		if (has)
			snprintf(found, PATH_MAX, "%s", path);
		for (size_t k = 0; !has && k < file->n_needed; k++) {
			if (!seam_program_file_find(file, all->paths[i],
						    file->needed[k], found))
				continue;
			has = strncmp(file->needed[k], "libluajit", 9) == 0;
			if (!has)
				add_library(all, found);
		}
	}
	free(all);
	return has;
}

/* The Lua module of nginx, from the folder of the program @path. */
static bool is_nginx_with_lua(const char *path, char found[PATH_MAX])
{
	static const char *const folders[] = {
		"../lib/nginx/modules", "../lib64/nginx/modules",
		"../modules",
	};
	const char *name = seam_file_name(path);

	for (size_t i = 0; strcmp(name, "nginx") == 0 &&
	     i < SEAM_ARRAY_SIZE(folders); i++)
		if (snprintf(found, PATH_MAX, "%.*s%s/ngx_http_lua_module.so",
			     (int)(name - path), path, folders[i]) <
		    PATH_MAX && access(found, R_OK) == 0)
			return true;
	return false;
}

/* ---- our libraries ---- */

/* Of root, @owner or the user, and only these can write to it. */
static bool is_of(const struct stat *st, uid_t owner, mode_t also)
{
	return (!st->st_uid || st->st_uid == owner ||
		st->st_uid == geteuid()) &&
	       (!(st->st_mode & S_IWOTH) || st->st_mode & also);
}

/*
 * Whether nobody but root, @owner and the user can have put it there: the
 * program may be in /tmp, where any user can add a file of that name.
 */
static bool is_trusted(const char *path, uid_t owner)
{
	struct stat file, folder;
	char of[PATH_MAX];

	snprintf(of, sizeof(of), "%.*s", (int)(strrchr(path, '/') - path + 1),
		 path);
	return stat(path, &file) == 0 && S_ISREG(file.st_mode) &&
	       stat(of, &folder) == 0 && is_of(&file, owner, 0) &&
	       is_of(&folder, owner, S_ISVTX);
}

bool seam_preload_find(const char *name, char library[PATH_MAX])
{
	static const char *const places[] = {
		/* of the program: beside it, built, installed */
		"", "src/traced/sampler/", "src/traced/fdr/",
		"../" SEAM_LIBDIR "/", "../" SEAM_LIBDIR "/seam/",
	};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self));
	const char *slash;
	struct stat program;

	if (n <= 0 || (size_t)n >= sizeof(self) ||
	    stat("/proc/self/exe", &program))
		return false;
	self[n] = '\0';
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < SEAM_ARRAY_SIZE(places); i++) {
		char path[2 * PATH_MAX];

		snprintf(path, sizeof(path), "%.*s/%s%s", (int)(slash - self),
			 self, places[i], name);
		if (access(path, R_OK) == 0 && realpath(path, library) &&
		    is_trusted(library, program.st_uid))
			return true;
	}
	return false;
}

static int find_to_preload(const char *name, char library[PATH_MAX],
			   struct seam_err *err)
{
	if (!seam_preload_find(name, library))
		return seam_err_set(err, -ENOENT, "cannot find %s ('./dev "
				    "build' makes it, 'ninja -C build install' "
				    "installs it beside the program)", name);
	/* Source: ld.so(8), LD_PRELOAD: its items end at these */
	if (strpbrk(library, ": "))
		return seam_err_set(err, -EINVAL, "the path of %s has a space "
				    "or a colon", name);
	return 0;
}

void seam_preload_decide(struct seam_preload *p, enum seam_layers layers,
			 char **argv, char *message, size_t room)
{
	char path[PATH_MAX], name[PATH_MAX], found[PATH_MAX];
	struct seam_err err = { 0 };
	bool is_found;
	int r;

	*p = (struct seam_preload) { .is_used = false };
	message[0] = '\0';
	if (layers == SEAM_LAYERS_NATIVE)
		return;
	is_found = seam_file_find_program(argv[0], path) &&
		   (has_vm(path, found) || is_nginx_with_lua(path, found) ||
		    (seam_file_interpreter(path, name) &&
		     seam_file_find_program(name, path) &&
		     has_vm(path, found)));
	if (!is_found && layers == SEAM_LAYERS_AUTO)
		return;
	r = find_to_preload(SEAM_SAMPLER_LIBRARY, p->library, &err);
	if (r < 0) {
		snprintf(message, room, "no Lua stacks: %s", err.cause[0]);
		return;
	}
	p->is_used = true;
	if (is_found)
		snprintf(message, room, "Lua stacks by " SEAM_SAMPLER_LIBRARY
			 ", preloaded for LuaJIT in '%s' (--layers=native: "
			 "without)", found);
}

int seam_preload_add_fdr(struct seam_preload *p, struct seam_err *err)
{
	int r = find_to_preload(SEAM_FDR_LIBRARY, p->fdr, err);

	p->has_fdr = r == 0;
	return r;
}

/* ---- the environment ---- */

/* Set @name to "a:b:c", of those that are not "". */
static void set_joined(const char *name, const char *a, const char *b,
		       const char *c)
{
	char *text;

	if (asprintf(&text, "%s%s%s%s%s", a, a[0] && b[0] ? ":" : "", b,
		     (a[0] || b[0]) && c[0] ? ":" : "", c) < 0)
		return;
	setenv(name, text, 1);
	free(text);
}

void seam_preload_set(const struct seam_preload *p)
{
	const char *users = getenv("LD_PRELOAD");
	const char *asan = getenv("ASAN_OPTIONS");

	if (!p->is_used && !p->has_fdr)
		return;
	set_joined("LD_PRELOAD", p->is_used ? p->library : "",
		   p->has_fdr ? p->fdr : "", users ? users : "");
	/*
	 * The command, or a program that it starts, may have AddressSanitizer,
	 * which ends it at once where another library is first.
	 */
	set_joined("ASAN_OPTIONS", asan ? asan : "", "verify_asan_link_order=0",
		   "");
}
