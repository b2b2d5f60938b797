/* SPDX-License-Identifier: MIT */
/* build_ids.c - mappings first, then the header; see build_ids.h */
#include "model/perf/build_ids.h"

#include <linux/perf_event.h>

#include "model/origin.h"
#include "model/perf/resolver.h"
#include "wire/perf/perf_stream.h"

struct build_id_search {
	const struct seam_perf_data *data;
	const char *path;
	struct seam_build_id found;
	const struct seam_origin *origin;	/* NULL: a build id alone */
	struct seam_module demand;	/* of the first mapping without one */
};

static void take(struct build_id_search *s, const uint8_t *id, size_t size)
{
	static const uint8_t none[sizeof(s->found.id)];

	if (size == 0 || size > sizeof(s->found.id) ||
	    memcmp(id, none, size) == 0)
		return;
	memcpy(s->found.id, id, size);
	s->found.size = size;
}

/* Of several times of one file the earliest counts, as in a profile. */
static void take_demand(struct build_id_search *s, const struct seam_perf_mapping *m,
			uint64_t time_ns)
{
	struct seam_module demand = { 0 };

	if (!s->origin || seam_resolver_kind(s->path) != SEAM_MAPPING_FILE)
		return;
	seam_origin_demand(s->origin, m, time_ns, &demand);
	if (s->demand.evidence == SEAM_EVIDENCE_PATH ||
	    (s->demand.ino == demand.ino &&
	     demand.mapped_ns < s->demand.mapped_ns))
		s->demand = demand;
}

static void take_record(struct build_id_search *s, const struct seam_perf_record *record)
{
	struct seam_perf_sideband r;

	if ((record->type != PERF_RECORD_MMAP2 &&
	     record->type != PERF_RECORD_MMAP) ||
	    seam_perf_data_sideband(s->data, record, &r))
		return;
	if (strcmp(r.mapping.filename, s->path) != 0)
		return;
	if (r.mapping.build_id)
		take(s, r.mapping.build_id, r.mapping.build_id_size);
	else
		take_demand(s, &r.mapping, r.sample_id.time);
}

static void walk(struct build_id_search *s, struct seam_bytes bytes, uint64_t begin,
		 uint64_t end)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;

	seam_perf_stream_init(&stream, bytes, s->data->endian, begin, end,
			      false);
	while (!s->found.size &&
	       seam_perf_stream_next(&stream, &record, NULL) > 0)
		take_record(s, &record);
	seam_perf_stream_fini(&stream);
}

static bool take_listed(void *context, const struct seam_perf_build_id *id)
{
	struct build_id_search *s = context;

	if (strcmp(id->filename, s->path))
		return true;
	take(s, id->build_id, id->build_id_size);
	return false;
}

static void search(struct build_id_search *s, const struct seam_input *recording)
{
	const struct seam_manifest *m = &recording->manifest;

	walk(s, s->data->bytes, s->data->data_begin, s->data->data_end);
	for (size_t i = 0; i < recording->n_parts; i++)
		walk(s, recording->parts[i].bytes, 0,
		     recording->parts[i].bytes.size);
	if (!s->found.size)
		seam_perf_data_build_ids(s->data, take_listed, s);
	if (!s->found.size && seam_resolver_kind(s->path) == SEAM_MAPPING_VDSO)
		take(s, m->vdso_build_id, m->vdso_build_id_size);
}

struct seam_build_id seam_build_id_of(const struct seam_input *recording,
				      const struct seam_perf_data *data,
				      const char *path)
{
	struct build_id_search s = { .data = data, .path = path };

	search(&s, recording);
	return s.found;
}

struct seam_module seam_module_of(const struct seam_input *recording,
				  const struct seam_perf_data *data,
				  const char *path, struct seam_build_id *id)
{
	struct seam_origin origin = seam_origin_of(data, &recording->manifest,
						   recording->written_ns);
	struct build_id_search s = { .data = data, .path = path, .origin = &origin };

	search(&s, recording);
	*id = s.found;
	s.demand.path = path;
	s.demand.build_id = id->size ? id->id : NULL;
	s.demand.build_id_size = id->size;
	return s.demand;
}
