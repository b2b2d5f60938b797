/* SPDX-License-Identifier: MIT */
/* event.c - names, modifiers, terms; lists, groups, kinds; see event.h */
#include "record/events/event.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdlib.h>

#include "record/events/event_kinds.h"

#define HW(name, id)	{ name, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id }
#define SW(name, id)	{ name, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id }
/* Source: perf_event_open(2), PERF_TYPE_HW_CACHE. */
#define CACHE(name, id, op, result)					\
	{ name, PERF_TYPE_HW_CACHE,					\
	  PERF_COUNT_HW_CACHE_##id | PERF_COUNT_HW_CACHE_OP_##op << 8 |	\
	  PERF_COUNT_HW_CACHE_RESULT_##result << 16 }

/* Source: tools/perf/util/parse-events.l of Linux 6.1. */
static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} table[] = {
	HW("cycles", CPU_CYCLES),
	HW("cpu-cycles", CPU_CYCLES),
	HW("instructions", INSTRUCTIONS),
	HW("cache-references", CACHE_REFERENCES),
	HW("cache-misses", CACHE_MISSES),
	HW("branches", BRANCH_INSTRUCTIONS),
	HW("branch-instructions", BRANCH_INSTRUCTIONS),
	HW("branch-misses", BRANCH_MISSES),
	HW("bus-cycles", BUS_CYCLES),
	HW("ref-cycles", REF_CPU_CYCLES),
	HW("stalled-cycles-frontend", STALLED_CYCLES_FRONTEND),
	HW("idle-cycles-frontend", STALLED_CYCLES_FRONTEND),
	HW("stalled-cycles-backend", STALLED_CYCLES_BACKEND),
	HW("idle-cycles-backend", STALLED_CYCLES_BACKEND),
	SW("cpu-clock", CPU_CLOCK),
	SW("task-clock", TASK_CLOCK),
	SW("page-faults", PAGE_FAULTS),
	SW("faults", PAGE_FAULTS),
	SW("minor-faults", PAGE_FAULTS_MIN),
	SW("major-faults", PAGE_FAULTS_MAJ),
	SW("context-switches", CONTEXT_SWITCHES),
	SW("cs", CONTEXT_SWITCHES),
	SW("cpu-migrations", CPU_MIGRATIONS),
	SW("migrations", CPU_MIGRATIONS),
	SW("alignment-faults", ALIGNMENT_FAULTS),
	SW("emulation-faults", EMULATION_FAULTS),
	SW("cgroup-switches", CGROUP_SWITCHES),
	SW("bpf-output", BPF_OUTPUT),
	SW("dummy", DUMMY),
	CACHE("L1-dcache-loads", L1D, READ, ACCESS),
	CACHE("L1-dcache-load-misses", L1D, READ, MISS),
	CACHE("L1-dcache-stores", L1D, WRITE, ACCESS),
	CACHE("L1-icache-load-misses", L1I, READ, MISS),
	CACHE("LLC-loads", LL, READ, ACCESS),
	CACHE("LLC-load-misses", LL, READ, MISS),
	CACHE("LLC-stores", LL, WRITE, ACCESS),
	CACHE("LLC-store-misses", LL, WRITE, MISS),
	CACHE("dTLB-loads", DTLB, READ, ACCESS),
	CACHE("dTLB-load-misses", DTLB, READ, MISS),
	CACHE("iTLB-loads", ITLB, READ, ACCESS),
	CACHE("iTLB-load-misses", ITLB, READ, MISS),
	CACHE("branch-loads", BPU, READ, ACCESS),
	CACHE("branch-load-misses", BPU, READ, MISS),
	CACHE("node-loads", NODE, READ, ACCESS),
	CACHE("node-load-misses", NODE, READ, MISS),
};

enum { MAX_PRECISE = 3 };	/* of the two bits of precise_ip */

const char *seam_event_name(size_t i)
{
	return i < SEAM_ARRAY_SIZE(table) ? table[i].name : NULL;
}

