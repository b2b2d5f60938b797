/* SPDX-License-Identifier: MIT */
/* test_kernel.c - a kernel's symbols kept, refused, and read again */
#include "symbol/kernel/kernel.c"

#include <grp.h>

#include "base/file.h"
#include "build.h"
#include "unit.h"

static const char kallsyms[] =
	"0000000000000000 A fixed_percpu_data\n"
	"ffffffff81000000 T _stext\n"
	"ffffffff81000000 T _text\n"
	"ffffffff81000100 t do_one\n"
	"ffffffff81000200 W weak_one\n"
	"ffffffff81000200 T strong_one\n"
	"ffffffff81000300 D some_data\n"
	"garbage\n"
	"ffffffff81000400 T\n"
	"ffffffffc0000000 t mod_func\t[mod]\n"
	"ffffffffc0000010 t mod_last\t[mod]\n";

static const struct seam_kernel_identity identity = {
	.boot_id = "01234567-89ab-cdef-0123-456789abcdef",
	.build_id = { 0xde, 0xad, 0xbe, 0xef, 0x42 },
	.build_id_size = 20,
	.text_addr = 0xffffffff81000000,
};

/* A whole file with the text above, on a block of its exact size. */
static uint8_t *make_file(size_t *size)
{
	const struct kernel_file header = {
		.identity = identity, .modules = 7,
	};
	const struct seam_bytes text = {
		(const uint8_t *)kallsyms, sizeof(kallsyms) - 1,
	};
	uint8_t *bytes, *exact;

	assert_int_equal(write_file(&header, text, &bytes, size, NULL), 0);
	exact = malloc(*size);
	memcpy(exact, bytes, *size);
	free(bytes);
	return exact;
}

static const char *name_at(struct seam_symtab *table, uint64_t addr)
{
	static struct seam_arena arena;
	const char *name = seam_symtab_name(table, addr, &arena);
	static char copy[128];

	snprintf(copy, sizeof(copy), "%s", name ? name : "none");
	seam_arena_fini(&arena);
	return copy;
}

UNIT_TEST(functions_are_read_and_data_only_ends_them)
{
	static char text[sizeof(kallsyms)];
	struct seam_symtab table = { 0 };

	memcpy(text, kallsyms, sizeof(kallsyms));
	assert_int_equal(read_kallsyms(&table, text, sizeof(text) - 1,
					    true),
			 7);
	assert_string_equal(name_at(&table, 0xffffffff810000ff), "_text");
	assert_string_equal(name_at(&table, 0xffffffff81000100), "do_one");
	assert_string_equal(name_at(&table, 0xffffffff81000208), "strong_one");
	assert_string_equal(name_at(&table, 0xffffffff81000300), "none");
	assert_string_equal(name_at(&table, 0xffffffffc0000000), "mod_func");
	assert_string_equal(name_at(&table, 0xffffffffc0000010), "mod_last");
	assert_string_equal(name_at(&table, 0xffffffffc0100000), "none");
	assert_string_equal(name_at(&table, 0), "none");
	seam_symtab_fini(&table);
	memcpy(text, kallsyms, sizeof(kallsyms));
	assert_int_equal(read_kallsyms(&table, text, sizeof(text) - 1,
					    false), 5);
	assert_string_equal(name_at(&table, 0xffffffff81000100), "do_one");
	assert_string_equal(name_at(&table, 0xffffffffc0000000), "none");
	seam_symtab_fini(&table);
}

UNIT_TEST(text_that_is_cut_anywhere_is_read_as_far_as_it_goes)
{
	ptrdiff_t before = 0;

	for (size_t n = 0; n < sizeof(kallsyms); n++) {
		struct seam_symtab table = { 0 };
		char *text = malloc(n + 1);
		ptrdiff_t now;

		memcpy(text, kallsyms, n);
		now = read_kallsyms(&table, text, n, true);
		assert_true(now == before || now == before + 1);
		before = now;
		seam_symtab_fini(&table);
		free(text);
	}
	assert_int_equal(before, 7);
}

UNIT_TEST(what_is_written_is_read_back)
{
	struct kernel_file file;
	size_t size, text_size;
	uint8_t *bytes = make_file(&size);
	char *text;

	assert_int_equal(read_file(&file, (struct seam_bytes) {
		bytes, size }, NULL), 0);
	assert_memory_equal(&file.identity, &identity, sizeof(identity));
	assert_int_equal(file.modules, 7);
	assert_int_equal(unpack_text(&file, &text, &text_size, NULL), 0);
	assert_int_equal(text_size, sizeof(kallsyms) - 1);
	assert_memory_equal(text, kallsyms, text_size);
	free(text);
	free(bytes);
}

