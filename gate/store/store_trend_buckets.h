/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_trend_buckets.h: the rows of a trend in buckets; part of store_trend.c's work.
 */
#ifndef GATE_STORE_STORE_TREND_BUCKETS_H
#define GATE_STORE_STORE_TREND_BUCKETS_H

#include "gate/store/store_trend.h"

/* Replaces the rows of all series by at most query->points buckets each. False: no memory. */
bool trend_to_buckets(const struct store_trend_query *query, struct store_trend_result *trend);

#endif
