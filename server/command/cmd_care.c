/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_care.c: gate-server backup, restore, thin and routes. */
#include "server/command/server_commands.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/request/auth.h"
#include "gate/base/clock.h"
#include "server/command/options.h"
#include "server/api/route.h"
#include "gate/store/store.h"

#define THIN_RUNS 20 /* at a time; a server that writes waits for no more */

static const char backup_usage[] =
    "Usage: gate-server backup --db FILE COPY\n"
    "\n"
    "Copies the database in its present state to COPY, which must not exist. The server may keep\n"
    "running. Artifacts are separate files: copy their folder afterwards.\n"
    "Exit status: 0 done, 64 usage, 70 internal, 74 files.\n";

static const char restore_usage[] =
    "Usage: gate-server restore --db FILE COPY\n"
    "\n"
    "Creates FILE, which must not exist, from a backup. If the backup is damaged, it prints the\n"
    "faults and creates nothing. Copy artifacts by hand; `gate-server check` reads all of them.\n"
    "Exit status: 0 done, 64 usage, 70 internal, 74 files, or faults.\n";

static const char thin_usage[] =
    "Usage: gate-server thin --db FILE --older-than TIME\n"
    "\n"
    "Drops the raw samples of runs that are older than TIME, such as 90d, and nothing else.\n"
    "The server may keep running (with --keep-samples it does the same itself).\n"
    "Exit status: 0 done, 64 usage, 70 internal, 74 database.\n";

static const char routes_usage[] =
    "Usage: gate-server routes\n"
    "\n"
    "Prints the addresses that the server serves, as a Markdown table.\n"
    "Exit status: 0 done, 64 usage, 70 internal.\n";

struct care_arguments {
    const char *db;
    int64_t older_ms;
    const char *copy;
};

static enum gate_status read_option(void *context, int letter, const char *value,
                                    struct gate_error *err)
{
    struct care_arguments *a = context;
    if (letter == 'o')
        return options_duration("--older-than", value, &a->older_ms, err);
    a->db = value;
    return GATE_OK;
}

static enum gate_status parse(int argc, char **argv, const struct option *options,
                              const char *usage, bool takes_copy, struct care_arguments *a,
                              bool *done, struct gate_error *err)
{
    enum gate_status status =
        options_parse(argc, argv, options, usage, read_option, a, &a->copy, takes_copy, done, err);
    if (status || *done)
        return status;
    if (!a->db)
        return gate_fail(err, GATE_USAGE, "--db FILE is missing; see --help");
    if (takes_copy && !a->copy)
        return gate_fail(err, GATE_USAGE, "the path of the copy is missing; see --help");
    return GATE_OK;
}

static const struct option db_only[] = {
    {"db", required_argument, NULL, 'd'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

enum gate_status server_backup(int argc, char **argv, struct gate_error *err)
{
    struct care_arguments a = {0};
    struct store *store;
    bool done;
    enum gate_status status = parse(argc, argv, db_only, backup_usage, true, &a, &done, err);
    if (status || done)
        return status;
    status = store_open(a.db, STORE_READ_ONLY, &store, err);
    if (status)
        return status;
    status = store_backup(store, a.copy, err);
    store_close(store);
    return status;
}

static void put_fault(void *context, const char *fault)
{
    (void)context;
    printf("fault    %s\n", fault);
}

enum gate_status server_restore(int argc, char **argv, struct gate_error *err)
{
    struct care_arguments a = {0};
    bool done;
    enum gate_status status = parse(argc, argv, db_only, restore_usage, true, &a, &done, err);
    if (status || done)
        return status;
    return store_restore(a.copy, a.db, put_fault, NULL, err);
}

enum gate_status server_thin(int argc, char **argv, struct gate_error *err)
{
    static const struct option options[] = {
        {"db", required_argument, NULL, 'd'},
        {"older-than", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct care_arguments a = {0};
    struct store *store;
    bool done;
    int64_t total = 0;
    int64_t n = THIN_RUNS;
    enum gate_status status = parse(argc, argv, options, thin_usage, false, &a, &done, err);
    if (status || done)
        return status;
    if (a.older_ms == 0)
        return gate_fail(err, GATE_USAGE, "--older-than TIME is missing; see --help");
    status = store_open(a.db, STORE_UPDATE, &store, err);
    if (status)
        return status;
    int64_t now_ms = clock_wall_ms();
    while (!status && n == THIN_RUNS) {
        status = store_thin(store, now_ms - a.older_ms, now_ms, THIN_RUNS, &n, err);
        total += !status ? n : 0;
    }
    store_close(store);
    if (!status)
        printf("%" PRId64 " runs thinned\n", total);
    return status;
}

enum gate_status server_routes(int argc, char **argv, struct gate_error *err)
{
    struct care_arguments a = {0};
    bool done;
    enum gate_status status =
        options_parse(argc, argv, db_only + 1, routes_usage, read_option, &a, NULL, 0, &done, err);
    if (status || done)
        return status;
    struct buf text;
    buf_init(&text, 1 << 16);
    routes_write(&text);
    fwrite(text.data, 1, text.len, stdout);
    buf_release(&text);
    return GATE_OK;
}
