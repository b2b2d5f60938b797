/* SPDX-License-Identifier: MIT */
/*
 * test_profile_modules.c - the files and the code of a recording, for exporters
 *
 * Recordings are made by hand.  What an exporter writes must be in the profile
 * when the recording is closed.
 */
#include "model/perf/load_perf.h"

#include "../folder.h"
#include "../perf_bytes.h"
#include "model/annotate/annotation.h"
#include "model/jit/jit_sources.h"
#include "unit.h"

#define USER ((uint64_t)PERF_CONTEXT_USER)

static void put_mmap2_id(struct bytes *b, uint64_t addr, const char *name,
			 uint8_t first, uint64_t time)
{
	const uint8_t id[20] = { first, 2, 3 };
	size_t at = begin_record(b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER |
				 PERF_RECORD_MISC_MMAP_BUILD_ID);

	put_u32(b, 7);
	put_u32(b, 7);
	put_u64(b, addr);
	put_u64(b, 0x1000);
	put_u64(b, 0x2000);
	put_u32(b, sizeof(id));
	put(b, id, sizeof(id));
	put_u32(b, 5);
	put_u32(b, 2);
	put_name(b, name);
	put_stamp(b, 7, 7, time);
	end_record(b, at);
}

/* Times of both events of a file of make_file() are CLOCK_MONOTONIC. */
static void use_monotonic(struct bytes *file)
{
	for (size_t attr = 120; attr <= 264; attr += 144) {
		set_n(file, attr + 40,
		      UINT64_C(1) << SEAM_PERF_ATTR_SAMPLE_ID_ALL |
		      UINT64_C(1) << SEAM_PERF_ATTR_FREQ |
		      UINT64_C(1) << SEAM_PERF_ATTR_USE_CLOCKID, 8);
		set_n(file, attr + 92, CLOCK_MONOTONIC, 4);
	}
}

/* Takes @data.  @with_samples: as a report needs it, else as inject does. */
static struct seam_profile load(struct bytes data, bool with_samples)
{
	const char *const paths[] = { folder };
	struct bytes made = make_file(&data);
	struct seam_file file = { .bytes = { made.data, made.size } };
	struct seam_symbols *symbols = with_samples ? seam_symbols_new(
		&(struct seam_symbols_options) { 0 }) : NULL;
	struct seam_profile p;

	use_monotonic(&made);
	assert_int_equal(seam_profile_init(&p), 0);
	assert_int_equal(seam_load_perf(&p, &(struct seam_perf_input) {
		.data = &file, .jit = { .paths = paths, .n_paths = 1 },
	}, symbols, NULL), 0);
	seam_symbols_free(symbols);
	free(data.data);
	free(made.data);
	return p;
}

static const struct seam_frame *leaf_of(const struct seam_profile *p, size_t i)
{
	return &p->frames.items[p->stacks.items[p->samples.stack[i]].frame];
}

UNIT_TEST(each_build_of_a_file_is_a_module_and_one_row)
{
	const uint64_t chain[] = { USER, 0x5010 };
	struct bytes b = { .endian = SEAM_LITTLE };
	const struct seam_profile_module *first, *second;
	struct seam_profile p;

	put_comm(&b, 7, 7, "x", true, 10);
	put_mmap2_id(&b, 0x5000, "/lib/x.so", 1, 20);
	put_sample(&b, TEST_ID_1, 7, 7, 25, chain, 2);
	put_mmap2_id(&b, 0x5000, "/lib/x.so", 9, 30);
	put_sample(&b, TEST_ID_1, 7, 7, 35, chain, 2);
	p = load(b, true);
	first = &p.modules.items[leaf_of(&p, 0)->module];
	second = &p.modules.items[leaf_of(&p, 1)->module];
	assert_ptr_not_equal(first, second);
	assert_int_equal(first->path, second->path);
	assert_int_equal(first->kind, SEAM_MODULE_FILE);
	assert_int_equal(first->build_id_size, 20);
	assert_int_equal(first->build_id[0], 1);
	assert_int_equal(second->build_id[0], 9);
	assert_int_equal(leaf_of(&p, 0)->addr, 0x2010);
	assert_int_equal(leaf_of(&p, 0)->function, leaf_of(&p, 1)->function);
	assert_int_equal(p.functions.items[leaf_of(&p, 1)->function].module,
			 leaf_of(&p, 0)->module);
	seam_profile_fini(&p);
}

