/* SPDX-License-Identifier: MIT */
/*
 * xray_map_elf.c - the section xray_instr_map of an ELF file
 *
 * The section is not aligned, and in a position-independent program of map
 * version 0 or 1 its addresses are in the relocations, not in the file.
 */
#include "symbol/xray/xray_map.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>

#include "symbol/names/demangle.h"
#include "wire/wire.h"

enum { SLED_BYTES = 32 };

struct sled_entry {
	uint64_t address;
	uint64_t function;
	uint8_t kind;
	uint8_t always_instrument;
	uint8_t version;
};

static const struct seam_field entry_fields[] = {
#define F(member, text) SEAM_FIELD(struct sled_entry, member, text)
	F(address, "of the sled; from version 2 on relative to this field"),
	F(function, "of its function's start; relative likewise"),
	F(kind, "0 enter, 1 exit, 2 tail, 3 enter with args, 4, 5 events"),
	F(always_instrument, "1: by an attribute in the source"),
	F(version, "0, 1 or 2"),
#undef F
};

static const struct seam_record entry_record = {
	.name = "xray_instr_map entry",
	.spec = "LLVM 14, X86AsmPrinter; 32 bytes, the rest is padding",
	.fields = entry_fields,
	.n_fields = SEAM_ARRAY_SIZE(entry_fields),
};

struct symbol {
	uint64_t addr;
	const char *name;
	bool is_readable;		/* name is a string of the map */
};

struct image {
	Elf *elf;
	GElf_Ehdr header;
	GElf_Shdr section;
	struct seam_bytes bytes;	/* the section's, ours to change */
	enum seam_endian endian;
	SEAM_ARRAY(struct symbol) symbols;
};

static void put_u64(struct image *image, uint64_t offset, uint64_t v)
{
	uint8_t *data = (uint8_t *)(uintptr_t)image->bytes.data;

	if (image->bytes.size < 8 || offset > image->bytes.size - 8)
		return;
	for (unsigned int i = 0; i < 8; i++) {
		unsigned int at = image->endian == SEAM_LITTLE ? i : 7 - i;

		data[offset + at] = (uint8_t)(v >> (8 * i));
	}
}

/* The relocation type "load address + addend" of each machine. */
static bool is_relative(const struct image *image, uint64_t type)
{
	static const struct { uint16_t machine; uint32_t type; } types[] = {
		{ EM_X86_64, R_X86_64_RELATIVE },
		{ EM_AARCH64, R_AARCH64_RELATIVE },
		{ EM_PPC64, R_PPC64_RELATIVE },
		{ EM_S390, R_390_RELATIVE },
		{ EM_RISCV, R_RISCV_RELATIVE },
		{ EM_LOONGARCH, R_LARCH_RELATIVE },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(types); i++)
		if (types[i].machine == image->header.e_machine)
			return types[i].type == type;
	return false;
}

/* S + A and S + A - P, which is all that a map in an object file needs. */
static void relocate_object(struct image *image, const GElf_Rela *rela,
			    Elf_Data *symbols)
{
	GElf_Sym sym;
	uint64_t v;

	if (image->header.e_machine != EM_X86_64 || !symbols ||
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
	bool is_object = image->header.e_type == ET_REL;
	Elf_Data *data = elf_getdata(scn, NULL);
	Elf_Scn *link = elf_getscn(image->elf, shdr->sh_link);
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

static int by_addr(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int load_symbols(struct image *image, Elf_Scn *scn,
			const GElf_Shdr *shdr)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t n = shdr->sh_entsize ? shdr->sh_size / shdr->sh_entsize : 0;
	GElf_Sym sym;

	for (size_t i = 0; data && i < n && i <= INT32_MAX; i++) {
		struct symbol *slot;
		const char *name;

		if (!gelf_getsym(data, (int)i, &sym))
			break;
		name = elf_strptr(image->elf, shdr->sh_link, sym.st_name);
		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC || !name || !*name ||
		    sym.st_shndx == SHN_UNDEF)
			continue;
		slot = SEAM_ARRAY_PUSH(&image->symbols);
		if (!slot)
			return -ENOMEM;
		*slot = (struct symbol) { .addr = sym.st_value, .name = name };
	}
	return 0;
}

/* The section with the map, its header in @image; NULL when there is none. */
static Elf_Scn *find_map(struct image *image)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(image->elf, &names))
		return NULL;
	while ((scn = elf_nextscn(image->elf, scn))) {
		const char *name;

		if (!gelf_getshdr(scn, &image->section))
			continue;
		name = elf_strptr(image->elf, names, image->section.sh_name);
		if (name && strcmp(name, "xray_instr_map") == 0)
			return scn;
	}
	return NULL;
}

static int load_sections(struct image *image, size_t map_index)
{
	Elf_Scn *scn = NULL;
	bool have_symtab = false;

	while ((scn = elf_nextscn(image->elf, scn))) {
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr))
			continue;
		if (shdr.sh_type == SHT_RELA)
			relocate(image, scn, &shdr, map_index);
		if (shdr.sh_type == SHT_SYMTAB ||
		    (shdr.sh_type == SHT_DYNSYM && !have_symtab)) {
			if (load_symbols(image, scn, &shdr))
				return -ENOMEM;
			have_symtab |= shdr.sh_type == SHT_SYMTAB;
		}
	}
	if (image->symbols.n)
		qsort(image->symbols.items, image->symbols.n,
		      sizeof(*image->symbols.items), by_addr);
	return 0;
}

