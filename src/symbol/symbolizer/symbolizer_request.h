/* SPDX-License-Identifier: MIT */
/*
 * symbolizer_request.h - requests to the sandboxed process, for symbolizer*.c
 */
#ifndef SEAM_SYMBOLIZER_REQUEST_H
#define SEAM_SYMBOLIZER_REQUEST_H

#include "base/strings.h"
#include "symbol/sandbox/sandbox.h"
#include "symbol/symbolizer/symbolizer.h"
#include "symbol/symbolizer/symbolizer_protocol.h"

struct seam_symbolizer {
	const struct seam_symbols_options *options;
	struct seam_sandbox sandbox;
	unsigned int n_processes;	/* started so far */
	unsigned int refused;		/* of the first one */
	struct seam_strings strings;	/* in results */
};

/* Start a process unless one runs.  0 or -errno. */
int seam_symbolizer_start(struct seam_symbolizer *symbolizer,
			  struct seam_err *err);

/* The same, and have it read @module unless that was done.  0 or -errno. */
int seam_symbolizer_reach(struct seam_symbolizer *symbolizer,
			  struct seam_symbolizer_module *module,
			  struct seam_err *err);

/*
 * Send what was put, serve files meanwhile, and receive the reply.  A
 * descriptor of SEAM_SYMBOLIZER_OPEN's reply is the caller's to close.
 */
int seam_symbolizer_request(struct seam_symbolizer *symbolizer,
			    enum seam_symbolizer_kind kind,
			    struct seam_message *reply);

/*
 * After failure @r of a request: end the process.  -EIO, with the reason in
 * @err and in @lost, which has SEAM_SYMBOLIZER_LOST bytes.
 */
int seam_symbolizer_fail(struct seam_symbolizer *symbolizer, char *lost, int r,
			 struct seam_err *err);

#endif /* SEAM_SYMBOLIZER_REQUEST_H */
