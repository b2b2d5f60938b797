/* SPDX-License-Identifier: MIT */
/*
 * name_tables.h - names of functions by tables in a file's data
 *
 * Interpreters find functions by tables whose rows begin with a pointer to a
 * name and a pointer to its function: PyMethodDef and PyGetSetDef of CPython,
 * zend_function_entry of PHP, luaL_Reg of Lua and other tables of such pairs.
 * strip does not remove them: a fifth of the functions of Debian's python3 is in
 * one.
 *
 * A row is a word that is relocated to an identifier in .rodata and a word that
 * is relocated to the start of a function by .eh_frame.  Three rows that follow
 * each other are a table, if their other fields are valid: there are structures
 * with a name before a function of something else.
 *
 * Methods of CPython have the name of their type or module before them:
 * "list.append"; functions of these types that are in no table are named after
 * their slot: "list.tp_dealloc".  Where two functions would have one name, each
 * has its address after the name: "close (0x5aeed0)".  So have those of pairs
 * alone, as names of options may have functions too.  A function that tables
 * name differently has no name.
 */
#ifndef SEAM_NAME_TABLES_H
#define SEAM_NAME_TABLES_H

#include "symbol/elf/function_ranges.h"

/*
 * Name @ranges, which were read from @file.  0, also where there are no tables,
 * or -ENOMEM.
 * Cost: a sort of the file's relocations; 10 ms for python3.
 */
int seam_name_tables_read(struct seam_function_ranges *ranges,
			  const struct seam_elf *file);

#endif /* SEAM_NAME_TABLES_H */
