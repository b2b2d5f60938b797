/* SPDX-License-Identifier: MIT */
/*
 * luajit_vm.h - the adapter for LuaJIT 2.1 with 64-bit pointers (GC64)
 *
 * Others are refused, with the reason.  Found by the symbols of its public
 * interface: in a library, or in a program that exports them.
 */
#ifndef SEAM_LUAJIT_VM_H
#define SEAM_LUAJIT_VM_H

#include "traced/guest/luajit/lua_api.h"
#include "traced/guest/luajit/luajit.h"

/* What attach returns: the adapter's constants first. */
struct seam_luajit_object {
	struct seam_luajit lj;
	struct seam_lua_api api;
};

/* prove.c: compare samples of a state of its own with its public interface. */
bool seam_luajit_prove(void *object, char *reason, size_t size);

#endif /* SEAM_LUAJIT_VM_H */
