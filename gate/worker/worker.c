/*
 * worker.c: the process that touches the device.
 *
 * `gate worker` is started by the supervisor and speaks the protocol of gate/worker/PROTOCOL.md on
 * its standard input and output. Kernels run in this process, so nothing that it says is trusted.
 */
#include "worker.h"

#include <dlfcn.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "device/cuda_users.h"
#include "verify/early.h"
#include "measure.h"
#include "record.h"
#include "protocol.h"
#include "verify/verify.h"
#include "verify/verify_timed.h"

#define LIBRARIES_MAX 16
#define CONTROL_RUNS 12         /* the first ones warm up */
#define SINGLE_BUDGET_SHARE 0.2 /* of the budget for samples */

struct worker {
    FILE *out; /* the protocol; standard output itself belongs to whatever kernels print */
    struct device *device;
    struct library libraries[LIBRARIES_MAX]; /* the candidate first */
    enum arm_role roles[LIBRARIES_MAX];
    unsigned n_libraries;
    double control_ns;
    cJSON *absent;
};

static void say(struct worker *w, cJSON *record)
{
    struct buf line;
    buf_init(&line, PROTOCOL_LINE_MAX);
    json_write(record, false, &line);
    if (!line.failed) {
        fwrite(line.data, 1, line.len, w->out);
        fflush(w->out);
    }
    buf_release(&line);
    cJSON_Delete(record);
}

static void say_phase(struct worker *w, const char *phase, const char *provider)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "phase", phase);
    cJSON_AddStringToObject(o, "provider", provider);
    say(w, o);
}

static void notice_arm(void *context, const struct arm *arm)
{
    say_phase(context, "verify", arm_label(arm));
}

/* Kernel libraries may print: what they write to standard output goes to standard error, and the
 * protocol keeps a descriptor that they do not know. */
static FILE *take_standard_output(void)
{
    int fd = dup(STDOUT_FILENO);
    if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return NULL;
    return fdopen(fd, "w");
}

static const char *refusal_name(enum gate_status status)
{
    switch (status) {
    case GATE_ENVIRONMENT:
        return "environment";
    case GATE_USAGE:
        return "usage";
    default:
        return "wrong";
    }
}

static int refuse(struct worker *w, const struct gate_error *err)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "refuse", refusal_name(err->status));
    cJSON_AddStringToObject(o, "message", err->message);
    say(w, o);
    return err->status;
}

static void add_absent(struct worker *w, const char *provider, const char *reason)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "provider", provider);
    cJSON_AddStringToObject(o, "reason", reason);
    cJSON_AddItemToArray(w->absent, o);
}

/* Before there is any library to blame. Later on it is taken for the deed of one: session.c. */
static enum gate_status check_clock(struct gate_error *err)
{
    return clock_is_true() ? GATE_OK
                           : gate_fail(err, GATE_ENVIRONMENT,
                                       "the clock of the process is not the system's: look for a "
                                       "preloaded library, or for a filter of system calls that "
                                       "forbids clock_gettime");
}

static enum gate_status open_candidate(struct worker *w, const char *path, struct gate_error *err)
{
    const struct kg_device *where = &device_info(w->device)->kg;
    struct library *lib = &w->libraries[0];
    struct early before;
    enum gate_status status = early_read(w->device, &before, err);
    if (!status)
        status = library_open(path, where->kind, false, lib, err);
    if (status)
        return status;
    w->roles[0] = ARM_CANDIDATE;
    w->n_libraries = 1;
    enum kg_status started = library_start(lib, where);
    if (started != KG_OK)
        return gate_fail(err, GATE_WRONG, "open() of kernel library '%s' returned '%s'", path,
                         library_status_name(started));
    return early_compare(w->device, &before, "while the kernel library was opened", err);
}

/* Copies, since the best may be the very file of the candidate and still is another library. */
static enum gate_status open_best(struct worker *w, const char *path, struct gate_error *err)
{
    const struct kg_device *where = &device_info(w->device)->kg;
    struct library *lib = &w->libraries[w->n_libraries];
    if (library_open(path, where->kind, true, lib, err))
        return gate_fail(err, GATE_ENVIRONMENT,
                         "the library to compare with cannot be run here: %.900s", err->message);
    w->roles[w->n_libraries++] = ARM_BEST;
    enum kg_status started = library_start(lib, where);
    if (started != KG_OK)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "open() of the library to compare with, '%s', returned '%s'", path,
                         library_status_name(started));
    return GATE_OK;
}

