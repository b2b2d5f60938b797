/* SPDX-License-Identifier: MIT */
/* test_event_list.c - names, modifiers, lists, groups, terms of PMUs */
#include "record/events/event_kinds.h"
#include "record/proc/procfs.h"

#include <linux/hw_breakpoint.h>

#include "unit.h"

/* ---- one event ---- */

static int parse(struct seam_event *event, const char *text)
{
	seam_event_init(event);
	return seam_event_parse(event, text, NULL);
}

UNIT_TEST(has_the_names_of_perf)
{
	static const struct { const char *name; uint32_t type; uint64_t id; }
	some[] = {
		{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
		{ "branch-instructions", PERF_TYPE_HARDWARE,
		  PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
		{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
		{ "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
		{ "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
		{ "LLC-load-misses", PERF_TYPE_HW_CACHE, 0x10002 },
		{ "dTLB-load-misses", PERF_TYPE_HW_CACHE, 0x10003 },
		{ "r1A8", PERF_TYPE_RAW, 0x1a8 },
	};
	struct seam_event event;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(some); i++) {
		assert_int_equal(parse(&event, some[i].name), 0);
		assert_string_equal(event.name, some[i].name);
		assert_int_equal(event.attr.type, some[i].type);
		assert_int_equal(event.attr.config, some[i].id);
		assert_int_equal(event.attr.exclude_kernel, 0);
	}
}

UNIT_TEST(modifiers_choose_where_to_count)
{
	struct seam_event event;

	assert_int_equal(parse(&event, "cycles:u"), 0);
	assert_false(event.attr.exclude_user);
	assert_true(event.attr.exclude_kernel && event.attr.exclude_hv);
	assert_int_equal(parse(&event, "cycles:k"), 0);
	assert_true(event.attr.exclude_user && event.attr.exclude_hv);
	assert_false(event.attr.exclude_kernel);
	assert_int_equal(parse(&event, "cycles:uk"), 0);
	assert_false(event.attr.exclude_user || event.attr.exclude_kernel);
	assert_true(event.attr.exclude_hv);
	assert_int_equal(parse(&event, "cycles:upp"), 0);
	assert_int_equal(event.attr.precise_ip, 2);
	assert_true(event.attr.exclude_kernel);
	assert_int_equal(parse(&event, "cycles:P"), 0);
	assert_true(event.any_precision);
	assert_int_equal(event.attr.precise_ip, 3);
}

/* As 'perf record -vv' of Linux 6.1 shows the attr of each. */
UNIT_TEST(guests_of_kvm_count_where_perf_counts_them)
{
	static const struct { const char *text; int no_guest, no_host; }
	some[] = {
		{ "cycles", 1, 0 }, { "cpu-clock:u", 1, 0 }, { "r1a8", 1, 0 },
		{ "cycles:p", 1, 0 }, { "cycles:k", 0, 0 },
		{ "cycles:I", 0, 0 }, { "cycles:G", 0, 1 },
		{ "cycles:H", 1, 0 }, { "dummy:HG", 0, 0 },
		{ "cycles:GH", 0, 0 }, { "cpu-clock:uH", 1, 0 },
	};
	struct seam_event event;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(some); i++) {
		assert_int_equal(parse(&event, some[i].text), 0);
		assert_int_equal(event.attr.exclude_guest, some[i].no_guest);
		assert_int_equal(event.attr.exclude_host, some[i].no_host);
	}
	assert_int_equal(parse(&event, "cpu-clock:ID"), 0);
	assert_true(event.attr.exclude_idle && event.attr.pinned);
}

UNIT_TEST(refuses_what_is_no_event)
{
	static const char *const bad[] = {
		"", "nosuch", "cycles:x", "cycles:pppp", "r", "rxyz",
		"r12345678901234567", ":u", "cycles cycles", "cycle",
		"cycles:u:k",
	};
	struct seam_event event;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(bad); i++)
		assert_int_equal(parse(&event, bad[i]), -EINVAL);
}

UNIT_TEST(refuses_a_name_that_it_could_not_keep)
{
	char text[2 * SEAM_EVENT_NAME] = "cycles:";
	struct seam_event event;

	memset(text + 7, 'u', SEAM_EVENT_NAME - 8);
	assert_int_equal(parse(&event, text), 0);
	text[SEAM_EVENT_NAME - 1] = 'u';
	assert_int_equal(parse(&event, text), -EINVAL);
}

UNIT_TEST(an_event_of_a_program_has_an_id_that_no_kernel_gives)
{
	struct seam_event_list list = { 0 };

	for (uint32_t i = 0; i < 2; i++) {
		struct seam_event *event = seam_event_list_push(&list);

		seam_event_init_program(event, "guest:function", i);
		assert_string_equal(event->name, "guest:function");
		assert_int_equal(event->origin, SEAM_EVENT_OF_PROGRAM);
		assert_int_equal(event->leader, SEAM_EVENT_ALONE);
		assert_true(event->each_time);
		assert_true(event->program_id >> 63);
	}
	assert_int_not_equal(list.items[0].program_id,
			     list.items[1].program_id);
	assert_int_equal(seam_event_list_push(&list)->program_id, 0);
	seam_event_list_fini(&list);
}

UNIT_TEST(every_name_in_the_list_can_be_asked_for)
{
	struct seam_event event;
	size_t n = 0;

	for (; seam_event_name(n); n++)
		assert_int_equal(parse(&event, seam_event_name(n)), 0);
	assert_true(n > 30);
}

/* ---- lists ---- */

static struct seam_event_list list;

static int end_list(void **state)
{
	seam_event_list_fini(&list);
	return 0;
}

/* Only what @text names is in the list then. */
static int parse_list(const char *text)
{
	seam_event_list_fini(&list);
	return seam_event_list_add(&list, text, NULL);
}

UNIT_TEST(commas_divide_events_and_braces_make_groups)
{
	assert_int_equal(parse_list("cpu-clock:u,{cycles,cs:k,faults}:S,"
				    "mem:0x10/8:w"), 0);
	assert_int_equal(list.n, 5);
	assert_int_equal(list.items[0].leader, SEAM_EVENT_ALONE);
	assert_true(list.items[0].attr.exclude_kernel);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(list.items[i].leader, 1);
		assert_int_equal(list.items[i].read_by_leader, i > 1);
	}
	assert_true(list.items[1].attr.sample_type & PERF_SAMPLE_READ);
	assert_true(list.items[1].attr.read_format & PERF_FORMAT_GROUP);
	assert_false(list.items[2].attr.read_format & PERF_FORMAT_GROUP);
	assert_int_equal(list.items[4].attr.type, PERF_TYPE_BREAKPOINT);
	assert_int_equal(list.items[4].leader, SEAM_EVENT_ALONE);
}

UNIT_TEST(what_is_no_list_is_refused)
{
	static const char *const bad[] = {
		"", ",", "cs,", ",cs", "{cs,faults}:x", "{cs,faults}u", "{cs",
		"{}:S", "cs:x", "mem:", "mem:zz", "mem:0x10/3", "mem:0x10/16",
		"mem:0x10:q", "mem:0x10:", "mem:0x10:rw:q", "mem:0x10:rw:",
		"uprobe:", "uprobe:relative:main", "kprobe:", "kprobe:+1",
		"kprobe:a+", "kprobe:a+x", "kprobe:a b", "kprobe:a/b",
		"kretprobe:a+8", "kprobe:a+8%return", "kretprobe:",
		"uprobe:/bin/true:", "nosuchpmu/x/", "/", "a/b", "../x/",
		"cs/", "cs/period=0/", "cs/period=x/", "cs/period/",
		"cs/freq=/", "cs/name=/", "cs/call-graph=maybe/",
		"cs/call-graph=lbr/", "cs/nosuch=1/", "cs/period=1/x",
		"cs/period=1,freq=2/", "cs/max-stack=70000/",
		"software/config=1,nosuch=1/",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(bad); i++)
		if (parse_list(bad[i]) == 0)
			fail_msg("'%s' was taken", bad[i]);
}

UNIT_TEST(a_breakpoint_has_an_address_a_length_and_a_kind)
{
	static const struct {
		const char *text;
		uint64_t addr, bytes;
		uint32_t kind;
	} good[] = {
		{ "mem:0x1000", 0x1000, 4, HW_BREAKPOINT_RW },
		{ "mem:4096/8", 4096, 8, HW_BREAKPOINT_RW },
		{ "mem:0xffff800000000000/1:w", 0xffff800000000000, 1,
		  HW_BREAKPOINT_W },
		{ "mem:0x20:rw", 0x20, 4, HW_BREAKPOINT_RW },
		{ "mem:0x20:x", 0x20, sizeof(long), HW_BREAKPOINT_X },
		{ "mem:0x20/8:rw:uk", 0x20, 8, HW_BREAKPOINT_RW },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(good); i++) {
		assert_int_equal(parse_list(good[i].text), 0);
		assert_int_equal(list.items[0].attr.bp_addr, good[i].addr);
		assert_int_equal(list.items[0].attr.bp_len, good[i].bytes);
		assert_int_equal(list.items[0].attr.bp_type, good[i].kind);
	}
}

UNIT_TEST(a_group_samples_by_its_first_event_or_by_each)
{
	assert_int_equal(parse_list("{cpu-clock,faults}:u,{cs,faults}"), 0);
	assert_int_equal(list.n, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(list.items[i].leader, i & ~1u);
		assert_false(list.items[i].read_by_leader);
		assert_int_equal(list.items[i].attr.exclude_kernel, i < 2);
		assert_false(list.items[i].attr.sample_type & PERF_SAMPLE_READ);
	}
	assert_int_equal(parse_list("{cs,faults}:uS"), 0);
	assert_true(list.items[1].read_by_leader);
	assert_true(list.items[1].attr.exclude_kernel);
	assert_int_equal(parse_list("{cpu-clock,cs,faults/period=5/,"
				    "faults/freq=9/}:S"), 0);
	for (size_t i = 0; i < 4; i++) {
		const struct seam_event *event = &list.items[i];

		assert_int_equal(event->leader, 0);
		assert_int_equal(event->read_by_leader, i == 1);
		assert_int_equal(!!(event->attr.sample_type &
				    PERF_SAMPLE_READ), i != 1);
		assert_int_equal(!!(event->attr.read_format &
				    PERF_FORMAT_GROUP), i != 1);
	}
}

UNIT_TEST(any_event_takes_a_rate_a_name_and_call_chains)
{
	static const char *const each[] = {
		"cpu-clock/%s/u", "software/config=0,%s/u", "{cs/%s/u,cs}",
		"r1a8/%s/:u",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(each); i++) {
		const struct seam_event *event;
		char text[200];

		snprintf(text, sizeof(text), each[i], "period=0x10,name=my-n,"
			 "call-graph=fp,max-stack=9,no-inherit");
		assert_int_equal(parse_list(text), 0);
		event = list.items;
		assert_string_equal(event->name, "my-n");
		assert_int_equal(event->period, 16);
		assert_int_equal(event->call_graph, SEAM_CALL_GRAPH_FP);
		assert_int_equal(event->attr.sample_max_stack, 9);
		assert_true(event->attr.exclude_kernel);
		assert_true(event->no_inherit);
		snprintf(text, sizeof(text), each[i], "freq=99,call-graph=no");
		assert_int_equal(parse_list(text), 0);
		assert_int_equal(list.items->frequency_hz, 99);
		assert_int_equal(list.items->call_graph, SEAM_CALL_GRAPH_NONE);
	}
}

UNIT_TEST(a_probe_is_of_the_file_that_its_path_led_to)
{
	struct seam_err err = { 0 };
	struct stat opened, st;
	char here[4096];

	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir("/bin"), 0);
	assert_int_equal(seam_event_list_add(&list, "uprobe:true:0x1000",
					     &err), 0);
	assert_int_equal(chdir(here), 0);
	assert_int_equal(fstat(list.items[0].probe->fd, &opened), 0);
	assert_int_equal(stat("/bin/true", &st), 0);
	assert_int_equal(opened.st_ino, st.st_ino);
}

