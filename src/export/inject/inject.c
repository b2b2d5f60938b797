/* SPDX-License-Identifier: MIT */
/* inject.c - an ELF file in one pass over its sections; see inject.h */
#include "export/inject/inject.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "export/inject/inject_tables.h"

enum {
	TEXT_OFFSET = 0x80,
	CODE_ALIGN = 16,
	BUILD_ID_BYTES = 20,
};

enum {
	NONE, TEXT, EH_FRAME, EH_FRAME_HDR, BUILD_ID, SYMTAB, STRTAB,
	DEBUG_ABBREV, DEBUG_INFO, DEBUG_ARANGES, DEBUG_LINE, SHSTRTAB,
	N_SECTIONS,
};

static const struct {
	const char *name;
	uint32_t type;
	uint64_t flags;
	uint64_t align;
	uint32_t link;
	uint64_t entry_size;
} sections[N_SECTIONS] = {
	[NONE] = { "", SHT_NULL, 0, 0, 0, 0 },
	[TEXT] = { ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
		   CODE_ALIGN, 0, 0 },
	[EH_FRAME] = { ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 8, 0, 0 },
	[EH_FRAME_HDR] = { ".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, 4, 0, 0 },
	[BUILD_ID] = { ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 4, 0, 0 },
	[SYMTAB] = { ".symtab", SHT_SYMTAB, 0, 8, STRTAB, sizeof(Elf64_Sym) },
	[STRTAB] = { ".strtab", SHT_STRTAB, 0, 1, 0, 0 },
	[DEBUG_ABBREV] = { ".debug_abbrev", SHT_PROGBITS, 0, 1, 0, 0 },
	[DEBUG_INFO] = { ".debug_info", SHT_PROGBITS, 0, 1, 0, 0 },
	[DEBUG_ARANGES] = { ".debug_aranges", SHT_PROGBITS, 0, 1, 0, 0 },
	[DEBUG_LINE] = { ".debug_line", SHT_PROGBITS, 0, 1, 0, 0 },
	[SHSTRTAB] = { ".shstrtab", SHT_STRTAB, 0, 1, 0, 0 },
};

/* The file under construction: @parts are appended to @out. */
struct elf_building {
	struct seam_inject_buffer out;
	struct seam_inject_buffer parts[N_SECTIONS];
	Elf64_Shdr headers[N_SECTIONS];
	struct seam_inject_function *functions;
	size_t n;
	struct seam_inject_fdes fdes;
	uint64_t n_bad_tables;
};

static uint64_t align_up(uint64_t v, uint64_t align)
{
	return (v + align - 1) / align * align;
}

/* Append a section's part to the file. */
static void place(struct elf_building *b, int section)
{
	struct seam_inject_buffer *part = &b->parts[section];
	Elf64_Shdr *header = &b->headers[section];
	bool is_loaded = sections[section].flags & SHF_ALLOC;

	seam_inject_align(&b->out, (size_t)sections[section].align);
	*header = (Elf64_Shdr) {
		.sh_name = (Elf64_Word)b->parts[SHSTRTAB].data.n,
		.sh_type = sections[section].type,
		.sh_flags = sections[section].flags,
		.sh_addr = is_loaded ? b->out.data.n : 0,
		.sh_offset = b->out.data.n,
		.sh_link = sections[section].link,
		.sh_addralign = sections[section].align,
		.sh_entsize = sections[section].entry_size,
	};
	seam_inject_string(&b->parts[SHSTRTAB], sections[section].name);
	/* After the line above: .shstrtab, the last one, has its own name. */
	header->sh_size = part->data.n;
	seam_inject_put(&b->out, part->data.items, part->data.n);
	b->out.is_out_of_memory |= part->is_out_of_memory;
}

static void put_zeros(struct seam_inject_buffer *out, uint64_t n)
{
	static const uint8_t zeros[4096];

	for (; n && !out->is_out_of_memory; ) {
		size_t some = n < sizeof(zeros) ? (size_t)n : sizeof(zeros);

		seam_inject_put(out, zeros, some);
		n -= some;
	}
}

static void put_code(struct elf_building *b)
{
	struct seam_inject_buffer *text = &b->parts[TEXT];

	for (size_t i = 0; i < b->n; i++) {
		struct seam_inject_function *f = &b->functions[i];

		seam_inject_align(text, CODE_ALIGN);
		f->file_offset = TEXT_OFFSET + text->data.n;
		if (f->code.size == f->size)
			seam_inject_put(text, f->code.data, f->code.size);
		else
			put_zeros(text, f->size);
	}
}

static void put_symbols(struct elf_building *b)
{
	seam_inject_u8(&b->parts[STRTAB], 0);
	seam_inject_put(&b->parts[SYMTAB], &(Elf64_Sym) { 0 },
			sizeof(Elf64_Sym));
	for (size_t i = 0; i < b->n; i++) {
		const struct seam_inject_function *f = &b->functions[i];
		Elf64_Sym symbol = {
			.st_name = (Elf64_Word)b->parts[STRTAB].data.n,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = TEXT,
			.st_value = f->file_offset,
			.st_size = f->size,
		};

		seam_inject_string(&b->parts[STRTAB], f->name);
		seam_inject_put(&b->parts[SYMTAB], &symbol, sizeof(symbol));
	}
}

/* A hash of the contents: equal files have equal build ids. */
static void put_build_id(struct elf_building *b)
{
	struct seam_inject_buffer *note = &b->parts[BUILD_ID];
	uint64_t id[3];

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(id); i++) {
		id[i] = seam_hash_stable(b->out.data.items, b->out.data.n, i);
		id[i] = seam_hash_stable(b->parts[STRTAB].data.items,
					 b->parts[STRTAB].data.n, id[i]);
	}
	seam_inject_u32(note, sizeof("GNU"));
	seam_inject_u32(note, BUILD_ID_BYTES);
	seam_inject_u32(note, NT_GNU_BUILD_ID);
	seam_inject_string(note, "GNU");
	seam_inject_put(note, id, BUILD_ID_BYTES);
}

