/* SPDX-License-Identifier: MIT */
/*
 * jit.c - a small just-in-time compiler whose code profilers can name
 *
 * It compiles Brainf*ck to x86-64 and runs three programs one after another, as
 * a JIT with a code cache does:
 *
 *	triangle		compiled at the start of the cache, and run
 *	triangle		moved to the middle of the cache, and run there
 *	countdown	compiled where triangle was first, and run
 *
 * so one address means two functions over time, and one function has two
 * addresses.  See it with:
 *
 *	seam record -- ./jit			or
 *	perf record -k mono -g ./jit; perf inject --jit -i perf.data -o p; ...
 *
 * Usage: jit [ROUNDS] [FOLDER].  FOLDER is where the dump is made.
 */
#include <seam/jitdump.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef __x86_64__
int main(void)
{
	fprintf(stderr, "jit: this example makes code for x86-64 only\n");
	return 0;
}
#else

enum { CACHE_BYTES = 1 << 20, MAX_LINES = 256, MAX_DEPTH = 64, TAPE = 30000 };

/* Ten rows of stars, each longer than the one before. */
static const char triangle[] =
	"++++++++++[\n"
	"  >+[->+>+<<]>>[-<<+>>]<\n"
	"  [->>++++++[->+++++++<]>.[-]<<<]\n"
	"  >>++++++++++.[-]<<<<-]\n";

/* Count down from 255, 255 times 255 times. */
static const char countdown[] =
	"-[>-\n"
	"  [>-\n"
	"    [-]\n"
	"  <-]\n"
	"<-]\n";

typedef void program(uint8_t *tape, int (*put)(int));

/* Code under construction. */
struct assembly {
	uint8_t *code;
	size_t n;
	struct seam_jitdump_line lines[MAX_LINES];
	size_t n_lines;
};

static void emit(struct assembly *a, const char *bytes, size_t n)
{
	memcpy(a->code + a->n, bytes, n);
	a->n += n;
}

#define EMIT(a, bytes) emit(a, bytes, sizeof(bytes) - 1)

static void emit_u32(struct assembly *a, uint32_t v)
{
	memcpy(a->code + a->n, &v, sizeof(v));
	a->n += sizeof(v);
}

static void begin_line(struct assembly *a, uint32_t line)
{
	if (a->n_lines < MAX_LINES)
		a->lines[a->n_lines++] = (struct seam_jitdump_line) {
			.offset = a->n, .line = line,
		};
}

/* How often the instruction at @s is repeated. */
static uint32_t run_of(const char *s)
{
	uint32_t n = 1;

	while (s[n] == *s)
		n++;
	return n;
}

/* Jump over a loop's body, or back: both ends are known at ']'. */
static void close_loop(struct assembly *a, size_t begin)
{
	uint32_t back = (uint32_t)(begin - (a->n + 9));
	uint32_t over;

	EMIT(a, "\x80\x3b\x00\x0f\x85");	/* cmp byte [rbx], 0; jne */
	emit_u32(a, back);
	over = (uint32_t)(a->n - begin);
	memcpy(a->code + begin - 4, &over, sizeof(over));
}

/* rbx is the tape, r12 writes a character. */
static void compile(struct assembly *a, const char *source)
{
	size_t loops[MAX_DEPTH];
	uint32_t line = 1, depth = 0;

	begin_line(a, line);
	EMIT(a, "\x55\x48\x89\xe5"		/* push rbp; mov rbp, rsp */
	     "\x53\x41\x54"			/* push rbx; push r12 */
	     "\x48\x89\xfb\x49\x89\xf4");	/* mov rbx, rdi; r12, rsi */
	for (const char *s = source; *s; s++) {
		uint32_t n = *s == '\n' ? 1 : run_of(s);

		switch (*s) {
		case '\n':
			begin_line(a, ++line);
			continue;
		case '>':
			EMIT(a, "\x48\x81\xc3");	/* add rbx, n */
			emit_u32(a, n);
			break;
		case '<':
			EMIT(a, "\x48\x81\xeb");	/* sub rbx, n */
			emit_u32(a, n);
			break;
		case '+':
		case '-':
			EMIT(a, "\x80");	/* add or sub byte [rbx], n */
			a->code[a->n++] = *s == '+' ? 0x03 : 0x2b;
			a->code[a->n++] = (uint8_t)n;
			break;
		case '.':
			EMIT(a, "\x0f\xb6\x3b\x41\xff\xd4"); /* call r12 */
			continue;
		case '[':
			EMIT(a, "\x80\x3b\x00\x0f\x84");  /* cmp ..; je */
			emit_u32(a, 0);
			loops[depth++ % MAX_DEPTH] = a->n;
			continue;
		case ']':
			close_loop(a, loops[--depth % MAX_DEPTH]);
			continue;
		default:
			continue;
		}
		s += n - 1;
	}
	EMIT(a, "\x41\x5c\x5b\x5d\xc3");	/* pop r12, rbx, rbp; ret */
}

