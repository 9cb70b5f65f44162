/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_pack.h: a run document as it is kept: deflated, with its length and the hash of its bytes.
 */
#ifndef GATE_STORE_STORE_PACK_H
#define GATE_STORE_STORE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"

struct store_packed {
    unsigned char *bytes; /* zlib */
    size_t len;
    size_t n_bytes; /* of the document */
    unsigned char sha256[32];
    bool has_samples; /* raw samples are in it */
};

/*
 * Packing takes longer than storing, and needs no store: do it where others need not wait. GATE_IO
 * for a text over STORE_MAX_DOCUMENT. Release it whatever comes back.
 */
enum gate_status store_pack(const char *text, size_t len, struct store_packed *out,
                            struct gate_error *err);
/*
 * The same of a text that gzip_inflate() took out of `gzip`: what is between its head and its tail
 * is kept, where that is a quarter of the text or less, so that nobody fills the disk with what is
 * badly packed.
 */
enum gate_status store_pack_again(const void *gzip, size_t gzip_len, const char *text, size_t len,
                                  struct store_packed *out, struct gate_error *err);
void store_packed_release(struct store_packed *p);

/* Appends the document to `out`. GATE_IO when the bytes are damaged. */
enum gate_status store_unpack(const void *bytes, size_t len, size_t n_bytes, struct buf *out,
                              struct gate_error *err);

#endif
