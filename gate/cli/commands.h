/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h: the commands of `gate`, and what they share: options, the store and its documents.
 *
 * Each takes its own name as argv[0], prints its result on standard output and diagnostics on
 * standard error, and returns the exit code (base/error.h).
 */
#ifndef GATE_CLI_COMMANDS_H
#define GATE_CLI_COMMANDS_H

#include <cjson/cJSON.h>
#include <getopt.h>
#include <stdint.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"
#include "gate/cli/options.h"
#include "gate/document/document.h"
#include "gate/report/report.h"
#include "gate/store/store.h"
#include "gate/tracker/tracker.h"

/* In the order of `gate --help`; ends with NULL. */
extern const struct command *const commands[];

extern const struct command command_run, command_verify, command_compare, command_calibrate,
    command_baseline, command_report, command_history, command_leaderboard, command_export,
    command_import, command_push, command_merge, command_comment, command_bisect, command_diff,
    command_search, command_doctor, command_init;

int cmd_init(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);
int cmd_baseline(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_history(int argc, char **argv);
int cmd_leaderboard(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_push(int argc, char **argv);
int cmd_bisect(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_search(int argc, char **argv);
int cmd_comment(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

/* ---- work that lies in files of its own; each returns the exit code, or an error ---- */

/* gate generate man|bash: the manual page and the completion, from the tables of options. */
int generate(int argc, char **argv);

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

/* Entries of an option table, for a `const char *` or a `bool` of the struct. */
/* clang-format off */
#define DB_OPTION(of, field)                                                                  \
    {.name = "db", .value = "FILE", .help = "the history, a database", .type = OPTION_TEXT,     \
     .at = offsetof(of, field), .variable = "GATE_DB", .key = "database", .is_path = true,    \
     .fallback = "./gate.db"}
#define BASELINES_OPTION(of, field)                                                           \
    {.name = "baselines", .value = "DIR", .help = "folder of the stored baselines",             \
     .type = OPTION_TEXT, .at = offsetof(of, field), .variable = "GATE_BASELINES",            \
     .key = "baselines", .is_path = true, .fallback = "./baselines"}
#define JSON_OPTION(of, field)                                                                \
    {.name = "json", .help = "print JSON; times in ms since 1970 and in ns",                    \
     .type = OPTION_FLAG, .at = offsetof(of, field)}
#define LINK_OPTION(of, field)                                                                \
    {.name = "link", .value = "URL",                                                          \
     .help = "address of the dashboard, which reports name or link to",             \
     .type = OPTION_READ, .at = offsetof(of, field), .read = command_read_link,               \
     .form = "https://HOST[:PORT][/PATH]"}
/* clang-format on */

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
