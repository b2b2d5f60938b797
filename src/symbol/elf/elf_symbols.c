/* SPDX-License-Identifier: MIT */
/* elf_symbols.c - .symtab, .dynsym, .gnu_debugdata, .plt; see elf_symbols.h */
#include "symbol/elf/elf_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <lzma.h>

/* The largest unpacked .gnu_debugdata; real ones have 1 MiB. */
#define MINIDEBUG_MAX (64u << 20)

/* The range of an executable section: the limit of its symbols. */
struct symbol_place {
	uint64_t start, end;	/* equal: not executable */
};

/* One symbol table while it is read. */
struct symbol_reader {
	const struct seam_elf *file;
	SEAM_ARRAY(struct symbol_place) places;	/* by section number */
	const char *names;
	size_t names_size;
};

static int find_places(struct symbol_reader *reader)
{
	struct symbol_place none = { 0 };
	bool has_room = SEAM_ARRAY_ADD(&reader->places, none);	/* section 0 */
	Elf_Scn *section = NULL;

	while (has_room &&
	       (section = elf_nextscn(reader->file->elf, section))) {
		struct symbol_place place = none;
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) &&
		    header.sh_flags & SHF_EXECINSTR &&
		    header.sh_size <= UINT64_MAX - header.sh_addr)
			place = (struct symbol_place) {
				header.sh_addr, header.sh_addr + header.sh_size,
			};
		has_room = SEAM_ARRAY_ADD(&reader->places, place);
	}
	return has_room ? 0 : -ENOMEM;
}

/* "$x", "$d.7": notes of ARM and RISC-V assemblers, not functions. */
static bool is_mapping_symbol(const char *name)
{
	return name[0] == '$' && name[1] != '\0' &&
	       strchr("adtx", name[1]) && (name[2] == '\0' || name[2] == '.');
}

static int add(struct symbol_reader *reader, struct seam_symtab *table,
	       const GElf_Sym *sym)
{
	unsigned char type = GELF_ST_TYPE(sym->st_info);
	unsigned char bind = GELF_ST_BIND(sym->st_info);
	bool label = type == STT_NOTYPE;
	struct seam_symbol symbol = { .start = sym->st_value };
	struct symbol_place place = { 0 };

	if (!label && type != STT_FUNC && type != STT_GNU_IFUNC)
		return 0;
	if (sym->st_shndx == SHN_UNDEF || sym->st_name == 0 ||
	    sym->st_name >= reader->names_size)
		return 0;
	symbol.name = reader->names + sym->st_name;
	if (symbol.name[0] == '\0' || is_mapping_symbol(symbol.name))
		return 0;
	/* On ARM, bit 0 of a function's address means Thumb. */
	if (reader->file->machine == EM_ARM && !label)
		symbol.start &= ~UINT64_C(1);
	if (sym->st_shndx < reader->places.n)
		place = reader->places.items[sym->st_shndx];
	if (label && (symbol.start < place.start || symbol.start >= place.end))
		return 0;
	symbol.end = symbol.start + (sym->st_size < UINT64_MAX - symbol.start ?
				     sym->st_size : 0);
	symbol.limit = symbol.start >= place.start && symbol.start < place.end ?
		       place.end : symbol.start;
	symbol.flags = (bind == STB_GLOBAL ? SEAM_SYMBOL_GLOBAL : 0) |
		       (bind == STB_WEAK ? SEAM_SYMBOL_WEAK : 0) |
		       (label ? SEAM_SYMBOL_LABEL : 0);
	return seam_symtab_add(table, &symbol);
}

/* The string table of @header's section, copied with a NUL after it. */
static int take_names(struct symbol_reader *reader, struct seam_arena *arena,
		      const GElf_Shdr *header)
{
	Elf_Scn *section = elf_getscn(reader->file->elf, header->sh_link);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;

	reader->names_size = data && data->d_buf ? data->d_size : 0;
	if (reader->names_size == 0)
		return 0;
	reader->names = seam_arena_text(arena, data->d_buf,
					reader->names_size);
	return reader->names ? 0 : -ENOMEM;
}

static int read_table(struct symbol_reader *reader, struct seam_symtab *table,
		      struct seam_arena *arena, Elf_Scn *section,
		      const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t entry = gelf_fsize(reader->file->elf, ELF_T_SYM, 1, EV_CURRENT);
	size_t n = data && data->d_buf && entry ? data->d_size / entry : 0;
	int r = n > 0 ? take_names(reader, arena, header) : 0;

	for (size_t i = 0; !r && i < n && i <= INT32_MAX; i++) {
		GElf_Sym sym;

		if (gelf_getsym(data, (int)i, &sym))
			r = add(reader, table, &sym);
	}
	return r;
}

