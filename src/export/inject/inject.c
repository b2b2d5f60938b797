/* SPDX-License-Identifier: MIT */
/*
 * inject.c - the sections of an ELF file, written by libelf; see inject.h
 *
 * The layout is ours and not libelf's: addresses of the file are offsets.
 */
#include "export/inject/inject.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/radix_sort.h"
#include "model/profile/profile.h"

enum {
	TEXT_OFFSET = 0x80,
	CODE_ALIGN = 16,
	BUILD_ID_BYTES = 20,
};

_Static_assert(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) <= TEXT_OFFSET,
	       "headers come before the code");

enum {
	NONE, TEXT, EH_FRAME, EH_FRAME_HDR, BUILD_ID, SYMTAB, STRTAB, SHSTRTAB,
	N_SECTIONS,
};

static const struct {
	const char *name;
	uint32_t type;
	uint64_t flags;
	uint64_t align;
	uint32_t link, info;
	uint64_t entry_size;
} sections[N_SECTIONS] = {
	[TEXT] = { ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
		   CODE_ALIGN, 0, 0, 0 },
	[EH_FRAME] = { ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 8, 0, 0, 0 },
	[EH_FRAME_HDR] = { ".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, 4, 0, 0,
			   0 },
	[BUILD_ID] = { ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 4, 0, 0, 0 },
	/* info: the first global symbol */
	[SYMTAB] = { ".symtab", SHT_SYMTAB, 0, 8, STRTAB, 1,
		     sizeof(Elf64_Sym) },
	[STRTAB] = { ".strtab", SHT_STRTAB, 0, 1, 0, 0, 0 },
	[SHSTRTAB] = { ".shstrtab", SHT_STRTAB, 0, 1, 0, 0, 0 },
};

struct fde {
	uint64_t code_addr, fde_addr;
};

/* The file under construction. */
struct elf_building {
	SEAM_ARRAY(uint8_t) parts[N_SECTIONS];	/* the sections' contents */
	uint64_t offsets[N_SECTIONS];
	SEAM_ARRAY(struct fde) fdes;
	uint64_t n_bad_tables;
	bool is_out_of_memory;		/* what was put is incomplete */
};

static void put(struct elf_building *b, int section, const void *bytes,
		size_t size)
{
	b->is_out_of_memory = b->is_out_of_memory ||
		!SEAM_ARRAY_EXTEND(&b->parts[section], bytes, size);
}

static void put_u8(struct elf_building *b, int section, uint8_t v)
{
	put(b, section, &v, sizeof(v));
}

static void put_u32(struct elf_building *b, int section, uint32_t v)
{
	put(b, section, &v, sizeof(v));
}

static void put_string(struct elf_building *b, int section, const char *s)
{
	put(b, section, s, strlen(s) + 1);
}

static uint64_t align_up(uint64_t v, uint64_t align)
{
	return (v + align - 1) / align * align;
}

static void align(struct elf_building *b, int section, size_t to)
{
	while (!b->is_out_of_memory && b->parts[section].n % to)
		put_u8(b, section, 0);
}

/* Where @section begins: after the one before it, which is complete. */
static void place(struct elf_building *b, int section)
{
	b->offsets[section] = section == TEXT ? TEXT_OFFSET :
		align_up(b->offsets[section - 1] + b->parts[section - 1].n,
			 sections[section].align);
}

/* -- unwinding tables --------------------------------------------------- */

enum { RELATIVE = DW_EH_PE_pcrel | DW_EH_PE_sdata4 };

/* Whether the FDEs of a CIE have relative addresses of 4 bytes. */
static bool is_relative(struct seam_cursor cie)
{
	uint8_t version = seam_cursor_u8(&cie);
	const char *augmentation = seam_cursor_cstr(&cie);

	if (cie.error || *augmentation != 'z')
		return false;
	seam_cursor_uleb128(&cie);	/* alignment of code, of data */
	seam_cursor_sleb128(&cie);
	if (version == 1)
		seam_cursor_u8(&cie);	/* register of the return address */
	else
		seam_cursor_uleb128(&cie);
	seam_cursor_uleb128(&cie);	/* bytes of augmentation data */
	for (const char *a = augmentation + 1; *a && !cie.error; a++) {
		uint8_t encoding = *a == 'S' || *a == 'B' ? 0 :
				   seam_cursor_u8(&cie);

		if (*a == 'R')
			return !cie.error && encoding == RELATIVE;
		if (*a != 'L' && *a != 'S' && *a != 'B')
			return false;
	}
	return false;
}

