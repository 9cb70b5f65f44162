/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_race.c: how often a search finds a winner, over made and recorded noise. A run of a
 * candidate is played through decide() as `gate run` does it. KERNEL_GATE_RATES prints the rates.
 *
 * also runs long: ten times as many searches
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/decide/decide.h"
#include "gate/search/race.h"
#include "tests/unit/decide_play.h"
#include "tests/unit/noise.h"
#include "tests/unit/pairs.h"
#include "tests/unit/unit.h"

#define SEARCHES 1000
#define CANDIDATES 50
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct race_rules rules = {.gain = 0.01, .risk = 0.01};

/* What the processes of a search measure: noise of a model, or recorded ones of unchanged code. */
struct machine {
    const struct noise_model *model; /* NULL: recorded */
    const struct pair_row *rows;
    size_t n_rows;
    struct rng rng;
    struct noise noise;
    const double *log_gains; /* of the candidates; NULL: all are identical */
    double log_gain;         /* of the one that is measured */
    struct race_run *run;
    size_t n_runs;
};

static struct play_process draw(void *source)
{
    struct machine *m = source;
    double d =
        (m->model ? noise_next(&m->noise) : m->rows[rng_below(&m->rng, m->n_rows)].d) + m->log_gain;
    m->run->d[m->run->n++] = d;
    return (struct play_process){.d = d, .log_ratio_cycles = NAN};
}

static enum gate_status measure(void *context, size_t i, size_t, struct race_run *out,
                                struct gate_error *)
{
    struct machine *m = context;
    const struct decide_input policy = {.threshold = 0.02, .baseline_p50_ns = 1e5};
    *out = (struct race_run){.state = RACER_IN};
    m->run = out;
    m->log_gain = m->log_gains ? m->log_gains[i] : 0;
    if (m->model)
        noise_begin(&m->noise);
    play(&policy, draw, m);
    m->n_runs++;
    return GATE_OK;
}

static bool always(void *)
{
    return true;
}

static struct race_end search(struct machine *m)
{
    static struct racer racers[CANDIDATES];
    size_t order[CANDIDATES];
    struct race r = {rules, racers, CANDIDATES, measure, always, m, 0, 0};
    struct race_end end;
    memset(racers, 0, sizeof racers);
    for (size_t i = 0; i < CANDIDATES; i++)
        order[i] = i;
    assert_int_equal(race_halve(&r, order, NULL), GATE_OK);
    assert_int_equal(race_confirm(&r, &end, NULL), GATE_OK);
    if (end.won)
        assert_true(end.risk <= rules.risk && end.ratio.value < 1 / (1 + rules.gain));
    return end;
}

/* How many of so many searches have a winner; *right: of these, the fastest of all. */
static size_t winners(struct machine *m, size_t searches, const char *name, size_t *right)
{
    size_t won = 0, best = 0;
    *right = 0;
    m->n_runs = 0;
    for (size_t i = 0; m->log_gains && i < CANDIDATES; i++)
        best = m->log_gains[i] < m->log_gains[best] ? i : best;
    for (size_t i = 0; i < searches; i++) {
        struct race_end end = search(m);
        won += end.won;
        *right += end.won && end.winner == best;
    }
    if (play_prints_rates())
        print_message("%-44s winner in %zu of %zu, the fastest in %zu; %.1f runs a search\n", name,
                      won, searches, *right, (double)m->n_runs / (double)searches);
    return won;
}

static const struct noise_model models[] = {
    {.name = "normal 0.05 %", .sd = 0.0005},
    {.name = "normal 0.15 %", .sd = 0.0015},
    {.name = "normal 0.3 %", .sd = 0.003},
    {.name = "t4 0.8 %", .sd = 0.008, .heavy = true},
    {.name = "0.15 %, first slot 0.5 %", .sd = 0.0015, .first_slot = 0.005},
    {.name = "0.15 %, 10 % at +4 %", .sd = 0.0015, .slow_share = 0.1},
    {.name = "normal 3 %", .sd = 0.03},
};

TEST(identical_candidates_have_no_winner)
{
    size_t searches = play_trials(SEARCHES), right;
    for (size_t k = 0; k < COUNT(models); k++) {
        struct machine m = {.model = &models[k]};
        noise_init(&m.noise, m.model, 0, 1);
        size_t won = winners(&m, searches, models[k].name, &right);
        if (won * 100 > searches)
            fail_msg("%s: %zu winners in %zu searches", models[k].name, won, searches);
    }
}

