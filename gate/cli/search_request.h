/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_request.h: what `gate search` is asked for. The table of its options is part of gate,
 * which prints help, manual and completion from it; the program gate-search reads it and does the
 * work.
 */
#ifndef GATE_CLI_SEARCH_REQUEST_H
#define GATE_CLI_SEARCH_REQUEST_H

#include "gate/cli/run_request.h"

#define SEARCH_SEEN "SEARCH_SEEN" /* the variable that names the file of what was seen */

struct search_request {
    struct run_request run;
    const char *case_id, *against, *from, *propose, *strategy;
    struct option_list parameters;
    double gain, risk, max_time_s, patience_s;
    int64_t max_runs;
    bool restart;
};

#endif
