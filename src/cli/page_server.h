/* SPDX-License-Identifier: MIT */
/*
 * page_server.h - serve one page to the user's browser
 *
 * On 127.0.0.1, at a port that the kernel chooses, below a path of 128 random
 * bits.  Other users of the machine can connect, but do not know the path: it
 * is in no command line.  Requests for another host are refused, because a name
 * of an attacker's domain may lead to 127.0.0.1 too (DNS rebinding).
 */
#pragma once

#include "base/base.h"
#include "base/err.h"

/*
 * Serve the @size bytes of the file @fd until SIGINT, SIGTERM or SIGHUP; prints
 * the URL on standard output, and with @opens opens it by $BROWSER or
 * xdg-open(1) where there is a display.  0 or -errno.
 */
int seam_page_serve(int fd, uint64_t size, bool opens, struct seam_err *err);
