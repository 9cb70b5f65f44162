/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_store_place.c: commits have their place by their history, in whatever order their runs come:
 * late, in batches, twice, from two pipelines, and on commits that a force push took away; and what
 * is newest on a branch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/store/store_alert.h"
#include "tests/unit/noise.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/unit.h"

#define GPU "nvidia-h200"
#define N_COMMITS 30
#define N_RUNS 50
#define GRAPHS 12
#define SECOND_MS INT64_C(1000)
#define START_MS INT64_C(1750000000000)

struct commit {
    char hash[41];
    int parent; /* -1: none */
    int64_t time_ms;
};

/* What a run says of the history. */
enum tells { NOTHING, PARENT, CHAIN };

struct run {
    int index, commit, n_chain;
    enum tells tells;
    int64_t time_ms;
    bool on_main;
};

struct graph {
    struct commit commit[N_COMMITS];
    struct run run[N_RUNS];
};

/* Commits follow one another, or fork off some older one, as a force push or a branch does. Some
 * clocks are wrong. */
static void make_graph(struct graph *g, uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed);
    for (int i = 0; i < N_COMMITS; i++) {
        struct commit *c = &g->commit[i];
        snprintf(c->hash, sizeof c->hash, "%08x%032d", (unsigned)(2654435761u * (unsigned)(i + 1)),
                 i);
        c->parent = rng_below(&rng, 6) == 0 ? (int)rng_below(&rng, (size_t)i + 1) - 1 : i - 1;
        c->time_ms = START_MS + (60 * i + (int)rng_below(&rng, 40)) * SECOND_MS;
        if (rng_below(&rng, 10) == 0)
            c->time_ms -= 600 * SECOND_MS;
    }
    for (int i = 0; i < N_RUNS; i++) {
        struct run *r = &g->run[i];
        r->index = i;
        r->commit = i < N_COMMITS ? i : (int)rng_below(&rng, N_COMMITS);
        r->tells = (enum tells)rng_below(&rng, 3);
        r->n_chain = 1 + (int)rng_below(&rng, 12);
        r->on_main = rng_below(&rng, 4) > 0;
        r->time_ms = START_MS + (60 * r->commit + 30 + 61 * i) * SECOND_MS + i;
    }
}

static void put_run(struct store_fixture *f, struct store *s, const struct graph *g,
                    const struct run *r)
{
    cJSON *document = run_at(r->index, r->time_ms), *git = cJSON_GetObjectItem(document, "git");
    const struct commit *c = &g->commit[r->commit];
    char reason[16];
    set_string(git, "commit", c->hash);
    set_string(git, "branch", r->on_main ? "main" : "mine");
    snprintf(reason, sizeof reason, "c%d", r->commit);
    set_string(item_of(document, 0), "reason", reason);
    if (r->tells == PARENT && c->parent >= 0)
        set_string(git, "parent", g->commit[c->parent].hash);
    cJSON *chain = r->tells == CHAIN ? cJSON_AddArrayToObject(git, "first_parents") : NULL;
    for (int i = 0, at = r->commit; chain && i < r->n_chain && at >= 0; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "commit", g->commit[at].hash);
        cJSON_AddNumberToObject(item, "time_ms", (double)g->commit[at].time_ms);
        cJSON_AddItemToArray(chain, item);
        at = g->commit[at].parent;
    }
    must_put(f, s, document);
}

/* All that is kept of places, and what is the newest of each branch. */
static void read_places(const char *path, char *out, size_t size)
{
    static const char *const sql[] = {
        "SELECT group_concat(commit_id || ' ' || parent || ' ' || place_ms, char(10)) FROM"
        " (SELECT * FROM revision ORDER BY commit_id)",
        "SELECT group_concat(branch || ' ' || run || ' ' || reason, char(10)) FROM"
        " (SELECT * FROM newest ORDER BY branch)",
        "SELECT group_concat(time_ms || '@' || place_ms, char(10)) FROM"
        " (SELECT * FROM result ORDER BY time_ms, arm)",
        "SELECT group_concat(time_ms || '@' || place_ms, char(10)) FROM"
        " (SELECT * FROM run ORDER BY time_ms)",
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof sql / sizeof sql[0]; i++, n = strlen(out))
        text_of(path, sql[i], NULL, out + n, size - n);
}

