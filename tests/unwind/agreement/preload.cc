/* SPDX-License-Identifier: MIT */
/* preload.cc - makes a program of the system step through its main() */
#include <dlfcn.h>
#include <stdlib.h>

#include "stepper.h"

typedef int (*main_function)(int, char **, char **);
typedef int (*start_function)(main_function, int, char **, void (*)(void),
			      void (*)(void), void (*)(void), void *);

static main_function real_main;

static int stepped_main(int argc, char **argv, char **environment)
{
	install_stepper();
	start_stepping();
	return real_main(argc, argv, environment);
}

extern "C" int __libc_start_main(main_function main, int argc, char **argv,
				 void (*init)(void), void (*fini)(void),
				 void (*rtld_fini)(void), void *stack_end)
{
	start_function next = (start_function)dlsym(RTLD_NEXT,
						    "__libc_start_main");

	real_main = main;
	unsetenv("LD_PRELOAD");
	return next(stepped_main, argc, argv, init, fini, rtld_fini, stack_end);
}
