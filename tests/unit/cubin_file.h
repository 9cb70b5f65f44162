/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cubin_file.h: library files with GPU code in them, put together section by section.
 */
#ifndef TESTS_UNIT_CUBIN_FILE_H
#define TESTS_UNIT_CUBIN_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/base/buf.h"
#include "gate/library/machine_code.h"

/* Two kernels, and what they share. Sections count from 2: the empty one and the names come first.
 */
struct cubin {
    uint32_t architecture;
    const char *names; /* "\0first\0second": they lie at 1 and behind the next NUL */
    const char *first, *first_constants, *second, *data, *helper;
    bool compressed;  /* by zstd */
    const void *info; /* attributes of all; "one" is symbol 1, "two" is 2 */
    size_t info_bytes;
    uint64_t shared_bytes; /* of "one" */
    const void *own_info;  /* attributes of "one" alone */
    size_t own_info_bytes;
};

extern const struct cubin cubin_plain;

void cubin_put(struct buf *out, const struct cubin *c);

/* A shared object with a container for each cubin; the buffer is initialised here. */
void cubin_put_library(struct buf *out, const struct cubin *cubins, size_t n);

/* What machine_code_read() makes of these bytes, or of such a library. */
struct machine_code *cubin_read_bytes(const void *bytes, size_t n);
struct machine_code *cubin_read(const struct cubin *cubins, size_t n);

#endif
