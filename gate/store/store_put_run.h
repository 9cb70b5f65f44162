/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_put_run.h: the row of a run, and the order of commits: a run is where its commit is,
 * whenever it was measured. Not for the store's users.
 */
#ifndef GATE_STORE_STORE_PUT_RUN_H
#define GATE_STORE_STORE_PUT_RUN_H

#include "gate/document/document.h"
#include "gate/store/store.h"

/*
 * Notes a document's commit and its first parents, and moves what was stored of them where the
 * history says now. *revision_id is 0 outside of a repository, where *place_ms is the run's time.
 * Both of these are called in a transaction.
 */
enum gate_status store_place(struct store *s, const struct document *document, int64_t *revision_id,
                             int64_t *place_ms, struct gate_error *err);
enum gate_status store_put_run_row(struct store *s, const struct document *d, int64_t *run_id,
                                   int64_t *place_ms, struct gate_error *err);

#endif
