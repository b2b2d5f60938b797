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

static int read_exact(const struct seam_image_file *file, uint64_t at,
		      uint64_t n, void *to)
{
	int r;

	if (at > file->size || n > file->size - at)
		return -EBADMSG;
	r = seam_file_read_at(file->fd, to, n, at);
	return r == -ENODATA ? -EBADMSG : r;
}

int seam_image_file_read(const struct seam_image_file *file, uint64_t at,
			 uint64_t n, void **out)
{
	uint8_t *bytes = n <= MAX_TABLE && n <= file->size ? malloc(n + 1) :
							    NULL;
	int r;

	if (!bytes)
		return n <= MAX_TABLE && n <= file->size ? -ENOMEM : -EBADMSG;
	r = read_exact(file, at, n, bytes);
	if (r < 0) {
		free(bytes);
		return r;
	}
	bytes[n] = 0;
	*out = bytes;
	return 0;
}

static int read_header(struct seam_image_file *file)
{
	struct stat stat;
	int r;

	if (fstat(file->fd, &stat) < 0)
		return -errno;
	if (!S_ISREG(stat.st_mode))
		return -EBADMSG;
	file->size = (uint64_t)stat.st_size;
	r = read_exact(file, 0, sizeof(file->header), &file->header);
	if (r == 0 && (memcmp(file->header.e_ident, ELFMAG, SELFMAG) ||
		       file->header.e_ident[EI_CLASS] != ELFCLASS64))
		return -EBADMSG;
	return r;
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

static int read_sections(struct seam_image_file *file)
{
	const ElfW(Ehdr) *header = &file->header;
	const ElfW(Shdr) *names;
	void *bytes;
	int r;

	if (header->e_shnum == 0)
		return 0;
	if (header->e_shentsize != sizeof(*file->sections))
		return -EBADMSG;
	r = seam_image_file_read(file, header->e_shoff,
				 header->e_shnum * sizeof(*file->sections),
				 &bytes);
	if (r < 0)
		return r;
	file->sections = bytes;
	file->n_sections = header->e_shnum;
	if (header->e_shstrndx == SHN_UNDEF ||
	    header->e_shstrndx >= header->e_shnum)
		return 0;
	names = &file->sections[header->e_shstrndx];
	r = seam_image_file_read(file, names->sh_offset, names->sh_size,
				 &bytes);
	if (r == 0) {
		file->names = bytes;
		file->names_bytes = names->sh_size;
	}
	return r;
}

int seam_image_file_open(struct seam_image_file *file, const char *path,
			 const ElfW(Phdr) *headers, size_t n)
{
	int r;

	/* a path that names a FIFO by now must not stop the program */
	*file = (struct seam_image_file) {
		.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK),
	};
	if (file->fd < 0)
		return -errno;
	r = read_header(file);
	r = r ?: check_headers(file, headers, n);
	r = r ?: read_sections(file);
	if (r < 0)
		seam_image_file_close(file);
	return r;
}

int seam_image_file_open_fd(struct seam_image_file *file, int fd)
{
	int r;

	*file = (struct seam_image_file) { .fd = fd };
	r = read_header(file);
	r = r ?: read_sections(file);
	if (r < 0)
		seam_image_file_close(file);
	return r;
}

void seam_image_file_close(struct seam_image_file *file)
{
	if (file->fd >= 0)
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
