/* SPDX-License-Identifier: MIT */
/*
 * work.c - functions of the size that programs have, with and without sleds
 *
 * Built twice, with another NAME; sleds.c compares.  Each function is one that
 * clang -fxray-instrument takes by itself: it has a loop.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_2(a, b) a##_##b
#define JOIN(a, b) JOIN_2(a, b)
#define MY(name) __attribute__((noinline)) JOIN(NAME, name)

uint64_t JOIN(NAME, work)(uint64_t seed);

static uint32_t MY(checksum)(const uint8_t *bytes, size_t n)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash;
}

static void MY(insert_sort)(uint32_t *items, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		uint32_t item = items[i];
		size_t at = i;

		for (; at && items[at - 1] > item; at--)
			items[at] = items[at - 1];
		items[at] = item;
	}
}

static size_t MY(format)(char *out, uint64_t number)
{
	char digits[24];
	size_t n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	for (size_t i = 0; i < n; i++)
		out[i] = digits[n - 1 - i];
	return n;
}

static uint32_t MY(find)(const uint32_t *items, size_t n, uint32_t item)
{
	size_t low = 0;

	while (n) {
		size_t half = n / 2;

		if (items[low + half] < item) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return (uint32_t)low;
}

uint64_t JOIN(NAME, work)(uint64_t seed)
{
	uint32_t items[32];
	char text[64];
	uint64_t sum = 0;

	for (int i = 0; i < 32; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		items[i] = (uint32_t)(seed >> 33);
	}
	JOIN(NAME, insert_sort)(items, 32);
	for (int i = 0; i < 8; i++) {
		size_t n = JOIN(NAME, format)(text, items[i * 4]);

		sum += JOIN(NAME, checksum)((const uint8_t *)text, n);
		sum += JOIN(NAME, find)(items, 32, (uint32_t)sum);
	}
	return sum;
}
