/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_coverage.h: what the verification of the candidates has covered over all runs, by device
 * model and op. The sums stay at 2^53 - 1.
 */
#ifndef GATE_HISTORY_STORE_COVERAGE_H
#define GATE_HISTORY_STORE_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/base/error.h"
#include "gate/history/store.h"

struct store_coverage {
    const char *device_model, *op;
    int64_t runs, cases;                       /* that said what they covered */
    int64_t checks, shapes, layouts, launches; /* of all */
    int64_t skipped;                           /* checks that could not be made */
    int64_t values, pairs, pairs_of;           /* the most that one case had */
};

typedef bool (*store_coverage_fn)(void *context, const struct store_coverage *row);

/* By device model and op; device_model NULL: all. */
enum gate_status store_coverage(struct store *s, const char *device_model, store_coverage_fn fn,
                                void *context, struct gate_error *err);

#endif
