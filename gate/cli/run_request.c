/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/run_request.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gate/baseline/artifact.h"
#include "gate/base/hex.h"
#include "gate/base/interrupt.h"
#include "gate/cli/config.h"
#include "gate/base/clock.h"
#include "gate/base/json.h"
#include "gate/document/document.h"
#include "gate/baseline/revision.h"
#include "gate/run/blame.h"
#include "gate/run/profile.h"

void run_request_init(struct run_request *r)
{
    *r = (struct run_request){
        .policy = {.threshold = 0.02, .budget_ms = 150, .pause_s = 5, .against = "baseline"},
        .target.timeout_s = 60,
        .db = DEFAULT_DB,
        .baselines = DEFAULT_BASELINES};
}

/* ---- options ---- */

static bool read_seed(void *field, const char *text)
{
    struct run_request *r = field;
    char *end;
    errno = 0;
    r->seed = strtoull(text, &end, 16);
    r->seed_text = text;
    return end != text && !*end && !errno && *text != '-' && strlen(text) <= 16;
}

static bool read_report(void *field, const char *text)
{
    struct run_request *r = field;
    char name[16];
    const char *equals = strchr(text, '=');
    if (!equals || !equals[1] || (size_t)(equals - text) >= sizeof name ||
        r->n_reports == REQUEST_REPORTS_MAX)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    r->reports[r->n_reports].path = equals + 1;
    return report_format_parse(name, &r->reports[r->n_reports++].format);
}

#define AT(field) .at = offsetof(struct run_request, field)

const struct option_def request_build_options[] = {
    {.name = "build",
     .value = "COMMAND",
     .help = "shell command that makes the library of a commit in a fresh checkout",
     .type = OPTION_TEXT,
     AT(build),
     .key = "build"},
    {.name = "built",
     .value = "FILE",
     .help = "what it makes, relative to the folder of the build",
     .type = OPTION_TEXT,
     AT(built),
     .key = "library",
     .fallback = "the library"},
    {0},
};

const struct option_def request_options[] = {
    {.name = "suite",
     .value = "NAME|FILE",
     .help = "canonical, host, smoke, or a file",
     .type = OPTION_TEXT,
     AT(suite),
     .key = "suite",
     .is_path = true,
     .fallback = "canonical on a GPU, host on the host"},
    {.name = "device",
     .value = "auto|host|cuda:N|all",
     .help = "where the kernels run; all: a part of the suite on each GPU, for gate run",
     .type = OPTION_TEXT,
     AT(target.device),
     .fallback = "auto: cuda:0 where there is a GPU, else host"},
    {.name = "filter",
     .value = "GLOB",
     .help = "only the cases whose id matches, e.g. 'gemm/fp16/*'",
     .type = OPTION_TEXT,
     AT(filter)},
    {.name = "seed",
     .value = "HEX",
     .help = "seed of all inputs",
     .type = OPTION_READ,
     .form = "1 to 16 hex digits",
     .read = read_seed,
     .fallback = "a fresh one"},
    {.name = "timeout",
     .value = "SECONDS",
     .help = "longest silence of a worker before it is killed",
     .type = OPTION_NUMBER,
     AT(target.timeout_s),
     .least = 0.1,
     .most = 86400,
     .fallback = "60"},
    {.name = "wait",
     .value = "SECONDS",
     .help = "how long to wait for a busy device",
     .type = OPTION_NUMBER,
     AT(wait_s),
     .most = 86400,
     .fallback = "0"},
    {.name = "json",
     .help = "print a JSON document in place of the table",
     .type = OPTION_FLAG,
     AT(json)},
    {0},
};

const struct option_def request_measure_options[] = {
    {.name = "threshold",
     .value = "PERCENT",
     .help = "slowdown that fails",
     .type = OPTION_PERCENT,
     AT(policy.threshold),
     .fallback = "2%"},
    {.name = "budget",
     .value = "MS",
     .help = "time for the samples of a case in one process",
     .type = OPTION_NUMBER,
     AT(policy.budget_ms),
     .least = 1,
     .most = 1e6,
     .fallback = "150"},
    {0},
};