static void replay(struct store_fixture *f, const struct graph *g, const int *order, bool twice,
                   char *out, size_t size)
{
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(store_begin(s, &f->err), GATE_OK);
    for (int i = 0; i < N_RUNS; i++) {
        put_run(f, s, g, &g->run[order[i]]);
        if (twice && i % 3 == 0)
            put_run(f, s, g, &g->run[order[i / 2]]);
    }
    assert_int_equal(store_end(s, GATE_OK, &f->err), GATE_OK);
    store_close(s);
    read_places(f->path, out, size);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM revision v JOIN revision p ON"
                                     " p.commit_id = v.parent WHERE v.place_ms <= p.place_ms"),
                     0);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM revision WHERE place_ms = -1"), 0);
    assert_sound(f->path);
    remove(f->path);
}

TEST_WITHIN(places_are_the_same_in_any_order, store_set_up, store_tear_down)
{
    static struct graph g;
    static char expected[1 << 15], got[1 << 15];
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        struct rng rng;
        int order[N_RUNS];
        make_graph(&g, seed);
        for (int i = 0; i < N_RUNS; i++)
            order[i] = i;
        replay(*state, &g, order, false, expected, sizeof expected);
        rng_seed(&rng, seed);
        for (int round = 0; round < 2; round++) {
            for (int i = N_RUNS - 1; i > 0; i--) {
                int k = (int)rng_below(&rng, (size_t)i + 1), moved = order[i];
                order[i] = order[k];
                order[k] = moved;
            }
            replay(*state, &g, order, round > 0, got, sizeof got);
            assert_string_equal(got, expected);
        }
    }
}

/* ---- an old commit once more ---- */

static void put_of(struct store_fixture *f, struct store *s, int index, int commit, int64_t time_ms,
                   const char *verdict)
{
    cJSON *document = run_at(index, time_ms), *git = cJSON_GetObjectItem(document, "git");
    char hash[41], parent[41];
    snprintf(hash, sizeof hash, "%040d", commit);
    snprintf(parent, sizeof parent, "%040d", commit - 1);
    set_string(git, "commit", hash);
    set_string(git, "branch", "main");
    set_string(git, "parent", parent);
    set_string(item_of(document, 0), "verdict", verdict);
    set_string(document, "verdict", verdict);
    must_put(f, s, document);
}

static void assert_newest(struct store_fixture *f, int commit, const char *verdict)
{
    char text[100];
    text_of(f->path,
            "SELECT CAST(commit_id AS INTEGER) || ' ' || verdict FROM newest"
            " WHERE branch = 'main'",
            NULL, text, sizeof text);
    assert_int_equal(strtol(text, NULL, 10), commit);
    assert_string_equal(strchr(text, ' ') + 1, verdict);
}

TEST_WITHIN(an_old_commit_is_not_the_newest, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    for (int i = 1; i <= 40; i++)
        put_of(f, s, i, i, 1000 * i, i == 40 ? "improvement" : "pass");
    assert_newest(f, 40, "improvement");
    for (int i = 41; i <= 44; i++) {
        put_of(f, s, i, 5, 1000 * i, "regression");
        assert_newest(f, 40, "improvement");
    }
    /* The newest commit once more is. */
    put_of(f, s, 45, 40, 45000, "pass");
    assert_newest(f, 40, "pass");
    store_close(s);
}

