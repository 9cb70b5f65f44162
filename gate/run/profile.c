/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/causes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/file.h"
#include "gate/base/process.h"
#include "gate/base/seed.h"
#include "gate/base/utf8.h"

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
    bool worsened;
    double by;
    struct document_counter counter;
};

static int compare_moves(const void *a, const void *b)
{
    const struct move *x = a, *y = b;
    if (x->worsened != y->worsened) /* the others are what follows from it */
        return x->worsened ? -1 : 1;
    return (x->by < y->by) - (x->by > y->by);
}

/* The kernels that both sides launch, and their counters by how much they moved. */
static void compare_tables(const struct ncu_table *new, const struct ncu_table *old,
                           struct run_case *c)
{
    struct profile *out = c->profile;
    struct document_counters *d = &c->record.counters;
    struct move moves[NCU_KERNELS_MAX * COUNTERS_N];
    size_t n = 0;
    for (size_t i = 0; i < new->n; i++) {
        const struct ncu_kernel *own = &new->kernels[i], *other = find_other(new, i, old);
        if (!other)
            continue;
        size_t at = d->n_kernels++;
        memcpy(out->kernels[at], own->name, sizeof out->kernels[at]);
        out->names[at] = out->kernels[at];
        for (size_t k = 0; k < COUNTERS_N; k++) {
            double by = counter_moved(k, &own->values, &other->values);
            if (isnan(by))
                continue;
            moves[n++] = (struct move){counter_worsened(k, &own->values, &other->values),
                                       by * counters[k].weight,
                                       {.kernel = (int64_t)at,
                                        .counter = (int)k,
                                        .candidate = own->values.of[k],
                                        .baseline = other->values.of[k],
                                        .moved = by}};
        }
    }
    qsort(moves, n, sizeof *moves, compare_moves);
    for (size_t i = 0; i < n; i++)
        out->moved[i] = moves[i].counter;
    d->n_moved = n;
}

/* ---- one library ---- */

/* A case on one side. */
struct profile_side {
    const struct run_case *c;
    char library[PATHS_MAX];
    struct ncu_table table;
    struct gate_error why; /* there is no table */
    bool looked_at;
};

struct job {
    const struct run *run;
    const struct supervisor_options *options;
    void (*progress)(const char *text);
    char ncu[PATHS_MAX];
    bool hopper;
};

/* Launches the cases in one process, up to one that fails; returns how many were launched. The
 * process ends with it: what ncu has to say is written then. */
static size_t launch_under(const struct job *job, const struct supervisor_options *options,
                           struct profile_side *const *sides, size_t n, struct gate_error *err)
{
    struct supervisor *s = NULL;
    size_t done = 0;
    enum gate_status status = supervisor_start(options, &s, err);
    while (!status && done < n && !interrupt_signal()) {
        const struct suite_case *about = sides[done]->c->about;
        const struct case_task task = {.c = about,
                                       .seed = seed_of_text(job->run->seed, about->id),
                                       .budget_ms = 1,
                                       .kind = TASK_PROFILE};
        struct case_result result;
        char text[256];
        snprintf(text, sizeof text, "reading counters of %s", about->id);
        job->progress(text);
        status = supervisor_run_case(s, &task, &result, err);
        if (!status && result.outcome != CASE_VERIFIED)
            status = gate_fail(err, GATE_ENVIRONMENT, "the worker under ncu: %.300s", result.said);
        case_result_release(&result);
        done += !status;
    }
    supervisor_stop(s);
    return done;
}

