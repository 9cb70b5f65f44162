/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_care.h: what a history of years needs: fewer raw samples, to know that it is sound, a
 * copy while it is in use, and the way back.
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

/*
 * Copies the file as it is, in one state, to `path`, which must not exist. Until it is whole it is
 * PATH.part, which does not stay. store_state() of a copy is never that of another.
 */
enum gate_status store_backup(struct store *s, const char *path, struct gate_error *err);

/*
 * Copies a backup to `path`, which must not exist, if store_check() finds nothing in it. GATE_IO,
 * after the faults were told, when it does.
 */
enum gate_status store_restore(const char *backup, const char *path, store_fault_fn fn,
                               void *context, struct gate_error *err);

#endif
