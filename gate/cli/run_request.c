/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/run_request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gate/base/clock.h"
#include "gate/base/json.h"
#include "gate/base/term.h"
#include "gate/cli/config.h"

/* ---- options ---- */

bool run_request_add_report(void *field, const char *text)
{
    struct run_request *r = field;
    char name[16];
    const char *equals = strchr(text, '=');
    if (!equals || !equals[1] || (size_t)(equals - text) >= sizeof name ||
        r->n_reports == REQUEST_REPORTS_MAX)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    if (!report_format_parse(&r->reports[r->n_reports].format, name))
        return false;
    r->reports[r->n_reports++].path = equals + 1;
    return true;
}

#define ARGUMENTS struct run_request

const struct option_def request_build_options[] = {
    OPTION(TEXT, "build", "COMMAND", build,
           "shell command that builds the library of a commit in a fresh checkout", .key = "build"),
    OPTION(TEXT, "built", "FILE", built, "the file that it builds, relative to the checkout",
           .key = "library", .fallback = "the library"),
    {0},
};

const struct option_def request_device_options[] = {
    OPTION(TEXT, "device", "auto|host|cuda:N", target.device, "where the kernels run",
           .fallback = REQUEST_DEVICE_FALLBACK),
    {0},
};

const struct option_def request_options[] = {
    OPTION(TEXT, "suite", "NAME|FILE", suite, "canonical, serving, host, smoke, or a file",
           .key = "suite", .is_path = true, .fallback = "canonical on a GPU, host on the host"),
    OPTION(TEXT, "filter", "GLOB", filter, "only the cases whose id matches, e.g. 'gemm/fp16/*'"),
    OPTION(SEED, "seed", "HEX", seed, "seed of all inputs", .fallback = "a fresh one"),
    OPTION(NUMBER, "timeout", "SECONDS", target.timeout_s,
           "kill a worker that is silent for longer", .least = 0.1, .most = 86400,
           .fallback = "60"),
    OPTION(NUMBER, "wait", "SECONDS", wait_s, "how long to wait for a busy device", .most = 86400,
           .fallback = "0"),
    OPTION(TEXT, "worker", "PROGRAM", target.worker, "another worker (see gate/worker/PROTOCOL.md)",
           .fallback = "the gate's own"),
    FLAG("json", json, "print a JSON document instead of the table"),
    {0},
};

const struct option_def request_measure_options[] = {
    OPTION(PERCENT, "threshold", "PERCENT", policy.threshold, "slowdown that fails",
           .fallback = "2%"),
    OPTION(NUMBER, "budget", "MS", policy.budget_ms,
           "time for the samples of a case in each process", .least = 1, .most = 1e6,
           .fallback = "150"),
    {0},
};

const struct option_def request_pause_options[] = {
    OPTION(NUMBER, "pause", "SECONDS", policy.pause_s, "wait before a suspicion is measured again",
           .most = 3600, .fallback = "5"),
    {0},
};

const struct option_def request_full_options[] = {
    OPTION(PERCENT, "host-threshold", "PERCENT", policy.host_threshold,
           "slowdown of the call of launch() on the host that fails", .key = "host_threshold",
           .fallback = "100 %, and at least 20 us"),
    FLAG("full", policy.full,
         "measure and verify every case in full, also those that run the same machine code as the "
         "library they are compared with (otherwise one process), and those that an earlier run "
         "verified"),
    FLAG("vendors", policy.vendors,
         "measure cuBLAS, cuDNN and the ceilings anew, also where their times beside this library "
         "on this device are known from an earlier run"),
    FLAG("no-vendors", without_vendors, "do not measure cuBLAS and cuDNN"),
    FLAG("no-ceilings", no_ceilings,
         "do not measure the highest rates of the GPU, which takes 1.5 s on an H200"),
    FLAG("counters", counters,
         "after the verdicts, profile both sides of each regression with Nsight Compute (ncu), "
         "and report the hardware counters that moved"),
    {0},
};

const struct option_def request_report_options[] = {
    {.name = "report",
     .value = "FORMAT=FILE",
     .help = "write a report as text, markdown, json, csv or junit; repeatable",
     .type = OPTION_READ,
     .form = "FORMAT=FILE with the format text, markdown, json, csv or junit, such as "
             "markdown=report.md, at most 8 times",
     .read = run_request_add_report},
    LINK_OPTION(link),
    {0},
};

const struct option_def request_library_options[] = {
    OPTION(TEXT, "library", "FILE", target.library, "the kernel library to test", .key = "library",
           .is_path = true,
           .fallback = "with one of the gate's own suites, the one that comes with it"),
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

/* ---- suite, target, worker and device ---- */

enum gate_status run_setup_suite(const struct run_request *r, const char *device,
                                 struct run_setup *out, struct gate_error *err)
{
    char path[PATHS_MAX];
    const char *name = r->suite ? r->suite : strcmp(device, "host") != 0 ? "canonical" : "host";
    TRY(paths_suite(name, path, err));
    TRY(suite_load(path, &out->suite, err));
    TRY(suite_load(path, &out->whole, err));
    out->own_suite = !strcmp(path, name);
    if (r->filter && !suite_filter(&out->suite, r->filter))
        return gate_fail(err, GATE_USAGE, "no case of suite '%s' matches '%s'", name, r->filter);
    return GATE_OK;
}

#define LOCK_POLL_S 0.2
#define START_POLL_S 10.0 /* to look whether a GPU is free, a process must begin to use it */

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
    progress_show("waiting for the device");
    *said = true;
}

