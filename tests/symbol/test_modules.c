/* SPDX-License-Identifier: MIT */
/* test_modules.c - which file is used, and what is read from it */
#include "symbol/symbols.h"

#include <dlfcn.h>

#include "base/text.h"
#include "build.h"
#include "symbol/elf/elf_file.h"
#include "unit.h"

static const char program[] =
	"#include <stdlib.h>\n"
	"int __attribute__((noinline)) work(int x) { return x * x + 1; }\n"
	"static int __attribute__((noinline, used)) hidden(int x) {\n"
	"	return work(x) * 7; }\n"
	"int main(int argc, char **argv) {\n"
	"	return hidden(argc) + (argc > 5 ? abs(atoi(argv[1])) : 0); }\n";

static const struct seam_symbols_options no_options;

/* Of each test; at its begin no_options. */
static struct seam_symbols_options options;

/* Of the file "full", and where its local function is. */
static uint8_t id[20];
static size_t id_size;
static char id_text[41];
static uint64_t hidden;

static int enter(void **state)
{
	if (build_enter(state))
		return -1;
	build_write("p.c", program);
	build_run("gcc -O1 -g -Wl,--build-id -o full p.c");
	build_run("objcopy --only-keep-debug full full.debug");
	build_run("objcopy --strip-all full bare");
	build_run("objcopy --strip-all --add-gnu-debuglink=full.debug full "
		  "linked");
	build_run("gcc -O2 -g -Wl,--build-id -DOTHER=1 -o other p.c");
	id_size = build_id("full", id);
	seam_text_hex(id_text, id, id_size);
	hidden = build_offset("full", build_symbol("full", "hidden"));
	return 0;
}

static int set_up(void **state)
{
	options = no_options;
	return 0;
}

/* Ask for the code at @offset of a module that was mapped from @path. */
static struct build_answer ask(const char *path, const uint8_t *with,
			       size_t size, uint64_t offset)
{
	return build_resolve_with(&options, &(struct seam_module) {
		.path = path, .build_id = with, .build_id_size = size,
	}, offset);
}

/* The function where "hidden" is, by the build id of "full", or without. */
static void expect_by_id(const char *path, const char *name)
{
	assert_string_equal(ask(path, id, id_size, hidden).function, name);
}

static void expect(const char *path, const char *name)
{
	assert_string_equal(ask(path, NULL, 0, hidden).function, name);
}

