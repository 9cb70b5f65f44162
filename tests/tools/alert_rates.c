/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alert_rates.c: prints what alerts do in whole histories: what is raised, what stands at the end,
 * and how often alerts change their state. Each value is a run that is stored and looked at.
 *
 * Usage: alert_rates            made-up series: flat ones, and steps in noise that misleads
 *        alert_rates FOLDER     labelled series: annotations.json and SERIES.json of the Turing
 *                               Change Point Dataset (van den Burg and Williams, 2020)
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/buf.h"
#include "gate/base/file.h"
#include "gate/store/store_private.h"
#include "tests/unit/unit.h"
#include "tests/unit/watch_history.h"

#define MAX_VALUES 1000
#define MAX_CHANGES 100
#define MARGIN 5 /* values between a label and the change that it is */
#define LABELLED_NOISE 0.005
#define CONTROL_SD 0.0005
#define LEVEL_NS 20000.0

struct series {
    double value[MAX_VALUES]; /* logarithms */
    size_t n;
};

/* Places of changes of level, ascending. */
struct changes {
    int at[MAX_CHANGES];
    size_t n;
};

struct outcome {
    struct changes raised, standing;
    int n_alerts, n_withdrawn, n_open, n_reopened, most_reopened, n_steps;
};

static void add_change(struct changes *c, int at)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->at[i] == at)
            return;
    }
    if (c->n < MAX_CHANGES)
        c->at[c->n++] = at;
}

/* Run ids are places: runs come in their order. */
static void read_alerts(struct store *s, struct outcome *out)
{
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(
        sqlite3_prepare_v2(s->db,
                           "SELECT a.run_id - 1, coalesce(a.end_run_id - 1, -1), a.state = 'fixed' "
                           " AND a.end_run_id IS NULL, a.state = 'new', (SELECT count(*) FROM "
                           " alert_event e WHERE e.alert_id = a.id AND e.from_state = 'fixed'), "
                           "(SELECT count(*) FROM alert_event e WHERE e.alert_id = a.id) "
                           "FROM alert a WHERE a.kind IN ('regression', 'improvement')",
                           -1, &stmt, NULL),
        SQLITE_OK);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        int at = sqlite3_column_int(stmt, 0), end = sqlite3_column_int(stmt, 1);
        bool withdrawn = sqlite3_column_int(stmt, 2) != 0;
        int reopened = sqlite3_column_int(stmt, 4);
        add_change(&out->raised, at);
        if (end >= 0)
            add_change(&out->raised, end);
        if (!withdrawn)
            add_change(&out->standing, at);
        if (!withdrawn && end >= 0)
            add_change(&out->standing, end);
        out->n_alerts++;
        out->n_withdrawn += withdrawn;
        out->n_open += sqlite3_column_int(stmt, 3);
        out->n_reopened += reopened;
        out->most_reopened = reopened > out->most_reopened ? reopened : out->most_reopened;
        out->n_steps += sqlite3_column_int(stmt, 5);
    }
    sqlite3_finalize(stmt);
}

static struct outcome play(const struct series *series, double control_sd)
{
    void *state = NULL;
    struct outcome out = {.n_alerts = 0};
    assert_int_equal(store_set_up(&state), 0);
    struct history h = history_begin(&state);
    struct rng control;
    rng_seed(&control, 11);
    assert_int_equal(store_begin(h.s, &h.f->err), GATE_OK);
    h.sd = 0;
    h.spec.epoch = "one";
    h.spec.contract = "one";
    for (size_t i = 0; i < series->n; i++) {
        h.spec.control_ns = 1e6 * exp(control_sd * rng_normal(&control));
        history_add(&h, 1, LEVEL_NS * exp(series->value[i]));
    }
    read_alerts(h.s, &out);
    store_end(h.s, GATE_INTERNAL, NULL);
    store_close(h.s);
    store_tear_down(&state);
    return out;
}

/* ---- labelled series ---- */

static cJSON *read_json(const char *folder, const char *name)
{
    char path[600];
    struct buf text;
    struct gate_error err = {0};
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    buf_init(&text, (size_t)8 << 20);
    if (file_read(path, &text, &err) != GATE_OK) {
        fprintf(stderr, "alert_rates: %s\n", err.message);
        exit(74);
    }
    cJSON *json = cJSON_Parse(text.data);
    buf_release(&text);
    return json;
}

