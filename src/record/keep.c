/* SPDX-License-Identifier: MIT */
/* keep.c - hold mapped files, copy those that were lost; see keep.h */
#include "record/keep.h"

#include "base/cursor.h"
#include "base/file.h"
#include "base/hash.h"
#include "record/elf_id.h"
#include "symbol/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MOST_HELD = 512,	/* descriptors */
	VDSO_BYTES = 64 * 1024,	/* no vdso is larger */
};

#define MOST_FILE_BYTES (UINT64_C(256) << 20)
#define MOST_ALL_BYTES (UINT64_C(1) << 30)
/* A vdso below this belongs to a 32-bit process and is not ours. */
#define FIRST_64_BIT_ADDR (UINT64_C(1) << 32)

/* An executable mapping of a file, out of PERF_RECORD_MMAP2. */
struct mapping {
	int32_t pid;
	uint64_t addr, bytes;
	const uint8_t *build_id;
	size_t build_id_size;
	const char *path;
};

static bool read_mapping(const struct seam_ring_header *record,
			 struct mapping *m)
{
	struct seam_cursor c = seam_cursor_make(record, record->size,
						SEAM_LITTLE);
	uint8_t size;
	uint32_t prot;

	if (record->type != PERF_RECORD_MMAP2)
		return false;
	seam_cursor_skip(&c, sizeof(*record));
	m->pid = (int32_t)seam_cursor_u32(&c);
	seam_cursor_skip(&c, 4);		/* tid */
	m->addr = seam_cursor_u64(&c);
	m->bytes = seam_cursor_u64(&c);
	seam_cursor_skip(&c, 8);		/* offset in the file */
	size = seam_cursor_u8(&c);
	seam_cursor_skip(&c, 3);
	m->build_id = seam_cursor_bytes(&c, SEAM_KEEP_BUILD_ID);
	m->build_id_size = 0;
	if (record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID &&
	    size <= SEAM_KEEP_BUILD_ID)
		m->build_id_size = size;
	prot = seam_cursor_u32(&c);
	seam_cursor_skip(&c, 4);		/* flags */
	m->path = seam_cursor_cstr(&c);
	return !c.error && prot & PROT_EXEC;
}

static uint64_t hash_of(const struct mapping *m)
{
	return seam_hash_bytes(m->path, strlen(m->path),
			       seam_hash_bytes(m->build_id,
					       m->build_id_size, 0));
}

static bool is_known(const struct seam_keep *keep, const struct mapping *m,
		     uint64_t hash)
{
	struct seam_index_probe probe = seam_index_probe(&keep->index, hash);
	uint32_t id;

	while ((id = seam_index_next(&keep->index, &probe)) != SEAM_NONE) {
		const struct seam_kept *file = &keep->files.items[id];

		if (file->build_id_size == m->build_id_size &&
		    memcmp(file->build_id, m->build_id,
			   m->build_id_size) == 0 &&
		    strcmp(file->path, m->path) == 0)
			return true;
	}
	return false;
}

static bool has_build_id(int fd, const uint8_t *id, size_t size)
{
	uint8_t found[SEAM_KEEP_BUILD_ID];

	return seam_elf_id_read(fd, found) == size &&
	       memcmp(found, id, size) == 0;
}

/* A regular file that carries the mapping's build id; or -1. */
static int open_if_it_is(const char *path, const uint8_t *id, size_t id_size)
{
	int fd = seam_elf_open_fd(path, NULL);

	if (fd < 0 || has_build_id(fd, id, id_size))
		return fd < 0 ? -1 : fd;
	close(fd);
	return -1;
}

/* By the ways that are open to us, the target's own view first. */
static int open_mapped(const struct mapping *m)
{
	char ways[4][PATH_MAX + 64];
	int fd = -1;

	snprintf(ways[0], sizeof(ways[0]), "/proc/%d/root%s", m->pid, m->path);
	snprintf(ways[1], sizeof(ways[1]),
		 "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, m->pid, m->addr,
		 m->addr + m->bytes);
	snprintf(ways[2], sizeof(ways[2]), "/proc/%d/exe", m->pid);
	snprintf(ways[3], sizeof(ways[3]), "%s", m->path);
	for (size_t i = 0; fd < 0 && i < SEAM_ARRAY_SIZE(ways); i++)
		fd = open_if_it_is(ways[i], m->build_id, m->build_id_size);
	return fd;
}

static void hold(struct seam_keep *keep, const struct mapping *m,
		 uint64_t hash)
{
	uint32_t id = (uint32_t)keep->files.n;
	char *path = strdup(m->path);
	struct seam_kept *file;

	if (!path || !SEAM_ARRAY_RESERVE(&keep->files, 1) ||
	    seam_index_add(&keep->index, hash, id) < 0) {
		free(path);
		return;
	}
	file = &keep->files.items[keep->files.n++];
	*file = (struct seam_kept) {
		.fd = id < MOST_HELD ? open_mapped(m) : -1,
		.build_id_size = (uint8_t)m->build_id_size,
		.path = path,
	};
	memcpy(file->build_id, m->build_id, m->build_id_size);
}

