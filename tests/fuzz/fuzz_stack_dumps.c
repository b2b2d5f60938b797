/* SPDX-License-Identifier: MIT */
/*
 * fuzz_stack_dumps.c - samples with registers and a copy of the stack
 *
 * The input is a program that makes up to eight samples of two threads:
 * registers, the stack's words and the kernel's chain are addresses in a file
 * with call frame information of all kinds, in memory without a file, on the
 * stack, or any number.
 *
 * Oracle: the reader of recordings, which walks batches on all cores, and the
 * unwinder of the recorder, which takes one sample after the other and has
 * files, maps and a cache of its own, give the same frames, the same ends and
 * the same places of frames; and no frame but the innermost is outside of known
 * code.  The recorder's samples are then loaded as a recording of their own:
 * stacks are joined as those that the reader unwound.
 */
#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "../perf_bytes.h"
#include "model/load.h"
#include "model/profile/stack_ends.h"
#include "record/stacks/live_stacks.h"
#include "wire/perf/perf_sample.h"

enum {
	FILE_ADDR = 0x400000, FILE_BYTES = 0x2000, CODE = 0x1000,
	FUNCTION = 0x100, N_FUNCTIONS = 8,	/* the last without CFI */
	ANON_ADDR = 0x10000000, ANON_BYTES = 0x10000,
	STACK_ADDR = 0x70000000,
	MAX_SAMPLES = 8, MAX_WORDS = 200, MAX_CHAIN = 12,
	MAX_FRAMES_OF_CHAIN = 127,
	DUMP = 1024, BUILD_ID = 20,
	SAMPLES = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
};

/* ---- the file ---- */

static uint8_t image[FILE_BYTES];
static char path[] = "/tmp/fuzz_stack_dumps_XXXXXX";

static const struct {
	uint8_t n, bytes[15];
} programs[N_FUNCTIONS - 1] = {
	{ 0, { 0 } },
	/* +4: CFA = rsp + 64 */
	{ 3, { 0x44, 0x0e, 64 } },
	/* a frame with rbp */
	{ 8, { 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6 } },
	/* rbx is saved */
	{ 5, { 0x41, 0x0e, 32, 0x83, 3 } },
	/* CFA = rsp + 128, by an expression */
	{ 5, { 0x0f, 3, 0x77, 0x80, 0x01 } },
	/* rbp is at rsp + 8, by an expression */
	{ 7, { 0x0e, 24, 0x10, 6, 2, 0x77, 8 } },
	/* the root */
	{ 2, { 0x07, 16 } },
};

static size_t at_eh;			/* in image, as all of it is written */

static void eh(const void *bytes, size_t n)
{
	memcpy(image + at_eh, bytes, n);
	at_eh += n;
}

static void eh_u32(uint32_t v)
{
	eh(&v, sizeof(v));
}

/* .eh_frame at 0x400, .eh_frame_hdr at 0x300. */
static void put_frames(void)
{
	static const uint8_t cie[] = {
		20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1,
		0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
	};
	uint32_t places[N_FUNCTIONS - 1];
	size_t cie_at = at_eh = 0x400;

	eh(cie, sizeof(cie));
	for (uint32_t i = 0; i < N_FUNCTIONS - 1; i++) {
		uint32_t padded = (programs[i].n + 1 + 7) & ~7U;

		places[i] = (uint32_t)at_eh;
		eh_u32(12 + padded);
		eh_u32((uint32_t)(at_eh - cie_at));
		eh_u32(CODE + i * FUNCTION - (uint32_t)at_eh);
		eh_u32(FUNCTION);
		at_eh++;		/* no augmentation data */
		eh(programs[i].bytes, programs[i].n);
		at_eh += padded - programs[i].n - 1;
	}
	eh_u32(0);
	at_eh = 0x300;
	eh_u32(0x3b031b01);		/* version and encodings */
	eh_u32(0x400 - (uint32_t)at_eh);
	eh_u32(N_FUNCTIONS - 1);
	for (uint32_t i = 0; i < N_FUNCTIONS - 1; i++) {
		eh_u32(CODE + i * FUNCTION - 0x300);
		eh_u32(places[i] - 0x300);
	}
}

