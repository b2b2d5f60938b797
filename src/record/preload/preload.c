/* SPDX-License-Identifier: MIT */
/* preload.c - decide, and change the environment; see preload.h */
#include "record/preload/preload.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

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
	char found[256];
	bool has_vm;

	*p = (struct seam_preload) { .is_used = false };
	message[0] = '\0';
	if (layers == SEAM_LAYERS_NATIVE)
		return;
	has_vm = seam_vm_search(&p->search, argv);
	if (!has_vm && layers == SEAM_LAYERS_AUTO) {
		if (p->search.has_failed)
			snprintf(message, room, "no Lua stacks: looking for "
				 "LuaJIT took more than 1 s (--layers=guest)");
		return;
	}
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
	seam_text_copy(found, sizeof(found), p->search.found,
		       SEAM_TEXT_TERMINAL);
	snprintf(message, room, "Lua stacks by " SEAM_AGENT_LIBRARY
		 ", preloaded for LuaJIT in '%s' (--layers=native: without)",
		 found);
}

int seam_preload_add_fdr(struct seam_preload *p, char **argv,
			 struct seam_err *err)
{
	if (!seam_preload_find(SEAM_FDR_LIBRARY, p->fdr))
		return seam_err_set(err, -ENOENT, "cannot find "
				    SEAM_FDR_LIBRARY " ('./dev build' makes "
				    "it, 'ninja -C build install' installs it "
				    "beside the program)");
	if (strpbrk(p->fdr, ": "))
		return seam_err_set(err, -EINVAL, "the path of "
				    SEAM_FDR_LIBRARY " has a space or a colon");
	/* for AddressSanitizer's library */
	if (!p->search.n_files)
		seam_vm_search(&p->search, argv);
	p->has_fdr = true;
	return 0;
}

/* ---- the environment ---- */

static bool is_asan(const char *item)
{
	size_t n = strcspn(item, ": ");
	const char *name = item;

	for (size_t i = 0; i < n; i++)
		name = item[i] == '/' ? item + i + 1 : name;
	return strncmp(name, "libasan.so", 10) == 0 ||
	       strncmp(name, "libclang_rt.asan", 16) == 0;
}

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/* The items of @users that have to be before ours. */
static size_t leading_asan(const char *users)
{
	return is_asan(users) ? strcspn(users, ": ") : 0;
}

static void set_preload(const struct seam_preload *p)
{
	const char *users = p->old_preload ? p->old_preload : "";
	const char *agent = p->is_used ? p->library : "";
	const char *fdr = p->has_fdr ? p->fdr : "";
	size_t leading = leading_asan(users), n;
	const char *asan = p->search.is_command && !leading ?
			   p->search.asan : "";
	char *value;

	n = strlen(users) + strlen(asan) + strlen(agent) + strlen(fdr) + 5;
	value = malloc(n);
	if (!value)
		return;
	snprintf(value, n, "%.*s%s%s%s%s%s%s%s", (int)leading, users,
		 leading ? ":" : asan, asan[0] ? ":" : "", agent,
		 agent[0] && fdr[0] ? ":" : "", fdr, users[leading] ? ":" : "",
		 users + leading + (leading && users[leading]));
	setenv("LD_PRELOAD", value, 1);
	free(value);
}

/*
 * Any program that the command starts may have AddressSanitizer, which ends it
 * at once where another library is first, unless its check is off.
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
