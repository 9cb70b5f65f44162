/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip.h: compresses and decompresses a whole buffer in the format of gzip.
 */
#ifndef GATE_BASE_GZIP_H
#define GATE_BASE_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/buf.h"

/* Appends the compressed bytes; fast rather than small. False: memory, or out->max. Each thread
 * keeps its working memory from one call to the next. */
bool gzip_compress(const void *bytes, size_t n, struct buf *out);

enum gzip_result {
    GZIP_GOOD,
    GZIP_BAD,      /* not gzip, truncated, damaged, or with trailing bytes */
    GZIP_TOO_LONG, /* larger than out->max, or out of memory */
};

/* Appends the contents of one gzip member. Never uses more memory than out->max. */
enum gzip_result gzip_inflate(const void *bytes, size_t n, struct buf *out);

#endif
