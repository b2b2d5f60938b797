/* SPDX-License-Identifier: MIT */
/* xray_dump.c - sections, blocks, records, each once; see xray_dump.h */
#include "wire/xray/xray_dump.h"

#include <inttypes.h>

static void dump_header(FILE *out, const struct seam_xray_section *section,
			bool json)
{
	struct seam_json j = seam_json_make(out, false);

	if (!json) {
		fprintf(out, "%#" PRIx64 " ", section->offset);
		seam_wire_dump(out, &seam_xray_header_record, &section->header);
		return;
	}
	seam_json_open(&j, NULL, '{');
	seam_json_u64(&j, "offset", section->offset);
	seam_json_string(&j, "type", seam_xray_header_record.name);
	seam_wire_json(&j, &seam_xray_header_record, &section->header);
	seam_json_close(&j);
}

static void dump_problem(FILE *out, const struct seam_xray_problem *problem,
			 bool json)
{
	struct seam_json j = seam_json_make(out, false);

	if (!json) {
		fprintf(out, "%#" PRIx64 " damaged: %" PRIu64 " bytes: %s\n",
			problem->offset, problem->lost_bytes, problem->text);
		return;
	}
	seam_json_open(&j, NULL, '{');
	seam_json_u64(&j, "offset", problem->offset);
	seam_json_string(&j, "type", "damaged");
	seam_json_u64(&j, "bytes", problem->lost_bytes);
	seam_json_string(&j, "text", problem->text);
	seam_json_close(&j);
}

static void dump_record(FILE *out, const struct seam_xray_format *format,
			const struct seam_xray_record *record, bool json)
{
	struct seam_json j = seam_json_make(out, false);

	if (!json) {
		seam_xray_record_text(out, format, record);
		return;
	}
	seam_json_open(&j, NULL, '{');
	seam_xray_record_json(&j, format, record);
	seam_json_close(&j);
}

static uint64_t dump_block(FILE *out, const struct seam_xray_index *index,
			   const struct seam_xray_block *block, bool json)
{
	struct seam_xray_block_reader reader;
	struct seam_xray_record record;
	int got;

	seam_xray_block_open(&reader, index, block);
	while ((got = seam_xray_next(&reader.fdr, &record)) > 0)
		dump_record(out, reader.fdr.format, &record, json);
	if (got < 0)
		dump_problem(out, &reader.fdr.problem, json);
	return got < 0;
}

static void dump_run(FILE *out, const struct seam_xray_index *index,
		     const struct seam_xray_block *block, bool json)
{
	enum seam_endian endian =
		index->sections.items[block->section].format.endian;
	struct seam_xray_basic_record record;

	for (size_t at = block->begin; at < block->end;
	     at += SEAM_XRAY_BASIC_BYTES) {
		struct seam_json j = seam_json_make(out, false);

		if (seam_xray_basic_read(index->file, at, endian, &record))
			break;
		if (!json) {
			seam_xray_basic_text(out, &record);
			continue;
		}
		seam_json_open(&j, NULL, '{');
		seam_xray_basic_json(&j, &record);
		seam_json_close(&j);
	}
}

int seam_xray_dump(FILE *out, struct seam_bytes file, bool json,
		   uint64_t *n_damaged, struct seam_err *err)
{
	struct seam_xray_index index;
	int r = seam_xray_index_build(&index, file, err);
	size_t next = 0;

	if (r)
		return r;
	for (size_t s = 0; s < index.sections.n; s++) {
		const struct seam_xray_section *section =
			&index.sections.items[s];

		dump_header(out, section, json);
		for (; next < index.blocks.n &&
		       index.blocks.items[next].section == s; next++) {
			if (section->header.log_type == SEAM_XRAY_BASIC)
				dump_run(out, &index, &index.blocks.items[next],
					 json);
			else
				*n_damaged += dump_block(out, &index,
					&index.blocks.items[next], json);
		}
	}
	for (size_t i = 0; i < index.problems.n_kept; i++)
		dump_problem(out, &index.problems.items[i], json);
	*n_damaged += index.problems.n;
	seam_xray_index_fini(&index);
	return 0;
}
