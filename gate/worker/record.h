/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h: what a worker knows, as the objects of run.schema.json.
 */
#ifndef GATE_WORKER_RECORD_H
#define GATE_WORKER_RECORD_H

#include <cjson/cJSON.h>

#include "gate/launch/arm.h"

/* Each returns an object of the caller's (cJSON_Delete), or NULL when memory is short. */
cJSON *record_device(const struct device_info *info);
cJSON *record_library(const struct library *lib, enum arm_role role);
cJSON *record_arm(const struct arm *arm, const struct kg_problem *p,
                  const struct device_info *info);

#endif
