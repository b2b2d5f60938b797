/* SPDX-License-Identifier: MIT */
/* test_command.c - what a command line means, and what it may not mean */
#include "cli/command.h"

#include "../unit.h"
#include "cli/commands/help.h"
#include "cli/hints.h"

struct options {
	bool tree;
	bool all;
	uint64_t g;
	double least;
	uint64_t hertz;
	const char *by;
	const char *layers;
	const char *snapshot;
	struct seam_option_list symfs;
	struct seam_option_list trace;
};

static const struct seam_option options[] = {
	SEAM_OPTION(struct options, tree, FLAG, 't', "tree", NULL,
		    "show a tree"),
	SEAM_OPTION(struct options, all, FLAG, 'a', "all", NULL,
		    "show all"),
	SEAM_OPTION(struct options, g, U64, 'g', NULL, "N",
		    "a letter only"),
	{ .kind = SEAM_OPTION_HEADING, .help = "Sampling" },
	SEAM_OPTION(struct options, hertz, U64, 'F', "freq", "HZ",
		    "samples a second", .detail = "It's \\ -odd.\n\nDone."),
	SEAM_OPTION(struct options, by, STRING, 0, "by", "WHAT",
		    "rows", .choices = "symbol|thread"),
	SEAM_OPTION(struct options, layers, SET, 0, "layer", "LIST",
		    "layers", .choices = "kernel|native|jit"),
	SEAM_OPTION(struct options, least, PERCENT, 0, "least",
		    "PERCENT", "smallest"),
	SEAM_OPTION(struct options, snapshot, STRING, 'S',
		    "snapshot", "[BYTES]", "take snapshots"),
	SEAM_OPTION(struct options, symfs, STRINGS, 0, "symfs",
		    "DIR", "look there"),
	SEAM_OPTION(struct options, trace, STRINGS, 0, "trace",
		    "[GLOB,...]", "record calls"),
};

static const struct seam_command command = {
	.name = "test", .summary = "be tested", .synopsis = "[options] [FILE]",
	.description = "One.\n\n.Two begins with a dot.",
	.examples = "seam test -t\tshow \"a\" tree\n",
	.options = options, .n_options = SEAM_ARRAY_SIZE(options),
};

static const struct seam_command runs = {
	.name = "runs", .summary = "run it", .synopsis = "[--] COMMAND",
	.options = options, .n_options = SEAM_ARRAY_SIZE(options),
	.takes_command = true,
};

const struct seam_command *const seam_commands[] = { &command, &runs };
const size_t seam_n_commands = SEAM_ARRAY_SIZE(seam_commands);

const struct seam_command *const seam_programs[] = { &command };
const size_t seam_n_programs = SEAM_ARRAY_SIZE(seam_programs);

/* A parsed command line. */
struct parsed {
	struct options options;
	char *argv[80];
	int argc, first, rc;
};

/* Parse words divided by one space; they live as long as the program. */
static struct parsed parse_for(const struct seam_command *self,
			       const char *line)
{
	static char words[1024];
	struct parsed p = { .argv = { words }, .argc = 1 };

	snprintf(words, sizeof(words), "test %s", line);
	for (char *c = words; *c; c++) {
		if (*c != ' ')
			continue;
		*c = '\0';
		if (c[1])
			p.argv[p.argc++] = c + 1;
	}
	p.rc = seam_command_parse(self, p.argc, p.argv, &p.options, &p.first);
	return p;
}

static struct parsed parse(const char *line)
{
	return parse_for(&command, line);
}

UNIT_TEST(values_are_attached_or_the_next_word)
{
	struct parsed p = parse("--freq=99 --by thread");

	assert_int_equal(p.rc, 0);
	assert_int_equal(p.options.hertz, 99);
	assert_string_equal(p.options.by, "thread");
	assert_int_equal(p.first, p.argc);
	assert_int_equal(parse("-F 0x10").options.hertz, 16);
	assert_int_equal(parse("-F97").options.hertz, 97);
	assert_true(parse("--least=12.5").options.least == 12.5);
}

