/* SPDX-License-Identifier: MIT */
/* resume.cc - an exception through a frame that is cleaned up, no more */
#include <alloca.h>

#include "stepper.h"

static volatile int sink;

struct guard {
	~guard() { sink = sink + 1; }
};

/* Where _Unwind_Resume() seems to return to while it writes registers. */
__attribute__((noinline)) static void throw_through_cleanup()
{
	guard g;
	volatile long room[32];

	for (volatile long &word : room)
		word = 0x1234567;
	throw 1;
}

/* alloca() makes rbp a frame pointer. */
__attribute__((noinline)) static void catch_it(int n)
{
	volatile char *room = (volatile char *)alloca((size_t)n);

	room[0] = 1;
	try {
		throw_through_cleanup();
	} catch (int) {
		sink = sink + 1;
	}
}

int main(int argc, char **)
{
	catch_it(argc);		/* the resolver */
	install_stepper();
	start_stepping();
	catch_it(argc);
	stop_stepping();
	return 0;
}
