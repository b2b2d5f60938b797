/* SPDX-License-Identifier: MIT */
/* kernel_file.c - header lines and zstd; the contract is in kernel_file.h */
#include "symbol/kernel/kernel_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "base/cursor.h"
#include "base/text.h"

#define SKIPPABLE 0x184d2a50u
#define HEADER_MAX 4096

/*
 * The largest unpacked size of kernel.sym.zst: a kernel's list has 10 to 20 MB
 * and packs to a seventh.
 */
#define TEXT_MAX ((size_t)256 << 20)
#define TEXT_FREE ((size_t)1 << 20)
#define MAX_RATIO 32
#define MAGIC_KEY "seam-kernel-symbols"

/* Level 1: a quarter more bytes than level 3 in half of its time. */
enum { LEVEL = 1 };

static void put_u32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static size_t print_header(const struct seam_kernel_file *file, char *text)
{
	const struct seam_kernel_identity *id = &file->identity;
	char hex[2 * SEAM_BUILD_ID_MAX + 1];
	int n = snprintf(text, HEADER_MAX, MAGIC_KEY "=1\n");

	if (id->boot_id[0])
		n += snprintf(text + n, HEADER_MAX - (size_t)n, "boot_id=%s\n",
			      id->boot_id);
	if (id->build_id_size > 0)
		n += snprintf(text + n, HEADER_MAX - (size_t)n, "build_id=%s\n",
			      seam_text_hex(hex, id->build_id,
					    id->build_id_size));
	n += snprintf(text + n, HEADER_MAX - (size_t)n,
		      "text=%" PRIx64 "\nmodules=%" PRIx64 "\n", id->text_addr,
		      file->modules);
	return (size_t)n;
}

int seam_kernel_file_write(const struct seam_kernel_file *file,
			   struct seam_bytes text, uint8_t **out,
			   size_t *out_size, struct seam_err *err)
{
	char header[HEADER_MAX];
	size_t n = print_header(file, header);
	size_t cap = ZSTD_compressBound(text.size);
	uint8_t *bytes = malloc(8 + n + cap);
	size_t packed;

	*out = NULL;
	if (!bytes)
		return seam_err_no_memory(err);
	put_u32(bytes, SKIPPABLE);
	put_u32(bytes + 4, (uint32_t)n);
	memcpy(bytes + 8, header, n);
	packed = ZSTD_compress(bytes + 8 + n, cap, text.data, text.size, LEVEL);
	if (ZSTD_isError(packed)) {
		free(bytes);
		return seam_err_set(err, -ENOMEM, "cannot compress: %s",
				    ZSTD_getErrorName(packed));
	}
	*out = bytes;
	*out_size = 8 + n + packed;
	return 0;
}

static bool parse_hex(const char *text, size_t size, uint64_t *value)
{
	return seam_text_number(text, text + size, 16, value) == text + size;
}

/* One "key=value"; false when a known key has an unknown value. */
static bool parse_line(struct seam_kernel_file *file, const char *key,
		       size_t key_size, const char *value, size_t size)
{
	struct seam_kernel_identity *id = &file->identity;

#define IS(name) (key_size == strlen(name) && !memcmp(key, name, key_size))
	if (IS("boot_id")) {
		if (size >= SEAM_BOOT_ID_TEXT)
			return false;
		memcpy(id->boot_id, value, size);
		id->boot_id[size] = '\0';
		return true;
	}
	if (IS("build_id"))
		return (id->build_id_size = seam_text_unhex(id->build_id,
				SEAM_BUILD_ID_MAX, value, size)) != 0;
	if (IS("text"))
		return parse_hex(value, size, &id->text_addr);
	if (IS("modules"))
		return parse_hex(value, size, &file->modules);
	return !IS(MAGIC_KEY) || (size == 1 && value[0] == '1');
#undef IS
}

/* @text has a NUL after its @size bytes. */
static int parse_header(struct seam_kernel_file *file, const char *text,
			size_t size, struct seam_err *err)
{
	size_t pos = 0;

	if (strncmp(text, MAGIC_KEY "=", strlen(MAGIC_KEY "=")) != 0)
		return seam_err_set(err, -EBADMSG,
				    "byte 8: not a file of kernel symbols");
	while (pos < size) {
		const char *line = text + pos;
		const char *end = memchr(line, '\n', size - pos);
		const char *equals = end ? memchr(line, '=',
						  (size_t)(end - line)) : NULL;

		if (!equals)
			return seam_err_set(err, -EBADMSG,
				"byte %zu: not a key=value line", 8 + pos);
		if (!parse_line(file, line, (size_t)(equals - line),
				equals + 1, (size_t)(end - equals - 1)))
			return seam_err_set(err, -ENOTSUP,
				"byte %zu: a value that is not read here",
				8 + pos);
		pos = (size_t)(end - text) + 1;
	}
	return 0;
}

int seam_kernel_file_read(struct seam_kernel_file *file,
			  struct seam_bytes bytes, struct seam_err *err)
{
	struct seam_cursor c = seam_cursor_over(bytes, SEAM_LITTLE);
	uint32_t magic = seam_cursor_u32(&c);
	uint32_t size = seam_cursor_u32(&c);
	char header[HEADER_MAX + 1];
	const uint8_t *text;

	*file = (struct seam_kernel_file) { 0 };
	if (!c.error && (magic != SKIPPABLE || size > HEADER_MAX))
		return seam_err_set(err, -EBADMSG,
				    "byte 0: not a file of kernel symbols");
	text = seam_cursor_bytes(&c, size);
	if (c.error)
		return seam_err_set(err, c.error,
				    "byte %zu: the file ends early",
				    c.error_pos);
	memcpy(header, text, size);
	header[size] = '\0';
	file->packed = (struct seam_bytes) {
		bytes.data + c.pos, seam_cursor_left(&c),
	};
	return parse_header(file, header, size, err);
}

int seam_kernel_file_text(const struct seam_kernel_file *file, char **text,
			  size_t *size, struct seam_err *err)
{
	unsigned long long n = ZSTD_getFrameContentSize(file->packed.data,
							file->packed.size);
	size_t got;

	*text = NULL;
	if (n == ZSTD_CONTENTSIZE_ERROR || n == ZSTD_CONTENTSIZE_UNKNOWN ||
	    n > TEXT_MAX)
		return seam_err_set(err, -EBADMSG,
				    "the compressed text has an invalid size");
	if (n > TEXT_FREE + MAX_RATIO * (uint64_t)file->packed.size)
		return seam_err_set(err, -EBADMSG, "the compressed text would "
				    "unpack to over %d times its size",
				    MAX_RATIO);
	*text = malloc((size_t)n + 1);
	if (!*text)
		return seam_err_no_memory(err);
	got = ZSTD_decompress(*text, (size_t)n, file->packed.data,
			      file->packed.size);
	if (ZSTD_isError(got)) {
		free(*text);
		*text = NULL;
		return seam_err_set(err, -EBADMSG, "cannot unpack: %s",
				    ZSTD_getErrorName(got));
	}
	*size = got;
	return 0;
}
