/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/supervisor.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/utf8.h"
#include "gate/launch/arm.h"
#include "gate/base/clock.h"
#include "gate/base/json.h"
#include "gate/base/interrupt.h"
#include "gate/base/process.h"
#include "gate/base/paths.h"
#include "gate/cases/op_file.h"
#include "gate/decide/decide.h"
#include "gate/run/starved.h"
#include "gate/verify/verify_state.h"
#include "gate/worker/message.h"

#define GREETING_MIN_S 60.0 /* opening a GPU takes seconds, whatever the time-out for cases */
#define FINISH_GRACE_S 5.0
#define WRAPPED_GRACE_S 100.0 /* a tool that watched a worker may have much to say at its end */
#define TASK_TIMEOUTS 10      /* a task as a whole may take this many times the longest silence */
#define SKIP_MAX 16           /* arms that are left out of a case */

struct supervisor {
    const struct supervisor_options *options;
    struct process process;
    char *hello; /* texts of the first worker's greeting; NULL: none has greeted yet */
    struct message_greeting greeting; /* the same */
    char *hello_before;               /* of a worker that opened the providers, where later ones
                                         do not; NULL: they do */
    struct message_greeting greeting_before;
    double control_ns;
    char *baselines[PROTOCOL_BASELINES_MAX];
    unsigned n_baselines;
    bool without_providers;
    unsigned findings;
    char program[4096];
    bool starved; /* the last silence: it got no processor */
};

const struct message_greeting *supervisor_greeting(const struct supervisor *s)
{
    return &s->greeting;
}

const struct message_greeting *supervisor_providers(const struct supervisor *s)
{
    return s->hello_before ? &s->greeting_before : &s->greeting;
}

void case_result_release(struct case_result *r)
{
    for (size_t i = 0; i < r->n_arms; i++)
        fields_release(&document_arm_shape, &r->arms[i]);
    free(r->arms);
    fields_release(&document_blame_shape, &r->blame);
    free(r->texts);
    r->arms = NULL;
    r->n_arms = 0;
    r->texts = NULL;
}

double supervisor_control_ns(const struct supervisor *s)
{
    return s->control_ns;
}

/* ---- talking to a worker ---- */

static enum gate_status start_process(struct supervisor *s, struct gate_error *err)
{
    const struct supervisor_options *o = s->options;
    char found[PATHS_MAX];
    char *argv[9 + SUPERVISOR_WRAPPER_MAX + 2 * (ARMS_MAX + PROTOCOL_BASELINES_MAX + OPS_OWN_MAX)];
    unsigned n = 0;
    if (o->worker && strchr(o->worker, '/') && access(o->worker, X_OK))
        return gate_fail(err, GATE_IO, "cannot run worker '%s': %s", o->worker, strerror(errno));
    if (o->worker && !strchr(o->worker, '/') && toolkit_find(o->worker, NULL, found, NULL))
        return gate_fail(err, GATE_IO, "cannot run worker '%s': it is not on PATH", o->worker);
    for (; n < o->n_wrapper && n < SUPERVISOR_WRAPPER_MAX; n++)
        argv[n] = (char *)o->wrapper[n];
    argv[n++] = o->worker ? (char *)o->worker : s->program;
    if (!o->worker)
        argv[n++] = (char *)"worker";
    argv[n++] = (char *)"--device";
    argv[n++] = (char *)o->device;
    argv[n++] = (char *)"--library";
    argv[n++] = (char *)o->library;
    for (unsigned i = 0; i < s->n_baselines; i++) {
        argv[n++] = (char *)"--baseline";
        argv[n++] = s->baselines[i];
    }
    for (unsigned i = 0; i < o->n_providers && i < ARMS_MAX - 1 && !s->without_providers; i++) {
        argv[n++] = (char *)"--provider";
        argv[n++] = (char *)o->providers[i];
    }
    if (o->untimed)
        argv[n++] = (char *)"--untimed";
    for (size_t i = 0; own_op_at(i); i++) {
        argv[n++] = (char *)"--op";
        argv[n++] = (char *)own_op_at(i)->path;
    }
    argv[n] = NULL;
    return process_start_scrubbed(&s->process, argv, err);
}

