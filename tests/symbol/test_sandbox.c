/* SPDX-License-Identifier: MIT */
/*
 * test_sandbox.c - files are read by a process that can do nothing else
 *
 * dwarf_begin_elf() goes through the test: for the file "evil" it does what a
 * file could make it do.  The child is a fork, so it does that too.
 */
#include "symbol/sandbox/sandbox.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <capstone/capstone.h>
#include <elf.h>
#include <elfutils/libdw.h>

#include "build.h"
#include "symbol/code/disassembly.h"
#include "symbol/module/elf_module.h"
#include "symbol/symbolizer/symbolizer.h"
#include "symbol/symbols.h"
#include "symbol/xray/xray_map.h"
#include "unit.h"

static const char program[] =
	"static inline __attribute__((always_inline)) int in(int x) {\n"
	"	return x * x + 1; }\n"
	"int __attribute__((noinline)) work(int x) { return in(x) * 3; }\n"
	"int main(int argc, char **argv) { return work(argc); }\n";

enum { MARK = 15 };	/* the byte of e_ident by which "evil" is known */

static void (*evil)(void);
static char folder[4096];

Dwarf *__real_dwarf_begin_elf(Elf *elf, Dwarf_Cmd cmd, Elf_Scn *group);
Dwarf *__wrap_dwarf_begin_elf(Elf *elf, Dwarf_Cmd cmd, Elf_Scn *group);

Dwarf *__wrap_dwarf_begin_elf(Elf *elf, Dwarf_Cmd cmd, Elf_Scn *group)
{
	const char *ident = elf_getident(elf, NULL);

	if (evil && ident && ident[MARK] == 'E')
		evil();
	return __real_dwarf_begin_elf(elf, cmd, group);
}

static void (*evil_code)(void);

static cs_err (*real_cs_open)(cs_arch arch, cs_mode mode, csh *handle);

static cs_err evil_cs_open(cs_arch arch, cs_mode mode, csh *handle)
{
	if (evil_code)
		evil_code();
	return real_cs_open(arch, mode, handle);
}

/* capstone is loaded at run time. */
void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);

void *__wrap_dlsym(void *library, const char *name)
{
	void *function = __real_dlsym(library, name);

	if (!function || strcmp(name, "cs_open") != 0)
		return function;
	memcpy(&real_cs_open, &function, sizeof(function));
	return (void *)evil_cs_open;
}

static void (*evil_map)(void);

Elf *__real_elf_memory(char *image, size_t size);
Elf *__wrap_elf_memory(char *image, size_t size);

Elf *__wrap_elf_memory(char *image, size_t size)
{
	if (evil_map)
		evil_map();
	return __real_elf_memory(image, size);
}

static int enter(void **state)
{
	if (build_enter(state))
		return -1;
	build_write("p.c", program);
	build_run("gcc -O1 -g -o good p.c && gcc -O1 -g -o other p.c && "
		  "strip -s -o bare good");
	build_run("cp good evil && printf E | "
		  "dd of=evil bs=1 seek=15 conv=notrunc status=none");
	return getcwd(folder, sizeof(folder)) ? 0 : -1;
}

/* -- asking ------------------------------------------------------------- */

static struct seam_symbols *begin(void)
{
	struct seam_symbols *symbols = seam_symbols_new(
		&(struct seam_symbols_options) { 0 });

	assert_non_null(symbols);
	return symbols;
}

static uint32_t module_of(struct seam_symbols *symbols, const char *name)
{
	char path[5000];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return seam_symbols_module(symbols, &(struct seam_module) {
		.path = path,
	});
}

/* Why there are no symbols, or not all; NULL where there is no reason. */
static const char *problem(struct seam_symbols *symbols, uint32_t module)
{
	struct seam_module_state of;

	seam_symbols_state(symbols, module, &of);
	return of.problem;
}

/* The same where the process that read it has died. */
static const char *lost(struct seam_symbols *symbols, uint32_t module)
{
	struct seam_module_state of;

	seam_symbols_state(symbols, module, &of);
	return of.is_lost ? of.problem : NULL;
}

