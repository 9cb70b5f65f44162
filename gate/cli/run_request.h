/*
 * run_request.h: what `gate run`, `gate compare` and `gate calibrate` are asked for, and the work
 * that they share: everything from the command line to the exit code.
 */
#ifndef GATE_CLI_RUN_REQUEST_H
#define GATE_CLI_RUN_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/cli/cmd_common.h"
#include "gate/device/device_lock.h"
#include "gate/run/run.h"
#include "gate/run/target.h"

#define REQUEST_REPORTS_MAX 8

struct report_request {
    enum report_format format;
    const char *path;
};

struct run_request {
    struct target_choice target;
    const char *suite, *filter, *db, *baselines;
    struct run_policy policy; /* policy.against is "baseline", a file or a commit; policy.other may
                                 be NULL: it goes by that */
    bool history;             /* the run is stored, and the stored baselines may follow it */
    bool json, has_seed;
    uint64_t seed;
    struct report_request reports[REQUEST_REPORTS_MAX];
    size_t n_reports;
};

/* The defaults of all three commands. */
void run_request_init(struct run_request *r);

/* Takes an option by its letter (REQUEST_TARGET_OPTIONS, and those of run); false when the argument
 * does not fit. */
bool run_request_option(struct run_request *r, int letter, const char *argument);

/* Entries of a getopt table that run_request_option() understands. */
/* clang-format off */
#define REQUEST_TARGET_OPTIONS                    \
    {"suite", required_argument, NULL, 's'},      \
    {"device", required_argument, NULL, 'd'},     \
    {"filter", required_argument, NULL, 'f'},     \
    {"threshold", required_argument, NULL, 't'},  \
    {"report", required_argument, NULL, 'r'},     \
    {"json", no_argument, NULL, 'j'},             \
    {"seed", required_argument, NULL, 'S'},       \
    {"budget", required_argument, NULL, 'b'},     \
    {"timeout", required_argument, NULL, 'T'},    \
    {"help", no_argument, NULL, 'h'}
/* clang-format on */

#define REQUEST_TARGET_HELP                                                                        \
    "  --suite NAME|FILE       canonical, host, smoke, or a file; default: canonical on a GPU,\n"  \
    "                          host on the host\n"                                                 \
    "  --device auto|host|cuda:N  default: auto (cuda:0 where there is a GPU, else host)\n"        \
    "  --filter GLOB           only the cases whose id matches, e.g. 'gemm/fp16/*'\n"              \
    "  --threshold PERCENT     slowdown that fails, default 2%\n"                                  \
    "  --report FORMAT=FILE    text, markdown, json, csv or junit; repeatable\n"                   \
    "  --json                  print the run document instead of the table\n"                      \
    "  --seed HEX              seed of all inputs, default: a fresh one\n"                         \
    "  --budget MS             time for the samples of a case in one process, default 150\n"       \
    "  --timeout SECONDS       longest silence of a worker before it is killed, default 60\n"

/* Checks, measures, stores, reports. Returns the exit code. */
int run_request_execute(const struct command *command, struct run_request *r);

/* What is needed before anything is measured: suite, target and a worker with its device. */
struct run_setup {
    struct suite suite;
    struct target target;
    struct supervisor *supervisor;
    struct device_lock lock; /* of the device, against other gates */
};
enum gate_status run_setup_open(const struct run_request *r, struct run_setup *out,
                                struct gate_error *err);
void run_setup_close(struct run_setup *s);

/* Checks a run document by its schema, before anybody else sees it, and puts it into the history
 * (NULL: there is none). */
enum gate_status run_request_store(struct store *store, const cJSON *document,
                                   struct gate_error *err);

/* Stores nothing: writes the reports that were asked for and prints the table or the document. */
enum gate_status run_request_report(const struct run_request *r, const cJSON *document,
                                    struct gate_error *err);

/* From the system's randomness. */
uint64_t run_request_fresh_seed(void);

/* A line on standard error that is written over and over; nothing unless that is a terminal. */
void run_request_progress(const char *text);

#endif