const struct option_def request_full_options[] = {
    {.name = "host-threshold",
     .value = "PERCENT",
     .help = "slowdown of a call of launch() on the host that fails",
     .type = OPTION_PERCENT,
     AT(policy.host_threshold),
     .key = "host_threshold",
     .fallback = "none: it is reported alone"},
    {.name = "full",
     .help = "measure cases that run the same machine code as what they are compared with like "
             "all others, and not in one process",
     .type = OPTION_FLAG,
     AT(policy.full)},
    {.name = "no-ceilings",
     .help = "do not measure what the GPU reaches at best, which takes 1.5 s on an H200",
     .type = OPTION_FLAG,
     AT(no_ceilings)},
    {.name = "counters",
     .help = "after the verdicts, profile both sides of each regression by Nsight Compute (ncu), "
             "and say which hardware counters moved",
     .type = OPTION_FLAG,
     AT(counters)},
    {0},
};

const struct option_def request_report_options[] = {
    {.name = "report",
     .value = "FORMAT=FILE",
     .help = "write a report as text, markdown, json, csv or junit; repeatable",
     .type = OPTION_READ,
     .form = "FORMAT=FILE with the format text, markdown, json, csv or junit, such as "
             "markdown=report.md, at most 8 times",
     .read = read_report},
    LINK_OPTION(struct run_request, link),
    {0},
};

const struct option_def request_library_options[] = {
    {.name = "library",
     .value = "FILE",
     .help = "the kernel library to judge",
     .type = OPTION_TEXT,
     AT(target.library),
     .key = "library",
     .is_path = true,
     .fallback = "the one that comes with the gate"},
    {.name = "worker",
     .value = "PROGRAM",
     .help = "another worker (see gate/worker/PROTOCOL.md)",
     .type = OPTION_TEXT,
     AT(target.worker),
     .fallback = "the gate's own"},
    {0},
};

const struct option_def request_provider_options[] = {
    {.name = "provider",
     .value = "FILE",
     .help = "a library to compare with, repeatable",
     .type = OPTION_LIST,
     AT(providers),
     .key = "providers",
     .is_path = true,
     .fallback = "on a GPU cuBLAS (its default, the best of its timed, layer by layer) and cuDNN"},
    {0},
};

static bool read_commit(void *field, const char *text)
{
    *(const char **)field = text;
    return hex_is(text, 40);
}

const struct option_def request_origin_options[] = {
    {.name = "commit",
     .value = "HASH",
     .help = "the commit that is measured",
     .type = OPTION_READ,
     AT(origin.commit),
     .form = "40 hex digits",
     .read = read_commit,
     .fallback = "by the CI job's variables, else git; so too what follows"},
    {.name = "branch",
     .value = "NAME",
     .help = "its branch",
     .type = OPTION_TEXT,
     AT(origin.branch)},
    {.name = "base",
     .value = "NAME",
     .help = "the branch that a change is to be merged into",
     .type = OPTION_TEXT,
     AT(origin.base)},
    {.name = "change",
     .value = "NUMBER",
     .help = "the pull or merge request",
     .type = OPTION_TEXT,
     AT(origin.change)},
    {.name = "job", .value = "URL", .help = "the CI job", .type = OPTION_TEXT, AT(origin.job)},
    {0},
};

/* The library that comes with the gate is known to its own Makefile. */
struct rebuild_recipe run_request_recipe(const struct run_request *r, bool host)
{
    struct rebuild_recipe recipe = {.command = r->build, .folder = config_folder()};
    if (r->build)
        recipe.library = r->built ? r->built : r->target.library;
    else if (!r->target.library && !r->built)
        recipe.library = host ? "libhost.so" : "libours.so";
    return recipe;
}