/* Kills the worker and whatever came of it. */
static void kill_worker(struct supervisor *s, char *how, size_t size)
{
    process_kill(&s->process, how, size);
    process_end_orphans();
}

/* What a worker did instead of answering, with the last words it wrote to standard error. */
static void describe_failure(struct supervisor *s, enum process_event event, double timeout_s,
                             char *message, size_t size)
{
    char how[96] = "", what[160];
    kill_worker(s, how, sizeof how);
    if (s->starved)
        snprintf(what, sizeof what,
                 "starved: in %.3g s it got hardly any processor, because other programs use them; "
                 "measure on a quiet machine, or with `chrt -f 1`",
                 timeout_s);
    else if (event == PROCESS_SILENCE)
        snprintf(what, sizeof what, "hung: no sign of life for %.3g s", timeout_s);
    else if (event == PROCESS_FLOOD)
        snprintf(what, sizeof what, "wrote a line of more than %zu MiB", PROTOCOL_LINE_MAX >> 20);
    else if (event == PROCESS_INTERRUPTED)
        snprintf(what, sizeof what, "was killed: the gate is to end");
    else
        snprintf(what, sizeof what, "died: the worker process %s", how);
    const char *last = process_last_words(&s->process);
    snprintf(message, size, *last ? "%s; its last words: \"%s\"" : "%s%s", what, last);
}

enum talk {
    TALK_OK,
    TALK_FAILED, /* the worker is gone; the message says why */
};

/* Reads one line of JSON; a worker that fails to deliver one is killed. */
static enum talk read_record(struct supervisor *s, double timeout_s, struct buf *line,
                             char *message, size_t size)
{
    struct gate_error err = {0};
    buf_clear(line);
    const struct processor_time before = processor_time_of(s->process.pid);
    enum process_event event = process_read_line(&s->process, timeout_s, line);
    s->starved = event == PROCESS_SILENCE &&
                 processor_was_missing(before, processor_time_of(s->process.pid), timeout_s);
    if (event != PROCESS_LINE) {
        describe_failure(s, event, timeout_s, message, size);
        return TALK_FAILED;
    }
    if (json_check("worker", 1, line->data, line->len, GATE_WRONG, &err)) {
        char how[96];
        kill_worker(s, how, sizeof how);
        utf8_print(message, size, "talked nonsense: %.300s", err.message);
        return TALK_FAILED;
    }
    return TALK_OK;
}

static bool has_member(const struct buf *line, const char *pointer)
{
    unsigned row, column;
    return json_locate(line->data, line->len, pointer, true, &row, &column);
}

static void describe_nonsense(const struct field_fault *fault, char *message, size_t size)
{
    snprintf(message, size, "talked nonsense: %s%s%s", fault->pointer,
             fault->pointer[0] ? ": " : "", fault->message);
}

/* ---- starting ---- */

static enum gate_status read_refusal(const struct buf *hello, struct gate_error *err)
{
    struct message_refusal refusal;
    struct field_fault fault;
    struct fields_taken taken;
    if (!fields_pick(&message_refusal_shape, hello->data, hello->len, &refusal, &taken, &fault))
        return gate_fail(err, GATE_WRONG, "the worker talked nonsense: %s: %s", fault.pointer,
                         fault.message);
    enum gate_status status = !strcmp(refusal.refuse, "environment") ? GATE_ENVIRONMENT
                              : !strcmp(refusal.refuse, "usage")     ? GATE_USAGE
                              : !strcmp(refusal.refuse, "io")        ? GATE_IO
                                                                     : GATE_WRONG;
    if (!strcmp(refusal.refuse, "busy"))
        status =
            gate_fail_busy(err, "%s", refusal.message ? refusal.message : "the device is busy");
    else
        gate_fail(err, status, "%s", refusal.message ? refusal.message : "the worker refuses");
    free(taken.texts);
    return status;
}

