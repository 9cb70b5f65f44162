/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed_store.c: puts a made-up history into a database, for tests of what reads one.
 *
 *     seed_store FILE [RUNS [CASES [DEVICES [SEED]]]]
 *
 * prints one uuid a run, oldest first, each when it is stored. Runs that are there already are
 * left alone, so a second call with more RUNS and the same SEED is not a longer history: the plan
 * decides where its steps are. 60 runs of 3334 cases on one device are 10,000 series.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/json.h"
#include "tests/tools/sample_devices.h"
#include "tests/tools/sample_put.h"
#include "tests/tools/sample_runs.h"
#include "gate/store/store.h"

static int argument(int argc, char **argv, int i, long otherwise)
{
    if (argc <= i)
        return (int)otherwise;
    char *end;
    long value = strtol(argv[i], &end, 10);
    if (*end != '\0' || end == argv[i] || value < 0 || value > 1000000) {
        fprintf(stderr, "seed_store: '%s' is not a count\n", argv[i]);
        exit(GATE_USAGE);
    }
    return (int)value;
}

static enum gate_status put(struct store *store, const struct sample_plan *plan, int index,
                            struct gate_error *err)
{
    cJSON *run = sample_run(plan, index);
    enum gate_status status = sample_put(store, run, NULL, err);
    if (status == GATE_OK) {
        printf("%s\n", json_string(run, "uuid", ""));
        fflush(stdout);
    }
    cJSON_Delete(run);
    return status;
}

int main(int argc, char **argv)
{
    bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
    if (argc < 2 || argc > 6 || argv[1][0] == '-') {
        fprintf(help ? stdout : stderr, "usage: seed_store FILE [RUNS [CASES [DEVICES [SEED]]]]\n");
        if (help)
            return GATE_OK;
        return GATE_USAGE;
    }
    struct sample_plan plan = {
        .n_runs = argument(argc, argv, 2, 40),
        .n_cases = argument(argc, argv, 3, 12),
        .n_devices = argument(argc, argv, 4, 2),
        .seed = (uint64_t)argument(argc, argv, 5, 1),
    };
    if (plan.n_devices < 1 || plan.n_devices > SAMPLE_MAX_DEVICES) {
        fprintf(stderr, "seed_store: there are 1 to %d devices\n", SAMPLE_MAX_DEVICES);
        return GATE_USAGE;
    }
    struct gate_error err = {0};
    struct store *store = NULL;
    enum gate_status status = store_open(argv[1], STORE_READ_WRITE, &store, &err);
    for (int i = 0; i < plan.n_runs && status == GATE_OK; i++)
        status = put(store, &plan, i, &err);
    store_close(store);
    if (status != GATE_OK)
        fprintf(stderr, "seed_store: %s\n", err.message);
    return (int)status;
}
