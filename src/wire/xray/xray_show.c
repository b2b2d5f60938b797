/* SPDX-License-Identifier: MIT */
/* xray_show.c - FDR records as JSON, as text, and their manual */
#include "wire/xray/xray_fdr.h"

#include <inttypes.h>

static bool is_function(const struct seam_xray_record *record)
{
	return record->state == SEAM_XRAY_AT_ENTRY ||
	       record->state == SEAM_XRAY_AT_EXIT;
}

static bool is_event(const struct seam_xray_record *record)
{
	return record->state == SEAM_XRAY_AT_CUSTOM ||
	       record->state == SEAM_XRAY_AT_TYPED;
}

void seam_xray_record_json(struct seam_json *j,
			   const struct seam_xray_format *format,
			   const struct seam_xray_record *record)
{
	const struct seam_record *table =
		seam_xray_record_table(record->state, format->version);

	seam_json_u64(j, "offset", record->offset);
	seam_json_string(j, "type", table->name);
	if (is_function(record)) {
		seam_json_string(j, "action",
				 seam_xray_action_name(record->action));
		seam_json_u64(j, "function_id", record->function);
		seam_json_u64(j, "tsc_delta",
			      record->function_record.tsc_delta);
		return;
	}
	seam_wire_json(j, table, &record->buffer);
	if (is_event(record))
		seam_json_hex(j, "data", record->data);
}

void seam_xray_record_text(FILE *out, const struct seam_xray_format *format,
			   const struct seam_xray_record *record)
{
	fprintf(out, "%#" PRIx64 " ", record->offset);
	if (is_function(record))
		fprintf(out, "Function action=%s function_id=%" PRIu32
			" tsc_delta=%" PRIu32 "\n",
			seam_xray_action_name(record->action),
			record->function, record->function_record.tsc_delta);
	else
		seam_wire_dump(out, seam_xray_record_table(record->state,
							   format->version),
			       &record->buffer);
}

static void document_pairs(FILE *out)
{
	fputs("| after | may follow |\n|---|---|\n", out);
	for (size_t i = 0; i < seam_xray_n_pairs; i++) {
		const struct seam_xray_pair *pair = &seam_xray_pairs[i];

		if (i == 0 || pair[-1].from != pair->from)
			fprintf(out, "%s| %s | ", i ? " |\n" : "",
				seam_xray_state_name(pair->from));
		else
			fputs(", ", out);
		fputs(seam_xray_state_name(pair->to), out);
		if (pair->last_version == 1)
			fputs(" (1)", out);
		else if (pair->first_version > 1)
			fprintf(out, " (%u-%u)", pair->first_version,
				pair->last_version);
	}
	fputs(" |\n\n", out);
}

void seam_xray_fdr_doc(FILE *out)
{
	const struct seam_record *last = NULL;

	document_pairs(out);
	seam_wire_doc(out, &seam_xray_header_record);
	for (int s = 0; s < SEAM_XRAY_N_STATES; s++) {
		for (unsigned int version = 1; version <= 5; version++) {
			const struct seam_record *table =
				seam_xray_record_table((enum seam_xray_state)s,
						       version);

			if (!table || table == last)
				continue;
			fputc('\n', out);
			seam_wire_doc(out, table);
			last = table;
		}
	}
}
