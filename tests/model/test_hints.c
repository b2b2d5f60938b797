/* SPDX-License-Identifier: MIT */
/* test_hints.c - one line where a recording could have told more */
#include "model/jit/jit_sources.h"
#include "model/perf/load_perf.h"

#include "built.h"
#include "unit.h"

static void add_times(struct seam_profile *p, const char *stack, int n)
{
	for (int i = 0; i < n; i++)
		built_add(p, (uint64_t)i + 1, "app", stack);
}

/* The notes joined by bars; "" for none. */
static void check_notes(struct seam_profile *p, const char *expected)
{
	char text[1000] = "";
	size_t used = 0;

	for (size_t i = 0; i < p->notes.n; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"%s%s", i ? "|" : "",
			seam_profile_text(p, p->notes.items[i]));
	assert_string_equal(text, expected);
	seam_profile_fini(p);
}

UNIT_TEST(stacks_that_were_not_recorded_are_reported)
{
	struct seam_profile p = built();

	seam_stack_hint(&p, false, false);
	check_notes(&p, "");
	p = built();
	add_times(&p, "f", 1);
	seam_stack_hint(&p, false, false);
	check_notes(&p, "stacks were not recorded, so each total is a self: "
		    "'seam record' without --call-graph none records them");
}

UNIT_TEST(stacks_that_reach_their_beginning_are_whole)
{
	struct seam_profile p = built();

	add_times(&p, "_start;__libc_start_main;main;f", 100);
	add_times(&p, "__libc_start_call_main@/lib/libc.so.6;main;f", 100);
	add_times(&p, "[libc.so.6+0x271ca]@/lib/libc.so.6;main;f", 100);
	add_times(&p, "__clone3;start_thread;f;read_[k]", 100);
	add_times(&p, "runtime.goexit.abi0@/bin/go;main.main@/bin/go", 100);
	/* threads of the kernel, and what it does before a program runs */
	add_times(&p, "kthread_[k];worker_[k]", 300);
	add_times(&p, "", 300);
	seam_stack_hint(&p, true, false);
	check_notes(&p, "");
}

UNIT_TEST(stacks_that_end_before_are_counted)
{
	struct seam_profile p = built();

	add_times(&p, "_start;main;f", 60);
	add_times(&p, "f", 20);
	/* the C library is no beginning where it stands alone */
	add_times(&p, "malloc@/lib/libc.so.6", 10);
	add_times(&p, "qsort_compare;read_[k]", 10);
	add_times(&p, "kthread_[k]", 900);
	seam_stack_hint(&p, true, false);
	check_notes(&p, "40 % of stacks are cut: no frame pointers "
		    "(seam record --call-graph auto)");
	/* a copy of the stack cannot be had */
	p = built();
	add_times(&p, "f", 100);
	seam_stack_hint(&p, true, true);
	check_notes(&p, "100 % of stacks are cut: no frame pointers "
		    "(copies of stacks need rings of 256K or more: -m)");
	p = built();
	add_times(&p, "_start;main;f", 95);
	add_times(&p, "f", 5);
	seam_stack_hint(&p, true, false);
	check_notes(&p, "");
	/* too few to tell a share of */
	p = built();
	add_times(&p, "f", 5);
	seam_stack_hint(&p, true, false);
	check_notes(&p, "");
}

static struct seam_profile of_process(const char *comm, const char *stack)
{
	struct seam_profile p = built();

	for (int i = 0; i < 50; i++)
		built_put(&p, (struct built_sample) {
			.time_ns = (uint64_t)i + 1, .comm = comm,
			.stack = stack, .tid = 7, .pid = 7,
		});
	return p;
}

/* All that is in JIT code loses its name. */
static void forget_names(struct seam_profile *p)
{
	for (size_t i = 0; i < p->functions.n; i++)
		if (p->functions.items[i].layer == SEAM_LAYER_JIT)
			p->functions.items[i].is_named = false;
}

/* The note on a process with samples of @stack, and one of @other (or NULL). */
static void check_hint(const char *comm, const char *stack, const char *other,
		       const char *note)
{
	struct seam_profile p = of_process(comm, stack);

	if (other)
		built_add(&p, 99, comm, other);
	seam_jit_hint(&p, &(struct seam_jit_sources) { 0 });
	check_notes(&p, note);
}

