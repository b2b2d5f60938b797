/* SPDX-License-Identifier: MIT */
/*
 * batch_file.h - a batch as a file
 *
 *	file	= head-frame body-frame		zstd, each with a checksum
 *	head	= "seam-batch 1\n" JSON "\n"
 *	body	= section{6}			in the order of the tables
 *	section	= table " " size "\n" byte{size}
 *
 * The bytes of a section are one block of format Native: what an engine takes
 * as INSERT INTO table FORMAT Native.  The head is a frame of its own, so that
 * a folder of files can be searched without reading what they hold; zstdcat(1)
 * shows both.  A file that is cut or damaged is refused: -ENODATA, -EBADMSG.
 */
#pragma once

#include "base/arena.h"
#include "wire/fleet/batch_tables.h"

enum {
	/* of the head alone, packed or not: the most that is to be read */
	SEAM_BATCH_HEAD_MAX = 64 << 10,
};

/* Unpacked bytes of a file. */
#define SEAM_BATCH_FILE_MAX ((size_t)1 << 29)

struct seam_batch_head {
	struct seam_batch_id id;
	uint64_t from_ns, to_ns;
	uint64_t rows[SEAM_N_BATCH_TABLES];
	/* of its only origin; NULL where it has several */
	const char *service, *host, *recording;
	const char **labels;
	size_t n_labels;
	struct seam_arena arena;	/* of the texts */
};

struct seam_batch_file {
	struct seam_batch_head head;
	struct seam_bytes blocks[SEAM_N_BATCH_TABLES];	/* in body */
	uint8_t *body;
};

/* Whether @bytes begin as a batch file of any version. */
bool seam_batch_file_is(struct seam_bytes bytes);

/* Append the file of @batch to @to, which the caller frees.  0 or -errno. */
int seam_batch_file_write(const struct seam_batch *batch,
			  struct seam_native_buffer *to, struct seam_err *err);

/*
 * The head of a file, of which @bytes are the first SEAM_BATCH_HEAD_MAX or all.
 * 0 or -errno: -ENOTSUP of another version; to be freed in either case.
 */
int seam_batch_head_read(struct seam_batch_head *head, struct seam_bytes bytes,
			 struct seam_err *err);
void seam_batch_head_fini(struct seam_batch_head *head);

/* The blocks of a file, unpacked.  0 or -errno; to be closed in either case. */
int seam_batch_file_open(struct seam_batch_file *file, struct seam_bytes bytes,
			 struct seam_err *err);
void seam_batch_file_close(struct seam_batch_file *file);

/* A file into @batch, which is zeroed before.  0 or -errno; to be freed. */
int seam_batch_file_read(struct seam_batch *batch, struct seam_bytes bytes,
			 struct seam_err *err);