const char *seam_event_kind(size_t i)
{
	return table[i].type == PERF_TYPE_HARDWARE ? "hardware" :
	       table[i].type == PERF_TYPE_SOFTWARE ? "software" : "cache";
}

/*
 * Set the type and config of the event that the first @size bytes of @name
 * are: of the table, or "r1a8", a raw event.  False: no such name.
 */
static bool identify(const char *name, size_t size,
		     struct perf_event_attr *attr)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(table); i++)
		if (strlen(table[i].name) == size &&
		    memcmp(table[i].name, name, size) == 0) {
			attr->type = table[i].type;
			attr->config = table[i].config;
			return true;
		}
	if (size < 2 || size > 17 || name[0] != 'r' ||
	    strspn(name + 1, "0123456789abcdefABCDEF") < size - 1)
		return false;
	attr->type = PERF_TYPE_RAW;
	attr->config = strtoull(name + 1, NULL, 16);
	return true;
}

static bool is_named(const char *name, size_t size)
{
	struct perf_event_attr attr;

	return identify(name, size, &attr);
}

static int set_modifier(struct seam_event *event, char letter)
{
	struct perf_event_attr *attr = &event->attr;

	/* as in perf 6.1: modifiers include guests of KVM, except u and p */
	if (strchr("up", letter) && !event->has_kvm_modifier)
		attr->exclude_guest = 1;
	/* the first of G and H excludes both; each includes its own */
	if (strchr("GH", letter) && !event->has_kvm_modifier) {
		event->has_kvm_modifier = true;
		attr->exclude_guest = attr->exclude_host = 1;
	}
	/* the first of u, k and h excludes all; each includes its own */
	if (strchr("ukh", letter) && !attr->exclude_user &&
	    !attr->exclude_kernel && !attr->exclude_hv)
		attr->exclude_user = attr->exclude_kernel =
			attr->exclude_hv = 1;
	switch (letter) {
	case 'u': attr->exclude_user = 0; return 0;
	case 'k': attr->exclude_kernel = 0; return 0;
	case 'h': attr->exclude_hv = 0; return 0;
	case 'G': attr->exclude_guest = 0; return 0;
	case 'H': attr->exclude_host = 0; return 0;
	case 'I': attr->exclude_idle = 1; return 0;
	case 'D': attr->pinned = 1; return 0;
	case 'p':
		if (attr->precise_ip == MAX_PRECISE)
			return -EINVAL;
		attr->precise_ip++;
		return 0;
	case 'P':
		attr->precise_ip = MAX_PRECISE;
		event->any_precision = true;
		return 0;
	default:
		return -EINVAL;
	}
}

int seam_event_modify(struct seam_event *event, const char *modifiers,
		      struct seam_err *err)
{
	if (*modifiers && !event->has_kvm_modifier)
		event->attr.exclude_guest = 0;
	for (; *modifiers; modifiers++)
		if (set_modifier(event, *modifiers) < 0)
			return seam_err_set(err, -EINVAL, "event '%s': "
				"modifiers are u, k, h, G, H, I, D, p "
				"(up to 3) and P", event->name);
	return 0;
}

void seam_event_init(struct seam_event *event)
{
	*event = (struct seam_event) {
		.leader = SEAM_EVENT_ALONE, .attr.exclude_guest = 1,
	};
}

void seam_event_init_program(struct seam_event *event, const char *name,
			     uint32_t number)
{
	seam_event_init(event);
	snprintf(event->name, sizeof(event->name), "%s", name);
	event->origin = SEAM_EVENT_OF_PROGRAM;
	event->program_id = SEAM_EVENT_PROGRAM_ID | number;
	event->each_time = true;
	event->attr.sample_type = PERF_SAMPLE_RAW;
	event->attr.sample_period = 1;
	/* the type of event whose raw bytes perf leaves as they are */
	event->attr.type = PERF_TYPE_SOFTWARE;
	event->attr.config = PERF_COUNT_SW_BPF_OUTPUT;
}

