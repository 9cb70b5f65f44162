/* SPDX-License-Identifier: Apache-2.0 */
/* store_pack.c: see store_pack.h. */
#define ZLIB_CONST
#include "gate/store/store_pack.h"

#include <sha2.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "gate/store/store.h"

#define LEVEL 1 /* the fastest */

#define GZIP_HEAD 10u
#define GZIP_FLAGS_AT 3
#define GZIP_TAIL 8u

/* What is kept beside the packed bytes. */
static enum gate_status describe(const char *text, size_t len, struct store_packed *out,
                                 struct gate_error *err)
{
    static const char samples[] = "\"samples_ns\"";
    SHA2_CTX context;
    *out = (struct store_packed){.n_bytes = len};
    if (len > STORE_MAX_DOCUMENT)
        return gate_fail(err, GATE_IO,
                         "the document is too long to be stored: %zu bytes, at most "
                         "%zu",
                         len, STORE_MAX_DOCUMENT);
    out->has_samples = memmem(text, len, samples, sizeof samples - 1) != NULL;
    SHA256Init(&context);
    SHA256Update(&context, (const uint8_t *)text, len);
    SHA256Final(out->sha256, &context);
    return GATE_OK;
}

static enum gate_status deflate_all(const char *text, size_t len, struct store_packed *out,
                                    struct gate_error *err)
{
    uLongf room = compressBound(len);
    out->bytes = malloc(room);
    if (!out->bytes || compress2(out->bytes, &room, (const Bytef *)text, len, LEVEL) != Z_OK) {
        store_packed_release(out);
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    }
    out->len = room;
    unsigned char *shorter = realloc(out->bytes, room);
    if (shorter)
        out->bytes = shorter;
    return GATE_OK;
}

enum gate_status store_pack(const char *text, size_t len, struct store_packed *out,
                            struct gate_error *err)
{
    TRY(describe(text, len, out, err));
    return deflate_all(text, len, out, err);
}

/* The same deflated bytes with zlib's head and tail, for gzip's. */
static enum gate_status rewrap_gzip(const unsigned char *gzip, size_t gzip_len, const char *text,
                                    size_t len, struct store_packed *out, struct gate_error *err)
{
    static const unsigned char head[] = {0x78, 0x01}; /* a window of 32 KiB, no dictionary */
    size_t n = gzip_len - GZIP_HEAD - GZIP_TAIL;
    uLong sum = adler32_z(1, (const Bytef *)text, len);
    unsigned char *p = out->bytes = malloc(sizeof head + n + 4);
    if (!p)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    memcpy(p, head, sizeof head);
    memcpy(p + sizeof head, gzip + GZIP_HEAD, n);
    p += sizeof head + n;
    for (int shift = 24; shift >= 0; shift -= 8)
        *p++ = (unsigned char)(sum >> shift);
    out->len = (size_t)(p - out->bytes);
    return GATE_OK;
}

enum gate_status store_pack_again(const void *gzip, size_t gzip_len, const char *text, size_t len,
                                  struct store_packed *out, struct gate_error *err)
{
    TRY(describe(text, len, out, err));
    /* A head without a name or the like is of the one length that this knows. */
    bool may_be_kept = gzip_len >= GZIP_HEAD + GZIP_TAIL &&
                       ((const unsigned char *)gzip)[GZIP_FLAGS_AT] == 0 && gzip_len <= len / 4;
    return may_be_kept ? rewrap_gzip(gzip, gzip_len, text, len, out, err)
                       : deflate_all(text, len, out, err);
}

void store_packed_release(struct store_packed *p)
{
    free(p->bytes);
    *p = (struct store_packed){0};
}

enum gate_status store_unpack(const void *bytes, size_t len, size_t n_bytes, struct buf *out,
                              struct gate_error *err)
{
    uLong n_read = len;
    uLongf n_written = n_bytes;
    char *room = n_bytes <= STORE_MAX_DOCUMENT ? buf_room(out, n_bytes) : NULL;
    if (!room)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    if (uncompress2((Bytef *)room, &n_written, bytes, &n_read) != Z_OK || n_written != n_bytes ||
        n_read != len)
        return gate_fail(err, GATE_IO, "a stored document is damaged: it cannot be unpacked");
    buf_used(out, n_bytes);
    return GATE_OK;
}
