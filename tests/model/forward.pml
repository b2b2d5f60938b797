/* SPDX-License-Identifier: MIT */
/*
 * forward.pml - one producer, one consumer, a ring that may be full
 *
 * Spin explores interleavings of single steps, so reordering is made
 * explicit: the producer's stores wait in a buffer that drains in any order,
 * and loads may be done early.  Each barrier of src/ring/producer/producer.c is a
 * switch that forbids one of these; with any one off an assertion fails.
 *
 *	A	producer: tail load before data stores
 *	B	producer: data stores before the head store
 *	C	consumer: head load before data loads
 *	D	consumer: data loads before the tail store
 *
 * Where there is no room the record is lost and counted.  The producer may
 * be killed between any two steps; stores that it has issued still land.
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

#define SLOTS 2
#define RECORDS 5

byte data[SLOTS];		/* what every processor can see */
byte head, tail;		/* counts of records, they never wrap here */
byte wait_data[RECORDS + 1];	/* value issued but not yet visible, or 0 */
bool wait_head[RECORDS + 1];
byte value_at[RECORDS + 1];	/* what the consumer must find where */
byte waiting;			/* stores not yet visible */
byte lost, delivered;
bool done;

active proctype producer()
{
	byte n = 1, at, seen;
	bool early;

	do
	:: n <= RECORDS ->
		early = false;
		if
		:: !A -> wait_data[at] = n; waiting++; early = true
		:: true
		fi;
		seen = tail;
		if
		:: at - seen < SLOTS ->
			value_at[at] = n;
			if
			:: !early -> wait_data[at] = n; waiting++
			:: else
			fi;
			wait_head[at] = true;
			waiting++;
			at++
		:: else -> lost++
		fi;
		n++
	:: n > RECORDS -> done = true; break
	:: break				/* killed */
	od
}

active proctype store_buffer()
{
	byte i;

end:	do
	:: atomic { waiting > 0 ->
		select (i : 0 .. RECORDS - 1);
		if
		:: wait_data[i] &&
		   (i < SLOTS || !wait_data[i - SLOTS]) ->
			data[i % SLOTS] = wait_data[i];
			wait_data[i] = 0;
			waiting--
		:: wait_head[i] && head == i && (!B || !wait_data[i]) ->
			head = i + 1;
			wait_head[i] = false;
			waiting--
		:: else
		fi
	   }
	od
}

active proctype consumer()
{
	byte at, value;
	bool have;

end:	do
	:: at < RECORDS ->
		have = false;
		if
		:: !C -> value = data[at % SLOTS]; have = true
		:: true
		fi;
end_wait:	(head > at);			/* a record, or wait */
		if
		:: !D -> tail = at + 1
		:: true
		fi;
		if
		:: !have -> value = data[at % SLOTS]
		:: else
		fi;
		assert(value == value_at[at]);
		delivered++;
		tail = at + 1;
		at++
	:: else -> break
	od
}

/* When nothing can happen any more, every record is accounted for. */
active proctype account()
{
	timeout;
	assert(!done || delivered + lost == RECORDS)
}