/* A folder in the place of tracefs, as far as kprobes need it; -1: tracefs. */
static int tracefs = -1;

int __real_seam_tracefs_open(struct seam_err *err);
int __wrap_seam_tracefs_open(struct seam_err *err);
int __real_seam_tracefs_id(int root, const char *system, const char *name,
			   struct seam_err *err);
int __wrap_seam_tracefs_id(int root, const char *system, const char *name,
			   struct seam_err *err);

int __wrap_seam_tracefs_open(struct seam_err *err)
{
	return tracefs < 0 ? __real_seam_tracefs_open(err) : dup(tracefs);
}

int __wrap_seam_tracefs_id(int root, const char *system, const char *name,
			   struct seam_err *err)
{
	return tracefs < 0 ? __real_seam_tracefs_id(root, system, name, err) :
	       4711;
}

/* The probe that @text defines: what is written, without the name. */
static void defines(const char *text, char type, const char *place)
{
	char line[300], wanted[300];
	FILE *file;

	assert_int_equal(parse_list(text), 0);
	assert_int_equal(list.n, 1);
	close(openat(tracefs, "kprobe_events", O_CREAT | O_TRUNC | O_WRONLY,
		     0600));
	assert_int_equal(seam_probe_define(&list.items[0], NULL), 0);
	assert_int_equal(list.items[0].attr.type, PERF_TYPE_TRACEPOINT);
	assert_int_equal(list.items[0].attr.config, 4711);
	file = fdopen(openat(tracefs, "kprobe_events", O_RDONLY), "r");
	assert_non_null(fgets(line, sizeof(line), file));
	snprintf(wanted, sizeof(wanted), "%c:seam/%s %s\n", type,
		 list.items[0].probe->name, place);
	assert_string_equal(line, wanted);
	/* the end removes it */
	snprintf(wanted, sizeof(wanted), "-:seam/%s\n",
		 list.items[0].probe->name);
	seam_event_list_fini(&list);
	assert_non_null(fgets(line, sizeof(line), file));
	assert_string_equal(line, wanted);
	fclose(file);
}

