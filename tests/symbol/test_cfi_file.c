/* SPDX-License-Identifier: MIT */
/*
 * test_cfi_file.c - the call frame information of files that are whole,
 * stripped, compressed, in memory, cut, and hostile
 */
#include "symbol/elf/cfi_file.h"

#include <sys/auxv.h>

#include "base/file.h"
#include "build.h"
#include "unwind/compile/cfi_rows.h"
#include "unit.h"

static const char source[] =
	"int inner(int n) { volatile char room[64]; room[n] = 1;\n"
	"  return room[n]; }\n"
	"#define F(x) int f##x(int n) { return inner(n) + inner(x); }\n"
	"#define G(x) F(x##0) F(x##1) F(x##2) F(x##3) F(x##4) F(x##5)\n"
	"G(1) G(2) G(3) G(4)\n"
	"int main(int argc, char **argv) { return inner(argc) != 1; }\n";

static struct seam_cfi_file whole;	/* of the program as it is built */
static struct seam_bytes image;		/* its bytes */

static int open_path(struct seam_cfi_file *file, const char *path)
{
	struct seam_err err = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return seam_cfi_file_open(file, fd, &err);
}

static int build_program(void **state)
{
	struct seam_err err = { 0 };
	struct seam_file file;
	uint8_t *copy;

	assert_int_equal(build_enter(state), 0);
	build_write("p.c", source);
	build_run("gcc -g -O1 -o p p.c");
	build_run("objcopy --only-keep-debug p p.debug");
	assert_int_equal(open_path(&whole, "p"), 0);
	assert_int_equal(seam_file_open(&file, "p", &err), 0);
	copy = malloc(file.bytes.size);
	memcpy(copy, file.bytes.data, file.bytes.size);
	image = (struct seam_bytes) { copy, file.bytes.size };
	seam_file_close(&file);
	return 0;
}

static int remove_program(void **state)
{
	seam_cfi_file_close(&whole);
	free((void *)(uintptr_t)image.data);
	return build_leave(state);
}

/* How many functions' rules @eh has at addresses of the segments. */
static size_t n_rows(const struct seam_eh_frame *eh)
{
	struct seam_unwind_table table;
	size_t n;

	assert_int_equal(seam_unwind_table_build(&table, eh, NULL), 0);
	n = table.n;
	seam_unwind_table_fini(&table);
	return n;
}

UNIT_TEST(has_all_that_a_program_has)
{
	uint8_t id[SEAM_BUILD_ID_MAX];
	uint64_t addr, main_addr = build_symbol("p", "main");

	assert_int_equal(whole.debug.entries.size, 0);
	assert_true(whole.eh.header.size > 0);
	assert_true(n_rows(&whole.eh) > 4);
	assert_int_equal(whole.entry, build_symbol("p", "_start"));
	assert_true(seam_cfi_file_is_entry(&whole, whole.entry));
	assert_false(seam_cfi_file_is_entry(&whole, whole.entry - 1));
	assert_false(seam_cfi_file_is_entry(&whole, whole.entry + 96));
	assert_int_equal(whole.build_id_size, build_id("p", id));
	assert_memory_equal(whole.build_id, id, whole.build_id_size);
	assert_true(seam_segments_addr(&whole.segments,
				       build_offset("p", main_addr), &addr));
	assert_int_equal(addr, main_addr);
	assert_false(seam_segments_addr(&whole.segments, UINT64_MAX, &addr));
}