/* Every place of the file; how many have a name, and how many an inlined. */
static void ask_all(struct seam_symbols *symbols, uint32_t module,
		    size_t *n_named, size_t *n_inlined)
{
	*n_named = *n_inlined = 0;
	for (uint64_t offset = 0x1000; offset < 0x1400; offset++) {
		struct seam_location at[8];
		size_t n = seam_symbols_resolve(symbols, module, offset, at, 8);

		*n_named += n > 0 && at[n - 1].function;
		*n_inlined += n > 1;
	}
}

static void assert_reads(struct seam_symbols *symbols, const char *name)
{
	size_t n_named, n_inlined;

	ask_all(symbols, module_of(symbols, name), &n_named, &n_inlined);
	assert_true(n_named > 50);
	assert_true(n_inlined > 0);
}

/* The process that this one has started last. */
static pid_t child(void)
{
	char path[64];
	FILE *in;
	int pid = 0, next;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children",
		 (int)gettid());
	in = fopen(path, "re");
	assert_non_null(in);
	while (fscanf(in, "%d", &next) == 1)
		pid = next;
	fclose(in);
	return pid;
}

/* -- the same answers --------------------------------------------------- */

/* The same file, read here. */
struct here {
	struct seam_symbols_options options;
	struct seam_module file;
	struct seam_elf_module module;
	char path[5000];
};

static struct seam_elf_module *read_here(struct here *here, const char *name)
{
	memset(here, 0, sizeof(*here));
	snprintf(here->path, sizeof(here->path), "%s/%s", folder, name);
	here->file.path = here->path;
	here->module.options = &here->options;
	here->module.file = &here->file;
	seam_elf_module_read(&here->module);
	return &here->module;
}

static void assert_opens_alike(struct seam_symbols *a, uint32_t in_a,
			       struct seam_elf_module *b)
{
	for (int is_debug = 0; is_debug < 2; is_debug++) {
		struct seam_module_file x = { .fd = -1 }, y = { .fd = -1 };
		struct seam_err err = { 0 };
		struct stat of_x, of_y;
		int r = seam_symbols_open(a, in_a, is_debug, &x, &err);

		assert_int_equal(r, seam_elf_module_open(b, is_debug, &y,
							 &err));
		if (r)
			continue;
		assert_int_equal(fstat(x.fd, &of_x), 0);
		assert_int_equal(fstat(y.fd, &of_y), 0);
		assert_int_equal(of_x.st_ino, of_y.st_ino);
		assert_int_equal(x.machine.elf_machine, y.machine.elf_machine);
		assert_int_equal(x.machine.is_64, y.machine.is_64);
		close(x.fd);
		close(y.fd);
	}
}

static void assert_resolves_alike(struct seam_symbols *a, uint32_t in_a,
				  struct seam_elf_module *b, uint64_t pos)
{
	struct seam_location x[8], y[8];
	size_t n = seam_symbols_resolve(a, in_a, pos, x, 8);
	struct seam_extent e_a = { 0 }, e_b = { 0 };

	assert_int_equal(seam_symbols_extent(a, in_a, pos, &e_a),
			 seam_elf_module_extent(b, pos, &e_b));
	assert_memory_equal(&e_a, &e_b, sizeof(e_a));
	assert_int_equal(seam_symbols_is_trampoline(a, in_a, pos),
			 seam_elf_module_is_trampoline(b, pos));
	assert_int_equal(n, seam_elf_module_resolve(b, pos, y, 8));
	for (size_t k = 0; k < n; k++) {
		assert_string_equal(x[k].function ? x[k].function : "-",
				    y[k].function ? y[k].function : "-");
		assert_string_equal(x[k].file ? x[k].file : "-",
				    y[k].file ? y[k].file : "-");
		assert_int_equal(x[k].line, y[k].line);
		assert_int_equal(x[k].is_inlined, y[k].is_inlined);
	}
}

UNIT_TEST(answers_are_those_of_reading_it_here)
{
	static const char *const names[] = { "good", "bare", "none", "p.c" };
	struct seam_symbols *a = begin();
	struct seam_module_state of_a;
	struct here here;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++) {
		uint32_t in_a = module_of(a, names[i]);
		struct seam_elf_module *b = read_here(&here, names[i]);

		for (uint64_t pos = 0; pos < 0x1800; pos++)
			assert_resolves_alike(a, in_a, b, pos);
		assert_opens_alike(a, in_a, b);
		seam_symbols_state(a, in_a, &of_a);
		assert_int_equal(of_a.missing, b->missing);
		assert_string_equal(of_a.problem ? of_a.problem : "",
				    b->problem);
		seam_elf_module_fini(b);
	}
	seam_symbols_free(a);
}

