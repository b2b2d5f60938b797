/* SPDX-License-Identifier: MIT */
/* test_process_maps.c - what a process has mapped, as the side-band tells */

#include "record/stacks/live_stacks.c"
#include "unit.h"

static struct seam_process_maps maps;

static int set_up(void **state)
{
	maps = (struct seam_process_maps) { .n_ended = 0 };
	return 0;
}

static int tear_down(void **state)
{
	maps_fini(&maps);
	assert_int_equal(maps.n_mappings, 0);
	return 0;
}

static void add(int32_t pid, uint64_t begin, uint64_t end, uint32_t file)
{
	const struct seam_process_mapping m = {
		.begin = begin, .end = end, .offset = begin, .file = file,
	};

	maps_add(&maps, pid, &m);
}

/* The file at @addr of a list; -1: nothing is mapped. */
static int file_in(const struct seam_process_map *map, uint64_t addr)
{
	const struct seam_process_mapping *m = map ? map_at(map, addr) : NULL;

	/* an offset in the file stays with its address */
	if (m)
		assert_int_equal(m->offset, m->begin);
	return m ? (int)m->file : -1;
}

static int file_of(int32_t pid, uint64_t addr)
{
	return file_in(maps_find(&maps, pid), addr);
}

UNIT_TEST(a_mapping_covers_older_ones)
{
	add(1, 0x1000, 0x9000, 1);
	add(1, 0x3000, 0x5000, 2);
	assert_int_equal(file_of(1, 0xfff), -1);
	assert_int_equal(file_of(1, 0x1000), 1);
	assert_int_equal(file_of(1, 0x2fff), 1);
	assert_int_equal(file_of(1, 0x3000), 2);
	assert_int_equal(file_of(1, 0x4fff), 2);
	assert_int_equal(file_of(1, 0x5000), 1);
	assert_int_equal(file_of(1, 0x8fff), 1);
	assert_int_equal(file_of(1, 0x9000), -1);
	add(1, 0x2000, 0xa000, 3);
	assert_int_equal(file_of(1, 0x1fff), 1);
	assert_int_equal(file_of(1, 0x4000), 3);
	assert_int_equal(maps_find(&maps, 1)->n, 2);
}

UNIT_TEST(random_mappings_equal_an_array_of_pages)
{
	enum { PAGES = 64, ROUNDS = 3000 };
	int page[PAGES];

	for (int i = 0; i < PAGES; i++)
		page[i] = -1;
	srand(7);
	for (int r = 0; r < ROUNDS; r++) {
		int from = rand() % PAGES, to = from + 1 + rand() % 8;

		to = to < PAGES ? to : PAGES;
		add(5, (uint64_t)from << 12, (uint64_t)to << 12, (uint32_t)r);
		for (int i = from; i < to; i++)
			page[i] = r;
		for (int i = 0; i < PAGES; i++)
			assert_int_equal(file_of(5, ((uint64_t)i << 12) + 9),
					 page[i]);
	}
}

UNIT_TEST(a_child_has_the_mappings_of_its_parent_until_either_maps)
{
	add(1, 0x1000, 0x2000, 1);
	maps_fork(&maps, 2, 1);
	assert_ptr_equal(maps_find(&maps, 1), maps_find(&maps, 2));
	add(2, 0x1000, 0x2000, 7);
	assert_int_equal(file_of(1, 0x1800), 1);
	assert_int_equal(file_of(2, 0x1800), 7);
	add(1, 0x3000, 0x4000, 8);
	assert_int_equal(file_of(2, 0x3800), -1);
}

UNIT_TEST(an_exec_maps_nothing_of_the_old_program)
{
	add(1, 0x1000, 0x2000, 1);
	maps_fork(&maps, 2, 1);
	maps_exec(&maps, 2);
	assert_int_equal(file_of(2, 0x1800), -1);
	assert_int_equal(file_of(1, 0x1800), 1);
}

