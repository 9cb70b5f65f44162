/* SPDX-License-Identifier: Apache-2.0 */
/* test_gzip.c: gzip's bytes, good, cut, damaged and hostile. */
#include <stdlib.h>
#include <string.h>

#include "gate/base/gzip.h"
#include "tests/unit/unit.h"

#define LENGTH ((size_t)200000)

struct fixture {
    struct buf plain, small, out;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    buf_init(&f->plain, 1 << 20);
    buf_init(&f->small, 1 << 20);
    buf_init(&f->out, LENGTH);
    for (size_t i = 0; i < LENGTH; i++)
        buf_putc(&f->plain, (char)('a' + i * i % 23));
    assert_true(gzip_compress(f->plain.data, f->plain.len, &f->small));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    buf_release(&f->plain);
    buf_release(&f->small);
    buf_release(&f->out);
    free(f);
    return 0;
}

TEST_WITHIN(round_trip, set_up, tear_down)
{
    struct fixture *f = *state;
    assert_true(f->small.len < LENGTH / 2);
    assert_int_equal(gzip_inflate(f->small.data, f->small.len, &f->out), GZIP_GOOD);
    assert_int_equal(f->out.len, LENGTH);
    assert_memory_equal(f->out.data, f->plain.data, LENGTH);
    /* The thread's stream starts anew. */
    struct buf again;
    buf_init(&again, 1 << 20);
    assert_true(gzip_compress(f->plain.data, f->plain.len, &again));
    assert_int_equal(again.len, f->small.len);
    assert_memory_equal(again.data, f->small.data, again.len);
    buf_release(&again);
}

TEST_WITHIN(nothing, set_up, tear_down)
{
    struct fixture *f = *state;
    buf_clear(&f->small);
    assert_true(gzip_compress("", 0, &f->small));
    assert_int_equal(gzip_inflate(f->small.data, f->small.len, &f->out), GZIP_GOOD);
    assert_int_equal(f->out.len, 0);
    assert_int_equal(gzip_inflate("", 0, &f->out), GZIP_BAD);
}

TEST_WITHIN(too_long, set_up, tear_down)
{
    struct fixture *f = *state;
    struct buf out;
    buf_init(&out, LENGTH - 1);
    assert_int_equal(gzip_inflate(f->small.data, f->small.len, &out), GZIP_TOO_LONG);
    assert_true(out.len < LENGTH);
    buf_release(&out);
    buf_init(&out, 10);
    assert_false(gzip_compress(f->plain.data, f->plain.len, &out));
    buf_release(&out);
}

TEST_WITHIN(cut, set_up, tear_down)
{
    struct fixture *f = *state;
    for (size_t n = 0; n < f->small.len; n += n < 40 || n > f->small.len - 40 ? 1 : 997) {
        buf_clear(&f->out);
        assert_int_equal(gzip_inflate(f->small.data, n, &f->out), GZIP_BAD);
    }
}

TEST_WITHIN(something_behind, set_up, tear_down)
{
    struct fixture *f = *state;
    buf_putc(&f->small, '\0');
    assert_int_equal(gzip_inflate(f->small.data, f->small.len, &f->out), GZIP_BAD);
}

TEST_WITHIN(damaged, set_up, tear_down)
{
    struct fixture *f = *state;
    /* The head's time, flags of its origin and file system carry nothing. */
    for (size_t at = 10; at < f->small.len; at += 501) {
        f->small.data[at] ^= 0x20;
        buf_clear(&f->out);
        assert_int_not_equal(gzip_inflate(f->small.data, f->small.len, &f->out), GZIP_GOOD);
        f->small.data[at] ^= 0x20;
    }
    assert_int_equal(gzip_inflate(f->plain.data, f->plain.len, &f->out), GZIP_BAD);
}
