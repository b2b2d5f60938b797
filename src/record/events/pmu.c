/* SPDX-License-Identifier: MIT */
/* pmu.c - files of a PMU in sysfs, and bits of its attr; see pmu.h */
#include "record/events/pmu.h"

#include "record/proc/procfs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

const char *seam_pmu_text(const char *pmu, const char *path, char *buf,
			  size_t cap)
{
	char whole[PATH_MAX];

	snprintf(whole, sizeof(whole), SEAM_PMU_DEVICES "/%s/%s", pmu, path);
	return seam_procfs_text(whole, buf, cap);
}

bool seam_pmu_has(const char *pmu, const char *path)
{
	char text[1024];

	return *seam_pmu_text(pmu, path, text, sizeof(text));
}

uint64_t seam_pmu_number(const char *pmu, const char *path, int base,
			 uint64_t otherwise)
{
	char text[64], *end;
	uint64_t value;

	value = strtoull(seam_pmu_text(pmu, path, text, sizeof(text)), &end,
			 base);
	return end == text ? otherwise : value;
}

int seam_pmu_type(const char *name)
{
	char text[32];

	if (!*name || strchr(name, '/') || name[0] == '.' ||
	    !*seam_pmu_text(name, "type", text, sizeof(text)))
		return -ENOENT;
	return atoi(text);
}

/* The member of @attr that @format names; NULL: none. */
static uint64_t *word_of(struct perf_event_attr *attr, const char *format)
{
	size_t n = strcspn(format, ":");

	if (n == 6 && memcmp(format, "config", n) == 0)
		return (uint64_t *)&attr->config;
	if (n == 7 && memcmp(format, "config1", n) == 0)
		return (uint64_t *)&attr->config1;
	if (n == 7 && memcmp(format, "config2", n) == 0)
		return (uint64_t *)&attr->config2;
	return NULL;
}

int seam_pmu_set_bits(struct perf_event_attr *attr, const char *format,
		      uint64_t value)
{
	struct seam_number_list bits = { 0 };
	uint64_t *word = word_of(attr, format);
	const char *list = strchr(format, ':');
	int r = word && list ? seam_procfs_list(&bits, list + 1) : -EINVAL;

	for (size_t i = 0; r == 0 && i < bits.n; i++) {
		if (bits.items[i] > 63) {
			r = -EINVAL;
			break;
		}
		*word &= ~(UINT64_C(1) << bits.items[i]);
		*word |= (value & 1) << bits.items[i];
		value >>= 1;
	}
	free(bits.items);
	if (r < 0)
		return -EINVAL;
	return value ? -EOVERFLOW : 0;
}
