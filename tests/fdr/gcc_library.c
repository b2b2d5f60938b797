/* SPDX-License-Identifier: MIT */
/* gcc_library.c - a library that is loaded late, and unloaded before the end */
void in_library(void);

static volatile int sink;

void in_library(void)
{
	sink++;
}

/* The first call of both is before dlopen() returns. */
__attribute__((constructor))
static void begin_library(void)
{
	in_library();
}