static Elf_Scn *find_table(const struct seam_elf *file, uint32_t type,
			   GElf_Shdr *header)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(file->elf, section)))
		if (gelf_getshdr(section, header) && header->sh_type == type)
			break;
	return section;
}

bool seam_elf_has_symtab(const struct seam_elf *file)
{
	GElf_Shdr header;

	return find_table(file, SHT_SYMTAB, &header);
}

int seam_elf_symbols(struct seam_symtab *table, struct seam_arena *arena,
		     const struct seam_elf *file)
{
	static const uint32_t types[] = { SHT_SYMTAB, SHT_DYNSYM };
	struct symbol_reader reader = { .file = file };
	int r = find_places(&reader);

	for (size_t i = 0; !r && i < SEAM_ARRAY_SIZE(types); i++) {
		GElf_Shdr header;
		Elf_Scn *section = find_table(file, types[i], &header);

		if (section)
			r = read_table(&reader, table, arena, section,
				       &header);
	}
	free(reader.places.items);
	return r;
}

/* Unpack @in.  malloc()ed, or NULL; *@size is its size. */
static uint8_t *unpack(struct seam_bytes in, size_t *size)
{
	SEAM_ARRAY(uint8_t) out = { 0 };
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret r = lzma_stream_decoder(&stream, 2 * MINIDEBUG_MAX, 0);

	stream.next_in = in.data;
	stream.avail_in = in.size;
	while (r == LZMA_OK && out.n < MINIDEBUG_MAX &&
	       SEAM_ARRAY_RESERVE(&out, 64 * 1024)) {
		stream.next_out = out.items + out.n;
		stream.avail_out = out.cap - out.n;
		r = lzma_code(&stream, LZMA_FINISH);
		out.n = out.cap - stream.avail_out;
	}
	lzma_end(&stream);
	*size = out.n;
	if (r == LZMA_STREAM_END)
		return out.items;
	free(out.items);
	return NULL;
}

/*
 * Add the symbols of the small table that distributions leave in stripped
 * files, compressed in .gnu_debugdata.
 */
static int read_minidebug(struct seam_symtab *table, struct seam_arena *arena,
			  const struct seam_elf *file)
{
	GElf_Shdr header;
	struct seam_bytes packed = seam_elf_bytes(file, ".gnu_debugdata",
						  &header);
	struct seam_elf inner;
	size_t size;
	uint8_t *image = packed.size ? unpack(packed, &size) : NULL;
	int r;

	if (!image || seam_elf_open_image(&inner, image, size, NULL))
		return 0;
	r = seam_elf_symbols(table, arena, &inner);
	seam_elf_close(&inner);
	return r;
}

/* -- .plt ----------------------------------------------------------------- */

/*
 * A stub through which calls leave a file jumps to the address in a slot of the
 * GOT, and a relocation has which symbol the slot is for.  The jump is read
 * from the stub's bytes, which is right for every linker, every order and all
 * three sections.  On x86-64 alone: stubs of other machines have no name.
 *
 * Source: x86-64 psABI 1.0, 5.2 "Procedure Linkage Table".
 */

/* The relocation of a slot of the GOT. */
struct slot {
	uint64_t addr;		/* of the slot */
	const char *name;	/* NULL: that of the function at @target */
	uint64_t target;
};

struct plt {
	const struct seam_elf *file;
	struct seam_symtab *table;
	struct seam_arena *arena;
	SEAM_ARRAY(struct slot) slots;	/* sorted by address at the end */
};

/* The name of symbol @index of the table that @symbols is, or NULL. */
static const char *symbol_name(const struct plt *plt, Elf_Scn *symbols,
			       uint64_t index)
{
	Elf_Data *data = symbols ? elf_getdata(symbols, NULL) : NULL;
	GElf_Shdr header;
	GElf_Sym sym;

	if (!data || index == 0 || index > INT32_MAX ||
	    !gelf_getsym(data, (int)index, &sym) ||
	    !gelf_getshdr(symbols, &header))
		return NULL;
	return elf_strptr(plt->file->elf, header.sh_link, sym.st_name);
}

/* Any dynamic relocation may fill a slot. */
static int read_slots(struct plt *plt, const char *name)
{
	GElf_Shdr header;
	Elf_Scn *section = seam_elf_section(plt->file, name, &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	Elf_Scn *symbols = section ? elf_getscn(plt->file->elf,
						header.sh_link) : NULL;
	size_t n = data && data->d_buf && header.sh_type == SHT_RELA ?
		   data->d_size / sizeof(Elf64_Rela) : 0;

	for (size_t i = 0; i < n && i <= INT32_MAX; i++) {
		GElf_Rela r;
		uint64_t type = gelf_getrela(data, (int)i, &r) ?
				GELF_R_TYPE(r.r_info) : R_X86_64_NONE;

		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT &&
		    type != R_X86_64_IRELATIVE)
			continue;
		if (!SEAM_ARRAY_ADD(&plt->slots, (struct slot) {
			r.r_offset,
			symbol_name(plt, symbols, GELF_R_SYM(r.r_info)),
			(uint64_t)r.r_addend }))
			return -ENOMEM;
	}
	return 0;
}

