/* SPDX-License-Identifier: MIT */
/* patch_library.c - a shared object with sleds, for patched.py */
#ifdef __clang__
__attribute__((noinline, xray_always_instrument, visibility("default")))
#else
__attribute__((noinline, visibility("default")))
#endif
int library_leaf(int x)
{
	__asm__ volatile("" ::: "memory");
	return x * 3;
}