struct perf_event_attr seam_event_file_attr(const struct seam_event *event)
{
	struct perf_event_attr attr = event->attr;

	if (event->is_unwound) {
		attr.sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER |
						PERF_SAMPLE_STACK_USER);
		attr.sample_regs_user = 0;
		attr.sample_stack_user = 0;
		/* how the stack was unwound (wire/perf/unwound.h) */
		attr.sample_type |= PERF_SAMPLE_RAW;
	}
	return attr;
}

struct seam_event *seam_event_list_push(struct seam_event_list *list)
{
	struct seam_event *event = SEAM_ARRAY_PUSH(list);

	if (event)
		seam_event_init(event);
	return event;
}

void seam_event_list_fini(struct seam_event_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		seam_probe_free(list->items[i].probe);
	free(list->items);
	*list = (struct seam_event_list) { 0 };
}

int seam_event_parse(struct seam_event *event, const char *text,
		     struct seam_err *err)
{
	struct perf_event_attr *attr = &event->attr;
	size_t n = strcspn(text, ":");

	snprintf(event->name, sizeof(event->name), "%s", text);
	if (strlen(text) >= SEAM_EVENT_NAME || !identify(text, n, attr))
		return seam_err_set(err, -EINVAL, "no event is named '%s'; "
				    "'seam doctor' lists the events", text);
	event->each_time = attr->type == PERF_TYPE_SOFTWARE &&
			   attr->config == PERF_COUNT_SW_BPF_OUTPUT;
	return text[n] ? seam_event_modify(event, text + n + 1, err) : 0;
}

/*
 * Source: Linux, kernel/events/core.c: perf_sw_event_sched() takes the
 * registers of the scheduler, which exclude_kernel rejects.
 */
bool seam_event_is_of_kernel(const struct seam_event *event)
{
	const struct perf_event_attr *attr = &event->attr;

	return attr->type == PERF_TYPE_SOFTWARE &&
	       (attr->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
		attr->config == PERF_COUNT_SW_CPU_MIGRATIONS ||
		attr->config == PERF_COUNT_SW_CGROUP_SWITCHES);
}

bool seam_event_is_cpu_time(const struct seam_event *event)
{
	const struct perf_event_attr *attr = &event->attr;

	if (event->origin != SEAM_EVENT_OF_KERNEL)
		return false;
	if (attr->type == PERF_TYPE_SOFTWARE)
		return attr->config == PERF_COUNT_SW_CPU_CLOCK ||
		       attr->config == PERF_COUNT_SW_TASK_CLOCK;
	return attr->type == PERF_TYPE_HARDWARE &&
	       (attr->config == PERF_COUNT_HW_CPU_CYCLES ||
		attr->config == PERF_COUNT_HW_REF_CPU_CYCLES);
}

/* ---- terms, between slashes ---- */

/* A decimal or 0x number from 1 to @max. */
static int term_number(const char *value, uint64_t max, uint64_t *n)
{
	char *end;

	if (!value || value[0] < '0' || value[0] > '9')
		return -EINVAL;
	errno = 0;
	*n = strtoull(value, &end, 0);
	return errno || *end || *n == 0 || *n > max ? -EINVAL : 0;
}

enum { PERIOD, FREQ, NAME, CALL_GRAPH, MAX_STACK, NO_INHERIT, N_TERMS };

static const struct term {
	const char *name, *takes;
} terms_of_all[] = {
	[PERIOD] = { "period", "a number of occurrences" },
	[FREQ] = { "freq", "a number of samples per second" },
	[NAME] = { "name", "a name of up to 255 bytes" },
	[CALL_GRAPH] = { "call-graph", "auto, fp, dwarf or no" },
	[MAX_STACK] = { "max-stack", "a number of frames, up to 65535" },
	[NO_INHERIT] = { "no-inherit", "no value" },
};

