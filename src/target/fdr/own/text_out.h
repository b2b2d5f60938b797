/* SPDX-License-Identifier: MIT */
/*
 * text_out.h - write text files in a traced program: no heap, no stdio
 *
 * What is put is collected, and written when the buffer is full and at the
 * end.  The first failure is remembered.
 */
#ifndef SEAM_FDR_TEXT_OUT_H
#define SEAM_FDR_TEXT_OUT_H

#include "base/base.h"

struct seam_fdr_text {
	int fd;
	int error;		/* 0 or -errno */
	size_t n;
	char buffer[4096];
};

/* Create or empty @path, mode 0600.  The failure is that of the end. */
void seam_fdr_text_begin(struct seam_fdr_text *t, const char *path);

void seam_fdr_text_put(struct seam_fdr_text *t, const char *text);
void seam_fdr_text_number(struct seam_fdr_text *t, uint64_t number);
void seam_fdr_text_hex(struct seam_fdr_text *t, uint64_t number);

/*
 * @text between quotes, as a string of JSON.  Bytes that are not UTF-8 become
 * U+FFFD.  At most @size bytes, or up to a 0.
 */
void seam_fdr_text_json(struct seam_fdr_text *t, const char *text, size_t size);

/* The same of YAML, between single quotes. */
void seam_fdr_text_yaml(struct seam_fdr_text *t, const char *text);

/* 0, or the first -errno. */
int seam_fdr_text_end(struct seam_fdr_text *t);

#endif /* SEAM_FDR_TEXT_OUT_H */
