/* SPDX-License-Identifier: Apache-2.0 */
/* attention_plan.c: see attention.h. */
#include "kernels/cudnn/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct attention_plan {
    struct attention_plan *next;
    struct attention_sizes problem;
    struct attention_strides strides;
    struct descriptors descriptors; /* all that the plan is made of */
    cudnn_descriptor plan;
    int64_t workspace_bytes;
};

enum { CONFIGURATIONS_MAX = 8 };

static cudnn_handle handle;

enum kg_status attention_open(void)
{
    const struct descriptors created = {.status = cudnn_api()->cudnnCreate(&handle)};
    return descriptors_status(&created);
}

void attention_close(void)
{
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

enum kg_status attention_plan(const struct attention_sizes *p, const struct attention_strides *s,
                              struct attention_plan **plans, const struct attention_plan **out)
{
    for (; *plans; plans = &(*plans)->next)
        if (!memcmp(&(*plans)->strides, s, sizeof(*s))) {
            *out = *plans;
            return KG_OK;
        }
    struct attention_plan *made = calloc(1, sizeof(*made));
    if (!made)
        return KG_LAUNCH_FAILED;
    made->problem = *p;
    made->strides = *s;
    const enum kg_status status = build(made);
    if (status != KG_OK)
        attention_release(made);
    else
        *out = *plans = made;
    return status;
}

void attention_release(void *plans)
{
    for (struct attention_plan *plan = plans, *next; plan; plan = next) {
        next = plan->next;
        descriptors_free(&plan->descriptors);
        free(plan);
    }
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
    const struct attention_sizes *p = &plan->problem;
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
