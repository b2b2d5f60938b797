/* SPDX-License-Identifier: MIT */
/*
 * profile.ts - the recording that a page holds, as tables of columns
 *
 * decode.ts fills it from the payload of the page (doc/formats/page.md); all
 * views read it, and nothing changes it.  Rows refer to each other by index;
 * NONE is no row.  Times are nanoseconds since meta.startNs, exact up to 2^53.
 * The words are those of src/model/profile/profile.h.
 */

export const NONE = 0xffffffff;

/* In the order of enum seam_layer. */
export const LAYERS = ["kernel", "native", "jit", "guest"] as const;
/* The layer of functions that are names of marked intervals. */
export const MARKED = LAYERS.length;

export interface Meta {
	version: number;	/* of the payload */
	title: string;		/* command, or the file's name */
	file: string;
	startNs: string;	/* CLOCK_MONOTONIC, decimal: exceeds 2^53 */
	durationNs: number;
	utcNs: string;		/* of the start, decimal; "" when not known */
	openAtNs: number;	/* a trigger's moment; -1: none */
	openForNs: number;	/* of the call that ended then */
	notes: string[];	/* for the reader, as below a report */
	losses: { text: string; records: number }[];
	/* samples and calls that the file has not, by coarsening; 0: all in */
	coarse: { samples: number; calls: number; shortestCallNs: number };
	clockSkewNs: number;	/* of calls against samples; -1: not known */
	hostName: string;
	cpus: number;
}

export interface Process {
	pid: number;
	name: string;
	start: number;		/* -1: before the recording */
	end: number;		/* Infinity: after it */
	program?: string;	/* path of its executable; "" not known */
}

export interface Thread extends Omit<Process, "pid" | "program"> {
	process: number;
	tid: number;
	/* by switches, ns; NaN: not recorded */
	running: number;
	blocked: number;
	preempted: number;
	unknown: number;
}

export interface ProfileEvent {
	name: string;		/* "cpu-clock", "off-cpu" */
	unit: "ns" | "count";
	/* what a row of samples is; "call": sums of calls, see Samples */
	kind: "sample" | "wait" | "call";
	preempted: boolean;	/* waits for a CPU only */
	lost: number;
}

export interface Modules {
	n: number;
	path: string[];
	buildId: string[];	/* hexadecimal; "" when not known */
}

export interface Functions {
	n: number;
	name: string[];
	module: Uint32Array;
	layer: Uint8Array;	/* index of LAYERS, or MARKED */
	named?: Uint8Array;	/* 0: the name was made from an address */
}

export interface Frames {
	n: number;
	func: Uint32Array;
	file: Uint32Array;	/* index of Profile.files; NONE */
	line: Uint32Array;	/* 0: not known */
	addr: Float64Array;
	inlined: Uint8Array;
}

/* A prefix tree.  Row 0 is the empty stack; a parent precedes its children. */
export interface Stacks {
	n: number;
	parent: Uint32Array;
	frame: Uint32Array;
}

/*
 * In the order of time.  A wait begins at its time and lasts its weight; the
 * short waits of a thread are one row whose count is their number, and which
 * has no place in time (placed = 0).  So have the sums of calls.
 */
export interface Samples {
	n: number;
	time: Float64Array;
	thread: Uint32Array;
	stack: Uint32Array;
	event: Uint8Array;
	cpu: Uint16Array;	/* 0xffff: not known */
	weight: Float64Array;
	count: Float64Array;
	placed: Uint8Array;
	/* index of Profile.words; 0: none */
	reason: Uint32Array;
	waker: Uint32Array;
}

/* What a thread did from a time to another, by thread, then by begin. */
export interface Timed {
	n: number;
	begin: Float64Array;
	duration: Float64Array;
	thread: Uint32Array;
	func: Uint32Array;
	text: Uint32Array;	/* arguments: index of words; 0: none */
	/*
	 * Of duration, ns without a CPU, short waits too; absent or empty: by
	 * the samples that are waits.
	 */
	blocked?: Float64Array;
	preempted?: Float64Array;
}

/* Calls of the exact layer; parents first. */
export interface Calls extends Timed {
	self: Float64Array;	/* duration less that of direct callees */
	depth: Uint16Array;
	parent: Uint32Array;	/* call; NONE */
}

/* Instants, and intervals without a name of their own, in the order of time. */
export interface Marks {
	n: number;
	time: Float64Array;
	duration: Float64Array;	/* 0: an instant */
	thread: Uint32Array;	/* NONE: of no thread */
	kind: Uint8Array;	/* index of MARK_KINDS */
	name: Uint32Array;	/* index of words */
	text: Uint32Array;
}

export const MARK_KINDS = ["custom", "typed", "loss", "jit", "trigger"] as const;

/* A source file with the text, where the page was made with --source. */
export interface SourceFile {
	path: string;
	text: string | null;
}

/* Machine code of a function that has samples; addr as in Frames. */
export interface Code {
	func: number;
	addr: Float64Array;
	text: string[];
	line: Uint32Array;
}

export interface Profile {
	meta: Meta;
	words: string[];	/* [0] is "" */
	files: SourceFile[];
	processes: Process[];
	threads: Thread[];
	events: ProfileEvent[];
	modules: Modules;
	functions: Functions;
	frames: Frames;
	stacks: Stacks;
	samples: Samples;
	calls: Calls;
	/*
	 * Intervals that the program marked by pairs of events; func is a
	 * function of the layer MARKED.  They overlap in any way.
	 */
	intervals: Timed;
	marks: Marks;
	code: Code[];
}
