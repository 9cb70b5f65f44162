/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_branches.c: what is newest on a branch. */
#include <stdio.h>
#include <string.h>

#include "gate/document/document.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/unit.h"

/* A run of one case; its index names its commit and its uuid, its reason is the index too. */
static void put_run(struct store_fixture *f, struct store *s, int index, int64_t time_ms,
                    const char *branch, const char *verdict)
{
    static const struct sample_plan flat = {
        .seed = 5, .n_runs = 1000, .n_cases = 1, .n_devices = 1};
    cJSON *run = sample_run(&flat, index);
    char reason[32];
    snprintf(reason, sizeof(reason), "run %d", index);
    set_number(run, "time_ms", (double)time_ms);
    set_string(cJSON_GetObjectItem(run, "git"), "branch", branch);
    set_string(cJSON_GetObjectItem(run, "git"), "parent", "");
    set_string(item_of(run, 0), "verdict", verdict);
    set_string(item_of(run, 0), "reason", reason);
    if (put(f, s, run, NULL) != GATE_OK)
        fail_msg("%s", f->err.message);
}

/* The only case as the view of the newest results has it for a branch. */
static void assert_case(struct store_fixture *f, const char *branch, const char *expected)
{
    char text[200];
    text_of(f->path,
            "SELECT coalesce(group_concat(reason || ' ' || time_ms), '') FROM newest"
            " WHERE branch = ?1",
            branch, text, sizeof text);
    assert_string_equal(text, expected);
}

TEST_WITHIN(newest_of_each_branch, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_case(f, "main", "");
    put_run(f, s, 1, 100, "main", "pass");
    assert_case(f, "main", "run 1 100");
    put_run(f, s, 2, 200, "mine", "improvement");
    assert_case(f, "main", "run 1 100");
    assert_case(f, "mine", "run 2 200");
    assert_case(f, "other", "");
    /* Late ones: newer than what main has, and older. */
    put_run(f, s, 3, 150, "main", "pass");
    assert_case(f, "main", "run 3 150");
    put_run(f, s, 4, 50, "main", "pass");
    assert_case(f, "main", "run 3 150");
    /* Back on main, then away again: each branch has its newest. */
    put_run(f, s, 5, 300, "main", "pass");
    assert_case(f, "main", "run 5 300");
    assert_case(f, "mine", "run 2 200");
    put_run(f, s, 6, 400, "mine", "pass");
    assert_case(f, "main", "run 5 300");
    assert_case(f, "mine", "run 6 400");
    put_run(f, s, 7, 350, "mine", "pass");
    assert_case(f, "mine", "run 6 400");
    put_run(f, s, 8, 310, "", "pass");
    assert_case(f, "", "run 8 310");
    store_close(s);
    assert_sound(f->path);
}

/* A result that comes late has all that one of the newest run has. */
TEST_WITHIN(late_result_is_whole, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    put_run(f, s, 1, 100, "main", "pass");
    put_run(f, s, 1001, 50, "late", "pass");
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM newest WHERE ratio_lo > 0 AND mde > 0"
                                     " AND peer <> '' AND peer_ratio > 0 AND ceiling > 0"
                                     " AND rel_err > 0 AND threshold > 0"),
                     2);
    store_close(s);
}

TEST_WITHIN(newest_run, store_set_up, store_tear_down)
{
    static const struct {
        const char *branch, *device_model;
        int64_t time_ms; /* 0: there is none */
    } cases[] = {
        {NULL, NULL, 700},
        {NULL, "nvidia-h200", 700},
        {NULL, "none", 0},
        {"main", NULL, 500},
        {"main", "nvidia-h200", 500},
        {"main", "none", 0},
        {"mine", NULL, 600},
        {"", NULL, 700},
        {"other", NULL, 0},
    };
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    put_run(f, s, 1, 500, "main", "wrong");
    put_run(f, s, 2, 200, "main", "pass");
    put_run(f, s, 3, 600, "mine", "pass");
    put_run(f, s, 4, 700, "", "pass");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct store_run run;
        assert_int_equal(store_newest_run(s, cases[i].branch, cases[i].device_model, &run, &f->err),
                         GATE_OK);
        assert_int_equal(run.time_ms, cases[i].time_ms);
    }
    store_close(s);
}
