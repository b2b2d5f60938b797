/* SPDX-License-Identifier: MIT */
/*
 * profile.h - threads, code and samples of a recording of any kind
 *
 * The interface between the two halves of the program: loaders fill it
 * (load.h), reports and exports read it.
 *
 * Tables of structs that refer to each other by 32-bit indices ("ids"); samples
 * are columns, because a report reads few of their fields.  Calls are not stored:
 * a track reads them again for a timeline (timeline.h).  Times are
 * CLOCK_MONOTONIC nanoseconds, unless has_other_clock is set.
 *
 * Ownership: the profile owns all of it; seam_profile_fini() frees it.
 * Threads: filled by one thread, then read by any number.
 */
#pragma once

#include "base/base.h"
#include "base/err.h"
#include "base/strings.h"
#include "wire/guest/guest_decode.h"
#include "wire/stack_counts.h"
#include "wire/vmstate.h"

struct seam_profile;

enum seam_module_kind {
	SEAM_MODULE_UNKNOWN,	/* nothing is mapped: module 0 */
	SEAM_MODULE_FILE,	/* a file: ELF, or data */
	SEAM_MODULE_VDSO,
	SEAM_MODULE_ANON,	/* memory without a file */
	SEAM_MODULE_JIT,	/* code that a jitdump or perf map describes */
	SEAM_MODULE_KERNEL,	/* the kernel's text and its BPF programs */
	SEAM_MODULE_KERNEL_MODULE,
	SEAM_MODULE_GUEST,	/* a chunk of a guest's source */
};

/* Equal path, kind and build id, or inode without one, are one module. */
struct seam_profile_module {
	uint32_t path;		/* string: "/usr/lib/libc.so.6", "[vdso]" */
	uint32_t first;		/* the first module with this path */
	int32_t pid;		/* of a process that mapped it, or -1 */
	uint8_t kind;		/* enum seam_module_kind */
	/* which file is the recorded one: enum seam_evidence (symbols.h) */
	uint8_t evidence;
	uint8_t build_id_size;	/* bytes; 0: not recorded */
	uint8_t build_id[20];
	uint64_t ino, ino_generation;	/* 0: not recorded */
	uint64_t mapped_ns;	/* UTC of its first mapping; 0: not known */
	uint64_t content_id;	/* symbol/elf/build_id.h; 0: not recorded */
	uint64_t text_addr;	/* of the kernel's _text; 0: not known */
};

/* A part of a module in the memory of a process. */
struct seam_mapping {
	uint64_t start_addr, size;
	uint64_t pgoff;		/* bytes of the file before it */
	uint64_t from_ns;	/* 0: before the recording */
	uint32_t module;
	uint32_t function;	/* string: the only function in it, of a
				 * KSYMBOL record; 0: any */
	int32_t pid;		/* -1: the kernel */
	bool is_executable;	/* as it was recorded */
	bool is_used;		/* a sample has an address in it */
};

/* A piece of JIT code that has samples. */
struct seam_code_object {
	uint32_t name;		/* string: as the JIT wrote it */
	uint32_t dump;		/* string: path of the jitdump or perf map */
	uint32_t object;	/* for seam_jit_code_object() */
	int32_t pid;		/* the dump's process */
	uint64_t index;		/* in the dump: code_index; 0 of a perf map */
	uint64_t start_addr;	/* where it was loaded */
	uint64_t size;		/* bytes */
	const uint8_t *code;	/* as long as the profile; NULL: not known */
	uint64_t from_ns;	/* when it was loaded; 0: not known */
};

/*
 * The id of an equal module, added if new; @first is not used.  Of equal ones
 * the earliest mapped_ns is kept.  SEAM_NONE when memory ran out.
 */
uint32_t seam_profile_module(struct seam_profile *profile,
			     const struct seam_profile_module *module);

/* The kind of module that a mapping with this file name belongs to. */
enum seam_module_kind seam_module_kind_of(const char *filename);

enum { SEAM_MODULE_NAME_MAX = 255 };	/* as of file names */

/*
 * The name inside "[libc.so.6+0x1234]": libc.so.6 for "/usr/lib/libc.so.6",
 * vdso for "[vdso]".  Returns the first of @*size bytes inside @path.
 */