/* One of fifty is faster by `gain`, and it is this one that is found. */
TEST(a_gain_is_found)
{
    static const struct {
        double gain;
        size_t model, most, least; /* in percent of the searches */
    } rows[] = {{0.005, 1, 1, 0},   {0.015, 1, 100, 95}, {0.02, 0, 100, 99}, {0.02, 1, 100, 99},
                {0.03, 1, 100, 99}, {0.02, 2, 100, 95},  {0.1, 3, 100, 99}};
    size_t searches = play_trials(SEARCHES / 5), right;
    for (size_t k = 0; k < COUNT(rows); k++) {
        double log_gains[CANDIDATES] = {0};
        char name[100];
        struct machine m = {.model = &models[rows[k].model], .log_gains = log_gains};
        log_gains[33] = -log1p(rows[k].gain);
        noise_init(&m.noise, m.model, 0, 2);
        snprintf(name, sizeof name, "%s, a gain of %.1f %%", m.model->name, 100 * rows[k].gain);
        size_t won = winners(&m, searches, name, &right);
        if (100 * won > rows[k].most * searches || 100 * right < rows[k].least * searches)
            fail_msg("%s: %zu winners, %zu right, in %zu searches", name, won, right, searches);
    }
}

/* The searches are shared out among the cases that were recorded of unchanged code. */
TEST(recorded_noise_has_no_winner)
{
    struct pairs p;
    size_t n_groups = 0, done = 0, won = 0, right;
    pairs_read_recording(&p);
    for (size_t at = 0; at < p.n; at = pairs_group(&p, at).to)
        n_groups += p.rows[at].injected <= 0;
    size_t each = n_groups ? play_trials(SEARCHES) / n_groups + 1 : 0;
    for (size_t at = 0; at < p.n;) {
        struct pair_group g = pairs_group(&p, at);
        at = g.to;
        if (p.rows[g.from].injected > 0)
            continue;
        struct machine m = {.rows = &p.rows[g.from], .n_rows = g.to - g.from};
        rng_seed(&m.rng, 3);
        won += winners(&m, each, p.rows[g.from].name, &right);
        done += each;
    }
    pairs_free(&p);
    if (!done || won * 100 > done)
        fail_msg("%zu winners in %zu searches", won, done);
}

/* However long one looks: a fair coin reaches 1 % in no more than 1 % of long sequences. */
TEST(luck_is_not_undercounted)
{
    struct rng rng;
    size_t n = play_trials(20000), reached = 0;
    struct race_luck sure = {.least = 1};
    rng_seed(&rng, 4);
    for (size_t i = 0; i < n; i++) {
        struct race_luck l = {.least = 1};
        for (int k = 0; k < 100 && l.least > 0.01; k++)
            race_luck_add(&l, rng_uniform(&rng) < 0.5);
        reached += l.least <= 0.01;
    }
    if (play_prints_rates())
        print_message("a fair coin reaches 1 %% in %zu of %zu\n", reached, n);
    assert_true(reached > 0 && reached * 100 <= n);
    for (int k = 0; k < 10; k++)
        race_luck_add(&sure, true);
    assert_true(fabs(1 / sure.least - (2048 - 1) / 11.0) < 1e-6);
}

/* ---- candidates that cannot be measured ---- */

static enum gate_status of_all_kinds(void *context, size_t i, size_t confirmation,
                                     struct race_run *out, struct gate_error *err)
{
    size_t *runs = context;
    (void)confirmation;
    runs[i]++;
    *out = (struct race_run){.state = RACER_IN, .n = 5};
    for (size_t k = 0; k < out->n; k++)
        out->d[k] = i == 2 ? -0.05 : i == 3 ? 0.2 : -0.03;
    if (i == 0)
        out->state = RACER_WRONG;
    if (i == 1)
        out->state = RACER_FAILED;
    if (i == 2 && runs[i] > 3) /* wrong for a seed of the confirmation */
        out->state = RACER_WRONG;
    if (i == 5)
        out->n = 0;
    return i == 6 ? gate_fail(err, GATE_ENVIRONMENT, "busy") : GATE_OK;
}

TEST(wrong_and_failed_candidates_go_out)
{
    struct racer racers[6];
    const size_t order[] = {5, 4, 3, 2, 1, 0};
    size_t runs[7] = {0};
    struct race r = {rules, racers, 6, of_all_kinds, always, runs, 0, 0};
    struct race_end end;
    struct gate_error err = {0};
    memset(racers, 0, sizeof racers);
    racers[4].state = RACER_BEATEN;
    assert_int_equal(race_halve(&r, order, &err), GATE_OK);
    racers[4] = (struct racer){.n = 1, .d = {-0.03}, .median = -0.03};
    assert_int_equal(racers[0].state, RACER_WRONG);
    assert_int_equal(racers[1].state, RACER_FAILED);
    assert_int_equal(racers[3].state, RACER_BEATEN);
    assert_int_equal(racers[5].state, RACER_FAILED);
    assert_int_equal(runs[3], 1);
    assert_int_equal(race_confirm(&r, &end, &err), GATE_OK);
    assert_true(end.won);
    assert_int_equal(end.winner, 4);
    assert_int_equal(end.confirmations, 2);
    assert_int_equal(racers[2].state, RACER_WRONG);
    struct racer seven[7] = {{0}};
    struct race broken = {rules, seven, 7, of_all_kinds, always, runs, 0, 0};
    assert_int_equal(race_look(&broken, 6, &err), GATE_ENVIRONMENT);
}

