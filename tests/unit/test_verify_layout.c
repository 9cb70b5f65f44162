/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify_layout.c: layouts of operands, and the guards around them. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/seed.h"
#include "gate/verify/verify_layout.h"
#include "kernels/ops/pattern.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

static struct kg_problem heads(void)
{
    struct kg_problem p = attention(KG_F16, 0, 4, 2, 5, 7, 10);
    *op_named(&p, "b") = 3;
    return p;
}

/* Each byte that is no element of an output is guarded; each element of an output is free. */
TEST(every_byte_is_guarded)
{
    const struct kg_problem p = heads();
    for (int kind = 0; kind < TENSOR_LAYOUTS; kind++) {
        const struct image_layout layout = image_layout_of((enum tensor_layout)kind);
        struct image image = image_make(&p, &layout, 0xff);
        char text[300];
        size_t free_bytes = 0;
        unsigned char *after = malloc(image.size);
        assert_non_null(after);
        memcpy(after, image.bytes, image.size);
        assert_true(image_is_intact(&image, after, text, sizeof text));
        for (size_t at = 0; at < image.size; at += at % 97 ? 1 : 3) {
            after[at] ^= 1;
            free_bytes += image_is_intact(&image, after, text, sizeof text);
            after[at] ^= 1;
        }
        assert_in_range(free_bytes, 1, 2 * 3 * 4 * 5 * 10);
        assert_true(free_bytes > 3 * 4 * 5 * 10);
        free(after);
        image_release(&image);
    }
}

TEST(layouts_are_what_kernels_may_be_given)
{
    const struct kg_problem p = heads();
    for (int kind = 0; kind < TENSOR_LAYOUTS; kind++) {
        const struct image_layout layout = image_layout_of((enum tensor_layout)kind);
        const struct image image = image_plan(&p, &layout);
        for (unsigned i = 0; i < 4; i++) {
            const struct kg_tensor *t = &image.view[i];
            assert_int_equal(image.offset[i] % 32, kind == TENSOR_DENSE ? 0 : 16);
            assert_int_equal(t->stride[3], 1);
            assert_int_equal(t->stride[2] == 10, kind == TENSOR_DENSE);
            assert_int_equal(t->stride[1] < t->stride[2], kind == TENSOR_HEADS);
            assert_int_equal(t->stride[0] > t->stride[1] * t->shape[1],
                             kind == TENSOR_APART || kind == TENSOR_HEADS);
            assert_true(kind != TENSOR_ODD || t->stride[2] % 2 == 1);
            assert_true(kind != TENSOR_WIDE || t->stride[2] % 64 == 0);
        }
    }
}

TEST(batches_lie_as_heads_do)
{
    struct kg_problem p = op_problem(op_by_name("batched_gemm"), KG_F16, 0);
    for (uint32_t i = 0; i < p.n_sizes; i++)
        p.size[i].value = 3 + i;
    for (int kind = 0; kind < TENSOR_LAYOUTS; kind++) {
        const struct image_layout layout = image_layout_of((enum tensor_layout)kind);
        const struct image image = image_plan(&p, &layout);
        for (unsigned i = 0; i < 3; i++) {
            const struct kg_tensor *t = &image.view[i];
            assert_int_equal(t->stride[0] < t->stride[1], kind == TENSOR_HEADS);
            assert_int_equal(t->stride[0] > t->stride[1] * t->shape[1], kind == TENSOR_APART);
        }
    }
}

/* By an odd shift. */
TEST(two_kinds_have_a_second_layout)
{
    const struct kg_problem p = heads();
    for (unsigned char shift = 0; shift < SHIFTS; shift++) {
        struct image_layout layout = image_layout_of(TENSOR_HEADS);
        memset(layout.shift, shift, sizeof layout.shift);
        struct image image = image_plan(&p, &layout);
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(image.view[i].stride[0] < image.view[i].stride[2], shift % 2);
        memset(layout.of, TENSOR_WIDE, sizeof layout.of);
        image = image_plan(&p, &layout);
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(image.view[i].stride[2], shift % 2 ? 3 * 64 : 64);
    }
}

/* Pairs of layouts that three tensors have in 36 checks, every other one without odd rows. */
static unsigned pairs_met(const struct kg_problem *p, uint64_t seed, bool designed)
{
    struct layout_pairs pairs = {0};
    bool met[3][3][TENSOR_LAYOUTS][TENSOR_LAYOUTS] = {0};
    unsigned n = 0;
    for (unsigned at = 0; at < 36; at++) {
        const uint64_t drawn = seed_at(seed, at);
        const struct image_layout layout = designed
                                               ? image_layout_designed(p, drawn, at % 2, &pairs)
                                               : image_layout_drawn(drawn, at % 2);
        for (unsigned i = 0; i < 3; i++)
            for (unsigned k = i + 1; k < 3; k++) {
                n += !met[i][k][layout.of[i]][layout.of[k]];
                met[i][k][layout.of[i]][layout.of[k]] = true;
            }
    }
    return n;
}