/* ---- set-up ---- */

static enum gate_status load_suite(const struct run_request *r, const char *device,
                                   struct run_setup *out, struct gate_error *err)
{
    char path[PATHS_MAX];
    const char *name = r->suite ? r->suite : strcmp(device, "host") != 0 ? "canonical" : "host";
    enum gate_status status = paths_suite(name, path, err);
    if (!status)
        status = suite_load(path, &out->suite, err);
    out->own_suite = !strcmp(path, name);
    if (!status && r->filter && !suite_filter(&out->suite, r->filter))
        status = gate_fail(err, GATE_USAGE, "no case of suite '%s' matches '%s'", name, r->filter);
    return status;
}

/* ---- the device ---- */

#define LOCK_POLL_S 0.2
#define START_POLL_S 10.0 /* to look whether a GPU is free, a process must begin to use it */

static bool is_busy(enum gate_status status, const struct gate_error *err)
{
    return status == GATE_ENVIRONMENT && strstr(err->message, DEVICE_BUSY);
}

/* Sleeps, unless the deadline has come. */
static bool wait_on(double deadline, double seconds)
{
    double left = deadline - clock_s();
    if (left <= 0)
        return false;
    seconds = seconds < left ? seconds : left;
    const struct timespec t = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&t, NULL);
    return true;
}

static void warn_busy(const struct gate_error *err, bool *said)
{
    if (!*said)
        fprintf(stderr, "gate: waiting: %s\n", err->message);
    *said = true;
}

static enum gate_status start_worker(struct run_setup *s, double deadline, bool *said,
                                     struct gate_error *err)
{
    enum gate_status status;
    for (;;) {
        status = supervisor_start(&s->target.options, &s->supervisor, err);
        if (!is_busy(status, err) || clock_s() >= deadline)
            return status;
        warn_busy(err, said);
        wait_on(deadline, START_POLL_S);
    }
}

/* The worker knows what device that is; nothing has been measured yet. While another gate measures
 * on it, no worker of ours is there. */
static enum gate_status open_device(const struct run_request *r, struct run_setup *s,
                                    struct gate_error *err)
{
    char name[128];
    bool said = false;
    double deadline = clock_s() + r->wait_s;
    enum gate_status status = start_worker(s, deadline, &said, err);
    if (status)
        return status;
    const struct document_device *device = &supervisor_greeting(s->supervisor)->device;
    snprintf(name, sizeof name, "%s", device->uuid[0] ? device->uuid : device->model);
    status = device_lock_take(name, &s->lock, err);
    if (!is_busy(status, err) || r->wait_s <= 0)
        return status;
    warn_busy(err, &said);
    supervisor_stop(s->supervisor);
    s->supervisor = NULL;
    while (is_busy(status, err) && wait_on(deadline, LOCK_POLL_S))
        status = device_lock_take(name, &s->lock, err);
    return status ? status : start_worker(s, deadline, &said, err);
}

enum gate_status run_setup_open(const struct run_request *r, struct run_setup *out,
                                struct gate_error *err)
{
    struct target_choice choice = r->target;
    choice.providers = r->providers.text;
    choice.n_providers = r->providers.n;
    enum gate_status status = target_resolve(&choice, &out->target, err);
    if (!status)
        status = load_suite(r, out->target.device, out, err);
    out->shard = r->shard;
    if (!status && out->shard.count)
        status = shard_select(&out->shard, &out->suite, err);
    return status ? status : open_device(r, out, err);
}

void run_setup_close(struct run_setup *s)
{
    supervisor_stop(s->supervisor);
    device_lock_release(&s->lock);
    suite_free(&s->suite);
    shard_release(&s->shard);
}

/* ---- output ---- */

void run_request_progress(const char *text)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s", text);
}

