/* SPDX-License-Identifier: Apache-2.0 */
/* test_compare_judge.c: two runs are judged as the gate would; on recorded data never wrongly. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/decide/stats.h"
#include "server/api/compare_judge.h"
#include "tests/unit/pairs.h"
#include "tests/unit/unit.h"

#define A_RUN 5 /* processes */
#define MAX_RUNS 40

static const struct estimate unknown;

static struct store_result result_of(double ratio, double half)
{
    return (struct store_result){
        .p50_ns = 1000 * ratio,
        .p50_lo_ns = 999 * ratio,
        .p50_hi_ns = 1001 * ratio,
        .control_ns = 5000,
        .ratio = ratio,
        .ratio_lo = ratio * (1 - half),
        .ratio_hi = ratio * (1 + half),
        .threshold = 0.02,
        .baseline_ms = 7,
    };
}

TEST(of_one_baseline)
{
    struct store_result a = result_of(1, 0.001), b = result_of(1.03, 0.001);
    a.p50_ns = 1100; /* the machine was slower: pairs do not mind */
    struct case_change c = compare_results(&a, &b, unknown);
    assert_string_equal(c.judged, "slower");
    assert_true(fabs(c.paired.value - 1.03) < 1e-9);
    assert_string_equal(compare_results(&b, &a, unknown).judged, "faster");
    b.threshold = 0.05;
    assert_string_equal(compare_results(&a, &b, unknown).judged, "same");
    b = result_of(1.03, 0.03);
    assert_string_equal(compare_results(&a, &b, unknown).judged, "unclear");
}

TEST(of_other_baselines)
{
    struct store_result a = result_of(1, 0.001), b = result_of(1.03, 0.001);
    b.baseline_ms = 8;
    b.p50_ns = 1000; /* and so it took as long */
    b.p50_lo_ns = 999;
    b.p50_hi_ns = 1001;
    struct case_change c = compare_results(&a, &b, unknown);
    assert_true(c.paired.value == 0);
    assert_string_equal(c.judged, "same");
    a.revision = b.baseline_revision = 3; /* a is what b was paired with */
    c = compare_results(&a, &b, unknown);
    assert_string_equal(c.judged, "slower");
    assert_true(fabs(compare_results(&b, &a, unknown).paired.value - 1 / 1.03) < 1e-9);
    b.baseline_revision = 0;
    b.control_ns = 0;
    assert_string_equal(compare_results(&a, &b, unknown).judged, "none");
}

/* b's baseline is a run that took 0.9 of a's. */
TEST(of_linked_baselines)
{
    static const struct estimate link = {.value = 0.9, .lo = 0.899, .hi = 0.901};
    struct store_result a = result_of(1, 0.001), b = result_of(1.03, 0.001);
    b.baseline_ms = 8;
    assert_false(compare_needs_link(&a, &b)); /* of no series that is known */
    a.track = b.track = 5;
    assert_true(compare_needs_link(&a, &b));
    struct case_change c = compare_results(&a, &b, link);
    assert_true(fabs(c.paired.value - 0.9 * 1.03) < 1e-9);
    assert_true(c.paired.lo < 0.9 * 1.029 && c.paired.hi > 0.9 * 1.031);
    assert_string_equal(c.judged, "faster");
    snprintf(b.provider, sizeof b.provider, "other");
    assert_false(compare_needs_link(&a, &b));
    b = a;
    assert_false(compare_needs_link(&a, &b));
}

/* Runs of five processes each; how many of them. */
static size_t runs_of(const struct pairs *p, struct pair_group g, struct store_result *out)
{
    size_t n = 0;
    for (size_t at = g.from; at + A_RUN <= g.to && n < MAX_RUNS; at += A_RUN) {
        double d[A_RUN];
        for (size_t i = 0; i < A_RUN; i++)
            d[i] = p->rows[at + i].d;
        stats_sort(d, A_RUN);
        out[n] = result_of(exp(d[A_RUN / 2]), 0);
        out[n].ratio_lo = exp(d[0]);
        out[n++].ratio_hi = exp(d[A_RUN - 1]);
    }
    return n;
}

/* Every pair of runs of unchanged code, and every one with a slowdown of 2.5 %. */
TEST(of_recorded_runs)
{
    struct pairs p;
    char why[200];
    size_t n_false = 0, n_missed = 0, n_same = 0, n_slowed = 0;
    FILE *file = fopen("tests/data/pairs-h200.csv", "r");
    assert_non_null(file);
    if (pairs_read(&p, file, why, sizeof why) < 0)
        fail_msg("%s", why);
    fclose(file);
    struct store_result flat[MAX_RUNS], runs[MAX_RUNS];
    size_t n_flat = 0;
    for (size_t at = 0; at < p.n;) {
        struct pair_group g = pairs_group(&p, at);
        double injected = p.rows[at].injected;
        size_t n = runs_of(&p, g, runs);
        if (injected == 0) {
            memcpy(flat, runs, sizeof runs);
            n_flat = n;
        }
        for (size_t i = 0; i < n; i++) {
            for (size_t k = 0; k < n_flat; k++) {
                const char *judged = compare_results(&flat[k], &runs[i], unknown).judged;
                if (injected == 0 && i != k) {
                    n_same++;
                    n_false += strcmp(judged, "same") != 0;
                } else if (fabs(injected - 0.025) < 1e-9) {
                    n_slowed++;
                    n_missed += strcmp(judged, "slower") != 0;
                }
            }
        }
        at = g.to;
    }
    pairs_free(&p);
    print_message("%zu of %zu pairs of unchanged code are not the same, %zu of %zu of +2.5 %% are "
                  "missed\n",
                  n_false, n_same, n_missed, n_slowed);
    assert_true(n_same > 20000 && n_slowed > 0);
    assert_int_equal(n_false, 0);
    assert_int_equal(n_missed, 0);
}