static enum gate_status start_worker(struct run_setup *s, double deadline, bool *said,
                                     struct gate_error *err)
{
    for (;;) {
        enum gate_status status = supervisor_start(&s->target.options, &s->supervisor, err);
        if (!(status && err->busy) || clock_s() >= deadline)
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
    TRY(start_worker(s, deadline, &said, err));
    const struct document_device *device = &s->supervisor->greeting.m.device;
    snprintf(name, sizeof name, "%s", device->uuid[0] ? device->uuid : device->model);
    progress_show("");
    enum gate_status status = device_lock_take(name, &s->lock, err);
    if (!(status && err->busy) || r->wait_s <= 0)
        return status;
    warn_busy(err, &said);
    supervisor_stop(s->supervisor);
    s->supervisor = NULL;
    while (status && err->busy && wait_on(deadline, LOCK_POLL_S))
        status = device_lock_take(name, &s->lock, err);
    progress_show("");
    return status ? status : start_worker(s, deadline, &said, err);
}

static bool is_in_ci(void)
{
    const char *ci = getenv("CI");
    return ci && ci[0] && strcmp(ci, "false") != 0;
}

/* A file that git knows, of a time after `than`. */
struct newer {
    struct timespec than;
    char path[PATHS_MAX];
};

static bool take_newer(void *context, const char *line)
{
    struct newer *n = context;
    struct stat st;
    char path[PATHS_MAX];
    snprintf(path, sizeof path, "%s%s", config_folder(), line);
    if (stat(path, &st) || st.st_mtim.tv_sec < n->than.tv_sec ||
        (st.st_mtim.tv_sec == n->than.tv_sec && st.st_mtim.tv_nsec <= n->than.tv_nsec))
        return true;
    n->than = st.st_mtim;
    memcpy(n->path, path, sizeof path);
    return true;
}

/* Who edits a kernel and forgets to build measures the old one, and it passes. A CI job has a
 * build step, and what it checks out or unpacks has other times than those of the edits. */
static void warn_of_old_library(const struct run_request *r)
{
    const cJSON *config;
    struct gate_error err;
    struct newer n = {.path = ""};
    struct stat st;
    if (is_in_ci() || config_read(&config, &err) || !config ||
        strcmp(r->target.library, config_path(json_string(config, "library", ""))) != 0 ||
        stat(r->target.library, &st))
        return;
    n.than = st.st_mtim;
    git_lines(take_newer, &n, "-c", "core.quotePath=off", "-C", config_folder(), "ls-files", "--",
              "*.c", "*.cc", "*.cpp", "*.cu", "*.cuh", "*.h", "*.hpp", NULL);
    const char *build = json_string(config, "build", NULL);
    if (n.path[0])
        fprintf(stderr,
                "gate: %s is newer than %s: if the library is built from it, build first%s%s\n",
                n.path, r->target.library, build ? ": " : "", build ? build : "");
}

/* The gate's own kernels are meant where one of its own suites is named, or in its own repository;
 * anywhere else a wrong folder would be green. */
enum gate_status run_setup_check_library(const struct run_request *r, struct gate_error *err)
{
    bool shipped = r->suite && !paths_is_suite_file(r->suite);
    bool own_tree = !access("gate/main.c", F_OK) && !access("kernels/suites/host.json", F_OK);
    if (r->target.library)
        warn_of_old_library(r);
    if (r->target.library || r->target.worker)
        return GATE_OK;
    if (!shipped && !own_tree)
        return gate_fail(err, GATE_USAGE,
                         "no library is named: there is no gate.json here, nor above it in this "
                         "repository, and no --library. `gate init` writes one; --suite smoke "
                         "looks at the kernels that come with the gate");
    fprintf(stderr, "gate: neither --library nor a gate.json names a library; measuring the "
                    "kernels that come with the gate\n");
    return GATE_OK;
}

enum gate_status run_setup_open(const struct run_request *r, struct run_setup *out,
                                struct gate_error *err)
{
    struct supervisor_options choice = r->target;
    bool vendors = !r->without_vendors && !r->providers.none;
    choice.providers = r->providers.text;
    choice.n_providers = (unsigned)r->providers.n;
    TRY(target_resolve(&choice, vendors, &out->target, err));
    TRY(run_setup_suite(r, out->target.device, out, err));
    size_t left_out = out->whole.n_cases - out->suite.n_cases;
    /* A job that looks at a part of the suite would be green for the others too. */
    if (left_out && r->whole && !r->partial && is_in_ci())
        return gate_fail(
            err, GATE_NO_VERDICT,
            "--filter '%s' leaves out %zu of the suite's %zu cases, and in CI (CI is set) "
            "a run must be whole: add --partial if this job shall not look at them",
            r->filter, left_out, out->whole.n_cases);
    out->shard = r->shard;
    if (out->shard.count)
        TRY(shard_select(&out->shard, &out->suite, err));
    /* Before any kernel of the library may run. Another worker is a program that is not known. */
    if (r->whole && !r->target.worker && !r->target.n_wrapper)
        out->memory = memory_open(out->target.library);
    return open_device(r, out, err);
}

void run_setup_close(struct run_setup *s)
{
    supervisor_stop(s->supervisor);
    memory_close(s->memory, s->remember);
    device_lock_release(&s->lock);
    suite_free(&s->suite);
    suite_free(&s->whole);
    shard_release(&s->shard);
}
