/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/bisect/search.h"

struct search search_of(const enum search_state *states, size_t n)
{
    struct search s = {.bad = n - 1};
    for (size_t i = n; i-- > 0;)
        if (states[i] == SEARCH_BAD)
            s.bad = i;
    for (size_t i = 0; i < s.bad; i++)
        if (states[i] == SEARCH_GOOD)
            s.good = i;
    for (size_t i = s.good + 1; i < s.bad; i++)
        s.n_unknown += states[i] == SEARCH_UNKNOWN;
    return s;
}

bool search_next(const enum search_state *states, size_t n, size_t *next)
{
    struct search s = search_of(states, n);
    size_t middle = s.good + (s.bad - s.good) / 2;
    for (size_t away = 0; s.n_unknown > 0; away++) {
        if (middle >= s.good + away + 1 && states[middle - away] == SEARCH_UNKNOWN) {
            *next = middle - away;
            return true;
        }
        if (middle + away < s.bad && states[middle + away] == SEARCH_UNKNOWN) {
            *next = middle + away;
            return true;
        }
    }
    return false;
}
