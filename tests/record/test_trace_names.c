/* SPDX-License-Identifier: MIT */
/*
 * test_trace_names.c - many programs, and some that lie: files, names, limits
 *
 * What well-behaved programs get is in test_fdr_service.c.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "chunk_made.h"
#include "folder.h"
#include "record/trace/trace_names.h"

enum {
	FIRST_ADDRESS = 4096,	/* as linked, of function 1; 16 bytes each */
	N_FUNCTIONS = 6000,
	NO_PROCESS = 0x7ffffffe,
};

static struct seam_bundle bundle = { .dir = -1 };
static struct seam_trace_functions known;
static struct seam_trace_logs logs;
static struct seam_tsc_clock ticks;
static struct seam_address_names names;
static struct chunk chunk;

static int set_up(void **state)
{
	if (make_folder(state))
		return -1;
	bundle.dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	seam_trace_logs_init(&logs, &bundle, &ticks);
	seam_trace_functions_init(&known);
	return seam_address_names_start(&names, NULL);
}

static int tear_down(void **state)
{
	seam_address_names_end(&names);
	seam_trace_functions_fini(&known);
	seam_trace_logs_fini(&logs);
	close(bundle.dir);
	return drop_folder(state);
}

/* ---- files ---- */

/* Functions 16 bytes apart; names of @bytes and more, which are one text. */
static int make_file(const char *name, size_t bytes)
{
	enum { TEXT = 1, SYMTAB, STRTAB, N_SECTIONS };
	static Elf64_Sym symbols[N_FUNCTIONS + 1];
	const size_t n_names = N_FUNCTIONS + bytes + 1;
	char *text = malloc(n_names), path[128];
	Elf64_Ehdr header = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = 1,
		.e_ehsize = sizeof(header), .e_phoff = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = N_SECTIONS,
		.e_shoff = sizeof(header) + sizeof(Elf64_Phdr),
	};
	const uint64_t at = header.e_shoff + N_SECTIONS * sizeof(Elf64_Shdr);
	const Elf64_Phdr load = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X,
		.p_filesz = 1 << 20, .p_memsz = 1 << 20,
	};
	const Elf64_Shdr sections[N_SECTIONS] = {
		[TEXT] = { .sh_type = SHT_PROGBITS, .sh_flags = SHF_EXECINSTR |
			   SHF_ALLOC, .sh_addr = FIRST_ADDRESS,
			   .sh_size = 1 << 20 },
		[SYMTAB] = { .sh_type = SHT_SYMTAB, .sh_offset = at,
			     .sh_size = sizeof(symbols), .sh_link = STRTAB,
			     .sh_entsize = sizeof(*symbols), .sh_info = 1 },
		[STRTAB] = { .sh_type = SHT_STRTAB,
			     .sh_offset = at + sizeof(symbols),
			     .sh_size = n_names },
	};
	int fd;

	for (uint32_t i = 1; i <= N_FUNCTIONS; i++)
		symbols[i] = (Elf64_Sym) {
			.st_name = i, .st_shndx = TEXT, .st_size = 16,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_value = FIRST_ADDRESS + 16 * (i - 1),
		};
	memset(text, 'x', n_names);
	text[0] = text[n_names - 1] = '\0';
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	assert_int_equal(write(fd, &load, sizeof(load)), sizeof(load));
	assert_int_equal(write(fd, sections, sizeof(sections)),
			 sizeof(sections));
	assert_int_equal(write(fd, symbols, sizeof(symbols)), sizeof(symbols));
	assert_int_equal(write(fd, text, n_names), n_names);
	free(text);
	return fd;
}

/* ---- programs ---- */

static struct seam_trace_program program(uint32_t pid, uint64_t since_ns)
{
	return (struct seam_trace_program) { pid, since_ns };
}

static void announce_image(const struct seam_trace_program *p, uint32_t number,
			   const void *mapped)
{
	seam_trace_functions_add(&known, p, geteuid(),
		&(struct seam_xray_announcement) {
		.kind = SEAM_XRAY_ANNOUNCED_IMAGE,
		.image = { .image = number, .first_id = 1, .n_functions = 1,
			   .bias = (uint64_t)(uintptr_t)mapped -
				   FIRST_ADDRESS, .path = "/image" } });
}

