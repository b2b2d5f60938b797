/* SPDX-License-Identifier: MIT */
/* debug_file.c - the places of gdb, one after another; see debug_file.h */
#include "record/proc/debug_file.h"

#include <errno.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "record/proc/target_file.h"

static const char debug_root[] = "/usr/lib/debug";

bool seam_debug_file_path(size_t i, const char *mapped,
			  const struct seam_file_identity *identity,
			  const struct seam_debug_link *link,
			  char path[PATH_MAX])
{
	static const struct {
		const char *root, *folder;
	} places[] = { { "", "" }, { "", "/.debug" }, { debug_root, "" } };
	const char *base = strrchr(mapped, '/');
	bool has_id = identity->build_id_size >= 2;
	char id[2 * SEAM_MAPPED_BUILD_ID + 1];

	if (has_id && i == 0) {
		seam_text_hex(id, identity->build_id, identity->build_id_size);
		snprintf(path, PATH_MAX, "%s/.build-id/%.2s/%s.debug",
			 debug_root, id, id + 2);
		return true;
	}
	i -= has_id;
	if (i >= SEAM_ARRAY_SIZE(places) || !link->name[0] || !base)
		return false;
	snprintf(path, PATH_MAX, "%s%.*s%s/%s", places[i].root,
		 (int)(base - mapped), mapped, places[i].folder, link->name);
	return true;
}

static bool has_crc(int fd, uint32_t expected)
{
	uint8_t block[16 * 1024];
	uint32_t crc = 0;
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, block, sizeof(block), at)) > 0) {
		crc = lzma_crc32(block, (size_t)n, crc);
		at += n;
	}
	return n == 0 && crc == expected;
}

/* The stripped file may have the name of its debug file, and its build id. */
static bool is_same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 &&
	       x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool is_debug_file(int fd, int mapped,
			  const struct seam_file_identity *identity,
			  const struct seam_debug_link *link)
{
	if (is_same_file(fd, mapped))
		return false;
	return identity->build_id_size ? seam_mapped_file_is(fd, identity) :
					 has_crc(fd, link->crc);
}

int seam_debug_file_open(const struct seam_file_mapping *mapping, int fd,
			 const struct seam_file_identity *identity)
{
	struct seam_debug_link link;
	struct seam_target target;
	char path[PATH_MAX];
	int found = -ENOENT;

	seam_cfi_file_read_link(fd, &link);
	seam_target_open(&target, mapping->pid, NULL);
	if (mapping->user)
		seam_target_set_user(&target, *mapping->user);
	for (size_t i = 0; found < 0 &&
	     seam_debug_file_path(i, mapping->path, identity, &link, path);
	     i++) {
		found = seam_target_open_path(&target, path, NULL);
		if (found >= 0 &&
		    !is_debug_file(found, fd, identity, &link)) {
			close(found);
			found = -ENOENT;
		}
	}
	seam_target_close(&target);
	return found < 0 ? -ENOENT : found;
}
