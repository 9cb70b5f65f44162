/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/supervisor.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "gate/base/alloc.h"
#include "gate/base/utf8.h"
#include "gate/base/clock.h"
#include "gate/base/json.h"
#include "gate/base/process.h"
#include "gate/decide/decide.h"
#include "gate/document/fields_table.h"
#include "gate/verify/verify_state.h"

#define GREETING_MIN_S 60.0 /* opening a GPU takes seconds, whatever the time-out for cases */
#define FINISH_GRACE_S 5.0
#define WRAPPED_GRACE_S 100.0 /* a tool that watched a worker may have much to say at its end */
#define TASK_TIMEOUTS 10      /* a task as a whole may take this many times the longest silence */
#define SKIP_MAX 16           /* arms that are left out of a case */

const struct message_greeting *supervisor_providers(const struct supervisor *s)
{
    return s->providers.taken.texts ? &s->providers.m : &s->greeting.m;
}

#define OF case_result
SHAPE_BY(MESSAGE_ANSWER);
#undef OF

void case_result_release(struct case_result *r)
{
    fields_release(&case_result_shape, r);
    free(r->texts);
    *r = (struct case_result){.texts = NULL};
}

/* ---- talking to a worker ---- */

/* Kills the worker and whatever came of it. */
static void kill_worker(struct supervisor *s, char *how, size_t size)
{
    process_kill(&s->process, how, size);
    process_end_orphans();
}

/* The fault of a worker that did this instead of answering, with the last words it wrote to
 * standard error. */
static void set_failure(struct supervisor *s, enum process_event event, double timeout_s)
{
    char how[96] = "", what[sizeof s->excuse];
    kill_worker(s, how, sizeof how);
    if (event == PROCESS_END && s->process.out_of_time)
        snprintf(s->excuse, sizeof s->excuse,
                 "out of time: it used up the processor time that `ulimit -t` leaves it; raise it");
    if (s->excuse[0])
        snprintf(what, sizeof what, "%s", s->excuse);
    else if (event == PROCESS_SILENCE)
        snprintf(what, sizeof what, "hung: no sign of life for %.3g s", timeout_s);
    else if (event == PROCESS_FLOOD)
        snprintf(what, sizeof what, "wrote a line of more than %zu MiB", PROTOCOL_LINE_MAX >> 20);
    else if (event == PROCESS_INTERRUPTED)
        snprintf(what, sizeof what, "was killed: the gate is to end");
    else
        snprintf(what, sizeof what, "died: the worker process %s", how);
    const char *last = process_last_words(&s->process);
    snprintf(s->fault, sizeof s->fault, *last ? "%s; its last words: \"%s\"" : "%s%s", what, last);
}

/* A worker that talked nonsense is not heard any more. False, for a caller's `return`. */
__attribute__((format(printf, 2, 3))) static bool set_nonsense(struct supervisor *s,
                                                               const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    utf8_print(s->fault, sizeof s->fault, "talked nonsense: %s", text);
    kill_worker(s, NULL, 0);
    return false;
}

static bool set_misfit(struct supervisor *s, const struct field_fault *f)
{
    return set_nonsense(s, "%s%s%.255s", f->pointer, f->pointer[0] ? ": " : "", f->message);
}

/* Reads one line of JSON; a worker that fails to deliver one is killed, and its fault is set. */
static bool read_record(struct supervisor *s, double timeout_s, struct buf *line)
{
    struct gate_error err = {0};
    buf_clear(line);
    const struct processor_time before = processor_time_of(s->process.pid);
    enum process_event event = process_read_line(&s->process, timeout_s, line);
    s->excuse[0] = '\0';
    if (event == PROCESS_SILENCE)
        excuse_silence(before, processor_time_of(s->process.pid), timeout_s, s->excuse,
                       sizeof s->excuse);
    if (event == PROCESS_LINE)
        return !json_check("worker", 1, line->data, line->len, GATE_WRONG, &err) ||
               set_nonsense(s, "%.300s", err.message);
    set_failure(s, event, timeout_s);
    return false;
}

static bool has_member(const struct buf *line, const char *pointer)
{
    unsigned row, column;
    return json_locate(line->data, line->len, pointer, true, &row, &column);
}

/* ---- starting ---- */

