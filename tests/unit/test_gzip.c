/* What gzip_append() makes is what zlib takes apart, and it keeps to the buffer's maximum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <cmocka.h>

#include "base/gzip.h"

static void assert_inflates_to(const struct buf *packed, const char *bytes, size_t n)
{
    char *out = malloc(n + 1);
    z_stream z = {.next_in = (Bytef *)packed->data, .avail_in = (uInt)packed->len};
    assert_non_null(out);
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)(n + 1);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, n);
    assert_int_equal(z.avail_in, 0);
    assert_memory_equal(out, bytes, n);
    inflateEnd(&z);
    free(out);
}

/* Bytes that hardly compress, so that several pieces of output are needed. */
static char *make_noise(size_t n)
{
    char *bytes = malloc(n);
    uint64_t x = 88172645463325252u;
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        bytes[i] = (char)x;
    }
    return bytes;
}

static void test_round_trips(void **state)
{
    static const size_t sizes[] = {0, 1, 65535, 65536, 1000003};
    char *noise = make_noise(1000003);
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct buf packed;
        buf_init(&packed, (size_t)2 << 20);
        assert_int_equal(gzip_append(noise, sizes[i], &packed, NULL), GATE_OK);
        assert_inflates_to(&packed, noise, sizes[i]);
        buf_release(&packed);
    }
    free(noise);
}

static void test_same_bytes_give_the_same_member(void **state)
{
    struct buf a, b;
    (void)state;
    buf_init(&a, 1000);
    buf_init(&b, 1000);
    assert_int_equal(gzip_append("abc", 3, &a, NULL), GATE_OK);
    assert_int_equal(gzip_append("abc", 3, &b, NULL), GATE_OK);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
    assert_memory_equal(a.data + 4, "\0\0\0\0", 4); /* no time */
    buf_release(&a);
    buf_release(&b);
}

static void test_the_maximum_holds(void **state)
{
    struct buf packed;
    struct gate_error err = {0};
    char *noise = make_noise(200000);
    (void)state;
    buf_init(&packed, 100000);
    assert_int_equal(gzip_append(noise, 200000, &packed, &err), GATE_INTERNAL);
    assert_true(packed.len <= 100000);
    buf_release(&packed);
    free(noise);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_same_bytes_give_the_same_member),
        cmocka_unit_test(test_the_maximum_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
