/* test_store_whole.c: a run is stored whole or not at all, whatever fails and whoever else is
 * there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "server/store/store_private.h"
#include "unit/store_fixture.h"

#define ATTENTION "attention_fwd/fp16/b8-h16-s512-d64/causal"

/* ---- all or nothing ---- */

static void assert_nothing_stored(struct store_fixture *f)
{
    assert_sound(f->path);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 0);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM device"), 0);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM test_case"), 0);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM point"), 0);
}

static void test_case_twice_stores_nothing(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    cJSON *run = sample_run(&plan, 0);
    set_string(item_of(run, 4), "id", ATTENTION);
    assert_int_equal(put(f, s, run, NULL), GATE_IO);
    assert_non_null(strstr(f->err.message, ATTENTION));
    assert_non_null(strstr(f->err.message, "twice"));
    assert_nothing_stored(f);
    /* And the store is good for the next one. */
    assert_int_equal(put(f, s, sample_run(&plan, 0), NULL), GATE_OK);
    store_close(s);
}

static void test_hostile_numbers(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    static const double bad_times[] = {-1, 1e300, 9.1e18, 0.5, -9007199254740992.0};
    static const double bad_p50s[] = {-1,  0,      -1e308, INFINITY, -INFINITY,
                                      NAN, 5e-324, 1e-4,   9e15,     1.7976931348623157e308};
    for (size_t i = 0; i < sizeof(bad_times) / sizeof(bad_times[0]); i++) {
        cJSON *run = sample_run(&plan, 0);
        set_number(run, "time_ms", bad_times[i]);
        assert_int_equal(put(f, s, run, NULL), GATE_IO);
    }
    for (size_t i = 0; i < sizeof(bad_p50s) / sizeof(bad_p50s[0]); i++) {
        cJSON *run = sample_run(&plan, 0);
        set_number(timing_of(run, 2, RIVAL), "p50_ns", bad_p50s[i]);
        assert_int_equal(put(f, s, run, NULL), GATE_IO);
    }
    cJSON *best = sample_run(&plan, 0);
    set_number(timing_of(best, 2, BEST), "p50_ns", -1);
    assert_int_equal(put(f, s, best, NULL), GATE_IO);
    cJSON *mde = sample_run(&plan, 0);
    set_number(item_of(mde, 2), "mde", -0.001);
    assert_int_equal(put(f, s, mde, NULL), GATE_IO);
    cJSON *odd = sample_run(&plan, 0);
    set_string(odd, "verdict", "splendid");
    assert_int_equal(put(f, s, odd, NULL), GATE_IO);
    odd = sample_run(&plan, 0);
    set_string(odd, "uuid", "short");
    assert_int_equal(put(f, s, odd, NULL), GATE_IO);
    assert_int_equal(put(f, s, cJSON_CreateObject(), NULL), GATE_IO);
    assert_nothing_stored(f);

    static const double good_p50s[] = {0.001, 18612.345678901, 8e15};
    for (size_t i = 0; i < sizeof(good_p50s) / sizeof(good_p50s[0]); i++) {
        cJSON *run = sample_run(&plan, (int)i);
        set_number(timing_of(run, 2, CANDIDATE), "p50_ns", good_p50s[i]);
        if (put(f, s, run, NULL) != GATE_OK)
            fail_msg("%s", f->err.message);
    }
    cJSON *late = sample_run(&plan, 4);
    set_number(late, "time_ms", JSON_MAX_SAFE_INTEGER);
    assert_int_equal(put(f, s, late, NULL), GATE_OK);
    store_close(s);
    assert_sound(f->path);
}

static void test_strings_are_data(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    cJSON *run = sample_run(&plan, 0);
    set_string(cJSON_GetObjectItem(run, "git"), "subject", "'); DROP TABLE run; --");
    set_string(item_of(run, 0), "reason", "\" ' ; -- %s %n \x01 \xe2\x82\xac");
    assert_int_equal(put(f, s, run, NULL), GATE_OK);
    store_close(s);
    assert_int_equal(scalar(f->path, "SELECT subject = '''); DROP TABLE run; --' FROM run"), 1);
}

static void test_disk_full(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(put(f, s, sample_run(&plan, 0), NULL), GATE_OK);
    assert_int_equal(sqlite3_exec(s->db, "PRAGMA max_page_count = 1", NULL, NULL, NULL), SQLITE_OK);
    struct sample_plan big = {.seed = 3, .n_runs = 3, .n_cases = 400, .n_devices = 1};
    assert_int_equal(put(f, s, sample_run(&big, 0), NULL), GATE_IO);
    assert_non_null(strstr(f->err.message, "full"));
    assert_non_null(strstr(f->err.message, "free some space"));
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 1);
    assert_sound(f->path);
    assert_int_equal(sqlite3_exec(s->db, "PRAGMA max_page_count = 1000000", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(put(f, s, sample_run(&big, 0), NULL), GATE_OK);
    store_close(s);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 2);
}

