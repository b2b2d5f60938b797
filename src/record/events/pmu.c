/* SPDX-License-Identifier: MIT */
/* pmu.c - terms of a PMU to an attr, and which PMUs write AUX; see pmu.h */
#include "record/events/pmu.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/text.h"
#include "record/events/event_kinds.h"
#include "record/proc/procfs.h"

/* ---- the description in sysfs ---- */

const char *seam_pmu_text(const char *pmu, const char *path, char *buf,
			  size_t cap)
{
	char whole[PATH_MAX];

	snprintf(whole, sizeof(whole), SEAM_PMU_DEVICES "/%s/%s", pmu, path);
	return seam_procfs_text(whole, buf, cap);
}

static bool pmu_has(const char *pmu, const char *path)
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

static int pmu_type(const char *name)
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

/* ---- AUX buffers ---- */

enum {
	PT_PERIOD = 3,		/* of MTC and PSB packets, as perf's */
	SPE_INTERVAL = 4096,	/* if the driver has no min_interval */
};

enum seam_aux_kind seam_aux_pmu_kind(const char *name)
{
	static const struct {
		const char *prefix;
		enum seam_aux_kind kind;
	} table[] = {
		{ "intel_pt", SEAM_AUX_INTEL_PT },
		{ "intel_bts", SEAM_AUX_INTEL_BTS },
		{ "cs_etm", SEAM_AUX_CS_ETM },
		{ "arm_spe", SEAM_AUX_ARM_SPE },
		{ "hisi_ptt", SEAM_AUX_HISI_PTT },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(table); i++)
		if (strncmp(name, table[i].prefix,
			    strlen(table[i].prefix)) == 0)
			return table[i].kind;
	return SEAM_AUX_NONE;
}

/* --- defaults --- */

/* The highest bit of @mask up to @wanted, or else its lowest bit. */
static int choose(uint64_t mask, int wanted)
{
	uint64_t low = mask & ((UINT64_C(2) << wanted) - 1);

	if (low)
		return 63 - __builtin_clzll(low);
	return mask ? __builtin_ctzll(mask) : -1;
}

static void add_term(char *terms, size_t cap, const char *term, int value)
{
	size_t n = strlen(terms);

	snprintf(terms + n, cap - n, "%s%s=%d", n ? "," : "", term, value);
}

static void default_pt(const char *pmu, char *terms, size_t cap)
{
	uint64_t mtc = seam_pmu_number(pmu, "caps/mtc", 10, 1) ?
		       seam_pmu_number(pmu, "caps/mtc_periods", 16, 0) : 0;
	uint64_t psb = seam_pmu_number(pmu, "caps/psb_cyc", 10, 1) ?
		       seam_pmu_number(pmu, "caps/psb_periods", 16, 0) : 0;

	add_term(terms, cap, "tsc", 1);
	if (mtc) {
		add_term(terms, cap, "mtc", 1);
		add_term(terms, cap, "mtc_period", choose(mtc, PT_PERIOD));
	}
	if (mtc && psb)
		add_term(terms, cap, "psb_period", choose(psb, PT_PERIOD));
	if (pmu_has(pmu, "format/pt") &&
	    pmu_has(pmu, "format/branch")) {
		add_term(terms, cap, "pt", 1);
		add_term(terms, cap, "branch", 1);
	}
}

/* Without these the trace has neither threads nor times. */
static void default_etm(const char *pmu, char *terms, size_t cap)
{
	if (pmu_has(pmu, "format/contextid"))
		add_term(terms, cap, "contextid", 1);
	if (pmu_has(pmu, "format/timestamp"))
		add_term(terms, cap, "timestamp", 1);
}

static void set_aux_defaults(struct seam_event *event, const char *pmu,
			   char *terms, size_t cap)
{
	terms[0] = '\0';
	event->attr.sample_period = 1;
	switch (event->aux_kind) {
	case SEAM_AUX_INTEL_PT:
		default_pt(pmu, terms, cap);
		break;
	case SEAM_AUX_CS_ETM:
		default_etm(pmu, terms, cap);
		break;
	case SEAM_AUX_ARM_SPE:
		event->attr.sample_period =
			seam_pmu_number(pmu, "caps/min_interval", 10,
					SPE_INTERVAL);
		if (pmu_has(pmu, "format/ts_enable"))
			add_term(terms, cap, "ts_enable", 1);
		break;
	default:
		break;
	}
}

/* ---- the event ---- */

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
	type = pmu_type(copy);
	if (type < 0)
		return seam_err_set(err, type, "this kernel has no PMU '%s'; "
				    "see " SEAM_PMU_DEVICES, copy);
	event->attr.type = (uint32_t)type;
	event->origin = SEAM_EVENT_OF_PMU;
	event->aux_kind = seam_aux_pmu_kind(copy);
	if (event->aux_kind) {
		set_aux_defaults(event, copy, defaults, sizeof(defaults));
		set_terms(event, copy, defaults, 0, NULL);
	}
	r = set_terms(event, copy, terms, 0, err);
	if (r == 0)
		r = seam_event_terms_check(event, err);
	if (r == 0 && *modifiers == ':')
		modifiers++;
	return r == 0 ? seam_event_modify(event, modifiers, err) : r;
}
