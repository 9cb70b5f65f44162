/* SPDX-License-Identifier: Apache-2.0 */
/* test_op_variants.c: sets of dtypes of an op of a user's, and inputs of few bits with scales. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/cases/problem.h"
#include "gate/worker/worker.h"
#include "kernels/ops/pattern.h"
#include "kernels/ops/storage.h"
#include "tests/unit/own_ops.h"

static const char blocks[] = "{'schema': 'gate-op/1', 'name': 'blocks', 'reference': 'r.so',\n"
                             " 'sizes': [{'name': 'n', 'kind': 'length'}, {'name': 'k', 'kind': "
                             "'length'}],\n"
                             " 'tensors': [{'name': 'x', 'role': 'in', 'axes': ['k']},\n"
                             "  {'name': 'q', 'role': 'in', 'axes': ['n', 'k'], 'fill': "
                             "'quantised'},\n"
                             "  {'name': 's', 'role': 'in', 'axes': ['n', '(k + 7) / 8'], 'fill': "
                             "'scales',\n"
                             "   'least': 0.0009765625, 'most': 1024, 'nan': true},\n"
                             "  {'name': 'y', 'role': 'out', 'axes': ['n'], 'whole': ['k']}],\n"
                             " 'variants': {'int4': {'x': 'bf16', 'q': 'int4', 's': 'e8m0', 'y': "
                             "'fp32'},\n"
                             "  'fp4': {'x': 'e2m1', 'q': 'e2m1', 's': 'e8m0', 'y': 'bf16'},\n"
                             "  'fp8': {'x': 'e4m3', 'q': 'e4m3', 's': 'fp32', 'y': 'fp32'}},\n"
                             " 'error_limits': {'int4': 0.003}, 'flops': '2 * n * k'}";

enum { ROWS = 24, COLUMNS = 64, PAIRS = COLUMNS / 2, BLOCKS = COLUMNS / 8 };

static struct own_op *use_blocks(struct kg_problem *p, const char *variant)
{
    struct own_op *own = use_op(blocks);
    *p = op_problem(&own->op, KG_F32, 0);
    op_set_size(p, &own->op.sizes[0], ROWS);
    op_set_size(p, &own->op.sizes[1], COLUMNS);
    op_set_row(p, op_row_by_name(&own->op, variant));
    return own;
}

TEST(variants_are_the_dtypes_of_cases)
{
    static const struct {
        const char *name;
        uint32_t x, q, s, y;
        double limit, bytes;
        int rate; /* over that of fp16 */
    } cases[] = {
        {"int4", KG_BF16, KG_I4, KG_E8M0, KG_F32, 0.003, 2 * COLUMNS + ROWS * (PAIRS + BLOCKS + 4),
         4},
        {"fp4", KG_E2M1, KG_E2M1, KG_E8M0, KG_BF16, 4e-3, PAIRS + ROWS * (PAIRS + BLOCKS + 2), 4},
        {"fp8", KG_E4M3, KG_E4M3, KG_F32, KG_F32, 1e-5, COLUMNS + ROWS * (COLUMNS + 4 * BLOCKS + 4),
         2},
    };
    const struct device_peaks peaks = {.fp16_flops = 1, .bytes_per_s = 1e30};
    for (unsigned i = 0; i < 3; i++) {
        struct kg_problem p;
        struct own_op *own = use_blocks(&p, cases[i].name);
        char id[PROBLEM_ID_MAX], wanted[PROBLEM_ID_MAX];
        snprintf(wanted, sizeof wanted, "blocks/%s/n24-k64", cases[i].name);
        problem_id(&p, id);
        assert_string_equal(id, wanted);
        assert_true(op_allows(&p));
        assert_int_equal(p.dtype[0], cases[i].x);
        assert_int_equal(p.dtype[1], cases[i].q);
        assert_int_equal(p.dtype[2], cases[i].s);
        assert_int_equal(p.dtype[3], cases[i].y);
        assert_true(problem_error_limit(&p) == cases[i].limit);
        assert_true(problem_bytes(&p) == cases[i].bytes);
        assert_true(measure_floor_ns(&p, &peaks) == problem_flops(&p) / cases[i].rate * 1e9);
        assert_int_equal(problem_dtypes(&p), 3);
        assert_int_equal(problem_dtype_index(&p), i);
        const struct kg_problem other = problem_in_dtype(&p, (i + 1) % 3);
        assert_string_equal(dtype_of(&other)->name, cases[(i + 1) % 3].name);
        assert_null(op_row_by_name(&own->op, "bf16"));
        op_set_size(&p, &own->op.sizes[1], 65);
        assert_int_equal(op_allows(&p), i == 2);
        op_set_dtype(&p, KG_F16);
        assert_false(op_allows(&p));
        end(own);
    }
}

