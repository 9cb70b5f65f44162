/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_pattern_attention.h: the input patterns that are of attention alone.
 */
#ifndef GATE_VERIFY_VERIFY_PATTERN_ATTENTION_H
#define GATE_VERIFY_VERIFY_PATTERN_ATTENTION_H

#include "gate/verify/pattern_draw.h"
#include "gate/verify/verify_pattern.h"

#define RAMP_SCORE 100.0
#define MASKED_SCORE_MAX 40.0
#define FAINT_LEAD 64
#define STRETCHED 300.0 /* deviation of the scores */
#define STRETCHED_FP32 10.0

/* The problem's scale, or 1 where it is so small or so large that scores could not be made. */
double attention_safe_scale(const struct kg_problem *p);

/* Of PROBE_RAMP to PROBE_FAINT. Its tensors are filled from one seed. */
pattern_fn attention_pattern(enum probe probe);

/* PROBE_RETRIEVAL: each query looks for one key, and finds it by the value that the key has. */
void attention_pattern_retrieval(const struct kg_problem *p, const struct kg_tensor *in,
                                 uint64_t seed);

#endif
