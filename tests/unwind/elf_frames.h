/* SPDX-License-Identifier: MIT */
/* elf_frames.h - the call frame information of a file, for tests */
#ifndef ELF_FRAMES_H
#define ELF_FRAMES_H

#include "wire/eh_frame.h"

#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

struct elf_frames {
	int fd;
	Elf *elf;
	struct seam_eh_frame frame;
};

static inline struct seam_bytes section_bytes(Elf_Scn *section)
{
	Elf_Data *data = elf_rawdata(section, NULL);

	return (struct seam_bytes) { data->d_buf, data->d_size };
}

/* False where @path is no ELF file with an .eh_frame. */
static inline bool elf_frames_open(struct elf_frames *file, const char *path)
{
	Elf_Scn *section = NULL;
	size_t names;

	*file = (struct elf_frames) { .frame.address_bytes = 8 };
	elf_version(EV_CURRENT);
	file->fd = open(path, O_RDONLY | O_CLOEXEC);
	file->elf = file->fd < 0 ? NULL :
		    elf_begin(file->fd, ELF_C_READ_MMAP, NULL);
	if (!file->elf || elf_getshdrstrndx(file->elf, &names) < 0)
		return false;
	while ((section = elf_nextscn(file->elf, section))) {
		const char *name;
		GElf_Shdr header;

		gelf_getshdr(section, &header);
		name = elf_strptr(file->elf, names, header.sh_name);
		if (!name || header.sh_type == SHT_NOBITS)
			continue;
		if (strcmp(name, ".eh_frame") == 0) {
			file->frame.entries = section_bytes(section);
			file->frame.entries_addr = header.sh_addr;
		} else if (strcmp(name, ".eh_frame_hdr") == 0) {
			file->frame.header = section_bytes(section);
			file->frame.header_addr = header.sh_addr;
		}
	}
	return file->frame.entries.size > 0;
}

static inline void elf_frames_close(struct elf_frames *file)
{
	elf_end(file->elf);
	close(file->fd);
}

#endif /* ELF_FRAMES_H */