static enum gate_status read_greeting(struct supervisor *s, const struct buf *line,
                                      struct greeting *out, struct gate_error *err)
{
    struct message_refusal refusal;
    struct fields_taken taken;
    struct field_fault fault;
    if (has_member(line, "/refuse")) {
        if (fields_pick(&message_refusal_shape, line->data, line->len, &refusal, &taken, &fault)) {
            bool busy = refusal.refuse == REFUSAL_BUSY;
            const char *said = refusal.message ? refusal.message
                               : busy          ? "the device is busy"
                                               : "the worker refuses";
            enum gate_status status =
                busy ? gate_fail_busy(err, "%s", said)
                     : gate_fail(err, message_refusal_status[refusal.refuse], "%s", said);
            free(taken.texts);
            return status;
        }
    } else if (!s->options->library) {
        struct message_ceilings told;
        if (!fields_pick(&message_ceilings_shape, line->data, line->len, &told, &out->taken,
                         &fault))
            return gate_fail(err, GATE_WRONG, "the worker does not measure it");
        s->ceilings = told.ceilings;
        s->ceilings.message = s->ceilings.measured_in = NULL; /* which are those of `taken` */
        return GATE_OK;
    } else {
        if (fields_pick(&message_greeting_shape, line->data, line->len, &out->m, &out->taken,
                        &fault))
            return GATE_OK;
        if (!has_member(line, "/hello") || !strcmp(fault.pointer, "/hello"))
            return gate_fail(err, GATE_WRONG,
                             "worker '%s' speaks another protocol than " MESSAGE_HELLO,
                             s->options->worker ? s->options->worker : "gate worker");
    }
    set_misfit(s, &fault);
    return gate_fail(err, GATE_WRONG, "the worker %s", s->fault);
}

/* The same candidate and baselines? */
static bool has_same_judges(const struct message_greeting *a, const struct message_greeting *b)
{
    for (size_t i = 0, k = 0;; i++, k++) {
        while (i < a->n_libraries && a->libraries[i].role == ROLE_PROVIDER)
            i++;
        while (k < b->n_libraries && b->libraries[k].role == ROLE_PROVIDER)
            k++;
        if (i == a->n_libraries || k == b->n_libraries)
            return i == a->n_libraries && k == b->n_libraries;
        if (!fields_same(&document_library_shape, &a->libraries[i], &b->libraries[k]))
            return false;
    }
}

static void forget_greeting(struct greeting *g)
{
    if (g->taken.texts)
        fields_release(&message_greeting_shape, &g->m);
    free(g->taken.texts);
    g->taken.texts = NULL;
}

static enum gate_status start_worker(struct supervisor *s, struct gate_error *err)
{
    RELEASED_BY(buf_release) struct buf line = buf_of(PROTOCOL_LINE_MAX + 1);
    struct greeting g = {.taken = {.texts = NULL}};
    enum gate_status status;
    TRY(worker_start(s->options, (const char *const *)s->baselines, s->n_baselines,
                     !s->without_providers, &s->process, err));
    if (read_record(s, fmax(s->options->timeout_s, GREETING_MIN_S), &line))
        status = read_greeting(s, &line, &g, err);
    else
        status =
            gate_fail(err, s->excuse[0] ? GATE_ENVIRONMENT : GATE_WRONG, "the worker %s", s->fault);
    if (!status &&
        s->greeting.taken.texts) { /* a later one must be of the same device and libraries */
        const char *changed =
            !fields_same(&document_device_shape, &s->greeting.m.device, &g.m.device) ? "device"
            : strcmp(s->greeting.m.contract, g.m.contract) != 0                      ? "contract"
            : !has_same_judges(&s->greeting.m, &g.m)                                 ? "libraries"
                                                                                     : NULL;
        if (changed)
            status = gate_fail(err, GATE_ENVIRONMENT,
                               "the %s changed while the gate ran; run it again", changed);
    }
    if (!status)
        s->control_ns = isnan(g.m.control_ns) ? 0 : g.m.control_ns;
    if (!status && !s->greeting.taken.texts) {
        s->greeting = g;
        return GATE_OK;
    }
    forget_greeting(&g);
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
    enum gate_status status = start_worker(s, err);
    if (status)
        supervisor_stop(s);
    else
        *out = s;
    return status;
}

enum gate_status supervisor_ceilings(const struct supervisor_options *options,
                                     struct document_ceilings *out, struct gate_error *err)
{
    const struct supervisor_options alone = {
        .worker = options->worker, .device = options->device, .timeout_s = options->timeout_s};
    struct supervisor *s = NULL;
    TRY(supervisor_start(&alone, &s, err));
    *out = s->ceilings;
    supervisor_stop(s);
    return GATE_OK;
}

enum gate_status supervisor_open_baselines(struct supervisor *s, const char *const *paths,
                                           unsigned n, struct gate_error *err)
{
    supervisor_retire_worker(s);
    while (s->n_baselines > 0)
        free(s->baselines[--s->n_baselines]);
    if (s->without_providers &&
        !s->providers.taken.texts) { /* what it said of the providers stays */
        s->providers = s->greeting;
        s->greeting.taken.texts = NULL;
    }
    forget_greeting(&s->greeting);
    for (; s->n_baselines < n && s->n_baselines < PROTOCOL_BASELINES_MAX; s->n_baselines++)
        s->baselines[s->n_baselines] = xstrdup(paths[s->n_baselines]);
    return start_worker(s, err);
}

