/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/file.h"
#include "gate/base/process.h"
#include "gate/base/seed.h"
#include "gate/base/utf8.h"
#include "gate/counters/counters.h"
#include "gate/library/listing.h"
#include "gate/library/machine_code.h"

#define CASES_MAX 16 /* of a run: the further ones of a library are slow for the same reason */

/* A regression that is compared with a library. */
static bool causes_are_wanted(const struct run_case *c)
{
    return c->record.verdict == VERDICT_REGRESSION && c->record.mode == MODE_PAIRED && !c->left_out;
}

/* ---- which node of a launch carries it ---- */

#define BUDGET_MS 150.0 /* of each hybrid */

static bool has_several(const struct run_case *c, enum document_role role)
{
    const struct document_arm *arm = run_arm(c, role);
    int64_t launches = 0;
    for (size_t i = 0; arm && arm->has_timing && i < arm->timing.n_kernels; i++)
        launches += arm->timing.kernels[i].launches > 1 ? arm->timing.kernels[i].launches : 1;
    return launches > 1;
}

/* Fills in the `blame` of regressions whose launch has several kernels on either side: a worker
 * that does nothing else puts nodes of one side into the recorded launches of the other. */
static bool find_nodes(struct run *run, struct supervisor *s, void (*progress)(const char *text))
{
    size_t n = 0;
    const double limit_s = s->options->timeout_s, deadline_s = clock_s() + limit_s;
    for (size_t i = 0; i < run->suite->n_cases && !interrupt_signal(); i++) {
        struct run_case *c = &run->cases[i];
        char text[256];
        if (!causes_are_wanted(c) ||
            !(has_several(c, ROLE_CANDIDATE) || has_several(c, ROLE_BASELINE)))
            continue;
        static struct document_node none; /* a list that is not there would be none at all */
        struct case_result *result = &c->blamed;
        char *why = c->why_not_blamed;
        const size_t size = sizeof c->why_not_blamed;
        c->record.has_blame = true;
        c->record.blame = (struct document_blame){.message = why, .nodes = &none};
        if (n++ >= CASES_MAX)
            snprintf(why, size, "only the first %d regressions of a run are taken apart",
                     CASES_MAX);
        else if (clock_s() > deadline_s)
            snprintf(why, size, "the regressions before it took the %g s that a run has for this",
                     limit_s);
        if (why[0])
            continue;
        snprintf(text, sizeof text, "looking for the node that makes %s slower", c->about->id);
        progress(text);
        const struct case_task task = {.c = c->about,
                                       .seed = seed_of_text(run->seed, c->about->id),
                                       .budget_ms = BUDGET_MS,
                                       .baseline = run_baseline_sha256(run, c),
                                       .kind = TASK_TRANSPLANT};
        struct gate_error err = {0};
        if (supervisor_run_case(s, &task, result, &err))
            utf8_print(why, size, "%.400s", err.message);
        else if (result->outcome != CASE_VERIFIED)
            utf8_print(why, size, "the worker: %.400s", result->said);
        else if (!result->has_blame)
            snprintf(why, size, "this worker does not report it");
        else
            c->record.blame = result->blame;
    }
    supervisor_retire_worker(s);
    return n > 0;
}

/* ---- which instructions of its kernels occur more or less often, by nvdisasm ---- */

#define INSTRUCTIONS_MAX 400

/* What a case's document points to. */
struct instructions {
    char message[500];
    const char *names[DOCUMENT_KERNELS_MAX];
    struct document_instruction changed[INSTRUCTIONS_MAX];
    char opcodes[INSTRUCTIONS_MAX][DOCUMENT_OPCODE_SIZE];
    char sources[INSTRUCTIONS_MAX][LISTING_SOURCE_SIZE];
};

struct codes {
    const struct run *run;
    unsigned architecture; /* of the device: 90 */
    struct machine_code *new, *old;
    char old_path[PATHS_MAX]; /* of `old` */
};

static const struct document_timing *timing_of(const struct run_case *c, enum document_role role)
{
    const struct document_arm *arm = run_arm(c, role);
    return arm && arm->has_timing && arm->timing.n_kernels ? &arm->timing : NULL;
}

static bool differ(const struct document_kernel *a, const struct document_kernel *b)
{
    return !a->code_sha256 || !b->code_sha256 || strcmp(a->code_sha256, b->code_sha256) != 0;
}

/* A pair whose code is not in both files is left out: nobody knows what was launched. */
static enum gate_status compare_kernels(const struct codes *job, const struct document_kernel *new,
                                        const struct document_kernel *old, struct run_case *c,
                                        struct gate_error *err)
{
    struct document_instructions *o = &c->record.instructions;
    struct instructions *to = c->instructions;
    const struct machine_kernel *a = machine_code_on(job->new, new->name, job->architecture);
    const struct machine_kernel *b = machine_code_on(job->old, old->name, job->architecture);
    struct listing new_code = {0}, old_code = {0};
    struct mix m = {.n_changed = 0};
    if (!a || !b)
        return GATE_OK;
    enum gate_status status =
        listing_read(&(struct listing_wanted){.kernel = a, .out = &new_code}, 1, err);
    if (!status)
        status = listing_read(&(struct listing_wanted){.kernel = b, .out = &old_code}, 1, err);
    if (!status) {
        mix_count(&new_code, &old_code, &m);
        to->names[o->n_kernels++] = new->name;
    }
    for (size_t i = 0; i < m.n_changed && o->n_changed < INSTRUCTIONS_MAX; i++) {
        const struct mix_row *r = &m.rows[i];
        const size_t at = o->n_changed++;
        snprintf(to->opcodes[at], DOCUMENT_OPCODE_SIZE, "%s", r->opcode);
        listing_source(&old_code, &new_code, r->opcode, r->old > r->new, to->sources[at]);
        to->changed[at] =
            (struct document_instruction){.kernel = (int64_t)o->n_kernels - 1,
                                          .opcode = to->opcodes[at],
                                          .candidate = (int64_t)r->new,
                                          .baseline = (int64_t)r->old,
                                          .source = to->sources[at][0] ? to->sources[at] : NULL};
    }
    listing_release(&new_code);
    listing_release(&old_code);
    return status;
}

