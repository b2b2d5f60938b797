/* SPDX-License-Identifier: MIT */
/*
 * command.c - parse a command line into the members of a struct
 *
 * The parser walks argv once and moves each option to the front, so that the
 * operands follow, in their order.  The common options (--help, --quiet, ...)
 * are one more table, for a struct of this file.
 */
#include "cli/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/memory_limit.h"
#include "base/progress.h"
#include "base/text.h"
#include "cli/hints.h"
#include "cli/packed.h"

/* Set by the parser before anything runs, read afterwards. */
static struct common {
	bool help;
	bool quiet;
	bool verbose;
	bool no_pager;
	const char *color;
	uint64_t max_memory;	/* bytes; 0: not given */
} common;

static const struct seam_option common_options[] = {
	SEAM_OPTION(struct common, help, FLAG, 'h', "help", NULL,
		    "show this help and exit"),
	SEAM_OPTION(struct common, quiet, FLAG, 'q', "quiet", NULL,
		    "print only errors on standard error"),
	SEAM_OPTION(struct common, verbose, FLAG, 'v', "verbose",
		    NULL, "print more on standard error"),
	SEAM_OPTION(struct common, no_pager, FLAG, 0, "no-pager",
		    NULL, "do not use a pager on a terminal",
		    .detail = "The pager is SEAM_PAGER in the environment, "
		    "else PAGER, else less; cat means none."),
	SEAM_OPTION(struct common, color, STRING, 0, "color",
		    "WHEN", "colour the output (auto)",
		    .choices = "auto|always|never",
		    .detail = "With auto there is colour on a terminal, unless "
		    "NO_COLOR is set in the environment or TERM is dumb."),
	SEAM_OPTION(struct common, max_memory, SIZE, 0,
		    "max-memory", "SIZE",
		    "fail if more memory than SIZE is needed",
		    .detail = "SIZE has a unit: 512M, 2G. The default is "
		    "three quarters of the machine's memory; a lower limit of "
		    "the shell (ulimit -d) stays. Mapped files do not count. "
		    "A second process that reads binaries may use as much "
		    "again. Expanded data has further limits: 256 MiB plus "
		    "200 times the size of compressed records, 1 MiB plus 32 "
		    "times that of the kernel's symbols, and 256 MiB plus 16 "
		    "times the size of a binary for its debug sections."),
};

/* Whether @command has @option, one of the above. */
static bool has_common(const struct seam_command *command,
		       const struct seam_option *option)
{
	return command->reads ||
	       option->offset != offsetof(struct common, max_memory);
}

struct parser {
	const struct seam_command *command;
	void *into;
	char **argv;
	int argc;
	int at;			/* the word being parsed */
	int used;		/* words of the option: itself and its value */
	int n_operands;		/* before it */
};

/* An option that was found, and the struct with its member. */
struct match {
	const struct seam_option *option;
	void *into;
};

/* The name in messages: that of the program, not of the command. */
static const char *program = "seam";

int seam_command_misused(const struct seam_command *command,
			 const char *fmt, ...)
{
	char plain[SEAM_ERR_TEXT], safe[SEAM_ERR_TEXT];
	va_list args;

	va_start(args, fmt);
	vsnprintf(plain, sizeof(plain), fmt, args);
	va_end(args);
	seam_text_copy(safe, sizeof(safe), plain, SEAM_TEXT_TERMINAL);
	if (command->is_program)
		fprintf(stderr, "%s: %s\nTry '%s --help'.\n", command->name,
			safe, command->name);
	else
		fprintf(stderr, "seam: %s: %s\nTry 'seam %s --help'.\n",
			command->name, safe, command->name);
	return SEAM_EXIT_USAGE;
}

/* Print "option '--name'" and a reason.  Returns SEAM_EXIT_USAGE. */
__attribute__((format(printf, 3, 4)))
static int refuse(const struct parser *p, const struct seam_option *option,
		  const char *fmt, ...)
{
	const char letter[2] = { option->letter, '\0' };
	char reason[SEAM_ERR_TEXT];
	va_list args;

	va_start(args, fmt);
	vsnprintf(reason, sizeof(reason), fmt, args);
	va_end(args);
	return seam_command_misused(p->command, "option '%s%s'%s",
				    option->name ? "--" : "-",
				    option->name ? option->name : letter,
				    reason);
}

