/* SPDX-License-Identifier: MIT */
/* test_hotplug.c - whose time is missing, by the kernel's own count */
#include "record/perf/data_file.h"
#include "unit.h"

enum { N = 4 };

#define SECOND UINT64_C(1000000000)

/* What the kernel says: how long each was enabled, which CPUs are there. */
static uint64_t enabled_ns[N];
static int online[8];
static size_t n_online;

bool __wrap_seam_sources_enabled_ns(const struct seam_sources *s, size_t i,
				    uint64_t *ns);
int __wrap_seam_procfs_cpus(struct seam_number_list *cpus,
			    struct seam_err *err);

bool __wrap_seam_sources_enabled_ns(const struct seam_sources *s, size_t i,
				    uint64_t *ns)
{
	*ns = enabled_ns[i];
	return true;
}

int __wrap_seam_procfs_cpus(struct seam_number_list *cpus, struct seam_err *err)
{
	(void)err;
	for (size_t i = 0; i < n_online; i++)
		*SEAM_ARRAY_PUSH(cpus) = online[i];
	return 0;
}

/* Ten seconds of all CPUs, each enabled and disabled a little later. */
static struct seam_counts count(uint64_t late_ns)
{
	struct seam_sources s = { 0 };
	struct seam_data_file file = { .fd = -1 };

	for (int i = 0; i < N; i++) {
		*SEAM_ARRAY_PUSH(&s.cpus) = i;
		*SEAM_ARRAY_PUSH(&s.rings) = (struct seam_source_ring) {
			.cpu = i, .fd = -1,
		};
		*SEAM_ARRAY_PUSH(&s.list) = (struct seam_source) {
			.fd = -1, .ring = (uint32_t)i,
			.enabled_at_ns = SECOND + (uint64_t)i * late_ns,
			.disabled_at_ns = 11 * SECOND,
		};
	}
	seam_data_file_count_cpus(&file, &s);
	s.list.n = s.rings.n = 0;
	seam_sources_fini(&s);
	return file.losses;
}

static void set_online(size_t n)
{
	n_online = n;
	for (size_t i = 0; i < n; i++)
		online[i] = (int)i;
	for (size_t i = 0; i < N; i++)
		enabled_ns[i] = 10 * SECOND;
}

UNIT_TEST(all_were_there)
{
	struct seam_counts l;

	set_online(N);
	l = count(0);
	assert_int_equal(l.n[SEAM_COUNT_CPUS_BACK], 0);
	assert_int_equal(l.n[SEAM_COUNT_CPUS_NEW], 0);
	/* the kernel's clock is slower than ours, on all of them */
	for (size_t i = 0; i < N; i++)
		enabled_ns[i] -= SECOND / 100;
	l = count(0);
	assert_int_equal(l.n[SEAM_COUNT_CPUS_BACK], 0);
	assert_int_equal(l.n[SEAM_COUNT_CPUS_NEW], 0);
	/* 40 ms from one to the next: a virtual machine was not running */
	set_online(N);
	for (size_t i = 0; i < N; i++)
		enabled_ns[i] -= i * SECOND / 25;
	l = count(SECOND / 25);
	assert_int_equal(l.n[SEAM_COUNT_CPUS_BACK], 0);
	assert_int_equal(l.n[SEAM_COUNT_CPUS_NEW], 0);
}

UNIT_TEST(one_that_came_back_is_lost_from_when_it_went)
{
	struct seam_counts l;

	set_online(N);
	enabled_ns[2] = 4 * SECOND;
	enabled_ns[3] = 10 * SECOND - SECOND / 100;
	l = count(0);
	assert_int_equal(l.n[SEAM_COUNT_CPUS_BACK], 2);
	assert_int_equal(l.first_cpu, 2);
	assert_int_equal(l.n[SEAM_COUNT_CPU_NS], 6 * SECOND);
}

UNIT_TEST(one_that_stayed_away_had_nothing_to_lose)
{
	struct seam_counts l;

	set_online(N - 1);
	enabled_ns[3] = 4 * SECOND;
	l = count(0);
	assert_int_equal(l.n[SEAM_COUNT_CPUS_BACK], 0);
	assert_int_equal(l.n[SEAM_COUNT_CPUS_NEW], 0);
}

UNIT_TEST(one_that_is_new_has_no_events)
{
	struct seam_counts l;

	set_online(N + 2);
	l = count(0);
	assert_int_equal(l.n[SEAM_COUNT_CPUS_NEW], 2);
	assert_int_equal(l.first_cpu, N);
	assert_int_equal(l.n[SEAM_COUNT_CPUS_BACK], 0);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
