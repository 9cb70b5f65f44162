/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_merge.c: gate merge, and gate run --device all, which runs and merges the parts itself. */
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/file.h"
#include "gate/cli/run_request.h"
#include "gate/run/run.h"

#define GPUS_MAX 32
#define WORDS_MAX 256

#define ARGUMENTS struct run_request

static const struct option_def options[] = {
    DB_OPTION(db),
    FLAG("json", json, "print a JSON document instead of the table"),
    {0},
};

struct merging {
    struct document *parts;
    size_t n;
    struct store *store;
    struct document document; /* of the whole */
    struct buf text;
};

static enum gate_status make_whole(const struct run_request *r, struct merging *m,
                                   struct gate_error *err)
{
    m->parts = xcalloc(r->n_parts, sizeof *m->parts);
    for (; m->n < r->n_parts; m->n++) {
        struct report_early early; /* it has no document but a reason */
        enum gate_status status = document_load(r->parts[m->n], &m->parts[m->n], err);
        if (status && command_read_early(r->parts[m->n], &early))
            gate_fail(err, status = (enum gate_status)early.exit_code,
                      "the run of part '%.300s' ended early: %s", r->parts[m->n], early.message);
        TRY(status);
    }
    TRY(merge_documents(m->parts, m->n, &m->text, err));
    TRY(store_open(r->db, STORE_READ_WRITE, &m->store, err));
    return run_reports_store(m->store, &m->text, &m->document, err);
}

/* Makes one run of the parts' reports: stores it in r->db, and reports it. */
static int merge_parts(const struct run_request *r, struct gate_error *err)
{
    struct merging m = {.text = buf_of(COMMAND_MAX_OUTPUT)};
    enum gate_status status = make_whole(r, &m, err);
    int code = GATE_OK;
    if (!m.document.schema) {
        run_reports_fail(r, err);
    } else {
        code = (int)m.document.exit_code;
        status = run_reports_finish(r, &m.document, status, err);
    }
    for (size_t i = 0; i < m.n; i++)
        document_release(&m.parts[i]);
    free(m.parts);
    store_close(m.store);
    buf_release(&m.text);
    return status ? (int)status : code;
}

static int merge(struct command_call *call, struct gate_error *err)
{
    struct run_request *r = call->arguments;
    r->parts = call->operands;
    r->n_parts = (size_t)call->n_operands;
    enum gate_status status = run_reports_open(r, err);
    if (!status)
        return merge_parts(r, err);
    run_reports_fail(r, err);
    return status;
}

const struct command command_merge = {
    .name = "gate merge",
    .operands = "REPORT.json...",
    .summary = "combine the parts that several runners measured into one run",
    .about = "Takes the JSON reports of all parts of a suite (gate run --shard I/N --report "
             "json=FILE), checks that they belong together and that none is missing, and stores "
             "and reports them as one run. The same parts always give the same run.\n",
    .groups = {{request_report_options, 0}, {options, 0}},
    .ending = "Exit codes: as 'gate run', for the whole run; also 3 if a part is missing, and 4 if "
              "the parts were measured under different conditions. If a part ended early, the "
              "exit code of that part.\n",
    .least = 1,
    .most = SHARDS_MAX,
    .missing = "name the JSON reports of the parts",
    DEFAULTS(RUN_REQUEST_DEFAULTS),
    .refused = run_reports_refuse,
    .main = merge,
};

/* ---- a part on each GPU ---- */

struct part {
    struct process process;
    char device[32], report[PATHS_MAX + 8];
};

/* What this process does itself, or says anew to each part. */
static const char *const own[] = {"device", "shard", "seed", "report", "json", "db", "link", NULL};

/* Its table is thrown away, and what it said on standard error is said unless another part has. */
static enum gate_status end_part(struct part *p, struct buf *said, struct gate_error *err)
{
    struct document d;
    TRY(run_reports_await(&p->process, p->device, p->report + strlen("json="), &d, err));
    document_release(&d);
    char *rest = NULL, *notice = strtok_r(p->process.complaint, "\n", &rest);
    for (; notice; notice = strtok_r(NULL, "\n", &rest)) {
        if (said->len && strstr(said->data, notice))
            continue;
        buf_printf(said, "%s\n", notice);
        fprintf(stderr, "%s\n", notice);
    }
    return GATE_OK;
}