static void announce_addresses(const struct seam_trace_program *p,
			       uint32_t number, uint32_t n)
{
	uint64_t addresses[SEAM_XRAY_MAX_ADDRESSES];

	for (uint32_t first = 1; first <= n; first += 4096) {
		uint32_t some = n + 1 - first < 4096 ? n + 1 - first : 4096;

		for (uint32_t i = 0; i < some; i++)
			addresses[i] = FIRST_ADDRESS + 16 * (first + i - 1);
		seam_trace_functions_add(&known, p, geteuid(),
			&(struct seam_xray_announcement) {
				.kind = SEAM_XRAY_ANNOUNCED_FUNCTIONS,
				.addresses = { number, first, some,
					       addresses } });
	}
}

static void collect(void)
{
	while (seam_trace_functions_collect(&known))
		usleep(1000);
}

static struct seam_trace_image *image_of(const struct seam_trace_program *p)
{
	return seam_trace_find_image(seam_trace_functions_of(&known, p), 1);
}

/* A program of this process that has file @fd mapped, and its @n functions. */
static void *begin(const struct seam_trace_program *p, int fd, uint32_t n)
{
	void *mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	assert_true(mapped != MAP_FAILED);
	announce_image(p, 1, mapped);
	announce_addresses(p, 1, n);
	collect();
	return mapped;
}

static void call(const struct seam_trace_program *p, uint32_t first,
		 uint32_t last)
{
	struct seam_program_log *log = seam_trace_logs_enter(&logs, p);

	assert_non_null(log);
	for (uint32_t id = first; id <= last;) {
		chunk_begin(&chunk, 1, 2, 3, 0, 100);
		while (id <= last &&
		       chunk_call(&chunk, SEAM_XRAY_ENTRY, id, 1))
			id++;
		seam_trace_logs_add(log, 2, chunk.bytes, chunk.n);
	}
	seam_trace_logs_leave(log);
}

static uint64_t write_names(struct seam_trace_name_counts *counts)
{
	struct stat st = { 0 };
	char path[128];

	assert_int_equal(seam_trace_names_write(&logs, &known, &names, NULL,
						counts, NULL), 0);
	snprintf(path, sizeof(path), "%s/xray/%d.yaml", folder, getpid());
	assert_int_equal(stat(path, &st), 0);
	return (uint64_t)st.st_size;
}

/* ---- files that are open ---- */

/* What waits for a file system: not to be called by the recorder's thread. */
static atomic_int n_waits;
static bool is_watched;
static pid_t main_thread;

static void watch(bool is_on)
{
	main_thread = (pid_t)syscall(SYS_gettid);
	is_watched = is_on;
}

static void note_wait(void)
{
	n_waits += is_watched && syscall(SYS_gettid) == main_thread;
}

__attribute__((visibility("default")))
int fstat64(int fd, struct stat64 *st)
{
	note_wait();
	return fstatat64(fd, "", st, AT_EMPTY_PATH);
}

__attribute__((visibility("default")))
int close(int fd)
{
	note_wait();
	return (int)syscall(SYS_close, fd);
}

/* Of the same file. */
static int n_descriptors_of(int file)
{
	struct stat wanted, st;
	int n = 0;

	assert_int_equal(fstat(file, &wanted), 0);
	for (int fd = 0; fd < 1024; fd++)
		n += fstat(fd, &st) == 0 && st.st_ino == wanted.st_ino &&
		     st.st_dev == wanted.st_dev;
	return n;
}

static void a_file_is_waited_for_in_another_thread_alone(void **state)
{
	struct seam_trace_program p[3];
	int fd = make_file("a", 9);
	void *mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		p[i] = program((uint32_t)getpid(), 5 + i);
		announce_image(&p[i], 1, mapped);
		announce_addresses(&p[i], 1, 1);
	}
	watch(true);
	collect();
	watch(false);
	assert_int_equal(known.files.n, 1);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(image_of(&p[i])->fd >= 0);
	assert_int_equal(n_waits, 0);
	/* of the others no descriptor stays open: the helper closes them */
	while (n_descriptors_of(fd) > 2)
		sched_yield();
	munmap(mapped, 4096);
	close(fd);
}

