/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths.h: where the installed parts are: relative to the program, so that a tree can be moved.
 *
 *     bin/gate   lib/kernel-gate/libours.so ...   share/kernel-gate/suites/canonical.json ...
 */
#ifndef GATE_BASE_PATHS_H
#define GATE_BASE_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/error.h"

#define PATHS_MAX 4096

/* Path of an installed file: `below` "bin", "lib/kernel-gate". */
enum gate_status paths_installed(const char *below, const char *name, char path[PATHS_MAX],
                                 struct gate_error *err);

/* Is `name` a file of a suite (it has a slash or ends in ".json"), or the name of an installed one?
 */
bool paths_is_suite_file(const char *name);

/* Path of a suite: `name` itself if it is a file, else the path of the installed suite; GATE_USAGE
 * if none has that name. */
enum gate_status paths_suite(const char *name, char path[PATHS_MAX], struct gate_error *err);

/* The artifact cache: $GATE_CACHE if it is set, else kernel-gate under $XDG_CACHE_HOME, which must
 * be absolute, or ~/.cache. GATE_ENVIRONMENT: no such folder is known, or its path is too long. */
enum gate_status paths_cache(char path[PATHS_MAX], struct gate_error *err);

/* Writes a path in it. GATE_ENVIRONMENT, and errno is ENAMETOOLONG: it is too long. */
enum gate_status paths_set(char path[PATHS_MAX], struct gate_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Finds a program of the CUDA toolkit. Searches PATH, then the bin folder of $CUDA_HOME, or of
 * /usr/local/cuda and /usr/local/cuda-* if it is not set, then `elsewhere`, a pattern of files or
 * NULL. GATE_ENVIRONMENT, with the places that were searched, if it is nowhere.
 */
enum gate_status toolkit_find(const char *name, const char *elsewhere, char path[PATHS_MAX],
                              struct gate_error *err);

/* ---- environment.c: one table of the environment variables that the gate reads, except those that
 * CI systems set in a job (gate/ci/ci.c) ---- */

struct environment_variable {
    const char *name, *what;
    bool is_secret; /* its value is never printed */
};

/* Ends with a NULL name. */
extern const struct environment_variable environment_variables[];

/* The value of a variable of the table; NULL when it is not set, or empty. */
const char *environment_get(const char *name);

#endif
