/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_reports.h: the reports of a run: in place of old ones before anything is measured, and from
 * its document at the end, however that comes.
 */
#ifndef GATE_CLI_RUN_REPORTS_H
#define GATE_CLI_RUN_REPORTS_H

#include "gate/cli/run_request.h"

/* May a report be written there? GATE_USAGE: it is the history, or a file that is no report, such
 * as a library, a suite or a source. */
enum gate_status run_reports_check(const char *path, const char *db, struct gate_error *err);

/* Before anything is measured: in place of old reports there is now one that says that the run has
 * not ended, so that none of another run is left, however this one ends. */
enum gate_status run_reports_open(const struct run_request *r, struct gate_error *err);

/* The run ended early: the reports say so. */
void run_reports_fail(const struct run_request *r, const struct gate_error *why);

/* The command line or gate.json was refused with this exit code: the reports that were asked for
 * say why, as the output does (command_last_error()). Returns the exit code; 0, of --help, leaves
 * them. */
int run_reports_refuse(struct run_request *r, int argc, char **argv, int exit_code);

/* Reads a run document as it will be read, before anybody else sees it, and puts it into the
 * history (NULL: there is none). If that fails, *out is the document all the same, and says why it
 * is not stored, as long as *err is there: what was measured is shown. out->schema is NULL where it
 * could not be read; else it is to be released. */
enum gate_status run_reports_store(struct store *store, const struct buf *text,
                                   struct document *out, struct gate_error *err);

/* Writes the reports that were asked for and prints the table or the document, of what
 * run_reports_store() left, which ended with `stored`, and releases it. Returns the first of both
 * statuses. */
enum gate_status run_reports_finish(const struct run_request *r, struct document *document,
                                    enum gate_status stored, struct gate_error *err);

#endif
