/* SPDX-License-Identifier: MIT */
/* wire_doc.h - a record's table as Markdown, as the pages of doc/formats */
#ifndef WIRE_DOC_H
#define WIRE_DOC_H

#include "wire/wire.h"

static void wire_doc(FILE *out, const struct seam_record *rec)
{
	static const struct {
		const char *name;
		size_t size;		/* bytes on the wire; 0: it varies */
	} types[] = {
		[SEAM_WIRE_U8] = { "u8", 1 }, [SEAM_WIRE_U16] = { "u16", 2 },
		[SEAM_WIRE_U32] = { "u32", 4 }, [SEAM_WIRE_U64] = { "u64", 8 },
		[SEAM_WIRE_I32] = { "i32", 4 }, [SEAM_WIRE_I64] = { "i64", 8 },
		[SEAM_WIRE_CSTR] = { "cstr", 0 },
		[SEAM_WIRE_REST] = { "bytes", 0 },
		[SEAM_WIRE_ULEB] = { "uleb128", 0 },
		[SEAM_WIRE_STRING] = { "string", 0 },
	};
	size_t offset = 0;
	bool fixed = true;

	fprintf(out, "### %s\n\nSource: %s\n\n", rec->name, rec->spec);
	fputs("| offset | type | field | meaning |\n|---|---|---|---|\n", out);
	for (size_t i = 0; i < rec->n_fields; i++) {
		const struct seam_field *f = &rec->fields[i];

		if (fixed)
			fprintf(out, "| %zu ", offset);
		else
			fputs("| - ", out);
		fprintf(out, "| %s | %s | %s |\n", types[f->type].name,
			f->name, f->doc);
		offset += types[f->type].size;
		fixed = fixed && types[f->type].size;
	}
}

#endif /* WIRE_DOC_H */