static void expect_problem(const char *path, const char *problem)
{
	assert_non_null(strstr(ask(path, NULL, 0, 0x10).problem, problem));
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

TEST(a_path_is_used_when_its_build_id_is_the_recorded)
{
	struct build_answer a = ask(build_path("full"), id, id_size, hidden);
	uint8_t wrong[20];

	assert_string_equal(a.function, "hidden");
	assert_string_equal(a.problem, "");
	memcpy(wrong, id, sizeof(wrong));
	wrong[3] ^= 1;
	a = ask(build_path("full"), wrong, id_size, hidden);
	assert_int_equal(a.n, 0);
	assert_non_null(strstr(a.problem, "build id is "));
	assert_non_null(strstr(a.problem, ", the recording has "));
}

TEST(without_a_recorded_build_id_the_path_counts)
{
	expect(build_path("full"), "hidden");
}

/* A build whose id has @size bytes is found by that id padded to 20. */
static void check_padded(const char *flag, size_t size)
{
	uint8_t padded[20] = { 0 };
	uint64_t offset;
	char text[41];

	build_run("gcc -O1 -g -Wl,--build-id=%s -o padded p.c", flag);
	offset = build_offset("padded", build_symbol("padded", "hidden"));
	assert_int_equal(build_id("padded", padded), size);
	assert_string_equal(ask(build_path("padded"), padded, 20,
				offset).function, "hidden");
	build_run("mkdir -p padded.seam/elf && cp padded padded.seam/elf/%s",
		  seam_text_hex(text, padded, size));
	options.bundle = build_path("padded.seam");
	assert_string_equal(ask("/gone", padded, 20, offset).function,
			    "hidden");
	padded[19] = 1;
	assert_int_equal(ask(build_path("padded"), padded, 20, offset).n, 0);
}

TEST(ids_padded_with_zeros_are_those_without)
{
	check_padded("md5", 16);
	check_padded("0x0123456789abcdef", 8);
	check_padded("0x01020304", 4);
}

TEST(the_bundle_has_what_is_gone_from_disk)
{
	options.bundle = build_path("x.seam");
	build_run("mkdir -p x.seam/elf && cp full x.seam/elf/%s", id_text);
	expect_by_id("/gone/prog (deleted)", "hidden");
	/* A file in the bundle under a name that is not its id. */
	build_run("cp other x.seam/elf/%s", id_text);
	expect_by_id("/gone/prog (deleted)", "none");
}

/* What has the build id of "full" in the bundle has other names than it. */
TEST(the_file_at_its_path_comes_before_the_bundle)
{
	options.bundle = build_path("f.seam");
	build_run("mkdir -p f.seam/elf && objcopy --redefine-sym "
		  "hidden=forged full f.seam/elf/%s", id_text);
	expect_by_id("/gone", "forged");
	expect_by_id(build_path("full"), "hidden");
}

TEST(deleted_is_cut_off_only_with_a_build_id_as_proof)
{
	char path[512];

	snprintf(path, sizeof(path), "%s (deleted)", build_path("full"));
	expect_by_id(path, "hidden");
	expect(path, "none");
}

TEST(symfs_roots_come_before_the_path)
{
	const char *root = build_path("root");

	build_run("mkdir -p root/opt && cp full root/opt/prog");
	expect_by_id("/opt/prog", "none");
	options.symfs = &root;
	options.n_symfs = 1;
	expect_by_id("/opt/prog", "hidden");
}

TEST(only_regular_files_are_opened)
{
	build_run("rm -f fifo && mkfifo fifo && mkdir -p dir");
	expect_problem(build_path("fifo"), "not a regular file");
	expect_problem(build_path("dir"), "not a regular file");
	expect_problem("/dev/null", "not a regular file");
	expect("//anon", "none");
	expect_problem(build_path("p.c"), "not an ELF file");
	expect_problem(build_path("missing"), "file not found");
}

TEST(a_stripped_file_finds_its_debug_file_by_build_id)
{
	const char *root = build_path("root2");

	expect(build_path("bare"), "none");
	build_run("d=root2/usr/lib/debug/.build-id/%.2s && mkdir -p $d && "
		  "cp full.debug $d/%s.debug", id_text, id_text + 2);
	options.symfs = &root;
	options.n_symfs = 1;
	expect(build_path("bare"), "hidden");
	options = no_options;
	/* perf's cache and debuginfod's. */
	build_run("d=.debug/.build-id/%.2s/%s && mkdir -p $d && "
		  "cp full.debug $d/debug", id_text, id_text + 2);
	expect(build_path("bare"), "hidden");
	build_run("rm -r .debug && d=.cache/debuginfod_client/%s && "
		  "mkdir -p $d && cp full.debug $d/debuginfo", id_text);
	expect(build_path("bare"), "hidden");
	build_run("rm -r .cache");
}

TEST(debuglink_is_followed_when_the_crc_agrees)
{
	uint64_t offset;
	struct build_answer a;

	expect(build_path("linked"), "hidden");
	/* Without build ids only the CRC can tell. */
	build_run("mkdir -p crc/.debug && "
		  "gcc -O1 -g -Wl,--build-id=none -o crc/full p.c && "
		  "objcopy --only-keep-debug crc/full crc/.debug/p.debug && "
		  "objcopy --strip-all --add-gnu-debuglink=crc/.debug/p.debug "
		  "crc/full crc/p");
	offset = build_offset("crc/full", build_symbol("crc/full", "hidden"));
	assert_string_equal(ask(build_path("crc/p"), NULL, 0, offset).function,
			    "hidden");
	build_run("printf x >> crc/.debug/p.debug");
	a = ask(build_path("crc/p"), NULL, 0, offset);
	assert_string_equal(a.function, "none");
	assert_non_null(strstr(a.problem, "CRC"));
}

/* gdb's places have the debug file under the stripped file's own name. */
TEST(a_stripped_file_is_not_its_own_debug_file)
{
	build_run("mkdir -p own/.debug && cp full.debug own/.debug/bare && "
		  "objcopy --strip-all --remove-section .gnu_debuglink full "
		  "own/bare && objcopy --add-gnu-debuglink=own/.debug/bare "
		  "own/bare");
	expect(build_path("own/bare"), "hidden");
}

TEST(debug_information_alone_places_no_code)
{
	struct build_answer a = ask(build_path("full.debug"), NULL, 0, 0x1000);

	assert_int_equal(a.n, 0);
	assert_string_not_equal(a.problem, "");
}

TEST(calls_out_of_a_file_are_named_at_plt)
{
	static const char *const flags[] = {
		"", "-Wl,-z,now -fcf-protection", "-no-pie",
		"-Wl,-z,lazy -Wl,-z,ibtplt -fcf-protection", "-static -no-pie",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(flags) - 1; i++) {
		struct build_answer a;
		uint64_t addr;

		build_run("gcc -O1 %s -o plt p.c", flags[i]);
		/* What main calls; objdump names stubs by itself. */
		addr = strtoull(build_ask("objdump -d plt | sed -n "
			"'s/ <main>://;s/.*call *\\([0-9a-f]*\\) "
			"<\\(atoi\\|strtol\\)@plt>.*/\\1/p' | tail -1"), NULL,
			16);
		assert_true(addr);
		a = ask(build_path("plt"), NULL, 0, build_offset("plt", addr));
		if (strcmp(a.function, "atoi@plt") != 0)
			assert_string_equal(a.function, "strtol@plt");
	}
}

UNIT_TEST_IF(the_small_table_of_a_stripped_file_is_read,
		build_has("xz"), "no xz")
{
	build_run("nm full | grep ' t hidden' | cut -d' ' -f3 > keep && "
		  "objcopy -S --remove-section .gnu_debuglink "
		  "--keep-symbols=keep full mini && xz -f mini && "
		  "objcopy --strip-all --add-section .gnu_debugdata=mini.xz "
		  "full small");
	expect(build_path("small"), "hidden");
}

static const char assembler[] =
	"#define F __attribute__((noinline, used))\n"
	"asm(\".text\\n.globl shared\\n.type shared,@function\\n\"\n"
	"    \"shared: .skip 64\\nlocal: .skip 200000\\n\"\n"
	"    \".globl near\\n.type near,@function\\nnear: .skip 64\\n\");\n"
	"static F int between(int x) { return x * 3; }\n"
	"asm(\".text\\nlate: .skip 64\\n.globl framed\\n\"\n"
	"    \".type framed,@function\\nframed: .cfi_startproc\\n\"\n"
	"    \".skip 9000\\n.cfi_endproc\\nlast: .skip 64\\n\");\n"
	"int main(int argc, char **argv) { (void)argv; return argc; }\n";

TEST(a_symbol_without_a_size_has_no_other_functions)
{
	static const struct {
		const char *symbol;
		uint64_t offset;
		const char *full, *bare;
	} cases[] = {
		{ "shared", 8, "shared", "shared" },
		{ "shared", 100000, "local", "none" },
		{ "near", 8, "near", "near" },
		{ "between", 0, "between", "none" },
		{ "late", 8, "late", "none" },
		{ "framed", 8999, "framed", "framed" },
		{ "last", 0, "last", "none" },
		{ "main", 0, "main", "main" },
	};

	build_write("asm.c", assembler);
	build_run("gcc -O1 -fno-toplevel-reorder -rdynamic -o asm.full asm.c");
	build_run("objcopy --strip-all asm.full asm.bare");
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		uint64_t offset = build_offset("asm.full", build_symbol(
			"asm.full", cases[i].symbol) + cases[i].offset);

		assert_string_equal(ask(build_path("asm.full"), NULL, 0,
					offset).function, cases[i].full);
		assert_string_equal(ask(build_path("asm.bare"), NULL, 0,
					offset).function, cases[i].bare);
	}
}

