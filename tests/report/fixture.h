/* SPDX-License-Identifier: MIT */
/* fixture.h - a profile for each test, in which the test puts its samples */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "../model/built.h"
#include "../unit.h"

static struct seam_profile p;

static int begin(void **state)
{
	p = built();
	return 0;
}

static int end(void **state)
{
	seam_profile_fini(&p);
	return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

#endif /* FIXTURE_H */
