/* SPDX-License-Identifier: MIT */
/* function_ranges.c - .eh_frame and .gopclntab; see function_ranges.h */
#include "symbol/elf/function_ranges.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/eh_frame.h"

static int add(struct seam_function_ranges *ranges,
	       struct seam_function_range range)
{
	if (ranges->items.n >= SEAM_NONE - 1 ||
	    !SEAM_ARRAY_ADD(&ranges->items, range))
		return -ENOMEM;
	return seam_intervals_add(&ranges->intervals, range.start, range.end,
				  (uint32_t)(ranges->items.n - 1));
}

/* -- .eh_frame ---------------------------------------------------------- */

/*
 * The bytes from @addr on, as far as the segment goes that holds it: of a file
 * whose section headers were stripped too.  Borrowed; none: NULL.
 */
static struct seam_bytes segment_from(const struct seam_elf *file,
				      uint64_t addr)
{
	const struct seam_segment *s = seam_segment_at(&file->segments, addr);
	Elf_Data *data = s ? elf_getdata_rawchunk(file->elf,
		(int64_t)(s->offset + (addr - s->addr)),
		(size_t)(s->size - (addr - s->addr)), ELF_T_BYTE) : NULL;

	return data && data->d_buf ?
	       (struct seam_bytes) { data->d_buf, data->d_size } :
	       (struct seam_bytes) { 0 };
}

static int add_fdes(struct seam_function_ranges *ranges,
		    const struct seam_eh_frame *frame)
{
	struct seam_eh_fde fde = { 0 };
	size_t offset = 0, next;
	int r = 0, is_fde;

	for (; !r && (is_fde = seam_eh_frame_entry(frame, offset, &fde,
						   &next)) >= 0; offset = next)
		/* Functions that the linker dropped are at 0. */
		if (is_fde && fde.start != 0)
			r = add(ranges, (struct seam_function_range) {
				.start = fde.start, .end = fde.end,
				.go = SEAM_NONE,
				.is_signal_frame = fde.cie.is_signal_frame,
			});
	return r;
}

static bool find_header(const struct seam_elf *file, GElf_Phdr *header)
{
	size_t n = 0;

	if (elf_getphdrnum(file->elf, &n))
		return false;
	for (size_t i = 0; i < n && i <= INT32_MAX; i++)
		if (gelf_getphdr(file->elf, (int)i, header) &&
		    header->p_type == PT_GNU_EH_FRAME)
			return true;
	return false;
}

/* By the header that programs themselves use. */
static int read_by_header(struct seam_function_ranges *ranges,
			  const struct seam_elf *file,
			  struct seam_eh_frame frame)
{
	GElf_Phdr header;

	if (!find_header(file, &header))
		return 0;
	frame.header = segment_from(file, header.p_vaddr);
	frame.header_addr = header.p_vaddr;
	if (!frame.header.data ||
	    !seam_eh_frame_addr(&frame, &frame.entries_addr))
		return 0;
	frame.header = (struct seam_bytes) { 0 };
	frame.entries = segment_from(file, frame.entries_addr);
	frame.ends_at_terminator = true;
	return frame.entries.data ? add_fdes(ranges, &frame) : 0;
}

static int read_eh_frame(struct seam_function_ranges *ranges,
			 const struct seam_elf *file)
{
	struct seam_eh_frame frame = {
		.endian = seam_elf_endian(file),
		.address_bytes = gelf_getclass(file->elf) == ELFCLASS32 ? 4 : 8,
	};
	GElf_Shdr header;

	frame.entries = seam_elf_bytes(file, ".eh_frame", &header);
	if (!frame.entries.size)
		return read_by_header(ranges, file, frame);
	frame.entries_addr = header.sh_addr;
	return add_fdes(ranges, &frame);
}

/* -- .gopclntab --------------------------------------------------------- */