static enum gate_status read_greeting(const struct supervisor *s, const struct buf *hello,
                                      struct message_greeting *out, struct fields_taken *taken,
                                      struct gate_error *err)
{
    char message[600];
    struct field_fault fault;
    if (has_member(hello, "/refuse"))
        return read_refusal(hello, err);
    if (fields_pick(&message_greeting_shape, hello->data, hello->len, out, taken, &fault))
        return GATE_OK;
    if (!has_member(hello, "/hello") || !strcmp(fault.pointer, "/hello"))
        return gate_fail(err, GATE_WRONG, "worker '%s' speaks another protocol than " MESSAGE_HELLO,
                         s->options->worker ? s->options->worker : s->program);
    describe_nonsense(&fault, message, sizeof message);
    return gate_fail(err, GATE_WRONG, "the worker %s", message);
}

/* The next library of a greeting that judges, candidate or baseline; NULL: there is none. */
static const struct document_library *next_judge(const struct message_greeting *g, size_t *at)
{
    while (*at < g->n_libraries) {
        const struct document_library *lib = &g->libraries[(*at)++];
        if (lib->role != ROLE_PROVIDER)
            return lib;
    }
    return NULL;
}

static bool has_same_judges(const struct message_greeting *a, const struct message_greeting *b)
{
    size_t i = 0, k = 0;
    for (;;) {
        const struct document_library *x = next_judge(a, &i), *y = next_judge(b, &k);
        if (!x || !y)
            return x == y;
        if (!document_same_library(x, y))
            return false;
    }
}

/* A later worker must be of the same device and libraries as the first. */
static enum gate_status check_same(const struct supervisor *s, const struct message_greeting *now,
                                   struct gate_error *err)
{
    const char *changed = !has_same_judges(&s->greeting, now) ? "libraries" : NULL;
    if (strcmp(s->greeting.contract, now->contract) != 0)
        changed = "contract";
    if (!document_same_device(&s->greeting.device, &now->device))
        changed = "device";
    if (!changed)
        return GATE_OK;
    return gate_fail(err, GATE_ENVIRONMENT, "the %s changed while the gate ran; run it again",
                     changed);
}

static void forget_greeting(struct supervisor *s)
{
    fields_release(&message_greeting_shape, &s->greeting);
    free(s->hello);
    s->hello = NULL;
}

static enum gate_status start_worker(struct supervisor *s, struct gate_error *err)
{
    char message[900];
    struct buf hello;
    struct fields_taken taken = {.texts = NULL};
    struct message_greeting greeting = {.contract = NULL};
    double timeout_s =
        s->options->timeout_s > GREETING_MIN_S ? s->options->timeout_s : GREETING_MIN_S;
    enum gate_status status = start_process(s, err);
    if (status)
        return status;
    buf_init(&hello, PROTOCOL_LINE_MAX + 1);
    enum talk talk = read_record(s, timeout_s, &hello, message, sizeof message);
    if (talk == TALK_OK)
        status = read_greeting(s, &hello, &greeting, &taken, err);
    buf_release(&hello);
    if (talk)
        return gate_fail(err, s->starved ? GATE_ENVIRONMENT : GATE_WRONG, "the worker %s", message);
    if (!status && s->hello)
        status = check_same(s, &greeting, err);
    if (!status)
        s->control_ns = isnan(greeting.control_ns) ? 0 : greeting.control_ns;
    if (!status && !s->hello) {
        s->hello = taken.texts;
        s->greeting = greeting;
        return GATE_OK;
    }
    fields_release(&message_greeting_shape, &greeting);
    free(taken.texts);
    if (status)
        supervisor_retire_worker(s);
    return status;
}

enum gate_status supervisor_start(const struct supervisor_options *options, struct supervisor **out,
                                  struct gate_error *err)
{
    signal(SIGPIPE, SIG_IGN); /* a worker that died shows as a failed write */
    process_adopt_orphans();
    struct supervisor *s = xcalloc(1, sizeof *s);
    s->options = options;
    ssize_t n = readlink("/proc/self/exe", s->program, sizeof s->program - 1);
    enum gate_status status = GATE_OK;
    if (n < 0)
        status = gate_fail(err, GATE_INTERNAL, "cannot find this program");
    if (!status)
        status = start_worker(s, err);
    if (status) {
        supervisor_stop(s);
        return status;
    }
    *out = s;
    return GATE_OK;
}

