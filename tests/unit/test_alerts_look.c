/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_alerts_look.c: what no scenario can say of looks at runs: states that readers have, rules of
 * the tables, the log.
 */
#include <stdio.h>

#include "tests/unit/said.h"
#include "tests/unit/unit.h"
#include "tests/unit/watch_history.h"

/* Whoever read between a run and the look at it must not keep what he read. */
TEST_WITHIN(what_a_look_moves_is_another_state, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    history_add(&h, 12, 21000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    struct store_state before, after;
    for (int i = 0; i < 5; i++) {
        h.watched = false;
        history_add(&h, 1, 21000);
        store_state(h.s, &before, &h.f->err);
        double was = history_alerts(&h).alert[0].after;
        history_watch(h.f, h.s);
        store_state(h.s, &after, &h.f->err);
        assert_true(history_alerts(&h).alert[0].after != was);
        assert_string_not_equal(before.text, after.text);
    }
    history_end(&h);
}

/* A rule of the tables that a look breaks costs that look, and not those at other series. */
TEST_WITHIN(what_the_tables_refuse_is_left_out, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    history_add(&h, 60, 20000);
    history_add(&h, 60, 21000);
    store_close(h.s);
    execute(h.f->path, "CREATE UNIQUE INDEX one_of_a_kind ON alert (kind)");
    h.s = open_store(h.f, STORE_READ_WRITE);
    history_add(&h, 60, 22000);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    assert_int_equal(history_n_changes(&h), 1); /* nor does its change point stay */
    h.spec.contract = "graph-abba-v2";          /* another series */
    h.watched = false;
    history_add(&h, 60, 20000);
    history_add(&h, 60, 18000);
    history_watch(h.f, h.s);
    assert_alerts(&h, 2, ALERT_IMPROVEMENT, ALERT_NEW);
    history_end(&h);
}

/* What fails for another reason is looked at again. */
TEST_WITHIN(what_cannot_be_written_now_is_written_later, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    bool more = true;
    h.watched = false;
    history_add(&h, 60, 20000);
    history_add(&h, 60, 21000);
    execute(h.f->path, "CREATE INDEX fails ON alert (abs(kind - kind - 9223372036854775807 - 1))");
    assert_int_equal(alerts_look(h.s, "main", 600000, &more, &h.f->err), GATE_IO);
    execute(h.f->path, "DROP INDEX fails");
    assert_int_equal(alerts_look(h.s, "main", 600000, &more, &h.f->err), GATE_OK);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    history_end(&h);
}

/* What is known of runs in the looks of one turn is of the epoch of the run that is looked at. The
 * ids are further apart than there are places for what is known. */
TEST_WITHIN(a_turn_with_runs_of_two_epochs, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    bool more = true;
    h.watched = false;
    h.spec.epoch = "one";
    history_add(&h, 60, 20000);
    execute(h.f->path, "UPDATE result SET run_id = 1024 WHERE run_id = 60;"
                       "UPDATE document SET run_id = 1024 WHERE run_id = 60;"
                       "UPDATE run SET id = 1024 WHERE id = 60");
    h.spec.epoch = "two";
    history_add(&h, 60, 21000);
    history_add(&h, 30, 22000);
    assert_int_equal(alerts_look(h.s, "main", 600000, &more, &h.f->err), GATE_OK);
    assert_false(more);
    assert_alerts(&h, 1, ALERT_REGRESSION, ALERT_NEW);
    assert_int_equal(history_index_of(&history_alerts(&h).alert[0]), 120);
    history_end(&h);
}

/* ---- the log, when the store fails on the way ---- */

struct call {
    struct alerts_log *log;
    struct store *store;
};

static void call(void *context)
{
    struct call *c = context;
    alerts_log(c->log, c->store);
}

static void add(struct history *h, double ratio, const char *verdict)
{
    h->spec.ratio = ratio;
    h->spec.verdict = verdict;
    history_add(h, 1, 20000 * ratio);
}

TEST_WITHIN(what_cannot_be_read_of_one_group_hides_no_other, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    struct alerts_log l = {.begun = false};
    struct call c = {&l, h.s};
    char sql[400];
    add(&h, 1, "pass");
    assert_int_equal(count_said(call, &c, "gate-server"), 0);
    add(&h, 1.04, "regression");
    add(&h, 1, "pass");
    add(&h, 1.04, "regression");
    /* The commit of the second alert cannot be read. */
    snprintf(sql, sizeof sql,
             "ALTER TABLE revision RENAME COLUMN commit_id TO kept; ALTER TABLE revision ADD COLUMN"
             " commit_id TEXT AS (CASE id WHEN %lld THEN abs(-9223372036854775808) ELSE kept END)",
             (long long)scalar(h.f->path, "SELECT r.revision_id FROM alert a JOIN run r"
                                          " ON r.id = a.run_id ORDER BY a.id DESC LIMIT 1"));
    execute(h.f->path, sql);
    assert_int_equal(count_said(call, &c, " state="), 2); /* the first was opened and closed */
    execute(h.f->path, "ALTER TABLE revision DROP COLUMN commit_id;"
                       "ALTER TABLE revision RENAME COLUMN kept TO commit_id");
    assert_int_equal(count_said(call, &c, "gate-server"), 0);
    history_end(&h);
}
