/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_ratchet.c: how the baselines move, case by case and over a thousand runs of a simulated
 * machine.
 *
 * also runs long: ten times as many runs
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/baseline/baseline.h"
#include "tests/unit/decide_play.h"
#include "tests/unit/noise.h"
#include "tests/unit/unit.h"

#define CASE "gemm/a"
#define CONTRACT "paired-graph-v3"
#define UUID "5a3b1e00-0000-4000-8000-000000000001"
#define OLD "0000000000000000000000000000000000000000000000000000000000000001"
#define NEW "0000000000000000000000000000000000000000000000000000000000000002"
#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define THRESHOLD 0.02

static struct baseline_entry entry(const char *sha256, double p50_ns)
{
    static struct document_output outputs[] = {{"dx", 1e-4}};
    return (struct baseline_entry){.p50_ns = p50_ns,
                                   .p50_lo_ns = p50_ns * 0.999,
                                   .p50_hi_ns = p50_ns * 1.001,
                                   .p90_ns = p50_ns * 1.01,
                                   .control_ns = 1e6,
                                   .spread = 0.001,
                                   .time_ms = 1735732800000,
                                   .kernel = "k",
                                   .commit = COMMIT,
                                   .run_uuid = UUID,
                                   .library_sha256 = sha256,
                                   .epoch = "580/13.0/700000",
                                   .rel_fro = p50_ns / 1e7,
                                   .outputs = outputs,
                                   .n_outputs = 1,
                                   .vendor_ratio = NAN};
}

static struct baseline *set_of(double p50_ns)
{
    static const struct baseline_note first = {BASELINE_ACCEPT_NEW, "first", "a@b", 1735732800000};
    struct gate_error err = {0};
    struct baseline *b = NULL;
    const struct baseline_entry e = entry(OLD, p50_ns);
    if (baseline_load("/nonexistent/b.json", "nvidia-h200", &b, &err) ||
        baseline_set(b, CASE, CONTRACT, &e, &first, &err))
        fail_msg("%s", err.message);
    return b;
}

static struct estimate ratio(double percent)
{
    double r = 1 + percent / 100;
    return (struct estimate){r, r - 0.0005, r + 0.0005};
}

/* A run that found the candidate off by `percent` of a baseline whose record still holds. */
static struct ratchet_run run_of(double percent)
{
    return (struct ratchet_run){.candidate = entry(NEW, 1234),
                                .again = entry(OLD, 1000),
                                .ratio = ratio(percent),
                                .threshold = THRESHOLD,
                                .judged = true,
                                .time_ms = 1735819200000,
                                .author = "a@b"};
}

static struct ratchet_end move(struct baseline *b, const struct ratchet_run *run)
{
    struct ratchet_end end;
    struct gate_error err = {0};
    if (ratchet_move(b, CASE, CONTRACT, run, &end, &err))
        fail_msg("%s", err.message);
    return end;
}

static struct baseline_entry baseline_of(const struct baseline *b)
{
    struct baseline_entry e;
    assert_true(baseline_find(b, CASE, CONTRACT, &e));
    return e;
}

static size_t trend_of(const struct baseline *b)
{
    const struct baseline_trend *trend = baseline_trend(b, CASE);
    return trend ? trend->n_runs : 0;
}

static void assert_near(double a, double b)
{
    if (fabs(a - b) > 1e-9 * fabs(b))
        fail_msg("%.12g is not %.12g", a, b);
}

/* ---- one run --------------------------------------------------------------------------------- */

/* The candidate's own p50 is 1234 ns, in an hour with other clocks: it is not what is stored. */
TEST(a_confirmed_improvement_is_stored_as_a_ratio)
{
    struct baseline *b = set_of(1000);
    struct ratchet_run run = run_of(-10);
    run.confirmed = true;
    struct ratchet_end end = move(b, &run);
    struct baseline_entry e = baseline_of(b);
    assert_true(end.changed && end.lowered && !end.epoch);
    assert_near(e.p50_ns, 900);
    assert_near(e.p50_lo_ns, 899.5);
    assert_near(e.p50_hi_ns, 900.5);
    assert_near(e.p90_ns, 909);
    assert_near(e.control_ns, 1e6);
    assert_string_equal(e.library_sha256, NEW);
    baseline_free(b);
}

