/* SPDX-License-Identifier: Apache-2.0 */
/* store_fixture.c: see store_fixture.h. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/store/store_rows.h"
#include "tests/tools/sample_put.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/unit.h"

int store_set_up(void **state)
{
    const char *temporary = getenv("TMPDIR");
    struct store_fixture *f = calloc(1, sizeof(*f));
    snprintf(f->folder, sizeof(f->folder), "%s/store.XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(f->folder) || chmod(f->folder, 0755) < 0)
        return -1;
    snprintf(f->path, sizeof(f->path), "%s/gate.db", f->folder);
    *state = f;
    return 0;
}

int store_tear_down(void **state)
{
    struct store_fixture *f = *state;
    char command[600];
    snprintf(command, sizeof(command), "rm -rf '%s'", f->folder);
    int rc = system(command);
    free(f);
    return rc;
}

struct store *open_store(struct store_fixture *f, enum store_mode mode)
{
    struct store *s = NULL;
    if (store_open(f->path, mode, &s, &f->err) != GATE_OK)
        fail_msg("%s", f->err.message);
    return s;
}

/* Stores a document, which is freed. */
enum gate_status put(struct store_fixture *f, struct store *s, cJSON *document, bool *existed)
{
    enum gate_status status = sample_put(s, document, existed, &f->err);
    cJSON_Delete(document);
    return status;
}

const struct sample_plan plan = {.seed = 7, .n_runs = 12, .n_cases = 5, .n_devices = 2};

void fill(struct store_fixture *f, struct store *s, const struct sample_plan *p)
{
    for (int i = 0; i < p->n_runs; i++) {
        if (put(f, s, sample_run(p, i), NULL) != GATE_OK)
            fail_msg("%s", f->err.message);
    }
}

int64_t scalar(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

void text_of(const char *path, const char *sql, const char *bound, char *out, size_t size)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    if (bound)
        sqlite3_bind_text(stmt, 1, bound, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    snprintf(out, size, "%s", (const char *)sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

void execute(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

void assert_sound(const char *path)
{
    assert_int_equal(scalar(path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    assert_int_equal(scalar(path, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

cJSON *item_of(cJSON *document, int index)
{
    return cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(document, "cases"), index);
}

cJSON *arm_of(cJSON *document, int index, int arm)
{
    cJSON *arms = cJSON_GetObjectItemCaseSensitive(item_of(document, index), "arms");
    return cJSON_GetArrayItem(arms, arm);
}

cJSON *timing_of(cJSON *document, int index, int arm)
{
    return cJSON_GetObjectItemCaseSensitive(arm_of(document, index, arm), "timing");
}

void set_number(cJSON *object, const char *key, double value)
{
    assert_true(cJSON_ReplaceItemInObjectCaseSensitive(object, key, cJSON_CreateNumber(value)));
}

void set_string(cJSON *object, const char *key, const char *value)
{
    assert_true(cJSON_ReplaceItemInObjectCaseSensitive(object, key, cJSON_CreateString(value)));
}

cJSON *run_at(int index, int64_t time_ms)
{
    static const struct sample_plan flat = {
        .seed = 5, .n_runs = 1000, .n_cases = 1, .n_devices = 1};
    cJSON *run = sample_run(&flat, index);
    set_number(run, "time_ms", (double)time_ms);
    set_string(cJSON_GetObjectItem(run, "git"), "parent", "");
    return run;
}

void must_put(struct store_fixture *f, struct store *s, cJSON *run)
{
    if (put(f, s, run, NULL) != GATE_OK)
        fail_msg("%s", f->err.message);
}

static bool count_run(void *context, const struct store_row *)
{
    (*(int *)context)++;
    return true;
}

enum gate_status count_runs(struct store_fixture *f, struct store *s, int *n)
{
    *n = 0;
    return store_select(s, "SELECT uuid, subject FROM run", NULL, count_run, n, &f->err);
}

bool in_child(struct store_fixture *f, bool (*body)(struct store_fixture *f))
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(body(f) ? 0 : 1);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