UNIT_TEST(probes_of_the_kernel_are_defined_as_tracefs_takes_them)
{
	char folder[] = "/tmp/seam-probes-XXXXXX";
	struct seam_err err = { 0 };
	struct rlimit old;

	assert_non_null(mkdtemp(folder));
	tracefs = open(folder, O_PATH | O_DIRECTORY);
	assert_int_equal(parse_list("kprobe:f"), 0);
	assert_int_equal(seam_probe_define(&list.items[0], &err), -ENOTSUP);
	assert_non_null(strstr(err.cause[0], "CONFIG_KPROBE_EVENTS"));
	defines("kprobe:do_sys_openat2", 'p', "do_sys_openat2");
	defines("kprobe:do_sys_openat2+0x1f", 'p', "do_sys_openat2+0x1f");
	defines("kprobe:ext4:f.isra.0+8", 'p', "ext4:f.isra.0+8");
	defines("kretprobe:do_sys_openat2", 'r', "do_sys_openat2");
	defines("kprobe:do_sys_openat2%return", 'r', "do_sys_openat2");
	err = (struct seam_err) { 0 };
	assert_int_equal(parse_list("kprobe:no_such_fn"), 0);
	/* each write fails */
	getrlimit(RLIMIT_FSIZE, &old);
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit) { 0, old.rlim_max });
	assert_int_equal(seam_probe_define(&list.items[0], &err), -ENOENT);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_non_null(strstr(err.cause[0], "has no function 'no_such_fn'"));
	assert_non_null(strstr(err.cause[1], "define 'kprobe:no_such_fn'"));
	seam_event_list_fini(&list);
	unlinkat(tracefs, "kprobe_events", 0);
	close(tracefs);
	tracefs = -1;
	rmdir(folder);
}