/* What it said of the providers stays. */
static void keep_greeting(struct supervisor *s)
{
    s->hello_before = s->hello;
    s->greeting_before = s->greeting;
    s->hello = NULL;
}

static void forget_baselines(struct supervisor *s)
{
    for (unsigned i = 0; i < s->n_baselines; i++)
        free(s->baselines[i]);
    s->n_baselines = 0;
}

enum gate_status supervisor_open_baselines(struct supervisor *s, const char *const *paths,
                                           unsigned n, struct gate_error *err)
{
    supervisor_retire_worker(s);
    forget_baselines(s);
    if (s->without_providers && !s->hello_before)
        keep_greeting(s);
    else
        forget_greeting(s);
    for (; s->n_baselines < n && s->n_baselines < PROTOCOL_BASELINES_MAX; s->n_baselines++)
        s->baselines[s->n_baselines] = xstrdup(paths[s->n_baselines]);
    return start_worker(s, err);
}

void supervisor_leave_providers(struct supervisor *s)
{
    s->without_providers = true;
}

void supervisor_retire_worker(struct supervisor *s)
{
    const struct supervisor_options *o = s->options;
    double grace_s = o->n_wrapper ? fmin(WRAPPED_GRACE_S, o->timeout_s) : FINISH_GRACE_S;
    int code = process_finish(&s->process, grace_s);
    if (o->wrapper_judges && code != 0)
        s->findings++;
    process_end_orphans();
}

unsigned supervisor_findings(const struct supervisor *s)
{
    return s->findings;
}

void supervisor_stop(struct supervisor *s)
{
    if (!s)
        return;
    supervisor_retire_worker(s);
    forget_baselines(s);
    forget_greeting(s);
    if (s->hello_before)
        fields_release(&message_greeting_shape, &s->greeting_before);
    free(s->hello_before);
    free(s);
}

/* ---- one case ---- */

/* A case in hand: who was at work last, and who must not take part. */
struct attempt {
    const struct case_task *task;
    char phase[16], provider[64], on[300]; /* on: the check of the verification; "": none */
    char nonce[17]; /* fresh for each task: what a kernel writes into the pipe does not know it */
    char skip[SKIP_MAX][64];
    unsigned n_skip;
    char blamed[400]; /* what was seen when a provider was left out last */
};

