/* SPDX-License-Identifier: MIT */
/* live_jit.c - parts of the address space, newest code first; live_jit.h */
#include "record/stacks/live_jit.h"

#include "base/hash.h"
#include "wire/jit/jitdump.h"

#include <stdlib.h>

/* ---- processes ---- */

static void clear(struct seam_live_jit *jit, struct seam_live_jit_process *p)
{
	jit->n_links -= p->links.n;
	jit->n_frame_bytes -= p->frame_bytes;
	free(p->pieces.items);
	free(p->parts.items);
	free(p->links.items);
	seam_index_fini(&p->index);
	seam_unwind_code_rows_fini(&p->rows);
	p->pieces.items = NULL;
	p->parts.items = NULL;
	p->links.items = NULL;
	p->pieces.n = p->pieces.cap = p->parts.n = p->parts.cap = 0;
	p->links.n = p->links.cap = p->frame_bytes = 0;
}

/* The place of the pointer to the process; it is NULL if it is not known. */
static struct seam_live_jit_process *const *
place_of(const struct seam_live_jit *jit, int32_t pid)
{
	struct seam_live_jit_process *const *at =
		&jit->by_pid[(uint32_t)pid % SEAM_LIVE_JIT_MAX_PROCESSES];

	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	return at;
}

struct seam_live_jit_process *seam_live_jit_process(struct seam_live_jit *jit,
						    int32_t pid)
{
	struct seam_live_jit_process *p = *place_of(jit, pid);

	if (p)
		p->used = ++jit->n_used;
	return p;
}

/* Forget the process that was not used for the longest time.  Its place. */
static size_t forget_oldest(struct seam_live_jit *jit)
{
	struct seam_live_jit_process *p, **at;
	size_t found = 0;

	for (size_t i = 1; i < jit->n; i++)
		if (jit->items[i]->used < jit->items[found]->used)
			found = i;
	p = jit->items[found];
	at = &jit->by_pid[(uint32_t)p->pid % SEAM_LIVE_JIT_MAX_PROCESSES];
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	clear(jit, p);
	free(p);
	jit->n_forgotten++;
	return found;
}

/* The process, a new one if it is not known; NULL: out of memory. */
static struct seam_live_jit_process *make(struct seam_live_jit *jit,
					  int32_t pid)
{
	struct seam_live_jit_process *p = seam_live_jit_process(jit, pid);
	struct seam_live_jit_process **at;
	size_t i;

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	p->n_steps_left = SEAM_LIVE_JIT_MAX_STEPS;
	p->serial = ++jit->n_serials;
	p->used = ++jit->n_used;
	i = jit->n < SEAM_LIVE_JIT_MAX_PROCESSES ? jit->n++ :
						   forget_oldest(jit);
	at = &jit->by_pid[(uint32_t)pid % SEAM_LIVE_JIT_MAX_PROCESSES];
	p->next = *at;
	*at = p;
	return jit->items[i] = p;
}

/* Its code is older: but what is newer may have been announced already. */
static void begin_life(struct seam_live_jit_process *p, uint64_t time_ns,
		       const struct seam_live_jit_process *parent)
{
	if (p->n_lives == SEAM_LIVE_JIT_MAX_LIVES)
		memmove(p->lives, p->lives + 1,
			--p->n_lives * sizeof(p->lives[0]));
	p->lives[p->n_lives++] = (struct seam_live_jit_life) {
		.from_ns = time_ns,
		.parent = parent ? parent->pid : 0,
		.parent_serial = parent ? parent->serial : 0,
	};
}

void seam_live_jit_fork(struct seam_live_jit *jit, int32_t pid, int32_t parent,
			uint64_t time_ns)
{
	struct seam_live_jit_process *from =
		seam_live_jit_process(jit, parent);
	struct seam_live_jit_process *p =
		from ? make(jit, pid) : seam_live_jit_process(jit, pid);

	if (p)
		begin_life(p, time_ns, from);
}