UNIT_TEST(letters_combine_up_to_the_first_with_a_value)
{
	struct parsed p = parse("-taF99 x");

	assert_int_equal(p.rc, 0);
	assert_true(p.options.tree && p.options.all);
	assert_int_equal(p.options.hertz, 99);
	assert_string_equal(p.argv[p.first], "x");
}

UNIT_TEST(an_optional_value_is_only_taken_attached)
{
	struct parsed p = parse("-S 4096");

	assert_string_equal(p.options.snapshot, "");
	assert_string_equal(p.argv[p.first], "4096");
	assert_string_equal(parse("-S4096").options.snapshot, "4096");
	assert_string_equal(parse("--snapshot=1").options.snapshot, "1");
	assert_string_equal(parse("--snapshot 1").options.snapshot, "");
	assert_null(parse("x").options.snapshot);
	p = parse("--trace --trace=a,b x");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.options.trace.n, 2);
	assert_string_equal(p.options.trace.items[0], "");
	assert_string_equal(p.options.trace.items[1], "a,b");
}

UNIT_TEST(options_and_operands_mix_and_keep_their_order)
{
	struct parsed p = parse("a --by thread b -t - -- -a c");

	assert_int_equal(p.rc, 0);
	assert_true(p.options.tree);
	assert_false(p.options.all);
	assert_int_equal(p.argc - p.first, 5);
	assert_string_equal(p.argv[p.first], "a");
	assert_string_equal(p.argv[p.first + 1], "b");
	assert_string_equal(p.argv[p.first + 2], "-");
	assert_string_equal(p.argv[p.first + 3], "-a");
	assert_string_equal(p.argv[p.first + 4], "c");
}

UNIT_TEST(what_follows_a_command_to_run_is_left_alone)
{
	struct parsed p = parse_for(&runs, "-t make -a --by nothing");

	assert_int_equal(p.rc, 0);
	assert_true(p.options.tree);
	assert_false(p.options.all);
	assert_string_equal(p.argv[p.first], "make");
	assert_string_equal(p.argv[p.first + 1], "-a");
	p = parse_for(&runs, "-- -a");
	assert_string_equal(p.argv[p.first], "-a");
}

UNIT_TEST(a_wrong_word_is_a_usage_error)
{
	static const char *const lines[] = {
		"--tre", "--tree=1", "--by", "--by=process", "--by=", "-x",
		"-tx", "-F", "-F 1k", "-F -1", "-F 18446744073709551616",
		"-F 0x", "--layer=kernel,", "--layer=kernel,heap", "---", "--=",
		"--Sampling", "--freq= 1", "-g", "-gx",
		"--least=", "--least=101", "--least=-1", "--least=nan",
		"--least=0x1", "--least=1e1", "--least=1.2.3", "--least=5%",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(lines); i++)
		assert_int_equal(parse(lines[i]).rc, SEAM_EXIT_USAGE);
}

UNIT_TEST(sets_take_several_choices)
{
	assert_string_equal(parse("--layer=kernel,jit").options.layers,
			    "kernel,jit");
}

UNIT_TEST(an_option_has_a_letter_or_none)
{
	static const struct seam_command *const commands[] = {
		&seam_record_command, &seam_snapshot_command,
		&seam_report_command, &seam_calls_command,
		&seam_annotate_command, &seam_flamegraph_command,
		&seam_convert_command, &seam_dump_command,
		&seam_inject_command, &seam_doctor_command,
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(commands); i++)
		for (size_t k = 0; k < commands[i]->n_options; k++) {
			int letter = commands[i]->options[k].letter;

			assert_true(letter == 0 ||
				    (letter > ' ' && letter < 0x7f));
		}
}

static uint64_t size_of(const char *text)
{
	uint64_t size;
	bool has_unit;

	return seam_command_size(text, &size, &has_unit) ? size : 0;
}

