/* SPDX-License-Identifier: MIT */
/* vm_search.c - ELF files, scripts, words of command lines; vm_search.h */
#include "record/preload/vm_search.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "record/preload/elf_needs.h"

enum {
	MAX_FILES = 128,	/* read in a search */
	MAX_DEPTH = 4,		/* a script of a script, a word of a word */
	MAX_LIBRARIES = 64,	/* of one program */
	MAX_WORDS = 256,
	MAX_TEXT = 64 << 10,	/* of a script or a configuration */
	MAX_INCLUDES = 64,
	WAIT_MS = 1000,		/* for all of it */
};

/* ---- programs and their libraries ---- */

static void take_asan(struct seam_vm_search *s,
		      const struct seam_elf_needs *needs, const char *path)
{
	char found[PATH_MAX];

	for (size_t i = 0; needs->has_asan && i < needs->n; i++)
		if (strncmp(needs->names[i], "libasan.so", 10) == 0 &&
		    seam_elf_needs_find(needs, path, needs->names[i], found,
					sizeof(found)))
			snprintf(s->asan, sizeof(s->asan), "%.255s", found);
}

/* Names that were seen, so that each library is read once. */
struct libraries {
	size_t n;
	char paths[MAX_LIBRARIES][PATH_MAX];
};

static void add_library(struct libraries *all, const char *path)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->paths[i], path) == 0)
			return;
	if (all->n < MAX_LIBRARIES)
		snprintf(all->paths[all->n++], PATH_MAX, "%s", path);
}

/* The file at @path or a library that it needs; breadth first. */
static bool is_with_vm(struct seam_vm_search *s, const char *path)
{
	struct libraries *all = calloc(1, sizeof(*all));
	struct seam_elf_needs *needs = malloc(sizeof(*needs));
	char found[PATH_MAX];
	bool has = false;

	if (all && needs)
		add_library(all, path);
	for (size_t i = 0; all && needs && !has && i < all->n &&
	     s->n_files < MAX_FILES; i++) {
		s->n_files++;
		if (!seam_elf_needs_read(needs, all->paths[i]))
			continue;
		if (i == 0)
			take_asan(s, needs, path);
		has = needs->has_luajit;
		if (has)
			snprintf(s->found, sizeof(s->found), "%.255s",
				 all->paths[i]);
		for (size_t k = 0; k < needs->n; k++)
			if (seam_elf_needs_find(needs, all->paths[i],
						needs->names[k], found,
						sizeof(found)))
				add_library(all, found);
	}
	if (has)
		snprintf(s->first, sizeof(s->first), "%.255s", path);
	else
		s->asan[0] = '\0';
	free(needs);
	free(all);
	return has;
}

/* ---- files ---- */

