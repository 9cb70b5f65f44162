/* test_changepoint.c: shapes with a known answer (those of LNT's and asv's tests, and more). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/watch/changepoint.h"
#include "unit/noise.h"

#define MAX_VALUES 1200
#define MAX_SEEN 16

/* A series in the making, and what became of it. */
struct play {
    struct rng rng;
    struct changepoint_tail tail;
    int64_t n;
    /* change points that stood at the end of the series, and all that ever settled */
    struct changepoint last[CHANGEPOINT_MAX], settled[MAX_SEEN];
    size_t n_last, n_settled;
    size_t n_raised; /* looks that showed any */
    int64_t first_raised;
};

static void begin(struct play *p, uint64_t seed)
{
    memset(p, 0, sizeof(*p));
    rng_seed(&p->rng, seed);
    changepoint_start(&p->tail, 0);
    p->first_raised = -1;
}

static void add(struct play *p, double value)
{
    p->n_last = changepoint_append(&p->tail, value, p->last);
    for (size_t i = 0; i < p->n_last; i++) {
        assert_in_range(p->last[i].position, 0, p->n);
        assert_true(i == 0 || p->last[i].position > p->last[i - 1].position);
        if (p->last[i].settled && p->n_settled < MAX_SEEN)
            p->settled[p->n_settled++] = p->last[i];
    }
    if (p->n_last > 0 && p->n_raised++ == 0)
        p->first_raised = p->n;
    p->n++;
}

static void add_level(struct play *p, int n, double level, double sd)
{
    for (int i = 0; i < n; i++)
        add(p, level + sd * rng_normal(&p->rng));
}

/* A slower mode, 4 % up, at random; `every` > 0: at every so many values instead. */
static void add_bimodal(struct play *p, int n, double level, double share, int every, double sd)
{
    for (int i = 0; i < n; i++) {
        bool slow = every > 0 ? i % every == 0 : rng_uniform(&p->rng) < share;
        add(p, level + (slow ? log1p(0.04) : 0) + sd * rng_normal(&p->rng));
    }
}

static void assert_nothing(const struct play *p)
{
    assert_int_equal(p->n_raised, 0);
    assert_int_equal(p->n_settled, 0);
}

/* One change in all, settled, at about that position and of about that size. */
static void assert_one(const struct play *p, int64_t at, int64_t within, double shift,
                       double shift_within)
{
    assert_int_equal(p->n_settled, 1);
    assert_in_range(p->settled[0].position, at - within, at + within);
    double got = p->settled[0].after - p->settled[0].before;
    assert_true(fabs(got - shift) <= shift_within);
    assert_true(p->settled[0].p <= 1e-5);
}

static void flat_is_nothing(void **state)
{
    struct play p;
    (void)state;
    begin(&p, 1);
    add_level(&p, 300, 3.0, 0);
    assert_nothing(&p);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        begin(&p, seed);
        add_level(&p, 300, 0, 0.05);
        assert_nothing(&p);
    }
}

static void a_step_is_found_with_its_size(void **state)
{
    struct play p;
    (void)state;
    for (int down = 0; down < 2; down++) {
        double shift = log1p(down ? -0.05 : 0.05);
        begin(&p, 2);
        add_level(&p, 60, 1.0, 0);
        assert_nothing(&p);
        add_level(&p, 60, 1.0 + shift, 0);
        assert_one(&p, 60, 0, shift, 1e-12);
        begin(&p, 3);
        add_level(&p, 60, 1.0, 0.003);
        add_level(&p, 60, 1.0 + shift, 0.003);
        assert_one(&p, 60, 1, shift, 0.003);
    }
}

/* Values as a coarse clock gives them: rows of equal ones, of two levels that hardly differ. */
static void a_step_between_rows_of_equal_values_is_found(void **state)
{
    static const struct {
        int row;
        double height;
    } rows[] = {{12, 0}, {6, 1e-4}, {4, 1e-3}, {3, 1e-3}, {2, 1e-5}};
    struct play p;
    (void)state;
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        begin(&p, 1);
        for (int i = 0; i < 24; i++)
            add(&p, 10.0625 + (i < 12 ? 0 : log1p(0.30)) + i / rows[k].row % 2 * rows[k].height);
        assert_int_equal(p.n_last, 1);
        assert_int_equal(p.last[0].position, 12);
        assert_true(fabs(p.last[0].after - p.last[0].before - log1p(0.30)) < 0.002);
    }
}

