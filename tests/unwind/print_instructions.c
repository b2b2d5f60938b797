/* SPDX-License-Identifier: MIT */
/*
 * print_instructions.c - 'print_instructions FILE': the size of the code's next
 * instruction, for each line "OFFSET SIZE" of stdin, until SIZE bytes are read;
 * for instruction_sizes.py
 */
#include "unwind/walk/stack_height.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	struct stat st;
	const uint8_t *file;
	size_t offset, size;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 2;
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file == MAP_FAILED)
		return 2;
	while (scanf("%zu %zu", &offset, &size) == 2) {
		for (size_t at = 0, n; at < size; at += n) {
			n = seam_instruction_bytes(file + offset + at,
						   size - at);
			printf("%zu ", n);
			if (n == 0)
				break;
		}
		printf("\n");
	}
	return 0;
}
