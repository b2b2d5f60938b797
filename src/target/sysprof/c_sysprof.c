/* SPDX-License-Identifier: MIT */
/* c_sysprof.c - the functions of <seam/lmisclib.h> */
#include "target/sysprof/lua_symbols.h"
#include "target/sysprof/start_in_vm.h"
#include "target/sysprof/vm.h"

/* Changed by the caller's thread, while the profiler is idle. */
static struct luam_sysprof_config configured;

int luaM_sysprof_configure(const struct luam_sysprof_config *config)
{
	if (!config || !seam_sysprof_is_idle())
		return PROFILE_ERRUSE;
	configured = *config;
	return PROFILE_SUCCESS;
}

int luaM_sysprof_set_writer(luam_Sysprof_writer writer)
{
	if (!writer || !seam_sysprof_is_idle())
		return PROFILE_ERRUSE;
	configured.writer = writer;
	return PROFILE_SUCCESS;
}

int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop)
{
	if (!on_stop || !seam_sysprof_is_idle())
		return PROFILE_ERRUSE;
	configured.on_stop = on_stop;
	return PROFILE_SUCCESS;
}

int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer)
{
	if (!seam_sysprof_is_idle())
		return PROFILE_ERRUSE;
	configured.backtracer = backtracer;
	return PROFILE_SUCCESS;
}

int seam_sysprof_start_in_vm(lua_State *L,
			     const struct luam_sysprof_options *opt,
			     const struct seam_sysprof_output *output)
{
	struct seam_sysprof_output named = *output;

	if (!seam_sysprof_vm_guard(L)) {
		if (output->on_stop)
			output->on_stop(opt ? opt->ctx : NULL,
					opt ? opt->buf : NULL);
		return PROFILE_ERRMEM;
	}
	named.add_names = seam_lua_symbols_add;
	named.names_vm = L;
	return seam_sysprof_start(seam_sysprof_vm_id(L), opt, &named,
				  configured.backtracer);
}

int luaM_sysprof_start(lua_State *L, const struct luam_sysprof_options *opt)
{
	struct seam_sysprof_output output = {
		.writer = configured.writer, .on_stop = configured.on_stop,
		.enough = SIZE_MAX };

	return seam_sysprof_start_in_vm(L, opt, &output);
}

int luaM_sysprof_stop(lua_State *L)
{
	return seam_sysprof_stop(seam_sysprof_vm_id(L));
}

int luaM_sysprof_report(struct luam_sysprof_counters *counters)
{
	return seam_sysprof_count(counters);
}