/* What the sections have is what a running program shows. */
UNIT_TEST(section_headers_are_not_needed)
{
	struct seam_cfi_file file;
	Elf64_Ehdr header;
	int fd;

	build_run("cp p stripped && strip -s stripped");
	fd = open("stripped", O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	header.e_shoff = 0;
	header.e_shnum = header.e_shstrndx = 0;
	assert_int_equal(pwrite(fd, &header, sizeof(header), 0),
			 sizeof(header));
	assert_int_equal(seam_cfi_file_open(&file, fd, NULL), 0);
	assert_true(file.eh.ends_at_terminator);
	assert_int_equal(n_rows(&file.eh), n_rows(&whole.eh));
	seam_cfi_file_close(&file);
}

UNIT_TEST(a_program_header_is_not_needed)
{
	struct seam_cfi_file file;

	build_run("gcc -O1 -Wl,--no-eh-frame-hdr -o without p.c");
	assert_int_equal(open_path(&file, "without"), 0);
	assert_int_equal(file.eh.header.size, 0);
	assert_int_equal(n_rows(&file.eh), n_rows(&whole.eh));
	seam_cfi_file_close(&file);
}

/* The same rows, however .debug_frame is stored. */
UNIT_TEST(debug_frame_is_read_in_each_form)
{
	static const char *const forms[] = {
		"none", "zlib-gabi", "zlib-gnu", "zstd",
	};
	struct seam_cfi_file file;
	size_t n = 0;

	build_run("gcc -g -O1 -c -fno-asynchronous-unwind-tables -o q.o p.c");
	build_run("gcc -g -o q q.o");
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(forms); i++) {
		build_run("objcopy --compress-debug-sections=%s q packed",
			  forms[i]);
		assert_int_equal(open_path(&file, "packed"), 0);
		assert_true(file.debug.is_debug_frame);
		if (i == 0)
			n = n_rows(&file.debug);
		assert_true(n > 50);
		assert_int_equal(n_rows(&file.debug), n);
		seam_cfi_file_close(&file);
	}
}

/* A debug file keeps program headers that point to nothing. */
UNIT_TEST(a_separate_debug_file_has_debug_frame_only)
{
	struct seam_cfi_file file;

	build_run("objcopy --only-keep-debug q q.debug");
	build_run("eu-strip -f q.eudebug -o q.stripped q");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(open_path(&file, i ? "q.debug" : "q.eudebug"),
				 0);
		assert_int_equal(file.eh.entries.size, 0);
		assert_true(n_rows(&file.debug) > 50);
		seam_cfi_file_close(&file);
	}
	assert_int_equal(open_path(&file, "q.stripped"), 0);
	assert_int_equal(file.debug.entries.size, 0);
	seam_cfi_file_close(&file);
}

/* What a program has not, its debug file gives it, by build id alone. */
UNIT_TEST(debug_frame_is_taken_from_the_debug_file_of_a_program)
{
	struct seam_cfi_file file, other;
	size_t bytes;

	build_run("strip -o bare q && objcopy --add-gnu-debuglink=q.debug "
		  "bare linked");
	assert_int_equal(open_path(&file, "linked"), 0);
	assert_string_equal(file.debug_link, "q.debug");
	assert_int_equal(file.debug.entries.size, 0);
	bytes = file.n_owned_bytes;
	assert_int_equal(open_path(&other, "q.debug"), 0);
	assert_true(seam_cfi_file_take_debug(&file, &other));
	assert_true(n_rows(&file.debug) > 50);
	assert_int_equal(file.n_owned_bytes - bytes, file.debug.entries.size);
	/* it has one now */
	assert_int_equal(open_path(&other, "q.debug"), 0);
	assert_false(seam_cfi_file_take_debug(&file, &other));
	seam_cfi_file_close(&file);
}

UNIT_TEST(the_vdso_is_read_from_memory)
{
	uint64_t base = getauxval(AT_SYSINFO_EHDR);
	const uint8_t *bytes = (const void *)(uintptr_t)base;
	struct seam_cfi_file file;
	const Elf64_Ehdr *header = (const void *)bytes;

	if (!base)
		return;
	/* its section headers are the last of it */
	assert_int_equal(seam_cfi_file_open_image(&file, (struct seam_bytes) {
		bytes, header->e_shoff + header->e_shnum *
		sizeof(Elf64_Shdr) }, NULL), 0);
	assert_true(n_rows(&file.eh) > 4);
	assert_true(file.build_id_size > 0);
	seam_cfi_file_close(&file);
}

