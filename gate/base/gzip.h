/*
 * gzip.h: bytes as one gzip member (RFC 1952), by zlib.
 */
#ifndef GATE_BASE_GZIP_H
#define GATE_BASE_GZIP_H

#include "base/buf.h"
#include "base/error.h"

/* Appends the compressed bytes to `out`. The same bytes give the same member: it has no name and no
 * time. GATE_INTERNAL: memory is short, or out->max is. */
enum gate_status gzip_append(const void *bytes, size_t n, struct buf *out, struct gate_error *err);

#endif
