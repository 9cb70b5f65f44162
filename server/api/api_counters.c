/* SPDX-License-Identifier: Apache-2.0 */
/* api_counters.c: GET /counters: what each hardware counter of a run document means. */
#include "gate/counters/counters.h"
#include "server/api/api_call.h"
#include "server/api/rows.h"

enum gate_status get_counters(struct call *c)
{
    static const char *const units[] = {[COUNTER_PERCENT] = "percent",
                                        [COUNTER_BYTES] = "bytes",
                                        [COUNTER_COUNT] = "count",
                                        [COUNTER_RATIO] = "ratio"};
    rows_begin(c, "counters");
    for (size_t i = 0; i < COUNTERS_N; i++) {
        emit_row_begin(&c->emit);
        emit_string_member(&c->emit, "name", counters[i].name);
        emit_string_member(&c->emit, "label", counters[i].label);
        emit_string_member(&c->emit, "meaning", counters[i].meaning);
        emit_string_member(&c->emit, "unit", units[counters[i].unit]);
        emit_row_end(&c->emit);
    }
    rows_end(c);
    rows_close(c);
    return GATE_OK;
}
