/* SPDX-License-Identifier: MIT */
/*
 * inject_dump.c - a dump as one ELF file, for tests with perf
 *
 * Usage: inject_dump DUMP OUT.  Prints "INDEX OFFSET" of each function.
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "export/inject/inject.h"
#include "symbol/jit/jit_code.h"

static struct seam_inject_function convert(struct seam_jit_code *jit,
					   uint32_t i)
{
	const struct seam_jit_object *o = seam_jit_code_object(jit, i);

	return (struct seam_inject_function) {
		.name = o->name, .size = o->size, .code = o->code,
		.eh_frame = o->eh_frame,
		.eh_frame_offset = o->eh_frame_offset,
	};
}

int main(int argc, char **argv)
{
	struct seam_jit_code_options options = { .pid = 1 };
	struct seam_jit_code *jit = seam_jit_code_new();
	struct seam_inject_function *functions;
	uint64_t n_bad_tables = 0;
	struct seam_file dump;
	int fd;
	size_t n;

	if (argc != 3 || seam_file_open(&dump, argv[1], NULL) ||
	    seam_jit_code_add_dump(jit, dump.bytes, &options, NULL))
		return 1;
	n = seam_jit_code_count(jit);
	functions = calloc(n, sizeof(*functions));
	for (uint32_t i = 0; i < n; i++)
		functions[i] = convert(jit, i);
	fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || seam_inject_elf(fd, functions, n, EM_X86_64,
				      &n_bad_tables, NULL))
		return 1;
	close(fd);
	for (uint32_t i = 0; i < n; i++)
		printf("%" PRIu64 " %" PRIu64 "\n",
		       seam_jit_code_object(jit, i)->code_index,
		       functions[i].file_offset);
	fprintf(stderr, "%" PRIu64 " tables left out\n", n_bad_tables);
	return 0;
}
