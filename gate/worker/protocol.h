/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protocol.h: limits of the worker protocol (PROTOCOL.md) that both sides keep.
 */
#ifndef GATE_WORKER_PROTOCOL_H
#define GATE_WORKER_PROTOCOL_H

#include "gate/base/process.h"

#define PROTOCOL_LINE_MAX PROCESS_LINE_MAX
#define PROTOCOL_BASELINES_MAX 6
#define PROTOCOL_SHARES_MAX 16
#define PROTOCOL_SAMPLES_MIN 8 /* of an arm that is timed: four rounds */

#endif
