/* SPDX-License-Identifier: MIT */
/* test_memory.c - the promises of ring/ring_memory.h and owners.h */
#include "fixture.h"

#include <sys/syscall.h>

#include "ring/link/owners.h"
#include "ring/producer/claim.h"

static const struct seam_ring_geometry geometry = {
	.n_slots = 6, .data_bytes = DATA, .aux_bytes = AREA,
	.aux_free_running = 1,
};

static void set_up_as(struct seam_owners *o, const struct seam_ring_geometry *g,
		      uint32_t n_free)
{
	assert_int_equal(seam_owners_open(o, g, NULL), 0);
	assert_int_equal(seam_owners_prepare(o, n_free, NULL), 0);
}

static struct seam_owners h;

static void open_memory(uint32_t n_free)
{
	set_up_as(&h, &geometry, n_free);
}

static int close_memory(void **state)
{
	if (h.memory.head)
		seam_owners_close(&h);
	memset(&h, 0, sizeof(h));
	return 0;
}

static uint32_t my_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* Take what is there; the number of records of @type. */
static size_t drain(struct seam_owner *owner, uint32_t type)
{
	static uint8_t record[UINT16_MAX];
	struct seam_ring_header header;
	struct seam_ring_span span;
	size_t n = 0, pos = 0;

	seam_ring_peek(&owner->ring, &span);
	for (; seam_ring_copy(&span, pos, &header, record); pos += header.size)
		n += header.type == type;
	seam_ring_advance(&owner->ring, &span);
	return n;
}

UNIT_TEST(accepts_only_valid_geometries)
{
	static const struct seam_ring_geometry bad[] = {
		{ .n_slots = 0, .data_bytes = DATA },
		{ .n_slots = SEAM_RING_MAX_SLOTS + 1, .data_bytes = DATA },
		{ .n_slots = 1, .data_bytes = 0 },
		{ .n_slots = 1, .data_bytes = 2048 },
		{ .n_slots = 1, .data_bytes = 3 * 4096 },
		{ .n_slots = 1, .data_bytes = UINT64_C(1) << 31 },
		{ .n_slots = 1, .data_bytes = DATA, .aux_bytes = 8 },
		{ .n_slots = 1, .data_bytes = DATA, .watermark = DATA },
		{ .n_slots = 1, .data_bytes = DATA, .aux_free_running = 2 },
	};
	struct seam_ring_memory m;
	struct seam_owners o;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(bad); i++) {
		assert_int_equal(seam_owners_open(&o, &bad[i], NULL), -EINVAL);
		assert_int_equal(seam_ring_memory_adopt(&m, 0, &bad[i]),
				 -EBADMSG);
		seam_ring_memory_fini(&m);
	}
}

UNIT_TEST(maps_nothing_that_could_shrink_under_it)
{
	uint64_t bytes = seam_ring_memory_bytes(&geometry);
	const struct seam_ring_memory_head head = {
		.magic = SEAM_RING_MEMORY_MAGIC,
		.version = SEAM_RING_MEMORY_VERSION,
	};
	struct seam_ring_geometry other = geometry;
	struct seam_ring_memory m;
	int fd = memfd_create("test", MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(seam_ring_memory_adopt(&m, fd, &geometry), -EBADMSG);
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	assert_int_equal(seam_ring_memory_adopt(&m, fd, &geometry), 0);
	m.head->magic = 0;
	seam_ring_memory_fini(&m);
	assert_int_equal(seam_ring_memory_adopt(&m, fd, &geometry), -EBADMSG);
	close(fd);
	fd = open("/dev/zero", O_RDWR);
	assert_int_equal(seam_ring_memory_adopt(&m, fd, &geometry), -EBADMSG);
	close(fd);
	open_memory(1);
	other.n_slots++;
	assert_int_equal(seam_ring_memory_adopt(&m, h.fd, &other), -EBADMSG);
	assert_int_equal(seam_ring_memory_adopt(&m, h.fd, &geometry), 0);
	assert_int_equal(ftruncate(h.fd, 0), -1);
	assert_int_equal(ftruncate(h.fd, (off_t)bytes * 2), -1);
	seam_ring_memory_fini(&m);
}

UNIT_TEST(gives_each_claim_a_ring_of_its_own)
{
	struct seam_ring_claim claims[7];

	open_memory(3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(seam_ring_memory_claim(&h.memory, my_tid(),
							&claims[i]), 0);
		assert_int_equal(claims[i].slot, i);
	}
	/* none is ready, though there could be more */
	assert_int_equal(seam_ring_memory_claim(&h.memory, my_tid(),
						&claims[3]), -ENOSPC);
	assert_int_equal(h.memory.head->n_unclaimed, 1);
	assert_int_equal(seam_owners_scan(&h), 3);
	assert_int_equal(seam_owners_scan(&h), 0);
	assert_int_equal(seam_owners_prepare(&h, 10, NULL), 0);
	for (uint32_t i = 3; i < 6; i++)
		assert_int_equal(seam_ring_memory_claim(&h.memory, my_tid(),
							&claims[i]), 0);
	assert_int_equal(seam_ring_memory_claim(&h.memory, my_tid(),
						&claims[6]), -ENOSPC);
	seam_owners_scan(&h);
	for (uint32_t i = 0; i < 6; i++) {
		seam_ring_write(&claims[i].ring, 100 + i, 0, "", 1);
		assert_int_equal(drain(&h.items[i], 100 + i), 1);
	}
	seam_ring_memory_lose(&h.memory);
	assert_int_equal(h.memory.head->n_lost, 1);
}

static size_t n_mapped_bytes(void)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end, inode;
	struct stat st;
	size_t n = 0;

	assert_non_null(maps);
	assert_int_equal(fstat(h.fd, &st), 0);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %*s %*s %lu", &start, &end,
			   &inode) == 3 && inode == st.st_ino)
			n += end - start;
	fclose(maps);
	return n;
}