static void show_case(void *context, const struct run *run, const struct suite_case *c,
                      enum run_stage stage, size_t done, size_t n)
{
    char text[256];
    (void)context;
    snprintf(text, sizeof text, "%s process %zu [%zu/%zu] %s",
             stage == RUN_FIRST ? "measuring," : "confirming,", run->n_processes, done + 1, n,
             c->id);
    run_request_progress(text);
}

static enum gate_status write_report(const struct document *document,
                                     const struct report_request *r, const char *link,
                                     struct gate_error *err)
{
    struct report_style plain = {.link = link};
    struct buf text;
    buf_init(&text, COMMAND_MAX_OUTPUT);
    report_write(document, r->format, &plain, &text);
    enum gate_status status = command_write(r->path, &text, err);
    buf_release(&text);
    return status;
}

static enum gate_status write_early(const struct report_request *r, int exit_code,
                                    const char *message, struct gate_error *err)
{
    struct buf text;
    buf_init(&text, COMMAND_MAX_OUTPUT);
    report_write_early(r->format, exit_code, message, &text);
    enum gate_status status = command_write(r->path, &text, err);
    buf_release(&text);
    return status;
}

/* A pipe or a terminal takes what is written once, and at the end. */
static bool is_regular(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && (stat(path, &st) || S_ISREG(st.st_mode));
}

enum gate_status run_request_open_reports(const struct run_request *r, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < r->n_reports && !status; i++)
        if (is_regular(r->reports[i].path))
            status = write_early(&r->reports[i], GATE_INTERNAL,
                                 "the run has not ended, or it was killed", err);
    return status;
}

void run_request_fail_reports(const struct run_request *r, const struct gate_error *why)
{
    for (size_t i = 0; i < r->n_reports; i++)
        write_early(&r->reports[i], (int)why->status, why->message, NULL);
}

enum gate_status run_request_report(const struct run_request *r, const struct document *document,
                                    struct gate_error *err)
{
    struct report_style style = command_style();
    struct buf text;
    style.link = r->link.url;
    buf_init(&text, COMMAND_MAX_OUTPUT);
    report_write(document, r->json ? REPORT_JSON : REPORT_TEXT, &style, &text);
    enum gate_status status = command_write(NULL, &text, err);
    buf_release(&text);
    /* One that cannot be written does not cost the others. */
    for (size_t i = 0; i < r->n_reports; i++) {
        enum gate_status written =
            write_report(document, &r->reports[i], r->link.url, status ? NULL : err);
        status = status ? status : written;
    }
    return status;
}

enum gate_status run_request_store(struct store *store, const struct buf *text,
                                   struct document *out, struct gate_error *err)
{
    bool existed;
    if (text->failed)
        return gate_fail(err, GATE_INTERNAL, "cannot write the run document");
    enum gate_status status =
        document_parse("the run document", 1, text->data, text->len, GATE_INTERNAL, out, err);
    if (!status && store) {
        status = store_put_run(store, out, text->data, text->len, &existed, err);
        if (status)
            document_release(out);
    }
    return status;
}

/* ---- the run ---- */

/* Everything that a run needs and lets go of at its end. */
struct run_session {
    struct run_setup setup;
    struct store *store;
    struct baseline *baseline;
    char *baseline_path;
    int lock; /* of the folder of the baselines; -1: none */
    struct rebuild_recipe recipe;
    struct origin origin;
    struct revision against, warn_against;
    bool reported; /* the reports are written, or failed to be */
    struct run run, warning;
    struct supervisor *supervisor; /* of the warning */
};

static bool is_baseline(const char *against)
{
    return !strcmp(against, "baseline");
}

static bool needs_baselines(const struct run_policy *p)
{
    return is_baseline(p->against) || (p->warn_against && is_baseline(p->warn_against));
}

static bool keeps_baselines(const struct run_request *r)
{
    return r->policy.accept_new || r->policy.ratchet;
}

