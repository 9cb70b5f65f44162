/*
 * run_rows.c: see run_rows.h.
 *
 * A timing counts only if its arm passed verification in this run, and a candidate's only if its
 * case is not wrong. The baseline that is measured beside the candidate is neither candidate nor
 * provider: it is the line that both are compared with.
 */
#include "gate/history/run_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/decide/stats.h"

#define MAX_PROCESSES 64

/* ---- reading ---- */

/* An object whose members are asked for in about the order that documents have them in. */
struct reader {
    const cJSON *first, *next;
};

static struct reader read_object(const cJSON *object)
{
    const cJSON *first = cJSON_IsObject(object) ? object->child : NULL;
    return (struct reader){first, first};
}

static bool is_key(const cJSON *item, const char *key)
{
    return item->string[0] == key[0] && strcmp(item->string, key) == 0;
}

static const cJSON *member(struct reader *r, const char *key)
{
    const cJSON *item = r->next;
    while (item && !is_key(item, key))
        item = item->next;
    if (!item) {
        item = r->first;
        while (item != r->next && !is_key(item, key))
            item = item->next;
        if (item == r->next)
            return NULL;
    }
    r->next = item->next;
    return item;
}

static double number(struct reader *r, const char *key)
{
    const cJSON *value = member(r, key);
    return cJSON_IsNumber(value) ? value->valuedouble : 0.0;
}

static const char *text(struct reader *r, const char *key)
{
    const cJSON *value = member(r, key);
    return cJSON_IsString(value) ? value->valuestring : "";
}

/* A number that is no count is one that the tables refuse. */
static int64_t count(struct reader *r, const char *key)
{
    const cJSON *value = member(r, key);
    if (!cJSON_IsNumber(value))
        return RUN_NO_COUNT;
    double x = value->valuedouble;
    return x >= 0.0 && x < 9e15 && floor(x) == x ? (int64_t)x : -1;
}

/* ---- arms ---- */

static double median_control_ns(const cJSON *processes)
{
    double values[MAX_PROCESSES];
    size_t n = 0;
    const cJSON *process = NULL;
    cJSON_ArrayForEach (process, processes) {
        double value = json_number(process, "control_ns", 0.0);
        if (value > 0.0 && n < MAX_PROCESSES)
            values[n++] = value;
    }
    return stats_middle(values, n);
}

static void read_timing(struct run_arm *arm, const cJSON *timing)
{
    struct reader t = read_object(timing);
    arm->p50_ns = number(&t, "p50_ns");
    arm->p50_lo_ns = number(&t, "p50_lo_ns");
    arm->p50_hi_ns = number(&t, "p50_hi_ns");
    arm->p10_ns = number(&t, "p10_ns");
    arm->p90_ns = number(&t, "p90_ns");
    arm->tflops = number(&t, "tflops");
    arm->gbps = number(&t, "gbps");
    arm->ceiling = number(&t, "ceiling");
    arm->sm_clock_mhz = number(&t, "sm_clock_mhz");
    arm->registers = count(&t, "registers");
    arm->shared_bytes = count(&t, "shared_bytes");
    arm->spill_bytes = count(&t, "spill_bytes");
    arm->ratio_to_candidate = json_number(member(&t, "ratio_to_candidate"), "value", 0.0);
}

/* Adds the arm where it counts; baseline_p50_ns is that of the first baseline that does. */
static void read_arm(struct run_case *c, const cJSON *item, int index, bool is_wrong,
                     double *baseline_p50_ns)
{
    struct reader r = read_object(item);
    const char *provider = text(&r, "provider"), *role = text(&r, "role");
    const char *kernel = text(&r, "kernel");
    const cJSON *verify = member(&r, "verify"), *timing = member(&r, "timing");
    if (!cJSON_IsObject(timing) || !json_bool(verify, "ok", false))
        return;
    bool is_candidate = strcmp(role, "candidate") == 0;
    if (strcmp(role, "baseline") == 0 && *baseline_p50_ns == 0.0)
        *baseline_p50_ns = json_number(timing, "p50_ns", 0.0);
    if (is_candidate ? is_wrong : strcmp(role, "provider") != 0)
        return;
    struct run_arm *arm = &c->arms[c->n_arms++];
    *arm = (struct run_arm){.provider = provider,
                            .kernel = kernel,
                            .index = index,
                            .is_candidate = is_candidate,
                            .rel_fro = json_number(verify, "rel_fro", NAN),
                            .vendor_ratio = json_number(verify, "vendor_ratio", NAN)};
    read_timing(arm, timing);
    if (is_candidate && !c->candidate)
        c->candidate = arm;
}

