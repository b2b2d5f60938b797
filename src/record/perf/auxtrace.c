/* SPDX-License-Identifier: MIT */
/* auxtrace.c - AUXTRACE records, their data, their index; see auxtrace.h */
#include "record/perf/auxtrace.h"

#include "base/clock.h"
#include "record/events/event_kinds.h"
#include "wire/perf/perf_record.h"

#include <stdlib.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

enum { CPUID_TSC = 0x15 };	/* Source: Intel SDM, CPUID leaf 15H */

/* PERF_RECORD_AUXTRACE; its AUX data follow it. */
struct auxtrace {
	struct seam_perf_header header;
	struct seam_perf_auxtrace fields;
};

_Static_assert(sizeof(struct auxtrace) == 48, "as in perf's util/event.h");

void seam_auxtrace_count(struct seam_counts *losses,
			 const struct seam_perf_aux *record)
{
	uint64_t flags = record->flags, *n = losses->n;

	n[SEAM_COUNT_AUX_TRUNCATED] += !!(flags & PERF_AUX_FLAG_TRUNCATED);
	n[SEAM_COUNT_AUX_PARTIAL] += !!(flags & PERF_AUX_FLAG_PARTIAL);
	n[SEAM_COUNT_AUX_COLLISION] += !!(flags & PERF_AUX_FLAG_COLLISION);
}

/* Append @span, which begins at @offset of the AUX data. */
static int append(struct seam_data_file *file,
		  const struct seam_source_ring *ring, uint32_t idx,
		  const struct seam_ring_span *span, uint64_t offset,
		  struct seam_err *err)
{
	static const uint8_t zeros[8];
	size_t bytes = seam_ring_span_bytes(span);
	size_t padding = -bytes & 7;
	struct auxtrace record = {
		.header = { .type = SEAM_PERF_AUXTRACE,
			    .size = sizeof(record) },
		.fields = {
			.size = bytes + padding,
			.aux_offset = offset,
			/* different in records at one offset */
			.reference = seam_clock_ns(),
			.idx = idx,
			.tid = ring->tid,
			.cpu = (uint32_t)ring->cpu,
		},
	};
	struct iovec pieces[] = {
		{ &record, sizeof(record) },
		{ (void *)(uintptr_t)span->part[0], span->size[0] },
		{ (void *)(uintptr_t)span->part[1], span->size[1] },
		{ (void *)(uintptr_t)zeros, padding },
	};
	struct seam_auxtrace_entry entry = {
		.offset = file->writer.data_offset + file->writer.data_bytes,
		.size = sizeof(record),
	};
	int r;

	if (!SEAM_ARRAY_ADD(&file->auxtraces, entry))
		return seam_err_no_memory(err);
	r = seam_perf_writer_append(&file->writer, pieces,
				    SEAM_ARRAY_SIZE(pieces), err);
	if (r < 0)
		file->auxtraces.n--;
	else
		file->counts.n_aux_bytes += bytes;
	return r;
}

ssize_t seam_auxtrace_drain(struct seam_data_file *file,
			    struct seam_source_ring *ring, uint32_t idx,
			    bool is_last, struct seam_err *err)
{
	struct seam_ring_span span;
	size_t bytes = seam_ring_aux_peek(&ring->aux, &span), second;
	size_t left = is_last ? 0 : bytes & 7;
	int r;

	second = left < span.size[1] ? left : span.size[1];
	span.size[1] -= second;
	span.size[0] -= left - second;
	span.end -= left;
	bytes -= left;
	if (bytes == 0)
		return 0;
	r = append(file, ring, idx, &span, span.end - bytes, err);
	seam_ring_aux_advance(&ring->aux, &span);
	return r < 0 ? r : (ssize_t)bytes;
}

ssize_t seam_auxtrace_snapshot(struct seam_data_file *file,
			       struct seam_source_ring *ring, uint32_t idx,
			       uint64_t max_bytes, struct seam_err *err)
{
	struct seam_ring_aux_snapshot copy = { 0 };
	int r = seam_ring_aux_snapshot_init(&copy, &ring->aux, err);
	size_t bytes = 0;

	if (r == 0)
		bytes = seam_ring_aux_snapshot(&ring->aux, &copy);
	if (bytes) {
		size_t left_out = max_bytes && bytes > max_bytes ?
				  bytes - max_bytes : 0;
		struct seam_ring_span span = {
			.part = { copy.data + left_out, copy.data },
			.size = { bytes -= left_out, 0 },
		};

		r = append(file, ring, idx, &span, copy.offset + left_out, err);
	}
	seam_ring_aux_snapshot_fini(&copy);
	return r < 0 ? r : (ssize_t)bytes;
}

/* ---- AUXTRACE_INFO ---- */

/*
 * The bytes in an AUX buffer cannot be decoded alone: a decoder needs the
 * parameters of the clock, the packets that were enabled and the registers of
 * the trace unit.  perf's decoders read these from one record at the head of
 * the file, AUXTRACE_INFO, whose words differ from PMU to PMU.
 *
 * Source: tools/perf/util/intel-pt.h, intel-bts.h, cs-etm.h, arm-spe.h,
 * hisi-ptt.h and auxtrace.h of Linux 6.1.
 */

