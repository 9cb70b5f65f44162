/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_story.h: what happens to the cases of a made-up history, from its first run to its last.
 */
#ifndef TESTS_TOOLS_SAMPLE_STORY_H
#define TESTS_TOOLS_SAMPLE_STORY_H

#include <stdbool.h>
#include <stdint.h>

/* What one run finds of one case. */
struct sample_moment {
    double time;        /* over the time at the start of the history */
    double baseline;    /* the same of the stored baseline */
    int baseline_index; /* the run that became the baseline; -1: one before the history */
    bool is_wrong;
    bool has_no_verdict;
};

/*
 * Run `index` of n_runs, case k. By k:
 *     0  a step of +6 % at two thirds, which stays
 *     1  an improvement of 7 % at a half, which becomes the baseline in the next run
 *     2  wrong in the newest run of each device
 *     3  no verdict in the newest run of each device
 *     4  a step of +5 % at a quarter, which comes back at a half
 *     5  two modes, 1.4 % apart
 *     6  a step of +4 % at 0.4, which is accepted at 0.6: the baseline is raised
 *     7  a drift of +1.5 % over the whole history
 * and the others are flat. `newest`: no later run is on the same device.
 */
struct sample_moment sample_story(uint64_t seed, int n_runs, int index, int k, bool newest);

#endif
