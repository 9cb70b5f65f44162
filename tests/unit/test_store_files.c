/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_files.c: what becomes of files and of runs when something fails: damage, rights, full
 * disks, kills. */
#include <linux/capability.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/base/json.h"
#include "gate/document/document.h"
#include "gate/store/store_private.h"
#include "tests/tools/sample_put.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/unit.h"

#define ATTENTION "attention_fwd/fp16/b8-h16-s512-d64/causal"

/* ---- files that are not ours ---- */

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void read_all(const char *path, struct buf *bytes)
{
    char chunk[4096];
    size_t n;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    buf_init(bytes, 1 << 26);
    while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
        buf_append(bytes, chunk, n);
    fclose(file);
    assert_false(bytes->failed);
}

static int files_in(const char *folder)
{
    char command[400];
    int n = -1;
    snprintf(command, sizeof(command), "ls -A '%s' | wc -l", folder);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%d", &n), 1);
    pclose(pipe);
    return n;
}

/* Neither mode opens the file, both say something with `words` in it, and it stays as it is. */
static void assert_refused(struct store_fixture *f, const char *words)
{
    struct buf before, after;
    int files = files_in(f->folder);
    read_all(f->path, &before);
    for (int mode = STORE_READ_ONLY; mode <= STORE_READ_WRITE; mode++) {
        struct store *s = NULL;
        assert_int_equal(store_open(f->path, (enum store_mode)mode, &s, &f->err), GATE_IO);
        assert_null(s);
        if (!strstr(f->err.message, words))
            fail_msg("no '%s' in: %s", words, f->err.message);
        assert_non_null(strstr(f->err.message, f->path));
    }
    read_all(f->path, &after);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.data, after.data, before.len);
    assert_int_equal(files_in(f->folder), files);
    buf_release(&before);
    buf_release(&after);
}

TEST_WITHIN(other_schema_version, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    store_close(s);
    execute(f->path, "PRAGMA user_version = 99");
    assert_refused(f, "schema version 99");
}

/* What somebody removed by hand; what somebody added is nobody's business. */
TEST_WITHIN(other_tables, store_set_up, store_tear_down)
{
    static const char *const tables[] = {"meta",   "revision", "run",   "document",    "track",
                                         "result", "token",    "alert", "alert_event", "outbox"};
    struct store_fixture *f = *state;
    store_close(open_store(f, STORE_READ_WRITE));
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char sql[60], says[60];
        snprintf(sql, sizeof sql, "DROP TABLE %s", tables[i]);
        snprintf(says, sizeof says, "has no table '%s'", tables[i]);
        execute(f->path, sql);
        assert_refused(f, says);
        unlink(f->path);
        store_close(open_store(f, STORE_READ_WRITE));
    }
    execute(f->path, "CREATE VIEW mine AS SELECT 1; CREATE TABLE notes (text); ANALYZE;"
                     "DROP INDEX run_by_host");
    store_close(open_store(f, STORE_READ_WRITE));
}

TEST_WITHIN(foreign_database, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    execute(f->path, "CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')");
    assert_refused(f, "another program");
    execute(f->path, "PRAGMA application_id = 252006674; PRAGMA journal_mode = WAL");
    assert_refused(f, "another program");
}

TEST_WITHIN(not_a_database, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    char long_text[8192];
    memset(long_text, 'x', sizeof(long_text));
    write_file(f->path, "{}\n", 3);
    assert_refused(f, "not a database");
    write_file(f->path, long_text, sizeof(long_text));
    assert_refused(f, "not a database");
    memset(long_text, 0, sizeof(long_text));
    write_file(f->path, long_text, sizeof(long_text));
    assert_refused(f, "not a database");
}

TEST_WITHIN(truncated_file, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    store_close(s);
    struct buf whole;
    read_all(f->path, &whole);
    const size_t lengths[] = {50, 100, 4096, whole.len / 2, whole.len - 4096, whole.len - 1};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        write_file(f->path, whole.data, lengths[i]);
        assert_refused(f, "damaged");
    }
    write_file(f->path, whole.data, whole.len);
    s = open_store(f, STORE_READ_ONLY);
    store_close(s);
    buf_release(&whole);
}

/* A page of noise in the middle is an error, not a crash and not an answer. */
/* A disk that fails while the log is moved into the file may leave a page of it half written. The
 * log has the whole one, and who opens the file then must not call it damaged. */
TEST_WITHIN(half_a_page_beside_a_log, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    int n;
    struct store *writer = open_store(f, STORE_READ_WRITE);
    fill(f, writer, &plan);
    struct buf whole;
    read_all(f->path, &whole);
    assert_true(whole.len > 0 && whole.len % 4096 == 0);
    assert_int_equal(truncate(f->path, (off_t)whole.len + 2048), 0);
    struct store *s = open_store(f, STORE_READ_ONLY);
    assert_int_equal(count_runs(f, s, &n), GATE_OK);
    assert_true(n > 0);
    store_close(s);
    store_close(writer); /* moves the log into the file, and removes it */
    store_close(open_store(f, STORE_READ_WRITE));
    buf_release(&whole);
}

