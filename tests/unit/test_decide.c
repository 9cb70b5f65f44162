/* test_decide.c: the rule of the verdict at and around its borders, stage by stage, and its words.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gate/decide.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROOM (DECIDE_MAX_PROCESSES + 1)

static const struct decide_input policy = {.threshold = 0.02, .best_p50_ns = 1e5};

/* n changes in percent from centre - half to centre + half, evenly, not in order. */
static void fill(double *d, size_t n, double centre, double half)
{
    for (size_t i = 0; i < n; i++) {
        double place = n > 1 ? 2.0 * (double)i / (double)(n - 1) - 1 : 0;
        d[i % 2 ? i / 2 : n - 1 - i / 2] = log1p((centre + half * place) / 100);
    }
}

/* A sequence with room of its own. */
struct made {
    double d[ROOM], cycles[ROOM], p90[ROOM];
    struct decide_sequence s;
};

static struct decide_sequence make(struct made *m, size_t n, double centre, double half)
{
    fill(m->d, n, centre, half);
    m->s = (struct decide_sequence){.d = m->d, .n = n};
    return m->s;
}

static struct decide_sequence with_cycles(struct made *m, double percent)
{
    fill(m->cycles, m->s.n, percent, 0);
    m->s.d_cycles = m->cycles;
    return m->s;
}

static struct decide_sequence with_p90(struct made *m, double centre, double half)
{
    fill(m->p90, m->s.n, centre, half);
    m->s.d_p90 = m->p90;
    return m->s;
}

static void assert_decided(const struct decision *d, enum verdict verdict)
{
    if (d->next != DECIDE_DONE || d->verdict != verdict)
        fail_msg("next %d, %s instead of %s: %s", (int)d->next, verdict_name(d->verdict),
                 verdict_name(verdict), d->reason);
    assert_int_equal(d->next_n, 0);
}

static void assert_asks(const struct decision *d, enum decide_next next, size_t n)
{
    if (d->next != next || d->next_n != n)
        fail_msg("next %d to %zu instead of %d to %zu: %s", (int)d->next, d->next_n, (int)next, n,
                 d->reason);
}

static void assert_near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-9 * (1 + fabs(expected))))
        fail_msg("%.12g instead of %.12g", got, expected);
}

/* ---- bounds and the minimum detectable effect ------------------------------------------------ */

static void bounds_have_the_ranks_of_the_looks(void **state)
{
    static const struct {
        size_t n, rank;
    } rows[] = {{1, 1},  {4, 1},  {5, 1},  {7, 1},  {8, 1},  {11, 1}, {12, 2},
                {15, 2}, {16, 3}, {19, 3}, {20, 4}, {21, 4}, {64, 4}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        double d[DECIDE_MAX_PROCESSES];
        size_t n = rows[i].n;
        for (size_t j = 0; j < n; j++)
            d[j] = (double)(n - j);
        struct estimate e = decide_bounds(d, n);
        assert_near(e.value, ((double)n + 1) / 2);
        assert_near(e.lo, (double)rows[i].rank);
        assert_near(e.hi, (double)(n + 1 - rows[i].rank));
        assert_near(d[0], (double)n);
    }
}

static void bounds_of_no_sequence_are_zero(void **state)
{
    double d[ROOM];
    (void)state;
    fill(d, ROOM, 1, 1);
    const size_t n[] = {0, ROOM};
    for (size_t i = 0; i < COUNT(n); i++) {
        struct estimate e = decide_bounds(d, n[i]);
        assert_true(e.value == 0 && e.lo == 0 && e.hi == 0);
    }
}

/* d2 of the tables of control charts: a range of d2(n) means a standard deviation of one. */
static void mde_follows_the_range(void **state)
{
    static const struct {
        size_t n;
        double d2;
    } rows[] = {{2, 1.128},  {3, 1.693},  {5, 2.326},  {8, 2.847},  {12, 3.258},
                {16, 3.532}, {20, 3.735}, {25, 3.931}, {26, 3.931}, {64, 3.931}};
    double d[DECIDE_MAX_PROCESSES] = {0};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        memset(d, 0, sizeof d);
        d[rows[i].n / 2] = rows[i].d2 * 0.001;
        assert_near(decide_mde(d, rows[i].n), 2 * 2.88 * 0.001);
    }
    assert_true(decide_mde(d, 1) == 0 && decide_mde(d, 0) == 0);
}

/* ---- the first sequence ---------------------------------------------------------------------- */

/* Five processes of these changes in percent, smallest, middle ones and largest. */
static struct decision decide_on_five(const double percent[5], double floor_ns)
{
    double d[5];
    for (size_t i = 0; i < 5; i++)
        d[i] = log1p(percent[i] / 100);
    struct decide_input in = policy;
    in.floor_ns = floor_ns;
    in.first = (struct decide_sequence){.d = d, .n = 5};
    return decide(&in);
}

