/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toolkit.h: where a program of the CUDA toolkit is.
 */
#ifndef GATE_BASE_TOOLKIT_H
#define GATE_BASE_TOOLKIT_H

#include "gate/base/error.h"
#include "gate/base/paths.h"

/*
 * On PATH, then in the bin folder of $CUDA_HOME, or of /usr/local/cuda and /usr/local/cuda-* where
 * that is not set, then as `elsewhere` says, a pattern of files or NULL. GATE_ENVIRONMENT: it is
 * nowhere, with where it was looked for.
 */
enum gate_status toolkit_find(const char *name, const char *elsewhere, char path[PATHS_MAX],
                              struct gate_error *err);

#endif
