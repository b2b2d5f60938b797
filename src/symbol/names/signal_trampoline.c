/* SPDX-License-Identifier: MIT */
/* signal_trampoline.c - known names; see signal_trampoline.h */
#include "symbol/names/signal_trampoline.h"

static const char *const names[] = {
	"__restore_rt", "__restore", "__kernel_rt_sigreturn",
	"__kernel_sigreturn", "__vdso_rt_sigreturn", "__kernel_sigtramp_rt64",
	"__kernel_sigtramp_rt32", "__default_rt_sa_restorer",
	"__default_sa_restorer", "runtime.sigreturn",
	"runtime.sigreturn__sigaction", "__start_context",
};

bool seam_signal_trampoline_is_name(const char *name)
{
	static const char abi[] = ".abi0";
	size_t size = strlen(name), abi_size = sizeof(abi) - 1;

	if (size > abi_size && strcmp(name + size - abi_size, abi) == 0)
		size -= abi_size;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == size &&
		    memcmp(name, names[i], size) == 0)
			return true;
	return false;
}
