/* SPDX-License-Identifier: MIT */
/*
 * symbols_inside.h - what only the process that reads files needs to do
 */
#ifndef SEAM_SYMBOLS_INSIDE_H
#define SEAM_SYMBOLS_INSIDE_H

#include "symbol/symbols.h"

/*
 * Read module @id now, if it was not.  Whether its file has code, and so a
 * place of it may have a name.
 */
bool seam_symbols_read(struct seam_symbols *symbols, uint32_t id);

#endif /* SEAM_SYMBOLS_INSIDE_H */
