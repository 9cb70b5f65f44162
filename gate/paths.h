/*
 * paths.h: where the installed parts are: relative to the program, so that a tree can be moved.
 *
 *     bin/gate   lib/kernel-gate/libours.so ...   share/kernel-gate/suites/canonical.json ...
 */
#ifndef GATE_PATHS_H
#define GATE_PATHS_H

#include "base/error.h"

#define PATHS_MAX 4096

/* Path of a kernel library by its file name ("libours.so"). */
enum gate_status paths_library(const char *file, char path[PATHS_MAX], struct gate_error *err);

/* Path of a suite: `name` itself when it has a slash or ends in ".json", else that of an installed
 * suite; GATE_USAGE when there is none of that name. */
enum gate_status paths_suite(const char *name, char path[PATHS_MAX], struct gate_error *err);

#endif