UNIT_TEST(code_is_read_up_to_an_address)
{
	uint64_t start = build_symbol("p", "main"), addr;
	struct seam_cfi_file file;
	uint8_t bytes[7];

	assert_int_equal(open_path(&file, "p"), 0);
	addr = build_offset("p", start);
	assert_int_equal(seam_cfi_file_code_before(&file, start + 3, bytes, 7),
			 7);
	assert_memory_equal(bytes, image.data + addr - 4, 7);
	/* at the start of a segment there are fewer; elsewhere none */
	for (size_t i = 0; i < file.segments.n; i++) {
		const struct seam_segment *s = &file.segments.items[i];

		for (size_t n = 0; n < 9; n++)
			assert_int_equal(seam_cfi_file_code_before(
				&file, s->addr + n, bytes, 7),
				!s->is_executable ? 0 : n < 7 ? n : 7);
	}
	assert_int_equal(seam_cfi_file_code_before(&file, 0, bytes, 7), 0);
	assert_int_equal(seam_cfi_file_code_before(&file, UINT64_MAX, bytes,
						   7), 0);
	/* the same with what was read before */
	seam_cfi_file_keep_code(&file);
	for (int round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < 3000; i++) {
			uint8_t kept[7], read[7];
			size_t n = seam_cfi_file_code_before(&file, start + i,
							     kept, 7);

			assert_int_equal(seam_cfi_file_code_before(
				&whole, start + i, read, 7), n);
			assert_memory_equal(kept + 7 - n, read + 7 - n, n);
		}
	}
	seam_cfi_file_release_fd(&file);
	assert_int_equal(seam_cfi_file_code_before(&file, start + 4, bytes, 6),
			 0);
	assert_int_equal(seam_cfi_file_code_before(&file, start + 9000, bytes,
						   7), 0);
	seam_cfi_file_close(&file);
}

/* --- files that are wrong --- */

static int open_bytes(struct seam_cfi_file *file, const uint8_t *bytes,
		      size_t size)
{
	return seam_cfi_file_open_image(file, (struct seam_bytes) {
		bytes, size }, NULL);
}

/* Whatever was read can be compiled and looked up. */
static void use(struct seam_cfi_file *file)
{
	struct seam_unwind_rows rows;
	uint64_t addr = 0;

	assert_in_range(-seam_unwind_rows_init(&rows, &file->eh, &file->debug),
			0, ENOTSUP);
	for (size_t i = 0; i < file->segments.n; i++)
		for (uint64_t k = 0; k < 64; k++)
			seam_unwind_rows_find(&rows,
				file->segments.items[i].addr + 16 * k);
	seam_segments_addr(&file->segments, 0, &addr);
	seam_unwind_rows_fini(&rows);
}

UNIT_TEST(a_cut_file_is_refused_or_has_less)
{
	for (size_t n = 0; n < image.size; n += n < 1024 ? 1 : 61) {
		struct seam_cfi_file file;
		uint8_t *cut = malloc(n ? n : 1);
		int r;

		memcpy(cut, image.data, n);
		r = open_bytes(&file, cut, n);
		if (n < sizeof(Elf64_Ehdr))
			assert_int_equal(r, -EBADMSG);
		else
			assert_true(r == 0 || r == -ENODATA);
		if (r == 0)
			use(&file);
		seam_cfi_file_close(&file);
		free(cut);
	}
}

UNIT_TEST(any_byte_of_the_headers_may_be_wrong)
{
	static const uint8_t values[] = { 0x00, 0xff };
	const Elf64_Ehdr *header = (const void *)image.data;
	uint8_t *copy = malloc(image.size);

	memcpy(copy, image.data, image.size);
	for (size_t i = 0; i < image.size; i++) {
		struct seam_cfi_file file;

		if (i == 1024)
			i = header->e_shoff;
		for (size_t k = 0; k < SEAM_ARRAY_SIZE(values); k++) {
			copy[i] = values[k];
			if (open_bytes(&file, copy, image.size) == 0)
				use(&file);
			seam_cfi_file_close(&file);
		}
		copy[i] = image.data[i];
	}
	free(copy);
}

