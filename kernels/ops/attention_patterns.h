/* SPDX-License-Identifier: Apache-2.0 */
/* attention_patterns.h: the input patterns of attention. */
#ifndef KG_OPS_ATTENTION_PATTERNS_H
#define KG_OPS_ATTENTION_PATTERNS_H

#include "kernels/ops/pattern.h"

/* The sizes in their order: batches, KV heads, heads, queries, keys, dimension of a head. */
enum { B, G, H, Q, S, D };

#define FAINT_LEAD 64 /* nats, at most, by which a dominant key leads on faint ones */

#define ATTENTION_PATTERNS (9 + PLAIN_PATTERNS)
extern const struct op_pattern attention_patterns[ATTENTION_PATTERNS];

void attention_change(unsigned probe, const struct kg_problem *p, const struct kg_tensor *in,
                      unsigned n_in, uint64_t seed);

#endif