TEST(five_small_improvements_in_a_row_move_it)
{
    struct baseline *b = set_of(1000);
    struct ratchet_run run = run_of(-1);
    for (size_t i = 1; i < RATCHET_TREND_RUNS; i++) {
        struct ratchet_end end = move(b, &run);
        assert_true(end.changed && !end.lowered && end.faster == i);
        assert_string_equal(baseline_of(b).library_sha256, OLD);
    }
    run.ratio = ratio(-1.2);
    struct ratchet_end end = move(b, &run);
    assert_true(end.changed && end.lowered && end.faster == RATCHET_TREND_RUNS);
    assert_non_null(strstr(end.text, "5 runs in a row"));
    assert_near(baseline_of(b).p50_ns, 988);
    assert_int_equal(trend_of(b), 0);
    baseline_free(b);
}

TEST(a_run_that_does_not_agree_ends_the_trend)
{
    struct baseline *b = set_of(1000);
    struct ratchet_run faster = run_of(-1), flat = run_of(0), blind = run_of(0);
    blind.judged = false; /* tells nothing, in either direction */
    for (int i = 0; i < 4; i++)
        move(b, &faster);
    assert_false(move(b, &blind).changed);
    assert_int_equal(trend_of(b), 4);
    assert_true(move(b, &flat).changed);
    assert_int_equal(trend_of(b), 0);
    assert_false(move(b, &flat).changed);
    for (int i = 0; i < 4; i++)
        assert_false(move(b, &faster).lowered);
    assert_true(move(b, &faster).lowered);
    baseline_free(b);
}

TEST(only_an_interval_below_a_quarter_of_the_threshold_counts)
{
    assert_true(ratchet_counts((struct estimate){0.99, 0.985, 0.9949}, THRESHOLD));
    assert_false(ratchet_counts((struct estimate){0.99, 0.985, 0.9951}, THRESHOLD));
    assert_true(ratchet_counts((struct estimate){0.996, 0.995, 0.998}, 0.005));
    assert_false(ratchet_counts((struct estimate){1.01, 1.005, 1.02}, THRESHOLD));
    assert_false(ratchet_counts((struct estimate){0}, THRESHOLD));
}

TEST(a_baseline_that_measures_otherwise_in_five_runs_begins_an_epoch)
{
    char why[240];
    struct baseline *b = set_of(1000);
    struct ratchet_run run = run_of(0);
    run.again = entry(OLD, 1030);
    run.again.control_ns = 1.002e6;
    run.again.n_outputs = 0;
    struct ratchet_end end;
    for (size_t i = 1; i < RATCHET_TREND_RUNS; i++) {
        end = move(b, &run);
        assert_true(end.changed && !end.epoch && end.off == i);
        assert_non_null(strstr(end.text, "3.00 % slower than its record, the control +0.20 %"));
    }
    run.again.p50_ns = 1031;
    end = move(b, &run);
    assert_true(end.changed && end.epoch && !end.lowered);
    assert_non_null(strstr(end.text, "a new epoch"));
    struct baseline_entry e = baseline_of(b);
    assert_near(e.p50_ns, 1031);
    assert_near(e.control_ns, 1.002e6);
    assert_string_equal(e.library_sha256, OLD);
    assert_true(e.rel_fro == 1e-4 && e.n_outputs == 1); /* its speed was measured anew */
    /* Once it is written down, it is not off any more. */
    assert_false(ratchet_is_off(&e, &run.again, why, sizeof why));
    assert_false(move(b, &run).changed);
    baseline_free(b);
}

TEST(an_epoch_begins_only_when_all_point_to_one_side)
{
    struct baseline *b = set_of(1000);
    struct ratchet_run slower = run_of(0), faster = run_of(0), as_ever = run_of(0);
    slower.again.p50_ns = 1030;
    faster.again.p50_ns = 970;
    for (int i = 0; i < 3; i++)
        move(b, &slower);
    assert_int_equal(move(b, &faster).off, 1);
    assert_int_equal(move(b, &faster).off, 2);
    assert_int_equal(move(b, &as_ever).off, 0);
    assert_int_equal(trend_of(b), 0);
    /* Runs that find one thing and not the other do not add up, and are not kept forever. */
    slower.ratio = ratio(0);
    as_ever.ratio = ratio(-1);
    for (int i = 0; i < 20; i++) {
        struct ratchet_end end = move(b, i % 2 ? &slower : &as_ever);
        assert_true(!end.epoch && !end.lowered && trend_of(b) <= BASELINE_TREND_MAX);
    }
    assert_near(baseline_of(b).p50_ns, 1000);
    baseline_free(b);
}

TEST(an_improvement_in_a_new_epoch_is_held_against_the_new_record)
{
    struct baseline *b = set_of(1000);
    struct ratchet_run run = run_of(-10);
    run.again = entry(OLD, 1200);
    run.again.epoch = "590/13.0/700000";
    run.confirmed = true;
    struct ratchet_end end = move(b, &run);
    assert_true(end.epoch && end.lowered);
    assert_near(baseline_of(b).p50_ns, 1080);
    baseline_free(b);
}