/* In logarithms, the differences of which scatter as those of noise of LABELLED_NOISE do. */
static void read_series(const cJSON *json, struct series *out)
{
    const cJSON *series = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "series"), 0), *value = NULL;
    double squares = 0;
    out->n = 0;
    cJSON_ArrayForEach (value, cJSON_GetObjectItem(series, "raw")) {
        if (out->n < MAX_VALUES)
            out->value[out->n++] = value->valuedouble;
    }
    double mean = (out->value[out->n - 1] - out->value[0]) / (double)(out->n - 1);
    double first = out->value[0];
    for (size_t i = 1; i < out->n; i++)
        squares += pow(out->value[i] - out->value[i - 1] - mean, 2);
    double noise = sqrt(squares / (double)(out->n - 1) / 2);
    for (size_t i = 0; i < out->n; i++)
        out->value[i] = (out->value[i] - first) * LABELLED_NOISE / noise;
}

/* How many of the labels, with the start of the series as one, have a change near them: each change
 * is that of one label. */
static size_t n_met(const int *label, size_t n, const struct changes *c)
{
    bool taken[MAX_CHANGES] = {false};
    size_t met = 1;
    for (size_t i = 0; i < n; i++) {
        size_t best = MAX_CHANGES;
        for (size_t k = 0; k < c->n; k++) {
            int d = abs(c->at[k] - label[i]);
            if (!taken[k] && d <= MARGIN &&
                (best == MAX_CHANGES || d < abs(c->at[best] - label[i])))
                best = k;
        }
        if (best < MAX_CHANGES) {
            taken[best] = true;
            met++;
        }
    }
    return met;
}

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Precision against what any annotator labelled, recall as the mean over them. */
static double f1(const cJSON *annotators, const struct changes *c)
{
    int all[MAX_CHANGES], one[MAX_CHANGES];
    size_t n_all = 0, n_annotators = 0;
    double recall = 0;
    const cJSON *annotator = NULL, *label = NULL;
    cJSON_ArrayForEach (annotator, annotators) {
        size_t n = 0;
        cJSON_ArrayForEach (label, annotator) {
            one[n++] = label->valueint;
            if (n_all < MAX_CHANGES)
                all[n_all++] = label->valueint;
        }
        recall += (double)n_met(one, n, c) / (double)(n + 1);
        n_annotators++;
    }
    qsort(all, n_all, sizeof all[0], by_value);
    size_t n = 0;
    for (size_t i = 0; i < n_all; i++) {
        if (n == 0 || all[i] != all[n - 1])
            all[n++] = all[i];
    }
    recall /= (double)n_annotators;
    double precision = (double)n_met(all, n, c) / (double)(c->n + 1);
    return 2 * precision * recall / (precision + recall);
}

static void print_labelled(const char *folder)
{
    static const char *const names[] = {"bank",
                                        "nile",
                                        "quality_control_1",
                                        "quality_control_2",
                                        "quality_control_3",
                                        "quality_control_4",
                                        "quality_control_5",
                                        "usd_isk",
                                        "well_log"};
    const size_t n = sizeof names / sizeof names[0];
    cJSON *labels = read_json(folder, "annotations");
    double raised = 0, standing = 0;
    int steps = 0;
    printf("| series | F1 of what was raised | of what stands | alerts | withdrawn | transitions | "
           "most reopenings |\n| --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < n; i++) {
        struct series series;
        cJSON *json = read_json(folder, names[i]);
        const cJSON *label = cJSON_GetObjectItem(labels, names[i]);
        read_series(json, &series);
        struct outcome o = play(&series, 0);
        double of_raised = f1(label, &o.raised), of_standing = f1(label, &o.standing);
        raised += of_raised / (double)n;
        standing += of_standing / (double)n;
        steps += o.n_steps;
        printf("| %s | %.3f | %.3f | %d | %d | %d | %d |\n", names[i], of_raised, of_standing,
               o.n_alerts, o.n_withdrawn, o.n_steps, o.most_reopened);
        fflush(stdout);
        cJSON_Delete(json);
    }
    printf("| mean | %.3f | %.3f | | | %d | |\n", raised, standing, steps);
    cJSON_Delete(labels);
}

/* ---- made-up series ---- */

enum shape { IID, CORRELATED, OUTLIERS, STUDENT3, MODES, QUANTISED, CONSTANT, SHAPES };
static const char *const names[SHAPES] = {
    "normal",     "AR(1) 0.5",           "1 of 30 is +3 to +10 %",
    "Student t3", "25 % in a mode +2 %", "quantised to 0.5 %",
    "constant"};

