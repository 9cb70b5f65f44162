/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/file.h"
#include "gate/base/interrupt.h"
#include "gate/base/seed.h"
#include "gate/baseline/artifact.h"

#define LOG_MAX_BYTES ((size_t)4 << 20)

/* ---- two tables ---- */

/* Of so many launches of one name on each side the first goes with the first; where each side has
 * one launch alone, these two. */
static const struct ncu_kernel *find_other(const struct ncu_table *new, size_t at,
                                           const struct ncu_table *old)
{
    const char *name = new->kernels[at].name;
    size_t before = 0;
    for (size_t i = 0; i < at; i++)
        before += !strcmp(new->kernels[i].name, name);
    for (size_t i = 0; i < old->n; i++)
        if (!strcmp(old->kernels[i].name, name) && !before--)
            return &old->kernels[i];
    return new->n == 1 && old->n == 1 ? &old->kernels[0] : NULL;
}

struct move {
    double by;
    struct document_counter counter;
};

static int compare_moves(const void *a, const void *b)
{
    double x = ((const struct move *)a)->by, y = ((const struct move *)b)->by;
    return (x < y) - (x > y);
}

static size_t list_moves(const struct ncu_kernel *new, const struct ncu_kernel *old, size_t kernel,
                         struct move *moves)
{
    size_t n = 0;
    for (size_t i = 0; i < COUNTERS_N; i++) {
        double by = counter_moved(i, &new->values, &old->values);
        if (isnan(by))
            continue;
        moves[n++] = (struct move){by * counters[i].weight,
                                   {.kernel = (int64_t)kernel,
                                    .counter = (int)i,
                                    .candidate = new->values.of[i],
                                    .baseline = old->values.of[i],
                                    .moved = by}};
    }
    return n;
}

void profile_compare(const struct ncu_table *new, const struct ncu_table *old, struct profile *out)
{
    struct move moves[NCU_KERNELS_MAX * COUNTERS_N];
    size_t n = 0;
    for (size_t i = 0; i < new->n; i++) {
        const struct ncu_kernel *other = find_other(new, i, old);
        if (!other)
            continue;
        size_t at = out->document.n_kernels++;
        memcpy(out->kernels[at], new->kernels[i].name, sizeof out->kernels[at]);
        out->names[at] = out->kernels[at];
        n += list_moves(&new->kernels[i], other, at, moves + n);
    }
    qsort(moves, n, sizeof *moves, compare_moves);
    for (size_t i = 0; i < n; i++)
        out->moved[i] = moves[i].counter;
    out->document.n_moved = n;
}

/* ---- one side ---- */

static enum gate_status read_log(const char *path, struct ncu_table *out, struct gate_error *err)
{
    struct buf text;
    buf_init(&text, LOG_MAX_BYTES);
    enum gate_status status = file_read(path, &text, err);
    if (!status)
        status = ncu_read(text.data ? text.data : "", text.len, out, err);
    buf_release(&text);
    return status;
}

/* The process ends with it: what ncu has to say is written then. */
static enum gate_status launch_under(const struct supervisor_options *options,
                                     const struct case_task *task, struct gate_error *err)
{
    struct supervisor *s = NULL;
    struct case_result result = {.n_arms = 0};
    enum gate_status status = supervisor_start(options, &s, err);
    if (!status)
        status = supervisor_run_case(s, task, &result, err);
    if (!status && result.outcome != CASE_VERIFIED)
        status = gate_fail(err, GATE_ENVIRONMENT, "the worker under ncu: %.300s", result.message);
    case_result_release(&result);
    supervisor_stop(s);
    return status;
}

/* What ncu says of a failure tells more than that its worker is gone. */
static enum gate_status profile_side(const struct supervisor_options *options, const char *ncu,
                                     const struct case_task *task, bool hopper,
                                     struct ncu_table *out, struct gate_error *err)
{
    char log[PATHS_MAX], metrics[NCU_METRICS_SIZE];
    const char *words[NCU_WORDS];
    struct supervisor_options o = *options;
    struct gate_error why = {0};
    snprintf(log, sizeof log, "%s/gate-ncu.XXXXXX", file_temporary_folder());
    int fd = mkstemp(log);
    if (fd < 0)
        return gate_fail(err, GATE_IO, "cannot make a file like '%.200s'", log);
    close(fd);
    o.wrapper = words;
    o.n_wrapper = ncu_words(ncu, log, hopper, metrics, words);
    o.n_providers = 0;
    enum gate_status launched = launch_under(&o, task, err);
    enum gate_status status = read_log(log, out, &why);
    unlink(log);
    if (status == GATE_ENVIRONMENT || (status && !launched))
        return gate_fail(err, status, "%s", why.message);
    return launched;
}

/* ---- a run ---- */

static enum gate_status find_baseline(const struct run *run, const struct run_case *c,
                                      char path[PATHS_MAX], struct gate_error *err)
{
    if (!run->against_path)
        return artifact_get(c->opened, path, err);
    snprintf(path, PATHS_MAX, "%s", run->against_path);
    return GATE_OK;
}

static enum gate_status profile_case(const struct run *run, const struct run_case *c,
                                     const struct supervisor_options *options, struct profile *out,
                                     struct gate_error *err)
{
    const bool hopper = !strcmp(run->greeting->device.capability, "9.0");
    const struct case_task task = {.c = c->about,
                                   .seed = seed_of_text(run->seed, c->about->id),
                                   .budget_ms = 1,
                                   .verify_only = true,
                                   .profile = true};
    char ncu[PATHS_MAX], baseline[PATHS_MAX];
    struct supervisor_options other = *options;
    struct ncu_table *tables = calloc(2, sizeof *tables);
    if (!tables)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    other.library = baseline;
    enum gate_status status = ncu_find(ncu, err);
    if (!status)
        status = find_baseline(run, c, baseline, err);
    if (!status)
        status = profile_side(options, ncu, &task, hopper, &tables[0], err);
    if (!status)
        status = profile_side(&other, ncu, &task, hopper, &tables[1], err);
    if (!status)
        profile_compare(&tables[0], &tables[1], out);
    free(tables);
    return status;
}

static bool is_wanted(const struct run_case *c)
{
    return c->verdict == VERDICT_REGRESSION && c->mode == RUN_PAIRED && !c->left_out;
}

void profile_run(struct run *run, const struct supervisor_options *options,
                 void (*progress)(const char *text))
{
    size_t n = 0;
    for (size_t i = 0; i < run->suite->n_cases && !interrupt_signal(); i++) {
        struct run_case *c = &run->cases[i];
        struct gate_error err = {0};
        char text[256];
        if (!is_wanted(c))
            continue;
        c->profile = calloc(1, sizeof *c->profile);
        if (!c->profile)
            return;
        c->profile->document.kernels = c->profile->names;
        c->profile->document.moved = c->profile->moved;
        snprintf(text, sizeof text, "reading counters of %s", c->about->id);
        progress(text);
        if (n++ < PROFILE_CASES_MAX)
            profile_case(run, c, options, c->profile, &err);
        else
            gate_fail(&err, GATE_NO_VERDICT, "only the first %d regressions of a run are profiled",
                      PROFILE_CASES_MAX);
        snprintf(c->profile->message, sizeof c->profile->message, "%.400s", err.message);
        c->profile->document.message = c->profile->message[0] ? c->profile->message : NULL;
    }
}