static void put_headers(void)
{
	static const uint8_t note[] = {
		4, 0, 0, 0, BUILD_ID, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0,
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
		11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
	};
	const Elf64_Ehdr header = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
		.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = 1,
		.e_entry = CODE + (N_FUNCTIONS - 1) * FUNCTION,
		.e_phoff = sizeof(header), .e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 3,
	};
	const Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X,
		  .p_filesz = FILE_BYTES, .p_memsz = FILE_BYTES,
		  .p_align = 4096 },
		{ .p_type = PT_NOTE, .p_flags = PF_R, .p_offset = 0x200,
		  .p_vaddr = 0x200, .p_filesz = 16 + BUILD_ID,
		  .p_memsz = 16 + BUILD_ID, .p_align = 4 },
		{ .p_type = PT_GNU_EH_FRAME, .p_flags = PF_R,
		  .p_offset = 0x300, .p_vaddr = 0x300, .p_filesz = 0x100,
		  .p_memsz = 0x100, .p_align = 4 },
	};

	memcpy(image, &header, sizeof(header));
	memcpy(image + sizeof(header), segments, sizeof(segments));
	memcpy(image + 0x200, note, sizeof(note));
}

static void remove_file(void)
{
	unlink(path);
}

/* Every 16 bytes a call, so that some return addresses are after one. */
static void make_code_file(void)
{
	int fd = mkstemp(path);

	put_headers();
	put_frames();
	memset(image + CODE, 0x90, FILE_BYTES - CODE);
	for (size_t i = CODE; i < FILE_BYTES; i += 16)
		memcpy(image + i, (uint8_t[]) { 0xe8, 0, 0, 0, 0, 0xc3 }, 6);
	must(fd >= 0 && fchmod(fd, 0644) == 0 &&
	     write(fd, image, sizeof(image)) == sizeof(image));
	close(fd);
	atexit(remove_file);
}

/* ---- the input ---- */

static const uint8_t *input;
static size_t input_left;

static uint8_t next(void)
{
	if (!input_left)
		return 0;
	input_left--;
	return *input++;
}

static uint64_t next_value(uint32_t n_words)
{
	uint8_t how = next(), low = next();
	uint64_t any = 0;

	switch (how & 7) {
	case 0: case 1: case 2:
		return FILE_ADDR + CODE + (how >> 3) % N_FUNCTIONS * FUNCTION +
		       low;
	case 3:		/* after a call */
		return FILE_ADDR + CODE + low * 16 + 5;
	case 4:
		return ANON_ADDR + (uint64_t)low * 3;
	case 5: case 6:
		return STACK_ADDR + 8 * (uint64_t)(n_words ? low % n_words :
						   low);
	default:
		for (int i = 0; i < 8 && how & 8; i++)
			any = any << 8 | next();
		return any;
	}
}

/* The kernel's chain, of the user alone: it begins with @pc. */
static void put_chain(struct bytes *b, uint64_t pc)
{
	size_t n = next() % MAX_CHAIN, at = b->size;

	put_u64(b, n + (n > 0));
	if (n == 0)
		return;
	put_u64(b, (uint64_t)PERF_CONTEXT_USER);
	for (size_t i = 0; i < n; i++)
		put_u64(b, i ? next_value(0) : pc);
	must(b->size == at + 8 * (n + 2));
}

static void put_dump_sample(struct bytes *b, uint64_t time)
{
	uint8_t how = next();
	uint32_t tid = (uint32_t)getpid() + (how & 1);
	uint32_t n_words = next() % MAX_WORDS;
	uint64_t pc = next_value(n_words);
	size_t at = begin_record(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER |
		(how & 2 ? PERF_RECORD_MISC_EXACT_IP : 0));

	if (n_words > DUMP / 8)
		n_words = DUMP / 8;
	put_u64(b, TEST_ID_1);
	put_u64(b, pc);
	put_u32(b, (uint32_t)getpid());
	put_u32(b, tid);
	put_u64(b, time);
	put_u64(b, 1);
	put_u64(b, 250000);
	put_chain(b, pc);
	put_u64(b, how & 4 && how & 8 ? 1 : 2);		/* the ABI */
	for (int i = 0; i < SEAM_PERF_X86_64_COLUMNS; i++)
		/* in the order of the kernel's numbers: 6 rbp, 7 rsp, 8 rip */
		put_u64(b, i == 7 ? STACK_ADDR : i == 8 ? pc : i == 6 ||
			how & 16 ? next_value(n_words) : 0);
	put_u64(b, DUMP);
	for (uint32_t i = 0; i < DUMP / 8; i++)
		put_u64(b, i < n_words ? next_value(n_words) : 0xdead);
	put_u64(b, 8 * n_words);
	end_record(b, at);
}