TEST_WITHIN(damaged_page, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    store_close(s);
    struct buf whole;
    read_all(f->path, &whole);
    memset(whole.data + 4096, 0x5a, whole.len - 4096);
    write_file(f->path, whole.data, whole.len);
    int n;
    enum gate_status status = store_open(f->path, STORE_READ_ONLY, &s, &f->err);
    if (status == GATE_OK) {
        status = count_runs(f, s, &n);
        assert_int_equal(n, 0);
        store_close(s);
    }
    assert_int_equal(status, GATE_IO);
    buf_release(&whole);
}

TEST_WITHIN(missing_and_empty, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = NULL;
    assert_int_equal(store_open(f->path, STORE_READ_ONLY, &s, &f->err), GATE_IO);
    assert_non_null(strstr(f->err.message, "`gate run` creates it, and --db"));
    assert_int_equal(access(f->path, F_OK), -1);
    write_file(f->path, "", 0);
    assert_int_equal(store_open(f->path, STORE_READ_ONLY, &s, &f->err), GATE_IO);
    assert_non_null(strstr(f->err.message, "empty"));
    store_close(open_store(f, STORE_READ_WRITE));
    assert_int_equal(store_open("", STORE_READ_WRITE, &s, &f->err), GATE_IO);
    assert_int_equal(store_open(f->folder, STORE_READ_WRITE, &s, &f->err), GATE_IO);
    assert_non_null(strstr(f->err.message, "not a regular file"));
    assert_int_equal(store_open("/dev/null", STORE_READ_WRITE, &s, &f->err), GATE_IO);
    char long_path[9000];
    memset(long_path, 'a', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    assert_int_equal(store_open(long_path, STORE_READ_WRITE, &s, &f->err), GATE_IO);
    assert_null(s);
}

/* Names that mean something to SQLite are names of files to us. */
TEST_WITHIN(odd_names, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    static const char *const names[] = {":memory:", "file:x.db?mode=memory", "a b%20c?#&.db",
                                        "file::memory:"};
    assert_int_equal(chdir(f->folder), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(f->path, sizeof(f->path), "%s", names[i]);
        store_close(open_store(f, STORE_READ_WRITE));
        assert_int_equal(access(names[i], F_OK), 0);
        store_close(open_store(f, STORE_READ_ONLY));
    }
    assert_int_equal(chdir("/"), 0);
}

/* ---- rights ---- */

/* The superuser gives up what lets it through, and then the modes hold for it too. */
static bool drop_rights(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    return geteuid() != 0 || syscall(SYS_capset, &header, none) == 0;
}

static bool refused_for_writing(struct store_fixture *f)
{
    struct store *s = NULL;
    if (!drop_rights())
        return false;
    bool refused = store_open(f->path, STORE_READ_WRITE, &s, &f->err) == GATE_IO &&
                   strstr(f->err.message, f->path) != NULL;
    store_close(s);
    return refused;
}

static bool refused_for_reading(struct store_fixture *f)
{
    struct store *s = NULL;
    if (!drop_rights())
        return false;
    bool refused = store_open(f->path, STORE_READ_ONLY, &s, &f->err) == GATE_IO &&
                   strstr(f->err.message, "must be readable and writable") != NULL;
    store_close(s);
    return refused;
}

TEST_WITHIN(read_only_folder, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    assert_int_equal(chmod(f->folder, 0555), 0);
    assert_true(in_child(f, refused_for_writing));
    assert_int_equal(chmod(f->folder, 0755), 0);
    assert_int_equal(access(f->path, F_OK), -1);

    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    store_close(s);
    assert_int_equal(chmod(f->path, 0444), 0);
    assert_int_equal(chmod(f->folder, 0555), 0);
    assert_true(in_child(f, refused_for_writing));
    assert_true(in_child(f, refused_for_reading));
    assert_int_equal(chmod(f->folder, 0755), 0);
    assert_sound(f->path);
}

/* ---- all or nothing ---- */

static void assert_nothing_stored(struct store_fixture *f)
{
    assert_sound(f->path);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 0);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM track"), 0);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM result"), 0);
}

TEST_WITHIN(case_twice_stores_nothing, store_set_up, store_tear_down)
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
    must_put(f, s, sample_run(&plan, 0));
    store_close(s);
}

/* What the reader of documents would not let through: the tables are a second line of defence. */
enum hostile { TIME, RIVAL_P50, BASELINE_P50, MDE };

