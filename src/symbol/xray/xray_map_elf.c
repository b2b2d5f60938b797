/* SPDX-License-Identifier: MIT */
/*
 * xray_map_elf.c - the section xray_instr_map of an ELF file
 *
 * The section is not aligned, and in a position-independent program of map
 * version 0 or 1 its addresses are in the relocations, not in the file.
 */
#include "symbol/xray/xray_map.h"

#include <errno.h>

#include "base/demangle.h"
#include "symbol/elf/elf_symbols.h"
#include "wire/wire.h"

/* Source: LLVM 14, X86AsmPrinter; bytes after these members are padding. */
enum { SLED_BYTES = 32, FUNCTION_POS = 8 };

struct sled_entry {
	uint64_t function;	/* its start; in version 2 from here on */
	uint8_t kind;		/* enum seam_xray_sled_kind */
	uint8_t version;	/* 0, 1 or 2 */
};

struct image {
	struct seam_elf file;
	GElf_Half type;			/* e_type */
	GElf_Shdr section;
	struct seam_bytes bytes;	/* the section's, ours to change */
	struct seam_arena arena;	/* names */
	struct seam_symtab symbols;
};

static void put_u64(struct image *image, uint64_t offset, uint64_t v)
{
	if (image->bytes.size >= 8 && offset <= image->bytes.size - 8)
		seam_wire_put_uint((uint8_t *)(uintptr_t)image->bytes.data +
				   offset, v, 8,
				   seam_elf_endian(&image->file));
}

/* The relocation type "load address + addend" of each machine. */
static bool is_relative(const struct image *image, uint64_t type)
{
	static const struct { int machine; uint32_t type; } types[] = {
		{ EM_X86_64, R_X86_64_RELATIVE },
		{ EM_AARCH64, R_AARCH64_RELATIVE },
		{ EM_PPC64, R_PPC64_RELATIVE },
		{ EM_S390, R_390_RELATIVE },
		{ EM_RISCV, R_RISCV_RELATIVE },
		{ EM_LOONGARCH, R_LARCH_RELATIVE },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(types); i++)
		if (types[i].machine == image->file.machine)
			return types[i].type == type;
	return false;
}

/* S + A and S + A - P, which is all that a map in an object file needs. */
static void relocate_object(struct image *image, const GElf_Rela *rela,
			    Elf_Data *symbols)
{
	GElf_Sym sym;
	uint64_t v;

	if (image->file.machine != EM_X86_64 || !symbols ||
	    !gelf_getsym(symbols, (int)GELF_R_SYM(rela->r_info), &sym))
		return;
	v = sym.st_value + (uint64_t)rela->r_addend;
	if (GELF_R_TYPE(rela->r_info) == R_X86_64_64)
		put_u64(image, rela->r_offset, v);
	else if (GELF_R_TYPE(rela->r_info) == R_X86_64_PC64)
		put_u64(image, rela->r_offset, v - rela->r_offset);
}

static void relocate(struct image *image, Elf_Scn *scn, const GElf_Shdr *shdr,
		     size_t map_index)
{
	bool is_object = image->type == ET_REL;
	Elf_Data *data = elf_getdata(scn, NULL);
	Elf_Scn *link = elf_getscn(image->file.elf, shdr->sh_link);
	Elf_Data *symbols = link ? elf_getdata(link, NULL) : NULL;
	size_t n = shdr->sh_entsize ? shdr->sh_size / shdr->sh_entsize : 0;
	GElf_Rela rela;

	if (!data || (is_object && shdr->sh_info != map_index))
		return;
	for (size_t i = 0; i < n && i <= INT32_MAX; i++) {
		if (!gelf_getrela(data, (int)i, &rela))
			break;
		if (is_object)
			relocate_object(image, &rela, symbols);
		else if (is_relative(image, GELF_R_TYPE(rela.r_info)) &&
			 rela.r_offset >= image->section.sh_addr)
			put_u64(image, rela.r_offset - image->section.sh_addr,
				(uint64_t)rela.r_addend);
	}
}

static void relocate_all(struct image *image, size_t map_index)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(image->file.elf, scn))) {
		GElf_Shdr shdr;

		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_RELA)
			relocate(image, scn, &shdr, map_index);
	}
}

/*
 * The name for people of the function at @addr, in image->arena; NULL where
 * there is none.  A function has many sleds, one after another: it is needed
 * for the first.
 */
static const char *name_at(const struct seam_xray_map *map,
			   struct image *image, uint64_t addr)
{
	const struct seam_symbol *symbol;

	if (map->functions.n &&
	    map->functions.items[map->functions.n - 1].addr == addr)
		return NULL;
	symbol = seam_symtab_find(&image->symbols, addr);
	return symbol && symbol->start == addr ?
	       seam_demangle_with_parameters(&image->arena, symbol->name) :
	       NULL;
}