static enum gate_status compare_case(struct codes *job, struct run_case *c, struct gate_error *err)
{
    const struct document_timing *new = timing_of(c, ROLE_CANDIDATE);
    const struct document_timing *old = timing_of(c, ROLE_BASELINE);
    char path[PATHS_MAX];
    TRY(run_baseline_path(job->run, c, path, err));
    if (!job->old || strcmp(path, job->old_path) != 0) {
        machine_code_free(job->old);
        job->old = NULL;
        memcpy(job->old_path, path, sizeof path);
        TRY(machine_code_read(path, &job->old, err));
    }
    for (size_t i = 0; i < new->n_kernels && !interrupt_signal(); i++) {
        const struct document_kernel *was = document_kernel_of(old, new, i);
        if (was && differ(&new->kernels[i], was))
            TRY(compare_kernels(job, &new->kernels[i], was, c, err));
    }
    return GATE_OK;
}

static bool has_changed(const struct run_case *c)
{
    const struct document_timing *new = timing_of(c, ROLE_CANDIDATE);
    const struct document_timing *old = timing_of(c, ROLE_BASELINE);
    for (size_t i = 0; new &&old &&i < new->n_kernels; i++) {
        const struct document_kernel *was = document_kernel_of(old, new, i);
        if (was && differ(&new->kernels[i], was))
            return true;
    }
    return false;
}

/* Fills in the `instructions` of regressions with a kernel whose code changed. */
static bool find_instructions(struct run *run, double limit_s, void (*progress)(const char *text))
{
    struct codes job = {.run = run};
    struct gate_error err = {0};
    unsigned major = 0, minor = 0;
    size_t n = 0;
    const double deadline_s = clock_s() + limit_s;
    if (sscanf(run->greeting->device.capability, "%3u.%3u", &major, &minor) == 2)
        job.architecture = 10 * major + minor;
    for (size_t i = 0; i < run->suite->n_cases && !interrupt_signal(); i++) {
        struct run_case *c = &run->cases[i];
        char text[256];
        if (!causes_are_wanted(c) || !has_changed(c) || n >= CASES_MAX || clock_s() > deadline_s)
            continue;
        if (!n++ && machine_code_read(run->library, &job.new, &err))
            break;
        snprintf(text, sizeof text, "counting instructions of %s", c->about->id);
        progress(text);
        struct instructions *to = c->instructions = xcalloc(1, sizeof *to);
        struct document_instructions *d = &c->record.instructions;
        struct gate_error why = {0};
        *d = (struct document_instructions){.kernels = to->names, .changed = to->changed};
        if (compare_case(&job, c, &why)) {
            utf8_print(to->message, sizeof to->message, "%.400s", why.message);
            d->message = to->message;
        }
        c->record.has_instructions = d->n_kernels || d->message;
    }
    machine_code_free(job.new);
    machine_code_free(job.old);
    return n > 0;
}

/* ---- hardware counters of both sides ---- */

#define LOG_MAX_BYTES ((size_t)4 << 20)

/* What a case's document points to. */
struct profile {
    char message[500];
    char kernels[NCU_KERNELS_MAX][NCU_NAME_SIZE];
    const char *names[NCU_KERNELS_MAX];
    struct document_counter moved[NCU_KERNELS_MAX * COUNTERS_N];
};

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
    struct profile_side *same[CASES_MAX];
    size_t n = 0, done = 0;
    struct gate_error err = {0};
    for (size_t i = 0; i < n_sides && n < CASES_MAX; i++)
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

/* Fills in the `counters` of regressions, all of a library in one process: Nsight Compute starts a
 * worker for each side, which launches the cases a few times. */
static void find_counters(struct run *run, const struct supervisor_options *options,
                          void (*progress)(const char *text))
{
    struct job job = {.run = run,
                      .options = options,
                      .progress = progress,
                      .hopper = !strcmp(run->greeting->device.capability, "9.0")};
    struct run_case *cases[CASES_MAX];
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
                 "only the first %d regressions of a run are profiled", CASES_MAX);
        if (n < CASES_MAX)
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

bool causes_find(struct run *run, struct supervisor *s, bool profiled,
                 void (*progress)(const char *text))
{
    bool looked = find_nodes(run, s, progress);
    looked |= find_instructions(run, s->options->timeout_s, progress);
    if (profiled)
        find_counters(run, s->options, progress);
    return looked || profiled;
}