/* The start of a file as text; the caller frees it.  NULL: not readable. */
static char *read_text(const char *path)
{
	char *text = malloc(MAX_TEXT + 1);
	int fd = seam_file_open_fd(AT_FDCWD, path, 0, NULL);
	ssize_t n = text && fd >= 0 ? read(fd, text, MAX_TEXT) : -1;

	seam_file_close_fd(fd);
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

/* ---- nginx ---- */

static bool loads_lua(const char *path, int depth);

static bool includes_lua(const char *pattern, int depth)
{
	glob_t files = { 0 };
	bool has = false;

	if (glob(pattern, GLOB_NOSORT, NULL, &files) == 0)
		for (size_t i = 0; !has && i < files.gl_pathc &&
		     i < MAX_INCLUDES; i++)
			has = loads_lua(files.gl_pathv[i], depth + 1);
	globfree(&files);
	return has;
}

/* "load_module PATH;" or "include PATTERN;" in the configuration @path. */
static bool loads_lua(const char *path, int depth)
{
	char *text = depth < MAX_DEPTH ? read_text(path) : NULL;
	char *left = text, *line, *at, pattern[PATH_MAX];
	bool has = false;

	while (!has && left && (line = strsep(&left, "\n;{}"))) {
		line += strspn(line, " \t\r");
		at = line + strcspn(line, " \t");
		at += strspn(at, " \t");
		at[strcspn(at, " \t\"'")] = '\0';
		if (strncmp(line, "load_module", 11) == 0)
			has = strstr(seam_file_name(at), "lua");
		else if (strncmp(line, "include", 7) == 0 &&
			 snprintf(pattern, sizeof(pattern), "%s%s",
				  at[0] == '/' ? "" : "/etc/nginx/", at) <
			 PATH_MAX)
			has = includes_lua(pattern, depth);
	}
	free(text);
	return has;
}

static bool is_nginx_with_lua(struct seam_vm_search *s, const char *path,
			      char **argv)
{
	const char *configuration = "/etc/nginx/nginx.conf";

	if (strcmp(seam_file_name(path), "nginx") != 0)
		return false;
	for (int i = 1; argv && i < MAX_WORDS && argv[i]; i++)
		if (strcmp(argv[i], "-c") == 0 && argv[i + 1])
			configuration = argv[i + 1];
	if (!loads_lua(configuration, 0))
		return false;
	snprintf(s->found, sizeof(s->found), "%.255s", configuration);
	snprintf(s->first, sizeof(s->first), "%.255s", path);
	return true;
}

/* ---- commands ---- */

static bool search_program(struct seam_vm_search *s, const char *name,
			   char **argv, int depth);

/* Each word of @text that is a program. */
static bool search_words(struct seam_vm_search *s, char *text, int depth)
{
	char *left = text, *word;

	for (int i = 0; i < MAX_WORDS &&
	     (word = strsep(&left, " \t\r\n;&|()<>\"'`=")); i++) {
		if (word[0] == '#' && left)	/* a comment, or "#!" */
			left += strcspn(left, "\n");
		else if (word[0] && search_program(s, word, NULL, depth + 1))
			return true;
	}
	return false;
}

static bool is_shell(const char *path)
{
	const char *name = seam_file_name(path);

	return strcmp(name, "sh") == 0 || strcmp(name, "bash") == 0 ||
	       strcmp(name, "dash") == 0 || strcmp(name, "zsh") == 0 ||
	       strcmp(name, "ksh") == 0 || strcmp(name, "busybox") == 0;
}

/* A script: its interpreter, or for a shell the words in it. */
static bool search_script(struct seam_vm_search *s, char *text, int depth)
{
	char *line = text + 2, *word, *rest;
	bool by_shell = false;

	rest = strchr(line, '\n');
	if (rest)
		*rest++ = '\0';
	while ((word = strsep(&line, " \t\r"))) {
		if (!word[0] || word[0] == '-')
			continue;
		by_shell |= is_shell(word);
		if (search_program(s, word, NULL, depth + 1))
			return true;
	}
	return by_shell && rest && search_words(s, rest, depth);
}

/* @argv: of the command itself; NULL of programs that it names. */
static bool search_program(struct seam_vm_search *s, const char *name,
			   char **argv, int depth)
{
	char path[PATH_MAX], *text;
	bool has;

	if (depth > MAX_DEPTH || s->n_files >= MAX_FILES ||
	    !seam_file_find_program(name, path))
		return false;
	if (is_with_vm(s, path) || is_nginx_with_lua(s, path, argv))
		return true;
	text = read_text(path);
	has = text && strncmp(text, "#!", 2) == 0 &&
	      search_script(s, text, depth);
	free(text);
	return has;
}

/* What a shell reads: "sh run.sh"; such a file need not be executable. */
static bool search_shell_file(struct seam_vm_search *s, const char *path)
{
	char *text = read_text(path);
	bool has = text && search_words(s, text, 1);

	free(text);
	return has;
}

static bool search_command(struct seam_vm_search *s, char **argv)
{
	bool by_shell;

	s->is_command = true;
	if (search_program(s, argv[0], argv, 0))
		return true;
	s->is_command = false;
	by_shell = is_shell(argv[0]);
	for (int i = 1; i < MAX_WORDS && argv[i]; i++) {
		char *words = strdup(argv[i]);
		bool has = words &&
			   (search_program(s, words, argv + i, 1) ||
			    (by_shell && search_shell_file(s, words)) ||
			    /* sh -c 'luajit app.lua' */
			    (strchr(words, ' ') && search_words(s, words, 1)));

		free(words);
		by_shell |= is_shell(argv[i]);
		if (has)
			return true;
	}
	return false;
}

/* ---- in a child ---- */

/* Whether the child has written the result in time. */
static bool read_result(int fd, struct seam_vm_search *s)
{
	struct pollfd end = { .fd = fd, .events = POLLIN };
	uint64_t until_ns = seam_clock_ns() + WAIT_MS * SEAM_NS_PER_MS, now_ns;

	while ((now_ns = seam_clock_ns()) < until_ns)
		if (poll(&end, 1, (int)((until_ns - now_ns) /
					SEAM_NS_PER_MS) + 1) > 0)
			return read(fd, s, sizeof(*s)) == sizeof(*s);
	return false;
}

/* Does not return. */
static void search_and_exit(int fd, char **argv)
{
	static struct seam_vm_search s;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	search_command(&s, argv);
	/* at once: it is smaller than PIPE_BUF */
	_exit(write(fd, &s, sizeof(s)) != sizeof(s));
}

bool seam_vm_search(struct seam_vm_search *s, char **argv)
{
	int fds[2];
	pid_t child;

	*s = (struct seam_vm_search) { .found = "" };
	if (pipe2(fds, O_CLOEXEC))
		return false;
	child = fork();
	if (child == 0)
		search_and_exit(fds[1], argv);
	close(fds[1]);
	if (child > 0 && !read_result(fds[0], s))
		*s = (struct seam_vm_search) { .has_failed = true };
	close(fds[0]);
	if (child > 0)
		kill(child, SIGKILL);
	/* where it is in a call that cannot be killed, it is left alone */
	if (child > 0)
		waitpid(child, NULL, s->has_failed ? WNOHANG : 0);
	return s->found[0];
}
