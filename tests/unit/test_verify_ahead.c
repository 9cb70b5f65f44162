/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify_ahead.c: trials in a row are tried in their order, on images of their own. */
#include <string.h>

#include "gate/verify/trial.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

struct tried {
    struct trial_row row;
    uint64_t seeds[8];
    unsigned n, stops_at;
};

/* Whoever tries it may take the image or leave it. */
static enum gate_status try_one(void *context, const struct trial *t, struct gate_error *)
{
    struct tried *x = context;
    struct image wanted = trial_image(t);
    assert_int_equal(t->made->size, wanted.size);
    assert_memory_equal(t->made->bytes, wanted.bytes, wanted.size);
    image_release(&wanted);
    if (x->n % 2)
        image_release(t->made);
    x->seeds[x->n++] = t->seed;
    return x->n == x->stops_at ? GATE_WRONG : GATE_OK;
}

static enum gate_status next(struct tried *x, uint64_t seed)
{
    const struct trial t = {.problem = gemm_like("gemm", KG_F16, 19, 21, 23),
                            .probe = PROBE_NORMAL,
                            .layout = image_layout_of(TENSOR_WIDE),
                            .seed = seed};
    return trial_row_next(&x->row, seed ? &t : NULL, try_one, x, NULL);
}

TEST(each_is_tried_when_the_next_one_is_known_or_nothing_follows)
{
    struct tried x = {.n = 0};
    for (uint64_t seed = 1; seed <= 5; seed++) {
        assert_int_equal(next(&x, seed), GATE_OK);
        assert_int_equal(x.n, seed - 1);
    }
    assert_int_equal(next(&x, 0), GATE_OK);
    assert_int_equal(x.n, 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(x.seeds[i], i + 1);
    assert_int_equal(next(&x, 0), GATE_OK);
    assert_int_equal(x.n, 5);
    trial_row_release(&x.row);
}

TEST(what_waits_behind_a_failure_is_dropped)
{
    struct tried x = {.stops_at = 1};
    assert_int_equal(next(&x, 1), GATE_OK);
    assert_int_equal(next(&x, 2), GATE_WRONG);
    trial_row_release(&x.row);
    assert_int_equal(next(&x, 0), GATE_OK);
    assert_int_equal(x.n, 1);
}