static const struct seam_option *
find_in(const struct seam_option *options, size_t n, char letter,
	const char *name, size_t size)
{
	for (size_t i = 0; i < n; i++)
		if (options[i].kind != SEAM_OPTION_HEADING &&
		    (letter ? options[i].letter == letter : options[i].name &&
		     strlen(options[i].name) == size &&
		     memcmp(options[i].name, name, size) == 0))
			return &options[i];
	return NULL;
}

const struct seam_option *
seam_command_common(const struct seam_command *command, size_t i)
{
	for (size_t k = 0; k < SEAM_ARRAY_SIZE(common_options); k++) {
		const struct seam_option *option = &common_options[k];

		if (has_common(command, option) &&
		    !find_in(command->options, command->n_options, 0,
			     option->name, strlen(option->name)) && i-- == 0)
			return option;
	}
	return NULL;
}

/* By @letter or, when that is 0, by name.  A command's own options win. */
static struct match find(const struct parser *p, char letter, const char *name,
			 size_t size)
{
	struct match m = { .into = p->into };

	m.option = find_in(p->command->options, p->command->n_options, letter,
			   name, size);
	if (!m.option) {
		m.option = find_in(common_options,
				   SEAM_ARRAY_SIZE(common_options), letter,
				   name, size);
		m.into = &common;
		if (m.option && !has_common(p->command, m.option))
			m.option = NULL;
	}
	return m;
}

/* @word: "--name" or "-c". */
static int unknown(const struct parser *p, const char *word)
{
	const struct seam_command *command = p->command;
	struct seam_closest_word near = { 0 };
	const char *instead = seam_perf_equivalent(command->name, word);
	bool is_name = word[1] == '-';

	if (instead)
		return seam_command_misused(command, "there is no option "
					    "'%s': %s", word, instead);
	for (size_t i = 0; i < command->n_options && is_name; i++)
		if (command->options[i].name)
			seam_closest_word_try(&near, word + 2,
					      command->options[i].name);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(common_options) && is_name; i++)
		if (has_common(command, &common_options[i]))
			seam_closest_word_try(&near, word + 2,
					      common_options[i].name);
	return seam_command_misused(command, "unknown option '%s'%s%s%s", word,
				    near.name ? "; did you mean '--" : "",
				    near.name ? near.name : "",
				    near.name ? "'?" : "");
}

static int check_choice(const struct parser *p,
			const struct seam_option *option, const char *value)
{
	bool several = option->kind == SEAM_OPTION_SET;
	const char *word = value;

	if (!option->choices)
		return 0;
	for (;;) {
		size_t n = strcspn(word, several ? "," : "");

		if (!seam_word_is_among(option->choices, word, n))
			return refuse(p, option, " takes %s%s, not '%s'",
				      several ? "some of " : "",
				      option->choices, value);
		if (!word[n])
			return 0;
		word += n + 1;
	}
}

/*
 * For the letter of a number @option without a valid number: a hint about that
 * letter in perf, or NULL.
 */
static const char *meant_in_perf(const struct parser *p,
				 const struct seam_option *option)
{
	const char letter[3] = { '-', option->letter, '\0' };

	return option->letter && p->argv[p->at][1] != '-' &&
	       option->kind == SEAM_OPTION_U64 ?
	       seam_perf_equivalent(p->command->name, letter) : NULL;
}

/* Digits, or 0x and hexadecimal ones; no sign, no space. */
static int store_u64(const struct parser *p, const struct seam_option *option,
		     const char *value, uint64_t *member)
{
	bool hex = value[0] == '0' && (value[1] == 'x' || value[1] == 'X');
	const char *digits = hex ? value + 2 : value;
	size_t n = strspn(digits, hex ? "0123456789abcdefABCDEF" :
				  "0123456789");
	const char *meant = meant_in_perf(p, option);

	if (n == 0 || digits[n])
		return meant ? seam_command_misused(p->command, "%s", meant) :
		       refuse(p, option, " takes a number, not '%s'", value);
	errno = 0;
	*member = strtoull(digits, NULL, hex ? 16 : 10);
	if (errno)
		return refuse(p, option, ": %s is too large", value);
	if (*member < option->least)
		return refuse(p, option, " takes a number from %llu, not '%s'",
			      (unsigned long long)option->least, value);
	return 0;
}