static void put_headers(struct elf_building *b, uint32_t elf_machine)
{
	Elf64_Ehdr header = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
			     __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ?
			     ELFDATA2LSB : ELFDATA2MSB, EV_CURRENT },
		.e_type = ET_DYN, .e_machine = (Elf64_Half)elf_machine,
		.e_version = EV_CURRENT, .e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = N_SECTIONS,
		.e_shstrndx = SHSTRTAB,
	};
	const Elf64_Shdr *last = &b->headers[BUILD_ID];
	Elf64_Phdr load = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_align = 0x1000,
		.p_filesz = last->sh_offset + last->sh_size,
		.p_memsz = last->sh_offset + last->sh_size,
	};

	seam_inject_align(&b->out, 8);
	header.e_shoff = b->out.data.n;
	seam_inject_put(&b->out, b->headers, sizeof(b->headers));
	if (b->out.is_out_of_memory)
		return;
	memcpy(b->out.data.items, &header, sizeof(header));
	memcpy(b->out.data.items + sizeof(header), &load, sizeof(load));
}

static void build(struct elf_building *b, uint32_t elf_machine)
{
	uint64_t frame_addr;

	put_zeros(&b->out, TEXT_OFFSET);
	seam_inject_string(&b->parts[SHSTRTAB], "");
	put_code(b);
	place(b, TEXT);
	frame_addr = align_up(b->out.data.n, sections[EH_FRAME].align);
	seam_inject_frames(&b->parts[EH_FRAME], &b->fdes, b->functions, b->n,
			   frame_addr, &b->n_bad_tables);
	place(b, EH_FRAME);
	seam_inject_frame_header(&b->parts[EH_FRAME_HDR], &b->fdes,
				 align_up(b->out.data.n, 4), frame_addr);
	place(b, EH_FRAME_HDR);
	put_symbols(b);
	put_build_id(b);
	place(b, BUILD_ID);
	place(b, SYMTAB);
	b->headers[SYMTAB].sh_info = 1;		/* the first global symbol */
	place(b, STRTAB);
	seam_inject_debug(&b->parts[DEBUG_ABBREV], &b->parts[DEBUG_INFO],
			  &b->parts[DEBUG_ARANGES], &b->parts[DEBUG_LINE],
			  b->functions, b->n, TEXT_OFFSET,
			  TEXT_OFFSET + b->parts[TEXT].data.n);
	for (int i = DEBUG_ABBREV; i < N_SECTIONS; i++)
		place(b, i);
	put_headers(b, elf_machine);
}

int seam_inject_elf(struct seam_inject_file *file,
		    struct seam_inject_function *functions, size_t n,
		    uint32_t elf_machine, struct seam_err *err)
{
	struct elf_building *b = calloc(1, sizeof(*b));
	uint64_t total = 0;
	int r = 0;

	*file = (struct seam_inject_file) { 0 };
	for (size_t i = 0; i < n; i++)
		if (__builtin_add_overflow(total, functions[i].size, &total))
			total = UINT64_MAX;
	if (total > UINT32_MAX / 2)
		r = seam_err_set(err, -EOVERFLOW, "too much code for one file");
	else if (!b)
		r = seam_err_no_memory(err);
	if (r)
		goto out;
	b->functions = functions;
	b->n = n;
	build(b, elf_machine);
	if (b->out.is_out_of_memory) {
		free(b->out.data.items);
		r = seam_err_no_memory(err);
	} else {
		*file = (struct seam_inject_file) {
			.bytes = b->out.data.items, .n = b->out.data.n,
			.cap = b->out.data.cap,
			.n_bad_tables = b->n_bad_tables,
		};
	}
	for (int i = 0; i < N_SECTIONS; i++)
		free(b->parts[i].data.items);
	free(b->fdes.list.items);
out:
	free(b);
	return r;
}

void seam_inject_fini(struct seam_inject_file *file)
{
	free(file->bytes);
	*file = (struct seam_inject_file) { 0 };
}
