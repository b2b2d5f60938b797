/* SPDX-License-Identifier: MIT */
/* gcc_library.c - a function of a library that is loaded late */
void in_library(void);

static volatile int sink;

void in_library(void)
{
	sink++;
}
