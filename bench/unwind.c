/* SPDX-License-Identifier: MIT */
/*
 * unwind [FILE...] - what the unwinder costs, beside libgcc's and libunwind's
 *
 *   - a frame in the process itself: 100 frames of functions that save what
 *     they like, called through qsort() of libc now and then
 *   - a stack of 20 frames from registers and a copy of its memory, as a
 *     recorder has it, rules compiled when code is first seen
 *   - the table of a whole file, by MiB of .eh_frame, and its size
 *
 * Each is the least and the median of RUNS, in CPU time.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "symbol/elf/cfi_file.h"
#include "unwind/compile/cfi_rows.h"
#include "unwind/in_process/self_images.h"
#include "unwind/in_process/self_walk.h"

enum { RUNS = 15, REPEAT = 2000, MAX_FRAMES = 256, MAX_FILES = 16 };

/* Of CPU: other programs have less of a part in it. */
static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Run @once REPEAT times, RUNS times over; it returns what one cost counts. */
static void measure(const char *name, const char *unit, double divisor,
		    int repeat, size_t (*once)(void))
{
	double of_run[RUNS];
	size_t n = 0;

	for (int run = 0; run < RUNS; run++) {
		uint64_t start = now_ns();

		for (int i = 0; i < repeat; i++)
			n = once();
		of_run[run] = (double)(now_ns() - start) / repeat /
			      (divisor > 0 ? divisor : (double)(n ? n : 1));
	}
	qsort(of_run, RUNS, sizeof(of_run[0]), by_value);
	printf("  %-46s %8.2f %s (median %.2f), %zu frames\n", name, of_run[0],
	       unit, of_run[RUNS / 2], n);
}

/* --- in the process --- */

static struct seam_unwind_frame frames[MAX_FRAMES];

__attribute__((noinline)) static size_t by_our_walk(void)
{
	struct seam_unwind_stack stack = {
		.frames = frames, .max = MAX_FRAMES,
	};
	ucontext_t context;

	getcontext(&context);
	seam_self_walk(&context, &stack);
	return stack.n;
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context,
				       void *count)
{
	frames[*(size_t *)count].pc = _Unwind_GetIP(context);
	return ++*(size_t *)count < MAX_FRAMES ? _URC_NO_REASON :
						 _URC_END_OF_STACK;
}

__attribute__((noinline)) static size_t by_libgcc(void)
{
	size_t n = 0;

	_Unwind_Backtrace(count_frame, &n);
	return n;
}

/* libunwind's by their names in the library; NULL: it is not installed. */
static int (*unw_getcontext)(void *context);
static int (*unw_init)(void *cursor, void *context);
static int (*unw_step)(void *cursor);

static void load_libunwind(void)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW);

	if (!library)
		return;
	*(void **)&unw_getcontext = dlsym(library, "_Ux86_64_getcontext");
	*(void **)&unw_init = dlsym(library, "_ULx86_64_init_local");
	*(void **)&unw_step = dlsym(library, "_ULx86_64_step");
}

__attribute__((noinline)) static size_t by_libunwind(void)
{
	static uint64_t cursor[1024], context[1024];
	size_t n = 1;

	unw_getcontext(context);
	unw_init(cursor, context);
	while (unw_step(cursor) > 0)
		n++;
	return n;
}

static void measure_in_process(void)
{
	measure("seam_self_walk", "ns a frame", 0, REPEAT / 10, by_our_walk);
	measure("_Unwind_Backtrace of libgcc", "ns a frame", 0, REPEAT / 10,
		by_libgcc);
	if (unw_getcontext && unw_init && unw_step)
		measure("unw_step of libunwind", "ns a frame", 0, REPEAT / 10,
			by_libunwind);
	else
		printf("  libunwind.so.8 is not installed\n");
}

/* --- from a copy --- */

static struct image {
	uint64_t bias, start, end;
	struct seam_cfi_file file;
	struct seam_unwind_rows rows;
} images[MAX_FILES];
static size_t n_images;

static int add_image(struct dl_phdr_info *info, size_t size, void *context)
{
	const char *path = info->dlpi_name[0] ? info->dlpi_name :
						"/proc/self/exe";
	struct image *image = &images[n_images];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	(void)size;
	(void)context;
	if (fd < 0 || n_images == MAX_FILES ||
	    seam_cfi_file_open(&image->file, fd, NULL) < 0 ||
	    seam_unwind_rows_init(&image->rows, &image->file.eh, NULL) < 0)
		return 0;	/* the vdso */
	image->bias = info->dlpi_addr;
	image->start = UINT64_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		image->start = start < image->start ? start : image->start;
		image->end = start + p->p_memsz;
	}
	n_images++;
	return 0;
}

