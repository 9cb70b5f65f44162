/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_place.h: the order of commits. A run is where its commit is, whenever it was measured.
 */
#ifndef GATE_STORE_STORE_PLACE_H
#define GATE_STORE_STORE_PLACE_H

#include "gate/store/store.h"

/*
 * Notes a document's commit and its first parents, and moves what was stored of them where the
 * history says now. *revision_id is 0 outside of a repository, where *place_ms is the run's time.
 * To be called in a transaction.
 */
enum gate_status store_place(struct store *s, const struct document *document, int64_t *revision_id,
                             int64_t *place_ms, struct gate_error *err);

#endif