static void a_step_under_much_noise_is_found(void **state)
{
    struct play p;
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        begin(&p, seed);
        add_level(&p, 60, 0, 0.05);
        add_level(&p, 60, log1p(0.5), 0.05);
        assert_one(&p, 60, 1, log1p(0.5), 0.04);
    }
}

/* 1 % is the least that counts: 0.8 % is no change, however sure. */
static void a_small_step_is_nothing(void **state)
{
    struct play p;
    (void)state;
    begin(&p, 4);
    add_level(&p, 60, 0, 0.0005);
    add_level(&p, 60, log1p(0.008), 0.0005);
    assert_nothing(&p);
    add_level(&p, 60, log1p(0.008) + log1p(0.012), 0.0005);
    assert_one(&p, 120, 0, log1p(0.012), 0.0005);
}

/* Each below 1 %, and told as soon as they are more than that together. */
static void small_steps_add_up(void **state)
{
    struct play p;
    (void)state;
    begin(&p, 4);
    add_level(&p, 60, 0, 0.0005);
    add_level(&p, 60, 0.007, 0.0005);
    assert_nothing(&p);
    add_level(&p, 60, 0.014, 0.0005);
    assert_int_equal(p.n_settled, 1);
    assert_true(p.settled[0].drift);
    assert_true(fabs(p.settled[0].after - p.settled[0].before - 0.014) < 0.0005);
}

static void two_modes_are_no_change(void **state)
{
    struct play p;
    (void)state;
    for (int every = 0; every <= 4; every++) {
        begin(&p, 5);
        if (every != 1)
            add_bimodal(&p, 300, 0, 0.3, every, 0.002);
        assert_nothing(&p);
    }
}

static void two_modes_and_a_step_are_one_change(void **state)
{
    struct play p;
    (void)state;
    begin(&p, 6);
    add_bimodal(&p, 80, 0, 0.3, 0, 0.002);
    add_bimodal(&p, 80, log1p(0.10), 0.3, 0, 0.002);
    assert_one(&p, 80, 1, log1p(0.10), 0.01);
    begin(&p, 7);
    add_bimodal(&p, 80, 0, 0, 2, 0.002);
    add_bimodal(&p, 80, log1p(0.10), 0, 2, 0.002);
    assert_one(&p, 80, 1, log1p(0.10), 0.045); /* a median lies in this mode or that */
}

/* The modes of one level overlap with those of the other, until the step is higher than they. */
static void overlapping_modes_hide_a_step_that_is_smaller(void **state)
{
    struct play p;
    (void)state;
    begin(&p, 8);
    add_bimodal(&p, 100, 0, 0.5, 0, 0.01);
    add_bimodal(&p, 100, log1p(0.02), 0.5, 0, 0.01);
    assert_int_equal(p.n_settled, 0);
    add_bimodal(&p, 100, log1p(0.12), 0.5, 0, 0.01);
    assert_one(&p, 200, 1, log1p(0.10), 0.03);
}

static void spikes_are_nothing(void **state)
{
    struct play p;
    (void)state;
    for (int width = 1; width <= 2; width++) {
        begin(&p, 9);
        for (int i = 0; i < 5; i++) {
            add_level(&p, 40, 0, 0.002);
            add_level(&p, width, log1p(0.5), 0.002);
        }
        add_level(&p, 40, 0, 0.002);
        assert_nothing(&p);
    }
}

/* Up or down 5 % over 250 runs, and then flat: told, though no window of it shows a step of 1 %. */
static void a_slow_drift_is_found(void **state)
{
    struct play p;
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        begin(&p, 10);
        add_level(&p, 100, 0, 0.002);
        for (int i = 0; i < 250; i++)
            add_level(&p, 1, sign * 0.05 * i / 250, 0.002);
        add_level(&p, 100, sign * 0.05, 0.002);
        assert_in_range(p.n_settled, 2, 5);
        for (size_t i = 0; i < p.n_settled; i++) {
            assert_in_range(p.settled[i].position, 100, 355);
            assert_true(sign * (p.settled[i].after - p.settled[i].before) >= 0.01);
        }
    }
    /* 2 % over 600 runs: only the segment's start against its end tells. */
    begin(&p, 11);
    for (int i = 0; i < 600; i++)
        add_level(&p, 1, 0.02 * i / 600, 0.002);
    assert_in_range(p.n_settled, 1, 2);
    assert_true(p.settled[0].drift);
    assert_true(p.settled[0].after - p.settled[0].before >= 0.01);
}

