/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.h: a small history for the targets that ask the store.
 */
#ifndef TESTS_FUZZ_HISTORY_H
#define TESTS_FUZZ_HISTORY_H

#include "gate/store/store.h"
#include "tests/tools/sample_runs.h"

/* A store in a folder of its own, with the first n runs of the plan; it lives to the end. */
struct store *fuzz_history(const struct sample_plan *plan, int n);

#endif
