/* SPDX-License-Identifier: MIT */
/* services.h - the made-up services of this folder */
#ifndef TEST_SERVICES_H
#define TEST_SERVICES_H

#include "record/services/service.h"

void counter_service_init(struct seam_service *service, size_t ring_bytes);
void latest_service_init(struct seam_service *service, bool free_running);

#endif /* TEST_SERVICES_H */
