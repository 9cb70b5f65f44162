/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceilings.h: what this device reaches at best, here and now: by the gate's own kernels, which do
 * nothing but read, copy or multiply (device_ceiling_run).
 *
 * Each kind works for 100 ms, so that the power limit acts as it does on a kernel under test, then
 * 25 samples of 1 ms are taken, without a pause. Their median is the ceiling.
 */
#ifndef GATE_WORKER_CEILINGS_H
#define GATE_WORKER_CEILINGS_H

#include "gate/device/device.h"
#include "gate/document/document.h"

/* GATE_ENVIRONMENT: the device has no such kernels, one of them has a wrong result or no time, or
 * is more than 5 % faster than the data sheet says that the chip is. */
enum gate_status ceilings_measure(struct device *d, struct document_ceilings *out,
                                  struct gate_error *err);

#endif