bool seam_command_size(const char *text, uint64_t *size, bool *has_unit)
{
	static const char units[] = "BKMGT";
	size_t n = strspn(text, "0123456789");
	const char *unit = text[n] ? strchr(units, text[n] & ~0x20) : units;

	errno = 0;
	*size = strtoull(text, NULL, 10);
	if (n == 0 || errno || !unit || (text[n] && text[n + 1]) ||
	    *size == 0 || *size > UINT64_MAX >> 10 * (unit - units))
		return false;
	*size <<= 10 * (unit - units);
	*has_unit = text[n];
	return true;
}

/* Digits with or without a point; no sign, no exponent, no "nan". */
static bool is_percent(const char *value, double *percent)
{
	char *end = NULL;

	*percent = strtod(value, &end);
	return end != value && !*end &&
	       !value[strspn(value, "0123456789.")] && *percent <= 100;
}

static int store(const struct parser *p, struct match m, const char *value)
{
	const struct seam_option *option = m.option;
	void *member = (char *)m.into + option->offset;
	struct seam_option_list *list = member;
	bool has_unit;
	int status;

	if (option->kind == SEAM_OPTION_FLAG) {
		*(bool *)member = true;
		return 0;
	}
	if (option->kind == SEAM_OPTION_DIVIDER) {
		*(uint64_t *)member = (uint64_t)p->n_operands;
		return 0;
	}
	if (!value)	/* optional, and not given */
		value = "";
	else if ((status = check_choice(p, option, value)))
		return status;
	switch (option->kind) {
	case SEAM_OPTION_U64:
		return store_u64(p, option, value, member);
	case SEAM_OPTION_SIZE:
		return seam_command_size(value, member, &has_unit) ? 0 :
		       refuse(p, option, " takes a size such as 512M or 2G, "
			      "not '%s'", value);
	case SEAM_OPTION_PERCENT:
		return is_percent(value, member) ? 0 :
		       refuse(p, option, " takes a percentage, not '%s'",
			      value);
	case SEAM_OPTION_STRINGS:
		if (list->n == SEAM_OPTION_LIST)
			return refuse(p, option, " given more than %d times",
				      SEAM_OPTION_LIST);
		list->items[list->n++] = value;
		return 0;
	default:
		*(const char **)member = value;
		return 0;
	}
}

/* Take the next word as the value, if the option requires one. */
static int next_value(struct parser *p, const struct seam_option *option,
		      const char **value)
{
	const char *meant = meant_in_perf(p, option);

	*value = NULL;
	if (!option->value || option->value[0] == '[')
		return 0;
	if (p->at + 1 >= p->argc)
		return meant ? seam_command_misused(p->command, "%s", meant) :
		       refuse(p, option, " needs a value: %s", option->choices ?
			      option->choices : option->value);
	*value = p->argv[p->at + 1];
	p->used = 2;
	return 0;
}

/* "--name", "--name value", "--name=value" */
static int parse_long(struct parser *p)
{
	const char *name = p->argv[p->at] + 2;
	size_t size = strcspn(name, "=");
	struct match m = find(p, 0, name, size);
	const char *value = name + size + 1;
	char word[66];
	int status = 0;

	if (!m.option) {
		snprintf(word, sizeof(word), "--%.*s", (int)size, name);
		return unknown(p, word);
	}
	if (name[size] != '=')
		status = next_value(p, m.option, &value);
	else if (!m.option->value)
		status = refuse(p, m.option, " takes no value");
	return status ? status : store(p, m, value);
}

/* "-a", "-abc", "-F99", "-F 99": letters up to the first that has a value. */
static int parse_letters(struct parser *p)
{
	for (const char *c = p->argv[p->at] + 1; *c; c++) {
		struct match m = find(p, *c, NULL, 0);
		const char word[3] = { '-', *c, '\0' };
		const char *value = c + 1;
		int status = 0;

		if (!m.option)
			return unknown(p, word);
		if (!m.option->value || !*value)
			status = next_value(p, m.option, &value);
		if (!status)
			status = store(p, m, value);
		if (status || m.option->value)
			return status;
	}
	return 0;
}

/*
 * Move the option at @at, @used words, before the operands, which begin at
 * @first.  Returns the new index of the first operand.
 */
static int bring_forward(struct parser *p, int first)
{
	char *words[2] = { p->argv[p->at], NULL };

	if (p->used == 2)
		words[1] = p->argv[p->at + 1];
	memmove(&p->argv[first + p->used], &p->argv[first],
		(size_t)(p->at - first) * sizeof(*p->argv));
	memcpy(&p->argv[first], words, (size_t)p->used * sizeof(*words));
	return first + p->used;
}

