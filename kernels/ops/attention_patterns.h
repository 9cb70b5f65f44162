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

void attention_change(const struct probing *x);

/* What forward and backward have in common. */
enum { ATTENTION_SIZES = 6, ATTENTION_CLOSEST = 23, ATTENTION_TAILS = 5 };
extern const struct op op_attention_fwd;
extern const struct op_size attention_size_table[ATTENTION_SIZES];
extern const struct op_param attention_scale;
extern const struct op_flag attention_causal;
extern const struct op_shape attention_closest[ATTENTION_CLOSEST];
extern const struct op_shape attention_tails[ATTENTION_TAILS];
void attention_draw(uint64_t *state, const struct kg_problem *own, struct kg_problem *p);
bool attention_inputs_count(const struct kg_problem *p);

/* Keys that query i sees: the first ones, so many. */
static inline int64_t attention_visible(const struct kg_problem *p, int64_t i)
{
    int64_t visible = i + (p->size[S].value - p->size[Q].value) + 1;
    return !(p->flags & KG_FLAG_CAUSAL) ? p->size[S].value : visible < 0 ? 0 : visible;
}

/* Fills Q and K, in[0] and in[1], such that each query finds one key, whose product with it has
 * this size. */
void attention_finish_codes(const struct probing *x);
double attention_retrieval_score(const struct kg_problem *p);

/* What the sum that is a score of so many nats may lose. */
double attention_score_loss(double score, const struct kg_problem *p);

#endif
