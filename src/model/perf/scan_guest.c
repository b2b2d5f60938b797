/* SPDX-License-Identifier: MIT */
/* scan_guest.c - chains with the guest's frames; see scan_guest.h */
#include "model/perf/scan_guest.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

enum seam_guest_event
seam_scan_guest_event(const struct seam_perf_event *event)
{
	const struct seam_perf_attr *attr = &event->attr;

	if (attr->type != PERF_TYPE_SOFTWARE ||
	    attr->config != PERF_COUNT_SW_BPF_OUTPUT ||
	    !(attr->sample_type & PERF_SAMPLE_RAW))
		return SEAM_GUEST_EVENT_NONE;
	return seam_guest_event_of(event->name);
}

uint32_t seam_scan_guest_clock(const struct seam_perf_data *data)
{
	for (uint32_t i = 0; i < data->events.n; i++)
		if (seam_perf_attr_is_clock(&data->events.items[i].attr))
			return i;
	return SEAM_NONE;
}

void seam_scan_guest_fini(struct seam_scan_guest *guest)
{
	free(guest->symbols.items);
	free(guest->words.items);
}

int seam_scan_guest_merge(struct seam_scan_guest *guest,
			  const struct seam_perf_sample *sample,
			  struct seam_perf_core *core, uint8_t *vmstate)
{
	struct seam_guest_reader reader;
	int r = seam_guest_read_sample(sample->raw, &reader, NULL);

	*vmstate = r ? SEAM_VMSTATE_NONE : reader.head.vmstate;
	if (r == 0 && core->n_chain)
		r = seam_guest_merge(reader, (const uint64_t *)(const void *)
				     core->chain, core->n_chain,
				     &guest->words);
	if (r == -ENOMEM)
		return r;
	if (r) {
		guest->counts.n_bad++;
		return 0;
	}
	seam_guest_counts_add(&guest->counts, &reader.head);
	if (core->n_chain) {
		core->chain = (const uint8_t *)guest->words.items;
		core->n_chain = guest->words.n;
		/* the leaf may be a guest's frame, which has no address */
		core->ip = 0;
	}
	return 0;
}

int seam_scan_guest_symbol(struct seam_scan_guest *guest,
			   const struct seam_perf_sample *sample,
			   struct seam_arena *arena)
{
	struct seam_bytes raw = sample->raw;

	if (arena && raw.size) {
		raw.data = (const uint8_t *)seam_arena_text(arena,
				(const char *)raw.data, raw.size);
		if (!raw.data)
			return -ENOMEM;
	}
	return SEAM_ARRAY_ADD(&guest->symbols, (struct seam_guest_record) {
			sample->pid, raw }) ? 0 : -ENOMEM;
}
