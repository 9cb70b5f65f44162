/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide_input.h: input that no measurement gives.
 */
#ifndef GATE_DECIDE_DECIDE_INPUT_H
#define GATE_DECIDE_DECIDE_INPUT_H

#include "gate/decide/decide_text.h"

/* Can this be d of a process? A ratio of a million or a NaN cannot. */
bool decide_is_measured(double d);

/* What is wrong with the input; empty: nothing. */
struct decide_text decide_fault(const struct decide_input *in);

#endif
