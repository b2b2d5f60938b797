/* SPDX-License-Identifier: MIT */
/*
 * kallsyms.h - the text of /proc/kallsyms, into a table
 *
 *	ffffffff81000000 T _text
 *	ffffffffc0201000 t nf_hook	[nf_tables]
 */
#ifndef SEAM_KALLSYMS_H
#define SEAM_KALLSYMS_H

#include "symbol/elf/symtab.h"

/*
 * Add the functions (t T w W) that @text of @size bytes names; other symbols
 * only end them.  Without @modules those in [brackets] are left out: their
 * addresses are true for one boot, while those of the kernel itself are true
 * wherever _text is the same.
 *
 * @text is changed, a NUL after each name, and must outlive the table;
 * text[size] must be there to be written.  Lines that are not of this form
 * are skipped, and so are addresses of 0, which this user may not see.
 *
 * Returns how many functions the text has, or -ENOMEM.  Of several at one
 * address the table keeps the last.  Sorts the table.
 */
ptrdiff_t seam_kallsyms_read(struct seam_symtab *table, char *text, size_t size,
			     bool modules);

/* Whether the line @text, its newline included, is of @name: its address. */
bool seam_kallsyms_is(const char *text, size_t size, const char *name,
		      uint64_t *addr);

#endif /* SEAM_KALLSYMS_H */
