/*
 * cmd_common.h: what the small commands share: options, messages, the store and its documents.
 */
#ifndef GATE_CLI_CMD_COMMON_H
#define GATE_CLI_CMD_COMMON_H

#include <cjson/cJSON.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"
#include "gate/base/schema.h"
#include "gate/report/report.h"
#include "gate/document/document.h"
#include "gate/history/store.h"

#define COMMAND_MAX_OUTPUT (1024u * 1024 * 1024) /* bytes of a result that is built in memory */

struct command {
    const char *name; /* "history", "baseline show" */
    const char *help;
    const struct option *options; /* of getopt_long(); 'h' is --help */
    bool started;                 /* set by command_option() */
};

/*
 * The next option's letter, its value in optarg; -1 at the end, when optind is the first operand.
 * A bad option is reported and comes back as '?', on which the command returns GATE_USAGE.
 */
int command_option(struct command *c, int argc, char **argv);

#define COMMAND_SLOTS_MAX 8

/* Where the value of an option goes. */
struct command_slot {
    const char *name; /* of the option; NULL ends the table */
    const char **text;
    const char *constant; /* NULL, or what *text becomes by an option that has no value */
    bool *flag;           /* in place of `text`: becomes true */
};

/*
 * Reads the options of a command that has no others than these and --help; `options` of *c is not
 * used, and the last of two equal ones counts. True: the command goes on, and optind is its first
 * operand. False: it ends with *exit_code, after its help or a complaint.
 */
bool command_read(const struct command *c, const struct command_slot *slots, int argc, char **argv,
                  int *exit_code);

/* Each prints and returns the exit code. */
int command_help(const struct command *c);
int command_usage(const struct command *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int command_failed(const struct command *c, const struct gate_error *err);

/* A decimal number within the limits; false otherwise. */
bool command_integer(const char *text, int64_t least, int64_t most, int64_t *out);

/* `option`, else $GATE_DB, else "gate.db". */
const char *command_db(const char *option);

/* `option`, else $GATE_BASELINES, else "baselines". */
const char *command_baselines(const char *option);

/* Writes a result: to a file as a whole, or to standard output when `path` is NULL or "-".
 * GATE_INTERNAL when `result` has failed. */
enum gate_status command_write(const char *path, const struct buf *result, struct gate_error *err);

/* What standard output can show. */
struct report_style command_style(void);

/* The uuid of the newest run. GATE_USAGE: there is none. */
enum gate_status command_newest_run(struct store *s, char uuid[64], struct gate_error *err);

/*
 * The document of a run, parsed and checked; `uuid` may be "latest" or an unambiguous prefix. *out
 * is the caller's (document_release). GATE_USAGE: no such run.
 */
enum gate_status command_document(struct store *s, const char *uuid, struct document *out,
                                  struct gate_error *err);

#endif
