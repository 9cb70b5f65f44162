/*
 * store_since.h: what the newest points of a case tell: its curve in small, and since when it is as
 * bad as it is. Part of the store.
 */
#ifndef SERVER_STORE_STORE_SINCE_H
#define SERVER_STORE_STORE_SINCE_H

#include "store_scope.h"

/* The p50 of the newest points of a series that are within the scope. */
enum gate_status store_spark(struct store *s, struct scope_runs *scope, int64_t series_id,
                             struct store_case *row, struct gate_error *err);

/*
 * row->since of a case whose newest result is a regression or wrong: the first run of the scope
 * from which on there was no other verdict; a run without a verdict (no-verdict, environment) ends
 * no stretch. Not known where the newest verdict within the scope is another one, and where the
 * stretch is longer than the newest points of which so much is read.
 */
enum gate_status store_since(struct store *s, struct scope_runs *scope, int64_t series_id,
                             struct store_case *row, struct gate_error *err);

#endif
