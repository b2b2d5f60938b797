/* SPDX-License-Identifier: MIT */
/* other_profilers.c - look for them; see other_profilers.h */
#include <dlfcn.h>
#include <signal.h>
#include <sys/time.h>

#include <seam/lmisclib.h>

#include "traced/sysprof/other_profilers.h"
#include "traced/sysprof/profiler_run.h"

/* Of any function's type; a pointer to it is no pointer to an object. */
static bool find_function(void *scope, const char *name,
			  void (**function)(void))
{
	void *symbol = dlsym(scope, name);

	memcpy(function, &symbol, sizeof(symbol));
	return symbol;
}

static const void *file_of(void (*function)(void))
{
	Dl_info info;
	void *addr;

	memcpy(&addr, &function, sizeof(addr));
	return dladdr(addr, &info) ? info.dli_fbase : NULL;
}

/*
 * jit.p: the profiling timer runs, and its signal goes to the VM's code; with
 * another handler it is another profiler's timer, which disturbs nothing here.
 * Source: LuaJIT, lj_profile.c, LJ_PROFILE_SIGPROF.
 */
static bool jit_p_runs(void)
{
	struct itimerval timer;
	struct sigaction action;
	void (*start)(void), (*handler)(void);

	if (getitimer(ITIMER_PROF, &timer) < 0 ||
	    (!timer.it_value.tv_sec && !timer.it_value.tv_usec) ||
	    sigaction(SIGPROF, NULL, &action) < 0 ||
	    action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN ||
	    !find_function(RTLD_DEFAULT, "luaJIT_profile_start", &start))
		return false;
	memcpy(&handler, &action.sa_sigaction, sizeof(handler));
	return file_of(handler) && file_of(handler) == file_of(start);
}

/* Whether another copy of this library that @scope exports runs. */
static bool copy_runs(void *scope)
{
	const char *(*own)(void) = seam_sysprof_refusal;
	int (*report)(struct luam_sysprof_counters *);
	struct luam_sysprof_counters counters;
	void (*found)(void), (*found_report)(void);

	if (!find_function(scope, "seam_sysprof_refusal", &found) ||
	    !memcmp(&found, &own, sizeof(found)) ||
	    !find_function(scope, "luaM_sysprof_report", &found_report) ||
	    file_of(found) != file_of(found_report))
		return false;
	memcpy(&report, &found_report, sizeof(report));
	return report(&counters) == PROFILE_ERRUSE;
}

/*
 * The copy in the program is in the global scope.  One that require() loaded is
 * not; but while it runs, the signal's handler is its own.
 */
static bool other_sysprof_runs(void)
{
	struct sigaction action;
	Dl_info info;
	void *file, *handler;
	bool runs = copy_runs(RTLD_DEFAULT);

	if (runs || sigaction(SEAM_SYSPROF_SIGNAL, NULL, &action) < 0)
		return runs;
	memcpy(&handler, &action.sa_sigaction, sizeof(handler));
	if (!dladdr(handler, &info))
		return false;
	file = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!file)
		return false;
	runs = copy_runs(file);
	dlclose(file);
	return runs;
}

static bool agent_samples(void)
{
	void (*found)(void);
	int (*is_sampling)(void);

	if (!find_function(RTLD_DEFAULT, "seam_agent_is_sampling", &found))
		return false;
	memcpy(&is_sampling, &found, sizeof(found));
	return is_sampling();
}

bool seam_other_profiler_runs(void)
{
	return jit_p_runs() || agent_samples() || other_sysprof_runs();
}
