/* SPDX-License-Identifier: MIT */
/*
 * seam/guest.h - adapters: the stack of a virtual machine in a signal handler
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
 * seam_guest_read(), which fails where nothing is mapped; every loop is
 * bounded; every pointer is checked before what it points to is used: type
 * tags, back pointers, ranges.  What contradicts itself ends the walk with
 * the reason, which is in the sample; a plausible but wrong frame is worse
 * than none.
 *
 * Other machines, worked through on paper:
 *
 * PUC Lua 5.4.  The interpreter is one C function, luaV_execute(), which has
 * call frame information: bridge is not needed for the walk, and only reports
 * the activation (in a frame of luaV_execute(), found by its name or by an
 * experiment; ci->callstatus has CIST_FRESH where a new C frame began).  L is
 * in a register or stack slot that calibration finds for each build; where it
 * is not, L->cframe does not exist: the adapter takes L from the first argument
 * of lua_callk() frames, or from the state seen last on this thread, checked by
 * l_G and the main thread.  walk goes from L->ci by ->previous; a frame's
 * function is ci->func, its line needs ci->u.l.savedpc, which is behind by one
 * instruction inside luaV_execute() ("pc" is a local): the line may be that of
 * the previous instruction.  State: no vmstate; C or Lua by callstatus, GC by
 * g->gcstp and the frames of luaC_step() on the host's stack.  Names: as
 * LuaJIT's, by the call site's instruction (OP_GETTABUP, OP_SELF).
 *
 * CPython 3.11.  _PyEval_EvalFrameDefault() is one C function as well; a Python
 * to Python call does not enter it again, so one activation has many frames:
 * the segments of this interface.  tstate is found by an experiment on
 * the interpreter's own thread-local data (_PyRuntime.gilstate.autoTSSkey), in
 * the handler by the thread's id in the list of thread states; cframe ->
 * current_frame -> previous, until is_entry: the end of a segment.  A frame's
 * f_code is immutable; prev_instr and co_linetable give the line.  The names
 * are co_qualname and co_filename: compact ASCII or UTF-8 after a header
 * whose size calibration finds.  An activation without the GIL is as
 * valid as one with it: its own frames do not change meanwhile.
 *
 * Threads: attach, prove and detach in one thread at a time; the others in any
 * handler, at once.
 *
 * x86-64 only.
 */
#ifndef SEAM_GUEST_H
#define SEAM_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	SEAM_GUEST_INTERFACE = 1,	/* version of this header */
	SEAM_GUEST_REGISTERS = 17,
	SEAM_GUEST_NOTES = 5,
};

/* A sample that is being taken. */
struct seam_guest_walk;

/*
 * Registers by DWARF number: rax rdx rcx rbx rsi rdi rbp rsp r8..r15 rip.  Bit
 * i of .known: value[i] is valid; in a caller only what callees preserve is.
 */
struct seam_guest_registers {
	uint64_t value[SEAM_GUEST_REGISTERS];
	uint64_t known;
};

enum seam_guest_bridged {
	SEAM_GUEST_TO_CALLER,		/* the registers are the caller's now */
	SEAM_GUEST_BY_RULES,		/* use call frame information */
	SEAM_GUEST_NO_CODE,		/* not a machine's frame after all */
	SEAM_GUEST_LOST,		/* the caller cannot be found */
};

/* One run of the machine, between two parts of the host's stack. */
struct seam_guest_activation {
	uint64_t vm;		/* identity of the machine: an address */
	uint64_t thread;	/* of its thread, or coroutine */
	uint64_t notes[SEAM_GUEST_NOTES];	/* from bridge to walk */
	uint16_t host;		/* index of its frame in the host's stack */
	uint8_t kind;		/* the adapter's */
};

/*
 * What is known of a function before it has an id.  Equal keys: the same
 * function.
 */
struct seam_guest_key {
	uint64_t address;	/* of its code object, or a number */
	uint64_t check[2];	/* change when the address is used again */
	uint8_t kind;		/* SEAM_GUEST_KIND_... */
	uint8_t adapter;	/* its number */
};