struct quantised_inputs {
    struct kg_tensor in[3];
    uint16_t x[COLUMNS];
    uint8_t q[ROWS * COLUMNS];
    float s[ROWS * BLOCKS];
};

/* What was seen of all patterns. */
struct seen_quantised {
    bool least, most, zeros_of_both_signs, rows_of_largest, nan;
    bool small, large; /* scales between the middle and an end of their range */
    double scales;     /* the largest ratio of two of one pattern */
};

static void look_at_quantised(const struct quantised_inputs *x, struct seen_quantised *seen)
{
    const struct storage *s = storage_of(x->in[1].dtype);
    bool zero[2] = {false, false};
    for (int64_t i = 0; i < ROWS; i++) {
        bool all = true;
        for (int64_t j = 0; j < COLUMNS; j++) {
            const double q = pattern_get(&x->in[1], i * COLUMNS + j);
            assert_true(q >= s->least && q <= s->most);
            seen->least |= q == s->least;
            seen->most |= q == s->most;
            zero[signbit(q) != 0] |= q == 0;
            all = all && (q == s->least || q == s->most);
        }
        seen->rows_of_largest |= all;
    }
    seen->zeros_of_both_signs |= zero[0] && zero[1];
}

static bool look_at_scales(const struct kg_tensor *t, struct seen_quantised *seen)
{
    double least = HUGE_VAL, most = 0;
    bool nan = false;
    for (int64_t i = 0; i < ROWS * BLOCKS; i++) {
        const double scale = pattern_get(t, i);
        nan |= isnan(scale);
        assert_true(isnan(scale) || (scale >= 0x1p-10 && scale <= 1024));
        seen->small |= scale > 0x1p-9 && scale < 0x1p-2;
        seen->large |= scale > 4 && scale < 512;
        least = fmin(least, scale);
        most = fmax(most, scale);
    }
    seen->scales = fmax(seen->scales, most / least);
    return nan;
}

TEST(quantised_values_and_scales_are_all_that_there_are)
{
    static const char *const variants[] = {"int4", "fp4", "fp8"};
    for (unsigned v = 0; v < 3; v++) {
        struct kg_problem p;
        struct own_op *own = use_blocks(&p, variants[v]);
        struct seen_quantised seen = {.scales = 0};
        static struct quantised_inputs x;
        void *const memory[] = {x.x, x.q, x.s};
        struct problem_tensor t[PROBLEM_MAX_TENSORS];
        problem_tensors(&p, t);
        for (unsigned i = 0; i < 3; i++)
            x.in[i] = problem_dense(&t[i], memory[i]);
        for (uint64_t seed = 0; seed < 10; seed++)
            for (int probe = 0; probe < PROBES; probe++) {
                if (!probe_applies((enum probe)probe, &p))
                    continue;
                probe_fill((enum probe)probe, &p, x.in, seed);
                look_at_quantised(&x, &seen);
                const bool nan = look_at_scales(&x.in[2], &seen);
                assert_int_equal(nan, probe == PROBE_NAN);
                seen.nan |= nan;
                probe_change((enum probe)probe, &p, x.in, seed);
                look_at_quantised(&x, &seen);
                look_at_scales(&x.in[2], &seen);
            }
        assert_true(seen.least && seen.most && seen.rows_of_largest && seen.nan);
        assert_true(seen.small && seen.large);
        assert_true(seen.zeros_of_both_signs || v == 0);
        assert_true(seen.scales == 0x1p20);
        end(own);
    }
}
