/* SPDX-License-Identifier: Apache-2.0 */
/*
 * change_rates.c: prints how often noise raises a change point, and how soon a step is found.
 *
 * Usage: change_rates [SERIES]. Each value of a series is a look at the newest CHANGEPOINT_WINDOW
 * ones, from the first on, as the server does it. Change points that are returns count as none, and
 * one that moves by less than NEAR values is one.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "gate/decide/stats.h"
#include "server/watch/changepoint.h"
#include "tests/unit/noise.h"
#include "tests/unit/pairs.h"

/* As episodes.c has them. */
#define LEAST_TIME 0.008
#define LEAST_RATIO 0.005
#define RUNS 300
#define NEAR 8
#define AT_MOST_OFF 5 /* values between a step and where it is found */
#define MAX_SEEN 400

enum shape { NORMAL, CORRELATED, OUTLIERS, STUDENT3, MODES, DRIFT, SEASON, WALK, BURSTS, SHAPES };

static const char *const names[SHAPES] = {
    "normal",
    "AR(1) 0.5",
    "1 of 30 is +3 to +10 %",
    "Student t3",
    "25 % in a mode +2 %",
    "drift of 1 % over all",
    "season 0.5 % of 50",
    "random walk 0.1 %",
    "bursts of 8 at +5 %",
};

struct noise_source {
    enum shape shape;
    double sd, state;
    int left, index;
    double least; /* change that counts */
    struct rng rng;
};

static double student3(struct rng *r)
{
    double chi_square = -2 * log(rng_uniform(r)), z = rng_normal(r);
    return rng_normal(r) / sqrt((chi_square + z * z) / 3);
}

static double next_value(struct noise_source *s)
{
    double z = s->sd * rng_normal(&s->rng);
    int i = s->index++;
    switch (s->shape) {
    case CORRELATED:
        s->state = i == 0 ? z : 0.5 * s->state + sqrt(0.75) * z;
        return s->state;
    case OUTLIERS:
        return z + (rng_below(&s->rng, 30) == 0 ? log1p(0.03 + 0.07 * rng_uniform(&s->rng)) : 0);
    case STUDENT3:
        return s->sd * student3(&s->rng);
    case MODES:
        return z + (rng_below(&s->rng, 4) == 0 ? log1p(0.02) : 0);
    case DRIFT:
        return z + 0.01 * i / RUNS;
    case SEASON:
        return z + 0.005 * sin(i * 0.125664);
    case WALK:
        s->state += 0.001 * rng_normal(&s->rng);
        return z + s->state;
    case BURSTS:
        s->left = s->left > 0 ? s->left - 1 : rng_below(&s->rng, 60) == 0 ? 8 : 0;
        return z + (s->left > 0 ? log1p(0.05) : 0);
    case NORMAL:
    case SHAPES:
        break;
    }
    return z;
}

struct series {
    double least;
    double value[2 * RUNS];
    size_t n, from; /* where the window starts */
    struct changepoint found[CHANGEPOINT_MAX];
    size_t n_found;
};

static void look(struct series *s, double value)
{
    s->value[s->n++] = value;
    s->from = s->n > CHANGEPOINT_WINDOW ? s->n - CHANGEPOINT_WINDOW : 0;
    s->n_found = changepoint_find(s->value + s->from, s->n - s->from, s->least, s->found);
}

/* Would the server raise it in this look? */
static bool is_raised(const struct series *s, const struct changepoint *c)
{
    bool is_old = s->from > 0 && c->at + CHANGEPOINT_FRESH < CHANGEPOINT_WINDOW;
    return !c->is_return && !is_old;
}

struct alarms {
    size_t at[MAX_SEEN];
    int n;
};

/* Adds what is found for the first time. */
static void add_alarms(const struct series *s, struct alarms *a)
{
    for (size_t i = 0; i < s->n_found; i++) {
        size_t at = s->from + s->found[i].at;
        bool known = !is_raised(s, &s->found[i]) || a->n == MAX_SEEN;
        for (int k = 0; k < a->n; k++) {
            if (at < a->at[k] + NEAR && a->at[k] < at + NEAR) {
                known = true;
                a->at[k] = at;
            }
        }
        if (!known)
            a->at[a->n++] = at;
    }
}

static int count_false(enum shape shape, double sd, double least, uint64_t seed)
{
    struct noise_source source = {.shape = shape, .sd = sd};
    struct series s = {.least = least};
    struct alarms alarms = {.n = 0};
    rng_seed(&source.rng, seed);
    while (s.n < RUNS) {
        look(&s, next_value(&source));
        add_alarms(&s, &alarms);
    }
    return alarms.n;
}