/* The first program header that is loaded, in @copy. */
static Elf64_Phdr *first_load(uint8_t *copy)
{
	Elf64_Ehdr *header = (void *)copy;
	Elf64_Phdr *p = (void *)(copy + header->e_phoff);

	while (p->p_type != PT_LOAD)
		p++;
	return p;
}

UNIT_TEST(a_segment_beyond_the_last_address_is_left_out)
{
	uint8_t *copy = malloc(image.size);

	for (int i = 0; i < 3; i++) {
		struct seam_cfi_file file;
		Elf64_Phdr *load;

		memcpy(copy, image.data, image.size);
		load = first_load(copy);
		load->p_offset = i == 1 ? 0x2000 : 0;
		load->p_vaddr = i == 2 ? 0x2000 : 0;
		load->p_filesz = UINT64_MAX - 0x1fff + (i ? 1 : 0);
		assert_int_equal(open_bytes(&file, copy, image.size), 0);
		assert_int_equal(file.segments.n,
				 whole.segments.n - (i ? 1 : 0));
		seam_cfi_file_close(&file);
	}
	free(copy);
}

UNIT_TEST(headers_of_another_size_are_not_read)
{
	uint8_t *copy = malloc(image.size);
	Elf64_Ehdr *header = (void *)copy;
	struct seam_cfi_file file;

	memcpy(copy, image.data, image.size);
	header->e_phentsize++;
	assert_int_equal(open_bytes(&file, copy, image.size), 0);
	assert_int_equal(file.segments.n, 0);
	seam_cfi_file_close(&file);
	header->e_phentsize--;
	header->e_shentsize++;
	assert_int_equal(open_bytes(&file, copy, image.size), 0);
	/* that .eh_frame has a section with its size was not seen */
	assert_true(file.eh.ends_at_terminator);
	assert_false(whole.eh.ends_at_terminator);
	seam_cfi_file_close(&file);
	free(copy);
}

/* Its folder is searched for it: it is no path, and it has an end. */
UNIT_TEST(the_name_of_a_debug_file_is_a_name)
{
	static const char *const commands[] = {
		"printf 'q.debug\\0sums'", "printf '../q.debug\\0sums'",
		"printf %0127d 1", "printf %0300d 1", "printf q.debug",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(commands); i++) {
		struct seam_cfi_file file;

		build_run("%s >link && objcopy --add-section "
			  ".gnu_debuglink=link p named", commands[i]);
		assert_int_equal(open_path(&file, "named"), 0);
		assert_string_equal(file.debug_link, i ? "" : "q.debug");
		seam_cfi_file_close(&file);
	}
	build_run("rm link named");
}

UNIT_TEST(sizes_beyond_the_limits_are_refused)
{
	struct seam_cfi_file file;

	build_run("truncate -s 65M zeros && objcopy --add-section "
		  ".debug_frame=zeros p large");
	assert_int_equal(open_path(&file, "large"), 0);
	assert_int_equal(file.debug.entries.size, 0);
	assert_true(file.eh.entries.size > 0);
	seam_cfi_file_close(&file);
	build_run("objcopy --compress-debug-sections large small");
	assert_int_equal(open_path(&file, "small"), 0);
	assert_int_equal(file.debug.entries.size, 0);
	seam_cfi_file_close(&file);
	build_run("rm large zeros small");
}

UNIT_TEST(other_files_are_refused)
{
	uint8_t *copy = malloc(image.size);
	struct seam_cfi_file file;

	memcpy(copy, image.data, image.size);
	copy[EI_CLASS] = ELFCLASS32;
	assert_int_equal(open_bytes(&file, copy, image.size), -ENOTSUP);
	copy[EI_CLASS] = ELFCLASS64;
	copy[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(open_bytes(&file, copy, image.size), -ENOTSUP);
	free(copy);
	assert_int_equal(open_path(&file, "p.c"), -EBADMSG);
	assert_int_equal(open_path(&file, "/dev/null"), -EBADMSG);
	assert_int_equal(open_bytes(&file, image.data,
				    SEAM_CFI_MAX_IMAGE + 1), -EFBIG);
}

UNIT_MAIN(build_program, remove_program, NULL, NULL)
