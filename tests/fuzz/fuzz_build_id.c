/* SPDX-License-Identifier: MIT */
/*
 * fuzz_build_id.c - any bytes as an ELF file, of which the build id is wanted
 *
 * Oracle: a build id that is found stands in the file, behind "GNU\0".
 */
#include "fuzz.h"
#include "symbol/elf/build_id.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t id[20], expected[24] = "GNU";
	int fd = memfd_create("elf", MFD_CLOEXEC);
	size_t n;

	if (write(fd, data, size) != (ssize_t)size)
		abort();
	n = seam_build_id_read(fd, 0, id);
	close(fd);
	if (n > sizeof(id))
		abort();
	memcpy(expected + 4, id, n);
	if (n && !memmem(data, size, expected, 4 + n))
		abort();
	return 0;
}
