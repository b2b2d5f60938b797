/* SPDX-License-Identifier: MIT */
/* patch_calls.c - functions with sleds of each kind, for patch_threads.c */
#include "fdr/patch_calls.h"

#define HIDE() __asm__ volatile("" ::: "memory")
#define XRAY __attribute__((noinline, xray_always_instrument))
#define ENTRY(n)							\
	__attribute__((noinline, xray_never_instrument,			\
		       patchable_function_entry(n)))

XRAY int patch_leaf(int x)
{
	HIDE();
	return x + 1;
}

XRAY int patch_two_exits(int x)
{
	HIDE();
	if (x & 1)
		return x * 3;
	HIDE();
	return x * 5;
}

XRAY int patch_tail(int x)
{
	HIDE();
	return patch_leaf(x);
}

__attribute__((noinline, xray_always_instrument, xray_log_args(1)))
int patch_logged(int x)
{
	HIDE();
	return x ^ 1;
}

XRAY int patch_event(int x)
{
	static const char text[] = "text";

	__xray_customevent(text, 4);
	return x;
}

ENTRY(5) int patch_entry(int x)
{
	HIDE();
	return x - 1;
}

ENTRY(9) int patch_long_entry(int x)
{
	HIDE();
	return x - 2;
}