UNIT_TEST(a_used_mapping_turns_an_offset_into_an_address)
{
	const uint64_t chain[] = { USER, 0x5010 };
	struct bytes b = { .endian = SEAM_LITTLE };
	const struct seam_mapping *used = NULL;
	struct seam_profile p;

	put_mmap2(&b, 7, 0x5000, 0x1000, 0x3000, "/bin/used", 20);
	put_mmap2(&b, 7, 0x8000, 0x1000, 0, "/bin/unused", 21);
	put_sample(&b, TEST_ID_1, 7, 7, 25, chain, 2);
	p = load(b, true);
	for (size_t i = 0; i < p.mappings.n; i++) {
		if (!p.mappings.items[i].is_used)
			continue;
		assert_null(used);
		used = &p.mappings.items[i];
	}
	assert_non_null(used);
	assert_int_equal(used->module, leaf_of(&p, 0)->module);
	assert_string_equal(seam_profile_path(&p, used->module), "/bin/used");
	assert_int_equal(p.modules.items[used->module].ino, 4711);
	assert_int_equal(leaf_of(&p, 0)->addr - used->pgoff + used->start_addr,
			 0x5010);
	assert_int_equal(used->size, 0x1000);
	assert_int_equal(used->pid, 7);
	assert_int_equal(used->from_ns, 20);
	seam_profile_fini(&p);
}

/* Source: wire/jit/jitdump.h, its tables. */
static void put_code(struct bytes *b, uint64_t time, uint64_t index)
{
	const uint32_t load[] = { 0, 16 + 40 + 2 + 3 };
	const uint64_t place[] = { 0x5000, 0x5000, 3, index };

	put(b, load, sizeof(load));
	put_u64(b, time);
	put_u32(b, 7);
	put_u32(b, 7);
	put(b, place, sizeof(place));
	put(b, "f\0\x31\xc0\xc3", 5);
}

/* The code of @index goes from 0x5000 to 0x6000. */
static void put_move(struct bytes *b, uint64_t time, uint64_t index)
{
	const uint32_t move[] = { 1, 64 };
	const uint64_t place[] = { 0x6000, 0x5000, 0x6000, 3, index };

	put(b, move, sizeof(move));
	put_u64(b, time);
	put_u32(b, 7);
	put_u32(b, 7);
	put(b, place, sizeof(place));
}

/* A dump of process 7; takes @records. */
static void write_records(struct bytes *records)
{
	const uint32_t header[] = { 0x4a695444, 1, 40, 62, 0, 7 };
	struct bytes b = { .endian = SEAM_LITTLE };
	char path[200];
	FILE *out;

	put(&b, header, sizeof(header));
	put_u64(&b, 1);
	put_u64(&b, 0);
	put(&b, records->data, records->size);
	snprintf(path, sizeof(path), "%s/jit-7.dump", folder);
	out = fopen(path, "w");
	assert_non_null(out);
	assert_int_equal(fwrite(b.data, 1, b.size, out), b.size);
	assert_int_equal(fclose(out), 0);
	free(b.data);
	free(records->data);
}

static void write_dump(void)
{
	struct bytes b = { .endian = SEAM_LITTLE };

	put_code(&b, 30, 1);
	put_code(&b, 50, 2);
	write_records(&b);
}

/* One name, one address: still each sample has the code of its time. */
UNIT_TEST(code_objects_say_what_code_was_where_and_when)
{
	const uint64_t chain[] = { USER, 0x5002 };
	struct bytes b = { .endian = SEAM_LITTLE };
	const struct seam_code_object *code;
	struct seam_profile p;

	write_dump();
	put_comm(&b, 7, 7, "x", true, 10);
	put_mmap2(&b, 7, 0x9000, 0x1000, 0, "/gone/jit-7.dump", 20);
	put_mmap2(&b, 7, 0x5000, 0x1000, 0, "//anon", 21);
	put_sample(&b, TEST_ID_1, 7, 7, 40, chain, 2);
	put_sample(&b, TEST_ID_1, 7, 7, 60, chain, 2);
	p = load(b, true);
	assert_int_equal(p.code_objects.n, 2);
	for (uint32_t i = 0; i < 2; i++) {
		code = &p.code_objects.items[i];
		assert_int_equal(leaf_of(&p, i)->code, i);
		assert_int_equal(code->index, i + 1);
		assert_int_equal(code->start_addr, 0x5000);
		assert_int_equal(code->size, 3);
		assert_int_equal(code->code[2], 0xc3);
		assert_int_equal(code->pid, 7);
		assert_string_equal(seam_profile_text(&p, code->name), "f");
		assert_non_null(strstr(seam_profile_text(&p, code->dump),
				       "/jit-7.dump"));
	}
	assert_int_equal(p.code_objects.items[0].from_ns, 30);
	assert_int_equal(p.code_objects.items[1].from_ns, 50);
	seam_profile_fini(&p);
}

