/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/history.h"

#include "tests/fuzz/edits.h"
#include "tests/tools/sample_put.h"

struct store *fuzz_history(const struct sample_plan *plan, int n)
{
    struct store *store = NULL;
    struct gate_error err = {0};
    enum gate_status status = store_open(fuzz_file("gate.db"), STORE_READ_WRITE, &store, &err);
    for (int i = 0; i < n && status == GATE_OK; i++) {
        cJSON *run = sample_run(plan, i);
        status = sample_put(store, run, NULL, &err);
        cJSON_Delete(run);
    }
    fuzz_expect(status == GATE_OK, "a store", err.message);
    return store;
}