static void the_borders_of_the_rule(void **state)
{
    enum { PASS, OPEN, SUSPECTED, FASTER };
    static const struct {
        double percent[5];
        int end;
    } rows[] = {
        {{0, 0, 0, 0, 0}, PASS},
        {{1.3, 1.3, 1.3, 1.3, 1.999}, PASS},
        {{1.3, 1.3, 1.3, 1.3, 2}, OPEN}, /* below is asked for, not at */
        {{1.3, 1.3, 1.3, 1.3, 2.001}, OPEN},
        {{0, 0, 0, 0, 0.8}, PASS}, /* a range of 0.4 T is an effect of T: the widest that passes */
        {{0, 0, 0, 0, 0.82}, OPEN},
        {{-40, 0, 0, 0, 0}, OPEN},       /* five wild values say nothing, though none is slow */
        {{1.5, 1.5, 2, 2.5, 2.5}, OPEN}, /* the median must be over T, not at it */
        {{1.5, 1.5, 2.001, 2.5, 2.5}, SUSPECTED},
        {{1.001, 2.5, 2.5, 2.5, 2.5}, SUSPECTED},
        {{1, 2.5, 2.5, 2.5, 2.5}, OPEN}, /* the lower bound must be over T / 2, not at it */
        {{0.999, 2.5, 2.5, 2.5, 2.5}, OPEN},
        {{2.4, 2.5, 2.5, 2.5, 90}, SUSPECTED}, /* the upper does not matter to a suspicion */
        {{-2.5, -2.5, -2.5, -2.5, -0.999}, FASTER},
        {{-1.7, -1.7, -1.7, -1.7, -0.98}, PASS},
        {{-2.5, -2.5, -2.5, -2.5, -0.98}, OPEN},
        {{-2.5, -2.5, -1.97, -1.5, -1.5}, FASTER},
        {{-2.2, -2.2, -1.95, -1.5, -1.5}, PASS},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct decision d = decide_on_five(rows[i].percent, 0);
        if (rows[i].end == PASS)
            assert_decided(&d, VERDICT_PASS);
        else if (rows[i].end == FASTER)
            assert_decided(&d, VERDICT_IMPROVEMENT);
        else if (rows[i].end == OPEN)
            assert_asks(&d, DECIDE_MORE_FIRST, 8);
        else
            assert_asks(&d, DECIDE_CONFIRM, 5);
    }
}

/* The same at the median and at the bounds of a faster case, by the logarithms themselves. */
static void faster_mirrors_slower_in_logarithms(void **state)
{
    double limit = log1p(0.02), margin = log1p(0.01), step = 1e-9;
    struct decide_input in = policy;
    (void)state;
    const double at_limit[5] = {-limit - step, -limit - step, -limit, -0.013, -0.013};
    /* Its spread resolves no 2 %, so it goes on instead of passing. */
    const double at_margin[5] = {-0.03, -0.03, -0.03, -0.03, -margin};
    const double beyond[5] = {-0.03, -0.03, -limit - step, -margin - step, -margin - step};
    in.first = (struct decide_sequence){.d = at_limit, .n = 5};
    assert_int_equal(decide(&in).verdict, VERDICT_PASS);
    in.first.d = at_margin;
    assert_int_equal(decide(&in).verdict, VERDICT_NO_VERDICT);
    in.first.d = beyond;
    assert_int_equal(decide(&in).verdict, VERDICT_IMPROVEMENT);
}

/* 3 % of 100 us are 3000 ns. */
static void an_excess_up_to_the_floor_is_not_told_from_nothing(void **state)
{
    static const double slower[5] = {2.9, 2.9, 3, 3.1, 3.1}, faster[5] = {-3, -3, -3, -3, -3};
    (void)state;
    struct decision d = decide_on_five(slower, 2999);
    assert_asks(&d, DECIDE_CONFIRM, 5);
    d = decide_on_five(slower, 3000.001);
    assert_asks(&d, DECIDE_MORE_FIRST, 8);
    assert_near(d.mde, 0.03000001); /* the floor, where the spread is less */
    d = decide_on_five(faster, 2999);
    assert_decided(&d, VERDICT_IMPROVEMENT);
    d = decide_on_five(faster, 3000.001);
    assert_decided(&d, VERDICT_PASS);
}

static void an_open_sequence_goes_from_look_to_look(void **state)
{
    static const struct {
        size_t n, next;
    } rows[] = {{1, 5},   {4, 5},   {5, 8},   {6, 8},   {7, 8},  {8, 12}, {9, 12},
                {12, 16}, {15, 16}, {16, 20}, {19, 20}, {20, 0}, {21, 0}, {64, 0}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct made m;
        struct decide_input in = policy;
        in.first = make(&m, rows[i].n, 1.5, 3);
        struct decision d = decide(&in);
        assert_int_equal(d.verdict, VERDICT_NO_VERDICT);
        if (rows[i].next)
            assert_asks(&d, DECIDE_MORE_FIRST, rows[i].next);
        else
            assert_decided(&d, VERDICT_NO_VERDICT);
    }
}

/* A process was lost: twelve were asked for and eleven came. They are clear or not as they are. */
static void a_sequence_between_two_looks_is_looked_at(void **state)
{
    struct made m;
    struct decide_input in = policy;
    (void)state;
    in.first = make(&m, 11, 0.1, 0.1);
    struct decision d = decide(&in);
    assert_decided(&d, VERDICT_PASS);
    in.first = make(&m, 7, 3, 0.1);
    d = decide(&in);
    assert_asks(&d, DECIDE_CONFIRM, 5);
}

static void too_few_processes_decide_nothing(void **state)
{
    struct made m;
    struct decide_input in = policy;
    (void)state;
    for (size_t n = 1; n < DECIDE_FIRST_LOOK; n++) {
        in.first = make(&m, n, 30, 0);
        struct decision d = decide(&in);
        assert_asks(&d, DECIDE_MORE_FIRST, 5);
        assert_int_equal(d.verdict, VERDICT_NO_VERDICT);
    }
    assert_near(decide(&in).ratio.value, 1.3);
}

static void one_outlier_is_outvoted_at_twelve(void **state)
{
    struct made m;
    struct decide_input in = policy;
    (void)state;
    in.first = make(&m, 12, 0, 0.1);
    m.d[3] = 0.5;
    struct decision d = decide(&in);
    assert_decided(&d, VERDICT_PASS);
    m.d[7] = 0.5;
    d = decide(&in);
    assert_asks(&d, DECIDE_MORE_FIRST, 16);
}

