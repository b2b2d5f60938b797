/* SPDX-License-Identifier: MIT */
/* exporters.c - the formats of 'seam convert'; see exporter.h */
#include "export/exporter.h"

#define EXPORTER(name, needs, write, is_binary, help)			\
	{ name, needs, write, is_binary },

static const struct seam_exporter exporters[] = { SEAM_EXPORTERS(EXPORTER) };

const struct seam_exporter *seam_exporter_find(const char *name)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(exporters); i++)
		if (strcmp(exporters[i].name, name) == 0)
			return &exporters[i];
	return NULL;
}
