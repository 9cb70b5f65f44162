/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_decide_recorded.c: the rule on what processes measured of kernels whose slowdown was known.
 *
 * The recording is tests/data/pairs-h200.csv. Each of its cases is played many times: with
 * processes drawn from it at random, and in the order in which they ran from every one of them on,
 * so that what neighbours have in common counts. Most cases were recorded without a slowdown: to
 * these one is added by arithmetic, which tells what their spread lets through, not what a kernel
 * that is slower would measure. KERNEL_GATE_RATES prints what was seen of each case.
 *
 * also runs long: ten times as many trials
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/decide/decide.h"
#include "tests/unit/decide_play.h"
#include "tests/unit/noise.h"
#include "tests/unit/pairs.h"
#include "tests/unit/unit.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TRIALS 2000 /* of a case and a threshold */
#define TRIES 100   /* to find a process of a role: in what is made up there may be none */

/* What a recorded case must come to at a threshold; changes in between promise nothing. */
static const struct promise {
    double threshold;
    double quiet_up_to; /* never red with no more than this injected */
    double caught_from; /* red in 99 % with this or more injected */
} promises[] = {{0.02, 0.01, 0.025}, {0.005, 0, 0.01}};

/* ---- playing a group --------------------------------------------------------------------------
 */

struct group_source {
    const struct pair_row *rows;
    size_t n, next;
    size_t drawn;    /* in this play */
    double added;    /* to d, by arithmetic */
    struct rng *rng; /* NULL: in order */
};

static struct play_process next_process(void *source)
{
    struct group_source *s = source;
    const double other_role = s->drawn++ % 2 ? 0 : 1; /* play() swaps the roles by turns */
    const struct pair_row *row;
    size_t tries = 0;
    do
        row = &s->rows[s->rng ? rng_below(s->rng, s->n) : s->next++ % s->n];
    while (row->swapped == other_role && tries++ < TRIES);
    return (struct play_process){.d = row->d + s->added,
                                 .log_ratio_cycles = row->log_ratio_cycles + s->added};
}

static struct play_tally play_group(const struct pairs *p, struct pair_group g, double threshold,
                                    double slower)
{
    const struct decide_input policy = {.threshold = threshold, .baseline_p50_ns = 1e5};
    struct play_tally tally = {0};
    struct rng rng;
    struct group_source source = {.rows = &p->rows[g.from], .n = g.to - g.from, .rng = &rng};
    source.added = log1p(slower);
    rng_seed(&rng, 4);
    for (size_t i = 0; i < play_trials(TRIALS); i++) {
        source.drawn = 0;
        struct play_end end = play(&policy, next_process, &source);
        play_count(&tally, &end);
    }
    source.rng = NULL;
    for (size_t i = 0; i < source.n; i++) {
        source.next = i;
        source.drawn = 0;
        struct play_end end = play(&policy, next_process, &source);
        play_count(&tally, &end);
    }
    return tally;
}

static void print_group(const struct pair_row *row, size_t n, double threshold,
                        const struct play_tally *t)
{
    if (play_prints_rates())
        print_message("%-48s injected %+.2f %%  T %.1f %%  red %.4f  pass %.4f  no verdict %.4f  "
                      "%zu processes, %zu plays\n",
                      row->name, row->injected * 100, threshold * 100,
                      play_share(t, VERDICT_REGRESSION), play_share(t, VERDICT_PASS),
                      play_share(t, VERDICT_NO_VERDICT), n, t->trials);
}

struct outcome {
    size_t groups, unchanged, slowed, broken; /* `broken` counts promises */
    char first_broken[256];
};

static bool keeps(const struct promise *promise, double injected, const struct play_tally *t)
{
    bool quiet = injected <= promise->quiet_up_to + 1e-9;
    bool caught = injected >= promise->caught_from - 1e-9;
    if (quiet && t->verdicts[VERDICT_REGRESSION] > 0)
        return false;
    return !caught || play_share(t, VERDICT_REGRESSION) >= 0.99;
}

static void note_broken(struct outcome *o, const struct pair_row *row, double threshold,
                        const struct play_tally *t)
{
    if (o->broken++ == 0)
        snprintf(o->first_broken, sizeof o->first_broken,
                 "%s, injected %+.2f %%, threshold %.2f %%: red in %zu of %zu plays", row->name,
                 row->injected * 100, threshold * 100, t->verdicts[VERDICT_REGRESSION], t->trials);
}

static void judge_group(const struct pairs *p, struct pair_group g, struct outcome *o)
{
    const struct pair_row *row = &p->rows[g.from];
    size_t n = g.to - g.from;
    o->groups++;
    o->unchanged += row->injected <= 0;
    o->slowed += row->injected >= 0.025 - 1e-9;
    for (size_t i = 0; i < COUNT(promises); i++) {
        struct play_tally t = play_group(p, g, promises[i].threshold, 0);
        print_group(row, n, promises[i].threshold, &t);
        if (n < DECIDE_FIRST_LOOK || !keeps(&promises[i], row->injected, &t))
            note_broken(o, row, promises[i].threshold, &t);
    }
}

