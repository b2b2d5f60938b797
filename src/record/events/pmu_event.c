/* SPDX-License-Identifier: MIT */
/* pmu_event.c - terms of a PMU to bits of an attr; see event_kinds.h */
#include "record/events/event_kinds.h"

#include "base/text.h"
#include "record/events/aux_pmu.h"
#include "record/events/event_term.h"
#include "record/events/pmu.h"

#include <errno.h>
#include <stdlib.h>

/* An event's name stands for terms, which may name another event. */
enum { MAX_NESTED = 2 };

static const char *read_text(const char *pmu, const char *folder,
			     const char *name, char *buf, size_t cap)
{
	char path[SEAM_EVENT_NAME + 16];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return seam_pmu_text(pmu, path, buf, cap);
}

static int set_terms(struct seam_event *event, const char *pmu, char *terms,
		     int depth, struct seam_err *err);

/* The sink of a CoreSight trace; sysfs has its hash in hexadecimal. */
static int set_sink(struct seam_event *event, const char *pmu,
		    const char *sink, struct seam_err *err)
{
	char text[64];

	if (!*read_text(pmu, "sinks", sink, text, sizeof(text)))
		return seam_err_set(err, -EINVAL, "PMU '%s' has no sink '%s'; "
			"see " SEAM_PMU_DEVICES "/%s/sinks", pmu, sink, pmu);
	event->attr.config2 = (event->attr.config2 & ~(uint64_t)UINT32_MAX) |
			      (uint32_t)strtoull(text, NULL, 16);
	return 0;
}

/* The bits that @term sets, as in sysfs.  False: it is not such a term. */
static bool find_format(const char *pmu, const char *term, char *format,
			size_t cap)
{
	if (*read_text(pmu, "format", term, format, cap))
		return true;
	snprintf(format, cap, "%s:0-63", term);
	return strcmp(term, "config") == 0 || strcmp(term, "config1") == 0 ||
	       strcmp(term, "config2") == 0;
}

/* "term=value"; "term" stands for 1. */
static int set_bits(struct seam_event *event, const char *pmu,
		    const char *format, const char *term, const char *value,
		    struct seam_err *err)
{
	char *end = "";
	uint64_t v = value ? strtoull(value, &end, 0) : 1;
	int r;

	if (value && (end == value || *end))
		return seam_err_set(err, -EINVAL, "PMU '%s': '%s' takes a "
				    "number", pmu, term);
	r = seam_pmu_set_bits(&event->attr, format, v);
	if (r == -EOVERFLOW)
		return seam_err_set(err, -EINVAL, "PMU '%s': the value of "
				    "'%s' has too many bits", pmu, term);
	return r < 0 ? seam_err_set(err, -EINVAL, "PMU '%s': cannot read the "
				    "format of '%s'", pmu, term) : 0;
}

/* A term of the PMU, a term of any event, a sink, or an event's name. */
static int set_term(struct seam_event *event, const char *pmu, char *term,
		    int depth, struct seam_err *err)
{
	char text[1024], *value = strchr(term, '=');

	if (value)
		*value++ = '\0';
	if (find_format(pmu, term, text, sizeof(text)))
		return set_bits(event, pmu, text, term, value, err);
	if (seam_event_term_is(term))
		return seam_event_term_set(event, term, value, err);
	if (term[0] == '@' && !value)
		return set_sink(event, pmu, term + 1, err);
	if (!value && depth < MAX_NESTED &&
	    *read_text(pmu, "events", term, text, sizeof(text)))
		return set_terms(event, pmu, text, depth + 1, err);
	return seam_err_set(err, -EINVAL, "PMU '%s' has no term or event "
			    "'%s'", pmu, term);
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

int seam_pmu_event_parse(struct seam_event *event, const char *text,
			 struct seam_err *err)
{
	char copy[SEAM_EVENT_NAME], defaults[256], *terms, *modifiers;
	int type, r;

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
	snprintf(event->kernel_name, sizeof(event->kernel_name), "%s", copy);
	type = seam_pmu_type(copy);
	if (type < 0)
		return seam_err_set(err, type, "this kernel has no PMU '%s'; "
				    "see " SEAM_PMU_DEVICES, copy);
	event->attr.type = (uint32_t)type;
	event->origin = SEAM_EVENT_OF_PMU;
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