/* A claim of @m is ring @slot of the recorder's. */
static void check_claim(struct seam_ring_memory *m, uint32_t slot)
{
	struct seam_ring_claim claim;

	assert_int_equal(seam_ring_memory_claim(m, my_tid(), &claim), 0);
	assert_int_equal(claim.slot, slot);
	seam_ring_write(&claim.ring, 100 + slot, 0, "", 1);
	seam_owners_scan(&h);
	assert_int_equal(drain(&h.items[slot], 100 + slot), 1);
}

UNIT_TEST(a_program_maps_the_rings_that_it_claims)
{
	enum { BIG = 2 << 20, RINGS = 40 };
	/* of big rings each is alone; of the small ones many come at once */
	const struct seam_ring_geometry geometries[] = {
		{ .n_slots = RINGS, .data_bytes = DATA, .aux_bytes = BIG },
		{ .n_slots = RINGS, .data_bytes = BIG / 16 },
	};
	struct seam_ring_memory program;
	size_t before, all;
	int status;

	for (int i = 0; i < 2; i++) {
		set_up_as(&h, &geometries[i], RINGS);
		before = n_mapped_bytes();
		all = seam_ring_memory_bytes(&geometries[i]);
		assert_int_equal(seam_ring_memory_adopt(
					&program, h.fd, &geometries[i]), 0);
		assert_true(n_mapped_bytes() - before < 16384);
		check_claim(&program, 0);
		assert_true(n_mapped_bytes() - before < 5 << 20);
		check_claim(&program, 1);
		/* a child, and its parent after others have claimed some */
		if (fork() == 0) {
			for (uint32_t k = 2; k < RINGS / 2; k++)
				check_claim(&program, k);
			_exit(0);
		}
		assert_true(wait(&status) > 0 && status == 0);
		for (uint32_t k = RINGS / 2; k < RINGS; k++)
			check_claim(&program, k);
		assert_true(n_mapped_bytes() - before < all + (5 << 20));
		seam_ring_memory_fini(&program);
		assert_int_equal(n_mapped_bytes(), before);
		close_memory(NULL);
	}
}

UNIT_TEST(frees_a_closed_ring_when_it_is_drained)
{
	struct seam_ring_claim claim, next;
	struct seam_ring_aux_snapshot shot;
	struct aux_writer aux;
	struct seam_owner_counts counts;
	struct seam_owner *owner;

	open_memory(1);
	owner = &h.items[0];
	seam_ring_memory_claim(&h.memory, my_tid(), &claim);
	for (int i = 0; i < 1000; i++)
		seam_ring_write(&claim.ring, 9, 0, "", 1);
	aux_writer_init(&aux, &claim.ring, claim.aux, claim.aux_bytes, true);
	aux_write(&aux, "secret", 6);
	seam_ring_memory_close(&h.memory, &claim);
	assert_int_equal(seam_owners_scan(&h), 1);
	assert_true(owner->is_ending);
	seam_owners_counts(&h, 0, &counts);
	assert_int_equal(counts.n_begun, drain(owner, 9));
	assert_int_equal(counts.n_begun +
			 counts.n_lost[SEAM_RING_LOST_FULL], 1000);
	seam_ring_aux_snapshot_init(&shot, &owner->aux, NULL);
	assert_int_equal(seam_ring_aux_snapshot_program(&owner->aux, &shot), 6);
	seam_owners_release(&h, 0);
	assert_int_equal(seam_owners_scan(&h), 0);

	assert_int_equal(seam_ring_memory_claim(&h.memory, my_tid(), &next), 0);
	assert_true(next.word != claim.word);
	seam_ring_memory_close(&h.memory, &claim);	/* too late */
	seam_ring_write(&next.ring, 10, 0, "", 1);
	seam_owners_scan(&h);
	assert_false(owner->is_ending);
	seam_owners_counts(&h, 0, &counts);
	assert_int_equal(counts.n_begun, 1);
	assert_int_equal(counts.n_lost[SEAM_RING_LOST_FULL], 0);
	assert_int_equal(drain(owner, 10), 1);
	assert_int_equal(seam_ring_aux_snapshot_program(&owner->aux, &shot), 0);
	seam_ring_aux_snapshot_fini(&shot);
}

