/* SPDX-License-Identifier: MIT */
/* probe.c - a file in memory, asked everywhere; see probe.h */
#include "probe.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "symbol/module/elf_module.h"

/* Addresses asked for: densely where small files have code, then all over. */
enum { CAP = 12, STEP = 16, DENSE = 256, SPARSE = 32 };

struct answers {
	uint64_t hash;		/* of all that was said */
	size_t n_named;
};

static uint64_t add_text(uint64_t hash, const char *text)
{
	return text ? seam_hash_bytes(text, strlen(text), hash) :
	       seam_hash_add(hash, 1);
}

static void add_answer(struct answers *a, const struct seam_location *at,
		       size_t n)
{
	if (n > CAP)
		abort();
	if (n == 1 && !at[0].function && !at[0].file)
		abort();
	a->hash = seam_hash_add(a->hash, n);
	for (size_t i = 0; i < n; i++) {
		/* The last is the real function, and only the last. */
		if (at[i].is_inlined != (i + 1 < n))
			abort();
		if (at[i].is_inlined && !at[i].function)
			abort();
		a->hash = add_text(a->hash, at[i].function);
		a->hash = add_text(a->hash, at[i].file);
		a->hash = seam_hash_add(a->hash, at[i].line);
	}
	a->n_named += n > 0 && at[n - 1].function;
}

static struct answers ask(const char *path, size_t size)
{
	const struct seam_symbols_options options = { 0 };
	const struct seam_module file = { .path = path };
	struct seam_elf_module module = { .options = &options, .file = &file };
	struct answers answers = { 0 };
	struct seam_location at[CAP];

	seam_elf_module_read(&module);
	for (size_t i = 0; i < DENSE + SPARSE; i++) {
		uint64_t offset = i < DENSE ? i * STEP :
				  size * (i - DENSE) / SPARSE;

		add_answer(&answers, at, seam_elf_module_resolve(&module,
						offset, at, CAP));
	}
	/* Outside the file is no code. */
	if (seam_elf_module_resolve(&module, UINT64_MAX, at, CAP))
		abort();
	if (answers.n_named == 0 && module.problem[0])
		answers.hash = add_text(answers.hash, module.problem);
	seam_elf_module_fini(&module);
	return answers;
}

size_t probe_image(const uint8_t *image, size_t size)
{
	int fd = memfd_create("probe", MFD_CLOEXEC);
	struct answers first, second;
	char path[64];

	if (fd < 0 || write(fd, image, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	first = ask(path, size);
	second = ask(path, size);
	close(fd);
	if (first.hash != second.hash || first.n_named != second.n_named)
		abort();
	return first.n_named;
}
