/* SPDX-License-Identifier: MIT */
/*
 * dump_file.c - the file of a dump: its folder, its name, its marker, its records
 *
 * The queue is written with as few calls as can be.  Where a write fails, the
 * part of it that reached the file is truncated again, and the queue is lost.
 * There may be room again later, so the next call tries again.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "traced/jit/writer.h"

/* Append @text at @n of a path.  Past the end it only counts. */
static size_t append(char *path, size_t n, const char *text)
{
	for (; *text; text++, n++)
		if (n < SEAM_WRITER_PATH_BYTES)
			path[n] = *text;
	return n;
}

/* "FOLDER/jit-PID.dump" or perf-PID.map; false when it is too long. */
static bool make_path(char *path, bool is_map, int32_t pid,
		      const char *folder)
{
	char digits[12], *first = digits + sizeof(digits) - 1;
	size_t n;

	*first = '\0';
	do {
		*--first = (char)('0' + pid % 10);
		pid /= 10;
	} while (pid);
	n = append(path, 0, folder);
	n = append(path, n, is_map ? "/perf-" : "/jit-");
	n = append(path, n, first);
	n = append(path, n, is_map ? ".map" : ".dump");
	if (n >= SEAM_WRITER_PATH_BYTES)
		return false;
	path[n] = '\0';
	return true;
}

/*
 * Remove the file of an earlier process with our pid.  A writer that runs holds
 * a lock on its file, which then is not ours to remove.
 */
static int remove_stale(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r = 0;

	if (fd >= 0) {
		if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
			r = -EEXIST;
		close(fd);
	}
	if (!r && unlink(path))
		r = -errno;
	return r;
}

static int create_file(const char *path)
{
	int flags = O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW |
		    O_CLOEXEC;
	int fd = open(path, flags, 0600);
	int r;

	if (fd >= 0 || errno != EEXIST)
		return fd < 0 ? -errno : fd;
	r = remove_stale(path);
	if (r)
		return r;
	fd = open(path, flags, 0600);
	return fd < 0 ? -errno : fd;
}

/* The page that profilers see.  Fails on a file system mounted noexec. */
static int map_marker(struct seam_writer_file *file)
{
	file->marker = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE),
			    PROT_READ | PROT_EXEC, MAP_PRIVATE, file->fd, 0);
	if (file->marker != MAP_FAILED)
		return 0;
	file->marker = NULL;
	return -errno;
}

/*
 * Not fstat(): that reads the times, and each write after it has to store new
 * ones (Linux 6.13), which makes it three times as slow on ext4.
 */
static bool identify(int fd, struct seam_writer_identity *identity)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO, &st))
		return false;
	*identity = (struct seam_writer_identity) {
		.ino = st.stx_ino, .dev_major = st.stx_dev_major,
		.dev_minor = st.stx_dev_minor,
	};
	return true;
}

bool seam_writer_owns_fd(const struct seam_writer_file *file)
{
	struct seam_writer_identity now;

	return file->fd >= 0 && identify(file->fd, &now) &&
	       now.ino == file->identity.ino &&
	       now.dev_major == file->identity.dev_major &&
	       now.dev_minor == file->identity.dev_minor;
}

void seam_writer_close_file(struct seam_writer_file *file)
{
	void *marker = file->marker;

	/* First: what unmaps it again in a child unmaps another mapping. */
	file->marker = NULL;
	seam_writer_barrier();
	if (marker)
		munmap(marker, (size_t)sysconf(_SC_PAGESIZE));
	if (seam_writer_owns_fd(file))
		close(file->fd);
	file->fd = -1;
}

