/* SPDX-License-Identifier: MIT */
/* prepare.c - connect, for calls that are there; see fdr_process.h */
#include <errno.h>
#include <stdatomic.h>

#include "traced/fdr/announce_functions.h"
#include "traced/fdr/check/checked.h"
#include "traced/fdr/check/triggers.h"
#include "traced/fdr/cyg/cyg_select.h"
#include "traced/fdr/fdr_process.h"
#include "traced/fdr/own/own_bundle.h"
#include "traced/fdr/record/rseq.h"
#include "traced/fdr/record/source_link.h"
#include "traced/fdr/record/thread_area.h"
#include "traced/fdr/start.h"

static struct seam_fdr_process *const process = &seam_fdr_process;

/* For the recorder to answer: it may have hundreds of programs to serve. */
enum { CONNECT_MS = 5000 };

static int begin_source(void)
{
	const struct seam_fdr_source *source = &seam_fdr_source_own;
	int r;

	if (process->has_source)
		return 0;
	if (process->address[0]) {
		r = seam_fdr_link_connect(process->address, CONNECT_MS);
		/* it records no calls: as without a recorder */
		if (r == -ENOPROTOOPT)
			process->address[0] = '\0';
		else if (r < 0)
			return r;
		else
			source = &seam_fdr_source_link;
	}
	seam_fdr_rseq_init(false);
	return seam_fdr_thread_init(source);
}

/* A flight recorder's triggers need to know what is copied. */
void seam_fdr_resume_triggers(void)
{
	/* without a recorder the first one freezes until the end */
	static const _Atomic uint32_t never;
	struct seam_ring_control *control;

	if (!process->address[0])
		seam_fdr_triggers_resume_at(&never);
	if (!process->address[0] || !process->options.n_triggers ||
	    seam_fdr_announce_claim() < 0)
		return;
	control = seam_fdr_announce_control();
	seam_fdr_triggers_resume_at(&control->program.n_resumed);
}

static int begin_checks(void)
{
	return seam_fdr_check_init(&process->options);
}

static int begin_bundle(void)
{
	return process->address[0] ? 0 :
	       seam_fdr_bundle_begin(process->options.out,
				     process->options.is_flight,
				     process->is_stopped);
}

/* Connect, and all else that only a program with calls to record needs. */
int seam_fdr_prepare(char *why, size_t why_bytes)
{
	static const struct {
		int (*begin)(void);
		const char *what;
	} steps[] = {
		{ begin_source, "connect to the recorder" },
		{ begin_checks, "prepare checks" },
		{ begin_bundle, "make the bundle" },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(steps); i++) {
		int r = steps[i].begin();

		if (r == 0)
			continue;
		snprintf(why, why_bytes, "cannot %s: %s", steps[i].what,
			 strerror(-r));
		return r;
	}
	seam_fdr_cyg_select_none(&process->options);
	process->has_source = true;
	atomic_store(&process->is_unnamed, true);
	seam_fdr_resume_triggers();
	atomic_store(&seam_fdr_is_on, true);
	return 0;
}
