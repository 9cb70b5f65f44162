/* test_store_batch.c: many writes, one commit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "server/store_private.h"
#include "unit/store_fixture.h"

static int64_t runs_in(const struct store_fixture *f)
{
    return scalar(f->path, "SELECT count(*) FROM run");
}

static void test_commit(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(store_batch_begin(s, &f->err), GATE_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(put(f, s, sample_run(&plan, i), NULL), GATE_OK);
    assert_int_equal(runs_in(f), 0); /* nobody else sees it yet */
    assert_int_equal(store_batch_commit(s, &f->err), GATE_OK);
    assert_int_equal(runs_in(f), 3);
    /* And single runs again. */
    assert_int_equal(put(f, s, sample_run(&plan, 3), NULL), GATE_OK);
    assert_int_equal(runs_in(f), 4);
    store_close(s);
    assert_sound(f->path);
}

static void test_rollback(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(put(f, s, sample_run(&plan, 0), NULL), GATE_OK);
    assert_int_equal(store_batch_begin(s, &f->err), GATE_OK);
    assert_int_equal(put(f, s, sample_run(&plan, 1), NULL), GATE_OK);
    store_batch_rollback(s);
    store_batch_rollback(s);
    assert_int_equal(runs_in(f), 1);
    assert_int_equal(put(f, s, sample_run(&plan, 1), NULL), GATE_OK);
    /* A batch that nobody ends is undone with the store. */
    assert_int_equal(store_batch_begin(s, &f->err), GATE_OK);
    assert_int_equal(put(f, s, sample_run(&plan, 2), NULL), GATE_OK);
    store_close(s);
    assert_int_equal(runs_in(f), 2);
    assert_sound(f->path);
}

/* One bad run costs itself only, also where it fails after its first rows. */
static void test_bad_run_in_a_batch(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    bool existed = false;
    assert_int_equal(store_batch_begin(s, &f->err), GATE_OK);
    assert_int_equal(put(f, s, sample_run(&plan, 0), NULL), GATE_OK);
    cJSON *bad = sample_run(&plan, 2);
    set_string(item_of(bad, 4), "id", "attention_fwd/fp16/b8-h16-s512-d64/causal");
    assert_int_equal(put(f, s, bad, NULL), GATE_IO);
    assert_int_equal(put(f, s, sample_run(&plan, 2), &existed), GATE_OK);
    assert_false(existed);
    assert_int_equal(put(f, s, sample_run(&plan, 0), &existed), GATE_OK);
    assert_true(existed);
    assert_int_equal(store_batch_commit(s, &f->err), GATE_OK);
    assert_int_equal(runs_in(f), 2);
    assert_int_equal(scalar(f->path, "SELECT n_runs FROM device"), 2);
    store_close(s);
    assert_sound(f->path);
}

/*
 * SQLite ends the transaction by itself when the disk is full. What comes after in the batch must
 * not be written outside of it, and the commit must not claim that anything was stored.
 */
static void test_batch_that_sqlite_ended(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(store_batch_begin(s, &f->err), GATE_OK);
    assert_int_equal(put(f, s, sample_run(&plan, 0), NULL), GATE_OK);
    assert_int_equal(sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(put(f, s, sample_run(&plan, 1), NULL), GATE_IO);
    assert_int_equal(store_batch_commit(s, &f->err), GATE_IO);
    assert_int_equal(runs_in(f), 0);
    assert_int_equal(put(f, s, sample_run(&plan, 1), NULL), GATE_OK);
    assert_int_equal(runs_in(f), 1);
    store_close(s);
}

static void test_misuse(void **state)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(store_batch_commit(s, &f->err), GATE_INTERNAL);
    assert_int_equal(store_batch_begin(s, &f->err), GATE_OK);
    assert_int_equal(store_batch_begin(s, &f->err), GATE_INTERNAL);
    assert_int_equal(store_batch_commit(s, &f->err), GATE_OK);
    struct store *reader = open_store(f, STORE_READ_ONLY);
    assert_int_equal(store_batch_begin(reader, &f->err), GATE_INTERNAL);
    store_close(reader);
    store_close(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_set_up, store_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_commit),
        TEST(test_rollback),
        TEST(test_bad_run_in_a_batch),
        TEST(test_batch_that_sqlite_ended),
        TEST(test_misuse),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