static bool find(void *context, uint64_t addr, struct seam_unwind_code *code)
{
	(void)context;
	for (size_t i = 0; i < n_images; i++) {
		struct image *image = &images[i];

		if (addr - image->start >= image->end - image->start)
			continue;
		code->rules = &image->rows.rules;
		code->id = seam_unwind_rows_find(&image->rows,
						 addr - image->bias);
		return true;
	}
	return false;
}

static size_t no_code(void *context, uint64_t addr, uint8_t *bytes)
{
	(void)context;
	(void)addr;
	(void)bytes;
	return 0;
}

static struct seam_unwind_registers dump_regs;
static uint8_t dump[32768];
static size_t dump_bytes;

static size_t walk_dump(void)
{
	static const struct seam_unwind_space space = {
		.find = find, .code_before = no_code,
	};
	const struct seam_unwind_memory memory = {
		.stack = dump, .stack_bytes = dump_bytes,
		.stack_addr = dump_regs.value[SEAM_X86_64_RSP],
	};
	struct seam_unwind_stack stack = {
		.frames = frames, .max = MAX_FRAMES,
	};

	seam_unwind_walk(&space, &memory, &dump_regs, &stack);
	return stack.n;
}

static void measure_dump(void)
{
	static const int order[SEAM_X86_64_COLUMNS] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP,
		REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13,
		REG_R14, REG_R15, REG_RIP,
	};
	ucontext_t context;

	getcontext(&context);
	for (int i = 0; i < SEAM_X86_64_COLUMNS; i++)
		dump_regs.value[i] =
			(uint64_t)context.uc_mcontext.gregs[order[i]];
	dump_regs.known = (UINT64_C(1) << SEAM_X86_64_COLUMNS) - 1;
	/* the environment is above all frames */
	dump_bytes = (uintptr_t)environ - dump_regs.value[SEAM_X86_64_RSP];
	if (dump_bytes > sizeof(dump))
		dump_bytes = sizeof(dump);
	memcpy(dump, (const void *)(uintptr_t)dump_regs.value[SEAM_X86_64_RSP],
	       dump_bytes);
	measure("a stack from registers and a copy", "us", 1000, REPEAT,
		walk_dump);
}

/* --- functions of several kinds --- */

static volatile int sink;
static void (*at_the_end)(void);

static void one(int n);

__attribute__((noinline)) static void four(int n)
{
	volatile char room[300];

	room[n] = 1;
	one(n - 1);
	sink = room[n];
}

static int compare(const void *a, const void *b)
{
	static int is_inside;

	if (!is_inside) {
		is_inside = 1;
		four(*(const int *)a % 64 + *(const int *)b);
		is_inside = 0;
	}
	return 0;
}

__attribute__((noinline)) static void three(int n)
{
	int pair[2] = { n, 0 };

	if (n == 10)
		qsort(pair, 2, sizeof(pair[0]), compare);
	else
		four(n);
	sink = pair[0];
}

__attribute__((noinline)) static void two(int n, int a, int b, int c)
{
	int d = sink + a, e = sink * b, f = sink ^ c;

	three(n);
	sink = d + e + f + a + b + c;
}

__attribute__((noinline)) static void one(int n)
{
	if (n <= 0)
		at_the_end();
	else
		two(n, sink, sink + 1, sink + 2);
	sink++;
}

static void measure_table(const char *path)
{
	struct seam_unwind_table table;
	struct seam_cfi_file file;
	double best = 0, mib;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || seam_cfi_file_open(&file, fd, NULL) < 0)
		return;
	mib = (double)file.eh.entries.size / (1 << 20);
	for (int run = 0; run < 5; run++) {
		uint64_t start = now_ns();
		double ms;

		if (seam_unwind_table_build(&table, &file.eh, NULL) < 0)
			exit(1);
		ms = (double)(now_ns() - start) / 1e6;
		best = run == 0 || ms < best ? ms : best;
		if (run < 4)
			seam_unwind_table_fini(&table);
	}
	printf("  %-46s %8.2f ms a MiB of %.2f MiB; %.2f times its size, "
	       "%zu rules\n", strrchr(path, '/') + 1, best / mib, mib,
	       (double)(table.n * (sizeof(*table.starts) +
				   sizeof(*table.ids)) +
			table.n_blocks * sizeof(*table.blocks)) /
	       (double)file.eh.entries.size, table.rules.rules.n);
	seam_unwind_table_fini(&table);
	seam_cfi_file_close(&file);
}

int main(int argc, char **argv)
{
	load_libunwind();
	dl_iterate_phdr(add_image, NULL);
	if (seam_self_init() < 0 || seam_self_thread_begin())
		return 1;
	printf("a frame in the process:\n");
	at_the_end = measure_in_process;
	one(24);
	printf("a dump of 20 frames:\n");
	at_the_end = measure_dump;
	one(4);
	printf("tables of whole files:\n");
	for (int i = 1; i < argc; i++)
		measure_table(argv[i]);
	return 0;
}