static void a_file_of_many_programs_is_open_once(void **state)
{
	struct seam_trace_program p[40];
	int fd = make_file("a", 9);

	(void)state;
	for (uint32_t i = 0; i < 40; i++) {
		p[i] = program((uint32_t)getpid(), 5 + i);
		munmap(begin(&p[i], fd, 1), 4096);
	}
	assert_int_equal(known.files.n, 1);
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(image_of(&p[i])->fd, known.files.items[0].fd);
	close(fd);
}

static void a_child_that_has_ended_has_its_parents_files(void **state)
{
	struct seam_trace_program parent = program((uint32_t)getpid(), 5);
	struct seam_trace_program child = program(NO_PROCESS, 5);
	struct seam_trace_program stranger = program(NO_PROCESS, 6);
	int fd = make_file("a", 9);
	void *mapped = begin(&parent, fd, 1);

	(void)state;
	announce_image(&child, 1, mapped);
	announce_addresses(&child, 1, 1);
	announce_image(&stranger, 1, mapped);
	announce_addresses(&stranger, 1, 1);
	collect();
	assert_int_equal(image_of(&child)->fd, image_of(&parent)->fd);
	assert_int_equal(image_of(&stranger)->fd, -1);
	munmap(mapped, 4096);
	close(fd);
}

static void images_of_a_program_are_limited_and_found(void **state)
{
	struct seam_trace_program p = program(NO_PROCESS, 5);
	const struct seam_trace_announced *announced;

	(void)state;
	for (uint32_t i = 0; i < SEAM_TRACE_MAX_IMAGES + 9; i++)
		announce_image(&p, UINT32_MAX - i * 77, NULL);
	assert_int_equal(known.n_left_out, 9);
	announced = seam_trace_functions_of(&known, &p);
	for (uint32_t i = 0; i < SEAM_TRACE_MAX_IMAGES; i++)
		assert_int_equal(seam_trace_find_image(announced,
					UINT32_MAX - i * 77)->image,
				 UINT32_MAX - i * 77);
	assert_null(seam_trace_find_image(announced, 1));
}

/* ---- names ---- */

static void a_huge_name_is_left_out(void **state)
{
	struct seam_trace_program p = program((uint32_t)getpid(), 5);
	struct seam_trace_name_counts counts;
	int fd = make_file("a", 256 << 10);

	(void)state;
	munmap(begin(&p, fd, 500), 4096);
	call(&p, 1, 500);
	assert_in_range(write_names(&counts), 500, 200 << 10);
	assert_int_equal(counts.n_functions, 500);
	assert_int_equal(counts.n_unnamed, 500);
	close(fd);
}

static void names_of_a_program_take_bounded_memory(void **state)
{
	struct seam_trace_program p = program((uint32_t)getpid(), 5);
	struct seam_trace_name_counts counts;
	int fd = make_file("a", 9 << 10);

	(void)state;
	/* names of 9 to 15 KiB: the last are left out */
	munmap(begin(&p, fd, N_FUNCTIONS), 4096);
	call(&p, 1, N_FUNCTIONS);
	assert_in_range(write_names(&counts), 2 * 60 << 20, 2 * 66 << 20);
	assert_int_equal(counts.n_functions, N_FUNCTIONS);
	assert_in_range(counts.n_unnamed, 100, N_FUNCTIONS - 4000);
	close(fd);
}

static bool count_names(void *context, size_t i, const char *name)
{
	(void)i;
	*(uint32_t *)context += *name != '\0';
	return true;
}

static uint32_t named(int fd, int code)
{
	uint64_t address = FIRST_ADDRESS;
	uint32_t n = 0;

	assert_int_equal(seam_address_names_of(&names,
			&(struct seam_address_request) {
				.fd = fd, .addresses = &address, .n = 1,
				.take = count_names, .context = &n,
			}, NULL), code);
	return n;
}

static struct seam_address_reader *last_reader(void)
{
	return &names.readers[names.n - 1];
}