/* ---- names of functions ---- */

/* Names of functions that begin at addresses, by index. */
struct named {
	size_t n;
	char text[3000][40];
};

static int take_name(void *context, size_t i, const char *name)
{
	struct named *named = context;

	named->n++;
	snprintf(named->text[i], sizeof(named->text[i]), "%s", name);
	return 0;
}

/* Also inside of functions and outside of the file; several messages. */
UNIT_TEST(functions_have_names_where_they_begin)
{
	struct seam_symbols *symbols = begin();
	uint64_t work = build_symbol("good", "work"), addresses[3000];
	static struct named named;
	const struct seam_named_addresses names = {
		.addresses = addresses, .n = 3000, .take = take_name,
		.context = &named,
	};

	for (size_t i = 0; i < 3000; i++)
		addresses[i] = work + i - 1500;
	addresses[0] = UINT64_MAX;
	assert_int_equal(seam_symbols_names(symbols,
			module_of(symbols, "good"), &names), 0);
	assert_string_equal(named.text[1500], "work");
	assert_string_equal(named.text[1501], "");
	assert_true(named.n >= 2 && named.n < 30);
	named.n = 0;
	assert_int_equal(seam_symbols_names(symbols,
			module_of(symbols, "none"), &names), 0);
	assert_int_equal(seam_symbols_names(symbols, 99, &names), 0);
	assert_int_equal(named.n, 0);
	/* a process that was killed costs the names of one file */
	kill(child(), SIGKILL);
	assert_int_equal(seam_symbols_names(symbols,
			module_of(symbols, "good"), &names), 0);
	assert_int_equal(named.n, 0);
	assert_non_null(lost(symbols, module_of(symbols, "good")));
	assert_int_equal(seam_symbols_names(symbols,
			module_of(symbols, "other"), &names), 0);
	assert_string_equal(named.text[1500], "work");
	seam_symbols_free(symbols);
}

struct listing {
	size_t n, bytes;
	char text[64][64];
};

static int list(void *context, const struct seam_instruction *one)
{
	struct listing *to = context;

	to->bytes += one->size;
	snprintf(to->text[to->n++ % 64], 64, "%lx %.40s", (long)one->addr,
		 one->text);
	return 0;
}

/* push rbp; mov rbp, rsp; no instruction; ret; half of one */
static const uint8_t instructions[] = {
	0x55, 0x48, 0x89, 0xe5, 0x06, 0xc3, 0x48, 0x89,
};

static const struct seam_code_block block = {
	.machine = { .elf_machine = EM_X86_64, .is_64 = true },
	.bytes = { instructions, sizeof(instructions) }, .addr = 0x1000,
};

/* A file is opened again for those without a name, amid an answer. */
UNIT_TEST(expected_places_come_with_the_first)
{
	struct seam_symbols *a = begin();
	struct here here;
	struct seam_elf_module *b = read_here(&here, "good");
	uint32_t in_a = module_of(a, "good");
	struct seam_location x[8];
	enum { N = 0x400 };	/* of headers: without a name */

	for (uint64_t pos = 0; pos < N; pos++)
		seam_symbols_expect(a, in_a, pos);
	assert_int_equal(seam_symbols_resolve(a, in_a, build_offset("good",
		build_symbol("good", "main")), x, 8), 1);
	assert_string_equal(x[0].function, "main");
	for (uint64_t pos = 0; pos < N; pos++)
		assert_resolves_alike(a, in_a, b, pos);
	assert_null(lost(a, in_a));
	seam_elf_module_fini(b);
	seam_symbols_free(a);
}

