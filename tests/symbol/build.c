/* SPDX-License-Identifier: MIT */
/* build.c - the shell, the compiler and libelf; see build.h */
#include <limits.h>

#include "build.h"
#include "folder.h"
#include "symbol/elf/elf_file.h"
#include "unit.h"

int build_enter(void **state)
{
	const char *home = getenv("HOME");
	char rustup[PATH_MAX];

	if (make_folder(state) || chdir(folder))
		return -1;
	/* rustup looks for its compilers below HOME. */
	snprintf(rustup, sizeof(rustup), "%s/.rustup", home ? home : "");
	setenv("RUSTUP_HOME", rustup, 0);
	/* Neither the user's caches nor servers have a part in this. */
	setenv("HOME", folder, 1);
	unsetenv("XDG_CACHE_HOME");
	unsetenv("DEBUGINFOD_CACHE_PATH");
	unsetenv("DEBUGINFOD_URLS");
	return 0;
}

int build_leave(void **state)
{
	return drop_folder(state);
}

const char *build_folder(void)
{
	return folder;
}

const char *build_path(const char *name)
{
	static char paths[8][PATH_MAX];
	static unsigned int turn;
	char *path = paths[turn++ % 8];

	snprintf(path, PATH_MAX, "%s/%s", folder, name);
	return path;
}

void build_write(const char *name, const char *text)
{
	FILE *out = fopen(name, "w");

	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

void build_run(const char *fmt, ...)
{
	char command[2048];
	va_list args;

	va_start(args, fmt);
	vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	if (system(command))
		fail_msg("failed: %s", command);
}

const char *build_ask(const char *fmt, ...)
{
	static char answer[512];
	char command[2048];
	va_list args;
	FILE *out;

	va_start(args, fmt);
	vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	out = popen(command, "r");
	assert_non_null(out);
	if (!fgets(answer, sizeof(answer), out))
		answer[0] = '\0';
	assert_int_equal(pclose(out), 0);
	answer[strcspn(answer, "\n")] = '\0';
	return answer;
}

bool build_has(const char *name)
{
	char command[128];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", name);
	return system(command) == 0;
}

uint64_t build_symbol(const char *file, const char *name)
{
	const char *text = build_ask("nm '%s' | sed -n 's/ [a-zA-Z] %s$//p'",
				     file, name);

	assert_true(*text);
	return strtoull(text, NULL, 16);
}

uint64_t build_offset(const char *file, uint64_t addr)
{
	struct seam_elf elf;
	uint64_t offset = UINT64_MAX;

	assert_int_equal(seam_elf_open(&elf, file, NULL), 0);
	for (size_t i = 0; i < elf.segments.n; i++) {
		const struct seam_segment *s = &elf.segments.items[i];

		if (addr >= s->addr && addr - s->addr < s->size)
			offset = addr - s->addr + s->offset;
	}
	seam_elf_close(&elf);
	assert_true(offset != UINT64_MAX);
	return offset;
}

size_t build_id(const char *file, uint8_t *id)
{
	struct seam_elf elf;
	size_t size;

	assert_int_equal(seam_elf_open(&elf, file, NULL), 0);
	size = elf.build_id_size;
	memcpy(id, elf.build_id, size);
	seam_elf_close(&elf);
	return size;
}

struct build_answer
build_resolve_with(const struct seam_symbols_options *options,
		   const struct seam_module *module, uint64_t offset)
{
	struct seam_symbols *symbols = seam_symbols_new(options);
	struct build_answer answer = { .function = "none" };
	struct seam_location at[16];
	struct seam_module_state problems;
	uint32_t m;

	assert_non_null(symbols);
	m = seam_symbols_module(symbols, module);
	assert_int_not_equal(m, SEAM_NONE);
	seam_symbols_state(symbols, m, &problems);
	assert_null(problems.problem);
	answer.n = seam_symbols_resolve(symbols, m, offset, at, 16);
	if (answer.n > 0 && at[answer.n - 1].function)
		snprintf(answer.function, sizeof(answer.function), "%s",
			 at[answer.n - 1].function);
	answer.line = answer.n > 0 ? at[answer.n - 1].line : 0;
	seam_symbols_state(symbols, m, &problems);
	snprintf(answer.problem, sizeof(answer.problem), "%s",
		 problems.problem ? problems.problem : "");
	seam_symbols_free(symbols);
	return answer;
}

struct build_answer build_resolve(const char *file, uint64_t addr)
{
	return build_resolve_with(&(struct seam_symbols_options) { 0 },
		&(struct seam_module) { .path = build_path(file) },
		build_offset(file, addr));
}
