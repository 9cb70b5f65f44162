/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/commands.h"

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/file.h"
#include "gate/base/json.h"
#include "gate/base/process.h"
#include "gate/cli/cmd_common.h"
#include "gate/cli/run_reports.h"
#include "gate/cli/run_setup.h"
#include "gate/run/merge.h"

#define GPUS_MAX 32
#define WORDS_MAX 256
#define PATIENCE_S 86400.0

/* ---- the parts as one run ---- */

/* A part that ended early has no document but a reason. */
static enum gate_status load_part(const char *path, struct document *out, struct gate_error *err)
{
    struct report_early early;
    enum gate_status status = document_load(path, out, err);
    if (status && command_read_early(path, &early))
        status = gate_fail(err, (enum gate_status)early.exit_code,
                           "the run of part '%.300s' ended early: %s", path, early.message);
    return status;
}

static enum gate_status merge(size_t n, char *const *paths, struct buf *out, struct gate_error *err)
{
    struct document *parts = xcalloc(n, sizeof *parts);
    enum gate_status status = GATE_OK;
    size_t read = 0;
    for (; read < n && !status; read += !status)
        status = load_part(paths[read], &parts[read], err);
    if (!status)
        status = merge_documents(parts, n, out, err);
    for (size_t i = 0; i < read; i++)
        document_release(&parts[i]);
    free(parts);
    return status;
}

int run_merge(const struct command *command, const struct run_request *r, size_t n,
              char *const *paths)
{
    struct gate_error err = {0};
    struct store *store = NULL;
    struct document document = {.schema = NULL};
    struct buf text;
    buf_init(&text, COMMAND_MAX_OUTPUT);
    enum gate_status status = merge(n, paths, &text, &err);
    if (!status)
        status = store_open(r->db, STORE_READ_WRITE, &store, &err);
    if (!status)
        status = run_reports_store(store, &text, &document, &err);
    int code = GATE_OK;
    if (!document.schema) {
        run_reports_fail(r, &err);
    } else {
        code = (int)document.exit_code;
        status = run_reports_finish(r, &document, status, &err);
    }
    if (status)
        code = command_failed(command, &err);
    store_close(store);
    buf_release(&text);
    return code;
}

/* ---- a part on each GPU ---- */

/* As CUDA counts them: those that its variable names, else the device nodes. */
static size_t count_gpus(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    glob_t found;
    size_t n = 0;
    if (visible) {
        n = visible[0] != '\0';
        for (; *visible; visible++)
            n += *visible == ',';
        return n;
    }
    if (!glob("/dev/nvidia[0-9]*", 0, NULL, &found))
        n = found.gl_pathc;
    globfree(&found);
    return n;
}

struct part {
    struct process process;
    char device[32], shard[48], report[PATHS_MAX + 8];
    const char *argv[WORDS_MAX];
    size_t n;
    int code; /* of its end */
};

/* Words of a command line that live as long as the part. */
static void add(struct part *p, const char *name, const char *value)
{
    if (p->n + 3 > WORDS_MAX)
        return;
    p->argv[p->n++] = name;
    if (value)
        p->argv[p->n++] = value;
}

