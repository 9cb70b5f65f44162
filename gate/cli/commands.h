/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h: the commands of `gate`, and what they share: options, the store and its documents.
 * Each prints its result on standard output and diagnostics on standard error.
 */
#ifndef GATE_CLI_COMMANDS_H
#define GATE_CLI_COMMANDS_H

#include "gate/base/alloc.h"
#include "gate/base/buf.h"
#include "gate/base/error.h"
#include "gate/cli/options.h"
#include "gate/document/document.h"
#include "gate/report/report.h"
#include "gate/store/store.h"
#include "gate/tracker/tracker.h"

extern const struct command command_run, command_verify, command_compare, command_calibrate,
    command_baseline, command_report, command_history, command_leaderboard, command_export,
    command_import, command_push, command_merge, command_comment, command_bisect, command_diff,
    command_search, command_doctor, command_init;

/* ---- work that lies in files of its own ---- */

/* What `gate baseline` is asked for. */
struct baseline_request {
    const char *cases; /* a case, or for accept a pattern of several, then taken from one run */
    const char *device_model, *run; /* NULL: any, and the newest */
    const char *db, *baselines, *reason;
    struct remote_choice remote;
    bool json, allow_dirty;
};

/* Makes what a run measured the baseline: stores all that `cases` names, or nothing, and prints it.
 * GATE_USAGE: there is no such measurement, or one of them does not count. */
enum gate_status baseline_accept(const struct baseline_request *r, struct gate_error *err);

/* Ends the baseline of a case that is measured no more, and logs why. GATE_USAGE: there is none. */
enum gate_status baseline_retire_case(const struct baseline_request *r, struct gate_error *err);

/* `gate init --example`: which of the example's two libraries a machine can build and measure. */
struct example {
    const char *library; /* as gate.json names it */
    const char *options; /* that the commands need here; "" or with a blank in front */
};
struct example example_choose(bool has_gpu, bool has_nvcc);

/* ---- what they share ---- */

#define COMMAND_MAX_OUTPUT (1024u * 1024 * 1024) /* bytes of a result that is built in memory */

/* Entries of an option table, for a `const char *`, a `bool` or a struct command_link of ARGUMENTS.
 */
#define DB_OPTION(field)                                                                           \
    OPTION(TEXT, "db", "FILE", field, "the history, a database", .variable = "GATE_DB",            \
           .key = "database", .is_path = true, .fallback = "./gate.db")
#define BASELINES_OPTION(field)                                                                    \
    OPTION(TEXT, "baselines", "DIR", field, "folder of the stored baselines",                      \
           .variable = "GATE_BASELINES", .key = "baselines", .is_path = true,                      \
           .fallback = "./baselines")
#define JSON_OPTION(field) FLAG("json", field, "print JSON; times in ms since 1970 and in ns")
#define LINK_OPTION(field)                                                                         \
    OPTION(READ, "link", "URL", field, "address of the dashboard, which reports name or link to",  \
           .read = command_read_link, .form = "https://HOST[:PORT][/PATH]")

/* The address of a dashboard, without a '/' at its end; "": none. */
struct command_link {
    char url[REMOTE_URL_MAX + 1];
};
bool command_read_link(void *link, const char *text);

/* Of struct remote_choice. */
extern const struct option_def remote_options[];

/* What these two are when nothing says otherwise. */
#define DEFAULT_DB "gate.db"
#define DEFAULT_BASELINES "baselines"

/* Writes a result: to a file as a whole, or to standard output when `path` is NULL or "-".
 * GATE_INTERNAL when `result` has failed. */
enum gate_status command_write(const char *path, const struct buf *result, struct gate_error *err);

/* Closes the store that lies there, for RELEASED_BY(). */
void command_close_store(struct store **s);

/* What standard output can show. */
struct report_style command_style(void);

/* The uuid of the newest run on a device model; NULL: on any. GATE_USAGE: there is none. */
enum gate_status command_newest_run(struct store *s, const char *device_model, char uuid[64],
                                    struct gate_error *err);

/*
 * The document of a run, parsed and checked; `uuid` may be "latest" or an unambiguous prefix. *out
 * is the caller's (document_release). GATE_USAGE: no such run.
 */
enum gate_status command_document(struct store *s, const char *uuid, struct document *out,
                                  struct gate_error *err);

/* Appends a stored document as JSON, with the members that it came with, in their order, if it is
 * a document still: a database is a file that others may have written to. */
enum gate_status command_put_document(const char *name, const char *text, size_t len, bool indented,
                                      struct buf *out, struct gate_error *err);

/* The same of a run. */
enum gate_status command_document_json(struct store *s, const char *uuid, bool indented,
                                       struct buf *out, struct gate_error *err);

/* The JSON report of a run that ended early. False: the file is not such a report. */
bool command_read_early(const char *path, struct report_early *out);

#endif
