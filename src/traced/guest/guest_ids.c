/* SPDX-License-Identifier: MIT */
/*
 * guest_ids.c - functions that were seen, their ids and names
 *
 * The table is mapped beforehand, and a page of it costs memory when it is
 * first used: about 1.3 KiB a function.
 */
#include <errno.h>
#include <sys/mman.h>

#include "traced/guest/guest_adapter.h"

enum {
	SLOTS = 4 * SEAM_GUEST_MAX_SYMBOLS,	/* a power of two */
	MAX_STEPS = 64,
	MAX_NAMINGS = 8,	/* attempts to name a nameless function */
	BLOCK = 512,		/* symbols that are mapped at once */
	N_BLOCKS = SEAM_GUEST_MAX_SYMBOLS / BLOCK + 1,
};

enum entry_state { ENTRY_FREE, ENTRY_BUSY, ENTRY_READY };

/* What is found often is apart from its texts. */
struct entry {
	struct seam_guest_key key;
	_Atomic uint32_t state;		/* enum entry_state */
	_Atomic uint32_t announced;	/* in which generation; 0: not */
	_Atomic uint8_t n_namings;
	_Atomic bool is_named;
};

struct table {
	_Atomic uint32_t n;		/* entries taken; may exceed the room */
	_Atomic uint32_t generation;	/* of announcements, from 1 on */
	_Atomic uint32_t slots[SLOTS];	/* ids; 0: free */
	struct entry entries[SEAM_GUEST_MAX_SYMBOLS + 1];
	/* 83 MB of texts, if there were so many: as ids need them */
	struct seam_guest_symbol *_Atomic blocks[N_BLOCKS];
};

static _Atomic(struct table *) table;

static void *map_zeroes(size_t size)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

/* The symbols of the block of @id, mapped at first; NULL: no memory. */
static struct seam_guest_symbol *block_of(struct table *t, uint32_t id)
{
	struct seam_guest_symbol *_Atomic *place = &t->blocks[id / BLOCK];
	struct seam_guest_symbol *block = atomic_load(place), *pages;
	const size_t size = BLOCK * sizeof(*block);

	if (block)
		return block;
	pages = map_zeroes(size);
	if (!pages || atomic_compare_exchange_strong(place, &block, pages))
		return pages;
	munmap(pages, size);
	return block;
}

static struct seam_guest_symbol *symbol_of(struct table *t, uint32_t id)
{
	return atomic_load(&t->blocks[id / BLOCK]) + id % BLOCK;
}

int seam_guest_ids_init(void)
{
	struct table *none = NULL, *pages;

	if (atomic_load(&table))
		return 0;
	pages = map_zeroes(sizeof(*pages));
	if (!pages)
		return -ENOMEM;
	atomic_store(&pages->generation, 1);
	if (!atomic_compare_exchange_strong(&table, &none, pages))
		munmap(pages, sizeof(*pages));
	return 0;
}

static bool is_equal(const struct seam_guest_key *a,
		     const struct seam_guest_key *b)
{
	return a->address == b->address && a->check[0] == b->check[0] &&
	       a->check[1] == b->check[1] && a->kind == b->kind &&
	       a->adapter == b->adapter;
}

static uint32_t first_slot(const struct seam_guest_key *key)
{
	uint64_t hash = key->address ^ key->check[0] << 7 ^ key->check[1] ^
			(uint64_t)key->kind << 59;

	return (uint32_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> 40) % SLOTS;
}

static uint32_t find_id(const struct seam_guest_key *key)
{
	struct table *t = atomic_load_explicit(&table, memory_order_acquire);
	uint32_t slot = first_slot(key);

	for (int i = 0; t && i < MAX_STEPS; i++, slot = (slot + 1) % SLOTS) {
		/* acquire: pairs with the exchange of add_id */
		uint32_t id = atomic_load_explicit(&t->slots[slot],
						   memory_order_acquire);

		if (id == 0)
			return 0;
		if (is_equal(&t->entries[id].key, key))
			return id;
	}
	return 0;
}

/* Whether it has no name of its own, and another attempt is worth it. */
static bool is_nameless_id(uint32_t id)
{
	struct entry *entry = &atomic_load(&table)->entries[id];

	return !atomic_load_explicit(&entry->is_named, memory_order_relaxed) &&
	       atomic_load_explicit(&entry->n_namings,
				    memory_order_relaxed) < MAX_NAMINGS;
}

static void set_name(struct seam_guest_symbol *symbol,
		     const struct seam_guest_symbol *text)
{
	symbol->n_name = text->n_name;
	memcpy(symbol->name, text->name, text->n_name);
	symbol->flags |= text->flags & SEAM_GUEST_NAME_CUT;
}

/* Whether there is a slot for @key, and room for the texts of a new id. */
static bool has_room(struct table *t, const struct seam_guest_key *key)
{
	uint32_t slot = first_slot(key), n = atomic_load(&t->n);

	if (n >= SEAM_GUEST_MAX_SYMBOLS || !block_of(t, n + 1))
		return false;
	for (int i = 0; i < MAX_STEPS; i++, slot = (slot + 1) % SLOTS)
		if (!atomic_load_explicit(&t->slots[slot],
					  memory_order_relaxed))
			return true;
	return false;
}