/* The build id of this process's vdso, read where the kernel says it is. */
static size_t vdso_id(uint8_t *to)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	FILE *memory = fopen("/proc/self/mem", "r");
	unsigned long start = 0, end = 0;
	char line[512];
	struct seam_elf elf;
	char *image;
	size_t size;

	assert_true(maps && memory);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "[vdso]"))
			sscanf(line, "%lx-%lx", &start, &end);
	assert_true(end > start);
	image = malloc(end - start);
	assert_int_equal(fseek(memory, (long)start, SEEK_SET), 0);
	assert_int_equal(fread(image, 1, end - start, memory), end - start);
	fclose(maps);
	fclose(memory);
	assert_int_equal(seam_elf_open_image(&elf, image, end - start, NULL),
			 0);
	size = elf.build_id_size;
	memcpy(to, elf.build_id, size);
	seam_elf_close(&elf);
	return size;
}

TEST(the_vdso_of_this_kernel_is_known_by_its_build_id)
{
	uint8_t own[20] = { 0 };
	size_t size = vdso_id(own), n_named = 0;

	for (uint64_t offset = 0; offset < 8192; offset += 16)
		n_named += ask("[vdso]", own, size, offset).n;
	assert_true(n_named > 0);
	assert_int_equal(ask("[vdso]", NULL, 0, 0x800).n, 0);
	own[0] ^= 1;
	for (uint64_t offset = 0; offset < 8192; offset += 16)
		assert_int_equal(ask("[vdso]", own, size, offset).n, 0);
}