/* One process for these cases; the one that fails is the last that is looked at. */
static enum gate_status profile_once(const struct job *job, const char *library,
                                     struct profile_side *const *sides, size_t n,
                                     struct gate_error *err)
{
    char log[PATHS_MAX], metrics[NCU_METRICS_SIZE];
    const char *words[NCU_WORDS];
    struct supervisor_options o = *job->options;
    struct gate_error read = {0}, failed = {0};
    RELEASED_BY(buf_release) struct buf text = buf_of(LOG_MAX_BYTES);
    snprintf(log, sizeof log, "%s/gate-ncu.XXXXXX", file_temporary_folder());
    int fd = mkstemp(log);
    if (fd < 0)
        return gate_fail(err, GATE_IO, "cannot make a file like '%.200s'", log);
    close(fd);
    o.library = library;
    o.wrapper = words;
    o.n_wrapper = ncu_words(job->ncu, log, job->hopper, metrics, words);
    o.n_providers = 0;
    RELEASED_BY(free_at) struct ncu_table *tables = xcalloc(n, sizeof *tables);
    size_t launched = launch_under(job, &o, sides, n, &failed);
    if (!file_read(log, &text, &read))
        ncu_read(text.data ? text.data : "", text.len, tables, n, &read);
    unlink(log);
    for (size_t i = 0; i < n && i <= launched; i++) {
        sides[i]->looked_at = true;
        sides[i]->table = tables[i];
        /* What ncu says of a failure tells more than that its worker is gone. */
        if (read.status == GATE_ENVIRONMENT || (read.status && i < launched))
            sides[i]->why = read;
        else if (i == launched)
            sides[i]->why = failed;
        else if (!tables[i].n)
            gate_fail(&sides[i]->why, GATE_IO, "ncu saw no kernel of it");
    }
    return GATE_OK;
}

/* All cases on the side of this library, of which `sides` begins with one. A case that ends the
 * process costs the others one more; a second one costs them their counters. */
static void profile_library(const struct job *job, struct profile_side *sides, size_t n_sides)
{
    struct profile_side *same[PROFILE_CASES_MAX];
    size_t n = 0, done = 0;
    struct gate_error err = {0};
    for (size_t i = 0; i < n_sides && n < PROFILE_CASES_MAX; i++)
        if (!sides[i].why.status && !strcmp(sides[i].library, sides->library))
            same[n++] = &sides[i];
    for (int tries = 0; tries < 2 && !err.status && done < n && !interrupt_signal(); tries++) {
        profile_once(job, sides->library, same + done, n - done, &err);
        while (done < n && same[done]->looked_at)
            done++;
    }
    if (!err.status)
        gate_fail(&err, GATE_ENVIRONMENT, "ncu failed with the cases before it");
    for (; done < n; done++)
        same[done]->why = err;
}

/* ---- a run ---- */

void profile_run(struct run *run, const struct supervisor_options *options,
                 void (*progress)(const char *text))
{
    struct job job = {.run = run,
                      .options = options,
                      .progress = progress,
                      .hopper = !strcmp(run->greeting->device.capability, "9.0")};
    struct run_case *cases[PROFILE_CASES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < run->suite->n_cases; i++) {
        struct run_case *c = &run->cases[i];
        if (!causes_are_wanted(c))
            continue;
        struct profile *p = c->profile = xcalloc(1, sizeof *p);
        c->record.has_counters = true;
        c->record.counters = (struct document_counters){
            .message = p->message, .kernels = p->names, .moved = p->moved};
        snprintf(p->message, sizeof p->message,
                 "only the first %d regressions of a run are profiled", PROFILE_CASES_MAX);
        if (n < PROFILE_CASES_MAX)
            cases[n++] = c;
    }
    if (!n)
        return;
    struct profile_side *new = xcalloc(2 * n, sizeof *new), *old = new + n;
    for (size_t i = 0; i < n; i++) {
        new[i].c = old[i].c = cases[i];
        snprintf(new[i].library, sizeof new[i].library, "%s", options->library);
        if (toolkit_find("ncu", "/opt/nvidia/nsight-compute/*/ncu", job.ncu, &new[i].why))
            old[i].why = new[i].why;
        else
            run_baseline_path(run, cases[i], old[i].library, &old[i].why);
    }
    for (struct profile_side *side = new; side < new + 2 * n; side++)
        if (!side->looked_at && !side->why.status)
            profile_library(&job, side, (size_t)((side < old ? old : new + 2 * n) - side));
    for (size_t i = 0; i < n; i++) {
        struct profile *p = cases[i]->profile;
        const struct gate_error *why = new[i].why.status ? &new[i].why : &old[i].why;
        utf8_print(p->message, sizeof p->message, "%.400s", why->status ? why->message : "");
        if (why->status)
            continue;
        cases[i]->record.counters.message = NULL;
        compare_tables(&new[i].table, &old[i].table, cases[i]);
    }
    free(new);
}
