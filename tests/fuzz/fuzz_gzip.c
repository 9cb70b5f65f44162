/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_gzip.c: what a client says is gzip. The first byte is how much may come out of it, as a
 * power of two.
 */
#include <stdint.h>
#include <string.h>

#include "gate/base/gzip.h"
#include "tests/fuzz/edits.h"
#include "gate/store/store_pack.h"

/* What was put in comes out, and not one byte may be missing of the room for it. */
static void there_and_back(const void *bytes, size_t n)
{
    struct buf packed, again;
    buf_init(&packed, n + 1024);
    buf_init(&again, n);
    fuzz_expect(gzip_compress(bytes, n, &packed), "room for the compressed bytes", "none");
    fuzz_expect(gzip_inflate(packed.data, packed.len, &again) == GZIP_GOOD, "our own gzip is good",
                "another result");
    fuzz_expect(again.len == n && (n == 0 || memcmp(again.data, bytes, n) == 0), "the same bytes",
                "others");
    fuzz_expect(gzip_inflate(packed.data, packed.len - 1, &again) != GZIP_GOOD, "a cut is noticed",
                "GZIP_GOOD");
    buf_release(&packed);
    buf_release(&again);
}

/* A document is kept as it was packed, and read again without its gzip head and tail. */
static void kept(const void *gzip, size_t gzip_len, const struct buf *text)
{
    struct store_packed packed;
    struct buf again;
    buf_init(&again, text->len);
    fuzz_expect(store_pack_again(gzip, gzip_len, text->data, text->len, &packed, NULL) == GATE_OK,
                "a document to keep", "a failure");
    fuzz_expect(store_unpack(packed.bytes, packed.len, text->len, &again, NULL) == GATE_OK,
                "a document that can be read again", "a failure");
    fuzz_expect(again.len == text->len && memcmp(again.data, text->data, text->len) == 0,
                "the same document", "another one");
    store_packed_release(&packed);
    buf_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf out;
    if (size == 0)
        return 0;
    buf_init(&out, (size_t)1 << data[0] % 20);
    enum gzip_result result = gzip_inflate(data + 1, size - 1, &out);
    fuzz_expect(out.len <= out.max, "no more than the room for it", "more");
    if (result == GZIP_GOOD)
        there_and_back(out.data ? out.data : "", out.len);
    if (result == GZIP_GOOD && out.len > 0)
        kept(data + 1, size - 1, &out);
    there_and_back(data, size);
    buf_release(&out);
    return 0;
}
