// SPDX-License-Identifier: MIT
// thrower.cc - functions that end by an exception, for signals.c
//
// A frame that is left so has an entry and no exit.
#define SHOWN __attribute__((xray_always_instrument, noinline))

extern "C" {
void signals_note_throws(int entry);
void signals_note_catches(int entry);
void signals_throws(unsigned n);
void signals_catches(unsigned n);
}

SHOWN void signals_throws(unsigned n)
{
	signals_note_throws(1);
	if (n == 0)
		throw n;
	signals_throws(n - 1);
	signals_note_throws(0);
}

SHOWN void signals_catches(unsigned n)
{
	signals_note_catches(1);
	try {
		signals_throws(n);
	} catch (unsigned) {
	}
	signals_note_catches(0);
}
