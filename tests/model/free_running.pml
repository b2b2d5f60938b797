/* SPDX-License-Identifier: MIT */
/*
 * free_running.pml - an AUX buffer that overwrites itself, and copies of it
 *
 * The writer never waits.  The reader copies the whole ring from the head
 * on and then asks how far the writer has reserved: what that may have
 * overwritten is dropped.  Chunk n has the value n, from 1.
 *
 *	B	writer: data stores before the head store
 *	C	reader: head load before data loads
 *	E	writer: the reservation before data stores
 *	F	reader: data loads before the load of the reservation
 *
 * As in forward.pml stores drain in any order, and loads may be early.
 */
#ifndef B
#define B 1
#endif
#ifndef C
#define C 1
#endif
#ifndef E
#define E 1
#endif
#ifndef F
#define F 1
#endif

#define SLOTS 2
#define RECORDS 4

byte data[SLOTS];
byte head, reserved;
bool wait_data[RECORDS + SLOTS + 1];
bool wait_head[RECORDS + 1], wait_reserved[RECORDS + 1];
byte waiting;

active proctype writer()
{
	byte n = 1;

	do
	:: n <= RECORDS ->
		d_step {
			wait_reserved[n] = true;
			wait_data[n] = true;
			wait_head[n] = true;
			waiting = waiting + 3;
			n++
		}
	:: break				/* done, or killed */
	od
}

active proctype store_buffer()
{
	byte n;

end:	do
	:: atomic { waiting > 0 ->
		select (n : 1 .. RECORDS);
		if
		:: wait_reserved[n] && reserved == n - 1 ->
			reserved = n;
			wait_reserved[n] = false;
			waiting--
		:: wait_data[n] && (n <= SLOTS || !wait_data[n - SLOTS]) &&
		   (!E || !wait_reserved[n]) ->
			data[n % SLOTS] = n;
			wait_data[n] = false;
			waiting--
		:: wait_head[n] && head == n - 1 && (!B || !wait_data[n]) ->
			head = n;
			wait_head[n] = false;
			waiting--
		:: else
		fi
	   }
	od
}

byte copy[SLOTS];

inline copy_all()
{
	copy[0] = data[0];
	copy[1] = data[1]
}

active proctype reader()
{
	byte at, ahead, n;
	bool have_copy, have_ahead;

	if
	:: !C -> copy_all(); have_copy = true
	:: true
	fi;
	at = head;
	if
	:: !F -> ahead = reserved; have_ahead = true
	:: true
	fi;
	if
	:: !have_copy -> copy_all()
	:: else
	fi;
	if
	:: !have_ahead -> ahead = reserved
	:: else
	fi;
	/* Records of the ring's last SLOTS that the writer cannot have hit. */
	for (n : 1 .. RECORDS) {
		if
		:: n <= at && n + SLOTS > at && n + SLOTS > ahead ->
			assert(copy[n % SLOTS] == n)
		:: else
		fi
	}
}
