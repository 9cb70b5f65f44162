/*
 * embed.h: files that the build puts into a program, as a table.
 *
 * The embedding tool writes one C file for each table. `data` has a NUL after its `size` bytes, so
 * that a text may be used as a string. The bytes live as long as the program.
 */
#ifndef GATE_BASE_EMBED_H
#define GATE_BASE_EMBED_H

#include <stddef.h>

struct embedded_file {
    const char *name; /* path below the folder that was embedded, "run.schema.json" */
    const unsigned char *data;
    size_t size;
};

/* gate/<name>.schema.json, sorted by name. */
extern const struct embedded_file embedded_schemas[];
extern const size_t embedded_schemas_count;

#endif
