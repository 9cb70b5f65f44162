/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hmac.h: HMAC with SHA-256 (RFC 2104).
 */
#ifndef SERVER_WATCH_HMAC_H
#define SERVER_WATCH_HMAC_H

#include <stddef.h>
#include <stdint.h>

#define HMAC_BYTES 32

void hmac_sha256(const void *key, size_t key_len, const void *text, size_t len,
                 uint8_t out[HMAC_BYTES]);

#endif