UNIT_TEST_IF(zstd_alone_prints_the_text, build_has("zstd"), "no zstd")
{
	size_t size;
	uint8_t *bytes = make_file(&size);
	FILE *out = fopen("k.zst", "w");

	fwrite(bytes, 1, size, out);
	fclose(out);
	free(bytes);
	build_write("k.txt", kallsyms);
	build_run("zstd -qdc k.zst | cmp - k.txt");
}

/* Both frames: 0, or a failure that says why; never more than was there. */
static int read_all(const uint8_t *bytes, size_t size)
{
	struct seam_err err = { 0 };
	struct kernel_file file;
	struct seam_symtab table = { 0 };
	char *text = NULL;
	size_t text_size;
	int r = read_file(&file, (struct seam_bytes) {
		bytes, size }, &err);

	if (!r)
		r = unpack_text(&file, &text, &text_size, &err);
	if (!r)
		read_kallsyms(&table, text, text_size, true);
	seam_symtab_fini(&table);
	free(text);
	assert_true(r == 0 || err.n_causes > 0);
	return r;
}

UNIT_TEST(a_cut_file_is_refused_at_every_byte)
{
	size_t size;
	uint8_t *bytes = make_file(&size);

	assert_int_equal(read_all(bytes, size), 0);
	for (size_t n = 0; n < size; n++) {
		uint8_t *cut = malloc(n ? n : 1);

		memcpy(cut, bytes, n);
		assert_true(read_all(cut, n) < 0);
		free(cut);
	}
	free(bytes);
}

UNIT_TEST(a_header_of_any_size_is_not_taken)
{
	static uint8_t bytes[64 * 1024] = { 0x50, 0x2a, 0x4d, 0x18 };

	memset(bytes + 8, 'x', sizeof(bytes) - 8);
	bytes[5] = 0xf0;	/* 61,440 bytes, and they are there */
	assert_int_equal(read_all(bytes, sizeof(bytes)), -EBADMSG);
}

UNIT_TEST(a_flipped_byte_does_no_harm_anywhere)
{
	size_t size;
	uint8_t *bytes = make_file(&size);

	for (size_t i = 0; i < size; i++)
		for (int bit = 0; bit < 8; bit++) {
			bytes[i] ^= (uint8_t)(1 << bit);
			read_all(bytes, size);
			bytes[i] ^= (uint8_t)(1 << bit);
		}
	free(bytes);
}

UNIT_TEST(flipped_text_keeps_the_table_in_order)
{
	static char text[sizeof(kallsyms)];

	for (size_t i = 0; i < sizeof(kallsyms) - 1; i++)
		for (int bit = 0; bit < 8; bit++) {
			struct seam_symtab table = { 0 };

			memcpy(text, kallsyms, sizeof(kallsyms));
			text[i] = (char)(text[i] ^ 1 << bit);
			read_kallsyms(&table, text, sizeof(text) - 1, true);
			for (size_t k = 1; k < table.symbols.n; k++)
				assert_true(table.symbols.items[k - 1].start <=
					    table.symbols.items[k].start);
			seam_symtab_fini(&table);
		}
}

/* Whether the last load() has found a module's function. */
static bool has_module;

/* Load from bundle "b", which holds the file above. */
static int load(const struct seam_kernel *kernel, struct seam_err *err)
{
	struct seam_kernel_symbols symbols;
	size_t size;
	uint8_t *bytes = make_file(&size);
	FILE *out;
	int r;

	mkdir("b", 0700);
	out = fopen("b/kernel.sym.zst", "w");
	fwrite(bytes, 1, size, out);
	fclose(out);
	free(bytes);
	r = seam_kernel_load(&symbols, build_path("b"), kernel, err);
	if (!r)
		assert_string_equal(name_at(&symbols.table,
					    0xffffffff81000100), "do_one");
	has_module = !r && seam_symtab_find(&symbols.table, 0xffffffffc0000000);
	seam_kernel_close(&symbols);
	return r;
}

static bool addresses_are_shown(void)
{
	struct seam_kernel_identity now;

	return seam_kernel_identify(&now, NULL) == 0 && now.text_addr != 0;
}

static bool is_kept(const struct seam_kernel_identity *now)
{
	struct seam_file file;
	bool kept = read_cache(&file, now, seam_kernel_modules());

	if (kept)
		seam_file_close(&file);
	return kept;
}