void seam_live_jit_exec(struct seam_live_jit *jit, int32_t pid,
			uint64_t time_ns)
{
	struct seam_live_jit_process *p = seam_live_jit_process(jit, pid);

	if (p)
		begin_life(p, time_ns, NULL);
}

/* The life of @p at @time_ns, of which a forgotten one had no code. */
static struct seam_live_jit_life life_at(const struct seam_live_jit_process *p,
					 uint64_t time_ns)
{
	for (uint32_t i = p->n_lives; i-- > 0;)
		if (p->lives[i].from_ns <= time_ns)
			return p->lives[i];
	return (struct seam_live_jit_life) {
		.from_ns = p->n_lives < SEAM_LIVE_JIT_MAX_LIVES ? 0 :
			   UINT64_MAX,
	};
}

/* ---- code ---- */

static uint32_t part_of(const struct seam_live_jit_process *p, uint64_t number)
{
	return SEAM_INDEX_FIND(&p->index, seam_hash_u64(number), i,
			       p->parts.items[i].number == number);
}

/* From now on @piece is the newest of the part; false: out of memory. */
static bool link_part(struct seam_live_jit *jit,
		      struct seam_live_jit_process *p, uint64_t number,
		      uint32_t piece)
{
	const struct seam_live_jit_piece *new = &p->pieces.items[piece];
	uint32_t id = SEAM_INDEX_INTERN(&p->index, seam_hash_u64(number),
		&p->parts, i, p->parts.items[i].number == number,
		(struct seam_live_jit_part) { number, SEAM_NONE });
	uint32_t *at, n = 0;

	if (id == SEAM_NONE ||
	    !SEAM_ARRAY_ADD(&p->links, (struct seam_live_jit_link) {
			piece, p->parts.items[id].newest }))
		return false;
	jit->n_links++;
	p->parts.items[id].newest = (uint32_t)p->links.n - 1;
	for (at = &p->links.items[p->links.n - 1].older; *at != SEAM_NONE;
	     at = &p->links.items[*at].older) {
		struct seam_live_jit_piece *old =
			&p->pieces.items[p->links.items[*at].piece];

		if (old->to_ns > new->from_ns && old->begin >= new->begin &&
		    old->begin < new->end)
			old->to_ns = new->from_ns;
		if (++n == SEAM_LIVE_JIT_MAX_OF_PART) {
			*at = SEAM_NONE;
			break;
		}
	}
	p->n_steps_left -= n + 1;
	jit->n_steps += n + 1;
	return true;
}

static void add_piece(struct seam_live_jit *jit,
		      struct seam_live_jit_process *p,
		      const struct seam_live_jit_piece *piece)
{
	uint64_t first = piece->begin >> SEAM_LIVE_JIT_PART_BITS;
	uint64_t end = piece->end - piece->begin > SEAM_LIVE_JIT_MAX_PIECE ?
		       piece->begin + SEAM_LIVE_JIT_MAX_PIECE : piece->end;
	uint64_t last = (end - 1) >> SEAM_LIVE_JIT_PART_BITS;

	if (!SEAM_ARRAY_ADD(&p->pieces, *piece))
		return;
	for (uint64_t i = first; i <= last; i++) {
		if (p->n_steps_left < 0) {
			clear(jit, p);
			jit->n_forgotten++;
			return;
		}
		if (!link_part(jit, p, i, (uint32_t)p->pieces.n - 1))
			return;
	}
}

/* Its part of both limits, of which one link is as much as 256 bytes. */
static size_t share_of(const struct seam_live_jit_process *p)
{
	return p->links.n * (SEAM_LIVE_JIT_MAX_ALL_FRAMES /
			     SEAM_LIVE_JIT_MAX_LINKS) + p->frame_bytes;
}

/*
 * Make room for code of @size and @frame_bytes, at most MAX_FRAMES: @p or the
 * processes that have the most, which may be @p too, begin anew.
 */
