/* SPDX-License-Identifier: MIT */
/*
 * compare EVERY[:MAX] PROGRAM [ARGUMENT...] - stacks by two unwinders
 *
 * The program stops itself about each EVERY instructions (stepper.h).  There
 * our walk, with the process's mappings, files and memory, and libdw's unwinder
 * start from the same registers.  Deep stacks are compared less often.  After
 * MAX stops the program is ended.
 *
 * A difference has a cause, by what can be seen of it (causes[]); any other
 * is printed and fails.  Prints "N stacks, N frames, N complete" and the count
 * of each cause; status 1 if a difference has no cause.
 */
#include "symbol/elf/cfi_file.h"
#include "unwind/compile/cfi_rows.h"
#include "unwind/walk/walk.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MAX_FRAMES = 4096, MAX_MAPPINGS = 256, MAX_FILES = 64,
	DEEP = 200,		/* frames from which on stops are rarer */
};

/* --- the process --- */

struct file {
	char path[256];
	bool is_open;
	struct seam_cfi_file cfi;
	struct seam_unwind_rows rows;
};

static struct {
	pid_t pid;
	int memory;		/* /proc/PID/mem */
	char maps[65536];
	struct mapping {
		uint64_t start, end, offset;
		struct file *file;
	} mappings[MAX_MAPPINGS];
	size_t n_mappings;
	struct file files[MAX_FILES];
	size_t n_files;
	Dwfl *dwfl;
	uint64_t registers[SEAM_X86_64_COLUMNS];	/* where it stopped */
	int stops, goes_on;	/* descriptors */
} process;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

/* The vdso has no file: it is read from the process. */
static void open_vdso(struct file *file, uint64_t start, uint64_t end)
{
	uint8_t bytes[65536];
	size_t size = end - start < sizeof(bytes) ? end - start : sizeof(bytes);

	if (pread(process.memory, bytes, size, (off_t)start) == (ssize_t)size)
		file->is_open = !seam_cfi_file_open_image(&file->cfi,
			(struct seam_bytes) { bytes, size }, NULL);
}

static struct file *file_of(const char *path, uint64_t start, uint64_t end)
{
	struct file *file = process.files;
	int fd;

	for (; file < process.files + process.n_files; file++)
		if (strcmp(file->path, path) == 0)
			return file;
	if (process.n_files++ == MAX_FILES)
		exit(2);
	snprintf(file->path, sizeof(file->path), "%s", path);
	if (strcmp(path, "[vdso]") == 0) {
		open_vdso(file, start, end);
	} else {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		file->is_open = fd >= 0 &&
				!seam_cfi_file_open(&file->cfi, fd, NULL);
	}
	if (file->is_open &&
	    seam_unwind_rows_init(&file->rows, &file->cfi.eh,
				  &file->cfi.debug) < 0)
		exit(2);
	return file;
}

static void add_mapping(const char *line)
{
	struct mapping *m = &process.mappings[process.n_mappings];
	char rights[8], path[256] = "";

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64
		   " %*s %*s %255s", &m->start, &m->end, rights, &m->offset,
		   path) < 4 || rights[2] != 'x' ||
	    process.n_mappings == MAX_MAPPINGS - 1)
		return;
	m->file = path[0] == '/' || strcmp(path, "[vdso]") == 0 ?
		  file_of(path, m->start, m->end) : NULL;
	process.n_mappings++;
}

static int report(void)
{
	dwfl_report_begin(process.dwfl);
	if (dwfl_linux_proc_report(process.dwfl, process.pid) < 0)
		return -1;
	return dwfl_report_end(process.dwfl, NULL, NULL);
}

/* --- our walk --- */

static const struct mapping *mapping_at(uint64_t addr)
{
	for (size_t i = 0; i < process.n_mappings; i++)
		if (addr - process.mappings[i].start <
		    process.mappings[i].end - process.mappings[i].start)
			return &process.mappings[i];
	return NULL;
}

