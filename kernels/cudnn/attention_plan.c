/* SPDX-License-Identifier: Apache-2.0 */
/* attention_plan.c: see attention_plan.h. */
#include "kernels/cudnn/attention_plan.h"

#include <math.h>
#include <string.h>

struct attention_plan {
    struct kg_problem problem;
    struct attention_strides strides;
    struct descriptors descriptors; /* all that the plan is made of */
    cudnn_descriptor plan;
    int64_t workspace_bytes;
    uint64_t last_used;
};

/* More than the verification of a case needs; past that the one that was not used for longest makes
 * room. */
enum { PLANS_MAX = 256, CONFIGURATIONS_MAX = 8 };

static struct attention_plan plans[PLANS_MAX];
static unsigned n_plans;
static uint64_t uses;
static cudnn_handle handle;

enum kg_status attention_open(void)
{
    const struct descriptors created = {.status = cudnn_api()->cudnnCreate(&handle)};
    return descriptors_status(&created);
}

void attention_close(void)
{
    for (unsigned i = 0; i < n_plans; i++)
        descriptors_free(&plans[i].descriptors);
    n_plans = 0;
    if (handle)
        (void)cudnn_api()->cudnnDestroy(handle);
    handle = NULL;
}

/* ---- making a plan ---- */

/* The engines that cuDNN expects to serve the graph, the fastest first; returns their number. */
static int64_t ask_heuristics(struct descriptors *list, cudnn_descriptor graph,
                              cudnn_descriptor found[CONFIGURATIONS_MAX])
{
    int64_t n = 0;
    cudnn_descriptor heuristics = descriptor_new(list, KCUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    descriptor_link(list, heuristics, KCUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    descriptor_set_int(list, heuristics, KCUDNN_ATTR_ENGINEHEUR_MODE, KCUDNN_TYPE_HEUR_MODE,
                       KCUDNN_HEUR_MODE_A);
    descriptor_finish(list, heuristics);
    for (int i = 0; i < CONFIGURATIONS_MAX; i++)
        found[i] = descriptor_new(list, KCUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (list->status == KCUDNN_STATUS_SUCCESS)
        list->status = cudnn_api()->cudnnBackendGetAttribute(
            heuristics, KCUDNN_ATTR_ENGINEHEUR_RESULTS, KCUDNN_TYPE_BACKEND_DESCRIPTOR,
            CONFIGURATIONS_MAX, &n, found);
    if (list->status != KCUDNN_STATUS_SUCCESS || n < 0)
        return 0;
    return n < CONFIGURATIONS_MAX ? n : CONFIGURATIONS_MAX;
}

/* Compiles the engine's kernel. */
static cudnn_descriptor make_plan(struct descriptors *list, cudnn_descriptor configuration)
{
    cudnn_descriptor plan = descriptor_new(list, KCUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    descriptor_set(list, plan, KCUDNN_ATTR_EXECUTION_PLAN_HANDLE, KCUDNN_TYPE_HANDLE, 1, &handle);
    descriptor_link(list, plan, KCUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    descriptor_finish(list, plan);
    return plan;
}

static enum kg_status build(struct attention_plan *a)
{
    struct descriptors *list = &a->descriptors;
    cudnn_descriptor found[CONFIGURATIONS_MAX];
    int64_t count = 0;
    const int64_t n =
        ask_heuristics(list, attention_graph(list, handle, &a->problem, &a->strides), found);
    if (list->status == KCUDNN_STATUS_SUCCESS && n == 0)
        return KG_UNSUPPORTED;
    for (int64_t i = 0; i < n; i++) {
        list->status = KCUDNN_STATUS_SUCCESS; /* whatever the engine before said */
        a->plan = make_plan(list, found[i]);
        if (list->status == KCUDNN_STATUS_SUCCESS)
            list->status = cudnn_api()->cudnnBackendGetAttribute(
                a->plan, KCUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, KCUDNN_TYPE_INT64, 1, &count,
                &a->workspace_bytes);
        if (list->status == KCUDNN_STATUS_SUCCESS)
            break;
    }
    return descriptors_status(list);
}

/* ---- keeping plans ---- */

/* The scale is given with each launch. */
static bool is_for(const struct attention_plan *a, const struct kg_problem *p,
                   const struct attention_strides *s)
{
    const struct kg_problem *mine = &a->problem;
    return mine->dtype == p->dtype && mine->flags == p->flags && mine->batch == p->batch &&
           mine->heads == p->heads && mine->kv_heads == p->kv_heads &&
           mine->seqlen_q == p->seqlen_q && mine->seqlen_kv == p->seqlen_kv &&
           mine->head_dim == p->head_dim && memcmp(&a->strides, s, sizeof(*s)) == 0;
}

static struct attention_plan *make_room(void)
{
    struct attention_plan *oldest = &plans[0];
    if (n_plans < PLANS_MAX)
        return &plans[n_plans++];
    for (unsigned i = 1; i < n_plans; i++)
        if (plans[i].last_used < oldest->last_used)
            oldest = &plans[i];
    descriptors_free(&oldest->descriptors);
    return oldest;
}

enum kg_status attention_plan(const struct kg_problem *p, const struct attention_strides *s,
                              const struct attention_plan **out)
{
    struct attention_plan made = {.problem = *p, .strides = *s};
    for (unsigned i = 0; i < n_plans; i++)
        if (is_for(&plans[i], p, s)) {
            plans[i].last_used = ++uses;
            *out = &plans[i];
            return KG_OK;
        }
    const enum kg_status status = build(&made);
    if (status != KG_OK) {
        descriptors_free(&made.descriptors);
        return status;
    }
    made.last_used = ++uses;
    struct attention_plan *kept = make_room();
    *kept = made;
    *out = kept;
    return KG_OK;
}

uint64_t attention_workspace_bytes(const struct attention_plan *plan)
{
    return (uint64_t)plan->workspace_bytes;
}

/* ---- executing ---- */

/* Values are read before this returns, so they may lie on the stack. */
enum kg_status attention_execute(const struct attention_plan *plan,
                                 const struct attention_operands *o)
{
    const struct kg_problem *p = &plan->problem;
    float scale = o->scale, hidden = -INFINITY;
    int32_t seqlen_q = (int32_t)p->seqlen_q, seqlen_kv = (int32_t)p->seqlen_kv;
    static const int64_t uids[] = {UID_Q,     UID_K,      UID_V,        UID_O,
                                   UID_SCALE, UID_HIDDEN, UID_SEQLEN_Q, UID_SEQLEN_KV};
    void *const data[] = {o->q, o->k, o->v, o->o, &scale, &hidden, &seqlen_q, &seqlen_kv};
    const int64_t n = attention_is_shifted(p) ? 8 : attention_is_masked(p) ? 6 : 5;
    struct descriptors list = {0};

    list.status = cudnn_api()->cudnnSetStream(handle, o->stream);
    cudnn_descriptor pack = descriptor_new(&list, KCUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    descriptor_set(&list, pack, KCUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, KCUDNN_TYPE_INT64, n, uids);
    descriptor_set(&list, pack, KCUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, KCUDNN_TYPE_VOID_PTR, n,
                   data);
    descriptor_set(&list, pack, KCUDNN_ATTR_VARIANT_PACK_WORKSPACE, KCUDNN_TYPE_VOID_PTR, 1,
                   &o->workspace);
    descriptor_finish(&list, pack);
    if (list.status == KCUDNN_STATUS_SUCCESS)
        list.status = cudnn_api()->cudnnBackendExecute(handle, plan->plan, pack);
    descriptors_free(&list);
    return descriptors_status(&list);
}