static uint64_t to_file_offset(const struct image *image, uint64_t addr)
{
	const struct seam_segment *s = seam_segment_at(&image->file.segments,
						       addr);

	return s ? addr - s->addr + s->offset : 0;
}

static int add_entry(struct seam_xray_map *map, struct image *image,
		     const struct sled_entry *entry, size_t offset,
		     struct seam_err *err)
{
	struct seam_xray_sled sled = {
		.function = entry->function, .kind = entry->kind,
	};

	if (entry->version > 2)
		return seam_err_set(err, -ENOTSUP, "entry at %#zx: version=%u",
				    offset, entry->version);
	if (entry->kind >= SEAM_XRAY_N_SLEDS)
		return seam_err_set(err, -EBADMSG, "entry at %#zx: kind=%u",
				    offset, entry->kind);
	/* no program has a function at 0: it is in a relocation */
	if (entry->version < 2 && entry->function == 0 &&
	    image->type != ET_REL)
		return seam_err_set(err, -ENOTSUP, "entry at %#zx: it has no "
				    "address, and relocations of machine=%d "
				    "are not known", offset,
				    image->file.machine);
	if (entry->version == 2)
		sled.function += image->section.sh_addr + offset +
				 FUNCTION_POS;
	sled.name = name_at(map, image, sled.function);
	if (seam_xray_map_add(map, &sled))
		return seam_err_no_memory(err);
	map->functions.items[map->functions.n - 1].file_offset =
		to_file_offset(image, sled.function);
	return 0;
}

static int read_entries(struct seam_xray_map *map, struct image *image,
			struct seam_err *err)
{
	struct seam_cursor c = seam_cursor_over(image->bytes,
						seam_elf_endian(&image->file));

	if (c.size % SLED_BYTES)
		return seam_err_set(err, -EBADMSG, "xray_instr_map: %zu bytes "
				    "are no multiple of %d", c.size,
				    SLED_BYTES);
	while (seam_cursor_left(&c) > 0) {
		size_t offset = c.pos;
		struct seam_cursor one = seam_cursor_split(&c, SLED_BYTES);
		struct sled_entry entry;
		int r;

		seam_cursor_skip(&one, FUNCTION_POS);	/* the sled's address */
		entry.function = seam_cursor_u64(&one);
		entry.kind = seam_cursor_u8(&one);
		seam_cursor_u8(&one);			/* always instrument */
		entry.version = seam_cursor_u8(&one);
		r = add_entry(map, image, &entry, offset, err);
		if (r)
			return r;
	}
	return 0;
}

static int open_image(struct image *image, struct seam_bytes bytes,
		      struct seam_err *err)
{
	GElf_Ehdr header;
	int r = seam_elf_open_bytes(&image->file, bytes, err);

	if (r)
		return r;
	if (gelf_getclass(image->file.elf) != ELFCLASS64)
		return seam_err_set(err, -ENOTSUP, "an ELF file of 32 bits: "
				    "maps of 64-bit programs are read");
	image->type = gelf_getehdr(image->file.elf, &header) ? header.e_type :
		      ET_NONE;
	if (image->type == ET_REL && image->file.machine != EM_X86_64)
		return seam_err_set(err, -ENOTSUP, "an object file of machine="
				    "%d: it must be linked",
				    image->file.machine);
	return 0;
}

static int load_image(struct image *image, struct seam_err *err)
{
	Elf_Scn *scn = seam_elf_section(&image->file, "xray_instr_map",
					&image->section);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;
	void *copy;

	if (!data || !data->d_buf)
		return seam_err_set(err, -ENODATA, "it has no section "
				    "xray_instr_map: not built with "
				    "-fxray-instrument");
	copy = malloc(data->d_size + 1);
	if (!copy)
		return seam_err_no_memory(err);
	memcpy(copy, data->d_buf, data->d_size);
	image->bytes = (struct seam_bytes) { copy, data->d_size };
	relocate_all(image, elf_ndxscn(scn));
	return seam_elf_symbols(&image->symbols, &image->arena, &image->file) ||
	       seam_symtab_sort(&image->symbols) ? seam_err_no_memory(err) : 0;
}

int seam_xray_map_read_elf(struct seam_xray_map *map, struct seam_bytes bytes,
			   struct seam_err *err)
{
	struct image image = { 0 };
	int r = open_image(&image, bytes, err);

	if (!r)
		r = load_image(&image, err);
	if (!r)
		r = read_entries(map, &image, err);
	free((void *)(uintptr_t)image.bytes.data);
	seam_symtab_fini(&image.symbols);
	seam_arena_fini(&image.arena);
	seam_elf_close(&image.file);
	return r;
}