static void a_file_that_kills_its_reader_costs_its_own_names(void **state)
{
	int fd = make_file("a", 9);

	(void)state;
	assert_true(SEAM_ADDRESS_NAMES_PROCESSES > 1);
	for (int i = 1; i < SEAM_ADDRESS_NAMES_PROCESSES; i++) {
		kill(last_reader()->sandbox.pid, SIGKILL);
		assert_int_equal(named(fd, -EIO), 0);
		assert_int_equal(named(fd, 0), 1);
	}
	kill(last_reader()->sandbox.pid, SIGKILL);
	assert_int_equal(named(fd, -EIO), 0);
	assert_int_equal(named(fd, -EIO), 0);
	close(fd);
}

/* The caller's patience: so many calls. */
struct patience {
	int n_left;
	uint32_t n_named;
};

static bool count_patience(void *context, size_t i, const char *name)
{
	return count_names(&((struct patience *)context)->n_named, i, name);
}

static bool be_patient(void *context, int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	poll(&poll_fd, 1, 5);
	return --((struct patience *)context)->n_left > 0;
}

/* The names of @fd that come within @n_calls of the caller. */
static uint32_t named_within(int n_calls, int fd, int code)
{
	const uint64_t address = FIRST_ADDRESS;
	struct patience patience = { .n_left = n_calls };
	const struct seam_address_request request = {
		.fd = fd, .addresses = &address, .n = 1,
		.take = count_patience, .goes_on = be_patient,
		.context = &patience,
	};

	assert_int_equal(seam_address_names_of(&names, &request, NULL), code);
	return patience.n_named;
}

static void stop(pid_t pid)
{
	siginfo_t info;

	kill(pid, SIGSTOP);
	waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT);
}

/* As a file does whose user serves its file system. */
static void a_file_that_hangs_is_left_out_and_its_reader_stays(void **state)
{
	int fd = make_file("a", 9);
	pid_t stopped[SEAM_ADDRESS_NAMES_PROCESSES];

	(void)state;
	for (int i = 0; i < SEAM_ADDRESS_NAMES_PROCESSES; i++) {
		assert_int_equal(named_within(9999, fd, 0), 1);
		stopped[i] = last_reader()->sandbox.pid;
		stop(stopped[i]);
		assert_int_equal(named_within(3, fd, -ETIMEDOUT), 0);
	}
	/* all are busy: nothing is waited for */
	assert_int_equal(named_within(1, fd, -ETIMEDOUT), 0);
	assert_int_equal(named(fd, -ETIMEDOUT), 0);
	assert_int_equal(names.n, SEAM_ADDRESS_NAMES_PROCESSES);
	kill(stopped[1], SIGCONT);
	do
		seam_address_names_collect(&names);
	while (last_reader()->is_busy);
	assert_int_equal(last_reader()->sandbox.pid, stopped[1]);
	assert_int_equal(named_within(9999, fd, 0), 1);
	/* those that hang for too long end */
	for (size_t i = 0; i < names.n; i++)
		names.readers[i].requested_ns = 1;
	seam_address_names_collect(&names);
	assert_int_equal(names.n, 1);
	assert_int_equal(named_within(9999, fd, 0), 1);
	close(fd);
}

/* More files than have their symbols kept, one of them no ELF file. */
static void each_file_has_names_of_its_own(void **state)
{
	char name[] = "a";
	int fds[12], bad;

	(void)state;
	for (int i = 0; i < 12; i++, name[0]++)
		fds[i] = make_file(name, 9);
	bad = make_file("bad", 9);
	assert_int_equal(ftruncate(bad, 8), 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 12; i++)
			assert_int_equal(named(fds[i], 0), 1);
		assert_int_equal(named(fds[11], 0), 1);
		assert_int_equal(named(bad, -EBADMSG), 0);
		assert_int_equal(names.n, SEAM_ADDRESS_NAMES_PROCESSES);
	}
	/* the same file with other bytes */
	assert_int_equal(ftruncate(fds[0], 64), 0);
	assert_int_equal(named(fds[0], 0), 0);
	for (int i = 0; i < 12; i++)
		close(fds[i]);
	close(bad);
}

static bool is_over(void *context, int fd)
{
	(void)fd;
	++*(int *)context;
	return false;
}