static bool send_task(struct supervisor *s, struct attempt *a)
{
    uint64_t nonce;
    if (getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        return false;
    snprintf(a->nonce, sizeof a->nonce, "%016" PRIx64, nonce);
    char seed[17];
    const char *skip[SKIP_MAX];
    struct message_fingerprints texts;
    struct buf line;
    const struct case_task *t = a->task;
    snprintf(seed, sizeof seed, "%016" PRIx64, t->seed);
    for (unsigned i = 0; i < a->n_skip; i++)
        skip[i] = a->skip[i];
    struct message_task task = {
        .task = (int)t->kind,
        .file = *t->c->file,
        .seed = seed,
        .nonce = a->nonce,
        .skip = skip,
        .n_skip = a->n_skip,
        .budget_ms = t->budget_ms,
        .input_sets = t->input_sets > 0 ? t->input_sets : -1,
        .baseline = t->baseline ? t->baseline : "",
        .tier = verify_tier_name(t->tier),
        .verify = t->verify ? YES : NO,
        .first = t->first ? YES : NO,
        .providers = t->providers ? YES : NO,
        .swap = t->swap ? YES : NO,
        .n_fingerprints = message_put_fingerprints(&t->fingerprints, &texts),
        .shares = (double *)(uintptr_t)t->shares,
        .n_shares = t->n_shares,
    };
    task.fingerprints = task.n_fingerprints ? texts.texts : NULL;
    buf_init(&line, PROTOCOL_LINE_MAX);
    fields_write(&message_task_shape, &task, &line);
    buf_putc(&line, '\n');
    bool ok = !line.failed && process_write(&s->process, line.data, line.len);
    buf_release(&line);
    return ok;
}

/* Notes what the worker does next. */
static bool read_phase(struct attempt *a, const struct buf *line, char *message, size_t size)
{
    struct message_phase p;
    struct fields_taken taken;
    struct field_fault fault;
    if (!fields_pick(&message_phase_shape, line->data, line->len, &p, &taken, &fault)) {
        describe_nonsense(&fault, message, size);
        return false;
    }
    snprintf(a->phase, sizeof a->phase, "%.15s", p.phase);
    snprintf(a->provider, sizeof a->provider, "%.63s", p.provider ? p.provider : "");
    utf8_print(a->on, sizeof a->on, "%.299s", p.on ? p.on : "");
    free(taken.texts);
    return true;
}

/* Reads records until the task is done; TALK_FAILED with a message when the worker is gone. Signs
 * of life alone do not keep it alive forever. */
static enum talk await_done(struct supervisor *s, struct attempt *a, struct buf *line,
                            char *message, size_t size)
{
    double deadline = clock_s() + TASK_TIMEOUTS * s->options->timeout_s;
    const struct processor_time before = processor_time_of(s->process.pid);
    for (;;) {
        if (clock_s() > deadline) {
            s->starved = processor_was_missing(before, processor_time_of(s->process.pid),
                                               TASK_TIMEOUTS * s->options->timeout_s);
            describe_failure(s, PROCESS_SILENCE, TASK_TIMEOUTS * s->options->timeout_s, message,
                             size);
            return TALK_FAILED;
        }
        if (read_record(s, s->options->timeout_s, line, message, size))
            return TALK_FAILED;
        if (!has_member(line, "/phase"))
            return TALK_OK;
        if (!read_phase(a, line, message, size)) {
            char how[96];
            kill_worker(s, how, sizeof how);
            return TALK_FAILED;
        }
    }
}

static const char *candidate_provider(const struct supervisor *s)
{
    return s->greeting.libraries[0].provider;
}

static bool skip_provider(struct attempt *a, const char *provider)
{
    for (unsigned i = 0; i < a->n_skip; i++)
        if (!strcmp(a->skip[i], provider))
            return false;
    if (a->n_skip == SKIP_MAX)
        return false;
    snprintf(a->skip[a->n_skip++], sizeof a->skip[0], "%s", provider);
    return true;
}

/*
 * After the end of a worker: may the case be tried again without whom it can be put down to? The
 * provider that was at work last, or all of them when several were timed in turn. False when the
 * candidate alone is left to blame.
 */
static bool leave_out_providers(const struct supervisor *s, struct attempt *a)
{
    const char *candidate = candidate_provider(s);
    if (a->task->kind == TASK_CALIBRATE)
        return false; /* both arms are the candidate */
    if (a->provider[0])
        return strcmp(a->provider, candidate) != 0 && skip_provider(a, a->provider);
    if (strcmp(a->phase, "measure") != 0)
        return false;
    bool left_out = false;
    for (size_t i = 0; i < s->greeting.n_libraries; i++) {
        const struct document_library *lib = &s->greeting.libraries[i];
        const char *label = lib->role == ROLE_BASELINE ? "baseline" : lib->provider;
        if (strcmp(label, candidate) != 0)
            left_out |= skip_provider(a, label);
    }
    return left_out;
}

static void note_skipped(const struct attempt *a, struct case_result *out)
{
    size_t used = strlen(out->message);
    for (unsigned i = 0; i < a->n_skip && used < sizeof out->message; i++)
        used += (size_t)snprintf(out->message + used, sizeof out->message - used, "%sleft out '%s'",
                                 used ? "; " : "", a->skip[i]);
    if (used < sizeof out->message && a->n_skip)
        utf8_print(out->message + used, sizeof out->message - used, ", which %.300s", a->blamed);
}

/* "hung: ... (in phase verify, probe 'integers' on ...)" as the message of a wrong case. */
static void set_died(const struct attempt *a, const char *message, struct case_result *out)
{
    out->outcome = CASE_WRONG;
    snprintf(out->message, sizeof out->message, "%.600s (%s %s%s%s)", message,
             a->phase[0] ? "in phase" : "before its first phase", a->phase, a->on[0] ? ", " : "",
             a->on);
    if (strcmp(a->phase, MESSAGE_REFERENCE) != 0)
        return;
    out->outcome = CASE_ENVIRONMENT;
    snprintf(out->message, sizeof out->message,
             "the reference of op '%s' did not end: the kernel was not judged (%.600s)", a->on,
             message);
}

/* A worker that talked nonsense is not heard any more. */
static void dismiss(struct supervisor *s, const struct attempt *a, const char *message,
                    struct case_result *out)
{
    char how[96];
    kill_worker(s, how, sizeof how);
    set_died(a, message, out);
}

/* The worker names the provider that failed in front of what happened: "cublas: ...". */
static bool read_blame(struct supervisor *s, struct attempt *a, const char *what,
                       struct case_result *out)
{
    snprintf(a->provider, sizeof a->provider, "%.*s", (int)strcspn(what, ":"), what);
    utf8_print(a->blamed, sizeof a->blamed, "failed: %.380s", what);
    supervisor_retire_worker(s);
    if (leave_out_providers(s, a))
        return true;
    set_died(a, "blamed a provider that it was not to use", out);
    return false;
}

/* ---- its answer ---- */

static bool read_outcome(const char *name, enum case_outcome *out)
{
    static const struct {
        const char *name;
        enum case_outcome outcome;
    } names[] = {{"measured", CASE_MEASURED},
                 {"verified", CASE_VERIFIED},
                 {"wrong", CASE_WRONG},
                 {"unsupported", CASE_UNSUPPORTED},
                 {"environment", CASE_ENVIRONMENT}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(names[i].name, name)) {
            *out = names[i].outcome;
            return true;
        }
    return false;
}

/* The arm that was timed with fewer samples than a median can rest on; NULL: none. */
static const struct document_arm *hasty_arm(const struct case_result *r)
{
    for (size_t i = 0; i < r->n_arms; i++)
        if (r->arms[i].has_timing && r->arms[i].timing.samples < PROTOCOL_SAMPLES_MIN)
            return &r->arms[i];
    return NULL;
}

/* A measured case must have a timed candidate in front, verified if that was asked for. */
static bool measured_candidate(const struct case_task *task, const struct case_result *r)
{
    const struct document_arm *first = r->arms;
    return r->n_arms && first->role == ROLE_CANDIDATE &&
           (!task->verify || (first->has_verify && first->verify.ok)) &&
           (task->kind == TASK_CALIBRATE || first->has_timing == (task->kind == TASK_MEASURE));
}

/* Is the case measured or verified, and its kernel right? */
static bool is_good(enum case_outcome outcome)
{
    return outcome == CASE_MEASURED || outcome == CASE_VERIFIED;
}

static bool read_injected(const struct case_task *task, const struct message_answer *answer,
                          struct case_result *out)
{
    if (answer->n_log_ratio != task->n_shares)
        return false;
    for (unsigned i = 0; i < task->n_shares; i++) {
        if (!decide_is_measured(answer->log_ratio[i]))
            return false;
        out->d[i] = answer->log_ratio[i];
    }
    return true;
}

/* Turns an answer, whose arms are the result's then, into a result; false, with a message, when it
 * is nonsense. */
static bool read_answer(const struct case_task *task, struct message_answer *answer,
                        struct case_result *out, char *message, size_t size)
{
    bool times = task->kind == TASK_MEASURE || task->kind == TASK_CALIBRATE;
    if (!answer->done || strcmp(answer->done, task->c->id) != 0) {
        snprintf(message, size, "talked nonsense: it answered for case '%.160s'",
                 answer->done ? answer->done : "");
        return false;
    }
    out->arms = answer->arms;
    out->n_arms = answer->n_arms;
    answer->arms = NULL;
    answer->n_arms = 0;
    out->has_blame = answer->has_blame;
    out->blame = answer->blame;
    answer->blame = (struct document_blame){.nodes = NULL};
    if (!read_outcome(answer->outcome ? answer->outcome : "", &out->outcome) ||
        (is_good(out->outcome) &&
         ((out->outcome == CASE_MEASURED) != times || !measured_candidate(task, out) ||
          !read_injected(task, answer, out)))) {
        snprintf(message, size, "talked nonsense: its outcome does not fit its record");
        return false;
    }
    const struct document_arm *hasty = hasty_arm(out);
    if (hasty) {
        snprintf(message, size,
                 "talked nonsense: it took %lld samples of '%.64s', at least %d count",
                 (long long)hasty->timing.samples, hasty->provider, PROTOCOL_SAMPLES_MIN);
        return false;
    }
    snprintf(out->message, sizeof out->message, "%s", answer->message ? answer->message : "");
    out->fingerprints = message_fingerprints(answer->fingerprints, answer->n_fingerprints);
    return true;
}

/* Reads a worker's last message; true: the task is to be tried again without a provider. */
static bool read_done(struct supervisor *s, struct attempt *a, const struct buf *line,
                      struct case_result *out)
{
    char message[900];
    bool again = false;
    struct message_answer answer;
    struct fields_taken taken;
    struct field_fault fault;
    if (!fields_pick(&message_answer_shape, line->data, line->len, &answer, &taken, &fault)) {
        describe_nonsense(&fault, message, sizeof message);
        dismiss(s, a, message, out);
        return false;
    }
    if (!answer.nonce || strcmp(answer.nonce, a->nonce) != 0) {
        dismiss(s, a, "talked nonsense: it answered without the task's nonce", out);
    } else if (answer.outcome && !strcmp(answer.outcome, "provider")) {
        again = read_blame(s, a, answer.message ? answer.message : "", out);
    } else if (!read_answer(a->task, &answer, out, message, sizeof message)) {
        case_result_release(out);
        dismiss(s, a, message, out);
    } else {
        if (answer.spoiled == YES)
            supervisor_retire_worker(s);
        out->texts = taken.texts;
        taken.texts = NULL;
    }
    fields_release(&message_answer_shape, &answer);
    free(taken.texts);
    return again;
}

/* An administrator may renice a run. A library that does so does it again in a fresh process. */
static bool may_be_from_outside(const struct case_result *r)
{
    return r->outcome == CASE_WRONG && strstr(r->message, STATE_SCHEDULING);
}

/* Gives the task to the worker at hand; true: it is to be tried again without a provider. */
static bool attempt_task(struct supervisor *s, struct attempt *a, struct case_result *out)
{
    char message[900] = "";
    struct buf line;
    bool again = false;
    buf_init(&line, PROTOCOL_LINE_MAX + 1);
    a->phase[0] = a->provider[0] = a->on[0] = '\0';
    s->starved = false;
    if (send_task(s, a) && await_done(s, a, &line, message, sizeof message) == TALK_OK) {
        again = read_done(s, a, &line, out);
    } else {
        if (!message[0])
            describe_failure(s, PROCESS_END, 0, message, sizeof message);
        utf8_print(a->blamed, sizeof a->blamed, "%.390s", message);
        again = !s->starved && !interrupt_signal() && leave_out_providers(s, a);
        if (!again)
            set_died(a, message, out);
        if (s->starved)
            out->outcome = CASE_ENVIRONMENT;
    }
    buf_release(&line);
    out->while_measuring = !strcmp(a->phase, "measure");
    return again;
}

/* Starts a worker when there is none, and tries without a provider that fails. */
static enum gate_status run_attempts(struct supervisor *s, struct attempt *a,
                                     struct case_result *out, struct gate_error *err)
{
    enum gate_status status;
    *out = (struct case_result){.texts = NULL};
    do
        status = s->process.pid ? GATE_OK : start_worker(s, err);
    while (!status && attempt_task(s, a, out));
    return status;
}

enum gate_status supervisor_run_case(struct supervisor *s, const struct case_task *task,
                                     struct case_result *out, struct gate_error *err)
{
    struct attempt a = {.task = task};
    enum gate_status status = run_attempts(s, &a, out, err);
    if (!status && may_be_from_outside(out)) {
        case_result_release(out);
        supervisor_retire_worker(s);
        status = run_attempts(s, &a, out, err);
    }
    if (a.n_skip && is_good(out->outcome))
        note_skipped(&a, out);
    return status;
}
