#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "operands.h"

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* FNV-1a: a case's seed follows from the run's seed and its id, whatever else the suite holds. */
static uint64_t case_seed(uint64_t run_seed, const char *id)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * 0x100000001b3u;
    return operands_seed(run_seed, hash);
}

/* Fisher and Yates, so that a case's neighbours differ from run to run. */
static void shuffle(size_t *order, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)(operands_seed(seed, i) % i);
        size_t other = order[j];
        order[j] = order[i - 1];
        order[i - 1] = other;
    }
}

static const cJSON *candidate_timing(const cJSON *arms)
{
    return cJSON_GetObjectItemCaseSensitive(arms->child, "timing");
}

/* Keeps the result that the verdict rests on: the first, then any with a lower p50. */
static void keep_result(struct run_case *c, struct case_result *fresh)
{
    bool lower = false;
    if (fresh->outcome == CASE_MEASURED) {
        const cJSON *timing = candidate_timing(fresh->arms);
        struct estimate e = {json_number(timing, "p50_ns", 0), json_number(timing, "p50_lo_ns", 0),
                             json_number(timing, "p50_hi_ns", 0)};
        lower = true;
        for (size_t i = 0; i < c->n_processes; i++)
            lower &= e.value < c->p50_ns[i].value;
        c->p50_ns[c->n_processes++] = e;
    }
    if (!c->result.arms || lower || fresh->outcome == CASE_WRONG) {
        cJSON_Delete(c->result.arms);
        c->result = *fresh;
    } else {
        cJSON_Delete(fresh->arms);
    }
}

static void decide_measured(const struct run *run, struct run_case *c)
{
    double threshold = c->about->threshold > 0 ? c->about->threshold : run->threshold;
    struct decide_input in = {.p50_ns = c->p50_ns,
                              .n_processes = c->n_processes,
                              .best_p50_ns = c->has_best ? c->best.p50_ns : 0,
                              .threshold = threshold};
    c->decision = decide(&in);
    c->verdict = c->decision.verdict;
    snprintf(c->reason, sizeof c->reason, "%s%s%.600s", c->decision.reason,
             c->result.message[0] ? "; " : "", c->result.message);
}

/* Whatever is not a measurement needs no second look. */
static void decide_case(const struct run *run, struct run_case *c)
{
    if (c->result.outcome == CASE_MEASURED) {
        decide_measured(run, c);
        return;
    }
    c->decision = (struct decision){.more = false};
    c->verdict = c->result.outcome == CASE_WRONG         ? VERDICT_WRONG
                 : c->result.outcome == CASE_ENVIRONMENT ? VERDICT_ENVIRONMENT
                                                         : VERDICT_NO_VERDICT;
    snprintf(c->reason, sizeof c->reason, "%s", c->result.message);
}

static void count_verdicts(struct run *run)
{
    memset(run->counts, 0, sizeof run->counts);
    for (size_t i = 0; i < run->suite->n_cases; i++)
        run->counts[run->cases[i].verdict]++;
}

static void start_cases(struct run *run)
{
    const char *contract = json_string(run->greeting, "contract", "");
    for (size_t i = 0; i < run->suite->n_cases; i++) {
        struct run_case *c = &run->cases[i];
        c->about = &run->suite->cases[i];
        c->has_best = best_find(run->best, c->about->id, contract, &c->best);
    }
}

/* One pass over the cases that need another process. */
static enum gate_status look(struct run *run, struct supervisor *s, const size_t *order,
                             unsigned number, run_progress_fn progress, void *context,
                             struct gate_error *err)
{
    size_t n = run->suite->n_cases, todo = 0, done = 0;
    for (size_t i = 0; i < n; i++)
        todo += number == 0 || run->cases[i].decision.more;
    if (number > 0 && todo > 0)
        supervisor_retire_worker(s);
    for (size_t i = 0; i < n; i++) {
        struct run_case *c = &run->cases[order[i]];
        struct case_result fresh;
        if (number > 0 && !c->decision.more)
            continue;
        progress(context, c->about, done++, todo, number);
        enum gate_status status = supervisor_run_case(
            s, c->about, case_seed(run->seed, c->about->id), run->budget_ms, &fresh, err);
        if (status) {
            cJSON_Delete(fresh.arms);
            return status;
        }
        keep_result(c, &fresh);
        decide_case(run, c);
    }
    return GATE_OK;
}

enum gate_status run_measure(struct run *run, struct supervisor *s, run_progress_fn progress,
                             void *context, struct gate_error *err)
{
    size_t n = run->suite->n_cases;
    size_t *order = calloc(n, sizeof *order);
    run->cases = calloc(n, sizeof *run->cases);
    run->greeting = cJSON_Duplicate(supervisor_greeting(s), true);
    enum gate_status status = GATE_OK;
    if (!order || !run->cases || !run->greeting)
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    run->start_ms = now_ms();
    if (!status) {
        shuffle(order, n, run->seed);
        start_cases(run);
    }
    for (unsigned number = 0; number < DECIDE_LOOKS && !status; number++)
        status = look(run, s, order, number, progress, context, err);
    if (!status)
        count_verdicts(run);
    run->end_ms = now_ms();
    free(order);
    return status;
}

static enum gate_status accept_case(const struct run *run, struct run_case *c, struct best *best,
                                    struct gate_error *err)
{
    const cJSON *arm = c->result.arms->child, *timing = candidate_timing(c->result.arms);
    const cJSON *library =
        cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(run->greeting, "libraries"), 0);
    struct best_entry entry = {.p50_ns = json_number(timing, "p50_ns", 0),
                               .p50_lo_ns = json_number(timing, "p50_lo_ns", 0),
                               .p50_hi_ns = json_number(timing, "p50_hi_ns", 0),
                               .p90_ns = json_number(timing, "p90_ns", 0),
                               .time_ms = run->start_ms,
                               .kernel = json_string(arm, "kernel", ""),
                               .commit = run->origin.commit,
                               .run_uuid = run->origin.uuid,
                               .library_sha256 = json_string(library, "sha256", "")};
    struct best_note note = {.action = BEST_ACCEPT_NEW,
                             .reason = "first measurement of the case",
                             .author = run->origin.who,
                             .time_ms = run->end_ms};
    return best_set(best, c->about->id, json_string(run->greeting, "contract", ""), &entry, &note,
                    err);
}

enum gate_status run_accept_new(struct run *run, struct best *best, size_t *n,
                                struct gate_error *err)
{
    *n = 0;
    for (size_t i = 0; i < run->suite->n_cases; i++) {
        struct run_case *c = &run->cases[i];
        if (c->has_best || c->result.outcome != CASE_MEASURED)
            continue;
        enum gate_status status = accept_case(run, c, best, err);
        if (status)
            return status;
        c->verdict = VERDICT_PASS;
        snprintf(c->reason, sizeof c->reason,
                 "right, and the first measurement: taken as the best%s%.600s",
                 c->result.message[0] ? "; " : "", c->result.message);
        ++*n;
    }
    count_verdicts(run);
    return GATE_OK;
}

int run_exit_code(const struct run *run)
{
    return verdict_exit_code(run->counts);
}

void run_release(struct run *run)
{
    for (size_t i = 0; run->cases && i < run->suite->n_cases; i++)
        cJSON_Delete(run->cases[i].result.arms);
    free(run->cases);
    cJSON_Delete(run->greeting);
    run->cases = NULL;
    run->greeting = NULL;
}
