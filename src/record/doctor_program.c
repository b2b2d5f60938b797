/* SPDX-License-Identifier: MIT */
/* doctor_program.c - files, functions, a verdict; see doctor.h */
#include "record/doctor.h"

#include "base/file.h"
#include "record/stack_plan.h"
#include "symbol/elf/cfi_file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	LOOKED_AT = 1000,	/* functions, spread over the file */
	CODE_BYTES = 16,	/* of each */
	SMALLEST = 32,		/* smaller functions need no frame */
	FRAME_POINTER_PERCENT = 60,	/* from here on it has them */
	SEARCHED_BYTES = 65536,	/* for signs of Go and of a JVM */
	MAX_INTERPRETERS = 4,	/* of interpreters that are scripts */
};

/* ---- the file ---- */

/* A name without a slash is searched in PATH. */
static int find(char path[PATH_MAX], const char *name, struct seam_err *err)
{
	if (strchr(name, '/'))
		snprintf(path, PATH_MAX, "%s", name);
	else if (!seam_file_find_program(name, path))
		return seam_err_set(err, -ENOENT, "no program '%s' in PATH",
				    name);
	return 0;
}

/*
 * The program that runs the script which begins with @line, of "#!": the
 * operand of env(1).  False: it is no script.
 */
static bool interpreter(char *line, char name[PATH_MAX])
{
	char *rest, *word;

	if (strncmp(line, "#!", 2) != 0)
		return false;
	line[strcspn(line, "\n")] = '\0';
	word = strtok_r(line + 2, " \t", &rest);
	if (word && strlen(word) > 4 &&
	    strcmp(word + strlen(word) - 4, "/env") == 0) {
		word = strtok_r(NULL, " \t", &rest);
		while (word && (word[0] == '-' || strchr(word, '=')))
			word = strtok_r(NULL, " \t", &rest);
	}
	snprintf(name, PATH_MAX, "%s", word ? word : "");
	return word != NULL;
}

/* The file that @name runs.  A descriptor, or -errno. */
static int open_program(struct seam_doctor_program *p, const char *name,
			struct seam_err *err)
{
	char next[PATH_MAX], line[256];

	snprintf(next, sizeof(next), "%s", name);
	for (int i = 0; i < MAX_INTERPRETERS; i++) {
		int r = find(p->path, next, err), fd;
		ssize_t n;

		if (r < 0)
			return r;
		fd = seam_elf_open_fd(p->path, err);
		if (fd < 0)
			return seam_err_add(err, fd, "cannot read '%s'",
					    p->path);
		n = pread(fd, line, sizeof(line) - 1, 0);
		line[n > 0 ? n : 0] = '\0';
		if (!interpreter(line, next))
			return fd;
		close(fd);
		if (i == 0)
			snprintf(p->script, sizeof(p->script), "%s", p->path);
	}
	return seam_err_set(err, -ELOOP, "too many interpreters");
}

/* ---- what it has ---- */

/* Visit every @stride-th function of @eh that has a frame. */
static uint64_t visit(const struct seam_cfi_file *file, size_t stride,
		      uint64_t *n_looked_at, uint64_t *n_framed)
{
	struct seam_eh_fde fde = { 0 };
	uint64_t n_bad = 0, n = 0;
	size_t at = 0;
	int r;

	while ((r = seam_eh_frame_entry(&file->eh, at, &fde, &at,
					&n_bad)) >= 0) {
		uint8_t code[CODE_BYTES];
		size_t skip;

		if (r == 0)
			continue;
		if (n++ % stride || fde.end - fde.start < SMALLEST ||
		    seam_cfi_file_code_before(file, fde.start + CODE_BYTES,
					      code, sizeof(code)) < CODE_BYTES)
			continue;
		++*n_looked_at;
		/* endbr64; push %rbp, and soon mov %rsp,%rbp */
		skip = memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0 ? 4 : 0;
		*n_framed += code[skip] == 0x55 &&
			     memmem(code + skip, CODE_BYTES - skip,
				    "\x48\x89\xe5", 3);
	}
	return n;
}

