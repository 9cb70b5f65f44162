/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_put_run.h: the row of a run, and the place of its commit. Not for the store's users.
 */
#ifndef GATE_STORE_STORE_PUT_RUN_H
#define GATE_STORE_STORE_PUT_RUN_H

#include "gate/document/document.h"
#include "gate/store/store.h"

/* In a transaction. *place_ms: of its commit, outside of a repository its time. */
enum gate_status store_put_run_row(struct store *s, const struct document *d, int64_t *run_id,
                                   int64_t *place_ms, struct gate_error *err);

#endif
