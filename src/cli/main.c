/* SPDX-License-Identifier: MIT */
/* main.c - pick a command and run it */
#include <stdio.h>

int main(void)
{
	return 2;
}