static void the_threshold_is_that_of_the_policy(void **state)
{
    struct made m;
    struct decide_input in = policy;
    (void)state;
    in.first = make(&m, 5, 1, 0.05);
    struct decision d = decide(&in);
    assert_decided(&d, VERDICT_PASS);
    in.threshold = 0.005;
    d = decide(&in);
    assert_asks(&d, DECIDE_CONFIRM, 5);
    in.threshold = 0.0102;
    d = decide(&in);
    assert_asks(&d, DECIDE_MORE_FIRST, 8);
}

/* ---- the confirmation ------------------------------------------------------------------------ */

/* A suspicion of +3 % followed by a confirmation. */
static struct decision decide_confirmed(size_t n, double centre, double half)
{
    struct made first, second;
    struct decide_input in = policy;
    in.first = make(&first, 5, 3, 0.1);
    in.confirmation = make(&second, n, centre, half);
    return decide(&in);
}

static void a_suspicion_waits_for_its_confirmation(void **state)
{
    (void)state;
    for (size_t n = 0; n < DECIDE_FIRST_LOOK; n++) {
        struct decision d = decide_confirmed(n, 3, 0.1);
        assert_asks(&d, DECIDE_CONFIRM, 5);
        assert_int_equal(d.verdict, VERDICT_NO_VERDICT);
        assert_true(d.confirmed_ratio == 0);
        assert_near(d.ratio.value, 1.03);
    }
}

static void both_sequences_must_agree(void **state)
{
    (void)state;
    struct decision d = decide_confirmed(5, 2.5, 0.2);
    assert_decided(&d, VERDICT_REGRESSION);
    assert_near(d.ratio.value, 1.025);
    assert_near(d.confirmed_ratio, 1.025);
    d = decide_confirmed(5, 0, 0.2);
    assert_decided(&d, VERDICT_PASS);
    assert_near(d.ratio.value, 1);
    d = decide_confirmed(5, -5, 0.2); /* a pass, and no improvement that anything agrees with */
    assert_decided(&d, VERDICT_PASS);
}

static void an_open_confirmation_goes_on_to_no_verdict(void **state)
{
    static const struct {
        size_t n, next;
    } rows[] = {{5, 8}, {6, 8}, {8, 12}, {12, 16}, {16, 20}, {20, 0}, {33, 0}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct decision d = decide_confirmed(rows[i].n, 1.5, 3);
        assert_int_equal(d.verdict, VERDICT_NO_VERDICT);
        if (rows[i].next)
            assert_asks(&d, DECIDE_CONFIRM, rows[i].next);
        else
            assert_decided(&d, VERDICT_NO_VERDICT);
    }
}

static void a_confirmation_nobody_asked_for_is_not_looked_at(void **state)
{
    struct made first, second;
    struct decide_input in = policy;
    (void)state;
    in.first = make(&first, 5, 0, 0.1);
    in.confirmation = make(&second, 5, 3, 0.1);
    struct decision d = decide(&in);
    assert_decided(&d, VERDICT_PASS);
    assert_near(d.ratio.value, 1);
    in.first = make(&first, 5, 1.5, 3);
    d = decide(&in);
    assert_asks(&d, DECIDE_MORE_FIRST, 8);
}

/* ---- adjudication ---------------------------------------------------------------------------- */

static struct decision adjudicated(double change, double drift, bool same, const double *cycles)
{
    struct made first, second;
    struct decide_input in = policy;
    in.confirm_faster = true;
    in.control_drift = drift;
    in.same = same ? "are the same file" : NULL;
    in.first = make(&first, 5, change, 0.1);
    in.confirmation = make(&second, 5, change, 0.1);
    if (cycles) {
        in.first = with_cycles(&first, cycles[0]);
        in.confirmation = with_cycles(&second, cycles[1]);
    }
    return decide(&in);
}

static void a_regression_is_adjudicated(void **state)
{
    static const struct {
        double drift;
        bool same;
        double cycles[2];
        enum verdict verdict;
    } rows[] = {
        {0, false, {3, 3}, VERDICT_REGRESSION},
        {0.005, false, {3, 3}, VERDICT_REGRESSION},
        {0.0051, false, {3, 3}, VERDICT_ENVIRONMENT},
        {0, true, {3, 3}, VERDICT_ENVIRONMENT},
        {0, false, {0, 0}, VERDICT_ENVIRONMENT},
        {0, false, {-3, -3}, VERDICT_ENVIRONMENT},
        {0, false, {1, 1}, VERDICT_ENVIRONMENT}, /* over T / 2, not at it */
        {0, false, {1.001, 1.001}, VERDICT_REGRESSION},
        {0, false, {0, 2.1}, VERDICT_REGRESSION}, /* the middle of both sequences is 1.05 */
        {0, false, {2.1, 0}, VERDICT_REGRESSION},
        {0, false, {0, 1.9}, VERDICT_ENVIRONMENT},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct decision d = adjudicated(3, rows[i].drift, rows[i].same, rows[i].cycles);
        assert_decided(&d, rows[i].verdict);
    }
}

/* ln(1.6) = 0.47: a tenth of it is what the control may move then. */
static void a_large_difference_is_not_put_down_to_a_small_drift(void **state)
{
    static const double cycles[2] = {60, 60};
    (void)state;
    struct decision d = adjudicated(60, 0.046, false, cycles);
    assert_decided(&d, VERDICT_REGRESSION);
    d = adjudicated(60, 0.048, false, cycles);
    assert_decided(&d, VERDICT_ENVIRONMENT);
}

