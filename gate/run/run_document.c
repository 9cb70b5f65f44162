/*
 * run_document.c: a run as the document of run.schema.json.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "gate/base/json.h"
#include "gate/run/run.h"
#include "version.h"

static cJSON *git_object(const struct origin *origin)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "commit", origin->commit);
    cJSON_AddStringToObject(o, "branch", origin->branch);
    cJSON_AddStringToObject(o, "parent", origin->parent);
    cJSON_AddStringToObject(o, "subject", origin->subject);
    cJSON_AddBoolToObject(o, "dirty", origin->dirty);
    if (origin->base[0])
        cJSON_AddStringToObject(o, "base", origin->base);
    if (origin->change[0])
        cJSON_AddStringToObject(o, "change", origin->change);
    if (origin->job[0])
        cJSON_AddStringToObject(o, "job", origin->job);
    return o;
}

static void add_known(cJSON *o, const char *key, double value, bool known)
{
    cJSON_AddItemToObject(o, key, known ? cJSON_CreateNumber(value) : cJSON_CreateNull());
}

static cJSON *baseline_object(const struct run_case *c)
{
    if (!c->has_baseline)
        return cJSON_CreateNull();
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "p50_ns", c->baseline.p50_ns);
    cJSON_AddStringToObject(o, "commit", c->baseline.commit);
    cJSON_AddNumberToObject(o, "time_ms", (double)c->baseline.time_ms);
    cJSON_AddStringToObject(o, "library_sha256", c->baseline.library_sha256);
    if (c->baseline_made_by)
        cJSON_AddStringToObject(o, "made_by", c->baseline_made_by);
    add_known(o, "again_ns", c->again.p50_ns, c->again.p50_ns > 0);
    cJSON_AddBoolToObject(o, "off", c->baseline_is_off);
    return o;
}

static cJSON *ratio_object(struct estimate r)
{
    if (!(r.value > 0))
        return cJSON_CreateNull();
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "value", r.value);
    cJSON_AddNumberToObject(o, "lo", r.lo);
    cJSON_AddNumberToObject(o, "hi", r.hi);
    return o;
}

static cJSON *process_object(const struct run_process *p, enum run_stage stage, enum run_mode mode)
{
    cJSON *o = cJSON_CreateObject();
    bool paired = mode == RUN_PAIRED;
    cJSON_AddStringToObject(o, "stage", stage == RUN_FIRST ? "first" : "confirmation");
    cJSON_AddBoolToObject(o, "swapped", p->swapped);
    cJSON_AddNumberToObject(o, "p50_ns", p->candidate.p50_ns);
    if (p->candidate.half_width > 0)
        cJSON_AddNumberToObject(o, "half_width", p->candidate.half_width);
    add_known(o, "baseline_p50_ns", p->baseline.p50_ns, paired && p->baseline.p50_ns > 0);
    add_known(o, "log_ratio", p->d, mode != RUN_NONE);
    add_known(o, "log_ratio_cycles", p->log_ratio_cycles, paired && isfinite(p->log_ratio_cycles));
    add_known(o, "log_ratio_p90", p->log_ratio_p90, paired && isfinite(p->log_ratio_p90));
    cJSON_AddNumberToObject(o, "control_ns", p->control_ns);
    return o;
}

static cJSON *processes_array(const struct run_case *c)
{
    cJSON *list = cJSON_CreateArray();
    for (enum run_stage stage = RUN_FIRST; stage < RUN_STAGES; stage++)
        for (size_t i = 0; i < c->sequence[stage].n; i++)
            cJSON_AddItemToArray(list,
                                 process_object(&c->sequence[stage].process[i], stage, c->mode));
    return list;
}

static const char *mode_name(enum run_mode mode)
{
    return mode == RUN_PAIRED ? "paired" : mode == RUN_NUMBER ? "number" : "none";
}

static cJSON *case_object(const struct run *run, const struct run_case *c)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "id", c->about->id);
    cJSON_AddStringToObject(o, "op", problem_op_name(c->about->problem.op));
    cJSON_AddStringToObject(o, "dtype", problem_dtype_name(&c->about->problem));
    cJSON_AddStringToObject(o, "verdict", verdict_name(c->verdict));
    cJSON_AddStringToObject(o, "reason", c->reason);
    cJSON_AddStringToObject(o, "mode", mode_name(c->mode));
    cJSON_AddItemToObject(o, "baseline", baseline_object(c));
    cJSON_AddItemToObject(o, "ratio", ratio_object(c->decision.ratio));
    cJSON_AddItemToObject(o, "ratio_p90", ratio_object(c->ratio_p90));
    add_known(o, "mde", c->decision.mde, c->decision.mde > 0);
    cJSON_AddBoolToObject(o, "same_library", run_same_library(run, c));
    cJSON_AddBoolToObject(o, "same_code", run_same_code(c));
    add_known(o, "error_ratio", run_error_ratio(run, c), run_error_ratio(run, c) > 0);
    if (c->about->threshold > 0)
        cJSON_AddNumberToObject(o, "threshold", c->about->threshold);
    cJSON_AddItemToObject(o, "processes", processes_array(c));
    cJSON_AddItemToObject(o, "arms", cJSON_Duplicate(c->result.arms, true));
    return o;
}

static cJSON *policy_object(const struct run_policy *p)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "threshold", p->threshold);
    cJSON_AddStringToObject(o, "against", p->against);
    return o;
}

static cJSON *shard_object(const struct run *run)
{
    const struct shard *s = run->shard;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "index", (double)s->index);
    cJSON_AddNumberToObject(o, "count", (double)s->count);
    cJSON_AddNumberToObject(o, "cases", (double)s->n_cases);
    cJSON_AddStringToObject(o, "suite_sha256", s->suite_sha256);
    cJSON *positions = cJSON_AddArrayToObject(o, "positions");
    for (size_t i = 0; i < run->suite->n_cases; i++)
        if (!run->cases[i].left_out)
            cJSON_AddItemToArray(positions, cJSON_CreateNumber((double)s->positions[i]));
    return o;
}

static void add_copy(cJSON *o, const char *key, const cJSON *from)
{
    cJSON_AddItemToObject(o, key,
                          cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(from, key), true));
}

cJSON *run_document(const struct run *run)
{
    char seed[17];
    cJSON *o = cJSON_CreateObject();
    snprintf(seed, sizeof seed, "%016" PRIx64, run->seed);
    cJSON_AddStringToObject(o, "schema", "gate-run/1");
    cJSON_AddStringToObject(o, "uuid", run->origin.uuid);
    cJSON_AddNumberToObject(o, "time_ms", (double)run->start_ms);
    cJSON_AddNumberToObject(o, "duration_ms", fmax(0, (double)(run->end_ms - run->start_ms)));
    cJSON_AddStringToObject(o, "gate_version", GATE_VERSION);
    cJSON_AddItemToObject(o, "git", git_object(&run->origin));
    cJSON_AddStringToObject(o, "who", run->origin.who);
    cJSON_AddStringToObject(o, "suite", run->suite->name);
    add_copy(o, "device", run->greeting);
    json_copy_bool(o, "users_checked", run->greeting);
    json_copy_bool(o, "launch_order_checked", run->greeting);
    add_copy(o, "libraries", run->greeting);
    add_copy(o, "absent", run->greeting);
    add_copy(o, "contract", run->greeting);
    cJSON_AddItemToObject(o, "policy", policy_object(&run->policy));
    if (run->shard)
        cJSON_AddItemToObject(o, "shard", shard_object(run));
    cJSON_AddStringToObject(o, "epoch", run->epoch);
    double drift = run_control_drift(run);
    add_known(o, "control_drift", drift, !isnan(drift));
    cJSON_AddNumberToObject(o, "n_processes", (double)run->n_processes);
    cJSON_AddStringToObject(o, "seed", seed);
    cJSON_AddStringToObject(o, "verdict", verdict_name(verdict_of_run(run->counts)));
    cJSON_AddNumberToObject(o, "exit_code", verdict_exit_code(run->counts));
    cJSON *cases = cJSON_AddArrayToObject(o, "cases");
    cJSON *not_served = cJSON_CreateArray();
    for (size_t i = 0; i < run->suite->n_cases; i++) {
        const struct run_case *c = &run->cases[i];
        cJSON *object = c->left_out ? cJSON_CreateObject() : case_object(run, c);
        if (c->left_out)
            cJSON_AddStringToObject(object, "id", c->about->id);
        cJSON_AddItemToArray(c->left_out ? not_served : cases, object);
    }
    if (not_served->child)
        cJSON_AddItemToObject(o, "not_served", not_served);
    else
        cJSON_Delete(not_served);
    return o;
}
