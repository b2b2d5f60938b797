/* SPDX-License-Identifier: MIT */
/* library.c - loaded by subject.cc while it runs */
#include <stdio.h>
#include <string.h>

int library_entry(int n, int (*call)(int));

static int inner(int n, int (*call)(int))
{
	char text[100];

	snprintf(text, sizeof(text), "%d in a library", n);
	return n ? inner(n - 1, call) + (int)strlen(text) : call(3);
}

int library_entry(int n, int (*call)(int))
{
	return inner(n, call) + 1;
}
