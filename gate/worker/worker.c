/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.c: the process that touches the device.
 *
 * `gate worker` is started by the supervisor and speaks the protocol of gate/worker/PROTOCOL.md on
 * its standard input and output. Kernels run in this process, so nothing that it says is trusted.
 */
#include "gate/worker/worker.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/clock.h"
#include "gate/base/utf8.h"
#include "gate/device/nvml.h"
#include "gate/verify/verify_reference.h"

/* The first ones warm up: a GPU's clock takes its time. */
#define CONTROL_RUNS 12
#define CONTROL_RUNS_ON_HOST 4

static void refuse(struct worker *w, const struct gate_error *err)
{
    int refuse = err->busy ? REFUSAL_BUSY : REFUSAL_ENVIRONMENT;
    while (refuse < REFUSAL_WRONG && message_refusal_status[refuse] != err->status)
        refuse++;
    send_message(w->out, &message_refusal_shape,
                 &(struct message_refusal){.refuse = refuse, .message = err->message});
}

static void add_absent(struct worker *w, const char *provider, const char *reason)
{
    struct absent_provider *to = &w->absent[w->n_absent++];
    snprintf(to->name, sizeof to->name, "%.63s", provider);
    utf8_print(to->reason, sizeof to->reason, "%.399s", reason);
}

/* The second copy of a library that is open: a baseline is timed against two of each, session.h.
 * One that cannot be there twice is not wrong for that. */
static enum gate_status open_second_copy(struct worker *w, unsigned i, const char *path,
                                         struct gate_error *err)
{
    const struct kg_device *where = &device_info(w->device)->kg;
    struct library *second_copy = &w->second_copies[i];
    if (library_open(path, where->kind, true, second_copy, err))
        return gate_fail(err, GATE_ENVIRONMENT,
                         "it is loaded twice to be compared, and the copy cannot be: %.900s",
                         err->message);
    if (strcmp(second_copy->sha256, w->libraries[i].sha256) != 0)
        return gate_fail(err, GATE_ENVIRONMENT, "'%s' changed while it was opened", path);
    struct gate_error started = {0};
    return library_start(second_copy, where, &started)
               ? gate_fail(err, GATE_ENVIRONMENT,
                           "it is loaded twice to be compared, and the copy in memory, which has "
                           "no folder, does not open: %.800s",
                           started.message)
               : GATE_OK;
}

/* Copies, since the baseline may be the very file of the candidate and still is another library. */
static enum gate_status open_baseline(struct worker *w, const char *path, struct gate_error *err)
{
    const struct kg_device *where = &device_info(w->device)->kg;
    struct library *lib = &w->libraries[w->n_libraries];
    if (library_open(path, where->kind, true, lib, err))
        return gate_fail(err, GATE_ENVIRONMENT,
                         "the library to compare with cannot be run here: %.900s", err->message);
    w->roles[w->n_libraries++] = ROLE_BASELINE;
    enum gate_status status = library_start(lib, where, err);
    if (!status)
        status = open_second_copy(w, w->n_libraries - 1, path, err);
    return status ? gate_fail(err, GATE_ENVIRONMENT, "the library to compare with: %.900s",
                              err->message)
                  : GATE_OK;
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
        utf8_print(name, sizeof name, "%.60s", slash ? slash + 1 : path);
        name[strcspn(name, ".")] = '\0';
        add_absent(w, name, err.message);
        return GATE_OK;
    }
    for (unsigned i = 0; i < w->n_libraries; i++) { /* they are told apart by their names */
        const struct library *other = &w->libraries[i];
        if (w->roles[i] == ROLE_BASELINE ||
            strcmp(other->table->provider, lib->table->provider) != 0)
            continue;
        gate_fail(fatal, GATE_USAGE, "libraries '%s' and '%s' are both of provider '%s'",
                  other->file, lib->file, lib->table->provider);
        library_close(lib);
        return GATE_USAGE;
    }
    if (library_start(lib, where, &err)) {
        add_absent(w, lib->table->provider, err.message);
        library_close(lib);
        return GATE_OK;
    }
    w->roles[w->n_libraries++] = ROLE_PROVIDER;
    return GATE_OK;
}

