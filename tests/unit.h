/* SPDX-License-Identifier: MIT */
/* unit.h - what a unit test includes: cmocka, and what cmocka.h needs */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif /* UNIT_H */