/*
 * How to unwind through it: a frame pointer, after four bytes.  The three
 * numbers that are filled in later are the place of the code and its size.
 */
struct unwind_tables {
	uint8_t frame[56];
	uint8_t header[20];
};

static void put_i32(uint8_t *to, int64_t v)
{
	int32_t narrow = (int32_t)v;

	memcpy(to, &narrow, sizeof(narrow));
}

static void make_tables(struct unwind_tables *t, size_t code_size)
{
	static const uint8_t frame[56] =
		/* CIE: return address at cfa - 8, cfa is rsp + 8 */
		"\x14\0\0\0\0\0\0\0\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08"
		"\x90\x01\0\0"
		/* FDE: after push rbp, cfa is rsp + 16; after mov, rbp + 16 */
		"\x18\0\0\0\x1c\0\0\0" "----" "----" "\0"
		"\x41\x0e\x10\x86\x02\x43\x0d\x06";
	static const uint8_t header[20] =
		"\x01\x1b\x03\x3b" "----" "\x01\0\0\0" "----" "---";
	/* The tables come after the code; the header after the frame. */
	int64_t at = (int64_t)(code_size + 7) / 8 * 8;

	memcpy(t->frame, frame, sizeof(frame));
	memcpy(t->header, header, sizeof(header));
	put_i32(t->frame + 32, -(at + 32));
	put_i32(t->frame + 36, (int64_t)code_size);
	put_i32(t->header + 4, -(int64_t)(sizeof(frame) + 4));
	put_i32(t->header + 12, -(at + (int64_t)sizeof(frame)));
	put_i32(t->header + 16, 24 - (int64_t)sizeof(frame));
}

/* Compile @source at @at, and add it to @dump.  Returns its id. */
static uint64_t load(struct seam_jitdump *dump, const char *name,
		     const char *file, const char *source, uint8_t *at,
		     size_t *size)
{
	struct assembly a = { .code = at };
	struct unwind_tables tables;
	struct seam_jitdump_unwinding unwinding = {
		.eh_frame = tables.frame,
		.eh_frame_size = sizeof(tables.frame),
		.eh_frame_hdr = tables.header,
		.eh_frame_hdr_size = sizeof(tables.header),
	};
	struct seam_jitdump_code code = {
		.name = name, .bytes = at, .lines = a.lines,
		.unwinding = &unwinding,
	};

	compile(&a, source);
	make_tables(&tables, a.n);
	a.lines[0].file = file;
	code.size = *size = a.n;
	code.n_lines = a.n_lines;
	/* A profiler that is not there is no reason to stop. */
	seam_jitdump_load(dump, &code, 1);
	return code.id;
}

static void run(uint8_t *code, int rounds, int (*put)(int))
{
	uint8_t tape[TAPE];
	program *go;

	memcpy(&go, &code, sizeof(go));
	for (int i = 0; i < rounds; i++) {
		memset(tape, 0, sizeof(tape));
		go(tape + TAPE / 2, put);
	}
}

static int swallow(int c)
{
	return c;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 300;
	struct seam_jitdump_options options = {
		.folder = argc > 2 ? argv[2] : NULL,
	};
	struct seam_jitdump_code none = { .name = "empty", .addr = 0x1000 };
	struct seam_jitdump *dump;
	uint64_t id;
	size_t size;
	uint8_t *cache = mmap(NULL, CACHE_BYTES,
			      PROT_READ | PROT_WRITE | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (cache == MAP_FAILED) {
		perror("jit: no memory that is writable and executable");
		return 1;
	}
	seam_jitdump_open(&dump, &options);
	seam_jitdump_load(dump, &none, 1);

	id = load(dump, "triangle", "triangle.bf", triangle, cache, &size);
	run(cache, 1, putchar);
	run(cache, rounds * 100, swallow);

	memcpy(cache + CACHE_BYTES / 2, cache, size);
	seam_jitdump_move(dump, id, (uintptr_t)cache + CACHE_BYTES / 2);
	run(cache + CACHE_BYTES / 2, rounds * 100, swallow);

	load(dump, "countdown", "countdown.bf", countdown, cache, &size);
	run(cache, rounds / 30 + 1, swallow);
	seam_jitdump_unload(dump, id);

	printf("dump: %s\n", *seam_jitdump_path(dump) ?
	       seam_jitdump_path(dump) : "streamed to the recorder");
	seam_jitdump_close(dump);
	return 0;
}
#endif
