/* SPDX-License-Identifier: MIT */
/*
 * simulated_pmu.c - a PMU with an AUX area, for machines that have none
 *
 * Loaded into 'seam record' with LD_PRELOAD, it stands between it and the
 * kernel: events of the type 77 are its own, all others are the kernel's.
 * For the recorder everything is as perf_event_open(2) has it: descriptors,
 * ioctls, a control page, a ring and an area that are mapped one after the
 * other.  What the kernel refuses is refused here as well.
 *
 *	SIMULATED_PMU_SYSFS	stands for /sys/bus/event_source/devices
 *	SIMULATED_PMU_GO		the PMU waits until this file is there
 *	SIMULATED_PMU_DONE		is created when all areas have had their bytes
 *	SIMULATED_PMU_BYTES	how many each gets
 *	SIMULATED_PMU_AGAIN	as many when it is started anew; then this is made
 *	SIMULATED_PMU_FILE		these bytes in place of byte_at()
 *	SIMULATED_PMU_FLOOD	do not wait for room
 *	SIMULATED_PMU_MAX		bytes of an area, more is EPERM
 *	SIMULATED_PMU_OFFSET	a free-running head is an offset in the area
 *	SIMULATED_PMU_START	where the head begins
 *	SIMULATED_PMU_OLD		no build ids: a kernel before 5.12
 *
 * Source: kernel/events/core.c and ring_buffer.c of Linux 6.18.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TYPE = 77, MAX = 256, CHUNK = 1000, MAX_WAITS = 20000 };

#define DEVICES "/sys/bus/event_source/devices/"

/* One event, and what it writes to. */
struct played {
	int fd, tid, cpu;
	uint64_t id, flags;
	struct perf_event_mmap_page *page;
	uint8_t *data, *area;
	uint64_t data_size, area_size;
	bool free_running;
	volatile bool runs;
	volatile int n_starts;
	bool has_thread;
	pthread_t thread;
	uint64_t head, lost, written;
};

/* Other than PERF_RECORD_AUX's trailer: that of our sample_type. */
struct trailer {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t id;
};

