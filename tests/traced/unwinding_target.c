/* SPDX-License-Identifier: MIT */
/*
 * unwinding_target.c - a JIT whose code has UNWINDING_INFO, no frame pointer
 *
 * unwinding_target HOW SECONDS.  The code, hop(), saves rbp, sets it to 0 and
 * calls spin() from a frame of a size that only its UNWINDING_INFO has.
 *
 *	plain	it is loaded and called
 *	moved	... at another address
 *	forked	... by a child
 *	large	... in a piece of code that takes several records of a ring
 *	changing  at one address, hop() with one frame or with another, loaded
 *		anew each 2 ms
 */
#include <seam/jitdump.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CODE = 32, FRAME_AT = 6, CACHE_BYTES = 1 << 20, LARGE = 300000 };

typedef void hop(void (*call)(double), double seconds);

static const uint8_t code[CODE] = {
	0x55,						/* push %rbp */
	0x31, 0xed,					/* xor %ebp,%ebp */
	0x48, 0x81, 0xec, 0, 0, 0, 0,			/* sub $N,%rsp */
	0xff, 0xd7,					/* call *%rdi */
	0x48, 0x81, 0xc4, 0, 0, 0, 0,			/* add $N,%rsp */
	0x5d, 0xc3,					/* pop %rbp; ret */
};

static uint8_t *cache;
static struct seam_jitdump *dump;
static volatile unsigned long x;

static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void spin(double seconds)
{
	double end = used() + seconds;

	while (used() < end)
		for (int i = 0; i < 5000; i++)
			x += (unsigned long)i;
}

/* A CIE, CFA = rsp + 8, and an FDE for code of @size with frames of @frame. */
static size_t put_frame(uint8_t *to, uint32_t size, uint32_t frame)
{
	static const uint8_t cie[] = {
		20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1,
		0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
	};
	uint32_t cfa = frame + 16;
	const uint8_t program[] = {
		0, 0x41, 0x0e, 16, 0x86, 2,
		0x49, 0x0e, (uint8_t)(cfa | 0x80), (uint8_t)(cfa >> 7), 0, 0,
	};
	const uint32_t words[4] = {
		(uint32_t)(12 + sizeof(program)), sizeof(cie) + 4,
		(uint32_t)-(int)(size + sizeof(cie) + 8), size,
	};

	memcpy(to, cie, sizeof(cie));
	memcpy(to + sizeof(cie), words, sizeof(words));
	memcpy(to + sizeof(cie) + sizeof(words), program, sizeof(program));
	return sizeof(cie) + sizeof(words) + sizeof(program);
}

/* Make hop() at @at, of @size bytes, and announce it.  Its id. */
static uint64_t load(uint8_t *at, uint32_t size, uint32_t frame)
{
	uint8_t entries[128], header[20] = { 1, 0x1b, 0xff, 0xff };
	struct seam_jitdump_unwinding unwinding = {
		.eh_frame = entries,
		.eh_frame_size = put_frame(entries, size, frame),
		.eh_frame_hdr = header, .eh_frame_hdr_size = sizeof(header),
	};
	struct seam_jitdump_code piece = {
		.name = frame > 0x200 ? "hop2" : "hop", .bytes = at,
		.size = size, .unwinding = &unwinding,
	};

	memset(at, 0xcc, size);
	memcpy(at, code, CODE);
	memcpy(at + FRAME_AT, &frame, sizeof(frame));
	memcpy(at + FRAME_AT + 9, &frame, sizeof(frame));
	if (seam_jitdump_load(dump, &piece, 1))
		exit(9);
	return piece.id;
}

static void call(uint8_t *at, double seconds)
{
	hop *function;

	memcpy(&function, &at, sizeof(function));
	function(spin, seconds);
	x++;
}

static void change(double seconds)
{
	for (int i = 0; i < seconds / 0.002; i++) {
		load(cache, CODE, i % 2 ? 0x100 : 0x300);
		call(cache, 0.002);
	}
}

static void run(const char *how, double seconds)
{
	uint64_t id;

	if (strcmp(how, "changing") == 0) {
		change(seconds);
		return;
	}
	id = load(cache, strcmp(how, "large") == 0 ? LARGE : CODE, 0x100);
	if (strcmp(how, "moved") == 0) {
		memcpy(cache + 4096, cache, CODE);
		memset(cache, 0xcc, CODE);
		if (seam_jitdump_move(dump, id,
				      (uint64_t)(uintptr_t)cache + 4096))
			exit(8);
		call(cache + 4096, seconds);
	} else if (strcmp(how, "forked") == 0 && fork() != 0) {
		wait(NULL);
	} else {
		call(cache, seconds);
	}
}

int main(int n, char **words)
{
	const struct seam_jitdump_options options = {
		.folder = n > 3 ? words[3] : NULL,
	};

	cache = mmap(NULL, CACHE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (n < 3 || cache == MAP_FAILED || seam_jitdump_open(&dump, &options))
		return 7;
	run(words[1], atof(words[2]));
	return 0;
}
