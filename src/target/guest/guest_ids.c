/* SPDX-License-Identifier: MIT */
/* guest_ids.c - see guest_ids.h */
#include "target/guest/guest_ids.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum {
	SLOTS = 4 * SEAM_GUEST_MAX_SYMBOLS,	/* a power of two */
	MAX_STEPS = 64,
	MAX_NAMINGS = 8,	/* attempts to name a nameless function */
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
	struct seam_guest_symbol symbols[SEAM_GUEST_MAX_SYMBOLS + 1];
};

static _Atomic(struct table *) table;

int seam_guest_ids_init(void)
{
	struct table *none = NULL, *pages;

	if (atomic_load(&table))
		return 0;
	pages = mmap(NULL, sizeof(*pages), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pages == MAP_FAILED)
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

uint32_t seam_guest_ids_find(const struct seam_guest_key *key)
{
	struct table *t = atomic_load_explicit(&table, memory_order_acquire);
	uint32_t slot = first_slot(key);

	for (int i = 0; t && i < MAX_STEPS; i++, slot = (slot + 1) % SLOTS) {
		/* acquire: pairs with the exchange of seam_guest_ids_add */
		uint32_t id = atomic_load_explicit(&t->slots[slot],
						   memory_order_acquire);

		if (id == 0)
			return 0;
		if (is_equal(&t->entries[id].key, key))
			return id;
	}
	return 0;
}

bool seam_guest_ids_is_nameless(uint32_t id)
{
	struct entry *entry = &atomic_load(&table)->entries[id];

	return !atomic_load_explicit(&entry->is_named, memory_order_relaxed) &&
	       atomic_load_explicit(&entry->n_namings,
				    memory_order_relaxed) < MAX_NAMINGS;
}

_Static_assert(sizeof(((struct seam_guest_text *)0)->chunk) ==
	       SEAM_GUEST_MAX_CHUNK &&
	       sizeof(((struct seam_guest_text *)0)->name) ==
	       SEAM_GUEST_MAX_NAME, "texts have the sizes of the record's");

static void set_name(struct seam_guest_symbol *symbol,
		     const struct seam_guest_text *text)
{
	symbol->n_name = text->n_name;
	memcpy(symbol->name, text->name, text->n_name);
	if (text->is_name_cut)
		symbol->flags |= SEAM_GUEST_NAME_CUT;
}

static void set_symbol(struct seam_guest_symbol *symbol, uint32_t id,
		       const struct seam_guest_key *key,
		       const struct seam_guest_text *text)
{
	symbol->adapter = key->adapter;
	symbol->id = id;
	symbol->kind = key->kind;
	symbol->address = key->address;
	symbol->start = text->start;
	symbol->line = text->line;
	symbol->last_line = text->last_line;
	symbol->n_chunk = text->n_chunk;
	memcpy(symbol->chunk, text->chunk, text->n_chunk);
	if (text->is_chunk_cut)
		symbol->flags |= SEAM_GUEST_CHUNK_CUT;
	set_name(symbol, text);
}

uint32_t seam_guest_ids_add(const struct seam_guest_key *key,
			    const struct seam_guest_text *text)
{
	struct table *t = atomic_load_explicit(&table, memory_order_acquire);
	uint32_t slot = first_slot(key), id;
	struct entry *entry;

	if (!t || atomic_load(&t->n) >= SEAM_GUEST_MAX_SYMBOLS)
		return 0;
	id = atomic_fetch_add(&t->n, 1) + 1;
	if (id > SEAM_GUEST_MAX_SYMBOLS)
		return 0;
	entry = &t->entries[id];
	entry->key = *key;
	set_symbol(&t->symbols[id], id, key, text);
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

void seam_guest_ids_rename(uint32_t id, const struct seam_guest_text *text)
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
		set_name(&t->symbols[id], text);
		atomic_store(&entry->is_named, true);
		atomic_store(&entry->announced, 0);
	}
	atomic_store(&entry->state, ENTRY_READY);
}

bool seam_guest_ids_take_fresh(uint32_t id)
{
	struct table *t = atomic_load_explicit(&table, memory_order_acquire);
	uint32_t generation = atomic_load_explicit(&t->generation,
						   memory_order_relaxed);
	struct entry *entry = &t->entries[id];

	return atomic_load_explicit(&entry->announced, memory_order_relaxed) !=
	       generation &&
	       atomic_exchange(&entry->announced, generation) != generation;
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
	memcpy(symbol, &t->symbols[id], sizeof(*symbol));
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