/* One table, and its copy in the file. */
struct frames {
	struct elf_building *b;
	const struct seam_inject_function *function;
	uint8_t *copy;			/* in the section */
	uint64_t addr;			/* of the copy, in the file */
};

/*
 * Relocate the FDE at @entry, with its address at @field of the table, to the
 * code in the file.  False when it covers other code than the function's.
 */
static bool move_fde(struct frames *f, struct seam_cursor body, size_t entry,
		     size_t field)
{
	int64_t was = (int32_t)seam_cursor_u32(&body);
	uint32_t size = seam_cursor_u32(&body);
	/* Offset in the code; the field was at eh_frame_offset + field. */
	int64_t in_code = (int64_t)(f->function->eh_frame_offset +
				    field) + was;
	int64_t target = (int64_t)f->function->file_offset + in_code;
	int64_t relative = target - (int64_t)(f->addr + field);
	int32_t narrow = (int32_t)relative;
	struct fde fde = { (uint64_t)target, f->addr + entry };

	if (body.error || in_code < 0 ||
	    (uint64_t)in_code + size > f->function->size || narrow != relative)
		return false;
	if (!SEAM_ARRAY_ADD(&f->b->fdes, fde))
		f->b->is_out_of_memory = true;
	memcpy(f->copy + field, &narrow, sizeof(narrow));
	return true;
}

/*
 * Relocate all FDEs of one function's table.  False when it has an unknown
 * entry, and then *@size is not set.  Else *@size is the table's size without
 * a terminator.
 */
static bool move_table(struct frames *f, size_t *size)
{
	struct seam_bytes table = f->function->eh_frame;
	struct seam_cursor c = seam_cursor_over(table, SEAM_NATIVE);
	bool has_relative = false;

	for (*size = 0; seam_cursor_left(&c) >= 4; *size = c.pos) {
		size_t entry = c.pos;
		uint32_t length = seam_cursor_u32(&c);
		struct seam_cursor body;
		uint32_t id;

		if (!length)
			return true;
		body = seam_cursor_split(&c, length);
		id = seam_cursor_u32(&body);
		if (body.error)
			return false;
		if (!id)
			has_relative = is_relative(body);
		else if (!has_relative || !move_fde(f, body, entry, entry + 8))
			return false;
	}
	return true;
}

/*
 * .eh_frame, and the entries that .eh_frame_hdr lists.  Tables that cannot be
 * copied are counted.
 */
static void put_frames(struct elf_building *b,
		       const struct seam_inject_function *functions, size_t n)
{
	place(b, EH_FRAME);
	for (size_t i = 0; i < n; i++) {
		size_t start = b->parts[EH_FRAME].n, n_fdes = b->fdes.n, size;
		struct frames f = {
			.b = b, .function = &functions[i],
			.addr = b->offsets[EH_FRAME] + start,
		};

		if (!functions[i].eh_frame.size)
			continue;
		put(b, EH_FRAME, functions[i].eh_frame.data,
		    functions[i].eh_frame.size);
		if (b->is_out_of_memory)
			return;
		f.copy = b->parts[EH_FRAME].items + start;
		if (move_table(&f, &size)) {
			b->parts[EH_FRAME].n = start + size;
			align(b, EH_FRAME, 4);
			continue;
		}
		/* Remove the table and its FDEs. */
		b->parts[EH_FRAME].n = start;
		b->fdes.n = n_fdes;
		b->n_bad_tables++;
	}
	put_u32(b, EH_FRAME, 0);		/* terminator */
}

static int compare_fdes(const void *a, const void *b)
{
	const struct fde *x = a, *y = b;

	return SEAM_COMPARE(x->code_addr, y->code_addr);
}

