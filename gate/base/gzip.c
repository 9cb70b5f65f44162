/* SPDX-License-Identifier: Apache-2.0 */
/* gzip.c: see gzip.h. */
#include "gate/base/gzip.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <zlib.h>

#define LEVEL 1
#define WINDOW_BITS (15 + 16) /* 16: with gzip's head and tail */
#define MEMORY_LEVEL 8
#define CHUNK 32768u

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void end_stream(void *stream)
{
    deflateEnd(stream);
    free(stream);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, end_stream) == 0;
}

/* This thread's stream, ready for the next bytes; NULL: out of memory. */
static z_stream *stream_of_thread(void)
{
    pthread_once(&once, make_key);
    z_stream *z = has_key ? pthread_getspecific(key) : NULL;
    if (z)
        return deflateReset(z) == Z_OK ? z : NULL;
    z = has_key ? calloc(1, sizeof(*z)) : NULL;
    if (!z)
        return NULL;
    if (deflateInit2(z, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK ||
        pthread_setspecific(key, z) != 0) {
        end_stream(z);
        return NULL;
    }
    return z;
}

bool gzip_compress(const void *bytes, size_t n, struct buf *out)
{
    unsigned char chunk[CHUNK];
    z_stream *z = n <= UINT_MAX ? stream_of_thread() : NULL;
    int rc = Z_OK;
    if (!z)
        return false;
    z->next_in = (unsigned char *)(size_t)bytes; /* zlib does not write to it */
    z->avail_in = (unsigned)n;
    while (rc == Z_OK && !out->failed) {
        z->next_out = chunk;
        z->avail_out = CHUNK;
        rc = deflate(z, Z_FINISH);
        buf_append(out, chunk, CHUNK - z->avail_out);
    }
    return rc == Z_STREAM_END && !out->failed;
}

enum gzip_result gzip_inflate(const void *bytes, size_t n, struct buf *out)
{
    unsigned char chunk[CHUNK];
    z_stream z = {.next_in = (unsigned char *)(size_t)bytes, .avail_in = (unsigned)n};
    int rc = Z_OK;
    if (n > UINT_MAX)
        return GZIP_BAD;
    if (inflateInit2(&z, WINDOW_BITS) != Z_OK)
        return GZIP_TOO_LONG;
    while (rc == Z_OK && !out->failed) {
        z.next_out = chunk;
        z.avail_out = CHUNK;
        rc = inflate(&z, Z_NO_FLUSH);
        buf_append(out, chunk, CHUNK - z.avail_out);
    }
    unsigned rest = z.avail_in;
    inflateEnd(&z);
    if (out->failed || rc == Z_MEM_ERROR)
        return GZIP_TOO_LONG;
    return rc == Z_STREAM_END && rest == 0 ? GZIP_GOOD : GZIP_BAD;
}