static void make_room(struct seam_live_jit *jit,
		      struct seam_live_jit_process *p, uint64_t size,
		      size_t frame_bytes)
{
	uint64_t found = size < SEAM_LIVE_JIT_MAX_PIECE ?
			 size : SEAM_LIVE_JIT_MAX_PIECE;
	uint64_t n = (found >> SEAM_LIVE_JIT_PART_BITS) + 2;

	if (p->frame_bytes + frame_bytes > SEAM_LIVE_JIT_MAX_FRAMES) {
		clear(jit, p);
		jit->n_forgotten++;
	}
	while (jit->n_links + n > SEAM_LIVE_JIT_MAX_LINKS ||
	       jit->n_frame_bytes + frame_bytes >
		       SEAM_LIVE_JIT_MAX_ALL_FRAMES) {
		struct seam_live_jit_process *largest = jit->items[0];

		for (size_t i = 1; i < jit->n; i++)
			if (share_of(jit->items[i]) > share_of(largest))
				largest = jit->items[i];
		clear(jit, largest);
		jit->n_forgotten++;
	}
}

static void load(struct seam_live_jit *jit, struct seam_live_jit_process *p,
		 const struct seam_jitdump_load *load, struct seam_bytes frame,
		 size_t frame_pos)
{
	uint64_t addr = load->code_addr ? load->code_addr : load->vma;
	struct seam_live_jit_piece piece = {
		.begin = addr, .end = addr + load->code_size,
		.from_ns = load->timestamp, .to_ns = UINT64_MAX,
		.rows = SEAM_NONE,
	};
	const struct seam_eh_frame eh = {
		.entries = frame, .address_bytes = 8, .endian = SEAM_NATIVE,
		.entries_addr = addr + seam_jitdump_aligned(load->code_size) +
				frame_pos,
	};

	size_t frame_bytes = frame.size <= SEAM_LIVE_JIT_MAX_FRAMES ?
			     frame.size : 0;

	if (piece.end <= piece.begin)
		return;
	make_room(jit, p, load->code_size, frame_bytes);
	if (frame_bytes) {
		int64_t rows = seam_unwind_code_rows_add(&p->rows, &eh, addr,
							 load->code_size);

		p->frame_bytes += frame_bytes;
		jit->n_frame_bytes += frame_bytes;
		piece.rows = rows < 0 ? SEAM_NONE : (uint32_t)rows;
	}
	add_piece(jit, p, &piece);
}

/* The newest piece that begins at @addr; SEAM_NONE: none. */
static uint32_t piece_at(const struct seam_live_jit_process *p, uint64_t addr)
{
	uint32_t part = part_of(p, addr >> SEAM_LIVE_JIT_PART_BITS);
	uint32_t i = part == SEAM_NONE ? SEAM_NONE :
		     p->parts.items[part].newest;

	while (i != SEAM_NONE &&
	       p->pieces.items[p->links.items[i].piece].begin != addr)
		i = p->links.items[i].older;
	return i == SEAM_NONE ? i : p->links.items[i].piece;
}

static void move(struct seam_live_jit *jit, struct seam_live_jit_process *p,
		 const struct seam_jitdump_move *move)
{
	uint32_t old = piece_at(p, move->old_code_addr);
	struct seam_live_jit_piece piece;

	if (old == SEAM_NONE)
		return;
	piece = p->pieces.items[old];
	piece.end = move->new_code_addr + (piece.end - piece.begin);
	piece.begin = move->new_code_addr;
	piece.from_ns = move->timestamp;
	piece.to_ns = UINT64_MAX;
	if (piece.end <= piece.begin)
		return;
	make_room(jit, p, piece.end - piece.begin, 0);
	if (old >= p->pieces.n)
		return;			/* @p began anew */
	if (p->pieces.items[old].to_ns > move->timestamp)
		p->pieces.items[old].to_ns = move->timestamp;
	add_piece(jit, p, &piece);
}

void seam_live_jit_add(struct seam_live_jit *jit, int32_t pid,
		       struct seam_bytes records)
{
	struct seam_live_jit_process *p = make(jit, pid);
	struct seam_jitdump_reader reader = {
		.cursor = seam_cursor_over(records, SEAM_NATIVE),
		.endian = SEAM_NATIVE,
	};
	struct seam_jitdump_record record;
	struct seam_bytes frame = { NULL, 0 };
	size_t frame_pos = 0;

