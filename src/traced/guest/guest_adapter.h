/* SPDX-License-Identifier: MIT */
/*
 * guest_adapter.h - adapters: the stack of a virtual machine in a handler
 *
 * A sampler stops a thread at any instruction.  The host's stack is walked by
 * call frame information.  At a frame in the code of a virtual machine the
 * machine's adapter is called: it finds the caller of that frame (bridge), and
 * reads from the machine's own data which functions of its language were active
 * there (walk).  An adapter is a struct of functions; the library calls them in
 * this order:
 *
 *	outside handlers
 *	attach		find the machine in a loaded image, calibrate: how its
 *			data is laid out, by experiments on an instance of its
 *			own, never by offsets from a header
 *	prove		compare what the functions below find with what the
 *			machine's public interface returns.  Any difference is
 *			a refusal, with a text that names it.
 *	detach		the image is gone
 *
 *	in a handler, for each sample
 *	has_code	whether a program counter is the machine's
 *	bridge		from a machine's frame to its caller; reports the
 *			activation: which machine, which thread of it, and what
 *			walk needs to find its frames
 *	walk		after the host's stack: the frames of all activations,
 *			innermost first, and the machine's state.  A function
 *			that has no id gets one with its name: it is on a
 *			stack, so it has not been collected yet
 *
 * In a handler there is no lock, no allocation, no call of the machine: it was
 * interrupted in the middle of anything.  Every word is read by
 * guest_memory.h, which fails where nothing is mapped; every loop is
 * bounded; every pointer is checked before what it points to is used: type
 * tags, back pointers, ranges.  What contradicts itself ends the walk with
 * the reason, which is in the sample; a plausible but wrong frame is worse
 * than none.
 *
 * Threads: attach, prove and detach in one thread at a time; the others in any
 * handler, at once.
 */
#pragma once

#include <stdatomic.h>

#include "traced/guest/guest_memory.h"
#include "traced/guest/guest_sample.h"
#include "unwind/in_process/self_walk.h"

enum { SEAM_GUEST_MAX_VMS = 8, SEAM_GUEST_MAX_ADAPTERS = 2 };

/* A sample that is being taken. */
struct seam_guest_walk {
	struct seam_guest_sample *sample;
	/* Of the host's walk: while bridge runs, it reads the own stack. */
	const struct seam_unwind_memory *stack;
	size_t n_activations;		/* in the sample, innermost first */
	/* Of which VM each is. */
	uint8_t owner[SEAM_GUEST_MAX_SEGMENTS];
	struct seam_guest_memory memory;
};

/* One of a machine's functions for a walk; see above. */
struct seam_guest_vm {
	uint8_t number;			/* the adapter's, in the records */
	const char *name;		/* "LuaJIT" */
	/* A function that every image with the machine exports. */
	const char *symbol;
	/*
	 * Look for the machine in a loaded image; @symbol finds what the image
	 * itself exports, or returns NULL.  Returns an object for the other
	 * functions, which owns what they need until detach.  NULL: the
	 * machine is not there (@reason is left empty), or it is refused, and
	 * @reason, of @size bytes, is the cause.  An error of the machine, as
	 * where memory runs out, must not end the process.
	 */
	void *(*attach)(void *(*symbol)(void *image, const char *name),
			void *image, char *reason, size_t size);
	/*
	 * Whether samples that this thread takes of an instance of its own
	 * are what the machine's public interface returns; @object is in use
	 * for this thread alone.  False: @reason is the cause.
	 */
	bool (*prove)(void *object, char *reason, size_t size);
	void (*detach)(void *object);
	/*
	 * In handlers from here on; what attach returned is constant.
	 * @is_in_image: an image has been mapped at @pc.  Code in no image may
	 * be that of several machines: that one has it whose bridge calls
	 * seam_guest_activate().
	 */
	bool (*has_code)(const void *object, uint64_t pc, bool is_in_image);
	/*
	 * As seam_unwind_adapter.step; SEAM_UNWIND_NO_MAPPING: it is no frame
	 * of the machine.  @is_exact: all registers are those of an interrupted
	 * instruction.  Calls seam_guest_activate() where an activation is
	 * found.
	 */
	enum seam_unwind_end (*bridge)(const void *object,
				       struct seam_guest_walk *walk,
				       struct seam_unwind_registers *regs,
				       bool is_exact);
	/* The activations of @object in @walk, from number @first on. */
	void (*walk)(const void *object, struct seam_guest_walk *walk,
		     size_t first);
};

