#include "tests/fuzz/history.h"

#include "gate/base/json.h"
#include "tests/fuzz/edits.h"

struct store *fuzz_history(const struct sample_plan *plan, int n)
{
    struct store *store = NULL;
    struct gate_error err = {0};
    enum gate_status status = store_open(fuzz_file("gate.db"), STORE_READ_WRITE, &store, &err);
    for (int i = 0; i < n && status == GATE_OK; i++) {
        struct buf text;
        bool existed;
        cJSON *run = sample_run(plan, i);
        buf_init(&text, STORE_MAX_DOCUMENT);
        json_write(run, false, &text);
        status = store_put_run(store, run, text.data, text.len, &existed, &err);
        buf_release(&text);
        cJSON_Delete(run);
    }
    fuzz_expect(status == GATE_OK, "a store", err.message);
    return store;
}
