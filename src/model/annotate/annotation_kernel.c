/* SPDX-License-Identifier: MIT */
/*
 * annotation_kernel.c - which kernel was recorded, for its code
 *
 * A bundle's manifest says it.  A perf.data from elsewhere has the mapping of
 * the kernel's text, and the build id there or in its header.
 */
#include "model/annotate/annotation_parts.h"

#include <linux/perf_event.h>

#include "model/perf/build_ids.h"
#include "wire/perf/perf_stream.h"

#define KERNEL "[kernel.kallsyms]"

/* The mapping of the kernel's text: true, and where that was. */
static bool take_text(const struct seam_perf_data *data,
		      const struct seam_perf_record *record, uint64_t *addr)
{
	struct seam_perf_sideband r;

	if ((record->type != PERF_RECORD_MMAP &&
	     record->type != PERF_RECORD_MMAP2) ||
	    seam_perf_data_sideband(data, record, &r) ||
	    strncmp(r.mapping.filename, KERNEL, strlen(KERNEL)) != 0)
		return false;
	*addr = r.mapping.pgoff;
	return true;
}

static uint64_t find_text(const struct seam_perf_data *data)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	uint64_t addr = 0;

	seam_perf_stream_init(&stream, data->bytes, data->endian,
			      data->data_begin, data->data_end, false);
	while (seam_perf_stream_next(&stream, &record, NULL) > 0)
		if (take_text(data, &record, &addr))
			break;
	seam_perf_stream_fini(&stream);
	return addr;
}

/* By either name: mappings say _text behind it, the header does not. */
static struct seam_build_id find_build_id(struct seam_annotating *a)
{
	struct seam_build_id id = seam_build_id_of(a->recording, &a->data,
						   KERNEL "_text");

	return id.size ? id : seam_build_id_of(a->recording, &a->data, KERNEL);
}

uint32_t seam_annotating_kernel(struct seam_annotating *a)
{
	const struct seam_manifest *m = &a->recording->manifest;
	struct seam_build_id id = { 0 };
	struct seam_kernel kernel = {
		.boot_id = m->boot_id, .build_id = m->kernel_build_id,
		.build_id_size = m->kernel_build_id_size,
		.text_addr = m->kernel_text_addr,
	};

	if (a->kernel)
		return a->kernel - 1;
	if (!kernel.text_addr)
		kernel.text_addr = find_text(&a->data);
	if (!kernel.build_id_size) {
		id = find_build_id(a);
		kernel.build_id = id.id;
		kernel.build_id_size = id.size;
	}
	a->kernel = seam_symbols_kernel(a->symbols, &kernel) + 1;
	return a->kernel - 1;
}