TEST(what_is_within_the_noise_is_no_epoch)
{
    static const struct {
        double p50_ns, control_ns, spread;
        bool off;
    } rows[] = {
        {1012, 1e6, 0.001, true},      {988, 1e6, 0.001, true},       /* down alike: no drift */
        {1009, 1e6, 0.001, false},     {1030, 1.006e6, 0.001, false}, /* the machine, not the
                                                                       * baseline
                                                                       */
        {1030, 0.994e6, 0.001, false}, {1030, 1e6, 0.007, false},     {1030, 1e6, 0.005, true},
        {1030, 0, 0.001, false},       {0, 1e6, 0.001, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char why[240];
        struct baseline_entry record = entry(OLD, 1000), again = entry(OLD, rows[i].p50_ns);
        again.control_ns = rows[i].control_ns;
        again.spread = rows[i].spread;
        if (ratchet_is_off(&record, &again, why, sizeof why) != rows[i].off)
            fail_msg("row %zu", i);
    }
}

TEST(another_driver_is_another_epoch)
{
    struct baseline *b = set_of(1000);
    struct ratchet_run run = run_of(0);
    run.again.epoch = "590/13.0/700000";
    struct ratchet_end end = move(b, &run);
    assert_true(end.epoch);
    assert_non_null(strstr(end.text, "the epoch was 580/13.0/700000 and is 590/13.0/700000"));
    assert_string_equal(baseline_of(b).epoch, "590/13.0/700000");
    run.again.p50_ns = 0; /* not measured: nothing can be said */
    run.again.epoch = "600/13.0/700000";
    assert_false(move(b, &run).changed);
    baseline_free(b);
}

/* ---- a thousand runs ------------------------------------------------------------------------- */

/* A machine: true times of baseline and candidate over the first baseline's, and what it adds. */
struct machine {
    struct noise_model pair; /* of d between processes */
    double hour;             /* SD of what all times of a run share, the control's aside */
    double spread;           /* SD of p50 between the processes of a run */
    double threshold;
};

struct series {
    const struct machine *machine;
    struct rng rng;
    struct baseline *baseline;
    double true_baseline, true_candidate; /* ln over the first baseline */
    size_t lowered, epochs, runs_to_red;
};

static struct play_process draw(void *source)
{
    struct noise *noise = source;
    double d = noise_next(noise);
    return (struct play_process){.d = d, .log_ratio_cycles = d};
}

/* The baseline's library in this hour, median of five processes, and their spread. */
static struct baseline_entry again_of(struct series *s, double hour)
{
    double x[DECIDE_FIRST_LOOK];
    struct baseline_entry e = baseline_of(s->baseline);
    for (size_t i = 0; i < DECIDE_FIRST_LOOK; i++)
        x[i] = hour + s->true_baseline + s->machine->spread * rng_normal(&s->rng);
    e.p50_ns = 1000 * exp(decide_bounds(x, DECIDE_FIRST_LOOK).value);
    e.p50_lo_ns = e.p50_hi_ns = e.p90_ns = e.p50_ns;
    e.spread = stats_deviation(x, DECIDE_FIRST_LOOK);
    return e;
}

/* One run of the suite with --ratchet; true: red. */
static bool run_once(struct series *s)
{
    const struct decide_input policy = {
        .threshold = s->machine->threshold, .baseline_p50_ns = 1e5, .confirm_faster = true};
    struct noise noise;
    double hour = s->machine->hour * rng_normal(&s->rng);
    noise_init(&noise, &s->machine->pair, expm1(s->true_candidate - s->true_baseline),
               rng_next(&s->rng));
    noise_begin(&noise);
    struct play_end end = play(&policy, draw, &noise);
    enum verdict verdict = end.decision.verdict;
    struct ratchet_run run = {.candidate = entry(NEW, 1000 * exp(s->true_candidate + hour)),
                              .again = again_of(s, hour),
                              .ratio = end.decision.ratio,
                              .threshold = s->machine->threshold,
                              .judged = verdict != VERDICT_ENVIRONMENT,
                              .confirmed = verdict == VERDICT_IMPROVEMENT,
                              .time_ms = 1735819200000,
                              .author = "a@b"};
    struct ratchet_end moved = move(s->baseline, &run);
    if (moved.lowered)
        s->true_baseline = s->true_candidate;
    s->lowered += moved.lowered;
    s->epochs += moved.epoch;
    return verdict == VERDICT_REGRESSION;
}

static void begin(struct series *s, const struct machine *m, uint64_t seed)
{
    *s = (struct series){.machine = m, .baseline = set_of(1000)};
    rng_seed(&s->rng, seed);
}

static const struct machine calm = {
    .pair = {.name = "calm", .sd = 0.0005}, .hour = 0.001, .spread = 0.003, .threshold = THRESHOLD};
/* The noisiest case of the H200, heavy tails, hours that differ by 1 %. */
static const struct machine rough = {.pair = {.name = "rough", .sd = 0.003, .heavy = true},
                                     .hour = 0.01,
                                     .spread = 0.005,
                                     .threshold = THRESHOLD};
static const struct machine strict = {
    .pair = {.name = "strict", .sd = 0.003}, .hour = 0.01, .spread = 0.005, .threshold = 0.005};

/* Mean of ln(record / truth) after 1,000 runs of unchanged code. */
static double drift_of(const struct machine *m, size_t n_series, size_t *lowered)
{
    double sum = 0;
    size_t epochs = 0;
    *lowered = 0;
    for (size_t i = 0; i < n_series; i++) {
        struct series s;
        begin(&s, m, 100 + i);
        for (int run = 0; run < 1000; run++)
            assert_false(run_once(&s));
        sum += log(baseline_of(s.baseline).p50_ns / 1000) - s.true_baseline;
        *lowered += s.lowered;
        epochs += s.epochs;
        baseline_free(s.baseline);
    }
    if (play_prints_rates())
        print_message("%s: drift %+.4f %% over 1,000 runs, mean of %zu series; lowered %zu times, "
                      "%zu epochs\n",
                      m->pair.name, 100 * sum / (double)n_series, n_series, *lowered, epochs);
    return sum / (double)n_series;
}

TEST(unchanged_code_does_not_move_the_baseline)
{
    static const struct machine *const machines[] = {&calm, &rough, &strict};
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        size_t lowered;
        double drift = drift_of(machines[i], play_trials(20), &lowered);
        assert_int_equal(lowered, 0);
        if (fabs(drift) > 0.0005)
            fail_msg("%s: the baseline drifts by %+.3f %%", machines[i]->pair.name, drift * 100);
    }
}

