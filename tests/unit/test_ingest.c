/* SPDX-License-Identifier: Apache-2.0 */
/* test_ingest.c: what a run that is posted takes in memory, stored or refused, is counted. */
#include <stdio.h>
#include <string.h>

#include "gate/base/gzip.h"
#include "gate/document/document.h"
#include "server/api/api_write.h"
#include "tests/unit/unit.h"

#define N_CASES 3000

/* Of cases that are short in JSON and long as structs; the last member is `last`. */
static void put_run(struct buf *out, const char *last)
{
    buf_puts(out, "{\"cases\":[");
    for (int i = 0; i < N_CASES; i++)
        buf_printf(out,
                   "%s{\"id\":\"a%d\",\"op\":\"gemm\",\"dtype\":\"fp16\",\"verdict\":\"pass\","
                   "\"reason\":\"\",\"baseline\":null,\"ratio\":null,\"arms\":[{\"provider\":\"a\","
                   "\"role\":\"candidate\",\"kernel\":\"a\",\"verify\":null,\"timing\":null}]}",
                   i ? "," : "", i);
    buf_printf(out, "],%s}", last);
}

/* The bytes that are counted of a body that is refused with this status. */
static size_t counted(const char *body, size_t len, bool gzipped, unsigned status)
{
    struct reply reply;
    struct api_write w = {.body = body, .len = len, .gzipped = gzipped, .reply = &reply};
    reply_init(&reply);
    assert_false(api_ingest_run.prepare(&w));
    assert_int_equal(reply.status, status);
    api_ingest_run.release(&w);
    reply_release(&reply);
    return w.state_bytes;
}

TEST(what_is_refused_late_counts_all_that_was_read)
{
    static const char *const last[] = {"\"unknown\":1", "\"who\":\"nobody\"", "1"};
    const size_t structs = N_CASES * (sizeof(struct document_case) + sizeof(struct document_arm));
    for (size_t i = 0; i < sizeof last / sizeof last[0]; i++) {
        struct buf body, packed;
        buf_init(&body, 1 << 24);
        buf_init(&packed, 1 << 24);
        put_run(&body, last[i]);
        assert_true(gzip_compress(body.data, body.len, &packed));
        assert_true(counted(body.data, body.len, false, 400) > 2 * body.len + structs);
        assert_true(counted(packed.data, packed.len, true, 400) > 2 * body.len + structs);
        buf_release(&body);
        buf_release(&packed);
    }
}

TEST(what_is_broken_gzip_counts_what_came_out)
{
    struct buf body, packed;
    buf_init(&body, 1 << 24);
    buf_init(&packed, 1 << 24);
    put_run(&body, "1");
    assert_true(gzip_compress(body.data, body.len, &packed));
    assert_true(counted(packed.data, packed.len - 1, true, 400) >= body.len);
    buf_release(&body);
    buf_release(&packed);
}