/* Providers and the candidate are told apart by their names. */
static enum gate_status check_name(const struct worker *w, const struct library *lib,
                                   struct gate_error *err)
{
    for (unsigned i = 0; i < w->n_libraries; i++)
        if (w->roles[i] != ARM_BEST &&
            !strcmp(w->libraries[i].table->provider, lib->table->provider))
            return gate_fail(err, GATE_USAGE, "libraries '%s' and '%s' are both of provider '%s'",
                             w->libraries[i].file, lib->file, lib->table->provider);
    return GATE_OK;
}

/* A provider that is not on this machine is absent, which is said; it does not fail the run. */
static enum gate_status open_provider(struct worker *w, const char *path, struct gate_error *fatal)
{
    const struct kg_device *where = &device_info(w->device)->kg;
    struct library *lib = &w->libraries[w->n_libraries];
    struct gate_error err = {0};
    if (library_open(path, where->kind, false, lib, &err)) {
        const char *slash = strrchr(path, '/');
        char name[64];
        snprintf(name, sizeof name, "%.60s", slash ? slash + 1 : path);
        name[strcspn(name, ".")] = '\0';
        add_absent(w, name, err.message);
        return GATE_OK;
    }
    enum gate_status status = check_name(w, lib, fatal);
    if (status) {
        dlclose(lib->handle);
        return status;
    }
    enum kg_status started = library_start(lib, where);
    if (started != KG_OK) {
        char reason[160];
        snprintf(reason, sizeof reason, "open() returned '%s': its own libraries are not here",
                 library_status_name(started));
        add_absent(w, lib->table->provider, reason);
        library_close(lib);
        return GATE_OK;
    }
    w->roles[w->n_libraries++] = ARM_PROVIDER;
    return GATE_OK;
}

/* The least of some runs, on a device that is warm by then. */
static enum gate_status run_control(struct worker *w, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (int i = 0; i < CONTROL_RUNS && !status; i++) {
        struct device_time t = {0};
        status = device_control_run(w->device, &t, err);
        if (!status && !clock_can_be(t.device_ns))
            status =
                gate_fail(err, GATE_ENVIRONMENT, SESSION_CLOCK_BROKEN, "the control", t.device_ns);
        if (!status && (w->control_ns <= 0 || t.device_ns < w->control_ns))
            w->control_ns = t.device_ns;
    }
    return status;
}

static void say_hello(struct worker *w)
{
    cJSON *o = cJSON_CreateObject();
    const struct device_info *info = device_info(w->device);
    cJSON_AddStringToObject(o, "hello", "gate-worker/1");
    cJSON_AddItemToObject(o, "device", record_device(info));
    cJSON_AddStringToObject(o, "contract", measure_contract(w->device));
    cJSON_AddNumberToObject(o, "control_ns", w->control_ns);
    if (info->kg.kind == KG_DEVICE_CUDA)
        cJSON_AddBoolToObject(o, "users_checked", cuda_users_checked(info->uuid));
    cJSON *libraries = cJSON_AddArrayToObject(o, "libraries");
    for (unsigned i = 0; i < w->n_libraries; i++)
        cJSON_AddItemToArray(libraries, record_library(&w->libraries[i], w->roles[i]));
    cJSON_AddItemToObject(o, "absent", w->absent);
    w->absent = NULL;
    say(w, o);
}

struct task {
    struct suite_case c;
    uint64_t seed;
    double budget_ns;
    bool verify, providers, swap, singles;
    enum verify_tier tier;
    bool measure;      /* false: the task ends when everything is verified */
    const char *best;  /* SHA-256 of the library of the best; "": none */
    const char *nonce; /* of the task; the answer repeats it */
    const cJSON *skip;
    double shares[PROTOCOL_SHARES_MAX]; /* calibration: of the time, to be added */
    unsigned n_shares;
    double d[PROTOCOL_SHARES_MAX];
    struct fingerprints fingerprints; /* of the candidate, when another process verified it */
    struct arm arms[ARMS_MAX];
    unsigned n_arms;
    struct early before;                    /* anything was asked of a library */
    struct device_memory memory, workspace; /* of the verification */
    struct operands operands;
    struct reference reference;
};

static bool is_skipped(const struct task *t, const char *label)
{
    const cJSON *name;
    cJSON_ArrayForEach (name, t->skip)
        if (cJSON_IsString(name) && !strcmp(name->valuestring, label))
            return true;
    return false;
}

static bool takes_part(const struct worker *w, const struct task *t, unsigned i)
{
    const struct library *lib = &w->libraries[i];
    if (w->roles[i] == ARM_BEST)
        return !strcmp(lib->sha256, t->best) && !is_skipped(t, "best");
    return w->roles[i] == ARM_CANDIDATE || (t->providers && !is_skipped(t, lib->table->provider));
}