static void look_at_functions(struct seam_doctor_program *p,
			      const struct seam_cfi_file *file)
{
	uint64_t n_looked_at = 0, n_framed = 0;

	p->n_functions = visit(file, SIZE_MAX, &n_looked_at, &n_framed);
	n_looked_at = n_framed = 0;
	visit(file, p->n_functions / LOOKED_AT + 1, &n_looked_at, &n_framed);
	p->frame_pointer_percent = n_looked_at ?
		(int)(100 * n_framed / n_looked_at) : -1;
}

/* Whether @text is in the bytes from @offset on, at a multiple of @align. */
static bool has_text(const struct seam_cfi_file *file, uint64_t offset,
		     const char *text, size_t align)
{
	char *bytes = malloc(SEARCHED_BYTES);
	ssize_t n = bytes ? pread(file->fd, bytes, SEARCHED_BYTES,
				  (off_t)offset) : 0;
	size_t size = strlen(text), at = 0;

	while ((ssize_t)(at + size) <= n && memcmp(bytes + at, text, size) != 0)
		at += align;
	free(bytes);
	return (ssize_t)(at + size) <= n;
}

/* Source: debug/buildinfo of Go 1.22: at the start of the data segment. */
static bool is_go(const struct seam_cfi_file *file)
{
	for (size_t i = 0; i < file->segments.n; i++)
		if (!file->segments.items[i].is_executable &&
		    has_text(file, file->segments.items[i].offset,
			     "\xff Go buildinf:", 16))
			return true;
	return false;
}

/* A launcher, or the JVM itself. */
static bool is_jvm(const struct seam_doctor_program *p,
		   const struct seam_cfi_file *file)
{
	return strcmp(seam_file_name(p->path), "libjvm.so") == 0 ||
	       has_text(file, 0, "libjli.so", 1);
}

/* ---- the verdict ---- */

static void decide(struct seam_doctor_program *p)
{
	bool has_frames = p->frame_pointer_percent >= FRAME_POINTER_PERCENT;

	p->needs = SEAM_CALL_GRAPH_AUTO;
	if (p->is_jvm) {
		p->why = "compiled Java code has no frame pointers: start it "
			 "with -XX:+PreserveFramePointer";
	} else if (p->is_go) {
		p->why = "Go has frame pointers, but C code that it calls has "
			 "not; fp is enough for Go alone";
	} else if (has_frames) {
		p->why = "libraries may have no frame pointers; fp is enough "
			 "for code of the file itself";
	} else if (p->cfi_bytes) {
		p->why = "by call frame information: with fp callers would be "
			 "missing";
	} else {
		p->needs = SEAM_CALL_GRAPH_NONE;
		p->why = "neither call frame information nor known frame "
			 "pointers: its stacks end early";
	}
}

/* Source: measurements of "./dev bench stacks"; perf's copies. */
static void estimate(struct seam_doctor_program *p)
{
	if (p->needs == SEAM_CALL_GRAPH_AUTO)
		snprintf(p->cost, sizeof(p->cost), "auto: 10 to 25 us of the "
			 "recorder and 150 to 400 bytes a sample, 1 to 3 %% "
			 "of a CPU at %d Hz; fp: 1 us; dwarf: %d bytes",
			 SEAM_STACK_PLAN_HZ, SEAM_STACK_PLAN_DWARF_BYTES);
}

int seam_doctor_program(struct seam_doctor_program *program, const char *name,
			struct seam_err *err)
{
	struct seam_cfi_file file = { .fd = -1 };
	int fd, r;

	*program = (struct seam_doctor_program) { 0 };
	fd = open_program(program, name, err);
	if (fd < 0)
		return fd;
	r = seam_cfi_file_open(&file, fd, err);
	if (r < 0)
		return seam_err_add(err, r, "cannot read '%s'", program->path);
	program->cfi_bytes = file.eh.entries.size + file.debug.entries.size;
	look_at_functions(program, &file);
	program->is_go = is_go(&file);
	program->is_jvm = is_jvm(program, &file);
	decide(program);
	estimate(program);
	seam_cfi_file_close(&file);
	return 0;
}
