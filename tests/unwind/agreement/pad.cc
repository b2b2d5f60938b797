/* SPDX-License-Identifier: MIT */
/* pad.cc - a landing pad that clang puts after the end of a function */
#include "stepper.h"

static volatile int sink;

__attribute__((noinline)) static void throw_it()
{
	throw 1;
}

/* At its end the stack pointer is the caller's, not so at the landing pad. */
__attribute__((noinline)) static void catch_it()
{
	volatile long room[32];

	for (volatile long &word : room)
		word = 0x1234567;
	try {
		throw_it();
	} catch (int) {
		sink = sink + 1;
	}
}

int main()
{
	catch_it();		/* the resolver */
	install_stepper();
	start_stepping();
	catch_it();
	stop_stepping();
	return 0;
}
