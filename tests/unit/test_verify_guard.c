/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify_guard.c: operands whose rows are far apart hold what the dense ones do. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "gate/verify/verify_layout.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

#define FAR (((int64_t)1 << 30) + 64)

/* A small problem of this kind on the host, its image on the "device", and its far tensors. */
struct scene {
    struct device *d;
    struct image image;
    struct guard guard;
    struct kg_args args;
    struct gate_error err;
    bool offered;
};

static bool offer(struct scene *s, struct far_choice choice)
{
    return guard_make(s->d, &s->guard, GUARD_FAR, choice, &s->image, 0, &s->err) == GATE_OK;
}

static struct scene set_up(const struct kg_problem *like)
{
    struct scene s = {0};
    const struct kg_problem p = guard_far_problem(like);
    const struct image_layout dense = image_layout_of(TENSOR_DENSE);
    assert_int_equal(device_open("host", &s.d, NULL), GATE_OK);
    s.image = image_make(&p, &dense, 0xff);
    s.offered = offer(&s, (struct far_choice){0});
    s.args = image_args(&s.image, s.image.bytes);
    if (s.offered)
        guard_place(&s.guard, &s.image, &s.args);
    return s;
}

static void tear_down(struct scene *s)
{
    guard_release(s->d, &s->guard);
    image_release(&s->image);
    device_close(s->d);
}

/* Address space may be short, on some machine or under a sanitizer. */
static void skip_unless_offered(struct scene *s)
{
    if (s->offered)
        return;
    tear_down(s);
    skip();
}

TEST(rows_are_far_apart)
{
    const struct kg_problem p = gemm_like("linear_relu", KG_F16, 500, 600, 700);
    struct scene s = set_up(&p);
    skip_unless_offered(&s);
    assert_true(s.args.in[0].stride[0] == FAR && s.args.in[0].stride[1] == 1);
    assert_true(s.args.in[1].stride[0] == FAR && s.args.out[0].stride[0] == FAR);
    assert_true(s.args.in[2].stride[0] == 1);
    /* The third row is beyond the range of an int, and the fifth one of an unsigned. */
    assert_true(s.args.in[0].shape[0] > 4 && 2 * FAR > INT32_MAX && 4 * FAR > UINT32_MAX);
    tear_down(&s);
}

TEST(heads_are_far_apart)
{
    const struct kg_problem p = attention(KG_F16, KG_FLAG_CAUSAL, 32, 8, 512, 512, 64);
    struct scene s = set_up(&p);
    skip_unless_offered(&s);
    const struct kg_tensor *q = &s.args.in[0];
    assert_true(q->shape[0] > 1 && q->shape[1] > 1);
    assert_true(q->stride[3] == 1 && q->stride[2] == 64 && q->stride[1] == FAR);
    assert_true(q->stride[0] == FAR * q->shape[1]);
    tear_down(&s);
}

/* One tensor alone, and the rows of heads. */
TEST(what_is_far_is_chosen)
{
    const struct kg_problem p = attention(KG_F16, 0, 4, 4, 9, 9, 64);
    struct scene s = set_up(&p);
    skip_unless_offered(&s);
    assert_true(offer(&s, (struct far_choice){.which = 1u << 1}));
    s.args = image_args(&s.image, s.image.bytes);
    guard_place(&s.guard, &s.image, &s.args);
    assert_true(s.args.in[1].stride[1] == FAR && s.args.in[0].stride[1] < FAR);
    assert_true(s.args.in[0].data == s.image.bytes + s.image.offset[0]);
    s.offered = offer(&s, (struct far_choice){.rows = true});
    skip_unless_offered(&s);
    guard_place(&s.guard, &s.image, &s.args);
    assert_true(s.args.in[2].stride[2] == FAR && s.args.in[2].stride[3] == 1);
    tear_down(&s);
}

TEST(what_goes_there_comes_back)
{
    const struct kg_problem p = attention(KG_BF16, 0, 4, 4, 1, 512, 128);
    struct scene s = set_up(&p);
    skip_unless_offered(&s);
    unsigned char *before = malloc(s.image.size);
    assert_non_null(before);
    for (size_t i = 0; i < s.image.size; i++)
        s.image.bytes[i] = (unsigned char)(i * 7 + i / 251);
    memcpy(before, s.image.bytes, s.image.size);
    assert_int_equal(guard_enter(s.d, &s.guard, &s.image, s.image.bytes, 0, NULL), GATE_OK);
    const struct kg_tensor *v = &s.args.in[2];
    const size_t last = (size_t)(v->stride[0] + v->stride[1]) * 2;
    assert_memory_equal((char *)v->data + last,
                        s.image.bytes + s.image.offset[2] + 3 * s.guard.pieces[2].bytes,
                        s.guard.pieces[2].bytes);
    for (unsigned i = 0; i < 4; i++)
        memset(s.image.bytes + s.image.offset[i], 0, s.image.span[i]);
    assert_int_equal(guard_leave(s.d, &s.guard, &s.image, s.image.bytes, NULL), GATE_OK);
    assert_memory_equal(s.image.bytes, before, s.image.size);
    free(before);
    tear_down(&s);
}

/* A limit of the address space is no fault of a kernel. */
TEST(without_addresses_none_are_offered)
{
    const struct kg_problem p = gemm_like("gemm", KG_F32, 500, 600, 700);
    struct rlimit before, now;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* it needs more itself */
#endif
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    now = before;
    now.rlim_cur = (rlim_t)1 << 33;
    if (setrlimit(RLIMIT_AS, &now))
        skip();
    struct scene s = set_up(&p);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_false(s.offered);
    assert_int_equal(s.err.status, GATE_ENVIRONMENT);
    assert_non_null(strstr(s.err.message, "GiB of addresses"));
    tear_down(&s);
}
