/* SPDX-License-Identifier: MIT */
/* row_keys.c - names of keys, and the values of a row; see rows.h */
#include "report/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static const char *const names[] = {
	[SEAM_BY_SYMBOL] = "symbol", [SEAM_BY_MODULE] = "module",
	[SEAM_BY_ADDRESS] = "address",
	[SEAM_BY_LINE] = "line", [SEAM_BY_COMM] = "comm",
	[SEAM_BY_THREAD] = "thread", [SEAM_BY_PROCESS] = "process",
	[SEAM_BY_CPU] = "cpu", [SEAM_BY_VMSTATE] = "vmstate",
};

/* "symbol", "module", ...; NULL for other values. */
static const char *by_name(enum seam_by by)
{
	return by < SEAM_ARRAY_SIZE(names) ? names[by] : NULL;
}

enum seam_group seam_by_group(enum seam_by by)
{
	static const enum seam_group groups[] = {
		[SEAM_BY_COMM] = SEAM_GROUP_COMM,
		[SEAM_BY_THREAD] = SEAM_GROUP_THREAD,
		[SEAM_BY_PROCESS] = SEAM_GROUP_PROCESS,
		[SEAM_BY_CPU] = SEAM_GROUP_CPU,
		[SEAM_BY_VMSTATE] = SEAM_GROUP_VMSTATE,
	};

	return by < SEAM_ARRAY_SIZE(groups) ? groups[by] : SEAM_GROUP_NONE;
}

static uint32_t find(const char *text, size_t size)
{
	for (uint32_t i = SEAM_BY_SYMBOL; i < SEAM_ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == size &&
		    memcmp(names[i], text, size) == 0)
			return i;
	return 0;
}

int seam_by_parse(const char *text, uint32_t *by)
{
	*by = 0;
	for (size_t i = 0; i < SEAM_MAX_KEYS; i++) {
		size_t n = strcspn(text, ",");
		uint32_t key = find(text, n);

		if (!key || seam_by_has(*by, (enum seam_by)key))
			return -EINVAL;
		*by |= key << 4 * i;
		if (!text[n])
			return 0;
		text += n + 1;
	}
	return -EINVAL;
}

const char *seam_by_names(uint32_t by, char buf[SEAM_BY_NAMES])
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; seam_by_key(by, i); i++)
		used += (size_t)snprintf(buf + used, SEAM_BY_NAMES - used,
					 "%s%s", i ? "," : "",
					 by_name(seam_by_key(by, i)));
	return buf;
}

bool seam_row_is_stackless(const struct seam_rows *table,
			   const struct seam_row *row)
{
	return row->code == SEAM_NONE && seam_by_is_code(table->by);
}

uint32_t seam_row_id(const struct seam_rows *table, const struct seam_row *row,
		     enum seam_by key)
{
	size_t at = 0;

	/* ids are in the order of the keys that are not of code */
	for (size_t i = 0; seam_by_key(table->by, i) != key; i++)
		at += seam_by_key(table->by, i) > SEAM_BY_LINE;
	return table->groups.items[row->group].items[at];
}

static const struct seam_row_code *code_of(const struct seam_rows *table,
					   const struct seam_row *row)
{
	return row->code == SEAM_NONE ? NULL : &table->codes.items[row->code];
}

static const struct seam_function *function_of(const struct seam_rows *table,
					       const struct seam_row *row)
{
	const struct seam_row_code *code = code_of(table, row);

	return code && code->function != SEAM_NONE ?
	       &table->profile->functions.items[code->function] : NULL;
}

static const char *line_text(const struct seam_rows *table,
			     const struct seam_row_code *code, char *buf)
{
	const struct seam_profile *profile = table->profile;

	if (!code->file && seam_by_has(table->by, SEAM_BY_SYMBOL))
		return "-";	/* the symbol is a column too */
	if (!code->file)
		return seam_profile_text(profile, profile->functions.items[
						  code->function].name);
	snprintf(buf, SEAM_ROW_TEXT, "%.*s:%" PRIu32, SEAM_ROW_TEXT - 16,
		 seam_profile_text(profile, code->file), code->line);
	return buf;
}

/* With the function's name, unless that is a column too. */
static const char *address_text(const struct seam_rows *table,
				const struct seam_row_code *code, char *buf)
{
	const struct seam_profile *profile = table->profile;
	const char *name = seam_profile_text(profile, profile->functions.items[
						      code->function].name);
	bool alone = !seam_by_has(table->by, SEAM_BY_SYMBOL);

	snprintf(buf, SEAM_ROW_TEXT, "0x%" PRIx64 "%s%.*s", code->addr,
		 alone ? " " : "", alone ? SEAM_ROW_TEXT - 32 : 0, name);
	return buf;
}

static const char *code_text(const struct seam_rows *table,
			     const struct seam_row *row, enum seam_by key,
			     char *buf)
{
	const struct seam_profile *profile = table->profile;
	const struct seam_row_code *code = code_of(table, row);
	const char *text;

	if (!code)
		return "[no stack]";
	if (key == SEAM_BY_LINE)
		return line_text(table, code, buf);
	if (key == SEAM_BY_ADDRESS)
		return address_text(table, code, buf);
	if (key == SEAM_BY_SYMBOL)
		return seam_profile_text(profile, profile->functions.items[
						  code->function].name);
	text = seam_profile_path(profile, code->module);
	return *text ? text : "[unknown]";
}

const char *seam_row_text(const struct seam_rows *table,
			  const struct seam_row *row, enum seam_by key,
			  char buf[SEAM_ROW_TEXT])
{
	uint32_t id;

	if (key <= SEAM_BY_LINE)
		return code_text(table, row, key, buf);
	id = seam_row_id(table, row, key);
	if (key != SEAM_BY_CPU)
		return seam_group_text(table->profile, seam_by_group(key), id);
	snprintf(buf, SEAM_ROW_TEXT, id == UINT16_MAX ? "unknown" :
		 "%" PRIu32, id);
	return buf;
}

const char *seam_row_module(const struct seam_rows *table,
			    const struct seam_row *row)
{
	const struct seam_function *function = function_of(table, row);

	return function ? seam_profile_path(table->profile,
					    function->module) : "";
}

enum seam_layer seam_row_layer(const struct seam_rows *table,
			       const struct seam_row *row)
{
	const struct seam_function *function = function_of(table, row);

	return function ? (enum seam_layer)function->layer : SEAM_N_LAYERS;
}