static void put_frame_header(struct elf_building *b)
{
	uint64_t addr;

	place(b, EH_FRAME_HDR);
	addr = b->offsets[EH_FRAME_HDR];
	SEAM_ARRAY_SORT(&b->fdes, compare_fdes);
	put_u8(b, EH_FRAME_HDR, 1);		/* version */
	put_u8(b, EH_FRAME_HDR, RELATIVE);	/* encoding of eh_frame_ptr, */
	put_u8(b, EH_FRAME_HDR, DW_EH_PE_udata4);	/* of fde_count, */
	/* of the table */
	put_u8(b, EH_FRAME_HDR, DW_EH_PE_datarel | DW_EH_PE_sdata4);
	put_u32(b, EH_FRAME_HDR,
		(uint32_t)(b->offsets[EH_FRAME] - (addr + 4)));
	put_u32(b, EH_FRAME_HDR, (uint32_t)b->fdes.n);
	for (size_t i = 0; i < b->fdes.n; i++) {
		const struct fde *fde = &b->fdes.items[i];

		put_u32(b, EH_FRAME_HDR, (uint32_t)(fde->code_addr - addr));
		put_u32(b, EH_FRAME_HDR, (uint32_t)(fde->fde_addr - addr));
	}
}

/* -- sections ----------------------------------------------------------- */

/* Code without bytes is zeros. */
static void put_code(struct elf_building *b,
		     struct seam_inject_function *functions, size_t n)
{
	place(b, TEXT);
	for (size_t i = 0; i < n; i++) {
		struct seam_inject_function *f = &functions[i];
		uint8_t *to;

		align(b, TEXT, CODE_ALIGN);
		f->file_offset = TEXT_OFFSET + b->parts[TEXT].n;
		if (b->is_out_of_memory ||
		    !SEAM_ARRAY_RESERVE(&b->parts[TEXT], f->size)) {
			b->is_out_of_memory = true;
			return;
		}
		to = b->parts[TEXT].items + b->parts[TEXT].n;
		if (f->size && f->code.size == f->size)
			memcpy(to, f->code.data, f->size);
		else if (f->size)
			memset(to, 0, f->size);
		b->parts[TEXT].n += f->size;
	}
}

static void put_symbols(struct elf_building *b,
			const struct seam_inject_function *functions, size_t n)
{
	put_u8(b, STRTAB, 0);
	put(b, SYMTAB, &(Elf64_Sym) { 0 }, sizeof(Elf64_Sym));
	for (size_t i = 0; i < n; i++) {
		const struct seam_inject_function *f = &functions[i];
		Elf64_Sym symbol = {
			.st_name = (Elf64_Word)b->parts[STRTAB].n,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = TEXT,
			.st_value = f->file_offset,
			.st_size = f->size,
		};

		put_string(b, STRTAB, f->name);
		put(b, SYMTAB, &symbol, sizeof(symbol));
	}
}

/* A hash of the contents: equal files have equal build ids. */
static void put_build_id(struct elf_building *b)
{
	static const int hashed[] = { TEXT, EH_FRAME, SYMTAB, STRTAB };
	uint64_t id[3];

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(id); i++) {
		id[i] = i;
		for (size_t s = 0; s < SEAM_ARRAY_SIZE(hashed); s++)
			id[i] = seam_hash_stable(b->parts[hashed[s]].items,
						 b->parts[hashed[s]].n, id[i]);
	}
	put_u32(b, BUILD_ID, sizeof("GNU"));
	put_u32(b, BUILD_ID, BUILD_ID_BYTES);
	put_u32(b, BUILD_ID, NT_GNU_BUILD_ID);
	put_string(b, BUILD_ID, "GNU");
	put(b, BUILD_ID, id, BUILD_ID_BYTES);
}

static void build(struct elf_building *b,
		  struct seam_inject_function *functions, size_t n)
{
	put_code(b, functions, n);
	put_frames(b, functions, n);
	put_frame_header(b);
	put_symbols(b, functions, n);
	put_build_id(b);
	put_u8(b, SHSTRTAB, 0);
	for (int i = TEXT; i < N_SECTIONS; i++)
		put_string(b, SHSTRTAB, sections[i].name);
	for (int i = BUILD_ID; i < N_SECTIONS; i++)
		place(b, i);
}

/* -- the file ----------------------------------------------------------- */