/* What this process does itself, or says anew to each part. */
static bool is_own(const char *name)
{
    static const char *const own[] = {"device", "shard", "seed", "report", "json", "db", "link"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (!strcmp(own[i], name))
            return true;
    return false;
}

/* The names have to be put together, so they are kept in `names`. */
static void pass_on(const struct options_seen *seen, char names[][48], struct part *p)
{
    for (size_t i = 0; i < seen->n; i++) {
        const struct option_seen *s = &seen->seen[i];
        const struct option_list *list = s->field;
        if (s->source != OPTION_COMMAND_LINE || is_own(s->option->name))
            continue;
        snprintf(names[i], sizeof names[i], "--%s", s->option->name);
        if (s->option->type == OPTION_LIST)
            for (size_t k = 0; k < list->n; k++)
                add(p, names[i], list->text[k]);
        else
            add(p, names[i], s->option->type == OPTION_FLAG ? NULL : s->text);
    }
}

static enum gate_status start_part(struct part *p, size_t index, size_t n, const char *folder,
                                   const char *seed, const struct options_seen *seen,
                                   char names[][48], struct gate_error *err)
{
    snprintf(p->device, sizeof p->device, "cuda:%zu", index);
    snprintf(p->shard, sizeof p->shard, "%zu/%zu", index + 1, n);
    snprintf(p->report, sizeof p->report, "json=%s/%zu.json", folder, index);
    add(p, "/proc/self/exe", NULL);
    add(p, "run", NULL);
    pass_on(seen, names, p);
    add(p, "--device", p->device);
    add(p, "--shard", p->shard);
    add(p, "--seed", seed);
    add(p, "--report", p->report);
    return process_start(&p->process, (char *const *)p->argv, err);
}

/* What it said on standard error; what another part has said is not said again. */
static void pass_notices(char *said, struct buf *seen)
{
    char *rest = NULL;
    for (char *line = strtok_r(said, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (seen->len && strstr(seen->data, line))
            continue;
        buf_printf(seen, "%s\n", line);
        fprintf(stderr, "%s\n", line);
    }
}

/* Its table is thrown away. One that measured nothing has left a report that is no run. */
static enum gate_status end_part(struct part *p, struct buf *notices, struct gate_error *err)
{
    struct document d;
    struct buf line;
    buf_init(&line, PROCESS_LINE_MAX + 1);
    while (process_read_line(&p->process, PATIENCE_S, &line) == PROCESS_LINE)
        buf_clear(&line);
    buf_release(&line);
    p->code = process_finish(&p->process, PATIENCE_S);
    if (!document_load(p->report + strlen("json="), &d, NULL)) {
        document_release(&d);
        pass_notices(p->process.complaint, notices);
        return GATE_OK;
    }
    return gate_fail(err, p->code > 0 ? (enum gate_status)p->code : GATE_INTERNAL,
                     "%s ended with %d: %.600s", p->device, p->code,
                     process_last_words(&p->process));
}

static enum gate_status run_parts(struct part *parts, size_t n, const char *folder,
                                  const struct run_request *r, const struct options_seen *seen,
                                  struct gate_error *err)
{
    char seed[20], names[OPTIONS_MAX][48];
    size_t started = 0;
    struct buf notices;
    enum gate_status status = GATE_OK;
    buf_init(&notices, COMMAND_MAX_OUTPUT);
    snprintf(seed, sizeof seed, "%" PRIx64, r->seed);
    for (; started < n && !status; started += !status)
        status = start_part(&parts[started], started, n, folder, seed, seen, names, err);
    for (size_t i = 0; i < started; i++) {
        if (status)
            process_kill(&parts[i].process, (char[96]){0}, 96);
        else
            status = end_part(&parts[i], &notices, err);
    }
    buf_release(&notices);
    return status;
}

/* How many parts: one a GPU, and none without a case. */
static enum gate_status count_parts(const struct run_request *r, size_t *n, struct gate_error *err)
{
    struct run_setup setup = {0};
    size_t gpus = count_gpus();
    *n = 0;
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

static int measure_and_merge(const struct command *command, const struct run_request *r,
                             const struct options_seen *seen, const char *folder)
{
    struct gate_error err = {0};
    struct part *parts = xcalloc(GPUS_MAX, sizeof *parts);
    char *paths[GPUS_MAX] = {NULL};
    size_t n = 0;
    enum gate_status status = run_reports_open(r, &err);
    if (!status)
        status = count_parts(r, &n, &err);
    if (!status)
        status = run_parts(parts, n, folder, r, seen, &err);
    if (status)
        run_reports_fail(r, &err);
    for (size_t i = 0; i < n; i++)
        paths[i] = parts[i].report + strlen("json=");
    int code = status ? command_failed(command, &err) : run_merge(command, r, n, paths);
    for (size_t i = 0; i < n; i++)
        if (parts[i].report[0])
            unlink(parts[i].report + strlen("json="));
    free(parts);
    return code;
}

int run_on_all(const struct command *command, const struct run_request *r,
               const struct options_seen *seen)
{
    char folder[PATHS_MAX / 2];
    snprintf(folder, sizeof folder, "%s/kernel-gate.XXXXXX", file_temporary_folder());
    if (!mkdtemp(folder)) {
        struct gate_error err;
        gate_fail(&err, GATE_IO, "cannot make a folder in $TMPDIR");
        run_reports_fail(r, &err);
        return command_failed(command, &err);
    }
    int code = measure_and_merge(command, r, seen, folder);
    rmdir(folder);
    return code;
}