const char *seam_module_name(const char *path, size_t *size);

/* From the kernel up to the program that a VM interprets (guest). */
enum seam_layer {
	SEAM_LAYER_KERNEL,
	SEAM_LAYER_NATIVE,
	SEAM_LAYER_JIT,
	SEAM_LAYER_GUEST,
	SEAM_N_LAYERS,
};

/* "kernel", "native", "jit", "guest", in reports, JSON and --layer; "unknown". */
extern const char *const seam_layer_names[SEAM_N_LAYERS + 1];

/*
 * A function: a row of a report.  An address without a symbol is a function of
 * its own, named "[module+0x1234]".
 */
struct seam_function {
	uint32_t name;		/* string: demangled, for people */
	uint32_t module;	/* the first one with its path */
	uint8_t layer;		/* enum seam_layer */
	bool is_named;		/* false: the name was made from the address */
	/* JIT: its address may have had other code when it was sampled */
	bool is_ambiguous;
};

/* A place in a function.  Equal places are one frame. */
struct seam_frame {
	uint32_t function;
	uint32_t file;		/* string: source file, 0 when not known */
	uint32_t line;		/* 0 when not known */
	uint32_t module;	/* 0: nothing was mapped */
	uint32_t code;		/* JIT: code object; SEAM_NONE: not known */
	bool is_inlined;	/* its code is part of its caller's */
	/*
	 * Bytes in the module's file; of the kernel, of JIT code (where it was
	 * loaded) and of memory without a file, the address.
	 */
	uint64_t addr;
};

/* A node of the prefix tree; stack 0 is the empty stack. */
struct seam_stack {
	uint32_t parent;	/* stack; SEAM_NONE for stack 0 */
	uint32_t frame;		/* SEAM_NONE for stack 0 */
};

struct seam_process {
	int32_t pid;
	uint32_t name;		/* string: the last name of its first thread */
	uint64_t start_ns;	/* 0: before the recording */
	uint64_t end_ns;	/* UINT64_MAX: after the recording */
	uint32_t parent;	/* process; SEAM_NONE: no fork was recorded */
	/* strings, of batches of a fleet (model/fleet): 0: not known */
	uint32_t service, host;
};

struct seam_thread {
	uint32_t process;
	int32_t tid;
	uint32_t name;		/* string: its last name */
	uint64_t start_ns;
	uint64_t end_ns;
};

/*
 * What a thread did, by its switches (--off-cpu): from its first record to its
 * end, or that of the recording.
 */
struct seam_thread_time {
	uint64_t running_ns;
	uint64_t blocked_ns;
	uint64_t preempted_ns;	/* it could run, and had no CPU */
	uint64_t unknown_ns;	/* records are missing */
};

/* Where the stack of a wait is from. */
enum seam_wait_stack {
	SEAM_WAIT_STACK_RECORDED,	/* when the thread lost its CPU */
	SEAM_WAIT_STACK_READ,		/* while it waited, from outside */
	SEAM_WAIT_STACK_UNKNOWN,
	SEAM_WAIT_STACK_SHORT,		/* of short waits, which are added up */
	SEAM_N_WAIT_STACKS,
};

/*
 * Waits of an event; the open ones began before the recording, or lasted until
 * it ended.
 */
struct seam_wait_counts {
	uint64_t n[SEAM_N_WAIT_STACKS], ns[SEAM_N_WAIT_STACKS];
	uint64_t n_open, open_ns;
};

/* What a sample counts. */
enum seam_unit {
	SEAM_UNIT_COUNT,	/* occurrences of an event */
	SEAM_UNIT_NS,		/* nanoseconds of a clock */
};

struct seam_profile_event {
	uint32_t name;		/* string: "cpu-clock", "sched:sched_switch" */
	uint8_t unit;		/* enum seam_unit of its samples' weights */
	bool is_measured;	/* its samples are calls, none left out */
	/*
	 * Its samples are waits: begin at time_ns, last weight ns.  Short ones
	 * of a thread are one sample, which counts them and has the sum.
	 */
	bool is_wait;
	bool is_preempted;	/* waits for a CPU, not for something else */
	struct seam_wait_counts waits;
	uint64_t n_samples;	/* their counts added up */
	uint64_t n_lost;	/* records of this event that were lost */
};