static bool put_under_file_limit(struct store_fixture *f)
{
    struct store *s = NULL;
    struct sample_plan big = {.seed = 3, .n_runs = 3, .n_cases = 400, .n_devices = 1};
    struct rlimit limit = {1 << 18, 1 << 18};
    bool existed;
    signal(SIGXFSZ, SIG_IGN);
    if (store_open(f->path, STORE_READ_WRITE, &s, &f->err) != GATE_OK ||
        setrlimit(RLIMIT_FSIZE, &limit) < 0)
        return false;
    struct buf text;
    buf_init(&text, STORE_MAX_DOCUMENT);
    cJSON *run = sample_run(&big, 0);
    json_write(run, false, &text);
    bool refused = store_put_run(s, run, text.data, text.len, &existed, &f->err) == GATE_IO;
    cJSON_Delete(run);
    buf_release(&text);
    store_close(s);
    return refused;
}

static void test_write_that_fails_half_way(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(put(f, s, sample_run(&plan, 0), NULL), GATE_OK);
    store_close(s);
    assert_true(in_child(f, put_under_file_limit));
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 1);
    assert_sound(f->path);
    s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(put(f, s, sample_run(&plan, 1), NULL), GATE_OK);
    store_close(s);
}

static bool die_in_a_transaction(struct store_fixture *f)
{
    struct store *s = NULL;
    bool ready = store_open(f->path, STORE_READ_WRITE, &s, &f->err) == GATE_OK &&
                 sqlite3_exec(s->db,
                              "PRAGMA cache_size = 1; BEGIN IMMEDIATE;"
                              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                              " WHERE i < 20000)"
                              "INSERT INTO device (model, n_runs) SELECT 'model ' || i, 1 FROM n",
                              NULL, NULL, NULL) == SQLITE_OK;
    if (ready)
        kill(getpid(), SIGKILL);
    return true;
}

static void test_writer_that_is_killed(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(put(f, s, sample_run(&plan, 0), NULL), GATE_OK);
    store_close(s);
    assert_false(in_child(f, die_in_a_transaction));
    s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(put(f, s, sample_run(&plan, 1), NULL), GATE_OK);
    store_close(s);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM device"), 2);
    assert_sound(f->path);
}

/* ---- several at a time ---- */

struct beside {
    struct store_fixture *f;
    struct store *writer;
    int n;
};

static bool write_beside(void *context, const struct store_run *row)
{
    (void)row;
    struct beside *b = context;
    if (b->n == 0)
        assert_int_equal(put(b->f, b->writer, sample_run(&plan, 5), NULL), GATE_OK);
    b->n++;
    return true;
}

static void test_reader_beside_writer(void **state)
{
    struct store_fixture *f = *state;
    struct beside b = {.f = f, .writer = open_store(f, STORE_READ_WRITE)};
    for (int i = 0; i < 3; i++)
        assert_int_equal(put(f, b.writer, sample_run(&plan, i), NULL), GATE_OK);
    struct store *reader = open_store(f, STORE_READ_ONLY);
    assert_int_equal(store_runs(reader, &(struct store_run_filter){.device_model = NULL},
                                (struct store_run_key){INT64_MAX, ""}, 100, write_beside, &b,
                                &f->err),
                     GATE_OK);
    assert_int_equal(b.n, 3); /* a query sees the state it began with */
    int n;
    assert_int_equal(count_runs(f, reader, &n), GATE_OK);
    assert_int_equal(n, 4);

    assert_int_not_equal(sqlite3_exec(reader->db, "DELETE FROM run", NULL, NULL, NULL), SQLITE_OK);
    bool existed;
    cJSON *run = sample_run(&plan, 9);
    assert_int_equal(store_put_run(reader, run, "{}", 2, &existed, &f->err), GATE_INTERNAL);
    cJSON_Delete(run);
    store_close(reader);
    store_close(b.writer);
}

#define N_WRITERS 4

/* All of them make the file, if they come first. */
static void test_writers_take_turns(void **state)
{
    struct store_fixture *f = *state;
    pid_t children[N_WRITERS];
    fflush(NULL);
    for (int w = 0; w < N_WRITERS; w++) {
        children[w] = fork();
        assert_true(children[w] >= 0);
        if (children[w] > 0)
            continue;
        struct store *s = NULL;
        struct sample_plan mine = plan;
        mine.seed = 100 + (uint64_t)w;
        bool good = store_open(f->path, STORE_READ_WRITE, &s, &f->err) == GATE_OK;
        for (int i = 0; i < 6 && good; i++)
            good = put(f, s, sample_run(&mine, i), NULL) == GATE_OK;
        store_close(s);
        if (!good)
            fprintf(stderr, "# writer %d: %s\n", w, f->err.message);
        _exit(good ? 0 : 1);
    }
    for (int w = 0; w < N_WRITERS; w++) {
        int status = 0;
        assert_int_equal(waitpid(children[w], &status, 0), children[w]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 6 * N_WRITERS);
    assert_sound(f->path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_set_up, store_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_case_twice_stores_nothing), TEST(test_hostile_numbers),
        TEST(test_strings_are_data),          TEST(test_disk_full),
        TEST(test_write_that_fails_half_way), TEST(test_writer_that_is_killed),
        TEST(test_reader_beside_writer),      TEST(test_writers_take_turns),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