/* The address in its file; false where there is none. */
static bool in_file(uint64_t addr, struct file **file, uint64_t *file_addr)
{
	const struct mapping *m = mapping_at(addr);

	if (!m || !m->file || !m->file->is_open)
		return false;
	*file = m->file;
	return seam_segments_addr(&m->file->cfi.segments,
				  addr - m->start + m->offset, file_addr);
}

static bool find(void *context, uint64_t addr, struct seam_unwind_code *code)
{
	struct file *file;
	uint64_t file_addr;

	(void)context;
	if (!in_file(addr, &file, &file_addr))
		return mapping_at(addr) != NULL;
	code->rules = &file->rows.rules;
	code->id = seam_unwind_rows_find(&file->rows, file_addr);
	code->is_entry = seam_cfi_file_is_entry(&file->cfi, file_addr);
	return true;
}

static size_t code_before(void *context, uint64_t addr, uint8_t *bytes)
{
	struct file *file;
	uint64_t file_addr;

	(void)context;
	return in_file(addr - 1, &file, &file_addr) ?
	       seam_cfi_file_code_before(&file->cfi, file_addr + 1, bytes,
					 SEAM_UNWIND_CALL_BYTES) : 0;
}

static const struct seam_unwind_space space = {
	.find = find, .code_before = code_before,
};

static bool read_word(void *context, uint64_t addr, uint64_t *word)
{
	(void)context;
	return pread(process.memory, word, sizeof(*word), (off_t)addr) ==
	       sizeof(*word);
}

/* What a profiler has: the lowest part of the stack. */
static size_t copy_stack(uint64_t sp, uint8_t *to, size_t max)
{
	size_t n = 0;

	while (n < max) {
		uint64_t page_end = ((sp + n) | 4095) + 1;
		size_t size = page_end - sp - n;
		ssize_t got = pread(process.memory, to + n,
				    size < max - n ? size : max - n,
				    (off_t)(sp + n));

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return n;
}

static struct seam_unwind_frame frames[MAX_FRAMES];

static void walk(const uint64_t *columns, struct seam_unwind_stack *stack)
{
	static uint8_t copy[65536];
	struct seam_unwind_registers regs = {
		.known = (UINT64_C(1) << SEAM_X86_64_COLUMNS) - 1,
	};
	uint64_t sp = columns[SEAM_X86_64_RSP];
	const struct seam_unwind_memory memory = {
		.stack = copy, .stack_addr = sp,
		.stack_bytes = copy_stack(sp, copy, sizeof(copy)),
		.read = read_word,
	};

	memcpy(regs.value, columns, SEAM_X86_64_COLUMNS * sizeof(*columns));
	*stack = (struct seam_unwind_stack) {
		.frames = frames, .max = MAX_FRAMES,
	};
	seam_unwind_walk(&space, &memory, &regs, stack);
}

/* --- libdw's --- */

struct theirs {
	uint64_t pc[MAX_FRAMES];
	size_t n;
};

static int add_frame(Dwfl_Frame *frame, void *context)
{
	struct theirs *theirs = context;
	Dwarf_Addr pc;

	if (theirs->n == MAX_FRAMES || !dwfl_frame_pc(frame, &pc, NULL))
		return DWARF_CB_ABORT;
	theirs->pc[theirs->n++] = pc;
	return DWARF_CB_OK;
}

static void unwind_by_libdw(struct theirs *theirs)
{
	theirs->n = 0;
	dwfl_getthread_frames(process.dwfl, process.pid, add_frame, theirs);
	/* a return address of 0 is none */
	while (theirs->n > 1 && theirs->pc[theirs->n - 1] == 0)
		theirs->n--;
}

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread)
{
	(void)dwfl;
	(void)context;
	if (*thread)
		return 0;
	*thread = &process;
	return process.pid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *context, void **thread)
{
	(void)dwfl;
	(void)context;
	*thread = &process;
	return tid == process.pid;
}

