/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip.h: bytes in gzip's form, in and out, whole.
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
    GZIP_BAD,      /* not gzip, cut, damaged, or with something behind it */
    GZIP_TOO_LONG, /* it would be more than out->max, or memory is short */
};

/* Appends what one gzip member holds. Never takes more memory than `out` may. */
enum gzip_result gzip_inflate(const void *bytes, size_t n, struct buf *out);

#endif
