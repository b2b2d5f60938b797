/* SPDX-License-Identifier: MIT */
/* resolver.cc - calls that ld.so's resolver binds, no more */
#include "stepper.h"

static volatile unsigned long sum;

int main(void)
{
	install_stepper();
	start_stepping();
	for (int i = 0; i < 5; i++)
		sum += i == 0 ? getppid() : i == 1 ? getuid() : i == 2 ?
		       getgid() : i == 3 ? geteuid() : getegid();
	stop_stepping();
	return 0;
}
