/* SPDX-License-Identifier: MIT */
/*
 * fuzz_kernel_sym.c - the input is a kernel.sym.zst, or the text inside one
 *
 * Oracle: the first byte picks.  As a file: what is read of its header,
 * written and read again, is the same.  As text: the table is in order, each
 * look-up finds a symbol that begins at or before the address, and the text
 * survives the way through a file.
 */
#include "fuzz.h"
#include "symbol/kernel/kernel.c"

static void check_table(char *text, size_t size)
{
	struct seam_symtab table = { 0 };
	size_t n_functions = 0;
	ptrdiff_t n = read_kallsyms(&table, text, size, true);

	for (size_t i = 0; i < table.symbols.n; i++) {
		const struct seam_symbol *symbol = &table.symbols.items[i];
		const struct seam_symbol *found =
			seam_symtab_find(&table, symbol->start);

		if (i > 0 && symbol[-1].start > symbol->start)
			abort();
		if (symbol->name < text || symbol->name >= text + size ||
		    !*symbol->name)
			abort();
		if (found && found->start > symbol->start)
			abort();
		n_functions += !(symbol->flags & SEAM_SYMBOL_FENCE);
	}
	if (n < 0 || (size_t)n < n_functions)
		abort();
	seam_symtab_fini(&table);
}

/* Through a file and back: the same bytes, the same header. */
static void check_round_trip(const struct kernel_file *file,
			     struct seam_bytes text)
{
	struct kernel_file again;
	struct seam_bytes bytes;
	uint8_t *out;
	char *back;
	size_t n;

	if (write_file(file, text, &out, &bytes.size, NULL))
		abort();
	bytes.data = out;
	if (read_file(&again, bytes, NULL) ||
	    unpack_text(&again, &back, &n, NULL))
		abort();
	if (n != text.size || (n > 0 && memcmp(back, text.data, n)) ||
	    strcmp(again.identity.boot_id, file->identity.boot_id) ||
	    again.identity.text_addr != file->identity.text_addr ||
	    again.identity.build_id_size != file->identity.build_id_size ||
	    again.modules != file->modules)
		abort();
	free(back);
	free(out);
}

static void try_file(const uint8_t *data, size_t size)
{
	struct kernel_file file;
	char *text;
	size_t n;

	if (read_file(&file, (struct seam_bytes) { data, size }, NULL))
		return;
	check_round_trip(&file, (struct seam_bytes) { data, size });
	if (unpack_text(&file, &text, &n, NULL))
		return;
	check_table(text, n);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct kernel_file header = { 0 };
	char *text;

	if (size == 0)
		return 0;
	if (data[0] == 0x50) {	/* the first byte of the format itself */
		try_file(data, size);
		return 0;
	}
	check_round_trip(&header, (struct seam_bytes) { data, size });
	text = malloc(size + 1);
	memcpy(text, data, size);
	check_table(text, size);
	free(text);
	return 0;
}
