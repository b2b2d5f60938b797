/* SPDX-License-Identifier: MIT */
/*
 * aux.pml - an AUX area, and the records that speak of it
 *
 * The writer puts a chunk into the area, publishes aux_head, then writes the
 * AUX record and publishes data_head.  One reader drains the area by its
 * head alone.  Another reads records, and must find that aux_head covers
 * what they describe.
 *
 *	A	writer: aux_tail load before stores into the area
 *	B	writer: stores into the area before the aux_head store
 *	C	reader: aux_head load before loads from the area
 *	D	reader: loads from the area before the aux_tail store
 *	B2	writer: aux_head and record before the data_head store
 *	C2	reader: data_head load before record and aux_head
 *
 * As in forward.pml stores drain in any order, and loads may be early.
 */
#ifndef A
#define A 1
#endif
#ifndef B
#define B 1
#endif
#ifndef C
#define C 1
#endif
#ifndef D
#define D 1
#endif
#ifndef B2
#define B2 1
#endif
#ifndef C2
#define C2 1
#endif

#define SLOTS 2
#define CHUNKS 4

byte area[SLOTS];
byte aux_head, aux_tail, data_head;
byte record[CHUNKS + 1];
bool wait_area[CHUNKS + 1], wait_aux_head[CHUNKS + 1];
bool wait_record[CHUNKS + 1], wait_data_head[CHUNKS + 1];
byte waiting;

active proctype writer()
{
	byte n = 1;
	bool early;

	do
	:: n <= CHUNKS ->
		early = false;
		if
		:: !A -> wait_area[n] = true; waiting++; early = true
		:: true
		fi;
end_full:	(n - 1 - aux_tail < SLOTS);	/* room, or wait */
		if
		:: !early -> wait_area[n] = true; waiting++
		:: else
		fi;
		d_step {
			wait_aux_head[n] = true;
			wait_record[n] = true;
			wait_data_head[n] = true;
			waiting = waiting + 3;
			n++
		}
	:: break
	od
}

active proctype store_buffer()
{
	byte n;

end:	do
	:: atomic { waiting > 0 ->
		select (n : 1 .. CHUNKS);
		if
		:: wait_area[n] && (n <= SLOTS || !wait_area[n - SLOTS]) ->
			area[n % SLOTS] = n;
			wait_area[n] = false;
			waiting--
		:: wait_aux_head[n] && aux_head == n - 1 &&
		   (!B || !wait_area[n]) ->
			aux_head = n;
			wait_aux_head[n] = false;
			waiting--
		:: wait_record[n] ->
			record[n] = n;
			wait_record[n] = false;
			waiting--
		:: wait_data_head[n] && data_head == n - 1 &&
		   (!B2 || (!wait_record[n] && !wait_aux_head[n])) ->
			data_head = n;
			wait_data_head[n] = false;
			waiting--
		:: else
		fi
	   }
	od
}

active proctype drain()
{
	byte n = 1, value;
	bool have;

end:	do
	:: n <= CHUNKS ->
		have = false;
		if
		:: !C -> value = area[n % SLOTS]; have = true
		:: true
		fi;
end_wait:	(aux_head >= n);
		if
		:: !D -> aux_tail = n
		:: true
		fi;
		if
		:: !have -> value = area[n % SLOTS]
		:: else
		fi;
		assert(value == n);
		aux_tail = n;
		n++
	:: else -> break
	od
}

active proctype read_records()
{
	byte n = 1, seen, at;

end:	do
	:: n <= CHUNKS ->
		if
		:: !C2 -> seen = record[n]; at = aux_head;
end_early:		(data_head >= n)
		:: C2 ->
end_late:		(data_head >= n);
			seen = record[n]; at = aux_head
		fi;
		assert(seen == n);
		assert(at >= n);
		n++
	:: else -> break
	od
}
