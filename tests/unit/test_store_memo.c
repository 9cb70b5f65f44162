/* test_store_memo.c: what a store keeps in memory is of the state that is read, and of no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "server/store/store_memo.h"
#include "server/store/store_private.h"
#include "server/store/store_trend.h"
#include "unit/store_fixture.h"

#define GPU "nvidia-h200"
#define CASE "attention_fwd/fp16/b8-h16-s512-d64/causal"

static const struct sample_plan flat = {.seed = 5, .n_runs = 1000, .n_cases = 1, .n_devices = 1};

static void put_flat(struct store_fixture *f, struct store *s, int index)
{
    if (put(f, s, sample_run(&flat, index), NULL) != GATE_OK)
        fail_msg("%s", f->err.message);
}

static void begin(struct store_fixture *f, struct store *s)
{
    if (store_read_begin(s, &f->err) != GATE_OK)
        fail_msg("%s", f->err.message);
}

static void test_a_memo_ends_with_its_state(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    struct store *reader = open_store(f, STORE_READ_ONLY);
    size_t n = 0;
    put_flat(f, s, 0);
    begin(f, reader);
    store_read_end(reader); /* the first look at the log's index is of a file that was not read */
    begin(f, reader);
    assert_null(store_memo(reader, "word", &n));
    store_memo_put(reader, "word", "kept", 4);
    store_memo_put(reader, "long", "", 1 << 20);
    store_read_end(reader);

    assert_null(store_memo(reader, "word", &n)); /* of no state */
    store_memo_put(reader, "other", "of no state", 11);

    begin(f, reader);
    assert_memory_equal(store_memo(reader, "word", &n), "kept", 4);
    assert_int_equal(n, 4);
    assert_null(store_memo(reader, "wor", &n));
    assert_null(store_memo(reader, "words", &n));
    assert_null(store_memo(reader, "long", &n));
    assert_null(store_memo(reader, "other", &n));
    put_flat(f, s, 1); /* the state that is held stays what it was */
    assert_non_null(store_memo(reader, "word", &n));
    store_read_end(reader);

    begin(f, reader);
    assert_null(store_memo(reader, "word", &n));
    store_read_end(reader);
    store_close(reader);
    store_close(s);
}

/* Some hundred keys stand beside each other, and more than there is room for do no harm. */
static void test_many_keys(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    struct store *reader = open_store(f, STORE_READ_ONLY);
    put_flat(f, s, 0);
    begin(f, reader);
    store_read_end(reader);
    static const int n_keys[] = {200, 5000};
    for (int round = 0; round < 2; round++) {
        int n_kept = 0;
        begin(f, reader);
        for (int i = 0; i < 2 * n_keys[round]; i++) {
            char key[32];
            int k = i % n_keys[round];
            snprintf(key, sizeof(key), "round %d key %d", round, k);
            size_t n = 0;
            const void *kept = store_memo(reader, key, &n);
            if (kept) {
                assert_int_equal(n, sizeof(k));
                assert_memory_equal(kept, &k, sizeof(k));
                n_kept++;
            } else {
                store_memo_put(reader, key, &k, sizeof(k));
            }
        }
        store_read_end(reader);
        if (round == 0)
            assert_in_range(n_kept, 190, 200);
        put_flat(f, s, 1 + round);
    }
    store_close(reader);
    store_close(s);
}

static void test_keys(void **state)
{
    char one[STORE_MEMO_KEY], two[STORE_MEMO_KEY], longest[STORE_MEMO_KEY];
    (void)state;
    assert_true(store_memo_key(one, "kind", (const char *const[]){"a", NULL}, 2));
    assert_true(store_memo_key(two, "kind", (const char *const[]){"a", ""}, 2));
    assert_string_not_equal(one, two);
    assert_true(store_memo_key(one, "kind", (const char *const[]){"ab", "c"}, 2));
    assert_true(store_memo_key(two, "kind", (const char *const[]){"a", "bc"}, 2));
    assert_string_not_equal(one, two);
    /* The last lengths that fit, and the first that do not. */
    memset(longest, 'x', sizeof(longest));
    int n_fit = 0;
    for (size_t len = STORE_MEMO_KEY - 12; len < STORE_MEMO_KEY; len++) {
        longest[len] = '\0';
        bool fits = store_memo_key(one, "kind", (const char *const[]){longest}, 1);
        assert_true(!fits || strlen(one) == len + 5);
        n_fit += fits;
        longest[len] = 'x';
    }
    assert_in_range(n_fit, 3, 7);
}

static size_t rows_of(struct store_fixture *f, struct store *s, double *best_ns)
{
    struct store_trend_query query = {.case_id = CASE,
                                      .device_model = GPU,
                                      .provider = "ours",
                                      .to_ms = INT64_MAX,
                                      .points = 100};
    struct store_trend_result trend;
    begin(f, s);
    assert_int_equal(store_trend_read(s, &query, &trend, &f->err), GATE_OK);
    store_read_end(s);
    size_t n = trend.n_series > 0 ? trend.series[0].n : 0;
    *best_ns = trend.best.p50_ns;
    store_trend_release(&trend);
    return n;
}

/* A trend finds its case from memory, but not one that is past. */
static void test_trends_go_with_the_time(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    struct store *reader = open_store(f, STORE_READ_ONLY);
    struct store *none = open_store(f, STORE_READ_ONLY);
    for (size_t n = 0; n < 5; n++) {
        double kept_ns, again_ns;
        for (int again = 0; again < 2; again++)
            assert_int_equal(rows_of(f, reader, &kept_ns), n);
        put_flat(f, s, (int)n);
        store_close(none);
        none = open_store(f, STORE_READ_ONLY);
        assert_int_equal(rows_of(f, reader, &kept_ns), n + 1);
        assert_int_equal(rows_of(f, none, &again_ns), n + 1);
        assert_true(kept_ns == again_ns);
    }
    store_close(none);
    store_close(reader);
    store_close(s);
}

/* Can the log be moved into the file, as far as readers let it? */
static bool is_log_free(struct store *s)
{
    int in_log = -1, moved = -1;
    return sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_TRUNCATE, &in_log, &moved) ==
           SQLITE_OK;
}

/* A reader goes on with its state, until that is past or it is told to let go. */
static void test_a_state_is_held_and_let_go(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    struct store *reader = open_store(f, STORE_READ_ONLY);
    struct store_state before, after;
    sqlite3_busy_timeout(s->db, 0);
    put_flat(f, s, 0);
    begin(f, reader);
    store_read_end(reader);
    begin(f, reader);
    assert_int_equal(store_state(reader, &before, &f->err), GATE_OK);
    store_read_end(reader);
    put_flat(f, s, 1);
    assert_false(is_log_free(s));
    store_let_go_of_past(reader);
    assert_int_equal(store_state(reader, &after, &f->err), GATE_OK);
    assert_string_not_equal(before.text, after.text);
    assert_true(is_log_free(s));

    begin(f, reader);
    store_read_end(reader);
    put_flat(f, s, 2);
    assert_false(is_log_free(s));
    store_let_go(reader);
    assert_true(is_log_free(s));

    /* One that writes holds nothing. */
    begin(f, s);
    store_read_end(s);
    put_flat(f, s, 3);
    assert_true(is_log_free(s));
    store_close(reader);
    store_close(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_set_up, store_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_memo_ends_with_its_state),
        TEST(test_many_keys),
        TEST(test_keys),
        TEST(test_trends_go_with_the_time),
        TEST(test_a_state_is_held_and_let_go),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
