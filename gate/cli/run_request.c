/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/run_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "gate/base/hex.h"
#include "gate/cli/config.h"

void run_request_init(struct run_request *r)
{
    *r = (struct run_request){
        .policy = {.threshold = 0.02, .budget_ms = 150, .pause_s = 5, .against = "baseline"},
        .target.timeout_s = 60,
        .db = DEFAULT_DB,
        .baselines = DEFAULT_BASELINES};
    while (getrandom(&r->seed, sizeof r->seed, 0) != (ssize_t)sizeof r->seed)
        continue;
}

/* ---- options ---- */

static bool read_seed(void *field, const char *text)
{
    char *end;
    errno = 0;
    *(uint64_t *)field = strtoull(text, &end, 16);
    return end != text && !*end && !errno && *text != '-' && strlen(text) <= 16;
}

bool run_request_add_report(void *field, const char *text)
{
    struct run_request *r = field;
    char name[16];
    const char *equals = strchr(text, '=');
    if (!equals || !equals[1] || (size_t)(equals - text) >= sizeof name ||
        r->n_reports == REQUEST_REPORTS_MAX)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    if (!report_format_parse(name, &r->reports[r->n_reports].format))
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
    OPTION(READ, "seed", "HEX", seed, "seed of all inputs", .form = "1 to 16 hex digits",
           .read = read_seed, .fallback = "a fresh one"),
    OPTION(NUMBER, "timeout", "SECONDS", target.timeout_s,
           "kill a worker that is silent for longer", .least = 0.1, .most = 86400,
           .fallback = "60"),
    OPTION(NUMBER, "wait", "SECONDS", wait_s, "how long to wait for a busy device", .most = 86400,
           .fallback = "0"),
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
    FLAG("no-vendors", target.without_vendors, "do not measure cuBLAS and cuDNN"),
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
    LINK_OPTION(struct run_request, link),
    {0},
};

const struct option_def request_library_options[] = {
    OPTION(TEXT, "library", "FILE", target.library, "the kernel library to test", .key = "library",
           .is_path = true,
           .fallback = "with one of the gate's own suites, the one that comes with it"),
    {0},
};

const struct option_def request_worker_options[] = {
    OPTION(TEXT, "worker", "PROGRAM", target.worker, "another worker (see gate/worker/PROTOCOL.md)",
           .fallback = "the gate's own"),
    {0},
};

const struct option_def request_provider_options[] = {
    OPTION(LIST, "provider", "FILE", providers, "a library to compare with, repeatable",
           .key = "providers", .is_path = true,
           .fallback =
               "on a GPU cuBLAS (its default algorithm, its fastest one, layer by layer) and "
               "cuDNN"),
    {0},
};

static bool read_commit(void *field, const char *text)
{
    *(const char **)field = text;
    return hex_is(text, 40);
}

static bool read_change(void *field, const char *text)
{
    *(const char **)field = text;
    return text[0] && strspn(text, "0123456789") == strlen(text);
}

const struct option_def request_origin_options[] = {
    OPTION(READ, "commit", "HASH", origin.commit, "the measured commit", .form = "40 hex digits",
           .read = read_commit,
           .fallback = "from the CI job's variables, else git; also for the next four"),
    OPTION(TEXT, "branch", "NAME", origin.branch, "its branch"),
    OPTION(TEXT, "base", "NAME", origin.base, "the target branch of a merge request"),
    OPTION(READ, "change", "NUMBER", origin.change, "the pull or merge request",
           .form = "a number such as 17", .read = read_change),
    OPTION(TEXT, "job", "URL", origin.job, "the CI job"),
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