UNIT_TEST(python_names_its_functions_from_3_12_on)
{
	check_hint("app", "_PyEval@/usr/bin/python3.11", NULL,
		   "Python 3.11 does not report the names of its functions; "
		   "3.12 and later do: python3 -X perf");
	check_hint("app", "_PyEval@/usr/lib/libpython3.12.so.1.0", NULL,
		   "Python's functions have names with: -g and python3 "
		   "-X perf");
	/* the option was in use */
	check_hint("app", "py::f:/a.py_[j];_PyEval@/usr/bin/python3.13", NULL,
		   "");
	/* a library of Python's in another program is not its interpreter */
	check_hint("app", "main", "f@/usr/bin/python3.11", "");
}

UNIT_TEST(luajit_without_an_sampler_gets_the_option_named)
{
	const char *note = "'app' runs LuaJIT without Lua stacks; a program "
			   "has them if it is started by: seam record "
			   "--layers=guest -- COMMAND";
	const char *library = "main;lua_call@/usr/lib/libluajit-5.1.so.2";
	struct seam_profile p;

	check_hint("app", library, NULL, note);
	check_hint("app", "main;lj_vm_call@/opt/bin/luajit-2.1", NULL, note);
	/* most of it in compiled traces */
	p = of_process("luajit", "main;x_[j]");
	forget_names(&p);
	seam_jit_hint(&p, &(struct seam_jit_sources) { 0 });
	assert_int_equal(p.notes.n, 1);
	seam_profile_fini(&p);
	/* ten samples are enough, nine are not */
	p = built();
	add_times(&p, library, 9);
	seam_jit_hint(&p, &(struct seam_jit_sources) { 0 });
	check_notes(&p, "");
	p = built();
	add_times(&p, library, 10);
	seam_jit_hint(&p, &(struct seam_jit_sources) { 0 });
	check_notes(&p, note);
	/* a sampler was there; or the file was only read */
	check_hint("app", library, "main;f a.lua:1_[g]", "");
	check_hint("app", "main;f@/src/luajit/run.lua_[g]", NULL, "");
}

UNIT_TEST(a_runtime_without_names_gets_its_flag_named)
{
	static const struct { const char *comm, *flag; } each[] = {
		{ "node", "node --perf-prof" }, { "php8.2", "opcache.jit_debug" },
		{ "ruby", "--yjit-perf (3.3 and later)" },
		{ "beam.smp", "+JPperf true" },
	};
	struct seam_jit_sources none = { 0 };

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(each); i++) {
		struct seam_profile p = of_process(each[i].comm, "main;x_[j]");

		forget_names(&p);
		seam_jit_hint(&p, &none);
		assert_int_equal(p.notes.n, 1);
		assert_non_null(strstr(seam_profile_text(&p, p.notes.items[0]),
				       each[i].flag));
		seam_profile_fini(&p);
	}
}

UNIT_TEST(no_flag_is_advised_that_is_in_use)
{
	struct seam_jit_sources announced = { 0 };
	struct seam_profile p = of_process("node", "main;x_[j]");

	assert_int_equal(seam_pair_map_put(&announced.announced, 7, 0, false),
			 0);
	forget_names(&p);
	seam_jit_hint(&p, &announced);
	check_notes(&p, "the JIT's dump of 'node' (process 7) has no names for "
		    "100 % of its samples in JIT code: it had not written all "
		    "of it when the recording ended");
	/* the options are in the command already */
	p = of_process("php8.2", "main;x_[j]");
	forget_names(&p);
	p.command = seam_strings_put(&p.strings, "seam record -- php -d "
		"opcache.enable_cli=1 -d opcache.jit_debug=0x20 a.php");
	seam_jit_hint(&p, &(struct seam_jit_sources) { 0 });
	check_notes(&p, "");
	/* it has ended, so what it had to say is there */
	p = of_process("node", "main;x_[j]");
	p.processes.items[0].end_ns = 100;
	forget_names(&p);
	seam_jit_hint(&p, &announced);
	check_notes(&p, "the JIT's dump of 'node' (process 7) has no names for "
		    "100 % of its samples in JIT code");
	seam_pair_map_fini(&announced.announced);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
