/* SPDX-License-Identifier: MIT */
/* kernel_cache.c - one file in a folder of the user; see kernel_cache.h */
#include "symbol/kernel/kernel_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hash.h"

#define NAME "kernel.sym.zst"
#define FILE_MAX ((size_t)64 << 20)
#define MODULES_MAX ((size_t)16 << 20)

/* More BPF programs than this are not counted; nothing is cached then. */
#define BPF_MAX 4096

/*
 * Fold name, size and address of each line of /proc/modules; its counts of
 * users change all the time.
 */
static uint64_t hash_modules(const char *text, size_t size)
{
	uint64_t hash = 0;
	size_t start = 0;
	int field = 0;

	for (size_t i = 0; i < size; i++) {
		if (text[i] != ' ' && text[i] != '\n')
			continue;
		if (field != 2 && field != 3 && field != 4)
			hash = seam_hash_stable(text + start, i - start,
						hash);
		field = text[i] == '\n' ? 0 : field + 1;
		start = i + 1;
	}
	return hash;
}

/* Names in [bpf] come and go with the programs; ids are not used again. */
static bool hash_bpf(uint64_t *hash)
{
	union bpf_attr attr = { 0 };

	for (int i = 0; i < BPF_MAX; i++) {
		if (syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &attr,
			    sizeof(attr)))
			return errno == ENOENT || errno == ENOSYS;
		*hash = seam_hash_stable(&attr.next_id,
					 sizeof(attr.next_id), *hash);
		attr.start_id = attr.next_id;
	}
	return false;
}

uint64_t seam_kernel_modules(void)
{
	struct seam_file file;
	uint64_t hash = 1;
	int r = seam_file_read(&file, AT_FDCWD, "/proc/modules", MODULES_MAX,
			       NULL);

	/* A kernel without modules has no such file. */
	if (r && r != -ENOENT)
		return 0;
	if (!r)
		hash = hash_modules((const char *)file.bytes.data,
				    file.bytes.size);
	seam_file_close(&file);
	if (!hash_bpf(&hash))
		return 0;
	return hash ? hash : 1;
}

/* The folder, made if it is not there; or -1. */
static int open_folder(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	char base[PATH_MAX], path[PATH_MAX];
	struct stat st;
	int fd;

	if (xdg && xdg[0] == '/')
		snprintf(base, sizeof(base), "%s", xdg);
	else if (home && home[0] == '/')
		snprintf(base, sizeof(base), "%s/.cache", home);
	else
		return -1;
	if (snprintf(path, sizeof(path), "%s/seam", base) >= PATH_MAX)
		return -1;
	mkdir(base, 0700);
	mkdir(path, 0700);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	    (st.st_mode & 077) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool is_same(const struct seam_kernel_file *file,
		    const struct seam_kernel_identity *identity,
		    uint64_t modules)
{
	const struct seam_kernel_identity *have = &file->identity;

	return file->modules == modules && identity->boot_id[0] &&
	       strcmp(have->boot_id, identity->boot_id) == 0 &&
	       have->text_addr == identity->text_addr &&
	       have->build_id_size == identity->build_id_size &&
	       memcmp(have->build_id, identity->build_id,
		      have->build_id_size) == 0;
}

bool seam_kernel_cache_read(struct seam_file *file,
			    const struct seam_kernel_identity *identity,
			    uint64_t modules)
{
	struct seam_kernel_file kept;
	int folder = modules ? open_folder() : -1;
	int r;

	if (folder < 0)
		return false;
	r = seam_file_read(file, folder, NAME, FILE_MAX, NULL);
	close(folder);
	if (r)
		return false;
	if (!seam_kernel_file_read(&kept, file->bytes, NULL) &&
	    is_same(&kept, identity, modules))
		return true;
	seam_file_close(file);
	return false;
}

void seam_kernel_cache_write(struct seam_bytes bytes)
{
	int folder = open_folder();
	char name[64];

	if (folder < 0)
		return;
	snprintf(name, sizeof(name), NAME ".%ld", (long)getpid());
	if (!seam_file_create(folder, name, bytes, NULL) &&
	    renameat(folder, name, folder, NAME))
		unlinkat(folder, name, 0);
	close(folder);
}
