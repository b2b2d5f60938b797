/* SPDX-License-Identifier: MIT */
/*
 * joined_stack.h - one stack of the host's and the Lua frames of a sample
 *
 * A sysprof sample has two stacks, and not where they join.  The host's stack
 * has a frame of the VM for each time that C called into it, and after it the C
 * function that the VM called in turn:
 *
 *	host  main lua_pcall VM l_apply lua_call VM c_leaf
 *	Lua        chunk f      l_apply      g      c_leaf
 *
 * So C functions are the joints: l_apply is looked for in the host's stack, by
 * its address, where its caller is the VM; a fast function in C by its symbol.
 * The Lua frames between two joints are put before the VM's frames between
 * them.  The walk begins at the leaf, because the Lua stack is that of one
 * coroutine: at the root it has less than the host's.  A C function is one
 * frame in the result, the VM's frames stay.  Of a VM without symbols the
 * caller of a joint is the VM; where there is no joint either, Lua frames are
 * below the innermost lua_call or lua_pcall; and where the host's stack has
 * none, at the leaf, but for other code of the VM there.
 *
 * LuaJIT's own parser takes another way, and as_parser that one: from the root,
 * lua_call and lua_pcall are followed by Lua frames up to a C function.  Frames
 * of inner calls are lost with it where the compiler made the call of lua_call
 * a jump.  The parser of version 1 puts all Lua frames at the leaf.
 */
#ifndef SEAM_JOINED_STACK_H
#define SEAM_JOINED_STACK_H

#include "model/sysprof/sysprof_names.h"

/* Zeroed is valid and empty. */
struct seam_joined_stack {
	SEAM_ARRAY(uint32_t) frames;	/* of the profile, leaf first */
	SEAM_ARRAY(struct seam_sysprof_place) host, lua;
	uint64_t n_left_out;		/* Lua frames that as_parser lost */
};

/*
 * Join the stacks of @sample into frames.  @version: of the profile.  0 or
 * -ENOMEM.
 */
int seam_joined_stack_make(struct seam_joined_stack *stack,
			   struct seam_sysprof_names *names,
			   const struct seam_sysprof_item *sample,
			   unsigned int version);

void seam_joined_stack_fini(struct seam_joined_stack *stack);

#endif /* SEAM_JOINED_STACK_H */
