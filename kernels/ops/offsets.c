/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ops/offsets.h"

#include <math.h>

#include "kernels/ops/pattern.h"

enum { WAY, ONE, STEP = 3, ALIGN, DRAWS }; /* what is drawn before the groups; arrange.c too */

enum way { RANDOM_GROUPS, EQUAL_GROUPS, ONE_GROUP, FEW_GROUPS, SKEWED, EMPTY_ENDS, WAYS };

/* The share of a group. */
static double weight(enum way way, int64_t group, int64_t groups, uint64_t seed)
{
    const double share = pattern_uniform(seed, DRAWS + group);
    switch (way) {
    case EQUAL_GROUPS:
        return 1;
    case ONE_GROUP:
        return group == (int64_t)(seed_at(seed, ONE) % (uint64_t)groups);
    case FEW_GROUPS:
        return share < 0.25 ? share : 0;
    case SKEWED:
        return exp2(-24 * share);
    case EMPTY_ENDS:
        return group == 0 || group == groups - 1 ? 0 : share;
    default:
        return share;
    }
}

void offsets_draw(const struct kg_tensor *t, int64_t first, int64_t n, int64_t end, bool varied,
                  uint64_t seed)
{
    enum way way = varied ? (enum way)(seed_at(seed, WAY) % WAYS) : RANDOM_GROUPS;
    const int64_t tile =
        varied && seed_at(seed, ALIGN) % 3 == 0 ? (int64_t)8 << seed_at(seed, STEP) % 5 : 1;
    double all = 0, before = 0;
    for (int64_t i = 0; i < n - 1; i++)
        all += weight(way, i, n - 1, seed);
    if (!(all > 0)) { /* where all groups are empty, one of them has all */
        way = ONE_GROUP;
        all = 1;
    }
    pattern_put(t, first, 0);
    for (int64_t i = 1; i < n - 1; i++) {
        before += weight(way, i - 1, n - 1, seed);
        pattern_put(t, first + i, (double)((int64_t)((double)end * (before / all)) / tile * tile));
    }
    pattern_put(t, first + n - 1, (double)end);
}

bool offsets_change(const struct kg_tensor *t, int64_t first, int64_t n, uint64_t seed)
{
    const int64_t at = (int64_t)(seed_at(seed, ONE) % (uint64_t)n);
    if (at == 0 || at == n - 1)
        return false;
    const double value = pattern_get(t, first + at);
    const bool up = value < pattern_get(t, first + at + 1);
    if (!up && value == pattern_get(t, first + at - 1))
        return false;
    pattern_put(t, first + at, up ? value + 1 : value - 1);
    return true;
}
