/* SPDX-License-Identifier: Apache-2.0 */
/* test_compare.c: compare.sql judges two runs as the gate would; on recorded data never wrongly. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/decide/stats.h"
#include "gate/store/store_private.h"
#include "server/api/api_call.h"
#include "server/api/rows.h"
#include "tests/unit/pairs.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/unit.h"

#define A_RUN 5 /* processes */
#define MAX_RUNS 40

static const struct sample_plan one_case = {
    .seed = 7, .n_runs = 1000, .n_cases = 1, .n_devices = 1};

/* Runs of one case from 0 on: each with a commit, a baseline and a control of its own. */
static struct store *begin(void **state, int n)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    for (int i = 0; i < n; i++)
        must_put(f, s, sample_run(&one_case, i));
    return s;
}

struct compared {
    char judged[16];
    double paired, lo, hi;
    size_t n;
};

static bool compared_row(void *context, const struct store_row *row)
{
    struct compared *c = context;
    snprintf(c->judged, sizeof c->judged, "%s", store_text_of(row, "judged"));
    c->paired = store_cell_of(row, "paired")->real;
    c->lo = store_cell_of(row, "paired_lo")->real;
    c->hi = store_cell_of(row, "paired_hi")->real;
    c->n++;
    return true;
}

static struct compared compare(struct store *s, const char *a, const char *b)
{
    struct compared found = {.n = 0};
    struct call call = {.store = s};
    const struct rows_value values[] = {{"a", a}, {"b", b}, {NULL, NULL}};
    if (rows_select(&call, "compare.sql", values, compared_row, &found) != GATE_OK)
        fail_msg("%s", call.err.message);
    assert_int_equal(found.n, 1);
    return found;
}

static void uuid_of(struct store_fixture *f, int run, char uuid[40])
{
    char id[16];
    snprintf(id, sizeof id, "%d", run);
    text_of(f->path, "SELECT uuid FROM run WHERE id = ?1", id, uuid, 40);
}

/* Run 1 took as long as its baseline, run 2 took 3 % longer than its own; then what is changed of
 * these. The third run has the baseline of the first, and the commit of that of the second. */
TEST_WITHIN(two_runs_are_judged_by_what_says_most, store_set_up, store_tear_down)
{
    static const struct {
        const char *sql, *judged, *back; /* b beside a, and a beside b */
        double paired;                   /* 0: not known */
    } cases[] = {
        /* the machine was slower: pairs do not mind */
        {"UPDATE result SET p50_ns = 1100 WHERE run_id = 1", "slower", "faster", 1.03},
        {"UPDATE result SET threshold = 0.05 WHERE run_id = 2", "same", "same", 1.03},
        {"UPDATE result SET threshold = 0.02, ratio_lo = 1.0, ratio_hi = 1.06 WHERE run_id = 2",
         "unclear", "unclear", 1.03},
        /* other baselines, which nothing links, and the same time */
        {"UPDATE result SET baseline_ms = 8, ratio_lo = 1.029, ratio_hi = 1.031 WHERE run_id = 2;"
         "UPDATE result SET p50_ns = 1000",
         "same", "same", 0},
        {"UPDATE result SET control_ns = NULL WHERE run_id = 2", "none", "none", 0},
        /* a's library is what b was paired with */
        {"UPDATE result SET baseline_commit = (SELECT commit_id FROM revision v JOIN run r ON"
         " r.revision_id = v.id WHERE r.id = 1) WHERE run_id = 2",
         "slower", "faster", 1.03},
        /* b's baseline is the third run, which took 0.9 of a's */
        {"UPDATE result SET baseline_commit = (SELECT commit_id FROM revision v JOIN run r ON"
         " r.revision_id = v.id WHERE r.id = 3), baseline_ms = 9007199254740990 WHERE run_id = 2;"
         "UPDATE result SET ratio = 0.9, ratio_lo = 0.899, ratio_hi = 0.901 WHERE run_id = 3",
         "faster", "slower", 0.9 * 1.03},
        {"UPDATE result SET provider = 'other' WHERE run_id = 2", "none", "none", 0},
    };
    struct store_fixture *f = *state;
    struct store *s = begin(state, 3);
    char a[40], b[40];
    uuid_of(f, 1, a);
    uuid_of(f, 2, b);
    execute(f->path, "UPDATE result SET provider = 'ours', p50_ns = 1000, p50_lo_ns = 999,"
                     " p50_hi_ns = 1001, control_ns = 5000, threshold = 0.02, baseline_ms = 7,"
                     " baseline_commit = '', ratio = iif(run_id = 2, 1.03, 1), ratio_lo ="
                     " iif(run_id = 2, 1.029, 0.999), ratio_hi = iif(run_id = 2, 1.031, 1.001)"
                     " WHERE arm = 0");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        execute(f->path, cases[i].sql);
        struct compared forth = compare(s, a, b), back = compare(s, b, a);
        if (strcmp(forth.judged, cases[i].judged) != 0 || strcmp(back.judged, cases[i].back) != 0)
            fail_msg("%zu: %s and back %s", i, forth.judged, back.judged);
        assert_true(fabs(forth.paired - cases[i].paired) < 1e-9);
        if (cases[i].paired > 0)
            assert_true(fabs(back.paired - 1 / cases[i].paired) < 1e-9 && forth.lo < forth.paired &&
                        forth.paired < forth.hi);
    }
    store_close(s);
}

