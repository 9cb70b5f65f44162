/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_left_out.h: one line on the checks that verification left out, and one on the cases that
 * were checked on their own shape only. Older documents lack this information.
 */
#ifndef GATE_REPORT_REPORT_LEFT_OUT_H
#define GATE_REPORT_REPORT_LEFT_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/base/buf.h"
#include "gate/document/covered.h"
#include "gate/document/document.h"
#include "gate/report/report_table.h"

#define REPORT_MAX_OWN_SHAPE 10 /* cases that are named; the others are counted */

/* Sums over cases; the texts are the documents'. */
struct left_out_sums {
    int64_t not_served, refused, not_guarded, too_large;
    const char *why_not_guarded; /* of the first case that has some; NULL: not known */
    const char *own_shape[REPORT_MAX_OWN_SHAPE]; /* ids */
    int64_t own_shape_only;
    bool most; /* no tier looks at more, so none is recommended */
};

/* `verify`: of the case's candidate; NULL is fine. `sums` starts as {0}. */
void left_out_add(struct left_out_sums *sums, const char *id, const struct document_verify *verify);

/* "12 edge shapes not served, 3 guards not offered (...), 44 shapes too large for their probes (see
 * 'gate verify --tier nightly')"; nothing if all checks were made. Not escaped. */
void left_out_write(const struct left_out_sums *sums, struct buf *out);

/* "2 cases were looked at on their own shape alone, since the kernel takes no other: A, B", each
 * written by `put`; nothing when there is none. */
void left_out_write_own_shape(const struct left_out_sums *sums,
                              void (*put)(const char *text, struct buf *out), struct buf *out);

/* What was covered, by class and op, and pairs of classes of shapes; NULL: documents do not say.
 * The caller's (table_free). */
struct table *covered_table(const struct covered_sums *sums);

/* Both for a terminal, each as a line. */
void left_out_write_lines(const struct left_out_sums *sums, struct buf *out);

#endif