/* ---- candidates that leave work out ---- */

/* All gain 5 %: of the first 4 % are left out work, the second was never seen on fresh inputs, the
 * third has noise there, and the last one is honest and gains less. */
static enum gate_status on_fresh_inputs(void *, size_t i, size_t, struct race_run *out,
                                        struct gate_error *)
{
    static const double fresh[][5] = {{0.04, 0.041, 0.039, 0.04, 0.042},
                                      {NAN, NAN, NAN, NAN, NAN},
                                      {0.03, -0.03, 0, 0.04, 0.06},
                                      {0, 0.001, -0.001, 0.005, 0}};
    *out = (struct race_run){.state = RACER_IN, .n = 5};
    for (size_t k = 0; k < out->n; k++)
        out->d[k] = i == 3 ? -0.03 : -0.05 - 0.0001 * (double)k;
    memcpy(out->fresh, fresh[i], sizeof fresh[i]);
    return GATE_OK;
}

TEST(a_gain_is_one_on_fresh_inputs)
{
    struct racer racers[4] = {{0}};
    struct race r = {rules, racers, 4, on_fresh_inputs, always, NULL, 0, 0};
    struct race_end end;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(race_look(&r, i, NULL), GATE_OK);
    assert_int_equal(racers[0].state, RACER_BEATEN);
    assert_true(strstr(racers[0].why, "leaves work out"));
    assert_int_equal(race_confirm(&r, &end, NULL), GATE_OK);
    assert_true(end.won);
    assert_int_equal(end.winner, 3);
    for (size_t i = 1; i < 3; i++) {
        assert_int_equal(racers[i].state, RACER_BEATEN);
        assert_true(strstr(racers[i].why, "not shown"));
    }
}

/* What is left of a large gain is enough, where a host's noise hides the rest. */
TEST(what_is_left_of_a_gain_may_be_enough)
{
    const double d[] = {-0.5, -0.5, -0.5, -0.5, -0.5}, fresh[] = {0.3, -0.3, 0, 0.1, -0.2};
    const double all[] = {0.1, 0.1, 0.1, 0.1, 0.1};
    assert_int_equal(race_fresh_of(d, fresh, 5, 0.01), RACE_FRESH_GAINS);
    assert_int_equal(race_fresh_of(d, fresh, 4, 0.01), RACE_FRESH_OPEN);
    assert_int_equal(race_fresh_of(d, all, 5, 0.01), RACE_FRESH_IDLES);
}

/* ---- a search in several calls ---- */

#define LUCKY 8 /* candidates; the last one gains, the others did in the race alone */

/* The confirmations that began, in their order, and their candidates. */
struct begun {
    size_t candidates[LUCKY], n;
};

static enum gate_status lucky_in_the_race(void *context, size_t i, size_t confirmation,
                                          struct race_run *out, struct gate_error *)
{
    struct begun *b = context;
    *out = (struct race_run){.state = RACER_IN, .n = 5};
    for (size_t k = 0; k < out->n; k++)
        out->d[k] = !confirmation || i == LUCKY - 1 ? -0.05 + 0.001 * (double)i : 0;
    if (confirmation > b->n) {
        assert_int_equal(confirmation, b->n + 1);
        b->candidates[b->n++] = i;
    }
    return GATE_OK;
}

/* One call: it knows `n` candidates, and what earlier ones confirmed. */
static struct race_end call(struct begun *b, size_t n)
{
    struct racer racers[LUCKY] = {{0}};
    struct race r = {rules, racers, n, lucky_in_the_race, always, b, b->n, 0};
    struct race_end end;
    for (size_t k = 0; k < b->n; k++)
        racers[b->candidates[k]].confirmation = k + 1;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(race_look(&r, i, NULL), GATE_OK);
    assert_int_equal(race_confirm(&r, &end, NULL), GATE_OK);
    assert_int_equal(end.confirmations, b->n);
    return end;
}

/* Each candidate is confirmed once, the k-th for a share of 2^-k, however many calls there are. */
TEST(all_calls_spend_the_risk_of_one)
{
    struct begun b = {.n = 0};
    struct race_luck luck = {.least = 1};
    assert_false(call(&b, 2).won);
    assert_int_equal(b.n, 2);
    assert_false(call(&b, LUCKY).won);
    assert_int_equal(b.n, 2 + RACE_CONFIRMATIONS);
    struct race_end end = call(&b, LUCKY);
    assert_true(end.won && end.winner == LUCKY - 1);
    assert_int_equal(b.n, LUCKY);
    for (size_t i = 0; i < LUCKY; i++)
        assert_int_equal(b.candidates[i], i);
    for (size_t k = 0; k < end.processes; k++)
        race_luck_add(&luck, true);
    assert_true(fabs(end.risk / (luck.least * 256) - 1) < 1e-9);
    assert_true(end.risk <= rules.risk);
    struct race_end again = call(&b, LUCKY);
    assert_true(again.won && again.risk == end.risk && b.n == LUCKY);
}