/* A host has no cycles to ask; what else is asked stays. */
static void without_cycles_their_rule_is_skipped(void **state)
{
    (void)state;
    struct decision d = adjudicated(3, 0, false, NULL);
    assert_decided(&d, VERDICT_REGRESSION);
    d = adjudicated(3, 0.01, false, NULL);
    assert_decided(&d, VERDICT_ENVIRONMENT);
}

static void cycles_of_one_sequence_are_asked_alone(void **state)
{
    struct made first, second;
    struct decide_input in = policy;
    (void)state;
    in.first = make(&first, 5, 3, 0.1);
    make(&second, 5, 3, 0.1);
    in.confirmation = with_cycles(&second, 0);
    struct decision d = decide(&in);
    assert_decided(&d, VERDICT_ENVIRONMENT);
    in.confirmation = with_cycles(&second, 3);
    d = decide(&in);
    assert_decided(&d, VERDICT_REGRESSION);
}

/* What was not measured does not speak for the code. */
static void a_control_that_was_not_timed_is_an_objection(void **state)
{
    static const double cycles[2] = {3, 3}, faster[2] = {-3, -3};
    struct made m;
    struct decide_input in = policy;
    (void)state;
    struct decision d = adjudicated(3, NAN, false, cycles);
    assert_decided(&d, VERDICT_ENVIRONMENT);
    assert_non_null(strstr(d.reason, "the control kernel was not timed"));
    d = adjudicated(-3, NAN, false, faster);
    assert_decided(&d, VERDICT_PASS);
    d = adjudicated(0, NAN, false, cycles);
    assert_decided(&d, VERDICT_PASS);
    in.control_drift = NAN; /* one sequence has no other to drift from */
    in.first = make(&m, 5, -3, 0.1);
    d = decide(&in);
    assert_decided(&d, VERDICT_IMPROVEMENT);
}

static void a_device_with_cycles_must_give_them(void **state)
{
    struct made first, second;
    struct decide_input in = policy;
    (void)state;
    in.counts_cycles = true;
    in.first = make(&first, 5, 3, 0.1);
    in.confirmation = make(&second, 5, 3, 0.1);
    struct decision d = decide(&in);
    assert_decided(&d, VERDICT_ENVIRONMENT);
    assert_non_null(strstr(d.reason, "SM cycles were counted in 0 of 10 processes"));
    in.first = with_cycles(&first, 3);
    d = decide(&in);
    assert_decided(&d, VERDICT_REGRESSION);
    first.cycles[1] = NAN;
    d = decide(&in);
    assert_decided(&d, VERDICT_ENVIRONMENT);
    assert_non_null(strstr(d.reason, "in 4 of 10 processes"));
    in.confirmation = with_cycles(&second, 3);
    second.cycles[0] = NAN; /* eight of ten agree */
    d = decide(&in);
    assert_decided(&d, VERDICT_REGRESSION);
    in.counts_cycles = false; /* a host */
    in.first.d_cycles = in.confirmation.d_cycles = NULL;
    d = decide(&in);
    assert_decided(&d, VERDICT_REGRESSION);
}

/* A machine that is off does not make red of a case that nobody suspects. */
static void only_what_is_confirmed_is_adjudicated(void **state)
{
    static const double cycles[2] = {3, 3};
    (void)state;
    struct decision d = adjudicated(0, 0.02, true, cycles);
    assert_decided(&d, VERDICT_PASS);
}

/* ---- improvements ---------------------------------------------------------------------------- */

static struct decision decide_faster(bool confirm, bool same, size_t n, double centre, double half)
{
    struct made first, second;
    struct decide_input in = policy;
    in.confirm_faster = confirm;
    in.same = same ? "are the same file" : NULL;
    in.first = make(&first, 5, -3, 0.1);
    in.confirmation = make(&second, n, centre, half);
    return decide(&in);
}

static void an_improvement_that_moves_nothing_is_final_at_once(void **state)
{
    (void)state;
    struct decision d = decide_faster(false, false, 0, 0, 0);
    assert_decided(&d, VERDICT_IMPROVEMENT);
    assert_true(d.confirmed_ratio == 0);
    assert_near(d.ratio.value, 0.97);
    assert_true(d.ratio.lo < d.ratio.value && d.ratio.value < d.ratio.hi);
}

static void an_improvement_that_moves_the_best_is_confirmed(void **state)
{
    (void)state;
    struct decision d = decide_faster(true, false, 0, 0, 0);
    assert_asks(&d, DECIDE_CONFIRM, 5);
    assert_int_equal(d.verdict, VERDICT_PASS);
    d = decide_faster(true, false, 5, -2.5, 0.1);
    assert_decided(&d, VERDICT_IMPROVEMENT);
    assert_near(d.confirmed_ratio, 0.975);
    d = decide_faster(true, false, 5, -1, 0.1);
    assert_decided(&d, VERDICT_PASS);
    d = decide_faster(true, false, 5, 1.5, 3);
    assert_asks(&d, DECIDE_CONFIRM, 8);
    d = decide_faster(true, false, 20, 1.5, 3); /* its first sequence was a pass */
    assert_decided(&d, VERDICT_PASS);
    d = decide_faster(true, false, 5, 3, 0.1); /* faster, then slower */
    assert_decided(&d, VERDICT_NO_VERDICT);
}

static void the_same_file_is_never_an_improvement(void **state)
{
    (void)state;
    struct decision d = decide_faster(false, true, 0, 0, 0);
    assert_asks(&d, DECIDE_CONFIRM, 5);
    d = decide_faster(false, true, 5, -3, 0.1);
    assert_decided(&d, VERDICT_ENVIRONMENT);
    d = decide_faster(false, true, 5, 0, 0.1);
    assert_decided(&d, VERDICT_PASS);
}