/* Source: src/internal/abi/symtab.go. */
enum {
	MAGIC_1_2 = 0xfffffffb,
	MAGIC_1_16 = 0xfffffffa,
	MAGIC_1_18 = 0xfffffff0,
	MAGIC_1_20 = 0xfffffff1,
};

/* Longer names are damage. */
enum { MAX_NAME = 64 * 1024 };

static struct seam_cursor cursor_at(const struct seam_gopclntab *t,
				    uint64_t pos)
{
	size_t at = pos < t->bytes.size ? (size_t)pos : t->bytes.size;

	return seam_cursor_make(t->bytes.data + at, t->bytes.size - at,
				t->endian);
}

static uint64_t read_word(struct seam_cursor *c, unsigned int bytes)
{
	return bytes == 4 ? seam_cursor_u32(c) : seam_cursor_u64(c);
}

/* The header after the eight bytes that all versions begin with. */
static void read_places(struct seam_gopclntab *t, struct seam_cursor *c,
			uint32_t magic)
{
	t->n = (size_t)read_word(c, t->addr_bytes);
	t->word_bytes = t->addr_bytes;
	if (magic == MAGIC_1_2) {
		t->table_pos = c->pos;
		return;
	}
	read_word(c, t->addr_bytes);		/* files */
	if (magic != MAGIC_1_16) {
		t->word_bytes = 4;
		t->text_addr_pos = c->pos;
		t->text_addr = read_word(c, t->addr_bytes);
	}
	t->names_pos = read_word(c, t->addr_bytes);
	read_word(c, t->addr_bytes);		/* compilation units */
	read_word(c, t->addr_bytes);		/* names of files */
	read_word(c, t->addr_bytes);		/* pc-value tables */
	t->table_pos = read_word(c, t->addr_bytes);
}

/* Read the header.  False when it is none that can be read. */
static bool open_table(struct seam_gopclntab *t, struct seam_bytes bytes,
		       enum seam_endian endian)
{
	struct seam_cursor c = seam_cursor_over(bytes, endian);
	uint32_t magic = seam_cursor_u32(&c);

	*t = (struct seam_gopclntab) { .bytes = bytes, .endian = endian };
	seam_cursor_skip(&c, 3);		/* 0, 0, unit of code */
	t->addr_bytes = seam_cursor_u8(&c);
	if ((magic != MAGIC_1_2 && magic != MAGIC_1_16 &&
	     magic != MAGIC_1_18 && magic != MAGIC_1_20) ||
	    (t->addr_bytes != 4 && t->addr_bytes != 8))
		return false;
	read_places(t, &c, magic);
	if (c.error)
		return false;
	/* After the last function's entry comes the end of its code. */
	c = cursor_at(t, t->table_pos);
	return seam_cursor_count(&c, t->n, 2 * (size_t)t->word_bytes) > 0;
}

struct go_function {
	uint64_t start_addr, end_addr;
	const char *name;		/* "runtime.mallocgc"; borrowed */
};

/*
 * Function @i of the table, which are in ascending order.  False when it is
 * damaged.
 */
static bool read_function(const struct seam_gopclntab *t, size_t i,
			  struct go_function *out)
{
	struct seam_cursor c = cursor_at(t, t->table_pos +
					 i * 2 * t->word_bytes);
	uint64_t start = read_word(&c, t->word_bytes);
	uint64_t function = read_word(&c, t->word_bytes);
	uint64_t end = read_word(&c, t->word_bytes);
	uint32_t name;

	if (c.error || i >= t->n || function > t->bytes.size)
		return false;
	/* Offsets of functions count from the table since it has a header. */
	c = cursor_at(t, function + (t->names_pos ? t->table_pos : 0));
	read_word(&c, t->word_bytes);		/* its first address again */
	name = seam_cursor_u32(&c);
	if (c.error || name > t->bytes.size || t->names_pos > t->bytes.size)
		return false;
	c = cursor_at(t, t->names_pos + name);
	if (c.size > MAX_NAME)
		c.size = MAX_NAME;
	*out = (struct go_function) {
		.start_addr = t->text_addr + start,
		.end_addr = t->text_addr + end,
		.name = seam_cursor_cstr(&c),
	};
	return out->name && *out->name && out->end_addr > out->start_addr;
}

