/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_runs.h: run documents of a made-up history, for tests of the store, the server and the
 * page. Everything follows from the plan: the same plan gives the same bytes.
 */
#ifndef TESTS_TOOLS_SAMPLE_RUNS_H
#define TESTS_TOOLS_SAMPLE_RUNS_H

#include <cjson/cJSON.h>
#include <stdint.h>

struct sample_plan {
    uint64_t seed;
    int n_runs;
    int n_cases;
    int n_devices; /* 1 to 3, of sample_devices.h, run by run in turn */
};

/*
 * The run of that index, 0 the oldest; the caller's (cJSON_Delete). sample_story.h tells what
 * happens to its cases. A GPU's cases are paired with the baseline's library, the host's compared
 *  with its number; a GPU has calibrations, in the middle and in its newest run, and another
 * driver from three quarters of the history on. The commits follow each other run by run.
 */
cJSON *sample_run(const struct sample_plan *plan, int index);

#endif
