/* SPDX-License-Identifier: MIT */
/* payload.c - the C half of the mixed program: Fibonacci, the slow way */
double c_payload(double n);

double c_payload(double n)
{
	if (n <= 1)
		return n;
	return c_payload(n - 1) + c_payload(n - 2);
}
