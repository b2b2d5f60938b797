/* SPDX-License-Identifier: MIT */
/*
 * preload.h - whether the command gets libraries of Seam's, and how
 *
 *	libseam-agent	samples guest stacks (--layers)
 *	libseam-fdr	records calls (--trace)
 *
 * They are in LD_PRELOAD, of the command and of all that it starts, in front of
 * what the user has there.  Programs with AddressSanitizer start because
 * ASAN_OPTIONS turns off its check of the order of libraries.
 */
#ifndef SEAM_PRELOAD_H
#define SEAM_PRELOAD_H

#include <limits.h>

#include "base/base.h"
#include "base/err.h"

/*
 * Which layers are recorded by an agent: --layers.  Whether a command has a VM
 * is decided before it starts, from its file:
 *
 *	an ELF file	it exports LuaJIT's API, or needs a libluajit, directly
 *			or by another library
 *	a script	the interpreter of its #! line does
 *	nginx		its module for Lua is installed
 *
 * A program that is started otherwise, or that loads the VM later, is not
 * found: the report says that it ran LuaJIT, and how to record it.
 */
enum seam_layers {
	SEAM_LAYERS_AUTO,	/* the guest's where a VM is found */
	SEAM_LAYERS_GUEST,	/* in any case */
	SEAM_LAYERS_NATIVE,	/* in none */
};

struct seam_preload {
	bool is_used;			/* the agent is */
	bool has_fdr;
	char library[PATH_MAX];		/* the agent */
	char fdr[PATH_MAX];
	char *old_preload, *old_asan;	/* of the environment; owned */
};

#define SEAM_AGENT_LIBRARY "libseam-agent.so"
#define SEAM_FDR_LIBRARY "libseam-fdr.so"

/*
 * The path of one of these: beside the program, in the tree where it was
 * built, or where it was installed.  False: it is in none of them, or another
 * user than root, the program's owner and the caller can have put it there.
 */
bool seam_preload_find(const char *name, char library[PATH_MAX]);

/*
 * Have libseam-fdr; after seam_preload_decide().  0; or -ENOENT or -EINVAL with
 * the cause.
 */
int seam_preload_add_fdr(struct seam_preload *preload, struct seam_err *err);

/*
 * Decide for command @argv.  @message, of @room bytes, is one line for the
 * user, or "".  is_used says whether there is an agent.
 */
void seam_preload_decide(struct seam_preload *preload, enum seam_layers layers,
			 char **argv, char *message, size_t room);

/*
 * Change the environment, which the command inherits; and change it back.
 * Without memory for its old values it stays, and neither is used.
 */
void seam_preload_set(struct seam_preload *preload);
void seam_preload_restore(struct seam_preload *preload);

#endif /* SEAM_PRELOAD_H */