/* Is the step among what the last look found? */
static bool finds_step(const struct series *s, size_t before, bool rises)
{
    for (size_t i = 0; i < s->n_found && s->n > before; i++) {
        size_t at = s->from + s->found[i].at;
        if (is_raised(s, &s->found[i]) && at <= before + AT_MOST_OFF &&
            before <= at + AT_MOST_OFF && (s->found[i].after > s->found[i].before) == rises)
            return true;
    }
    return false;
}

/* Values of the new level until the step is found, 0: it is not, in `behind` of them. */
static int delay(const struct noise_source *noise, size_t before, size_t behind, double step,
                 size_t outlier_ago)
{
    struct noise_source source = *noise;
    struct series s = {.least = noise->least};
    while (s.n < before + behind) {
        double value = next_value(&source) + (s.n >= before ? log1p(step) : 0);
        look(&s, value + (outlier_ago > 0 && s.n + outlier_ago == before ? log1p(0.2) : 0));
        if (finds_step(&s, before, step > 0))
            return (int)(s.n - before);
    }
    return 0;
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void print_delays(int *delays, int n, int n_series)
{
    qsort(delays, (size_t)n, sizeof(*delays), ascending);
    printf(" %3d %%", 100 * n / n_series);
    if (n > 0)
        printf(", %d (%d)", delays[n / 2], delays[n * 9 / 10]);
    printf(" |");
    fflush(stdout);
}

static void print_step(struct noise_source noise, size_t before, double step, size_t outlier_in,
                       int n_series)
{
    int *delays = calloc((size_t)n_series, sizeof(*delays)), n = 0;
    for (int i = 0; delays && i < n_series; i++) {
        rng_seed(&noise.rng, (uint64_t)i * 104729 + (uint64_t)noise.shape * 17 + before);
        size_t ago = outlier_in > 0 ? 1 + rng_below(&noise.rng, outlier_in) : 0;
        delays[n] = delay(&noise, before, 100, i % 2 && outlier_in == 0 ? -step : step, ago);
        n += delays[n] > 0;
    }
    print_delays(delays, n, n_series);
    free(delays);
}

static void print_false(const char *what, double least, const double sds[4], int n_series)
{
    printf("False alarms per 1,000 runs%s, %d series of %d runs\n\n"
           "| noise | sd %g %% | %g %% | %g %% | %g %% |\n| --- | --- | --- | --- | --- |\n",
           what, n_series, RUNS, 100 * sds[0], 100 * sds[1], 100 * sds[2], 100 * sds[3]);
    for (enum shape shape = NORMAL; shape < SHAPES; shape++) {
        printf("| %s |", names[shape]);
        for (size_t k = 0; k < 4; k++) {
            int n = 0;
            for (int i = 0; i < n_series; i++)
                n += count_false(shape, sds[k], least,
                                 (uint64_t)i * 7919 + (uint64_t)shape * 131 + 1);
            printf(" %.2f |", 1000.0 * n / RUNS / n_series);
            fflush(stdout);
        }
        printf("\n");
    }
}

#define N_STEPS 5
static const double steps[N_STEPS] = {0.005, 0.01, 0.02, 0.05, 0.2};
static const double ratio_steps[N_STEPS] = {0.004, 0.005, 0.006, 0.008, 0.01};

static void print_head(const char *what, const char *first, const double *sizes)
{
    printf("\n%s: found, median delay in runs (90 %%)\n\n| %s |", what, first);
    for (size_t k = 0; k < N_STEPS; k++)
        printf(" %g %% |", 100 * sizes[k]);
    printf("\n| --- | --- | --- | --- | --- | --- |\n");
}

/* ---- recorded runs of unchanged code ---- */

#define A_RUN 5 /* processes */
#define MAX_CASES 100
#define BEFORE 11 /* runs, of 21, before a step that is put into them */

/* Logarithms of one case, run by run. */
struct recorded {
    double ratio[RUNS], time[RUNS];
    size_t n;
};

static double middle(const struct pair_row *rows, bool of_time)
{
    double value[A_RUN];
    for (size_t i = 0; i < A_RUN; i++)
        value[i] = of_time ? log(rows[i].p50_ns) : rows[i].d;
    stats_sort(value, A_RUN);
    return value[A_RUN / 2];
}

static int read_recorded(struct recorded *out)
{
    struct pairs p;
    int n = 0;
    pairs_read_recording(&p);
    for (size_t at = 0; at < p.n && n < MAX_CASES;) {
        struct pair_group g = pairs_group(&p, at);
        struct recorded *r = &out[n];
        n += p.rows[at].injected == 0;
        for (r->n = 0; at + A_RUN <= g.to; at += A_RUN) {
            r->ratio[r->n] = middle(&p.rows[at], false);
            r->time[r->n++] = middle(&p.rows[at], true);
        }
        at = g.to;
    }
    pairs_free(&p);
    return n;
}

/* Alarms of all cases, with a step, up or down, put into the runs of each; and its delays. */
static int replay(const struct recorded *cases, int n_cases, bool of_time, double step, int *delays,
                  int *n_delays)
{
    int n_alarms = 0;
    *n_delays = 0;
    for (int i = 0; i < n_cases; i++) {
        struct series s = {.least = of_time ? LEAST_TIME : LEAST_RATIO};
        struct alarms alarms = {.n = 0};
        const double *values = of_time ? cases[i].time : cases[i].ratio;
        bool found = false;
        while (s.n < cases[i].n) {
            look(&s, values[s.n] + (s.n >= BEFORE ? log1p(i % 2 ? -step : step) : 0));
            add_alarms(&s, &alarms);
            if (!found && finds_step(&s, BEFORE, i % 2 == 0)) {
                found = true;
                delays[(*n_delays)++] = (int)s.n - BEFORE;
            }
        }
        n_alarms += alarms.n;
    }
    return n_alarms;
}

static void print_recorded(void)
{
    static struct recorded cases[MAX_CASES];
    int n = read_recorded(cases), delays[MAX_CASES], n_delays;
    printf("\nRecorded runs of unchanged code, %d cases of %zu runs\n\n"
           "| series | false alarms per 1,000 runs |",
           n, cases[0].n);
    for (size_t k = 0; k < N_STEPS; k++)
        printf(" step of %g %% |", 100 * steps[k]);
    printf("\n| --- | --- | --- | --- | --- | --- | --- |\n");
    for (int of_time = 0; of_time < 2; of_time++) {
        int alarms = replay(cases, n, of_time == 1, 0, delays, &n_delays);
        printf("| %s | %.2f |", of_time ? "p50" : "ratio to the baseline",
               1000.0 * alarms / n / (double)cases[0].n);
        for (size_t k = 0; k < N_STEPS; k++) {
            replay(cases, n, of_time == 1, steps[k], delays, &n_delays);
            print_delays(delays, n_delays, n);
        }
        printf("\n");
    }
}

static struct noise_source normal(double sd, double least)
{
    return (struct noise_source){.shape = NORMAL, .sd = sd, .least = least};
}

static void print_ratios(int n_series)
{
    static const size_t before[] = {5, 10, 20, 50, 150};
    static const double sds[] = {0.0005, 0.001, 0.0015, 0.002};
    printf("\n");
    print_false(", ratios to the baseline", LEAST_RATIO, sds, n_series);
    print_head("Steps of ratios to the baseline", "runs before, sd", ratio_steps);
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < 3; j++) {
            printf("| %zu, %g %% |", before[i], 100 * sds[j]);
            for (size_t k = 0; k < N_STEPS; k++)
                print_step(normal(sds[j], LEAST_RATIO), before[i], ratio_steps[k], 0, n_series);
            printf("\n");
        }
    }
}

