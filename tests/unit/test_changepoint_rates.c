/*
 * test_changepoint_rates.c: how often noise alone raises a change point, and how soon a step of
 * +2 % is raised.
 *
 * A series is 150 runs long and looked at with each run from the 31st on, 120 times. "False": it
 * raised any change point at any look, young ones too, without a change. "Found": a step of 2 % at
 * run 91 was raised within 3 runs of its place; the delay counts the runs of the new level, the one
 * that raised it included.
 *
 *                        false in 120 looks   found     median delay
 *   normal, sd 0.3 %          0 of 1000       100.0 %        4
 *   normal, sd 0.5 %          0 of 1000       100.0 %        4
 *   normal, sd 1 %            1 of 1000        97.2 %        8
 *   t4, scale 0.3 %           0 of 1000       100.0 %        4
 *   t4, scale 0.5 %           0 of 1000       100.0 %        5
 *   t3, scale 0.5 %           0 of 1000        98.4 %        6
 *   10 % in a mode +4 %       0 of 1000        72.6 %       10
 *   25 % in a mode +4 %       0 of 1000         9.6 %       12
 *   50 % in a mode +4 %       0 of 1000        10.2 %        9
 *   AR(1) 0.5, sd 0.3 %       0 of 1000       100.0 %        9
 *   AR(1) 0.5, sd 0.5 %       6 of 1000        99.4 %        9
 *   AR(1) 0.5, sd 1 %        32 of 1000        71.2 %       18
 *
 * A step of 2 % among modes that are 4 % apart is rightly not told. What the parts are worth: with
 * no correlation in the judgement, AR(1) 0.5 at 0.5 % raises 80 false ones of 1000; without ranks,
 * a mode of 10 % raises 94 and t4 at 0.5 % raises 21.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/watch/changepoint.h"
#include "unit/noise.h"

#define SERIES 1000     /* without a change */
#define STEP_SERIES 500 /* with one */
#define RUNS 150
#define FIRST_LOOK 30
#define STEP_AT 90
#define STEP 0.02
#define NEAR 3

struct model {
    const char *name;
    double sd;     /* of a run; the scale where tails are heavy */
    int degrees;   /* of Student's t; 0: normal */
    double memory; /* of an AR(1) process */
    double slow;   /* share of runs in a mode that is 4 % slower */
    /* what was measured, and may not get worse */
    int most_false;  /* of SERIES */
    int least_found; /* of STEP_SERIES */
    int most_delay;  /* median */
};

static const struct model models[] = {
    {"normal, sd 0.3 %", 0.003, 0, 0, 0, 0, 500, 4},
    {"normal, sd 0.5 %", 0.005, 0, 0, 0, 0, 500, 4},
    {"normal, sd 1 %", 0.010, 0, 0, 0, 1, 480, 8},
    {"t4, scale 0.3 %", 0.003, 4, 0, 0, 0, 500, 4},
    {"t4, scale 0.5 %", 0.005, 4, 0, 0, 0, 498, 5},
    {"t3, scale 0.5 %", 0.005, 3, 0, 0, 0, 488, 6},
    {"10 % in a mode +4 %", 0.002, 0, 0, 0.10, 0, 355, 10},
    {"25 % in a mode +4 %", 0.002, 0, 0, 0.25, 0, 40, 13},
    {"50 % in a mode +4 %", 0.002, 0, 0, 0.50, 0, 40, 12},
    {"AR(1) 0.5, sd 0.3 %", 0.003, 0, 0.5, 0, 0, 498, 9},
    {"AR(1) 0.5, sd 0.5 %", 0.005, 0, 0.5, 0, 6, 492, 9},
    {"AR(1) 0.5, sd 1 %", 0.010, 0, 0.5, 0, 32, 350, 18},
};

static double student3(struct rng *r)
{
    double chi_square = -2 * log(rng_uniform(r)), z = rng_normal(r);
    return rng_normal(r) / sqrt((chi_square + z * z) / 3);
}

static double innovation(const struct model *m, struct rng *r)
{
    double x = m->degrees == 4 ? rng_student4(r) : m->degrees == 3 ? student3(r) : rng_normal(r);
    return m->sd * x;
}

/* Did the look show a change at about the step, if there is one, or any, if there is none? */
static bool shows(const struct changepoint *found, size_t n, double step)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= step == 0 ||
               (llabs(found[i].position - STEP_AT) <= NEAR && found[i].after > found[i].before);
    return any;
}

/* Index of the run that raised it, -1: none. */
static int raised_by(const struct model *m, double step, uint64_t seed)
{
    struct rng rng;
    struct changepoint_tail tail;
    struct changepoint found[CHANGEPOINT_MAX];
    rng_seed(&rng, seed);
    changepoint_start(&tail, 0);
    double noise = innovation(m, &rng);
    for (int i = 0; i < RUNS; i++) {
        noise = m->memory * noise + sqrt(1 - m->memory * m->memory) * innovation(m, &rng);
        double x = noise + (i >= STEP_AT ? log1p(step) : 0);
        if (m->slow > 0 && rng_uniform(&rng) < m->slow)
            x += log1p(0.04);
        if (i < FIRST_LOOK)
            changepoint_push(&tail, x);
        else if (shows(found, changepoint_append(&tail, x, found), step))
            return i;
    }
    return -1;
}

/* Runs n series of the model; the median delay of those that raised one. */
static int count_raised(const struct model *m, int n, double step, int *median_delay)
{
    int delays[RUNS] = {0}, raised = 0;
    for (int i = 0; i < n; i++) {
        int by = raised_by(m, step, (uint64_t)(i + 1) * 1000003 + (step > 0));
        raised += by >= 0;
        if (by >= STEP_AT)
            delays[by - STEP_AT + 1]++;
    }
    *median_delay = 0;
    for (int seen = 0; *median_delay + 1 < RUNS && 2 * seen < raised;)
        seen += delays[++*median_delay];
    return raised;
}

static void rates_are_as_stated(void **state)
{
    int worse = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        const struct model *m = &models[i];
        int delay = 0;
        int false_ones = count_raised(m, SERIES, 0, &delay);
        int found = count_raised(m, STEP_SERIES, STEP, &delay);
        printf("%-20s false %d of %d (%.2f %%), found %d (%.1f %%), median delay %d\n", m->name,
               false_ones, SERIES, 100.0 * false_ones / SERIES, found, 100.0 * found / STEP_SERIES,
               delay);
        worse += false_ones > m->most_false || found < m->least_found || delay > m->most_delay;
    }
    assert_int_equal(worse, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rates_are_as_stated)};
    return cmocka_run_group_tests_name("changepoint_rates", tests, NULL, NULL);
}
