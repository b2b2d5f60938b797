/* SPDX-License-Identifier: MIT */
/*
 * vm_search.h - whether a command will run a VM that the agent samples
 *
 * Decided before the command starts, from what it names:
 *
 *	an ELF file	it exports LuaJIT's API, or a library that it needs
 *			does, directly or not
 *	a script	its interpreter does, or a program that a shell script
 *			names
 *	a wrapper	a word of its command line is such a program: env, nice,
 *			sh -c 'luajit app.lua', sh run.sh
 *	nginx		a module that its configuration loads is, by its name
 *
 * A program that is started otherwise, or that loads the VM later, is not
 * found: --layers=guest is for those.
 *
 * Only regular files are read, with the rights of the caller, and none is
 * executed.  A child does it, for a second at most: a file system may not
 * answer.  Processes that run already: running_vm.h.
 *
 * Cost: at most 128 ELF files, and a fork.
 * Threads: the caller is the only one.
 */
#ifndef SEAM_VM_SEARCH_H
#define SEAM_VM_SEARCH_H

#include "base/base.h"

struct seam_vm_search {
	char found[256];	/* the file with the VM; "": none */
	char first[256];	/* the program that is to load it */
	bool is_command;	/* that is the command itself */
	/* The library of AddressSanitizer that it needs; "": none. */
	char asan[256];
	unsigned int n_files;	/* that were read */
	bool has_failed;	/* no answer in time: nothing is known */
};

/* Search from the command @argv.  Returns whether there is one. */
bool seam_vm_search(struct seam_vm_search *search, char **argv);

#endif /* SEAM_VM_SEARCH_H */
