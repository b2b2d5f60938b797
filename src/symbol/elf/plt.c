/* SPDX-License-Identifier: MIT */
/*
 * plt.c - names for the stubs through which calls leave a file
 *
 * A stub jumps to the address in a slot of the GOT, and a relocation has
 * which symbol the slot is for.  On x86 the jump is read from the stub's
 * bytes, which is right for every linker, every order and all three
 * sections; elsewhere stubs are in the order of .rela.plt.
 *
 * Source: x86-64 psABI 1.0, 5.2 "Procedure Linkage Table".
 */
#include "symbol/elf/elf_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	uint64_t got;			/* .got.plt: base of i386 PIC stubs */
};

/* The layout of .plt where stubs cannot be decoded. */
struct plt_layout {
	int machine;
	uint32_t header_bytes;
	uint32_t stub_bytes;
};

static const struct plt_layout layouts[] = {
	{ EM_AARCH64, 32, 16 },
	{ EM_ARM, 20, 12 },
	{ EM_RISCV, 32, 16 },
	{ EM_S390, 32, 32 },
};

static bool is_x86(const struct plt *plt)
{
	return plt->file->machine == EM_X86_64 || plt->file->machine == EM_386;
}

/* Whether a relocation fills a slot that stubs jump through (x86). */
static bool is_slot(const struct plt *plt, uint64_t type)
{
	if (plt->file->machine == EM_X86_64)
		return type == R_X86_64_JUMP_SLOT ||
		       type == R_X86_64_GLOB_DAT ||
		       type == R_X86_64_IRELATIVE;
	return type == R_386_JMP_SLOT || type == R_386_GLOB_DAT ||
	       type == R_386_IRELATIVE;
}

static bool get_relocation(Elf_Data *data, bool rela, int i, GElf_Rela *out)
{
	GElf_Rel rel;

	if (rela)
		return gelf_getrela(data, i, out);
	if (!gelf_getrel(data, i, &rel))
		return false;
	*out = (GElf_Rela) { rel.r_offset, rel.r_info, 0 };
	return true;
}

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

static int read_slots(struct plt *plt, Elf_Scn *section,
		      const GElf_Shdr *header)
{
	bool rela = header->sh_type == SHT_RELA;
	Elf_Data *data = elf_getdata(section, NULL);
	Elf_Scn *symbols = elf_getscn(plt->file->elf, header->sh_link);
	size_t entry = gelf_fsize(plt->file->elf, rela ? ELF_T_RELA : ELF_T_REL,
				  1, EV_CURRENT);
	size_t n = data && data->d_buf && entry ? data->d_size / entry : 0;

	for (size_t i = 0; i < n && i <= INT32_MAX; i++) {
		GElf_Rela r;

		if (!get_relocation(data, rela, (int)i, &r) ||
		    (is_x86(plt) && !is_slot(plt, GELF_R_TYPE(r.r_info))))
			continue;
		if (!SEAM_ARRAY_ADD(&plt->slots, (struct slot) {
			r.r_offset,
			symbol_name(plt, symbols, GELF_R_SYM(r.r_info)),
			(uint64_t)r.r_addend }))
			return -ENOMEM;
	}
	return 0;
}

/* On x86 any dynamic relocation may fill a slot, elsewhere those of .plt. */
static int find_slots(struct plt *plt)
{
	static const char *const names[] = {
		".rela.plt", ".rel.plt", ".rela.dyn", ".rel.dyn",
	};
	size_t n = is_x86(plt) ? SEAM_ARRAY_SIZE(names) : 2;
	int r = 0;

	for (size_t i = 0; !r && i < n; i++) {
		GElf_Shdr header;
		Elf_Scn *section = seam_elf_section(plt->file, names[i],
						    &header);

		if (section && (header.sh_type == SHT_RELA ||
				header.sh_type == SHT_REL))
			r = read_slots(plt, section, &header);
	}
	return r;
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
 * as opcode ff 25 (x86-64: relative to the next instruction; i386: absolute)
 * or ff a3 (i386: relative to .got.plt).
 */
static const struct slot *read_stub(const struct plt *plt, const uint8_t *code,
				    size_t size, uint64_t addr)
{
	for (size_t i = 0; i + 6 <= size; i++) {
		int32_t word;
		uint64_t base = 0;

		if (code[i] != 0xff ||
		    (code[i + 1] != 0x25 && code[i + 1] != 0xa3))
			continue;
		memcpy(&word, code + i + 2, sizeof(word));
		if (code[i + 1] == 0xa3)
			base = plt->got;
		else if (plt->file->machine == EM_X86_64)
			base = addr + i + 6;
		else
			return slot_at(plt, (uint32_t)word);
		return slot_at(plt, base + (uint64_t)(int64_t)word);
	}
	return NULL;
}

static int read_stubs(struct plt *plt, const char *name)
{
	GElf_Shdr header;
	Elf_Scn *section = seam_elf_section(plt->file, name, &header);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
	size_t n = data && data->d_buf ? data->d_size : 0;
	size_t size = n > 0 && header.sh_entsize >= 6 &&
		      header.sh_entsize <= 64 ? (size_t)header.sh_entsize : 16;
	int r = 0;

	for (size_t pos = 0; !r && pos + size <= n; pos += size) {
		uint64_t addr = header.sh_addr + pos;
		const struct slot *slot = read_stub(plt,
			(const uint8_t *)data->d_buf + pos, size, addr);

		if (slot)
			r = name_stub(plt, addr, size, slot);
	}
	return r;
}

static int name_x86(struct plt *plt)
{
	static const char *const names[] = { ".plt", ".plt.sec", ".plt.got" };
	GElf_Shdr header;
	int r = 0;

	SEAM_ARRAY_SORT(&plt->slots, compare_slots);
	if (seam_elf_section(plt->file, ".got.plt", &header))
		plt->got = header.sh_addr;
	for (size_t i = 0; !r && i < SEAM_ARRAY_SIZE(names); i++)
		r = read_stubs(plt, names[i]);
	return r;
}

static int name_in_order(struct plt *plt)
{
	const struct plt_layout *layout = NULL;
	GElf_Shdr header;
	int r = 0;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(layouts); i++)
		if (layouts[i].machine == plt->file->machine)
			layout = &layouts[i];
	if (!layout || !seam_elf_section(plt->file, ".plt", &header))
		return 0;
	for (size_t i = 0; !r && i < plt->slots.n; i++) {
		uint64_t pos = layout->header_bytes + i * layout->stub_bytes;

		if (pos + layout->stub_bytes > header.sh_size)
			break;
		r = name_stub(plt, header.sh_addr + pos, layout->stub_bytes,
			      &plt->slots.items[i]);
	}
	return r;
}

int seam_elf_plt(struct seam_symtab *table, struct seam_arena *arena,
		 const struct seam_elf *file)
{
	struct plt plt = { .file = file, .table = table, .arena = arena };
	int r = find_slots(&plt);

	if (!r)
		r = is_x86(&plt) ? name_x86(&plt) : name_in_order(&plt);
	free(plt.slots.items);
	return r;
}