static void an_improvement_of_the_machine_is_a_pass(void **state)
{
    static const double same[2] = {0, 0}, faster[2] = {-3, -3}, at_margin[2] = {-0.98, -0.98},
                        slower[2] = {3, 3};
    (void)state;
    struct decision d = adjudicated(-3, 0, false, faster);
    assert_decided(&d, VERDICT_IMPROVEMENT);
    d = adjudicated(-3, 0.01, false, faster);
    assert_decided(&d, VERDICT_PASS);
    d = adjudicated(-3, 0, false, same);
    assert_decided(&d, VERDICT_PASS);
    d = adjudicated(-3, 0, false, at_margin);
    assert_decided(&d, VERDICT_PASS);
    d = adjudicated(-3, 0, false, slower);
    assert_decided(&d, VERDICT_PASS);
}

/* ---- p90 ------------------------------------------------------------------------------------- */

struct p90_case {
    double time, p90;             /* first sequence, percent */
    double time_again, p90_again; /* confirmation */
};

static struct decision decide_p90(const struct p90_case *c, size_t n_again, double threshold,
                                  double drift)
{
    struct made first, second;
    struct decide_input in = policy;
    in.p90_threshold = threshold;
    in.control_drift = drift;
    make(&first, 5, c->time, 0.1);
    in.first = with_p90(&first, c->p90, 0.1);
    in.first = with_cycles(&first, c->time);
    make(&second, n_again, c->time_again, 0.1);
    in.confirmation = with_p90(&second, c->p90_again, 0.1);
    in.confirmation = with_cycles(&second, c->time_again);
    return decide(&in);
}

static void p90_is_reported_but_gated_only_when_asked(void **state)
{
    static const struct p90_case c = {0, 9, 0, 9};
    (void)state;
    struct decision d = decide_p90(&c, 0, 0, 0);
    assert_decided(&d, VERDICT_PASS);
    assert_near(d.ratio_p90.value, 1.09);
    assert_near(d.ratio_p90.hi, 1.091);
    d = decide_p90(&c, 0, 0.05, 0);
    assert_asks(&d, DECIDE_CONFIRM, 5);
    d = decide_p90(&c, 5, 0.05, 0);
    assert_decided(&d, VERDICT_REGRESSION); /* though cycles of the median are the same */
    d = decide_p90(&c, 5, 0.05, 0.01);
    assert_decided(&d, VERDICT_ENVIRONMENT);
    d = decide_p90(&c, 0, 0.2, 0);
    assert_decided(&d, VERDICT_PASS);
}

static void both_figures_must_pass_and_either_can_fail(void **state)
{
    /* Thresholds: 2 % and 5 %; 5.0 within 0.1 of it is open. */
    static const struct {
        struct p90_case c;
        size_t n_again;
        enum decide_next next;
        size_t next_n;
        enum verdict verdict;
    } rows[] = {
        {{0, 0, 0, 0}, 0, DECIDE_DONE, 0, VERDICT_PASS},
        {{0, 5, 0, 0}, 0, DECIDE_MORE_FIRST, 8, VERDICT_NO_VERDICT},
        {{2, 0, 0, 0}, 0, DECIDE_MORE_FIRST, 8, VERDICT_NO_VERDICT},
        {{3, 5, 0, 0}, 0, DECIDE_CONFIRM, 5, VERDICT_NO_VERDICT},
        {{2, 9, 0, 0}, 0, DECIDE_CONFIRM, 5, VERDICT_NO_VERDICT},
        {{-3, 5, 0, 0}, 0, DECIDE_MORE_FIRST, 8, VERDICT_NO_VERDICT},
        {{-3, 9, 0, 0}, 0, DECIDE_CONFIRM, 5, VERDICT_NO_VERDICT},
        {{-3, 0, 0, 0}, 0, DECIDE_DONE, 0, VERDICT_IMPROVEMENT},
        {{0, -9, 0, 0}, 0, DECIDE_DONE, 0, VERDICT_PASS},
        /* What one suspects the other must suspect as well. */
        {{3, 9, 3, 0}, 5, DECIDE_DONE, 0, VERDICT_REGRESSION},
        {{3, 9, 0, 9}, 5, DECIDE_DONE, 0, VERDICT_REGRESSION},
        {{3, 9, 0, 0}, 5, DECIDE_DONE, 0, VERDICT_PASS},
        {{3, 0, 0, 9}, 5, DECIDE_CONFIRM, 8, VERDICT_NO_VERDICT},
        {{3, 0, 0, 9}, 20, DECIDE_DONE, 0, VERDICT_NO_VERDICT},
        {{3, 5, 0, 9}, 20, DECIDE_DONE, 0, VERDICT_NO_VERDICT},
        /* Open twice is open; open once where the other sequence passed is not. */
        {{3, 5, 0, 5}, 5, DECIDE_CONFIRM, 8, VERDICT_NO_VERDICT},
        {{3, 5, 0, 0}, 5, DECIDE_DONE, 0, VERDICT_PASS},
        {{3, 0, 0, 5}, 5, DECIDE_DONE, 0, VERDICT_PASS},
        {{0, 9, 0, 5}, 20, DECIDE_DONE, 0, VERDICT_NO_VERDICT},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct decision d = decide_p90(&rows[i].c, rows[i].n_again, 0.05, 0);
        if (d.next != rows[i].next || d.next_n != rows[i].next_n || d.verdict != rows[i].verdict)
            fail_msg("row %zu: next %d to %zu, %s: %s", i, (int)d.next, d.next_n,
                     verdict_name(d.verdict), d.reason);
    }
}

/* ---- number-only mode ------------------------------------------------------------------------ */

