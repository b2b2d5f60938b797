/* SPDX-License-Identifier: MIT */
/* module_name.c - without folder and brackets; see module_name.h */
#include "model/profile/module_name.h"

const char *seam_module_name(const char *path, size_t *size)
{
	const char *slash = strrchr(path, '/');

	if (path[0] == '[')
		path++;
	else if (slash && slash[1])
		path = slash + 1;
	*size = strlen(path);
	if (*size && path[*size - 1] == ']')
		--*size;
	if (*size > SEAM_MODULE_NAME_MOST)
		*size = SEAM_MODULE_NAME_MOST;
	return path;
}