/* The candidate's kernel, the best's, and those of the providers that serve the problem. */
static void choose_arms(struct worker *w, struct task *t)
{
    const struct kg_device *where = &device_info(w->device)->kg;
    for (unsigned i = 0; i < w->n_libraries && t->n_arms < ARMS_MAX; i++) {
        const struct library *lib = &w->libraries[i];
        const struct kg_kernel *k =
            takes_part(w, t, i) ? library_choose(lib, &t->c.problem, where, NULL) : NULL;
        if (!k && w->roles[i] == ARM_CANDIDATE)
            return;
        if (k)
            t->arms[t->n_arms++] = (struct arm){.library = lib,
                                                .kernel = k,
                                                .role = w->roles[i],
                                                .verification = verification_start(&t->c.problem)};
    }
}

/* Puts the arms that are right in front, the candidate staying first; returns their number. */
static unsigned keep_right_arms(struct task *t)
{
    unsigned right = 0;
    for (unsigned i = 0; i < t->n_arms; i++) {
        if (!t->arms[i].verification.ok)
            continue;
        struct arm arm = t->arms[i];
        t->arms[i] = t->arms[right];
        t->arms[right++] = arm;
    }
    return right;
}

static enum gate_status prepare_arm(struct worker *w, struct task *t, unsigned i,
                                    struct gate_error *err)
{
    struct verification *v = &t->arms[i].verification;
    say_phase(w, "prepare", arm_label(&t->arms[i]));
    enum gate_status status = arm_prepare(w->device, &t->c.problem, &t->arms[i], err);
    if (!status && i == 0)
        status = early_compare(w->device, &t->before, "before its first launch", err);
    if (status == GATE_WRONG) {
        v->ok = false;
        snprintf(v->message, sizeof v->message, "%.500s", err->message);
    }
    return status;
}

/*
 * Code is loaded in the order of its first use, and where it lies can make 0.3 % of a short kernel:
 * with the roles swapped the best is prepared first. What that did to the process is not put down
 * to the candidate; the process that verifies is never swapped.
 */
static enum gate_status prepare_arms(struct worker *w, struct task *t, struct gate_error *err)
{
    bool best_first = t->swap && t->n_arms > 1 && t->arms[1].role == ARM_BEST;
    enum gate_status status = best_first ? prepare_arm(w, t, 1, err) : GATE_OK;
    if (best_first && !status)
        status = early_read(w->device, &t->before, err);
    for (unsigned i = 0; i < t->n_arms && !status; i++)
        if (i != 1 || !best_first)
            status = prepare_arm(w, t, i, err);
    return status;
}

static enum gate_status alloc_for_verification(struct worker *w, struct task *t,
                                               struct gate_error *err)
{
    const struct kg_problem *p = &t->c.problem;
    uint64_t workspace = 0;
    for (unsigned i = 0; i < t->n_arms; i++)
        if (t->arms[i].workspace_bytes > workspace)
            workspace = t->arms[i].workspace_bytes;
    enum gate_status status = device_alloc(w->device, operands_bytes_in_zones(p), &t->memory, err);
    if (!status && workspace)
        status = device_alloc(w->device, (size_t)workspace, &t->workspace, err);
    if (status)
        return status;
    t->operands = operands_in_zones(w->device, p, t->memory.data);
    return reference_alloc(w->device, &t->operands, &t->reference, err);
}

static enum gate_status verify_task(struct worker *w, struct task *t, struct gate_error *err)
{
    enum gate_status status = prepare_arms(w, t, err);
    if (!t->verify)
        t->arms[0].verification.fingerprints = t->fingerprints;
    if (status || !t->verify)
        return status;
    status = alloc_for_verification(w, t, err);
    if (!status)
        status = verify_arms(&(struct verify_job){.device = w->device,
                                                  .c = &t->c,
                                                  .seed = t->seed,
                                                  .tier = t->tier,
                                                  .operands = &t->operands,
                                                  .workspace = t->workspace,
                                                  .reference = &t->reference,
                                                  .arms = t->arms,
                                                  .n_arms = t->n_arms,
                                                  .notice = notice_arm,
                                                  .context = w},
                             err);
    device_free(w->device, &t->memory);
    device_free(w->device, &t->workspace);
    return status;
}

static enum gate_status calibrate_task(struct worker *w, struct task *t,
                                       const struct measure_policy *policy, struct gate_error *err)
{
    if (keep_right_arms(t) < 2 || t->arms[1].role != ARM_BEST)
        return gate_fail(err, GATE_ENVIRONMENT, "calibration needs a second copy of the library");
    return measure_injected(w->device, &t->c, t->seed, policy, t->arms, t->shares, t->n_shares,
                            t->d, err);
}