static int set_term(struct seam_event *event, size_t term, const char *value)
{
	static const struct {
		const char *name;
		enum seam_call_graph how;
	} ways[] = {
		{ "auto", SEAM_CALL_GRAPH_AUTO }, { "fp", SEAM_CALL_GRAPH_FP },
		{ "dwarf", SEAM_CALL_GRAPH_DWARF },
		{ "no", SEAM_CALL_GRAPH_NONE },
		{ "none", SEAM_CALL_GRAPH_NONE },
	};
	uint64_t n;
	int r;

	switch (term) {
	case PERIOD:
		return term_number(value, INT64_MAX, &event->period);
	case FREQ:
		return term_number(value, INT64_MAX, &event->frequency_hz);
	case NAME:
		if (!value || !*value || strlen(value) >= sizeof(event->name))
			return -EINVAL;
		snprintf(event->name, sizeof(event->name), "%s", value);
		return 0;
	case CALL_GRAPH:
		for (size_t i = 0; value && i < SEAM_ARRAY_SIZE(ways); i++)
			if (strcmp(value, ways[i].name) == 0) {
				event->call_graph = ways[i].how;
				return 0;
			}
		return -EINVAL;
	case MAX_STACK:
		r = term_number(value, UINT16_MAX, &n);
		if (r == 0)
			event->attr.sample_max_stack = (uint16_t)n;
		return r;
	default:
		event->no_inherit = true;
		return value ? -EINVAL : 0;
	}
}

int seam_event_term_set(struct seam_event *event, const char *term,
			const char *value, struct seam_err *err)
{
	size_t i = 0;

	while (i < N_TERMS && strcmp(terms_of_all[i].name, term) != 0)
		i++;
	if (i == N_TERMS)
		return seam_err_set(err, -ENOENT, "an event has no term '%s': "
			"they are period, freq, name, call-graph, max-stack "
			"and no-inherit", term);
	if (set_term(event, i, value) < 0)
		return seam_err_set(err, -EINVAL, "the term '%s' of an event "
				    "takes %s", term, terms_of_all[i].takes);
	if (event->period && event->frequency_hz)
		return seam_err_set(err, -EINVAL, "the terms period and freq "
				    "cannot be combined");
	return 0;
}

/* Apply the list @terms ("period=1,name=x"), which is overwritten. */
static int set_all_terms(struct seam_event *events, size_t n, char *terms,
			 struct seam_err *err)
{
	char *rest, *term = strtok_r(terms, ",", &rest);
	int r = term ? 0 : seam_err_set(err, -EINVAL, "no terms between the "
					"slashes of an event");

	for (; r == 0 && term; term = strtok_r(NULL, ",", &rest)) {
		char *value = strchr(term, '=');

		if (value)
			*value++ = '\0';
		for (size_t i = 0; r == 0 && i < n; i++)
			r = seam_event_term_set(&events[i], term, value, err);
	}
	return r;
}

/* ---- mem:ADDR[/LEN][:rwx[:u]] ---- */

/*
 * A hardware breakpoint; without letters both reads and writes, of 4 bytes
 * unless LEN is 1, 2 or 8.
 */
static int parse_breakpoint(struct seam_event *event, const char *text,
			    struct seam_err *err)
{
	bool is_bad;
	char *end;

