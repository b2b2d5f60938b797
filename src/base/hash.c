/* SPDX-License-Identifier: MIT */
/* hash.c - the key of this process; see hash.h */
#include "base/hash.h"

#include <sys/auxv.h>
#include <sys/random.h>

/* Odd constants with about half of their bits set: digits of pi. */
#define PI_0 UINT64_C(0x243f6a8885a308d3)
#define PI_1 UINT64_C(0x13198a2e03707345)

struct seam_hash_key seam_hash_key = { PI_0, PI_1 };

/*
 * Where the kernel has no random bytes, as early in a boot or in a sandbox
 * without the call, those that it gave the process at its start must do.
 */
__attribute__((constructor)) static void make_key(void)
{
	struct seam_hash_key key;
	unsigned long start;

	if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != sizeof(key)) {
		start = getauxval(AT_RANDOM);
		if (!start)
			return;
		memcpy(&key, (const void *)(uintptr_t)start, sizeof(key));
		key.a = seam_hash_fold(key.a ^ PI_0, PI_1);
		key.b = seam_hash_fold(key.b ^ PI_0, PI_1);
	}
	key.b |= 1;
	seam_hash_key = key;
}

uint64_t seam_hash_stable(const void *data, size_t size, uint64_t seed)
{
	return seam_hash_by((struct seam_hash_key) { PI_0, PI_1 }, data, size,
			    seed);
}
