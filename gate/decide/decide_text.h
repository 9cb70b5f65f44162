/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide_text.h: parts of the sentence that gives the reason of a verdict.
 */
#ifndef GATE_DECIDE_DECIDE_TEXT_H
#define GATE_DECIDE_DECIDE_TEXT_H

#include "gate/decide/decide_view.h"

struct decide_text {
    char s[160];
};

struct decide_text decide_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Of d, a logarithm. */
double decide_percent(double d);

/* "+0.10 % (-0.05 to +0.20)" */
struct decide_text decide_change(struct estimate d);

/* "3.10 % (2.95 to 3.30)", without a sign: the text before it gives the direction. */
struct decide_text decide_amount(struct estimate d);

/* "slower by 3.10 % (2.95 to 3.30) in 5 processes" */
struct decide_text decide_difference(const struct decide_view *v);

/* Why a look is open: the interval contains the threshold, is above it by no more than the floor,
 * or is below it with too wide a spread. */
struct decide_text decide_open(const struct decide_input *in, const struct decide_view *v);

/* Why it stays open; empty while more processes are to follow. */
struct decide_text decide_resolution(const struct decide_input *in, const struct decide_view *v);

#endif