UNIT_TEST(a_load_without_samples_has_processes_and_code)
{
	const uint64_t chain[] = { USER, 0x5002 };
	struct bytes b = { .endian = SEAM_LITTLE };
	struct seam_profile p;

	write_dump();
	put_comm(&b, 7, 7, "x", true, 10);
	put_mmap2(&b, 7, 0x9000, 0x1000, 0, "/gone/jit-7.dump", 20);
	put_task(&b, PERF_RECORD_FORK, 8, 7, 8, 7, 35);
	put_sample(&b, TEST_ID_1, 8, 8, 40, chain, 2);
	put_sample(&b, TEST_ID_1, 8, 8, 60, chain, 2);
	p = load(b, false);
	assert_int_equal(p.samples.n, 0);
	assert_int_equal(p.start_ns, 40);
	assert_int_equal(p.end_ns, 60);
	assert_int_equal(p.processes.n, 2);
	assert_int_equal(p.processes.items[1].pid, 8);
	assert_int_equal(p.processes.items[1].parent, 0);
	assert_true(p.processes.items[0].parent == SEAM_NONE);
	assert_int_equal(seam_jit_code_count(p.jit->code), 2);
	seam_profile_fini(&p);
}

/* A parent moved its code after the fork: its child's is where it was. */
UNIT_TEST(a_forked_process_runs_code_where_its_parent_had_it)
{
	const uint64_t chain[] = { USER, 0x5001 };
	struct bytes b = { .endian = SEAM_LITTLE };
	const struct seam_annotation_options how = { .symbol = "f" };
	struct seam_annotation annotation;
	struct seam_selection selection;
	struct seam_selected selected;
	struct seam_profile p;

	put_code(&b, 30, 1);
	put_move(&b, 60, 1);
	write_records(&b);
	b = (struct bytes) { .endian = SEAM_LITTLE };
	put_comm(&b, 7, 7, "x", true, 10);
	put_mmap2(&b, 7, 0x9000, 0x1000, 0, "/gone/jit-7.dump", 20);
	put_sample(&b, TEST_ID_1, 7, 7, 40, chain, 2);
	put_task(&b, PERF_RECORD_FORK, 8, 7, 8, 7, 50);
	put_sample(&b, TEST_ID_1, 8, 8, 70, chain, 2);
	p = load(b, true);
	seam_selection_init(&selection);
	assert_int_equal(seam_selected_init(&selected, &p, &selection, NULL),
			 0);
	assert_int_equal(seam_annotate(&annotation, &selected, &how, NULL), 0);
	assert_int_equal(annotation.bodies.n, 1);
	assert_int_equal(annotation.bodies.items[0].places.n, 2);
	assert_int_equal(annotation.bodies.items[0].places.items[0].addr,
			 0x5000);
	assert_int_equal(annotation.bodies.items[0].places.items[0].samples, 2);
	assert_int_equal(annotation.bodies.items[0].places.items[1].samples, 0);
	seam_annotation_fini(&annotation);
	seam_selected_fini(&selected);
	seam_profile_fini(&p);
}

/* Without a build id a file is its inode, which may be used again. */
UNIT_TEST(an_inode_that_is_used_again_is_another_module)
{
	struct seam_profile p;
	struct seam_profile_module m = { .ino = 5, .ino_generation = 1 };
	uint32_t first;

	assert_int_equal(seam_profile_init(&p), 0);
	m.path = seam_strings_put(&p.strings, "/lib/x.so");
	first = seam_profile_module(&p, &m);
	assert_int_equal(seam_profile_module(&p, &m), first);
	m.ino_generation = 2;
	assert_int_not_equal(seam_profile_module(&p, &m), first);
	seam_profile_fini(&p);
}

int main(void)
{
	return unit_run(make_folder, drop_folder, NULL, NULL);
}