static bool read_for_libdw(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *word,
			   void *context)
{
	(void)dwfl;
	return read_word(context, addr, word);
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
	(void)context;
	return dwfl_thread_state_registers(thread, 0, SEAM_X86_64_COLUMNS,
					   process.registers);
}

static void attach_libdw(void)
{
	static const Dwfl_Thread_Callbacks state = {
		.next_thread = next_thread, .get_thread = get_thread,
		.memory_read = read_for_libdw,
		.set_initial_registers = set_registers,
	};
	static char *debug_path = NULL;
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.debuginfo_path = &debug_path,
	};

	process.dwfl = dwfl_begin(&callbacks);
	if (!process.dwfl || report() < 0 ||
	    !dwfl_attach_state(process.dwfl, NULL, process.pid, &state,
			       &process))
		die("libdw");
}

/* After each library that is loaded or unloaded. */
static void read_maps(void)
{
	static char text[sizeof(process.maps)];
	char path[64], *line;
	ssize_t n, size = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", process.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while ((n = read(fd, text + size, sizeof(text) - 1 - (size_t)size)) > 0)
		size += n;
	close(fd);
	text[size] = 0;
	if (strcmp(text, process.maps) == 0)
		return;
	memcpy(process.maps, text, sizeof(text));
	if (!process.dwfl)
		attach_libdw();
	else if (report() < 0)
		die(dwfl_errmsg(-1));
	process.n_mappings = 0;
	for (line = text; *line; line = strchr(line, '\n') + 1)
		add_mapping(line);
}

/* --- differences --- */

/*
 * libdw 0.188 ends a stack in _dl_runtime_resolve_*() of ld.so, whose CFA is
 * of rbx, while its callee's first instructions have not saved rbx.  Ours
 * goes on to the root; test_step's every_instruction_has_the_same_callers()
 * is there, too.
 */
static bool libdw_ends_at_resolver(const struct seam_unwind_stack *ours,
				   const struct theirs *theirs, size_t i)
{
	const struct seam_unwind_rule *rule;
	struct seam_unwind_code code = { .rules = NULL };

	if (ours->end != SEAM_UNWIND_ROOT || i != 2 || theirs->n != 2 ||
	    !find(NULL, frames[1].pc - 1, &code) || !code.rules)
		return false;
	rule = &code.rules->rules.items[code.id];
	return rule->cfa_how == SEAM_UNWIND_CFA_REGISTER &&
	       rule->cfa_column == SEAM_X86_64_RBX;
}

/*
 * While _Unwind_Resume() and longjmp() write the registers of another frame,
 * what they have saved is no caller's, and both unwinders arrive at an address
 * that is not mapped.  libdw goes on from there by the frame pointer; ours
 * ends: test_walk, an_entry_point_without_cfi_is_a_root().
 */
static bool libdw_leaves_the_mappings(const struct seam_unwind_stack *ours,
				      const struct theirs *theirs, size_t i)
{
	return ours->end == SEAM_UNWIND_NO_MAPPING && i == ours->n &&
	       theirs->n > i && !mapping_at(theirs->pc[i - 1] - 1);
}

/*
 * The jump of a static program's PLT to an IFUNC has no rules, and no frame:
 * the caller's address is on top of the stack.  libdw takes the caller's rbp
 * for a frame pointer, whatever it is.
 */
static bool libdw_follows_rbp_of_a_plt(const struct seam_unwind_stack *ours,
				       const struct theirs *theirs, size_t i)
{
	static const uint8_t jump[] = { 0xff, 0x25 };	/* jmp *n(%rip) */
	struct seam_unwind_code code = { .rules = NULL };
	uint64_t top;
	uint8_t bytes[2];

	(void)theirs;
	return ours->end == SEAM_UNWIND_ROOT && ours->n > 1 &&
	       i == 1 && find(NULL, frames[0].pc, &code) && code.rules &&
	       code.id == SEAM_UNWIND_NO_CFI &&
	       pread(process.memory, bytes, sizeof(bytes),
		     (off_t)frames[0].pc) == sizeof(bytes) &&
	       memcmp(bytes, jump, sizeof(jump)) == 0 &&
	       read_word(NULL, frames[0].sp, &top) && frames[1].pc == top;
}