UNIT_TEST(a_size_fits_64_bits)
{
	assert_int_equal(size_of("3k"), 3072);
	assert_true(size_of("18014398509481983K") == UINT64_MAX - 1023);
	assert_int_equal(size_of("18014398509481985K"), 0);
	assert_true(size_of("16777215T") == UINT64_C(16777215) << 40);
	assert_int_equal(size_of("16777217T"), 0);
	assert_true(size_of("18446744073709551615") == UINT64_MAX);
	assert_int_equal(size_of("18446744073709551616"), 0);
}

UNIT_TEST(lists_are_bounded)
{
	char line[1024] = "";
	struct parsed p = parse("--symfs a --symfs=b");

	assert_int_equal(p.options.symfs.n, 2);
	assert_string_equal(p.options.symfs.items[1], "b");
	for (int i = 0; i < SEAM_OPTION_LIST; i++)
		strncat(line, "--symfs=x ", sizeof(line) - strlen(line) - 1);
	assert_int_equal(parse(line).rc, 0);
	strncat(line, "--symfs=x", sizeof(line) - strlen(line) - 1);
	assert_int_equal(parse(line).rc, SEAM_EXIT_USAGE);
}

UNIT_TEST(colour_is_asked_for_or_depends_on_the_terminal)
{
	setenv("NO_COLOR", "1", 1);
	assert_int_equal(parse("--color=always").rc, 0);
	assert_true(seam_command_colors(STDOUT_FILENO));
	assert_int_equal(parse("--color=never").rc, 0);
	assert_false(seam_command_colors(STDOUT_FILENO));
	assert_int_equal(parse("").rc, 0);
	assert_false(seam_command_colors(STDOUT_FILENO));
	assert_int_equal(parse("--color=red").rc, SEAM_EXIT_USAGE);
}

static const char *meant(const char *word)
{
	struct seam_closest_word near = { 0 };

	seam_closest_word_try(&near, word, "report");
	seam_closest_word_try(&near, word, "record");
	seam_closest_word_try(&near, word, "dump");
	return near.name;
}

UNIT_TEST(the_nearest_word_is_the_one_meant)
{
	assert_string_equal(meant("repotr"), "report");
	assert_string_equal(meant("recrod"), "record");
	assert_string_equal(meant("dmp"), "dump");
	assert_string_equal(meant("dupm"), "dump");
	assert_null(meant("flamegraph"));
	assert_null(meant(""));
	assert_null(meant("reportreportreportreportreportreportreport"));
}

/* What @print makes of the command; the caller frees it. */
static char *text_of(void (*print)(FILE *out, const struct seam_command *self))
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	print(out, &command);
	fclose(out);
	return text;
}

UNIT_TEST(a_man_page_escapes_what_roff_would_act_on)
{
	char *text = text_of(seam_man_print);

	assert_non_null(strstr(text, "\n\\&.Two begins with a dot.\n"));
	assert_non_null(strstr(text, "It's \\e \\-odd."));
	assert_non_null(strstr(text, ".It Fl F , Fl \\-freq Ns = Ns Ar HZ\n"));
	assert_non_null(strstr(text, "Oo = Ns Ar BYTES Oc\n"));
	assert_non_null(strstr(text, ".Ss Sampling\n"));
	free(text);
}

UNIT_TEST(help_fits_in_80_columns)
{
	char *text = text_of(seam_help_print), *line;

	for (line = text; *line; line += *line == '\n') {
		size_t n = strcspn(line, "\n");

		assert_in_range(n, 0, 80);
		line += n;
	}
	assert_non_null(strstr(text, "  -F, --freq=HZ"));
	assert_non_null(strstr(text, "  -g N   "));
	assert_null(strstr(text, "(null)"));
	assert_non_null(strstr(text, "--snapshot[=BYTES]"));
	assert_non_null(strstr(text, "symbol|thread"));
	free(text);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