static void steps_under_autocorrelated_noise_are_found(void **state)
{
    struct play p;
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        begin(&p, seed);
        double previous = 0;
        for (int i = 0; i < 240; i++) {
            previous = 0.5 * previous + 0.003 * rng_normal(&p.rng);
            add(&p, previous + (i / 80 == 1 ? log1p(0.04) : 0));
        }
        assert_int_equal(p.n_settled, 2);
        assert_in_range(p.settled[0].position, 78, 82);
        assert_in_range(p.settled[1].position, 158, 162);
    }
}

static void several_steps_are_found_in_their_order(void **state)
{
    static const double levels[] = {0, 0.03, 0.01, -0.04, 0.05};
    struct play p;
    (void)state;
    begin(&p, 12);
    for (size_t i = 0; i < 5; i++)
        add_level(&p, 12, levels[i], 0.001);
    add_level(&p, 60, levels[4], 0.001);
    assert_int_equal(p.n_settled, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(p.settled[i].position, 12 * (i + 1));
        double shift = p.settled[i].after - p.settled[i].before;
        assert_true(fabs(shift - (levels[i + 1] - levels[i])) < 0.002);
    }
}

/* It is raised by the fourth value of the new level, stays young, and settles with the 25th. */
static void a_change_point_is_young_first(void **state)
{
    struct play p;
    (void)state;
    begin(&p, 13);
    add_level(&p, 80, 0, 0.002);
    for (int i = 0; i < 40; i++) {
        add_level(&p, 1, log1p(0.05), 0.002);
        assert_int_equal(p.n_last, i >= 3 && i < 25 ? 1 : 0);
        if (p.n_last == 1)
            assert_int_equal(p.last[0].settled, i == 24);
    }
    assert_one(&p, 80, 0, log1p(0.05), 0.002);
}

/* A level that returns at once leaves nothing behind but the short time when it was believed. */
static void a_young_change_point_may_vanish_from_the_newest_values(void **state)
{
    struct play p;
    (void)state;
    begin(&p, 14);
    add_level(&p, 80, 0, 0.002);
    add_level(&p, 6, log1p(0.05), 0.002);
    assert_int_equal(p.n_last, 1);
    add_level(&p, 60, 0, 0.002);
    assert_int_equal(p.n_last, 0);
    assert_int_equal(p.n_settled, 2);
    assert_int_equal(p.settled[0].position, 80);
    assert_int_equal(p.settled[1].position, 86);
}

static void no_segment_crosses_a_border(void **state)
{
    struct play p;
    (void)state;
    begin(&p, 15);
    add_level(&p, 60, 0, 0.002);
    changepoint_start(&p.tail, p.n); /* a new driver, 10 % slower */
    add_level(&p, 60, log1p(0.10), 0.002);
    assert_nothing(&p);
    add_level(&p, 60, log1p(0.15), 0.002);
    assert_int_equal(p.n_settled, 1);
    assert_int_equal(p.settled[0].position, 120);
}

static bool same_tail(const struct changepoint_tail *a, const struct changepoint_tail *b)
{
    return a->first == b->first && a->cut == b->cut && a->segment == b->segment && a->n == b->n &&
           a->n_reference == b->n_reference &&
           memcmp(a->reference, b->reference, a->n_reference * sizeof(double)) == 0 &&
           memcmp(a->value, b->value, a->n * sizeof(double)) == 0;
}

/* A tail that was filled again from what is on record goes on as the one that was there. */
static void a_tail_is_resumed_exactly(void **state)
{
    static double value[MAX_VALUES];
    struct play p;
    (void)state;
    begin(&p, 16);
    for (int i = 0; i < MAX_VALUES; i++) {
        value[i] = (i / 200 % 2 ? 0.03 : i >= 900 ? 0.006 : 0) + 0.003 * rng_normal(&p.rng);
        add(&p, value[i]);
        int64_t segment = p.tail.segment, cut = p.tail.cut, first = i + 1 - CHANGEPOINT_TAIL;
        first = first > cut ? first : cut;
        int64_t before = first - segment;
        struct changepoint_tail again;
        changepoint_resume(&again, segment, value + segment,
                           before < CHANGEPOINT_SETTLED ? (size_t)before : CHANGEPOINT_SETTLED, cut,
                           first);
        for (int64_t k = first; k <= i; k++)
            changepoint_push(&again, value[k]);
        assert_true(same_tail(&again, &p.tail));
    }
    assert_int_equal(p.n_settled, 5);
}