/* All pairs of layouts of two tensors come, and those without odd rows by themselves too. */
TEST(drawn_layouts_are_of_each_tensor_by_itself)
{
    unsigned pairs[2][TENSOR_LAYOUTS][TENSOR_LAYOUTS] = {0}, odd = 0, none = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        const struct image_layout any = image_layout_drawn(seed, false),
                                  aligned = image_layout_drawn(seed, true);
        pairs[0][any.of[1]][any.of[2]]++;
        pairs[1][aligned.of[1]][aligned.of[2]]++;
        for (unsigned i = 0; i < PROBLEM_MAX_TENSORS; i++)
            odd += aligned.of[i] == TENSOR_ODD;
    }
    for (int i = 0; i < TENSOR_ODD * TENSOR_ODD; i++)
        none +=
            !pairs[0][i / TENSOR_ODD][i % TENSOR_ODD] + !pairs[1][i / TENSOR_ODD][i % TENSOR_ODD];
    assert_true(none == 0 && odd == 0 && pairs[0][TENSOR_ODD][TENSOR_DENSE]);
}

/* Of 108 pairs 60 to 73 meet by chance, and 91 to 97 by design. */
TEST(a_design_brings_layouts_together)
{
    const struct kg_problem p = heads();
    for (uint64_t seed = 0; seed < 20; seed++) {
        unsigned by_chance = pairs_met(&p, seed, false), by_design = pairs_met(&p, seed, true);
        if (by_design < 88 || by_design < by_chance + 15)
            fail_msg("%u pairs, and %u by chance", by_design, by_chance);
    }
}

/* Self-attention: Q, K and V have one shape, and a kernel must not use the strides of one for
 * another. The first layouts count: few shapes of a verification are of this kind. */
TEST(tensors_of_one_shape_lie_apart)
{
    struct kg_problem p = attention(KG_F16, 0, 3, 3, 5, 5, 10);
    *op_named(&p, "b") = 2;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct layout_pairs pairs = {0};
        const struct image_layout first = image_layout_designed(&p, seed, true, &pairs);
        assert_int_not_equal(first.of[0], first.of[1]);
        assert_int_not_equal(first.of[0], first.of[2]);
        assert_int_not_equal(first.of[1], first.of[2]);
    }
}

TEST(a_poison_changes_all_but_the_inputs)
{
    const struct kg_problem p = heads();
    const struct image_layout odd = image_layout_of(TENSOR_ODD);
    struct image one = image_make(&p, &odd, 0xff);
    probe_fill(PROBE_NORMAL, &p, one.view, 7);
    struct image other = image_with_poison(&one, 0x5a);
    assert_int_equal(one.size, other.size);
    for (unsigned i = 0; i < 4; i++) {
        size_t bytes = (size_t)problem_tensor_elements(&one.about[i]) * 2;
        unsigned char *a = malloc(bytes), *b = malloc(bytes);
        assert_true(a && b);
        image_copy(&one, i, one.bytes, a, true);
        image_copy(&other, i, other.bytes, b, true);
        assert_int_equal(memcmp(a, b, bytes) == 0, i < 3);
        free(a);
        free(b);
    }
    assert_int_equal(other.bytes[0], 0x5a);
    image_release(&one);
    image_release(&other);
}

/* What is remembered by address is of no use there. */
TEST(pinned_tensors_begin_at_one_place)
{
    const struct kg_problem p = attention(KG_F16, 0, 4, 2, 9, 17, 64);
    size_t first[PROBLEM_MAX_TENSORS] = {0}, size = 0;
    for (int kind = 0; kind < TENSOR_LAYOUTS; kind++) {
        struct image_layout layout = image_layout_of((enum tensor_layout)kind);
        struct image image;
        memset(layout.shift, SHIFTS - 1, sizeof layout.shift);
        layout.pinned = true;
        image = image_plan(&p, &layout);
        if (kind)
            assert_memory_equal(image.offset, first, sizeof first);
        assert_true(!kind || image.size == size);
        memcpy(first, image.offset, sizeof first);
        size = image.size;
    }
}

static double counted(const struct shape *s, const int64_t *counts)
{
    double sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += counts[i] > 0 ? (double)counts[i] : 0;
    return sum;
}

/* What a check covers has a place in the run's document, whatever its layout and its inputs. */
TEST(each_check_is_counted)
{
    const struct kg_problem p = attention(KG_F32, 0, 4, 2, 8, 8, 16);
    struct document_verify v;
    for (int kind = 0; kind < TENSOR_LAYOUTS; kind++) {
        const struct image_layout layout = image_layout_of((enum tensor_layout)kind);
        fields_clear(&document_verify_shape, &v);
        image_layout_count(&p, &layout, &v);
        assert_true(counted(&document_covered_layouts_shape, &v.covered.layouts.dense) == 1);
    }
    for (int probe = 0; probe < PROBES; probe++) {
        fields_clear(&document_verify_shape, &v);
        document_count_named(&document_covered_values_shape, &v.covered.values,
                             probe_class((enum probe)probe));
        assert_true(counted(&document_covered_values_shape, &v.covered.values.random_normal) == 1);
    }
}
