/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h: which commit of a line of them is to be looked at next.
 *
 * The first is good and the last is bad. A commit that cannot be judged, because it does not build
 * or because the machine was too noisy, is gone round: then several may be left in the end.
 */
#ifndef GATE_BISECT_SEARCH_H
#define GATE_BISECT_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

enum search_state { SEARCH_UNKNOWN, SEARCH_GOOD, SEARCH_BAD, SEARCH_SKIPPED };

struct search {
    size_t good, bad; /* the change is behind `good`, and in `bad` or before it */
    size_t n_unknown; /* between them */
};

/* Of n >= 2 commits; where states contradict each other, by several changes, the first bad one
 * counts. */
struct search search_of(const enum search_state *states, size_t n);

/* The unknown commit that is next to the middle; false: there is none, the search is over. */
bool search_next(const enum search_state *states, size_t n, size_t *next);

#endif
