/* SPDX-License-Identifier: Apache-2.0 */
/* rmsnorm.h: the RMSNorm kernel of this library, for its table. */
#ifndef KG_RMSNORM_H
#define KG_RMSNORM_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct kg_kernel kg_rmsnorm;

#ifdef __cplusplus
}
#endif

#endif