void seam_keep_see(struct seam_keep *keep,
		   const struct seam_ring_header *record)
{
	struct mapping m;
	uint64_t hash;

	if (!read_mapping(record, &m))
		return;
	seam_keep_jit_see(&keep->jit, m.pid, m.path);
	if (strcmp(m.path, "[vdso]") == 0 && m.addr >= FIRST_64_BIT_ADDR)
		keep->saw_vdso = true;
	if (m.path[0] != '/' || m.path[1] == '/' || m.build_id_size == 0)
		return;		/* not a file, or none that can be told */
	hash = hash_of(&m);
	if (!is_known(keep, &m, hash))
		hold(keep, &m, hash);
}

/* Whether a reader who goes by the path finds this very content. */
static bool is_at_its_path(const struct seam_kept *file)
{
	struct stat held, there;
	int fd;

	if (file->fd >= 0 && fstat(file->fd, &held) == 0 &&
	    stat(file->path, &there) == 0 && held.st_dev == there.st_dev &&
	    held.st_ino == there.st_ino)
		return true;
	fd = open_if_it_is(file->path, file->build_id, file->build_id_size);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* A new file elf/@id; or -1. */
static int create_copy(const struct seam_bundle *bundle, const uint8_t *id,
		       size_t id_size)
{
	char name[2 * SEAM_KEEP_BUILD_ID + 1];
	int dir = seam_bundle_folder(bundle, "elf", NULL);
	int fd;

	if (dir < 0)
		return -1;
	seam_build_id_text(name, id, id_size);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
		    O_CLOEXEC, 0600);
	close(dir);
	return fd;
}

static void remove_copy(const struct seam_bundle *bundle, const uint8_t *id,
			size_t id_size)
{
	char name[2 * SEAM_KEEP_BUILD_ID + 1];
	int dir = seam_bundle_folder(bundle, "elf", NULL);

	if (dir < 0)
		return;
	seam_build_id_text(name, id, id_size);
	unlinkat(dir, name, 0);
	close(dir);
}

static bool copy_bytes(int to, int from, uint64_t bytes)
{
	off_t offset = 0;

	while ((uint64_t)offset < bytes) {
		ssize_t n = sendfile(to, from, &offset,
				     (size_t)(bytes - (uint64_t)offset));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
	}
	return true;
}

static void copy_one(struct seam_keep *keep, const struct seam_kept *file,
		     const struct seam_bundle *bundle)
{
	struct stat st;
	int to;

	if (fstat(file->fd, &st) < 0) {
		keep->n_failed++;
		return;
	}
	if ((uint64_t)st.st_size > MOST_FILE_BYTES ||
	    keep->n_copied_bytes + (uint64_t)st.st_size > MOST_ALL_BYTES) {
		keep->n_too_large++;
		return;
	}
	to = create_copy(bundle, file->build_id, file->build_id_size);
	if (to < 0) {
		/* the same build id under another path is there already */
		keep->n_failed += errno != EEXIST;
		return;
	}
	if (copy_bytes(to, file->fd, (uint64_t)st.st_size)) {
		keep->n_copied++;
		keep->n_copied_bytes += (uint64_t)st.st_size;
	} else {
		/* half a file would pass for the whole, and take space */
		remove_copy(bundle, file->build_id, file->build_id_size);
		keep->n_failed++;
	}
	close(to);
}

/* Our own vdso: the kernel gives all 64-bit processes the same. */
static void keep_vdso(struct seam_keep *keep, const struct seam_bundle *bundle)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *header = (const void *)image;
	const ElfW(Phdr) *segments;
	size_t bytes;
	int fd;

	if (!image)
		return;
	segments = (const void *)(image + header->e_phoff);
	for (size_t i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_NOTE && !keep->vdso_build_id_size)
			keep->vdso_build_id_size = seam_elf_id_in_notes(
				(struct seam_bytes) {
					image + segments[i].p_offset,
					segments[i].p_filesz },
				keep->vdso_build_id);
	bytes = header->e_shoff + (size_t)header->e_shnum *
				  header->e_shentsize;
	fd = keep->vdso_build_id_size && bytes <= VDSO_BYTES ?
	     create_copy(bundle, keep->vdso_build_id,
			 keep->vdso_build_id_size) : -1;
	if (fd < 0 || seam_file_write_at(fd, image, bytes, 0, "vdso",
					 NULL) < 0) {
		if (fd >= 0)
			remove_copy(bundle, keep->vdso_build_id,
				    keep->vdso_build_id_size);
		keep->vdso_build_id_size = 0;
		keep->n_failed++;
	}
	if (fd >= 0)
		close(fd);
}

void seam_keep_finish(struct seam_keep *keep,
		      const struct seam_bundle *bundle)
{
	seam_keep_jit_finish(&keep->jit, bundle);
	if (keep->saw_vdso)
		keep_vdso(keep, bundle);
	for (size_t i = 0; i < keep->files.n; i++) {
		const struct seam_kept *file = &keep->files.items[i];

		if (is_at_its_path(file))
			continue;
		if (file->fd >= 0)
			copy_one(keep, file, bundle);
		else
			keep->n_missed++;
	}
}

void seam_keep_fini(struct seam_keep *keep)
{
	for (size_t i = 0; i < keep->files.n; i++) {
		if (keep->files.items[i].fd >= 0)
			close(keep->files.items[i].fd);
		free(keep->files.items[i].path);
	}
	free(keep->files.items);
	seam_index_fini(&keep->index);
	seam_keep_jit_fini(&keep->jit);
	*keep = (struct seam_keep) { 0 };
}
