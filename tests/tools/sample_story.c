/* SPDX-License-Identifier: Apache-2.0 */
/* sample_story.c: see sample_story.h. */
#include "tests/tools/sample_story.h"

#define STEP 1.06
#define GAIN 0.93
#define PASSING_STEP 1.05
#define MODES 1.014
#define ACCEPTED_STEP 1.04
#define DRIFT 0.015

static bool in_second_mode(uint64_t seed, int index)
{
    uint64_t z = (seed + (uint64_t)index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    return (z >> 40 & 3) == 0;
}

/* A share of the history, as the index of a run. */
static int at(int n_runs, int tenths)
{
    return n_runs * tenths / 10;
}

struct sample_moment sample_story(uint64_t seed, int n_runs, int index, int k, bool newest)
{
    struct sample_moment m = {.time = 1, .baseline = 1, .baseline_index = -1};
    switch (k) {
    case 0:
        m.time = index >= n_runs * 2 / 3 ? STEP : 1;
        break;
    case 1:
        m.time = index >= n_runs / 2 ? GAIN : 1;
        if (index > n_runs / 2) {
            m.baseline = GAIN;
            m.baseline_index = n_runs / 2;
        }
        break;
    case 2:
        m.is_wrong = newest;
        break;
    case 3:
        m.has_no_verdict = newest;
        break;
    case 4:
        m.time = index >= n_runs / 4 && index < n_runs / 2 ? PASSING_STEP : 1;
        break;
    case 5:
        m.time = in_second_mode(seed, index) ? MODES : 1;
        break;
    case 6:
        m.time = index >= at(n_runs, 4) ? ACCEPTED_STEP : 1;
        if (index >= at(n_runs, 6)) {
            m.baseline = ACCEPTED_STEP;
            m.baseline_index = at(n_runs, 6) - 1;
        }
        break;
    case 7:
        m.time = 1 + DRIFT * index / n_runs;
        break;
    default:
        break;
    }
    return m;
}
