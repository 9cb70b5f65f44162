/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline_files.h: all files of stored baselines of a folder, one device model after the other.
 */
#ifndef GATE_BASELINE_BASELINE_FILES_H
#define GATE_BASELINE_BASELINE_FILES_H

#include "gate/baseline/baseline.h"

typedef enum gate_status (*baseline_file_fn)(void *context, const char *device_model,
                                             const struct baseline *baseline,
                                             struct gate_error *err);

/* Calls fn for each DIR/<device-model>.json in the order of the names, or for one model alone (an
 * empty set where it has no file), until one fails. GATE_IO: as baseline_load(). */
enum gate_status baseline_files_each(const char *folder, const char *device_model,
                                     baseline_file_fn fn, void *context, struct gate_error *err);

#endif
