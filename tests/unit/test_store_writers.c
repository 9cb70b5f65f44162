/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_writers.c: several writers and readers at a time, runs in a batch, and the log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/store/store_private.h"
#include "gate/store/store_rows.h"
#include "tests/tools/sample_put.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/unit.h"

/* ---- several at a time ---- */

struct beside {
    struct store_fixture *f;
    struct store *writer;
    int n;
};

static bool write_beside(void *context, const struct store_row *)
{
    struct beside *b = context;
    if (b->n == 0)
        must_put(b->f, b->writer, sample_run(&plan, 5));
    b->n++;
    return true;
}

TEST_WITHIN(reader_beside_writer, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct beside b = {.f = f, .writer = open_store(f, STORE_READ_WRITE)};
    for (int i = 0; i < 3; i++)
        must_put(f, b.writer, sample_run(&plan, i));
    struct store *reader = open_store(f, STORE_READ_ONLY);
    assert_int_equal(
        store_select(reader, "SELECT uuid, subject FROM run", NULL, write_beside, &b, &f->err),
        GATE_OK);
    assert_int_equal(b.n, 3); /* a query sees the state it began with */
    int n;
    assert_int_equal(count_runs(f, reader, &n), GATE_OK);
    assert_int_equal(n, 4);

    assert_int_not_equal(sqlite3_exec(reader->db, "DELETE FROM run", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(put(f, reader, sample_run(&plan, 9), NULL), GATE_INTERNAL);
    store_close(reader);
    store_close(b.writer);
}

static int64_t runs_in(const struct store_fixture *f);

static bool put_another(struct store_fixture *f)
{
    struct store *s = NULL;
    bool good = store_open(f->path, STORE_READ_WRITE, &s, &f->err) == GATE_OK &&
                put(f, s, sample_run(&plan, 5), NULL) == GATE_OK;
    store_close(s);
    return good;
}

/* Another program removes what both writers share: neither may lose what the other stored. */
TEST_WITHIN(files_of_the_log_that_are_removed, store_set_up, store_tear_down)
{
    static const char *const suffixes[] = {"-shm", "-wal"};
    struct store_fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        char path[600];
        struct store *s = open_store(f, STORE_READ_WRITE);
        must_put(f, s, sample_run(&plan, i));
        snprintf(path, sizeof path, "%s%s", f->path, suffixes[i]);
        assert_int_equal(unlink(path), 0);
        if (i == 0)
            assert_true(in_child(f, put_another));
        assert_int_equal(put(f, s, sample_run(&plan, 8 + i), NULL), GATE_IO);
        assert_non_null(strstr(f->err.message, "-wal or -shm file was removed"));
        store_close(s);
        if (i == 0)
            assert_int_equal(runs_in(f), 2);
    }
    assert_true(in_child(f, put_another));
    assert_sound(f->path);
}

#define N_WRITERS 4

/* All of them make the file, if they come first. */
TEST_WITHIN(writers_take_turns, store_set_up, store_tear_down)
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

static int64_t runs_in(const struct store_fixture *f)
{
    return scalar(f->path, "SELECT count(*) FROM run");
}

TEST_WITHIN(commit, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(store_begin(s, &f->err), GATE_OK);
    for (int i = 0; i < 3; i++)
        must_put(f, s, sample_run(&plan, i));
    assert_int_equal(runs_in(f), 0); /* nobody else sees it yet */
    assert_int_equal(store_end(s, GATE_OK, &f->err), GATE_OK);
    assert_int_equal(runs_in(f), 3);
    /* And single runs again. */
    must_put(f, s, sample_run(&plan, 3));
    assert_int_equal(runs_in(f), 4);
    store_close(s);
    assert_sound(f->path);
}

TEST_WITHIN(rollback, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    must_put(f, s, sample_run(&plan, 0));
    assert_int_equal(store_begin(s, &f->err), GATE_OK);
    must_put(f, s, sample_run(&plan, 1));
    assert_int_equal(store_end(s, GATE_NO_VERDICT, NULL), GATE_NO_VERDICT);
    assert_int_equal(runs_in(f), 1);
    must_put(f, s, sample_run(&plan, 1));
    /* A batch that nobody ends is undone with the store. */
    assert_int_equal(store_begin(s, &f->err), GATE_OK);
    must_put(f, s, sample_run(&plan, 2));
    store_close(s);
    assert_int_equal(runs_in(f), 2);
    assert_sound(f->path);
}

/* One bad run costs itself only, also where it fails after its first rows. */
TEST_WITHIN(bad_run_in_a_batch, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    bool existed = false;
    assert_int_equal(store_begin(s, &f->err), GATE_OK);
    must_put(f, s, sample_run(&plan, 0));
    cJSON *bad = sample_run(&plan, 2);
    set_string(item_of(bad, 4), "id", "attention_fwd/fp16/b8-h16-s512-d64/causal");
    assert_int_equal(put(f, s, bad, NULL), GATE_IO);
    assert_int_equal(put(f, s, sample_run(&plan, 2), &existed), GATE_OK);
    assert_false(existed);
    assert_int_equal(put(f, s, sample_run(&plan, 0), &existed), GATE_OK);
    assert_true(existed);
    assert_int_equal(store_end(s, GATE_OK, &f->err), GATE_OK);
    assert_int_equal(runs_in(f), 2);
    assert_int_equal(scalar(f->path, "SELECT n_runs FROM track LIMIT 1"), 2);
    store_close(s);
    assert_sound(f->path);
}

/* ---- what goes wrong ---- */

/*
 * SQLite ends the transaction by itself when the disk is full. What comes after in the batch must
 * not be written outside of it, and the commit must not claim that anything was stored.
 */
TEST_WITHIN(batch_that_sqlite_ended, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(store_begin(s, &f->err), GATE_OK);
    must_put(f, s, sample_run(&plan, 0));
    assert_int_equal(sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(put(f, s, sample_run(&plan, 1), NULL), GATE_IO);
    assert_int_equal(store_end(s, GATE_OK, &f->err), GATE_IO);
    assert_int_equal(runs_in(f), 0);
    must_put(f, s, sample_run(&plan, 1));
    assert_int_equal(runs_in(f), 1);
    store_close(s);
}

/* A server starts while a long write of another process goes on; its own writes wait for theirs. */
TEST_WITHIN(open_beside_a_writer, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_int_equal(store_begin(s, &f->err), GATE_OK);
    must_put(f, s, sample_run(&plan, 0));
    struct store *other = open_store(f, STORE_READ_WRITE);
    assert_int_equal(store_end(s, GATE_OK, &f->err), GATE_OK);
    must_put(f, other, sample_run(&plan, 1));
    store_close(other);
    store_close(s);
    assert_int_equal(runs_in(f), 2);
    assert_sound(f->path);
}

TEST_WITHIN(reader, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    struct store *reader = open_store(f, STORE_READ_ONLY);
    assert_int_equal(store_begin(reader, &f->err), GATE_INTERNAL);
    store_close(reader);
    store_close(s);
}