static void make_noise(struct series *s, enum shape shape, double sd, size_t n, uint64_t seed)
{
    struct rng r;
    double state = 0;
    rng_seed(&r, seed);
    s->n = n;
    for (size_t i = 0; i < n; i++) {
        double z = sd * rng_normal(&r), chi, other;
        switch (shape) {
        case CORRELATED:
            state = i == 0 ? z : 0.5 * state + sqrt(0.75) * z;
            z = state;
            break;
        case OUTLIERS:
            z += rng_below(&r, 30) == 0 ? log1p(0.03 + 0.07 * rng_uniform(&r)) : 0;
            break;
        case STUDENT3:
            chi = -2 * log(rng_uniform(&r));
            other = rng_normal(&r);
            z = sd * rng_normal(&r) / sqrt((chi + other * other) / 3);
            break;
        case MODES:
            z += rng_below(&r, 4) == 0 ? log1p(0.02) : 0;
            break;
        case QUANTISED:
            z = 0.005 * round(z / 0.005);
            break;
        case CONSTANT:
            z = 0;
            break;
        default:
            break;
        }
        s->value[i] = z;
    }
}

struct totals {
    int n, alerts, withdrawn, transitions, found, closed, most_reopened;
};

static void add_outcome(struct totals *t, const struct outcome *o, int step_at)
{
    bool found = false;
    for (size_t i = 0; i < o->standing.n; i++)
        found = found || abs(o->standing.at[i] - step_at) <= MARGIN;
    t->n++;
    t->alerts += o->n_alerts;
    t->withdrawn += o->n_withdrawn;
    t->transitions += o->n_steps;
    t->found += found && o->n_open > 0;
    if (o->most_reopened > t->most_reopened)
        t->most_reopened = o->most_reopened;
}

static void print_flat(void)
{
    static const double sds[] = {0.002, 0.005, 0.01};
    struct totals all = {0};
    printf("| flat series of 220 runs | series | alerts | withdrawn | transitions |\n"
           "| --- | --- | --- | --- | --- |\n");
    for (enum shape shape = IID; shape < SHAPES; shape++) {
        struct totals t = {0};
        int n = shape == CONSTANT ? 14 : 30;
        for (int i = 0; i < n; i++) {
            struct series s;
            make_noise(&s, shape, sds[i % 3], 220, (uint64_t)i * 7919 + (uint64_t)shape * 131 + 1);
            struct outcome o = play(&s, CONTROL_SD);
            add_outcome(&t, &o, -100);
            add_outcome(&all, &o, -100);
        }
        printf("| %s | %d | %d | %d | %d |\n", names[shape], t.n, t.alerts, t.withdrawn,
               t.transitions);
        fflush(stdout);
    }
    printf("| all | %d | %d | %d | %d |\n\n", all.n, all.alerts, all.withdrawn, all.transitions);
}

static void print_row(const char *what, double sd, double step, const struct totals *t)
{
    printf("| %s, sd %g %% | %+g %% | %d of %d | %d | %d | %d | %d |\n", what, 100 * sd, 100 * step,
           t->found, t->n, t->alerts, t->withdrawn, t->transitions, t->most_reopened);
    fflush(stdout);
}

static void print_steps(int n)
{
    static const double sds[] = {0.005, 0.01}, steps[] = {0.02, 0.05},
                        falls[] = {-0.02, -0.05, -0.1, 0.05};
    printf("| a step after 100 runs that lasts 100 | step | stands at the end | alerts | withdrawn "
           "| transitions | most reopenings |\n| --- | --- | --- | --- | --- | --- | --- |\n");
    for (enum shape shape = IID; shape <= MODES; shape++) {
        for (size_t j = 0; j < 4; j++) {
            struct totals t = {0};
            for (int i = 0; i < n; i++) {
                struct series s;
                make_noise(&s, shape, sds[j / 2], 200,
                           (uint64_t)i * 104729 + (uint64_t)shape * 17 + j);
                for (size_t k = 100; k < s.n; k++)
                    s.value[k] += log1p(i % 2 ? -steps[j % 2] : steps[j % 2]);
                struct outcome o = play(&s, CONTROL_SD);
                add_outcome(&t, &o, 100);
            }
            print_row(names[shape], sds[j / 2], steps[j % 2], &t);
        }
    }
    for (size_t j = 0; j < 4; j++) {
        struct totals t = {0};
        for (int i = 0; i < 2 * n; i++) {
            struct series s;
            struct rng r;
            make_noise(&s, IID, 0.002, 200, (uint64_t)i * 104729 + 5 + j);
            rng_seed(&r, (uint64_t)i + 77);
            size_t a = rng_below(&r, 4), b = (a + 1 + rng_below(&r, 3)) % 4;
            s.value[99 - a] += log1p(0.2 + 0.1 * rng_uniform(&r));
            s.value[99 - b] += log1p(0.2 + 0.1 * rng_uniform(&r));
            for (size_t k = 100; k < s.n; k++)
                s.value[k] += log1p(falls[j]);
            struct outcome o = play(&s, CONTROL_SD);
            add_outcome(&t, &o, 100);
        }
        print_row("two outliers of the last four", 0.002, falls[j], &t);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        print_labelled(argv[1]);
        return 0;
    }
    print_flat();
    print_steps(6);
    return 0;
}