static enum gate_status measure_task(struct worker *w, struct task *t, struct gate_error *err)
{
    struct measure_policy policy = {.budget_ns = t->budget_ns,
                                    .single_budget_ns =
                                        t->verify ? SINGLE_BUDGET_SHARE * t->budget_ns : 0,
                                    .all_singles = t->singles,
                                    .swap = t->swap,
                                    .sensors = t->verify};
    struct timed_look look = {w->device, &t->c, &t->reference, 0}; /* verify_arms() ends with 0 */
    say_phase(w, "measure", "");
    if (t->n_shares)
        return calibrate_task(w, t, &policy, err);
    return measure_arms(w->device, &t->c, t->seed, &policy, t->arms, keep_right_arms(t), timed_look,
                        &look, err);
}

/* Whom a GATE_WRONG of the device is put down to: the first arm with a message; the candidate when
 * there is none. */
static const struct arm *guilty_arm(const struct task *t)
{
    for (unsigned i = 0; i < t->n_arms; i++)
        if (!t->arms[i].verification.ok && t->arms[i].verification.message[0])
            return &t->arms[i];
    return &t->arms[0];
}

struct outcome {
    const char *name;
    char message[900];
    bool spoiled;
};

static struct outcome run_task(struct worker *w, struct task *t)
{
    struct outcome o = {.name = "measured"};
    struct gate_error err = {0};
    enum gate_status status = early_read(w->device, &t->before, &err);
    choose_arms(w, t);
    if (!t->n_arms) {
        o.name = "unsupported";
        snprintf(o.message, sizeof o.message, "'%s' offers no kernel for this problem",
                 w->libraries[0].table->provider);
        return o;
    }
    if (!status)
        status = verify_task(w, t, &err);
    if (!status && !t->arms[0].verification.ok) {
        o.name = "wrong";
        o.spoiled = true; /* who knows what else it did to the process */
        snprintf(o.message, sizeof o.message, "%s", t->arms[0].verification.message);
        return o;
    }
    if (!status && !t->measure) {
        o.name = "verified";
        return o;
    }
    if (!status)
        status = measure_task(w, t, &err);
    if (!status)
        return o;
    o.spoiled = true;
    if (status == GATE_WRONG) {
        const struct arm *arm = guilty_arm(t);
        /* A calibration has but one library, twice. */
        bool candidate = arm->role == ARM_CANDIDATE || t->n_shares;
        o.name = candidate ? "wrong" : "provider";
        snprintf(o.message, sizeof o.message, "%s%s%.500s", candidate ? "" : arm_label(arm),
                 candidate ? "" : ": ", err.message);
    } else {
        o.name = "environment";
        snprintf(o.message, sizeof o.message, "%.690s", err.message);
    }
    return o;
}

static void say_done(struct worker *w, const struct task *t, const struct outcome *outcome)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "done", t->c.id);
    cJSON_AddStringToObject(o, "nonce", t->nonce);
    cJSON_AddStringToObject(o, "outcome", outcome->name);
    cJSON_AddStringToObject(o, "message", outcome->message);
    cJSON_AddBoolToObject(o, "spoiled", outcome->spoiled);
    if (t->n_shares && !strcmp(outcome->name, "measured"))
        cJSON_AddItemToObject(o, "d", cJSON_CreateDoubleArray(t->d, (int)t->n_shares));
    cJSON *fingerprints =
        t->n_arms ? fingerprints_write(&t->arms[0].verification.fingerprints) : NULL;
    if (fingerprints)
        cJSON_AddItemToObject(o, "fingerprints", fingerprints);
    cJSON *arms = cJSON_AddArrayToObject(o, "arms");
    for (unsigned i = 0; i < t->n_arms; i++)
        cJSON_AddItemToArray(arms, record_arm(&t->arms[i], &t->c.problem, device_info(w->device)));
    say(w, o);
}

static void release_task(struct worker *w, struct task *t)
{
    for (unsigned i = 0; i < t->n_arms; i++)
        arm_release(&t->arms[i]);
    reference_free(w->device, &t->reference);
}

static void read_shares(const cJSON *line, struct task *t)
{
    const cJSON *share;
    cJSON_ArrayForEach (share, cJSON_GetObjectItemCaseSensitive(line, "shares"))
        if (cJSON_IsNumber(share) && t->n_shares < PROTOCOL_SHARES_MAX)
            t->shares[t->n_shares++] = share->valuedouble;
}

