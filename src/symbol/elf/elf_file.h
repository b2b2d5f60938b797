/* SPDX-License-Identifier: MIT */
/*
 * elf_file.h - an ELF file that is open, and where its bytes are mapped
 *
 * The file is read, never mapped: a concurrent writer causes wrong bytes and
 * not a SIGBUS.  Only regular files are opened, after a check without effect
 * on them, because a recording may name devices and fifos.
 *
 * 32 and 64 bit, both byte orders.
 */
#pragma once

#include "base/array.h"
#include "base/cursor.h"
#include "base/err.h"
#include "symbol/elf/module.h"

#include <gelf.h>

/* A part of the file that is mapped: PT_LOAD. */
struct seam_segment {
	uint64_t offset;	/* in the file */
	uint64_t size;		/* bytes, in the file */
	uint64_t addr;		/* in symbols and DWARF */
	bool is_executable;	/* PF_X */
};

struct seam_segments {
	struct seam_segment *items;
	size_t n, cap;
};

/* Zeroed is valid and closed. */
struct seam_elf {
	Elf *elf;
	int fd;			/* -1: bytes in memory */
	struct seam_bytes bytes;	/* these */
	void *image;		/* owned: what they are in; NULL: borrowed */
	char *path;		/* owned; NULL for memory */
	uint64_t size;		/* bytes of the file */
	int machine;		/* EM_X86_64, ... */
	uint8_t build_id[SEAM_BUILD_ID_MAX];
	size_t build_id_size;	/* 0: has none */
	struct seam_segments segments;
};

/*
 * How a sandboxed process opens files: by requests to its parent, which checks
 * what it opens.  The search for files (find_elf.h) runs there, because they
 * have to be parsed to be identified.  As seam_elf_open_fd() and
 * seam_debuginfod_open().
 */
struct seam_file_broker {
	int (*open)(const char *path, struct seam_err *err);
	int (*download)(bool debug, const uint8_t *id, size_t id_size,
			struct seam_err *err);
};

/* NULL: this process opens files itself. */
extern const struct seam_file_broker *seam_file_broker;

/*
 * Open @path for reading if it is a regular file: the descriptor, or -errno
 * with the reason in @err.
 */
int seam_elf_open_fd(const char *path, struct seam_err *err);

/* Open @path.  0, or -errno with the reason. */
int seam_elf_open(struct seam_elf *file, const char *path,
		  struct seam_err *err);

/* The same for a file that is open.  Takes @fd, on failure too. */
int seam_elf_open_at(struct seam_elf *file, int fd, const char *path,
		     struct seam_err *err);

/* The same for @bytes, which are borrowed until the file is closed. */
int seam_elf_open_bytes(struct seam_elf *file, struct seam_bytes bytes,
			struct seam_err *err);

/* The same for @size bytes of malloc().  Takes @image, on failure too. */
int seam_elf_open_image(struct seam_elf *file, void *image, size_t size,
			struct seam_err *err);

/* Give the descriptor back; what has been read of the file stays. */
void seam_elf_release_fd(struct seam_elf *file);

void seam_elf_close(struct seam_elf *file);

/* The segment that @addr is in, or NULL. */
const struct seam_segment *
seam_segment_at(const struct seam_segments *segments, uint64_t addr);

enum seam_endian seam_elf_endian(const struct seam_elf *file);

/*
 * Read @size bytes at address @addr, all or none.  0; -ENXIO when no segment
 * has all of them; -ENODATA when the file ends before; -EBADF when its
 * descriptor was released.
 */
int seam_elf_read_at(const struct seam_elf *file, uint64_t addr, void *buf,
		     size_t size, struct seam_err *err);

/* The machine of @file, which is open. */
struct seam_machine seam_elf_machine(const struct seam_elf *file);

/*
 * The address of the byte at @offset of the file; where two segments hold it,
 * of the executable one.  False when none does.
 */
bool seam_segments_addr(const struct seam_segments *segments, uint64_t offset,
			uint64_t *addr);

/*
 * The section called @name that has bytes in the file, with its header in
 * @header; NULL when there is none.
 */
Elf_Scn *seam_elf_section(const struct seam_elf *file, const char *name,
			  GElf_Shdr *header);

/* Its bytes as they are in the file; borrowed; none when there is none. */
struct seam_bytes seam_elf_bytes(const struct seam_elf *file, const char *name,
				 GElf_Shdr *header);

/* Called with the address of a word, and the address in it.  0 to go on. */
typedef int seam_elf_take_word(void *context, uint64_t addr, uint64_t value);

/*
 * The words of a position-independent file that its relocations make addresses
 * of its own: they are not in the file.  0, or what @take returned.
 */
int seam_elf_relocated(const struct seam_elf *file, seam_elf_take_word *take,
		       void *context);

/*
 * Whether the compressed sections of @file may be unpacked: by their headers
 * they unpack to at most 256 MiB and 16 times the file's size, all together.
 * The reason is in @err otherwise.
 */
bool seam_elf_unpacks_well(const struct seam_elf *file, struct seam_err *err);

/*
 * Whether @id, as recorded, is the build id of @file.  Recordings of old
 * kernels pad ids with zeros to 20 bytes.
 */
bool seam_elf_is(const struct seam_elf *file, const uint8_t *id, size_t size);