/*
 * Samples, in the order of their file.  Columns that exist only where needed are
 * read with seam_samples_weight(), _count(), _comm(), _vmstate(), _wait(),
 * _waker(), _cgroup() and _running().
 */
struct seam_samples {
	size_t n, cap;
	uint64_t *time_ns;
	uint32_t *thread;
	uint32_t *stack;
	uint16_t *cpu;		/* UINT16_MAX when not known */
	uint16_t *event;
	uint64_t *weight;	/* NULL: all are same_weight */
	uint64_t same_weight;
	uint64_t *count;	/* NULL: each is one */
	uint32_t *comm;		/* string; NULL: all are their thread's name */
	uint8_t *vmstate;	/* enum seam_vmstate; NULL: no sample has one */
	uint8_t *end;		/* enum seam_stack_end; NULL: no stack was */
				/* unwound, as far as is known */
	uint32_t *wait;		/* string: why it waited; NULL: no waits */
	uint32_t *waker;	/* string: who woke it; NULL: of no sample */
	uint32_t *cgroup;	/* string: its path; NULL: of no sample */
	/* threads that ran then; 0: not known; NULL: of no sample */
	uint16_t *running;
	/* number of its SAMPLE record; NULL: not loaded by_record */
	uint32_t *record;
};

/*
 * The calls of a thread in one log, and what the program wrote between them.
 * @reader reads them from @source.
 */
struct seam_track {
	uint32_t thread;
	uint32_t event;		/* the event that its calls are added up to */
	uint64_t start_ns;	/* nothing in it is earlier */
	const struct seam_track_reader *reader;	/* timeline.h */
	void *source;		/* the reader's own; the profile owns it */
	size_t stream;		/* likewise: which part of the source */
};

/* An event of a thread that is neither a sample nor in a track. */
struct seam_profile_mark {
	uint64_t time_ns;
	uint32_t thread;	/* the one that ran then */
	uint32_t event;		/* SEAM_NONE: of no event */
	uint8_t kind;		/* enum seam_item_kind (timeline.h) */
	uint64_t value;		/* LOSS: records */
};

/* An object that is freed with the profile. */
struct seam_owned {
	void *object;
	void (*free)(void *object);
};

/* Data that was produced and is missing here.  See invariant 5. */
struct seam_loss {
	const char *cause;	/* literal: "ring full", "record damaged" */
	uint32_t source;	/* string: event, file or section */
	uint64_t records;	/* how many; 0 when it cannot be known */
	uint64_t bytes;		/* of a file that could not be read; or 0 */
};

/* Strings, each once. */
struct seam_lines {
	uint32_t *items;
	size_t n, cap;
	struct seam_index index;
};

struct seam_profile {
	struct seam_strings strings;
	SEAM_ARRAY(struct seam_process) processes;
	SEAM_ARRAY(struct seam_thread) threads;
	/* by thread; empty: switches were not recorded */
	SEAM_ARRAY(struct seam_thread_time) thread_times;
	SEAM_ARRAY(struct seam_profile_event) events;
	SEAM_ARRAY(struct seam_profile_module) modules;
	SEAM_ARRAY(struct seam_mapping) mappings;
	SEAM_ARRAY(struct seam_code_object) code_objects;
	SEAM_ARRAY(struct seam_function) functions;
	SEAM_ARRAY(struct seam_frame) frames;
	SEAM_ARRAY(struct seam_stack) stacks;
	SEAM_ARRAY(struct seam_loss) losses;
	struct seam_lines notes;	/* notes for the reader */
	struct seam_lines details;	/* notes for --verbose */
	struct seam_samples samples;
	SEAM_ARRAY(struct seam_track) tracks;
	SEAM_ARRAY(struct seam_profile_mark) marks;
	SEAM_ARRAY(struct seam_owned) owned;
	/*
	 * Of user stacks that were unwound.  With samples.end, which has how
	 * each ended, no more than is not in samples.
	 */
	struct seam_stack_counts stack_counts;
	struct seam_guest_counts guest_counts;	/* samples with guest records */
	uint64_t start_ns, end_ns;	/* first and last time of the data */
	bool has_other_clock;		/* times are not CLOCK_MONOTONIC */
	/* calls are at most so far from samples of their moment; 0: unknown */
	uint64_t clock_skew_ns;
	int64_t utc_ns;			/* UTC minus a time; 0: not known */
	uint32_t command;		/* string: what was recorded */