/*
 * Whether the caller of frame @i may be the landing pad of an exception: the
 * function saves rax and rdx, which only __builtin_eh_return() needs.
 */
static bool may_throw(size_t i)
{
	const struct seam_unwind_saved *saved;
	const struct seam_unwind_rule *rule;
	struct seam_unwind_code code = { .rules = NULL };
	unsigned int n = 0;

	if (!find(NULL, frames[i].pc - (i > 0), &code) || !code.rules ||
	    code.id <= SEAM_UNWIND_BAD_CFI)
		return false;
	rule = &code.rules->rules.items[code.id];
	saved = code.rules->saved.items + rule->first_saved;
	for (size_t k = 0; k < rule->n_saved; k++)
		n += saved[k].column < 2;
	return n == 2 && !rule->is_signal_frame;
}

/* Ours has the address after a landing pad's first byte. */
static bool is_landing_pad(const struct theirs *theirs, size_t i)
{
	return i > 0 && frames[i].pc == theirs->pc[i] + 1 && may_throw(i - 1);
}

/*
 * libdw looks for the rules of a landing pad where those of a call would be,
 * in the instruction before, which may be the last one of the function.
 */
static bool libdw_looks_before_a_pad(const struct seam_unwind_stack *ours,
				     const struct theirs *theirs, size_t i)
{
	struct seam_unwind_code at = { .rules = NULL };
	struct seam_unwind_code before = { .rules = NULL };

	return ours->end == SEAM_UNWIND_ROOT && i > 1 &&
	       is_landing_pad(theirs, i - 1) &&
	       find(NULL, theirs->pc[i - 1], &at) &&
	       (!find(NULL, theirs->pc[i - 1] - 1, &before) ||
		before.rules != at.rules || before.id != at.id);
}

/*
 * Why stacks differ from frame @i on, with the evidence of each cause in the
 * stack itself; agreement.py has a program for each.
 */
static const struct cause {
	const char *name;
	bool (*applies)(const struct seam_unwind_stack *ours,
			const struct theirs *theirs, size_t i);
} causes[] = {
	{ "libdw ends at the resolver", libdw_ends_at_resolver },
	{ "libdw goes on where nothing is mapped", libdw_leaves_the_mappings },
	{ "libdw follows the rbp of a PLT", libdw_follows_rbp_of_a_plt },
	{ "libdw looks before a landing pad", libdw_looks_before_a_pad },
	{ NULL, NULL },
};

static struct {
	uint64_t n_stacks, n_frames, n_complete, n_unlisted;
	uint64_t n_of_cause[sizeof(causes) / sizeof(causes[0])];
} counts;

static void print_difference(const struct seam_unwind_stack *ours,
			     const struct theirs *theirs, size_t i)
{
	printf("differs at frame %zu: ours has %zu (end %u), libdw %zu (%s)\n",
	       i, ours->n, ours->end, theirs->n, dwfl_errmsg(-1));
	for (size_t k = 0; k < i + 2; k++) {
		uint64_t pc = k < ours->n ? frames[k].pc : 0, addr = 0;
		struct file *file = NULL;

		in_file(pc, &file, &addr);
		printf("  %zu: ours %" PRIx64 " sp %" PRIx64 " q%u (%s+%" PRIx64
		       ") libdw %" PRIx64 "\n", k, pc,
		       k < ours->n ? frames[k].sp : 0,
		       k < ours->n ? frames[k].quality : 0,
		       file ? file->path : "?", addr,
		       k < theirs->n ? theirs->pc[k] : 0);
	}
}

