/* gzip.c: see gzip.h. */
#include "base/gzip.h"

#include <limits.h>
#include <zlib.h>

#define CHUNK 65536
#define WINDOW_BITS (15 + 16) /* the largest window, in the format of gzip */
#define MEMORY_LEVEL 8        /* zlib's own default */

enum gate_status gzip_append(const void *bytes, size_t n, struct buf *out, struct gate_error *err)
{
    unsigned char chunk[CHUNK];
    z_stream z = {0};
    int code = Z_OK;
    if (n > UINT_MAX)
        return gate_fail(err, GATE_INTERNAL, "%zu bytes are too many to compress at once", n);
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return gate_fail(err, GATE_INTERNAL, "out of memory for a compressor");
    z.next_in = (z_const Bytef *)bytes;
    z.avail_in = (uInt)n;
    while (code == Z_OK) {
        z.next_out = chunk;
        z.avail_out = CHUNK;
        code = deflate(&z, Z_FINISH);
        buf_append(out, chunk, CHUNK - z.avail_out);
    }
    deflateEnd(&z);
    if (code != Z_STREAM_END || out->failed)
        return gate_fail(err, GATE_INTERNAL, "out of memory for what was compressed");
    return GATE_OK;
}