/* A tracepoint that is not there is another mistake than one not readable. */
UNIT_TEST(a_tracepoint_without_a_number_is_refused_with_the_cause)
{
	static const struct { const char *name; int code; const char *cause; }
	each[] = {
		{ "good", 42, "" },
		{ "empty", -ENOENT, "there is no tracepoint 'a:empty'" },
		{ "none", -ENOENT, "there is no tracepoint 'a:none'" },
		{ "folder", -EISDIR, "tracefs is not readable: " },
	};
	char folder[] = "/tmp/seam-events-XXXXXX", command[256];
	int root;

	assert_non_null(mkdtemp(folder));
	snprintf(command, sizeof(command), "cd %s && mkdir -p events/a/good "
		 "events/a/empty events/a/folder/id && echo 42 > "
		 "events/a/good/id && : > events/a/empty/id", folder);
	assert_int_equal(system(command), 0);
	root = open(folder, O_PATH | O_DIRECTORY);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(each); i++) {
		struct seam_err err = { .cause = { "" } };

		assert_int_equal(seam_tracefs_id(root, "a", each[i].name, &err),
				 each[i].code);
		assert_memory_equal(err.cause[0], each[i].cause,
				    strlen(each[i].cause));
	}
	close(root);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

UNIT_TEST(terms_set_the_bits_that_their_format_names)
{
	struct perf_event_attr attr = { 0 };

	assert_int_equal(seam_pmu_set_bits(&attr, "config:0-7,32-35", 0xabc),
			 0);
	assert_int_equal(attr.config, 0xa000000bc);
	assert_int_equal(seam_pmu_set_bits(&attr, "config:32-35", 0), 0);
	assert_int_equal(attr.config, 0xbc);
	assert_int_equal(seam_pmu_set_bits(&attr, "config1:63", 1), 0);
	assert_int_equal(attr.config1, UINT64_C(1) << 63);
	assert_int_equal(seam_pmu_set_bits(&attr, "config2:1", 1), 0);
	assert_int_equal(attr.config2, 2);
	assert_int_equal(seam_pmu_set_bits(&attr, "config:0-7", 256),
			 -EOVERFLOW);
	assert_int_equal(seam_pmu_set_bits(&attr, "config:64", 1), -EINVAL);
	assert_int_equal(seam_pmu_set_bits(&attr, "config", 1), -EINVAL);
	assert_int_equal(seam_pmu_set_bits(&attr, "other:1", 1), -EINVAL);
}

UNIT_TEST(lists_of_targets_are_read_and_compared)
{
	static const char *const bad[] = {
		"", ",", "1,", ",1", "0", "-1", "1-2", "a", "99999999999",
	};
	struct seam_number_list some = { 0 }, all = { 0 };

	assert_int_equal(seam_targets_parse(&some, "7,12"), 0);
	assert_int_equal(seam_targets_parse(&all, "1,7,9,12"), 0);
	assert_true(seam_targets_are_in(&some, &all));
	assert_false(seam_targets_are_in(&all, &some));
	free(some.items);
	free(all.items);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(bad); i++) {
		struct seam_number_list got = { 0 };

		if (seam_targets_parse(&got, bad[i]) == 0)
			fail_msg("'%s' was taken", bad[i]);
		free(got.items);
	}
}

UNIT_MAIN(NULL, NULL, NULL, end_list)
