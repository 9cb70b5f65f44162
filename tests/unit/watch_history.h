/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_history.h: a history of one case in the making, which is watched as it grows; for the tests
 * of the watch. What cannot be done fails the test.
 */
#ifndef TESTS_UNIT_WATCH_HISTORY_H
#define TESTS_UNIT_WATCH_HISTORY_H

#include "gate/store/store_alert.h"
#include "server/watch/alerts.h"
#include "tests/unit/noise.h"
#include "tests/unit/store_fixture.h"

#define MAX_ALERTS 20

/* A run to be: what a test changes of it, 0 for what it does not. */
struct spec {
    int index; /* place in time */
    double p50_ns, control_ns, rel_err;
    double baseline_ns;  /* below 0: none */
    double vendor_ratio; /* below 0: none */
    double ratio;        /* over the baseline, from pairs */
    bool by_number;      /* that ratio is to a stored time, not from pairs */
    const char *verdict; /* NULL: pass */
    const char *commit, *parent, *baseline_commit; /* NULL: those of the sample */
    int again; /* above 0: the commit of run `again` - 1 once more */
    int64_t baseline_ms;
    const char *epoch, *contract, *machine, *device, *case_id, *branch; /* NULL: main */
};

/* A history in the making. */
struct history {
    struct store_fixture *f;
    struct store *s;
    struct rng rng;
    struct spec spec; /* of the next run */
    double sd;
    bool watched; /* after each run */
};

struct history history_begin(void **state);
/* The commit of a run, and that of the run before it. */
void history_commit(int index, char commit[41], char parent[41]);
/* n runs around a level. */
void history_add(struct history *h, int n, double p50_ns);
/* Looks at all that was not looked at. */
void history_watch(struct store_fixture *f, struct store *s);
/* Nothing is left to do, and the file is sound. */
void history_end(struct history *h);

extern const char *const history_kinds[ALERT_KINDS]; /* as alerts.sql names them */

/* An alert as alerts.sql has it. */
struct seen_alert {
    int64_t id, time_ms, closed_ms;
    enum alert_kind kind;
    enum alert_state state;
    bool confirmed, by_vendor;
    double change, before, after;
    char reason[200], evidence[200], text[500], before_commit[41], provider[65], machine[65];
};

/* What is on record. */
struct seen {
    struct seen_alert alert[MAX_ALERTS];
    size_t n;
};

/* Newest first. */
struct seen history_alerts(const struct history *h);
size_t history_n_changes(const struct history *h);
/* How many rows server/queries/silences.sql has. */
size_t history_n_silences(const struct history *h);
/* The place of an alert among the runs. */
int64_t history_index_of(const struct seen_alert *a);
/* So many alerts, the newest of which is of this kind and in this state. */
void assert_alerts(const struct history *h, size_t n, enum alert_kind kind, enum alert_state state);
/* What somebody does to an alert. */
void history_step(const struct history *h, int64_t id, enum alert_state to,
                  enum alert_step expected);

#endif
