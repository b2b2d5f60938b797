/* SPDX-License-Identifier: MIT */
/* store_kind.h - what each kind of store has; see store.h */
#pragma once

#include "fleet/store.h"

struct seam_fleet_kind {
	int (*put)(struct seam_fleet_store *store, struct seam_bytes file,
		   struct seam_err *err);
	int (*ask)(struct seam_fleet_store *store,
		   const struct seam_fleet_query *query,
		   struct seam_fleet_answer *answer, struct seam_err *err);
	void (*close)(struct seam_fleet_store *store);
};

/* The first member of the struct of each kind. */
struct seam_fleet_store {
	const struct seam_fleet_kind *kind;
};

/* Files in a folder (folder.c). */
int seam_fleet_open_folder(struct seam_fleet_store **store, const char *path,
			   struct seam_err *err);

/* A receiver of OTLP, with or without another store (otlp_store.c). */
int seam_fleet_open_otlp(struct seam_fleet_store **store,
			 const struct seam_fleet_place *place,
			 struct seam_err *err);