int seam_writer_create_file(struct seam_writer_file *file,
			    enum seam_jitdump_format format, int32_t pid,
			    const char *folder)
{
	bool is_map = format == SEAM_JITDUMP_FORMAT_MAP;
	int r;

	file->size = 0;
	if (!make_path(file->path, is_map, pid, folder))
		return -ENAMETOOLONG;
	r = create_file(file->path);
	if (r < 0)
		return r;
	file->fd = r;
	r = identify(r, &file->identity) &&
	    !flock(file->fd, LOCK_EX | LOCK_NB) ? 0 : -errno;
	if (!r && !is_map)
		r = map_marker(file);
	if (r) {
		unlink(file->path);
		seam_writer_close_file(file);
	}
	return r;
}

/* @folder outlives the caller's string: it is where a child's file goes. */
static int try_folder(struct seam_jitdump *dump, const char *folder)
{
	int r = seam_writer_create_file(&dump->file, dump->format,
					dump->own->pid, folder);

	if (!r)
		dump->folder[append(dump->folder, 0, folder)] = '\0';
	return r;
}

int seam_writer_choose_file(struct seam_jitdump *dump, const char *folder)
{
	const char *folders[] = {
		secure_getenv("JITDUMPDIR"), "/tmp",
		secure_getenv("XDG_RUNTIME_DIR"), secure_getenv("HOME"), ".",
	};
	int r = -ENOENT;

	if (!folder && dump->format == SEAM_JITDUMP_FORMAT_MAP)
		folder = "/tmp";
	if (folder)
		return try_folder(dump, folder);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(folders); i++) {
		if (!folders[i] || !*folders[i])
			continue;
		r = try_folder(dump, folders[i]);
		if (!r || r == -EEXIST)
			return r;
	}
	return r;
}

/* ---- records ---- */

/*
 * A write past the limit on file sizes raised SIGXFSZ, which is blocked here.
 * Remove it: it would end the program.
 */
static void take_signal(void)
{
	uint64_t set = UINT64_C(1) << (SIGXFSZ - 1);
	struct timespec no_time = { 0 };

	syscall(SYS_rt_sigtimedwait, &set, NULL, &no_time, sizeof(set));
}

static int write_parts(int fd, struct iovec *part, size_t n)
{
	while (n) {
		ssize_t done = writev(fd, part, (int)n);

		if (done < 0 && errno == EFBIG) {
			take_signal();
			return -EFBIG;
		}
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		for (; n && (size_t)done >= part->iov_len; part++, n--)
			done -= (ssize_t)part->iov_len;
		if (n) {
			part->iov_base = (uint8_t *)part->iov_base + done;
			part->iov_len -= (size_t)done;
		}
	}
	return 0;
}

static int write_queue(struct seam_jitdump *dump)
{
	struct seam_writer_block *block;

	while ((block = dump->own->head)) {
		size_t n = 0, size = 0;
		int r;

		for (; block && n < SEAM_WRITER_N_PARTS; block = block->next) {
			dump->parts[n++] = (struct iovec) {
				block->bytes, block->size,
			};
			size += block->size;
		}
		r = write_parts(dump->file.fd, dump->parts, n);
		if (r)
			return r;
		dump->file.size += size;
		while (n--)
			seam_writer_pop(dump);
	}
	return 0;
}

/*
 * Truncate the file after its last whole record.  Where that fails the file is
 * closed, and nothing more is added to it.
 */
static void truncate_file(struct seam_writer_file *file)
{
	if (!seam_writer_owns_fd(file) ||
	    !ftruncate(file->fd, (off_t)file->size))
		return;
	close(file->fd);
	file->fd = -1;
}

int seam_writer_write(struct seam_jitdump *dump)
{
	struct seam_writer_file *file = &dump->file;
	int r;

	if (!dump->own->head)
		return 0;
	/* The program may have closed it; the descriptor may be any file. */
	r = seam_writer_owns_fd(file) ? write_queue(dump) : -EBADF;
	if (!r)
		return 0;
	truncate_file(file);
	seam_writer_lose_queue(dump);
	/* No record can be read without the header: it is queued again. */
	if (!file->size && file->fd >= 0 && r != -EBADF)
		seam_writer_add_header(dump);
	return r;
}