	uint32_t bundle;		/* string: its folder; 0: a lone file */
	uint32_t boot_id;		/* string; 0: not known */
	uint32_t kernel;		/* module; 0: not known */
	uint32_t elf_machine;		/* of the machine; EM_NONE: not known */
	uint32_t n_cpus;		/* of the machine; 0: not known */
	/*
	 * The JIT code of all processes (model/jit/jit_sources.h), which owns
	 * the bytes of code objects; NULL: none was looked for.
	 */
	struct seam_jit_sources *jit;
	/* The stream that it was read from (load_sysprof.h); NULL: none. */
	const struct seam_sysprof_source *sysprof;

	/* look-up, while the profile is filled */
	struct seam_index module_index;
	struct seam_index function_index;
	struct seam_index frame_index;
	struct seam_index stack_index;
};

/* An empty profile, with stack 0 and module 0.  0 or -ENOMEM. */
int seam_profile_init(struct seam_profile *profile);
void seam_profile_fini(struct seam_profile *profile);

/* Have seam_profile_fini() free @object.  -ENOMEM: @object is freed already. */
int seam_profile_own(struct seam_profile *profile, void *object,
		     void (*free_object)(void *object));

/* Room for @extra more samples in all columns; false when memory ran out. */
bool seam_samples_reserve(struct seam_samples *samples, size_t extra);

/*
 * Set a value of sample @i, which may be n if there is room; the samples before
 * have been set, or have none.  False when memory ran out.
 */
bool seam_samples_set_count(struct seam_samples *samples, size_t i,
			    uint64_t count);
bool seam_samples_set_record(struct seam_samples *samples, size_t i,
			     uint32_t record);
bool seam_samples_set_vmstate(struct seam_samples *samples, size_t i,
			      enum seam_vmstate state);
bool seam_samples_set_end(struct seam_samples *samples, size_t i,
			  enum seam_stack_end end);
bool seam_samples_set_wait(struct seam_samples *samples, size_t i,
			   uint32_t reason);
bool seam_samples_set_waker(struct seam_samples *samples, size_t i,
			    uint32_t waker);
bool seam_samples_set_cgroup(struct seam_samples *samples, size_t i,
			     uint32_t cgroup);
bool seam_samples_set_running(struct seam_samples *samples, size_t i,
			      uint16_t n_running);

/* Sample @to becomes what sample @from is. */
void seam_samples_move(struct seam_samples *samples, size_t to, size_t from);

/* For the functions below: the first value that differs needs a column. */
bool seam_samples_split_weight(struct seam_samples *samples, size_t i,
			       uint64_t weight);
bool seam_samples_split_comm(struct seam_profile *profile, size_t i,
			     uint32_t comm);
void seam_samples_fini(struct seam_samples *samples);

/* The id of an equal element, added if new; SEAM_NONE: no memory, or full. */
uint32_t seam_profile_function(struct seam_profile *profile,
			       const struct seam_function *function);
uint32_t seam_profile_frame(struct seam_profile *profile,
			    const struct seam_frame *frame);
uint32_t seam_profile_stack(struct seam_profile *profile, uint32_t parent,
			    uint32_t frame);

/* The frame of a word in brackets that is no code, such as "[joined]". */
uint32_t seam_profile_marker(struct seam_profile *profile, const char *text);

/* Count a loss; equal cause and source add up.  Without memory, nothing. */
void seam_profile_lost(struct seam_profile *profile, const char *cause,
		       uint32_t source, uint64_t records, uint64_t bytes);

enum { SEAM_LOSS_TEXT = 400 };

/* "12 records, 96 bytes, ring full (cpu-clock)".  Returns @text. */
const char *seam_profile_loss_text(const struct seam_profile *profile,
				   const struct seam_loss *loss,
				   char text[SEAM_LOSS_TEXT]);

/* Add a note for the reader; each distinct text once. */
__attribute__((format(printf, 2, 3)))
void seam_profile_note(struct seam_profile *profile, const char *fmt, ...);

