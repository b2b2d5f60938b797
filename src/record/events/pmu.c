/* SPDX-License-Identifier: MIT */
/*
 * pmu.c - terms of a PMU to an attr, and which PMUs write AUX buffers
 *
 *	/sys/bus/event_source/devices/PMU/type		attr.type
 *	.../format/TERM		"config:0-7,32-35": the bits that TERM sets
 *	.../events/NAME		terms that stand for "PMU/NAME/"
 *	.../sinks/NAME		the value of config2 for the term "@NAME",
 *				the sink of a CoreSight trace
 *
 * Source: prefixes and defaults of PMUs with AUX buffers: intel-pt.c, cs-etm.c
 * and arm-spe.c in tools/perf/arch of Linux 6.1.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "record/events/event_kinds.h"

#define DEVICES "/sys/bus/event_source/devices"

/* ---- the description in sysfs ---- */

const char *seam_pmu_text(const char *pmu, const char *path, char *buf,
			  size_t cap)
{
	char whole[PATH_MAX];

	snprintf(whole, sizeof(whole), DEVICES "/%s/%s", pmu, path);
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

int seam_pmu_set_bits(struct perf_event_attr *attr, const char *format,
		      uint64_t value)
{
	struct seam_number_list bits = { 0 };
	const char *list = strchr(format, ':');
	uint64_t *word =
		strncmp(format, "config:", 7) == 0 ? (uint64_t *)&attr->config :
		strncmp(format, "config1:", 8) == 0 ?
		(uint64_t *)&attr->config1 :
		strncmp(format, "config2:", 8) == 0 ?
		(uint64_t *)&attr->config2 : NULL;
	int r = word ? seam_procfs_list(&bits, list + 1) : -EINVAL;

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
	return r < 0 ? -EINVAL : value ? -EOVERFLOW : 0;
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
	if (pmu_has(pmu, "format/pt") && pmu_has(pmu, "format/branch")) {
		add_term(terms, cap, "pt", 1);
		add_term(terms, cap, "branch", 1);
	}
}

/* Without contextid and timestamp a CoreSight trace has no threads or times. */
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
		if (pmu_has(pmu, "format/contextid"))
			add_term(terms, cap, "contextid", 1);
		if (pmu_has(pmu, "format/timestamp"))
			add_term(terms, cap, "timestamp", 1);
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
	bool has_format;
	int r;

	if (value)
		*value++ = '\0';
	/* the bits that the term sets, as in sysfs; or all bits of a member */
	has_format = *read_text(pmu, "format", term, text, sizeof(text));
	if (!has_format)
		snprintf(text, sizeof(text), "%s:0-63", term);
	if (has_format || strcmp(term, "config") == 0 ||
	    strcmp(term, "config1") == 0 || strcmp(term, "config2") == 0)
		return set_bits(event, pmu, text, term, value, err);
	r = seam_event_term_set(event, term, value, err);
	if (r != -ENOENT)
		return r;
	/* the sink of a CoreSight trace; sysfs has its hash in hexadecimal */
	if (term[0] == '@' && !value) {
		if (!*read_text(pmu, "sinks", term + 1, text, sizeof(text)))
			return seam_err_set(err, -EINVAL, "PMU '%s' has no "
				"sink '%s'; see " DEVICES "/%s/sinks", pmu,
				term + 1, pmu);
		event->attr.config2 &= ~(uint64_t)UINT32_MAX;
		event->attr.config2 |= (uint32_t)strtoull(text, NULL, 16);
		return 0;
	}
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
	int r;

	snprintf(event->name, sizeof(event->name), "%s", text);
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
	if (!*copy || *copy == '.' || !pmu_has(copy, "type"))
		return seam_err_set(err, -ENOENT, "this kernel has no PMU "
				    "'%s'; see " DEVICES, copy);
	event->attr.type = (uint32_t)seam_pmu_number(copy, "type", 10, 0);
	event->origin = SEAM_EVENT_OF_PMU;
	event->aux_kind = seam_aux_pmu_kind(copy);
	if (event->aux_kind) {
		set_aux_defaults(event, copy, defaults, sizeof(defaults));
		set_terms(event, copy, defaults, 0, NULL);
	}
	r = set_terms(event, copy, terms, 0, err);
	if (r == 0 && *modifiers == ':')
		modifiers++;
	return r == 0 ? seam_event_modify(event, modifiers, err) : r;
}
