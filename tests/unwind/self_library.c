/* SPDX-License-Identifier: MIT */
/*
 * self_library.c - a library that a test loads and unloads, and calls through
 *
 * ROOM: bytes of its frame, by which two libraries differ.
 */
#ifndef ROOM
#define ROOM 8
#endif
#define EXPORTED __attribute__((visibility("default")))

EXPORTED void library_call(void (*callee)(void));
/* The test's, where there is one. */
EXPORTED void on_library_load(void) __attribute__((weak));

static volatile int sink;

EXPORTED void library_call(void (*callee)(void))
{
	volatile char room[ROOM];

	room[sink & 7] = 1;
	callee();
	sink += room[sink & 7];
}

__attribute__((constructor)) static void load(void)
{
	if (on_library_load)
		on_library_load();
	sink++;
}