static int compare_slots(const void *a, const void *b)
{
	const struct slot *left = a, *right = b;

	return SEAM_COMPARE(left->addr, right->addr);
}

static const struct slot *slot_at(const struct plt *plt, uint64_t addr)
{
	size_t at = SEAM_ARRAY_SEARCH(i, plt->slots.n,
				      plt->slots.items[i].addr < addr);

	return at < plt->slots.n && plt->slots.items[at].addr == addr ?
	       &plt->slots.items[at] : NULL;
}

static int name_stub(struct plt *plt, uint64_t addr, uint64_t size,
		     const struct slot *slot)
{
	struct seam_symbol symbol = {
		.start = addr, .end = addr + size, .flags = SEAM_SYMBOL_GLOBAL,
	};
	const struct seam_symbol *target;
	const char *name = slot->name;
	char *text;
	size_t n;

	if (!name || !*name) {
		target = seam_symtab_find(plt->table, slot->target);
		name = target ? target->name : NULL;
	}
	if (!name || symbol.end < addr)
		return 0;
	n = strlen(name) + sizeof("@plt");
	text = seam_arena_alloc(plt->arena, n);
	if (!text)
		return -ENOMEM;
	snprintf(text, n, "%s@plt", name);
	symbol.name = text;
	return seam_symtab_add(plt->table, &symbol);
}

/*
 * The slot that the stub of @size bytes at @addr jumps through: jmp *slot,
 * as opcode ff 25, relative to the next instruction.
 */
static const struct slot *read_stub(const struct plt *plt, const uint8_t *code,
				    size_t size, uint64_t addr)
{
	for (size_t i = 0; i + 6 <= size; i++) {
		int32_t word;

		if (code[i] != 0xff || code[i + 1] != 0x25)
			continue;
		memcpy(&word, code + i + 2, sizeof(word));
		return slot_at(plt, addr + i + 6 + (uint64_t)(int64_t)word);
	}
	return NULL;
}

static int read_stubs(struct plt *plt, const char *name)
{
	GElf_Shdr header;
	struct seam_bytes stubs = seam_elf_bytes(plt->file, name, &header);
	size_t n = stubs.size;
	size_t size = n > 0 && header.sh_entsize >= 6 &&
		      header.sh_entsize <= 64 ? (size_t)header.sh_entsize : 16;
	int r = 0;

	for (size_t pos = 0; !r && pos + size <= n; pos += size) {
		uint64_t addr = header.sh_addr + pos;
		const struct slot *slot = read_stub(plt,
			stubs.data + pos, size, addr);

		if (slot)
			r = name_stub(plt, addr, size, slot);
	}
	return r;
}

/* @table, which is sorted, names the entries of indirect functions. */
static int read_plt(struct seam_symtab *table, struct seam_arena *arena,
		    const struct seam_elf *file)
{
	static const char *const names[] = { ".plt", ".plt.sec", ".plt.got" };
	struct plt plt = { .file = file, .table = table, .arena = arena };
	int r;

	if (file->machine != EM_X86_64)
		return 0;
	r = read_slots(&plt, ".rela.plt");
	r = r ? r : read_slots(&plt, ".rela.dyn");
	SEAM_ARRAY_SORT(&plt.slots, compare_slots);
	for (size_t i = 0; !r && i < SEAM_ARRAY_SIZE(names); i++)
		r = read_stubs(&plt, names[i]);
	free(plt.slots.items);
	return r;
}

/* -- all ------------------------------------------------------------------ */

int seam_elf_all_symbols(struct seam_symtab *table, struct seam_arena *arena,
			 const struct seam_elf *file,
			 const struct seam_elf *debug)
{
	int r = seam_elf_symbols(table, arena, file);
	size_t n;

	if (!r && debug)
		r = seam_elf_symbols(table, arena, debug);
	else if (!r && !seam_elf_has_symtab(file))
		r = read_minidebug(table, arena, file);
	if (!r)
		r = seam_symtab_sort(table);
	n = table->symbols.n;
	if (!r)
		r = read_plt(table, arena, file);
	return r || table->symbols.n == n ? r : seam_symtab_sort(table);
}