/*
 * True where the kernel shows no addresses, as to most users, or where it has
 * no list of modules: nothing is kept then, and the reason is a right.
 */
static bool addresses_are_hidden(void)
{
	struct seam_kernel_identity now;
	struct seam_err err = { 0 };
	int dir;

	if (addresses_are_shown() && seam_kernel_modules())
		return false;
	build_run("mkdir -p hidden");
	dir = open("hidden", O_RDONLY | O_DIRECTORY);
	if (!addresses_are_shown()) {
		assert_int_equal(seam_kernel_capture(dir, "k", &err),
				 -EPERM);
		assert_true(err.n_causes > 0);
		assert_int_equal(faccessat(dir, "k", F_OK, 0), -1);
	}
	close(dir);
	seam_kernel_identify(&now, NULL);
	assert_false(is_kept(&now));
	return true;
}

/* As load(); where the running kernel shows nothing, that is why. */
static int load_other(const struct seam_kernel *kernel, struct seam_err *err)
{
	int r = load(kernel, err);

	return r == -EPERM && !addresses_are_shown() ? -ESTALE : r;
}

UNIT_TEST(only_symbols_of_the_recorded_kernel_are_used)
{
	const struct seam_kernel right = {
		identity.boot_id, identity.build_id, 20, identity.text_addr,
	};
	struct seam_kernel wrong;
	struct seam_err err = { 0 };

	assert_int_equal(load(&right, &err), 0);
	assert_true(has_module);
	/* Moved by KASLR: the same build, another address. */
	wrong = right;
	wrong.text_addr += 0x200000;
	assert_int_equal(load_other(&wrong, &err), -ESTALE);
	/* Another boot, another build. */
	wrong = right;
	wrong.boot_id = "11111111-89ab-cdef-0123-456789abcdef";
	wrong.build_id = (const uint8_t *)"another build id....";
	assert_int_equal(load_other(&wrong, &err), -ESTALE);
	if (addresses_are_shown())
		assert_non_null(strstr(err.cause[0],
				       "not the one that runs now"));
	wrong.build_id_size = 0;
	assert_int_equal(load_other(&wrong, &err), -ESTALE);
	/* Another boot of the same build that _text did not move in. */
	wrong = right;
	wrong.boot_id = NULL;
	assert_int_equal(load(&wrong, &err), 0);
	/* Then its modules may be anywhere. */
	wrong.boot_id = "11111111-89ab-cdef-0123-456789abcdef";
	assert_int_equal(load(&wrong, &err), 0);
	assert_false(has_module);
}

UNIT_TEST(a_damaged_file_is_a_reason_and_not_a_fallback)
{
	const struct seam_kernel kernel = {
		identity.boot_id, identity.build_id, 20, identity.text_addr,
	};
	struct seam_kernel_symbols symbols;
	struct seam_err err = { 0 };

	build_run("mkdir -p d && head -c 99 b/kernel.sym.zst > "
		  "d/kernel.sym.zst");
	assert_true(seam_kernel_load(&symbols, build_path("d"), &kernel,
				     &err) < 0);
	assert_non_null(strstr(err.cause[err.n_causes - 1],
			       "kernel.sym.zst"));
}

UNIT_TEST(the_running_kernel_is_captured_whole)
{
	struct seam_kernel_identity now;
	struct seam_kernel_symbols symbols;
	struct seam_err err = { 0 };
	int dir;

	if (addresses_are_hidden())
		return;
	seam_kernel_identify(&now, NULL);
	build_run("mkdir -p run");
	dir = open("run", O_RDONLY | O_DIRECTORY);
	assert_int_equal(seam_kernel_capture(dir, "kernel.sym.zst", &err), 0);
	/* It is never replaced. */
	assert_int_equal(seam_kernel_capture(dir, "kernel.sym.zst", &err),
			 -EEXIST);
	close(dir);
	if (build_has("zstd"))
		build_run("zstd -qdc run/kernel.sym.zst | grep -q ' _text$'");
	assert_int_equal(seam_kernel_load(&symbols, build_path("run"),
		&(struct seam_kernel) { now.boot_id, now.build_id,
		now.build_id_size, now.text_addr }, &err), 0);
	assert_true(symbols.table.symbols.n > 1000);
	assert_string_not_equal(name_at(&symbols.table, now.text_addr),
				"none");
	seam_kernel_close(&symbols);
}