/* Parents that go round in a circle are no history; they stop nothing. */
TEST_WITHIN(a_ring_of_parents_ends, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    for (int i = 0; i < 6; i++) {
        cJSON *document = run_at(i, 1000 + i), *git = cJSON_GetObjectItem(document, "git");
        char hash[41], parent[41];
        snprintf(hash, sizeof hash, "%040d", i % 3);
        snprintf(parent, sizeof parent, "%040d", (i + 1) % 3);
        set_string(git, "commit", hash);
        set_string(git, "parent", i == 5 ? hash : parent);
        must_put(f, s, document);
    }
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 6);
    store_close(s);
}

/* ---- what is newest on a branch ---- */

/* The run's reason is its index. */
static void put_on(struct store_fixture *f, struct store *s, int index, int64_t time_ms,
                   const char *branch, const char *verdict)
{
    cJSON *run = run_at(index, time_ms);
    char reason[32];
    snprintf(reason, sizeof(reason), "run %d", index);
    set_string(cJSON_GetObjectItem(run, "git"), "branch", branch);
    set_string(item_of(run, 0), "verdict", verdict);
    set_string(item_of(run, 0), "reason", reason);
    must_put(f, s, run);
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
    static const struct {
        int64_t time_ms;
        const char *branch, *main, *mine; /* the run is on, and what is newest then */
    } runs[] = {
        {100, "main", "run 0 100", ""},          {200, "mine", "run 0 100", "run 1 200"},
        {150, "main", "run 2 150", "run 1 200"}, /* late: newer than what main has, */
        {50, "main", "run 2 150", "run 1 200"},  /* and older */
        {300, "main", "run 4 300", "run 1 200"}, {400, "mine", "run 4 300", "run 5 400"},
        {350, "mine", "run 4 300", "run 5 400"}, {310, "", "run 4 300", "run 5 400"},
    };
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_case(f, "main", "");
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        put_on(f, s, (int)i, runs[i].time_ms, runs[i].branch, "pass");
        assert_case(f, "main", runs[i].main);
        assert_case(f, "mine", runs[i].mine);
    }
    assert_case(f, "", "run 7 310");
    store_close(s);
    assert_sound(f->path);
}

/* A result that comes late has all that one of the newest run has. */
TEST_WITHIN(late_result_is_whole, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    put_on(f, s, 1, 100, "main", "pass");
    put_on(f, s, 1001, 50, "late", "pass");
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM newest WHERE ratio_lo > 0 AND mde > 0"
                                     " AND peer <> '' AND peer_ratio > 0 AND ceiling > 0"
                                     " AND rel_err > 0 AND threshold > 0"),
                     2);
    store_close(s);
}

static bool see_wrong(void *context, const struct watch_point *point)
{
    *(int64_t *)context = point->key.time_ms;
    return true;
}

/* However many newer ones other branches have. */
TEST_WITHIN(wrong_results_are_those_of_the_main_branch, store_set_up, store_tear_down)
{
    static struct watch_known known;
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    int64_t time_ms = 0;
    put_on(f, s, 1, 100, "main", "wrong");
    put_on(f, s, 2, 200, "mine", "wrong");
    const struct watch_item item = {.main_branch = "main",
                                    .known = &known,
                                    .run_id = 2,
                                    .track_id = scalar(f->path, "SELECT id FROM track")};
    assert_int_equal(
        store_watch_wrong(s, &item, (struct watch_key){-1, 0, 0}, 1, see_wrong, &time_ms, &f->err),
        GATE_OK);
    assert_int_equal(time_ms, 100);
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
    put_on(f, s, 1, 500, "main", "wrong");
    put_on(f, s, 2, 200, "main", "pass");
    put_on(f, s, 3, 600, "mine", "pass");
    put_on(f, s, 4, 700, "", "pass");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct store_run run;
        assert_int_equal(store_newest_run(s, cases[i].branch, cases[i].device_model, &run, &f->err),
                         GATE_OK);
        assert_int_equal(run.time_ms, cases[i].time_ms);
    }
    store_close(s);
}