	snprintf(event->name, sizeof(event->name), "%s", text);
	event->each_time = true;
	event->attr.type = PERF_TYPE_BREAKPOINT;
	event->attr.sample_type = PERF_SAMPLE_ADDR;
	event->attr.bp_type = HW_BREAKPOINT_RW;
	event->attr.bp_len = HW_BREAKPOINT_LEN_4;
	errno = 0;
	event->attr.bp_addr = strtoull(text + strlen("mem:"), &end, 0);
	is_bad = errno || end == text + strlen("mem:");
	if (*end == '/')
		event->attr.bp_len = strtoull(end + 1, &end, 10);
	if (*end == ':') {
		size_t n = strspn(end + 1, "rwx");
		bool is_known = !end[1 + n] || end[1 + n] == ':';

		event->attr.bp_type = 0;
		for (size_t i = 1; is_known && i <= n; i++)
			event->attr.bp_type |=
				end[i] == 'r' ? HW_BREAKPOINT_R :
				end[i] == 'w' ? HW_BREAKPOINT_W :
				HW_BREAKPOINT_X;
		end += 1 + n;
	}
	if (*end == ':' && end[1]) {
		if (seam_event_modify(event, end + 1, err) < 0)
			return -EINVAL;
		end += strlen(end);
	}
	/* Source: perf_event_open(2): the length of a breakpoint on code */
	if (event->attr.bp_type == HW_BREAKPOINT_X)
		event->attr.bp_len = sizeof(long);
	if (is_bad || *end || !event->attr.bp_type || !event->attr.bp_len ||
	    event->attr.bp_len > 8 ||
	    event->attr.bp_len & (event->attr.bp_len - 1))
		return seam_err_set(err, -EINVAL, "a breakpoint is written "
				    "mem:ADDR[/LEN][:rwx[:u]], and not '%s'",
				    text);
	return 0;
}

/* ---- kinds ---- */

/*
 * Events that a prefix tells from others; commas and slashes after it have no
 * other meaning.  A new kind is a row here.
 */
static const struct event_kind {
	const char *prefix;
	int (*parse)(struct seam_event *event, const char *text,
		     struct seam_err *err);
} kinds[] = {
	{ "uprobe:", seam_uprobe_parse },
	{ "uretprobe:", seam_uprobe_parse },
	{ "kprobe:", seam_kprobe_parse },
	{ "kretprobe:", seam_kprobe_parse },
	{ "mem:", parse_breakpoint },
};

/* The row of @text; NULL: an event of a PMU, a tracepoint or a name. */
static const struct event_kind *kind_of(const char *text)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(kinds); i++)
		if (strncmp(text, kinds[i].prefix, strlen(kinds[i].prefix)) ==
		    0)
			return &kinds[i];
	return NULL;
}

static int add_one(struct seam_event_list *list, const char *text,
		   struct seam_err *err);

/* "event/terms/modifiers": parse "event:modifiers", then the terms. */
static int add_with_terms(struct seam_event_list *list, const char *text,
			  struct seam_err *err)
{
	char base[2 * SEAM_EVENT_NAME], *terms, *modifiers;
	size_t first = list->n, n = strcspn(text, "/");
	int r;

	modifiers = strrchr(text + n, '/');
	if (modifiers == text + n || strlen(text) >= SEAM_EVENT_NAME)
		return seam_err_set(err, -EINVAL, "terms of an event are "
				    "written event/terms/");
	snprintf(base, sizeof(base), "%.*s%s%s", (int)n, text, modifiers[1] &&
		 modifiers[1] != ':' ? ":" : "", modifiers + 1);
	r = add_one(list, base, err);
	if (r == 0 && list->n == first + 1)
		snprintf(list->items[first].name, SEAM_EVENT_NAME, "%s", text);
	terms = r == 0 ? strndup(text + n + 1,
				 (size_t)(modifiers - text) - n - 1) : NULL;
	if (r == 0 && !terms)
		r = seam_err_no_memory(err);
	if (r == 0)
		r = set_all_terms(&list->items[first], list->n - first,
					 terms, err);
	free(terms);
	return r;
}

static int add_one(struct seam_event_list *list, const char *text,
		   struct seam_err *err)
{
	const struct event_kind *kind = kind_of(text);
	const char *colon = strchr(text, ':');
	size_t n = strcspn(text, "/");
	bool is_tracepoint = colon && colon < text + n &&
			     !is_named(text, (size_t)(colon - text));
	struct seam_event *event;