static bool add_section(Elf *elf, struct elf_building *b, int section,
			uint32_t name)
{
	bool is_loaded = sections[section].flags & SHF_ALLOC;
	Elf_Scn *scn = elf_newscn(elf);
	Elf_Data *data = scn ? elf_newdata(scn) : NULL;
	GElf_Shdr header = {
		.sh_name = name, .sh_type = sections[section].type,
		.sh_flags = sections[section].flags,
		.sh_addr = is_loaded ? b->offsets[section] : 0,
		.sh_offset = b->offsets[section], .sh_size = b->parts[section].n,
		.sh_link = sections[section].link,
		.sh_info = sections[section].info,
		.sh_addralign = sections[section].align,
		.sh_entsize = sections[section].entry_size,
	};

	if (!data)
		return false;
	/* ELF_T_BYTE: the numbers are in this machine's order already */
	data->d_buf = b->parts[section].items;
	data->d_size = b->parts[section].n;
	data->d_align = sections[section].align;
	return gelf_update_shdr(scn, &header);
}

static bool write_elf(Elf *elf, struct elf_building *b, uint32_t elf_machine)
{
	uint64_t loaded = b->offsets[BUILD_ID] + b->parts[BUILD_ID].n;
	GElf_Phdr load = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_align = 0x1000,
		.p_filesz = loaded, .p_memsz = loaded,
	};
	uint32_t name = 1;
	GElf_Ehdr header;

	if (!gelf_newehdr(elf, ELFCLASS64) || !gelf_newphdr(elf, 1) ||
	    !gelf_getehdr(elf, &header))
		return false;
	header.e_ident[EI_DATA] =
		__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB :
							    ELFDATA2MSB;
	header.e_type = ET_DYN;
	header.e_machine = (GElf_Half)elf_machine;
	header.e_version = EV_CURRENT;
	header.e_phoff = sizeof(Elf64_Ehdr);
	header.e_shoff = align_up(b->offsets[SHSTRTAB] + b->parts[SHSTRTAB].n,
				  8);
	header.e_shstrndx = SHSTRTAB;
	elf_flagelf(elf, ELF_C_SET, ELF_F_LAYOUT);
	for (int i = TEXT; i < N_SECTIONS; i++) {
		if (!add_section(elf, b, i, name))
			return false;
		name += (uint32_t)strlen(sections[i].name) + 1;
	}
	return gelf_update_ehdr(elf, &header) &&
	       gelf_update_phdr(elf, 0, &load) &&
	       elf_update(elf, ELF_C_WRITE) >= 0;
}

static int write_file(int fd, struct elf_building *b, uint32_t elf_machine,
		      struct seam_err *err)
{
	Elf *elf;
	int r = 0;

	elf_version(EV_CURRENT);
	errno = 0;
	elf = elf_begin(fd, ELF_C_WRITE, NULL);
	if (!elf || !write_elf(elf, b, elf_machine)) {
		r = errno ? -errno : -EIO;
		seam_err_set(err, r, "cannot write an ELF file: %s",
			     errno ? strerror(errno) : elf_errmsg(-1));
	}
	elf_end(elf);
	return r;
}

int seam_inject_elf(int fd, struct seam_inject_function *functions, size_t n,
		    uint32_t elf_machine, uint64_t *n_bad_tables,
		    struct seam_err *err)
{
	struct elf_building b = { .n_bad_tables = 0 };
	uint64_t total = 0;
	int r;

	for (size_t i = 0; i < n; i++)
		if (__builtin_add_overflow(total, functions[i].size, &total))
			total = UINT64_MAX;
	if (total > UINT32_MAX / 2)
		return seam_err_set(err, -EOVERFLOW,
				    "too much code for one file");
	build(&b, functions, n);
	r = b.is_out_of_memory ? seam_err_no_memory(err) :
	    write_file(fd, &b, elf_machine, err);
	*n_bad_tables += b.n_bad_tables;
	for (int i = 0; i < N_SECTIONS; i++)
		free(b.parts[i].items);
	free(b.fdes.items);
	return r;
}

/* -- all code of a recording -------------------------------------------- */

/* Pids are reused: a chain of parents may have a cycle. */
enum { MAX_ANCESTORS = 64 };