UNIT_TEST(instructions_are_those_of_decoding_them_here)
{
	struct seam_symbols *a = begin();
	struct seam_code_block code = block;
	struct seam_err err = { 0 };

	for (size_t middle = 0; middle <= sizeof(instructions); middle++) {
		struct listing x = { 0 }, y = { 0 };

		code.middle = middle;
		assert_int_equal(seam_symbols_disassemble(a, &code, list, &x,
							  &err), 0);
		assert_int_equal(seam_disassembly_walk(&code, list, &y, &err),
				 0);
		assert_true(x.n > 0);
		assert_memory_equal(&x, &y, sizeof(x));
	}
	code.machine.elf_machine = EM_VAX;
	assert_int_equal(seam_symbols_disassemble(a, &code, list, NULL, &err),
			 -ENOTSUP);
	assert_non_null(strstr(err.cause[0], "machine 75"));
	seam_symbols_free(a);
}

UNIT_TEST(a_kernels_code_is_read)
{
	static const uint8_t id[] = { 0x12, 0x34, 0x56, 0x78 };
	const char *root = build_path("k");
	const struct seam_symbols_options options = {
		.symfs = &root, .n_symfs = 1,
	};
	struct seam_kernel kernel = {
		.build_id = id, .build_id_size = sizeof(id),
		.text_addr = 0xffffffff81000000,
	};
	struct seam_symbols *symbols;
	struct seam_machine machine = { 0 };
	struct seam_err err = { 0 };
	uint8_t code[4] = { 0 };
	uint32_t m;

	build_write("k.s", ".globl _start, _text\n.text\n_text: _start:\n"
		    ".byte 1, 2, 3, 4, 5, 6, 7, 8\n");
	build_run("mkdir -p k && gcc -nostdlib -static "
		  "-Wl,--build-id=0x12345678 -o k/vmlinux k.s");
	symbols = seam_symbols_new(&options);
	m = seam_symbols_kernel(symbols, &kernel);
	assert_int_equal(seam_symbols_code(symbols, m, kernel.text_addr + 2,
					   code, 4, &machine, &err), 0);
	assert_memory_equal(code, "\3\4\5\6", 4);
	assert_true(machine.elf_machine && machine.is_64);
	assert_int_equal(seam_symbols_code(symbols, m,
			kernel.text_addr + (1 << 20), code, 4, &machine, &err),
			 -ENXIO);
	assert_non_null(strstr(err.cause[0], "made at run time"));
	seam_symbols_free(symbols);
}

/* -- deaths ------------------------------------------------------------- */

static void crash(void)
{
	raise(SIGSEGV);
	abort();
}

static void escape(void)
{
	kill(getppid(), 0);
	_exit(0);
}

static void loop(void)
{
	for (volatile unsigned int i = 0;; i++)
		;
}

static void lie(void)
{
	static const char words[] = "kind\377\377\377\377and no answer";

	if (send(3, words, sizeof(words), MSG_NOSIGNAL) < 0)
		_exit(9);
}

static void leave(void)
{
	_exit(7);
}

static const struct {
	void (*evil)(void);
	const char *why;
} deaths[] = {
	{ crash, "was killed by signal 11" },
	{ abort, "was killed by signal 6" },
	{ escape, SEAM_IS_SANITIZED ? "status 0" : "forbidden system call" },
	{ leave, "status 7" },
	{ loop, "took more than 1 seconds" },
	{ lie, "invalid reply" },
};

/* Reply to the requests to read and to open the module: with a pipe. */
static void hand_over_a_pipe(void)
{
	struct seam_ipc ipc = { .fd = 3 };
	struct seam_message request;
	int ends[2];

	seam_ipc_put_u32(&ipc, 0);
	seam_ipc_put_u32(&ipc, 1);
	seam_ipc_put_u32(&ipc, 0);
	seam_ipc_put_text(&ipc, "");
	if (seam_ipc_send(&ipc, SEAM_SYMBOLIZER_DONE, -1) ||
	    seam_ipc_receive(&ipc, &request) || pipe(ends) < 0)
		_exit(9);
	seam_symbolizer_put_machine(&ipc, &(struct seam_machine) { 0 });
	seam_ipc_send(&ipc, SEAM_SYMBOLIZER_DONE, ends[0]);
	_exit(0);
}