/* What would be written at the end must be writable now: the cache, and the folder of the
 * baselines, which is made when it is not there. It stays locked from the reading of the baselines
 * to the writing, so that two runs do not undo each other's. */
static enum gate_status open_for_keeping(const struct run_request *r, struct run_session *s,
                                         struct gate_error *err)
{
    char cache[PATHS_MAX];
    if (mkdir(r->baselines, 0777) && errno != EEXIST)
        return gate_fail(err, GATE_IO, "cannot create '%s': %s", r->baselines, strerror(errno));
    if (access(r->baselines, W_OK))
        return gate_fail(err, GATE_IO, "cannot write to '%s': %s", r->baselines, strerror(errno));
    enum gate_status status = baseline_lock(r->baselines, &s->lock, err);
    return status ? status : artifact_cache_dir(cache, err);
}

static enum gate_status resolve_merge_base(const struct run_request *r, const struct origin *origin,
                                           char commit[41], struct gate_error *err)
{
    const char *base = origin->base[0] ? origin->base : r->main_branch ? r->main_branch : "main";
    enum gate_status status = revision_merge_base(base, commit, err);
    if (!status && !strcmp(commit, origin->commit) && !origin->dirty)
        status = gate_fail(err, GATE_USAGE,
                           "HEAD is on '%s' itself, and merge-base would compare it with itself: "
                           "give --against baseline or a commit",
                           base);
    return status;
}

/* The library that is meant; of a merge base, the policy then has its commit. */
static enum gate_status resolve(const struct run_request *r, struct run_session *s,
                                const char **what, struct revision *out, struct gate_error *err)
{
    char commit[41];
    enum gate_status status = GATE_OK;
    if (!*what || is_baseline(*what))
        return GATE_OK;
    bool merge_base = !strcmp(*what, "merge-base");
    if (merge_base)
        status = resolve_merge_base(r, &s->origin, commit, err);
    if (!status)
        status = revision_resolve(merge_base ? commit : *what, &s->recipe, out, err);
    if (merge_base)
        *what = out->commit;
    return status;
}

static enum gate_status open_against(struct run_request *r, struct run_session *s,
                                     struct gate_error *err)
{
    const struct document_device *device = &supervisor_greeting(s->setup.supervisor)->device;
    bool host = device->kind == DEVICE_HOST;
    s->recipe = r->recipe.library ? r->recipe : run_request_recipe(r, host);
    enum gate_status status = resolve(r, s, &r->policy.against, &s->against, err);
    if (!status)
        status = resolve(r, s, &r->policy.warn_against, &s->warn_against, err);
    if (status || !needs_baselines(&r->policy))
        return status;
    const char *model = device->model;
    s->baseline_path = baseline_path(r->baselines, model);
    if (!s->baseline_path)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    if (keeps_baselines(r) && !r->shard.count)
        status = open_for_keeping(r, s, err);
    return status ? status : baseline_load(s->baseline_path, model, &s->baseline, err);
}

/* All that can be refused is refused before the first kernel runs. */
static enum gate_status prepare(struct run_request *r, struct run_session *s,
                                struct gate_error *err)
{
    r->origin.baselines = r->baselines;
    origin_read(&r->origin, &s->origin);
    enum gate_status status = run_request_open_reports(r, err);
    if (!status && !is_baseline(r->policy.against) && keeps_baselines(r))
        status = gate_fail(err, GATE_USAGE,
                           "--accept-new and --ratchet go with --against baseline alone");
    if (!status && r->history)
        status = store_open(r->db, STORE_READ_WRITE, &s->store, err);
    if (!status)
        status = run_setup_open(r, &s->setup, err);
    if (!status)
        status = open_against(r, s, err);
    return status;
}

/* Parts of a suite that run beside each other change the baselines of their own cases: each reads
 * them again when it is its turn. */
