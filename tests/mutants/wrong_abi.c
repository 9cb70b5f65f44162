/* SPDX-License-Identifier: Apache-2.0 */
/* A table of an ABI that does not exist. */
#include "kernels/problem.h"

static const struct kg_library library = {
    .struct_bytes = sizeof library,
    .abi_version = KG_ABI_VERSION + 1,
    .provider = "mutant",
    .version = "1",
    .device_kind = KG_DEVICE_HOST,
};

KG_EXPORT const struct kg_library *kg_library(void)
{
    return &library;
}