UNIT_TEST(a_reader_can_hand_over_files_alone)
{
	struct seam_symbols *symbols = begin();
	struct seam_module_file file;
	struct seam_err err = { 0 };
	uint32_t good, bad;

	evil = hand_over_a_pipe;
	kill(child(), SIGKILL);
	module_of(symbols, "none");
	good = module_of(symbols, "good");
	assert_int_equal(seam_symbols_open(symbols, 0, false, &file, &err),
			 -EIO);		/* whose reader was killed */
	assert_int_equal(seam_symbols_open(symbols, good, false, &file, &err),
			 0);
	close(file.fd);
	bad = module_of(symbols, "evil");
	assert_int_equal(seam_symbols_open(symbols, bad, false, &file, &err),
			 -EIO);
	assert_string_equal(lost(symbols, bad),
			    "the process that read it sent an invalid reply");
	assert_int_equal(seam_symbols_open(symbols, bad, false, &file, &err),
			 -EIO);
	assert_reads(symbols, "good");
	evil = NULL;
	seam_symbols_free(symbols);
}

static unsigned int n_opened;	/* files, for a reader */

int __real_seam_elf_open_fd(const char *path, struct seam_err *err);
int __wrap_seam_elf_open_fd(const char *path, struct seam_err *err);
int __wrap_seam_elf_open_fd(const char *path, struct seam_err *err)
{
	n_opened++;
	return __real_seam_elf_open_fd(path, err);
}

static void beg(void)
{
	struct seam_ipc ipc = { .fd = 3 };
	struct seam_message reply;

	do
		seam_ipc_put_text(&ipc, "/none");
	while (!seam_ipc_send(&ipc, SEAM_SYMBOLIZER_FILE, -1) &&
	       !seam_ipc_receive(&ipc, &reply));
}

UNIT_TEST(a_reader_that_asks_for_files_without_end_is_ended)
{
	struct seam_symbols *symbols = begin();
	size_t n_named, n_inlined;
	uint32_t m;

	evil = beg;
	kill(child(), SIGKILL);
	module_of(symbols, "none");
	ask_all(symbols, 0, &n_named, &n_inlined);
	m = module_of(symbols, "evil");
	n_opened = 0;
	ask_all(symbols, m, &n_named, &n_inlined);
	assert_string_equal(lost(symbols, m),
			    "the process that read it sent an invalid reply");
	assert_int_equal(n_opened, 4096);
	assert_reads(symbols, "good");
	evil = NULL;
	seam_symbols_free(symbols);
}

/* Before, between and after other files. */
UNIT_TEST(a_file_that_kills_its_reader_costs_its_own_names_only)
{
	seam_sandbox_cpu_s = 1;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(deaths); i++) {
		struct seam_symbols *symbols = begin();
		size_t n_named, n_inlined;
		uint32_t m;

		evil = deaths[i].evil;
		/* the child that runs was forked before it turned evil */
		kill(child(), SIGKILL);
		module_of(symbols, "none");
		ask_all(symbols, 0, &n_named, &n_inlined);
		assert_reads(symbols, "good");
		m = module_of(symbols, "evil");
		ask_all(symbols, m, &n_named, &n_inlined);
		assert_int_equal(n_inlined, 0);
		assert_non_null(lost(symbols, m));
		if (!strstr(lost(symbols, m), deaths[i].why))
			fail_msg("%s: %s", deaths[i].why,
				 lost(symbols, m));
		assert_string_equal(problem(symbols, m), lost(symbols, m));
		assert_reads(symbols, "good");
		assert_reads(symbols, "other");
		seam_symbols_free(symbols);
		evil = NULL;
	}
	seam_sandbox_cpu_s = 60;
}

UNIT_TEST(code_that_kills_its_decoder_costs_its_listing_only)
{
	struct seam_symbols *symbols = begin();
	struct listing listing = { 0 };
	struct seam_err err = { 0 };

	evil_code = crash;
	for (int i = 0; i < 2; i++)
		assert_int_equal(seam_symbols_disassemble(symbols, &block,
					list, &listing, &err), -EIO);
	assert_non_null(strstr(err.cause[err.n_causes - 1],
			       "the process that read it"));
	evil_code = NULL;
	assert_reads(symbols, "good");
	assert_int_equal(seam_symbols_disassemble(symbols, &block, list,
						  &listing, &err), 0);
	assert_int_equal(listing.bytes, sizeof(instructions));
	seam_symbols_free(symbols);
}