struct wanted_word {
	uint64_t addr, value;
};

static int take_word(void *context, uint64_t addr, uint64_t value)
{
	struct wanted_word *word = context;

	if (addr != word->addr)
		return 0;
	word->value = value;
	return 1;
}

/* The base of the table's addresses, if the table does not have it. */
static void place_text(struct seam_function_ranges *ranges,
		       const struct seam_elf *file, uint64_t section_addr)
{
	struct wanted_word word = {
		.addr = section_addr + ranges->go.text_addr_pos,
	};
	GElf_Shdr header;

	if (!ranges->go.text_addr_pos || ranges->go.text_addr)
		return;
	seam_elf_relocated(file, take_word, &word);
	ranges->go.text_addr = word.value;
	if (!ranges->go.text_addr && seam_elf_section(file, ".text", &header))
		ranges->go.text_addr = header.sh_addr;
}

static int copy_go(struct seam_function_ranges *ranges,
		   struct seam_bytes *bytes)
{
	ranges->go_bytes = malloc(bytes->size);
	if (!ranges->go_bytes)
		return -ENOMEM;
	memcpy(ranges->go_bytes, bytes->data, bytes->size);
	bytes->data = ranges->go_bytes;
	return 0;
}

static int read_gopclntab(struct seam_function_ranges *ranges,
			  const struct seam_elf *file)
{
	struct go_function function;
	struct seam_bytes bytes;
	GElf_Shdr header;
	int r;

	bytes = seam_elf_bytes(file, ".gopclntab", &header);
	if (!bytes.size)
		bytes = seam_elf_bytes(file, ".data.rel.ro.gopclntab", &header);
	if (!bytes.size)
		return 0;
	r = copy_go(ranges, &bytes);
	if (r || !open_table(&ranges->go, bytes, seam_elf_endian(file)))
		return r;
	place_text(ranges, file, header.sh_addr);
	for (size_t i = 0; !r && i < ranges->go.n && i < SEAM_NONE; i++)
		if (read_function(&ranges->go, i, &function))
			r = add(ranges, (struct seam_function_range) {
				.start = function.start_addr,
				.end = function.end_addr, .go = (uint32_t)i,
			});
	return r;
}

/* -- both --------------------------------------------------------------- */

int seam_function_ranges_read(struct seam_function_ranges *ranges,
			      const struct seam_elf *file)
{
	int r = read_eh_frame(ranges, file);
	int cut;

	/* Of ranges that begin together, the last one added counts. */
	if (!r)
		r = read_gopclntab(ranges, file);
	cut = seam_intervals_cut(&ranges->intervals);
	return r ? r : cut;
}

const struct seam_function_range *
seam_function_ranges_find(const struct seam_function_ranges *ranges,
			  uint64_t addr)
{
	uint32_t id = seam_intervals_find(&ranges->intervals, addr);

	return id != SEAM_NONE ? &ranges->items.items[id] : NULL;
}

const char *seam_function_ranges_name(const struct seam_function_ranges *ranges,
				      const struct seam_function_range *range)
{
	struct go_function function;

	if (range->name)
		return seam_strings_get(&ranges->names, range->name);
	return range->go != SEAM_NONE &&
	       read_function(&ranges->go, range->go, &function) ?
	       function.name : NULL;
}

void seam_function_ranges_fini(struct seam_function_ranges *ranges)
{
	free(ranges->items.items);
	seam_intervals_fini(&ranges->intervals);
	free(ranges->go_bytes);
	seam_strings_fini(&ranges->names);
	*ranges = (struct seam_function_ranges) { 0 };
}
