/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_fwd.h: the attention forward kernels of this library, for its table.
 *
 * Order matters: those for Hopper first, then splitkv. Each serves only what it is better at, and
 * its supports() says no to the rest; mma serves everything.
 */
#ifndef KG_ATTENTION_FWD_H
#define KG_ATTENTION_FWD_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct kg_kernel kg_attention_fwd_decode_sm90;
extern const struct kg_kernel kg_attention_fwd_splitkv;
extern const struct kg_kernel kg_attention_fwd_latency_sm90;
extern const struct kg_kernel kg_attention_fwd_resident_sm90;
extern const struct kg_kernel kg_attention_fwd_short_sm90;
extern const struct kg_kernel kg_attention_fwd_long_sm90;
extern const struct kg_kernel kg_attention_fwd_split_sm90;
extern const struct kg_kernel kg_attention_fwd_mma;

#ifdef __cplusplus
}
#endif

#endif
