/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trend_columns.h: the rows of a trend as the API shows them: column by column, or an object a row.
 */
#ifndef SERVER_API_TREND_COLUMNS_H
#define SERVER_API_TREND_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/text/emit.h"
#include "gate/store/store_trend.h"

/* A set of columns, a bit each. */
typedef uint32_t trend_columns;

/* The columns of a list of names with commas between them, NULL: all but those of the chain, and
 * of the commit its hash alone. False: one is not known, or is there twice. */
bool trend_columns_of(const char *names, trend_columns *set);

/* Can they be written without struct store_trend_details? */
bool trend_columns_are_levels(trend_columns set);

/* Is one of them of struct store_trend_query's main_branch? */
bool trend_columns_have_chain(trend_columns set);

/* An object with an array for each column. */
void trend_put_columns(struct emit *e, const struct store_trend_series *s, trend_columns set);

/* The members of an object, of row k. */
void trend_put_row(struct emit *e, const struct store_trend_series *s, size_t k, trend_columns set);

#endif
