/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_care.h: what a history of years needs: fewer raw samples, and to know that it is sound.
 */
#ifndef GATE_STORE_STORE_CARE_H
#define GATE_STORE_STORE_CARE_H

#include "gate/store/store.h"

/*
 * Drops the raw samples (samples_ns) from documents of runs that began before `before_ms`, at most
 * max_runs of them, each in a write of its own; all else stays, and the document says when
 * (thinned_ms). *n_thinned is less than max_runs when nothing is left to do. The file does not get
 * shorter: the room is used for what comes.
 */
enum gate_status store_thin(struct store *s, int64_t before_ms, int64_t now_ms, int64_t max_runs,
                            int64_t *n_thinned, struct gate_error *err);

/* One fault, as a line of text. */
typedef void (*store_fault_fn)(void *context, const char *fault);

/*
 * Looks for damage: SQLite's own checks, then what the tables tell of each other, then whether each
 * document is there and has the bytes that came. Reads the whole file. GATE_OK, also when there are
 * faults: *n_faults of them were told, and no more than 100.
 */
enum gate_status store_check(struct store *s, store_fault_fn fn, void *context, int *n_faults,
                             struct gate_error *err);

#endif