void supervisor_retire_worker(struct supervisor *s)
{
    const struct supervisor_options *o = s->options;
    double grace_s = o->n_wrapper ? fmin(WRAPPED_GRACE_S, o->timeout_s) : FINISH_GRACE_S;
    int code = process_finish(&s->process, grace_s);
    if (o->n_wrapper && code != 0)
        s->findings++;
    process_end_orphans();
}

void supervisor_stop(struct supervisor *s)
{
    if (!s)
        return;
    supervisor_retire_worker(s);
    while (s->n_baselines > 0)
        free(s->baselines[--s->n_baselines]);
    forget_greeting(&s->greeting);
    forget_greeting(&s->providers);
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
    uint64_t nonce = 0;
    bool ok = getrandom(&nonce, sizeof nonce, 0) == (ssize_t)sizeof nonce;
    snprintf(a->nonce, sizeof a->nonce, "%016" PRIx64, nonce);
    char seed[17];
    const char *skip[SKIP_MAX];
    RELEASED_BY(buf_release) struct buf line = buf_of(PROTOCOL_LINE_MAX);
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
        .fingerprints = t->n_fingerprints ? t->fingerprints : NULL,
        .n_fingerprints = t->n_fingerprints,
        .shares = (double *)(uintptr_t)t->shares,
        .n_shares = t->n_shares,
    };
    fields_write(&message_task_shape, &task, &line);
    buf_putc(&line, '\n');
    ok = ok && !line.failed && process_write(&s->process, line.data, line.len);
    if (!ok)
        set_failure(s, PROCESS_END, 0);
    return ok;
}

/* Reads records until the task is done; false when the worker is gone. Signs of life alone do not
 * keep it alive forever. */
static bool await_done(struct supervisor *s, struct attempt *a, struct buf *line)
{
    const double all_s = TASK_TIMEOUTS * s->options->timeout_s, deadline_s = clock_s() + all_s;
    const struct processor_time before = processor_time_of(s->process.pid);
    while (clock_s() <= deadline_s) {
        struct message_phase p;
        struct fields_taken taken;
        struct field_fault fault;
        if (!read_record(s, s->options->timeout_s, line))
            return false;
        if (!has_member(line, "/phase"))
            return true;
        if (!fields_pick(&message_phase_shape, line->data, line->len, &p, &taken, &fault))
            return set_misfit(s, &fault);
        /* What the worker does next. */
        snprintf(a->phase, sizeof a->phase, "%.15s", p.phase);
        snprintf(a->provider, sizeof a->provider, "%.63s", p.provider ? p.provider : "");
        utf8_print(a->on, sizeof a->on, "%.299s", p.on ? p.on : "");
        free(taken.texts);
    }
    excuse_silence(before, processor_time_of(s->process.pid), all_s, s->excuse, sizeof s->excuse);
    set_failure(s, PROCESS_SILENCE, all_s);
    return false;
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
    const char *candidate = s->greeting.m.libraries[0].provider;
    if (a->task->kind == TASK_CALIBRATE)
        return false; /* both arms are the candidate */
    if (a->provider[0])
        return strcmp(a->provider, candidate) != 0 && skip_provider(a, a->provider);
    if (strcmp(a->phase, "measure") != 0)
        return false;
    bool left_out = false;
    for (size_t i = 0; i < s->greeting.m.n_libraries; i++) {
        const struct document_library *lib = &s->greeting.m.libraries[i];
        const char *label = lib->role == ROLE_BASELINE ? "baseline" : lib->provider;
        if (strcmp(label, candidate) != 0)
            left_out |= skip_provider(a, label);
    }
    return left_out;
}

/* "hung: ... (in phase verify, probe 'integers' on ...)" as the message of a wrong case. */
static void set_died(const struct attempt *a, const char *fault, struct case_result *out)
{
    bool reference = !strcmp(a->phase, MESSAGE_REFERENCE);
    out->outcome = reference ? CASE_ENVIRONMENT : CASE_WRONG;
    if (reference)
        snprintf(out->said, sizeof out->said,
                 "the reference of op '%s' did not end: the kernel was not judged (%.600s)", a->on,
                 fault);
    else
        snprintf(out->said, sizeof out->said, "%.600s (%s %s%s%s)", fault,
                 a->phase[0] ? "in phase" : "before its first phase", a->phase,
                 a->on[0] ? ", " : "", a->on);
}

/* ---- its answer ---- */