static int parse_words(struct parser *p, int *first)
{
	int status;

	*first = 1;
	for (p->at = 1; p->at < p->argc; p->at += p->used) {
		const char *word = p->argv[p->at];

		p->used = 1;
		p->n_operands = p->at - *first;
		if (word[0] != '-' || !word[1]) {
			if (p->command->takes_command)
				return 0;
			continue;
		}
		if (strcmp(word, "--") == 0) {
			*first = bring_forward(p, *first);
			return 0;
		}
		status = word[1] == '-' ? parse_long(p) : parse_letters(p);
		if (status)
			return status;
		*first = bring_forward(p, *first);
		if (common.help)
			return SEAM_EXIT_HELP;
	}
	return 0;
}

/* Archives, and their folders, which stay until the program ends. */
static SEAM_ARRAY(struct unpacked {
	const char *folder;
	const char *archive;
}) unpacked;

int seam_command_name(const char *path, const char *name)
{
	return SEAM_ARRAY_ADD(&unpacked, (struct unpacked) { path, name }) ?
	       0 : -ENOMEM;
}

/* Put the folder of @path, if that is an archive, in its place. */
static int unpack_one(const char **path)
{
	struct seam_err err = { 0 };
	struct stat st;
	char *folder;

	if (!*path || !seam_packed_is(*path) || stat(*path, &st) ||
	    S_ISDIR(st.st_mode))
		return 0;
	if (seam_packed_open(*path, &folder, &err))
		return seam_command_failed(&err);
	if (seam_command_name(folder, *path)) {
		free(folder);
		seam_err_no_memory(&err);
		return seam_command_failed(&err);
	}
	*path = folder;
	return 0;
}

/* Recordings that are archives: operands, and the option --input. */
static int unpack_all(struct parser *p, int first)
{
	const struct seam_command *command = p->command;
	int status = 0;

	for (int i = first; i < p->argc && !status; i++) {
		const char *path = p->argv[i];

		status = unpack_one(&path);
		p->argv[i] = (char *)(uintptr_t)path;
	}
	for (size_t i = 0; i < command->n_options && !status; i++) {
		const struct seam_option *o = &command->options[i];

		if (o->name && strcmp(o->name, "input") == 0)
			status = unpack_one((const char **)(void *)
					    ((char *)p->into + o->offset));
	}
	return status;
}

int seam_command_parse(const struct seam_command *command, int argc,
		       char **argv, void *into, int *first)
{
	struct parser p = {
		.command = command, .into = into, .argv = argv, .argc = argc,
	};
	int status;

	common = (struct common) { .color = "auto" };
	program = command->is_program ? command->name : "seam";
	status = parse_words(&p, first);
	if (status)
		return status;
	if (common.quiet)
		seam_progress_silence();
	if (!command->reads)
		return 0;
	seam_memory_limit(common.max_memory);
	return unpack_all(&p, *first);
}

const char *seam_command_named(const char *path)
{
	for (size_t i = 0; i < unpacked.n; i++)
		if (unpacked.items[i].folder == path)
			return unpacked.items[i].archive;
	return path;
}

int seam_command_failed(const struct seam_err *err)
{
	struct seam_err safe = { .code = err->code, .n_causes = err->n_causes };

	for (int i = 0; i < err->n_causes; i++)
		seam_text_copy(safe.cause[i], SEAM_ERR_TEXT, err->cause[i],
			       SEAM_TEXT_TERMINAL);
	seam_err_print(stderr, program, &safe);
	if (err->code == -ENOMEM)
		seam_memory_refused();
	return SEAM_EXIT_FAILED;
}

void seam_command_say(const char *fmt, ...)
{
	char text[1024];
	va_list args;

	if (common.quiet)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fprintf(stderr, "%s: ", program);
	seam_text_put(stderr, text, SEAM_TEXT_TERMINAL);
	fputc('\n', stderr);
}

bool seam_command_verbose(void)
{
	return common.verbose;
}

bool seam_command_pages(void)
{
	return !common.no_pager;
}

bool seam_command_colors(int fd)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (common.color && strcmp(common.color, "auto") != 0)
		return strcmp(common.color, "always") == 0;
	if ((no_color && *no_color) || (term && strcmp(term, "dumb") == 0))
		return false;
	return isatty(fd);
}
