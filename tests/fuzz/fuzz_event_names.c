/* SPDX-License-Identifier: MIT */
/*
 * fuzz_event_names.c - any bytes as the names of events
 *
 * Oracle: what was read, written again, reads as the same names where they are
 * UTF-8.
 */
#include <stdio.h>

#include "fuzz.h"
#include "wire/xray/event_names.h"

static void check_again(const struct seam_event_names *names)
{
	struct seam_event_names again;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < names->items.n; i++)
		seam_event_name_write(out, names->items.items[i].type,
			seam_event_name_find(names,
					     names->items.items[i].type));
	fclose(out);
	/* U+FFFD takes the place of one byte, so a name can get too long */
	seam_event_names_read(&again, (struct seam_bytes) {
			(const uint8_t *)text, size }, NULL);
	for (size_t i = 0; i < again.items.n; i++) {
		uint16_t type = again.items.items[i].type;
		const char *name = seam_event_name_find(&again, type);
		const char *first = seam_event_name_find(names, type);

		if (!first || (!strstr(name, "\xef\xbf\xbd") &&
			       strcmp(first, name) != 0))
			abort();
	}
	seam_event_names_fini(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seam_event_names names;

	seam_event_names_read(&names, (struct seam_bytes) { data, size }, NULL);
	check_again(&names);
	seam_event_names_fini(&names);
	return 0;
}
