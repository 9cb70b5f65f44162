/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_document.c: a run's document on its way to a client, in pieces; see http_private.h.
 *
 * It is read from the database as libmicrohttpd asks for it, so that a client that reads slowly
 * holds one piece. It lies there deflated, and is sent so to a client that takes that.
 */
#include "server/http/http_private.h"

#include <stdlib.h>
#include <zlib.h>

#define PIECE ((size_t)64 << 10)

struct stream {
    struct peer *peer;
    int64_t run_id;
    size_t size, at; /* of the packed bytes; what was read of them */
    bool inflates;
    z_stream z;
    unsigned char piece[PIECE]; /* of what is to be inflated */
};

/* False: it is not the document that was asked for any more, or cannot be read. */
static bool read_piece(struct stream *s, uint64_t at, void *out, size_t n)
{
    struct store *store = http_take_store(s->peer, false);
    enum gate_status status =
        store_document_piece(store, s->run_id, s->size, (size_t)at, out, n, NULL);
    http_give_store(s->peer, store);
    return !status;
}

static ssize_t send_packed(void *context, uint64_t at, char *out, size_t max)
{
    struct stream *s = context;
    size_t left = s->size - (size_t)at, n = left < max ? left : max;
    return read_piece(s, at, out, n) ? (ssize_t)n : MHD_CONTENT_READER_END_WITH_ERROR;
}

static bool refill(struct stream *s)
{
    size_t left = s->size - s->at, n = left < PIECE ? left : PIECE;
    if (n == 0 || !read_piece(s, s->at, s->piece, n))
        return false;
    s->at += n;
    s->z.next_in = s->piece;
    s->z.avail_in = (uInt)n;
    return true;
}

static ssize_t send_inflated(void *context, uint64_t, char *out, size_t max)
{
    struct stream *s = context;
    s->z.next_out = (unsigned char *)out;
    s->z.avail_out = (uInt)(max < PIECE ? max : PIECE);
    uInt room = s->z.avail_out;
    while (s->z.avail_out == room) {
        if (s->z.avail_in == 0 && !refill(s))
            return MHD_CONTENT_READER_END_WITH_ERROR;
        int rc = inflate(&s->z, Z_NO_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (rc == Z_STREAM_END)
            break;
    }
    return s->z.avail_out == room ? MHD_CONTENT_READER_END_WITH_ERROR
                                  : (ssize_t)(room - s->z.avail_out);
}

static void free_stream(void *context)
{
    struct stream *s = context;
    if (s->inflates)
        inflateEnd(&s->z);
    free(s);
}

struct MHD_Response *http_document_response(struct peer *p)
{
    const struct reply *reply = &p->reply;
    bool inflates = !reply->deflated;
    struct stream *s = calloc(1, sizeof *s);
    if (!s || (inflates && inflateInit(&s->z) != Z_OK)) {
        free(s);
        return NULL;
    }
    s->peer = p;
    s->run_id = reply->document.run_id;
    s->size = reply->document.packed_bytes;
    s->inflates = inflates;
    struct MHD_Response *response =
        MHD_create_response_from_callback(inflates ? reply->document.bytes : s->size, PIECE,
                                          inflates ? send_inflated : send_packed, s, free_stream);
    if (!response)
        free_stream(s);
    return response;
}
