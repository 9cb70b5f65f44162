/* SPDX-License-Identifier: Apache-2.0 */
/* test_gzip.c: gzip's bytes, good, cut, damaged and hostile. */
#include "gate/base/gzip.h"
#include "tests/unit/unit.h"

#define LENGTH ((size_t)200000)

static struct buf plain, small, out;

static int make(void **)
{
    buf_init(&plain, 1 << 20);
    buf_init(&small, 1 << 20);
    buf_init(&out, LENGTH);
    for (size_t i = 0; i < LENGTH; i++)
        buf_putc(&plain, (char)('a' + i * i % 23));
    return !gzip_compress(plain.data, plain.len, &small);
}

static enum gzip_result inflate(const void *bytes, size_t n)
{
    buf_clear(&out);
    return gzip_inflate(bytes, n, &out);
}

TEST(round_trip)
{
    assert_true(small.len < LENGTH / 2);
    assert_int_equal(inflate(small.data, small.len), GZIP_GOOD);
    assert_int_equal(out.len, LENGTH);
    assert_memory_equal(out.data, plain.data, LENGTH);
    /* The thread's stream starts anew. */
    struct buf again;
    buf_init(&again, 1 << 20);
    assert_true(gzip_compress(plain.data, plain.len, &again));
    assert_int_equal(again.len, small.len);
    assert_memory_equal(again.data, small.data, again.len);
    buf_release(&again);
}

TEST(nothing)
{
    struct buf none;
    buf_init(&none, 1000);
    assert_true(gzip_compress("", 0, &none));
    assert_int_equal(inflate(none.data, none.len), GZIP_GOOD);
    assert_int_equal(out.len, 0);
    assert_int_equal(inflate("", 0), GZIP_BAD);
    buf_release(&none);
}

TEST(too_long)
{
    struct buf few;
    buf_init(&few, LENGTH - 1);
    assert_int_equal(gzip_inflate(small.data, small.len, &few), GZIP_TOO_LONG);
    assert_true(few.len < LENGTH);
    buf_release(&few);
    buf_init(&few, 10);
    assert_false(gzip_compress(plain.data, plain.len, &few));
    buf_release(&few);
}

TEST(cut)
{
    for (size_t n = 0; n < small.len; n += n < 40 || n > small.len - 40 ? 1 : 997)
        assert_int_equal(inflate(small.data, n), GZIP_BAD);
}

TEST(something_behind)
{
    assert_int_equal(inflate(small.data, small.len + 1), GZIP_BAD); /* the NUL of the buffer */
}

TEST(damaged)
{
    /* The head's time, flags of its origin and file system carry nothing. */
    for (size_t at = 10; at < small.len; at += 501) {
        small.data[at] ^= 0x20;
        assert_int_not_equal(inflate(small.data, small.len), GZIP_GOOD);
        small.data[at] ^= 0x20;
    }
    assert_int_equal(inflate(plain.data, plain.len), GZIP_BAD);
}

TESTS_WITHIN(make, NULL)
