/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h: gate.json, what a repository says about its kernels, so that no command needs an option
 * there. By config.schema.json.
 *
 * It is looked for in the current folder and, inside of a git repository, in those above it up to
 * the repository's own.
 */
#ifndef GATE_CLI_CONFIG_H
#define GATE_CLI_CONFIG_H

#include <cjson/cJSON.h>

#include "gate/base/error.h"
#include "gate/document/fields.h"

#define CONFIG_FILE "gate.json"

extern const struct shape config_file_shape; /* what it may hold */

/* The file, read once; NULL in *out when there is none. It stays the module's. GATE_USAGE: it does
 * not fit the schema. */
enum gate_status config_read(const cJSON **out, struct gate_error *err);

/* "" or the way up to the file's folder, "../../". */
const char *config_folder(void);

/* A path of the file, as seen from the current folder; lives as long as the program. */
const char *config_path(const char *path);

#endif
