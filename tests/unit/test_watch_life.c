/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_watch_life.c: the life of an alert does not depend on the order and the pace in which runs
 * come: random histories, some of whose runs are of an old commit once more, replayed run by run,
 * in batches, late and shuffled, end in the same
 * alerts. An alert that later runs did not bear out counts as none.
 *
 * also runs long: four times as many histories
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "tests/unit/watch_history.h"

#define HISTORIES 16 /* a quarter of them in `make test` */
#define MAX_RUNS 230
#define SHORT_RUNS 110 /* as many as a look reads, and fewer */
#define MOST_LATE 20

/* A history that is to be: what each run brings. */
struct plan {
    int n;
    struct spec run[MAX_RUNS];
};

static const double levels[] = {1.0, 1.0, 1.05, 1.1, 0.96};

static void plan_run(struct plan *p, struct rng *rng, double level, bool paired, bool wrong)
{
    struct spec *s = &p->run[p->n];
    bool outlier = rng_below(rng, 40) == 0;
    double value = level * exp(0.002 * rng_normal(rng)) * (outlier ? 1.2 : 1);
    *s = (struct spec){.index = p->n, .p50_ns = 20000 * value, .control_ns = 1e6};
    s->again = rng_below(rng, 12) == 0 ? 1 + (int)rng_below(rng, (size_t)p->n + 1) : 0;
    s->ratio = paired ? value : 0;
    s->verdict = wrong                    ? "wrong"
                 : outlier                ? "no-verdict"
                 : paired && level > 1.03 ? "regression"
                                          : "pass";
    p->n++;
}

/* Levels that last for 7 to 30 runs; now and then some wrong runs, and runs that lie far out. */
static void make_plan(struct plan *p, uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed);
    bool paired = seed % 2 == 0;
    int n = seed % 3 == 0 ? MAX_RUNS : SHORT_RUNS;
    p->n = 0;
    while (p->n < n) {
        double level = levels[rng_below(&rng, sizeof(levels) / sizeof(levels[0]))];
        int last = p->n + 7 + (int)rng_below(&rng, 24);
        for (; p->n < n && p->n < last;)
            plan_run(p, &rng, level, paired, false);
        for (int i = rng_below(&rng, 6) == 0 ? 3 : 0; i > 0 && p->n < n; i--)
            plan_run(p, &rng, level, paired, true);
    }
}

/* What is left of an alert when its number and the text of its steps are not looked at. */
struct end {
    int index;
    enum alert_kind kind;
    enum alert_state state;
    bool confirmed;
    double change;
};

struct ends {
    struct end alert[MAX_ALERTS];
    size_t n, n_withdrawn;
};

static int compare_ends(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    return x->index != y->index ? x->index - y->index : (int)x->kind - (int)y->kind;
}

static struct ends ends_of(const struct history *h)
{
    struct seen seen = history_alerts(h);
    struct ends ends = {.n = 0};
    for (size_t i = 0; i < seen.n; i++) {
        const struct seen_alert *a = &seen.alert[i];
        if (strcmp(a->reason, "later runs do not bear it out") == 0) {
            ends.n_withdrawn++;
            continue;
        }
        ends.alert[ends.n++] =
            (struct end){(int)history_index_of(a), a->kind, a->state, a->confirmed, a->change};
    }
    qsort(ends.alert, ends.n, sizeof(ends.alert[0]), compare_ends);
    return ends;
}

/* In this order, a look after each `batch` runs on the average. */
static struct ends replay(void **state, const struct plan *p, const int *order, int batch)
{
    struct history h = history_begin(state);
    struct rng rng;
    rng_seed(&rng, (uint64_t)batch);
    h.sd = 0;
    h.watched = false;
    assert_int_equal(store_begin(h.s, &h.f->err), GATE_OK);
    for (int i = 0; i < p->n; i++) {
        h.spec = p->run[order[i]];
        history_add(&h, 1, h.spec.p50_ns);
        if (rng_below(&rng, (size_t)batch) == 0)
            history_watch(h.f, h.s);
    }
    history_watch(h.f, h.s);
    assert_int_equal(store_end(h.s, GATE_OK, &h.f->err), GATE_OK);
    struct ends ends = ends_of(&h);
    history_end(&h);
    remove(h.f->path);
    return ends;
}

static void print_ends(const char *name, const struct ends *e)
{
    for (size_t i = 0; i < e->n; i++)
        print_message("%s: run %d %s %s%s %+.4f\n", name, e->alert[i].index,
                      history_kinds[e->alert[i].kind], alert_state_name(e->alert[i].state),
                      e->alert[i].confirmed ? " confirmed" : "", e->alert[i].change);
}

static bool same_ends(const struct ends *a, const struct ends *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) {
        const struct end *x = &a->alert[i], *y = &b->alert[i];
        same = x->index == y->index && x->kind == y->kind && x->state == y->state &&
               x->confirmed == y->confirmed && fabs(x->change - y->change) < 1e-12;
    }
    return same;
}

static void assert_same(const struct ends *expected, const struct ends *got, const char *how,
                        uint64_t seed)
{
    if (same_ends(expected, got))
        return;
    print_ends("in order", expected);
    print_ends(how, got);
    fail_msg("history %d ends in other alerts when it comes %s", (int)seed, how);
}

/* Each run comes up to `late` places after its own. */
static void shuffle(struct rng *rng, int *order, int n, int late)
{
    double key[MAX_RUNS];
    for (int i = 0; i < n; i++) {
        order[i] = i;
        key[i] = i + (double)late * rng_uniform(rng);
    }
    for (int i = 1; i < n; i++) {
        for (int k = i; k > 0 && key[order[k]] < key[order[k - 1]]; k--) {
            int moved = order[k];
            order[k] = order[k - 1];
            order[k - 1] = moved;
        }
    }
}

TEST_WITHIN(a_history_ends_in_the_same_alerts_in_any_order, store_set_up, store_tear_down)
{
    static struct plan p;
    size_t n_alerts = 0, n_fixed = 0, n_withdrawn = 0;
    size_t histories = getenv("KERNEL_GATE_LONG") ? HISTORIES : HISTORIES / 4;
    for (uint64_t seed = 1; seed <= histories; seed++) {
        int order[MAX_RUNS];
        struct rng rng;
        struct ends got;
        rng_seed(&rng, seed);
        make_plan(&p, seed);
        shuffle(&rng, order, p.n, 0);
        struct ends expected = replay(state, &p, order, 1);
        got = replay(state, &p, order, 9);
        assert_same(&expected, &got, "in batches", seed);
        shuffle(&rng, order, p.n, MOST_LATE);
        got = replay(state, &p, order, 1);
        assert_same(&expected, &got, "late", seed);
        shuffle(&rng, order, p.n, p.n == SHORT_RUNS ? 100 * p.n : MOST_LATE);
        got = replay(state, &p, order, 3);
        assert_same(&expected, &got, "shuffled", seed);
        n_alerts += expected.n;
        n_withdrawn += expected.n_withdrawn;
        for (size_t i = 0; i < expected.n; i++)
            n_fixed += expected.alert[i].state == ALERT_FIXED;
    }
    print_message("%zu alerts, %zu of them fixed; %zu withdrawn\n", n_alerts, n_fixed, n_withdrawn);
    assert_true(n_alerts > 2 * histories);
    assert_true(n_fixed > histories);
    assert_true(10 * n_withdrawn < n_alerts);
}