UNIT_TEST(the_running_kernel_answers_for_itself_alone)
{
	struct seam_kernel_identity now;
	struct seam_kernel_symbols symbols;
	struct seam_kernel kernel;
	struct seam_err err = { 0 };

	if (addresses_are_hidden())
		return;
	seam_kernel_identify(&now, NULL);
	kernel = (struct seam_kernel) { now.boot_id, NULL, 0, 0 };
	assert_int_equal(seam_kernel_load(&symbols, NULL, &kernel, &err), 0);
	seam_kernel_close(&symbols);
	kernel.text_addr = now.text_addr + 0x200000;
	assert_int_equal(seam_kernel_load(&symbols, NULL, &kernel, &err),
			 -ESTALE);
	kernel = (struct seam_kernel) { 0 };
	assert_int_equal(seam_kernel_load(&symbols, NULL, &kernel, &err),
			 -ESTALE);
	/* The build alone does not say where it was loaded. */
	kernel = (struct seam_kernel) { NULL, now.build_id,
					now.build_id_size, 0 };
	assert_int_equal(seam_kernel_load(&symbols, NULL, &kernel, &err),
			 -ESTALE);
}

/* In a process of its own, as root does not get its rights back. */
UNIT_TEST(a_user_who_may_not_see_addresses_gets_the_sysctl_named)
{
	int status, dir;
	pid_t child;

	build_run("chmod 755 . && mkdir -p -m 777 open");
	dir = open("open", O_RDONLY | O_DIRECTORY);
	child = fork();
	if (child == 0) {
		struct seam_err err = { 0 };
		int r = geteuid() == 0 && (setgroups(0, NULL) ||
					   setgid(65534) || setuid(65534));

		if (!r && !addresses_are_shown())
			r = seam_kernel_capture(dir, "k", &err) != -EPERM ||
			    !strstr(err.cause[0],
				    "kernel.perf_event_paranoid=1") ||
			    faccessat(dir, "k", F_OK, 0) == 0;
		_exit(r);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(dir);
}

UNIT_TEST(the_cache_is_used_only_when_it_is_the_users_alone)
{
	struct seam_kernel_identity now, other;
	int dir;

	if (addresses_are_hidden())
		return;
	seam_kernel_identify(&now, NULL);
	build_run("rm -rf .cache run2 && mkdir run2");
	assert_false(is_kept(&now));
	dir = open("run2", O_RDONLY | O_DIRECTORY);
	assert_int_equal(seam_kernel_capture(dir, "a", NULL), 0);
	assert_true(is_kept(&now));
	assert_int_equal(seam_kernel_capture(dir, "b", NULL), 0);
	build_run("cmp run2/a run2/b");
	close(dir);
	/* Another boot. */
	other = now;
	other.boot_id[0] ^= 1;
	assert_false(is_kept(&other));
	/* Somebody else may write there. */
	build_run("chmod 0770 .cache/seam");
	assert_false(is_kept(&now));
	build_run("chmod 0700 .cache/seam");
	assert_true(is_kept(&now));
	/* It belongs to somebody else. */
	if (geteuid() == 0) {
		build_run("chown 65534 .cache/seam");
		assert_false(is_kept(&now));
		build_run("chown 0 .cache/seam");
		assert_true(is_kept(&now));
	}
	build_run("mv .cache/seam .cache/real && ln -s real .cache/seam");
	assert_false(is_kept(&now));
	build_run("rm .cache/seam && mkdir -m 700 .cache/seam && "
		  "ln -s ../real/kernel.sym.zst .cache/seam/kernel.sym.zst");
	assert_false(is_kept(&now));
}

UNIT_TEST(the_cache_is_where_the_user_sets_it)
{
	struct seam_kernel_identity now;
	int dir;

	if (addresses_are_hidden())
		return;
	seam_kernel_identify(&now, NULL);
	build_run("rm -rf .cache run3 && mkdir run3");
	dir = open("run3", O_RDONLY | O_DIRECTORY);
	setenv("XDG_CACHE_HOME", build_path("mine"), 1);
	assert_int_equal(seam_kernel_capture(dir, "a", NULL), 0);
	assert_true(is_kept(&now));
	build_run("test ! -e .cache");
	build_run("test \"$(stat -c %%a mine/seam)\" = 700");
	build_run("test \"$(stat -c %%a mine/seam/*)\" = 600");
	/*
	 * Source: XDG Base Directory Specification 0.8, "Basics": relative
	 * paths are to be ignored.
	 */
	setenv("XDG_CACHE_HOME", "mine", 1);
	assert_false(is_kept(&now));
	unsetenv("XDG_CACHE_HOME");
	close(dir);
}

UNIT_MAIN(build_enter, build_leave, NULL, NULL)