static void added_spread_widens_both_bounds(void **state)
{
    struct made first, second;
    struct decide_input in = policy;
    (void)state;
    in.added_spread = 0.015;
    in.first = make(&first, 5, 0, 0);
    struct decision d = decide(&in);
    assert_decided(&d, VERDICT_PASS);
    assert_near(d.ratio.lo, exp(-0.015));
    assert_near(d.ratio.hi, exp(0.015));
    assert_near(d.mde, 0.03);
    in.first = make(&first, 5, 0.6, 0); /* 0.6 % and 1.5 % are over 2 % */
    d = decide(&in);
    assert_asks(&d, DECIDE_MORE_FIRST, 8);
    in.first = make(&first, 5, 2.4, 0); /* less 1.5 % that is below 1 % */
    d = decide(&in);
    assert_asks(&d, DECIDE_MORE_FIRST, 8);
    in.first = make(&first, 5, 2.7, 0);
    in.confirmation = make(&second, 5, 2.7, 0);
    d = decide(&in);
    assert_decided(&d, VERDICT_REGRESSION);
    in.confirmation = make(&second, 5, 2.4, 0);
    d = decide(&in);
    assert_asks(&d, DECIDE_CONFIRM, 8);
}

/* ---- input that no measurement gives --------------------------------------------------------- */

static void assert_fault(const struct decide_input *in, const char *reason)
{
    struct decision d = decide(in);
    assert_decided(&d, VERDICT_NO_VERDICT);
    assert_string_equal(d.reason, reason);
    assert_true(d.ratio.value == 0 && d.ratio_p90.value == 0 && d.mde == 0);
    assert_true(d.confirmed_ratio == 0);
}

static void absurd_policies_are_no_verdict(void **state)
{
    static const double bad[] = {-1, -INFINITY, INFINITY, NAN};
    struct made m;
    struct decide_input in;
    (void)state;
    make(&m, 5, 0, 0.1);
    struct decide_input good = policy;
    good.first = m.s;
    for (size_t i = 0; i < COUNT(bad); i++) {
        in = good;
        in.best_p50_ns = bad[i];
        assert_fault(&in, "no comparable best was measured");
        in = good;
        in.threshold = bad[i];
        assert_fault(&in, "the threshold is not between 0 and 1000 %");
        in = good;
        in.p90_threshold = bad[i];
        assert_fault(&in, "the threshold of p90 is not between 0 and 1000 %");
        in = good;
        in.floor_ns = bad[i];
        assert_fault(&in, "the floor is no time");
        in = good;
        in.control_drift = bad[i];
        if (!isnan(bad[i])) /* which is the control that was not timed: see above */
            assert_fault(&in, "the change of the control kernel is not known");
        in = good;
        in.added_spread = bad[i];
        assert_fault(&in, "the spread of the stored best is not known");
    }
    in = good;
    in.best_p50_ns = 0;
    assert_fault(&in, "no comparable best was measured");
    in = good;
    in.threshold = 0;
    assert_fault(&in, "the threshold is not between 0 and 1000 %");
    in.threshold = 10.1;
    assert_fault(&in, "the threshold is not between 0 and 1000 %");
}

static void absurd_sequences_are_no_verdict(void **state)
{
    struct made m, again;
    struct decide_input in = policy;
    (void)state;
    assert_fault(&in, "no process measured this case");
    in.first = make(&m, DECIDE_MAX_PROCESSES + 1, 0, 0.1);
    assert_fault(&in, "there are more than 64 processes in a sequence");
    in.first.n = SIZE_MAX;
    assert_fault(&in, "there are more than 64 processes in a sequence");
    in.first = (struct decide_sequence){.n = 5};
    assert_fault(&in, "the processes gave no ratios");
    in.first = make(&m, 5, 3, 0.1);
    in.confirmation = make(&again, DECIDE_MAX_PROCESSES + 1, 3, 0.1);
    assert_fault(&in, "there are more than 64 processes in a sequence");
    in.confirmation.n = 0;
    in.p90_threshold = 0.05;
    assert_fault(&in, "p90 is gated but was not measured");
}

static void absurd_figures_are_no_verdict(void **state)
{
    static const double bad[] = {INFINITY, -INFINITY, 14, -14, 1e300, NAN};
    struct made m, again;
    struct decide_input in = policy;
    (void)state;
    in.first = make(&m, 5, 3, 0.1);
    in.first = with_cycles(&m, 3);
    in.first = with_p90(&m, 3, 0.1);
    in.confirmation = make(&again, 5, 3, 0.1);
    in.confirmation = with_p90(&again, 3, 0.1);
    for (size_t i = 0; i < COUNT(bad); i++) {
        double kept = m.d[2];
        m.d[2] = bad[i];
        assert_fault(&in, "process 3 of the first sequence gave a ratio in time that is no "
                          "measurement");
        m.d[2] = kept;
        m.cycles[0] = bad[i];
        if (!isnan(bad[i])) /* which is a process without them */
            assert_fault(&in, "process 1 of the first sequence gave a ratio in cycles that is no "
                              "measurement");
        m.cycles[0] = 0.03;
        again.p90[4] = bad[i];
        assert_fault(&in, "process 5 of the confirmation gave a ratio in p90 that is no "
                          "measurement");
        again.p90[4] = 0.03;
    }
    m.d[0] = m.d[1] = m.d[2] = m.d[3] = m.d[4] = 13; /* half a million times slower is slower */
    struct decision d = decide(&in);
    assert_decided(&d, VERDICT_REGRESSION);
}

/* ---- words ----------------------------------------------------------------------------------- */

