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