static enum gate_status keep_baselines(const struct run_request *r, struct run_session *s,
                                       bool *changed, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    if (r->shard.count) {
        struct baseline *now = NULL;
        const char *model = s->run.greeting->device.model;
        status = open_for_keeping(r, s, err);
        if (!status)
            status = baseline_load(s->baseline_path, model, &now, err);
        if (status)
            return status;
        status = run_keep_baselines(&s->run, now, changed, err);
        baseline_free(s->baseline);
        s->run.baseline = s->baseline = now;
        return status;
    }
    return run_keep_baselines(&s->run, s->baseline, changed, err);
}

static enum gate_status keep_document(const struct run_request *r, struct run_session *s,
                                      struct gate_error *err)
{
    struct document made, document;
    struct buf text;
    buf_init(&text, COMMAND_MAX_OUTPUT);
    if (run_document(&s->run, &made))
        document_write(&made, &text);
    else
        text.failed = true;
    run_document_release(&made);
    enum gate_status status = run_request_store(s->store, &text, &document, err);
    buf_release(&text);
    s->reported = !status;
    if (status)
        return status;
    status = run_request_report(r, &document, err);
    document_release(&document);
    return status;
}

/* The second comparison has workers of its own, and no other worker is on the device then. */
static enum gate_status measure_warning(struct run_session *s, struct gate_error *err)
{
    supervisor_retire_worker(s->setup.supervisor);
    enum gate_status status = supervisor_start(&s->setup.target.options, &s->supervisor, err);
    if (!status)
        status = run_start(&s->warning, s->supervisor, err);
    if (!status)
        status = run_measure(&s->warning, s->supervisor, show_case, NULL, err);
    if (!status)
        run_take_warning(&s->run, &s->warning);
    return status;
}

static void retire_workers(const struct run_session *s)
{
    supervisor_retire_worker(s->setup.supervisor);
    if (s->supervisor)
        supervisor_retire_worker(s->supervisor);
}

/* Why is it slower? The verdicts stand, and nothing is timed for them any more. */
static enum gate_status diagnose(const struct run_request *r, struct run_session *s,
                                 struct gate_error *err)
{
    retire_workers(s);
    bool looked = blame_run(&s->run, s->setup.supervisor, run_request_progress);
    if (r->counters)
        profile_run(&s->run, &s->setup.target.options, run_request_progress);
    return (looked || r->counters) && interrupt_signal()
               ? gate_fail(err, interrupt_status(),
                           "interrupted while causes were looked for: nothing is "
                           "stored, and no baseline has changed")
               : GATE_OK;
}

static bool any_timed(const struct run *run)
{
    for (size_t i = 0; i < run->suite->n_cases; i++) {
        const struct document_arm *arm = run_arm(&run->cases[i], ROLE_CANDIDATE);
        if (arm && arm->has_timing)
            return true;
    }
    return false;
}

static enum gate_status measure_ceilings(struct run_session *s, struct gate_error *err)
{
    if (!any_timed(&s->run) || s->run.greeting->device.kind != DEVICE_CUDA)
        return GATE_OK;
    retire_workers(s);
    run_request_progress("measuring what the device can reach");
    run_ceilings_measure(&s->setup.target.options, &s->run.greeting->device, &s->run.ceilings);
    return interrupt_signal() ? gate_fail(err, interrupt_status(),
                                          "interrupted while the ceilings were measured: nothing "
                                          "is stored, and no baseline has changed")
                              : GATE_OK;
}