/*
 * Conversion of the CPU's counter to ns of the kernel's clock.
 * Source: linux/perf_event.h, cap_user_time_zero.
 */
struct aux_clock {
	bool is_known;
	uint16_t shift;
	uint32_t mult;
	uint64_t zero;		/* ns */
};

/* What AUXTRACE_INFO is made from.  Everything is borrowed. */
struct aux_facts {
	const struct seam_event *event;
	const struct seam_number_list *cpus;	/* that are traced */
	struct aux_clock clock;
	bool snapshot_mode;	/* the newest bytes are copied on request */
	bool by_cpu;		/* a buffer for each CPU, not each thread */
	bool system_wide;
};

struct aux_words {
	SEAM_ARRAY(uint64_t) list;
	bool no_memory;
};

/*
 * The kernel may write the page at any time; it increments the lock before and
 * after.  Source: struct perf_event_mmap_page, linux/perf_event.h.
 */
static struct aux_clock read_clock(const void *control_page)
{
	enum { MAX_TRIES = 1000 };
	const volatile struct perf_event_mmap_page *page = control_page;
	struct aux_clock clock = { 0 };

	for (int i = 0; i < MAX_TRIES; i++) {
		uint32_t lock = page->lock;

		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		clock = (struct aux_clock) {
			.is_known = page->cap_user_time_zero &&
				    page->time_mult,
			.shift = page->time_shift,
			.mult = page->time_mult,
			.zero = page->time_zero,
		};
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (page->lock == lock && !(lock & 1))
			break;
		clock.is_known = false;
	}
	return clock.is_known ? clock : (struct aux_clock) { 0 };
}

static void put(struct aux_words *words, uint64_t word)
{
	words->no_memory |= !SEAM_ARRAY_ADD(&words->list, word);
}

static void put_clock(struct aux_words *words, const struct aux_clock *clock)
{
	put(words, clock->shift);
	put(words, clock->mult);
	put(words, clock->zero);
	put(words, clock->is_known);
}

/* attr.config with @term set to @value; 0: no such term. */
static uint64_t config_bits(const char *pmu, const char *term, uint64_t value)
{
	struct perf_event_attr attr = { 0 };
	char format[1024], path[128];

	snprintf(path, sizeof(path), "format/%s", term);
	seam_pmu_text(pmu, path, format, sizeof(format));
	seam_pmu_set_bits(&attr, format, value);
	return attr.config;
}

static void put_pt(struct aux_words *words, const char *pmu,
		   const struct aux_facts *facts)
{
	uint64_t tsc = config_bits(pmu, "tsc", 1);
	bool has_switches = facts->event->attr.config & tsc && facts->by_cpu;
	unsigned int denominator = 0, numerator = 0;
#if defined(__x86_64__) || defined(__i386__)
	unsigned int ecx, edx;

	__get_cpuid(CPUID_TSC, &denominator, &numerator, &ecx, &edx);
#endif
	put(words, facts->event->attr.type);
	put_clock(words, &facts->clock);
	put(words, tsc);
	put(words, config_bits(pmu, "noretcomp", 1));
	/*
	 * Which context switches the file has: none, SWITCH records of the
	 * traced threads, or SWITCH_CPU_WIDE records of all threads.
	 * Source: values 0, 2 and 3 of have_sched_switch in intel-pt.c.
	 */
	put(words, !has_switches ? 0 : facts->system_wide ? 3 : 2);
	put(words, facts->snapshot_mode);
	put(words, facts->by_cpu);
	put(words, config_bits(pmu, "mtc", 1));
	put(words, config_bits(pmu, "mtc_period", UINT64_MAX));
	/* the ratio of the TSC to the core crystal clock */
	put(words, numerator);
	put(words, denominator);
	put(words, config_bits(pmu, "cyc", 1));
	put(words, seam_pmu_number(pmu, "max_nonturbo_ratio", 10, 0));
	put(words, 0);		/* bytes of an address filter */
	put(words, seam_pmu_number(pmu, "caps/event_trace", 10, 0));
}

/* A register from the driver's file, in hexadecimal; 0: no such file. */
static uint64_t etm_register(const char *pmu, int cpu, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "cpu%d/%s", cpu, name);
	return seam_pmu_number(pmu, path, 16, 0);
}

/*
 * Convert options of the event to the value of TRCCONFIGR.
 * Source: ETM_OPT_* and ETM4_CFG_BIT_*, linux/coresight-pmu.h.
 */
static uint64_t etm4_config(uint64_t options)
{
	static const struct { uint8_t option; uint64_t config; } table[] = {
		{ 8, 1 << 3 },			/* branch broadcast */
		{ 12, 1 << 4 },			/* cycle counts */
		{ 14, 1 << 6 },			/* context id */
		{ 15, 1 << 7 | 1 << 15 },	/* of the virtual machine */
		{ 28, 1 << 11 },		/* timestamps */
		{ 29, 1 << 12 },		/* return stack */
	};
	uint64_t config = 0;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(table); i++)
		if (options >> table[i].option & 1)
			config |= table[i].config;
	return config;
}