UNIT_TEST(a_list_that_is_held_does_not_change)
{
	struct seam_process_map *held;

	add(1, 0x1000, 0x2000, 1);
	held = map_get(maps_find(&maps, 1));
	add(1, 0x1000, 0x2000, 2);
	maps_exec(&maps, 1);
	assert_int_equal(file_in(held, 0x1800), 1);
	maps_put(&maps, held);
	assert_int_equal(maps.n_mappings, 0);
}

UNIT_TEST(a_thread_changes_and_ends_nothing)
{
	maps_exec(&maps, 1);
	add(1, 0x1000, 0x2000, 1);
	maps_fork(&maps, 1, 1);
	for (int i = 0; i < SEAM_PROCESS_MAPS_ENDED + 1; i++) {
		maps_fork(&maps, 1, 1);
		maps_exit(&maps, 1);
	}
	assert_int_equal(file_of(1, 0x1800), 1);
	/* the first thread ends before another one */
	maps_exit(&maps, 1);
	assert_int_equal(file_of(1, 0x1800), 1);
}

UNIT_TEST(a_process_is_forgotten_some_exits_after_its_own)
{
	add(1, 0x1000, 0x2000, 1);
	maps_fork(&maps, 2, 1);
	maps_exit(&maps, 2);
	assert_int_equal(file_of(2, 0x1800), 1);
	for (int i = 0; i < SEAM_PROCESS_MAPS_ENDED; i++) {
		maps_fork(&maps, 100 + i, 1);
		maps_exit(&maps, 100 + i);
	}
	assert_int_equal(file_of(2, 0x1800), -1);
	assert_int_equal(file_of(1, 0x1800), 1);
}

UNIT_TEST(a_pid_that_is_used_again_is_another_process)
{
	add(1, 0x1000, 0x2000, 1);
	add(3, 0x1000, 0x2000, 3);
	maps_fork(&maps, 2, 1);
	maps_exit(&maps, 2);
	maps_fork(&maps, 2, 3);
	assert_int_equal(file_of(2, 0x1800), 3);
	for (int i = 0; i < SEAM_PROCESS_MAPS_ENDED; i++) {
		maps_fork(&maps, 100 + i, 1);
		maps_exit(&maps, 100 + i);
	}
	assert_int_equal(file_of(2, 0x1800), 3);
}

UNIT_TEST(memory_is_bounded_however_many_processes_fork)
{
	for (uint32_t i = 0; i < 8; i++)
		add(1, 0x1000 * i, 0x1000 * i + 0x1000, i);
	for (int32_t pid = 10; pid < 200010; pid++) {
		maps_fork(&maps, pid, 1);
		add(pid, 0x100000, 0x101000, 1);
		maps_exit(&maps, pid);
	}
	assert_true(maps.processes.n <= SEAM_PROCESS_MAPS_ENDED + 2);
	assert_int_equal(file_of(200009, 0x100800), 1);
}

UNIT_TEST(processes_and_mappings_beyond_the_limits_are_left_out)
{
	for (uint32_t i = 0; i < SEAM_PROCESS_MAX_MAPPINGS + 5; i++)
		add(1, 0x2000 * (uint64_t)i, 0x2000 * (uint64_t)i + 0x1000, i);
	assert_true(maps_find(&maps, 1)->n <= SEAM_PROCESS_MAX_MAPPINGS);
	for (int32_t pid = 2; pid < SEAM_PROCESS_MAPS_MAX + 10; pid++)
		add(pid, 0x1000, 0x2000, 1);
	assert_true(maps.processes.n <= SEAM_PROCESS_MAPS_MAX);
	/* hostile pids and empty mappings */
	add(0, 0x1000, 0x2000, 1);
	add(-1, 0x1000, 0x2000, 1);
	add(1, 0x2000, 0x2000, 1);
	maps_exit(&maps, -1);
	assert_null(maps_find(&maps, 0));
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