/* An improvement that lasts is followed, and its number is that of the code. */
TEST(a_small_improvement_is_followed_without_luck)
{
    static const struct machine quiet = {.pair = {.name = "strict and quiet", .sd = 0.001},
                                         .threshold = 0.005};
    static const struct machine *const machines[] = {&calm, &rough, &quiet};
    static const double change[] = {-0.01, -0.014, -0.003};
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        double sum = 0;
        size_t n = play_trials(400), runs = 0;
        for (size_t j = 0; j < n; j++) {
            struct series s;
            begin(&s, machines[i], 7000 + j);
            struct machine still = *machines[i]; /* hours alike: the bias of the pair alone */
            still.hour = 0;
            still.spread = 0;
            s.machine = &still;
            s.true_candidate = log1p(change[i]);
            for (int run = 0; run < 1000 && !s.lowered; run++, runs++)
                run_once(&s);
            assert_int_equal(s.lowered, 1);
            sum += log(baseline_of(s.baseline).p50_ns / 1000) - s.true_candidate;
            baseline_free(s.baseline);
        }
        if (play_prints_rates())
            print_message("%s: %+.2f %% is followed after %.1f runs, its number off by %+.4f %%\n",
                          machines[i]->pair.name, change[i] * 100, (double)runs / (double)n,
                          100 * sum / (double)n);
        if (fabs(sum / (double)n) > 0.0005)
            fail_msg("%s: off by %+.3f %%", machines[i]->pair.name, 100 * sum / (double)n);
    }
}

/* Ten commits, each 1 % slower than the one before, none of which is red by itself. */
TEST(small_steps_go_red_at_the_second_or_third)
{
    static const struct machine *const machines[] = {&calm, &rough};
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        size_t at[11] = {0}, n = play_trials(400);
        for (size_t j = 0; j < n; j++) {
            struct series s;
            begin(&s, machines[i], 9000 + j);
            size_t step = 0;
            for (bool red = false; !red && step < 10;) {
                s.true_candidate = (double)++step * log1p(0.01);
                red = run_once(&s);
            }
            at[step]++;
            baseline_free(s.baseline);
        }
        if (play_prints_rates())
            print_message("%s: first red at step 1: %zu, 2: %zu, 3: %zu, later: %zu\n",
                          machines[i]->pair.name, at[1], at[2], at[3], n - at[1] - at[2] - at[3]);
        assert_int_equal(at[1], 0);
        assert_true(at[2] + at[3] >= n - n / 100);
    }
}
