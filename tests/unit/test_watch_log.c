/* SPDX-License-Identifier: Apache-2.0 */
/* test_watch_log.c: what the log says of groups of alerts when the store fails on the way. */
#include <stdio.h>

#include "server/watch/watch_log.h"
#include "tests/unit/said.h"
#include "tests/unit/unit.h"
#include "tests/unit/watch_history.h"

struct call {
    struct watch_log *log;
    struct store *store;
};

static void call(void *context)
{
    struct call *c = context;
    watch_log_groups(c->log, c->store);
}

static void add(struct history *h, double ratio, const char *verdict)
{
    h->spec.ratio = ratio;
    h->spec.verdict = verdict;
    history_add(h, 1, 20000 * ratio);
}

TEST_WITHIN(a_failure_makes_no_line_come_twice, store_set_up, store_tear_down)
{
    struct history h = history_begin(state);
    struct watch_log l = {.begun = false};
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
    assert_int_equal(count_said(call, &c, " state="), 0);
    assert_int_equal(count_said(call, &c, "cannot read"), 1);
    execute(h.f->path, "ALTER TABLE revision DROP COLUMN commit_id;"
                       "ALTER TABLE revision RENAME COLUMN kept TO commit_id");
    assert_int_equal(count_said(call, &c, " state="), 3);
    assert_int_equal(count_said(call, &c, "gate-server"), 0);
    history_end(&h);
}
