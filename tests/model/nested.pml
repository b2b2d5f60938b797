/* SPDX-License-Identifier: MIT */
/*
 * nested.pml - writers that interrupt one another, and one publication
 *
 * A writer, a signal handler that writes twice, and a handler that can
 * interrupt both.  Who interrupts runs to its end before the other goes on;
 * all run on one processor, so its own order is what the compiler makes of
 * it.  The steps are those of seam_ring_begin() and leave() in
 * src/ring/producer/producer.c; the switches are what holds them together:
 *
 *	CAS	reserve by compare-and-swap, not by load and store
 *	ENTER	nest is raised before the reservation
 *	OUTER	only the outermost publishes
 *	LEAVE	nest is 0 only after the head was published
 *	AGAIN	look at the head once more after that
 *
 * Published must be what is written, never less than before, and all of it
 * once nobody writes.
 */
#ifndef CAS
#define CAS 1
#endif
#ifndef ENTER
#define ENTER 1
#endif
#ifndef OUTER
#define OUTER 1
#endif
#ifndef LEAVE
#define LEAVE 1
#endif
#ifndef AGAIN
#define AGAIN 1
#endif

#define RECORDS 4
#define ME(step) atomic { running == me -> step }

byte nest, head, data_head;
bool is_written[RECORDS + 1];
byte n_done;

byte running;			/* 0 the writer, 1 and 2 the handlers */

inline publish(h)
{
	assert(h >= data_head);
	assert(h < 1 || is_written[0]);
	assert(h < 2 || is_written[1]);
	assert(h < 3 || is_written[2]);
	assert(h < 4 || is_written[3]);
	data_head = h
}

inline reserve()
{
	do
	:: ME(at = head);
	   if
	   :: CAS ->
		ME(took = (head == at); head = (took -> at + 1 : head));
	   :: else ->
		ME(head = at + 1; took = true)
	   fi;
	   if
	   :: took -> break
	   :: else
	   fi
	od
}

inline raise_nest()
{
	ME(n = nest);
	ME(nest = n + 1)
}

inline leave()
{
	do
	:: ME(n = nest);
	   if
	   :: n > 1 && OUTER ->
		ME(nest = n - 1);
		break
	   :: else ->
		ME(at = head);
		if
		:: LEAVE ->
			ME(publish(at));
			ME(nest = n - 1)
		:: else ->
			ME(nest = n - 1);
			ME(publish(at))
		fi;
		if
		:: AGAIN && n == 1 && head != at -> ME(nest = 1)
		:: else -> break
		fi
	   fi
	od
}

inline write_record()
{
	if
	:: ENTER -> raise_nest(); reserve()
	:: else -> reserve(); raise_nest()
	fi;
	ME(assert(!is_written[at]); is_written[at] = true);
	leave();
	ME(n_done++)
}

active proctype writer()
{
	byte me = 0, n, at;
	bool took;

	write_record()
}

active [2] proctype handler()
{
	byte me = 1, n, at, before;
	bool took;

	atomic { running < me -> before = running; running = me }
	write_record();
	ME(running = before)
}

active proctype inner_handler()
{
	byte me = 2, n, at, before;
	bool took;

	atomic { running < me -> before = running; running = me }
	write_record();
	ME(running = before)
}

active proctype account()
{
	n_done == RECORDS && nest == 0 && running == 0 ->
	assert(head == RECORDS && data_head == RECORDS)
}