/* Is the case measured or verified, and its kernel right? */
static bool is_good(int outcome)
{
    return outcome == CASE_MEASURED || outcome == CASE_VERIFIED;
}

/* Does the answer fit the task? False when it is nonsense. */
static bool check_answer(struct supervisor *s, const struct case_task *task,
                         const struct case_result *r)
{
    const struct document_arm *first = r->arms;
    const bool times = task->kind == TASK_MEASURE || task->kind == TASK_CALIBRATE;
    if (strcmp(r->done, task->c->id) != 0)
        return set_nonsense(s, "it answered for case '%.160s'", r->done);
    /* A timed candidate in front, verified if that was asked for. */
    bool fits =
        !is_good(r->outcome) ||
        ((r->outcome == CASE_MEASURED) == times && r->n_arms && first->role == ROLE_CANDIDATE &&
         (!task->verify || (first->has_verify && first->verify.ok)) &&
         (task->kind == TASK_CALIBRATE || first->has_timing == (task->kind == TASK_MEASURE)) &&
         r->n_log_ratio == task->n_shares);
    for (unsigned i = 0; i < task->n_shares && is_good(r->outcome) && fits; i++)
        fits = decide_is_measured(r->log_ratio[i]);
    if (!fits)
        return set_nonsense(s, "its outcome does not fit its record");
    for (size_t i = 0; i < r->n_arms; i++) {
        const struct document_arm *arm = &r->arms[i];
        if (arm->has_timing && arm->timing.samples < PROTOCOL_SAMPLES_MIN) /* for a median */
            return set_nonsense(s, "it took %lld samples of '%.64s', at least %d count",
                                (long long)arm->timing.samples, arm->provider,
                                PROTOCOL_SAMPLES_MIN);
    }
    return true;
}

/* Reads a worker's last message; true: the task is to be tried again without a provider. */
static bool read_done(struct supervisor *s, struct attempt *a, const struct buf *line,
                      struct case_result *out)
{
    bool again = false, good = false;
    struct field_fault fault;
    struct fields_taken taken;
    if (!fields_pick(&case_result_shape, line->data, line->len, out, &taken, &fault)) {
        set_misfit(s, &fault);
        set_died(a, s->fault, out);
        return false;
    }
    out->texts = taken.texts;
    if (strcmp(out->nonce, a->nonce) != 0) {
        set_nonsense(s, "it answered without the task's nonce");
    } else if (out->outcome == CASE_PROVIDER) {
        /* The one that failed stands in front of what happened: "cublas: ...". */
        const char *what = out->message ? out->message : "";
        good = true;
        snprintf(a->provider, sizeof a->provider, "%.*s", (int)strcspn(what, ":"), what);
        utf8_print(a->blamed, sizeof a->blamed, "failed: %.380s", what);
        supervisor_retire_worker(s);
        again = leave_out_providers(s, a);
    } else if (check_answer(s, a->task, out)) {
        if (out->spoiled == YES)
            supervisor_retire_worker(s);
        snprintf(out->said, sizeof out->said, "%s", out->message ? out->message : "");
        return false;
    }
    case_result_release(out);
    if (!again)
        set_died(a, good ? "blamed a provider that it was not to use" : s->fault, out);
    return again;
}

/* Gives the task to the worker at hand; true: it is to be tried again without a provider. */
static bool attempt_task(struct supervisor *s, struct attempt *a, struct case_result *out)
{
    RELEASED_BY(buf_release) struct buf line = buf_of(PROTOCOL_LINE_MAX + 1);
    bool again = false;
    a->phase[0] = a->provider[0] = a->on[0] = '\0';
    s->excuse[0] = '\0';
    if (send_task(s, a) && await_done(s, a, &line)) {
        again = read_done(s, a, &line, out);
    } else {
        utf8_print(a->blamed, sizeof a->blamed, "%.390s", s->fault);
        again = !s->excuse[0] && !interrupt_signal() && leave_out_providers(s, a);
        if (!again)
            set_died(a, s->fault, out);
        if (s->excuse[0])
            out->outcome = CASE_ENVIRONMENT;
    }
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
    /* An administrator may renice a run. A library that does so does it again in a fresh process.
     */
    if (!status && out->outcome == CASE_WRONG && strstr(out->said, STATE_SCHEDULING)) {
        case_result_release(out);
        supervisor_retire_worker(s);
        status = run_attempts(s, &a, out, err);
    }
    for (unsigned i = 0; i < a.n_skip && is_good(out->outcome); i++)
        utf8_join(out->said, sizeof out->said, "; ", "left out '%s'", a.skip[i]);
    if (a.n_skip && is_good(out->outcome))
        utf8_join(out->said, sizeof out->said, ", which ", "%.300s", a.blamed);
    return status;
}