static void put_mapping(struct bytes *b, uint64_t addr, uint64_t len,
			const char *name, bool has_id)
{
	size_t at = begin_record(b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER |
				 (has_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0));

	put_u32(b, (uint32_t)getpid());
	put_u32(b, (uint32_t)getpid());
	put_u64(b, addr);
	put_u64(b, len);
	put_u64(b, 0);
	put_u32(b, has_id ? BUILD_ID : 0);
	put(b, has_id ? image + 0x210 : (const uint8_t[BUILD_ID]) { 0 },
	    BUILD_ID);
	put_u32(b, PROT_READ | PROT_EXEC);
	put_u32(b, 2);
	put_name(b, name);
	put_stamp(b, getpid(), getpid(), 1);
	end_record(b, at);
}

/* ---- the recorder's way ---- */

static struct seam_live_stacks live;
static struct seam_stack_counts live_counts;

static void map_live(uint64_t addr, uint64_t len, const char *name, bool has_id)
{
	const struct seam_perf_sideband record = {
		.type = PERF_RECORD_MMAP2,
		.mapping = {
			.pid = getpid(), .addr = addr, .len = len,
			.prot = PROT_READ | PROT_EXEC, .filename = name,
			.build_id = image + 0x210,
			.build_id_size = has_id ? BUILD_ID : 0,
		},
	};

	seam_live_stacks_sideband(&live, &record, true);
}

static void begin_live(void)
{
	const struct seam_perf_attr attr = {
		.sample_type = TEST_SAMPLE_TYPE | SAMPLES,
		.sample_regs_user = SEAM_PERF_X86_64_MASK,
		.sample_stack_user = DUMP,
	};

	must(seam_live_stacks_init(&live, &attr, 1, MAX_FRAMES_OF_CHAIN,
				   &live_counts, NULL) == 0);
	map_live(FILE_ADDR, FILE_BYTES, path, true);
	map_live(ANON_ADDR, ANON_BYTES, "//anon", false);
}

/* The user addresses of the samples in @records, after one another. */
static void unwind_live(const struct bytes *records)
{
	memset(&live_counts, 0, sizeof(live_counts));
	live_counts.dump_bytes = DUMP;
	seam_live_stacks_begin_round(&live, false);
	for (size_t at = 0; at < records->size;) {
		struct seam_perf_header header;

		memcpy(&header, records->data + at, sizeof(header));
		if (header.type == PERF_RECORD_SAMPLE)
			seam_live_stacks_sample(&live, 0, records->data + at);
		at += header.size;
	}
}

/* Have the file read: with a sample in it. */
static void warm_up(void)
{
	static const uint8_t one_word[] = { 0, 1 };
	struct bytes records = { .endian = SEAM_LITTLE };
	int fd = -1;

	input = one_word;
	input_left = sizeof(one_word);
	put_dump_sample(&records, 1);
	unwind_live(&records);
	while (seam_live_stacks_is_busy(&live, &fd)) {
		struct pollfd ended = { .fd = fd, .events = POLLIN };

		poll(&ended, 1, 20);
		seam_live_stacks_begin_round(&live, false);
	}
	must(live.files.files.n == 1 &&
	     live.files.files.items[0]->state == SEAM_FILE_CFI_READY);
	free(records.data);
}

/* ---- both ---- */

static bool is_known(uint64_t pc)
{
	return pc - FILE_ADDR < FILE_BYTES || pc - ANON_ADDR < ANON_BYTES;
}

/* As a frame has it: in the file, mapped from its beginning, or in memory. */
static uint64_t place_of(uint64_t pc)
{
	return pc - FILE_ADDR < FILE_BYTES ? pc - FILE_ADDR : pc;
}

static void compare_stack(const struct seam_profile *p, size_t i,
			  const struct seam_perf_sample *sample)
{
	uint32_t stack = p->samples.stack[i];
	size_t n = sample->callchain.n, first = 0;

	while (first < n && seam_perf_u64(&sample->callchain, first) !=
	       (uint64_t)PERF_CONTEXT_USER)
		first++;
	for (size_t k = first + 1; k < n; k++) {
		uint64_t pc = seam_perf_u64(&sample->callchain, k);
		uint64_t place = place_of(pc), addr;

		/* a chain cannot have such an address: it is a mark */
		if (pc >= (uint64_t)PERF_CONTEXT_MAX)
			continue;
		must(stack);
		addr = p->frames.items[p->stacks.items[stack].frame].addr;
		/* a caller is shown at its call */
		must(place == addr || place - addr == 1 ||
		     !is_known(pc) || !is_known(pc - 1));
		/* of a stack that could be unwound */
		must(k == first + 1 || is_known(pc) || is_known(pc - 1) ||
		     live_counts.n_empty || live_counts.n_32_bit);
		stack = p->stacks.items[stack].parent;
	}
	must(!stack || n == 0);
}