static void files_are_left_out_when_the_caller_wants_an_end(void **state)
{
	struct seam_trace_program p = program((uint32_t)getpid(), 5);
	struct seam_trace_program q = program((uint32_t)getpid(), 6);
	struct seam_trace_name_counts counts;
	int fd = make_file("a", 9), n_calls = 0;
	const struct seam_trace_logs_caller caller = {
		.goes_on = is_over, .context = &n_calls,
	};

	(void)state;
	munmap(begin(&p, fd, 1), 4096);
	munmap(begin(&q, fd, 1), 4096);
	call(&p, 1, 1);
	call(&q, 1, 1);
	assert_int_equal(seam_trace_names_write(&logs, &known, &names, &caller,
						&counts, NULL), 0);
	assert_int_equal(n_calls, 1);
	assert_int_equal(counts.n_functions, 1);
	assert_int_equal(counts.n_unnamed, 1);
	assert_int_equal(counts.why.code, -ETIMEDOUT);
	close(fd);
}

static uint64_t size_of(const char *name)
{
	struct stat st = { 0 };
	char path[128];

	snprintf(path, sizeof(path), "%s/xray/%s", folder, name);
	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Each byte of a name is written as six, twice, in both logs. */
static void names_beside_all_logs_have_a_limit_together(void **state)
{
	const struct seam_trace_logs_caller caller = {
		.max_name_bytes = 1 << 20,
	};
	struct seam_trace_name_counts counts;
	char name[SEAM_XRAY_MAX_NAME];
	char files[2][2][32];
	uint64_t bytes = 0;

	(void)state;
	memset(name, 1, sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (uint32_t i = 0; i < 2; i++) {
		struct seam_trace_program p = program(NO_PROCESS - i, 5 + i);

		for (uint32_t id = 1; id <= 2000; id++)
			seam_trace_functions_add(&known, &p, geteuid(),
				&(struct seam_xray_announcement) {
					.kind = SEAM_XRAY_ANNOUNCED_NAME,
					.named = { id, name } });
		for (uint32_t type = 1; type <= 2000; type++)
			seam_trace_functions_add(&known, &p, geteuid(),
				&(struct seam_xray_announcement) {
					.kind = SEAM_XRAY_ANNOUNCED_EVENT_TYPE,
					.named = { type, name } });
		announce_addresses(&p, 0, N_FUNCTIONS);
		call(&p, 1, N_FUNCTIONS);
		snprintf(files[i][0], 32, "%d.yaml", NO_PROCESS - (int)i);
		snprintf(files[i][1], 32, "%d.events", NO_PROCESS - (int)i);
	}
	assert_int_equal(seam_trace_names_write(&logs, &known, &names, &caller,
						&counts, NULL), 0);
	for (int i = 0; i < 4; i++)
		bytes += size_of(files[i / 2][i % 2]);
	assert_in_range(bytes, 300 << 10, (1 << 20) + 100);
	/* those of both programs are the same ones, of no image */
	assert_true(counts.n_unnamed >= N_FUNCTIONS - 2000);
}

/* Announces more of the same program, with every wait. */
static bool announce_more(void *context, int fd)
{
	static uint32_t number = 1000;
	struct seam_trace_program p = program((uint32_t)getpid(), 5);
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	for (int i = 0; i < 50; i++) {
		announce_image(&p, ++number, NULL);
		announce_addresses(&p, number, 1);
	}
	++*(int *)context;
	poll(&poll_fd, 1, 1);
	return true;
}

static void a_program_may_announce_more_while_its_files_are_read(void **state)
{
	struct seam_trace_program p = program((uint32_t)getpid(), 5);
	struct seam_trace_name_counts counts;
	int fd = make_file("a", 9), n_calls = 0;
	const struct seam_trace_logs_caller caller = {
		.goes_on = announce_more, .context = &n_calls,
	};

	(void)state;
	munmap(begin(&p, fd, N_FUNCTIONS), 4096);
	call(&p, 1, N_FUNCTIONS);
	assert_int_equal(seam_trace_names_write(&logs, &known, &names, &caller,
						&counts, NULL), 0);
	assert_true(n_calls > 3);
	assert_int_equal(counts.n_functions, N_FUNCTIONS);
	assert_int_equal(counts.n_unnamed, 0);
	close(fd);
}

/* ---- logs ---- */

static void ids_of_one_program_cost_no_names_of_another(void **state)
{
	const uint32_t most = SEAM_XRAY_MAX_FUNCTION;
	struct seam_trace_program honest = program((uint32_t)getpid(), 9);

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct seam_trace_program p = program(100 + i, 5);

		call(&p, most, most);
		call(&p, 7, 7);
		assert_true(seam_xray_has_seen(&logs.items.items[i]->seen, 7));
	}
	assert_in_range(logs.seen_bytes, 0, SEAM_TRACE_MAX_SEEN_BYTES);
	call(&honest, 60000, 60002);
	for (uint32_t id = 60000; id <= 60002; id++)
		assert_true(seam_xray_has_seen(&logs.items.items[3]->seen, id));
}

static void a_log_that_cannot_be_begun_is_tried_again(void **state)
{
	struct seam_trace_program p = program((uint32_t)getpid(), 5);
	struct rlimit old, none;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	none = (struct rlimit) { 0, old.rlim_max };
	setrlimit(RLIMIT_FSIZE, &none);
	assert_null(seam_trace_logs_enter(&logs, &p));
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(logs.why.code, -EFBIG);
	call(&p, 1, 3);
	assert_int_equal(logs.counts.n_records, 3);
}

static void note(void *context, const char *text)
{
	++*(int *)context;
	assert_non_null(strstr(text, "not joined: Interrupted system call"));
}

/* Its threads take turns; it is asked after each 4 MiB. */
static void a_log_stays_as_it_is_where_joining_ends(void **state)
{
	struct seam_trace_program p = program((uint32_t)getpid(), 5);
	struct seam_program_log *log = seam_trace_logs_enter(&logs, &p);
	int n_calls = 0;
	const struct seam_trace_logs_caller caller = {
		.goes_on = is_over, .note = note, .context = &n_calls,
	};
	uint64_t bytes;
	struct stat st;
	char path[128];

	(void)state;
	assert_non_null(log);
	for (int i = 0; i < 100; i++) {
		chunk_begin(&chunk, 1, 2 + i % 2, 3, 0, 100);
		while (chunk_call(&chunk, SEAM_XRAY_ENTRY, 1, 1))
			;
		seam_trace_logs_add(log, 2, chunk.bytes, chunk.n);
	}
	bytes = log->file.bytes;
	assert_true(log->file.n_blocks > SEAM_XRAY_LOG_BLOCKS);
	seam_trace_logs_leave(log);
	seam_trace_logs_finish(&logs, &caller);
	/* one question, one note */
	assert_int_equal(n_calls, 2);
	snprintf(path, sizeof(path), "xray/%s.xray", log->name);
	assert_int_equal(fstatat(bundle.dir, path, &st, 0), 0);
	assert_int_equal(st.st_size, bytes);
	snprintf(path, sizeof(path), "xray/%s.xray.part", log->name);
	assert_int_equal(fstatat(bundle.dir, path, &st, 0), -1);
	/* the next time it is whole */
	seam_trace_logs_finish(&logs, &(struct seam_trace_logs_caller) { 0 });
	snprintf(path, sizeof(path), "xray/%s.xray", log->name);
	assert_int_equal(fstatat(bundle.dir, path, &st, 0), 0);
	assert_true((uint64_t)st.st_size < bytes);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_waited_for_in_another_thread_alone),
		TEST(a_file_of_many_programs_is_open_once),
		TEST(a_child_that_has_ended_has_its_parents_files),
		TEST(images_of_a_program_are_limited_and_found),
		TEST(a_huge_name_is_left_out),
		TEST(names_of_a_program_take_bounded_memory),
		TEST(a_file_that_kills_its_reader_costs_its_own_names),
		TEST(a_file_that_hangs_is_left_out_and_its_reader_stays),
		TEST(each_file_has_names_of_its_own),
		TEST(files_are_left_out_when_the_caller_wants_an_end),
		TEST(names_beside_all_logs_have_a_limit_together),
		TEST(a_program_may_announce_more_while_its_files_are_read),
		TEST(ids_of_one_program_cost_no_names_of_another),
		TEST(a_log_that_cannot_be_begun_is_tried_again),
		TEST(a_log_stays_as_it_is_where_joining_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
