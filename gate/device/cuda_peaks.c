/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_peaks.c: datasheet peak rates of the chips that the project knows. */
#include "gate/device/device.h"

#include <stdbool.h>
#include <string.h>

/*
 * Dense rates in TFLOP/s and GB/s, with sums in fp32, from NVIDIA's datasheets of these chips; the
 * Blackwell ones from "HGX" (B200, B300) and "GB200 NVL72" and "GB300 NVL72", the RTX ones from
 * the whitepapers of their architecture. Where a datasheet prints the rate with sparsity alone,
 * half of it. They hold at the datasheet's boost clock; a chip that is not limited by power may run
 * its tensor cores a few per cent above that clock. A rate of 0 is not known, or there is none.
 *
 * A row matches when the device's name contains all its words; the first row that matches wins, so
 * the more particular ones come first. A row of zeros keeps a chip that is slower than its name
 * says from the row below.
 */
static const struct {
    const char *words[3];
    double fp16_tflops, tf32_tflops, fp32_tflops, gb_per_s;
} chips[] = {
    {{"GB300"}, 2500, 1250, 80, 8000},
    {{"GB200"}, 2500, 1250, 80, 8000},
    {{"B300"}, 2250, 1125, 75, 8000},
    {{"B200"}, 2250, 1125, 75, 7700},
    {{"GH200", "HBM3e"}, 989.5, 494.5, 67.0, 4900},
    {{"GH200", "480GB"}, 989.5, 494.5, 67.0, 4000},
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
    {{"A10"}, 125.0, 62.5, 31.2, 600},
    {{"T4"}, 65.0, 0, 8.1, 320},
    {{"RTX 5090", "D"}, 0, 0, 0, 0},
    {{"RTX 5090", "Laptop"}, 0, 0, 0, 0},
    {{"RTX 5090"}, 209.5, 104.8, 104.8, 1792},
    {{"RTX PRO 6000", "Max-Q"}, 0, 0, 0, 0},
    {{"RTX PRO 6000", "Workstation"}, 503.8, 251.9, 126.0, 1792},
};

static bool ends_word(char c)
{
    return c == '\0' || c == ' ' || c == '-';
}

/* Whole words only: "NVIDIA L40" is no L4, and "NVIDIA GH200" no H200. */
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