TEST(equal_modules_are_one)
{
	struct seam_symbols *symbols = seam_symbols_new(&options);
	struct seam_module a = { .path = "/a" };
	struct seam_module b = { .path = "/a", .build_id = id,
				 .build_id_size = 20 };
	struct seam_kernel k = { .boot_id = "x", .text_addr = 1 };
	struct seam_module_state problems;
	uint32_t first, kernel;

	first = seam_symbols_module(symbols, &a);
	kernel = seam_symbols_kernel(symbols, &k);
	assert_int_equal(seam_symbols_module(symbols, &a), first);
	assert_int_not_equal(seam_symbols_module(symbols, &b), first);
	assert_int_equal(seam_symbols_kernel(symbols, &k), kernel);
	k.text_addr = 2;
	assert_int_not_equal(seam_symbols_kernel(symbols, &k), kernel);
	assert_false(seam_symbols_state(symbols, 99, &problems));
	assert_int_equal(seam_symbols_resolve(symbols, 99, 0, NULL, 0), 0);
	seam_symbols_free(symbols);
	seam_symbols_free(NULL);
}

TEST(servers_are_asked_only_when_wanted_and_named)
{
	assert_string_equal(ask("/gone", id, 20, 0).problem, "file not found");
	options.debuginfod = true;
	assert_non_null(strstr(ask("/gone", id, 20, 0).problem,
			       "DEBUGINFOD_URLS"));
}

static bool has_debuginfod(void)
{
	void *library = dlopen("libdebuginfod.so.1", RTLD_NOW);

	return library && !dlclose(library);
}

/* The client library reads file: URLs as it reads servers. */
UNIT_TEST_IF(servers_bring_what_is_missing,
		has_debuginfod(), "no libdebuginfod")
{
	char url[256];

	build_run("mkdir -p server/buildid/%s && cp full "
		  "server/buildid/%s/executable && cp full.debug "
		  "server/buildid/%s/debuginfo", id_text, id_text, id_text);
	snprintf(url, sizeof(url), "file://%s", build_path("server"));
	setenv("DEBUGINFOD_URLS", url, 1);
	options.debuginfod = true;
	expect_by_id("/gone", "hidden");
	expect_by_id(build_path("bare"), "hidden");
	/* From now on they are in the cache, where nobody asks a server. */
	options.debuginfod = false;
	expect_by_id("/gone", "hidden");
	unsetenv("DEBUGINFOD_URLS");
}

UNIT_MAIN(enter, build_leave, NULL, NULL)
