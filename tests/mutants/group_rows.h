/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group_rows.h: by which matrix a row of a grouped GEMM is multiplied, and what a fault makes of
 * it; of the host and of CUDA alike. The including file defines STEP, what stands before a
 * function.
 */
#ifndef TESTS_MUTANTS_GROUP_ROWS_H
#define TESTS_MUTANTS_GROUP_ROWS_H

#include <stdint.h>

/* Wrong, and at the end right. */
#define GROUP_FAULTS(ROW)                                                                          \
    ROW(last_row_of_the_next)                                                                      \
    ROW(stops_at_an_empty_group)                                                                   \
    ROW(counts_groups_that_have_rows)                                                              \
    ROW(offsets_of_the_group_before)                                                               \
    ROW(tail_into_the_next_group)                                                                  \
    ROW(b_of_the_group_before)                                                                     \
    ROW(equal_groups)                                                                              \
    ROW(no_more_than_a_tile)                                                                       \
    ROW(offsets_of_the_first_launch)                                                               \
    ROW(groups_by_search)                                                                          \
    ROW(from_the_last_term)

#define GROUP_NUMBER(name) AS_##name,
enum group_how { GROUP_FAULTS(GROUP_NUMBER) };

enum { GROUP_TILE = 64, GROUPS_KEPT = 1024 };

struct groups {
    const int32_t *offsets;
    int64_t n, rows;
    int how;
};

STEP int64_t group_of(const struct groups *g, int64_t row)
{
    int64_t group = 0, end = g->n;
    while (g->how == AS_groups_by_search && end - group > 1)
        if (g->offsets[(group + end) / 2] <= row)
            group = (group + end) / 2;
        else
            end = (group + end) / 2;
    while (g->offsets[group + 1] <= row)
        group++;
    return group;
}

STEP int64_t last_with_rows_before(const struct groups *g, int64_t group)
{
    do
        group--;
    while (group >= 0 && g->offsets[group] == g->offsets[group + 1]);
    return group;
}

STEP int64_t count_with_rows_before(const struct groups *g, int64_t group)
{
    int64_t n = 0;
    while (group-- > 0)
        n += g->offsets[group] < g->offsets[group + 1];
    return n;
}

/* Rows that the last tile of a group has behind its end. */
STEP int64_t rows_behind(const struct groups *g, int64_t group)
{
    const int64_t rows = group < 0 ? 0 : g->offsets[group + 1] - g->offsets[group];
    return (GROUP_TILE - rows % GROUP_TILE) % GROUP_TILE;
}

/* The number of its matrix; -1: the row is not computed. */
STEP int64_t matrix_of(const struct groups *g, int64_t row)
{
    const int64_t group = group_of(g, row), at = row - g->offsets[group];
    const int64_t before = last_with_rows_before(g, group);
    switch (g->how) {
    case AS_last_row_of_the_next:
        return row + 1 == g->offsets[group + 1] && group + 1 < g->n ? group + 1 : group;
    case AS_stops_at_an_empty_group:
        return count_with_rows_before(g, group) < group ? -1 : group;
    case AS_counts_groups_that_have_rows:
        return count_with_rows_before(g, group);
    case AS_offsets_of_the_group_before:
        return group + 1 < g->n ? group + 1 : -1;
    case AS_tail_into_the_next_group:
        return at < rows_behind(g, before) ? before : group;
    case AS_b_of_the_group_before:
        return group ? group - 1 : 0;
    case AS_equal_groups:
        return row / ((g->rows + g->n - 1) / g->n);
    case AS_no_more_than_a_tile:
        return at < GROUP_TILE ? group : -1;
    default:
        return group;
    }
}

#endif