/* One case: what was measured, and the sentence about it. */
struct sentence {
    struct {
        size_t n;
        double centre, half;
    } first, second;
    double cycles, drift, floor_ns;
    bool same, confirm_faster;
    const char *reason;
};

static const struct sentence sentences[] = {
    {{5, 0.03, 0.05}, .reason = "+0.03 % [-0.02, +0.08] in 5 processes; threshold 2.00 %"},
    {{3, 0, 0.1}, .reason = "only 3 of at least 5 processes measured this case"},
    {{5, 2, 0.8},
     .reason = "the interval [+1.20, +2.80] % still holds the threshold of 2.00 % after 5 "
               "processes"},
    {{20, 2, 1.9},
     .reason = "the interval [+0.70, +3.30] % still holds the threshold of 2.00 % after 20 "
               "processes: this machine resolves 5.75 % for this case"},
    {{20, 2, 0.19},
     .reason = "the interval [+1.87, +2.13] % still holds the threshold of 2.00 % after 20 "
               "processes: the ratio is too near to it to tell on which side it lies"},
    {{20, 2.5, 0.19},
     .floor_ns = 3200,
     .reason = "the excess of 2500.0 ns (2.50 % [2.37, 2.63]) is not over the floor of 3200.0 ns "
               "after 20 processes: this machine resolves 3.20 % for this case"},
    {{5, 3.1, 0.15},
     .reason = "suspected: slower by 3.10 % [2.95, 3.25] in 5 processes, not confirmed by fresh "
               "ones yet; threshold 2.00 %"},
    {{5, 3.1, 0.15},
     {5, 3.05, 0.15},
     .cycles = 3,
     .reason = "slower by 3.10 % [2.95, 3.25] in 5 processes and by 3.05 % [2.90, 3.20] in 5 fresh "
               "ones; threshold 2.00 %"},
    {{5, 3.1, 0.15},
     {5, 0.05, 0.1},
     .reason = "suspected but not confirmed: slower by 3.10 % [2.95, 3.25] in 5 processes, but "
               "+0.05 % [-0.05, +0.15] in 5 fresh ones; threshold 2.00 %"},
    {{5, 3.1, 0.15},
     {20, 2, 1.9},
     .reason =
         "suspected but not confirmed: slower by 3.10 % [2.95, 3.25] in 5 processes, then the "
         "interval [+0.70, +3.30] % still holds the threshold of 2.00 % after 20 fresh ones: "
         "this machine resolves 5.75 % for this case"},
    {{5, 3.1, 0.15},
     {5, 3.05, 0.15},
     .cycles = 0.1,
     .reason = "slower by 3.10 % [2.95, 3.25] in 5 processes and by 3.05 % [2.90, 3.20] in 5 fresh "
               "ones, but cycles are the same (+0.10 %): the clock changed, not the code"},
    {{5, 3.1, 0.15},
     {5, 3.05, 0.15},
     .cycles = 3,
     .drift = 0.008,
     .reason = "slower by 3.10 % [2.95, 3.25] in 5 processes and by 3.05 % [2.90, 3.20] in 5 fresh "
               "ones, but the control kernel moved by 0.80 %"},
    {{5, 3.1, 0.15},
     {5, 3.05, 0.15},
     .cycles = 3,
     .drift = 0.008,
     .same = true,
     .reason = "slower by 3.10 % [2.95, 3.25] in 5 processes and by 3.05 % [2.90, 3.20] in 5 fresh "
               "ones, but candidate and best are the same file"},
    {{5, -3.1, 0.15},
     .cycles = -3,
     .reason = "faster by 3.10 % [2.95, 3.25] in 5 processes; threshold 2.00 %"},
    {{5, -3.1, 0.15},
     .cycles = -3,
     .confirm_faster = true,
     .reason = "faster by 3.10 % [2.95, 3.25] in 5 processes, not confirmed by fresh ones yet; "
               "threshold 2.00 %"},
    {{5, -3.1, 0.15},
     {5, -3, 0.15},
     .cycles = -3,
     .confirm_faster = true,
     .reason = "faster by 3.10 % [2.95, 3.25] in 5 processes and by 3.00 % [2.85, 3.15] in 5 fresh "
               "ones; threshold 2.00 %"},
    {{5, -3.1, 0.15},
     {5, -0.5, 0.15},
     .cycles = -3,
     .confirm_faster = true,
     .reason = "faster by 3.10 % [2.95, 3.25] in 5 processes, but not confirmed: -0.50 % [-0.65, "
               "-0.35] in 5 fresh ones; threshold 2.00 %"},
    {{5, -3.1, 0.15},
     .cycles = 0.1,
     .reason = "faster by 3.10 % [2.95, 3.25] in 5 processes, but cycles are the same (+0.10 %): "
               "the clock changed, not the code"},
};

static void every_reason_is_a_sentence_with_its_figures(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sentences); i++) {
        const struct sentence *s = &sentences[i];
        struct made first, second;
        struct decide_input in = policy;
        make(&first, s->first.n, s->first.centre, s->first.half);
        make(&second, s->second.n, s->second.centre, s->second.half);
        in.first = with_cycles(&first, s->cycles);
        in.confirmation = with_cycles(&second, s->cycles);
        in.control_drift = s->drift;
        in.floor_ns = s->floor_ns;
        in.same = s->same ? "are the same file" : NULL;
        in.confirm_faster = s->confirm_faster;
        struct decision d = decide(&in);
        assert_string_equal(d.reason, s->reason);
    }
}