/* The result of reading @name, which was found and not named. */
static int read_map(struct seam_symbols *symbols, const char *name,
		    struct seam_err *err)
{
	struct seam_xray_map map;
	uint64_t left = 1 << 20;
	int r = seam_symbols_read_map(symbols, &map, build_path(name), &left,
				      err);

	if (r == 0) {
		assert_int_equal(map.functions.n, 1);
		assert_in_range(left, (1 << 20) - 200, (1 << 20) - 1);
		seam_xray_map_fini(&map);
	}
	return r;
}

UNIT_TEST(a_map_that_kills_its_reader_is_an_error)
{
	struct seam_symbols *symbols = begin();
	struct seam_err err = { 0 };

	build_write("map.yaml", "- { id: 1, address: 0x1, function: 0x1, "
		    "kind: function-enter, function-name: f }\n");
	for (int i = 0; i < 100; i++)
		assert_int_equal(read_map(symbols, "map.yaml", &err), 0);
	kill(child(), SIGKILL);
	assert_int_equal(read_map(symbols, "map.yaml", &err), -EIO);
	assert_non_null(strstr(err.cause[0], "the process that read it "
			       "was killed by signal"));
	assert_int_equal(read_map(symbols, "map.yaml", &err), 0);
	assert_int_equal(read_map(symbols, "good", &err), -ENODATA);
	evil_map = leave;
	kill(child(), SIGKILL);
	/* a fork for each of thousands would take minutes */
	for (int i = 0; i < 200; i++)
		assert_int_equal(read_map(symbols, "good", &err), -EIO);
	assert_int_equal(child(), 0);
	evil_map = NULL;
	seam_symbols_free(symbols);
}

UNIT_TEST(a_map_that_was_found_is_no_link_and_not_too_large)
{
	struct seam_symbols *symbols = begin();
	struct seam_xray_map map;
	uint64_t left = 10;

	build_run("ln -sf map.yaml link.yaml");
	assert_int_equal(read_map(symbols, "link.yaml", NULL), -ELOOP);
	assert_int_equal(seam_symbols_read_map(symbols, &map,
			build_path("map.yaml"), &left, NULL), -EFBIG);
	assert_int_equal(left, 10);
	assert_int_equal(seam_symbols_read_map(symbols, &map,
			build_path("link.yaml"), NULL, NULL), 0);
	seam_xray_map_fini(&map);
	seam_symbols_free(symbols);
}

UNIT_TEST(a_reader_that_is_killed_is_replaced_at_any_point)
{
	enum { K = 24 };

	for (size_t k = 0; k < K; k++) {
		struct seam_symbols *symbols = begin();
		uint32_t good = module_of(symbols, "good");
		uint32_t other = module_of(symbols, "other");
		struct seam_location at[8];
		size_t n_named, n_inlined;
		pid_t first = child();

		for (size_t i = 0; i < K; i++) {
			if (i == k)
				kill(child(), SIGKILL);
			seam_symbols_resolve(symbols, i % 2 ? good : other,
					     0x1000 + 10 * i, at, 8);
		}
		assert_int_not_equal(first, child());
		/* one of the two was being asked about */
		assert_true(!lost(symbols, good) ||
			    !lost(symbols, other));
		ask_all(symbols, lost(symbols, good) ? other :
			good, &n_named, &n_inlined);
		assert_true(n_named > 50);
		assert_true(n_inlined > 0);
		seam_symbols_free(symbols);
		assert_int_equal(child(), 0);
	}
}

/* -- rights ------------------------------------------------------------- */

/* What a process that was taken over would try; each should fail. */
static void try_everything(struct seam_ipc *ipc, void *context)
{
	uint32_t done = 0;
	void *p;

	done |= open("/etc/passwd", O_RDONLY) >= 0 ? 1 : 0;
	done |= open("/tmp/seam-sandbox", O_RDWR | O_CREAT, 0600) >= 0 ? 2 : 0;
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	done |= p != MAP_FAILED ? 4 : 0;
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	done |= p != MAP_FAILED && !mprotect(p, 4096, PROT_READ | PROT_EXEC) ?
		8 : 0;
	seam_ipc_put_u32(ipc, done);
	seam_ipc_send(ipc, 1, -1);
}

