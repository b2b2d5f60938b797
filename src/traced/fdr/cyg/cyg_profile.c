/* SPDX-License-Identifier: MIT */
/*
 * cyg_profile.c - a function's address to its id, and a record of its call
 *
 * Functions are numbered in an array, in the order of their first calls.  A
 * hash table has numbers, + 1: a slot is set once, from 0, by compare and swap,
 * after the function's place in the array is complete.  A thread that comes
 * second with the same function uses the number in the slot, not its own.
 * Nothing is ever removed: after dlclose() an address may be that of another
 * function, which then has the same id.
 *
 * Neighbours in the program are neighbours in the table, so it takes memory as
 * the program's functions do.
 */
#include "traced/fdr/cyg/cyg_profile.h"

#include <stdatomic.h>
#include <stddef.h>

#include "traced/fdr/check/checked.h"
#include "traced/fdr/record/fdr_record.h"
#include "traced/fdr/record/fdr_thread.h"
#include "traced/fdr/record/system.h"
#include "traced/fdr/sleds/ids.h"
#include "wire/xray/xray_chunk.h"

enum {
	N_SLOTS = 2 * SEAM_FDR_CYG_FUNCTIONS,
	MAX_PROBES = 1024,
	/* of a function's beginning; -falign-functions is 16 by default */
	ADDRESS_SHIFT = 4,
	FAR_SHIFT = 25,
};

struct cyg_function {
	_Atomic uint64_t address;	/* 0: not used */
	uint32_t id;
	_Atomic bool is_announced, is_wanted;
};

/* 24 MiB of addresses, for programs that have such functions. */
struct cyg_tables {
	struct cyg_function functions[SEAM_FDR_CYG_FUNCTIONS];
	_Atomic uint32_t slots[N_SLOTS];
};

static void *_Atomic tables;	/* struct cyg_tables */
static _Atomic uint32_t n_functions;
static _Atomic bool is_on, is_selective;
static _Atomic(int (*)(uint32_t i, bool is_first_call)) announce;

/* ---- address to id ---- */

/* The tables, made by the first call; NULL: there was no memory. */
static struct cyg_tables *get_tables(void)
{
	static _Atomic bool is_refused;
	struct cyg_tables *found;

	if (is_refused)
		return NULL;
	found = seam_fdr_map_once(&tables, sizeof(*found), seam_fdr_map);
	is_refused = !found;
	return found;
}

/* Function @i, which has been counted: the tables are there. */
static struct cyg_function *function_at(uint32_t i)
{
	/* relaxed: set by this thread, or by the thread that made the number */
	struct cyg_tables *t = atomic_load_explicit(&tables,
						    memory_order_relaxed);

	return &t->functions[i];
}

/* A new number; its function has no slot yet.  0: too many functions. */
static uint32_t new_number(uint64_t address)
{
	/*
	 * relaxed, also below: the slot's compare and swap publishes the number
	 */
	uint32_t n = atomic_fetch_add_explicit(&n_functions, 1,
					       memory_order_relaxed);

	if (n >= SEAM_FDR_CYG_FUNCTIONS) {
		atomic_store_explicit(&n_functions, SEAM_FDR_CYG_FUNCTIONS,
				      memory_order_relaxed);
		return 0;
	}
	function_at(n)->id = seam_fdr_new_ids(1);
	atomic_store_explicit(&function_at(n)->address, address,
			      memory_order_relaxed);
	return function_at(n)->id ? n + 1 : 0;
}

static uint32_t first_slot(uint64_t address)
{
	/* images are far from each other: each begins somewhere else */
	uint64_t far = (address >> FAR_SHIFT) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)((address >> ADDRESS_SHIFT) + (far >> 32)) &
	       (N_SLOTS - 1);
}

static bool is_function(uint32_t number, uint64_t address)
{
	return atomic_load_explicit(&function_at(number - 1)->address,
				    memory_order_relaxed) == address;
}

/* Without a recorder so far, function @i is announced the next time. */
static int announce_one(uint32_t i, bool is_first_call)
{
	int (*f)(uint32_t, bool) = atomic_load(&announce);
	int r = f ? f(i, is_first_call) : 0;

	if (f && r == 0)
		atomic_store_explicit(&function_at(i)->is_announced, true,
				      memory_order_relaxed);
	return r;
}

static bool is_wanted(uint32_t number)
{
	return atomic_load_explicit(&function_at(number - 1)->is_wanted,
				    memory_order_relaxed);
}

