/* SPDX-License-Identifier: MIT */
/* made_up_host.c - lua_host with a guest that is always in a Lua function */
#include "made_up_guest.h"

__attribute__((constructor)) static void make_up(void)
{
	static const struct made_up_function function = {
		.chunk = "@made_up.lua", .line = 1,
		.kind = SEAM_GUEST_FRAME_GUEST };

	made_up_guest = (struct made_up_guest) {
		.functions = &function, .n_functions = 1,
		.vmstate = SEAM_VMSTATE_LFUNC, .ids = { 1 }, .n_ids = 1,
	};
}