/* A new id; 0 where there is no room for it. */
static uint32_t add_id(const struct seam_guest_key *key,
		       const struct seam_guest_symbol *text)
{
	struct table *t = atomic_load_explicit(&table, memory_order_acquire);
	uint32_t slot = first_slot(key), id;
	struct seam_guest_symbol *symbol;
	struct entry *entry;

	/* an id without a slot would be another one in each sample */
	if (!t || !has_room(t, key))
		return 0;
	id = atomic_fetch_add(&t->n, 1) + 1;
	if (id > SEAM_GUEST_MAX_SYMBOLS || !block_of(t, id))
		return 0;
	entry = &t->entries[id];
	entry->key = *key;
	symbol = symbol_of(t, id);
	memcpy(symbol, text, offsetof(struct seam_guest_symbol, chunk) +
			     text->n_chunk);
	set_name(symbol, text);
	symbol->adapter = key->adapter;
	symbol->id = id;
	symbol->kind = key->kind;
	symbol->address = key->address;
	atomic_store_explicit(&entry->is_named, text->n_name != 0,
			      memory_order_relaxed);
	atomic_store(&entry->state, ENTRY_READY);
	for (int i = 0; i < MAX_STEPS; i++, slot = (slot + 1) % SLOTS) {
		uint32_t none = 0;

		if (atomic_compare_exchange_strong(&t->slots[slot], &none, id))
			break;
	}
	return id;
}

/* Give a nameless function the name in @text, if that has one; once. */
static void rename_id(uint32_t id, const struct seam_guest_symbol *text)
{
	struct table *t = atomic_load(&table);
	struct entry *entry = &t->entries[id];
	uint32_t ready = ENTRY_READY;

	atomic_fetch_add(&entry->n_namings, 1);
	/* one thread writes, once; a reader of that moment tries again */
	if (text->n_name == 0 ||
	    !atomic_compare_exchange_strong(&entry->state, &ready, ENTRY_BUSY))
		return;
	if (!atomic_load(&entry->is_named)) {
		set_name(symbol_of(t, id), text);
		atomic_store(&entry->is_named, true);
		atomic_store(&entry->announced, 0);
	}
	atomic_store(&entry->state, ENTRY_READY);
}

/* An id that is to be announced counts as announced then. */
static uint32_t note_fresh(struct seam_guest_walk *walk, uint32_t id)
{
	struct table *t = atomic_load_explicit(&table, memory_order_acquire);
	struct seam_guest_sample *sample = walk->sample;
	uint32_t generation;

	if (!id || sample->n_fresh == SEAM_ARRAY_SIZE(sample->fresh))
		return id;
	generation = atomic_load_explicit(&t->generation,
					  memory_order_relaxed);
	if (atomic_load_explicit(&t->entries[id].announced,
				 memory_order_relaxed) != generation &&
	    atomic_exchange(&t->entries[id].announced, generation) !=
		    generation)
		sample->fresh[sample->n_fresh++] = id;
	return id;
}

uint32_t seam_guest_find(struct seam_guest_walk *walk,
			 const struct seam_guest_key *key, bool *is_nameless)
{
	uint32_t id = find_id(key);

	*is_nameless = id && is_nameless_id(id);
	return note_fresh(walk, id);
}

uint32_t seam_guest_name(struct seam_guest_walk *walk,
			 const struct seam_guest_key *key, uint32_t id,
			 const struct seam_guest_symbol *text)
{
	if (id)
		rename_id(id, text);
	else
		id = add_id(key, text);
	return note_fresh(walk, id);
}

int seam_guest_describe(uint32_t id, struct seam_guest_symbol *symbol)
{
	struct table *t = atomic_load(&table);
	struct entry *entry;
	bool was_named;

	if (!t || id == 0 || id > seam_guest_n_symbols())
		return -ENOENT;
	entry = &t->entries[id];
	was_named = atomic_load(&entry->is_named);
	if (atomic_load(&entry->state) != ENTRY_READY)
		return -EAGAIN;
	memcpy(symbol, symbol_of(t, id), sizeof(*symbol));
	atomic_thread_fence(memory_order_acquire);
	/* the name may have been written meanwhile, wholly or in part */
	return atomic_load(&entry->state) == ENTRY_READY &&
	       atomic_load(&entry->is_named) == was_named ? 0 : -EAGAIN;
}

uint32_t seam_guest_n_symbols(void)
{
	struct table *t = atomic_load(&table);
	uint32_t n = t ? atomic_load(&t->n) : 0;

	return n < SEAM_GUEST_MAX_SYMBOLS ? n : SEAM_GUEST_MAX_SYMBOLS;
}

void seam_guest_announce_again(uint32_t id)
{
	struct table *t = atomic_load(&table);

	if (t && id && id <= SEAM_GUEST_MAX_SYMBOLS)
		atomic_store(&t->entries[id].announced, 0);
}

void seam_guest_announce_all_again(void)
{
	struct table *t = atomic_load(&table);

	if (t)
		atomic_fetch_add(&t->generation, 1);
}
