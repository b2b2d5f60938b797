/* SPDX-License-Identifier: MIT */
/* perf_file.c - the header of perf.data; see perf_file.h */
#include "wire/perf/perf_file.h"

#define F(member, text) SEAM_FIELD(struct seam_perf_file_header, member, text)
const struct seam_record seam_perf_file_header_record = SEAM_RECORD(
	"perf_file_header", "tools/perf/util/header.h, Linux 6.1",
	F(magic, "\"PERFILE2\" in the byte order of the file"),
	F(size, "bytes of this header; 16: pipe mode, nothing follows"),
	F(attr_size, "bytes of an attr and the section of its ids"),
	F(attrs.offset, "of the first attr"),
	F(attrs.size, "bytes of all attrs"),
	F(data.offset, "of the first record"),
	F(data.size, "bytes of all records; 0: the writer was killed"),
	F(event_types.offset, "unused since Linux 3.11"),
	F(event_types.size, "unused"),
	F(features[0], "bit n: feature n has a section after the data"),
	F(features[1], "features 64 to 127"),
	F(features[2], "features 128 to 191"),
	F(features[3], "features 192 to 255"));
#undef F

_Static_assert(sizeof(struct seam_perf_file_header) ==
	       SEAM_PERF_FILE_HEADER_BYTES, "the header has 104 bytes");
