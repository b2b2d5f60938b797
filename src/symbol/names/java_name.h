/* SPDX-License-Identifier: MIT */
/*
 * java_name.h - a JVM's method signature as people write it
 *
 *	Ljava/util/Arrays;copyOf([BI)[B    java.util.Arrays.copyOf(byte[], int)
 *
 * That is how agents of the JVM name compiled methods in dumps and maps.  The
 * result type is left out: it does not distinguish methods.
 *
 * Source: Java Virtual Machine Specification, 4.3 "Descriptors".
 */
#ifndef SEAM_JAVA_NAME_H
#define SEAM_JAVA_NAME_H

#include "base/base.h"

/*
 * Write @name as Java into @buf of @cap bytes.  False, and @buf holds nothing
 * useful, when @name is no signature or does not fit.
 */
bool seam_java_name(const char *name, char *buf, size_t cap);

#endif /* SEAM_JAVA_NAME_H */