static struct symbol *find_symbol(const struct image *image, uint64_t addr)
{
	struct symbol key = { .addr = addr };

	return image->symbols.n ?
		bsearch(&key, image->symbols.items, image->symbols.n,
			sizeof(key), by_addr) : NULL;
}

/*
 * The name for people of the function at @addr, NULL where there is none; a
 * function has many sleds, and is resolved once.  0 or -ENOMEM.
 */
static int name_at(struct seam_xray_map *map, const struct image *image,
		   uint64_t addr, const char **name)
{
	struct symbol *symbol = find_symbol(image, addr);

	if (symbol && !symbol->is_readable) {
		struct seam_arena arena = { 0 };
		uint32_t id = seam_strings_put(&map->strings,
			seam_demangle_with_parameters(&arena, symbol->name));

		seam_arena_fini(&arena);
		if (id == SEAM_NONE)
			return -ENOMEM;
		symbol->name = seam_strings_get(&map->strings, id);
		symbol->is_readable = true;
	}
	*name = symbol ? symbol->name : NULL;
	return 0;
}

static uint64_t to_file_offset(const struct image *image, uint64_t addr)
{
	size_t n = 0;

	elf_getphdrnum(image->elf, &n);
	for (size_t i = 0; i < n && i <= INT32_MAX; i++) {
		GElf_Phdr phdr;

		if (gelf_getphdr(image->elf, (int)i, &phdr) &&
		    phdr.p_type == PT_LOAD && addr >= phdr.p_vaddr &&
		    addr - phdr.p_vaddr < phdr.p_filesz)
			return addr - phdr.p_vaddr + phdr.p_offset;
	}
	return 0;
}

static int add_entry(struct seam_xray_map *map, const struct image *image,
		     const struct sled_entry *entry, size_t offset,
		     struct seam_err *err)
{
	uint64_t base = image->section.sh_addr + offset;
	struct seam_xray_sled sled = {
		.function = entry->function, .kind = entry->kind,
	};
	int r;

	if (entry->version > 2)
		return seam_err_set(err, -ENOTSUP, "entry at %#zx: version=%u",
				    offset, entry->version);
	if (entry->kind >= SEAM_XRAY_N_SLEDS)
		return seam_err_set(err, -EBADMSG, "entry at %#zx: kind=%u",
				    offset, entry->kind);
	/* no program has a function at 0: it is in a relocation */
	if (entry->version < 2 && entry->function == 0 &&
	    image->header.e_type != ET_REL)
		return seam_err_set(err, -ENOTSUP, "entry at %#zx: it has no "
				    "address, and relocations of machine=%u "
				    "are not known", offset,
				    image->header.e_machine);
	if (entry->version == 2)
		sled.function += base + offsetof(struct sled_entry, function);
	r = name_at(map, image, sled.function, &sled.name);
	if (!r)
		r = seam_xray_map_add(map, &sled);
	if (r)
		return seam_err_set(err, r, "out of memory");
	map->functions.items[map->functions.n - 1].file_offset =
		to_file_offset(image, sled.function);
	return 0;
}

static int read_entries(struct seam_xray_map *map, const struct image *image,
			struct seam_err *err)
{
	struct seam_cursor c = seam_cursor_over(image->bytes, image->endian);

	if (c.size % SLED_BYTES)
		return seam_err_set(err, -EBADMSG, "xray_instr_map: %zu bytes "
				    "are no multiple of %d", c.size,
				    SLED_BYTES);
	while (seam_cursor_left(&c) > 0) {
		size_t offset = c.pos;
		struct seam_cursor one = seam_cursor_split(&c, SLED_BYTES);
		struct sled_entry entry;
		int r;

		seam_wire_read(&one, &entry_record, &entry);
		r = add_entry(map, image, &entry, offset, err);
		if (r)
			return r;
	}
	return 0;
}

static int open_image(struct image *image, struct seam_bytes bytes,
		      struct seam_err *err)
{
	elf_version(EV_CURRENT);
	image->elf = elf_memory((char *)(uintptr_t)bytes.data, bytes.size);
	if (!image->elf || !gelf_getehdr(image->elf, &image->header))
		return seam_err_set(err, -EBADMSG, "not an ELF file: %s",
				    elf_errmsg(-1));
	if (gelf_getclass(image->elf) != ELFCLASS64)
		return seam_err_set(err, -ENOTSUP, "an ELF file of 32 bits: "
				    "maps of 64-bit programs are read");
	if (image->header.e_type == ET_REL &&
	    image->header.e_machine != EM_X86_64)
		return seam_err_set(err, -ENOTSUP, "an object file of machine="
				    "%u: it must be linked",
				    image->header.e_machine);
	image->endian = image->header.e_ident[EI_DATA] == ELFDATA2MSB ?
			SEAM_BIG : SEAM_LITTLE;
	return 0;
}

static int load_image(struct image *image, struct seam_err *err)
{
	Elf_Scn *scn = find_map(image);
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
	if (load_sections(image, elf_ndxscn(scn)))
		return seam_err_no_memory(err);
	return 0;
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
	free(image.symbols.items);
	elf_end(image.elf);
	return r;
}