static int add_function(struct seam_inject_code *code, uint32_t object)
{
	const struct seam_jit_object *o =
		seam_jit_code_object(code->profile->jit->code, object);
	size_t n = code->functions.n;

	if (code->function_of[object] != SEAM_NONE)
		return 0;
	if (!SEAM_ARRAY_ADD(&code->functions, (struct seam_inject_function) {
			.name = o->name, .size = o->size, .code = o->code,
			.eh_frame = o->eh_frame,
			.eh_frame_offset = o->eh_frame_offset,
		}))
		return -ENOMEM;
	code->function_of[object] = (uint32_t)n;
	return 0;
}

/* -- files -------------------------------------------------------------- */

static int make_file(struct seam_inject_code *code,
		     struct seam_inject_process *process, uint32_t elf_machine,
		     struct seam_err *err)
{
	const char *name = basename(process->path);
	int r, fd = code->create(code->context, name, err);
	struct stat st = { 0 };

	if (fd < 0)
		return fd;
	r = seam_inject_elf(fd, code->functions.items + process->first,
			    process->n, elf_machine, &code->n_bad_tables, err);
	if (r == 0 && fstat(fd, &st))
		r = seam_err_errno(err, "cannot read '%s'", name);
	if (close(fd) && r == 0)
		r = seam_err_errno(err, "cannot write '%s'", name);
	process->maj = major(st.st_dev);
	process->min = minor(st.st_dev);
	process->ino = st.st_ino;
	return r;
}

static struct seam_inject_process *find_process(struct seam_inject_code *code,
						int32_t pid)
{
	for (size_t i = 0; i < code->processes.n; i++)
		if (code->processes.items[i].pid == pid)
			return &code->processes.items[i];
	return NULL;
}

/* -- ranges ------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	const struct seam_inject_range *x = a, *y = b;

	return SEAM_COMPARE(x->start_addr, y->start_addr);
}

static void seal_ranges(struct seam_inject_code *code,
			const struct seam_inject_process *process)
{
	struct seam_inject_range *r = code->ranges.items +
				      process->first_range;
	uint64_t reach = 0;

	seam_array_sort(r, process->n_ranges, sizeof(*r), by_address);
	for (size_t i = 0; i < process->n_ranges; i++) {
		if (r[i].end_addr > reach)
			reach = r[i].end_addr;
		r[i].reach = reach;
	}
}

/* Scan backwards from the last range that begins before @end. */
static bool overlaps(const struct seam_inject_code *code,
		     const struct seam_inject_process *process,
		     uint64_t begin, uint64_t end, uint64_t time_ns)
{
	const struct seam_inject_range *r = code->ranges.items +
					    process->first_range;
	size_t n = SEAM_ARRAY_SEARCH(i, process->n_ranges,
				     r[i].start_addr < end);

	while (n-- > 0 && r[n].reach > begin)
		if (r[n].end_addr > begin && r[n].time_ns <= time_ns)
			return true;
	return false;
}

/* The parent of the last process with @pid that has one; -1: none. */
static int32_t parent_of(const struct seam_profile *profile, int32_t pid)
{
	const struct seam_process *processes = profile->processes.items;

	for (size_t i = profile->processes.n; i-- > 0;)
		if (processes[i].pid == pid && processes[i].parent != SEAM_NONE)
			return processes[processes[i].parent].pid;
	return -1;
}

bool seam_inject_code_is_hidden_by(void *context,
				   const struct seam_perf_mapping *mapping,
				   uint64_t time_ns)
{
	struct seam_inject_code *code = context;
	int32_t pid = mapping->pid;

	if (seam_module_kind_of(mapping->filename) != SEAM_MODULE_ANON)
		return false;
	for (int i = 0; pid >= 0 && i < MAX_ANCESTORS; i++) {
		const struct seam_inject_process *process =
			find_process(code, pid);

		if (process && overlaps(code, process, mapping->addr,
					mapping->addr + mapping->len, time_ns))
			return true;
		pid = parent_of(code->profile, pid);
	}
	return false;
}

/* -- all ---------------------------------------------------------------- */

