/* SPDX-License-Identifier: MIT */
/* image_file.c - the file of a loaded image; see image_file.h */
#include "traced/elf/image_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { MAX_TABLE = 1 << 30 };	/* bytes */

int seam_image_file_read(const struct seam_image_file *file, uint64_t at,
			 uint64_t n, void **out)
{
	uint8_t *bytes;
	int r;

	if (n > MAX_TABLE || at > file->size || n > file->size - at)
		return -EBADMSG;
	bytes = malloc(n + 1);
	if (!bytes)
		return -ENOMEM;
	r = seam_file_read_at(file->fd, bytes, n, at);
	if (r < 0) {
		free(bytes);
		return r == -ENODATA ? -EBADMSG : r;
	}
	bytes[n] = 0;
	*out = bytes;
	return 0;
}

static int take_regular(struct seam_image_file *file, int fd)
{
	struct stat stat;

	if (fd < 0)
		return -errno;
	file->fd = fd;
	file->is_open = true;
	if (fstat(fd, &stat) < 0)
		return -errno;
	if (!S_ISREG(stat.st_mode))
		return -EBADMSG;
	file->size = (uint64_t)stat.st_size;
	return 0;
}

static int read_header(struct seam_image_file *file)
{
	void *bytes;
	int r = seam_image_file_read(file, 0, sizeof(file->header), &bytes);

	if (r < 0)
		return r;
	memcpy(&file->header, bytes, sizeof(file->header));
	free(bytes);
	if (memcmp(file->header.e_ident, ELFMAG, SELFMAG) ||
	    file->header.e_ident[EI_CLASS] != ELFCLASS64)
		return -EBADMSG;
	return 0;
}

/* Whether it is the file with @headers. */
static int check_headers(struct seam_image_file *file,
			 const ElfW(Phdr) *headers, size_t n)
{
	void *bytes;
	int r;

	if (file->header.e_phentsize != sizeof(*headers))
		return -EBADMSG;
	if (file->header.e_phnum != n)
		return -ESTALE;
	r = seam_image_file_read(file, file->header.e_phoff,
				 n * sizeof(*headers), &bytes);
	if (r < 0)
		return r;
	r = memcmp(bytes, headers, n * sizeof(*headers)) ? -ESTALE : 0;
	free(bytes);
	return r;
}

/* More than 65,279 are counted in the first one's size. */
static int count_sections(struct seam_image_file *file)
{
	void *bytes;
	int r;

	file->n_sections = file->header.e_shnum;
	if (!file->header.e_shoff || file->n_sections)
		return 0;
	r = seam_image_file_read(file, file->header.e_shoff,
				 sizeof(ElfW(Shdr)), &bytes);
	if (r == 0) {
		file->n_sections = ((ElfW(Shdr) *)bytes)->sh_size;
		free(bytes);
	}
	return r;
}

static int read_names(struct seam_image_file *file)
{
	const ElfW(Shdr) *table = file->sections;
	size_t index = file->header.e_shstrndx;
	void *bytes;
	int r;

	if (index == SHN_XINDEX)
		index = table->sh_link;
	if (index == SHN_UNDEF || index >= file->n_sections)
		return 0;
	r = seam_image_file_read(file, table[index].sh_offset,
				 table[index].sh_size, &bytes);
	if (r == 0) {
		file->names = bytes;
		file->names_bytes = table[index].sh_size;
	}
	return r;
}

static int read_sections(struct seam_image_file *file)
{
	void *bytes;
	int r = count_sections(file);

	if (r < 0 || file->n_sections == 0)
		return r;
	if (file->header.e_shentsize != sizeof(*file->sections) ||
	    file->n_sections > MAX_TABLE / sizeof(*file->sections))
		return -EBADMSG;
	r = seam_image_file_read(file, file->header.e_shoff,
				 file->n_sections * sizeof(*file->sections),
				 &bytes);
	if (r < 0)
		return r;
	file->sections = bytes;
	return read_names(file);
}

int seam_image_file_open(struct seam_image_file *file, const char *path,
			 const ElfW(Phdr) *headers, size_t n)
{
	int r;

	*file = (struct seam_image_file) { .fd = -1 };
	/* a path that names a FIFO by now must not stop the program */
	r = take_regular(file, open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
	r = r ?: read_header(file);
	r = r ?: check_headers(file, headers, n);
	r = r ?: read_sections(file);
	if (r < 0)
		seam_image_file_close(file);
	return r;
}

int seam_image_file_open_fd(struct seam_image_file *file, int fd)
{
	int r;

	*file = (struct seam_image_file) { .fd = -1 };
	r = take_regular(file, fd);
	r = r ?: read_header(file);
	r = r ?: read_sections(file);
	if (r < 0)
		seam_image_file_close(file);
	return r;
}

void seam_image_file_close(struct seam_image_file *file)
{
	if (file->is_open)
		close(file->fd);
	free((void *)(uintptr_t)file->sections);
	free(file->names);
	*file = (struct seam_image_file) { .fd = -1 };
}

const ElfW(Shdr) *
seam_image_file_section_of(const struct seam_image_file *file, uint32_t type)
{
	for (size_t i = 0; i < file->n_sections; i++)
		if (file->sections[i].sh_type == type &&
		    file->sections[i].sh_size)
			return &file->sections[i];
	return NULL;
}

int seam_image_file_symbols(const struct seam_image_file *file, uint32_t type,
			    struct seam_image_symbols *symbols)
{
	const ElfW(Shdr) *table = seam_image_file_section_of(file, type);
	size_t n = table ? table->sh_size / sizeof(ElfW(Sym)) : 0;
	const ElfW(Shdr) *names;
	void *list = NULL, *text = NULL;
	int r;

	*symbols = (struct seam_image_symbols) { .list = NULL };
	if (!table)
		return -ENOENT;
	if (table->sh_link >= file->n_sections)
		return -EBADMSG;
	names = &file->sections[table->sh_link];
	r = seam_image_file_read(file, names->sh_offset, names->sh_size, &text);
	r = r ?: seam_image_file_read(file, table->sh_offset,
				      n * sizeof(ElfW(Sym)), &list);
	if (r < 0)
		free(text);
	else
		*symbols = (struct seam_image_symbols) {
			list, n, text, names->sh_size,
		};
	return r;
}

void seam_image_symbols_fini(struct seam_image_symbols *symbols)
{
	free(symbols->list);
	free(symbols->names);
	*symbols = (struct seam_image_symbols) { .list = NULL };
}

const char *seam_image_file_section_name(const struct seam_image_file *file,
					 const ElfW(Shdr) *section)
{
	return section->sh_name < file->names_bytes ?
	       file->names + section->sh_name : "";
}
