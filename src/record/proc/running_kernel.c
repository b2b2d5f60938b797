/* SPDX-License-Identifier: MIT */
/* running_kernel.c - the size of the kernel's text; see running_kernel.h */
#include "record/proc/running_kernel.h"

#include <stdlib.h>

/*
 * For a user who may not read where the text ends: modules begin after this
 * many bytes.  Source: arch/x86/include/asm/page_64_types.h, KERNEL_IMAGE_SIZE.
 */
#define MAX_TEXT_BYTES (UINT64_C(1) << 30)

/* "  01000000-02209987 : Kernel code"; zeros without CAP_SYS_ADMIN. */
static uint64_t code_bytes(void)
{
	FILE *in = fopen("/proc/iomem", "re");
	uint64_t bytes = MAX_TEXT_BYTES;
	char line[256];

	while (in && fgets(line, sizeof(line), in)) {
		char *end;
		uint64_t first = strtoull(line, &end, 16);
		uint64_t last = *end == '-' ? strtoull(end + 1, NULL, 16) : 0;

		if (strstr(line, ": Kernel code") && last > first)
			bytes = last + 1 - first;
	}
	if (in)
		fclose(in);
	return bytes;
}

void seam_running_kernel_read(struct seam_running_kernel *kernel)
{
	*kernel = (struct seam_running_kernel) { 0 };
	seam_kernel_identify(&kernel->identity, NULL);
	if (kernel->identity.text_addr)
		kernel->text_bytes = code_bytes();
}