/* A memory of one ring, which this thread claims. */
static void claim_one(void)
{
	struct seam_ring_claim claim;

	open_memory(1);
	seam_ring_memory_claim(&h.memory, my_tid(), &claim);
	seam_owners_scan(&h);
}

UNIT_TEST(an_owner_never_becomes_another)
{
	claim_one();
	atomic_store(&h.memory.slots[0].word,
		     seam_ring_word(SEAM_RING_CLAIMED, 0, 1));
	assert_int_equal(seam_owners_scan(&h), 1);
	assert_true(h.items[0].is_ending);
	assert_int_equal(h.items[0].tid, my_tid());
}

UNIT_TEST(writes_the_identity_into_each_sample)
{
	struct seam_ring_identity identity = {
		.id = 10, .pid = 11, .tid = 12, .min_ns = 100, .max_ns = 200,
	};
	static const struct {
		uint32_t type, size, ip;
		size_t at;		/* of pid, tid, time; 0: refused */
	} cases[] = {
		{ PERF_RECORD_SAMPLE, 40, PERF_SAMPLE_IP, 24 },
		{ PERF_RECORD_SAMPLE, 32, PERF_SAMPLE_IP, 0 },
		{ PERF_RECORD_SAMPLE, 32, 0, 16 },
		{ PERF_RECORD_SAMPLE, 24, 0, 0 },
		{ PERF_RECORD_SAMPLE, 8, 0, 0 },
		{ PERF_RECORD_LOST, 40, 0, 0 }, { PERF_RECORD_LOST, 24, 0, 0 },
		{ PERF_RECORD_AUX, 48, 0, 0 }, { PERF_RECORD_MMAP2, 120, 0, 0 },
		{ PERF_RECORD_LOST_SAMPLES, 32, 0, 0 }, { 0, 64, 0, 0 },
		{ PERF_RECORD_COMM, 40, 0, 0 }, { PERF_RECORD_EXIT, 48, 0, 0 },
		{ PERF_RECORD_FORK, 48, 0, 0 }, { 68, 8, 0, 0 },
		{ UINT32_MAX, 64, 0, 0 },
	};
	static const uint64_t times[][2] = {
		{ 0, 100 },   { 99, 100 },  { 100, 100 },        { 150, 150 },
		{ 200, 200 }, { 201, 200 }, { UINT64_MAX, 200 },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases) * SEAM_ARRAY_SIZE(times);
	     i++) {
		size_t c = i / SEAM_ARRAY_SIZE(times);
		const uint64_t *time = times[i % SEAM_ARRAY_SIZE(times)];
		struct seam_ring_header header = {
			.type = cases[c].type, .misc = PERF_RECORD_MISC_KERNEL,
			.size = (uint16_t)cases[c].size,
		};
		uint8_t *bytes = calloc(1, cases[c].size);
		uint32_t who[2];

		identity.sample_type = cases[c].ip;
		if (cases[c].at)
			memcpy(bytes + cases[c].at + 8, time, sizeof(*time));
		assert_int_equal(seam_ring_set_owner(bytes, &header, &identity),
				 cases[c].at > 0);
		if (cases[c].at) {
			memcpy(who, bytes + cases[c].at, sizeof(who));
			assert_int_equal(who[0], 11);
			assert_int_equal(who[1], 12);
			assert_int_equal(word_at(bytes, 8), 10);
			assert_int_equal(word_at(bytes, cases[c].at + 8),
					 time[1]);
			assert_int_equal(bytes[4], PERF_RECORD_MISC_USER);
		}
		free(bytes);
	}
}

UNIT_MAIN(NULL, NULL, NULL, close_memory)
