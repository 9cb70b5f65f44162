/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toolkit.h: finds a program of the CUDA toolkit.
 */
#ifndef GATE_BASE_TOOLKIT_H
#define GATE_BASE_TOOLKIT_H

#include "gate/base/error.h"
#include "gate/base/paths.h"

/*
 * Searches PATH, then the bin folder of $CUDA_HOME, or of /usr/local/cuda and /usr/local/cuda-* if
 * it is not set, then `elsewhere`, a pattern of files or NULL. GATE_ENVIRONMENT, with the places
 * that were searched, if it is nowhere.
 */
enum gate_status toolkit_find(const char *name, const char *elsewhere, char path[PATHS_MAX],
                              struct gate_error *err);

#endif