static size_t compare(void)
{
	static struct theirs theirs;
	struct seam_unwind_stack ours;
	size_t i = 0;

	walk(process.registers, &ours);
	/* libdw has a caller that is in no mapping as a frame, but not at 0 */
	if (ours.end == SEAM_UNWIND_NO_MAPPING && ours.end_pc &&
	    ours.n < MAX_FRAMES)
		frames[ours.n++].pc = ours.end_pc;
	unwind_by_libdw(&theirs);
	counts.n_stacks++;
	counts.n_frames += ours.n;
	counts.n_complete += ours.end == SEAM_UNWIND_ROOT;
	while (i < ours.n && i < theirs.n &&
	       (frames[i].pc == theirs.pc[i] || is_landing_pad(&theirs, i)))
		i++;
	if (i == ours.n && i == theirs.n)
		return ours.n;
	for (size_t c = 0; causes[c].name; c++) {
		if (causes[c].applies(&ours, &theirs, i)) {
			counts.n_of_cause[c]++;
			return ours.n;
		}
	}
	if (counts.n_unlisted++ < 5)
		print_difference(&ours, &theirs, i);
	return ours.n;
}

/* --- stepping --- */

static uint64_t next_random(void)
{
	static uint64_t x = 88172645463325252;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static void start(char **argv)
{
	int out[2], in[2];

	if (pipe(out) < 0 || pipe(in) < 0)
		die("pipe");
	process.pid = fork();
	if (process.pid == 0) {
		/* 3 and 4 may be in use by the pipes themselves */
		int from = dup(out[1]), to = dup(in[0]);

		dup2(from, 3);
		dup2(to, 4);
		close_range(5, ~0U, 0);
		execv(argv[0], argv);
		_exit(127);
	}
	close(out[1]);
	close(in[0]);
	process.stops = out[0];
	process.goes_on = in[1];
	if (process.pid < 0)
		die("cannot start it");
}

/* Once it runs the program: before, the memory is another. */
static void open_memory(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", process.pid);
	process.memory = open(path, O_RDONLY | O_CLOEXEC);
	if (process.memory < 0)
		die(path);
}

/* Wait for the next stop; false when the program has ended. */
static bool next_stop(void)
{
	return read(process.stops, process.registers,
		    sizeof(process.registers)) == sizeof(process.registers);
}

static void close_all(void)
{
	for (size_t i = 0; i < process.n_files; i++) {
		if (!process.files[i].is_open)
			continue;
		seam_unwind_rows_fini(&process.files[i].rows);
		seam_cfi_file_close(&process.files[i].cfi);
	}
	dwfl_end(process.dwfl);
}

int main(int argc, char **argv)
{
	char *rest = NULL;
	uint64_t every = argc > 2 ? strtoull(argv[1], &rest, 10) : 0;
	uint64_t max = rest && *rest == ':' ? strtoull(rest + 1, NULL, 10) :
					      UINT64_MAX, n;
	int status = 0;

	if (every == 0)
		return 2;
	start(argv + 2);
	while (counts.n_stacks < max && next_stop()) {
		if (!process.memory)
			open_memory();
		read_maps();
		n = 1 + next_random() % (2 * every);
		if (compare() > DEEP)
			n *= 20;
		if (write(process.goes_on, &n, sizeof(n)) != sizeof(n))
			die("cannot go on");
	}
	if (max != UINT64_MAX)
		kill(process.pid, SIGKILL);
	waitpid(process.pid, &status, 0);
	printf("%" PRIu64 " stacks, %" PRIu64 " frames, %" PRIu64
	       " complete, %" PRIu64 " without a cause\n", counts.n_stacks,
	       counts.n_frames, counts.n_complete, counts.n_unlisted);
	for (size_t c = 0; causes[c].name; c++)
		printf("%" PRIu64 " %s\n", counts.n_of_cause[c],
		       causes[c].name);
	if (max == UINT64_MAX && (!WIFEXITED(status) || WEXITSTATUS(status)))
		die("the program failed");
	close_all();
	return counts.n_unlisted != 0;
}