static void print_steps(int n_series)
{
    static const size_t before[] = {3, 5, 10, 20, 50, 150};
    static const double sds[] = {0.001, 0.002, 0.005, 0.01};
    static const size_t ago[] = {3, 10, 25};
    print_head("Steps after so many runs of normal noise", "runs, sd", steps);
    for (size_t i = 0; i < 6; i++) {
        for (size_t j = 0; j < 4; j++) {
            printf("| %zu, %g %% |", before[i], 100 * sds[j]);
            for (size_t k = 0; k < N_STEPS; k++)
                print_step(normal(sds[j], LEAST_TIME), before[i], steps[k], 0, n_series);
            printf("\n");
        }
    }
    print_head("Steps after 100 runs of other noise", "noise, sd", steps);
    for (enum shape shape = CORRELATED; shape <= MODES; shape++) {
        for (size_t j = 1; j < 4; j++) {
            printf("| %s, %g %% |", names[shape], 100 * sds[j]);
            for (size_t k = 0; k < N_STEPS; k++)
                print_step((struct noise_source){.shape = shape, .sd = sds[j], .least = LEAST_TIME},
                           100, steps[k], 0, n_series);
            printf("\n");
        }
    }
    print_head("Steps after 60 runs, sd 0.3 %, one of the last at +20 %", "one of the last", steps);
    for (size_t i = 0; i < 3; i++) {
        printf("| %zu |", ago[i]);
        for (size_t k = 0; k < N_STEPS; k++)
            print_step(normal(0.003, LEAST_TIME), 60, steps[k], ago[i], n_series);
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    long n_series = argc > 1 ? strtol(argv[1], NULL, 10) : 300;
    if (n_series < 1 || n_series > 100000) {
        fprintf(stderr, "Usage: change_rates [SERIES]\n");
        return 64;
    }
    static const double sds[] = {0.001, 0.002, 0.005, 0.01};
    print_false("", LEAST_TIME, sds, (int)n_series);
    print_steps((int)n_series);
    print_ratios((int)n_series);
    print_recorded();
    return 0;
}