static void assert_tables_refuse(struct store_fixture *f, struct store *s, enum hostile what,
                                 double value)
{
    struct document d;
    struct field_fault fault;
    bool existed;
    cJSON *run = sample_run(&plan, 0);
    assert_true(sample_read(run, &d, &fault));
    struct document_case *c = &d.cases[2];
    if (what == TIME)
        d.time_ms = (int64_t)value;
    else if (what == RIVAL_P50)
        c->arms[RIVAL].timing.p50_ns = value;
    else if (what == BASELINE_P50)
        c->arms[BASELINE].timing.p50_ns = value;
    else
        c->mde = value;
    assert_int_equal(store_put_run(s, &d, "{}", 2, &existed, &f->err), GATE_IO);
    document_release(&d);
    cJSON_Delete(run);
}

TEST_WITHIN(hostile_numbers, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    static const double bad_times[] = {-1, 9.1e18, -9007199254740992.0};
    static const double bad_p50s[] = {-1, 0, -1e308, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof(bad_times) / sizeof(bad_times[0]); i++)
        assert_tables_refuse(f, s, TIME, bad_times[i]);
    for (size_t i = 0; i < sizeof(bad_p50s) / sizeof(bad_p50s[0]); i++)
        assert_tables_refuse(f, s, RIVAL_P50, bad_p50s[i]);
    assert_tables_refuse(f, s, BASELINE_P50, -1);
    assert_tables_refuse(f, s, MDE, -0.001);
    assert_nothing_stored(f);

    static const double good_p50s[] = {5e-324, 1e-4, 18612.345678901, 1e15};
    for (size_t i = 0; i < sizeof(good_p50s) / sizeof(good_p50s[0]); i++) {
        cJSON *run = sample_run(&plan, (int)i);
        set_number(timing_of(run, 2, CANDIDATE), "p50_ns", good_p50s[i]);
        if (put(f, s, run, NULL) != GATE_OK)
            fail_msg("%s", f->err.message);
    }
    cJSON *late = sample_run(&plan, 4);
    set_number(late, "time_ms", JSON_MAX_SAFE_INTEGER);
    must_put(f, s, late);
    store_close(s);
    assert_sound(f->path);
}

TEST_WITHIN(strings_are_data, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    cJSON *run = sample_run(&plan, 0);
    set_string(cJSON_GetObjectItem(run, "git"), "subject", "'); DROP TABLE run; --");
    set_string(item_of(run, 0), "reason", "\" ' ; -- %s %n \x01 \xe2\x82\xac");
    must_put(f, s, run);
    store_close(s);
    assert_int_equal(scalar(f->path, "SELECT subject = '''); DROP TABLE run; --' FROM run"), 1);
}

TEST_WITHIN(disk_full, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    must_put(f, s, sample_run(&plan, 0));
    assert_int_equal(sqlite3_exec(s->db, "PRAGMA max_page_count = 1", NULL, NULL, NULL), SQLITE_OK);
    struct sample_plan big = {.seed = 3, .n_runs = 3, .n_cases = 400, .n_devices = 1};
    assert_int_equal(put(f, s, sample_run(&big, 0), NULL), GATE_IO);
    assert_non_null(strstr(f->err.message, "full"));
    assert_non_null(strstr(f->err.message, "free some space"));
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 1);
    assert_sound(f->path);
    assert_int_equal(sqlite3_exec(s->db, "PRAGMA max_page_count = 1000000", NULL, NULL, NULL),
                     SQLITE_OK);
    must_put(f, s, sample_run(&big, 0));
    store_close(s);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 2);
}

static bool put_under_file_limit(struct store_fixture *f)
{
    struct store *s = NULL;
    struct sample_plan big = {.seed = 3, .n_runs = 3, .n_cases = 400, .n_devices = 1};
    struct rlimit limit = {1 << 18, 1 << 18};
    signal(SIGXFSZ, SIG_IGN);
    if (store_open(f->path, STORE_READ_WRITE, &s, &f->err) != GATE_OK ||
        setrlimit(RLIMIT_FSIZE, &limit) < 0)
        return false;
    bool refused = put(f, s, sample_run(&big, 0), NULL) == GATE_IO;
    store_close(s);
    return refused;
}

TEST_WITHIN(write_that_fails_half_way, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    must_put(f, s, sample_run(&plan, 0));
    store_close(s);
    assert_true(in_child(f, put_under_file_limit));
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM run"), 1);
    assert_sound(f->path);
    s = open_store(f, STORE_READ_WRITE);
    must_put(f, s, sample_run(&plan, 1));
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
                              "INSERT INTO meta (key, value) SELECT 'key ' || i, 1 FROM n",
                              NULL, NULL, NULL) == SQLITE_OK;
    if (ready)
        kill(getpid(), SIGKILL);
    return true;
}

TEST_WITHIN(writer_that_is_killed, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    must_put(f, s, sample_run(&plan, 0));
    store_close(s);
    assert_false(in_child(f, die_in_a_transaction));
    s = open_store(f, STORE_READ_WRITE);
    must_put(f, s, sample_run(&plan, 1));
    store_close(s);
    assert_int_equal(scalar(f->path, "SELECT count(DISTINCT device) FROM run"), 2);
    assert_sound(f->path);
}