static struct outcome judge_pairs(const struct pairs *p)
{
    struct outcome o = {0};
    for (size_t at = 0; at < p->n;) {
        struct pair_group g = pairs_group(p, at);
        judge_group(p, g, &o);
        at = g.to;
    }
    return o;
}

/* ---- the recording ----------------------------------------------------------------------------
 */

TEST(recorded_cases_keep_the_promises)
{
    struct pairs p;
    pairs_read_recording(&p);
    struct outcome o = judge_pairs(&p);
    pairs_free(&p);
    assert_true(o.unchanged > 0 && o.slowed > 0);
    if (o.broken)
        fail_msg("%zu promises are broken, the first: %s", o.broken, o.first_broken);
}

/* Over all unchanged cases of the recording together. */
static struct play_tally play_unchanged(const struct pairs *p, double threshold, double slower,
                                        double *least_red, const char **least)
{
    struct play_tally all = {0};
    *least_red = 1;
    for (size_t at = 0; at < p->n;) {
        struct pair_group g = pairs_group(p, at);
        at = g.to;
        if (p->rows[g.from].injected > 0)
            continue;
        struct play_tally t = play_group(p, g, threshold, slower);
        for (size_t v = 0; v < VERDICT_COUNT; v++)
            all.verdicts[v] += t.verdicts[v];
        all.trials += t.trials;
        all.processes += t.processes;
        if (play_share(&t, VERDICT_REGRESSION) < *least_red) {
            *least_red = play_share(&t, VERDICT_REGRESSION);
            *least = p->rows[g.from].name;
        }
    }
    return all;
}

/* What the spread of all 54 cases comes to at a threshold: never red, or red in 99 % of the plays
 * of each case. */
TEST(the_whole_suite_is_quiet_and_sharp)
{
    static const struct {
        double threshold, slower;
        bool red;
    } rows[] = {
        {0.005, 0, false},   {0.005, 0.01, true}, {0.02, 0, false},
        {0.02, 0.01, false}, {0.02, 0.025, true}, {0.02, 0.05, true},
    };
    struct pairs p;
    pairs_read_recording(&p);
    for (size_t i = 0; i < COUNT(rows); i++) {
        double least_red;
        const char *least = "";
        struct play_tally t =
            play_unchanged(&p, rows[i].threshold, rows[i].slower, &least_red, &least);
        if (play_prints_rates())
            print_message("all cases, T %.1f %%, %+.1f %% added: red %.5f  pass %.5f  no verdict "
                          "%.5f of %zu, %.2f processes each; least red %.4f: %s\n",
                          rows[i].threshold * 100, rows[i].slower * 100,
                          play_share(&t, VERDICT_REGRESSION), play_share(&t, VERDICT_PASS),
                          play_share(&t, VERDICT_NO_VERDICT), t.trials,
                          (double)t.processes / (double)t.trials, least_red, least);
        if (rows[i].red ? least_red < 0.99 : t.verdicts[VERDICT_REGRESSION] > 0)
            fail_msg("T %.1f %%, %+.1f %% added: %zu of %zu red, least in %s: %.4f",
                     rows[i].threshold * 100, rows[i].slower * 100, t.verdicts[VERDICT_REGRESSION],
                     t.trials, least, least_red);
    }
    pairs_free(&p);
}

/* ---- the player, on a record made up ----------------------------------------------------------
 */

/* Twelve processes of a case, and of the same with each slowdown. */
static struct outcome judge_sample(double sd, double bias)
{
    static const double injected[] = {0, 0.005, 0.01, 0.025, 0.05};
    static const struct noise_model none = {.name = "none"};
    struct pair_row rows[12 * COUNT(injected)];
    struct pairs p = {.rows = rows};
    struct noise noise;
    noise_init(&noise, &none, 0, 5);
    for (size_t i = 0; i < COUNT(injected); i++)
        for (int process = 1; process <= 12; process++) {
            double d = log1p(injected[i] + bias) + sd * rng_normal(&noise.rng);
            rows[p.n++] = (struct pair_row){.name = "gemm/fp16/m64-n64-k64",
                                            .process = process,
                                            .swapped = NAN,
                                            .d = d,
                                            .log_ratio_cycles = d,
                                            .injected = injected[i]};
        }
    return judge_pairs(&p);
}

TEST(a_sharp_recording_keeps_the_promises)
{
    struct outcome o = judge_sample(0.0003, 0);
    assert_int_equal(o.groups, 5);
    assert_int_equal(o.unchanged, 1);
    assert_int_equal(o.slowed, 2);
    assert_int_equal(o.broken, 0);
}

/* It is promised that they can be broken: by a bias of 2.6 % that makes unchanged code look slow,
 * by one of -2 % that hides slowdowns, and by noise. */
TEST(a_recording_that_breaks_promises_is_found_out)
{
    assert_int_equal(judge_sample(0.0003, 0.026).broken, 4); /* 0, 0.5 and 1 %; 0 at 0.5 % */
    assert_int_equal(judge_sample(0.0003, -0.02).broken, 3); /* 2.5 % at both, 1 % at 0.5 % */
    assert_true(judge_sample(0.03, 0).broken > 0);
}
