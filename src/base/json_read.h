/* SPDX-License-Identifier: MIT */
/*
 * json_read.h - JSON in files and events of others: strings, and whether it is
 *
 * For whole documents of Seam's own there is wire/manifest.h.
 */
#ifndef SEAM_JSON_READ_H
#define SEAM_JSON_READ_H

#include "base/base.h"

enum { SEAM_JSON_READ_DEPTH = 64 };

/*
 * Whether @text is one object or array of JSON (RFC 8259), in UTF-8, with at
 * most SEAM_JSON_READ_DEPTH levels, and perhaps white space around it.  Then it
 * can be part of a JSON document as it is.
 */
bool seam_json_check(struct seam_bytes text);

/*
 * The characters of the JSON string at @text, which begins and ends with its
 * quotes, into @buf, with a NUL.  Bytes above 0x7f are copied, whether they are
 * UTF-8 or not.  False: it is no string, it has a NUL or half of a surrogate
 * pair, or @cap bytes are too few.
 */
bool seam_json_unquote(char *buf, size_t cap, struct seam_bytes text);

#endif /* SEAM_JSON_READ_H */
