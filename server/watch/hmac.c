/* SPDX-License-Identifier: Apache-2.0 */
/* hmac.c: see hmac.h. */
#include "server/watch/hmac.h"

#include <sha2.h>
#include <string.h>

#define BLOCK SHA256_BLOCK_LENGTH

_Static_assert(HMAC_BYTES == SHA256_DIGEST_LENGTH, "a MAC is a digest");

static void digest(const uint8_t pad[BLOCK], const void *text, size_t len, uint8_t out[HMAC_BYTES])
{
    SHA2_CTX context;
    SHA256Init(&context);
    SHA256Update(&context, pad, BLOCK);
    SHA256Update(&context, text, len);
    SHA256Final(out, &context);
    explicit_bzero(&context, sizeof context);
}

void hmac_sha256(const void *key, size_t key_len, const void *text, size_t len,
                 uint8_t out[HMAC_BYTES])
{
    uint8_t inner[BLOCK] = {0}, outer[BLOCK];
    if (key_len <= BLOCK) {
        memcpy(inner, key, key_len);
    } else {
        SHA2_CTX context;
        SHA256Init(&context);
        SHA256Update(&context, key, key_len);
        SHA256Final(inner, &context);
    }
    for (size_t i = 0; i < BLOCK; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    digest(inner, text, len, out);
    uint8_t first[HMAC_BYTES];
    memcpy(first, out, HMAC_BYTES);
    digest(outer, first, HMAC_BYTES, out);
    explicit_bzero(inner, sizeof inner);
    explicit_bzero(outer, sizeof outer);
}