/* The trace unit of @cpu: an ETMv4 or ETE, or an ETMv3. */
static void put_unit(struct aux_words *words, const char *pmu, int cpu,
		     uint64_t options)
{
	static const char *const registers[] = {
		"trcidr/trcidr0", "trcidr/trcidr1", "trcidr/trcidr2",
		"trcidr/trcidr8", "mgmt/trcauthstatus", "mgmt/trcdevarch",
		"mgmt/etmccer", "mgmt/etmidr",
	};
	enum { DEVARCH = 5, N_V4 = 6, N = SEAM_ARRAY_SIZE(registers) };
	uint64_t values[N];
	size_t first, end;
	bool is_v4, is_ete;

	for (size_t i = 0; i < N; i++)
		values[i] = etm_register(pmu, cpu, registers[i]);
	is_v4 = values[0];
	/* Source: Arm ETE, TRCDEVARCH: ARCHVER 5, ARCHPART 0xa13 */
	is_ete = is_v4 && (values[DEVARCH] & 0xffff) == 0x5a13;
	first = is_v4 ? 0 : N_V4;
	end = !is_v4 ? N : is_ete ? N_V4 : DEVARCH;
	put(words, is_ete ? 0x5050505050505050 : is_v4 ? 0x4040404040404040 :
		   0x3030303030303030);
	put(words, (uint64_t)cpu);
	put(words, 2 + end - first);	/* words that follow */
	put(words, is_v4 ? etm4_config(options) : options);
	/* the trace id, as kernels before 6.2 assign it */
	put(words, 0x10 + 2 * (uint64_t)cpu);
	for (size_t i = first; i < end; i++)
		put(words, values[i]);
}

/* Append the words of the kind; none for one that has no decoder. */
static void put_words(struct aux_words *words, const struct aux_facts *facts)
{
	const char *pmu = facts->event->kernel_name;

	switch (facts->event->aux_kind) {
	case SEAM_AUX_INTEL_PT:
		put_pt(words, pmu, facts);
		break;
	case SEAM_AUX_INTEL_BTS:
		put(words, facts->event->attr.type);
		put_clock(words, &facts->clock);
		put(words, facts->snapshot_mode);
		break;
	case SEAM_AUX_CS_ETM:
		put(words, 1);	/* the version with a count of each CPU */
		put(words, (uint64_t)facts->event->attr.type << 32 |
			   facts->cpus->n);
		put(words, facts->snapshot_mode);
		for (size_t i = 0; i < facts->cpus->n; i++)
			put_unit(words, pmu, facts->cpus->items[i],
				 facts->event->attr.config);
		break;
	case SEAM_AUX_ARM_SPE:
		put(words, facts->event->attr.type);
		put(words, facts->by_cpu);
		break;
	case SEAM_AUX_HISI_PTT:
		put(words, facts->event->attr.type);
		break;
	default:
		break;
	}
}

void seam_auxtrace_describe(const struct seam_sources *s,
			    struct seam_synth *synth)
{
	struct aux_words words = { 0 };
	struct aux_facts facts = {
		.cpus = s->sampled.n ? &s->sampled : &s->cpus,
		.snapshot_mode = s->aux_snapshots,
		.by_cpu = !s->per_thread || s->sampled.n,
		.system_wide = seam_sources_is_system_wide(s),
	};

	for (size_t e = s->n_events; e-- > 0; )
		if (s->events[e].aux_kind)
			facts.event = &s->events[e];
	if (!facts.event)
		return;
	/* events with AUX buffers use the kernel's clock: any ring has it */
	for (size_t i = 0; i < s->rings.n && !facts.clock.is_known; i++)
		if (s->rings.items[i].aux.size)
			facts.clock =
				read_clock(s->rings.items[i].ring.control);
	if (facts.clock.is_known) {
		const uint64_t conversion[] = {
			facts.clock.shift, facts.clock.mult, facts.clock.zero,
		};

		seam_synth_words(synth, SEAM_PERF_TIME_CONV, conversion,
				 SEAM_ARRAY_SIZE(conversion));
	}
	put(&words, facts.event->aux_kind);
	put_words(&words, &facts);
	seam_synth_words(synth, SEAM_PERF_AUXTRACE_INFO, words.list.items,
			 words.list.n);
	synth->no_memory |= words.no_memory;
	free(words.list.items);
}

int seam_auxtrace_snapshot_all(struct seam_sources *s,
			       struct seam_data_file *file,
			       struct seam_err *err)
{
	ssize_t r;

	seam_sources_hold_aux(s, true);
	for (size_t i = 0; i < s->rings.n; i++)
		if (s->rings.items[i].aux.size &&
		    (r = seam_auxtrace_snapshot(file, &s->rings.items[i],
						(uint32_t)i,
						s->aux_snapshot_bytes,
						err)) < 0)
			return (int)r;
	return 0;
}
