/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide_input.h: input that no measurement gives.
 */
#ifndef GATE_DECIDE_DECIDE_INPUT_H
#define GATE_DECIDE_DECIDE_INPUT_H

#include "gate/decide/decide_text.h"

/* Whether this can be d of a process: a ratio of a million is no measurement, nor is a NaN. */
bool decide_is_measured(double d);

/* What is wrong with the input; empty: nothing. */
struct decide_text decide_fault(const struct decide_input *in);

#endif
