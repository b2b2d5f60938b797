/* SPDX-License-Identifier: MIT */
/* kernel.c - identity of the running kernel; see kernel.h */
#include "record/kernel.h"

#include "base/cursor.h"
#include "record/machine.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	MOST_NOTE_BYTES = 16 * 1024,
	/*
	 * Symbols of per-CPU data come before _text; thousands at most.
	 * Formatting a line costs the kernel 0.3 us.
	 */
	MOST_LINES_BEFORE_TEXT = 20000,
};

/* Kernel code ends before modules begin: arch/x86, KERNEL_IMAGE_SIZE. */
#define TEXT_BYTES_AT_MOST (UINT64_C(1) << 30)

size_t seam_build_id_in_notes(struct seam_bytes notes, uint8_t id[20])
{
	struct seam_cursor c = seam_cursor_make(notes.data, notes.size,
						SEAM_LITTLE);

	while (!c.error && seam_cursor_left(&c) > 0) {
		uint32_t name_bytes = seam_cursor_u32(&c);
		uint32_t bytes = seam_cursor_u32(&c);
		uint32_t type = seam_cursor_u32(&c);
		const uint8_t *name = seam_cursor_bytes(&c, name_bytes);
		const uint8_t *value;

		seam_cursor_align(&c, 4);
		value = seam_cursor_bytes(&c, bytes);
		if (!c.error && type == NT_GNU_BUILD_ID && name_bytes == 4 &&
		    memcmp(name, "GNU", 4) == 0 && bytes > 0 && bytes <= 20) {
			memcpy(id, value, bytes);
			return bytes;
		}
		seam_cursor_align(&c, 4);
	}
	return 0;
}

static void read_build_id(struct seam_running_kernel *kernel)
{
	uint8_t notes[MOST_NOTE_BYTES];
	int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, notes, sizeof(notes));

	if (fd >= 0)
		close(fd);
	if (n > 0)
		kernel->build_id_size = seam_build_id_in_notes(
			(struct seam_bytes) { notes, (size_t)n },
			kernel->build_id);
}

/* _text is near the start of the list, so little of it is read. */
static uint64_t find_text(void)
{
	FILE *in = fopen("/proc/kallsyms", "re");
	uint64_t addr = 0;
	char line[512];

	for (int i = 0; in && !addr && i < MOST_LINES_BEFORE_TEXT &&
	     fgets(line, sizeof(line), in); i++)
		if (strstr(line, " _text\n"))
			addr = strtoull(line, NULL, 16);
	if (in)
		fclose(in);
	return addr;
}

/* "  01000000-02209987 : Kernel code"; zeros for those who may not know. */
static uint64_t code_bytes(void)
{
	FILE *in = fopen("/proc/iomem", "re");
	uint64_t bytes = TEXT_BYTES_AT_MOST;
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
	seam_machine_text("/proc/sys/kernel/random/boot_id", kernel->boot_id,
			  sizeof(kernel->boot_id));
	read_build_id(kernel);
	kernel->text_addr = find_text();
	if (kernel->text_addr)
		kernel->text_bytes = code_bytes();
}
