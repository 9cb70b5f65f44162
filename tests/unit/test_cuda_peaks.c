/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda_peaks.c: chips are told apart by their names. */
#include "gate/device/device.h"
#include "tests/unit/unit.h"

TEST(every_chip_by_its_driver_name)
{
    static const struct {
        const char *name;
        int gb_per_s, fp16_tflops;
    } chips[] = {
        {"NVIDIA A100-SXM4-40GB", 1555, 312},
        {"NVIDIA A100-SXM4-80GB", 2039, 312},
        {"NVIDIA A100-PCIE-40GB", 1555, 312},
        {"NVIDIA A100 80GB PCIe", 1935, 312},
        {"NVIDIA L4", 300, 121},
        {"NVIDIA L40S", 864, 362},
        {"NVIDIA H100 80GB HBM3", 3350, 989},
        {"NVIDIA H100 PCIe", 2000, 756},
        {"NVIDIA H100 NVL", 3900, 835},
        {"NVIDIA H200", 4800, 989},
        {"NVIDIA H200 NVL", 4800, 835},
        {"NVIDIA GH200 480GB", 4000, 989},
        {"NVIDIA GH200 144G HBM3e", 4900, 989},
        {"NVIDIA B200", 7700, 2250},
        {"NVIDIA GB200", 8000, 2500},
        {"NVIDIA B300 SXM6 AC", 8000, 2250},
        {"NVIDIA GB300", 8000, 2500},
        {"NVIDIA A10", 600, 125},
        {"Tesla T4", 320, 65},
        {"NVIDIA GeForce RTX 5090", 1792, 209},
        {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 1792, 503},
    };
    for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
        struct device_peaks peaks = cuda_peaks(chips[i].name);
        assert_int_equal((int)(peaks.bytes_per_s / 1e9 + 0.5), chips[i].gb_per_s);
        assert_int_equal((int)(peaks.fp16_flops / 1e12), chips[i].fp16_tflops);
        assert_true(peaks.fp16_flops > peaks.tf32_flops && peaks.fp32_flops > 0.0);
    }
}

/* No guess for a chip whose name merely begins or ends like a known one. */
TEST(other_chips_are_not_known)
{
    static const char *const names[] = {
        "NVIDIA L40",
        "NVIDIA H800",
        "NVIDIA H100",
        "NVIDIA A100X",
        "NVIDIA H20",
        "NVIDIA A10G",
        "NVIDIA GeForce RTX 5090 D",
        "NVIDIA GeForce RTX 5090 Laptop GPU",
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_true(cuda_peaks(names[i]).bytes_per_s == 0.0);
}
