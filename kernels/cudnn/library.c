/* SPDX-License-Identifier: Apache-2.0 */
/* library.c: the provider "cudnn": the table of kernel.h, opening and closing. */
#include <stdio.h>

#include "kernels/cudnn/attention_plan.h"

extern const struct kg_kernel cudnn_attention_fwd; /* attention_fwd.c */

static enum kg_status open_handle(const struct kg_device *d, const struct kg_file *files)
{
    (void)files;
    if (d->kind != KG_DEVICE_CUDA || !cudnn_api())
        return KG_UNSUPPORTED;
    return attention_open();
}

/* The version that was found, since that is what is measured. */
static const char *version(void)
{
    static char text[64];
    if (!cudnn_api())
        return "cuDNN not found";
    const size_t v = cudnn_api()->cudnnGetVersion();
    snprintf(text, sizeof(text), "cuDNN %zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
    return text;
}

KG_EXPORT const struct kg_library *kg_library(void)
{
    static const struct kg_kernel *const kernels[] = {&cudnn_attention_fwd};
    static struct kg_library library = {
        .struct_bytes = sizeof(struct kg_library),
        .abi_version = KG_ABI_VERSION,
        .provider = "cudnn",
        .device_kind = KG_DEVICE_CUDA,
        .n_kernels = sizeof(kernels) / sizeof(kernels[0]),
        .kernels = kernels,
        .open = open_handle,
        .close = attention_close,
    };
    library.version = version();
    return &library;
}