static struct played events[MAX];
static volatile int n_events, n_areas, n_done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t number(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : 0;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct played *find(int fd)
{
	for (int i = 0; i < n_events; i++)
		if (events[i].fd == fd)
			return &events[i];
	return NULL;
}

/* --- the ring --- */

static void put_record(struct played *e, uint32_t type, const void *body,
		       size_t size)
{
	struct {
		struct perf_event_header header;
		uint8_t body[64];
	} record = { .header = { .type = type } };
	struct trailer trailer = {
		.pid = (uint32_t)getpid(), .tid = (uint32_t)e->tid,
		.time = now(), .cpu = (uint32_t)e->cpu, .id = e->id,
	};
	uint64_t head = e->page->data_head;
	uint64_t tail = __atomic_load_n(&e->page->data_tail, __ATOMIC_ACQUIRE);
	size_t total = sizeof(record.header) + size + sizeof(trailer);

	memcpy(record.body, body, size);
	memcpy(record.body + size, &trailer, sizeof(trailer));
	record.header.size = (uint16_t)total;
	if (head - tail + total > e->data_size) {
		e->lost++;
		return;
	}
	for (size_t i = 0; i < total; i++)
		e->data[(head + i) & (e->data_size - 1)] =
			((uint8_t *)&record)[i];
	__atomic_store_n(&e->page->data_head, head + total, __ATOMIC_RELEASE);
}

static void put_aux(struct played *e, uint64_t offset, uint64_t size,
		    uint64_t flags)
{
	uint64_t body[3] = { offset, size, flags };

	put_record(e, PERF_RECORD_AUX, body, sizeof(body));
}

/* --- the area --- */

/* Never 0, so that an untouched area can be told from a written one. */
static uint8_t byte_at(uint64_t pos)
{
	return (uint8_t)((pos * 0x9e3779b97f4a7c15) >> 56 | 1);
}

static const uint8_t *file_bytes(uint64_t *size)
{
	static uint8_t *bytes;
	static uint64_t n;
	const char *path = getenv("SIMULATED_PMU_FILE");
	FILE *in = path && !bytes ? fopen(path, "rb") : NULL;

	if (in) {
		bytes = malloc(1 << 24);
		n = fread(bytes, 1, 1 << 24, in);
		fclose(in);
	}
	*size = n;
	return bytes;
}

static void fill(struct played *e, uint64_t from, uint64_t n)
{
	uint64_t size;
	const uint8_t *bytes = file_bytes(&size);

	for (uint64_t i = 0; i < n; i++) {
		uint64_t pos = from + i;

		e->area[pos & (e->area_size - 1)] =
			bytes ? bytes[pos % size] : byte_at(pos);
	}
}

/* A free-running head is true only while its writer stands still. */
static void publish(struct played *e)
{
	uint64_t shown = e->free_running && getenv("SIMULATED_PMU_OFFSET") ?
		e->head & (e->area_size - 1) : e->head;

	__atomic_store_n(&e->page->aux_head, shown, __ATOMIC_RELEASE);
}

/* A chunk, as far as there is room; full, the event is disabled. */
static void write_chunk(struct played *e, uint64_t n, bool flood)
{
	uint64_t room = e->area_size, flags = 0;

	if (!e->free_running)
		room -= e->head - __atomic_load_n(&e->page->aux_tail,
						  __ATOMIC_ACQUIRE);
	if (room < n && !flood)
		return;
	if (room < n) {
		n = room;
		flags = PERF_AUX_FLAG_TRUNCATED;
	}
	fill(e, e->head, n);
	e->head += n;
	e->written += n;
	if (!e->free_running)
		publish(e);
	if (!e->free_running && (n || flags))
		put_aux(e, e->head - n, n, flags);
	if (flags)
		e->runs = false;
}

static void wait_for_go(void)
{
	const char *go = getenv("SIMULATED_PMU_GO");

	for (int i = 0; go && access(go, F_OK) && i < MAX_WAITS; i++)
		usleep(1000);
}

/* Until @total bytes are written, or it takes too long. */
static void write_all(struct played *e, uint64_t total)
{
	bool flood = getenv("SIMULATED_PMU_FLOOD");

	for (int i = 0; e->written < total && i < MAX_WAITS; i++) {
		uint64_t left = total - e->written;

		pthread_mutex_lock(&lock);
		if (e->runs)
			write_chunk(e, left < CHUNK ? left : CHUNK, flood);
		pthread_mutex_unlock(&lock);
		if (!e->runs || i % 8 == 0)
			usleep(500);
	}
}

static void tell(const char *name)
{
	if (getenv(name))
		close(open(getenv(name), O_CREAT | O_WRONLY, 0600));
}

static void *play(void *arg)
{
	struct played *e = arg;
	uint64_t total = number("SIMULATED_PMU_BYTES"), size;
	uint32_t who[2] = { (uint32_t)getpid(), (uint32_t)e->tid };

	if (file_bytes(&size))
		total = size;
	wait_for_go();
	put_record(e, PERF_RECORD_ITRACE_START, who, sizeof(who));
	write_all(e, total);
	if (__atomic_add_fetch(&n_done, 1, __ATOMIC_SEQ_CST) == n_areas)
		tell("SIMULATED_PMU_DONE");
	if (!getenv("SIMULATED_PMU_AGAIN"))
		return NULL;
	for (int i = 0; e->n_starts < 2 && i < MAX_WAITS; i++)
		usleep(500);
	write_all(e, 2 * total);
	tell("SIMULATED_PMU_AGAIN");
	return NULL;
}

static void start(struct played *e)
{
	pthread_mutex_lock(&lock);
	e->runs = true;
	e->n_starts++;
	if (e->area && !e->has_thread) {
		e->has_thread = true;
		pthread_create(&e->thread, NULL, play, e);
	}
	pthread_mutex_unlock(&lock);
}

/* --- in the kernel's place --- */

static int open_event(const struct perf_event_attr *attr, int tid, int cpu)
{
	struct played *e = &events[n_events];

	/* Decoders know no other clock than the kernel's own. */
	if (n_events == MAX || attr->use_clockid || attr->write_backward) {
		errno = EINVAL;
		return -1;
	}
	*e = (struct played) {
		.tid = tid, .cpu = cpu, .runs = attr->enable_on_exec,
		.id = 1000000 + (uint64_t)n_events,
		.head = number("SIMULATED_PMU_START"),
		.fd = eventfd(0, EFD_CLOEXEC),
	};
	n_events++;
	return e->fd;
}

static void *map_memory(uint8_t **own, size_t length, int prot)
{
	static int made;
	char name[32];
	int fd;
	void *theirs;

	snprintf(name, sizeof(name), "played-%d", made++);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (ftruncate(fd, (off_t)length) < 0)
		return MAP_FAILED;
	*own = (uint8_t *)syscall(SYS_mmap, NULL, length,
				  PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	theirs = (void *)syscall(SYS_mmap, NULL, length, prot, MAP_SHARED, fd,
				 0);
	close(fd);
	return theirs;
}

static void *map_ring(struct played *e, size_t length, int prot)
{
	uint8_t *own;
	void *theirs = map_memory(&own, length, prot);

	e->page = (void *)own;
	e->data = own + 4096;
	e->data_size = length - 4096;
	e->page->data_offset = 4096;
	e->page->data_size = e->data_size;
	e->page->cap_user_time_zero = 1;
	e->page->time_shift = 31;
	e->page->time_mult = 0x6aaaaaaa;
	e->page->time_zero = 0xfffffff86343cb91;
	e->page->aux_head = e->page->aux_tail = e->head;
	return theirs;
}

static void *map_area(struct played *e, size_t length, int prot, off_t offset)
{
	uint64_t most = number("SIMULATED_PMU_MAX");
	void *theirs;

	errno = EINVAL;
	if (!e->page || e->page->aux_offset != (uint64_t)offset ||
	    e->page->aux_size != length || length & (length - 1) ||
	    e->page->aux_offset < 4096 + e->data_size)
		return MAP_FAILED;
	errno = EPERM;
	if (most && length > most)
		return MAP_FAILED;
	n_areas += !e->area;
	theirs = map_memory(&e->area, length, prot);
	e->area_size = length;
	e->free_running = !(prot & PROT_WRITE);
	/* who has come so far has been round already */
	if (e->free_running && e->head >= length)
		fill(e, e->head - length, length);
	if (e->runs)
		start(e);
	return theirs;
}

static int control(struct played *e, unsigned long request, uintptr_t arg)
{
	switch (request) {
	case PERF_EVENT_IOC_ENABLE:
		start(e);
		return 0;
	case PERF_EVENT_IOC_DISABLE:
		pthread_mutex_lock(&lock);
		e->runs = false;
		if (e->area)
			publish(e);
		pthread_mutex_unlock(&lock);
		return 0;
	case PERF_EVENT_IOC_ID:
		*(uint64_t *)arg = e->id;
		return 0;
	case PERF_EVENT_IOC_SET_OUTPUT:
		return 0;
	}
	errno = ENOTTY;
	return -1;
}

__attribute__((visibility("default")))
long syscall(long n, ...)
{
	static long (*real)(long, ...);
	long a[6];
	va_list args;

	va_start(args, n);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	if (n == SYS_perf_event_open) {
		const struct perf_event_attr *attr = (const void *)a[0];

		if (attr->build_id && getenv("SIMULATED_PMU_OLD")) {
			errno = EINVAL;
			return -1;
		}
		if (attr->type == TYPE)
			return open_event(attr, (int)a[1], (int)a[2]);
	}
	return real(n, a[0], a[1], a[2], a[3], a[4], a[5]);
}

__attribute__((visibility("default")))
void *mmap64(void *at, size_t length, int prot, int flags, int fd, off_t offset)
{
	struct played *e = fd < 0 ? NULL : find(fd);

	if (e)
		return offset ? map_area(e, length, prot, offset) :
		       map_ring(e, length, prot);
	return (void *)syscall(SYS_mmap, at, length, prot, flags, fd, offset);
}

__attribute__((visibility("default")))
int ioctl(int fd, unsigned long request, ...)
{
	struct played *e = find(fd);
	uintptr_t arg;
	va_list args;

	va_start(args, request);
	arg = va_arg(args, uintptr_t);
	va_end(args);
	return e ? control(e, request, arg) :
	       (int)syscall(SYS_ioctl, fd, request, arg);
}

__attribute__((visibility("default")))
ssize_t read(int fd, void *buf, size_t size)
{
	struct played *e = find(fd);
	uint64_t counts[3];

	if (!e)
		return syscall(SYS_read, fd, buf, size);
	counts[0] = 0;
	counts[1] = e->id;
	counts[2] = e->lost;
	memcpy(buf, counts, size < sizeof(counts) ? size : sizeof(counts));
	return sizeof(counts);
}

__attribute__((visibility("default")))
int open64(const char *path, int flags, ...)
{
	const char *root = getenv("SIMULATED_PMU_SYSFS");
	char other[4096];
	va_list args;
	int mode;

	va_start(args, flags);
	mode = va_arg(args, int);
	va_end(args);
	if (root && strncmp(path, DEVICES, strlen(DEVICES)) == 0) {
		snprintf(other, sizeof(other), "%s/%s", root,
			 path + strlen(DEVICES));
		if (access(other, F_OK) == 0)
			path = other;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
