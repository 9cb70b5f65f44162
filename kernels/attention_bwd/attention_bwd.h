/* SPDX-License-Identifier: Apache-2.0 */
/* attention_bwd.h: the attention backward kernels of this library, for its table. */
#ifndef KG_ATTENTION_BWD_H
#define KG_ATTENTION_BWD_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct kg_kernel kg_attention_bwd_sm90;

#ifdef __cplusplus
}
#endif

#endif