static void send_greeting(struct worker *w)
{
    const struct device_info *info = device_info(w->device);
    const bool on_gpu = info->kg.kind == KG_DEVICE_CUDA;
    const struct document_device device = {
        .kind = on_gpu ? DEVICE_CUDA : DEVICE_HOST,
        .model = info->model,
        .name = info->name,
        .uuid = info->uuid,
        .sm_count = info->kg.sm_count,
        .l2_bytes = (int64_t)info->kg.l2_bytes,
        .memory_bytes = (int64_t)info->memory_bytes,
        .capability = info->capability,
        .driver = info->driver,
        .runtime = info->runtime,
        .power_limit_mw = (int64_t)info->power_limit_mw,
        .sm_clock_max_mhz = (int64_t)info->sm_clock_max_mhz,
    };
    struct document_library libraries[LIBRARIES_MAX];
    struct document_absent absent[LIBRARIES_MAX];
    struct message_greeting greeting = {.hello = MESSAGE_HELLO,
                                        .device = device,
                                        .contract = measure_contract(w->device),
                                        .control_ns = w->control_ns > 0 ? w->control_ns : NAN,
                                        .libraries = libraries,
                                        .n_libraries = w->n_libraries,
                                        .absent = absent,
                                        .n_absent = w->n_absent};
    if (on_gpu) {
        greeting.users_checked = info->users_checked ? YES : NO;
        greeting.launch_order_checked = info->launch_order_checked ? YES : NO;
    }
    for (unsigned i = 0; i < w->n_libraries; i++)
        libraries[i] = (struct document_library){.role = (int)w->roles[i],
                                                 .provider = w->libraries[i].table->provider,
                                                 .version = w->libraries[i].table->version,
                                                 .file = w->libraries[i].file,
                                                 .sha256 = w->libraries[i].sha256};
    for (unsigned i = 0; i < w->n_absent; i++)
        absent[i] = (struct document_absent){w->absent[i].name, w->absent[i].reason};
    send_message(w->out, &message_greeting_shape, &greeting);
}

/* Reads tasks until standard input ends. */
static enum gate_status serve(struct worker *w, struct gate_error *err)
{
    char *line = NULL;
    size_t cap = 0;
    enum gate_status status = GATE_OK;
    for (ssize_t n; !status && (n = getline(&line, &cap, stdin)) > 0;) {
        struct fields_taken taken;
        struct message_task message;
        struct task t;
        status = fields_parse(&message_task_shape, "task", 1, line, (size_t)n, GATE_USAGE, &message,
                              &taken, err);
        if (status)
            break;
        status = task_read(&message, &t, err);
        if (!status)
            task_run(w, &t);
        fields_release(&message_task_shape, &message);
        free(taken.texts);
    }
    free(line);
    return status;
}

struct worker_options {
    const char *device;
    const char *library;
    bool ceilings;                /* are all that is asked for */
    bool untimed;                 /* nothing will be timed: no control */
    const char *ops[OPS_OWN_MAX]; /* files */
    unsigned n_ops;
    const char *baselines[PROTOCOL_BASELINES_MAX];
    unsigned n_baselines;
    const char *providers[ARMS_MAX];
    unsigned n_providers;
};

static enum gate_status parse_options(int argc, char **argv, struct worker_options *o,
                                      struct gate_error *err)
{
    static const struct option options[] = {
        {"device", required_argument, NULL, 'd'},   {"library", required_argument, NULL, 'l'},
        {"baseline", required_argument, NULL, 'b'}, {"provider", required_argument, NULL, 'p'},
        {"ceilings", no_argument, NULL, 'c'},       {"untimed", no_argument, NULL, 'u'},
        {"op", required_argument, NULL, 'o'},       {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'd')
            o->device = optarg;
        else if (c == 'l')
            o->library = optarg;
        else if (c == 'b' && o->n_baselines < PROTOCOL_BASELINES_MAX)
            o->baselines[o->n_baselines++] = optarg;
        else if (c == 'p' && o->n_providers < ARMS_MAX - 1)
            o->providers[o->n_providers++] = optarg;
        else if (c == 'o' && o->n_ops < OPS_OWN_MAX)
            o->ops[o->n_ops++] = optarg;
        else if (c == 'c')
            o->ceilings = true;
        else if (c == 'u')
            o->untimed = true;
        else
            return gate_fail(err, GATE_USAGE, "worker: bad options");
    }
    if (!o->device || !(o->library || o->ceilings))
        return gate_fail(err, GATE_USAGE, "worker: --device and --library are needed");
    return GATE_OK;
}

