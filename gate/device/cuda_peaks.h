/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_peaks.h: datasheet peak rates of the chips that the project knows.
 */
#ifndef GATE_DEVICE_CUDA_PEAKS_H
#define GATE_DEVICE_CUDA_PEAKS_H

#include "gate/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* By the name that the device gives itself, "NVIDIA H200". All 0 for a chip that is not listed:
 * a wrong ceiling would be worse than none. */
struct device_peaks cuda_peaks(const char *name);

#ifdef __cplusplus
}
#endif

#endif