/* What the newest values of a tail say to be quiet, the whole of it says too. */
static void what_is_quiet_finds_nothing(void **state)
{
    static double value[MAX_VALUES];
    size_t n_quiet = 0, n_seen = 0;
    struct play p;
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        begin(&p, seed);
        for (int i = 0; i < MAX_VALUES; i++) {
            double level = i / 250 % 2 ? 0.03 : i >= 600 && i < 700 ? (i - 600) * 2e-4 : 0.02;
            value[i] = level + 0.002 * rng_normal(&p.rng);
            int64_t segment = p.tail.segment, cut = p.tail.cut;
            size_t n = (size_t)(i + 1 - cut);
            bool whole = segment == cut && n < CHANGEPOINT_WINDOW;
            if (n > CHANGEPOINT_WINDOW)
                n = CHANGEPOINT_WINDOW;
            bool quiet =
                i + 1 - segment >= CHANGEPOINT_SETTLED + CHANGEPOINT_WINDOW || whole
                    ? changepoint_is_quiet(value + i + 1 - n, n, whole ? NULL : value + segment)
                    : false;
            add(&p, value[i]);
            n_quiet += quiet;
            n_seen += p.n_last > 0;
            assert_true(!quiet || p.n_last == 0);
            assert_true(!quiet || (p.tail.segment == segment && p.tail.cut == cut));
        }
    }
    assert_true(n_seen > 100);
    assert_true(n_quiet > MAX_VALUES * 2);
}

/* Simpson's rule over the density, as an oracle. */
static double tail_of_student(double t, double df)
{
    const int steps = 20000;
    const double far = t + 400;
    double scale = exp(lgamma((df + 1) / 2) - lgamma(df / 2)) / sqrt(df * M_PI);
    double sum = 0, h = (far - t) / steps;
    for (int i = 0; i <= steps; i++) {
        double x = t + i * h, weight = i == 0 || i == steps ? 1 : i % 2 ? 4 : 2;
        sum += weight * pow(1 + x * x / df, -(df + 1) / 2);
    }
    return 2 * scale * sum * h / 3;
}

/* Values that alternate have no positive correlation, so p is the plain t-test's. */
static void p_is_that_of_students_t(void **state)
{
    struct play p;
    (void)state;
    begin(&p, 17);
    for (int i = 0; i < 40; i++)
        add(&p, i % 2 ? 0.01 : -0.01);
    for (int i = 0; i < 20; i++)
        add(&p, 0.025 + (i % 2 ? 0.01 : -0.01));
    assert_int_equal(p.n_last, 1);
    assert_int_equal(p.last[0].position, 40);
    double spread = sqrt(60 * 1e-4 / 58 * (1 / 40.0 + 1 / 20.0));
    double expected = tail_of_student(0.025 / spread, 58);
    assert_true(fabs(p.last[0].p / expected - 1) < 1e-5);
}

/* What is no number at all must do no more than find nothing. */
static void strange_values_do_no_harm(void **state)
{
    static const double strange[] = {NAN, INFINITY, -INFINITY, 1e308, -1e308, 0};
    struct play p;
    (void)state;
    begin(&p, 18);
    for (int i = 0; i < 400; i++)
        p.n_last = changepoint_append(&p.tail, strange[rng_below(&p.rng, 6)], p.last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_is_nothing),
        cmocka_unit_test(a_step_is_found_with_its_size),
        cmocka_unit_test(a_step_between_rows_of_equal_values_is_found),
        cmocka_unit_test(a_step_under_much_noise_is_found),
        cmocka_unit_test(a_small_step_is_nothing),
        cmocka_unit_test(small_steps_add_up),
        cmocka_unit_test(two_modes_are_no_change),
        cmocka_unit_test(two_modes_and_a_step_are_one_change),
        cmocka_unit_test(overlapping_modes_hide_a_step_that_is_smaller),
        cmocka_unit_test(spikes_are_nothing),
        cmocka_unit_test(a_slow_drift_is_found),
        cmocka_unit_test(steps_under_autocorrelated_noise_are_found),
        cmocka_unit_test(several_steps_are_found_in_their_order),
        cmocka_unit_test(a_change_point_is_young_first),
        cmocka_unit_test(a_young_change_point_may_vanish_from_the_newest_values),
        cmocka_unit_test(no_segment_crosses_a_border),
        cmocka_unit_test(a_tail_is_resumed_exactly),
        cmocka_unit_test(what_is_quiet_finds_nothing),
        cmocka_unit_test(p_is_that_of_students_t),
        cmocka_unit_test(strange_values_do_no_harm),
    };
    return cmocka_run_group_tests_name("changepoint", tests, NULL, NULL);
}
