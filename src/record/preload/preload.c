/* SPDX-License-Identifier: MIT */
/* preload.c - decide, and change the environment; see preload.h */
#include "record/preload/preload.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "record/preload/program_file.h"

enum { MAX_LIBRARIES = 64 };	/* of one program */

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

/* Whether the library number @i needs a LuaJIT; add those that it needs. */
static bool needs_luajit(struct libraries *all, size_t i, char found[PATH_MAX])
{
	const struct seam_program_file *file = &all->file;
	char library[PATH_MAX];

	for (size_t k = 0; k < file->n_needed; k++) {
		if (!seam_program_file_find(file, all->paths[i],
					    file->needed[k], library))
			continue;
		if (strncmp(file->needed[k], "libluajit", 9) == 0) {
			memcpy(found, library, PATH_MAX);
			return true;
		}
		add_library(all, library);
	}
	return false;
}

/* The file at @path or a library that it needs; breadth first. */
static bool has_vm(const char *path, char found[PATH_MAX])
{
	struct libraries *all = calloc(1, sizeof(*all));
	bool has = false;

	if (all && seam_program_file_read(&all->file, path)) {
		add_library(all, path);
		has = all->file.has_luajit;
		if (has)
			snprintf(found, PATH_MAX, "%s", path);
		else
			has = needs_luajit(all, 0, found);
		for (size_t i = 1; !has && i < all->n; i++)
			has = seam_program_file_read_needed(&all->file,
							    all->paths[i]) &&
			      needs_luajit(all, i, found);
	}
	free(all);
	return has;
}

/* Where the module is, from the folder of the program. */
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

/* The file with the VM that the command @argv runs is in @found. */
static bool find_vm(char *const *argv, char found[PATH_MAX])
{
	char path[PATH_MAX], name[PATH_MAX], program[PATH_MAX];

	return seam_file_find_program(argv[0], path) &&
	       (has_vm(path, found) || is_nginx_with_lua(path, found) ||
		(seam_file_interpreter(path, name) &&
		 seam_file_find_program(name, program) &&
		 has_vm(program, found)));
}

/* ---- our libraries ---- */

/*
 * Whether nobody but root, @owner and the user can have put it there: the
 * program may be in /tmp, where any user can add a file of that name.
 */
static bool is_trusted(char *path, uid_t owner)
{
	char *slash = strrchr(path, '/');
	struct stat file, folder;
	bool is_known;

	if (stat(path, &file) || !S_ISREG(file.st_mode))
		return false;
	*slash = '\0';
	is_known = stat(path[0] ? path : "/", &folder) == 0;
	*slash = '/';
	return is_known && !(file.st_mode & S_IWOTH) &&
	       (!(folder.st_mode & S_IWOTH) || folder.st_mode & S_ISVTX) &&
	       (!file.st_uid || file.st_uid == owner ||
		file.st_uid == geteuid()) &&
	       (!folder.st_uid || folder.st_uid == owner ||
		folder.st_uid == geteuid());
}

bool seam_preload_find(const char *name, char library[PATH_MAX])
{
	static const char *const places[] = {
		/* of the program: beside it, built, installed */
		"", "src/traced/agent/", "src/traced/fdr/",
		"../" SEAM_LIBDIR "/",
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

void seam_preload_decide(struct seam_preload *p, enum seam_layers layers,
			 char **argv, char *message, size_t room)
{
	char found[PATH_MAX], shown[256];
	bool has_vm;

	*p = (struct seam_preload) { .is_used = false };
	message[0] = '\0';
	if (layers == SEAM_LAYERS_NATIVE)
		return;
	has_vm = find_vm(argv, found);
	if (!has_vm && layers == SEAM_LAYERS_AUTO)
		return;
	if (!seam_preload_find(SEAM_AGENT_LIBRARY, p->library)) {
		snprintf(message, room, "no Lua stacks: cannot find "
			 SEAM_AGENT_LIBRARY);
		return;
	}
	/* Source: ld.so(8), LD_PRELOAD: its items end at these */
	if (strpbrk(p->library, ": ")) {
		snprintf(message, room, "no Lua stacks: the path of "
			 SEAM_AGENT_LIBRARY " has a space or a colon");
		return;
	}
	p->is_used = true;
	if (!has_vm)
		return;
	seam_text_copy(shown, sizeof(shown), found, SEAM_TEXT_TERMINAL);
	snprintf(message, room, "Lua stacks by " SEAM_AGENT_LIBRARY
		 ", preloaded for LuaJIT in '%s' (--layers=native: without)",
		 shown);
}

int seam_preload_add_fdr(struct seam_preload *p, struct seam_err *err)
{
	if (!seam_preload_find(SEAM_FDR_LIBRARY, p->fdr))
		return seam_err_set(err, -ENOENT, "cannot find "
				    SEAM_FDR_LIBRARY " ('./dev build' makes "
				    "it, 'ninja -C build install' installs it "
				    "beside the program)");
	if (strpbrk(p->fdr, ": "))
		return seam_err_set(err, -EINVAL, "the path of "
				    SEAM_FDR_LIBRARY " has a space or a colon");
	p->has_fdr = true;
	return 0;
}

/* ---- the environment ---- */

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void set_preload(const struct seam_preload *p)
{
	const char *users = p->old_preload ? p->old_preload : "";
	const char *agent = p->is_used ? p->library : "";
	const char *fdr = p->has_fdr ? p->fdr : "";
	size_t n = strlen(users) + strlen(agent) + strlen(fdr) + 3;
	char *value = malloc(n);

	if (!value)
		return;
	snprintf(value, n, "%s%s%s%s%s", agent, agent[0] && fdr[0] ? ":" : "",
		 fdr, users[0] ? ":" : "", users);
	setenv("LD_PRELOAD", value, 1);
	free(value);
}

/*
 * The command, or a program that it starts, may have AddressSanitizer, which
 * ends it at once where another library is first, unless its check is off.
 */
static void set_asan(const struct seam_preload *p)
{
	const char *users = p->old_asan ? p->old_asan : "";
	size_t n = strlen(users) + 64;
	char *value = malloc(n);

	if (!value)
		return;
	snprintf(value, n, "%s%sverify_asan_link_order=0", users,
		 users[0] ? ":" : "");
	setenv("ASAN_OPTIONS", value, 1);
	free(value);
}

/* False: no memory for it. */
static bool save(const char *variable, char **old)
{
	const char *value = getenv(variable);

	*old = value ? strdup(value) : NULL;
	return !value || *old;
}

void seam_preload_set(struct seam_preload *p)
{
	if (!p->is_used && !p->has_fdr)
		return;
	if (save("LD_PRELOAD", &p->old_preload) &&
	    save("ASAN_OPTIONS", &p->old_asan)) {
		set_preload(p);
		set_asan(p);
		return;
	}
	/* what cannot be restored is not changed */
	free(p->old_preload);
	p->old_preload = NULL;
	p->is_used = p->has_fdr = false;
}

void seam_preload_restore(struct seam_preload *p)
{
	if (!p->is_used && !p->has_fdr)
		return;
	set("LD_PRELOAD", p->old_preload);
	set("ASAN_OPTIONS", p->old_asan);
	free(p->old_preload);
	free(p->old_asan);
	p->old_preload = p->old_asan = NULL;
}
