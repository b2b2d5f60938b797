/* SPDX-License-Identifier: MIT */
/*
 * inject_dump.c - a dump as one ELF file, for tests with perf
 *
 * Usage: inject_dump DUMP OUT.  Prints "INDEX OFFSET" of each function.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/file.h"
#include "export/inject/inject.h"
#include "symbol/jit/jit_code.h"

static struct seam_inject_function convert(struct seam_jit_code *jit,
					   uint32_t i)
{
	const struct seam_jit_object *o = seam_jit_code_object(jit, i);
	const struct seam_jit_line *rows;
	size_t n = seam_jit_code_lines(jit, i, &rows);
	struct seam_inject_line *lines = calloc(n + 1, sizeof(*lines));

	for (size_t l = 0; lines && l < n; l++)
		lines[l] = (struct seam_inject_line) {
			.offset = rows[l].addr - o->start_addr,
			.line = rows[l].line, .column = rows[l].column,
			.file = rows[l].file,
		};
	return (struct seam_inject_function) {
		.name = o->name, .size = o->size, .code = o->code,
		.lines = lines, .n_lines = lines ? n : 0,
		.eh_frame = o->eh_frame,
		.eh_frame_offset = o->eh_frame_offset,
	};
}

int main(int argc, char **argv)
{
	struct seam_jit_code_options options = { .pid = 1 };
	struct seam_jit_code *jit = seam_jit_code_new();
	struct seam_inject_function *functions;
	struct seam_inject_file elf;
	struct seam_file dump;
	FILE *out;
	size_t n;

	if (argc != 3 || seam_file_open(&dump, argv[1], NULL) ||
	    seam_jit_code_add_dump(jit, dump.bytes, &options, NULL))
		return 1;
	n = seam_jit_code_count(jit);
	functions = calloc(n, sizeof(*functions));
	for (uint32_t i = 0; i < n; i++)
		functions[i] = convert(jit, i);
	if (seam_inject_elf(&elf, functions, n, 62, NULL) ||
	    !(out = fopen(argv[2], "w")))
		return 1;
	fwrite(elf.bytes, elf.n, 1, out);
	fclose(out);
	for (uint32_t i = 0; i < n; i++)
		printf("%" PRIu64 " %" PRIu64 "\n",
		       seam_jit_code_object(jit, i)->code_index,
		       functions[i].file_offset);
	fprintf(stderr, "%" PRIu64 " tables left out\n", elf.n_bad_tables);
	return 0;
}