static struct seam_inject_process *add_process(struct seam_inject_code *code,
					       int32_t pid, const char *folder)
{
	struct seam_inject_process *p = SEAM_ARRAY_PUSH(&code->processes);
	char *path = NULL;
	int n = asprintf(&path, "%s/jitted-%" PRId32 ".so", folder, pid);

	if (p)
		*p = (struct seam_inject_process) {
			.pid = pid, .first = code->functions.n,
			.first_range = code->ranges.n,
			.path = n < 0 ? NULL : seam_arena_text(&code->arena,
							path, (size_t)n),
		};
	if (n >= 0)
		free(path);
	return p && p->path ? p : NULL;
}

/* Placements are sorted by process. */
static int take_placements(struct seam_inject_code *code, const char *folder)
{
	struct seam_inject_process *process = NULL;

	for (size_t i = 0; i < code->placements.list.n; i++) {
		const struct seam_jit_placement *p =
			&code->placements.list.items[i];

		if (!process || process->pid != p->pid)
			process = add_process(code, p->pid, folder);
		if (!process || (p->object != SEAM_NONE &&
				 add_function(code, p->object)) ||
		    !SEAM_ARRAY_ADD(&code->ranges, (struct seam_inject_range) {
				p->start_addr, p->start_addr + p->size,
				p->time_ns, 0 }))
			return -ENOMEM;
		process->n = code->functions.n - process->first;
		process->n_ranges = code->ranges.n - process->first_range;
	}
	return 0;
}

static void add_mapping(struct seam_inject_code *code,
			const struct seam_jit_placement *p)
{
	const struct seam_inject_process *process = find_process(code, p->pid);
	struct seam_perf_added *slot = SEAM_ARRAY_PUSH(&code->added);

	*slot = (struct seam_perf_added) {
		.time_ns = p->time_ns, .pid = p->pid, .addr = p->start_addr,
		.len = p->size, .filename = "//anon",
	};
	if (p->object == SEAM_NONE)
		return;
	slot->pgoff = p->offset + code->functions.items[
			code->function_of[p->object]].file_offset;
	slot->filename = process->path;
	slot->maj = process->maj;
	slot->min = process->min;
	slot->ino = process->ino;
}

/* The machine in the dump of process @pid; perf maps have none. */
static uint32_t machine_of(const struct seam_inject_code *code, int32_t pid)
{
	for (size_t i = 0; i < code->placements.list.n; i++) {
		const struct seam_jit_placement *p =
			&code->placements.list.items[i];
		uint32_t machine = p->pid != pid || p->object == SEAM_NONE ?
			0 : seam_jit_code_object(code->profile->jit->code,
						 p->object)->elf_machine;

		if (machine)
			return machine;
	}
	return code->profile->elf_machine;
}

static int make_mappings(struct seam_inject_code *code, struct seam_err *err)
{
	size_t n = code->placements.list.n;

	if (SEAM_RADIX_SORT(&code->placements.list, time_ns) ||
	    !SEAM_ARRAY_RESERVE(&code->added, n + 1))
		return seam_err_no_memory(err);
	for (size_t i = 0; i < n; i++)
		add_mapping(code, &code->placements.list.items[i]);
	return 0;
}

int seam_inject_code_make(struct seam_inject_code *code, const char *path,
			  struct seam_err *err)
{
	size_t n = seam_jit_code_count(code->profile->jit->code);
	int r = 0;

	code->function_of = malloc((n + 1) * sizeof(*code->function_of));
	if (!code->function_of)
		return seam_err_no_memory(err);
	memset(code->function_of, 0xff, n * sizeof(*code->function_of));
	if (seam_jit_placements_read(&code->placements,
				     code->profile->jit->code) ||
	    take_placements(code, path))
		return seam_err_no_memory(err);
	for (size_t i = 0; r == 0 && i < code->processes.n; i++) {
		struct seam_inject_process *p = &code->processes.items[i];

		seal_ranges(code, p);
		r = make_file(code, p, machine_of(code, p->pid), err);
	}
	return r ? r : make_mappings(code, err);
}

void seam_inject_code_fini(struct seam_inject_code *code)
{
	free(code->placements.list.items);
	free(code->functions.items);
	free(code->processes.items);
	free(code->ranges.items);
	free(code->added.items);
	free(code->function_of);
	seam_arena_fini(&code->arena);
}
