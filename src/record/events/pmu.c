/* SPDX-License-Identifier: MIT */
/* pmu.c - terms to bits; see pmu.h */
#include "record/events/pmu.h"

#include "base/text.h"
#include "record/events/aux_pmu.h"
#include "record/events/event_term.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define DEVICES "/sys/bus/event_source/devices"

enum { MAX_NESTED = 2 };	/* a name stands for terms, not for a name */

const char *seam_pmu_text(const char *pmu, const char *path, char *buf,
			  size_t cap)
{
	char whole[PATH_MAX];

	snprintf(whole, sizeof(whole), DEVICES "/%s/%s", pmu, path);
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

static const char *named_text(const char *pmu, const char *folder,
			      const char *name, char *buf, size_t cap)
{
	char path[SEAM_EVENT_NAME + 16];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return seam_pmu_text(pmu, path, buf, cap);
}

int seam_pmu_type(const char *name)
{
	char text[32];

	if (!*name || strchr(name, '/') || name[0] == '.' ||
	    !*seam_pmu_text(name, "type", text, sizeof(text)))
		return -ENOENT;
	return atoi(text);
}

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

static int set_terms(struct seam_event *event, const char *pmu, char *terms,
		     int depth, struct seam_err *err);

/* Where a trace unit of CoreSight puts its bytes; the kernel has a hash. */
static int set_sink(struct seam_event *event, const char *pmu,
		    const char *sink, struct seam_err *err)
{
	char text[64];

	if (!*named_text(pmu, "sinks", sink, text, sizeof(text)))
		return seam_err_set(err, -EINVAL, "PMU '%s' has no sink '%s'; "
			"see " DEVICES "/%s/sinks", pmu, sink, pmu);
	event->attr.config2 = (event->attr.config2 & ~(uint64_t)UINT32_MAX) |
			      (uint32_t)strtoull(text, NULL, 16);
	return 0;
}

/* "term=value", "term" for 1, or a name that stands for terms. */
static int set_term(struct seam_event *event, const char *pmu, char *term,
		    int depth, struct seam_err *err)
{
	char text[1024], *value = strchr(term, '='), *end = term;
	uint64_t v = 1;
	int r;

	if (value)
		*value++ = '\0';
	if (seam_event_term_is(term) &&
	    !*named_text(pmu, "format", term, text, sizeof(text)))
		return seam_event_term_set(event, term, value, err);
	if (value) {
		v = strtoull(value, &end, 0);
		if (end == value || *end)
			return seam_err_set(err, -EINVAL, "PMU '%s': '%s' "
					    "takes a number", pmu, term);
	}
	if (term[0] == '@')
		return set_sink(event, pmu, term + 1, err);
	if (*named_text(pmu, "format", term, text, sizeof(text)))
		r = seam_pmu_set_bits(&event->attr, text, v);
	else if (strcmp(term, "config") == 0)
		r = seam_pmu_set_bits(&event->attr, "config:0-63", v);
	else if (strcmp(term, "config1") == 0)
		r = seam_pmu_set_bits(&event->attr, "config1:0-63", v);
	else if (strcmp(term, "config2") == 0)
		r = seam_pmu_set_bits(&event->attr, "config2:0-63", v);
	else if (!value && depth < MAX_NESTED &&
		 *named_text(pmu, "events", term, text, sizeof(text)))
		return set_terms(event, pmu, text, depth + 1, err);
	else
		return seam_err_set(err, -EINVAL, "PMU '%s' has no term or "
				    "event '%s'", pmu, term);
	if (r == -EOVERFLOW)
		return seam_err_set(err, -EINVAL, "PMU '%s': the value of "
				    "'%s' has too many bits", pmu, term);
	return r < 0 ? seam_err_set(err, -EINVAL, "PMU '%s': its format of "
				    "'%s' is not understood", pmu, term) : 0;
}

static int set_terms(struct seam_event *event, const char *pmu, char *terms,
		     int depth, struct seam_err *err)
{
	char *rest, *term = strtok_r(terms, ",", &rest);
	int r = 0;

	for (; r == 0 && term; term = strtok_r(NULL, ",", &rest))
		r = strchr(term, '/') || term[0] == '.' ?
		    seam_err_set(err, -EINVAL, "PMU '%s' has no term '%s'",
				 pmu, term) :
		    set_term(event, pmu, term, depth, err);
	return r;
}

int seam_pmu_event_add(struct seam_event_list *list, const char *text,
		       struct seam_err *err)
{
	struct seam_event *event = seam_event_list_push(list);
	char copy[SEAM_EVENT_NAME], defaults[256], *terms, *modifiers;
	int type, r;

	if (!event)
		return seam_err_set(err, -ENOMEM, "out of memory");
	seam_text_copy(event->name, sizeof(event->name), text,
		       SEAM_TEXT_TERMINAL);
	memcpy(copy, event->name, sizeof(copy));
	terms = strchr(copy, '/');
	modifiers = strrchr(copy, '/');
	if (!terms || modifiers == terms)
		return seam_err_set(err, -EINVAL, "an event of a PMU is "
				    "written pmu/terms/, and not '%s'",
				    event->name);
	*terms++ = '\0';
	*modifiers++ = '\0';
	type = seam_pmu_type(copy);
	if (type < 0)
		return seam_err_set(err, type, "this kernel has no PMU '%s'; "
				    "see " DEVICES, copy);
	event->attr.type = (uint32_t)type;
	event->is_pmu = true;
	event->aux_kind = seam_aux_pmu_kind(copy);
	if (event->aux_kind) {
		seam_aux_pmu_defaults(event, copy, defaults, sizeof(defaults));
		set_terms(event, copy, defaults, 0, NULL);
	}
	r = set_terms(event, copy, terms, 0, err);
	if (r == 0)
		r = seam_event_terms_check(event, err);
	if (r == 0 && *modifiers == ':')
		modifiers++;
	return r == 0 ? seam_event_modify(event, modifiers, err) : r;
}
