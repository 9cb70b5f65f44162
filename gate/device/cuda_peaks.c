/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_peaks.c: see cuda_peaks.h. */
#include "gate/device/cuda_peaks.h"

#include <stdbool.h>
#include <string.h>

/*
 * Dense rates in TFLOP/s and GB/s, from NVIDIA's datasheets "A100 Tensor Core GPU", "L4 Tensor Core
 * GPU", "L40S", "H100 Tensor Core GPU" and "H200 Tensor Core GPU". Where a datasheet prints the
 * rate with sparsity alone, half of it. They hold at the datasheet's boost clock; a chip that is
 * not limited by power may run its tensor cores a few per cent above that clock.
 *
 * A row matches when the device's name contains all its words; the first row that matches wins, so
 * the more particular ones come first.
 */
static const struct {
    const char *words[3];
    double fp16_tflops, tf32_tflops, fp32_tflops, gb_per_s;
} chips[] = {
    {{"H200", "NVL"}, 835.5, 417.5, 60.0, 4800},
    {{"H200"}, 989.5, 494.5, 67.0, 4800},
    {{"H100", "NVL"}, 835.5, 417.5, 60.0, 3900},
    {{"H100", "PCIe"}, 756.5, 378.0, 51.0, 2000},
    {{"H100", "80GB", "HBM3"}, 989.5, 494.5, 67.0, 3350},
    {{"A100", "SXM4", "40GB"}, 312.0, 156.0, 19.5, 1555},
    {{"A100", "SXM4", "80GB"}, 312.0, 156.0, 19.5, 2039},
    {{"A100", "PCIE", "40GB"}, 312.0, 156.0, 19.5, 1555},
    {{"A100", "80GB", "PCIe"}, 312.0, 156.0, 19.5, 1935},
    {{"L40S"}, 362.0, 183.0, 91.6, 864},
    {{"NVIDIA L4"}, 121.0, 60.0, 30.3, 300},
};

static bool ends_word(char c)
{
    return c == '\0' || c == ' ' || c == '-';
}

/* Whole words only: neither "NVIDIA L40" nor "NVIDIA GH200" is one of ours. */
static bool has_word(const char *name, const char *word)
{
    const size_t len = strlen(word);
    for (const char *at = strstr(name, word); at; at = strstr(at + 1, word))
        if (ends_word(at == name ? '\0' : at[-1]) && ends_word(at[len]))
            return true;
    return false;
}

struct device_peaks cuda_peaks(const char *name)
{
    if (has_word(name, "MIG")) /* a slice of a chip */
        return (struct device_peaks){0};
    for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
        bool match = true;
        for (size_t w = 0; w < 3 && chips[i].words[w]; w++)
            match = match && has_word(name, chips[i].words[w]);
        if (match)
            return (struct device_peaks){
                .fp16_flops = chips[i].fp16_tflops * 1e12,
                .tf32_flops = chips[i].tf32_tflops * 1e12,
                .fp32_flops = chips[i].fp32_tflops * 1e12,
                .bytes_per_s = chips[i].gb_per_s * 1e9,
            };
    }
    return (struct device_peaks){0};
}