static enum gate_status run_parts(struct part *parts, size_t n, const char *folder,
                                  const struct run_request *r, const struct options_seen *seen,
                                  struct gate_error *err)
{
    char seed[20];
    size_t started = 0;
    RELEASED_BY(buf_release) struct buf said = buf_of(COMMAND_MAX_OUTPUT);
    enum gate_status status = GATE_OK;
    snprintf(seed, sizeof seed, "%" PRIx64, r->seed);
    for (; started < n && !status; started += !status) {
        struct part *p = &parts[started];
        const char *argv[WORDS_MAX] = {"/proc/self/exe", "run"};
        char names[OPTIONS_MAX][OPTION_WORD_MAX], shard[48];
        const char *const last[] = {"--device", p->device, "--shard",  shard,
                                    "--seed",   seed,      "--report", p->report};
        snprintf(p->device, sizeof p->device, "cuda:%zu", started);
        snprintf(shard, sizeof shard, "%zu/%zu", started + 1, n);
        snprintf(p->report, sizeof p->report, "json=%s/%zu.json", folder, started);
        size_t n_words = 2 + options_repeat(seen, own, true, names, argv + 2,
                                            WORDS_MAX - sizeof last / sizeof *last - 3);
        memcpy(argv + n_words, last, sizeof last);
        status = process_start(&p->process, (char *const *)argv, err);
    }
    for (size_t i = 0; i < started; i++) {
        if (status)
            process_kill(&parts[i].process, (char[96]){0}, 96);
        else
            status = end_part(&parts[i], &said, err);
    }
    return status;
}

/* How many parts: one a GPU, and none without a case. GPUs are counted as CUDA does: those that its
 * variable names, else the device nodes. */
static enum gate_status count_parts(const struct run_request *r, size_t *n, struct gate_error *err)
{
    struct run_setup setup = {0};
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    size_t gpus = visible && visible[0];
    glob_t found;
    for (; visible && *visible; visible++)
        gpus += *visible == ',';
    if (!visible) {
        gpus = glob("/dev/nvidia[0-9]*", 0, NULL, &found) ? 0 : found.gl_pathc;
        globfree(&found);
    }
    if (!gpus || gpus > GPUS_MAX)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "--device all: this machine has %zu GPUs, expected 1 to %d", gpus,
                         GPUS_MAX);
    enum gate_status status = run_setup_suite(r, "cuda:0", &setup, err);
    if (!status)
        *n = setup.suite.n_cases < gpus ? setup.suite.n_cases : gpus;
    if (!status && *n < gpus)
        fprintf(stderr, "gate run: --device all: %zu of %zu GPUs are used, one for each case\n", *n,
                gpus);
    suite_free(&setup.suite);
    suite_free(&setup.whole);
    return status;
}

int run_on_all(struct run_request *r, const struct options_seen *seen, struct gate_error *err)
{
    RELEASED_BY(free_at) struct part *parts = xcalloc(GPUS_MAX, sizeof *parts);
    char folder[PATHS_MAX / 2], *paths[GPUS_MAX] = {NULL};
    size_t n = 0;
    snprintf(folder, sizeof folder, "%s/kernel-gate.XXXXXX", file_temporary_folder());
    bool made = mkdtemp(folder) != NULL;
    enum gate_status status = made ? run_reports_open(r, err)
                                   : gate_fail(err, GATE_IO, "cannot make a folder in $TMPDIR");
    if (!status)
        status = count_parts(r, &n, err);
    if (!status)
        status = run_parts(parts, n, folder, r, seen, err);
    if (status)
        run_reports_fail(r, err);
    for (size_t i = 0; i < n; i++)
        paths[i] = parts[i].report + strlen("json=");
    r->parts = paths;
    r->n_parts = n;
    int code = status ? (int)status : merge_parts(r, err);
    for (size_t i = 0; i < n; i++)
        if (parts[i].report[0])
            unlink(paths[i]);
    if (made)
        rmdir(folder);
    return code;
}