static enum gate_status read_task(const cJSON *line, struct task *t, struct gate_error *err)
{
    char pointer[256];
    *t = (struct task){
        .budget_ns = json_number(line, "budget_ms", 150) * 1e6,
        .verify = json_bool(line, "verify", true),
        .providers = json_bool(line, "providers", true),
        .swap = json_bool(line, "swap", false),
        .singles = json_bool(line, "singles", false),
        .measure = json_bool(line, "measure", true),
        .best = json_string(line, "best", ""),
        .nonce = json_string(line, "nonce", ""),
        .skip = cJSON_GetObjectItemCaseSensitive(line, "skip"),
        .fingerprints = fingerprints_read(cJSON_GetObjectItemCaseSensitive(line, "fingerprints"))};
    read_shares(line, t);
    if (!verify_tier_parse(json_string(line, "tier", "commit"), &t->tier))
        return gate_fail(err, GATE_USAGE, "the task's tier is none that this worker knows");
    const char *seed = json_string(line, "seed", "");
    if (strcmp(json_string(line, "task", ""), "case") != 0 ||
        sscanf(seed, "%" SCNx64, &t->seed) != 1)
        return gate_fail(err, GATE_USAGE, "the task is none that this worker knows");
    return suite_case_read(cJSON_GetObjectItemCaseSensitive(line, "case"), &t->c, pointer,
                           sizeof pointer, err);
}

/* Reads tasks until standard input ends. */
static enum gate_status serve(struct worker *w, struct gate_error *err)
{
    char *line = NULL;
    size_t cap = 0;
    enum gate_status status = GATE_OK;
    for (ssize_t n; !status && (n = getline(&line, &cap, stdin)) > 0;) {
        cJSON *object = NULL;
        struct task t;
        status = json_parse("task", line, (size_t)n, GATE_USAGE, &object, err);
        if (!status)
            status = read_task(object, &t, err);
        if (!status) {
            struct outcome outcome = run_task(w, &t);
            say_done(w, &t, &outcome);
            release_task(w, &t);
        }
        cJSON_Delete(object);
    }
    free(line);
    return status;
}

struct worker_options {
    const char *device;
    const char *library;
    const char *bests[PROTOCOL_BESTS_MAX];
    unsigned n_bests;
    const char *providers[ARMS_MAX];
    unsigned n_providers;
};

static enum gate_status parse_options(int argc, char **argv, struct worker_options *o,
                                      struct gate_error *err)
{
    static const struct option options[] = {{"device", required_argument, NULL, 'd'},
                                            {"library", required_argument, NULL, 'l'},
                                            {"best", required_argument, NULL, 'b'},
                                            {"provider", required_argument, NULL, 'p'},
                                            {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'd')
            o->device = optarg;
        else if (c == 'l')
            o->library = optarg;
        else if (c == 'b' && o->n_bests < PROTOCOL_BESTS_MAX)
            o->bests[o->n_bests++] = optarg;
        else if (c == 'p' && o->n_providers < ARMS_MAX - 1)
            o->providers[o->n_providers++] = optarg;
        else
            return gate_fail(err, GATE_USAGE, "worker: bad options");
    }
    if (!o->device || !o->library)
        return gate_fail(err, GATE_USAGE, "worker: --device and --library are needed");
    return GATE_OK;
}

int cmd_worker(int argc, char **argv)
{
    struct worker w = {.absent = cJSON_CreateArray()};
    struct worker_options o = {0};
    struct gate_error err = {0};
    enum gate_status status = parse_options(argc, argv, &o, &err);
    w.out = take_standard_output();
    if (!w.out)
        return GATE_IO;
    if (!status)
        status = check_clock(&err);
    if (!status)
        status = device_open(o.device, &w.device, &err);
    if (!status)
        status = open_candidate(&w, o.library, &err);
    for (unsigned i = 0; i < o.n_bests && !status; i++)
        status = open_best(&w, o.bests[i], &err);
    for (unsigned i = 0; i < o.n_providers && !status; i++)
        status = open_provider(&w, o.providers[i], &err);
    if (!status)
        status = run_control(&w, &err);
    if (status) {
        refuse(&w, &err);
    } else {
        say_hello(&w);
        status = serve(&w, &err);
        if (status)
            fprintf(stderr, "gate worker: %s\n", err.message);
    }
    cJSON_Delete(w.absent);
    for (unsigned i = 0; i < w.n_libraries; i++)
        library_close(&w.libraries[i]);
    device_close(w.device);
    fclose(w.out);
    return status;
}