/*
 * Candidate over this provider: from pairs of samples where there are any, since those drift
 * together. 0: the provider has no timing.
 */
static double ratio_to(const struct run_arm *arm, double candidate_p50_ns)
{
    if (arm->ratio_to_candidate > 0.0)
        return arm->ratio_to_candidate;
    return arm->p50_ns > 0.0 ? candidate_p50_ns / arm->p50_ns : 0.0;
}

static void find_peer(struct run_case *c)
{
    c->peer = "";
    for (size_t i = 0; i < c->n_arms && c->candidate; i++) {
        double ratio = c->arms[i].is_candidate ? 0.0 : ratio_to(&c->arms[i], c->candidate->p50_ns);
        if (ratio > c->peer_ratio) {
            c->peer_ratio = ratio;
            c->peer = c->arms[i].provider;
        }
    }
}

/* ---- cases ---- */

static void read_baseline(struct run_baseline *baseline, const cJSON *item)
{
    struct reader r = read_object(item);
    baseline->is_there = cJSON_IsObject(item);
    baseline->p50_ns = number(&r, "p50_ns");
    baseline->commit = text(&r, "commit");
    baseline->stored_ms = json_integer(item, "time_ms", -1);
    baseline->made_by = text(&r, "made_by");
}

static void read_case(struct run_case *c, const cJSON *one_case)
{
    struct reader r = read_object(one_case);
    const cJSON *arm = NULL;
    int index = 0;
    c->id = text(&r, "id");
    c->op = text(&r, "op");
    c->dtype = text(&r, "dtype");
    c->verdict = store_verdict_code(text(&r, "verdict"));
    c->reason = text(&r, "reason");
    read_baseline(&c->baseline, member(&r, "baseline"));
    c->mde = number(&r, "mde");
    c->control_ns = median_control_ns(member(&r, "processes"));
    c->threshold = number(&r, "threshold");
    c->is_paired = strcmp(text(&r, "mode"), "paired") == 0;
    struct reader ratio = read_object(member(&r, "ratio"));
    c->ratio = number(&ratio, "value");
    c->ratio_lo = number(&ratio, "lo");
    c->ratio_hi = number(&ratio, "hi");
    bool is_wrong = c->verdict == store_verdict_code("wrong");
    cJSON_ArrayForEach (arm, member(&r, "arms"))
        read_arm(c, arm, index++, is_wrong, &c->baseline_p50_ns);
    if (c->baseline_p50_ns == 0.0)
        c->baseline_p50_ns = c->baseline.p50_ns;
}

static bool add(struct run_rows *r, const cJSON *one_case)
{
    size_t n_arms = (size_t)cJSON_GetArraySize(json_member(one_case, "arms"));
    struct run_case *c = calloc(1, sizeof(*c) + n_arms * sizeof(c->arms[0]));
    if (!c)
        return false;
    read_case(c, one_case);
    find_peer(c);
    *(r->last ? &r->last->next : &r->first) = c;
    r->last = c;
    r->n++;
    if (c->verdict >= 0)
        r->n_verdicts[c->verdict]++;
    return true;
}

bool run_rows_read(struct run_rows *r, const cJSON *document)
{
    const cJSON *one_case = NULL;
    *r = (struct run_rows){.n = 0};
    cJSON_ArrayForEach (one_case, json_member(document, "cases")) {
        if (!add(r, one_case))
            return false;
    }
    return true;
}

void run_rows_release(struct run_rows *r)
{
    for (struct run_case *c = r->first, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    *r = (struct run_rows){.n = 0};
}
