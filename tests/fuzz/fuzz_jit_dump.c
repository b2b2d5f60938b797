/* SPDX-License-Identifier: MIT */
/*
 * fuzz_jit_dump.c - any bytes shown as a dump and as a map
 *
 * Oracle: a line for the header, for each record the reader gives, for each
 * damaged one and for each note; in the text nothing acts on a terminal.
 */
#include "fuzz.h"
#include "wire/jit/jitdump.h"
#include "wire/jit/perf_map.h"

static size_t count_lines(const char *text, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++) {
		must(text[i] == '\n' || (unsigned char)text[i] >= ' ');
		n += text[i] == '\n';
	}
	return n;
}

static size_t count_expected(struct seam_bytes bytes)
{
	struct seam_jitdump_reader reader;
	struct seam_jitdump_record record;
	size_t n = 1;

	must(seam_jitdump_begin(&reader, bytes, NULL) == 0);
	while (seam_jitdump_next(&reader, &record))
		n++;
	n += reader.n_notes[SEAM_JITDUMP_BAD_RECORD];
	for (int i = 0; i < SEAM_JITDUMP_N_NOTES; i++)
		n += reader.n_notes[i] != 0;
	return n;
}

static size_t show(struct seam_bytes bytes, enum seam_line_form form, int *r)
{
	char *text = NULL;
	size_t text_size = 0, n;
	uint64_t n_damaged;
	FILE *out = open_memstream(&text, &text_size);

	must(out != NULL);
	*r = seam_jitdump_print(out, bytes, form, &n_damaged, NULL);
	must(fclose(out) == 0);
	n = count_lines(text, text_size);
	free(text);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seam_bytes bytes = { data, size };
	char *text = NULL;
	size_t text_size = 0;
	uint64_t n_damaged;
	FILE *out;

	for (int form = 0; form <= SEAM_LINE_JSON; form++) {
		int r;
		size_t n = show(bytes, (enum seam_line_form)form, &r);

		if (seam_jitdump_begin(&(struct seam_jitdump_reader) { 0 },
				       bytes, NULL))
			must(n == 0 && r < 0);
		else
			must(n == count_expected(bytes));
	}
	out = open_memstream(&text, &text_size);
	must(out != NULL);
	seam_perf_map_print(out, bytes, SEAM_LINE_TEXT, &n_damaged);
	must(fclose(out) == 0);
	count_lines(text, text_size);
	free(text);
	return 0;
}
