/* SPDX-License-Identifier: MIT */
/* test_cpu_mask.c - a kernel for more CPUs than cpu_set_t has bits */
#include "base/cpu_mask.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/workers.h"

/* As the kernel's: refuses masks that are too small for its CPUs. */
static size_t kernel_cpus;
static int moved_to;

int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set);
int __wrap_sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set);

int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
	(void)pid;
	if (bytes * 8 < kernel_cpus) {
		errno = EINVAL;
		return -1;
	}
	for (size_t i = 0; i < kernel_cpus; i++)
		CPU_SET_S(i, bytes, set);
	return 0;
}

int __wrap_sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set)
{
	(void)pid;
	assert_int_equal(CPU_COUNT_S(bytes, set), 1);
	for (size_t i = 0; i < bytes * 8; i++)
		if (CPU_ISSET_S(i, bytes, set))
			moved_to = (int)i;
	return 0;
}

static void all_cpus_are_known(void **state)
{
	(void)state;
	for (kernel_cpus = 1; kernel_cpus <= 65536; kernel_cpus *= 2) {
		struct seam_cpu_mask mask;

		assert_int_equal(seam_cpu_mask_get(&mask), 0);
		assert_int_equal(CPU_COUNT_S(mask.bytes, mask.set),
				 kernel_cpus);
		seam_cpu_mask_fini(&mask);
	}
}

static void more_than_there_can_be_are_an_error(void **state)
{
	struct seam_cpu_mask mask;

	(void)state;
	kernel_cpus = 1 << 17;
	assert_int_equal(seam_cpu_mask_get(&mask), -EINVAL);
}

static void a_large_machine_has_all_its_workers(void **state)
{
	(void)state;
	kernel_cpus = 5000;
	assert_int_equal(seam_workers_count(), 64);
}

static void a_thread_moves_to_any_cpu(void **state)
{
	const int cpus[] = { 0, 63, 64, 1023, 1024, 4999 };

	(void)state;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cpus); i++) {
		assert_int_equal(seam_cpu_mask_set_one(cpus[i]), 0);
		assert_int_equal(moved_to, cpus[i]);
	}
	assert_int_equal(seam_cpu_mask_set_one(-1), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_cpus_are_known),
		cmocka_unit_test(more_than_there_can_be_are_an_error),
		cmocka_unit_test(a_large_machine_has_all_its_workers),
		cmocka_unit_test(a_thread_moves_to_any_cpu),
	};

	return cmocka_run_group_tests_name("cpu_mask", tests, NULL, NULL);
}