/* The adapters; NULL: none. */
extern const struct seam_guest_vm *seam_guest_adapters[SEAM_GUEST_MAX_ADAPTERS];
extern const struct seam_guest_vm seam_luajit_vm;

/* --- the VMs in this process, which handlers use --- */

enum seam_guest_slot_state {
	SEAM_GUEST_FREE,
	SEAM_GUEST_TRIAL,	/* in use for the thread that proves it */
	SEAM_GUEST_USED,
	SEAM_GUEST_LEAVING,	/* not used; a handler may still be in it */
};

/* A VM; guest_attach.c fills and frees slots. */
struct seam_guest_slot {
	struct seam_self_adapter adapter;	/* its context is this struct */
	const struct seam_guest_vm *vm;
	void *object;
	const void *key;	/* a function of the image's, by which it is */
				/* known */
	const void *dynamic;	/* its dynamic section (link.h) */
	_Atomic uint32_t state;	/* enum seam_guest_slot_state */
	uint64_t left;		/* epoch (self_readers.h); where it leaves */
	char name[64];		/* of the image */
};

extern struct seam_guest_slot seam_guest_slots[SEAM_GUEST_MAX_VMS];

/* Whether this thread proves an adapter. */
extern __thread bool seam_guest_is_proving
	__attribute__((tls_model("initial-exec")));

/* What the unwinder calls for a slot. */
bool seam_guest_has_code(void *slot, uint64_t pc, bool is_in_image);
enum seam_unwind_end
seam_guest_step(void *slot, const struct seam_unwind_memory *memory,
		struct seam_unwind_registers *regs);

/* --- for adapters, in handlers --- */

/* Add an activation at the frame that bridge was called for; NULL: too many. */
struct seam_guest_activation *
seam_guest_activate(struct seam_guest_walk *walk, uint64_t vm, uint64_t thread);

/*
 * Begin the segment of @activation, or, where that is NULL, of frames of
 * @thread for which the host's stack has no place: the next segment that is
 * begun, of another machine, removes them.  False: no room.
 */
bool seam_guest_begin_segment(struct seam_guest_walk *walk,
			      const struct seam_guest_activation *activation,
			      uint64_t thread);

/*
 * Add a frame to the segment that was begun last, leaf first.  @line: 0, not
 * known.  @id 0, of a function that got none: a mark is in its place, and the
 * segment ends as SEAM_GUEST_CUT.  False: no room.
 */
bool seam_guest_add_frame(struct seam_guest_walk *walk,
			  enum seam_guest_frame_kind kind, uint32_t id,
			  uint32_t line,
			  const struct seam_guest_origin *origin);

/* The frames of that segment end, for @end. */
void seam_guest_end_segment(struct seam_guest_walk *walk,
			    enum seam_guest_end end);

/* Note why the guest's stack is not complete, unless a reason is noted. */
void seam_guest_note_end(struct seam_guest_walk *walk,
			 enum seam_guest_end end);

/*
 * Ids of functions: a table without locks, to which handlers of any thread
 * add; nothing is removed.  Two threads that see a new function at the same
 * moment may give it two ids: both have its name.
 */

/*
 * What is known of a function before it has an id.  Equal keys: the same
 * function.
 */
struct seam_guest_key {
	uint64_t address;	/* of its code object, or a number */
	uint64_t check[2];	/* change when the address is used again */
	uint8_t kind;		/* enum seam_guest_frame_kind */
	uint8_t adapter;	/* its number */
};

/*
 * The id of @key, or 0.  Then, or where *@is_nameless, seam_guest_name() gives
 * it one, or a name.
 */
uint32_t seam_guest_find(struct seam_guest_walk *walk,
			 const struct seam_guest_key *key, bool *is_nameless);

/*
 * @text has what the adapter has found: name, chunk, their sizes, the flags for
 * what is cut, lines, start.  0 where there is no room for a new id.  Storage
 * for @text is walk->sample->text: no handler's stack has room.
 */
uint32_t seam_guest_name(struct seam_guest_walk *walk,
			 const struct seam_guest_key *key, uint32_t id,
			 const struct seam_guest_symbol *text);

/* Outside handlers, once, before the others.  0, -ENOMEM. */
int seam_guest_ids_init(void);
