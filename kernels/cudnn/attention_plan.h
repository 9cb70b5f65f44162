/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_plan.h: attention forward planned once for a problem and a layout, executed many times.
 */
#ifndef KG_CUDNN_ATTENTION_PLAN_H
#define KG_CUDNN_ATTENTION_PLAN_H

#include "kernels/cudnn/attention_graph.h"

struct attention_plan;

struct attention_operands {
    void *q, *k, *v, *o;
    float scale;
    void *workspace;
    void *stream;
};

enum kg_status attention_open(void);
void attention_close(void);

/* Finds the plan of a layout in the list at *plans, or makes it and puts it at the end: the first
 * of the engines that cuDNN's heuristics name which takes the problem. KG_UNSUPPORTED: none does.
 * All plans of a list are of one problem. */
enum kg_status attention_plan(const struct attention_sizes *p, const struct attention_strides *s,
                              struct attention_plan **plans, const struct attention_plan **out);

/* Frees a list of plans. */
void attention_release(void *plans);

uint64_t attention_workspace_bytes(const struct attention_plan *plan);

enum kg_status attention_execute(const struct attention_plan *plan,
                                 const struct attention_operands *o);

#endif