static enum gate_status measure_and_write(const struct run_request *r, struct run_session *s,
                                          struct gate_error *err)
{
    bool changed = false;
    struct run *run = &s->run;
    enum gate_status status = run_start(run, s->setup.supervisor, err);
    if (!status)
        status = interrupt_catch(err);
    if (!status)
        status = run_measure(run, s->setup.supervisor, show_case, NULL, err);
    if (!status && r->policy.warn_against)
        status = measure_warning(s, err);
    if (!status)
        status = diagnose(r, s, err);
    if (!status && !r->no_ceilings)
        status = measure_ceilings(s, err);
    run_request_progress("");
    if (!status && keeps_baselines(r))
        status = keep_baselines(r, s, &changed, err);
    if (!status && (r->history || r->shard.count))
        run_keep_candidate(run);
    if (!status && run->warning && r->history)
        run_keep_candidate(run->warning);
    /* First the baselines: a run that says so must not be stored when they could not be. */
    if (!status && changed)
        status = baseline_save(s->baseline, s->baseline_path, err);
    if (status)
        return status;
    status = keep_document(r, s, err);
    return status;
}

uint64_t run_request_fresh_seed(void)
{
    uint64_t seed;
    while (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        continue;
    return seed;
}

static void set_against(struct run *run, const struct run_session *s, const char *what,
                        const struct revision *found)
{
    bool stored = is_baseline(what);
    run->baseline = stored ? s->baseline : NULL;
    run->against_path = stored ? NULL : found->path;
    run->against_sha256 = stored ? NULL : found->sha256;
    if (!run->policy.other)
        run->policy.other = stored                  ? "the baseline"
                            : what == found->commit ? "the merge base"
                                                    : "the other library";
}

static void start_warning(const struct run_request *r, struct run_session *s)
{
    s->warning = s->run;
    s->warning.policy.accept_new = s->warning.policy.ratchet = false;
    s->warning.policy.other = NULL;
    set_against(&s->warning, s, r->policy.warn_against, &s->warn_against);
}

static void start(const struct run_request *r, struct run_session *s)
{
    s->run = (struct run){.suite = &s->setup.suite,
                          .shard = s->setup.shard.count ? &s->setup.shard : NULL,
                          .library = s->setup.target.library,
                          .recipe = s->recipe,
                          .own_suite = s->setup.own_suite,
                          .policy = r->policy,
                          .seed = r->seed_text ? r->seed : run_request_fresh_seed()};
    set_against(&s->run, s, r->policy.against, &s->against);
    s->run.reproduce = (struct reproduce){.device = s->setup.target.device,
                                          .suite = r->suite,
                                          .library = r->target.library,
                                          .seed = s->run.seed};
    s->run.origin = s->origin;
    origin_author(s->run.author, sizeof s->run.author);
    if (r->policy.warn_against)
        start_warning(r, s);
}

/* A baseline names the commit that makes it. */
static enum gate_status check_clean(const struct run_request *r, const struct origin *origin,
                                    struct gate_error *err)
{
    if (!keeps_baselines(r) || !origin->dirty || r->policy.allow_dirty)
        return GATE_OK;
    return gate_fail(err, GATE_USAGE,
                     "there are changes that are not committed, and a baseline names the commit "
                     "%.12s: commit them, or give --allow-dirty",
                     origin->commit);
}

int run_request_execute(const struct command *command, struct run_request *r)
{
    struct run_session s = {.lock = -1};
    struct gate_error err = {0};
    interrupt_announce(command->name,
                       "nothing was measured, nothing is stored, and no baseline has changed");
    enum gate_status status = prepare(r, &s, &err);
    if (!status) {
        start(r, &s);
        status = check_clean(r, &s.run.origin, &err);
    }
    if (!status)
        status = measure_and_write(r, &s, &err);
    if (status && !s.reported)
        run_request_fail_reports(r, &err);
    int code = status ? command_failed(command, &err) : verdict_exit_code(s.run.counts);
    run_release(&s.run);
    run_release(&s.warning);
    supervisor_stop(s.supervisor);
    run_setup_close(&s.setup);
    baseline_free(s.baseline);
    free(s.baseline_path);
    store_close(s.store);
    if (s.lock >= 0)
        close(s.lock);
    if (status > 128)
        raise(interrupt_signal()); /* a shell's loop ends by it, too */
    return code;
}