/* Kinds of frames, numbers of the format (doc/formats/guest.md). */
enum {
	SEAM_GUEST_KIND_GUEST,		/* a function of the guest's language */
	SEAM_GUEST_KIND_C,		/* a C function */
	SEAM_GUEST_KIND_BUILTIN,	/* built into the machine */
	SEAM_GUEST_KIND_TRACE,		/* compiled code, callee of a function */
	SEAM_GUEST_KIND_CUT,		/* in place of as many frames as its id */
};

/* How a segment ends, numbers of the format. */
enum {
	SEAM_GUEST_ENDS_WHOLE = 0,
	SEAM_GUEST_ENDS_CUT = 2,	/* too deep */
	SEAM_GUEST_ENDS_INVALID = 4,	/* data that contradicts itself */
	SEAM_GUEST_ENDS_UNSETTLED = 5,	/* the machine was changing it */
	SEAM_GUEST_ENDS_UNREADABLE = 6,
};

/* What a frame is, beyond its record. */
struct seam_guest_origin {
	uint64_t address;	/* of prototype or C function; number of a */
				/* builtin or trace */
	uint32_t first_line;	/* of its definition; 0: none */
	bool is_on_host;	/* a C function that is in the host's stack */
};

/* Texts of a function; what is longer than the record's arrays is cut. */
struct seam_guest_text {
	uint32_t start, line, last_line;	/* as in the symbol record */
	uint16_t n_chunk;
	uint8_t n_name;
	bool is_chunk_cut, is_name_cut;
	char chunk[1024];
	char name[200];
};

/* One of a machine's functions for a walk; see above. */
struct seam_guest_vm {
	uint32_t interface;		/* SEAM_GUEST_INTERFACE */
	uint8_t number;			/* the adapter's, in the records */
	const char *name;		/* "luajit" */
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
	 * @is_exact: all registers are those of an interrupted instruction.
	 * Calls seam_guest_activate() where an activation is found.
	 */
	enum seam_guest_bridged (*bridge)(const void *object,
					  struct seam_guest_walk *walk,
					  struct seam_guest_registers *regs,
					  bool is_exact);
	/* The activations of @object in @walk, from number @first on. */
	void (*walk)(const void *object, struct seam_guest_walk *walk,
		     size_t first);
};

/*
 * Use @vm, which stays, beside those of the library.  Before seam_guest_init(),
 * in one thread.  0; -EINVAL: of another interface; -ENOSPC.
 */
int seam_guest_add_vm(const struct seam_guest_vm *vm);

/* --- for adapters, in handlers --- */

/* Copy @size bytes from @addr; false where they cannot be read. */
bool seam_guest_read(struct seam_guest_walk *walk, uint64_t addr, void *to,
		     size_t size);

/* Add an activation at the frame that bridge was called for; NULL: too many. */
struct seam_guest_activation *
seam_guest_activate(struct seam_guest_walk *walk, uint64_t vm, uint64_t thread);

/*
 * The id of a function.  0: it has none yet.  Then, or where *@is_nameless,
 * seam_guest_name() gives it one, with the texts that the adapter has found;
 * seam_guest_text_room() is storage for them, which no handler's stack has.
 */
uint32_t seam_guest_find(struct seam_guest_walk *walk,
			 const struct seam_guest_key *key, bool *is_nameless);
uint32_t seam_guest_name(struct seam_guest_walk *walk,
			 const struct seam_guest_key *key, uint32_t id,
			 const struct seam_guest_text *text);
struct seam_guest_text *seam_guest_text_room(struct seam_guest_walk *walk);

/* For walk: activation @i of those that were found, innermost first. */
size_t seam_guest_n_activations(const struct seam_guest_walk *walk);
const struct seam_guest_activation *
seam_guest_activation(const struct seam_guest_walk *walk, size_t i);

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
 * segment ends as SEAM_GUEST_ENDS_CUT.  False: no room.
 */
bool seam_guest_add_frame(struct seam_guest_walk *walk, unsigned int kind,
			  uint32_t id, uint32_t line,
			  const struct seam_guest_origin *origin);

/* The frames of that segment end, as one of SEAM_GUEST_ENDS_... */
void seam_guest_end_segment(struct seam_guest_walk *walk, unsigned int end);

/* The state of the innermost machine: a number of the format's vmstate. */
void seam_guest_set_state(struct seam_guest_walk *walk, uint64_t vm,
			  unsigned int vmstate);

#ifdef __cplusplus
}
#endif

#endif /* SEAM_GUEST_H */
