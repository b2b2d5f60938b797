/* SPDX-License-Identifier: MIT */
/* late_library.c - loaded while the profiler runs */
double late_function(volatile double *x);

__attribute__((visibility("default")))
double late_function(volatile double *x)
{
	double sum = 0;

	for (int i = 0; i < 1000; i++)
		sum += *x * i;
	return sum;
}

/* In a stripped file neither has a symbol. */
static __attribute__((noinline)) int named(int n)
{
	return n * 3 + 1;
}

static __attribute__((noinline)) int nameless(int n)
{
	return n * 5 + 2;
}

extern int (*const late_statics[])(int)
	__attribute__((visibility("default")));
int (*const late_statics[])(int) = { named, nameless };
