/*
 * run_document.c: a run as the document of run.schema.json.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "run.h"
#include "version.h"

static cJSON *git_object(const struct origin *origin)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "commit", origin->commit);
    cJSON_AddStringToObject(o, "branch", origin->branch);
    cJSON_AddStringToObject(o, "parent", origin->parent);
    cJSON_AddStringToObject(o, "subject", origin->subject);
    cJSON_AddBoolToObject(o, "dirty", origin->dirty);
    return o;
}

static cJSON *best_object(const struct run_case *c)
{
    if (!c->has_best)
        return cJSON_CreateNull();
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "p50_ns", c->best.p50_ns);
    cJSON_AddStringToObject(o, "commit", c->best.commit);
    cJSON_AddNumberToObject(o, "time_ms", (double)c->best.time_ms);
    return o;
}

static cJSON *ratio_object(const struct run_case *c)
{
    struct estimate r = c->decision.ratio;
    if (r.value <= 0)
        return cJSON_CreateNull();
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "value", r.value);
    cJSON_AddNumberToObject(o, "lo", r.lo);
    cJSON_AddNumberToObject(o, "hi", r.hi);
    return o;
}

static cJSON *case_object(const struct run_case *c)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "id", c->about->id);
    cJSON_AddStringToObject(o, "op", problem_op_name(c->about->problem.op));
    cJSON_AddStringToObject(o, "dtype", problem_dtype_name(&c->about->problem));
    cJSON_AddStringToObject(o, "verdict", verdict_name(c->verdict));
    cJSON_AddStringToObject(o, "reason", c->reason);
    cJSON_AddItemToObject(o, "best", best_object(c));
    cJSON_AddItemToObject(o, "ratio", ratio_object(c));
    if (c->about->threshold > 0)
        cJSON_AddNumberToObject(o, "threshold", c->about->threshold);
    cJSON *processes = cJSON_AddArrayToObject(o, "processes_p50_ns");
    for (size_t i = 0; i < c->n_processes; i++)
        cJSON_AddItemToArray(processes, cJSON_CreateNumber(c->p50_ns[i].value));
    cJSON_AddItemToObject(o, "arms", cJSON_Duplicate(c->result.arms, true));
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
    cJSON_AddNumberToObject(o, "duration_ms", (double)(run->end_ms - run->start_ms));
    cJSON_AddStringToObject(o, "gate_version", GATE_VERSION);
    cJSON_AddItemToObject(o, "git", git_object(&run->origin));
    cJSON_AddStringToObject(o, "who", run->origin.who);
    cJSON_AddStringToObject(o, "suite", run->suite->name);
    add_copy(o, "device", run->greeting);
    add_copy(o, "libraries", run->greeting);
    add_copy(o, "absent", run->greeting);
    add_copy(o, "contract", run->greeting);
    cJSON_AddNumberToObject(cJSON_AddObjectToObject(o, "policy"), "threshold", run->threshold);
    cJSON_AddStringToObject(o, "seed", seed);
    cJSON_AddStringToObject(o, "verdict", verdict_name(verdict_of_run(run->counts)));
    cJSON_AddNumberToObject(o, "exit_code", run_exit_code(run));
    cJSON *cases = cJSON_AddArrayToObject(o, "cases");
    for (size_t i = 0; i < run->suite->n_cases; i++)
        cJSON_AddItemToArray(cases, case_object(&run->cases[i]));
    return o;
}