	if (!kind && text[n] && (is_tracepoint || is_named(text, n)))
		return add_with_terms(list, text, err);
	if (!kind && !text[n] && is_tracepoint)
		return seam_tracepoint_add(list, text, err);
	event = seam_event_list_push(list);
	if (!event)
		return seam_err_no_memory(err);
	return kind ? kind->parse(event, text, err) :
	       text[n] ? seam_pmu_event_parse(event, text, err) :
	       seam_event_parse(event, text, err);
}

/* Bytes of the first item: up to its comma, or to the end. */
static size_t item_length(const char *text)
{
	bool in_slashes = false, has_terms = text[0] != '{' && !kind_of(text);
	size_t n = 0;

	/* commas between slashes divide the terms of one event */
	for (; text[n] && (text[n] != ',' || in_slashes); n++)
		if (text[n] == '/' && has_terms)
			in_slashes = !in_slashes;
	return n;
}

/* End the first @n bytes of *@text, and go on after their comma, or to NULL. */
static char *cut_off(char **text, size_t n)
{
	char *part = *text;

	*text = part[n] == ',' ? part + n + 1 : NULL;
	part[n] = '\0';
	return part;
}

/* Events with commas in between; @text is changed. */
static int add_items(struct seam_event_list *list, char *text,
		     struct seam_err *err)
{
	int r = 0;

	while (r == 0 && text)
		r = add_one(list, cut_off(&text, item_length(text)), err);
	return r;
}

/*
 * The events from @first on are a group, scheduled together; @suffix, the text
 * after the brace, is "" or ":uS".  With S only the first event samples, and
 * events with a period or a frequency of their own; a sample has the counts of
 * all.
 */
static int make_group(struct seam_event_list *list, size_t first,
		      const char *suffix, struct seam_err *err)
{
	bool reads = strchr(suffix, 'S');
	char modifiers[32];
	size_t n = 0;
	int r = 0;

	for (const char *c = suffix + (*suffix == ':'); *c; c++)
		if (*c != 'S')
			modifiers[n++] = *c;
	modifiers[n] = '\0';
	for (size_t i = first; r == 0 && i < list->n; i++) {
		struct seam_event *event = &list->items[i];
		bool samples = i == first || event->period ||
			       event->frequency_hz;
		unsigned int no_guest = event->attr.exclude_guest;

		r = seam_event_modify(event, modifiers, err);
		if (!event->has_kvm_modifier)
			event->attr.exclude_guest = no_guest & 1;
		event->leader = (int)first;
		event->read_by_leader = reads && !samples;
		if (reads && samples) {
			event->attr.sample_type |= PERF_SAMPLE_READ;
			event->attr.read_format |= PERF_FORMAT_GROUP;
		}
	}
	return r;
}

/* Bytes of the group at @text, or of the items before the next group. */
static size_t part_length(const char *text)
{
	const char *brace = strchr(text, *text == '{' ? '}' : '{');

	if (!brace)
		return strlen(text);
	if (*text == '{')
		return (size_t)(brace - text) + strcspn(brace, ",");
	return (size_t)(brace - text) - (brace > text && brace[-1] == ',');
}

int seam_event_list_add(struct seam_event_list *list, const char *text,
			struct seam_err *err)
{
	char *copy = strdup(text), *rest = copy;
	int r = copy ? 0 : seam_err_no_memory(err);

	while (r == 0 && rest) {
		char *part = cut_off(&rest, part_length(rest));

		size_t first = list->n;
		char *end = strchr(part, '}');

		if (*part != '{') {
			r = add_items(list, part, err);
			continue;
		}
		/* "{a,b}" or "{a,b}:uS" */
		if (!end || (end[1] && (end[1] != ':' || !end[2])) ||
		    strlen(end) > 32)
			r = seam_err_set(err, -EINVAL, "a group of events is "
				"written {a,b}, {a,b}:u or {a,b}:S");
		else
			*end = '\0';
		if (r == 0)
			r = add_items(list, part + 1, err);
		if (r == 0)
			r = make_group(list, first, end + 1, err);
	}
	free(copy);
	return r;
}
