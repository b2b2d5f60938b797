/* SPDX-License-Identifier: MIT */
/*
 * rewind.pml - copies of an AUX buffer whose writer takes bytes back
 *
 * The writer appends words, or takes its newest words back and then writes
 * others in their place.  Each word is a number of its own, and remembers the
 * word before it; so a copy is of one moment if each of its words remembers the
 * one that is copied before it.  The reader copies what is before the head, and
 * uses the copy if the head's count is the same afterwards.
 *
 *	B	writer: the word's store before the head's
 *	C	reader: the head's load before those of words
 *	F	reader: loads of words before the head's second load
 *	R	writer: a head that steps back is stored before later words
 *	COUNT	writer: such a head has a count that is one higher
 *
 * As in forward.pml stores drain in any order that is allowed, and loads may be
 * early.  aux_held is no part of it: it only bounds the number of tries.
 */
#ifndef B
#define B 1
#endif
#ifndef C
#define C 1
#endif
#ifndef F
#define F 1
#endif
#ifndef R
#define R 1
#endif
#ifndef COUNT
#define COUNT 1
#endif

#define SLOTS 3
#define WORDS 6		/* numbers of words, from 1 */
#define STORES 4	/* that wait at most */

byte number[SLOTS], before[SLOTS];
byte head, count;

/* Stores that wait, in order: of a word at a position, or of the head. */
byte n_stores;
bool is_head[STORES], is_back[STORES];
byte where[STORES], what[STORES], pred[STORES];

#define PUSH(h, back, at, value, prior)					\
	is_head[n_stores] = h; is_back[n_stores] = back;		\
	where[n_stores] = at; what[n_stores] = value;			\
	pred[n_stores] = prior; n_stores++

active proctype writer()
{
	byte pos = 0, n = 1, counted = 0;
	byte stack[SLOTS];

	do
	:: n <= WORDS && pos < SLOTS && n_stores + 2 <= STORES ->
		atomic {
			PUSH(false, false, pos, n,
			     (pos > 0 -> stack[(pos + SLOTS - 1) % SLOTS] : 0));
			stack[pos] = n;
			pos++;
			PUSH(true, false, pos, counted, 0);
			n++
		}
	:: pos > 0 && n <= WORDS && counted < 2 && n_stores < STORES ->
		atomic {
			if
			:: pos = pos - 1
			:: pos > 1 -> pos = pos - 2
			fi;
			counted = counted + 1;
			PUSH(true, true, pos, (COUNT -> counted : 0), 0)
		}
	:: n > WORDS -> break
	:: break				/* done, or killed */
	od
}

/* Whether store @i may become visible before all that were made earlier. */
inline may_drain(i)
{
	byte k = 0;

	may = true;
	do
	:: k < i ->
		if
		:: is_head[i] && is_head[k] -> may = false
		:: is_head[i] && !is_head[k] && B -> may = false
		:: !is_head[i] && is_head[k] && is_back[k] && R -> may = false
		:: !is_head[i] && !is_head[k] && where[i] == where[k] ->
			may = false
		:: else
		fi;
		k++
	:: else -> break
	od;
	k = 0
}

active proctype store_buffer()
{
	byte n, j;
	bool may;

end:	do
	:: atomic { n_stores > 0 ->
		select (n : 0 .. STORES - 1);
		may = false;
		if
		:: n < n_stores -> may_drain(n)
		:: else
		fi;
		if
		:: may ->
			if
			:: is_head[n] ->
				head = where[n];
				count = what[n]
			:: else ->
				number[where[n]] = what[n];
				before[where[n]] = pred[n]
			fi;
			j = n;
			do
			:: j + 1 < n_stores ->
				is_head[j] = is_head[j + 1];
				is_back[j] = is_back[j + 1];
				where[j] = where[j + 1];
				what[j] = what[j + 1];
				pred[j] = pred[j + 1];
				j++
			:: else -> break
			od;
			n_stores--;
			is_head[n_stores] = false; is_back[n_stores] = false;
			where[n_stores] = 0; what[n_stores] = 0;
			pred[n_stores] = 0;
			j = 0
		:: else
		fi;
		n = 0; may = false
	   }
	od
}

active proctype reader()
{
	byte last, counted, i, last_number;
	byte copy[SLOTS], its[SLOTS];
	bool is_same;

	/* loads of words that come before that of the head */
	do
	:: !C && i < SLOTS ->
		atomic { copy[i] = number[i]; its[i] = before[i]; i++ }
	:: else -> break
	od;
	i = 0;
	atomic { last = head; counted = count };
	if
	:: !F -> is_same = count == counted
	:: else
	fi;
	do
	:: C && i < last ->
		atomic { copy[i] = number[i]; its[i] = before[i]; i++ }
	:: else -> break
	od;
	if
	:: F -> is_same = count == counted
	:: else
	fi;
	i = 0;
	do
	:: is_same && i < last ->
		assert(copy[i] > 0 && its[i] == last_number);
		last_number = copy[i];
		i++
	:: else -> break
	od
}