/* The effective user of process @pid. */
static uid_t user_of(pid_t pid)
{
	char path[64], line[256];
	unsigned int uid = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	in = fopen(path, "re");
	assert_non_null(in);
	while (fgets(line, sizeof(line), in) &&
	       sscanf(line, "Uid: %*u %u", &uid) != 1)
		;
	fclose(in);
	return uid;
}

UNIT_TEST(a_reader_can_open_and_execute_nothing)
{
	struct seam_sandbox sandbox;
	struct seam_message answer;
	struct seam_err err = { 0 };

	assert_int_equal(seam_sandbox_start(&sandbox, try_everything, NULL,
					    &err), 0);
	if (seam_sandbox_missing(&sandbox))
		print_message("# without: %s\n",
			      seam_sandbox_missing(&sandbox));
	else {
		assert_int_equal(seam_ipc_receive(&sandbox.ipc, &answer), 0);
		assert_int_equal(seam_cursor_u32(&answer.body), 0);
		assert_true(user_of(sandbox.pid) > 0);
	}
	seam_sandbox_end(&sandbox, NULL, 0);
}

enum { N_MORE = 4 };

struct attempt {
	int number;
	pid_t parent;
};

static bool succeeds(const struct attempt *a)
{
	switch (a->number) {
	case 0: return fork() >= 0;
	case 1: return socket(AF_INET, SOCK_STREAM, 0) >= 0;
	case 2: return kill(a->parent, 0) == 0;
	/* the one signal that is allowed is a thread's own */
	default: return !syscall(SYS_tgkill, a->parent, a->parent, 0);
	}
}

static void try_one(struct seam_ipc *ipc, void *attempt)
{
	seam_ipc_put_u32(ipc, succeeds(attempt));
	seam_ipc_send(ipc, 1, -1);
}

/* It ends, or (where a sanitizer needs the process) is refused. */
UNIT_TEST(a_reader_that_tries_more_ends)
{
	for (int i = 0; i < N_MORE; i++) {
		struct attempt attempt = { i, getpid() };
		struct seam_sandbox sandbox;
		struct seam_message answer;
		struct seam_err err = { 0 };
		char why[100];
		int r = 0;

		assert_int_equal(seam_sandbox_start(&sandbox, try_one,
						    &attempt, &err), 0);
		if (!(sandbox.refused & SEAM_SANDBOX_SECCOMP)) {
			r = seam_ipc_receive(&sandbox.ipc, &answer);
			assert_int_equal(r, SEAM_IS_SANITIZED ? 0 : -EPIPE);
			if (r == 0)
				assert_int_equal(
					seam_cursor_u32(&answer.body), 0);
		}
		seam_sandbox_end(&sandbox, why, sizeof(why));
		if (r == -EPIPE)
			assert_string_equal(why,
					    "made a forbidden system call");
	}
}

/* ---- messages ---- */

/* Write the start of a message, and then a byte each 2 ms for 4 s. */
_Noreturn static void write_byte_by_byte(int fd)
{
	const uint32_t header[] = { 1, 1 << 20 };
	const struct timespec pause = { .tv_nsec = 2000000 };

	for (int i = 0; i < 2000; i++) {
		if (send(fd, header, i ? 1 : sizeof(header), MSG_NOSIGNAL) < 0)
			break;
		nanosleep(&pause, NULL);
	}
	_exit(0);
}

UNIT_TEST(a_message_that_comes_byte_by_byte_is_given_up)
{
	const struct timeval second = { .tv_sec = 1 };
	struct seam_ipc ipc = { 0 };
	struct seam_message message;
	int ends[2], status;
	pid_t writer;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	writer = fork();
	if (writer == 0) {
		close(ends[0]);
		write_byte_by_byte(ends[1]);
	}
	close(ends[1]);
	ipc.fd = ends[0];
	ipc.peer = writer;
	seam_sandbox_cpu_s = 0;
	setsockopt(ipc.fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	assert_int_equal(seam_ipc_receive(&ipc, &message), -ETIMEDOUT);
	seam_sandbox_cpu_s = 60;
	free(ipc.in.items);
	close(ipc.fd);
	assert_int_equal(waitpid(writer, &status, 0), writer);
}

UNIT_MAIN(enter, build_leave, NULL, NULL)