	if (!p)
		return;
	/*
	 * A move of few bytes can have thousands of parts: what it costs is
	 * bounded by what the process has announced.
	 */
	if (p->n_steps_left > SEAM_LIVE_JIT_MAX_STEPS)
		p->n_steps_left = SEAM_LIVE_JIT_MAX_STEPS;
	p->n_steps_left += (int64_t)records.size * SEAM_LIVE_JIT_STEPS_OF_BYTE;
	while (seam_jitdump_next(&reader, &record)) {
		if (record.id == SEAM_JITDUMP_UNWINDING_INFO)
			frame = seam_jitdump_eh_frame(&record.unwinding_info,
						      &frame_pos);
		else if (record.id == SEAM_JITDUMP_MOVE)
			move(jit, p, &record.move);
		if (record.id != SEAM_JITDUMP_LOAD)
			continue;
		load(jit, p, &record.load, frame, frame_pos);
		frame = (struct seam_bytes) { NULL, 0 };
	}
}

/* ---- look-up ---- */

/* The code of @p itself that was placed last over @addr. */
static const struct seam_live_jit_piece *
find_own(const struct seam_live_jit_process *p, uint64_t addr, uint64_t time_ns)
{
	uint64_t least = life_at(p, time_ns).from_ns;
	uint32_t part = part_of(p, addr >> SEAM_LIVE_JIT_PART_BITS);
	uint32_t i = part == SEAM_NONE ? SEAM_NONE :
		     p->parts.items[part].newest;

	for (; i != SEAM_NONE; i = p->links.items[i].older) {
		const struct seam_live_jit_piece *piece =
			&p->pieces.items[p->links.items[i].piece];

		if (piece->from_ns <= time_ns && piece->from_ns >= least &&
		    addr >= piece->begin && addr < piece->end)
			return piece;
	}
	return NULL;
}

/* The code at @addr, of the process or of those that it was forked from. */
static const struct seam_live_jit_piece *
find_piece(const struct seam_live_jit *jit,
	   const struct seam_live_jit_process **p, uint64_t addr,
	   uint64_t *time_ns, int n_forks)
{
	const struct seam_live_jit_process *own = *p;
	const struct seam_live_jit_piece *piece = find_own(own, addr, *time_ns);
	uint64_t own_ns = *time_ns;
	struct seam_live_jit_life life = life_at(own, own_ns);

	if (piece || !life.parent_serial || n_forks == SEAM_LIVE_JIT_MAX_FORKS)
		return piece;
	*time_ns = life.from_ns;
	*p = *place_of(jit, life.parent);
	/* it may have been forgotten, and its pid is another's */
	if (*p && (*p)->serial != life.parent_serial)
		*p = NULL;
	piece = *p ? find_piece(jit, p, addr, time_ns, n_forks + 1) : NULL;
	/* since the fork its first byte may have been covered */
	return piece && !find_own(own, piece->begin, own_ns) ? piece : NULL;
}

bool seam_live_jit_find(const struct seam_live_jit *jit,
			const struct seam_live_jit_process *process,
			uint64_t addr, uint64_t time_ns,
			struct seam_unwind_code *code)
{
	const struct seam_live_jit_process *p = process;
	const struct seam_live_jit_piece *piece =
		find_piece(jit, &p, addr, &time_ns, 0);

	if (!piece || time_ns >= piece->to_ns)
		return false;
	*code = (struct seam_unwind_code) { .rules = NULL };
	if (piece->rows == SEAM_NONE)
		return true;
	code->rules = &p->rows.rules;
	code->id = seam_unwind_code_rows_find(&p->rows, piece->rows,
					      addr - piece->begin);
	return true;
}

void seam_live_jit_fini(struct seam_live_jit *jit)
{
	for (size_t i = 0; i < jit->n; i++) {
		clear(jit, jit->items[i]);
		free(jit->items[i]);
	}
	jit->n = 0;
	memset(jit->by_pid, 0, sizeof(jit->by_pid));
}