static void notice_slow(void *context, const struct own_op *own, bool done)
{
    const struct worker *w = context;
    send_phase_aside(w->out, done ? NULL : own->op.name);
}

/* Opens all that is asked for, and answers. The clock is looked at before there is any library to
 * blame for it (later on it is taken for the deed of one: session.c), and references are started
 * before there is a device, which the process that is forked for one does not share. */
static enum gate_status start(struct worker *w, const struct worker_options *o,
                              struct gate_error *err)
{
    if (!clock_is_true())
        return gate_fail(err, GATE_ENVIRONMENT,
                         "the clock of the process is not the system's: look for a preloaded "
                         "library, or for a filter of system calls that forbids clock_gettime");
    for (unsigned i = 0; i < o->n_ops; i++)
        TRY(own_op_use(o->ops[i], err));
    for (size_t i = 0; own_op_at(i); i++)
        TRY(own_reference_start(own_op_at(i), notice_slow, w, err));
    TRY(device_open(o->device, &w->device, err));
    if (o->ceilings) { /* no kernel library is loaded, so that only the gate's own kernels run */
        struct message_ceilings message = {.ceilings = {.message = NULL}};
        TRY(ceilings_measure(w->device, &message.ceilings, err));
        send_message(w->out, &message_ceilings_shape, &message);
        return GATE_OK;
    }
    const struct kg_device *where = &device_info(w->device)->kg;
    struct surroundings before;
    TRY(surroundings_read(w->device, &before, err));
    TRY(library_open(o->library, where->kind, false, &w->libraries[0], err));
    w->roles[0] = ROLE_CANDIDATE;
    w->n_libraries = 1;
    TRY(library_start(&w->libraries[0], where, err));
    TRY(o->n_baselines ? open_second_copy(w, 0, o->library, err) : GATE_OK);
    TRY(surroundings_check(w->device, &before, "while the kernel library was opened", err));
    for (unsigned i = 0; i < o->n_baselines; i++)
        TRY(open_baseline(w, o->baselines[i], err));
    for (unsigned i = 0; i < o->n_providers; i++)
        TRY(open_provider(w, o->providers[i], err));
    bool on_host = where->kind == KG_DEVICE_HOST;
    int runs = o->untimed ? 0 : on_host ? CONTROL_RUNS_ON_HOST : CONTROL_RUNS;
    for (; runs > 0; runs--) { /* the least of some, on a device that is warm by then */
        struct device_time t = {0};
        TRY(device_control_run(w->device, &t, err));
        if (!clock_can_be(t.device_ns))
            return gate_fail(err, GATE_ENVIRONMENT, SESSION_CLOCK_BROKEN, "the control",
                             t.device_ns);
        if (w->control_ns <= 0 || t.device_ns < w->control_ns)
            w->control_ns = t.device_ns;
    }
    send_greeting(w);
    return GATE_OK;
}

/* Kernel libraries may print: what they write to standard output goes to standard error, and the
 * protocol keeps a descriptor that they do not know. */
int cmd_worker(int argc, char **argv)
{
    struct worker w = {.n_absent = 0};
    struct worker_options o = {0};
    struct gate_error err = {0};
    enum gate_status status = parse_options(argc, argv, &o, &err);
    int fd = dup(STDOUT_FILENO);
    w.out = fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ? NULL : fdopen(fd, "w");
    if (!w.out)
        return GATE_IO;
    if (!status)
        status = start(&w, &o, &err);
    if (status)
        refuse(&w, &err);
    else if (!o.ceilings && (status = serve(&w, &err)))
        fprintf(stderr, "gate worker: %s\n", err.message);
    for (unsigned i = 0; i < w.n_libraries; i++) {
        library_close(&w.libraries[i]);
        library_close(&w.second_copies[i]);
    }
    device_close(w.device);
    fclose(w.out);
    return status;
}
