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
    int n_devices; /* 1: a GPU; 2: a host as well, every second run */
};

/*
 * The run of that index, 0 the oldest; the caller's (cJSON_Delete). Over the history case 0 has a
 * step of +6 % at two thirds that stays, case 1 an improvement at a half, and in the newest run of
 * each device case 2 is wrong and case 3 has no verdict. The GPU's cases are paired with the best's
 * library, the host's held against its number; the newest run of the GPU has a calibration.
 */
cJSON *sample_run(const struct sample_plan *plan, int index);

#endif