/* Set the empty @slot.  The number in the slot; 0: no number is left. */
static uint32_t fill(_Atomic uint32_t *slot, uint64_t address)
{
	uint32_t number = new_number(address), was = 0;

	if (!number)
		return 0;
	/* release and acquire: the number's function is whole */
	if (atomic_compare_exchange_strong_explicit(slot, &was, number,
			memory_order_acq_rel, memory_order_acquire)) {
		announce_one(number - 1, true);
		return number;
	}
	atomic_store_explicit(&function_at(number - 1)->address, 0,
			      memory_order_relaxed);
	return was;
}

/*
 * The number of the function, a new number if the function @may_be_new.  0: it
 * has no number, or all numbers are used.
 */
static uint32_t number_of(uint64_t address, bool may_be_new)
{
	uint32_t at = first_slot(address);
	struct cyg_tables *t = get_tables();

	for (int i = 0; t && i < MAX_PROBES; i++) {
		_Atomic uint32_t *slot = &t->slots[(at + (uint32_t)i) &
						   (N_SLOTS - 1)];
		/* acquire: pairs with the release in fill() */
		uint32_t number = atomic_load_explicit(slot,
						       memory_order_acquire);

		if (!number && may_be_new)
			number = fill(slot, address);
		if (!number)
			return 0;
		if (is_function(number, address))
			return number;
	}
	return 0;
}

/* ---- records ---- */

/* In the function that the program calls, for the frame's address. */
static inline __attribute__((always_inline))
void call(const void *function, enum seam_xray_kind action)
{
	bool selective;
	uint32_t number, word;

	/* acquire: the source; pairs with the release in seam_fdr_cyg_set() */
	if (!atomic_load_explicit(&is_on, memory_order_acquire))
		return;
	selective = atomic_load_explicit(&is_selective, memory_order_relaxed);
	number = number_of((uint64_t)(uintptr_t)function, !selective);
	if (selective && (!number || !is_wanted(number)))
		return;
	if (!number) {
		/* relaxed: a count */
		atomic_fetch_add_explicit(seam_fdr_n_lost, 1,
					  memory_order_relaxed);
		return;
	}
	word = seam_xray_word(function_at(number - 1)->id, action);
	if (seam_fdr_is_checked(function_at(number - 1)->id))
		seam_fdr_check_compiled(word,
					(uint64_t)__builtin_dwarf_cfa());
	else
		seam_fdr_record_plain(word);
}

/* Source: GCC manual, "Instrumentation Options", -finstrument-functions */
__attribute__((visibility("default")))
void __cyg_profile_func_enter(void *function, void *call_site);
__attribute__((visibility("default")))
void __cyg_profile_func_exit(void *function, void *call_site);

void __cyg_profile_func_enter(void *function, void *call_site)
{
	(void)call_site;
	call(function, SEAM_XRAY_ENTRY);
}

void __cyg_profile_func_exit(void *function, void *call_site)
{
	(void)call_site;
	call(function, SEAM_XRAY_EXIT);
}

/* ---- begin ---- */

void seam_fdr_cyg_set(bool on)
{
	/* release: the source; pairs with the acquire in call() */
	atomic_store_explicit(&is_on, on, memory_order_release);
}

static uint32_t count(void)
{
	uint32_t n = atomic_load(&n_functions);

	return n < SEAM_FDR_CYG_FUNCTIONS ? n : SEAM_FDR_CYG_FUNCTIONS;
}

void seam_fdr_cyg_want_none(bool selective)
{
	for (uint32_t i = 0, n = count(); i < n; i++)
		atomic_store(&function_at(i)->is_wanted, false);
	atomic_store(&is_selective, selective);
}

uint32_t seam_fdr_cyg_want(uint64_t address)
{
	uint32_t number = number_of(address, true);

	if (!number)
		return 0;
	atomic_store(&function_at(number - 1)->is_wanted, true);
	return function_at(number - 1)->id;
}

int seam_fdr_cyg_set_announce(int (*f)(uint32_t i, bool is_first_call))
{
	int r = 0;

	atomic_store(&announce, f);
	for (uint32_t i = 0, n = count(); i < n && r == 0; i++)
		if (!atomic_load(&function_at(i)->is_announced))
			r = announce_one(i, false);
	return r;
}

void seam_fdr_cyg_announce_again(void)
{
	for (uint32_t i = 0, n = count(); i < n; i++)
		atomic_store(&function_at(i)->is_announced, false);
}

bool seam_fdr_cyg_has_functions(void)
{
	return count();
}

bool seam_fdr_cyg_function(uint32_t i, uint64_t *address, uint32_t *id)
{
	*address = atomic_load(&function_at(i)->address);
	*id = function_at(i)->id;
	return *address != 0 && *id != 0;
}