/* The next sample that the recorder wrote. */
static void take_sample(size_t *at, struct seam_perf_sample *sample)
{
	struct seam_perf_attr attr = {
		.sample_type = TEST_SAMPLE_TYPE | PERF_SAMPLE_RAW,
	};
	struct seam_perf_header header;

	must(*at + sizeof(header) <= live.out.n);
	memcpy(&header, live.out.items + *at, sizeof(header));
	must(seam_perf_sample_read(&attr, SEAM_NATIVE,
	       seam_perf_record_at(live.out.items + *at).payload, sample) ==
	     0);
	*at += header.size;
}

static void compare(const struct seam_profile *p)
{
	struct seam_perf_sample sample;
	struct seam_stack_counts counts;
	size_t at = 0;

	for (size_t i = 0; i < p->samples.n; i++) {
		take_sample(&at, &sample);
		must(sample.time == p->samples.time_ns[i]);
		compare_stack(p, i, &sample);
	}
	must(live.waiting.n == 0);
	must(seam_stack_ends_count(p, NULL, &counts) == 0);
	must(memcmp(counts.n_ended, live_counts.n_ended,
		    sizeof(counts.n_ended)) == 0);
	must(counts.n_empty == live_counts.n_empty &&
	     counts.n_32_bit == live_counts.n_32_bit &&
	     counts.n_kernel_cut == live_counts.n_kernel_cut);
}

/* Both have joined the same stacks, in the same way. */
static void compare_joined(const struct seam_profile *p,
			   const struct seam_profile *of_live)
{
	must(p->samples.n == of_live->samples.n);
	for (size_t i = 0; i < p->samples.n; i++) {
		uint32_t a = p->samples.stack[i], b = of_live->samples.stack[i];

		must(p->samples.end[i] == of_live->samples.end[i]);
		for (; a && b; a = p->stacks.items[a].parent,
			       b = of_live->stacks.items[b].parent)
			must(p->frames.items[p->stacks.items[a].frame].addr ==
			     of_live->frames.items[
			       of_live->stacks.items[b].frame].addr);
		must(!a && !b);
	}
}

/* As the reader finds it, in a file of memory. */
static void load(struct seam_profile *p, const struct bytes *records,
		 uint64_t more, bool is_plain)
{
	const struct seam_load_options options = {
		.symbols.no_lines = true, .by_record = is_plain,
	};
	struct bytes file = make_file(records);
	int fd = memfd_create("perf.data", MFD_CLOEXEC);
	char name[64];

	set_n(&file, 120 + 24, TEST_SAMPLE_TYPE | more, 8);
	if (more == SAMPLES) {
		set_n(&file, 120 + 80, SEAM_PERF_X86_64_MASK, 8);
		set_n(&file, 120 + 88, DUMP, 4);
	}
	must(fd >= 0 && write(fd, file.data, file.size) ==
			(ssize_t)file.size);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	seam_profile_init(p);
	must(seam_load(p, name, &options, NULL) == 0);
	close(fd);
	free(file.data);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	make_code_file();
	begin_live();
	warm_up();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes records = { .endian = SEAM_LITTLE };
	struct bytes unwound = { .endian = SEAM_LITTLE };
	struct seam_profile p, of_live;
	size_t n;

	input = data;
	input_left = size;
	n = 1 + next() % MAX_SAMPLES;
	put_mapping(&records, FILE_ADDR, FILE_BYTES, path, true);
	put_mapping(&records, ANON_ADDR, ANON_BYTES, "//anon", false);
	put(&unwound, records.data, records.size);
	for (size_t i = 0; i < n; i++)
		put_dump_sample(&records, 1000 + i);
	load(&p, &records, SAMPLES, true);
	must(p.samples.n == n);
	unwind_live(&records);
	compare(&p);
	seam_profile_fini(&p);
	put(&unwound, live.out.items, live.out.n);
	load(&p, &records, SAMPLES, false);
	load(&of_live, &unwound, PERF_SAMPLE_RAW, false);
	compare_joined(&p, &of_live);
	seam_profile_fini(&p);
	seam_profile_fini(&of_live);
	free(records.data);
	free(unwound.data);
	return 0;
}