static void reasons_name_p90(void **state)
{
    static const struct {
        struct p90_case c;
        size_t n_again;
        const char *reason;
    } rows[] = {
        {{0, 1, 0, 0},
         0,
         "+0.00 % [-0.10, +0.10] in 5 processes; threshold 2.00 %; p90 +1.00 % [+0.90, +1.10], "
         "threshold 5.00 %"},
        {{0, 5, 0, 0},
         0,
         "the p90 interval [+4.90, +5.10] % still holds the threshold of 5.00 % after 5 processes"},
        {{0, 9, 0, 9},
         5,
         "p90 slower by 9.00 % [8.90, 9.10] in 5 processes and by 9.00 % [8.90, 9.10] in 5 fresh "
         "ones; threshold 5.00 %"},
        {{0, 9, 0, 1},
         5,
         "suspected but not confirmed: p90 slower by 9.00 % [8.90, 9.10] in 5 processes, but p90 "
         "+1.00 % [+0.90, +1.10] in 5 fresh ones; threshold 5.00 %"},
        {{3, 0, 0, 9},
         20,
         "suspected but not confirmed: slower by 3.00 % [2.90, 3.10] in 5 processes, then p90 "
         "slower by 9.00 % [8.93, 9.07] in 20 fresh ones only"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct decision d = decide_p90(&rows[i].c, rows[i].n_again, 0.05, 0);
        assert_string_equal(d.reason, rows[i].reason);
    }
}

/* ---- the verdict of a run -------------------------------------------------------------------- */

static void the_first_of_2_1_4_3_wins(void **state)
{
    static const struct {
        enum verdict present[3];
        int code;
        enum verdict run;
    } rows[] = {
        {{VERDICT_PASS, VERDICT_IMPROVEMENT, VERDICT_PASS}, 0, VERDICT_PASS},
        {{VERDICT_NO_VERDICT, VERDICT_PASS, VERDICT_PASS}, 3, VERDICT_NO_VERDICT},
        {{VERDICT_NO_VERDICT, VERDICT_ENVIRONMENT, VERDICT_PASS}, 4, VERDICT_ENVIRONMENT},
        {{VERDICT_REGRESSION, VERDICT_ENVIRONMENT, VERDICT_NO_VERDICT}, 1, VERDICT_REGRESSION},
        {{VERDICT_REGRESSION, VERDICT_WRONG, VERDICT_ENVIRONMENT}, 2, VERDICT_WRONG},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t counts[VERDICT_COUNT] = {0};
        for (size_t j = 0; j < 3; j++)
            counts[rows[i].present[j]]++;
        assert_int_equal(verdict_exit_code(counts), rows[i].code);
        assert_int_equal(verdict_of_run(counts), rows[i].run);
    }
}

static void names_are_those_of_the_schema(void **state)
{
    (void)state;
    assert_string_equal(verdict_name(VERDICT_PASS), "pass");
    assert_string_equal(verdict_name(VERDICT_IMPROVEMENT), "improvement");
    assert_string_equal(verdict_name(VERDICT_REGRESSION), "regression");
    assert_string_equal(verdict_name(VERDICT_WRONG), "wrong");
    assert_string_equal(verdict_name(VERDICT_NO_VERDICT), "no-verdict");
    assert_string_equal(verdict_name(VERDICT_ENVIRONMENT), "environment");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_have_the_ranks_of_the_looks),
        cmocka_unit_test(bounds_of_no_sequence_are_zero),
        cmocka_unit_test(mde_follows_the_range),
        cmocka_unit_test(the_borders_of_the_rule),
        cmocka_unit_test(faster_mirrors_slower_in_logarithms),
        cmocka_unit_test(an_excess_up_to_the_floor_is_not_told_from_nothing),
        cmocka_unit_test(an_open_sequence_goes_from_look_to_look),
        cmocka_unit_test(a_sequence_between_two_looks_is_looked_at),
        cmocka_unit_test(too_few_processes_decide_nothing),
        cmocka_unit_test(one_outlier_is_outvoted_at_twelve),
        cmocka_unit_test(the_threshold_is_that_of_the_policy),
        cmocka_unit_test(a_suspicion_waits_for_its_confirmation),
        cmocka_unit_test(both_sequences_must_agree),
        cmocka_unit_test(an_open_confirmation_goes_on_to_no_verdict),
        cmocka_unit_test(a_confirmation_nobody_asked_for_is_not_looked_at),
        cmocka_unit_test(a_regression_is_adjudicated),
        cmocka_unit_test(a_large_difference_is_not_put_down_to_a_small_drift),
        cmocka_unit_test(without_cycles_their_rule_is_skipped),
        cmocka_unit_test(cycles_of_one_sequence_are_asked_alone),
        cmocka_unit_test(a_control_that_was_not_timed_is_an_objection),
        cmocka_unit_test(a_device_with_cycles_must_give_them),
        cmocka_unit_test(only_what_is_confirmed_is_adjudicated),
        cmocka_unit_test(an_improvement_that_moves_nothing_is_final_at_once),
        cmocka_unit_test(an_improvement_that_moves_the_best_is_confirmed),
        cmocka_unit_test(the_same_file_is_never_an_improvement),
        cmocka_unit_test(an_improvement_of_the_machine_is_a_pass),
        cmocka_unit_test(p90_is_reported_but_gated_only_when_asked),
        cmocka_unit_test(both_figures_must_pass_and_either_can_fail),
        cmocka_unit_test(added_spread_widens_both_bounds),
        cmocka_unit_test(absurd_policies_are_no_verdict),
        cmocka_unit_test(absurd_sequences_are_no_verdict),
        cmocka_unit_test(absurd_figures_are_no_verdict),
        cmocka_unit_test(every_reason_is_a_sentence_with_its_figures),
        cmocka_unit_test(reasons_name_p90),
        cmocka_unit_test(the_first_of_2_1_4_3_wins),
        cmocka_unit_test(names_are_those_of_the_schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
