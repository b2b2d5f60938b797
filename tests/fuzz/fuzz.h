/* SPDX-License-Identifier: MIT */
/* fuzz.h - what a fuzz target includes: its entries, and its oracle's word */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A macro, so that a stack trace names the line. */
#define must(holds) do { if (!(holds)) abort(); } while (0)

/* The fuzzer's; it has no header. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#endif /* FUZZ_H */
