/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_care.c: gate-server backup, restore, thin and routes. */
#include "server/command/server_commands.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/request/auth.h"
#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "server/api/route.h"
#include "gate/store/store.h"

#define THIN_RUNS 20 /* at a time; a server that writes waits for no more */

struct care_arguments {
    const char *db;
    int64_t older_ms;
};

#define ARGUMENTS struct care_arguments

static const struct option_def db_option[] = {SERVER_DB_OPTION, {0}};

static enum gate_status need_db(const struct care_arguments *a, struct gate_error *err)
{
    return a->db ? GATE_OK : gate_fail(err, GATE_USAGE, "--db FILE is missing; see --help");
}

static int backup(struct command_call *call, struct gate_error *err)
{
    const struct care_arguments *a = call->arguments;
    struct store *store;
    TRY(need_db(a, err));
    TRY(store_open(a->db, STORE_READ_ONLY, &store, err));
    enum gate_status status = store_backup(store, call->operands[0], err);
    store_close(store);
    return status;
}

const struct command command_backup = {
    .name = "gate-server backup",
    .operands = "--db FILE COPY",
    .least = 1,
    .most = 1,
    .missing = "the path of the copy is missing",
    .summary = "copy the database while the server runs",
    .about =
        "Copies the database in its present state to COPY, which must not exist. The server may "
        "keep running. Artifacts are separate files: copy their folder afterwards.\n",
    .groups = {{db_option, 0}},
    .ending = "Exit codes: 0 done, 64 usage, 70 internal, 74 files.\n",
    .bytes = sizeof(struct care_arguments),
    .main = backup,
};

static void put_fault(void *, const char *fault)
{
    printf("fault    %s\n", fault);
}

static int restore(struct command_call *call, struct gate_error *err)
{
    const struct care_arguments *a = call->arguments;
    TRY(need_db(a, err));
    return store_restore(call->operands[0], a->db, put_fault, NULL, err);
}

const struct command command_restore = {
    .name = "gate-server restore",
    .operands = "--db FILE COPY",
    .least = 1,
    .most = 1,
    .missing = "the path of the copy is missing",
    .summary = "make a database from a backup",
    .about = "Creates FILE, which must not exist, from a backup. If the backup is damaged, it "
             "prints the faults and creates nothing. Copy artifacts by hand; `gate-server check` "
             "reads all of them.\n",
    .groups = {{db_option, 0}},
    .ending = "Exit codes: 0 done, 64 usage, 70 internal, 74 files, or faults.\n",
    .bytes = sizeof(struct care_arguments),
    .main = restore,
};

static int thin(struct command_call *call, struct gate_error *err)
{
    const struct care_arguments *a = call->arguments;
    struct store *store;
    int64_t total = 0, n = THIN_RUNS, now_ms = clock_wall_ms();
    TRY(need_db(a, err));
    if (a->older_ms == 0)
        return gate_fail(err, GATE_USAGE, "--older-than TIME is missing; see --help");
    TRY(store_open(a->db, STORE_UPDATE, &store, err));
    enum gate_status status = GATE_OK;
    while (!status && n == THIN_RUNS) {
        status = store_thin(store, now_ms - a->older_ms, now_ms, THIN_RUNS, &n, err);
        total += !status ? n : 0;
    }
    store_close(store);
    if (!status)
        printf("%" PRId64 " runs thinned\n", total);
    return status;
}

static const struct option_def thin_options[] = {
    SERVER_DB_OPTION,
    OPTION(READ, "older-than", "TIME", older_ms, "the age of the runs", .read = read_duration,
           .form = DURATION_FORM),
    {0},
};

const struct command command_thin = {
    .name = "gate-server thin",
    .operands = "--db FILE --older-than TIME",
    .summary = "drop the raw samples of old runs",
    .about =
        "Drops the raw samples of runs that are older than TIME, such as 90d, and nothing else. "
        "The server may keep running (with --keep-samples it does the same itself).\n",
    .groups = {{thin_options, 0}},
    .ending = "Exit codes: 0 done, 64 usage, 70 internal, 74 database.\n",
    .bytes = sizeof(struct care_arguments),
    .main = thin,
};

static int routes(struct command_call *, struct gate_error *)
{
    RELEASED_BY(buf_release) struct buf text = buf_of(1 << 16);
    routes_write(&text);
    fwrite(text.data, 1, text.len, stdout);
    return GATE_OK;
}

const struct command command_routes = {
    .name = "gate-server routes",
    .summary = "print the addresses that are served",
    .about = "Prints the addresses that the server serves, as a Markdown table.\n",
    .ending = "Exit codes: 0 done, 64 usage, 70 internal.\n",
    .main = routes,
};
