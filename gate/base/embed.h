/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed.h: files that the build puts into a program, as a table.
 *
 * The embedding tool writes one C file for each table, sorted by name. `data` has a NUL after its
 * `size` bytes, so that a text may be used as a string. The bytes live as long as the program.
 */
#ifndef GATE_BASE_EMBED_H
#define GATE_BASE_EMBED_H

#include <stddef.h>

struct embedded_file {
    const char *name; /* "openapi.json" */
    const unsigned char *data;
    size_t size;
};

/* What `gate init` writes: examples/mykernels, the jobs of ci/templates, kernel.h. */
extern const struct embedded_file embedded_init[];
extern const size_t embedded_init_count;

/* The schema of a history, its views and its upgrades: gate/store/ *.sql. */
extern const struct embedded_file embedded_store[];
extern const size_t embedded_store_count;

/* The lists of the API: server/queries/ *.sql. */
extern const struct embedded_file embedded_queries[];
extern const size_t embedded_queries_count;

/* server/api/openapi_parts.json alone. */
extern const struct embedded_file embedded_api[];
extern const size_t embedded_api_count;

/* A file for browsers, as it is and as gzip has it. */
struct embedded_asset {
    const char *name; /* "frame/app.js" */
    const unsigned char *data;
    size_t size;
    const unsigned char *gz;
    size_t gz_size;
};

/* The page: index.html names the others as "files/<version>/<name>". Without npm
 * (WEB=0) there is no index.html. */
extern const struct embedded_asset embedded_web[];
extern const size_t embedded_web_count;
extern const char embedded_web_version[];

#endif
