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
#include "gate/base/process.h"
#include "gate/base/json.h"
#include "gate/base/term.h"
#include "gate/cli/config.h"

enum gate_status run_setup_suite(const struct run_request *r, const char *device,
                                 struct run_setup *out, struct gate_error *err)
{
    char path[PATHS_MAX];
    const char *name = r->suite ? r->suite : strcmp(device, "host") != 0 ? "canonical" : "host";
    enum gate_status status = paths_suite(name, path, err);
    if (!status)
        status = suite_load(path, &out->suite, err);
    if (!status)
        status = suite_load(path, &out->whole, err);
    out->own_suite = !strcmp(path, name);
    if (!status && r->filter && !suite_filter(&out->suite, r->filter))
        status = gate_fail(err, GATE_USAGE, "no case of suite '%s' matches '%s'", name, r->filter);
    return status;
}

/* ---- the device ---- */

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
    enum gate_status status;
    for (;;) {
        status = supervisor_start(&s->target.options, &s->supervisor, err);
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
    enum gate_status status = start_worker(s, deadline, &said, err);
    if (status)
        return status;
    const struct document_device *device = &supervisor_greeting(s->supervisor)->device;
    snprintf(name, sizeof name, "%s", device->uuid[0] ? device->uuid : device->model);
    progress_show("");
    status = device_lock_take(name, &s->lock, err);
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

/* A job that looks at a part of the suite would be green for the others too. */
static enum gate_status check_whole(const struct run_request *r, const struct run_setup *s,
                                    struct gate_error *err)
{
    size_t n = s->whole.n_cases - s->suite.n_cases;
    if (!n || !r->whole || r->partial || !is_in_ci())
        return GATE_OK;
    return gate_fail(err, GATE_NO_VERDICT,
                     "--filter '%s' leaves out %zu of the suite's %zu cases, and in CI (CI is set) "
                     "a run must be whole: add --partial if this job shall not look at them",
                     r->filter, n, s->whole.n_cases);
}

/* ---- the library ---- */

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
    struct target_choice choice = r->target;
    choice.providers = r->providers.text;
    choice.n_providers = r->providers.n;
    choice.without_vendors |= r->providers.none;
    enum gate_status status = target_resolve(&choice, &out->target, err);
    if (!status)
        status = run_setup_suite(r, out->target.device, out, err);
    if (!status)
        status = check_whole(r, out, err);
    out->shard = r->shard;
    if (!status && out->shard.count)
        status = shard_select(&out->shard, &out->suite, err);
    if (status)
        return status;
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
