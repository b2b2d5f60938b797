/* SPDX-License-Identifier: MIT */
/* flight_args.c - check, and what is implied; see flight_args.h */
#include "cli/commands/flight_args.h"

#include <errno.h>

#include "base/clock.h"
#include "wire/xray/trigger_text.h"

enum { DEFAULT_SNAPSHOTS = 10 };

/* Why the options are refused; NULL: they are not. */
static const char *problem_of(const struct seam_flight_args *args,
			      const struct seam_record_options *out)
{
	if (args->after_ms && !args->triggers.n)
		return "--after needs --trigger";
	if (args->max_snapshots && !args->triggers.n)
		return "--max-snapshots needs --trigger";
	if (args->after_ms > SEAM_FLIGHT_MAX_AFTER_MS)
		return "--after takes at most 60000 milliseconds";
	if (args->triggers.n > SEAM_TRIGGER_MAX)
		return "too many triggers: 16 at most";
	if (!out->command)
		return "--flight-recorder needs a COMMAND: a process that runs "
		       "already cannot have libseam-fdr.so";
	if (out->per_thread)
		return "--per-thread and --flight-recorder cannot be combined";
	return NULL;
}

/* A power of two within the limits. */
static bool parse_size(const char *text, uint64_t *bytes)
{
	uint64_t wanted;
	bool has_unit;

	*bytes = SEAM_FLIGHT_BYTES;
	if (!text || !*text)
		return true;
	if (!seam_command_size(text, &wanted, &has_unit) ||
	    wanted > SEAM_FLIGHT_MAX_BYTES)
		return false;
	*bytes = SEAM_FLIGHT_MIN_BYTES;
	while (*bytes < wanted)
		*bytes *= 2;
	if (*bytes != wanted)
		seam_command_say("--flight-recorder rounded up to a power of "
				 "two: %ju KiB", (uintmax_t)*bytes / 1024);
	return true;
}

static int check_triggers(const struct seam_command *self,
			  const struct seam_option_list *triggers)
{
	struct seam_trigger trigger;

	for (size_t i = 0; i < triggers->n; i++) {
		const char *text = triggers->items[i];
		const char *cause = seam_trigger_parse(text, &trigger);

		if (!cause)
			continue;
		seam_command_misused(self, "'%s' is no trigger: %s", text,
				     cause);
		return -EINVAL;
	}
	return 0;
}

int seam_flight_args_check(const struct seam_command *self,
			   const struct seam_flight_args *args,
			   struct seam_record_options *out)
{
	struct seam_flight_options *flight = &out->flight;
	const char *problem;

	flight->is_used = args->size || args->triggers.n;
	if (!flight->is_used && !args->after_ms && !args->max_snapshots)
		return 0;
	problem = problem_of(args, out);
	if (!problem && !parse_size(args->size, &flight->bytes))
		problem = "--flight-recorder takes a size such as 4M, up to 1G";
	if (problem) {
		seam_command_misused(self, "%s", problem);
		return -EINVAL;
	}
	flight->triggers = args->triggers.items;
	flight->n_triggers = args->triggers.n;
	flight->after_ns = args->after_ms * SEAM_NS_PER_MS;
	flight->max_snapshots = args->max_snapshots ?
				(unsigned int)args->max_snapshots :
				DEFAULT_SNAPSHOTS;
	out->overwrite = true;
	return check_triggers(self, &args->triggers);
}