/* The same for --verbose and for programs. */
__attribute__((format(printf, 2, 3)))
void seam_profile_detail(struct seam_profile *profile, const char *fmt, ...);

uint64_t seam_profile_n_samples(const struct seam_profile *profile);
/* "sample", "call" or "wait". */
const char *seam_event_noun(const struct seam_profile_event *event);
/* "sample", or "call" where nothing was sampled. */
const char *seam_profile_noun(const struct seam_profile *profile);

uint64_t seam_profile_n_lost(const struct seam_profile *profile);

/* The weight of sample @i: its period. */
static inline uint64_t seam_samples_weight(const struct seam_samples *samples,
					   size_t i)
{
	return samples->weight ? samples->weight[i] : samples->same_weight;
}

/* How many samples, or calls, sample @i represents. */
static inline uint64_t seam_samples_count(const struct seam_samples *samples,
					  size_t i)
{
	return samples->count ? samples->count[i] : 1;
}

/* What the VM did at sample @i; SEAM_VMSTATE_NONE: not known, or no VM. */
static inline uint8_t seam_samples_vmstate(const struct seam_samples *samples,
					   size_t i)
{
	return samples->vmstate ? samples->vmstate[i] : SEAM_VMSTATE_NONE;
}

/* Why the thread of sample @i waited: a string; 0: not known, or no wait. */
static inline uint32_t seam_samples_wait(const struct seam_samples *samples,
					 size_t i)
{
	return samples->wait ? samples->wait[i] : 0;
}

/* Who ended the wait of sample @i: a string; 0: not known, or no wait. */
static inline uint32_t seam_samples_waker(const struct seam_samples *samples,
					  size_t i)
{
	return samples->waker ? samples->waker[i] : 0;
}

/* The cgroup of the thread of sample @i: a string; 0: not known. */
static inline uint32_t seam_samples_cgroup(const struct seam_samples *samples,
					   size_t i)
{
	return samples->cgroup ? samples->cgroup[i] : 0;
}

/* How many threads ran at sample @i; 0: not known. */
static inline uint16_t seam_samples_running(const struct seam_samples *samples,
					    size_t i)
{
	return samples->running ? samples->running[i] : 0;
}

/* The name of the thread of sample @i at its time: a string. */
static inline uint32_t seam_samples_comm(const struct seam_profile *profile,
					 size_t i)
{
	const struct seam_samples *samples = &profile->samples;

	return samples->comm ? samples->comm[i] :
	       profile->threads.items[samples->thread[i]].name;
}

/* Set the weight of sample @i, or the name of its thread (0: the last one). */
static inline bool seam_samples_set_weight(struct seam_samples *samples,
					   size_t i, uint64_t weight)
{
	if (samples->weight)
		samples->weight[i] = weight;
	else if (i == 0)
		samples->same_weight = weight;
	else if (weight != samples->same_weight)
		return seam_samples_split_weight(samples, i, weight);
	return true;
}

static inline bool seam_samples_set_comm(struct seam_profile *profile,
					 size_t i, uint32_t comm)
{
	struct seam_samples *samples = &profile->samples;
	uint32_t name = profile->threads.items[samples->thread[i]].name;

	if (samples->comm)
		samples->comm[i] = comm ? comm : name;
	else if (comm && comm != name)
		return seam_samples_split_comm(profile, i, comm);
	return true;
}

static inline const char *seam_profile_text(const struct seam_profile *profile,
					    uint32_t string)
{
	return seam_strings_get(&profile->strings, string);
}

/* The function of frame @frame, and of the leaf of stack @stack, not 0. */
static inline const struct seam_function *
seam_profile_function_of(const struct seam_profile *profile, uint32_t frame)
{
	return &profile->functions.items[profile->frames.items[frame].function];
}

static inline const struct seam_function *
seam_profile_leaf(const struct seam_profile *profile, uint32_t stack)
{
	return seam_profile_function_of(profile,
					profile->stacks.items[stack].frame);
}

/* The path of module @module. */
static inline const char *
seam_profile_path(const struct seam_profile *profile, uint32_t module)
{
	return seam_profile_text(profile, profile->modules.items[module].path);
}
