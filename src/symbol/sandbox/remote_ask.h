/* SPDX-License-Identifier: MIT */
/*
 * remote_ask.h - questions to the reading process, for remote*.c only
 */
#ifndef SEAM_REMOTE_ASK_H
#define SEAM_REMOTE_ASK_H

#include "base/strings.h"
#include "symbol/sandbox/remote.h"
#include "symbol/sandbox/sandbox.h"

struct seam_remote {
	const struct seam_symbols_options *options;
	struct seam_sandbox sandbox;
	unsigned int n_children;
	unsigned int refused;		/* of the first child */
	struct seam_strings strings;	/* in answers */
};

/* Have a child.  0 or -errno. */
int seam_remote_start(struct seam_remote *remote, struct seam_err *err);

/*
 * A child that knows @module.  *@answer is what it said when it was told of
 * it just now; its body is empty when it knew already.
 */
int seam_remote_tell(struct seam_remote *remote,
		     struct seam_remote_module *module,
		     struct seam_message *answer, struct seam_err *err);

/* Send what was put, give it what it needs, and wait for the answer. */
int seam_remote_ask(struct seam_remote *remote, enum seam_remote_kind kind,
		    struct seam_message *answer);

/*
 * The child died, or what it says makes no sense: end it.  -EIO, with the
 * reason, which goes into @lost too, of SEAM_REMOTE_LOST bytes.
 */
int seam_remote_lose(struct seam_remote *remote, char *lost, int r,
		     struct seam_err *err);

#endif /* SEAM_REMOTE_ASK_H */
