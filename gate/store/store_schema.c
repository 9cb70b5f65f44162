/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_schema.c: makes the tables of a new file, and brings an older file up to date.
 *
 * The version of a file is its `user_version`: one number for gate and gate-server, whoever opens
 * it first. schema.sql and views.sql are what a new file gets. A change of the schema raises
 * STORE_SCHEMA_VERSION, changes these, and adds a row to `upgrades`.
 */
#include "gate/store/store_private.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/embed.h"

#define MAX_SCRIPTS 7
#define MAX_PATH 4096

_Static_assert(STORE_APPLICATION_ID == 0x4b474831 && STORE_SCHEMA_VERSION == 7,
               "new_file stamps a file with both");

/* A script, or a statement where it has a space. */
static const char *const new_file[] = {
    "schema.sql",
    "views.sql",
    "INSERT INTO meta (key, value) VALUES ('identity', lower(hex(randomblob(16)))), ('copy', ''),"
    " ('n_writes', 0), ('watch_run', 0), ('watch_track', 0)",
    "PRAGMA application_id = 0x4b474831; PRAGMA user_version = 7",
    NULL,
};

/* What brings a file of each version on. Version 1 gets the tables of today at once. */
static const char *const upgrades[STORE_SCHEMA_VERSION][MAX_SCRIPTS + 1] = {
    [1] = {"upgrade_2_before.sql", "schema.sql", "upgrade_2.sql", "places.sql", "placed.sql",
           "views.sql", "PRAGMA user_version = 7"},
    [2] = {"upgrade_3.sql", "places.sql", "placed.sql", "views.sql", "PRAGMA user_version = 3"},
    [3] = {"upgrade_4.sql", "PRAGMA user_version = 4"},
    [4] = {"upgrade_5.sql", "PRAGMA user_version = 5"},
    [5] = {"upgrade_6.sql", "PRAGMA user_version = 6"},
    [6] = {"upgrade_7.sql", "PRAGMA user_version = 7"},
};

bool store_uses_wal(struct store *s)
{
    int64_t wal = 0;
    int rc = store_pragma(s->db, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", &wal);
    return rc == SQLITE_OK && wal != 0;
}

enum gate_status store_check_tables(struct store *s, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(
        s->db,
        "SELECT value FROM json_each('[\"meta\", \"revision\", \"run\", \"document\", \"track\","
        " \"result\", \"token\", \"alert\", \"alert_event\", \"outbox\"]') WHERE value NOT IN"
        " (SELECT name FROM sqlite_schema WHERE type = 'table')",
        -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        status = gate_fail(err, GATE_IO,
                           "'%s' has no table '%s', so somebody removed it, or another build "
                           "wrote the file: restore it from a backup",
                           s->path, sqlite3_column_text(stmt, 0));
    else if (rc != SQLITE_DONE)
        status = store_fail(s, rc, "open", err);
    sqlite3_finalize(stmt);
    return status;
}

const char *store_script(const char *name)
{
    for (size_t i = 0; i < embedded_store_count; i++) {
        if (!strcmp(embedded_store[i].name, name))
            return (const char *)embedded_store[i].data;
    }
    return name;
}

static enum gate_status run_scripts(struct store *s, const char *const *names, const char *doing,
                                    struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (; *names && !status; names++)
        status = store_execute(s, store_script(*names), doing, err);
    return status;
}

/* In a transaction: another process may have done it since the file was looked at. */
static enum gate_status bring_up(struct store *s, struct gate_error *err)
{
    int64_t version = 0, application = 0, n_lost = 0;
    int rc = store_pragma(s->db, "PRAGMA user_version", &version);
    if (rc == SQLITE_OK)
        rc = store_pragma(s->db, "PRAGMA application_id", &application);
    if (rc != SQLITE_OK)
        return store_fail(s, rc, "open", err);
    if (version == 0 && application == 0)
        return run_scripts(s, new_file, "create the tables of", err);
    TRY(store_identify(s, &version, err));
    while (rc == SQLITE_OK && version < STORE_SCHEMA_VERSION) {
        TRY(run_scripts(s, upgrades[version], "bring up to date", err));
        rc = store_pragma(s->db, "PRAGMA user_version", &version);
    }
    if (rc == SQLITE_OK)
        rc = store_pragma(s->db, "SELECT count(*) FROM pragma_foreign_key_check", &n_lost);
    if (rc != SQLITE_OK)
        return store_fail(s, rc, "bring up to date", err);
    return n_lost == 0
               ? GATE_OK
               : gate_fail(err, GATE_IO,
                           "cannot bring '%s' up to date: %lld rows point at nothing; it stays as "
                           "it is: restore it from a backup, or ask the program that wrote it to "
                           "check it",
                           s->path, (long long)n_lost);
}

/*
 * The first transaction runs in rollback mode and WAL comes after it, so that the main file of
 * every store of ours bears its application_id from the start.
 */
static enum gate_status bring_up_whole(struct store *s, struct gate_error *err)
{
    TRY(store_execute(s, "BEGIN IMMEDIATE", "write to", err));
    enum gate_status status = bring_up(s, err);
    if (!status)
        status = store_execute(s, "COMMIT", "write to", err);
    if (status)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/* A copy of a file of an older version, which stays beside it. `path` is its name. */
static enum gate_status keep_old(struct store *s, int64_t version, char path[MAX_PATH],
                                 struct gate_error *err)
{
    int n = snprintf(path, MAX_PATH, "%s.v%lld.bak", s->path, (long long)version);
    for (int i = 2; n > 0 && n < MAX_PATH && access(path, F_OK) == 0; i++)
        n = snprintf(path, MAX_PATH, "%s.v%lld.bak%d", s->path, (long long)version, i);
    if (n < 0 || n >= MAX_PATH)
        return gate_fail(err, GATE_IO, "cannot copy '%s': its path is too long", s->path);
    return store_backup(s, path, err);
}

/* An upgrade that fails leaves the file as it was, and no copy. Tables are renamed and dropped, and
 * nothing that refers to them is to follow. */
static enum gate_status upgrade(struct store *s, int64_t version, struct gate_error *err)
{
    char copy[MAX_PATH];
    TRY(keep_old(s, version, copy, err));
    enum gate_status status =
        store_execute(s, "PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON", "open", err);
    if (!status)
        status = bring_up_whole(s, err);
    if (status)
        unlink(copy);
    sqlite3_exec(s->db, "PRAGMA foreign_keys = ON; PRAGMA legacy_alter_table = OFF", NULL, NULL,
                 NULL);
    return status;
}

enum gate_status store_create(struct store *s, struct gate_error *err)
{
    int64_t version = 0;
    int rc = store_pragma(s->db, "PRAGMA user_version", &version);
    if (rc != SQLITE_OK)
        return store_fail(s, rc, "open", err);
    bool is_old = version > 0 && version < STORE_SCHEMA_VERSION;
    TRY(is_old ? upgrade(s, version, err) : bring_up_whole(s, err));
    /* Where the file system cannot do it, SQLite keeps the old mode, and says no error. */
    TRY(store_execute(s, "PRAGMA journal_mode = WAL", "write to", err));
    return store_uses_wal(s)
               ? GATE_OK
               : gate_fail(err, GATE_IO,
                           "cannot keep '%s' in WAL mode: put it on a local file system", s->path);
}
