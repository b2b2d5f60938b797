/* SPDX-License-Identifier: MIT */
/* elf_symbols.c - .symtab, .dynsym, .gnu_debugdata; see elf_symbols.h */
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
static uint8_t *unpack(const Elf_Data *in, size_t *size)
{
	SEAM_ARRAY(uint8_t) out = { 0 };
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret r = lzma_stream_decoder(&stream, 2 * MINIDEBUG_MAX, 0);

	stream.next_in = in->d_buf;
	stream.avail_in = in->d_size;
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

int seam_elf_minidebug(struct seam_symtab *table, struct seam_arena *arena,
		       const struct seam_elf *file)
{
	GElf_Shdr header;
	Elf_Scn *section = seam_elf_section(file, ".gnu_debugdata", &header);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
	struct seam_elf inner;
	size_t size;
	uint8_t *image = data && data->d_buf ? unpack(data, &size) : NULL;
	int r;

	if (!image || seam_elf_open_image(&inner, image, size, NULL))
		return 0;
	r = seam_elf_symbols(table, arena, &inner);
	seam_elf_close(&inner);
	return r;
}