/* Runs of five processes each become the runs of the store behind `before`; how many of them. */
static int put_group(struct store_fixture *f, struct store *s, const struct pairs *p,
                     struct pair_group g, int before)
{
    int n = 0;
    assert_int_equal(store_begin(s, &f->err), GATE_OK);
    for (size_t at = g.from; at + A_RUN <= g.to && n < MAX_RUNS; at += A_RUN) {
        double d[A_RUN];
        for (size_t i = 0; i < A_RUN; i++)
            d[i] = p->rows[at + i].d;
        stats_sort(d, A_RUN);
        const double ratio = exp(d[A_RUN / 2]), lo = exp(d[0]), hi = exp(d[A_RUN - 1]);
        n++;
        const char *sql = "UPDATE result SET ratio = ?1, ratio_lo = ?2, ratio_hi = ?3,"
                          " baseline_ms = 7, threshold = 0.02 WHERE run_id = ?4 AND arm = 0";
        assert_int_equal(store_write(s, sql,
                                     CELLS(cell_real(ratio), cell_real(lo), cell_real(hi),
                                           cell_integer(before + n)),
                                     &f->err),
                         GATE_OK);
    }
    assert_int_equal(store_end(s, GATE_OK, &f->err), GATE_OK);
    return n;
}

/* Every pair of runs of unchanged code, and every one with a slowdown of 2.5 %. */
TEST_WITHIN(of_recorded_runs, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = begin(state, 2 * MAX_RUNS);
    struct pairs p;
    char uuid[2 * MAX_RUNS][40];
    size_t n_false = 0, n_missed = 0, n_same = 0, n_slowed = 0;
    int n_flat = 0;
    pairs_read_recording(&p);
    for (int i = 0; i < 2 * MAX_RUNS; i++)
        uuid_of(f, i + 1, uuid[i]);
    for (size_t at = 0; at < p.n; at = pairs_group(&p, at).to) {
        double injected = p.rows[at].injected;
        bool is_flat = injected == 0;
        if (!is_flat && fabs(injected - 0.025) > 1e-9)
            continue;
        int before = is_flat ? 0 : MAX_RUNS, n = put_group(f, s, &p, pairs_group(&p, at), before);
        n_flat = is_flat ? n : n_flat;
        for (int i = 0; i < n; i++) {
            for (int k = 0; k < n_flat; k++) {
                if (is_flat && i == k)
                    continue;
                struct compared c = compare(s, uuid[k], uuid[before + i]);
                *(is_flat ? &n_same : &n_slowed) += 1;
                n_false += is_flat && strcmp(c.judged, "same") != 0;
                n_missed += !is_flat && strcmp(c.judged, "slower") != 0;
            }
        }
    }
    pairs_free(&p);
    store_close(s);
    print_message("%zu of %zu pairs of unchanged code are not the same, %zu of %zu of +2.5 %% are "
                  "missed\n",
                  n_false, n_same, n_missed, n_slowed);
    assert_true(n_same > 20000 && n_slowed > 0);
    assert_int_equal(n_false, 0);
    assert_int_equal(n_missed, 0);
}
